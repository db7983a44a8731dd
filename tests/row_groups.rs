//! Chains over the same rows, as softmax and layer_norm are, have the same bits in blocks of rows and loop by loop, in eager mode and
//! compiled, on any number of threads; a refusal is the same; memory is that of blocks.

use castwise::prelude::*;
use castwise::{AsTarget, CancelToken, Error, Pass};

use crate::common::{Random, assert_same_bits, random_tensor};

/// What a chain does next, drawn once and built in both modes.
#[derive(Clone, Copy, Debug)]
struct Step(u64, u64);

/// A chain of steps over `x`, with a row `w` and a value for each row `c`: what is left, and some of what it was made of.
fn chain<M: Mode>(steps: &[Step], x: &Var<M>, w: &Var<M>, c: &Var<M>, rank: i64) -> Vec<Var<M>> {
    let (mut v, mut all) = (x.clone(), Vec::new());
    for Step(kind, pick) in steps {
        // The last dim, or all dims but the first.
        let dims: Vec<i64> = if pick % 5 == 0 { (1..rank).collect() } else { vec![-1] };
        let over = || v.over(&dims).keepdim();
        v = match kind % 16 {
            0 => v.exp(),
            1 => v.abs() + 0.5,
            2 => &v * w,
            3 => &v + c,
            4 => &v - over().amax(),
            5 => &v / over().sum(),
            6 => &v - over().mean(),
            7 => &v * (over().var() + 1e-3).rsqrt(),
            8 => v.softmax(&dims),
            9 => v.log_softmax(&dims),
            10 => v.layer_norm([-1], None, None, 1e-5) * w,
            11 => v.rms_norm(&dims, None, 1e-6),
            // A reduction that drops its dim, which a view brings back.
            12 => &v - v.over([-1]).mean().unsqueeze(-1),
            13 => v.flip([-1]) + over().logsumexp(),
            14 => match pick % 5 {
                // What leaves the rows: another row's elements, positions, scans.
                0 => &v - v.over([0]).keepdim().amax(),
                1 => v.over([-1]).cumsum(),
                4 => &v - v.over([-1]).logcumsumexp(),
                2 => &v + over().argmax().cast(DType::F32),
                _ => v.flip([0]) - over().amin(),
            },
            _ => v.cast([DType::BF16, DType::F32, DType::F64, DType::F16][(pick % 4) as usize]).cast(DType::F32),
        };
        if pick % 3 == 0 {
            all.push(v.clone());
        }
        if pick % 7 == 0 {
            all.push(v.over([-1]).amax());
        }
    }
    all.push(v);
    all
}

const SHAPES: [&[usize]; 14] = [
    &[9, 7],
    &[4, 64],
    &[33, 100],
    &[5, 300],
    &[8, 1],
    &[3, 5, 16],
    &[2, 1, 9, 12],
    &[1, 12, 40],
    &[6, 2, 3],
    &[64, 3],
    &[5, 8_300],
    &[12, 600],
    &[7, 0],
    &[0, 5],
];

/// An operand in one of several layouts.
fn laid_out(shape: &[usize], r: &mut Random) -> Tensor {
    let mut swapped = shape.to_vec();
    let last = shape.len() - 1;
    swapped.swap(last - 1, last);
    let mut doubled = shape.to_vec();
    doubled[0] *= 2;
    let mut one = shape.to_vec();
    one[0] = 1;
    let d = [DType::F32, DType::BF16, DType::F64][r.below(3) as usize];
    match r.below(5) {
        0 => random_tensor(d, &swapped, r, false).transpose(last - 1, last).unwrap(),
        1 => random_tensor(d, &doubled, r, false).slice(0, 0, doubled[0], 2).unwrap(),
        2 => random_tensor(d, shape, r, false).flip(0).unwrap(),
        3 => random_tensor(d, &one, r, false).broadcast_to(shape).unwrap(),
        _ => random_tensor(d, shape, r, false),
    }
}

