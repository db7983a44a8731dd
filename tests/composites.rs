//! Composites: their values against definitions in f64, the rows that they are made of, both modes in every layout and mix of
//! dtypes, what they refuse, and their names in expressions and texts.

use castwise::expr::parse_expression;
use castwise::prelude::*;
use castwise::{Composite, DiagnosticKind, Error, Finite, Operand, Tolerance};

use crate::common;

/// The result in both modes, with fixed and dynamic dims and any number of threads.
fn run(rules: Rules, composite: &Composite, operands: &[Tensor]) -> castwise::Result<Tensor> {
    let cx = Eager::new(rules);
    let of: Vec<Var<Eager>> = operands.iter().map(|t| cx.tensor(t)).collect();
    let rest: Vec<Operand<Eager>> = of[1..].iter().map(Operand::from).collect();
    let eager = of[0].composite(composite, &rest).result();
    for (dynamic, threads) in [(false, 1), (true, 1), (true, 3)] {
        let p = Program::new(rules);
        let mut feeds: Vec<(String, Tensor)> = Vec::new();
        let mut vars: Vec<Var> = Vec::new();
        for (i, t) in operands.iter().enumerate() {
            let dims: Vec<Option<usize>> = t.shape().iter().map(|n| (!dynamic).then_some(*n)).collect();
            vars.push(p.data(&format!("x{i}"), t.dtype(), dims));
            feeds.push((format!("x{i}"), t.clone()));
        }
        let rest: Vec<Operand> = vars[1..].iter().map(Operand::from).collect();
        let y = vars[0].composite(composite, &rest);
        let feeds = Feeds::from(feeds.iter().map(|(n, t)| (n.as_str(), t.clone())).collect::<Vec<_>>());
        let compiled = Executor::builder().threads(threads).build().run(&p, feeds, [&y]);
        match (&eager, compiled) {
            (Ok(one), Ok(other)) => {
                assert_eq!((one.dtype(), one.shape()), (other[0].dtype(), other[0].shape()), "{p}");
                assert_eq!(one.as_bytes(), other[0].as_bytes(), "{p}{operands:?}");
            }
            (one, other) => assert_eq!(one.is_err(), other.is_err(), "{p}{one:?} {other:?}"),
        }
        // The text reads back, and a copy of the typed program has the same bits.
        assert_eq!(p.to_string().parse::<Program>().unwrap().to_string(), p.to_string());
        if let (Ok(typed), Ok(want)) = (p.infer(), &eager) {
            let copy = typed.rewrite(|node| node.copy()).unwrap();
            let all: Vec<(String, Tensor)> =
                operands.iter().enumerate().map(|(i, t)| (format!("x{i}"), t.clone())).collect();
            let feeds = Feeds::from(all.iter().map(|(n, t)| (n.as_str(), t.clone())).collect::<Vec<_>>());
            let last = copy.vars.last().unwrap();
            let got = Executor::new().run(&copy.program, feeds, [last]).unwrap();
            assert_eq!(got[0].as_bytes(), want.as_bytes(), "{}", copy.program);
        }
    }
    eager
}

fn made(name: &str) -> Composite {
    Composite::named(name).unwrap()
}

/// Numbers from -6 to 6.
fn numbers(shape: &[usize], seed: usize) -> Tensor {
    let n: usize = shape.iter().product();
    let all: Vec<f64> = (0..n).map(|i| ((i * 7919 + seed * 104_729) % 1201) as f64 / 100.0 - 6.0).collect();
    Tensor::from_slice(&all, shape).unwrap()
}

fn cast(t: &Tensor, d: DType) -> Tensor {
    Eager::new(Rules::Torch).tensor(t).cast(d).result().unwrap()
}

fn real(t: &Tensor) -> Vec<f64> {
    cast(t, DType::F64).contiguous().unwrap().to_vec().unwrap()
}

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// The rows of length n of a tensor.
fn rows(t: &Tensor, n: usize) -> Vec<Vec<f64>> {
    real(t).chunks(n.max(1)).map(<[f64]>::to_vec).collect()
}

/// Whether the results are the definition's in f64, rounded: half dtypes once, but next to a tie of f32's result.
fn near(name: &str, got: &Tensor, want: &[f64]) {
    let (d, got) = (got.dtype(), real(got));
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        let unit = match d {
            DType::F16 => 2f64.powi(-11) * w.abs().max(2f64.powi(-14)),
            DType::BF16 => 2f64.powi(-8) * w.abs(),
            DType::F32 => 12.0 * 2f64.powi(-24) * w.abs(),
            _ => 12.0 * 2f64.powi(-53) * w.abs(),
        };
        let slack = if d == DType::F64 { 1e-14 } else { 2e-6 };
        assert!(
            (g - w).abs() <= unit * 1.001 + slack || g == w || g.is_nan() && w.is_nan(),
            "{name} {d}: {g} is not {w}"
        );
    }
}

