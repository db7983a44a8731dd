//! Values of constants and scalars as text, bit for bit.
//!
//! Guarantees: what is written reads back with the same bits: floats as the shortest decimal of their dtype, a NaN that
//! is not the ordinary one with its bits, large constants as the bytes of their elements; a dim that repeats one
//! element is written once. Does not: know programs.

use std::fmt;

use half::{bf16, f16};

use crate::dtype::DType;
use crate::scalar::{Float, shortest};
use crate::shape::dims_fmt;
use crate::tensor::Tensor;

/// Constants of more elements are written as bytes.
const INLINE_ELEMENTS: usize = 64;

/// The ordinary NaN of a float dtype.
pub(super) fn ordinary_nan(d: DType) -> u64 {
    match d {
        DType::F16 => f16::NAN.to_bits().into(),
        DType::BF16 => bf16::NAN.to_bits().into(),
        DType::F32 => 0x7fc0_0000,
        _ => 0x7ff8_0000_0000_0000,
    }
}

/// The bits of a float dtype's infinity: an ordinary NaN but for the highest bit of its fraction.
pub(super) fn infinity(d: DType) -> u64 {
    ordinary_nan(d) & (ordinary_nan(d) << 1)
}

/// The bits of a float from its bytes.
fn bits_of(bytes: &[u8]) -> u64 {
    match *bytes {
        [a, b] => u16::from_ne_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// The bytes of a float of these bits, at the end of `out`.
pub(super) fn push_bits(d: DType, bits: u64, out: &mut Vec<u8>) {
    match d.size() {
        2 => out.extend((bits as u16).to_ne_bytes()),
        4 => out.extend((bits as u32).to_ne_bytes()),
        _ => out.extend(bits.to_ne_bytes()),
    }
}

/// The value of a float's bits.
fn value_of(d: DType, bits: u64) -> f64 {
    match d {
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => bf16::from_bits(bits as u16).to_f64(),
        DType::F32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}

/// The bits of the float nearest to a decimal; `None` if it is no decimal or beyond the dtype's range.
pub(super) fn nearest(d: DType, decimal: &str) -> Option<u64> {
    let (bits, finite) = match d {
        DType::F16 => decimal.parse().map(f16::from_f64).map(|v| (v.to_bits().into(), v.is_finite())).ok()?,
        DType::BF16 => decimal.parse().map(bf16::from_f64).map(|v| (v.to_bits().into(), v.is_finite())).ok()?,
        DType::F32 => decimal.parse().map(|v: f32| (v.to_bits().into(), v.is_finite())).ok()?,
        _ => decimal.parse().map(|v: f64| (v.to_bits(), v.is_finite())).ok()?,
    };
    finite.then_some(bits)
}

/// A float with every bit of it: `0.1`, `-0.0`, `-inf`, `nan`, `nan:0x7fc00001`.
pub(super) struct Exact {
    dtype: DType,
    bits: u64,
}

impl From<f64> for Exact {
    fn from(v: f64) -> Exact {
        Exact { dtype: DType::F64, bits: v.to_bits() }
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = value_of(self.dtype, self.bits);
        match v.is_nan() {
            true if self.bits == ordinary_nan(self.dtype) => f.write_str("nan"),
            true => write!(f, "nan:{:#x}", self.bits),
            false => Float(shortest(self.dtype, v)).fmt(f),
        }
    }
}

/// One element, from its bytes.
struct Element<'a>(DType, &'a [u8]);

impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Element(d, bytes) = *self;
        let float = |bytes: &[u8]| Exact { dtype: d.real(), bits: bits_of(bytes) };
        match (d, bytes) {
            (DType::Bool, _) => write!(f, "{}", bytes != [0]),
            (DType::U8, [a]) => a.fmt(f),
            (DType::I8, [a]) => (*a as i8).fmt(f),
            (DType::I16, _) => (bits_of(bytes) as i16).fmt(f),
            (DType::I32, _) => (bits_of(bytes) as i32).fmt(f),
            (DType::I64, _) => (bits_of(bytes) as i64).fmt(f),
            _ if d.is_complex() => {
                let (re, im) = bytes.split_at(bytes.len() / 2);
                write!(f, "({}, {})", float(re), float(im))
            }
            _ => float(bytes).fmt(f),
        }
    }
}

