//! Medians, quantiles and elements by rank against a stable sort of each line: every dtype, dims of every layout, ties, NaNs,
//! zeros, infinities, long lines on threads; and what is refused.

use castwise::expr::parse_expression;
use castwise::ops::Choice;
use castwise::prelude::*;
use castwise::{Attrs, DiagnosticKind, Error, Op};

use crate::common::stable::{order, run};

const VALUES: [Op; 5] = [Op::Median, Op::Nanmedian, Op::Quantile, Op::Nanquantile, Op::Kthvalue];
const POSITIONS: [Op; 3] = [Op::MedianIndices, Op::NanmedianIndices, Op::KthvalueIndices];

/// What an op gives of a line: the position of the lower and the higher element, and how far the value is between them.
fn find(op: Op, number: f64, choice: Choice, line: &[f64]) -> (usize, usize, f64) {
    let (at, numbers) = (order(line, false), line.iter().filter(|v| !v.is_nan()).count());
    let skips = matches!(op, Op::Nanmedian | Op::NanmedianIndices | Op::Nanquantile);
    let q = match op {
        Op::Kthvalue | Op::KthvalueIndices => return (at[number as usize - 1], at[number as usize - 1], 0.0),
        _ if numbers == 0 || numbers < line.len() && !skips => return (at[numbers], at[numbers], 0.0),
        Op::Quantile | Op::Nanquantile => number,
        _ => 0.5,
    };
    let rank = q * (numbers - 1) as f64;
    let (low, high) = (at[rank.floor() as usize], at[rank.ceil() as usize]);
    // NumPy's quantiles have the next element beside a whole rank.
    let next =
        || if matches!(op, Op::Median | Op::Nanmedian) { high } else { at[(rank as usize + 1).min(numbers - 1)] };
    match choice {
        Choice::Lower => (low, low, 0.0),
        Choice::Higher => (high, high, 0.0),
        Choice::Nearest => (at[rank.round_ties_even() as usize], at[rank.round_ties_even() as usize], 0.0),
        Choice::NearestDown => {
            let at = at[if rank.fract() <= 0.5 { rank.floor() } else { rank.ceil() } as usize];
            (at, at, 0.0)
        }
        Choice::Midpoint => (low, next(), if low == high { 0.0 } else { 0.5 }),
        _ => (low, next(), rank.fract()),
    }
}

/// The value of f64 elements.
fn value(op: Op, number: f64, choice: Choice, line: &[f64]) -> f64 {
    let (low, high, w) = find(op, number, choice, line);
    let (a, b) = (line[low], line[high]);
    match choice {
        _ if a.is_nan() || op == Op::Kthvalue || choice.is_element() => a,
        _ if matches!(op, Op::Median | Op::Nanmedian) && a == b => a,
        _ if matches!(op, Op::Median | Op::Nanmedian) => (a + b) / 2.0,
        _ if w < 0.5 => a + w * (b - a),
        _ => b - (b - a) * (1.0 - w),
    }
}

/// The lines along some dims of a row-major tensor, in the order of the results.
fn lines(values: &[f64], shape: &[usize], dims: &[usize]) -> Vec<Vec<f64>> {
    let kept: usize = (0..shape.len()).filter(|i| !dims.contains(i)).map(|i| shape[i]).product();
    let mut all = vec![vec![]; kept];
    for (i, v) in values.iter().enumerate() {
        let (mut rest, mut at, mut scale) = (i, 0, 1);
        for d in (0..shape.len()).rev() {
            let index = rest % shape[d];
            rest /= shape[d];
            if !dims.contains(&d) {
                at += index * scale;
                scale *= shape[d];
            }
        }
        all[at].push(*v);
    }
    all
}

/// Numbers of few values, with both zeros, infinities and NaNs.
fn samples(n: usize, odd: u64, special: bool) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64 ^ odd;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 33
    };
    let number = |k: u64| match k % 41 {
        0 if special && odd.is_multiple_of(2) => f64::NAN,
        1 if special => f64::INFINITY,
        2 if special => f64::NEG_INFINITY,
        3 if special => -0.0,
        k => k as f64 - 20.0,
    };
    (0..n).map(|_| number(next())).collect()
}

