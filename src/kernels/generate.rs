//! Generators: elements that follow from their index.
//!
//! Guarantees: an element depends on the generator, its index and the shape alone, not on which elements are made with it; the same bits at
//! each CPU level. Does not: know layouts; the driver says which elements go where.

use std::ops::Range;

use super::cast::{Prim, path};
use super::{BlockFn, CpuLevel, kernel, levels, operands, philox};
use crate::base::dtype::DType;
use crate::base::generator::{Generator, Key};
use crate::base::scalar::Scalar;
use crate::base::shape::axis;
use crate::ops::{MAX_OPERANDS, Op};

/// Elements that are made at a time.
const CHUNK: usize = 256;

/// Elements whose random numbers share words: a chunk begins at a multiple of it.
const SHARED: u64 = 4;

/// A generator that is ready to make elements of one shape.
pub(crate) struct Filler {
    dtype: DType,
    native: Native,
    /// For normally distributed numbers: log, sqrt, cos, sin.
    functions: Vec<BlockFn>,
    /// From the dtype in which elements are made to the result's.
    path: Vec<BlockFn>,
    level: CpuLevel,
    /// The position of the first element.
    first: u64,
}

/// What makes the elements, and with which numbers.
#[derive(Clone, Copy)]
enum Native {
    Ints { start: i64, step: i64, along: Along },
    Floats { start: f64, step: f64, along: Along },
    Linspace { start: f64, end: f64, step: f64, along: Along },
    Uniform32 { key: Key, bits: u32 },
    Uniform64 { key: Key },
    Normal32 { key: Key },
    Normal64 { key: Key },
    Bernoulli { key: Key, below: u64 },
    Randint { key: Key, low: i64, count: u64 },
    Bits { key: Key },
}

/// Which index of an element counts: `position / stride % extent`.
#[derive(Clone, Copy)]
struct Along {
    stride: u64,
    extent: u64,
}

impl Along {
    fn new(dim: Option<i64>, shape: &[usize]) -> Along {
        // Where a shape has no elements, nothing bounds the products of its other extents.
        let count = |dims: &[usize]| dims.iter().fold(1u64, |all, n| all.wrapping_mul(*n as u64));
        match dim.and_then(|d| axis(d, shape.len()).ok()).filter(|d| *d < shape.len()) {
            Some(d) => Along { stride: count(&shape[d + 1..]), extent: shape[d] as u64 },
            None => Along { stride: 1, extent: count(shape) },
        }
    }

    /// Calls `f` with each position's place among `n` from `first` on, and the index.
    #[inline(always)]
    fn each(self, first: u64, n: usize, mut f: impl FnMut(usize, u64)) {
        let (stride, extent) = (self.stride.max(1), self.extent.max(1));
        let (mut rest, mut index) = (first % stride, first / stride % extent);
        for i in 0..n {
            f(i, index);
            rest += 1;
            if rest == stride {
                rest = 0;
                index = if index + 1 == extent { 0 } else { index + 1 };
            }
        }
    }
}

impl Filler {
    /// Makes a generator ready for a shape of these extents and a dtype that it has been checked for.
    pub(crate) fn new(generator: &Generator, dtype: DType, shape: &[usize], level: CpuLevel) -> Filler {
        let along = Along::new(generator.dim(), shape);
        let float = |s: Scalar| match s {
            Scalar::Int(v) => v as f64,
            Scalar::Float(v) => v,
            Scalar::Bool(_) | Scalar::Complex(_) => 0.0,
        };
        let (native, from) = match *generator {
            Generator::Index { .. } => (Native::Ints { start: 0, step: 1, along }, DType::I64),
            Generator::Arange { start: Scalar::Int(start), step: Scalar::Int(step), .. } if dtype.is_integral() => {
                (Native::Ints { start: start as i64, step: step as i64, along }, DType::I64)
            }
            Generator::Arange { start, step, .. } => {
                (Native::Floats { start: float(start), step: float(step), along }, DType::F64)
            }
            Generator::Linspace { start, end, .. } => {
                let step = if along.extent > 1 { (end - start) / (along.extent - 1) as f64 } else { 0.0 };
                (Native::Linspace { start, end, step, along }, DType::F64)
            }
            Generator::Uniform { key, .. } if dtype == DType::F64 => (Native::Uniform64 { key }, DType::F64),
            Generator::Uniform { key, .. } => {
                let bits = dtype.digits().clamp(1, 24);
                (Native::Uniform32 { key, bits }, DType::F32)
            }
            Generator::Normal { key, .. } if dtype == DType::F64 => (Native::Normal64 { key }, DType::F64),
            Generator::Normal { key, .. } => (Native::Normal32 { key }, DType::F32),
            Generator::Bernoulli { p, key } => {
                (Native::Bernoulli { key, below: (p * 4_294_967_296.0).ceil() as u64 }, DType::Bool)
            }
            Generator::Randint { low, high, key, .. } => {
                (Native::Randint { key, low: low as i64, count: (high - low) as u64 }, DType::I64)
            }
        };
        let functions = match native {
            Native::Normal32 { .. } | Native::Normal64 { .. } => {
                [Op::Log, Op::Sqrt, Op::Cos, Op::Sin].iter().filter_map(|op| kernel(*op, from, level)).collect()
            }
            _ => Vec::new(),
        };
        let path = path(from, dtype).iter().filter_map(|p: &Prim| p.kernel(level)).collect();
        Filler { dtype, native, functions, path, level, first: 0 }
    }

