//! Values that kernels compute again instead of reading them: no bit changes, no run takes more memory, and one-pass spherical
//! interpolation stores nothing but its result. Does not: test which values these are; `plan::fuse::tests` does.

use castwise::prelude::*;
use castwise::{Error, Pass};

use crate::common::{Random, assert_same_bits, random_tensor};

fn with() -> Executor {
    Executor::builder().threads(1).build()
}

fn without() -> Executor {
    Executor::builder().threads(1).without(Pass::Recomputing).build()
}

/// The spherical interpolation of two vectors of bf16 in f32, by one program: two norms, a product and the weighted sum.
fn slerp(p: &Program, t: f64) -> Var {
    let (x, y) = (p.data("x", DType::BF16, [None]).cast(DType::F32), p.data("y", DType::BF16, [None]).cast(DType::F32));
    let unit = |v: &Var| {
        let norm = (v * v).sum().sqrt();
        v / norm.gt(1e-8).where_(&norm, 1.0)
    };
    let cos = (unit(&x) * unit(&y)).sum().clamp(-1.0, 1.0);
    let angle = cos.acos();
    let (wx, wy) = ((&angle * (1.0 - t)).sin() / angle.sin(), (&angle * t).sin() / angle.sin());
    let (straight, round) = (&x * (1.0 - t) + &y * t, &wx * &x + &wy * &y);
    cos.abs().gt(0.9995).where_(&straight, &round).cast(DType::BF16)
}

fn same(a: &[Tensor], b: &[Tensor], case: &dyn Fn() -> String) {
    assert_eq!(a.len(), b.len(), "{}", case());
    a.iter().zip(b).for_each(|(a, b)| assert_same_bits(a, b, case));
}

#[test]
fn interpolation_of_halves_stores_its_result_alone() {
    let n = 10_000;
    let p = Program::new(Rules::Torch);
    let y = slerp(&p, 0.3);
    let halves = |seed| random_tensor(DType::BF16, &[n], &mut Random(seed), false);
    let feeds = || feeds! { "x" => halves(1), "y" => halves(2) };
    let plain = without().run(&p, feeds(), [&y]).unwrap();
    let case = || "interpolation".to_string();
    same(&with().run(&p, feeds(), [&y]).unwrap(), &plain, &case);
    // The result, and some sums and partial sums beside.
    let few = || Executor::builder().threads(1).max_bytes(2 * n + 2_000);
    same(&few().build().run(&p, feeds(), [&y]).unwrap(), &plain, &case);
    let stores = few().without(Pass::Recomputing).build().run(&p, feeds(), [&y]).unwrap_err();
    assert!(matches!(stores, Error::Limit { .. }), "{stores}");
    let text = with().kernels(&p, [&y]).unwrap();
    assert!(text.contains("computed again by kernel"), "{text}");
    assert_eq!(text.lines().filter(|l| l.contains(" = load in0") && l.contains("bf16")).count(), 3, "{text}");
}

#[test]
fn what_refuses_data_refuses_it_once_and_alike() {
    let p = Program::new(Rules::Torch);
    let (i, j) = (p.data("i", DType::I32, [None]), p.data("j", DType::I32, [None]));
    let quotient = (&i + 1).floor_divide(&j).cast(DType::F32);
    let y = &quotient - quotient.sum();
    let feeds = || feeds! { "i" => Tensor::from([1i32, 2]), "j" => Tensor::from([1i32, 0]) };
    let [a, b] = [with(), without()].map(|e| e.run(&p, feeds(), [&y]).unwrap_err().to_string());
    assert!(a == b && a.starts_with("integer division by zero"), "{a}\n{b}");
}

const DTYPES: [DType; 6] = [DType::BF16, DType::F16, DType::F32, DType::F64, DType::I32, DType::U8];

fn of(r: &mut Random, all: &[Var]) -> Var {
    all[r.index(all.len())].clone()
}

type Fed = Vec<(String, Tensor)>;

