//! Number formats: the values of bits, and the rounding of an exact number to a format.
//!
//! Guarantees: rounding is to nearest, ties to even, for numbers `m · 2^e` with integers m and e, and uses shifts only.
//! A conversion between dtypes is a decoding and one such rounding. Does not: use the floating-point unit to round.

use castwise::DType;

use super::Value;

/// A binary floating-point format.
#[derive(Clone, Copy, Debug)]
pub struct Float {
    /// The number of significant bits, including the leading one.
    pub digits: i32,
    /// The exponent of the smallest number.
    pub least: i32,
    /// The exponent of the largest power of two.
    pub most: i32,
    /// The number of bits of an element.
    pub width: u32,
    /// Whether there are no infinities: all bits set are the NaN, and `Beyond` says what numbers beyond the range give.
    pub finite: bool,
    pub beyond: Beyond,
}

/// What a number beyond the range gives in a format without infinities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beyond {
    /// The largest number, under PyTorch's and Paddle's rules.
    #[default]
    Largest,
    /// NaN, under NumPy's and JAX's rules.
    Nan,
}

impl Float {
    pub fn of(d: DType) -> Float {
        let beyond = Beyond::Largest;
        match d {
            DType::F8E4M3FN => Float { digits: 4, least: -9, most: 8, width: 8, finite: true, beyond },
            DType::F8E5M2 => Float { digits: 3, least: -16, most: 15, width: 8, finite: false, beyond },
            DType::F16 => Float { digits: 11, least: -24, most: 15, width: 16, finite: false, beyond },
            DType::BF16 => Float { digits: 8, least: -133, most: 127, width: 16, finite: false, beyond },
            DType::F32 => Float { digits: 24, least: -149, most: 127, width: 32, finite: false, beyond },
            DType::F64 => Float { digits: 53, least: -1074, most: 1023, width: 64, finite: false, beyond },
            other => panic!("{other} is no float"),
        }
    }

    /// The same with another result of numbers beyond the range.
    pub fn with(self, beyond: Beyond) -> Float {
        Float { beyond, ..self }
    }

    /// The bits of infinity, or of what a number beyond the range gives.
    fn infinity(self) -> u128 {
        if self.finite {
            return self.sign() - if self.beyond == Beyond::Nan { 1 } else { 2 };
        }
        (2 * self.most as u128 + 1) << (self.digits - 1)
    }

    /// The canonical NaN: quiet, positive, without payload.
    fn nan(self) -> u128 {
        if self.finite {
            return self.sign() - 1;
        }
        self.infinity() | 1 << (self.digits - 2)
    }

    fn sign(self) -> u128 {
        1 << (self.width - 1)
    }

    /// `± m · 2^e`, rounded to nearest, ties to even.
    pub fn round(self, negative: bool, m: u128, e: i32) -> u128 {
        let sign = if negative { self.sign() } else { 0 };
        if m == 0 {
            return sign;
        }
        let top = 127 - m.leading_zeros() as i32 + e;
        if top > self.most {
            return sign | self.infinity();
        }
        // The result is a multiple of 2^unit.
        let unit = (top - (self.digits - 1)).max(self.least);
        let kept = if unit <= e {
            m << (e - unit)
        } else {
            let cut = unit - e;
            let kept = if cut > 127 { 0 } else { m >> cut };
            let rest = if cut > 127 { m } else { m & ((1 << cut) - 1) };
            // Half a unit, if a u128 can hold it; otherwise the discarded part is smaller than half a unit.
            let half = if cut > 128 { None } else { Some(1u128 << (cut - 1)) };
            let up = half.is_some_and(|half| rest > half || rest == half && kept & 1 == 1);
            kept + u128::from(up)
        };
        // A carry out of the significand increments the exponent, which is correct.
        let bits = (((unit - self.least) as u128) << (self.digits - 1)) + kept;
        sign | bits.min(self.infinity())
    }

    /// A number rounded to the format.
    pub fn encode(self, v: f64) -> u128 {
        let negative = v.is_sign_negative();
        if v.is_nan() {
            self.nan()
        } else if v.is_infinite() {
            self.infinity() | if negative { self.sign() } else { 0 }
        } else {
            let (m, e) = parts(v);
            self.round(negative, m.into(), e)
        }
    }

    /// The exact value of bits.
    pub fn decode(self, bits: u128) -> f64 {
        let magnitude = bits & (self.sign() - 1);
        let sign = if bits & self.sign() != 0 { -1.0 } else { 1.0 };
        if if self.finite { magnitude == self.nan() } else { magnitude > self.infinity() } {
            return f64::NAN.copysign(sign);
        }
        if magnitude == self.infinity() && !self.finite {
            return f64::INFINITY * sign;
        }
        let exponent = (magnitude >> (self.digits - 1)) as i32;
        let fraction = magnitude & ((1 << (self.digits - 1)) - 1);
        let (m, e) = if exponent == 0 { (fraction, 0) } else { (fraction | 1 << (self.digits - 1), exponent - 1) };
        sign * (m as u64 as f64) * power_of_two(e + self.least)
    }

