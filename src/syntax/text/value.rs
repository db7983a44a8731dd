//! The text of constants and scalars, which preserves every bit.
//!
//! Guarantees: values read back with the same bits. Floats are written as the shortest decimal of their dtype, a NaN
//! other than the canonical one with its bits, and large constants as the bytes of their elements. A dim with stride 0
//! is written as one element. Does not: know programs.

use std::fmt;

use crate::base::dtype::{Category, DType};
use crate::base::scalar::{Float, bits_of, shortest};
use crate::base::shape::dims_fmt;
use crate::tensor::Tensor;

/// Constants with more elements are written as bytes.
const INLINE_ELEMENTS: usize = 64;

/// Appends the bytes of a float with these bits to `out`.
pub(super) fn push_bits(d: DType, bits: u64, out: &mut Vec<u8>) {
    match d.size() {
        1 => out.push(bits as u8),
        2 => out.extend((bits as u16).to_ne_bytes()),
        4 => out.extend((bits as u32).to_ne_bytes()),
        _ => out.extend(bits.to_ne_bytes()),
    }
}

/// The bits of the float nearest to a decimal; `None` if the text is not a decimal or its value is outside the dtype's
/// range.
pub(super) fn nearest(d: DType, decimal: &str) -> Option<u64> {
    let bits = match d {
        // Parsing f32 directly rounds once. Rounding to f64 first could create a tie, and the second rounding could be
        // wrong.
        DType::F32 => decimal.parse::<f32>().ok()?.to_bits().into(),
        _ => d.nearest_bits(decimal.parse().ok()?),
    };
    d.value_of_bits(bits).is_finite().then_some(bits)
}

/// Prints a float so that it reads back with every bit: `0.1`, `-0.0`, `-inf`, `nan`, `nan:0x7fc00001`.
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
        let v = self.dtype.value_of_bits(self.bits);
        match v.is_nan() {
            true if self.bits == self.dtype.nan_bits() => f.write_str("nan"),
            true => write!(f, "nan:{:#x}", self.bits),
            false => Float(shortest(self.dtype, v)).fmt(f),
        }
    }
}

/// Prints one element, given by its bytes.
struct Element<'a>(DType, &'a [u8]);

impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Element(d, bytes) = *self;
        let float = |bytes: &[u8]| Exact { dtype: d.real(), bits: bits_of(bytes) };
        match d.category() {
            Category::Bool => write!(f, "{}", bytes != [0]),
            Category::Int if d.is_unsigned() => bits_of(bytes).fmt(f),
            Category::Int => {
                // Sign extension.
                let above = 64 - 8 * d.size();
                (((bits_of(bytes) << above) as i64) >> above).fmt(f)
            }
            Category::Float => float(bytes).fmt(f),
            Category::Complex => {
                let (re, im) = bytes.split_at(bytes.len() / 2);
                write!(f, "({}, {})", float(re), float(im))
            }
        }
    }
}

/// Prints a constant, and whether it is weak: `f32[2] [0.5, 1.0]`, `f32*[1] [2.0]`, `u8[100] hex "00ff…"`, `f32[1, 2] [0.5, 1.0] to [3, 2]`.
pub(super) struct Constant<'a>(pub(super) &'a Tensor, pub(super) bool);

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
        write!(f, "{d}{}", if self.1 { "*" } else { "" })?;
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

/// The bytes of one number as hexadecimal digits, in little-endian order on every machine.
fn push_hex(number: &[u8], text: &mut String) {
    let mut push = |b: &u8| {
        text.push(char::from(DIGITS[usize::from(b >> 4)]));
        text.push(char::from(DIGITS[usize::from(b & 15)]));
    };
    if cfg!(target_endian = "little") { number.iter().for_each(&mut push) } else { number.iter().rev().for_each(push) }
}

/// The bytes of a tensor's elements from their hexadecimal digits; `None` if the text does not have two digits for each
/// byte.
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
                let v = d.value_of_bits(bits);
                let text = Exact { dtype: d, bits }.to_string();
                if v.is_finite() {
                    assert_eq!(nearest(d, &text), Some(bits), "{d} {bits:#x} {text}");
                    // Rust prints floats below 1e16 without an exponent.
                    let digits = text
                        .trim_start_matches("-")
                        .split(['.', 'e'])
                        .next()
                        .map_or(0, |d| d.trim_end_matches('0').len());
                    assert!(digits <= 6 && text.len() <= "-1000000000000000.0".len(), "{text}");
                }
            }
        }
        assert_eq!(Exact { dtype: DType::F16, bits: DType::F16.nearest_bits(0.1) }.to_string(), "0.1");
        assert_eq!(Exact { dtype: DType::BF16, bits: 0x7fc1 }.to_string(), "nan:0x7fc1");
        assert_eq!(nearest(DType::F16, "65520"), None);
        for d in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let (inf, nan) = (d.value_of_bits(d.infinity_bits()), d.value_of_bits(d.nan_bits()));
            assert!(inf == f64::INFINITY && nan.is_nan(), "{d}");
        }
    }

    #[test]
    fn floats_read_back_with_their_bits() {
        let mut x = 1u64;
        for _ in 0..20_000 {
            x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            for (dtype, bits) in [(DType::F64, x), (DType::F32, x >> 32)] {
                if dtype.value_of_bits(bits).is_finite() {
                    let text = Exact { dtype, bits }.to_string();
                    assert_eq!(nearest(dtype, &text), Some(bits), "{dtype} {bits:#x} {text}");
                }
            }
        }
        assert_eq!(Exact::from(-0.0).to_string(), "-0.0");
        assert_eq!(Exact { dtype: DType::F32, bits: 0x3dcc_cccd }.to_string(), "0.1");
    }
}
