//! Gradients of random programs: compiled, op by op and by a third evaluator.
//!
//! `CASTWISE_GRADIENT_PROGRAMS` is the number of programs, and `CASTWISE_SEED` the seed. Each value that a gradient is made of is compared
//! with what the third evaluator (`tests/reference`) allows for the bits of its operands; values that are moved, with index by index models.
//! Does not: compare with frameworks (`xtask conformance` does).

use std::collections::HashMap;

use castwise::prelude::*;
use castwise::shape::SymDim;
use castwise::{Generator, Indexing, NodeKind, Operand, Pass, Slice, View};

use crate::common::Random;
use crate::program_views::model;
use crate::reference::program::{Array, Run};
use crate::reference::{self, Answer, Value, format, rounded};

/// Random numbers from -1.5 to 1.5.
fn numbers(r: &mut Random, shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    Tensor::from_slice(&(0..n).map(|_| 3.0 * r.unit() - 1.5).collect::<Vec<_>>(), shape).unwrap()
}

/// A scan of the rows of a value.
fn scanned(which: usize, x: &Var) -> Var {
    let rows = x.over([-1]);
    [rows.cumsum(), rows.cumprod(), rows.cummax(), rows.cummin(), rows.logcumsumexp()][which].clone()
}

/// What depends on the order of a value's elements.
fn ordered(which: usize, x: &Var) -> Var {
    let rows = || x.over([-1]);
    match which {
        0 => rows().sort(),
        1 => rows().k(2).topk(),
        2 => rows().keepdim().k(1).kthvalue(),
        3 => rows().keepdim().median(),
        _ => x.cast(DType::F32).over([-1]).keepdim().q(0.3).quantile(),
    }
}

/// Elements that are moved along a dim.
fn moved(which: usize, x: &Var, y: &Var) -> Var {
    match which {
        0 => x.take_along_dim(&x.over([-1]).argsort(), -1),
        1 => x.take_along_dim(&x.over([-1]).keepdim().argmax(), -1),
        2 => x.scatter_add(&x.index_along(-1).floor_divide(2), x, -1),
        3 => x.pad(&y.expand_like(x), -1, 0, 1),
        _ => x.slice(-1, 1, None, 2).pad(x, -1, 1, 2),
    }
}

/// A random program of float values of several dtypes and shapes, and its values.
fn random_program(r: &mut Random, dynamic: bool) -> (Program, Vec<Var>, Vec<(String, Tensor)>) {
    let p = Program::new(Rules::Torch);
    let (mut values, mut feeds) = (Vec::new(), Vec::new());
    let shapes: [&[usize]; 5] = [&[2, 3], &[3], &[1, 3], &[2, 1], &[]];
    for i in 0..3 {
        let d = [DType::F32, DType::F64, DType::BF16, DType::F16][r.index(4)];
        let shape = shapes[r.index(5)];
        let t = Eager::new(Rules::Torch).tensor(&numbers(r, shape)).cast(d).result().unwrap();
        let dims: Vec<Option<usize>> = shape.iter().map(|n| (!dynamic).then_some(*n)).collect();
        values.push(p.data(&format!("x{i}"), d, dims));
        feeds.push((format!("x{i}"), t));
    }
    let ops: Vec<Op> = Op::ALL
        .iter()
        .copied()
        .filter(|op| !op.has_dims() && op.arity() < 4 && !matches!(op, Op::Cast | Op::ViewAs | Op::Assign))
        .collect();
    let views = [
        View::Transpose(0, -1),
        View::Unsqueeze(0),
        View::Flip([-1].into()),
        View::Slice(-1, Slice { start: Some(1), end: None, step: 1 }),
        View::Slice(0, Slice { start: Some(-2), end: None, step: 2 }),
        View::Slice(-1, Slice { start: None, end: Some(-1), step: 2 }),
    ];
    for _ in 0..2 + r.index(10) {
        let pick = |r: &mut Random| values[r.index(values.len())].clone();
        let which = r.index(14);
        let (x, y) = (pick(r), pick(r));
        let dims = p.infer().map_or(0, |t| t.shape(&x).map_or(0, <[SymDim]>::len));
        if (5..9).contains(&which) && dims == 0 {
            continue;
        }
        let made = match which {
            0 => pick(r).over([-1]).keepdim().mean(),
            1 => [pick(r).sum(), pick(r).amax(), pick(r).logsumexp()][r.index(3)].clone(),
            2 => pick(r).cast([DType::F32, DType::BF16, DType::F64][r.index(3)]),
            3 => &pick(r) * &pick(r),
            4 => pick(r).softmax([-1]),
            5 => scanned(r.index(5), &x),
            6 => ordered(r.index(5), &x),
            7 => moved(r.index(5), &x, &y),
            8 => x.view(views[r.index(views.len())].clone()),
            _ => {
                let op = ops[r.index(ops.len())];
                let operands: Vec<Operand> = (0..op.arity())
                    .map(|k| if k > 0 && r.index(4) == 0 { Operand::from(0.75) } else { pick(r).into() })
                    .collect();
                castwise::apply(op, &operands, Default::default())
            }
        };
        // What is refused is left out: nothing else uses it.
        let copy = p.infer();
        match copy {
            Ok(typed) if typed.dtype(&made).is_some_and(|d| d.is_float()) => values.push(made),
            Ok(_) => {}
            Err(_) => return random_program(r, dynamic),
        }
    }
    (p, values, feeds)
}