    /// The spacing of the format's numbers near `v`.
    pub fn spacing(self, v: f64) -> f64 {
        if !v.is_finite() {
            return f64::INFINITY;
        }
        let (m, e) = parts(v);
        let top = if m == 0 { self.least } else { 63 - m.leading_zeros() as i32 + e };
        power_of_two((top - (self.digits - 1)).max(self.least))
    }
}

/// `(m, e)` with |v| = m · 2^e.
fn parts(v: f64) -> (u64, i32) {
    let bits = v.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// 2^e, which must be representable.
pub fn power_of_two(e: i32) -> f64 {
    match e {
        ..-1074 => 0.0,
        -1074..-1022 => f64::from_bits(1 << (e + 1074)),
        -1022..=1023 => f64::from_bits(((e + 1023) as u64) << 52),
        _ => f64::INFINITY,
    }
}

/// `x · 2^e` in a format, rounded once.
pub fn scaled(format: Float, x: f64, e: i32) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let (m, own) = parts(x);
    format.decode(format.round(x < 0.0, m.into(), own + e))
}

/// The range of an integer dtype, and its width.
pub fn range(d: DType) -> (i128, i128, u32) {
    match d {
        DType::Bool => (0, 1, 8),
        d if d.is_unsigned() => (0, (1 << (8 * d.size())) - 1, 8 * d.size() as u32),
        _ => {
            let bits = 8 * d.size() as u32;
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1, bits)
        }
    }
}

/// The low bits of an integer as a number of the dtype.
pub fn wrap(d: DType, v: i128) -> i128 {
    let (least, _, bits) = range(d);
    let low = v.rem_euclid(1 << bits);
    if least < 0 && low >= 1 << (bits - 1) { low - (1 << bits) } else { low }
}

/// The sign bits of an element.
pub fn signs(d: DType) -> u128 {
    let part = Float::of(d.real());
    if d.is_complex() { part.sign() | part.sign() << part.width } else { part.sign() }
}

/// The value of an element's bits.
pub fn decode(d: DType, bits: u128) -> Value {
    if d.is_integral() {
        return Value::Int(wrap(d, bits as i128));
    }
    let part = Float::of(d.real());
    if d.is_complex() {
        let low = bits & ((1 << part.width) - 1);
        return Value::Pair(part.decode(low), part.decode(bits >> part.width));
    }
    Value::Real(part.decode(bits))
}

/// The bits of a value of the dtype's category, rounded.
pub fn encode(d: DType, v: Value, beyond: Beyond) -> u128 {
    match v {
        Value::Int(v) => v.rem_euclid(1 << range(d).2) as u128,
        Value::Real(v) => Float::of(d).with(beyond).encode(v),
        Value::Pair(re, im) => {
            let part = Float::of(d.real());
            part.encode(re) | part.encode(im) << part.width
        }
    }
}

/// Converts an element to another dtype.
pub fn cast(from: DType, bits: u128, to: DType, beyond: Beyond) -> u128 {
    let cast = |from, bits, to| self::cast(from, bits, to, beyond);
    if from == to {
        return bits;
    }
    let part = |d: DType| 8 * d.real().size();
    if from.is_complex() {
        let (re, im) = (bits & ((1 << part(from)) - 1), bits >> part(from));
        return match to {
            DType::Bool => {
                u128::from(cast(from.real(), re, DType::Bool) != 0 || cast(from.real(), im, DType::Bool) != 0)
            }
            _ if to.is_complex() => cast(from.real(), re, to.real()) | cast(from.real(), im, to.real()) << part(to),
            _ => cast(from.real(), re, to),
        };
    }
    if to.is_complex() {
        return cast(from, bits, to.real());
    }
    match (decode(from, bits), to) {
        (Value::Int(v), DType::Bool) => u128::from(v != 0),
        (Value::Real(v), DType::Bool) => u128::from(v != 0.0),
        (Value::Int(v), _) if to.is_float() => Float::of(to).with(beyond).round(v < 0, v.unsigned_abs(), 0),
        (Value::Int(v), _) => encode(to, Value::Int(v), beyond),
        (Value::Real(v), _) if to.is_float() => encode(to, Value::Real(v), beyond),
        (Value::Real(v), _) => {
            let (least, most, _) = range(to);
            let whole = if v.is_nan() { 0.0 } else { v.trunc() };
            encode(to, Value::Int((whole as i128).clamp(least, most)), beyond)
        }
        (Value::Pair(..), _) => unreachable!("complex numbers are above"),
    }
}
