//! Moves the elements of a row-major tensor of `outer` × `extent` × `width` elements along the middle dim, to or from where an index says.
//!
//! Guarantees: every index is checked before anything is written; elements are added in the order of the index, so that threads change no
//! bit; NaNs that are sums are canonical. Does not: broadcast an index, or read strided elements.

use std::sync::{Mutex, PoisonError};

use half::{bf16, f16};
use num_complex::Complex;

use super::try_share;
use crate::base::cancel::Stop;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::room::list;
use crate::kernels::num::Canonical;

/// Elements of results that are made together, about.
const TOGETHER: usize = 4096;

/// Where elements come from or go to.
#[derive(Clone, Copy)]
pub(crate) enum Places<'a> {
    /// Each result is the element at its index.
    From(&'a [i64]),
    /// Each element is added at its index.
    To(&'a [i64]),
    /// The elements are at this place and those a step behind it.
    Steps(usize, usize),
}

/// What is moved.
pub(crate) struct Moves<'a> {
    /// The elements, aligned.
    pub(crate) bytes: &'a [u8],
    pub(crate) dtype: DType,
    pub(crate) places: Places<'a>,
    pub(crate) outer: usize,
    /// The extent of the dim, and that of the result.
    pub(crate) extents: (usize, usize),
    pub(crate) width: usize,
    pub(crate) threads: usize,
    pub(crate) stop: Option<&'a Stop<'a>>,
}

/// The first index that is outside of a dim of an extent: negative ones count from its end.
pub(crate) fn outside(index: &[i64], extent: usize) -> Option<i64> {
    let n = i64::try_from(extent).unwrap_or(i64::MAX);
    index.iter().copied().find(|i| *i >= n || *i < -n)
}

/// The place of an index that was checked.
fn place(index: i64, extent: usize) -> usize {
    if index < 0 { extent.saturating_sub(index.unsigned_abs() as usize) } else { index as usize }
}

/// What is added in a wider type, and rounded once.
trait Sums: bytemuck::Pod {
    type Wide: Copy + Default;
    fn add(wide: Self::Wide, x: Self) -> Self::Wide;
    fn rounded(wide: Self::Wide) -> Self;
}

macro_rules! sums {
    ($($t:ty, $wide:ty, |$sum:ident, $x:ident| $add:expr, |$v:ident| $rounded:expr;)*) => {$(
        impl Sums for $t {
            type Wide = $wide;
            fn add($sum: $wide, $x: $t) -> $wide { $add }
            fn rounded($v: $wide) -> $t { $rounded }
        }
    )*};
}
sums! {
    u8, u8, |s, x| s.wrapping_add(x), |v| v;
    u16, u16, |s, x| s.wrapping_add(x), |v| v;
    u32, u32, |s, x| s.wrapping_add(x), |v| v;
    u64, u64, |s, x| s.wrapping_add(x), |v| v;
    i8, i8, |s, x| s.wrapping_add(x), |v| v;
    i16, i16, |s, x| s.wrapping_add(x), |v| v;
    i32, i32, |s, x| s.wrapping_add(x), |v| v;
    i64, i64, |s, x| s.wrapping_add(x), |v| v;
    f16, f32, |s, x| s + x.to_f32(), |v| if v.is_nan() { f16::NAN } else { f16::from_f32(v) };
    bf16, f32, |s, x| s + x.to_f32(), |v| if v.is_nan() { bf16::NAN } else { bf16::from_f32(v) };
    f32, f32, |s, x| s + x, |v| v.canonical();
    f64, f64, |s, x| s + x, |v| v.canonical();
    Complex<f32>, Complex<f32>, |s, x| s + x, |v| v.canonical();
    Complex<f64>, Complex<f64>, |s, x| s + x, |v| v.canonical();
}

