//! The bytes of results do not depend on threads, compiled loops, the memory pool, tiles, compiler passes, the CPU
//! level, or the caller's floating-point mode.

use std::process::Command;

#[cfg(target_arch = "x86_64")]
use castwise::f16;
use castwise::ops::Op;
use castwise::prelude::*;
use castwise::{Attrs, Complex, Limit, Limits, Pass};

#[cfg(target_arch = "x86_64")]
use crate::common::modes::{MODES, in_mode};
use crate::common::{Random, random_tensor};

/// The computed results, by name.
type Results = Vec<(String, Vec<u8>)>;

fn bytes(t: &Tensor) -> Vec<u8> {
    t.contiguous().unwrap().as_bytes().unwrap().to_vec()
}

/// Programs over many elements: chains, mixed dtypes, broadcasts, and reductions over rows, columns and all elements.
struct Large {
    program: Program,
    fetches: Vec<Var>,
    feeds: Vec<(&'static str, Tensor)>,
}

fn large() -> Large {
    let p = Program::new(Rules::Torch);
    let mut r = Random(5);
    let shape = [211, 1423];
    let mut feeds = Vec::new();
    let mut feed = |name, d, shape: &[usize]| {
        feeds.push((name, random_tensor(d, shape, &mut r, true)));
        p.data(name, d, castwise::shape::Dims::from(shape))
    };
    let (a, b) = (feed("a", DType::F32, &shape), feed("b", DType::F64, &shape));
    let (h, i) = (feed("h", DType::F16, &shape), feed("i", DType::I32, &shape));
    let (row, column) = (feed("row", DType::F32, &[1423]), feed("column", DType::BF16, &[211, 1]));
    let c = feed("c", DType::C64, &shape);
    let chain = (&a * &row + 0.1).exp() / (&a * &a + 1.0).sqrt() - &column;
    let wide = (&b * 0.3).sin() + &a;
    let half = (&h + &column) * 0.7;
    let integers = i.floor_divide(7) * &i - i.remainder(&i);
    let complex = &c * &c + Complex::new(0.1f32, -3.0);
    let centred = &a - a.over([1]).keepdim().mean();
    // Constants that can be folded, in which the last bit of a scalar matters, and common subexpressions.
    let constant = p.constant(random_tensor(DType::F16, &[1423], &mut r, true));
    let folded = (&constant * 0.1 + 1.0 / 3.0).sin() * &h + (&constant * 0.1 + 1.0 / 3.0).sin() * 1e-3;
    let powers = (&a * 0.7).exp() * (&a * 0.7).exp() + i.pow(3) - (&b * 16777217).cast(DType::F16);
    let mut fetches = vec![chain.clone(), wide.clone(), half.clone(), integers.clone(), complex, centred];
    fetches.extend([folded, powers]);
    for x in [&chain, &wide, &half] {
        let (rows, columns) = (x.over([1]), x.over([0]));
        fetches.extend([x.sum(), x.mean(), x.amax(), rows.sum(), columns.mean(), columns.sum()]);
    }
    fetches.extend([integers.sum(), integers.over([0]).sum()]);
    Large { program: p, fetches, feeds }
}

impl Large {
    fn run(&self, exe: &Executor) -> Results {
        let made = exe.run(&self.program, self.feeds.clone(), &self.fetches).unwrap();
        made.iter().enumerate().map(|(i, t)| (format!("result {i} of\n{}", self.program), bytes(t))).collect()
    }
}

/// Every op in every dtype, each in its own program.
fn every_op(exe: &Executor) -> Results {
    let mut all = Vec::new();
    for op in Op::ALL.iter().copied() {
        for d in DType::ALL {
            let (p, cx, mut r) = (Program::new(Rules::Torch), Eager::new(Rules::Torch), Random(d as u64));
            let mut feeds = Vec::new();
            let (mut lazy, mut eager): (Vec<castwise::Operand<castwise::Graph>>, Vec<castwise::Operand<Eager>>) =
                Default::default();
            for i in 0..op.arity() {
                if i + op.def().parameters() >= op.arity() {
                    lazy.push(3.into());
                    eager.push(3.into());
                    continue;
                }
                let of = if op == Op::Where && i == 0 { DType::Bool } else { d };
                let mut t = random_tensor(of, &[3, 343], &mut r, true);
                // It refuses negative exponents.
                if op == Op::PowChecked && i == 1 && d.category() == castwise::Category::Int {
                    t = cx.tensor(&t).bitwise_and(7).result().unwrap();
                }
                lazy.push(p.data(&format!("x{i}"), of, [3, 343]).into());
                eager.push(cx.tensor(&t).into());
                feeds.push((format!("x{i}"), t));
            }
            let attrs = if matches!(op, Op::Cast | Op::ViewAs) { Attrs::cast(DType::F16) } else { Attrs::default() };
            let y = castwise::apply(op, &lazy, attrs.clone());
            if p.check().is_err() {
                continue;
            }
            let fused = exe.run(&p, feeds, [&y]).unwrap();
            let alone = castwise::apply(op, &eager, attrs).result().unwrap();
            assert_eq!(bytes(&fused[0]), bytes(&alone), "eager differs from\n{p}");
            all.push((format!("{op} in {d}"), bytes(&fused[0])));
        }
    }
    all
}

fn assert_same(a: &Results, b: &Results, case: &str) {
    assert_eq!(a.len(), b.len(), "{case}");
    for ((name, x), (_, y)) in a.iter().zip(b) {
        let at = x.iter().zip(y).position(|(x, y)| x != y);
        assert!(x == y, "{case}: byte {at:?} differs of {name}");
    }
}

#[test]
fn threads_code_and_pool_do_not_matter() {
    let large = large();
    let base = large.run(&Executor::builder().threads(1).jit(false).pool(0).build());
    for threads in [1, 2, 3, 8] {
        for (jit, pool) in [(true, 0), (true, 1 << 30), (false, 1 << 30)] {
            let exe = Executor::builder().threads(threads).jit(jit).pool(pool).build();
            for run in ["first", "second"] {
                assert_same(&base, &large.run(&exe), &format!("{run} run, {threads} threads, jit {jit}, pool {pool}"));
            }
        }
    }
}

#[test]
fn fusion_does_not_matter() {
    // If only one result is fetched, less is fused, and values that are both fetched and used change where kernels end.
    let large = large();
    let exe = Executor::builder().threads(1).build();
    let base = large.run(&exe);
    for (i, v) in large.fetches.iter().enumerate() {
        let alone = exe.run(&large.program, large.feeds.clone(), [v]).unwrap();
        assert!(bytes(&alone[0]) == base[i].1, "{} is another one alone", base[i].0);
    }
}

/// The numbers of kernels, steps and constants in the program's plan.
fn counted(large: &Large, exe: &Executor) -> [usize; 3] {
    let text = exe.kernels(&large.program, &large.fetches).unwrap();
    ["kernel {\n", " = ", " = const "].map(|part| text.matches(part).count())
}

#[test]
fn passes_do_not_matter() {
    let large = large();
    let with = |out: &[Pass], jit| {
        let all = Executor::builder().threads(1).jit(jit);
        out.iter().fold(all, |b, pass| b.without(*pass)).build()
    };
    let base = large.run(&with(&[], true));
    let [kernels, steps, constants] = counted(&large, &with(&[], true));
    for jit in [true, false] {
        for out in
            [&[Pass::Fusion][..], &[Pass::Merging], &[Pass::Folding], &[Pass::Reuse], &[Pass::Recomputing], &Pass::ALL]
        {
            assert_same(&base, &large.run(&with(out, jit)), &format!("without {out:?}, jit {jit}"));
        }
    }
    // Each pass is really left out. (A test of `schedule` checks `Reuse`.)
    let now = counted(&large, &with(&[Pass::Fusion], true));
    assert!(now[0] > 2 * kernels, "{now:?}");
    let now = counted(&large, &with(&[Pass::Merging], true));
    assert!(now[0] == kernels && now[1] > steps, "{now:?}");
    let now = counted(&large, &with(&[Pass::Folding], true));
    assert!(now[1] > steps + 10 && now[2] >= constants, "{now:?}");
    let ops = every_op(&with(&[], true));
    assert_same(&ops, &every_op(&with(&Pass::ALL, true)), "every op without passes");
}

#[test]
fn tiles_do_not_matter() {
    let large = large();
    let base = large.run(&Executor::builder().threads(1).build());
    let ops = every_op(&Executor::builder().threads(1).build());
    for (tile, jit, threads) in
        [(1, true, 2), (7, false, 1), (7, true, 3), (100, true, 2), (100, false, 2), (512, false, 3)]
    {
        let exe = Executor::builder().tile(tile).jit(jit).threads(threads).build();
        let case = format!("tiles of {tile}, jit {jit}, {threads} threads");
        assert_same(&base, &large.run(&exe), &case);
        assert_same(&ops, &every_op(&exe), &case);
    }
}

#[test]
fn where_kernels_are_cut_does_not_matter() {
    let large = large();
    let with = |ops: u64, steps: u64, jit: bool| {
        let limits =
            Limits::new().with(Limit::KernelOps, ops).and_then(|l| l.with(Limit::FunctionSteps, steps)).unwrap();
        Executor::builder().threads(2).jit(jit).limits(limits).build()
    };
    let whole = with(u64::from(u32::MAX), 192, true);
    let (base, ops) = (large.run(&whole), every_op(&whole));
    let mut before = usize::MAX;
    for (most, steps, jit) in
        [(1, 1, true), (2, 192, true), (3, 2, false), (5, 3, true), (8, 512, true), (20, 1, true), (60, 0, true)]
    {
        let exe = with(most, steps, jit);
        let case = format!("kernels of {most} ops, functions of {steps} steps, jit {jit}");
        assert_same(&base, &large.run(&exe), &case);
        assert_same(&ops, &every_op(&exe), &case);
        let [kernels, ..] = counted(&large, &exe);
        assert!(kernels <= before && (most > 20 || kernels > counted(&large, &whole)[0]), "{case}: {kernels} kernels");
        before = kernels;
    }
}

/// Runs in the child: writes the bytes of all results to the file that the variable names.
#[test]
fn child_that_writes_results() {
    let Some(path) = std::env::var_os("CASTWISE_TEST_RESULTS") else { return };
    let mut out = Vec::new();
    let exe = Executor::builder().threads(2).build();
    for (name, bytes) in large().run(&exe).into_iter().chain(every_op(&exe)) {
        out.extend_from_slice(name.lines().next().unwrap().as_bytes());
        out.push(b'\n');
        out.extend_from_slice(&bytes);
    }
    std::fs::write(path, out).unwrap();
}

#[test]
fn the_level_of_the_cpu_does_not_matter() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut all = Vec::new();
    for level in ["baseline", "avx2", "avx512"] {
        let path = dir.join(format!("one-value-{level}"));
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "one_value::child_that_writes_results", "--nocapture"])
            .env("CASTWISE_TEST_RESULTS", &path)
            .env("CASTWISE_CPU", level)
            .output()
            .unwrap();
        assert!(child.status.success(), "{level}: {}", String::from_utf8_lossy(&child.stderr));
        all.push((level, std::fs::read(&path).unwrap()));
        std::fs::remove_file(path).unwrap();
    }
    for (level, bytes) in &all[1..] {
        let at = all[0].1.iter().zip(bytes).position(|(a, b)| a != b);
        assert!(all[0].1 == *bytes, "{level} differs from the baseline at byte {at:?}");
    }
    assert!(all[0].1.len() > 10_000_000);
}

