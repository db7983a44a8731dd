//! Rounding of f16 and bf16 chains: after every op, or only when a value is stored.

use castwise::prelude::*;
use castwise::{Attrs, Op, Operand, Rounding, bf16, f16};

use crate::common::{Random, random_tensor};
use crate::reference::format::Beyond;
use crate::reference::program::Array;
use crate::reference::{Expected, Value, element, format, in_math};

fn settings(rounding: Rounding) -> Settings {
    Settings::new(Rules::Torch).with_rounding(rounding)
}

/// `(a*b + c)*a - b`, which several programs use.
fn chain(p: &Program, dtype: DType) -> Var {
    let [a, b, c] = ["a", "b", "c"].map(|n| p.data(n, dtype, [None]));
    (&a * &b + c) * &a - b
}

#[test]
fn relaxed_chains_are_rounded_once_where_they_are_stored() {
    let n = 2000;
    let value = |k: usize, i: usize| ((i * 7919 + k * 104_729) % 4001) as f32 / 1000.0 - 2.0;
    macro_rules! check {
        ($t:ty, $dtype:expr) => {{
            let inputs: Vec<Vec<$t>> = (0..3).map(|k| (0..n).map(|i| <$t>::from_f32(value(k, i))).collect()).collect();
            let feeds: Vec<Tensor> = inputs.iter().map(|v| Tensor::from_slice(v, [n]).unwrap()).collect();
            let run = |rounding| {
                let p = Program::with_settings(settings(rounding));
                let y = chain(&p, $dtype);
                let feeds = feeds! { "a" => feeds[0], "b" => feeds[1], "c" => feeds[2] };
                Executor::new().run(&p, feeds, [&y]).unwrap()[0].to_vec::<$t>().unwrap()
            };
            let (exact, relaxed) = (run(Rounding::Exact), run(Rounding::Relaxed));
            for i in 0..n {
                let [a, b, c] = [0, 1, 2].map(|k| inputs[k][i].to_f32());
                assert_eq!(relaxed[i].to_bits(), <$t>::from_f32((a * b + c) * a - b).to_bits());
                let round = |v: f32| <$t>::from_f32(v).to_f32();
                let stepwise = round(round(round(a * b) + c) * a);
                assert_eq!(exact[i].to_bits(), <$t>::from_f32(round(stepwise) - b).to_bits());
            }
            assert!(exact.iter().zip(&relaxed).any(|(a, b)| a.to_bits() != b.to_bits()));
        }};
    }
    check!(f16, DType::F16);
    check!(bf16, DType::BF16);
}

/// Ops that IEEE defines, and ops that only change signs, which use the rounded value.
const OPS: [Op; 14] = [
    Op::Add,
    Op::Sub,
    Op::Mul,
    Op::Div,
    Op::Maximum,
    Op::Fmin,
    Op::Remainder,
    Op::Copysign,
    Op::Square,
    Op::Sqrt,
    Op::Reciprocal,
    Op::Floor,
    Op::Neg,
    Op::Abs,
];

