//! The element types, their categories and their properties: a table with one row per dtype.
//!
//! Guarantees: every property in which dtypes differ is a column of the table in this file or derives from one;
//! [`DType::ALL`] lists every dtype once; [`with_dtype!`] is the only place that maps a [`DType`] to a Rust type;
//! [`Element`] is sealed, so each Rust type has one dtype and each dtype one Rust type. Does not: decide the dtype of
//! mixed operands, which is `promotion`'s task.

use std::fmt;

use half::{bf16, f16};

use super::f8::{F8E4M3FN, F8E5M2};
use super::halves::{nearest_bf16, nearest_f16};

/// Calls `$callback!` with its arguments and all rows. Columns, in order: documentation, variant, Rust type, category,
/// name, aliases, number format; after `via`, the dtype in which operations compute, if it is another one.
macro_rules! for_each_dtype {
    ($callback:ident $($arguments:tt)*) => {
        $crate::base::dtype::for_each_dtype!([$callback] $($arguments)*);
    };
    ([$($callback:tt)+] $($arguments:tt)*) => {
        $($callback)+! { $($arguments)*
            /// Boolean, one byte, 0 or 1.
            Bool (bool) bool "bool" [] boolean();
            /// Unsigned 8-bit integer.
            U8 (u8) int "u8" ["uint8"] unsigned(8);
            /// Unsigned 16-bit integer.
            U16 (u16) int "u16" ["uint16"] unsigned(16);
            /// Unsigned 32-bit integer.
            U32 (u32) int "u32" ["uint32"] unsigned(32);
            /// Unsigned 64-bit integer.
            U64 (u64) int "u64" ["uint64"] unsigned(64);
            /// Signed 8-bit integer.
            I8 (i8) int "i8" ["int8"] signed(8);
            /// Signed 16-bit integer.
            I16 (i16) int "i16" ["int16", "short"] signed(16);
            /// Signed 32-bit integer.
            I32 (i32) int "i32" ["int32", "int"] signed(32);
            /// Signed 64-bit integer.
            I64 (i64) int "i64" ["int64", "long"] signed(64);
            /// 8-bit float of 4 bits of exponent and 3 of fraction, without infinities.
            F8E4M3FN (crate::base::f8::F8E4M3FN) float "f8e4m3fn" ["float8_e4m3fn"] float(4, 9).finite(), via F32;
            /// 8-bit float of 5 bits of exponent and 2 of fraction.
            F8E5M2 (crate::base::f8::F8E5M2) float "f8e5m2" ["float8_e5m2"] float(3, 16), via F32;
            /// IEEE 754 binary16.
            F16 (half::f16) float "f16" ["float16", "half"] float(11, 16).with_complex(DType::C32), via F32;
            /// bfloat16: the upper 16 bits of a binary32.
            BF16 (half::bf16) float "bf16" ["bfloat16"] float(8, 128), via F32;
            /// IEEE 754 binary32.
            F32 (f32) float "f32" ["float32", "float"] float(24, 128);
            /// IEEE 754 binary64.
            F64 (f64) float "f64" ["float64", "double"] float(53, 1024).with_complex(DType::C128);
            /// Complex of two binary16 (PyTorch's complex32).
            C32 (num_complex::Complex<half::f16>) complex "c32" ["complex32", "chalf"] parts(DType::F16), via C64;
            /// Complex of two binary32.
            C64 (num_complex::Complex<f32>) complex "c64" ["complex64", "cfloat"] parts(DType::F32);
            /// Complex of two binary64.
            C128 (num_complex::Complex<f64>) complex "c128" ["complex128", "cdouble"] parts(DType::F64);
        }
    };
}
pub(crate) use for_each_dtype;

/// The class of a dtype: bool < int < float < complex. Promotion compares it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// `bool`.
    Bool,
    /// The integer dtypes.
    Int,
    /// The floating-point dtypes.
    Float,
    /// The complex dtypes.
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

/// The number format of a dtype.
#[derive(Clone, Copy)]
struct Format {
    /// Significant bits, not counting the sign.
    digits: u32,
    /// Exponent of the smallest power of two beyond the range.
    range: u32,
    /// Whether this is an unsigned integer.
    unsigned: bool,
    /// Whether this is a float without infinities, in which one bit pattern of each sign is a NaN.
    finite: bool,
    /// The dtype of the real and imaginary part of a complex dtype.
    part: Option<DType>,
    /// The complex dtype whose parts can represent this dtype's values.
    complex: DType,
}

const fn boolean() -> Format {
    Format { digits: 1, range: 1, unsigned: false, finite: false, part: None, complex: DType::C64 }
}

