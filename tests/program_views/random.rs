//! Random programs of views, ops, casts and reductions, against arithmetic by index.

use castwise::prelude::*;
use castwise::{CpuLevel, Limit, Limits, Slice, View};

use super::model::Array;
use crate::common::{Random, assert_same_bits, random_tensor};

/// One node: what it is, and the positions of its operands.
#[derive(Clone, Debug)]
enum Step {
    Leaf(Vec<usize>),
    View(View, usize),
    Not(usize),
    Add(usize, usize),
    Sum(usize, Vec<usize>, bool),
}

impl Step {
    /// Adds the step to a program, or computes it. Values are of i32, or `mixed`.
    fn apply<M: Mode>(&self, all: &[Var<M>], mixed: bool) -> Option<Var<M>> {
        Some(match self {
            Step::Leaf(_) => return None,
            Step::View(view, a) => all[*a].view(view.clone()),
            Step::Not(a) if mixed => &all[*a] * 0.7,
            Step::Not(a) => all[*a].bitwise_not(),
            Step::Add(a, b) => &all[*a] + &all[*b],
            Step::Sum(a, dims, keep) => {
                let over = all[*a].over(dims.iter().map(|d| *d as i64).collect::<Vec<_>>());
                let over = if mixed { over } else { over.dtype(DType::I32) };
                if *keep { over.keepdim().sum() } else { over.sum() }
            }
        })
    }

    /// The value, if the step is valid and not too large.
    fn value(&self, all: &[Array<i32>]) -> Option<Array<i32>> {
        let made = match self {
            Step::Leaf(_) => return None,
            Step::View(view, a) => all[*a].view(view)?,
            Step::Not(a) => {
                Array { shape: all[*a].shape.clone(), elements: all[*a].elements.iter().map(|v| !v).collect() }
            }
            Step::Add(a, b) => {
                let (a, b) = (&all[*a], &all[*b]);
                let rank = a.shape.len().max(b.shape.len());
                let dim = |s: &[usize], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
                let common = |i: usize| match (dim(&a.shape, i), dim(&b.shape, i)) {
                    (m, n) if m == n || n == 1 => Some(m),
                    (1, n) => Some(n),
                    _ => None,
                };
                let shape = (0..rank).map(common).collect::<Option<Vec<_>>>()?;
                let (a, b) = (a.broadcast(&shape), b.broadcast(&shape));
                Array { shape, elements: a.elements.iter().zip(&b.elements).map(|(a, b)| a.wrapping_add(*b)).collect() }
            }
            Step::Sum(a, dims, keep) => {
                let groups = all[*a].groups(dims);
                let gone = |(i, n): (usize, &usize)| (*keep || !dims.contains(&i)).then_some(*n);
                let shape = groups.shape.iter().enumerate().filter_map(gone).collect();
                let sum = |g: &Vec<i32>| g.iter().fold(0i32, |s, v| s.wrapping_add(*v));
                Array { shape, elements: groups.elements.iter().map(sum).collect() }
            }
        };
        (made.elements.len() <= 3000 && made.shape.len() <= 6).then_some(made)
    }
}

fn pick(r: &mut Random, n: usize) -> usize {
    r.below(n.max(1) as u64) as usize
}

fn shuffled(r: &mut Random, n: usize) -> Vec<i64> {
    let mut all: Vec<i64> = (0..n as i64).collect();
    for i in (1..n).rev() {
        all.swap(i, pick(r, i + 1));
    }
    all
}

/// A view of a value of this shape, mostly a valid one.
fn view(r: &mut Random, shape: &[usize]) -> View {
    let rank = shape.len();
    let dim = |r: &mut Random| pick(r, rank) as i64 - if r.below(2) == 0 { rank as i64 } else { 0 };
    match r.below(8) {
        0 => View::Transpose(dim(r), dim(r)),
        1 => View::Permute(shuffled(r, rank).into()),
        2 => View::Unsqueeze(pick(r, rank + 1) as i64),
        3 => View::Squeeze(shape.iter().position(|n| *n == 1).map_or(0, |d| d as i64)),
        4 => {
            let mut to: Vec<i64> = shape.iter().map(|n| if *n == 1 { pick(r, 4) as i64 } else { -1 }).collect();
            if r.below(3) == 0 {
                to.insert(0, 1 + pick(r, 3) as i64);
            }
            View::Expand(to.into())
        }
        5 => {
            let mut bound = || (r.below(3) > 0).then(|| r.below(12) as i64 - 4);
            let (start, end) = (bound(), bound());
            View::Slice(dim(r), Slice { start, end, step: 1 + pick(r, 3) as i64 })
        }
        6 => View::Flip(shuffled(r, rank).into_iter().take(pick(r, rank + 1)).collect()),
        _ => {
            // Factors of the extents, in another grouping.
            let mut to: Vec<i64> = shape
                .iter()
                .flat_map(|n| if n % 2 == 0 && *n > 0 { vec![2, *n as i64 / 2] } else { vec![*n as i64] })
                .collect();
            while to.len() > 1 && r.below(2) == 0 {
                let at = pick(r, to.len() - 1);
                let n = to.remove(at);
                to[at] *= n;
            }
            if !to.is_empty() && r.below(2) == 0 {
                let at = pick(r, to.len());
                to[at] = -1;
            }
            View::Reshape(to.into())
        }
    }
}

