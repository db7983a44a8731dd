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

use super::Eager;
use crate::dtype::DType;
use crate::error::{Error, Place, Result};
use crate::fuse::{Plan, plan};
use crate::infer::infer;
use crate::launch::{BlockEngine, Blocks, Run, Shot, run_plan};
use crate::ops::{Attrs, Op};
use crate::passes::Passes;
use crate::program::Program;
use crate::scalar::Scalar;
use crate::tensor::{Layout, Tensor, TensorRef};
use crate::var::{Graph, Mode, Operand};

/// Plans that a thread keeps, some KiB each; then it forgets them all.
const MOST: usize = 256;

/// An operand, as far as a plan depends on it.
#[derive(PartialEq, Eq, Hash)]
enum Given {
    /// The kind of scalar, and its bits.
    Scalar(u8, [u64; 2]),
    Tensor(DType, Arc<Layout>),
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
    shots: Shots,
}

type Shots = Vec<Arc<Shot<Blocks>>>;

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
            Scalar::Int(i) => Given::Scalar(1, [i as u64, 0]),
            Scalar::Float(x) => Given::Scalar(2, [x.to_bits(), 0]),
            Scalar::Complex(z) => Given::Scalar(3, [z.re.to_bits(), z.im.to_bits()]),
        }
    }
}