/// An array whose elements are moved by a model of views.
fn viewed(from: &Array, view: &View) -> Array {
    let model = model::Array { shape: from.shape.clone(), elements: from.bits.clone() };
    let made = model.view(view).unwrap();
    Array { dtype: from.dtype, shape: made.shape, bits: made.elements }
}

/// Elements moved along a dim, one by one.
fn indexed(how: Indexing, from: &Array, index: Option<&Array>, dim: usize, shape: &[usize]) -> Array {
    let rank = shape.len();
    let strides = |of: &[usize]| -> Vec<usize> { (0..rank).map(|d| of[d + 1..].iter().product()).collect() };
    let at = |of: &[usize], i: &[usize]| {
        i.iter().zip(strides(of)).zip(of).map(|((i, s), n)| if *n == 1 { 0 } else { i * s }).sum::<usize>()
    };
    let all = |of: &[usize]| -> Vec<Vec<usize>> {
        of.iter().fold(vec![vec![]], |all, n| {
            all.iter().flat_map(|a| (0..*n).map(move |i| [&a[..], &[i]].concat())).collect()
        })
    };
    let n: usize = shape.iter().product();
    let place = |i: &[usize], extent: usize| {
        let index = index.unwrap();
        let p = index.bits[at(&index.shape, i)] as u64 as i64;
        (if p < 0 { p + extent as i64 } else { p }) as usize
    };
    let put =
        |i: &[usize], p: usize| i.iter().enumerate().map(|(d, i)| if d == dim { p } else { *i }).collect::<Vec<_>>();
    let mut bits = vec![0; n];
    match how {
        Indexing::Take => {
            for (k, i) in all(shape).iter().enumerate() {
                bits[k] = from.bits[at(&from.shape, &put(i, place(i, from.shape[dim])))];
            }
        }
        Indexing::Pad { start, step } => {
            let first = if start < 0 { (start + shape[dim] as i64).max(0) } else { start } as usize;
            for (k, i) in all(&from.shape).iter().enumerate() {
                bits[at(shape, &put(i, first + i[dim] * step as usize))] = from.bits[k];
            }
        }
        _ => {
            let single = from.dtype != DType::F64;
            let mut sums = vec![0.0f64; n];
            for (k, i) in all(&from.shape).iter().enumerate() {
                let sum = &mut sums[at(shape, &put(i, place(i, shape[dim])))];
                *sum += format::decode(from.dtype, from.bits[k]).real();
                if single {
                    *sum = f64::from(*sum as f32);
                }
            }
            for (bits, sum) in bits.iter_mut().zip(sums) {
                let reference::Expected::Bits(b) =
                    rounded(Answer::Exactly(Value::Real(sum)), (from.dtype, format::Beyond::Largest))
                else {
                    panic!()
                };
                *bits = b;
            }
        }
    }
    Array { dtype: from.dtype, shape: shape.to_vec(), bits }
}

