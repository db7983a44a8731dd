//! Elements as integers that order as they do, their keys.
//!
//! Guarantees: zeros are equal, and a NaN is beyond all numbers at either end; complex numbers order by the real part, then the
//! imaginary part. Does not: compare or move elements.

use half::{bf16, f16};

use crate::base::f8::{F8E4M3FN, F8E5M2};
use crate::base::halves::{nearest_bf16, nearest_f16};

/// An element as memory has it, and its key.
pub(in crate::kernels) trait Ordered: bytemuck::Pod + Send + Sync {
    type Key: Key;
    /// The key: the larger, the larger the element. That of a NaN is the largest.
    fn ascending(self) -> Self::Key;
    /// The key: the larger, the smaller the element. That of a NaN is the largest.
    fn descending(self) -> Self::Key;
    /// The ascending key of a number by fewer instructions, but that zeros may differ; that of a NaN is outside [`QUICK`](Ordered::QUICK).
    #[inline(always)]
    fn quick(self) -> Self::Key {
        self.ascending()
    }
    /// The least and the largest quick key of a number.
    const QUICK: (Self::Key, Self::Key);
    /// The ascending key of the number with a quick key.
    #[inline(always)]
    fn settled(quick: Self::Key) -> Self::Key {
        quick
    }
    /// The ascending key of a NaN; `None` if there are none.
    const NAN: Option<Self::Key>;
    /// What lies between two neighbours in order, computed and rounded to the dtype; of integers the first.
    fn between(self, above: Self, how: Between) -> Self;
}

/// A key, and what orders it together with a position.
pub(in crate::kernels) trait Key: bytemuck::Pod + Ord + Send + Sync {
    type Word: Copy + Ord + Default + Send + Sync;
    /// A word that orders as the keys do, or in reverse, and those of equal keys as the positions do.
    fn word(self, at: u32, reverse: bool) -> Self::Word;
    /// The position of a word.
    fn at(word: Self::Word) -> usize;
    /// The key of the opposite order.
    fn reversed(self) -> Self;
}

macro_rules! words {
    ($($key:ty, as $unsigned:ty, in $word:ty;)*) => {$(
        impl Key for $key {
            type Word = $word;
            #[inline(always)]
            fn word(self, at: u32, reverse: bool) -> $word {
                let order = (self ^ <$key>::MIN) as $unsigned;
                <$word>::from(if reverse { !order } else { order }) << 32 | <$word>::from(at)
            }
            #[inline(always)]
            fn at(word: $word) -> usize {
                (word & 0xffff_ffff) as usize
            }
            #[inline(always)]
            fn reversed(self) -> $key {
                !self
            }
        }
    )*};
}
words! {
    u8, as u8, in u64;
    u16, as u16, in u64;
    u32, as u32, in u64;
    u64, as u64, in u128;
    i8, as u8, in u64;
    i16, as u16, in u64;
    i32, as u32, in u64;
    i64, as u64, in u128;
}

impl Key for i128 {
    type Word = (i128, u32);
    fn word(self, at: u32, reverse: bool) -> (i128, u32) {
        (if reverse { !self } else { self }, at)
    }
    fn at(word: (i128, u32)) -> usize {
        word.1 as usize
    }
    fn reversed(self) -> i128 {
        !self
    }
}

/// A value between two neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Between {
    /// Their mean.
    Mean,
    /// The part of the way from the first to the second, from 0 to 1, from the nearer end.
    Part(f64),
    /// Their sum with the weights 1 - w and w, computed in f32 or in f64.
    Sum { w: f64, single: bool },
}

macro_rules! ordered_integers {
    ($($t:ty),*) => {$(
        impl Ordered for $t {
            type Key = $t;
            #[inline(always)]
            fn ascending(self) -> $t { self }
            #[inline(always)]
            fn descending(self) -> $t { !self }
            const QUICK: ($t, $t) = (<$t>::MIN, <$t>::MAX);
            const NAN: Option<$t> = None;
            fn between(self, _above: $t, _how: Between) -> $t { self }
        }
    )*};
}
ordered_integers!(u8, u16, u32, u64, i8, i16, i32, i64);

/// The keys of a type with `order` and `is_nan`; `$quick` are its quick keys.
macro_rules! nans_are_beyond {
    ($name:ident, $key:ty, $($quick:tt)*) => {
        impl Ordered for $name {
            type Key = $key;
            #[inline(always)]
            fn ascending(self) -> $key {
                if self.is_nan() { <$key>::MAX } else { self.order() }
            }
            #[inline(always)]
            fn descending(self) -> $key {
                if self.is_nan() { <$key>::MAX } else { !self.order() }
            }

            $($quick)*

            const NAN: Option<$key> = Some(<$key>::MAX);

            fn between(self, above: $name, how: Between) -> $name {
                self.computed(above, how)
            }
        }
    };
}

macro_rules! ordered_floats {
    ($($name:ident of $bits:ty, up to $most:literal;)*) => {$(
        /// A float as its bits.
        #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub(in crate::kernels) struct $name($bits);

        impl $name {
            /// An integer that orders as the number; 0 for both zeros.
            #[inline(always)]
            fn order(self) -> $bits {
                Self::settled(self.quick())
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self.0 & <$bits>::MAX > $most
            }
        }

        nans_are_beyond! {
            $name, $bits,
            /// -1 for a negative zero. That of a NaN is beyond the numbers of its sign.
            #[inline(always)]
            fn quick(self) -> $bits {
                self.0 ^ ((self.0 >> (<$bits>::BITS - 1)) & <$bits>::MAX)
            }

            const QUICK: ($bits, $bits) = (!$most, $most);

            #[inline(always)]
            fn settled(quick: $bits) -> $bits {
                quick + <$bits>::from(quick == -1)
            }
        }
    )*};
}
ordered_floats! {
    E4M3FN of i8, up to 0x7e;
    E5M2 of i8, up to 0x7c;
    Half of i16, up to 0x7c00;
    Brain of i16, up to 0x7f80;
    Single of i32, up to 0x7f80_0000;
    Double of i64, up to 0x7ff0_0000_0000_0000;
}

