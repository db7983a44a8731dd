//! `amax`, `amin`, and sums over leading dims, compared with plain loops: for every length at which reductions are
//! split differently, with NaNs and zeros of both signs anywhere, in every dtype, layout and mode.

use castwise::prelude::*;

use crate::common::Random;

/// `[outer, count, width]`, whose middle dim is reduced. The lengths are near those of lanes, tiles, groups and joined
/// rows.
const SHAPES: [[usize; 3]; 35] = [
    [1, 1, 2],
    [3, 1, 7],
    [2, 2, 2],
    [40, 2, 3],
    [300, 3, 5],
    [5, 9, 8],
    [3, 64, 8],
    [3, 65, 8],
    [2, 84, 3],
    [2, 170, 3],
    [1, 171, 3],
    [1, 1344, 3],
    [2, 1345, 3],
    [1, 5000, 2],
    [2, 300, 15],
    [70, 16, 16],
    [2, 256, 16],
    [1, 1025, 17],
    [3, 129, 32],
    [1, 400, 33],
    [3, 64, 63],
    [2, 65, 64],
    [1, 200, 65],
    [2, 5, 100],
    [1, 131, 255],
    [2, 3, 256],
    [1, 70, 257],
    [2, 66, 600],
    [20, 2, 640],
    [9, 15, 1],
    [3, 16, 1],
    [7, 256, 1],
    [5, 257, 1],
    [3, 513, 1],
    [2, 9000, 1],
];

fn tensor(values: &[f64], shape: [usize; 3], dtype: DType) -> Tensor {
    let x = Tensor::from_slice(values, shape).unwrap();
    Eager::new(Rules::Torch).tensor(&x).cast(dtype).result().unwrap()
}

/// The layouts of a tensor: contiguous, with permuted dims, reversed, and with gaps.
fn layouts(values: &[f64], shape: [usize; 3], dtype: DType) -> Vec<Tensor> {
    let x = tensor(values, shape, dtype);
    let swapped = |a, b| x.transpose(a, b).unwrap().contiguous().unwrap().transpose(a, b).unwrap();
    let backwards = x.flip(1).unwrap().contiguous().unwrap().flip(1).unwrap();
    let [outer, count, width] = shape;
    let doubled: Vec<f64> = values.iter().flat_map(|v| [*v, 3e3]).collect();
    let gaps = tensor(&doubled, [outer, count, 2 * width], dtype).slice(2, 0, 2 * width, 2).unwrap();
    vec![x.clone(), swapped(1, 2), swapped(0, 1), backwards, gaps]
}

/// The reduction of each column by a plain loop over the middle dim.
fn columns<T: Copy>(values: &[f64], shape: [usize; 3], start: T, combine: impl Fn(T, f64) -> T) -> Vec<T> {
    let [outer, count, width] = shape;
    let column = |o: usize, i: usize| (0..count).map(move |k| values[(o * count + k) * width + i]);
    let fold = |o, i| column(o, i).fold(start, &combine);
    (0..outer).flat_map(|o| (0..width).map(move |i| (o, i))).map(|(o, i)| fold(o, i)).collect()
}

/// The larger of two numbers: NaN if either is, and +0 is larger than -0.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a == b {
        f64::from_bits(a.to_bits() & b.to_bits())
    } else if a > b {
        a
    } else {
        b
    }
}

/// Reduces a tensor in eager mode and compiled, alone and after other ops, on several threads. All results must have
/// the same bits.
fn all_modes(x: &Tensor, what: &str, eager: Var<Eager>, lazy: impl Fn(&Var) -> Var) -> Tensor {
    let want = eager.result().unwrap();
    let p = Program::new(Rules::Torch);
    let v = p.data("x", x.dtype(), [None, None, None]);
    let fetches = [lazy(&v), lazy(&-(-&v))];
    for threads in [1, 3] {
        for jit in [true, false] {
            let exe = Executor::builder().threads(threads).jit(jit).build();
            for (got, way) in exe.run(&p, feeds! { "x" => x }, &fetches).unwrap().iter().zip(["bare", "fused"]) {
                let shape = x.shape();
                assert_eq!(
                    got.as_bytes(),
                    want.as_bytes(),
                    "{what} of {}{shape:?}, {way}, {threads} threads",
                    x.dtype()
                );
            }
        }
    }
    want
}