const fn unsigned(bits: u32) -> Format {
    Format { digits: bits, range: bits, unsigned: true, ..boolean() }
}

const fn signed(bits: u32) -> Format {
    Format { digits: bits - 1, range: bits - 1, ..boolean() }
}

const fn float(digits: u32, range: u32) -> Format {
    Format { digits, range, ..boolean() }
}

/// A complex dtype. Its digits and range are those of the part's dtype.
const fn parts(part: DType) -> Format {
    Format { part: Some(part), ..boolean() }
}

impl Format {
    const fn finite(self) -> Format {
        Format { finite: true, ..self }
    }

    const fn with_complex(self, complex: DType) -> Format {
        Format { complex, ..self }
    }
}

/// Conversions between a float's bits and its value.
#[derive(Clone, Copy)]
struct Codec {
    value: fn(u64) -> f64,
    nearest: fn(f64) -> u64,
}

/// The Rust type of a float dtype.
trait FloatFormat {
    const CODEC: Codec;
}

macro_rules! float_formats {
    ($($t:ty: $bits:ty, $value:expr, $nearest:expr;)*) => {$(
        impl FloatFormat for $t {
            const CODEC: Codec = Codec {
                value: |bits| $value(<$t>::from_bits(bits as $bits)),
                nearest: |v| $nearest(v).to_bits() as u64,
            };
        }
    )*};
}

float_formats! {
    F8E4M3FN: u8, F8E4M3FN::to_f64, F8E4M3FN::from_f64;
    F8E5M2: u8, F8E5M2::to_f64, F8E5M2::from_f64;
    f16: u16, f16::to_f64, nearest_f16;
    bf16: u16, bf16::to_f64, nearest_bf16;
    f32: u32, f64::from, |v| v as f32;
    f64: u64, f64::from, f64::from;
}

/// The properties of a dtype.
struct Row {
    name: &'static str,
    aliases: &'static [&'static str],
    category: Category,
    size: usize,
    format: Format,
    op_math: DType,
    codec: Option<Codec>,
}

macro_rules! define_dtypes {
    (@category bool) => { Category::Bool };
    (@category int) => { Category::Int };
    (@category float) => { Category::Float };
    (@category complex) => { Category::Complex };
    (@codec float $rust:ty) => { Some(<$rust as FloatFormat>::CODEC) };
    (@codec $category:ident $rust:ty) => { None };
    (@op_math $variant:ident $wide:ident) => { DType::$wide };
    (@op_math $variant:ident) => { DType::$variant };
    ($(
        #[doc = $doc:literal]
        $variant:ident ($($rust:tt)+) $category:ident $name:literal $aliases:tt $format:expr $(, via $wide:ident)?;
    )*) => {
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
            $(#[doc = $doc] $variant,)*
        }

        impl DType {
            /// Every dtype, in the order of declaration.
            pub const ALL: [DType; COUNT] = [$(DType::$variant),*];
        }

        const COUNT: usize = [$($name),*].len();

        const TABLE: &[Row; COUNT] = &[$(Row {
            name: $name,
            aliases: &$aliases,
            category: define_dtypes!(@category $category),
            size: size_of::<$($rust)+>(),
            format: $format,
            op_math: define_dtypes!(@op_math $variant $($wide)?),
            codec: define_dtypes!(@codec $category $($rust)+),
        }),*];

        $(
            impl sealed::Sealed for $($rust)+ {}
            impl Element for $($rust)+ { const DTYPE: DType = DType::$variant; }
        )*
    };
}
for_each_dtype!(define_dtypes);

