//! Compares `argmax` and `argmin` with plain loops: every dim of every layout, ties, NaNs and zeros, long lines on threads, and
//! what is refused.

use castwise::expr::parse_expression;
use castwise::ops::Attrs;
use castwise::prelude::*;
use castwise::{Error, Op, apply};

/// The first position of the extreme of a line, by a plain loop; the first NaN is beyond all.
fn first(op: Op, line: &[f64]) -> i64 {
    let beyond = |a: f64, b: f64| if op == Op::Argmax { a > b } else { a < b };
    let mut found = 0;
    for (i, v) in line.iter().enumerate() {
        if !line[found].is_nan() && (v.is_nan() || beyond(*v, line[found])) {
            found = i;
        }
    }
    found as i64
}

/// The positions along one dim of a row-major tensor.
fn along(op: Op, values: &[f64], shape: &[usize], dim: usize) -> Vec<i64> {
    let (width, length) = (shape[dim + 1..].iter().product::<usize>(), shape[dim]);
    let outer: usize = shape[..dim].iter().product();
    let line = |o: usize, w: usize| (0..length).map(|i| values[(o * length + i) * width + w]).collect::<Vec<_>>();
    (0..outer).flat_map(|o| (0..width).map(move |w| (o, w))).map(|(o, w)| first(op, &line(o, w))).collect()
}

fn both(t: &Tensor, op: Op, attrs: &Attrs, threads: usize) -> castwise::Result<Vec<i64>> {
    let eager = apply(op, &[Eager::new(Rules::Torch).tensor(t).into()], attrs.clone()).result();
    let p = Program::new(Rules::Torch);
    let y = apply(op, &[p.data("x", t.dtype(), vec![None; t.rank()]).into()], attrs.clone());
    let compiled = Executor::builder().threads(threads).build().run(&p, feeds! { "x" => t.clone() }, [&y]);
    assert_eq!(eager.is_err(), compiled.is_err());
    let (eager, compiled) = (eager?.to_vec::<i64>()?, compiled?[0].to_vec::<i64>()?);
    assert_eq!(eager, compiled);
    Ok(eager)
}

/// Few distinct numbers, with both zeros and some NaNs.
fn samples(n: usize, nans: bool) -> Vec<f64> {
    let number = |i: usize| match i * i % 1009 % 37 {
        0 if nans => f64::NAN,
        1 => -0.0,
        2 => 0.0,
        k => [k as f64 - 20.0, -3.0, 16.0][i % 3],
    };
    (0..n).map(number).collect()
}

#[test]
fn every_dim_of_every_layout_has_the_first_extreme() {
    for shape in [vec![9], vec![3, 5], vec![2, 3, 40], vec![70, 1, 17], vec![6, 600], vec![300, 700], vec![70_000, 2]] {
        for nans in [false, true] {
            let values = samples(shape.iter().product(), nans);
            for d in [DType::F8E5M2, DType::BF16, DType::F16, DType::F32, DType::F64, DType::I8, DType::I64] {
                if d.category() == castwise::Category::Int && nans || d.size() == 1 && d.is_float() {
                    continue;
                }
                let t = Eager::new(Rules::Torch).tensor(&Tensor::from_slice(&values, &shape).unwrap()).cast(d);
                let t = t.result().unwrap();
                let moved = (0..shape.len()).rev().collect::<Vec<_>>();
                let strided = t.permute(&moved).unwrap().contiguous().unwrap().permute(&moved).unwrap();
                for op in [Op::Argmax, Op::Argmin] {
                    for (dim, t) in (0..shape.len()).flat_map(|dim| [(dim, &t), (dim, &strided)]) {
                        let found = both(t, op, &Attrs::dims([dim as i64]), 2).unwrap();
                        assert_eq!(found, along(op, &values, &shape, dim), "{op} of {d}{shape:?} along {dim}");
                    }
                    assert_eq!(
                        both(&strided, op, &Attrs::default(), 2).unwrap(),
                        [first(op, &values)],
                        "{op} of {d}{shape:?}"
                    );
                }
            }
        }
    }
}