/// Results that another rounding mode, or flushing subnormals to zero, would change: of kernels on this thread and on
/// others, of constants in programs and texts, and of the divisions in means.
#[cfg(target_arch = "x86_64")]
fn delicate(large: &Large) -> Results {
    let mut all = Vec::new();
    for threads in [1, 3] {
        for jit in [true, false] {
            all.extend(large.run(&Executor::builder().threads(threads).jit(jit).build()));
        }
    }
    let x = Tensor::from_slice(&[1e-40f32, 1.0, 3.0, 1e-45, -7.7e-39, f32::MIN_POSITIVE, 0.1], [7]).unwrap();
    let v = Eager::new(Rules::Torch).tensor(&x);
    let t = |name: &str, v: Var<Eager>| (name.to_string(), bytes(&v.result().unwrap()));
    all.extend([t("scaled", &v * 0.5), t("third", &v / 3.0), t("mean", v.mean()), t("exp", v.exp())]);
    all.extend([t("half", v.cast(DType::F16)), t("wide", v.cast(DType::F64) * 0.1), t("sqrt", v.sqrt())]);
    let p = Program::new(Rules::Torch);
    p.data("x", DType::F32, [7]);
    // The constants are neither ties nor short decimals, and they are rounded twice before they are used.
    let y = p.expression("x * (1 / 3) + 0.1 * 1e-20 * 1e-20 + 123456789.123456789").unwrap();
    let k = p.constant(x.clone()) / 3.0 + Scalar::Float(1.0 / 3.0);
    for exe in [Executor::new(), Executor::builder().jit(false).build()] {
        let made = exe.run(&p, feeds! { "x" => &x }, [&y, &k]).unwrap();
        all.extend(made.iter().map(|t| ("constants".to_string(), bytes(t))));
    }
    let h = Tensor::full([5], f16::from_f32(0.1)).unwrap();
    all.push(t("relaxed mean", Eager::new(Rules::Torch).tensor(&h).mean()));
    all
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_callers_floating_point_mode_does_not_matter() {
    let large = large();
    let base = delicate(&large);
    for mode in MODES {
        // A separate thread, so that its mode does not remain set after a failure.
        let result = std::thread::scope(|s| s.spawn(|| in_mode(mode, || delicate(&large))).join().unwrap());
        assert_same(&base, &result, &format!("mode {mode:#x}"));
    }
}

/// Runs in the child: the first run of the process, which starts the pool threads, is in a nonstandard mode; later runs
/// are not.
#[cfg(target_arch = "x86_64")]
#[test]
fn child_whose_first_run_is_in_a_strange_mode() {
    if std::env::var_os("CASTWISE_TEST_CHILD").is_none() {
        return;
    }
    let large = large();
    let exe = Executor::builder().threads(8).build();
    let first = in_mode(0xffc0, || large.run(&exe));
    (0..20).for_each(|i| assert_same(&first, &large.run(&exe), &format!("run {i} after the first")));
    assert_same(&first, &large.run(&Executor::builder().threads(1).build()), "one thread");
    println!("the same");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn threads_that_are_started_in_a_strange_mode_compute_in_the_standard_one() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "one_value::child_whose_first_run_is_in_a_strange_mode", "--nocapture"])
        .env("CASTWISE_TEST_CHILD", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && text.contains("the same"), "{text}");
}