fn cast(values: &[f64], shape: &[usize], d: DType) -> Tensor {
    Eager::new(Rules::NumPy).tensor(&Tensor::from_slice(values, shape).unwrap()).cast(d).result().unwrap()
}

fn numbers(op: Op, length: usize) -> Vec<Option<f64>> {
    match op {
        Op::Kthvalue | Op::KthvalueIndices => [1, length.div_ceil(2), length].map(|k| Some(k as f64)).to_vec(),
        Op::Quantile | Op::Nanquantile => [0.25, 1.0].map(Some).to_vec(),
        _ => vec![None],
    }
}

/// The attributes with a number, if the op takes one.
fn with_number(attrs: Attrs, op: Op, number: f64) -> Attrs {
    if op.def().number.is_some() { attrs.with_number(number) } else { attrs }
}

/// The same tensor with other strides.
fn layouts(t: &Tensor) -> Vec<Tensor> {
    let turned: Vec<usize> = (0..t.rank()).rev().collect();
    let permuted = t.permute(&turned).unwrap().contiguous().unwrap().permute(&turned).unwrap();
    let flipped = t.flip(0).unwrap().contiguous().unwrap().flip(0).unwrap();
    vec![t.clone(), permuted, flipped]
}

#[test]
fn every_dim_of_every_layout_has_the_element_of_a_stable_sort() {
    let shapes: [(&[usize], &[&[usize]]); 7] = [
        (&[1], &[&[0]]),
        (&[9], &[&[0]]),
        (&[3, 5], &[&[0], &[1], &[0, 1]]),
        (&[2, 3, 40], &[&[0], &[1], &[2], &[0, 2], &[1, 2], &[0, 1, 2]]),
        (&[70, 1, 17], &[&[0], &[1], &[2]]),
        (&[40, 200], &[&[0], &[1]]),
        (&[2_000, 3], &[&[0], &[0, 1]]),
    ];
    let dtypes = [DType::BF16, DType::F16, DType::F32, DType::F64, DType::I8, DType::U16, DType::I32, DType::I64];
    for (i, (shape, all)) in shapes.into_iter().enumerate() {
        let few = if shape == [3, 5] { &dtypes[..] } else { &dtypes[i % 6..i % 6 + 3] };
        for (j, d) in few.iter().copied().enumerate() {
            let values = samples(shape.iter().product(), (i + j) as u64, d.is_float());
            let values: Vec<f64> = if d.is_unsigned() { values.iter().map(|v| v.abs()).collect() } else { values };
            for t in layouts(&cast(&values, shape, d)) {
                for dims in all {
                    let lines = lines(&values, shape, dims);
                    let attrs = Attrs::dims(dims.iter().map(|d| *d as i64).collect::<Vec<_>>());
                    compare(&t, &attrs, &lines, d);
                }
            }
        }
    }
}

fn compare(t: &Tensor, attrs: &Attrs, lines: &[Vec<f64>], d: DType) {
    for op in VALUES.into_iter().chain(POSITIONS) {
        let position = POSITIONS.contains(&op);
        if position && attrs.dims.as_ref().is_some_and(|d| d.len() > 1) {
            continue;
        }
        let among = op.def().choice.map_or(&[Choice::Lower][..], |of| of.among);
        for (number, choice) in numbers(op, lines[0].len()).into_iter().flat_map(|n| among.iter().map(move |c| (n, *c)))
        {
            let mut attrs = attrs.clone();
            attrs.number = number.map(Into::into);
            attrs.choice = op.def().choice.map(|_| choice);
            let got = run(Rules::NumPy, op, &attrs, t).unwrap();
            let number = number.unwrap_or(0.0);
            if position {
                let want: Vec<i64> = lines.iter().map(|l| find(op, number, choice, l).0 as i64).collect();
                assert_eq!(got.to_vec::<i64>().unwrap(), want, "{op} {attrs:?} of {t:?}");
                continue;
            }
            let wide = |t: &Tensor| Eager::new(Rules::NumPy).tensor(t).cast(DType::F64).result().unwrap();
            let wide = |t: &Tensor| wide(t).to_vec::<f64>().unwrap();
            let want: Vec<f64> = lines.iter().map(|l| value(op, number, choice, l)).collect();
            // The result's dtype rounds it.
            let want = wide(&cast(&want, &[want.len()], got.dtype()));
            for ((got, want), line) in wide(&got).iter().zip(&want).zip(lines) {
                let same = got == want || got.is_nan() && want.is_nan();
                let exact = d == DType::F64 || choice.is_element();
                assert!(same || !exact && (got - want).abs() <= 0.01, "{op} {attrs:?} of {line:?}: {got} for {want}");
                if op == Op::Kthvalue {
                    assert_eq!(got.is_sign_negative(), want.is_sign_negative(), "{op} {attrs:?} of {line:?}");
                }
            }
        }
    }
}