const SHAPES: [&[usize]; 9] = [&[], &[1], &[6], &[4, 6], &[4, 1], &[1, 6], &[2, 3, 4], &[0, 4], &[40, 30]];

struct Case {
    mixed: bool,
    steps: Vec<Step>,
    values: Vec<Array<i32>>,
    tensors: Vec<Tensor>,
}

fn case(r: &mut Random) -> Case {
    let mut all = Case { mixed: false, steps: vec![], values: vec![], tensors: vec![] };
    for _ in 0..1 + pick(r, 3) {
        let shape = SHAPES[pick(r, SHAPES.len())];
        let n: usize = shape.iter().product();
        let elements: Vec<i32> = (0..n).map(|_| r.below(100) as i32 - 50).collect();
        let t = Tensor::from_slice(&elements, shape).unwrap();
        // The same elements in another order of dims in memory.
        let t = match r.below(2) {
            0 if shape.len() > 1 => t.transpose(0, 1).unwrap().contiguous().unwrap().transpose(0, 1).unwrap(),
            _ => t,
        };
        all.tensors.push(t);
        all.values.push(Array { shape: shape.to_vec(), elements });
        all.steps.push(Step::Leaf(shape.to_vec()));
    }
    for _ in 0..3 + pick(r, 14) {
        // Mostly of what came last, so that chains are long.
        let n = all.values.len();
        let last = |r: &mut Random| if r.below(2) == 0 { n - 1 } else { pick(r, n) };
        let a = last(r);
        let step = match r.below(10) {
            0 => Step::Not(a),
            1..=2 => Step::Add(a, pick(r, n)),
            3 => {
                let rank = all.values[a].shape.len();
                let mut dims: Vec<usize> =
                    shuffled(r, rank).into_iter().take(1 + pick(r, rank)).map(|d| d as usize).collect();
                dims.sort_unstable();
                Step::Sum(a, dims, r.below(2) == 0)
            }
            _ => Step::View(view(r, &all.values[a].shape), a),
        };
        if let Some(value) = step.value(&all.values) {
            all.values.push(value);
            all.steps.push(step);
        }
    }
    all
}

fn same(t: &Tensor, want: &Array<i32>) -> bool {
    t.shape() == want.shape && t.to_vec::<i32>().unwrap() == want.elements
}

/// Writes the steps in a program; the leaves are feeds with fixed or dynamic dims, and constants.
fn written(case: &Case, kind: u64) -> (Program, Vec<Var>, Vec<(String, Tensor)>) {
    let p = Program::new(Rules::Torch);
    let (mut vars, mut feeds): (Vec<Var>, _) = (vec![], vec![]);
    for (i, step) in case.steps.iter().enumerate() {
        let var = match step {
            Step::Leaf(_) if kind >> i & 1 == 0 && kind & 64 != 0 => p.constant(case.tensors[i].clone()),
            Step::Leaf(shape) => {
                feeds.push((format!("x{i}"), case.tensors[i].clone()));
                let dims: Vec<Option<usize>> = shape.iter().map(|n| (kind & 128 != 0).then_some(*n)).collect();
                p.data(&format!("x{i}"), case.tensors[i].dtype(), dims)
            }
            step => step.apply(&vars, case.mixed).unwrap(),
        };
        vars.push(var);
    }
    (p, vars, feeds)
}

