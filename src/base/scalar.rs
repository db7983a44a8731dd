//! Scalars as the user writes them: `2`, `2.5`, `true`, a complex number.
//!
//! Guarantees: a scalar keeps its value at full precision (i64 or u64, f64, two f64) until inference gives it a dtype; the
//! conversion to that dtype is the one that casts tensor elements. Does not: influence dtypes by its value; promotion
//! sees its category alone.

use std::fmt;

use half::{bf16, f16};
use num_complex::Complex;

use crate::base::dtype::{Category, DType};
use crate::base::host::{FloatMode, in_standard_mode};

/// A constant without a dtype of its own (PyTorch: wrapped number; JAX: weak type).
///
/// ```
/// use castwise::prelude::*;
/// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([1u8, 2]));
/// assert_eq!((&x * 2).result()?.dtype(), DType::U8);                     // the tensor's dtype is kept
/// assert_eq!((&x * 2.0).result()?.dtype(), DType::F32);                  // a higher category decides
/// let chosen_at_run_time = Scalar::from(2.5f32);
/// assert_eq!((x + chosen_at_run_time).result()?.to_vec::<f32>()?, [3.5, 4.5]);
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// An integer, from -2^63 to 2^64 - 1: an operation with any other is refused. [`Scalar::integer`] checks it.
    Int(i128),
    /// A floating-point number.
    Float(f64),
    /// A complex number.
    Complex(Complex<f64>),
}

impl Scalar {
    /// An integer; `None` if no dtype has it.
    ///
    /// ```
    /// use castwise::Scalar;
    /// assert_eq!(Scalar::integer(u64::MAX.into()), Some(Scalar::from(u64::MAX)));
    /// assert_eq!(Scalar::integer(1 << 64), None);
    /// ```
    pub fn integer(v: i128) -> Option<Scalar> {
        (i64::MIN.into()..=u64::MAX.into()).contains(&v).then_some(Scalar::Int(v))
    }

    /// The category, which is all that promotion sees.
    pub const fn category(self) -> Category {
        match self {
            Scalar::Bool(_) => Category::Bool,
            Scalar::Int(_) => Category::Int,
            Scalar::Float(_) => Category::Float,
            Scalar::Complex(_) => Category::Complex,
        }
    }

    /// The dtype that holds the scalar's value exactly: bool, i64 or u64, f64 or c128.
    pub(crate) const fn own_dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(v) if v > i64::MAX as i128 => DType::U64,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F64,
            Scalar::Complex(_) => DType::C128,
        }
    }

    /// The value's bits in its [`own_dtype`](Scalar::own_dtype).
    pub(crate) fn own_bits(self) -> Bits {
        match self {
            Scalar::Bool(v) => Bits::of(&[v as u8]),
            Scalar::Int(v) => Bits::of(&(v as u64).to_ne_bytes()),
            Scalar::Float(v) => Bits::of(&v.to_ne_bytes()),
            Scalar::Complex(v) => Bits::of(bytemuck::bytes_of(&v)),
        }
    }
}

/// One element of any dtype as its bytes in memory order, padded with zeros.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C, align(16))]
pub(crate) struct Bits(pub(crate) [u8; 16]);

impl Bits {
    /// The element with these bytes; bytes beyond 16 are dropped.
    pub(crate) fn of(bytes: &[u8]) -> Bits {
        let mut all = [0; 16];
        for (to, from) in all.iter_mut().zip(bytes) {
            *to = *from;
        }
        Bits(all)
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#034x}", u128::from_le_bytes(self.0))
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _standard = FloatMode::standard();
        match self {
            Scalar::Bool(v) => f.debug_tuple("Bool").field(v).finish(),
            Scalar::Int(v) => f.debug_tuple("Int").field(v).finish(),
            Scalar::Float(v) => f.debug_tuple("Float").field(v).finish(),
            Scalar::Complex(v) => f.debug_tuple("Complex").field(v).finish(),
        }
    }
}

impl fmt::Display for Scalar {
    /// Writes the scalar as the text form does: a float always has a point or an exponent, which tells `2.0` from `2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(v) => write!(f, "{v}"),
            Scalar::Int(v) => write!(f, "{v}"),
            Scalar::Float(v) => write!(f, "{}", Float(*v)),
            Scalar::Complex(v) => write!(f, "({}, {})", Float(v.re), Float(v.im)),
        }
    }
}

/// Displays the shortest decimal that parses to the same f64, always with a point or exponent.
pub(crate) struct Float(pub(crate) f64);

impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _standard = FloatMode::standard();
        let v = self.0;
        if v.is_nan() { f.write_str("nan") } else { write!(f, "{v:?}") }
    }
}

/// The bytes of an element of at most 8 bytes as an integer; 0 for other lengths.
pub(crate) fn bits_of(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_ne_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// The f64 to print for the value `v` of a float dtype: its shortest decimal is the shortest one that rounds to `v` in
/// that dtype. Floats of 8 bits are printed exactly, since the shortest decimal of 448 would be 450. `v` must be a value
/// of the dtype.
pub(crate) fn shortest(dtype: DType, v: f64) -> f64 {
    let _standard = FloatMode::standard();
    let reads_back = |short: &f64| dtype.nearest_bits(*short) == dtype.nearest_bits(v);
    match dtype {
        d if !v.is_finite() || d.is_byte_float() => v,
        DType::F32 => (v as f32).to_string().parse().unwrap_or(v),
        d if d.is_float() && d.is_narrow() => {
            let mut digits = (0..6).filter_map(|n| format!("{v:.n$e}").parse().ok());
            digits.find(reads_back).unwrap_or(v)
        }
        _ => v,
    }
}

/// Applies a conversion whose result does not depend on the floating-point mode.
fn unguarded<A, B>(v: A, f: impl FnOnce(A) -> B) -> B {
    f(v)
}

macro_rules! scalar_from {
    ($convert:ident: $($t:ty => $variant:ident as $as:ty),*) => {$(
        impl From<$t> for Scalar {
            fn from(v: $t) -> Scalar { Scalar::$variant($convert(v, <$as>::from)) }
        }
    )*};
}

scalar_from!(unguarded: bool => Bool as bool, u8 => Int as i128, u16 => Int as i128, u32 => Int as i128,
    u64 => Int as i128, i8 => Int as i128, i16 => Int as i128, i32 => Int as i128, i64 => Int as i128,
    f64 => Float as f64);
scalar_from!(in_standard_mode: f16 => Float as f64, bf16 => Float as f64, f32 => Float as f64);

impl From<Complex<f32>> for Scalar {
    fn from(v: Complex<f32>) -> Scalar {
        Scalar::Complex(in_standard_mode(v, |v| Complex::new(v.re.into(), v.im.into())))
    }
}

impl From<Complex<f64>> for Scalar {
    fn from(v: Complex<f64>) -> Scalar {
        Scalar::Complex(v)
    }
}