#[test]
fn long_lines_have_the_same_elements_on_any_number_of_threads() {
    let n = (1 << 17) + 77;
    let random = samples(n, 5, false);
    let mixed: Vec<f64> = (0..n).map(|i| ((i * 7919) % n) as f64).collect();
    let falling: Vec<f64> = (0..n).map(|i| (n - i) as f64).collect();
    let periodic: Vec<f64> = (0..n).map(|i| (i % 64) as f64).collect();
    let mut two = vec![1.0; n];
    two[n / 3] = 2.0;
    let mut infinite = mixed.clone();
    infinite[..n / 2].fill(f64::NEG_INFINITY);
    let nans: Vec<f64> = mixed.iter().map(|v| if (*v as usize).is_multiple_of(3) { f64::NAN } else { *v }).collect();
    for (line, name) in [
        (random, "random"),
        (mixed, "mixed"),
        (falling, "falling"),
        (periodic, "periodic"),
        (two, "two"),
        (infinite, "infinite"),
        (nans, "nans"),
    ] {
        let t = cast(&line, &[n], DType::F64);
        let strided = cast(&line.iter().flat_map(|v| [*v, 0.0]).collect::<Vec<_>>(), &[n, 2], DType::F64);
        let strided = strided.slice(1, 0, 1, 1).unwrap().reshape([n]).unwrap();
        for op in VALUES.into_iter().chain(POSITIONS) {
            for number in numbers(op, n) {
                let mut attrs = Attrs::default();
                attrs.number = number.map(Into::into);
                let rules = Rules::Torch;
                let choice = if op.def().number.is_some() { Choice::Linear } else { Choice::Lower };
                let (low, high, w) = find(op, number.unwrap_or(0.0), choice, &line);
                for t in [&t, &strided] {
                    let got = run(rules, op, &attrs, t).unwrap();
                    if POSITIONS.contains(&op) {
                        assert_eq!(got.item::<i64>().unwrap(), low as i64, "{op} {number:?} of {name}");
                        continue;
                    }
                    let (a, b, got) = (line[low], line[high], got.item::<f64>().unwrap());
                    let interpolates = op.def().choice.is_some_and(|of| of.among.contains(&Choice::Linear));
                    let between = if w < 0.5 { a + w * (b - a) } else { b - (b - a) * (1.0 - w) };
                    let want = if interpolates { between } else { a };
                    assert!(
                        got == want || got.is_nan() && want.is_nan(),
                        "{op} {number:?} of {name}: {got} for {want}"
                    );
                }
            }
        }
    }
}

