//! `Var`: the handle that operators and methods work on, in a program or eagerly.
//!
//! Guarantees: every method and operator derives from the op table and exists in both modes, so a function over
//! `Var<M>` builds a graph or computes at once; operators never panic: a mistake is remembered with the caller's line
//! and comes out of `check`, `infer`, `run` or `result`. Does not: know what a mode does with an application.

use std::ops;

use half::{bf16, f16};
use num_complex::Complex;

use crate::base::blocks::BlockSize;
use crate::base::composite::Composite;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, SourceLocation};
use crate::base::generator::Generator;
use crate::base::location::here;
use crate::base::scalar::Scalar;
use crate::base::view::View;
use crate::ops::{Attrs, Choice, Op, for_each_op};
use crate::promotion::Settings;

mod sealed {
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

/// What applying an op means: [`Graph`] appends a node, [`Eager`](crate::Eager) computes. Sealed.
pub trait Mode: Sealed + Sized + 'static {
    /// What a handle holds.
    type Value: Clone + Send + Sync;

    #[doc(hidden)]
    fn refuse(value: &Self::Value, mistake: Diagnostic) -> Var<Self>;

    #[doc(hidden)]
    fn settings(value: &Self::Value) -> Settings;

    #[doc(hidden)]
    fn apply(op: Op, operands: &[Operand<Self>], attrs: Attrs, location: SourceLocation) -> Var<Self>;

    #[doc(hidden)]
    fn view(value: &Self::Value, view: View, location: SourceLocation) -> Var<Self>;

    #[doc(hidden)]
    fn blocks(scale: &Self::Value, like: &Self::Value, size: BlockSize, location: SourceLocation) -> Var<Self>;

    #[doc(hidden)]
    fn composite(
        beside: &Self::Value,
        composite: &Composite,
        operands: &[Operand<Self>],
        location: SourceLocation,
    ) -> Var<Self>;

    #[doc(hidden)]
    fn generate(like: &Self::Value, generator: Generator, location: SourceLocation) -> Var<Self>;

    /// A scalar in a dtype, in the program or eager mode that a value belongs to.
    #[doc(hidden)]
    fn scalar(beside: &Self::Value, scalar: Scalar, dtype: DType, location: SourceLocation) -> Var<Self>;
}

/// The mode of a program's handles: an application appends a node.
#[derive(Clone, Copy, Debug)]
pub struct Graph;

/// A value of a program (by default) or of eager mode. Cloning is cheap; operators take `Var`, `&Var` and Rust scalars
/// on either side; named methods exist for every row of the op table, and are [below](#methods-of-var-by-what-they-do) by what they do.
///
/// One function serves both modes:
///
/// ```
/// use castwise::prelude::*;
///
/// fn gelu<M: Mode>(x: &Var<M>) -> Var<M> {
///     x * 0.5 * (((x + x.pow(3.0) * 0.044715) * 0.7978845608).tanh() + 1.0)
/// }
///
/// let t = Tensor::from_slice(&[-1.0f32, 0.0, 2.0], [3])?;
/// let eager = gelu(&Eager::new(Rules::Torch).tensor(&t)).result()?;
///
/// let p = Program::new(Rules::Torch);
/// let y = gelu(&p.data("x", DType::F32, [None]));
/// let fused = Executor::new().run(&p, feeds! { "x" => t }, [&y])?;
/// assert_eq!(eager.to_vec::<f32>()?, fused[0].to_vec::<f32>()?);
/// # Ok::<(), castwise::Error>(())
/// ```
#[cfg_attr(not(doctest), doc = include_str!("../../docs/methods.md"))]
pub struct Var<M: Mode = Graph>(pub(crate) M::Value);

impl<M: Mode> Clone for Var<M> {
    fn clone(&self) -> Self {
        Var(self.0.clone())
    }
}

/// An operand of an op: a handle, or a scalar the user wrote.
pub enum Operand<M: Mode = Graph> {
    /// A handle.
    Var(Var<M>),
    /// A scalar: it stays without dtype until inference.
    Scalar(Scalar),
}

