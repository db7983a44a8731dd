//! Regenerates the table from the kernels.

use super::*;
use crate::base::dtype::DType::*;
use crate::kernels::{cast, kernel, operands};

/// Runs a kernel on operands of equal length.
fn run<T: Copy, U: Copy + Default>(f: BlockFn, args: &[&[T]]) -> Vec<U> {
    let n = args[0].len();
    assert!(args.iter().all(|a| a.len() == n));
    let mut out = vec![U::default(); n];
    let mut all = operands([]);
    all.iter_mut().zip(args).for_each(|(to, a)| *to = a.as_ptr().cast());
    // SAFETY: the caller names the types of the kernel's operands and result; each slice has `n` elements.
    unsafe { f(all, out.as_mut_ptr().cast(), n) };
    out
}

fn converted<T: Copy, U: Copy + Default>(from: DType, to: DType, a: &[T]) -> Vec<U> {
    run(cast::kernel(from, to, CpuLevel::get()).unwrap(), &[a])
}

/// The ops of one operand that compute in f32 for the half types and have a float result.
fn ops() -> impl Iterator<Item = Op> {
    let level = CpuLevel::get();
    let has = move |op: Op, d| kernel(op, d, level).is_some();
    let unary = Op::ALL.iter().copied().filter(|op| op.arity() == 1 && op.result(F32) == F32);
    unary.filter(move |op| has(*op, F32) && has(*op, F64) && !has(*op, F16))
}

/// Every element of a half dtype as f32; an op's f32 results; its f64 results, rounded once to the half dtype.
fn results(op: Op, half: DType) -> (Vec<f32>, Vec<f32>, Vec<u16>) {
    let every: Vec<u16> = (0..=u16::MAX).collect();
    let singles: Vec<f32> = converted(half, F32, &every);
    let doubles: Vec<f64> = converted(F32, F64, &singles);
    let found = |d| kernel(op, d, CpuLevel::get()).unwrap();
    let wide: Vec<f64> = run(found(F64), &[&doubles]);
    let narrow = run(found(F32), &[&singles]);
    (singles, narrow, converted(F64, half, &wide))
}

/// An op's row of the table, as source text; empty if it needs none.
fn source(op: Op) -> String {
    let (_, narrow, wanted) = results(op, F16);
    let mut moves = Vec::new();
    for (half, (r, wanted)) in (0..=u16::MAX).zip(narrow.into_iter().zip(wanted)) {
        let rounds = |ulps: i32| {
            converted::<f32, u16>(F32, F16, &[f32::from_bits(r.to_bits().wrapping_add_signed(ulps))])[0] == wanted
        };
        if !rounds(0) {
            let ulps = (1..100).flat_map(|n| [n, -n]).find(|n| rounds(*n));
            moves.push((half, ulps.unwrap_or_else(|| panic!("{op} of f16 bits {half:#x}: {r:e} in f32"))));
        }
    }
    let both = moves.iter().all(|(half, ulps)| moves.contains(&(half ^ 0x8000, *ulps)));
    moves.retain(|(half, _)| !both || *half < 0x8000);
    row(op, both, &moves)
}

fn row(op: Op, both: bool, moves: &[(u16, i32)]) -> String {
    if moves.is_empty() {
        return String::new();
    }
    let moves: Vec<String> = moves.iter().map(|(half, ulps)| format!("({half:#06x}, {ulps})")).collect();
    format!("    {op:?} {} [{}];\n", if both { "both" } else { "one" }, moves.join(", "))
}

#[test]
fn the_table_is_what_one_rounding_takes() {
    let every: Vec<u16> = (0..=u16::MAX).collect();
    let singles: Vec<f32> = converted(F16, F32, &every);
    // The f16 argument of an f32 bit pattern.
    let half = |bits: u32| singles.iter().position(|x| x.to_bits() == bits).unwrap() as u16;
    let listed: String = Op::ALL
        .iter()
        .filter_map(|op| hard(*op).map(|h| (op, h)))
        .map(|(op, h)| row(*op, h.both_signs, &h.moves.iter().map(|(x, n)| (half(*x), *n)).collect::<Vec<_>>()))
        .collect();
    let made: String = ops().map(source).collect();
    assert!(ops().count() > 40 && listed == made, "the table should be:\nhard! {{\n{made}}}\n");
}

#[test]
fn every_level_adjusts_the_listed_arguments() {
    for op in ops() {
        let (x, r, wanted) = results(op, F16);
        for level in [CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512] {
            let Some(f) = double_rounding_kernel(op, level.min(CpuLevel::detect())) else { continue };
            let moved: Vec<f32> = run(f, &[&x, &r]);
            let rounded: Vec<u16> = converted(F32, F16, &moved);
            assert!(rounded == wanted, "{op} at {level:?}");
            let listed = hard(op).unwrap();
            let changed = moved.iter().zip(&r).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
            assert_eq!(changed, listed.moves.len() << u32::from(listed.both_signs), "{op}");
        }
    }
}

#[test]
fn bf16_is_rounded_once_except_slightly_above_a_tie() {
    for op in ops() {
        let (x, mut narrow, mut wanted) = results(op, BF16);
        if above_half(op) {
            // The exact result is about x / 2 + x² / 4: the next f64 after x / 2 is on the same side of the tie.
            for (x, wanted) in x.iter().zip(&mut wanted).filter(|(x, _)| **x != 0.0 && x.abs() < 2f32.powi(-125)) {
                *wanted = converted(F64, BF16, &[(f64::from(*x) / 2.0).next_up()])[0];
            }
            for level in [CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512] {
                let f = double_rounding_kernel(op, level.min(CpuLevel::detect())).unwrap();
                let moved: Vec<f32> = run(f, &[&x, &narrow]);
                assert!(converted::<f32, u16>(F32, BF16, &moved) == wanted, "{op} at {level:?}");
            }
            let changed = converted::<f32, u16>(F32, BF16, &narrow).iter().zip(&wanted).filter(|(a, b)| a != b).count();
            assert_eq!(changed, 128, "{op}");
            narrow = run(double_rounding_kernel(op, CpuLevel::get()).unwrap(), &[&x, &narrow]);
        }
        assert!(converted::<f32, u16>(F32, BF16, &narrow) == wanted, "{op}");
    }
}