#[test]
fn random_relaxed_loops_are_those_of_an_evaluator_that_rounds_what_is_stored() {
    let mut r = Random(11);
    let executors = [true, false].map(|jit| Executor::builder().threads(1).jit(jit).build());
    let (mut kept, mut elements) = (0, 0);
    for i in 0..4000 {
        let d = [DType::F16, DType::BF16][i % 2];
        let n = 1 + r.below(40) as usize;
        let feeds: Vec<Tensor> = (0..2).map(|_| random_tensor(d, &[n], &mut r, false)).collect();
        let p = Program::with_settings(settings(Rounding::Relaxed));
        let mut vars = vec![p.data("a", d, [n]), p.data("b", d, [n])];
        let wide = |bits: u128| format::decode(DType::F32, format::cast(d, bits, DType::F32, Beyond::Largest)).real();
        // Each value as it is stored, and in f32 as the next op uses it.
        let mut values: Vec<Vec<(u128, f64)>> = vec![];
        for t in &feeds {
            values.push(Array::of(t).bits.iter().map(|b| (*b, wide(*b))).collect());
        }
        for _ in 0..1 + r.below(7) {
            let op = OPS[r.below(OPS.len() as u64) as usize];
            let picks: Vec<usize> = (0..op.arity()).map(|_| r.below(vars.len() as u64) as usize).collect();
            let operands: Vec<Operand<_>> = picks.iter().map(|k| (&vars[*k]).into()).collect();
            let next = castwise::apply(op, &operands, Attrs::default());
            vars.push(next);
            let one = |at: usize| {
                if matches!(op, Op::Neg | Op::Abs | Op::Copysign) {
                    let stored: Vec<u128> = picks.iter().map(|k| values[*k][at].0).collect();
                    let Ok(Expected::Bits(bits)) = element(op, d, (d, Beyond::Largest), &stored) else {
                        panic!("{op}")
                    };
                    return (bits, wide(bits));
                }
                let args: Vec<Value> = picks.iter().map(|k| Value::Real(values[*k][at].1)).collect();
                let Ok(Expected::Bits(single)) = in_math(op, DType::F32, (DType::F32, Beyond::Largest), &args) else {
                    panic!("{op}")
                };
                let single = format::decode(DType::F32, single);
                (format::encode(d, single, Beyond::Largest), single.real())
            };
            values.push((0..n).map(one).collect());
        }
        let feeds = feeds! { "a" => feeds[0], "b" => feeds[1] };
        for exe in &executors {
            let made = exe.run(&p, feeds.clone(), &vars[2..]).unwrap();
            for (made, expected) in made.iter().zip(&values[2..]) {
                let expected: Vec<u128> = expected.iter().map(|v| v.0).collect();
                assert_eq!(Array::of(made).bits, expected, "{p}\nfeeds: {feeds:?}");
            }
        }
        // The number of values that would differ if each op rounded.
        kept += values.iter().flatten().filter(|(b, v)| format::decode(d, *b).real() != *v && !v.is_nan()).count();
        elements += n * values.len();
    }
    println!("{kept} of {elements} elements are stored as other numbers than the next op takes");
    assert!(kept > elements / 10);
}

#[test]
fn the_choice_is_printed_with_the_program_and_kept_under_other_rules() {
    let p = Program::with_settings(settings(Rounding::Relaxed));
    let _ = chain(&p, DType::BF16);
    assert!(p.to_string().starts_with("castwise 1\nprogram(rules = torch, rounding = relaxed) ("), "{p}");
    assert!(p.infer().unwrap().to_string().starts_with("program(rules = torch, rounding = relaxed) ("));
    assert_eq!(p.with_rules(Rules::Paddle).settings().rounding, Rounding::Relaxed);
    let exact = Program::with_settings(settings(Rounding::Exact));
    assert!(exact.to_string().starts_with("castwise 1\nprogram(rules = torch) ("));
}

#[test]
fn relaxed_programs_round_where_they_ask_for_it_whatever_else_they_compute() {
    let x = Tensor::from_vec((0..500).map(|i| bf16::from_f32(1.1 + i as f32 / 77.0)).collect(), [500]).unwrap();
    let of = |beside: bool| {
        let p = Program::with_settings(settings(Rounding::Relaxed));
        let x_ = p.data("x", DType::BF16, [None]);
        let z = &x_ * 0.3 + &x_;
        let w = (x_.cast(DType::F32) * 0.3).cast(DType::BF16).cast(DType::F32);
        let fetches = if beside { vec![&z, &w] } else { vec![&w] };
        let made = Executor::new().run(&p, feeds! { "x" => x }, fetches).unwrap().pop().unwrap();
        made.to_vec::<f32>().unwrap()
    };
    assert_eq!(of(false), of(true));
    assert!(of(true).iter().all(|v| bf16::from_f32(*v).to_f32() == *v));
}