macro_rules! ordered_pairs {
    ($($name:ident of $part:ident, $bits:ty, key $key:ty;)*) => {$(
        /// A complex number as its parts.
        #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(C)]
        pub(in crate::kernels) struct $name($part, $part);

        impl $name {
            #[inline(always)]
            fn order(self) -> $key {
                let low = <$key>::from(self.1.order()) - <$key>::from(<$bits>::MIN);
                <$key>::from(self.0.order()) << <$bits>::BITS | low
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self.0.is_nan() | self.1.is_nan()
            }

            fn computed(self, above: $name, how: Between) -> $name {
                $name(self.0.computed(above.0, how), self.1.computed(above.1, how))
            }
        }

        nans_are_beyond! { $name, $key, const QUICK: ($key, $key) = (<$key>::MIN, <$key>::MAX - 1); }
    )*};
}
ordered_pairs! {
    HalfPair of Half, i16, key i32;
    SinglePair of Single, i32, key i64;
    DoublePair of Double, i64, key i128;
}

/// The value between two numbers of f32.
fn single(a: f32, b: f32, how: Between) -> f32 {
    match how {
        Between::Mean => ((f64::from(a) + f64::from(b)) * 0.5) as f32,
        Between::Part(w) => {
            let w = w as f32;
            if w < 0.5 { a + w * (b - a) } else { b - (b - a) * (1.0 - w) }
        }
        Between::Sum { w, single } => weighted(a.into(), b.into(), w, single) as f32,
    }
}

/// The value between two numbers of a dtype narrower than f32: computed in f32, and not rounded to the dtype yet.
fn narrow(a: f64, b: f64, how: Between) -> f64 {
    match how {
        Between::Mean => (a + b) * 0.5,
        Between::Sum { w, single } => weighted(a, b, w, single),
        how => f64::from(single(a as f32, b as f32, how)),
    }
}

/// The value between two numbers of f64.
fn double(a: f64, b: f64, how: Between) -> f64 {
    match how {
        // Halves where the sum of both would overflow.
        Between::Mean if (a + b).is_infinite() => a * 0.5 + b * 0.5,
        Between::Mean => (a + b) * 0.5,
        Between::Part(w) if w < 0.5 => a + w * (b - a),
        Between::Part(w) => b - (b - a) * (1.0 - w),
        Between::Sum { w, single } => weighted(a, b, w, single),
    }
}

/// The sum of two numbers with the weights 1 - w and w.
fn weighted(a: f64, b: f64, w: f64, single: bool) -> f64 {
    if !single {
        return a * (1.0 - w) + b * w;
    }
    let [a, b, w] = [a, b, w].map(|v| v as f32);
    f64::from(a * (1.0 - w) + b * w)
}

/// What lies between two floats: `$to` of what `$of` makes of them; any NaN becomes `$nan`.
macro_rules! computed {
    ($($name:ident, $bits:ty: |$x:ident| $wide:expr, $of:ident, |$v:ident| $narrow:expr, $nan:literal;)*) => {$(
        impl $name {
            fn computed(self, above: $name, how: Between) -> $name {
                let wide = |$x: $bits| $wide;
                let $v = $of(wide(self.0), wide(above.0), how);
                $name(if $v.is_nan() { $nan } else { $narrow as $bits })
            }
        }
    )*};
}
computed! {
    E4M3FN, i8: |x| F8E4M3FN::from_bits(x as u8).to_f64(), narrow, |v| F8E4M3FN::from_f64(v).to_bits(), 0x7f;
    E5M2, i8: |x| F8E5M2::from_bits(x as u8).to_f64(), narrow, |v| F8E5M2::from_f64(v).to_bits(), 0x7f;
    Half, i16: |x| f16::from_bits(x as u16).to_f64(), narrow, |v| nearest_f16(v).to_bits(), 0x7e00;
    Brain, i16: |x| bf16::from_bits(x as u16).to_f64(), narrow, |v| nearest_bf16(v).to_bits(), 0x7fc0;
    Single, i32: |x| f32::from_bits(x as u32), single, |v| v.to_bits(), 0x7fc0_0000;
    Double, i64: |x| f64::from_bits(x as u64), double, |v| v.to_bits(), 0x7ff8_0000_0000_0000;
}

/// Does something with the type of a dtype's elements: `with_ordered!(dtype, T => f::<T>())`.
macro_rules! with_ordered {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use $crate::kernels::keys as of;
        macro_rules! with {
            ($own:ty) => {{
                type $t = $own;
                $body
            }};
        }
        match $dtype {
            DType::Bool | DType::U8 => with!(u8),
            DType::U16 => with!(u16),
            DType::U32 => with!(u32),
            DType::U64 => with!(u64),
            DType::I8 => with!(i8),
            DType::I16 => with!(i16),
            DType::I32 => with!(i32),
            DType::I64 => with!(i64),
            DType::F8E4M3FN => with!(of::E4M3FN),
            DType::F8E5M2 => with!(of::E5M2),
            DType::F16 => with!(of::Half),
            DType::BF16 => with!(of::Brain),
            DType::F32 => with!(of::Single),
            DType::F64 => with!(of::Double),
            DType::C32 => with!(of::HalfPair),
            DType::C64 => with!(of::SinglePair),
            DType::C128 => with!(of::DoublePair),
        }
    }};
}
pub(in crate::kernels) use with_ordered;