/// A line of vectors whose extreme is a zero of either sign, or a NaN of either sign.
#[test]
fn zeros_are_equal_and_nans_of_both_signs_are_beyond_numbers() {
    for d in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for (first, second) in [(0.0, -0.0), (-0.0, 0.0), (f64::NAN, 3.0), (-f64::NAN, 3.0), (-f64::NAN, f64::NAN)] {
            for (op, rest) in [(Op::Argmax, -1.0), (Op::Argmin, 1.0)] {
                let mut values = [rest; 100];
                (values[41], values[77]) = (first, second);
                let t = Eager::new(Rules::Torch).tensor(&Tensor::from_slice(&values, [100]).unwrap()).cast(d);
                let found = both(&t.result().unwrap(), op, &Attrs::default(), 1).unwrap();
                assert_eq!(found, [41], "{op} of {d}: {first} and {second} among {rest}");
            }
        }
    }
}

#[test]
fn long_lines_have_the_first_extreme_for_any_number_of_threads() {
    for n in [1 << 16, (1 << 19) + 7] {
        for at in [0, 1, 65_535, n - 1] {
            let mut values = vec![1.0f32; n];
            values[at] = 2.0;
            values[n - 1] = 2.0;
            values[n / 2] = f32::NEG_INFINITY;
            for threads in [1, 3] {
                let t = Tensor::from_slice(&values, [n]).unwrap();
                assert_eq!(both(&t, Op::Argmax, &Attrs::default(), threads).unwrap(), [at as i64]);
                assert_eq!(both(&t, Op::Argmin, &Attrs::default(), threads).unwrap(), [(n / 2) as i64]);
            }
            values[n / 3] = f32::NAN;
            values[n / 3 + 1] = f32::from_bits(0xffc0_0001);
            let t = Tensor::from_slice(&values, [n]).unwrap();
            for op in [Op::Argmax, Op::Argmin] {
                assert_eq!(both(&t, op, &Attrs::default(), 3).unwrap(), [(n / 3) as i64]);
            }
        }
    }
}

/// A computed operand, a position that is used further, and JAX's dtype of positions.
#[test]
fn positions_are_values_like_others() -> castwise::Result<()> {
    let t = Tensor::from_slice(&[1.0f32, -4.0, 3.0, 0.5, 0.0, -0.5], [2, 3])?;
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None, Some(3)]);
    let squares = &x * &x;
    let y = squares.over([1]).keepdim().argmax() + squares.over([0]).argmin();
    let out = Executor::new().run(&p, feeds! { "x" => t.clone() }, [&y, &squares])?;
    assert_eq!(out[0].to_vec::<i64>()?, [2, 2, 2, 1, 1, 1]);
    assert_eq!(Eager::new(Rules::Jax).tensor(&t).argmax().result()?.item::<i32>()?, 2);
    let parsed = Program::new(Rules::NumPy);
    let x = parsed.data("x", DType::C64, [3]);
    let y = parse_expression("argmin(x, dims=-1, keepdim=True)", |_| Some(x.clone()))?;
    let x = Tensor::from([num_complex::Complex::new(1f32, 2.0), num_complex::Complex::new(1.0, -2.0), 1.0.into()]);
    assert_eq!(Executor::new().run(&parsed, feeds! { "x" => x }, [&y])?[0].to_vec::<i64>()?, [1]);
    Ok(())
}

#[test]
fn no_elements_and_several_dims_are_refused() {
    let empty = Tensor::zeros(DType::F32, [2, 0, 3]).unwrap();
    for attrs in [Attrs::default(), Attrs::dims([1])] {
        let e = both(&empty, Op::Argmax, &attrs, 1).unwrap_err();
        let Error::Earlier(e) = e else { panic!("{e}") };
        assert!(matches!(*e, Error::EmptyReduction { op: "argmax", .. }), "{e}");
    }
    assert_eq!(both(&empty, Op::Argmin, &Attrs::dims([0]), 1).unwrap(), [0i64; 0]);
    let e = both(&Tensor::zeros(DType::F32, [2, 2]).unwrap(), Op::Argmin, &Attrs::dims([0, 1]), 1).unwrap_err();
    assert!(e.to_string().contains("`argmin` over the dims [0, 1]: it takes one dim, or all"), "{e}");
}
