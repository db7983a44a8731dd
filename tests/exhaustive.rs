//! All values of small dtypes, and samples of larger ones: eager and compiled results have the same bits, and agree
//! with the third evaluator (`tests/reference`).
//!
//! Guarantees: every unary op is tested on every f16, bf16 and u16 and, under JAX's rules, on every f8, every op of two
//! operands on every pair of u8, of i8 and of f8,
//! and every cast on every value of 8 and 16 bits. Pairs of f16 and bf16 (each `CASTWISE_HALVES`-th value of both, by
//! default each 61st), f32, f64, i32 and i64 are sampled in even steps. A test prints how many elements it checked, and
//! how many of them are so close to a tie that two results are accepted.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use castwise::prelude::*;
use castwise::{Attrs, Op};

use crate::common::{self, Random};
use crate::reference;
use crate::reference::format::{self, Beyond};
use crate::reference::program::{Given, Mismatch, Run, Tally};

/// Without optimization the evaluators are slow, so samples are smaller.
const THIN: usize = if cfg!(debug_assertions) { 5 } else { 1 };

/// An op and its operands.
struct Job {
    op: Op,
    attrs: Attrs,
    rules: Rules,
    operands: Vec<Tensor>,
}

impl Job {
    fn new(op: Op, operands: Vec<Tensor>) -> Job {
        Job { op, attrs: Attrs::default(), rules: Rules::Torch, operands }
    }

    /// Applies the op and checks all elements; `None` if the op does not take the dtypes.
    fn check(&self) -> Option<Tally> {
        let cx = Eager::new(self.rules);
        let operands: Vec<_> = self.operands.iter().map(|t| cx.tensor(t).into()).collect();
        let result = match castwise::apply(self.op, &operands, self.attrs.clone()).result() {
            Ok(t) => t,
            Err(e) if !e.diagnostics().is_empty() => return None,
            Err(e) => panic!("{}: {e}", self.op),
        };
        let program = Program::new(self.rules);
        let (mut vars, mut feeds) = (vec![], vec![]);
        for (i, t) in self.operands.iter().enumerate() {
            vars.push(program.data(&format!("x{i}"), t.dtype(), t.shape()).into());
            feeds.push((format!("x{i}"), t));
        }
        let var = castwise::apply(self.op, &vars, self.attrs.clone());
        let text = program.infer().unwrap().to_string();
        let compiled = common::EXECUTOR.with(|e| {
            let feeds: Vec<_> = feeds.iter().map(|(name, t)| (name.clone(), (*t).clone())).collect();
            e.run(&program, feeds, [&var]).unwrap()
        });
        common::assert_same_bits(&result, &compiled[0], &|| text.clone());
        let mut run = Run::new(&feeds, vec![]);
        match run.check(&text, &[Given { op: self.op, result: &result }]) {
            Ok(()) => Some(run.tally),
            Err(Mismatch::Wrong(m)) => panic!("{m}\n{text}"),
            Err(Mismatch::DividedByZero) => panic!("an integer is divided by zero\n{text}"),
        }
    }
}

/// Checks all jobs. Returns how many were accepted.
fn check(what: &str, jobs: &[Job]) -> usize {
    tally(what, jobs).0
}

/// Checks all jobs with one thread per core, and prints the totals. Returns how many were accepted.
fn tally(what: &str, jobs: &[Job]) -> (usize, Tally) {
    let (next, total) = (AtomicUsize::new(0), Mutex::new((0, Tally::default())));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(tally) = job.check() else { continue };
                    let mut total = total.lock().unwrap();
                    total.0 += 1;
                    total.1.exact += tally.exact;
                    total.1.bounded += tally.bounded;
                    total.1.open += tally.open;
                }
            });
        }
    });
    let (taken, t) = total.into_inner().unwrap();
    println!("{what}: {taken} of {} jobs taken; {} elements exact, {} between two", jobs.len(), t.exact, t.bounded);
    assert_eq!(t.open, 0, "real numbers are always checked");
    (taken, t)
}

/// The elements with these bits.
fn tensor(d: DType, shape: &[usize], bits: impl Iterator<Item = u64>) -> Tensor {
    let bytes: Vec<u8> = bits.flat_map(|b| b.to_le_bytes().into_iter().take(d.size())).collect();
    Tensor::from_bytes(d, shape, &bytes).unwrap()
}