    /// The same for a part of the shape, whose first element has this position.
    pub(crate) fn from(self, first: u64) -> Filler {
        Filler { first, ..self }
    }

    /// What makes random integers of the whole range of a dtype.
    pub(crate) fn bits(key: Key, dtype: DType, level: CpuLevel) -> Filler {
        let path = path(DType::I64, dtype).iter().filter_map(|p: &Prim| p.kernel(level)).collect();
        Filler { dtype, native: Native::Bits { key }, functions: Vec::new(), path, level, first: 0 }
    }

    /// Makes as many elements as there is room for, from the first position on.
    pub(crate) fn fill_bytes(&self, out: &mut [u8]) {
        // SAFETY: so many elements of the dtype are writable.
        unsafe { self.fill(0, out.len() / self.dtype.size(), out.as_mut_ptr()) };
    }

    /// The dtype of the elements.
    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    /// Makes `n` elements from the position `first` on.
    ///
    /// # Safety
    /// `out` must be writable for `n` elements of the dtype.
    pub(crate) unsafe fn fill(&self, first: u64, n: usize, out: *mut u8) {
        let first = self.first + first;
        let (mut at, end) = (first, first + n as u64);
        let size = self.dtype.size();
        let direct = self.functions.is_empty() && self.path.is_empty() && out.addr().is_multiple_of(size);
        while at < end {
            let begin = at - at % SHARED;
            let length = ((end - begin).next_multiple_of(SHARED) as usize).min(CHUNK);
            let skipped = (at - begin) as usize;
            let count = (length - skipped).min((end - at) as usize);
            // SAFETY: `out` has room for the elements from `at` on: all of the chunk, or those that are copied.
            unsafe {
                let to = out.add((at - first) as usize * size);
                if direct && count == length {
                    let args =
                        operands([(&raw const self.native).cast(), std::ptr::without_provenance(begin as usize)]);
                    native(self.level)(args, to, length);
                } else {
                    self.staged(begin, length, skipped..skipped + count, to);
                }
            }
            at += count as u64;
        }
    }

    /// Makes a chunk of `length` elements from the position `begin` on, in steps, and copies some of them.
    ///
    /// # Safety
    /// `out` must be writable for the elements that are copied; these must be of the chunk, which has at most [`CHUNK`].
    #[inline(never)]
    unsafe fn staged(&self, begin: u64, length: usize, copied: Range<usize>, out: *mut u8) {
        let mut made = [[Aligned::ZERO; CHUNK / 2]; 2];
        let (a, b) = made.split_at_mut(1);
        let mut tiles = [a[0].as_mut_ptr().cast::<u8>(), b[0].as_mut_ptr().cast::<u8>()];
        // SAFETY: each buffer has room for a chunk of elements of any dtype; the rest is the caller's promise.
        unsafe {
            let args = operands([(&raw const self.native).cast(), std::ptr::without_provenance(begin as usize)]);
            native(self.level)(args, tiles[0], length);
            if !self.functions.is_empty() {
                self.polar(tiles[0], tiles[1], length);
                tiles.swap(0, 1);
            }
            for step in &self.path {
                step(operands([tiles[0].cast_const()]), tiles[1], length);
                tiles.swap(0, 1);
            }
            let size = self.dtype.size();
            std::ptr::copy_nonoverlapping(tiles[0].add(copied.start * size), out, copied.len() * size);
        }
    }
}