#[test]
fn blocks_of_rows_change_no_bit() {
    let mut r = Random(7);
    let executor = |rows: Option<usize>, threads, jit| {
        let b = Executor::builder().threads(threads).jit(jit);
        rows.map_or_else(|| b.clone().without(Pass::Rows), |n| b.clone().row_block(n)).build()
    };
    let mut executors = vec![executor(None, 1, true), executor(None, 1, false)];
    for bytes in [200, 1_000, 5_000, 200_000] {
        executors.extend([executor(Some(bytes), 1, true), executor(Some(bytes), 3, false)]);
    }
    let mut together = 0;
    for round in 0..if cfg!(debug_assertions) { 60 } else { 400 } {
        let shape = SHAPES[r.below(SHAPES.len() as u64) as usize];
        let last = shape.len() - 1;
        let steps: Vec<Step> = (0..1 + r.below(5)).map(|_| Step(r.next(), r.next())).collect();
        let x = laid_out(shape, &mut r);
        let w = random_tensor(x.dtype(), &shape[last..], &mut r, false);
        let mut column = shape.to_vec();
        column[last] = 1;
        let c = random_tensor(DType::F32, &column, &mut r, false);
        let p = Program::new(Rules::Torch);
        let dynamic = r.below(2) == 0;
        let dims = |t: &Tensor| t.shape().iter().map(|n| (!dynamic).then_some(*n)).collect::<Vec<_>>();
        let [xs, ws, cs] = [("x", &x), ("w", &w), ("c", &c)].map(|(n, t)| p.data(n, t.dtype(), dims(t)));
        let made = chain(&steps, &xs, &ws, &cs, shape.len() as i64);
        let cx = Eager::new(Rules::Torch);
        let eager = chain(&steps, &cx.tensor(&x), &cx.tensor(&w), &cx.tensor(&c), shape.len() as i64);
        let eager: Result<Vec<Tensor>, Error> = eager.iter().map(|v| v.result()).collect();
        let fetches: Vec<&Var> = made.iter().collect();
        // All placeholders need feeds, also where the chain does not read them.
        let feeds = || feeds! { "x" => &x, "w" => &w, "c" => &c };
        for (i, e) in executors.iter().enumerate() {
            let place = || format!("round {round}, executor {i}, {:?}, {steps:?}\n{p}", x.shape());
            match (&eager, e.run(&p, feeds(), fetches.iter().copied())) {
                (Ok(want), Ok(have)) => {
                    want.iter().zip(&have).for_each(|(a, b)| assert_same_bits(a, b, &place));
                }
                (Err(_), Err(_)) => {}
                (a, b) => panic!("{:?} is not {:?}: {}", a.as_ref().err(), b.err(), place()),
            }
        }
        if eager.is_err() {
            continue;
        }
        for e in [&executors[4], &executors[6], &executors[8]] {
            together += e.kernels(&p, fetches.iter().copied()).unwrap().matches("together, blocks of").count();
        }
    }
    assert!(together >= 4, "{together} groups ran in blocks");
}

fn rows(n: usize, d: usize) -> Tensor {
    Tensor::from_vec((0..n * d).map(|i| ((i * 37) % 101) as f32 / 25.0 - 2.0).collect(), [n, d]).unwrap()
}

#[test]
fn threads_share_blocks() {
    let x = rows(3_001, 257);
    let p = Program::new(Rules::Torch);
    let xs = p.data("x", DType::F32, [None, Some(257)]);
    let (soft, norm) = (xs.softmax([1]), xs.layer_norm([1], None, None, 1e-5));
    let base = Executor::builder().threads(1).without(Pass::Rows).build();
    let base = base.run(&p, feeds! { "x" => &x }, [&soft, &norm]).unwrap();
    for threads in [1, 2, 5] {
        let exe = Executor::builder().threads(threads).build();
        // The second run has its launches from the first one.
        for _ in 0..2 {
            let made = exe.run(&p, feeds! { "x" => &x }, [&soft, &norm]).unwrap();
            made.iter().zip(&base).for_each(|(a, b)| assert_same_bits(a, b, &|| format!("{threads} threads")));
        }
        let mut into =
            [Tensor::zeros(DType::F32, [3_001, 257]).unwrap(), Tensor::zeros(DType::F32, [3_001, 257]).unwrap()];
        let step = exe.prepare(&p, [&soft, &norm]).unwrap();
        let at = into[0].as_bytes().unwrap().as_ptr();
        step.run_into(&[&x], &mut into.each_mut().map(|t| t.as_target())).unwrap();
        assert_eq!(into[0].as_bytes().unwrap().as_ptr(), at);
        into.iter().zip(&base).for_each(|(a, b)| assert_same_bits(a, b, &|| format!("{threads} threads, into")));
    }
}

