//! The thirteen element types and their categories.
//!
//! Guarantees: [`DType::ALL`] lists every dtype once; [`with_dtype!`] is the only place that goes from a [`DType`] to
//! a Rust type; [`Element`] is sealed, so each Rust type has one dtype and each dtype one Rust type.
//! Does not: decide what mixing two dtypes gives. That is `promotion`'s job.

use std::fmt;
use std::str::FromStr;

use half::{bf16, f16};
use num_complex::Complex;

/// The element type of a tensor.
///
/// ```
/// use castwise::DType;
/// let d: DType = "bf16".parse()?;
/// assert_eq!((d.size(), d.op_math()), (2, DType::F32));
/// assert_eq!("complex64".parse::<DType>()?, DType::C64);
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum DType {
    /// Truth value, one byte, 0 or 1.
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Complex of two binary16 (PyTorch's complex32).
    C32,
    /// Complex of two binary32.
    C64,
    /// Complex of two binary64.
    C128,
}

/// The class of a dtype: bool < int < float < complex. Promotion looks at it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// `bool`.
    Bool,
    /// The five integer dtypes.
    Int,
    /// `f16`, `bf16`, `f32`, `f64`.
    Float,
    /// `c32`, `c64`, `c128`.
    Complex,
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Category::Bool => "bool",
            Category::Int => "int",
            Category::Float => "float",
            Category::Complex => "complex",
        })
    }
}

use DType::*;

impl DType {
    /// Every dtype, in the order of their declaration.
    pub const ALL: [DType; 13] = [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64, C32, C64, C128];

    /// The short name: `bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c32 c64 c128`.
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "u8",
            I8 => "i8",
            I16 => "i16",
            I32 => "i32",
            I64 => "i64",
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
            C32 => "c32",
            C64 => "c64",
            C128 => "c128",
        }
    }

    /// The class that promotion compares first.
    pub const fn category(self) -> Category {
        match self {
            Bool => Category::Bool,
            U8 | I8 | I16 | I32 | I64 => Category::Int,
            F16 | BF16 | F32 | F64 => Category::Float,
            C32 | C64 | C128 => Category::Complex,
        }
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Bool | U8 | I8 => 1,
            I16 | F16 | BF16 => 2,
            I32 | F32 | C32 => 4,
            I64 | F64 | C64 => 8,
            C128 => 16,
        }
    }

    /// The dtype in which an operation on this dtype computes before it rounds its result once: `f32` for the two
    /// half types, `c64` for `c32`, itself for the rest (PyTorch's `opmath_t`).
    pub const fn op_math(self) -> DType {
        match self {
            F16 | BF16 => F32,
            C32 => C64,
            d => d,
        }
    }

    /// The dtype of the parts of a complex dtype; itself for the rest.
    pub const fn real(self) -> DType {
        match self {
            C32 => F16,
            C64 => F32,
            C128 => F64,
            d => d,
        }
    }

    /// The complex dtype whose parts can hold this float: `f16` gives `c32`, `bf16` and `f32` give `c64`, `f64` gives
    /// `c128`. Complex dtypes give themselves, bool and integers `c64`.
    pub const fn to_complex(self) -> DType {
        match self {
            F16 => C32,
            F64 => C128,
            C32 | C64 | C128 => self,
            _ => C64,
        }
    }

    /// Whether this is `f16 bf16 f32 f64`.
    pub const fn is_float(self) -> bool {
        matches!(self.category(), Category::Float)
    }

    /// Whether this is `c32 c64 c128`.
    pub const fn is_complex(self) -> bool {
        matches!(self.category(), Category::Complex)
    }

    /// Whether this is bool or an integer.
    pub const fn is_integral(self) -> bool {
        matches!(self.category(), Category::Bool | Category::Int)
    }

    /// Whether `self` may be written into `to` by an in-place or `out` operation: a lower category never takes a
    /// higher one (PyTorch's `can_cast`).
    pub fn can_cast(self, to: DType) -> bool {
        self.category() <= to.category()
    }

    /// Significant bits of the number format, its sign not counted: 11 for f16, 53 for f64, 31 for i32.
    pub(crate) const fn digits(self) -> u32 {
        match self.real() {
            Bool => 1,
            U8 => 8,
            I8 => 7,
            I16 => 15,
            I32 => 31,
            I64 => 63,
            F16 => 11,
            BF16 => 8,
            F32 => 24,
            _ => 53,
        }
    }

    /// The smallest and the largest element of an integer dtype.
    pub(crate) const fn integers(self) -> Option<(i64, i64)> {
        Some(match self {
            U8 => (0, u8::MAX as i64),
            I8 => (i8::MIN as i64, i8::MAX as i64),
            I16 => (i16::MIN as i64, i16::MAX as i64),
            I32 => (i32::MIN as i64, i32::MAX as i64),
            I64 => (i64::MIN, i64::MAX),
            _ => return None,
        })
    }

    /// Exponent of the smallest power of two that is too large for the format (its range).
    pub(crate) const fn range_bits(self) -> u32 {
        match self.real() {
            F16 => 16,
            BF16 | F32 => 128,
            F64 => 1024,
            d => d.digits(),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no dtype.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dtype `{text}`; {}known: bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c32 c64 c128", self.question())]
pub struct UnknownDType {
    text: String,
    meant: Option<DType>,
}

impl UnknownDType {
    /// The dtype that is likely meant: `torch.bfloat16` is bf16, and so is `BF16`.
    ///
    /// ```
    /// use castwise::DType;
    /// let e = "torch.bfloat16".parse::<DType>().expect_err("it has another name here");
    /// assert_eq!(e.meant(), Some(DType::BF16));
    /// ```
    pub fn meant(&self) -> Option<DType> {
        self.meant
    }

    fn question(&self) -> String {
        self.meant.map_or(String::new(), |d| format!("did you mean `{d}`? "))
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    /// Takes the short names and the names PyTorch, Paddle and NumPy use: `float16`, `half`, `bfloat16`, `float`,
    /// `double`, `long`, `complex64`, … (`float` is f32 and `double` f64, as in PyTorch).
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        named(s).ok_or_else(|| {
            // The name without its module, in small letters; `fp16`.
            let name = s.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().replace("fp", "f");
            UnknownDType { text: s.chars().take(40).flat_map(char::escape_debug).collect(), meant: named(&name) }
        })
    }
}

/// The dtype of a name.
fn named(s: &str) -> Option<DType> {
    Some(match s {
        "bool" => Bool,
        "u8" | "uint8" => U8,
        "i8" | "int8" => I8,
        "i16" | "int16" | "short" => I16,
        "i32" | "int32" | "int" => I32,
        "i64" | "int64" | "long" => I64,
        "f16" | "float16" | "half" => F16,
        "bf16" | "bfloat16" => BF16,
        "f32" | "float32" | "float" => F32,
        "f64" | "float64" | "double" => F64,
        "c32" | "complex32" | "chalf" => C32,
        "c64" | "complex64" | "cfloat" => C64,
        "c128" | "complex128" | "cdouble" => C128,
        _ => return None,
    })
}

/// A set of dtypes, as the op table writes what an op accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DTypeSet(u16);

impl DTypeSet {
    /// The set of the given dtypes.
    pub const fn of(list: &[DType]) -> DTypeSet {
        let (mut bits, mut i) = (0, 0);
        while i < list.len() {
            bits |= 1 << list[i] as u16;
            i += 1;
        }
        DTypeSet(bits)
    }

    /// All dtypes in either set.
    pub const fn union(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 | other.0)
    }

    /// The dtypes of this set that are not in the other.
    pub const fn without(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 & !other.0)
    }

    /// Whether the set has this dtype.
    pub const fn has(self, d: DType) -> bool {
        self.0 >> d as u16 & 1 == 1
    }

    /// The dtypes of the set, in the order of [`DType::ALL`].
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(move |d| self.has(*d))
    }
}