/// Nothing, one element, no dims, and rules that differ.
#[test]
fn edges() -> castwise::Result<()> {
    let nothing = Tensor::zeros(DType::F32, [2, 0])?;
    for op in [Op::Median, Op::Nanmedian] {
        for rules in [Rules::Torch, Rules::NumPy] {
            assert!(run(rules, op, &Attrs::dims([1]), &nothing)?.to_vec::<f32>()?.iter().all(|v| v.is_nan()));
            assert_eq!(run(rules, op, &Attrs::dims([0]), &nothing)?.shape(), [0]);
        }
    }
    for op in [Op::Quantile, Op::Nanquantile, Op::MedianIndices] {
        let attrs = with_number(Attrs::dims([1]), op, 0.5);
        let Err(Error::Earlier(e)) = run(Rules::Torch, op, &attrs, &nothing) else { panic!("{op}") };
        assert!(matches!(*e, Error::EmptyReduction { .. }), "{e}");
    }
    let Err(Error::Earlier(e)) = run(Rules::Torch, Op::Median, &Attrs::default(), &Tensor::zeros(DType::I32, [0])?)
    else {
        panic!("a median of no integers")
    };
    assert!(matches!(*e, Error::EmptyReduction { op: "median", .. }), "{e}");
    let one = Tensor::scalar(-0.0f32);
    for op in [Op::Median, Op::Nanmedian, Op::Kthvalue] {
        let attrs = with_number(Attrs::dims([-1]), op, 1.0);
        assert_eq!(run(Rules::Torch, op, &attrs, &one)?.item::<f32>()?.to_bits(), (-0.0f32).to_bits());
    }
    // No dims: each element is a line.
    let x = Tensor::from([3.0f32, f32::NAN]);
    assert_eq!(run(Rules::Torch, Op::Median, &Attrs::dims([]), &x)?.to_vec::<f32>()?[0], 3.0);
    let large = Tensor::from([f64::MAX, f64::MAX]);
    assert_eq!(run(Rules::NumPy, Op::Median, &Attrs::default(), &large)?.item::<f64>()?, f64::MAX);
    let large = Tensor::from([f32::MAX, f32::MAX]);
    assert_eq!(run(Rules::NumPy, Op::Median, &Attrs::default(), &large)?.item::<f32>()?, f32::MAX);
    // The lower of two, or their mean.
    let ints = Tensor::from([4i32, 1, 2, 9]);
    assert_eq!(run(Rules::Torch, Op::Median, &Attrs::default(), &ints)?.item::<i32>()?, 2);
    assert_eq!(run(Rules::NumPy, Op::Median, &Attrs::default(), &ints)?.item::<f64>()?, 3.0);
    assert_eq!(run(Rules::Paddle, Op::Median, &Attrs::default(), &ints)?.item::<f32>()?, 3.0);
    assert_eq!(run(Rules::Jax, Op::Median, &Attrs::default(), &ints)?.item::<f32>()?, 3.0);
    assert_eq!(run(Rules::Jax, Op::MedianIndices, &Attrs::default(), &ints)?.item::<i32>()?, 2);
    // PyTorch rounds q to f32, of which the rank is below 7.
    let eleven = Tensor::from_vec((0..11).map(|i| i as f32).collect(), [11])?;
    let lower = Attrs::default().with_number(0.7).with_choice(Choice::Lower);
    assert_eq!(run(Rules::Torch, Op::Quantile, &lower, &eleven)?.item::<f32>()?, 6.0);
    assert_eq!(run(Rules::NumPy, Op::Quantile, &lower, &eleven)?.item::<f32>()?, 7.0);
    Ok(())
}