/// A constant: `f32[2] [0.5, 1.0]`, `u8[100] hex "00ff…"`, `f32[1, 2] [0.5, 1.0] to [3, 2]`.
pub(super) struct Constant<'a>(pub(super) &'a Tensor);

impl fmt::Display for Constant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut base, d) = (self.0.clone(), self.0.dtype());
        let mut repeats = false;
        for axis in 0..base.rank() {
            if base.numel() > 0 && base.strides()[axis] == 0 && base.shape()[axis] > 1 {
                base = base.slice(axis, 0, 1, 1).map_err(|_| fmt::Error)?;
                repeats = true;
            }
        }
        write!(f, "{d}")?;
        dims_fmt(base.shape(), f)?;
        if base.numel() <= INLINE_ELEMENTS {
            f.write_str(" [")?;
            for (i, bytes) in base.elements().enumerate() {
                write!(f, "{}{}", if i == 0 { "" } else { ", " }, Element(d, bytes))?;
            }
            f.write_str("]")?;
        } else {
            f.write_str(" hex \"")?;
            let mut line = String::new();
            for bytes in base.elements() {
                for part in bytes.chunks(d.real().size()) {
                    push_hex(part, &mut line);
                }
                if line.len() > 4000 {
                    f.write_str(&line)?;
                    line.clear();
                }
            }
            write!(f, "{line}\"")?;
        }
        if repeats {
            f.write_str(" to ")?;
            dims_fmt(self.0.shape(), f)?;
        }
        Ok(())
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The bytes of one number as hexadecimal digits, the lowest byte first on every machine.
fn push_hex(number: &[u8], text: &mut String) {
    let mut push = |b: &u8| {
        text.push(char::from(DIGITS[usize::from(b >> 4)]));
        text.push(char::from(DIGITS[usize::from(b & 15)]));
    };
    if cfg!(target_endian = "little") { number.iter().for_each(&mut push) } else { number.iter().rev().for_each(push) }
}

/// The bytes of a tensor's elements from their hexadecimal digits; `None` if a byte is not two digits.
pub(super) fn from_hex(d: DType, text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).map(|v| v as u8);
    let byte = |pair: &[u8]| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    let mut bytes = text.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
    if cfg!(target_endian = "big") {
        bytes.chunks_mut(d.real().size()).for_each(<[u8]>::reverse);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_reads_back_from_its_shortest_decimal() {
        for d in [DType::F16, DType::BF16] {
            for bits in 0..=u64::from(u16::MAX) {
                let v = value_of(d, bits);
                let text = Exact { dtype: d, bits }.to_string();
                if v.is_finite() {
                    assert_eq!(nearest(d, &text), Some(bits), "{d} {bits:#x} {text}");
                    // Plain digits up to 1e16, as Rust prints floats.
                    let digits = text
                        .trim_start_matches("-")
                        .split(['.', 'e'])
                        .next()
                        .map_or(0, |d| d.trim_end_matches('0').len());
                    assert!(digits <= 6 && text.len() <= "-1000000000000000.0".len(), "{text}");
                }
            }
        }
        assert_eq!(Exact { dtype: DType::F16, bits: f16::from_f32(0.1).to_bits().into() }.to_string(), "0.1");
        assert_eq!(Exact { dtype: DType::BF16, bits: 0x7fc1 }.to_string(), "nan:0x7fc1");
        assert_eq!(nearest(DType::F16, "65520"), None);
        for d in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            assert!(value_of(d, infinity(d)) == f64::INFINITY && value_of(d, ordinary_nan(d)).is_nan(), "{d}");
        }
    }

    #[test]
    fn floats_read_back_with_their_bits() {
        let mut x = 1u64;
        for _ in 0..20_000 {
            x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            for (dtype, bits) in [(DType::F64, x), (DType::F32, x >> 32)] {
                if value_of(dtype, bits).is_finite() {
                    let text = Exact { dtype, bits }.to_string();
                    assert_eq!(nearest(dtype, &text), Some(bits), "{dtype} {bits:#x} {text}");
                }
            }
        }
        assert_eq!(Exact::from(-0.0).to_string(), "-0.0");
        assert_eq!(Exact { dtype: DType::F32, bits: 0x3dcc_cccd }.to_string(), "0.1");
    }
}
