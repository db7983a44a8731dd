//! What a run holds, when it asks for help, and what it refuses.

use std::borrow::Cow;
use std::sync::Arc;

use super::kernel::is_parallel;
use super::prepared::aligned_strides;
use super::run::{MemoryBudget, Run};
use super::{BlockEngine, constants, run_plan};
use crate::base::dtype::DType;
use crate::base::error::Error;
use crate::graph::program::Program;
use crate::graph::typed::NodeId;
use crate::graph::var::Var;
use crate::ops::Op;
use crate::plan::domain::pattern;
use crate::plan::fuse::plan;
use crate::plan::kernel::{Kernel, KernelBuilder, Operand};
use crate::plan::options::Passes;
use crate::promotion::Rules;
use crate::tensor::{Tensor, TensorRef};

#[test]
fn memory_is_taken_up_to_its_limit_and_given_back() {
    let memory = MemoryBudget::limited(10);
    memory.take(10).unwrap();
    assert!(matches!(memory.take(1), Err(Error::Limit { max: 10, got: 11, .. })));
    memory.take(0).unwrap();
    memory.give(4);
    assert!(matches!(memory.take(5), Err(Error::Limit { max: 10, got: 11, .. })));
    memory.take(4).unwrap();
    assert_eq!(memory.now.get(), 10);
}

/// The bytes that a run holds at its end, and those of its results.
fn held(p: &Program, fetches: &[&Var], x: &Tensor) -> (usize, usize) {
    let typed = Arc::new(p.infer().unwrap());
    let nodes: Vec<NodeId> = fetches.iter().map(|v| typed.node(v).unwrap()).collect();
    let plan = plan(&typed, &nodes, &Default::default(), &pattern(&typed, &[]), Passes::default()).unwrap();
    let run = Run { feeds: &[TensorRef::Tensor(x)], ..Run::alone() };
    let made = run_plan(&plan, &run, &BlockEngine, &mut Cow::Owned(Vec::new()), &mut []).unwrap();
    (run.memory.now.get(), made.iter().flatten().map(|t| t.numel() * t.dtype().size()).sum())
}

#[test]
fn a_run_holds_its_results_at_its_end_and_nothing_else() {
    // Sums in several steps, of rows and of columns, joined rows, means; in a dtype that is combined in a wider one.
    for dtype in [DType::F32, DType::F16, DType::F64] {
        for (rows, columns) in [(3, 70_000), (70_000, 20), (500, 3), (1, 1)] {
            let p = Program::new(Rules::Torch);
            let x = p.data("x", dtype, [rows, columns]);
            let (t, y) = (Tensor::zeros(dtype, [rows, columns]).unwrap(), x.exp());
            let centred = (&y - y.over([1]).keepdim().mean()).neg();
            let last = (&centred - y.mean()).over([0]).amax();
            for fetches in
                [&[&y][..], &[&y.sum()], &[&y.over([0]).sum(), &y.over([1]).mean()], &[&centred, &last], &[&last]]
            {
                let (held, results) = held(&p, fetches, &t);
                assert_eq!(held, results, "{dtype} {rows} {columns} {}", fetches.len());
            }
        }
    }
}

#[test]
fn constants_are_computed_unless_one_refuses() {
    let p = Program::new(Rules::Torch);
    let (x, c) = (p.data("x", DType::F32, [4]), p.constant(Tensor::from([1i64, 0, 3])));
    let roots = c.cast(DType::F32).sqrt();
    // Of `x` only the shape is needed.
    let moved = roots.scatter_add(&c, &x, 0);
    let refused = c.floor_divide(&c);
    let typed = Arc::new(p.infer().unwrap());
    let of = |all: &[&Var]| {
        let nodes: Vec<NodeId> = all.iter().map(|v| typed.node(v).unwrap()).collect();
        let known = constants(&typed, &nodes).unwrap();
        nodes.iter().map(|n| known.get(n).map(|t| t.to_vec::<f32>().unwrap())).collect::<Vec<_>>()
    };
    let three = 3f32.sqrt();
    assert_eq!(of(&[&roots, &moved]), [Some(vec![1.0, 0.0, three]), Some(vec![0.0, 1.0, 0.0, three])]);
    assert_eq!(of(&[&roots, &refused]), [None, None]);
}

#[test]
fn only_large_launches_ask_for_help() {
    let mut b = KernelBuilder::default();
    let x = b.input(DType::F32);
    let helped = |kernel: &Kernel| [1, 131_071, 131_072, 262_143, 262_144, usize::MAX].map(|n| is_parallel(kernel, n));
    assert_eq!(helped(&b.kernel), [false, false, false, false, true, true]);
    let args = [Operand::Value(x)];
    let y = b.apply(Op::Neg, DType::F32, &args);
    assert_eq!(helped(&b.kernel), [false, false, false, false, true, true]);
    b.apply(Op::Sqrt, DType::F32, &[Operand::Value(y)]);
    assert_eq!(helped(&b.kernel), [false, false, true, true, true, true]);
}

#[test]
fn strides_are_aligned_only_with_domains_that_a_tensor_broadcasts_to() {
    let t = Tensor::zeros(DType::F32, [1, 3]).unwrap();
    let of = |extents: &[usize]| aligned_strides(t.shape(), t.strides(), extents).ok();
    assert_eq!([of(&[2, 3]), of(&[5, 2, 3]), of(&[1, 3])], [Some(vec![0, 1]), Some(vec![0, 0, 1]), Some(vec![0, 1])]);
    assert_eq!([of(&[2, 4]), of(&[2, 1]), of(&[3])], [None, None, None]);
}