impl<M: Mode> Clone for Operand<M> {
    fn clone(&self) -> Self {
        match self {
            Operand::Var(v) => Operand::Var(v.clone()),
            Operand::Scalar(s) => Operand::Scalar(*s),
        }
    }
}

impl<M: Mode> From<Var<M>> for Operand<M> {
    fn from(v: Var<M>) -> Self {
        Operand::Var(v)
    }
}

impl<M: Mode> From<&Var<M>> for Operand<M> {
    fn from(v: &Var<M>) -> Self {
        Operand::Var(v.clone())
    }
}

macro_rules! operand_from_scalar {
    ($($t:ty),*) => {$(
        impl<M: Mode> From<$t> for Operand<M> {
            fn from(v: $t) -> Self { Operand::Scalar(v.into()) }
        }
    )*};
}
operand_from_scalar!(bool, u8, i8, i16, i32, i64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>, Scalar);

macro_rules! define_methods {
    ($(
        #[doc = $doc:literal]
        $variant:ident { method: $method:ident, operands: ($first:ident $(, $rest:ident)*), output: $output:ident $($column:tt)* }
        { $($math:tt)* }
    )*) => {
        /// One method a row of the op table, named as the op; the first operand is `self`.
        impl<M: Mode> Var<M> {
            $(
                #[doc = $doc]
                #[track_caller]
                pub fn $method(&self $(, $rest: impl Into<Operand<M>>)*) -> Var<M> {
                    M::apply(Op::$variant, &[self.into() $(, $rest.into())*], Attrs::default(), here())
                }
            )*
        }
    };
}
for_each_op!(define_methods);

/// A handle whose reductions combine some of its dims, and whose ops on lines work along one: see [`Var::over`].
pub struct Over<M: Mode = Graph> {
    var: Var<M>,
    attrs: Attrs,
}

impl<M: Mode> Var<M> {
    /// The dims that the next reduction combines; negative ones count from the last. Without `over`, all are. The one dim along
    /// which `cumsum` and others work, which need it unless there is only one.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Torch);
    /// let x = cx.tensor(&Tensor::from_slice(&[1u8, 2, 3, 4, 5, 6], [2, 3])?);
    /// assert_eq!(x.sum().result()?.item::<i64>()?, 21);                    // integers are summed in i64
    /// assert_eq!(x.over([-1]).amax().result()?.to_vec::<u8>()?, [3, 6]);
    /// assert_eq!(x.over([0]).cumsum().result()?.to_vec::<i64>()?, [1, 2, 3, 5, 7, 9]);
    /// assert_eq!(x.over([0]).keepdim().dtype(DType::F32).mean().result()?.shape(), [1, 3]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn over(&self, dims: impl AsRef<[i64]>) -> Over<M> {
        let attrs = Attrs { dims: Some(dims.as_ref().into()), ..Attrs::default() };
        Over { var: self.clone(), attrs }
    }
}

impl<M: Mode> Over<M> {
    /// The reduced dims stay, with extent 1.
    pub fn keepdim(mut self) -> Over<M> {
        self.attrs.keepdim = true;
        self
    }

