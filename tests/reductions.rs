//! Compares reductions with plain loops: every set of dims, layouts, threads, and fusion with their operands.

use castwise::prelude::*;
use castwise::{Op, apply};

use crate::common::levels::at_every_level;
use crate::common::{Random, assert_same_bits, random_tensor};

/// The positions of a shape in row-major order.
fn positions(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for n in shape {
        all = all.into_iter().flat_map(|p| (0..*n).map(move |i| [p.clone(), vec![i]].concat())).collect();
    }
    all
}

/// The sums of integers over some dims, by a plain loop. They are exact in any order.
fn sums(values: &[i64], shape: &[usize], axes: &[usize]) -> Vec<i64> {
    let kept: Vec<usize> = (0..shape.len()).filter(|d| !axes.contains(d)).collect();
    let targets = positions(&kept.iter().map(|d| shape[*d]).collect::<Vec<_>>());
    let mut out = vec![0i64; targets.len()];
    for (p, v) in positions(shape).iter().zip(values) {
        let at: Vec<usize> = kept.iter().map(|d| p[*d]).collect();
        out[targets.iter().position(|t| *t == at).unwrap()] += v;
    }
    out
}

fn subsets(rank: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1usize << rank).map(move |bits| (0..rank).filter(|d| bits >> d & 1 == 1).collect())
}

#[test]
fn every_set_of_dims_of_every_layout_has_the_right_sums() {
    let mut cases = 0;
    for shape in [
        vec![7],
        vec![3, 5],
        vec![2, 3, 40],
        vec![70, 3, 17],
        vec![2, 1, 3, 19],
        vec![1, 600, 2],
        vec![0, 4],
        vec![130, 20],
        vec![3, 2, 1300],
        vec![2, 3, 2, 310],
        vec![3, 2, 2, 320],
        vec![14, 2, 640],
    ] {
        let n: usize = shape.iter().product();
        let values: Vec<i64> = (0..n as i64).map(|i| i * i % 1009 - 400).collect();
        let dense = Tensor::from_slice(&values.iter().map(|v| *v as f32).collect::<Vec<_>>(), &shape).unwrap();
        let mut layouts = vec![dense.clone()];
        if shape.len() > 1 {
            // The same elements with the first two dims swapped in memory.
            layouts.push(dense.transpose(0, 1).unwrap().contiguous().unwrap().transpose(0, 1).unwrap());
        }
        for axes in subsets(shape.len()).filter(|a| !a.is_empty()) {
            let want: Vec<f32> = sums(&values, &shape, &axes).iter().map(|v| *v as f32).collect();
            let dims: Vec<i64> = axes.iter().map(|a| *a as i64).collect();
            for t in &layouts {
                for jit in [true, false] {
                    let p = Program::new(Rules::Torch);
                    let x = p.data("x", DType::F32, shape.as_slice());
                    // A reduction alone, one fused with its operand, and one whose operand is fetched as well.
                    let double = &x + &x;
                    let fetches = [
                        x.over(&dims).sum(),
                        (&x - 1.0 + 1.0).over(&dims).keepdim().sum(),
                        double.over(&dims).sum(),
                        double,
                    ];
                    let exe = Executor::builder().jit(jit).threads(3).build();
                    let out = exe.run(&p, feeds! { "x" => t }, &fetches).unwrap();
                    assert_eq!(out[0].to_vec::<f32>().unwrap(), want, "{shape:?} over {axes:?}");
                    assert_eq!(out[1].to_vec::<f32>().unwrap(), want, "{shape:?} over {axes:?}, fused");
                    let twice: Vec<f32> = want.iter().map(|v| 2.0 * v).collect();
                    assert_eq!(out[2].to_vec::<f32>().unwrap(), twice, "{shape:?} over {axes:?}, stored too");
                    assert_eq!(out[3].shape(), shape);
                    cases += 3;
                }
            }
        }
    }
    assert!(cases > 200, "{cases} cases");
}