#[test]
fn the_largest_and_the_smallest_element_are_those_of_plain_loops() {
    let mut r = Random(1);
    for shape in SHAPES {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::U8] {
            // Numbers of one sign with many, few or no zeros of both signs and NaNs among them.
            for (odd, sign) in [(0, 1.0), (0, -1.0), (2, 1.0), (2, -1.0), (40, -1.0), (1000, 1.0)] {
                let n = shape.iter().product();
                let one = |_| {
                    let odds = [0.0, -0.0, 0.0, -0.0, f64::NAN];
                    if odd > 0 && r.index(odd) == 0 { odds[r.index(5)] } else { sign * (1 + r.index(100)) as f64 }
                };
                let values: Vec<f64> = if dtype.is_float() {
                    (0..n).map(one).collect()
                } else {
                    (0..n).map(|_| r.index(256) as f64).collect()
                };
                let kept = [shape[0], shape[2]];
                let bits = |all: Vec<f64>| {
                    let t = Tensor::from_vec(all, kept).unwrap();
                    Eager::new(Rules::Torch).tensor(&t).cast(dtype).result().unwrap().as_bytes().unwrap().to_vec()
                };
                let largest = bits(columns(&values, shape, f64::NEG_INFINITY, larger));
                let smallest = bits(columns(&values, shape, f64::INFINITY, |a, b| {
                    // The negation does not change the sign of a NaN.
                    let least = -larger(-a, -b);
                    if least.is_nan() { f64::NAN } else { least }
                }));
                for x in layouts(&values, shape, dtype) {
                    let e = Eager::new(Rules::Torch).tensor(&x);
                    let what = format!("amax, {odd} {sign}, strides {:?}", x.strides());
                    let got = all_modes(&x, &what, e.over([1]).amax(), |x| x.over([1]).amax());
                    assert_eq!(got.as_bytes().unwrap(), largest, "{what} {dtype}{shape:?}");
                    let got = all_modes(&x, &what, e.over([1]).amin(), |x| x.over([1]).amin());
                    assert_eq!(got.as_bytes().unwrap(), smallest, "amin, {what} {dtype}{shape:?}");
                }
            }
        }
    }
}

#[test]
fn sums_and_products_over_a_dim_in_front_are_those_of_plain_loops() {
    let mut r = Random(2);
    for shape in SHAPES {
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::I32, DType::U8, DType::C64, DType::C128] {
            let n = shape.iter().product();
            // Small integers, whose sum is exact in every order, and signs for products.
            let values: Vec<f64> =
                (0..n).map(|_| r.index(5) as f64 * if dtype == DType::BF16 { 0.0625 } else { 1.0 }).collect();
            // (For complex numbers, the signs of zeros in products depend on more than the signs of the factors.)
            let signed = !dtype.is_complex() && dtype != DType::U8;
            let factor = |r: &mut Random| match r.index(200) {
                0 => 2.0,
                i if signed && i % 2 == 0 => -1.0,
                _ => 1.0,
            };
            let signs: Vec<f64> = (0..n).map(|_| factor(&mut r)).collect();
            let sums = columns(&values, shape, 0.0, |a, b| a + b);
            let products = columns(&signs, shape, 1.0, |a, b| a * b);
            // `any` and `all` of bool, and of u8 as in PyTorch.
            let truth = |b: f64| if b == 0.0 { 0.0 } else { 1.0 };
            let any = columns(&values, shape, 0.0, |a: f64, b| a.max(truth(b)));
            let all = columns(&values, shape, 1.0, |a: f64, b| a.min(truth(b)));
            let same = |got: Tensor, want: &[f64], what: &str| {
                let want = Tensor::from_slice(want, [shape[0], shape[2]]).unwrap();
                let want = Eager::new(Rules::Torch).tensor(&want).cast(got.dtype()).result().unwrap();
                assert_eq!(got.as_bytes(), want.as_bytes(), "{what} {dtype}{shape:?}");
            };
            for (x, y) in layouts(&values, shape, dtype).into_iter().zip(layouts(&signs, shape, dtype)) {
                let (e, f) = (Eager::new(Rules::Torch).tensor(&x), Eager::new(Rules::Torch).tensor(&y));
                same(all_modes(&x, "sum", e.over([1]).sum(), |x| x.over([1]).sum()), &sums, "sum");
                same(all_modes(&y, "prod", f.over([1]).prod(), |x| x.over([1]).prod()), &products, "prod");
                same(all_modes(&x, "any", e.over([1]).any(), |x| x.over([1]).any()), &any, "any");
                same(all_modes(&x, "all", e.over([1]).all(), |x| x.over([1]).all()), &all, "all");
            }
        }
    }
}