/// Checks each value of a program without dynamic dims by the third evaluator; whether it could.
fn checked(p: &Program, feeds: &[(String, Tensor)], unfused: &Executor) -> Result<bool, String> {
    let made = p.infer().map_err(|e| e.to_string())?.rewrite(|n| n.copy_explicit()).map_err(|e| e.to_string())?;
    let typed = made.program.infer().map_err(|e| e.to_string())?;
    let mut vars: HashMap<usize, Var> = HashMap::new();
    for v in &made.vars {
        vars.insert(typed.position(v).unwrap(), v.clone());
    }
    let asked: Vec<usize> = vars.keys().copied().collect();
    let named: Vec<(&str, Tensor)> = feeds.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
    let fetches: Vec<&Var> = asked.iter().map(|i| &vars[i]).collect();
    // A value that no gradient needs may be refused for its data.
    let Ok(results) = unfused.run(&made.program, Feeds::from(named), fetches) else { return Ok(false) };
    let results: HashMap<usize, Tensor> = asked.into_iter().zip(results).collect();

    let named: Vec<(String, &Tensor)> = feeds.iter().map(|(n, t)| (n.clone(), t)).collect();
    let mut run = Run::new(&named, Vec::new());
    let (text, mut arrays) = (typed.to_string(), Vec::<Array>::new());
    let mut lines = text.lines().skip(1);
    for (i, n) in typed.nodes().enumerate() {
        if let NodeKind::Feed(name) = n.kind {
            arrays.push(Array::of(&feeds.iter().find(|(n, _)| n == name).unwrap().1));
            continue;
        }
        let line = lines.next().unwrap();
        let extent = |d: &SymDim| if let SymDim::Fixed(n) = d { *n } else { panic!("{d} is not known") };
        let shape: Vec<usize> = n.shape.iter().map(extent).collect();
        let model = match &n.kind {
            NodeKind::Constant(t) => Some(Array::of(t)),
            NodeKind::View { from, view: Some(view) } => Some(viewed(&arrays[*from], view)),
            NodeKind::Indexed { how, from, index, dim, .. } => {
                let index = index.map(|i| &arrays[i]);
                if shape.is_empty() {
                    Some(arrays[*from].clone())
                } else {
                    Some(indexed(*how, &arrays[*from], index, *dim, &shape))
                }
            }
            NodeKind::Generate { generator, .. } => Some(generated(generator, &shape)),
            _ => None,
        };
        let found = run.check_line(line, model, results.get(&i));
        arrays.push(found.map_err(|e| format!("{e:?}\n{text}"))?);
    }
    Ok(true)
}

/// The elements of a generator that gradients use.
fn generated(generator: &Generator, shape: &[usize]) -> Array {
    let n: usize = shape.iter().product();
    match generator {
        Generator::Index { dim } => {
            let of = |k: usize| match dim {
                None => k,
                Some(d) => {
                    let d = if *d < 0 { (*d + shape.len() as i64) as usize } else { *d as usize };
                    k / shape[d + 1..].iter().product::<usize>() % shape[d]
                }
            };
            let of = |k: usize| if shape.is_empty() { 0 } else { of(k) as u128 };
            Array { dtype: DType::I64, shape: shape.to_vec(), bits: (0..n).map(of).collect() }
        }
        Generator::Arange { start: Scalar::Float(v), dtype: Some(DType::F64), .. } => {
            Array { dtype: DType::F64, shape: shape.to_vec(), bits: vec![u128::from(v.to_bits()); n] }
        }
        other => panic!("{other:?}"),
    }
}

/// Compiled, and op by op: the same bits.
#[test]
fn random_programs_have_the_same_gradients_in_both_ways() {
    let programs = std::env::var("CASTWISE_GRADIENT_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let seed = std::env::var("CASTWISE_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(7);
    let (mut compared, mut third, mut r) = (0, 0, Random(seed));
    let unfused = Executor::builder().jit(false).threads(1);
    let unfused = unfused.without(Pass::Fusion).without(Pass::Merging).build();
    let fused = Executor::builder().threads(1).build();
    for i in 0..programs {
        let (p, values, feeds) = random_program(&mut r, i % 2 == 0);
        let loss = values.last().unwrap();
        let cotangent = loss.full_like(0.7, None);
        let wrt: Vec<&Var> = values[..3].iter().collect();
        let Ok(gradients) = p.gradients(&[loss], &wrt, &[Some(&cotangent)]) else { continue };
        let named: Vec<(&str, Tensor)> = feeds.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
        let both = [&fused, &unfused].map(|e| e.run(&p, Feeds::from(named.clone()), &gradients));
        match both {
            [Ok(one), Ok(two)] => {
                for (k, (a, b)) in one.iter().zip(&two).enumerate() {
                    let which = || format!("seed {seed}, program {i}, gradient {k}: {a:?} {b:?}\n{p}");
                    assert_eq!((a.dtype(), a.shape()), (feeds[k].1.dtype(), feeds[k].1.shape()), "{}", which());
                    assert_eq!(a.as_bytes(), b.as_bytes(), "{}", which());
                }
                if i % 2 == 1 {
                    third += usize::from(
                        checked(&p, &feeds, &unfused).unwrap_or_else(|e| panic!("seed {seed}, program {i}: {e}\n{p}")),
                    );
                }
                compared += 1;
            }
            [one, two] => assert_eq!(one.is_err(), two.is_err(), "seed {seed}, program {i}: {one:?} {two:?}\n{p}"),
        }
    }
    assert!(compared > programs / 2 && third > programs / 5, "{compared} and {third} of {programs}");
    println!("{compared} of {programs} programs compared, {third} by the third evaluator");
}
