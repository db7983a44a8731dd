//! `var`, `std`, `norm`, `logsumexp`, `nansum`, `nanmean` and `count_nonzero` against their definitions in f64, where what they are
//! composed of could show: large means, no elements, dynamic dims, computed operands, infinite numbers.

use castwise::expr::parse_expression;
use castwise::prelude::*;
use castwise::{Attrs, Error, Op, apply};

/// The result in both modes, with fixed and dynamic dims and any number of threads.
fn run(rules: Rules, op: Op, attrs: &Attrs, t: &Tensor) -> castwise::Result<Tensor> {
    let eager = apply(op, &[Eager::new(rules).tensor(t).into()], attrs.clone()).result();
    for dynamic in [false, true] {
        for threads in [1, 3] {
            let p = Program::new(rules);
            let dims: Vec<Option<usize>> = t.shape().iter().map(|n| (!dynamic).then_some(*n)).collect();
            let y = apply(op, &[p.data("x", t.dtype(), dims).into()], attrs.clone());
            let compiled = Executor::builder().threads(threads).build().run(&p, feeds! { "x" => t.clone() }, [&y]);
            match (&eager, compiled) {
                (Ok(one), Ok(other)) => assert_eq!(one.as_bytes(), other[0].as_bytes(), "{op} {attrs:?} of {t:?}"),
                (one, other) => assert_eq!(one.is_err(), other.is_err(), "{op} {attrs:?} of {t:?}: {other:?}"),
            }
        }
    }
    eager
}

fn torch(op: Op, attrs: &Attrs, t: &Tensor) -> Tensor {
    run(Rules::Torch, op, attrs, t).unwrap()
}

/// Two passes in f64 over elements that f64 holds, from the first.
fn variance(all: &[f64], correction: f64) -> f64 {
    let n = all.len() as f64;
    let away: Vec<f64> = all.iter().map(|v| v - all[0]).collect();
    let mean = away.iter().sum::<f64>() / n;
    away.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - correction).max(0.0)
}

#[test]
fn variances_of_f32_are_rounded_once_whatever_the_mean_is() {
    for mean in [0.0f32, 1.0, 1000.0, -1e7, 3e15] {
        for (rows, columns) in [(3, 5), (70, 300), (2, 5000)] {
            let spread = mean.abs().max(1.0) * 2f32.powi(-20);
            let value = |i: usize| mean + spread * ((i * i % 1013) as f32 - 400.0);
            let values: Vec<f32> = (0..rows * columns).map(value).collect();
            let t = Tensor::from_slice(&values, [rows, columns]).unwrap();
            for correction in [0.0, 1.0, 1.5] {
                let at = |r: usize, c: usize| f64::from(values[r * columns + c]);
                let across = |r: usize| variance(&(0..columns).map(|c| at(r, c)).collect::<Vec<_>>(), correction);
                let down = |c: usize| variance(&(0..rows).map(|r| at(r, c)).collect::<Vec<_>>(), correction);
                let by_row: Vec<f64> = (0..rows).map(across).collect();
                let by_column: Vec<f64> = (0..columns).map(down).collect();
                for (dim, want) in [(1, by_row), (0, by_column)] {
                    for op in [Op::Var, Op::Std] {
                        let got = torch(op, &Attrs::dims([dim]).with_number(correction), &t).to_vec::<f32>().unwrap();
                        for (got, want) in got.iter().zip(&want) {
                            let want = if op == Op::Std { want.sqrt() } else { *want };
                            // Half a unit of f32, and what the sums of f64 lose.
                            let bound = want * (0.5 + 1e-3) * f64::from(f32::EPSILON);
                            assert!((f64::from(*got) - want).abs() <= bound, "{op} at {mean}: {got} is not {want}");
                        }
                    }
                }
            }
        }
    }
}

/// One kernel over the operand; for f64 two, and nothing that has as many elements is stored.
#[test]
fn a_variance_of_f32_reads_its_operand_once() -> castwise::Result<()> {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None, Some(64)]);
    let plan = Executor::new().dump(&p, [&x.over([1]).var()])?;
    assert_eq!(plan.matches(", 64]\nkernel").count(), 1, "{plan}");
    let x = p.data("d", DType::F64, [None, Some(64)]);
    let plan = Executor::new().dump(&p, [&x.over([1]).var()])?;
    assert_eq!(plan.matches(", 64]\nkernel").count(), 2, "{plan}");
    Ok(())
}

