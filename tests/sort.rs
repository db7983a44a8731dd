//! `sort`, `argsort` and `topk` against a stable sort of each line: every dtype, dims of every layout, ties, NaNs, zeros, both
//! directions, threads; and what is refused.

use castwise::expr::parse_expression;
use castwise::ops::Choice;
use castwise::prelude::*;
use castwise::{Attrs, Op};

use crate::common::stable::{order, run};

/// Numbers of few values, with both zeros, infinities and NaNs.
fn samples(n: usize, special: bool) -> Vec<f64> {
    let number = |i: usize| match (i * i + 7 * i) % 1009 % 31 {
        0 if special => f64::NAN,
        1 if special => f64::INFINITY,
        2 if special => f64::NEG_INFINITY,
        3 if special => -0.0,
        k => k as f64 - 12.0,
    };
    (0..n).map(number).collect()
}

/// The first `count` positions of each line along a dim, row-major, and the elements there.
fn along(values: &[f64], shape: &[usize], dim: usize, reversed: bool, count: usize) -> (Vec<i64>, Vec<f64>) {
    let (width, length) = (shape[dim + 1..].iter().product::<usize>(), shape[dim]);
    let outer: usize = shape[..dim].iter().product();
    let (mut found, mut sorted) = (vec![0; outer * count * width], vec![0.0; outer * count * width]);
    for (o, w) in (0..outer).flat_map(|o| (0..width).map(move |w| (o, w))) {
        let line: Vec<f64> = (0..length).map(|i| values[(o * length + i) * width + w]).collect();
        for (i, at) in order(&line, reversed).into_iter().take(count).enumerate() {
            let to = (o * count + i) * width + w;
            (found[to], sorted[to]) = (at as i64, line[at]);
        }
    }
    (found, sorted)
}

fn wide(t: &Tensor) -> Vec<f64> {
    Eager::new(Rules::NumPy).tensor(t).cast(DType::F64).result().unwrap().to_vec().unwrap()
}

#[test]
fn every_dim_of_every_layout_is_sorted_and_stable() {
    const DTYPES: [DType; 9] =
        [DType::BF16, DType::I8, DType::F64, DType::F16, DType::U16, DType::U64, DType::F32, DType::I32, DType::I64];
    let shapes =
        [vec![1], vec![9], vec![3, 5], vec![2, 3, 40], vec![70, 1, 17], vec![6, 600], vec![300, 70], vec![3000, 2]];
    for (i, shape) in shapes.into_iter().enumerate() {
        let few = if i == 2 { &DTYPES[..] } else { &DTYPES[i % 3 * 3..][..3] };
        for d in few.iter().copied() {
            let values = samples(shape.iter().product(), d.is_float());
            let values: Vec<f64> = if d.is_unsigned() { values.iter().map(|v| v.abs()).collect() } else { values };
            let t = Eager::new(Rules::NumPy)
                .tensor(&Tensor::from_slice(&values, &shape).unwrap())
                .cast(d)
                .result()
                .unwrap();
            let turned = (0..shape.len()).rev().collect::<Vec<_>>();
            let strided = t.permute(&turned).unwrap().contiguous().unwrap().permute(&turned).unwrap();
            for (dim, t) in (0..shape.len()).flat_map(|dim| [(dim, &t), (dim, &strided)]) {
                for reversed in [Choice::False, Choice::True] {
                    let yes = reversed == Choice::True;
                    let attrs = Attrs::dims([dim as i64]).with_choice(reversed);
                    let (found, sorted) = along(&values, &shape, dim, yes, shape[dim]);
                    let name = format!("{d}{shape:?} along {dim} {reversed}");
                    assert_eq!(
                        run(Rules::NumPy, Op::Argsort, &attrs, t).unwrap().to_vec::<i64>().unwrap(),
                        found,
                        "{name}"
                    );
                    let got = wide(&run(Rules::NumPy, Op::Sort, &attrs, t).unwrap());
                    let same = |a: &f64, b: &f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                    assert!(got.iter().zip(&sorted).all(|(a, b)| same(a, b)), "{name}: {got:?}");
                    for k in [0, 1, shape[dim].div_ceil(2), shape[dim]] {
                        let attrs = attrs.clone().with_number(k as f64);
                        let (found, sorted) = along(&values, &shape, dim, yes, k);
                        let got = run(Rules::NumPy, Op::TopkIndices, &attrs, t).unwrap();
                        assert_eq!((got.shape()[dim], got.to_vec::<i64>().unwrap()), (k, found), "{name}, {k}");
                        let got = wide(&run(Rules::NumPy, Op::Topk, &attrs, t).unwrap());
                        assert!(got.iter().zip(&sorted).all(|(a, b)| same(a, b)), "{name}, {k}: {got:?}");
                    }
                }
            }
        }
    }
}