/// Applies an op by the plan that is kept of it, or one that is kept from now on. `None`: it is to be applied without.
/// Errors: an operand's own, and that there is no memory.
pub(super) fn apply(
    cx: Eager,
    op: Op,
    operands: &[Operand<Eager>],
    attrs: &Attrs,
    place: &Place,
) -> Result<Option<Tensor>> {
    // A function of the user's must not be called twice where it fails.
    if matches!(op, Op::Custom(_)) {
        return Ok(None);
    }
    let mut tensors: SmallVec<[TensorRef<'_>; 4]> = SmallVec::new();
    let mut given = SmallVec::new();
    for o in operands {
        given.push(match o {
            Operand::Scalar(s) => Given::scalar(*s),
            Operand::Var(v) => {
                let t = TensorRef::Tensor(v.0.value.as_ref().map_err(|e| Error::Earlier(e.clone()))?);
                tensors.push(t);
                Given::Tensor(t.dtype(), t.layout().clone())
            }
        });
    }
    let key = Key { cx, op, attrs: attrs.clone(), given };
    // A thread that ends may have forgotten its plans already.
    let known = STEPS.try_with(|steps| steps.borrow().get(&key).cloned()).ok().flatten();
    let run = Run { feeds: &tensors, ..Run::alone() };
    if let Some(step) = known {
        return Ok(step.run(&run)?.map(|(t, _)| t));
    }
    let Ok(mut step) = Step::new(&key, operands, place.clone()) else { return Ok(None) };
    let Some((made, shots)) = step.run(&run)? else { return Ok(None) };
    step.shots = shots;
    let keep = |steps: &RefCell<HashMap<Key, Rc<Step>>>| {
        let mut steps = steps.borrow_mut();
        if steps.len() >= MOST {
            steps.clear();
        }
        steps.insert(key, Rc::new(step));
    };
    let _ = STEPS.try_with(keep);
    Ok(Some(made))
}

impl Step {
    /// Plans the op as a program that is fed the tensors.
    fn new(key: &Key, operands: &[Operand<Eager>], place: Place) -> Result<Step> {
        let program = Program::with_limits(key.cx.settings, key.cx.limits);
        let mut inner: SmallVec<[Operand<Graph>; 4]> = SmallVec::new();
        for (i, o) in operands.iter().enumerate() {
            inner.push(match o {
                Operand::Scalar(s) => Operand::Scalar(*s),
                Operand::Var(v) => {
                    let t = v.0.value.as_ref().map_err(|e| Error::Earlier(e.clone()))?;
                    let dims = t.shape().into();
                    Operand::Var(program.data_at(&format!("operand {i}"), t.dtype(), dims, place.clone()))
                }
            });
        }
        let result = Graph::apply(key.op, &inner, key.attrs.clone(), place);
        let typed = Arc::new(infer(&program)?);
        let node = typed.node(&result)?;
        let pattern = vec![false; typed.dyn_dims.len()];
        let plan = plan(&typed, &[node], &HashMap::new(), &pattern, Passes::default())?;
        Ok(Step { plan, shots: Vec::new() })
    }

    /// The result, and what was made for these layouts. `None`: refused, which is for others to word.
    fn run(&self, run: &Run<'_>) -> Result<Option<(Tensor, Shots)>> {
        let mut shots = Cow::Borrowed(&self.shots[..]);
        let made = match run_plan(&self.plan, run, &BlockEngine, &mut shots, &mut []) {
            Ok(mut made) => made.pop().flatten(),
            Err(e @ Error::OutOfMemory { .. }) => return Err(e),
            Err(_) => None,
        };
        let new = if let Cow::Owned(new) = shots { new } else { Vec::new() };
        Ok(made.map(|made| (made, new)))
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, STEPS};
    use crate::{DType, Eager, Error, Rules, Scalar, Tensor, Var};

    fn kept() -> usize {
        STEPS.with(|steps| steps.borrow().len())
    }

    fn bits(v: &Var<Eager>) -> Vec<u32> {
        v.result().unwrap().to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
    }

    #[test]
    fn a_plan_is_for_its_scalars_rules_and_layouts() {
        let x = Tensor::from_slice(&[-0.0f32, 1.5, 2.5, f32::NAN, 4.5, 5.5], [2, 3]).unwrap();
        for _ in 0..2 {
            let cx = Eager::new(Rules::Torch);
            let v = cx.tensor(&x);
            assert_eq!(bits(&(&v + 0.0))[0], 0);
            assert_eq!(bits(&(&v + -0.0))[0], 1 << 31);
            assert_eq!(bits(&(&v * f64::NAN))[1], f32::NAN.to_bits());
            let whole = cx.tensor(&Tensor::full([2], 3i32).unwrap());
            let dtypes = [Scalar::Int(2), Scalar::Float(2.0), Scalar::Bool(true)].map(|s| {
                let sum = &whole + s;
                sum.result().unwrap().dtype()
            });
            assert_eq!(dtypes, [DType::I32, DType::F32, DType::I32]);
            let across = cx.tensor(&x.transpose(0, 1).unwrap());
            assert_eq!(bits(&(&across + 1.0))[..3], [1.0f32, f32::NAN, 2.5].map(f32::to_bits));
            // PyTorch promotes these, Paddle does not.
            let mixed = |rules| {
                let cx = Eager::new(rules);
                (cx.tensor(&Tensor::full([2], 3i32).unwrap()) + cx.tensor(&Tensor::full([2], 0.5f32).unwrap())).result()
            };
            assert!(mixed(Rules::Torch).is_ok() && mixed(Rules::Paddle).is_err());
        }
        // The second round found everything.
        assert_eq!(kept(), 8);
    }

    #[test]
    fn an_error_names_the_line_of_its_own_application() {
        let cx = Eager::new(Rules::Torch);
        let (x, zero) = (cx.tensor(&Tensor::full([2], 7i32).unwrap()), cx.tensor(&Tensor::full([2], 0i32).unwrap()));
        let three = cx.tensor(&Tensor::full([2], 3i32).unwrap());
        assert_eq!(x.floor_divide(&three).result().unwrap().to_vec::<i32>().unwrap(), [2, 2]);
        let (failed, line) = (x.floor_divide(&zero), line!());
        let error: Error = failed.result().unwrap_err();
        assert!(error.to_string().contains(&format!("steps.rs:{line}")), "{error}");
    }

    #[test]
    fn a_thread_keeps_so_many_plans_and_no_more() {
        let cx = Eager::new(Rules::Torch);
        let x = cx.tensor(&Tensor::full([2], 7i32).unwrap());
        for i in 0..3 * MOST as i64 {
            assert_eq!((&x + i).result().unwrap().to_vec::<i32>().unwrap()[0], 7 + i as i32);
            assert!(kept() <= MOST);
        }
    }
}