#[test]
fn values_are_those_of_the_definitions() {
    for d in FLOATS {
        for (m, n) in [(1, 1), (3, 5), (7, 64), (2, 1000)] {
            let x = cast(&numbers(&[m, n], n), d);
            let weight = cast(&numbers(&[n], 3), d);
            let bias = cast(&numbers(&[n], 5), d);
            let (w, b) = (real(&weight), real(&bias));
            let each = |of: &dyn Fn(&[f64], usize) -> f64| -> Vec<f64> {
                rows(&x, n).iter().flat_map(|r| (0..n).map(|i| of(r, i)).collect::<Vec<_>>()).collect()
            };
            let log_sum = |r: &[f64]| {
                let most = r.iter().copied().fold(f64::MIN, f64::max);
                most + r.iter().map(|v| (v - most).exp()).sum::<f64>().ln()
            };
            let softmax = each(&|r, i| (r[i] - log_sum(r)).exp());
            near("softmax", &run(Rules::Torch, &made("softmax"), std::slice::from_ref(&x)).unwrap(), &softmax);
            let log = each(&|r, i| r[i] - log_sum(r));
            near("log_softmax", &run(Rules::Torch, &made("log_softmax"), std::slice::from_ref(&x)).unwrap(), &log);
            let mean = |r: &[f64]| r.iter().sum::<f64>() / n as f64;
            let var = |r: &[f64]| r.iter().map(|v| (v - mean(r)).powi(2)).sum::<f64>() / n as f64;
            let norm = each(&|r, i| (r[i] - mean(r)) / (var(r) + 0.01).sqrt() * w[i] + b[i]);
            let of = made("layer_norm").number("eps", 0.01).unwrap();
            near("layer_norm", &run(Rules::Torch, &of, &[x.clone(), weight.clone(), bias.clone()]).unwrap(), &norm);
            let square = |r: &[f64]| r.iter().map(|v| v * v).sum::<f64>();
            let eps = if d == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
            let rms = each(&|r, i| r[i] / (square(r) / n as f64 + eps).sqrt() * w[i]);
            near("rms_norm", &run(Rules::Torch, &made("rms_norm"), &[x.clone(), weight.clone()]).unwrap(), &rms);
            let unit = each(&|r, i| r[i] / square(r).sqrt().max(1e-12));
            near("normalize", &run(Rules::Torch, &made("normalize"), std::slice::from_ref(&x)).unwrap(), &unit);
        }
    }
}

#[test]
fn half_dtypes_show_their_casts() {
    let rows_of = |text: &str, d: DType| -> Vec<String> {
        let p = Program::new(Rules::Torch);
        p.data("x", d, [2, 3]);
        p.data("w", d, [3]);
        let y = p.expression(text).unwrap();
        p.set_fetches([(None::<&str>, &y)]).unwrap();
        let typed = p.infer().unwrap();
        assert_eq!(typed.dtype(&y), Some(d));
        let text = typed.to_string();
        text.lines()
            .filter_map(|l| l.split_once(" = "))
            .filter(|(name, _)| name.starts_with("  %"))
            .map(|(_, row)| row.split([' ']).next().unwrap().to_string())
            .collect()
    };
    let plain = ["amax", "sub", "exp", "sum", "div"];
    assert_eq!(rows_of("softmax(x)", DType::F32), plain);
    let mut half = vec!["cast"];
    half.extend(plain);
    half.push("cast");
    assert_eq!(rows_of("softmax(x)", DType::BF16), half);
    let norm = ["cast", "mul", "mean", "add", "rsqrt", "mul", "cast", "mul", "cast"];
    assert_eq!(rows_of("rms_norm(x, w)", DType::F16), norm);
    let norm = ["mean", "var", "sub", "add", "rsqrt", "mul", "mul"];
    assert_eq!(rows_of("layer_norm(x, w)", DType::F64), norm);
    // Op by op: no casts.
    let close = rows_of("isclose(x, x) * w", DType::F16);
    assert_eq!(close.iter().filter(|r| *r == "cast").count(), 1, "{close:?}");
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F16, [2, 3]).softmax([1]);
    assert!(p.infer().unwrap().explain().contains("amax %0 {dims = [1], keepdim, initial = -inf}"));
    assert!(p.with_rules(Rules::Jax).infer().is_ok() && y.index() == 1);
}