/// A long line is sorted in parts, which are merged.
#[test]
fn threads_share_a_long_line_and_change_nothing() {
    let n = 300_007;
    for d in [DType::F32, DType::U8, DType::I64, DType::F16] {
        let values = samples(n, d.is_float());
        let values: Vec<f64> = if d.is_unsigned() { values.iter().map(|v| v.abs()).collect() } else { values };
        let t = Tensor::from_slice(&values, [n]).unwrap();
        let t = Eager::new(Rules::NumPy).tensor(&t).cast(d).result().unwrap();
        for (choice, count) in
            [(Choice::False, n), (Choice::True, n), (Choice::True, 70_000), (Choice::False, 70_000), (Choice::False, 3)]
        {
            let (positions, sorted) = along(&values, &[n], 0, choice == Choice::True, count);
            let attrs = Attrs::default().with_choice(choice);
            let (ops, attrs) = match count == n {
                true => ([Op::Argsort, Op::Sort], attrs),
                false => ([Op::TopkIndices, Op::Topk], attrs.with_number(count as f64)),
            };
            let p = Program::new(Rules::NumPy);
            let x = p.data("x", d, [None]);
            let made = ops.map(|op| castwise::apply(op, &[(&x).into()], attrs.clone()));
            for threads in [1, 2, 3, 8] {
                let executor = Executor::builder().threads(threads).build();
                let got = executor.run(&p, feeds! { "x" => &t }, &made).unwrap();
                let name = || format!("the {count} first of {d}, {choice}, on {threads} threads");
                assert_eq!(got[0].to_vec::<i64>().unwrap(), positions, "{}", name());
                let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                assert!(wide(&got[1]).iter().zip(&sorted).all(same), "{}", name());
            }
        }
    }
}

/// The rank of each element is the argsort of the argsort.
#[test]
fn ranks_are_an_argsort_of_an_argsort() -> castwise::Result<()> {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None, None]);
    let ranks = parse_expression("argsort(argsort(abs(x), dim=-1), dim=-1)", |_| Some(x.clone()))?;
    let t = Tensor::from_slice(&[0.5f32, -3.0, 2.0, 2.0, 1.0, -1.0, 0.0, 9.0], [2, 4])?;
    let got = Executor::new().run(&p, feeds! { "x" => t }, [&ranks])?.remove(0);
    assert_eq!(got.to_vec::<i64>()?, [0, 3, 1, 2, 1, 2, 0, 3]);
    Ok(())
}

#[test]
fn edges() -> castwise::Result<()> {
    let nothing = Tensor::zeros(DType::F32, [2, 0, 3])?;
    for op in [Op::Sort, Op::Argsort] {
        for dim in [0, 1, -1] {
            assert_eq!(run(Rules::Torch, op, &Attrs::dims([dim]), &nothing)?.shape(), [2, 0, 3]);
        }
        assert_eq!(run(Rules::Torch, op, &Attrs::default(), &Tensor::scalar(5.0f32))?.shape(), [0usize; 0]);
    }
    let x = Tensor::from([3u8, 1, 2]);
    assert_eq!(run(Rules::Jax, Op::Argsort, &Attrs::default(), &x)?.to_vec::<i32>()?, [1, 2, 0]);
    let one = Attrs::default().with_number(1.0);
    assert_eq!(run(Rules::Torch, Op::Topk, &one, &Tensor::scalar(5i32))?.item::<i32>()?, 5);
    for (op, attrs, message) in [
        (Op::Topk, Attrs::default(), "`topk` without `k`"),
        (Op::Topk, Attrs::default().with_number(4.0), "`k` = 4 of 3 elements"),
        (Op::TopkIndices, Attrs::default().with_number(-1.0), "at least 0"),
        (Op::Sort, Attrs::default().with_choice(Choice::Lower), "none of `false`, `true`"),
        (Op::Sort, Attrs::dims([0, 0]), "it takes one dim"),
        (Op::Sort, Attrs::dims([1]), "`sort`"),
        (Op::Argsort, Attrs::dims([0]).with_keepdim(true), "keepdim"),
    ] {
        let e = run(Rules::Torch, op, &attrs, &x).unwrap_err().to_string();
        assert!(e.contains(message), "{e}");
    }
    // The extent is known when the program runs.
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::U8, [None]).over([0]).k(4).topk();
    let e = Executor::new().run(&p, feeds! { "x" => x }, [&y]).unwrap_err();
    assert!(e.to_string().contains("`topk` with `k` = 4 of 3 elements"), "{e}");
    Ok(())
}

#[test]
fn texts_and_expressions_have_direction_and_count() -> castwise::Result<()> {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [2, 3]);
    let y = parse_expression("topk(x, k=2, dim=0, largest=false) + sort(x, descending=True)", |_| Some(x.clone()))?;
    let text = p.to_string();
    assert!(
        text.contains("topk %x {dims = [0], k = 2.0, largest = false}") && text.contains("{descending = true}"),
        "{text}"
    );
    assert_eq!(Program::parse(&text)?.to_string(), text);
    let typed = p.infer()?.to_string();
    assert!(typed.contains("sort %x {dims = [1], descending = true}"), "{typed}");
    let t = Tensor::from_slice(&[1.0f32, 5.0, 2.0, 8.0, 0.0, 3.0], [2, 3])?;
    let got = Executor::new().run(&p, feeds! { "x" => t }, [&y])?.remove(0);
    assert_eq!((got.shape(), got.to_vec::<f32>()?), (&[2, 3][..], vec![6.0, 2.0, 3.0, 16.0, 8.0, 3.0]));
    Ok(())
}