/// Every value of a dtype of at most 16 bits.
fn every(d: DType) -> Tensor {
    let n = if d == DType::Bool { 2 } else { 1 << (8 * d.size()) };
    tensor(d, &[n as usize], 0..n)
}

/// `n` values in even steps through all bit patterns of a dtype, beginning with its extremes.
fn sample(d: DType, n: usize) -> Tensor {
    let step = ((u64::MAX >> (64 - 8 * d.size())) / n as u64) | 1;
    let ends = [0, 1, u64::MAX >> (64 - 8 * d.size()), 1 << (8 * d.size() - 1), (1 << (8 * d.size() - 1)) - 1];
    let rest = (0..n as u64).map(|i| i.wrapping_mul(step));
    tensor(d, &[n + ends.len()], ends.into_iter().chain(rest))
}

/// The ops of an arity that compute from elements.
fn ops(arity: usize) -> impl Iterator<Item = Op> {
    let elementwise = move |op: &Op| op.arity() == arity && !op.has_dims() && op.def().parameters() == 0;
    Op::ALL.iter().copied().filter(move |op| elementwise(op) && !matches!(op, Op::Cast | Op::ViewAs))
}

#[test]
fn every_half_through_every_unary_op() {
    // In all other cases only the exact result, correctly rounded, is accepted. 2^-25 and 2^-134, results of `exp2`,
    // are half of the smallest numbers of f16 and bf16, so an interval around them contains both neighbours. Below
    // 2^-125, `silu`, `gelu` and `gelu_tanh` are x / 2 in f64 and nearly that in exact arithmetic, which is a tie
    // between two subnormal bf16 for every second x.
    for (d, open) in [(DType::F16, 1), (DType::BF16, 1 + 3 * 256)] {
        let jobs: Vec<Job> = ops(1).map(|op| Job::new(op, vec![every(d)])).collect();
        let (taken, tally) = tally(d.name(), &jobs);
        // All ops but those on bits and on imaginary parts.
        assert_eq!(jobs.len() - taken, 2);
        assert_eq!(tally.bounded, open);
    }
}

/// Contiguous, every second element of a tensor, and in the other order.
#[test]
fn every_word_through_every_unary_op() {
    let twice = tensor(DType::U16, &[1 << 16, 2], (0..1 << 17).map(|i| i / 2));
    let layouts = [every(DType::U16), twice.slice(1, 1, 2, 1).unwrap(), every(DType::U16).flip(0).unwrap()];
    let jobs: Vec<Job> = ops(1).flat_map(|op| layouts.clone().map(|t| Job::new(op, vec![t]))).collect();
    assert!(check("words", &jobs) > jobs.len() / 2);
}

/// JAX computes in floats of 8 bits.
#[test]
fn floats_of_a_byte_through_every_op() {
    let mut jobs = vec![];
    for d in [DType::F8E4M3FN, DType::F8E5M2] {
        let of = |op, operands| Job { rules: Rules::Jax, ..Job::new(op, operands) };
        jobs.extend(ops(1).map(|op| of(op, vec![every(d)])));
        let left = |op| if op == Op::Assign { [256, 256] } else { [256, 1] };
        let first = |op| tensor(d, &left(op), (0..256).flat_map(|v| std::iter::repeat_n(v, left(op)[1])));
        jobs.extend(ops(2).map(|op| of(op, vec![first(op), tensor(d, &[256], 0..256)])));
    }
    assert!(check("floats of a byte", &jobs) > jobs.len() / 2);
}

#[test]
fn every_pair_of_bytes_through_every_binary_op() {
    let mut jobs = vec![];
    for rules in Rules::ALL.iter().copied() {
        let numpy = rules == Rules::NumPy;
        for d in [DType::U8, DType::I8] {
            let divides = |op| matches!(op, Op::FloorDivide | Op::Remainder | Op::Fmod | Op::DivTrunc);
            let refuses_negative = |op| op == Op::PowChecked || op == Op::Pow && numpy;
            for op in ops(2) {
                let from = u64::from(divides(op) && !numpy);
                let end = if refuses_negative(op) && d == DType::I8 { 128 } else { 256 };
                let right = tensor(d, &[(end - from) as usize], from..end);
                // An in-place operation keeps the shape of its operand.
                let left = if op == Op::Assign {
                    tensor(d, &[256, 256], (0..65536).map(|i| i / 256))
                } else {
                    tensor(d, &[256, 1], 0..256)
                };
                jobs.push(Job { rules, ..Job::new(op, vec![left, right]) });
            }
        }
    }
    let taken = check("pairs of bytes", &jobs);
    assert!(taken > jobs.len() / 2);
}

