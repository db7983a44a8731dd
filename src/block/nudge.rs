//! Which f16 results of one operand would be rounded twice, and the step that prevents it.
//!
//! An op on f16 computes in f32, and its result is rounded to f16. Where the f32 result, itself rounded, lies on (or
//! beside) the middle between two halves, the second rounding may go the wrong way. With 65,536 arguments all such
//! cases can be listed: the table below moves their f32 results by an ulp before they are rounded.
//!
//! Guarantees: every f16 result of an op of one operand is the exact one, correctly rounded; the table holds what that
//! takes and nothing else (a test makes it anew from the f32 and f64 kernels, and prints it). In bf16 one rule does: below
//! 2^-125 `silu`, `gelu` and `gelu_tanh` are x / 2, which may lie half way between two numbers of bf16, and a part of 2^-125
//! of it, which says what side it is on. Does not: help ops of two operands, custom or complex ones, or chains under relaxed rounding, which are not rounded after each op.

use super::rows::{Bin, bin};
use super::{BlockFn, CpuLevel};
use crate::dtype::DType;
use crate::ops::Op;

/// The arguments of an op whose f32 results must be moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hard {
    /// Whether an argument stands for itself and for the one with the other sign.
    pub(crate) both_signs: bool,
    /// The bits of the argument as f32, and by how many ulps the result moves: away from zero if positive.
    pub(crate) moves: &'static [(u32, i32)],
}

impl Hard {
    /// The bits of an argument that count.
    pub(crate) const fn key_mask(both_signs: bool) -> u32 {
        if both_signs { u32::MAX >> 1 } else { u32::MAX }
    }
}

/// Whether the results of an op's arguments below [`TINY`] are a trifle above x / 2, which is what f32 has.
pub(crate) const fn above_half(op: Op) -> bool {
    matches!(op, Op::Silu | Op::Gelu | Op::GeluTanh)
}

/// 2^-125, as bits.
pub(crate) const TINY: u32 = 2 << 23;

/// Whether results of an op in f32 are moved before they are rounded to this dtype.
pub(crate) fn is_nudged(op: Op, to: DType) -> bool {
    match to {
        DType::F16 => hard(op).is_some(),
        DType::BF16 => above_half(op),
        _ => false,
    }
}

/// The bits as f32 of a finite f16 other than zero.
const fn widened(half: u16) -> u32 {
    let (sign, rest) = ((half as u32 & 0x8000) << 16, half as u32 & 0x7fff);
    if rest >= 0x400 {
        return sign | ((rest << 13) + (112 << 23));
    }
    // Subnormal: a multiple of 2^-24. The leading one carries into the exponent.
    let top = rest.ilog2();
    sign | ((rest << (23 - top)) + ((102 + top) << 23))
}

/// `Op signs [(argument as f16, ulps)]`, where `signs` says whether each argument stands for both signs.
macro_rules! hard {
    ($($op:ident $signs:ident [$(($half:literal, $ulps:literal)),+];)+) => {
        $(
            struct $op;

            impl $op {
                const BOTH: bool = hard!($signs);
            }

            impl Bin<f32> for $op {
                type Out = f32;
                #[inline(always)]
                fn eval(argument: f32, result: f32) -> f32 {
                    let (key, bits) = (argument.to_bits() & Hard::key_mask($op::BOTH), result.to_bits());
                    $(let bits = bits.wrapping_add_signed(if key == const { widened($half) } { $ulps } else { 0 });)+
                    if const { above_half(Op::$op) } {
                        let (size, up) = (argument.to_bits() & !(1 << 31), if argument < 0.0 { -1 } else { 1 });
                        return f32::from_bits(bits.wrapping_add_signed(if size < TINY && size != 0 { up } else { 0 }));
                    }
                    f32::from_bits(bits)
                }
            }
        )+

        /// What must be moved of an op's f32 results before they are rounded to f16; `None` if nothing.
        pub(crate) fn hard(op: Op) -> Option<Hard> {
            let (both_signs, moves): (bool, &'static [(u32, i32)]) = match op {
                $(Op::$op => ($op::BOTH, const { &[$((widened($half), $ulps)),+] }),)+
                _ => return None,
            };
            Some(Hard { both_signs, moves })
        }

        /// The kernel that takes an op's f32 arguments and results, and moves the latter.
        pub(crate) fn nudge_kernel(op: Op, level: CpuLevel) -> Option<BlockFn> {
            match op {
                $(Op::$op => Some(bin::<f32, $op>(level)),)+
                _ => None,
            }
        }
    };
    (one) => { false };
    (both) => { true };
}