impl DType {
    const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The short name: `bool`, `u8`, `bf16`, `c128`, ….
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Further names.
    pub(super) const fn aliases(self) -> &'static [&'static str] {
        self.row().aliases
    }

    /// The class that promotion compares first.
    pub const fn category(self) -> Category {
        self.row().category
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        self.row().size
    }

    /// The dtype in which an operation on this dtype computes before it rounds its result once: `f32` for the two
    /// half types and those of 8 bits, `c64` for `c32`, itself for the rest (PyTorch's `opmath_t`).
    pub const fn op_math(self) -> DType {
        self.row().op_math
    }

    /// Whether operations on this dtype compute in a wider one and round their result: `f16`, `bf16`, `c32`.
    pub const fn is_narrow(self) -> bool {
        self.op_math() as u8 != self as u8
    }

    /// Whether this is a float dtype of 8 bits: `f8e4m3fn`, `f8e5m2`.
    pub const fn is_byte_float(self) -> bool {
        self.is_float() && self.size() == 1
    }

    /// Whether a float dtype has infinities.
    pub(crate) const fn has_infinity(self) -> bool {
        !self.real().row().format.finite
    }

    /// Whether this is a float dtype of 16 bits: `f16`, `bf16`.
    pub(crate) const fn is_half(self) -> bool {
        self.is_float() && self.size() == 2
    }

    /// The dtype of the parts of a complex dtype; itself for the rest.
    pub const fn real(self) -> DType {
        match self.row().format.part {
            Some(part) => part,
            None => self,
        }
    }

    /// The complex dtype whose parts can represent this float: `f16` gives `c32`, `bf16` and `f32` give `c64`, `f64`
    /// gives `c128`. Complex dtypes give themselves, bool and integers `c64`.
    pub const fn to_complex(self) -> DType {
        if self.is_complex() { self } else { self.row().format.complex }
    }

    /// Whether this is a floating-point dtype.
    pub const fn is_float(self) -> bool {
        matches!(self.category(), Category::Float)
    }

    /// Whether this is a complex dtype.
    pub const fn is_complex(self) -> bool {
        matches!(self.category(), Category::Complex)
    }

    /// Whether this is bool or an integer.
    pub const fn is_integral(self) -> bool {
        matches!(self.category(), Category::Bool | Category::Int)
    }

    /// Whether this is an unsigned integer dtype.
    pub const fn is_unsigned(self) -> bool {
        self.row().format.unsigned
    }

    /// Whether an in-place or `out` operation may write `self` into `to`: `to` must not be of a lower category
    /// (PyTorch's `can_cast`).
    pub fn can_cast(self, to: DType) -> bool {
        self.category() <= to.category()
    }

    /// Significant bits of the number format, not counting the sign: 11 for f16, 53 for f64, 31 for i32.
    pub(crate) const fn digits(self) -> u32 {
        self.real().row().format.digits
    }

    /// Exponent of the smallest power of two beyond the format's range.
    pub(crate) const fn range_bits(self) -> u32 {
        self.real().row().format.range
    }

    /// Whether every value of another dtype is one of this dtype.
    pub(crate) fn holds(self, other: DType) -> bool {
        let signed = !other.is_unsigned() && other.category() != Category::Bool;
        self.category() >= other.category()
            && !(signed && self.is_unsigned())
            && self.range_bits() >= other.range_bits()
            && self.digits() >= other.digits()
    }

    /// The smallest and the largest element of an integer dtype.
    ///
    /// ```
    /// use castwise::DType;
    /// assert_eq!((DType::I8.int_range(), DType::F32.int_range()), (Some((-128, 127)), None));
    /// ```
    pub const fn int_range(self) -> Option<(i128, i128)> {
        if !matches!(self.category(), Category::Int) {
            return None;
        }
        let beyond = 1i128 << self.digits();
        Some((if self.is_unsigned() { 0 } else { -beyond }, beyond - 1))
    }

    /// The largest finite number of a float dtype.
    pub(crate) const fn largest(self) -> f64 {
        let (digits, exponent) = (self.digits(), self.range_bits() as u64 + 1022);
        // Without infinities, all bits set are a NaN.
        let fraction = (1 << (digits - 1)) - if self.has_infinity() { 1 } else { 2 };
        f64::from_bits(exponent << 52 | fraction << (53 - digits))
    }

    /// The bits of a float dtype's infinity: all exponent bits set. Of a dtype without infinities, those of the largest
    /// number: what is above are NaNs.
    pub(crate) const fn infinity_bits(self) -> u64 {
        if !self.has_infinity() {
            return (1 << (8 * self.size() - 1)) - 2;
        }
        let (bits, fraction) = (8 * self.size() as u32, self.digits() - 1);
        ((1 << (bits - 1 - fraction)) - 1) << fraction
    }

    /// The bits of a float dtype's canonical NaN: those of infinity and the highest fraction bit.
    pub(crate) const fn nan_bits(self) -> u64 {
        if !self.has_infinity() {
            return self.infinity_bits() + 1;
        }
        self.infinity_bits() | 1 << (self.digits() - 2)
    }

    /// The value of a bit pattern in a float dtype.
    pub(crate) fn value_of_bits(self, bits: u64) -> f64 {
        self.row().codec.map_or(f64::NAN, |c| (c.value)(bits))
    }

    /// The bits of the float dtype's value nearest to `value`, which is rounded once.
    pub(crate) fn nearest_bits(self, value: f64) -> u64 {
        self.row().codec.map_or(0, |c| (c.nearest)(value))
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

/// The dtypes' names, separated by spaces.
pub(super) fn names(dtypes: impl Iterator<Item = DType>) -> String {
    dtypes.map(DType::name).collect::<Vec<_>>().join(" ")
}

/// A set of dtypes. The op table uses it for the dtypes that an op accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DTypeSet(u32);

const _: () = assert!(COUNT <= u32::BITS as usize);

impl DTypeSet {
    /// No dtype.
    pub const EMPTY: DTypeSet = DTypeSet(0);

    /// Every dtype.
    pub const ALL: DTypeSet = DTypeSet::of(&DType::ALL);

    /// The set of the given dtypes.
    pub const fn of(list: &[DType]) -> DTypeSet {
        let (mut bits, mut i) = (0, 0);
        while i < list.len() {
            bits |= 1 << list[i] as u32;
            i += 1;
        }
        DTypeSet(bits)
    }

    /// The dtypes of a category.
    pub const fn category(category: Category) -> DTypeSet {
        let (mut bits, mut i) = (0, 0);
        while i < COUNT {
            if TABLE[i].category as u8 == category as u8 {
                bits |= 1 << i;
            }
            i += 1;
        }
        DTypeSet(bits)
    }

    /// The float dtypes of 8 bits.
    pub(crate) const BYTE_FLOATS: DTypeSet = {
        let (mut bits, mut i) = (0, 0);
        while i < COUNT {
            bits |= (DType::ALL[i].is_byte_float() as u32) << i;
            i += 1;
        }
        DTypeSet(bits)
    };

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
        self.0 >> d as u32 & 1 == 1
    }

    /// The dtypes of the set, in the order of [`DType::ALL`].
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(move |d| self.has(*d))
    }
}