#[test]
fn sums_have_the_same_bits_whatever_the_threads_and_modes() {
    let n = 300_001;
    let values: Vec<f32> = (0..n).map(|i| ((i * 2_654_435_761_u64) as u32) as f32 * 1e-9 - 2.0).collect();
    let x = Tensor::from_vec(values, [n as usize]).unwrap();
    let square = x.slice(0, 0, 299_000, 1).unwrap().reshape([299, 1000]).unwrap();
    let eager = Eager::new(Rules::Torch).tensor(&x);
    let want = (&eager * &eager).mean().result().unwrap().item::<f32>().unwrap();
    let rows = (Eager::new(Rules::Torch).tensor(&square) * 0.3).over([0]).sum().result().unwrap();
    let long =
        Tensor::from_vec((0..2_200_003).map(|i| (i % 7919) as f32 * 0.37 - 900.0).collect(), [2_200_003]).unwrap();
    let eager = Eager::new(Rules::Torch).tensor(&long);
    let want_long = [eager.over([]).sum(), (&eager * &eager).mean(), eager.amax()].map(|y| y.result().unwrap());
    for threads in [1, 2, 3, 8] {
        let exe = Executor::builder().threads(threads).build();
        let p = Program::new(Rules::Torch);
        let v = p.data("x", DType::F32, [None]);
        let out = exe.run(&p, feeds! { "x" => x }, [&(&v * &v).mean()]).unwrap();
        assert_eq!(out[0].item::<f32>().unwrap().to_bits(), want.to_bits(), "{threads} threads");
        // Long operands are read from alternate ends in successive runs.
        let ways = [&v.over([]).sum(), &(&v * &v).mean(), &v.amax()].map(|y| exe.prepare(&p, [y]).unwrap());
        for (way, want) in ways.iter().zip(&want_long) {
            for _ in 0..3 {
                assert_eq!(way.run(&[&long]).unwrap()[0].as_bytes(), want.as_bytes(), "{threads} threads, long");
            }
        }
        let q = Program::new(Rules::Torch);
        let v = q.data("x", DType::F32, [None, None]);
        let out = exe.run(&q, feeds! { "x" => square }, [&(&v * 0.3).over([0]).sum()]).unwrap();
        assert_eq!(out[0].as_bytes(), rows.as_bytes(), "{threads} threads, over rows");
    }
}

/// Sums of rows of many lengths in compiled loops. The lengths are near those at which rows are joined, fill the lanes,
/// or are split into columns or parts. The operands are of each kind, and in some cases elementwise results are stored
/// too.
#[test]
fn sums_of_rows_have_the_bits_of_single_ops() {
    let fill = |n: usize, k: usize| (0..n).map(move |i| ((i * 7919 + k * 104_729) % 4001) as f64 / 1000.0 - 2.0);
    for length in [1, 7, 63, 64, 65, 127, 128, 129, 192, 200, 256, 257, 320, 513, 1000, 4096, 5000, 8192, 8200] {
        for rows in [1, 2, 3, 40, 71].into_iter().filter(|rows| rows * length <= 70_000) {
            for dtype in [DType::F32, DType::F64, DType::BF16] {
                let tensor = |k: usize, shape: [usize; 2]| {
                    let values = Tensor::from_vec(fill(shape[0] * shape[1], k).collect(), shape).unwrap();
                    Eager::new(Rules::Torch).tensor(&values).cast(dtype).result().unwrap()
                };
                let feeds = [tensor(0, [rows, length]), tensor(1, [rows, 1]), tensor(2, [1, length])];
                fn sums<M: castwise::Mode>(x: &Var<M>, m: &Var<M>, w: &Var<M>) -> Vec<Var<M>> {
                    let (q, stored) = (x - m, x * w - m);
                    let along = |v: &Var<M>| v.over([-1]).keepdim().sum();
                    vec![along(&(&q * &q)), along(&(x * w + w)), (x * 0.5).over([-1]).mean(), along(&stored), stored]
                }
                let [x, m, w] = feeds.each_ref().map(|t| Eager::new(Rules::Torch).tensor(t));
                let want: Vec<Tensor> = sums(&x, &m, &w).into_iter().map(|y| y.result().unwrap()).collect();
                let p = Program::new(Rules::Torch);
                let dims: [&[Option<usize>]; 3] = [&[None, None], &[None, Some(1)], &[Some(1), None]];
                let [x, m, w] = [0, 1, 2].map(|k| p.data(["x", "m", "w"][k], dtype, dims[k]));
                let fetches = sums(&x, &m, &w);
                for threads in [1, 3] {
                    let exe = Executor::builder().threads(threads).build();
                    let fed = feeds! { "x" => feeds[0], "m" => feeds[1], "w" => feeds[2] };
                    let got = exe.run(&p, fed, &fetches).unwrap();
                    for (k, (got, want)) in got.iter().zip(&want).enumerate() {
                        assert_eq!(
                            got.as_bytes(),
                            want.as_bytes(),
                            "[{rows}, {length}] of {dtype}, fetch {k}, {threads}"
                        );
                    }
                }
            }
        }
    }
}