    /// What `var` and `std` subtract from the number of elements that they divide by: 1 by default under the rules of PyTorch and
    /// Paddle, 0 under those of NumPy and JAX.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([1.0f32, 2.0, 6.0]));
    /// assert_eq!(x.var().result()?.item::<f32>()?, 7.0);
    /// assert_eq!(x.over([0]).correction(0.0).var().result()?.item::<f32>()?, 14.0 / 3.0);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn correction(mut self, correction: f64) -> Over<M> {
        self.attrs.number = Some(correction.into());
        self
    }

    /// The order of `norm`: 2 by default.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([3.0f32, -4.0]));
    /// assert_eq!(x.norm().result()?.item::<f32>()?, 5.0);
    /// assert_eq!(x.over([0]).p(f64::INFINITY).norm().result()?.item::<f32>()?, 4.0);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn p(mut self, p: f64) -> Over<M> {
        self.attrs.number = Some(p.into());
        self
    }

    /// The rank of `kthvalue`, counted from 1: that of the smallest element. The number of elements of `topk`.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([5i32, 1, 4]));
    /// assert_eq!(x.over([0]).k(2).kthvalue().result()?.item::<i32>()?, 4);
    /// assert_eq!(x.over([0]).k(2).kthvalue_indices().result()?.item::<i64>()?, 2);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn k(mut self, k: usize) -> Over<M> {
        self.attrs.number = Some((k as f64).into());
        self
    }

    /// The part of the elements that `quantile` and `nanquantile` are above, from 0 to 1. PyTorch's rules round it to the elements'
    /// dtype.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([3.0f64, 1.0, 2.0, 5.0]));
    /// assert_eq!(x.over([0]).q(0.5).quantile().result()?.item::<f64>()?, 2.5);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn q(mut self, q: f64) -> Over<M> {
        self.attrs.number = Some(q.into());
        self
    }

    /// What `median`, `quantile` and their siblings give between two elements. Of quantiles it is linear by default; of medians the
    /// lower element under PyTorch's rules, and the mean of both under those of NumPy, Paddle and JAX.
    ///
    /// ```
    /// use castwise::{ops::Choice, prelude::*};
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([3i64, 1, 2, 5]));
    /// assert_eq!(x.median().result()?.item::<i64>()?, 2);
    /// assert_eq!(x.over([0]).interpolation(Choice::Midpoint).median().result()?.item::<f32>()?, 2.5);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn interpolation(mut self, choice: Choice) -> Over<M> {
        self.attrs.choice = Some(choice);
        self
    }

    /// Whether `sort` and `argsort` begin with the largest element. Equal elements keep their order all the same.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([2i32, 7, 2]));
    /// assert_eq!(x.over([0]).descending(true).argsort().result()?.to_vec::<i64>()?, [1, 0, 2]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn descending(self, descending: bool) -> Over<M> {
        self.yes(descending)
    }

    /// Whether `topk` takes the largest elements, as it does by default, or the smallest.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([5i32, 1, 4]));
    /// assert_eq!(x.over([0]).k(2).topk().result()?.to_vec::<i32>()?, [5, 4]);
    /// assert_eq!(x.over([0]).k(2).largest(false).topk().result()?.to_vec::<i32>()?, [1, 4]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn largest(self, largest: bool) -> Over<M> {
        self.yes(largest)
    }

    fn yes(mut self, yes: bool) -> Over<M> {
        self.attrs.choice = Some(if yes { Choice::True } else { Choice::False });
        self
    }

    /// The operand is converted to this dtype before it is reduced.
    pub fn dtype(mut self, dtype: DType) -> Over<M> {
        self.attrs.dtype = Some(dtype);
        self
    }
}

impl<M: Mode> Var<M> {
    /// The smallest and the largest element: [`amin`](Var::amin) and [`amax`](Var::amax), which a program computes in one pass.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let (least, most) = Eager::new(Rules::Torch).tensor(&Tensor::from([2.0f32, -1.0, 5.0])).aminmax();
    /// assert_eq!((least.result()?.item::<f32>()?, most.result()?.item::<f32>()?), (-1.0, 5.0));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn aminmax(&self) -> (Var<M>, Var<M>) {
        (self.amin(), self.amax())
    }
}

impl<M: Mode> Over<M> {
    /// The smallest and the largest element: see [`Var::aminmax`].
    #[track_caller]
    pub fn aminmax(&self) -> (Var<M>, Var<M>) {
        (self.amin(), self.amax())
    }
}