#[test]
fn a_dump_says_how_rows_run_together() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [4096, 1024]);
    let text = |y: &Var, b: fn() -> Executor| b().kernels(&p, [y]).unwrap();
    let soft = text(&x.softmax([1]), Executor::new);
    assert!(soft.contains("; kernels 0 to 2 over rows [4096]: together, blocks of "), "{soft}");
    assert!(soft.contains(" bytes a row, ") && soft.contains(" of scratch a thread"), "{soft}");
    assert_eq!(soft.matches("together").count(), 1, "{soft}");
    let apart = text(&x.softmax([1]), || Executor::builder().without(Pass::Rows).build());
    assert!(!apart.contains("over rows"), "{apart}");
    // What is reduced over the first dim has no rows of its own.
    assert!(!text(&x.softmax([0]), Executor::new).contains("over rows"));
    let small = p.data("small", DType::F32, [4, 5]).softmax([1]);
    assert!(text(&small, Executor::new).contains("one after the other, too small for blocks"));
    let open = p.data("open", DType::F32, [None, Some(5)]).softmax([1]);
    assert!(text(&open, Executor::new).contains("in blocks that depend on dynamic dims"));
    // The kernels of a weight, and of the number of elements, come before the rows.
    let (w, b) = (p.data("w", DType::BF16, [1024]), p.data("b", DType::BF16, [1024]));
    let norm = p.data("half", DType::BF16, [4096, 1024]).layer_norm([1], Some(&w), Some(&b), 1e-5);
    let norm = text(&norm, Executor::new);
    assert_eq!(norm.matches("together, blocks of").count(), 1, "{norm}");
    // A row that is longer than the cache passes loop by loop.
    let long = p.data("long", DType::F32, [8, 1 << 20]).softmax([1]);
    assert!(
        text(&long, Executor::new).contains("too small for blocks") || !text(&long, Executor::new).contains("together")
    );
}

#[test]
fn the_first_refusal_in_the_order_of_kernels_is_the_error() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::I32, [64, 8]);
    // The first kernel refuses the last row, the second one the first row.
    let first = x.floor_divide(&(&x + 1));
    let y = &first - first.over([1]).keepdim().amax();
    let z = x.remainder(&(&y + &x));
    let mut data = vec![1i32; 512];
    (data[511], data[0]) = (-1, 0);
    let t = Tensor::from_vec(data, [64, 8]).unwrap();
    let run = |b: Executor| b.run(&p, feeds! { "x" => &t }, [&z, &y]).unwrap_err().to_string();
    let base = run(Executor::builder().without(Pass::Rows).build());
    for bytes in [300, 1_000] {
        assert_eq!(run(Executor::builder().row_block(bytes).build()), base);
    }
}

#[test]
fn memory_is_that_of_blocks() {
    let x = rows(4_096, 256);
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [4_096, 256]).softmax([1]);
    let whole = 4_096 * 256 * 4;
    let run = |b: castwise::ExecutorBuilder| b.threads(1).max_bytes(whole + (600 << 10)).build();
    assert!(run(Executor::builder()).run(&p, feeds! { "x" => &x }, [&y]).is_ok());
    let refused = run(Executor::builder().without(Pass::Rows)).run(&p, feeds! { "x" => &x }, [&y]);
    assert!(matches!(refused, Err(Error::Limit { .. })));
    let few = Executor::builder().threads(1).max_bytes(whole).build().run(&p, feeds! { "x" => &x }, [&y]);
    assert!(matches!(few, Err(Error::Limit { .. })), "the scratch of a block counts");
}

#[test]
fn a_token_stops_blocks() {
    let x = rows(4_096, 256);
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [4_096, 256]).softmax([1]);
    let step = Executor::new().prepare(&p, [&y]).unwrap();
    let token = CancelToken::new();
    assert!(step.run_with(&[&x], &token).is_ok());
    token.cancel();
    assert!(matches!(step.run_with(&[&x], &token), Err(Error::Cancelled)));
}