#[test]
fn few_elements_and_large_corrections() {
    let t = Tensor::from([3.0f32, 5.0]);
    let var = |correction: f64, t: &Tensor| {
        torch(Op::Var, &Attrs::default().with_number(correction), t).item::<f32>().unwrap()
    };
    assert_eq!([var(0.0, &t), var(1.0, &t), var(-2.0, &t)], [1.0, 2.0, 0.5]);
    assert_eq!([var(2.0, &t), var(7.5, &t)], [f32::INFINITY; 2]);
    assert!(var(1.0, &Tensor::from([3.0f32])).is_nan() && var(2.0, &Tensor::from([4.0f32, 4.0])).is_nan());
    assert!(var(0.0, &Tensor::from([1.0f32, f32::INFINITY])).is_nan());
    assert_eq!(var(0.0, &Tensor::from([3.0f32])), 0.0);
    let numpy = run(Rules::NumPy, Op::Var, &Attrs::default(), &Tensor::from([1i32, 2])).unwrap();
    assert_eq!(numpy.item::<f64>().unwrap(), 0.25);
    assert!(var(0.0, &Tensor::zeros(DType::F32, [0]).unwrap()).is_nan());
}

#[test]
fn no_elements_have_the_neutral_result_or_are_refused() {
    let t = Tensor::zeros(DType::F32, [2, 0, 3]).unwrap();
    for (op, number, want) in [
        (Op::Var, None, f32::NAN),
        (Op::Nanmean, None, f32::NAN),
        (Op::Nansum, None, 0.0),
        (Op::Norm, Some(0.0), 0.0),
        (Op::Norm, Some(1.5), 0.0),
        (Op::Logsumexp, None, f32::NEG_INFINITY),
    ] {
        let attrs = number.map_or(Attrs::dims([1]), |n| Attrs::dims([1]).with_number(n));
        let got = torch(op, &attrs, &t).to_vec::<f32>().unwrap();
        assert!(got.len() == 6 && got.iter().all(|v| v.total_cmp(&want).is_eq()), "{op}: {got:?}");
        assert_eq!(
            torch(op, &number.map_or(Attrs::dims([0]), |n| Attrs::dims([0]).with_number(n)), &t).shape(),
            [0, 3]
        );
    }
    for p in [f64::INFINITY, f64::NEG_INFINITY, -1.0] {
        let e = run(Rules::Torch, Op::Norm, &Attrs::dims([1]).with_number(p), &t).unwrap_err();
        let Error::Earlier(e) = e else { panic!("{e}") };
        assert!(matches!(*e, Error::EmptyReduction { op: "norm", .. }), "{e}");
    }
    let counted = torch(Op::CountNonzero, &Attrs::dims([1]).with_keepdim(true), &t);
    assert_eq!((counted.shape(), counted.to_vec::<i64>().unwrap()), (&[2, 1, 3][..], vec![0; 6]));
}

#[test]
fn norms_neither_overflow_nor_round_on_the_way() {
    let norm = |p: f64, t: &Tensor| torch(Op::Norm, &Attrs::default().with_number(p), t);
    let large = Tensor::from([3e30f32, -4e30]);
    assert_eq!(norm(2.0, &large).item::<f32>().unwrap(), 5e30);
    let halves = Tensor::from([300.0f32, 400.0].map(f16::from_f32));
    assert_eq!(norm(2.0, &halves).item::<f16>().unwrap(), f16::from_f32(500.0));
    let n = 1 << 20;
    let ones = Tensor::from_vec((0..n).map(|i| 0.1 + (i % 7) as f32).collect(), [n]).unwrap();
    let exact = (0..n).map(|i| f64::from(0.1 + (i % 7) as f32).powi(3)).sum::<f64>().cbrt();
    assert_eq!(norm(3.0, &ones).item::<f32>().unwrap(), exact as f32);
    let mixed = Tensor::from([0.0f32, -2.0, f32::NAN, 5.0]);
    assert_eq!(norm(0.0, &mixed).item::<f32>().unwrap(), 3.0);
    for p in [f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0] {
        assert!(norm(p, &mixed).item::<f32>().unwrap().is_nan(), "{p}");
    }
    let complex = Tensor::from([num_complex::Complex::new(3f32, 4.0), num_complex::Complex::new(0.0, 0.0)]);
    let found =
        [2.0, 1.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, -1.0].map(|p| norm(p, &complex).item::<f32>().unwrap());
    assert_eq!(found, [5.0, 5.0, 1.0, 5.0, 0.0, 0.0]);
}

