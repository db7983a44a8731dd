//! When chains of half precision are rounded: after every op, or where they are stored.

use castwise::prelude::*;
use castwise::{Rounding, bf16, f16};

fn settings(rounding: Rounding) -> Settings {
    Settings { rounding, ..Settings::new(Rules::Torch) }
}

/// `(a*b + c)*a - b`, as shared by programs.
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
