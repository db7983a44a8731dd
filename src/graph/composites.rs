//! Composites: methods of [`Var`], in both modes.
//!
//! Guarantees: both modes run the same rows of the op table, which inference writes out; a mistake is remembered as that of an op
//! is, and names the composite. Does not: say which rows.

use crate::base::composite::{Composite, Kind};
use crate::base::dtype::DType;
use crate::base::indexing::Indexing;
use crate::base::location::here;
use crate::graph::var::{Mode, Operand, Var};

/// How near numbers are that [`Var::isclose`] takes for equal. The defaults are those of PyTorch, NumPy, Paddle and JAX.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Relative to the second operand. Default: 1e-5.
    pub rtol: f64,
    /// Absolute. Default: 1e-8.
    pub atol: f64,
    /// Whether NaNs are equal to each other. Default: false.
    pub equal_nan: bool,
}

impl Default for Tolerance {
    fn default() -> Tolerance {
        Tolerance { rtol: 1e-5, atol: 1e-8, equal_nan: false }
    }
}

/// What [`Var::nan_to_num`] writes for numbers that are not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Finite {
    /// For NaN. Default: 0.
    pub nan: Option<f64>,
    /// For +inf. Default: the largest number of the dtype.
    pub posinf: Option<f64>,
    /// For -inf. Default: the lowest number of the dtype.
    pub neginf: Option<f64>,
}

