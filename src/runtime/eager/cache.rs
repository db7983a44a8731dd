//! What eager mode keeps of the ops it has applied: the plan of each, for operands of the same dtypes and layouts.
//!
//! To type and plan an op takes many times as long as to compute it on a small tensor. Guarantees: what is kept holds no
//! tensor, at most [`MOST`] plans a thread, and nothing of an op that was refused; a plan is used only for the same rules,
//! limits, op, attributes and scalars, bit by bit. Does not: word errors. What fails is done once more without it, so that
//! the error is that of this application and names its line.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::value::{Arg, Eager, one_op};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result, SourceLocation};
use crate::base::scalar::Scalar;
use crate::graph::program::Program;
use crate::ops::{Attrs, Op};
use crate::plan::fuse::{Plan, plan};
use crate::plan::options::Passes;
use crate::runtime::launch::run::Run;
use crate::runtime::launch::{BlockEngine, Blocks, PreparedLaunch, run_plan};
use crate::tensor::layout::Layout;
use crate::tensor::{Tensor, TensorRef};

/// Plans that a thread keeps, some KiB each; then it forgets them all.
const MOST: usize = 256;

/// An operand, as far as a plan depends on it.
#[derive(PartialEq, Eq, Hash)]
enum Given {
    /// The kind of scalar, and its bits.
    Scalar(u8, [u64; 2]),
    /// Of a tensor also whether it is weak.
    Tensor(DType, Arc<Layout>, bool),
}

/// What a plan is for.
#[derive(PartialEq, Eq)]
struct Key {
    cx: Eager,
    op: Op,
    attrs: Attrs,
    given: SmallVec<[Given; 4]>,
}

/// A plan over tensors of known layouts, its kernels aimed at these.
struct Step {
    plan: Plan,
    launches: PreparedLaunches,
    /// Whether the result is weak.
    weak: bool,
}

type PreparedLaunches = Vec<Arc<PreparedLaunch<Blocks>>>;

// Most keys differ in these.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.op, &self.given).hash(state);
    }
}

thread_local! {
    static STEPS: RefCell<HashMap<Key, Rc<Step>>> = RefCell::default();
}

impl Given {
    fn scalar(s: Scalar) -> Given {
        match s {
            Scalar::Bool(b) => Given::Scalar(0, [b.into(), 0]),
            Scalar::Int(i) => Given::Scalar(1, [i as u64, (i >> 64) as u64]),
            Scalar::Float(x) => Given::Scalar(2, [x.to_bits(), 0]),
            Scalar::Complex(z) => Given::Scalar(3, [z.re.to_bits(), z.im.to_bits()]),
        }
    }
}

/// Applies an op by the plan that is kept of it, or one that is kept from now on. `None`: it is to be applied without.
/// The only error is that there is no memory.
pub(super) fn apply(
    cx: Eager,
    op: Op,
    args: &[Arg<'_>],
    attrs: &Attrs,
    location: &SourceLocation,
) -> Result<Option<(Tensor, bool)>> {
    // A function of the user's must not be called twice where it fails.
    if matches!(op, Op::Custom(_)) {
        return Ok(None);
    }
    let mut tensors: SmallVec<[TensorRef<'_>; 4]> = SmallVec::new();
    let mut given = SmallVec::new();
    for a in args {
        given.push(match a {
            Arg::Scalar(s) => Given::scalar(*s),
            Arg::Tensor(t, weak) => {
                let t = TensorRef::Tensor(t);
                tensors.push(t);
                Given::Tensor(t.dtype(), t.layout().clone(), *weak)
            }
        });
    }
    let key = Key { cx, op, attrs: attrs.clone(), given };
    // A thread that ends may have forgotten its plans already.
    let known = STEPS.try_with(|steps| steps.borrow().get(&key).cloned()).ok().flatten();
    let run = Run { feeds: &tensors, ..Run::alone() };
    if let Some(step) = known {
        return Ok(step.run(&run)?.map(|(t, _)| (t, step.weak)));
    }
    let Ok(mut step) = Step::new(&key, args, location) else { return Ok(None) };
    let Some((made, launches)) = step.run(&run)? else { return Ok(None) };
    step.launches = launches;
    let weak = step.weak;
    let keep = |steps: &RefCell<HashMap<Key, Rc<Step>>>| {
        let mut steps = steps.borrow_mut();
        if steps.len() >= MOST {
            steps.clear();
        }
        steps.insert(key, Rc::new(step));
    };
    let _ = STEPS.try_with(keep);
    Ok(Some((made, weak)))
}

impl Step {
    /// Plans the op as a program that is fed the tensors.
    fn new(key: &Key, args: &[Arg<'_>], location: &SourceLocation) -> Result<Step> {
        let fed = |program: &Program, i: usize, t: &Tensor, weak: bool| {
            program.data_at(&format!("operand {i}"), t.dtype(), t.shape().into(), location.clone(), weak)
        };
        let (typed, node) = one_op(key.cx, key.op, args, key.attrs.clone(), location.clone(), fed)?;
        let pattern = vec![false; typed.dyn_dims.len()];
        let plan = plan(&typed, &[node], &Default::default(), &pattern, Passes::default())?;
        Ok(Step { plan, launches: Vec::new(), weak: typed.nodes[node as usize].weak })
    }

    /// The result, and what was made for these layouts. `None`: refused, which is for others to word.
    fn run(&self, run: &Run<'_>) -> Result<Option<(Tensor, PreparedLaunches)>> {
        let mut launches = Cow::Borrowed(&self.launches[..]);
        let made = match run_plan(&self.plan, run, &BlockEngine, &mut launches, &mut []) {
            Ok(mut made) => made.pop().flatten(),
            Err(e @ Error::OutOfMemory { .. }) => return Err(e),
            Err(_) => None,
        };
        let new = if let Cow::Owned(new) = launches { new } else { Vec::new() };
        Ok(made.map(|made| (made, new)))
    }
}

#[cfg(test)]
mod tests;
