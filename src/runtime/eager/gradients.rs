//! Gradients in eager mode: of a function of values, which is called once to build the program of that call.
//!
//! Guarantees: the bits of the program's gradients. Does not: record what eager values were made of.

use std::sync::Arc;

use super::value::{Eager, EagerValue};
use super::{check, constant};
use crate::analysis::infer::infer;
use crate::base::error::{Error, Result};
use crate::base::location::here;
use crate::graph::program::Program;
use crate::graph::var::{Operand, Var};
use crate::runtime::launch::run_all;

impl Eager {
    /// The value of a function and its gradients with respect to its operands, at these values. The function is called once, with handles of a
    /// program; its result must be a real 0-d number ([`Program::gradients`] takes others).
    ///
    /// Errors: those of the values, of [`Program::gradients`] and of a run.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Torch);
    /// let (x, w) = (cx.tensor(&Tensor::from([1.0f32, 2.0])), cx.tensor(&Tensor::scalar(3.0f32)));
    /// let (loss, gradients) = cx.value_and_gradients(&[&x, &w], |v| (&v[0] * &v[1]).square().sum())?;
    /// assert_eq!((loss.result()?.item::<f32>()?, gradients[1].result()?.item::<f32>()?), (45.0, 30.0));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn value_and_gradients(
        &self,
        at: &[&Var<Eager>],
        function: impl FnOnce(&[Var]) -> Var,
    ) -> Result<(Var<Eager>, Vec<Var<Eager>>)> {
        let program = Program::with_limits(self.settings, self.limits);
        check(*self, "gradients", &at.iter().map(|v| Operand::from(*v)).collect::<Vec<_>>(), &here())
            .map_err(|f| Error::Earlier(f.error))?;
        let operands = at.iter().map(|v| constant(&program, &v.0)).collect::<Result<Vec<Var>, _>>();
        let operands = operands.map_err(|f| Error::Earlier(f.error))?;
        let loss = function(&operands);
        let all = program.value_and_gradients(&loss, &operands.iter().collect::<Vec<_>>())?;
        let typed = Arc::new(infer(&program)?);
        let nodes = all.iter().map(|v| typed.node(v)).collect::<Result<Vec<_>>>()?;
        let weak = |at: usize| typed.nodes[nodes[at] as usize].weak;
        let made = run_all(&typed, &nodes)?.into_iter().enumerate();
        let mut made = made.map(|(at, t)| Var(EagerValue { cx: *self, value: Ok(t), weak: weak(at) }));
        let value = made.next().ok_or_else(|| Error::Internal("a function without a value".into()))?;
        Ok((value, made.collect()))
    }
}