#[test]
fn sums_that_round_are_the_same_in_every_mode_and_layout() {
    let mut r = Random(3);
    for shape in SHAPES {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::C64] {
            let n = shape.iter().product();
            let values: Vec<f64> = (0..n).map(|_| r.index(1 << 20) as f64 * 1e-5 - 5.0).collect();
            for dims in [&[1][..], &[0, 2]] {
                let mut first: Option<Tensor> = None;
                for x in layouts(&values, shape, dtype) {
                    let e = Eager::new(Rules::Torch).tensor(&x);
                    let got = all_modes(&x, "sum", e.over(dims).sum(), |x| x.over(dims).sum());
                    let mean = all_modes(&x, "mean", e.over(dims).mean(), |x| x.over(dims).mean());
                    assert_eq!(mean.shape(), got.shape());
                    let want = first.get_or_insert_with(|| got.clone());
                    let place = format!("over {dims:?}, strides {:?}", x.strides());
                    assert_eq!(got.as_bytes(), want.as_bytes(), "sum of {dtype}{shape:?} {place}");
                }
            }
        }
    }
}

type Reduce<V> = fn(&V, &[i64]) -> V;
type Both = (&'static str, Reduce<Var<Eager>>, Reduce<Var>);

/// Reductions of an input, and of values computed from it, in both modes.
const CHANNELS: [Both; 4] = [
    ("sum", |x, dims| x.over(dims).sum(), |x, dims| x.over(dims).sum()),
    ("any", |x, dims| x.over(dims).any(), |x, dims| x.over(dims).any()),
    ("amax", |x, dims| x.over(dims).amax(), |x, dims| x.over(dims).amax()),
    ("squares", |x, dims| (x * x).over(dims).sum(), |x, dims| (x * x).over(dims).sum()),
];

/// Reductions of each channel of a batch of images, `[images, channels, pixels]`. The sizes are near those from which
/// an image is reduced in place or added up, and those for which lanes begin inside an image.
#[test]
fn channels_of_a_batch_reduce_as_if_their_images_lay_one_behind_the_other() {
    let mut r = Random(4);
    for (images, pixels) in [
        (3, 511),
        (3, 512),
        (5, 513),
        (11, 784),
        (7, 1535),
        (2, 1536),
        (9, 1537),
        (4, 3249),
        (3, 8191),
        (2, 8200),
        (1, 999),
    ] {
        let shape = [images, 2, pixels];
        for dtype in [DType::F32, DType::F64, DType::F16, DType::I32, DType::U8, DType::C64] {
            let odd = |r: &mut Random| [f64::NAN, -0.0, 0.0, 7.0][r.index(4)];
            let values: Vec<f64> = (0..shape.iter().product())
                .map(|_| if r.index(997) == 0 { odd(&mut r) } else { r.index(1 << 20) as f64 * 1e-5 - 5.0 })
                .collect();
            let x = tensor(&values, shape, dtype);
            let cut = x.slice(2, 1, pixels, 1).unwrap();
            for x in [x, cut] {
                let rows = x.permute(&[1, 0, 2]).unwrap().contiguous().unwrap();
                let e = Eager::new(Rules::Torch);
                let (x_eager, dense) = (e.tensor(&x), e.tensor(&rows));
                for (what, eager, lazy) in CHANNELS {
                    if what == "amax" && dtype.is_complex() {
                        continue;
                    }
                    let got = all_modes(&x, what, eager(&x_eager, &[0, 2]), |x| lazy(x, &[0, 2]));
                    let want = eager(&dense, &[1, 2]).result().unwrap();
                    assert_eq!(got.as_bytes(), want.as_bytes(), "{what} of {dtype}{:?}", x.shape());
                }
            }
        }
    }
}
