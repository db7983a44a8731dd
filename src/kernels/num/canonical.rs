//! Results with canonical NaNs.

use num_complex::Complex;

/// Canonicalization of arithmetic results: every NaN becomes the canonical quiet NaN of its type, because payloads
/// depend on operand order in compiled code and so can't be guaranteed.
pub(crate) trait Canonical {
    /// Whether the result of a reduction over such elements depends on their order.
    const ORDER_MATTERS: bool;
    type Magnitude: Copy + Ord + Default;
    const INFINITY_MAGNITUDE: Self::Magnitude;
    fn canonical(self) -> Self;
    /// A number that increases with the magnitude: 0 for zeros, above [`Canonical::INFINITY_MAGNITUDE`] for NaNs. `()`
    /// for types without NaNs and negative zeros, and for complex numbers.
    fn magnitude(self) -> Self::Magnitude;
    /// Whether no element is a NaN or a negative zero. Such elements are equal only if their bits are.
    fn are_ordinary(all: &[Self]) -> bool
    where
        Self: Sized;
}

macro_rules! already_canonical {
    ($($t:ty),*) => {$(
        impl Canonical for $t {
            const ORDER_MATTERS: bool = false;
            type Magnitude = ();
            const INFINITY_MAGNITUDE: () = ();
            #[inline(always)]
            fn canonical(self) -> $t { self }
            #[inline(always)]
            fn magnitude(self) {}
            #[inline(always)]
            fn are_ordinary(_: &[$t]) -> bool { true }
        }
    )*};
}
already_canonical!(bool, u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! canonical_nan {
    ($($t:ident $bits:ident),*) => {$(
        impl Canonical for $t {
            const ORDER_MATTERS: bool = true;
            type Magnitude = $bits;
            const INFINITY_MAGNITUDE: $bits = $t::INFINITY.to_bits() << 1;
            #[inline(always)]
            fn magnitude(self) -> $bits { self.to_bits() << 1 }
            #[inline(always)]
            fn canonical(self) -> $t {
                // Works on the bits: the compiler may choose any payload for a NaN that results from arithmetic.
                let magnitude = self.to_bits() & !(-0.0 as $t).to_bits();
                if magnitude > $t::INFINITY.to_bits() { $t::NAN } else { self }
            }
            #[inline(always)]
            fn are_ordinary(all: &[$t]) -> bool {
                // Rotating the sign into the lowest bit, inverting it and subtracting 1 maps NaNs and -0 above
                // infinity, and all other numbers to at most infinity.
                let order = |x: $t| (x.to_bits().rotate_left(1) ^ 1).wrapping_sub(1);
                all.iter().fold(0, |most, x| order(*x).max(most)) <= order($t::INFINITY)
            }
        }
        impl Canonical for Complex<$t> {
            const ORDER_MATTERS: bool = true;
            type Magnitude = ();
            const INFINITY_MAGNITUDE: () = ();
            #[inline(always)]
            fn magnitude(self) {}
            #[inline(always)]
            fn canonical(self) -> Self { Complex::new(self.re.canonical(), self.im.canonical()) }
            #[inline(always)]
            fn are_ordinary(all: &[Self]) -> bool { all.iter().all(|x| <$t>::are_ordinary(&[x.re, x.im])) }
        }
    )*};
}
canonical_nan!(f32 u32, f64 u64);