#[test]
fn one_pass_serves_several_reductions_of_an_operand() {
    let p = Program::new(Rules::Torch);
    let kernels = |fetches: &[&Var]| -> usize {
        let text = Executor::new().kernels(&p, fetches.iter().copied()).unwrap();
        text.split("\n; over").filter(|k| k.contains("[64, 100]")).count()
    };
    for d in [DType::F32, DType::BF16] {
        let x = p.data(&format!("x {d}"), d, [64, 100]);
        assert_eq!(kernels(&[&x.over([1]).var(), &x.over([1]).mean()]), 1, "{d}");
        assert_eq!(kernels(&[&x.over([1]).amin(), &x.over([1]).amax()]), 1, "{d}");
        assert_eq!(kernels(&[&x.var(), &x.mean()]), 1, "{d}");
        assert_eq!(kernels(&[&x.over([0]).amin(), &x.over([0]).sum(), &x.over([0]).amax()]), 1, "{d}");
        assert_eq!(kernels(&[&x.over([0]).amin(), &x.over([1]).amax()]), 2, "{d}");
        // Two passes over a row: one for mean and variance, one for the result.
        assert_eq!(kernels(&[&x.layer_norm([1], None, None, 1e-5)]), 2, "{d}");
    }
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [64, 100]);
    let all = [x.over([1]).var(), x.over([1]).mean(), x.over([1]).amin(), x.over([1]).amax(), x.over([1]).sum()];
    let t = rows(64, 100);
    let cx = Eager::new(Rules::Torch);
    let e = cx.tensor(&t);
    let want = [e.over([1]).var(), e.over([1]).mean(), e.over([1]).amin(), e.over([1]).amax(), e.over([1]).sum()];
    let made = Executor::new().run(&p, feeds! { "x" => &t }, &all).unwrap();
    for (a, b) in want.iter().zip(&made) {
        assert_same_bits(&a.result().unwrap(), b, &|| "joined".into());
    }
}

#[test]
fn a_full_reduction_of_a_transposed_operand_has_the_bits_of_its_copy() {
    let mut r = Random(3);
    for (shape, d) in [
        ([700, 301], DType::F32),
        ([64, 4_096], DType::F32),
        ([1_023, 130], DType::BF16),
        ([257, 600], DType::F64),
        ([400, 333], DType::I32),
        ([90_001, 3], DType::F32),
        ([3, 90_001], DType::F16),
    ] {
        let t = random_tensor(d, &shape, &mut r, false).transpose(0, 1).unwrap();
        let copy = t.contiguous().unwrap();
        let p = Program::new(Rules::Torch);
        let x = p.data("x", d, [None, None]);
        let made = [x.sum(), x.amax(), x.amin(), x.cast(DType::F64).var(), x.count_nonzero()];
        for (threads, jit) in [(1, true), (3, true), (1, false)] {
            let exe = Executor::builder().threads(threads).jit(jit).build();
            let [a, b] = [&t, &copy].map(|t| exe.run(&p, feeds! { "x" => t }, &made).unwrap());
            a.iter().zip(&b).enumerate().for_each(|(i, (a, b))| {
                assert_same_bits(a, b, &|| format!("result {i} of {d}{shape:?}, {threads} threads, jit {jit}"));
            });
        }
    }
}

/// A view that leaves a group may be one of other views, which are made for it.
#[test]
fn a_view_of_views_that_is_fetched_is_there() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [300, 100]);
    let e = (&x - x.over([1]).keepdim().amax()).exp();
    let half = e.flip([1]).slice(1, 0, 50, 1);
    let y = &half / half.over([1]).keepdim().sum();
    let feeds = || feeds! { "x" => random_tensor(DType::F32, &[300, 100], &mut Random(5), false) };
    for fetches in [vec![&y, &half], vec![&y], vec![&half, &y, &e]] {
        let blocks = Executor::builder().row_block(10_000).build();
        let plain = Executor::builder().without(Pass::Rows).build();
        assert!(blocks.kernels(&p, fetches.clone()).unwrap().contains("together"));
        let made = blocks.run(&p, feeds(), fetches.clone()).unwrap();
        for (a, b) in made.iter().zip(plain.run(&p, feeds(), fetches.clone()).unwrap()) {
            assert_same_bits(a, &b, &|| format!("{} results", fetches.len()));
        }
    }
}