/// A program of several kernels that need values of each other, its feeds and its fetches.
fn program(r: &mut Random) -> (Program, Fed, Vec<Var>) {
    let p = Program::new(Rules::Torch);
    let dims = if r.below(2) == 0 { [None, None] } else { [Some(6), Some(7)] };
    let (mut all, mut feeds) = (Vec::new(), Fed::new());
    for (name, from) in [("x0", 0), ("x1", 0), ("x2", 0), ("row", 1)] {
        let dtype = r.pick(&DTYPES);
        all.push(p.data(name, dtype, dims[from..].to_vec()));
        feeds.push((name.into(), random_tensor(dtype, &[6, 7][from..], r, false)));
    }
    for _ in 0..4 + r.below(20) {
        let (a, b) = (of(r, &all), of(r, &all));
        let wide = all[0].clone();
        let made = match r.below(12) {
            0 | 1 => a.cast(r.pick(&DTYPES)),
            2 => &a + &b,
            3 => &a * &b,
            4 => a.neg() + &wide,
            5 => (a.cast(DType::F32) * 0.01).exp(),
            6 => &a - (&a + &wide).over([1]).keepdim().amax(),
            7 => &b + (&b + &wide).over([0]).keepdim().sum(),
            8 => &a + (&b + &wide).cast(DType::F64).mean(),
            9 => (&a + &wide).over([1]).cumsum(),
            10 => (&a + &wide).flip([1]),
            _ => a.lt(&b).where_(&a, &wide),
        };
        all.push(made);
    }
    let fetches = (0..1 + r.below(3)).map(|_| of(r, &all[4..])).collect();
    (p, feeds, fetches)
}

#[test]
fn random_programs_have_the_same_bits_and_take_no_more_memory() {
    let mut again = 0;
    for seed in 1..=400 {
        let mut r = Random(seed);
        let (p, feeds, fetches) = program(&mut r);
        let Ok(_) = p.infer() else { continue };
        let run = |e: &Executor| e.run(&p, feeds.clone(), &fetches);
        let text = with().kernels(&p, &fetches).unwrap();
        same(&run(&with()).unwrap(), &run(&without()).unwrap(), &|| format!("seed {seed}\n{p}{text}"));
        again += usize::from(text.contains("computed again by"));
        let within = |bytes: usize, passes: &[Pass]| {
            let builder = Executor::builder().threads(1).max_bytes(bytes);
            run(&passes.iter().fold(builder, |b, pass| b.without(*pass)).build()).is_ok()
        };
        // The least budget in which everything is stored is enough.
        let (mut low, mut high) = (0, 1 << 16);
        while low < high {
            let middle = (low + high) / 2;
            (low, high) = if within(middle, &[Pass::Recomputing]) { (low, middle) } else { (middle + 1, high) };
        }
        assert!(within(high, &[]), "seed {seed}: {high} bytes\n{p}\n{text}");
    }
    assert!(again > 80, "{again}");
}

/// With relaxed rounding, a kernel that computes a half gives its own steps the unrounded value: what these make is the same value in
/// every kernel.
#[test]
fn a_value_of_an_unrounded_half_is_one_value() {
    let p = Program::with_settings(Settings::new(Rules::Torch).with_rounding(castwise::Rounding::Relaxed));
    let (x, y) = (p.data("x", DType::F16, [300, 100]), p.data("y", DType::F16, [300, 100]));
    let half = &x * &y;
    let wide = half.cast(DType::F32);
    let most = (&wide - wide.over([1]).keepdim().amax()).amax();
    let scaled = &half * &most;
    // Products of normally distributed halves are rounded.
    let e = Eager::new(Rules::Torch);
    let of = |seed| {
        let zeros = e.tensor(&Tensor::zeros(DType::F32, [300, 100]).unwrap());
        zeros.normal(seed, None).cast(DType::F16).result().unwrap()
    };
    let feeds = || feeds! { "x" => of(3), "y" => of(4) };
    for fetches in [vec![&most], vec![&most, &half], vec![&most, &scaled]] {
        let found = with().run(&p, feeds(), fetches.clone()).unwrap()[0].to_vec::<f32>().unwrap()[0];
        assert_eq!(found, 0.0, "{} results", fetches.len());
    }
}