impl Filler {
    /// Makes `n` normally distributed numbers at `out` of as many at `from`: first those that become radiuses, then angles.
    ///
    /// # Safety
    /// Both must have room for `n` elements of the dtype in which they are made; what is at `from` is overwritten.
    unsafe fn polar(&self, from: *mut u8, out: *mut u8, n: usize) {
        let [log, sqrt, cos, sin] = self.functions[..] else { return };
        let wide = matches!(self.native, Native::Normal64 { .. });
        let bytes = n / 2 * if wide { 8 } else { 4 };
        // SAFETY: each half has room for half of the elements; none of these kernels refuses a number, and what a kernel reads it does not
        // write.
        unsafe {
            let (angles, far) = (from.add(bytes), out.add(bytes));
            log(operands([from.cast_const()]), out, n / 2);
            let halves = operands([out.cast_const(), std::ptr::without_provenance(wide.into())]);
            doubled(self.level)(halves, from, n / 2);
            sqrt(operands([from.cast_const()]), out, n / 2);
            cos(operands([angles.cast_const()]), far, n / 2);
            sin(operands([angles.cast_const()]), from, n / 2);
            // Radiuses and cosines are at `out`, sines at `from`.
            let mut polar = [[Aligned::ZERO; CHUNK / 4]; 1];
            let to = polar[0].as_mut_ptr().cast::<u8>();
            let args = operands([out.cast_const(), far, from, std::ptr::without_provenance(wide.into())]);
            joined(self.level)(args, to, n);
            std::ptr::copy_nonoverlapping(to, out, 2 * bytes);
        }
    }
}

/// Multiplies by -2.
///
/// # Safety
/// The first operand and `out` must be valid for `n` elements of f64 if the second one is not 0, else of f32.
#[inline(always)]
unsafe fn doubled_body(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        if args[1].addr() != 0 {
            super::slice_mut::<f64>(out, n)
                .iter_mut()
                .zip(super::slice::<f64>(args[0], n))
                .for_each(|(o, a)| *o = -2.0 * a);
        } else {
            super::slice_mut::<f32>(out, n)
                .iter_mut()
                .zip(super::slice::<f32>(args[0], n))
                .for_each(|(o, a)| *o = -2.0 * a);
        }
    }
    0
}