fn check(case: &Case, wanted: &[Tensor], r: &mut Random, exes: &[Executor]) -> bool {
    let (p, vars, feeds) = written(case, r.next());
    let typed = match p.infer() {
        Ok(typed) => typed,
        // What dynamic dims do not allow.
        Err(e) => {
            let dynamic = |d: &castwise::Diagnostic| d.message.contains("dynamic");
            assert!(e.diagnostics().iter().all(dynamic), "{e}\n{p}");
            return false;
        }
    };
    let copy = typed.rewrite(|n| n.copy()).unwrap().program;
    let read: Program = p.to_string().parse().unwrap();
    assert_eq!((copy.to_string(), read.to_string()), (p.to_string(), p.to_string()));
    let one = pick(r, vars.len());
    let some: Vec<usize> = (0..vars.len()).filter(|_| r.below(3) == 0).chain([one]).collect();
    let all: Vec<usize> = (0..vars.len()).collect();
    for (exe, chosen) in exes.iter().zip([&all, &some, &some, &all].into_iter().cycle()) {
        let fetches: Vec<&Var> = chosen.iter().map(|i| &vars[*i]).collect();
        for _ in 0..2 {
            let out = exe.run(&p, feeds.clone(), fetches.iter().copied()).unwrap_or_else(|e| panic!("{e}\n{p}"));
            for (i, t) in chosen.iter().zip(&out) {
                let case = || format!("value {i} beside {chosen:?}\n{p}\n{typed}");
                assert_same_bits(t, &wanted[*i], &case);
            }
        }
        let borrowed: Vec<(String, TensorView<'_>)> =
            feeds.iter().map(|(n, t)| (n.clone(), TensorView::from(t))).collect();
        let out = exe.run(&p, borrowed, fetches.iter().copied()).unwrap();
        chosen.iter().zip(&out).for_each(|(i, t)| assert_same_bits(t, &wanted[*i], &|| p.to_string()));
        // Into tensors that are there, of which none may be of what is read.
        let mut into: Vec<Tensor> = out.iter().map(|t| Tensor::zeros(t.dtype(), t.shape()).unwrap()).collect();
        drop(out);
        for _ in 0..2 {
            exe.run_into(&p, feeds.clone(), fetches.iter().copied(), &mut into).unwrap();
            chosen.iter().zip(&into).for_each(|(i, t)| assert_same_bits(t, &wanted[*i], &|| p.to_string()));
        }
    }
    true
}

const DTYPES: [DType; 9] =
    [DType::Bool, DType::U8, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128];

/// Random elements of a random dtype in a tensor's shape, mostly in other strides.
fn mixed(r: &mut Random, like: &Tensor) -> Tensor {
    let t = random_tensor(DTYPES[pick(r, DTYPES.len())], like.shape(), r, false);
    let order: Vec<usize> = shuffled(r, t.rank()).into_iter().map(|d| d as usize).collect();
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(i, d)| back[*d] = i);
    t.permute(&order).unwrap().contiguous().unwrap().permute(&back).unwrap()
}

/// What eager mode gives for each step; `None` if it refuses a mix of dtypes.
fn results(case: &Case) -> Option<Vec<Tensor>> {
    let cx = Eager::new(Rules::Torch);
    let mut all: Vec<Var<Eager>> = case.tensors.iter().map(|t| cx.tensor(t)).collect();
    for step in &case.steps[case.tensors.len()..] {
        all.push(step.apply(&all, case.mixed).unwrap());
    }
    let refused = |e: &castwise::Error| case.mixed && e.to_string().contains("does not take c32");
    let one = |v: &Var<Eager>| v.result().map_err(|e| assert!(refused(&e), "{e}")).ok();
    all.iter().map(one).collect()
}

#[test]
fn random_programs_of_views_are_the_models_in_both_modes() {
    let wanted: usize = std::env::var("CASTWISE_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let seed: u64 = std::env::var("CASTWISE_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let limits = Limits::new().with(Limit::KernelOps, 2).unwrap();
    let one = || Executor::builder().threads(1);
    let (blocks, cut) = (one().jit(false).build(), one().jit(false).limits(limits).build());
    let plain = one().jit(false).without(castwise::Pass::Fusion).without(castwise::Pass::Folding).build();
    // Cranelift's loops take a second for each program.
    let compiled = one().jit(CpuLevel::get() != CpuLevel::Baseline).build();
    let exes = [blocks, cut, plain, compiled];
    let mut r = Random(seed);
    let (mut ran, mut views) = (0, 0);
    for _ in 0..wanted {
        let mut case = case(&mut r);
        let eager = results(&case).unwrap();
        for ((t, want), step) in eager.iter().zip(&case.values).zip(&case.steps) {
            assert!(same(t, want), "{step:?} in eager mode is {t:?}, not {want:?}");
            views += usize::from(matches!(step, Step::View(..)));
        }
        ran += usize::from(check(&case, &eager, &mut r, &exes));
        // The same with values of several dtypes, whose sums round: both modes agree.
        case.mixed = true;
        for t in &mut case.tensors {
            *t = mixed(&mut r, t);
        }
        if let Some(eager) = results(&case) {
            check(&case, &eager, &mut r, &exes);
        }
    }
    println!("{ran} of {wanted} programs, {views} views");
    assert!(ran * 2 > wanted);
}