#[test]
fn both_modes_agree_for_every_composite_dtype_and_layout() {
    for rules in Rules::ALL.iter().copied() {
        for d in DType::ALL {
            let x = cast(&numbers(&[6, 4], 1), d);
            let turned = x.transpose(0, 1).unwrap();
            let every_other = cast(&numbers(&[8, 6], 2), d).transpose(0, 1).unwrap();
            for one in [x, turned, every_other, Tensor::zeros(d, [0, 3]).unwrap(), Tensor::zeros(d, [3, 0]).unwrap()] {
                for composite in Composite::all() {
                    let n = one.shape().last().copied().unwrap_or(1);
                    let operands: Vec<Tensor> = match (composite.name(), composite.operands()) {
                        ("dot", _) => vec![cast(&numbers(&[17], 1), d), cast(&numbers(&[17], 2), d)],
                        (_, (_, 2)) => vec![one.clone(), one.clone()],
                        (_, (names, _)) => (0..names.len())
                            .map(|i| if i == 0 { one.clone() } else { cast(&numbers(&[n], i), d) })
                            .collect(),
                    };
                    let _ = run(rules, &composite, &operands);
                }
            }
        }
    }
}

/// The elements of a tensor, as bytes.
fn elements(t: &Tensor) -> Vec<Vec<u8>> {
    let t = t.contiguous().unwrap();
    t.as_bytes().unwrap().chunks(t.dtype().size()).map(<[u8]>::to_vec).collect()
}

/// The index of an element of a matrix whose index along a dim is another.
fn along(dim: i64, (i, j): (usize, usize), to: usize) -> (usize, usize) {
    if dim.rem_euclid(2) == 0 { (to, j) } else { (i, to) }
}

/// The result where no refusal is wanted; otherwise checks that the dtype is refused, in these words.
fn answer(found: castwise::Result<Tensor>, refusal: Option<String>) -> Option<Tensor> {
    let Some(says) = refusal else { return Some(found.unwrap()) };
    let e = found.expect_err(&says);
    assert_eq!(e.diagnostics()[0].kind, DiagnosticKind::UnsupportedDType, "{e}");
    assert!(e.diagnostics()[0].message.starts_with(&says), "{e}, not {says}");
    None
}

