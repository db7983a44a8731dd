//! How a tensor prints: dtype, shape and its first values.

use std::fmt;

use super::Tensor;
use crate::dtype::{DType, Element, with_dtype};
use crate::scalar::Float;

/// How many elements `Debug` shows.
const SHOWN: usize = 8;

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} [", self.dtype, self.shape())?;
        for i in 0..self.numel().min(SHOWN) {
            f.write_str(if i == 0 { "" } else { ", " })?;
            f.write_str(&self.element_text(i))?;
        }
        f.write_str(if self.numel() > SHOWN { ", …]" } else { "]" })
    }
}

impl Tensor {
    /// The element at a row-major position, as text.
    fn element_text(&self, position: usize) -> String {
        let (mut rest, mut at) = (position, self.offset as isize);
        for (n, s) in self.shape().iter().zip(self.strides().iter()).rev() {
            at += (rest % n) as isize * s;
            rest /= n;
        }
        let size = self.dtype.size();
        let bytes = self.storage.bytes().get(at as usize * size..).and_then(|b| b.get(..size)).unwrap_or(&[]);
        with_dtype!(self.dtype, T => bytemuck::checked::try_pod_read_unaligned::<T>(bytes).map_or("?".into(), value_text))
    }
}

/// One element as text: floats in the shortest form that reads back in f64, complex as `re+imj`.
pub(crate) fn value_text<T: Element>(v: T) -> String {
    let float = |v: f64| Float(v).to_string();
    let complex =
        |re: f64, im: f64| format!("{}{}{}j", float(re), if im.is_sign_negative() { "" } else { "+" }, float(im));
    let bytes = bytemuck::bytes_of(&v);
    let as_f64 = |b: &[u8], d: DType| match d {
        DType::F16 => half::f16::from_ne_bytes([b[0], b[1]]).to_f64(),
        DType::BF16 => half::bf16::from_ne_bytes([b[0], b[1]]).to_f64(),
        DType::F32 => f32::from_ne_bytes([b[0], b[1], b[2], b[3]]).into(),
        _ => f64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
    };
    let d = T::DTYPE;
    match d {
        DType::F32 => format!("{v:?}").replace("NaN", "nan"),
        _ if d.is_float() => float(as_f64(bytes, d)),
        _ if d.is_complex() => {
            let (re, im) = bytes.split_at(d.size() / 2);
            complex(as_f64(re, d.real()), as_f64(im, d.real()))
        }
        _ => format!("{v:?}"),
    }
}
