//! Gradients: a pass that appends to a program what computes the gradients of its values.
//!
//! Guarantees: what is appended are ordinary nodes with the locations of the nodes that they are gradients of; the casts of a typed
//! program are walked as its other nodes are, so that a gradient is summed before it is rounded to its operand's dtype; contributions to a
//! value's gradient are added (or subtracted, if their rule negates them last) from its last use to the first, and of one use from the first
//! operand to the last; no recursion. Does not: say what an op's gradient is (its row does), compute, or decide what is stored.

mod local;
mod pass;
mod term;
mod values;

use crate::base::error::Result;
use crate::graph::program::Program;
use crate::graph::var::Var;
use pass::Walk;

impl Program {
    /// Appends the gradients of losses with respect to values of the program, in the order of `wrt`: each has its value's dtype and shape. Several losses
    /// count as their sum.
    ///
    /// The gradient starts from a cotangent for each loss, of its shape, which is converted to its dtype; without (no `cotangents`, or `None`)
    /// from 1, if the loss is 0-d and real. Gradients of complex values are PyTorch's: dL/dx + i dL/dy. A value that no loss depends on has a
    /// gradient of zeros. Where an op rounds more than once, half dtypes compute in f32 and round once.
    ///
    /// A program without [declared results](Program::set_fetches) has others afterwards, since what nothing used is used now.
    ///
    /// Errors: a program with mistakes; a handle of another program; a loss or a value that is no float or complex number; a loss that needs
    /// a cotangent, or whose cotangent has another shape; an op between a value and a loss that has no gradient
    /// ([`NotDifferentiable`](crate::DiagnosticKind::NotDifferentiable), with the line where it was written).
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let (x, w) = (p.data("x", DType::F32, [None]), p.data("w", DType::BF16, ()));
    /// let loss = (&x * &w).sin().sum();
    /// let gradients = p.gradients(&[&loss], &[&w], &[])?;
    /// assert_eq!(p.infer()?.dtype(&gradients[0]), Some(DType::BF16));
    ///
    /// let feeds = feeds! { "x" => Tensor::from([1.0f32, 2.0]), "w" => Tensor::scalar(bf16::ZERO) };
    /// assert_eq!(Executor::new().run(&p, feeds, &gradients)?[0].item::<bf16>()?, bf16::from_f32(3.0));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn gradients(&self, losses: &[&Var], wrt: &[&Var], cotangents: &[Option<&Var>]) -> Result<Vec<Var>> {
        let (typed, start) = (self.infer()?, self.len());
        let made = Walk::new(self, &typed, wrt)?.run(losses, cotangents)?;
        self.appended(start);
        Ok(made)
    }

    /// A loss and its [gradients](Program::gradients), to be computed in one run.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F64, [2]);
    /// let all = p.value_and_gradients(&x.square().sum(), &[&x])?;
    /// let out = Executor::new().run(&p, feeds! { "x" => Tensor::from([3.0f64, 4.0]) }, &all)?;
    /// assert_eq!((out[0].item::<f64>()?, out[1].to_vec::<f64>()?), (25.0, vec![6.0, 8.0]));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn value_and_gradients(&self, loss: &Var, wrt: &[&Var]) -> Result<Vec<Var>> {
        let gradients = self.gradients(&[loss], wrt, &[])?;
        Ok(std::iter::once(loss.clone()).chain(gradients).collect())
    }
}