/// Builds fetches from a tensor and the dims to reduce.
type Sums = fn(&Var, &[i64]) -> Vec<Var>;

#[test]
fn sums_beside_and_behind_block_steps_have_the_bits_of_single_ops() {
    for d in [DType::F32, DType::F64] {
        for shape in [
            [1, 5],
            [1, 511],
            [1, 70_001],
            [3, 63],
            [40, 100],
            [130, 64],
            [9, 256],
            [5, 257],
            [7, 5000],
            [2700, 3],
            [600, 16],
            [300, 40],
        ] {
            let n = shape[0] * shape[1];
            let x = Tensor::from_vec((0..n).map(|i| (i * 7919 % 1009) as f32 * 0.003 - 1.5).collect(), shape).unwrap();
            let x = Eager::new(Rules::Torch).tensor(&x).cast(d).result().unwrap();
            // One loop with few or many instructions, and several loops around kernel steps; sums in a single loop, in
            // the first or in the last one, beside other reductions and a stored result.
            let cases: [Sums; 6] = [
                |x, dims| vec![(x.sigmoid() * x).over(dims).mean()],
                |x, dims| vec![x.sin().over(dims).dtype(DType::F64).sum(), x.tanh().over(dims).sum()],
                |x, dims| vec![(x * x + 0.5).over(dims).sum()],
                |x, dims| vec![((x * 2.0).asinh() - x).over(dims).mean()],
                |x, dims| vec![(x * 3.0).over(dims).sum(), ((x * 3.0).atan() * x).over(dims).amax()],
                |x, dims| {
                    let y = (x + 1.0).erf() * x;
                    vec![y.over(dims).sum(), (&y - 1.0).over(dims).mean(), (&y * 2.0).over(dims).amin(), y.cbrt()]
                },
            ];
            for (case, make) in cases.iter().enumerate() {
                for dims in [&[1][..], &[0, 1], &[0]] {
                    let p = Program::new(Rules::Torch);
                    let fetches = make(&p.data("x", d, [None, None]), dims);
                    let run = |e: Executor| e.run(&p, feeds! { "x" => x }, &fetches).unwrap();
                    let want = run(Executor::builder().jit(false).threads(1).build());
                    for threads in [1, 3] {
                        for (got, want) in run(Executor::builder().threads(threads).build()).iter().zip(&want) {
                            assert_eq!(got.as_bytes(), want.as_bytes(), "case {case} over {dims:?} of {d}{shape:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn long_f32_sums_stay_accurate() {
    // Multiples of a small number, whose exact sum is known.
    let n = 1usize << 22;
    let x = Tensor::from_vec((0..n).map(|i| (i % 1000) as f32 * 0.125).collect(), [n]).unwrap();
    let exact: f64 = (0..n).map(|i| (i % 1000) as f64 * 0.125).sum();
    for shape in [vec![n], vec![1 << 16, 64]] {
        let t = x.reshape(&shape).unwrap();
        let sum = Eager::new(Rules::Torch).tensor(&t).over([0]).sum().over([]).sum().result().unwrap();
        let sum = Eager::new(Rules::Torch).tensor(&sum).sum().result().unwrap();
        let error = (f64::from(sum.item::<f32>().unwrap()) - exact).abs() / exact;
        assert!(error < 1e-6, "{shape:?}: relative error {error:e}");
    }
}

#[test]
fn nothing_reduces_to_the_neutral_element_or_is_refused() {
    let empty = Tensor::zeros(DType::F32, [0, 3]).unwrap();
    let run = |op: Op, dims: &[i64]| {
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::F32, [None, Some(3)]);
        let y = match op {
            Op::Sum => x.over(dims).sum(),
            Op::Prod => x.over(dims).prod(),
            Op::Mean => x.over(dims).mean(),
            _ => x.over(dims).amax(),
        };
        Executor::new().run(&p, feeds! { "x" => empty }, [&y]).map(|mut all| all.remove(0))
    };
    assert_eq!(run(Op::Sum, &[0]).unwrap().to_vec::<f32>().unwrap(), [0.0; 3]);
    assert_eq!(run(Op::Prod, &[0, 1]).unwrap().to_vec::<f32>().unwrap(), [1.0]);
    assert!(run(Op::Mean, &[0]).unwrap().to_vec::<f32>().unwrap().iter().all(|v| v.is_nan()));
    assert_eq!(run(Op::Sum, &[1]).unwrap().shape(), [0]);
    assert_eq!(run(Op::Amax, &[1]).unwrap().shape(), [0]);
    assert!(run(Op::Amax, &[0]).unwrap_err().to_string().contains("amax"));
    // The eager function returns the error too.
    let operand = castwise::Operand::Var(Eager::new(Rules::Torch).tensor(&empty));
    assert!(apply(Op::Amin, &[operand], Default::default()).result().is_err());
}

#[test]
fn a_softmax_is_the_same_in_both_modes() {
    fn softmax<M: Mode>(x: &Var<M>) -> Var<M> {
        let e = (x - x.over([-1]).keepdim().amax()).exp();
        &e / e.over([-1]).keepdim().sum()
    }
    for columns in [5, 100, 1500] {
        let values = (0..30 * columns).map(|i| ((i * 37 % 101) as f32) * 0.1 - 5.0).collect();
        let t = Tensor::from_vec(values, [30, columns]).unwrap();
        let eager = softmax(&Eager::new(Rules::Torch).tensor(&t)).result().unwrap();
        let p = Program::new(Rules::Torch);
        let out =
            Executor::new().run(&p, feeds! { "x" => t }, [&softmax(&p.data("x", DType::F32, [None, None]))]).unwrap();
        assert_eq!(out[0].as_bytes(), eager.as_bytes(), "{columns} columns");
    }
}

/// Reductions over the first dim of what is computed.
fn columns_of<M: Mode>([x, y, w]: &[Var<M>; 3]) -> [Var<M>; 4] {
    let computed = x * y - w;
    let over = |v: &Var<M>| v.over([0]).sum();
    [over(&computed), computed.over([0]).amax(), over(&(x * x)), (x + y).over([0]).mean()]
}

/// What segments add to the sums of columns while they compute it has the bits of a sum of the stored operand, whatever is reduced
/// beside it: random bits, NaNs included, of rows in and out of place, in tiles and groups that end anywhere.
#[test]
fn sums_over_the_first_dim_are_those_of_stored_operands() {
    at_every_level("reductions::sums_over_the_first_dim_are_those_of_stored_operands", || {
        let (mut random, exe, cx) = (Random(23), Executor::builder().threads(2).build(), Eager::new(Rules::Torch));
        for (rows, columns) in [(1, 64), (3, 65), (64, 512), (65, 513), (130, 700), (129, 2000), (200, 100)] {
            for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
                let x = random_tensor(dtype, &[rows, columns], &mut random, false);
                let y = random_tensor(dtype, &[rows, 1], &mut random, false);
                let w = random_tensor(dtype, &[columns], &mut random, false);
                let swapped = x.transpose(0, 1).unwrap().contiguous().unwrap().transpose(0, 1).unwrap();
                for x in [&x, &swapped] {
                    let want = columns_of(&[x, &y, &w].map(|t| cx.tensor(t)));
                    let p = Program::new(Rules::Torch);
                    let names = [("x", x), ("y", &y), ("w", &w)];
                    let results = columns_of(&names.map(|(name, t)| p.data(name, dtype, t.shape())));
                    for some in [0..4, 0..1, 2..3, 2..4] {
                        let feeds = names.map(|(name, t)| (name, t.clone()));
                        let got = exe.run(&p, feeds, &results[some.clone()]).unwrap();
                        for ((got, want), i) in got.iter().zip(&want[some.clone()]).zip(some) {
                            let case = || format!("result {i} of {dtype}, {rows} rows of {columns}, {:?}", x.strides());
                            assert_same_bits(got, &want.result().unwrap(), &case);
                        }
                    }
                }
            }
        }
    });
}