impl FromIterator<DType> for DTypeSet {
    fn from_iter<I: IntoIterator<Item = DType>>(all: I) -> DTypeSet {
        DTypeSet(all.into_iter().fold(0, |bits, d| bits | 1 << d as u32))
    }
}

impl fmt::Debug for DTypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&names(self.iter()))
    }
}

mod sealed {
    pub trait Sealed {}
}

/// The Rust type of a tensor's elements. Sealed: each [`DType`] has one type that implements it.
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

/// Evaluates an expression with `$T` bound to the Rust type of a dtype: `with_dtype!(d, T => size_of::<T>())`.
macro_rules! with_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::base::dtype::for_each_dtype!([$crate::base::dtype::dtype_arms] ($dtype) $T ($body))
    };
}
pub(crate) use with_dtype;

macro_rules! dtype_arms {
    (($dtype:expr) $T:ident ($body:expr) $(
        #[doc = $doc:literal]
        $variant:ident ($($rust:tt)+) $category:ident $name:literal $aliases:tt $format:expr $(, via $wide:ident)?;
    )*) => {
        match $dtype {
            $($crate::base::dtype::DType::$variant => {
                type $T = $($rust)+;
                $body
            })*
        }
    };
}
pub(crate) use dtype_arms;

/// Like [`with_dtype!`], but only for dtypes that operations compute in directly, of `any` category or of `int` alone:
/// `with_math!(int, d, T => T::MAX)`. Gives `None` for other dtypes.
macro_rules! with_math {
    ($of:ident, $dtype:expr, $T:ident => $body:expr) => {
        $crate::base::dtype::for_each_dtype!([$crate::base::dtype::math_arms] $of ($dtype) $T ($body))
    };
}
pub(crate) use with_math;

macro_rules! math_arms {
    ($of:ident ($dtype:expr) $T:ident ($body:expr) $(
        #[doc = $doc:literal]
        $variant:ident ($($rust:tt)+) $category:ident $name:literal $aliases:tt $format:expr $(, via $wide:ident)?;
    )*) => {{
        let (dtype, mut found) = ($dtype, None);
        $($crate::base::dtype::math_arm!($of $category ($($wide)?) dtype found $T ($body) $variant ($($rust)+));)*
        found
    }};
}
pub(crate) use math_arms;

macro_rules! math_arm {
    (int int () $($rest:tt)*) => { $crate::base::dtype::math_arm!(@ $($rest)*) };
    (any $category:ident () $($rest:tt)*) => { $crate::base::dtype::math_arm!(@ $($rest)*) };
    (@ $dtype:ident $found:ident $T:ident ($body:expr) $variant:ident ($($rust:tt)+)) => {
        if $dtype == $crate::base::dtype::DType::$variant {
            type $T = $($rust)+;
            $found = Some($body);
        }
    };
    ($($other:tt)*) => {};
}
pub(crate) use math_arm;

#[cfg(test)]
mod tests;