#[test]
fn logarithms_of_sums_of_infinite_and_large_numbers() {
    let of = |all: &[f32]| {
        torch(Op::Logsumexp, &Attrs::default(), &Tensor::from_slice(all, [all.len()]).unwrap()).item::<f32>().unwrap()
    };
    let (inf, least) = (f32::INFINITY, f32::NEG_INFINITY);
    assert_eq!([of(&[1.0, inf]), of(&[least, least]), of(&[least, 2.0])], [inf, least, 2.0]);
    assert!(of(&[inf, least, f32::NAN]).is_nan());
    assert_eq!(of(&[1000.0, 1000.0]), 1000.0 + 2f32.ln());
    let t = Tensor::from_slice(&[0.0f64, 1.0, -1.0, 800.0], [2, 2]).unwrap();
    let rows = torch(Op::Logsumexp, &Attrs::dims([1]), &t).to_vec::<f64>().unwrap();
    assert!((rows[0] - (1.0 + 1f64.exp()).ln()).abs() < 1e-15 && rows[1] == 800.0);
}

/// Composites of computed values, of views, and of other composites, beside results that are stored.
#[test]
fn composites_are_values_like_others() -> castwise::Result<()> {
    fn normalized<M: Mode>(x: &Var<M>) -> (Var<M>, Var<M>) {
        let y = x * 2.0 + 1.0;
        let rows = (&y - y.over([1]).keepdim().mean()) / y.over([1]).keepdim().correction(0.0).std();
        (rows.over([0]).p(1.0).norm(), y)
    }
    let values = (0..40 * 70).map(|i| ((i * 37 % 101) as f32) * 0.25 - 5.0).collect();
    let t = Tensor::from_vec(values, [40, 70])?;
    for view in [t.clone(), t.transpose(0, 1)?, t.slice(0, 3, 40, 2)?] {
        let (eager, all) = normalized(&Eager::new(Rules::Torch).tensor(&view));
        let p = Program::new(Rules::Torch);
        let (y, x) = normalized(&p.data("x", DType::F32, [None, None]));
        let out = Executor::new().run(&p, feeds! { "x" => view }, [&y, &x])?;
        assert_eq!(out[0].as_bytes(), eager.result()?.as_bytes());
        assert_eq!(out[1].as_bytes(), all.result()?.as_bytes());
    }
    Ok(())
}

#[test]
fn texts_and_expressions_have_the_number() -> castwise::Result<()> {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [2, 3]);
    let y = parse_expression("var(x, dims=-1, keepdim=True, correction=0.5) + norm(x, p=-inf)", |_| Some(x.clone()))?;
    let text = p.to_string();
    assert!(text.contains("{dims = [-1], keepdim, correction = 0.5}") && text.contains("{p = -inf}"), "{text}");
    assert_eq!(Program::parse(&text)?.to_string(), text);
    let typed = p.infer()?.to_string();
    assert!(typed.contains("var %x {dims = [1], keepdim, correction = 0.5}"), "{typed}");
    let t = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 6.0, 8.0], [2, 3])?;
    let got = Executor::new().run(&p, feeds! { "x" => t }, [&y])?.remove(0);
    assert_eq!((got.shape(), got.to_vec::<f32>()?), (&[2, 1][..], vec![0.8 + 1.0, 3.2 + 1.0]));
    for (wrong, message) in [
        ("sum(x, p=2)", "`sum` takes no `p`"),
        ("var(x, p=2)", "`var` takes no `p`"),
        ("norm(x, p=x)", "`p` takes a number"),
    ] {
        let e = parse_expression(wrong, |_| Some(x.clone())).expect_err(wrong).to_string();
        assert!(e.contains(message), "{e}");
    }
    let e = Eager::new(Rules::Torch).tensor(&Tensor::from([1.0f32])).over([0]).p(1.0).sum().result().unwrap_err();
    assert!(e.to_string().contains("`sum` takes no number, but is given 1"), "{e}");
    let e = Eager::new(Rules::Torch).tensor(&Tensor::from([1.0f32])).over([0]).p(f64::NAN).norm().result().unwrap_err();
    assert!(e.to_string().contains("`norm` with `p` = NaN"), "{e}");
    Ok(())
}