impl fmt::Debug for DTypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.iter().map(DType::name).collect::<Vec<_>>().join(" "))
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that is the element of a tensor. Sealed: the thirteen types of [`DType`] implement it.
pub trait Element:
    sealed::Sealed
    + Copy
    + Default
    + PartialEq
    + fmt::Debug
    + bytemuck::NoUninit
    + bytemuck::CheckedBitPattern
    + Send
    + Sync
{
    /// The dtype of this Rust type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),* $(,)?) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t { const DTYPE: DType = DType::$d; }
    )*};
}

elements!(bool => Bool, u8 => U8, i8 => I8, i16 => I16, i32 => I32, i64 => I64, f16 => F16, bf16 => BF16,
    f32 => F32, f64 => F64, Complex<f16> => C32, Complex<f32> => C64, Complex<f64> => C128);

/// Runs an expression with `$T` bound to the Rust type of a dtype: `with_dtype!(d, T => size_of::<T>())`.
macro_rules! with_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::dtype::DType as D;
        match $dtype {
            D::Bool => {
                type $T = bool;
                $body
            }
            D::U8 => {
                type $T = u8;
                $body
            }
            D::I8 => {
                type $T = i8;
                $body
            }
            D::I16 => {
                type $T = i16;
                $body
            }
            D::I32 => {
                type $T = i32;
                $body
            }
            D::I64 => {
                type $T = i64;
                $body
            }
            D::F16 => {
                type $T = half::f16;
                $body
            }
            D::BF16 => {
                type $T = half::bf16;
                $body
            }
            D::F32 => {
                type $T = f32;
                $body
            }
            D::F64 => {
                type $T = f64;
                $body
            }
            D::C32 => {
                type $T = num_complex::Complex<half::f16>;
                $body
            }
            D::C64 => {
                type $T = num_complex::Complex<f32>;
                $body
            }
            D::C128 => {
                type $T = num_complex::Complex<f64>;
                $body
            }
        }
    }};
}
pub(crate) use with_dtype;

#[cfg(test)]
mod tests;