/// `numpy.quantile` of NumPy 2.4.6 and `jax.numpy.quantile` of JAX 0.10.2, for q of 0, 0.25, 0.5, 0.75 and 1.
#[test]
fn quantiles_beside_infinities_are_those_of_the_framework() -> castwise::Result<()> {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    let (line, mid) = (Choice::Linear, Choice::Midpoint);
    for (rules, choice, x, want) in [
        (Rules::NumPy, line, &[0.0, INF][..], [NAN, INF, NAN, NAN, NAN]),
        (Rules::NumPy, line, &[0.0, 1.0, INF], [0.0, 0.5, NAN, NAN, NAN]),
        (Rules::NumPy, line, &[-INF, 1.0, 2.0], [NAN, -INF, 1.0, 1.5, 2.0]),
        (Rules::NumPy, mid, &[0.0, INF], [NAN; 5]),
        (Rules::NumPy, mid, &[0.0, 1.0, INF], [0.0, 0.5, NAN, NAN, NAN]),
        (Rules::Jax, line, &[0.0, INF], [0.0, INF, INF, INF, NAN]),
        (Rules::Jax, line, &[-INF, 1.0, 2.0], [NAN, -INF, 1.0, 1.5, 2.0]),
        (Rules::Jax, line, &[INF, INF], [NAN, INF, INF, INF, NAN]),
        (Rules::Jax, mid, &[0.0, INF], [0.0, INF, INF, INF, INF]),
        (Rules::Jax, mid, &[INF, INF], [INF; 5]),
    ] {
        let with_nan: Vec<f32> = x.iter().copied().chain([NAN]).collect();
        for (q, want) in [0.0, 0.25, 0.5, 0.75, 1.0].into_iter().zip(want) {
            let attrs = Attrs::default().with_number(q).with_choice(choice);
            let all = run(rules, Op::Quantile, &attrs, &Tensor::from_slice(x, [x.len()])?)?.item::<f32>()?;
            let some = run(rules, Op::Nanquantile, &attrs, &Tensor::from_slice(&with_nan, [x.len() + 1])?)?;
            for got in [all, some.item::<f32>()?] {
                assert!(
                    got == want || got.is_nan() && want.is_nan(),
                    "{rules} {choice} {q} of {x:?}: {got} for {want}"
                );
            }
        }
    }
    Ok(())
}

/// `jax.numpy.quantile` of 0, 1, … by JAX 0.10.2; gradients go to where the elements come from.
#[test]
fn ranks_of_jax_have_its_default_float() -> castwise::Result<()> {
    let choices = [Choice::Lower, Choice::Higher, Choice::Nearest, Choice::Midpoint, Choice::Linear];
    for (rules, n, want) in [
        ("jax", 12346, [3703.0, 3704.0, 3704.0, 3703.5, 3_703.500_2]),
        ("jax,x64", 12346, [3703.0, 3704.0, 3703.0, 3703.5, 3703.5]),
        ("jax", 100_001, [30000.0, 30001.0, 30000.0, 30000.5, 30_000.002]),
        ("jax,x64", 100_001, [30000.0; 5]),
    ] {
        for dim in [Some(n), None] {
            let p = Program::with_settings(rules.parse().unwrap());
            let x = p.data("x", DType::F32, [dim]);
            let found = choices.map(|c| x.over([0]).q(0.3).interpolation(c).quantile());
            let higher = p.gradients(&[&found[1]], &[&x], &[])?.remove(0).over([0]).argmax().cast(DType::F32);
            let t = Tensor::from_vec((0..n).map(|i| i as f32).collect(), [n])?;
            let all: Vec<_> = found.iter().chain([&higher]).collect();
            let out = Executor::new().run(&p, feeds! { "x" => t }, all)?;
            let got: Vec<f32> = out[..5].iter().map(|t| t.item()).collect::<castwise::Result<_>>()?;
            assert_eq!(got, want, "{n} elements under {rules}");
            let position = out[5].to_vec::<f32>()?[0];
            assert_eq!(position, want[1], "{n} elements under {rules}");
        }
    }
    Ok(())
}

/// An operand that is computed, broadcast, or of elements that another result needs.
#[test]
fn statistics_are_values_like_others() -> castwise::Result<()> {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None, Some(4)]);
    let y = &x * &x;
    let centred = &y - y.over([1]).keepdim().median();
    let wide = (&x + 0.0).over([0, 1]).q(0.5).quantile() + centred.over([0]).k(1).kthvalue_indices();
    let t = Tensor::from_slice(&[1.0f32, -4.0, 3.0, 0.5, 0.0, -0.5, 8.0, 2.0], [2, 4])?;
    let out = Executor::new().run(&p, feeds! { "x" => t.clone() }, [&centred, &wide])?;
    assert_eq!(out[0].to_vec::<f32>()?, [0.0, 15.0, 8.0, -0.75, -0.25, 0.0, 63.75, 3.75]);
    assert_eq!(out[1].to_vec::<f32>()?, [1.75, 1.75, 0.75, 0.75]);
    let row = Tensor::from([2.0f32, 1.0, 3.0]).broadcast_to([1000, 3])?;
    assert_eq!(run(Rules::Torch, Op::Median, &Attrs::dims([0]), &row)?.to_vec::<f32>()?, [2.0, 1.0, 3.0]);
    assert_eq!(run(Rules::Torch, Op::MedianIndices, &Attrs::default(), &row)?.item::<i64>()?, 999 / 2 * 3);
    Ok(())
}

