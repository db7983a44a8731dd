//! Ops that only their rows know of: they have kernels, texts, methods and names, and both modes compute them.

use half::f16;
use num_complex::Complex;

use super::super::text;
use crate::backend::is_lowerable_at;
use crate::base::dtype::DType;
use crate::graph::program::Program;
use crate::kernels::CpuLevel;
use crate::ops::{MAX_OPERANDS, Op};
use crate::plan::kernel::{Step, StepOp};
use crate::promotion::Rules;
use crate::runtime::eager::value::Eager;
use crate::runtime::executor::{Executor, Feeds};
use crate::tensor::Tensor;

/// What an op gives of these operands, which must be the same in both modes.
fn computed(op: Op, operands: &[Tensor]) -> Tensor {
    let name = |i: usize| ["x", "y", "z"][i].to_string();
    let cx = Eager::new(Rules::Torch);
    let eager: Vec<_> = operands.iter().map(|t| cx.tensor(t)).collect();
    let eager =
        crate::apply(op, &eager.iter().map(Into::into).collect::<Vec<_>>(), Default::default()).result().unwrap();
    let p = Program::new(Rules::Torch);
    let vars: Vec<_> = operands.iter().enumerate().map(|(i, t)| p.data(&name(i), t.dtype(), [None])).collect();
    let y = crate::apply(op, &vars.iter().map(Into::into).collect::<Vec<_>>(), Default::default());
    let feeds = Feeds::new(operands.iter().enumerate().map(|(i, t)| (name(i).into(), t.clone())).collect());
    let fused = Executor::new().run(&p, feeds, [&y]).unwrap().remove(0);
    assert_eq!((eager.dtype(), eager.as_bytes()), (fused.dtype(), fused.as_bytes()), "{op}");
    eager
}

#[test]
fn a_row_is_all_that_an_op_needs() {
    let n = 1000i32;
    let ints = |k: i32| -> Vec<i32> { (0..n).map(|i| (i * 7919 + k).wrapping_mul(i << (i % 20)) - k).collect() };
    let (x, y) = (ints(3), ints(-8));
    let want = |(a, b): (&i32, &i32)| {
        if a < b { (a & b).wrapping_mul(*a) } else { (a ^ b).max(b.wrapping_neg()) }
    };
    let got = computed(Op::ToyInt, &[Tensor::from_slice(&x, [1000]).unwrap(), Tensor::from_slice(&y, [1000]).unwrap()]);
    assert_eq!(got.to_vec::<i32>().unwrap(), x.iter().zip(&y).map(want).collect::<Vec<_>>());

    let floats = |k: i32| -> Vec<f32> { (0..n).map(|i| (i * 37 % 101 - k) as f32 / 7.0).collect() };
    let (a, b, c) = (floats(50), floats(20), floats(11));
    let want = |a: f32, b: f32, c: f32| {
        let half = 0.5 * (a * b);
        if half < c { half } else { (1.0 / (a - b).abs()).sqrt() }
    };
    let all: Vec<f32> = (0..1000).map(|i| want(a[i], b[i], c[i])).collect();
    let tensors = [&a, &b, &c].map(|v| Tensor::from_slice(v, [1000]).unwrap());
    assert_eq!(computed(Op::ToySelect, &tensors).to_vec::<f32>().unwrap(), all);
    // In f32, and rounded once.
    let halves = [&a, &b, &c].map(|v| v.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>());
    let at = |k: usize, i: usize| halves[k][i].to_f32();
    let all: Vec<f16> = (0..1000).map(|i| f16::from_f32(want(at(0, i), at(1, i), at(2, i)))).collect();
    let tensors = halves.each_ref().map(|v| Tensor::from_slice(v, [1000]).unwrap());
    assert_eq!(computed(Op::ToySelect, &tensors).to_vec::<f16>().unwrap(), all);

    let pairs = |k: i32| -> Vec<Complex<f32>> {
        floats(k).into_iter().zip(floats(k + 9)).map(|(re, im)| Complex { re, im }).collect()
    };
    let (x, y) = (pairs(1), pairs(70));
    let all: Vec<Complex<f32>> = x.iter().zip(&y).map(|(x, y)| x * y.conj() + x).collect();
    let tensors = [&x, &y].map(|v| Tensor::from_slice(v, [1000]).unwrap());
    assert_eq!(computed(Op::ToyComplex, &tensors).to_vec::<Complex<f32>>().unwrap(), all);

    for (op, d) in [(Op::ToyInt, DType::U8), (Op::ToySelect, DType::F64), (Op::ToyComplex, DType::C128)] {
        assert!(text(op, d).is_some() && Op::from_name(op.name()) == Some(op), "{op} of {d}");
        let step = Step { op: StepOp::Apply(op), dtype: d, args: [None; MAX_OPERANDS], out: 0 };
        let x64 = cfg!(all(target_arch = "x86_64", unix));
        assert!(
            !x64 || [CpuLevel::Avx2, CpuLevel::Avx512].iter().all(|level| is_lowerable_at(*level, &step)),
            "{op} of {d}"
        );
    }
    let p = Program::new(Rules::Paddle);
    let _ = p.data("x", DType::I16, [2]).toy_int(3);
    assert_eq!(p.infer().unwrap().to_string().matches("toy_int").count(), 1);
}