/// Composites: functions of a few rows of the op table, which a typed program shows. Half dtypes are computed in f32 and rounded
/// once by [`softmax`](Var::softmax), [`log_softmax`](Var::log_softmax), [`layer_norm`](Var::layer_norm),
/// [`rms_norm`](Var::rms_norm), [`normalize`](Var::normalize) and [`dot`](Var::dot); the others round after every row.
impl<M: Mode> Var<M> {
    /// A composite of this value and those behind it. Another number of operands than it takes is a mistake.
    ///
    /// ```
    /// use castwise::{Composite, prelude::*};
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([3.0f32, 4.0]));
    /// let normalize = Composite::named("normalize").ok_or("no such composite")?.over([0]);
    /// assert_eq!(x.composite(&normalize, &[]).result()?.to_vec::<f32>()?, [0.6, 0.8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn composite(&self, composite: &Composite, rest: &[Operand<M>]) -> Var<M> {
        let all: Vec<Operand<M>> = std::iter::once(self.into()).chain(rest.iter().cloned()).collect();
        M::composite(&self.0, composite, &all, here())
    }

    #[track_caller]
    fn composed(&self, composite: Composite, rest: &[Option<&Var<M>>]) -> Var<M> {
        let rest: Vec<Operand<M>> = rest.iter().flatten().map(|v| Operand::from(*v)).collect();
        self.composite(&composite, &rest)
    }

    /// exp(x - m) / Σ exp(x - m) along dims, where m is the largest element: positive numbers whose sum is 1. NaN where an
    /// element is NaN or +inf, or all are -inf. Floats; under the rules of NumPy and JAX also integers.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from_slice(&[0.0f32, 0.0, 700.0, 0.0], [2, 2])?);
    /// assert_eq!(x.softmax([-1]).result()?.to_vec::<f32>()?, [0.5, 0.5, 1.0, 0.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn softmax(&self, dims: impl AsRef<[i64]>) -> Var<M> {
        self.composed(Composite::new(Kind::Softmax).over(dims), &[])
    }

    /// The logarithm of [`softmax`](Var::softmax), x - m - log Σ exp(x - m), which is finite where that is 0.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([0.0f32, 1000.0]));
    /// assert_eq!(x.log_softmax([0]).result()?.to_vec::<f32>()?, [-1000.0, 0.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn log_softmax(&self, dims: impl AsRef<[i64]>) -> Var<M> {
        self.composed(Composite::new(Kind::LogSoftmax).over(dims), &[])
    }

    /// (x - mean) / √(variance + `eps`) · weight + bias over trailing dims, which are all dims of the weight and the bias. The
    /// variance is divided by the number of elements. Floats; the weight and the bias have the dtype of x, or f32 beside a half
    /// dtype.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let (x, w) = (p.data("x", DType::BF16, [None, Some(2)]), p.data("w", DType::F32, [2]));
    /// let y = x.layer_norm([-1], Some(&w), None, 0.0);
    /// let feeds = feeds! {
    ///     "x" => Tensor::from_slice(&[1.0, 3.0].map(bf16::from_f32), [1, 2])?,
    ///     "w" => Tensor::from([1.0f32, 0.5]),
    /// };
    /// let out = Executor::new().run(&p, feeds, [&y])?;
    /// assert_eq!(out[0].to_vec::<bf16>()?, [-1.0, 0.5].map(bf16::from_f32));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn layer_norm(
        &self,
        dims: impl AsRef<[i64]>,
        weight: Option<&Var<M>>,
        bias: Option<&Var<M>>,
        eps: f64,
    ) -> Var<M> {
        let mut made = Composite::new(Kind::LayerNorm).over(dims);
        made.numbers[0] = Some(eps);
        match (weight, bias) {
            // So that the bias is not taken for the weight.
            (None, Some(bias)) => self.composite(&made, &[1.0.into(), bias.into()]),
            _ => self.composed(made, &[weight, bias]),
        }
    }

    /// x / √(mean of x² + `eps`) · weight over trailing dims, which are all dims of the weight. Without an `eps` it is 2⁻²³, or
    /// 2⁻⁵² for f64. Floats, c64 and c128; the weight has the dtype of x, or f32 beside a half dtype.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([1.0f32, -7.0]));
    /// assert_eq!(x.rms_norm([-1], None, 0.0).result()?.to_vec::<f32>()?, [0.2, -1.4]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn rms_norm(&self, dims: impl AsRef<[i64]>, weight: Option<&Var<M>>, eps: impl Into<Option<f64>>) -> Var<M> {
        let mut made = Composite::new(Kind::RmsNorm).over(dims);
        made.numbers[0] = eps.into();
        self.composed(made, &[weight])
    }

    /// x / max(‖x‖, `eps`) along dims, with the norm of order `p`. Floats and complex numbers.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from_slice(&[3.0f32, 4.0, 0.0, 0.0], [2, 2])?);
    /// assert_eq!(x.normalize(2.0, [1], 1e-12).result()?.to_vec::<f32>()?, [0.6, 0.8, 0.0, 0.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn normalize(&self, p: f64, dims: impl AsRef<[i64]>, eps: f64) -> Var<M> {
        let mut made = Composite::new(Kind::Normalize).over(dims);
        made.numbers[..2].copy_from_slice(&[Some(p), Some(eps)]);
        self.composed(made, &[])
    }

    /// Σ x · y of two vectors of equal length, without conjugation; 0 of empty ones. Integers wrap in their own dtype. Under
    /// PyTorch's rules both have one dtype; under Paddle's matrices are taken row by row.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Torch);
    /// let (x, y) = (cx.tensor(&Tensor::from([1.0f32, 2.0, 3.0])), cx.tensor(&Tensor::from([4.0f32, 5.0, 6.0])));
    /// assert_eq!(x.dot(&y).result()?.item::<f32>()?, 32.0);
    /// assert!(x.dot(&cx.tensor(&Tensor::from([1.0f32]))).result().is_err());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn dot(&self, y: &Var<M>) -> Var<M> {
        self.composed(Composite::new(Kind::Dot), &[Some(y)])
    }

    /// Σ conj(x) · y along dims, with broadcasting. Floats and complex numbers; under NumPy's rules all dtypes. Products of half
    /// dtypes are rounded before they are summed.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Torch);
    /// let x = cx.tensor(&Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?);
    /// assert_eq!(x.vecdot(&x, [-1]).result()?.to_vec::<f32>()?, [5.0, 25.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn vecdot(&self, y: &Var<M>, dims: impl AsRef<[i64]>) -> Var<M> {
        self.composed(Composite::new(Kind::Vecdot).over(dims), &[Some(y)])
    }

    /// The cosine of the angle between vectors along dims, with broadcasting: Σ x / max(‖x‖, `eps`) · y / max(‖y‖, `eps`); under
    /// Paddle's rules x · y / √max(‖x‖² ‖y‖², `eps`²). Floats.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Torch);
    /// let (x, y) = (cx.tensor(&Tensor::from([3.0f32, 4.0])), cx.tensor(&Tensor::from([0.0f32, 2.0])));
    /// assert_eq!(x.cosine_similarity(&y, [0], 1e-8).result()?.item::<f32>()?, 0.8);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn cosine_similarity(&self, y: &Var<M>, dims: impl AsRef<[i64]>, eps: f64) -> Var<M> {
        let mut made = Composite::new(Kind::CosineSimilarity).over(dims);
        made.numbers[0] = Some(eps);
        self.composed(made, &[Some(y)])
    }

    /// Whether x is y, or |x - y| is finite and at most `atol` + |`rtol` · y|: bool. PyTorch's rules want one dtype, and compare
    /// integers in f32; NumPy's promote.
    ///
    /// ```
    /// use castwise::{Tolerance, prelude::*};
    /// let cx = Eager::new(Rules::Torch);
    /// let (x, y) = (cx.tensor(&Tensor::from([1.0f32, f32::NAN])), cx.tensor(&Tensor::from([1.000001f32, f32::NAN])));
    /// assert_eq!(x.isclose(&y, Tolerance::default()).result()?.to_vec::<bool>()?, [true, false]);
    /// let exact = Tolerance { rtol: 0.0, atol: 0.0, equal_nan: true };
    /// assert_eq!(x.isclose(&y, exact).result()?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn isclose(&self, y: &Var<M>, tolerance: Tolerance) -> Var<M> {
        let Tolerance { rtol, atol, equal_nan } = tolerance;
        let mut made = Composite::new(Kind::Isclose).equal_nan(equal_nan);
        made.numbers[..2].copy_from_slice(&[Some(rtol), Some(atol)]);
        self.composed(made, &[Some(y)])
    }

    /// x with NaN replaced by 0 and infinities by the largest and the lowest number of the dtype, or by what is given, which is
    /// converted to the dtype. Of complex numbers both parts; integers and bools stay as they are.
    ///
    /// ```
    /// use castwise::{Finite, prelude::*};
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([f32::NAN, f32::INFINITY, 2.0]));
    /// assert_eq!(x.nan_to_num(Finite::default()).result()?.to_vec::<f32>()?, [0.0, f32::MAX, 2.0]);
    /// let other = Finite { posinf: Some(9.0), ..Finite::default() };
    /// assert_eq!(x.nan_to_num(other).result()?.to_vec::<f32>()?, [0.0, 9.0, 2.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn nan_to_num(&self, instead: Finite) -> Var<M> {
        let Finite { nan, posinf, neginf } = instead;
        let made = Composite { numbers: [nan, posinf, neginf], ..Composite::new(Kind::NanToNum) };
        self.composed(made, &[])
    }

    /// The sum over the dims that `like` lacks or has with extent 1, in its shape: what undoes broadcasting. Which dims these are is known
    /// when they are fed. The dtype stays; half dtypes are summed in f32 and rounded once.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let (x, b) = (p.data("x", DType::F32, [None, Some(2)]), p.data("b", DType::F32, [None, Some(2)]));
    /// let y = (&x + &b).sum_to(&b);
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let one = Executor::new().run(&p, feeds! { "x" => &x, "b" => Tensor::zeros(DType::F32, [1, 2])? }, [&y])?;
    /// assert_eq!((one[0].shape(), one[0].to_vec::<f32>()?), (&[1, 2][..], vec![4.0, 6.0]));
    /// let two = Executor::new().run(&p, feeds! { "x" => &x, "b" => Tensor::zeros(DType::F32, [2, 2])? }, [&y])?;
    /// assert_eq!(two[0].to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn sum_to(&self, like: &Var<M>) -> Var<M> {
        self.composed(Composite::new(Kind::SumTo), &[Some(like)])
    }

    /// This value broadcast to the shape of another one, of which nothing else is used.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let (x, b) = (p.data("x", DType::F32, [None, Some(2)]), p.data("b", DType::I8, [2]));
    /// let y = b.expand_like(&x);
    /// let feeds = feeds! { "x" => Tensor::zeros(DType::F32, [2, 2])?, "b" => Tensor::from([1i8, 2]) };
    /// assert_eq!(Executor::new().run(&p, feeds, [&y])?[0].to_vec::<i8>()?, [1, 2, 1, 2]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn expand_like(&self, like: &Var<M>) -> Var<M> {
        self.composed(Composite::new(Kind::ExpandLike), &[Some(like)])
    }

    /// The number of elements along dims: i64, 0-d.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let n = p.data("x", DType::F32, [None, Some(3)]).count_along([0, 1]);
    /// let feeds = feeds! { "x" => Tensor::zeros(DType::F32, [5, 3])? };
    /// assert_eq!(Executor::new().run(&p, feeds, [&n])?[0].item::<i64>()?, 15);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn count_along(&self, dims: impl AsRef<[i64]>) -> Var<M> {
        self.composed(Composite::new(Kind::Count).over(dims), &[])
    }

    /// A number in this value's shape and dtype, or another dtype.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, [2])?);
    /// assert_eq!(x.full_like(0.5, None).result()?.to_vec::<f32>()?, [0.5, 0.5]);
    /// assert_eq!(x.full_like(1.0, DType::I8).result()?.to_vec::<i8>()?, [1, 1]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn full_like(&self, value: f64, dtype: impl Into<Option<DType>>) -> Var<M> {
        let mut made = Composite { dtype: dtype.into(), ..Composite::new(Kind::FullLike) };
        made.numbers[0] = Some(value);
        self.composed(made, &[])
    }

    /// The complex number of this real part and an imaginary part, in their common dtype.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Torch);
    /// let z = cx.tensor(&Tensor::from([1.0f32])).complex(&cx.tensor(&Tensor::from([-2.0f32])));
    /// assert_eq!(z.result()?.item::<Complex<f32>>()?, Complex::new(1.0, -2.0));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn complex(&self, im: &Var<M>) -> Var<M> {
        self.composed(Composite::new(Kind::Complex), &[Some(im)])
    }

    /// The elements at an integer index along a dim, with the index's extent there; in other dims the index has this value's extents or 1.
    /// Negative ones count from the end, others outside of the dim are the error of a run.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Torch);
    /// let x = cx.tensor(&Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?);
    /// let index = cx.tensor(&Tensor::from_slice(&[1i64, 0, -1], [1, 3])?);
    /// assert_eq!(x.take_along_dim(&index, 1).result()?.to_vec::<f32>()?, [2.0, 1.0, 2.0, 4.0, 3.0, 4.0]);
    /// assert!(x.take_along_dim(&(&index + 2), 1).result().is_err());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn take_along_dim(&self, index: &Var<M>, dim: i64) -> Var<M> {
        self.composed(Composite::indexing(Indexing::Take, dim), &[Some(index)])
    }

    /// Zeros with the extent of `like` along a dim, to which each element is added at its index there: what undoes
    /// [`take_along_dim`](Var::take_along_dim). Elements are added in their order; half dtypes are summed in f32 and rounded once.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Torch);
    /// let (x, index) = (cx.tensor(&Tensor::from([1i32, 2, 3])), cx.tensor(&Tensor::from([1i64, 0, 1])));
    /// let like = cx.tensor(&Tensor::zeros(DType::Bool, [4])?);
    /// assert_eq!(x.scatter_add(&index, &like, 0).result()?.to_vec::<i32>()?, [2, 4, 0, 0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter_add(&self, index: &Var<M>, like: &Var<M>, dim: i64) -> Var<M> {
        self.composed(Composite::indexing(Indexing::ScatterAdd, dim), &[Some(index), Some(like)])
    }

    /// This value among zeros along a dim, with the extent of `like` there: at `start`, `start + step`, and so on. It undoes a
    /// [slice](crate::Slice) of `like` with these numbers.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Torch);
    /// let (x, like) = (cx.tensor(&Tensor::from([1.0f32, 2.0])), cx.tensor(&Tensor::zeros(DType::I8, [5])?));
    /// assert_eq!(x.pad(&like, 0, 1, 2).result()?.to_vec::<f32>()?, [0.0, 1.0, 0.0, 2.0, 0.0]);
    /// assert_eq!(x.pad(&like, 0, -2, 1).result()?.to_vec::<f32>()?, [0.0, 0.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn pad(&self, like: &Var<M>, dim: i64, start: i64, step: i64) -> Var<M> {
        self.composed(Composite::indexing(Indexing::Pad { start, step }, dim), &[Some(like)])
    }
}