#[test]
fn texts_and_expressions_have_rank_and_choice() -> castwise::Result<()> {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [2, 3]);
    let text = "quantile(x, q=0.75, dim=-1, keepdim=True, interpolation=\"higher\") + kthvalue(x, k=2, axis=0) \
                - median(x, interpolation=midpoint)";
    let y = parse_expression(text, |_| Some(x.clone()))?;
    let text = p.to_string();
    assert!(text.contains("quantile %x {dims = [-1], keepdim, q = 0.75, interpolation = higher}"), "{text}");
    assert!(text.contains("{dims = [0], k = 2.0}") && text.contains("median %x {interpolation = midpoint}"), "{text}");
    assert_eq!(Program::parse(&text)?.to_string(), text);
    let typed = p.infer()?.to_string();
    assert!(typed.contains("median %x {dims = [0, 1], interpolation = midpoint}"), "{typed}");
    let t = Tensor::from_slice(&[1.0f32, 5.0, 2.0, 8.0, 0.0, 3.0], [2, 3])?;
    let got = Executor::new().run(&p, feeds! { "x" => t }, [&y])?.remove(0);
    assert_eq!((got.shape(), got.to_vec::<f32>()?), (&[2, 3][..], vec![10.5, 7.5, 5.5, 13.5, 10.5, 8.5]));
    Ok(())
}

#[test]
fn what_is_no_rank_is_refused() {
    let x = Tensor::from([1.0f32, 2.0, 3.0]);
    for (op, attrs, message) in [
        (Op::Quantile, Attrs::default(), "`quantile` without `q`"),
        (Op::Kthvalue, Attrs::default(), "`kthvalue` without `k`"),
        (Op::Quantile, Attrs::default().with_number(1.5), "`q` = 1.5, which must be from 0 to 1"),
        (Op::Nanquantile, Attrs::default().with_number(-0.1), "which must be from 0 to 1"),
        (Op::Quantile, Attrs::default().with_number(f64::NAN), "`q` = NaN"),
        (Op::Kthvalue, Attrs::default().with_number(0.0), "`k` = 0, which must be at least 1"),
        (Op::Kthvalue, Attrs::default().with_number(1.5), "`k` = 1.5, which must be an integer"),
        (Op::KthvalueIndices, Attrs::default().with_number(4.0), "`k` = 4 of 3 elements"),
        (Op::Kthvalue, Attrs::default().with_number(f64::INFINITY), "which must be an integer"),
        (Op::Median, Attrs::default().with_choice(Choice::Nearest), "none of `lower`, `higher`, `midpoint`"),
        (Op::Sum, Attrs::default().with_choice(Choice::Lower), "`sum` takes no choice"),
        (Op::Median, Attrs::default().with_number(1.0), "`median` takes no number"),
        (Op::MedianIndices, Attrs::dims([]), ""),
    ] {
        match run(Rules::Torch, op, &attrs, &x) {
            Ok(_) => assert_eq!(message, "", "{op} {attrs:?}"),
            Err(e) => assert!(!message.is_empty() && e.to_string().contains(message), "{e}"),
        }
    }
    let bools = Tensor::from([true, false]);
    let q = Attrs::default().with_number(0.5);
    let e = run(Rules::NumPy, Op::Quantile, &q, &bools).unwrap_err();
    assert_eq!(e.diagnostics()[0].kind, DiagnosticKind::BoolArithmetic);
    assert!(run(Rules::NumPy, Op::Quantile, &q.with_choice(Choice::Nearest), &bools).is_ok());
    // The extent is known when the program runs.
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [None]).over([0]).k(4).kthvalue();
    let e = Executor::new().run(&p, feeds! { "x" => x }, [&y]).unwrap_err();
    assert!(e.to_string().contains("`kthvalue` with `k` = 4 of 3 elements"), "{e}");
}