#[test]
fn every_small_value_through_every_cast() {
    let mut jobs = vec![];
    for from in DType::ALL.into_iter().filter(|d| d.size() <= 2) {
        for to in DType::ALL {
            for op in [Op::Cast, Op::ViewAs] {
                jobs.push(Job { attrs: Attrs::cast(to), ..Job::new(op, vec![every(from)]) });
            }
        }
    }
    let torch = jobs.len();
    // Where numbers beyond the range of f8e4m3fn are NaN.
    for (rules, from) in [Rules::NumPy, Rules::Jax].into_iter().flat_map(|r| DType::ALL.map(|d| (r, d))) {
        if from.size() <= 2 {
            let to = Attrs::cast(DType::F8E4M3FN);
            jobs.push(Job { attrs: to, rules, ..Job::new(Op::Cast, vec![every(from)]) });
        }
    }
    assert_eq!(check("casts to f8e4m3fn", &jobs[torch..]), 2 * 9);
    let taken = check("casts of small values", &jobs[..torch]);
    // Every cast, and `view_as` among bool, u8, i8, f8e4m3fn, f8e5m2 and among u16, i16, f16, bf16.
    assert_eq!(taken, 9 * DType::ALL.len() + 5 * 5 + 4 * 4);
}

#[test]
fn samples_through_every_cast() {
    let mut jobs = vec![];
    for from in [DType::U32, DType::U64, DType::I32, DType::I64, DType::F32, DType::F64] {
        let t = sample(from, 500_000 / THIN);
        for to in DType::ALL {
            jobs.push(Job { attrs: Attrs::cast(to), ..Job::new(Op::Cast, vec![t.clone()]) });
        }
    }
    // Values near the ties of f16 and bf16, for which double rounding would be visible.
    let (mut r, f16) = (Random(1), format::Float::of(DType::F16));
    let ties = (0..200_000 / THIN).map(|_| {
        let (low, nudge) = (r.below(0x7bff), r.below(5) as i64 - 2);
        let middle = f64::midpoint(f16.decode(low.into()), f16.decode(u128::from(low) + 1));
        middle.to_bits().wrapping_add_signed(nudge)
    });
    let ties = tensor(DType::F64, &[200_000 / THIN], ties.collect::<Vec<_>>().into_iter());
    for to in [DType::F8E4M3FN, DType::F8E5M2, DType::F16, DType::BF16, DType::F32, DType::C32] {
        jobs.push(Job { attrs: Attrs::cast(to), ..Job::new(Op::Cast, vec![ties.clone()]) });
    }
    assert_eq!(check("casts of samples", &jobs), jobs.len());
}

/// Integers next to the midpoint of two f16 or bf16 neighbours: through f32, some would be rounded to the midpoint
/// first, and then to the wrong side.
#[test]
fn integers_beside_ties_of_the_halves_round_once() {
    let mut jobs = vec![];
    // The number of i32 and of i64 integers for which this happens, and the number tested. f32 holds every integer that
    // f16 can round.
    for (half, counts) in [(DType::F16, [(0, 47_105); 2]), (DType::BF16, [(3_328, 28_929), (19_708, 69_879)])] {
        let format = format::Float::of(half);
        let mut all = vec![];
        for low in 0..format::encode(half, reference::Value::Real(f64::INFINITY), Beyond::Largest) as u64 {
            let (a, b) = (format.decode(low.into()), format.decode(u128::from(low) + 1));
            // For the midpoint below infinity, infinity counts as the next power of two.
            let middle =
                if b.is_finite() { f64::midpoint(a, b) } else { 1.5 * a - 0.5 * format.decode(u128::from(low) - 1) };
            if !(1.0..9.2e18).contains(&middle) {
                continue;
            }
            all.extend([-2, -1, 0, 1, 2].map(|d| middle as i64 + d).into_iter().flat_map(|v| [v, -v]));
        }
        all.sort_unstable();
        all.dedup();
        for (from, counts) in [DType::I32, DType::I64].into_iter().zip(counts) {
            let some: Vec<i64> =
                all.iter().copied().filter(|v| from == DType::I64 || i32::try_from(*v).is_ok()).collect();
            let t = tensor(from, &[some.len()], some.iter().map(|v| *v as u64));
            jobs.push(Job { attrs: Attrs::cast(half), ..Job::new(Op::Cast, vec![t]) });
            let once = |v: i64| format::cast(DType::I64, v as u64 as u128, half, Beyond::Largest);
            let through = |v: i64| format::cast(DType::F32, (v as f32).to_bits().into(), half, Beyond::Largest);
            let differ = some.iter().filter(|v| once(**v) != through(**v)).count();
            assert_eq!((differ, some.len()), counts, "{from} to {half}");
        }
    }
    assert_eq!(check("integers beside ties", &jobs), jobs.len());
}