hard! {
    Exp one [(0x1f79, -1), (0x25cf, -1)];
    Expm1 one [(0x11a8, 1)];
    Log one [(0x1d78, -1)];
    Log1p one [(0x1e03, 1), (0x9dfd, -1)];
    Sin both [(0x32b3, 1), (0x5cb0, -1)];
    Cos both [(0x2b7c, 1)];
    Tan both [(0x2894, 1), (0x55ed, -1), (0x774a, 1)];
    Sigmoid one [(0x1a00, -1), (0x1f00, -1), (0x2180, -1), (0x9600, 1), (0x9b00, 1), (0x9d80, 1), (0x9f80, 1)];
    Erf both [(0x1612, -1)];
    Exp2 one [(0x11c5, 1)];
    Log10 one [(0x338f, -1), (0x33f8, 1), (0x57e1, -1), (0x69d0, 1), (0x719d, -1)];
    Cbrt both [(0x0551, 1), (0x1151, 1), (0x1d51, 1), (0x2951, 1), (0x3551, 1), (0x4151, 1), (0x4d51, 1), (0x5951, 1), (0x6551, 1), (0x7151, 1)];
    Acos one [(0x804b, 1), (0xacaf, -1), (0xb874, 1)];
    Atan both [(0x2745, 1), (0x32b5, 1), (0x466e, 1)];
    Sinh both [(0x40f2, 1)];
    Cosh both [(0x2800, 1)];
    Asinh both [(0x32bd, 1), (0x4b1f, -1), (0x5c0a, -1)];
    Acosh one [(0x3ce4, 1)];
    Erfc one [(0x0b17, -1), (0x8f17, 1)];
    Silu one [(0x0001, 1), (0xc173, -1)];
    Gelu one [(0x0001, 1)];
    GeluTanh one [(0x0001, 1), (0x157c, -1), (0x35a7, 1), (0x957c, 1), (0xb5a7, -1)];
    Softplus one [(0x8430, -1)];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{cast, kernel, operands};
    use crate::dtype::DType::*;

    /// Runs a kernel over equally long operands.
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

    /// The ops of one operand that compute in f32 for the half types and give such a result.
    fn ops() -> impl Iterator<Item = Op> {
        let level = CpuLevel::get();
        let has = move |op: Op, d| kernel(op, d, level).is_some();
        let unary = Op::ALL.iter().copied().filter(|op| op.arity() == 1 && op.result(F32) == F32);
        unary.filter(move |op| has(*op, F32) && has(*op, F64) && !has(*op, F16))
    }

    /// Every element of a half dtype as f32, an op's results in f32, and those in f64 rounded once to the dtype.
    fn results(op: Op, half: DType) -> (Vec<f32>, Vec<f32>, Vec<u16>) {
        let every: Vec<u16> = (0..=u16::MAX).collect();
        let singles: Vec<f32> = converted(half, F32, &every);
        let doubles: Vec<f64> = converted(F32, F64, &singles);
        let found = |d| kernel(op, d, CpuLevel::get()).unwrap();
        let wide: Vec<f64> = run(found(F64), &[&doubles]);
        let narrow = run(found(F32), &[&singles]);
        (singles, narrow, converted(F64, half, &wide))
    }

    /// The row of an op in the table, as its source; empty if it needs none.
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
        // As listed: each argument's half, found among all.
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
    fn every_level_moves_what_is_listed() {
        for op in ops() {
            let (x, r, wanted) = results(op, F16);
            for level in [CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512] {
                let Some(f) = nudge_kernel(op, level.min(CpuLevel::detect())) else { continue };
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
    fn bf16_is_rounded_once_but_for_what_lies_above_a_tie() {
        for op in ops() {
            let (x, mut narrow, mut wanted) = results(op, BF16);
            if above_half(op) {
                // The exact result is x / 2 + x² / 4 or so: the next f64 is on the same side.
                for (x, wanted) in x.iter().zip(&mut wanted).filter(|(x, _)| **x != 0.0 && x.abs() < 2f32.powi(-125)) {
                    *wanted = converted(F64, BF16, &[(f64::from(*x) / 2.0).next_up()])[0];
                }
                for level in [CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512] {
                    let f = nudge_kernel(op, level.min(CpuLevel::detect())).unwrap();
                    let moved: Vec<f32> = run(f, &[&x, &narrow]);
                    assert!(converted::<f32, u16>(F32, BF16, &moved) == wanted, "{op} at {level:?}");
                }
                let changed =
                    converted::<f32, u16>(F32, BF16, &narrow).iter().zip(&wanted).filter(|(a, b)| a != b).count();
                assert_eq!(changed, 128, "{op}");
                narrow = run(nudge_kernel(op, CpuLevel::get()).unwrap(), &[&x, &narrow]);
            }
            assert!(converted::<f32, u16>(F32, BF16, &narrow) == wanted, "{op}");
        }
    }
}