/// Moves the lines from an outer index on to their results.
type Kernel = fn(&Moves<'_>, usize, &mut [u8]) -> Result<()>;

impl Moves<'_> {
    /// Writes the results: `outer` × the second extent × `width` elements. What no element is moved to by [`Places::Steps`] stays.
    pub(crate) fn run(&self, out: &mut [u8]) -> Result<()> {
        let (size, line) = (self.dtype.size(), self.extents.1 * self.width);
        let counts = self.bytes.len() == self.outer * self.extents.0 * self.width * size
            && out.len() == self.outer * line * size;
        let aligned = |p: usize| p.is_multiple_of(size.min(align_of::<u64>()));
        let indexed = match self.places {
            Places::From(index) => index.len() == self.outer * line && outside(index, self.extents.0).is_none(),
            Places::To(index) => {
                index.len() == self.outer * self.extents.0 * self.width && outside(index, self.extents.1).is_none()
            }
            Places::Steps(first, step) => self.extents.0 == 0 || first + (self.extents.0 - 1) * step < self.extents.1,
        };
        if !counts || !indexed || !aligned(self.bytes.as_ptr().addr()) || !aligned(out.as_ptr().addr()) {
            return Err(Error::Internal("elements are moved in wrong memory".into()));
        }
        if out.is_empty() {
            return Ok(());
        }
        let kernel = self.kernel()?;
        let lines = self.lines();
        let units: Vec<Mutex<&mut [u8]>> = out.chunks_mut(lines * line * size).map(Mutex::new).collect();
        try_share(units.len(), self.threads, self.stop, &|unit| {
            let mut out = units[unit].lock().unwrap_or_else(PoisonError::into_inner);
            kernel(self, unit * lines, &mut out)
        })
    }

    /// Lines whose results are made together.
    fn lines(&self) -> usize {
        (TOGETHER / (self.extents.1 * self.width).max(1)).max(1)
    }

    /// Bytes that a run needs beside its results: the sums of each thread.
    pub(crate) fn scratch(&self) -> usize {
        let wide = match (self.places, self.dtype) {
            (Places::To(_), d) => d.op_math().size(),
            _ => 0,
        };
        let each = self.extents.1.saturating_mul(self.width).saturating_mul(wide);
        each.saturating_mul(self.threads.clamp(1, self.outer.div_ceil(self.lines()).max(1)))
    }

    fn kernel(&self) -> Result<Kernel> {
        if !matches!(self.places, Places::To(_)) {
            return Ok(match self.dtype.size() {
                1 => moved::<u8>,
                2 => moved::<u16>,
                4 => moved::<u32>,
                8 => moved::<u64>,
                _ => moved::<[u64; 2]>,
            });
        }
        macro_rules! sums {
            ($($dtype:ident $t:ty),*) => {
                match self.dtype {
                    $(DType::$dtype => Ok(added::<$t> as Kernel),)*
                    d => Err(Error::Internal(format!("no kernel adds {d} at an index"))),
                }
            };
        }
        sums!(U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64, F16 f16, BF16 bf16, F32 f32, F64 f64,
            C64 Complex<f32>, C128 Complex<f64>)
    }
}

/// The lines from an outer index on: elements, index and results of each.
fn moved<W: bytemuck::Pod>(m: &Moves<'_>, first: usize, out: &mut [u8]) -> Result<()> {
    let (from, to) = (m.extents.0 * m.width, m.extents.1 * m.width);
    let all: &[W] = bytemuck::cast_slice(m.bytes);
    for (line, out) in bytemuck::cast_slice_mut::<u8, W>(out).chunks_mut(to).enumerate() {
        let (line, width) = (first + line, m.width);
        let x = &all[line * from..(line + 1) * from];
        match m.places {
            Places::From(index) => {
                let index = &index[line * to..(line + 1) * to];
                for (row, index) in out.chunks_mut(width).zip(index.chunks(width)) {
                    for (column, (out, i)) in row.iter_mut().zip(index).enumerate() {
                        *out = x[place(*i, m.extents.0) * width + column];
                    }
                }
            }
            Places::Steps(start, step) => {
                for (i, row) in x.chunks(width).enumerate() {
                    out[(start + i * step) * width..][..width].copy_from_slice(row);
                }
            }
            Places::To(_) => return Err(Error::Internal("elements are added, not moved".into())),
        }
    }
    Ok(())
}

fn added<T: Sums>(m: &Moves<'_>, first: usize, out: &mut [u8]) -> Result<()> {
    let Places::To(index) = m.places else { return Err(Error::Internal("elements are moved, not added".into())) };
    let (from, to, width) = (m.extents.0 * m.width, m.extents.1 * m.width, m.width);
    let (all, out): (&[T], &mut [T]) = (bytemuck::cast_slice(m.bytes), bytemuck::cast_slice_mut(out));
    let mut sums: Vec<T::Wide> = list(to)?;
    for (line, out) in out.chunks_mut(to).enumerate() {
        let here = (first + line) * from..(first + line + 1) * from;
        sums.fill(T::Wide::default());
        for (row, index) in all[here.clone()].chunks(width).zip(index[here].chunks(width)) {
            for (column, (x, i)) in row.iter().zip(index).enumerate() {
                let sum = &mut sums[place(*i, m.extents.1) * width + column];
                *sum = T::add(*sum, *x);
            }
        }
        out.iter_mut().zip(&sums).for_each(|(to, sum)| *to = T::rounded(*sum));
    }
    Ok(())
}
