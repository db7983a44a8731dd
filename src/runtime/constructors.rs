//! Tensors of given values: ones, ranges, the identity, random numbers.
//!
//! Guarantees: every dtype, or an error that names it; random numbers are those of [`Generator`]. Does not: use threads.

use crate::base::dtype::{Category, DType};
use crate::base::error::{Diagnostic, DiagnosticKind, Result};
use crate::base::generator::{Generator, Key};
use crate::base::host::FloatMode;
use crate::base::location::here;
use crate::base::scalar::{Bits, Scalar};
use crate::base::shape::check;
use crate::kernels::CpuLevel;
use crate::kernels::cast::{convert_by, path};
use crate::kernels::generate::Filler;
use crate::tensor::{Storage, Tensor};

/// One in a dtype.
fn one(dtype: DType) -> Bits {
    let one = Scalar::Int(1);
    convert_by(one.own_bits(), path(one.own_dtype(), dtype))
}

/// A tensor of what a filler makes, as elements of `dtype`.
fn made(filler: &Filler, dtype: DType, shape: &[usize]) -> Result<Tensor> {
    let _standard = FloatMode::standard();
    let mut storage = Storage::zeroed(check(shape)? * dtype.size())?;
    filler.fill_bytes(storage.bytes_mut());
    Tensor::from_storage(storage, dtype, shape)
}

#[track_caller]
fn refused<T>(kind: DiagnosticKind, message: String) -> Result<T> {
    Err(Diagnostic::new(kind, message).at(&here()).into())
}

/// Tensors of given values.
impl Tensor {
    /// A tensor of ones (true for bool).
    ///
    /// ```
    /// use castwise::prelude::*;
    /// assert_eq!(Tensor::ones(DType::BF16, [2])?.to_vec::<bf16>()?, [bf16::ONE; 2]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn ones(dtype: DType, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        Tensor::of_bits(dtype, one(dtype)).broadcast_to(shape)?.contiguous()
    }

    /// The values from `start` on and before `end`, `step` apart: integers for integer dtypes, else computed in f64 and rounded.
    ///
    /// Errors: a step of 0, numbers that are not finite, a float for an integer dtype, and bool, which has no ranges.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// assert_eq!(Tensor::arange(DType::I32, 10, 0, -3)?.to_vec::<i32>()?, [10, 7, 4, 1]);
    /// assert_eq!(Tensor::arange(DType::F32, 0, 1, 0.25)?.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75]);
    /// assert!(Tensor::arange(DType::I32, 0, 1, 0.25).is_err());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn arange(
        dtype: DType,
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
    ) -> Result<Tensor> {
        let (start, end, step) = (start.into(), end.into(), step.into());
        if dtype == DType::Bool {
            return refused(DiagnosticKind::UnsupportedDType, "`arange` of bool".into());
        }
        let count = match (start, end, step) {
            (Scalar::Int(a), Scalar::Int(b), Scalar::Int(s)) if s != 0 => {
                let (distance, step) = if s > 0 { (b - a, s) } else { (a - b, -s) };
                usize::try_from((distance.max(0) + step - 1) / step).ok()
            }
            _ if dtype.is_integral() => None,
            _ => {
                let [a, b, s] = [start, end, step].map(|v| match v {
                    Scalar::Int(v) => v as f64,
                    Scalar::Float(v) => v,
                    Scalar::Bool(_) | Scalar::Complex(_) => f64::NAN,
                });
                let count = ((b - a) / s).ceil();
                // A larger count is refused as a shape.
                (count.is_finite() && s.is_finite() && s != 0.0).then_some(count.max(0.0) as usize)
            }
        };
        let Some(count) = count else {
            let message = format!("`arange` of {dtype} from {start} to {end} by {step}");
            return refused(DiagnosticKind::BadParameter, message);
        };
        let range = Generator::Arange { start, step, dim: None, dtype: None };
        made(&Filler::new(&range, dtype, &[count], CpuLevel::get()), dtype, &[count])
    }

    /// `count` evenly spaced values from `start` to `end`, with both of them, computed in f64 and cast. bool is refused.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// assert_eq!(Tensor::linspace(DType::F32, -1.0, 1.0, 3)?.to_vec::<f32>()?, [-1.0, 0.0, 1.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn linspace(dtype: DType, start: f64, end: f64, count: usize) -> Result<Tensor> {
        if dtype == DType::Bool {
            return refused(DiagnosticKind::UnsupportedDType, "`linspace` of bool".into());
        }
        let line = Generator::Linspace { start, end, dim: None, dtype: None };
        made(&Filler::new(&line, dtype, &[count], CpuLevel::get()), dtype, &[count])
    }

    /// Ones where row and column are equal, else zeros.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// assert_eq!(Tensor::eye(DType::U8, 2, 3)?.to_vec::<u8>()?, [1, 0, 0, 0, 1, 0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn eye(dtype: DType, rows: usize, columns: usize) -> Result<Tensor> {
        let (size, one) = (dtype.size(), one(dtype));
        let mut storage = Storage::zeroed(check(&[rows, columns])? * size)?;
        for (i, row) in storage.bytes_mut().chunks_exact_mut((columns * size).max(1)).enumerate().take(columns) {
            row[i * size..(i + 1) * size].copy_from_slice(&one.0[..size]);
        }
        Tensor::from_storage(storage, dtype, &[rows, columns])
    }

    /// Random numbers: floats and the parts of complex numbers uniform in [0, 1), integers of the whole range of the dtype, fair bools.
    /// Those of f32 are [`Generator::Uniform`]'s of the same key.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let noise = Tensor::random(DType::F32, [1000], 7)?;
    /// assert!(noise.to_vec::<f32>()?.iter().all(|u| (0.0..1.0).contains(u)));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn random(dtype: DType, shape: impl AsRef<[usize]>, key: impl Into<Key>) -> Result<Tensor> {
        let (key, shape, level) = (key.into(), shape.as_ref(), CpuLevel::get());
        let filler = match dtype.category() {
            Category::Bool => Filler::new(&Generator::Bernoulli { p: 0.5, key }, dtype, shape, level),
            Category::Int => Filler::bits(key, dtype, level),
            Category::Float | Category::Complex => {
                Filler::new(&Generator::Uniform { key, dtype: None }, dtype.real(), shape, level)
            }
        };
        made(&filler, dtype, shape)
    }
}