#[test]
fn moves_along_a_dim_are_those_of_index_arithmetic() {
    for rules in Rules::ALL.iter().copied() {
        for d in DType::ALL {
            let has = common::has(rules, d);
            // Sums of bool, c32 and floats of 8 bits are refused.
            let adds = !matches!(d, DType::Bool | DType::C32 | DType::F8E4M3FN | DType::F8E5M2);
            // What a refusal says: an operand that the rules don't have, or the composite and its first operand.
            let refusal = |name: &str, takes: bool| match (has, takes) {
                (true, true) => None,
                (true, false) => Some(format!("`{name}`: {d}[")),
                (false, _) => Some(format!("a constant is {d}, which {} does not have", rules.framework())),
            };
            let x = cast(&numbers(&[4, 3], 1), d);
            let repeated = cast(&numbers(&[1, 3], 1), d).broadcast_to([4, 3]).unwrap();
            for x in [x.transpose(0, 1).unwrap(), repeated] {
                let (rows, columns) = (x.shape()[0], x.shape()[1]);
                for dim in [0i64, -1] {
                    let n = x.shape()[dim.rem_euclid(2) as usize];
                    // Each element once, from both ends.
                    let turned = |k: usize| if k.is_multiple_of(2) { k as i64 } else { k as i64 - n as i64 };
                    let order: Vec<i64> = (0..n).rev().map(turned).collect();
                    let index =
                        Tensor::from_slice(&order, if dim.rem_euclid(2) == 0 { [n, 1] } else { [1, n] }).unwrap();
                    let all = || (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
                    let at = |(i, j): (usize, usize)| i * columns + j;
                    let place = |(i, j): (usize, usize)| if dim.rem_euclid(2) == 0 { i } else { j };
                    let (from, composite) = (elements(&x), |name: &str| made(name).over([dim]));
                    let reversed: Vec<Vec<u8>> =
                        all().map(|at_| from[at(along(dim, at_, n - 1 - place(at_)))].clone()).collect();
                    let small = cast(&index, DType::I8);
                    for index in [&index, &small].into_iter().take(if dim == 0 { 2 } else { 1 }) {
                        let taken = run(rules, &composite("take_along_dim"), &[x.clone(), index.clone()]);
                        if let Some(taken) = answer(taken, refusal("take_along_dim", true)) {
                            assert_eq!(elements(&taken), reversed, "{rules:?} {d} {dim}");
                        }
                    }
                    let added = run(rules, &composite("scatter_add"), &[x.clone(), index.clone(), x.clone()]);
                    if let Some(added) = answer(added, refusal("scatter_add", adds)) {
                        // +0 is added to each element, which is not NaN.
                        assert_eq!(elements(&added), reversed, "{rules:?} {d} {dim}");
                    }
                    let wide = Tensor::zeros(d, [2 * rows + 1, 2 * columns + 1]).unwrap();
                    let padded = composite("pad").number("start", 1.0).unwrap().number("step", 2.0).unwrap();
                    let padded = run(rules, &padded, &[x.clone(), wide]);
                    if let Some(padded) = answer(padded, refusal("pad", true)) {
                        let back = padded.slice(dim.rem_euclid(2) as usize, 1, 2 * n, 2).unwrap();
                        assert_eq!((elements(&back), padded.shape()[dim.rem_euclid(2) as usize]), (from, 2 * n + 1));
                        let total = |t: &Tensor| elements(t).iter().flatten().map(|b| u64::from(*b)).sum::<u64>();
                        assert_eq!(total(&padded), total(&x));
                    }
                }
            }
        }
    }
}

#[test]
fn scatters_add_in_order_and_refuse_what_is_outside() {
    let torch = |c: Composite, all: &[Tensor]| run(Rules::Torch, &c.over([0]), all);
    let like = |n: usize| Tensor::zeros(DType::Bool, [n]).unwrap();
    let index = Tensor::from([1i64, 0, 1, -1, 1]);
    let x = Tensor::from([1e8f32, 2.0, 1.0, -0.0, -1e8]);
    let made_of = torch(made("scatter_add"), &[x.clone(), index.clone(), like(4)]).unwrap();
    assert_eq!(elements(&made_of), elements(&Tensor::from([2.0f32, 0.0, 0.0, 0.0])), "each sum is rounded");
    // 1 + 2^-9 - 1 of halves in f32.
    let halves = [1.0f32, 0.001953125, -1.0].map(bf16::from_f32);
    let once = torch(made("scatter_add"), &[Tensor::from(halves), Tensor::from([0i64; 3]), like(1)]).unwrap();
    assert_eq!(once.item::<bf16>().unwrap().to_f32(), 0.001953125);
    let wraps = torch(made("scatter_add"), &[Tensor::from([200u8, 100]), Tensor::from([0u8, 0]), like(1)]).unwrap();
    assert_eq!(wraps.item::<u8>().unwrap(), 44);
    for (name, rest) in [("take_along_dim", vec![]), ("scatter_add", vec![like(5)])] {
        for i in [5i64, -6, i64::MAX, i64::MIN] {
            let index = Tensor::from([0i64, 0, i, 0, 0]);
            let e = torch(made(name), &[&[x.clone(), index], &rest[..]].concat()).unwrap_err();
            assert_eq!(e.diagnostics()[0].kind, DiagnosticKind::BadParameter);
            assert!(e.to_string().contains(&format!("the index {i} in a dim of extent 5")), "{e}");
        }
    }
    let zero = |t: f32| Tensor::scalar(t);
    assert_eq!(torch(made("take_along_dim"), &[zero(3.0), Tensor::scalar(0i64)]).unwrap().item::<f32>().unwrap(), 3.0);
    assert!(torch(made("take_along_dim"), &[zero(3.0), Tensor::scalar(1i64)]).is_err());
    for (number, value) in [("start", 0.5), ("step", 0.0), ("step", -1.0), ("start", 1.0), ("start", f64::NAN)] {
        let padded = made("pad").number(number, value).unwrap();
        assert_eq!(
            torch(padded, &[x.clone(), like(5)]).unwrap_err().diagnostics()[0].kind,
            DiagnosticKind::BadParameter
        );
    }
    let refused = [
        torch(made("take_along_dim"), &[x.clone(), x.clone()]),
        torch(made("take_along_dim"), &[x.clone(), Tensor::scalar(0i64)]),
        torch(made("scatter_add"), &[like(5), Tensor::from([0i64; 5]), like(5)]),
        run(Rules::Torch, &made("pad").over([0, 0]), &[x.clone(), like(5)]),
    ];
    assert!(refused.iter().all(|r| !r.as_ref().unwrap_err().diagnostics().is_empty()));
}

/// One value twice, constants, views and results in the caller's memory.
#[test]
fn moves_in_programs() {
    let p = Program::new(Rules::Torch);
    let i = p.data("i", DType::I64, [None]);
    let inverse = i.take_along_dim(&i, 0);
    let twice = inverse.scatter_add(&(&i * 1), &i.slice(0, 0, Some(3), 1), 0)
        + p.constant(Tensor::from([1i64, 0, 2])).take_along_dim(&i, 0);
    let feeds = feeds! { "i" => Tensor::from([2i64, 0, 1]) };
    let out = Executor::new().run(&p, feeds, [&inverse, &twice]).unwrap();
    assert_eq!(out[0].to_vec::<i64>().unwrap(), [1, 2, 0]);
    assert_eq!(out[1].to_vec::<i64>().unwrap(), [4, 1, 1]);
    let text = Executor::new().kernels(&p, [&twice]).unwrap();
    assert!(text.contains(": take_along_dim\n") && text.contains(": scatter_add\n"), "{text}");
}

#[test]
fn no_elements_and_numbers_that_are_not_finite() {
    let torch = |c: &Composite, t: Tensor| run(Rules::Torch, c, &[t]).unwrap();
    for name in ["softmax", "log_softmax", "layer_norm", "rms_norm", "normalize"] {
        for shape in [[0, 3], [3, 0]] {
            let t = Tensor::zeros(DType::F32, shape).unwrap();
            assert_eq!(torch(&made(name), t).shape(), shape, "{name}");
        }
    }
    let none = Tensor::zeros(DType::BF16, [0]).unwrap();
    assert_eq!(real(&run(Rules::Torch, &made("dot"), &[none.clone(), none]).unwrap()), [0.0]);
    let row = |all: [f32; 3]| Tensor::from_slice(&all, [1, 3]).unwrap();
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for name in ["softmax", "log_softmax"] {
        for bad in [[inf, 1.0, 2.0], [nan, 1.0, 2.0], [-inf, -inf, -inf]] {
            assert!(real(&torch(&made(name), row(bad))).iter().all(|v| v.is_nan()), "{name} {bad:?}");
        }
    }
    assert_eq!(real(&torch(&made("softmax"), row([-inf, 0.0, 0.0]))), [0.0, 0.5, 0.5]);
    assert_eq!(real(&torch(&made("log_softmax"), row([-inf, 0.0, -inf]))), [f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY]);
    // A row of zeros has no direction, also where eps is 0 in the dtype.
    assert_eq!(real(&torch(&made("normalize"), cast(&row([0.0; 3]), DType::F16))), [0.0; 3]);
    let halves = cast(&row([nan, inf, -inf]), DType::F16);
    assert_eq!(real(&torch(&made("nan_to_num"), halves.clone())), [0.0, 65504.0, -65504.0]);
    let given = made("nan_to_num").number("nan", f64::NAN).unwrap().number("posinf", 1e9).unwrap();
    let got = real(&torch(&given, halves));
    assert!(got[0].is_nan() && got[1] == f64::INFINITY && got[2] == -65504.0);
    let z = [Complex::new(nan, 1.0), Complex::new(2.0, -inf), Complex::new(inf, nan)];
    let got = torch(&made("nan_to_num"), Tensor::from(z)).to_vec::<Complex<f32>>().unwrap();
    assert_eq!(got, [Complex::new(0.0, 1.0), Complex::new(2.0, f32::MIN), Complex::new(f32::MAX, 0.0)]);
    let integers = Tensor::from([1i32, -7]);
    assert_eq!(torch(&given, integers).to_vec::<i32>().unwrap(), [1, -7]);
}

#[test]
fn rule_sets_decide_dtypes() {
    let bytes = Tensor::from([1i8, 2, 3]);
    let dtype = |rules, name: &str| run(rules, &made(name), std::slice::from_ref(&bytes)).map(|t| t.dtype());
    assert_eq!(dtype(Rules::NumPy, "softmax").unwrap(), DType::F16);
    assert_eq!(dtype(Rules::Jax, "softmax").unwrap(), DType::F32);
    assert!(dtype(Rules::Torch, "softmax").is_err() && dtype(Rules::Paddle, "softmax").is_err());
    assert_eq!(
        run(Rules::Torch, &made("softmax").dtype(DType::F64), std::slice::from_ref(&bytes)).unwrap().dtype(),
        DType::F64
    );
    // Integers wrap in their own dtype.
    let large = Tensor::from([100i8, 100]);
    let dot = run(Rules::Torch, &made("dot"), &[large.clone(), large]).unwrap();
    assert_eq!(dot.to_vec::<i8>().unwrap(), [(20_000 % 256) as u8 as i8]);
    let bools = [Tensor::from([true, false]), Tensor::from([false, true])];
    assert_eq!(run(Rules::NumPy, &made("dot"), &bools).unwrap().to_vec::<bool>().unwrap(), [false]);
    let i = Complex::new(0.0f32, 1.0);
    let z = [Tensor::from([i]), Tensor::from([i])];
    assert_eq!(
        run(Rules::Torch, &made("dot"), &z).unwrap().to_vec::<Complex<f32>>().unwrap(),
        [-Complex::new(1.0, 0.0)]
    );
    assert_eq!(
        run(Rules::Torch, &made("vecdot"), &z).unwrap().to_vec::<Complex<f32>>().unwrap(),
        [Complex::new(1.0, 0.0)]
    );
    // PyTorch compares integers in f32, NumPy in f64.
    let near = [Tensor::from([1i64 << 24]), Tensor::from([(1i64 << 24) + 1])];
    let tight = made("isclose").number("rtol", 0.0).unwrap().number("atol", 1e-3).unwrap();
    assert_eq!(run(Rules::Torch, &tight, &near).unwrap().to_vec::<bool>().unwrap(), [true]);
    assert_eq!(run(Rules::NumPy, &tight, &near).unwrap().to_vec::<bool>().unwrap(), [false]);
    let small = [Tensor::from([3i32]), Tensor::from([3i32])];
    assert_eq!(run(Rules::Jax, &tight, &small).unwrap().to_vec::<bool>().unwrap(), [true]);
}

/// NumPy makes a float of a number, which then promotes as one: its integers need no dtype that holds them.
#[test]
fn isclose_takes_any_number_under_numpys_rules() {
    let close = |rules, x: &Tensor, y: Scalar, named: &[(&str, f64)]| {
        let made = named.iter().fold(made("isclose"), |c, (name, v)| c.number(name, *v).unwrap());
        let run = |equal_nan| {
            let p = Program::new(rules);
            let v = p.data("x", x.dtype(), [None]);
            let y = v.composite(&made.clone().equal_nan(equal_nan), &[Operand::Scalar(y)]);
            Executor::new().run(&p, feeds! { "x" => x.clone() }, [&y])?[0].to_vec::<bool>()
        };
        run(false).map(|plain| (plain, run(true).unwrap()))
    };
    let both = |all: &[bool]| (all.to_vec(), all.to_vec());
    let bytes = Tensor::from([0u8, 1, 255]);
    assert_eq!(close(Rules::NumPy, &bytes, Scalar::Int(300), &[]).unwrap(), both(&[false; 3]));
    assert_eq!(close(Rules::NumPy, &bytes, Scalar::Int(-1), &[("atol", 1.0)]).unwrap(), both(&[true, false, false]));
    assert_eq!(close(Rules::NumPy, &bytes, Scalar::Int(300), &[("rtol", 0.5)]).unwrap(), both(&[false, false, true]));
    // A tolerance that a half can't have is the number's.
    let halves = Tensor::from([f16::from_f32(2000.0), f16::INFINITY, f16::NAN]);
    let far = close(Rules::NumPy, &halves, Scalar::Float(1e6), &[("rtol", 1.0)]).unwrap();
    assert_eq!(far, both(&[true, true, false]));
    assert_eq!(
        close(Rules::NumPy, &halves, Scalar::Float(f64::NAN), &[]).unwrap(),
        (vec![false; 3], vec![false, false, true])
    );
    assert_eq!(close(Rules::NumPy, &halves, Scalar::Float(f64::INFINITY), &[]).unwrap(), both(&[false, true, false]));
    let z = Tensor::from([Complex::new(1.0f32, 1.0)]);
    assert_eq!(
        close(Rules::NumPy, &z, Scalar::Complex(Complex::new(1.0, 1.5)), &[("atol", 0.5)]).unwrap(),
        both(&[true])
    );
    // Under other rules it is a number of the elements' dtype.
    assert!(close(Rules::Torch, &bytes, Scalar::Int(300), &[]).is_err());
}

#[test]
fn refusals_name_the_composite() {
    let refused = |rules, text: &str, kind: DiagnosticKind, says: &str| {
        let p = Program::new(rules);
        p.data("i", DType::I32, [2, 3]);
        p.data("x", DType::F32, [2, 3]);
        p.data("d", DType::F64, [2, 3]);
        p.data("w", DType::F64, [3]);
        p.data("v", DType::F32, [2]);
        p.data("n", DType::F32, ["n"]);
        let d = match p.expression(text).and_then(|_| p.check()) {
            Err(Error::Invalid(all)) => all[0].clone(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(d.kind, kind, "{text}: {}", d.message);
        assert!(d.message.contains(says), "{text}: {}", d.message);
    };
    use DiagnosticKind::*;
    refused(Rules::Torch, "softmax(i)", UnsupportedDType, "`softmax`: i32[2, 3] is not supported");
    refused(Rules::Torch, "softmax(x, dims=2)", Axis, "`softmax`: `amax`");
    refused(
        Rules::Torch,
        "layer_norm(x, dims=0)",
        Axis,
        "`layer_norm`: the dims [0] of f32[2, 3] are not its last ones",
    );
    refused(Rules::Torch, "layer_norm(x, w)", DTypeMismatch, "`layer_norm`: f64[3] beside f32[2, 3]");
    refused(Rules::Torch, "rms_norm(x, v)", Broadcast, "`rms_norm`: f32[2] beside f32[2, 3]: it has the shape [3]");
    refused(Rules::Torch, "dot(x, x)", Broadcast, "which are not vectors");
    refused(Rules::Torch, "dot(v, w)", DTypeMismatch, "`dot`: f32[2] and f64[3] have different dtypes");
    refused(Rules::Torch, "isclose(x, d)", DTypeMismatch, "`isclose`");
    refused(Rules::Torch, "isclose(x, x, rtol=-1)", BadParameter, "`isclose`: rtol = -1");
    refused(Rules::Torch, "isclose(x, x, atol=nan)", BadParameter, "`isclose`: atol = NaN");
    refused(Rules::Torch, "cosine_similarity(i, i)", UnsupportedDType, "`cosine_similarity`");
    refused(Rules::Paddle, "cosine_similarity(i, i)", PromotionRefused, "`cosine_similarity`");
    refused(Rules::Torch, "softmax(x, p=2)", Name, "`softmax` takes no `p`");
    refused(Rules::Torch, "softmax(x, x)", Syntax, "`softmax` takes 1 operand");
    refused(
        Rules::Torch,
        "full_like(x, value=9007199254740993)",
        Syntax,
        "`value` is a number of f64, which has no 9007",
    );
    refused(Rules::Torch, "isclose(x)", Syntax, "`isclose` takes 2 operands");
    refused(Rules::Torch, "softmax(2)", Syntax, "`softmax` takes a value here, not a constant");
    refused(Rules::Torch, "max(x, 0)", Syntax, "`max` of a value and a constant");
    refused(Rules::Torch, "max(x, x, x)", Syntax, "`max` takes one or two operands");
    // A dim that the feeds tell is checked when they come.
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [2, 3]).rms_norm([-1], Some(&p.data("w", DType::F32, ["n"])), None);
    let feeds =
        |n| feeds! { "x" => Tensor::ones(DType::F32, [2, 3]).unwrap(), "w" => Tensor::ones(DType::F32, [n]).unwrap() };
    assert!(Executor::new().run(&p, feeds(3), [&y]).is_ok());
    assert!(Executor::new().run(&p, feeds(2), [&y]).is_err());
    // A weight is not broadcast.
    let e = Executor::new().run(&p, feeds(1), [&y]).unwrap_err().to_string();
    assert!(e.contains("the extents differ in `rms_norm` at axis 0: 1 (axis 0 of feed `w`) vs 3"), "{e}");
    // Handles of two programs, and of two eager modes.
    let other = Program::new(Rules::Torch).data("x", DType::F32, [2]);
    let mixed = p.data("v", DType::F32, [2]).dot(&other);
    assert!(p.check().unwrap_err().to_string().contains("operand 1 of `dot` is a handle of another program"));
    drop(mixed);
    let [a, b] = [Rules::Torch, Rules::NumPy].map(|r| Eager::new(r).tensor(&Tensor::from([1.0f32])));
    assert!(a.dot(&b).result().unwrap_err().to_string().contains("operands of `dot`"));
}

#[test]
fn expressions_have_the_composites_and_constants() {
    let x = Eager::new(Rules::Torch).tensor(&numbers(&[2, 3], 1));
    let w = Eager::new(Rules::Torch).tensor(&numbers(&[3], 2));
    let value = |text: &str| {
        let named = |name: &str| match name {
            "x" => Some(x.clone()),
            "w" => Some(w.clone()),
            _ => None,
        };
        parse_expression(text, named).and_then(|v| v.result()).unwrap_or_else(|e| panic!("{text}: {e}"))
    };
    let same =
        |text: &str, var: Var<Eager>| assert_eq!(value(text).as_bytes(), var.result().unwrap().as_bytes(), "{text}");
    same("softmax(x)", x.softmax([-1]));
    same("softmax(x - 1, axis=0)", (&x - 1.0).softmax([0]));
    same("softmax(x, dims=(0, 1))", x.softmax([0, 1]));
    same("log_softmax(x, dim=-2, dtype=f32)", x.cast(DType::F32).log_softmax([-2]));
    same("layer_norm(x, w, w)", x.layer_norm([-1], Some(&w), Some(&w), 1e-5));
    same("layer_norm(x, bias=w, eps=0.5)", x.layer_norm([-1], None, Some(&w), 0.5));
    same("layer_norm(x, dims=[-2, -1])", x.layer_norm([-2, -1], None, None, 1e-5));
    same("rms_norm(weight=w, x=x)", x.rms_norm([-1], Some(&w), None));
    same("normalize(x, p=inf)", x.normalize(f64::INFINITY, [1], 1e-12));
    same("dot(w, w + 1)", w.dot(&(&w + 1.0)));
    same("vecdot(x, x, dims=0)", x.vecdot(&x, [0]));
    same("cosine_similarity(x, w)", x.cosine_similarity(&w, [1], 1e-8));
    let exact = Tolerance { rtol: 0.0, atol: 0.5, equal_nan: true };
    same("isclose(x, x + 0.25, rtol=0, atol=0.5, equal_nan=true)", x.isclose(&(&x + 0.25), exact));
    same("isclose(x, 1.0)", x.isclose(&(&x * 0.0 + 1.0), Tolerance::default()));
    same("nan_to_num(log(x), nan=-1)", x.log().nan_to_num(Finite { nan: Some(-1.0), ..Finite::default() }));
    same("max(x)", x.amax());
    same("min(x, dims=0, keepdim=true)", x.over([0]).keepdim().amin());
    same("max(x, w)", x.maximum(&w));
    same("min(w, x)", w.minimum(&x));
    same("x * pi", &x * std::f64::consts::PI);
    same("x * e ** 2", &x * castwise_power());
    same("e = x + 1; e * 2", (&x + 1.0) * 2.0);
    // An input of that name is the input.
    let p = Program::new(Rules::Torch);
    p.data("e", DType::F32, [1]);
    let y = p.expression("e * pi").unwrap();
    let out = Executor::new().run(&p, feeds! { "e" => Tensor::from([2.0f32]) }, [&y]).unwrap();
    assert_eq!(out[0].to_vec::<f32>().unwrap(), [std::f64::consts::PI as f32 * 2.0]);
    assert_eq!(castwise::expr::parse_constant("pi / 2").unwrap(), Scalar::Float(std::f64::consts::FRAC_PI_2));
}

/// e², as constants are folded.
fn castwise_power() -> f64 {
    match castwise::expr::parse_constant("e ** 2").unwrap() {
        Scalar::Float(v) => v,
        other => panic!("{other}"),
    }
}

#[test]
fn texts_have_every_parameter() {
    let text = "castwise 1\nprogram(rules = torch) (%x: f32[2, 3], %w: f32[3]) {\n  \
        %0 = softmax %x {dims = [0], dtype = f64}\n  \
        %1 = layer_norm %x, ~1.0, %w {dims = [-1], eps = 1e-6}\n  \
        %2 = isclose %x, %x {rtol = 0.0, atol = inf, equal_nan}\n  \
        %3 = nan_to_num %x {nan = nan, posinf = 7.0}\n  fetch %0, %1, %2, %3\n}\n";
    let p: Program = text.parse().unwrap();
    assert_eq!(p.to_string(), text);
    p.check().unwrap();
    for (wrong, says) in [
        ("%0 = softmax %x {eps = 1}", "unknown attribute `eps` of `softmax`"),
        ("%0 = softmax %x, %x", "`softmax` takes 1 operand, not 2"),
        ("%0 = softmax ~1.0", "of scalars alone"),
        ("%0 = isclose %x, %x {rtol = 1, rtol = 2}", "`rtol` is given twice"),
        ("%0 = softmax %x {dims = [0]", "expected"),
        ("%0 = softmx %x", "did you mean `softmax`?"),
        ("%0 = amax %x {initial = 3.0}", "`amax` takes no number"),
    ] {
        let text = format!("castwise 1\nprogram(rules = torch) (%x: f32[2, 3]) {{\n  {wrong}\n  fetch %0\n}}\n");
        let e = text.parse::<Program>().and_then(|p| p.check()).unwrap_err().to_string();
        assert!(e.contains(says), "{wrong}: {e}");
    }
}

#[test]
fn a_negative_zero_is_filled_in() {
    let x = Tensor::from([1.0f32, 2.0]);
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [2]).full_like(-0.0, None);
    let eager = Eager::new(Rules::Torch).tensor(&x).full_like(-0.0, None).result().unwrap();
    let ran = Executor::new().run(&p, feeds! { "x" => &x }, [&y]).unwrap().remove(0);
    for made in [eager, ran] {
        assert!(made.to_vec::<f32>().unwrap().iter().all(|v| v.to_bits() == (-0.0f32).to_bits()));
    }
}