macro_rules! define_reductions {
    (@ $(#[$doc:meta])* $variant:ident $method:ident Fold) => {
        $(#[$doc])*
        #[track_caller]
        pub fn $method(&self) -> Var<M> {
            M::apply(Op::$variant, &[Operand::Var(self.var.clone())], self.attrs.clone(), here())
        }
    };
    (@ $(#[$doc:meta])* $variant:ident $method:ident FoldLong) => {
        define_reductions!(@ $(#[$doc])* $variant $method Fold);
    };
    (@ $(#[$doc:meta])* $variant:ident $method:ident FoldReal) => {
        define_reductions!(@ $(#[$doc])* $variant $method Fold);
    };
    (@ $(#[$doc:meta])* $variant:ident $method:ident Line) => {
        define_reductions!(@ $(#[$doc])* $variant $method Fold);
    };
    (@ $(#[$doc:meta])* $variant:ident $method:ident LineLong) => {
        define_reductions!(@ $(#[$doc])* $variant $method Fold);
    };
    (@ $(#[$doc:meta])* $variant:ident $method:ident $other:ident) => {};
    ($(
        #[doc = $doc:literal]
        $variant:ident { method: $method:ident, operands: $operands:tt, output: $output:ident $($column:tt)* }
        { $($math:tt)* }
    )*) => {
        /// Every reduction of the op table over the chosen dims, and every op on lines along the chosen dim.
        impl<M: Mode> Over<M> {
            $(define_reductions!(@ #[doc = $doc] $variant $method $output);)*
        }
    };
}
for_each_op!(define_reductions);

/// A handle whose binary ops place the operand of lower rank at an axis of the other one: see [`Var::at_axis`].
pub struct AtAxis<M: Mode = Graph> {
    var: Var<M>,
    axis: i64,
}

impl<M: Mode> Var<M> {
    /// Paddle's `axis` for the next binary op: the dims of the operand of lower rank (either one) are placed along
    /// the other one's from `axis` on, and padded with ones behind; -1 aligns the last dims, as without. Nothing is
    /// copied. Source: Paddle's guide "Broadcasting".
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Paddle);
    /// let x = cx.tensor(&Tensor::zeros(DType::F32, [2, 3, 4, 5])?);
    /// let y = cx.tensor(&Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3])?);
    /// assert_eq!(x.at_axis(1).add(&y).result()?.shape(), [2, 3, 4, 5]);
    /// assert!(x.add(&y).result().is_err());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn at_axis(&self, axis: i64) -> AtAxis<M> {
        AtAxis { var: self.clone(), axis }
    }
}

macro_rules! define_axis_methods {
    (@ $(#[$doc:meta])* $variant:ident $method:ident ($first:ident, $second:ident)) => {
        $(#[$doc])*
        #[track_caller]
        pub fn $method(&self, $second: impl Into<Operand<M>>) -> Var<M> {
            M::apply(Op::$variant, &[Operand::Var(self.var.clone()), $second.into()], Attrs::axis(self.axis), here())
        }
    };
    (@ $(#[$doc:meta])* $variant:ident $method:ident ($($other:ident),+)) => {};
    ($(
        #[doc = $doc:literal]
        $variant:ident { method: $method:ident, operands: $operands:tt, output: $output:ident $($column:tt)* }
        { $($math:tt)* }
    )*) => {
        /// Every binary row of the op table, with `axis`.
        impl<M: Mode> AtAxis<M> {
            $(define_axis_methods!(@ #[doc = $doc] $variant $method $operands);)*
        }
    };
}
for_each_op!(define_axis_methods);

impl<M: Mode> Var<M> {
    /// Conversion to a dtype: rounds to nearest even, once; float to integer truncates and saturates, NaN gives 0.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Var<M> {
        M::apply(Op::Cast, &[self.into()], Attrs::cast(dtype), here())
    }

    /// Conversion to the dtype of an output, as PyTorch's `out=` does it: to the same or a higher category only, so that
    /// no complex number becomes real, no float an integer, and nothing but bool becomes bool.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [4]) + p.data("y", DType::F64, [4]);
    /// y.cast_output(DType::BF16);
    /// p.check()?;
    /// y.cast_output(DType::I32);
    /// assert!(p.check().unwrap_err().to_string().contains("f64 can't be cast to the desired output type i32"));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn cast_output(&self, dtype: DType) -> Var<M> {
        M::apply(Op::Cast, &[self.into()], Attrs::output(dtype), here())
    }

    /// The same bits under another dtype of the same size: `f32` as `i32`, `f16` as `bf16`. NaNs keep their payload.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let one = Eager::new(Rules::Torch).tensor(&Tensor::scalar(1.0f32));
    /// assert_eq!(one.view_as(DType::I32).result()?.item::<i32>()?, 0x3f80_0000);
    /// assert!(one.view_as(DType::F64).result().is_err());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn view_as(&self, dtype: DType) -> Var<M> {
        M::apply(Op::ViewAs, &[self.into()], Attrs::cast(dtype), here())
    }

    /// [`cast`](Var::cast), by PyTorch's, Paddle's and NumPy's name.
    #[track_caller]
    pub fn astype(&self, dtype: DType) -> Var<M> {
        self.cast(dtype)
    }
}

impl<M: Mode> Var<M> {
    /// Applies an op that is a value, a [custom](crate::CustomOp) one for example, to this operand and those behind it.
    /// Another number of operands than the op takes is a mistake like others.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Torch);
    /// let x = cx.tensor(&Tensor::from([1.0f32, 3.0]));
    /// assert_eq!(x.apply(Op::Hypot, &[4.0.into()]).result()?.to_vec::<f32>()?, [17f32.sqrt(), 5.0]);
    /// assert!(x.apply(Op::Hypot, &[]).result().is_err());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn apply(&self, op: Op, rest: &[Operand<M>]) -> Var<M> {
        let all: Vec<Operand<M>> = std::iter::once(self.into()).chain(rest.iter().cloned()).collect();
        M::apply(op, &all, Attrs::default(), here())
    }
}

/// Applies an op to operands; for code that has the op as a value. Another number of operands than the op takes is a
/// mistake like others.
#[track_caller]
pub fn apply<M: Mode>(op: Op, operands: &[Operand<M>], attrs: Attrs) -> Var<M> {
    M::apply(op, operands, attrs, here())
}

macro_rules! operators {
    ($($trait:ident $fn:ident $op:ident),*) => {$(
        impl<M: Mode, T: Into<Operand<M>>> ops::$trait<T> for Var<M> {
            type Output = Var<M>;
            #[track_caller]
            fn $fn(self, other: T) -> Var<M> {
                M::apply(Op::$op, &[Operand::Var(self), other.into()], Attrs::default(), here())
            }
        }
        impl<M: Mode, T: Into<Operand<M>>> ops::$trait<T> for &Var<M> {
            type Output = Var<M>;
            #[track_caller]
            fn $fn(self, other: T) -> Var<M> {
                M::apply(Op::$op, &[self.into(), other.into()], Attrs::default(), here())
            }
        }
        scalar_on_the_left!($trait $fn $op: bool, u8, i8, i16, i32, i64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>, Scalar);
    )*};
}

macro_rules! scalar_on_the_left {
    ($trait:ident $fn:ident $op:ident: $($t:ty),*) => {$(
        impl<M: Mode> ops::$trait<Var<M>> for $t {
            type Output = Var<M>;
            #[track_caller]
            fn $fn(self, other: Var<M>) -> Var<M> {
                M::apply(Op::$op, &[self.into(), Operand::Var(other)], Attrs::default(), here())
            }
        }
        impl<M: Mode> ops::$trait<&Var<M>> for $t {
            type Output = Var<M>;
            #[track_caller]
            fn $fn(self, other: &Var<M>) -> Var<M> {
                M::apply(Op::$op, &[self.into(), other.into()], Attrs::default(), here())
            }
        }
    )*};
}

operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, Rem rem Remainder, BitAnd bitand BitwiseAnd,
    BitOr bitor BitwiseOr, BitXor bitxor BitwiseXor);

macro_rules! unary_operators {
    ($($trait:ident $fn:ident $op:ident),*) => {$(
        impl<M: Mode> ops::$trait for Var<M> {
            type Output = Var<M>;
            #[track_caller]
            fn $fn(self) -> Var<M> {
                M::apply(Op::$op, &[Operand::Var(self)], Attrs::default(), here())
            }
        }
        impl<M: Mode> ops::$trait for &Var<M> {
            type Output = Var<M>;
            #[track_caller]
            fn $fn(self) -> Var<M> {
                M::apply(Op::$op, &[self.into()], Attrs::default(), here())
            }
        }
    )*};
}

unary_operators!(Neg neg Neg, Not not BitwiseNot);

#[cfg(test)]
mod tests;