#[test]
fn pairs_of_halves_through_every_binary_op() {
    let mut jobs = vec![];
    let step = std::env::var("CASTWISE_HALVES").map_or(61 * THIN, |v| v.parse().expect("CASTWISE_HALVES is a step"));
    for d in [DType::F16, DType::BF16] {
        for op in ops(2) {
            // Results that IEEE defines are checked exactly, without an interval. Most of the pairs are spent on them.
            let arithmetic = matches!(
                op,
                Op::Add
                    | Op::Sub
                    | Op::Mul
                    | Op::Div
                    | Op::Maximum
                    | Op::Fmin
                    | Op::Fmod
                    | Op::Remainder
                    | Op::FloorDivide
                    | Op::DivTrunc
                    | Op::Nextafter
                    | Op::Copysign
            );
            let step = if arithmetic { step } else { 4 * step + 7 };
            let values: Vec<u64> = (0..1 << 16).step_by(step).map(|i| i as u64).collect();
            let n = values.len();
            // The right operands are shifted, so that not only equal values meet.
            let right = tensor(d, &[n], values.iter().map(|v| (v + 17) % (1 << 16)));
            for some in values.chunks((1 << 19) / n) {
                let left = if op == Op::Assign {
                    tensor(d, &[some.len(), n], some.iter().flat_map(|v| std::iter::repeat_n(*v, n)))
                } else {
                    tensor(d, &[some.len(), 1], some.iter().copied())
                };
                jobs.push(Job::new(op, vec![left, right.clone()]));
            }
        }
    }
    let taken = check("pairs of halves", &jobs);
    assert!(taken > jobs.len() / 2);
}

#[test]
fn samples_of_singles_and_doubles_through_every_unary_op() {
    let mut jobs = vec![];
    for d in [DType::F32, DType::F64] {
        let whole = sample(d, 200_000 / THIN);
        // Most bit patterns are numbers far from 1, so a second sample is near 1.
        let mut r = Random(2);
        let near: Vec<u64> = (0..100_000 / THIN)
            .map(|_| {
                let x = (r.next() as f64 / u64::MAX as f64 - 0.5) * 40.0;
                if d == DType::F32 { (x as f32).to_bits().into() } else { x.to_bits() }
            })
            .collect();
        let near = tensor(d, &[near.len()], near.into_iter());
        for op in ops(1) {
            jobs.push(Job::new(op, vec![whole.clone()]));
            jobs.push(Job::new(op, vec![near.clone()]));
        }
    }
    let taken = check("samples", &jobs);
    assert_eq!(jobs.len() - taken, 2 * 2 * 2);
}

#[test]
fn copysign_takes_the_sign_of_a_nan() {
    for d in DType::ALL.into_iter().filter(|d| d.is_float() && d.size() > 1) {
        let sign = 1 << (8 * d.size() - 1);
        let [one, nan] = [1.0, f64::NAN].map(|v| format::encode(d, reference::Value::Real(v), Beyond::Largest) as u64);
        let operands = vec![tensor(d, &[2], [one, nan].into_iter()), tensor(d, &[2], [nan | sign; 2].into_iter())];
        let cx = Eager::new(Rules::Torch);
        let result = cx.tensor(&operands[0]).copysign(cx.tensor(&operands[1])).result().unwrap();
        // Arithmetic gives a NaN without a sign.
        common::assert_same_bits(&result, &tensor(d, &[2], [one | sign, nan].into_iter()), &|| d.to_string());
        assert!(Job::new(Op::Copysign, operands).check().is_some());
    }
}
