//! The views of values: methods of [`Var`], in both modes.
//!
//! Guarantees: names, negative dims and bounds are PyTorch's; a mistake is remembered as that of an op is. Does not:
//! decide shapes or layouts; [`View`] and `tensor` do.

use crate::base::location::here;
use crate::base::view::{Slice, View};
use crate::graph::var::{Mode, Var};

/// Views: the same elements under other dims. They take every dtype and keep it. A view of a placeholder or constant
/// is read where its elements are, by the loop that uses it, and so is one of a value that was computed before.
impl<M: Mode> Var<M> {
    /// This view.
    ///
    /// ```
    /// use castwise::{View, prelude::*};
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, [2, 3])?);
    /// assert_eq!(x.view(View::Unsqueeze(-1)).result()?.shape(), [2, 3, 1]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn view(&self, view: View) -> Var<M> {
        M::view(&self.0, view, here())
    }

    /// Swaps two dims.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F32, [None, Some(2)]);
    /// let y = x.transpose(0, 1) * 2.0;
    /// let t = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2])?;
    /// let out = Executor::new().run(&p, feeds! { "x" => t }, [&y])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [2.0, 6.0, 10.0, 4.0, 8.0, 12.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn transpose(&self, a: i64, b: i64) -> Var<M> {
        M::view(&self.0, View::Transpose(a, b), here())
    }

    /// Reorders the dims: dim `i` of the result is dim `dims[i]` of this value.
    #[track_caller]
    pub fn permute(&self, dims: impl AsRef<[i64]>) -> Var<M> {
        M::view(&self.0, View::Permute(dims.as_ref().into()), here())
    }

    /// A new dim of extent 1 before dim `dim`; -1 is behind the last.
    #[track_caller]
    pub fn unsqueeze(&self, dim: i64) -> Var<M> {
        M::view(&self.0, View::Unsqueeze(dim), here())
    }

    /// Without dim `dim`, if its extent is 1; otherwise the value as it is. A dynamic dim is refused.
    #[track_caller]
    pub fn squeeze(&self, dim: i64) -> Var<M> {
        M::view(&self.0, View::Squeeze(dim), here())
    }

    /// Repeats dims of extent 1 and adds leading dims, to this shape. -1 is a dim that stays.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from_slice(&[1u8, 2], [2, 1])?);
    /// assert_eq!(x.expand([-1, 3]).result()?.to_vec::<u8>()?, [1, 1, 1, 2, 2, 2]);
    /// assert!(x.expand([4, 3]).result().is_err());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn expand(&self, shape: impl AsRef<[i64]>) -> Var<M> {
        M::view(&self.0, View::Expand(shape.as_ref().into()), here())
    }

    /// [`expand`](Var::expand), by NumPy's and Paddle's name.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl AsRef<[i64]>) -> Var<M> {
        self.expand(shape)
    }

    /// Every `step`-th element of dim `dim`, from `start` on and before `end`: Python's `x[start:end:step]`. `None` is
    /// the end of the dim, negative bounds count from it, and bounds beyond it are it. The extent of a slice of a
    /// dynamic dim is dynamic.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F32, [None]);
    /// let step = x.slice(0, 1, None, 1) - x.slice(0, None, -1, 1);
    /// let feeds = feeds! { "x" => Tensor::from([1.0f32, 2.0, 4.0, 7.0]) };
    /// assert_eq!(Executor::new().run(&p, feeds, [&step])?[0].to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn slice(&self, dim: i64, start: impl Into<Option<i64>>, end: impl Into<Option<i64>>, step: i64) -> Var<M> {
        let slice = Slice { start: start.into(), end: end.into(), step };
        M::view(&self.0, View::Slice(dim, slice), here())
    }

    /// Reverses these dims.
    #[track_caller]
    pub fn flip(&self, dims: impl AsRef<[i64]>) -> Var<M> {
        M::view(&self.0, View::Flip(dims.as_ref().into()), here())
    }

    /// The elements in row-major order under another shape, in which one dim may be -1: what remains. Elements whose
    /// strides have no such view are copied. Of dynamic dims one can stay, as the -1; other shapes are refused.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let rows = p.data("x", DType::F32, [None, Some(2), Some(3)]).reshape([-1, 6]).over([1]).sum();
    /// let out = Executor::new().run(&p, feeds! { "x" => Tensor::full([4, 2, 3], 0.5f32)? }, [&rows])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [3.0; 4]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn reshape(&self, shape: impl AsRef<[i64]>) -> Var<M> {
        M::view(&self.0, View::Reshape(shape.as_ref().into()), here())
    }
}