/// Multiplies radiuses with cosines and sines, in turns.
///
/// # Safety
/// The operands must be valid for `n / 2`, `out` for `n` elements of f64 if the last operand is not 0, else of f32.
#[inline(always)]
unsafe fn joined_body(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    /// # Safety
    /// As `joined_body`, for elements of `T`.
    #[inline(always)]
    unsafe fn joined_as<T: Copy + std::ops::Mul<Output = T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let [r, cos, sin] = [0, 1, 2].map(|i| super::slice::<T>(args[i], n / 2));
            for (((to, r), cos), sin) in super::slice_mut::<T>(out, n).chunks_exact_mut(2).zip(r).zip(cos).zip(sin) {
                (to[0], to[1]) = (*r * *cos, *r * *sin);
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { if args[3].addr() != 0 { joined_as::<f64>(args, out, n) } else { joined_as::<f32>(args, out, n) } }
    0
}

levels!(doubled, doubled_body, <>);
levels!(joined, joined_body, <>);

/// Aligned memory of four elements of eight bytes.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Aligned([u64; 4]);

impl Aligned {
    const ZERO: Aligned = Aligned([0; 4]);
}

/// Makes a chunk. The operands are not elements: the generator, and the position of the first element as an address.
///
/// # Safety
/// The first operand must point at a [`Native`]; `out` must be aligned and writable for `n` elements of its dtype, a multiple of
/// [`SHARED`] and at most [`CHUNK`]; the position is a multiple of [`SHARED`].
#[inline(always)]
unsafe fn native_body(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the caller's promise.
    let native = unsafe { *args[0].cast::<Native>() };
    let first = args[1].addr() as u64;
    // SAFETY: the caller's promise, for elements of the type that is written.
    unsafe {
        match native {
            Native::Ints { start, step, along } => {
                let out = super::slice_mut::<i64>(out, n);
                along.each(first, n, |i, at| out[i] = start.wrapping_add(step.wrapping_mul(at as i64)));
            }
            Native::Floats { start, step, along } => {
                let out = super::slice_mut::<f64>(out, n);
                along.each(first, n, |i, at| out[i] = start + step * at as f64);
            }
            Native::Linspace { start, end, step, along } => {
                let out = super::slice_mut::<f64>(out, n);
                let half = along.extent / 2;
                along.each(first, n, |i, at| {
                    let back = along.extent.saturating_sub(1 + at);
                    out[i] = if at < half || along.extent == 1 {
                        start + step * at as f64
                    } else {
                        end - step * back as f64
                    };
                });
            }
            Native::Uniform32 { key, bits } => {
                let mut words = [0; CHUNK / 2];
                let words = &mut words[..n / 2];
                philox::words(key, first / 4, words);
                let out = super::slice_mut::<f32>(out, n);
                let (shift, scale) = (32 - bits, 1.0 / (1u32 << bits) as f32);
                for (to, two) in out.chunks_exact_mut(2).zip(words) {
                    to[0] = ((*two as u32) >> shift) as i32 as f32 * scale;
                    to[1] = (((*two >> 32) as u32) >> shift) as i32 as f32 * scale;
                }
            }
            Native::Uniform64 { key } => {
                let out = super::slice_mut::<f64>(out, n);
                let mut words = [0; CHUNK];
                let words = &mut words[..n];
                philox::words(key, first / 2, words);
                for (to, w) in out.iter_mut().zip(words) {
                    *to = (*w >> 11) as i64 as f64 * (1.0 / (1u64 << 53) as f64);
                }
            }
            Native::Normal32 { key } => {
                let mut words = [0; CHUNK / 2];
                let words = &mut words[..n / 2];
                philox::words(key, first / 4, words);
                let (near, far) = super::slice_mut::<f32>(out, n).split_at_mut(n / 2);
                for ((u, t), w) in near.iter_mut().zip(far).zip(words) {
                    // The sum of a multiple of 2^16 and what is below rounds once.
                    let (high, low) = ((*w as u32 >> 16) as i32, (*w as u32 & 0xffff) as i32);
                    *u = (high as f32 * 65536.0 + (low + 1) as f32) * (1.0 / 4_294_967_296.0);
                    *t = (*w >> 40) as i32 as f32 * (1.0 / 16_777_216.0) * std::f32::consts::TAU;
                }
            }
            Native::Normal64 { key } => {
                let mut words = [0; CHUNK];
                let words = &mut words[..n];
                philox::words(key, first / 2, words);
                let (near, far) = super::slice_mut::<f64>(out, n).split_at_mut(n / 2);
                for ((u, t), w) in near.iter_mut().zip(far).zip(words.chunks_exact(2)) {
                    *u = ((w[0] >> 11) + 1) as i64 as f64 * (1.0 / (1u64 << 53) as f64);
                    *t = (w[1] >> 11) as i64 as f64 * (1.0 / (1u64 << 53) as f64) * std::f64::consts::TAU;
                }
            }
            Native::Bernoulli { key, below } => {
                let mut words = [0; CHUNK / 2];
                let words = &mut words[..n / 2];
                philox::words(key, first / 4, words);
                for (to, two) in super::slice_mut::<u8>(out, n).chunks_exact_mut(2).zip(words) {
                    to[0] = u8::from((*two & 0xffff_ffff) < below);
                    to[1] = u8::from((*two >> 32) < below);
                }
            }
            Native::Bits { key } => philox::words(key, first / 2, super::slice_mut::<u64>(out, n)),
            Native::Randint { key, low, count } => {
                let mut words = [0; CHUNK];
                let words = &mut words[..n];
                philox::words(key, first / 2, words);
                for (to, w) in super::slice_mut::<i64>(out, n).iter_mut().zip(words) {
                    *to = low.wrapping_add(((u128::from(*w) * u128::from(count)) >> 64) as i64);
                }
            }
        }
    }
    0
}

levels!(native, native_body, <>);

#[cfg(test)]
mod tests;
