//! Texts against kernels, composites against their expansions, facts against what values do.

use std::collections::HashSet;

use super::*;
use crate::base::dtype::{Category, DType};
use crate::base::random::Random;
use crate::kernels::tests::results;
use crate::kernels::{CpuLevel, kernel};
use crate::ops::Op;
use crate::plan::kernel::{Step, StepOp};
use evaluate::{canonical, evaluate};

mod evaluate;
mod table;
mod toys;

/// Elements by their bits.
type Column = Vec<u128>;

/// How many random operands a test takes: few where numbers are slow.
fn samples() -> usize {
    if cfg!(debug_assertions) { 2_000 } else { 12_000 }
}

/// Every op and compute dtype that has a text.
fn texts() -> Vec<(Op, DType, &'static Text)> {
    let all = Op::ALL.iter().flat_map(|op| DType::ALL.map(|d| (*op, d)));
    all.filter_map(|(op, d)| text(op, d).map(|t| (op, d, t))).collect()
}

/// Elements of a dtype, or parts of them, where ops have their edges.
fn edges(d: DType) -> Column {
    let width = 8 * d.size() as u32;
    match d.category() {
        Category::Bool => vec![0, 1],
        Category::Int => {
            let near = |at: u128| [at.wrapping_sub(1), at, at + 1];
            let all = [0, 8, width - 2, width - 1].into_iter().flat_map(|b| near(1 << b)).chain(near(0)).chain([100]);
            let both = all.flat_map(|v| [v, v.wrapping_neg()]);
            both.map(|v| v & u128::MAX >> (128 - width)).collect()
        }
        Category::Float => {
            let numbers = [
                0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 0.25, 0.1, 0.75, 3.5, 0.84375, 3.95, 9.5, 20.0, 88.8, 104.0, 399.0,
                401.0, 709.9, 745.2, 1e6, 1048577.0, 65504.0, 1e30, 1e-8, 1e-40, 1e-310, 3e38, 1e308,
            ];
            let (infinity, quiet) = (d.infinity_bits(), d.nan_bits() - d.infinity_bits());
            let nans = [infinity + 1, infinity + quiet, infinity + quiet + 1, infinity | (quiet - 1)];
            let bits = numbers.map(|x| d.nearest_bits(x)).into_iter().chain(nans).chain([infinity, infinity - 1, 1]);
            bits.flat_map(|b| [u128::from(b), u128::from(b) | 1 << (width - 1)]).collect()
        }
        Category::Complex => {
            let part = edges(d.real());
            let some = |at: usize| part[at * 7 % part.len()];
            (0..3 * part.len()).map(|i| some(i) | some(i * 5 + i / part.len()) << (width / 2)).collect()
        }
    }
}

/// A random element: its bits, or a number of ordinary magnitude.
fn random(d: DType, r: &mut Random) -> u128 {
    let bits = u128::from(r.next()) << 64 | u128::from(r.next());
    let ordinary = |r: &mut Random, part: DType| {
        let value = (r.next() as i64 >> 11) as f64 * 2f64.powi(r.below(24) as i32 - 58);
        u128::from(part.nearest_bits(value))
    };
    match d.category() {
        Category::Bool => bits & 1,
        Category::Float if r.below(2) == 0 => ordinary(r, d),
        Category::Complex if r.below(2) == 0 => ordinary(r, d.real()) | ordinary(r, d.real()) << (4 * d.size()),
        _ => bits & u128::MAX >> (128 - 8 * d.size()),
    }
}

/// Operands of these dtypes: all pairs of edges of the first two with edges of the others, then random ones.
fn operands(dtypes: &[DType], seed: u64) -> Vec<Column> {
    let r = &mut Random(seed);
    let all: Vec<Column> = dtypes.iter().map(|d| edges(*d)).collect();
    let (first, second) = (all[0].len(), all.get(1).map_or(1, Vec::len));
    let pairs = (0..first * second).map(|i| [i % first, i / first]);
    let mut rows: Vec<Vec<u128>> = Vec::new();
    for at in pairs {
        let of = |k: usize, r: &mut Random| at.get(k).map_or_else(|| r.pick(&all[k]), |i| all[k][*i]);
        rows.push((0..dtypes.len()).map(|k| of(k, r)).collect());
    }
    rows.extend((0..samples()).map(|_| dtypes.iter().map(|d| random(*d, r)).collect()));
    (0..dtypes.len()).map(|k| rows.iter().map(|row| row[k]).collect()).collect()
}

/// What a text gives, NaNs made canonical if it says so.
fn run(text: &Text, operands: &[Column]) -> Column {
    let d = text.dtype(text.result);
    let raw = evaluate(text, operands).into_iter();
    raw.map(|bits| if text.canonical { canonical(d, bits) } else { bits }).collect()
}

/// The first operands for which results differ.
fn difference(operands: &[Column], a: &[u128], b: &[u128]) -> Option<String> {
    let i = (0..a.len()).find(|i| a[*i] != b[*i])?;
    let args: Vec<String> = operands.iter().map(|o| format!("{:#x}", o[i])).collect();
    Some(format!("({}) gives {:#x} and {:#x}", args.join(", "), a[i], b[i]))
}

#[test]
fn texts_have_the_kernels_bits() {
    let mut seen = 0;
    for (op, d, text) in texts() {
        text.verify().unwrap();
        assert_eq!(text.dtype(text.result), op.result(d), "{op} of {d}");
        let operands = operands(&text.operands, 1);
        let with_dtypes: Vec<(DType, Column)> = text.operands.iter().copied().zip(operands.iter().cloned()).collect();
        let mine = run(text, &operands);
        for (level, theirs) in results(op, d, &with_dtypes) {
            let differs = difference(&operands, &mine, &theirs);
            assert!(differs.is_none(), "{op} of {d}, text and kernel at {level:?}: {}\n{text}", differs.unwrap());
        }
        seen += 1;
    }
    assert!(seen > 250, "only {seen} texts");
}

/// Operands on which a composite is defined.
fn domain(prim: Prim, d: DType, text: &Text) -> Vec<Column> {
    let mut all = operands(&text.operands, 2);
    let n = all[0].len();
    let (width, shift) = (8 * d.size(), d.digits() - 1);
    let round = 1.5 * 2f64.powi(shift as i32);
    let (least, most) = if d == DType::F32 { (-252, 254) } else { (-2044, 2046) };
    let whole = |i: usize| f64::from(least + i as i32 * 7 % (most - least + 1));
    match prim {
        Prim::Scaled => {
            all[1] = (0..n).map(|i| d.nearest_bits(whole(i)).into()).collect();
            all[2] = (0..n).map(|i| d.nearest_bits(whole(i) + round).into()).collect();
        }
        Prim::Turned => all[1] = (0..n).map(|i| d.nearest_bits(whole(i) + round).into()).collect(),
        Prim::Significand | Prim::Exponent => {
            let positive =
                |bits: &u128| (bits & u128::MAX >> (129 - width)).clamp(1, u128::from(d.infinity_bits() - 1));
            all[0] = all[0].iter().map(positive).collect();
            if let Some(second) = all.get(1).map(|_| Prim::Significand.expansion(d).unwrap()) {
                all[1] = evaluate(&second, &all[..1]);
            }
        }
        // A magnitude, or a NaN.
        Prim::Signed => all[0].iter_mut().for_each(|bits| *bits &= u128::MAX >> (129 - width)),
        _ => {}
    }
    all
}

/// Every composite, with each dtype that it is one of.
fn composites() -> Vec<(Prim, DType)> {
    use Predicate::*;
    let predicates = [Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, NotLess, NotLessEqual, NotGreater];
    let predicates = predicates.into_iter().chain([NotGreaterEqual, Ordered, Unordered]);
    let pick = |d: DType| Prim::Pick { set: d.nearest_bits(1.5), clear: d.nearest_bits(-0.1) };
    let mut all: Vec<(Prim, DType)> = vec![];
    for d in [DType::F32, DType::F64] {
        let of_floats = [Prim::Least, Prim::Most, Prim::Maximum, Prim::Minimum, Prim::Fmax, Prim::Fmin, Prim::Signed];
        let of_formats = [Prim::Scaled, Prim::Turned, Prim::Significand, Prim::Exponent, Prim::LogEnds, pick(d)];
        all.extend(of_floats.into_iter().chain(of_formats).map(|p| (p, d)));
    }
    for d in [DType::C64, DType::C128] {
        let compares = predicates.clone().flat_map(|p| [Parts::Both, Parts::Either].map(|parts| (p, parts)));
        all.extend(compares.map(|(p, parts)| (Prim::ComplexCompare(p, parts), d)));
        all.extend([Prim::Conj, Prim::ComplexMul].map(|p| (p, d)));
    }
    for d in DType::ALL.into_iter().filter(|d| d.category() == Category::Int) {
        all.extend([Prim::Test, Prim::TestNot].map(|p| (p, d)));
    }
    all
}

/// A composite as a text of its own, and what its expansion gives.
pub(crate) struct Composite {
    pub(crate) alone: Text,
    pub(crate) operands: Vec<Column>,
    pub(crate) expected: Column,
    /// For messages.
    pub(crate) expansion: Text,
}

impl Composite {
    pub(crate) fn all() -> impl Iterator<Item = Composite> {
        composites().into_iter().map(|(prim, d)| {
            let expansion = prim.expansion(d).unwrap();
            expansion.verify().unwrap();
            let inst = Inst::new(prim, d, &[Value(0), Value(1), Value(2)][..prim.arity()]);
            let alone = Text::new(expansion.operands.clone(), Box::new([inst]), Value(prim.arity() as u16), true);
            alone.verify().unwrap();
            let operands = domain(prim, d, &expansion);
            let expected = run(&expansion.clone().with_canonical_nans(), &operands);
            Composite { alone, operands, expected, expansion }
        })
    }

    /// Checks results, with canonical NaNs, that something gives for the operands.
    pub(crate) fn check(&self, what: &str, mine: &[u128]) {
        let differs = difference(&self.operands, mine, &self.expected);
        let (text, expansion) = (&self.alone, &self.expansion);
        assert!(differs.is_none(), "{what} and expansion: {}\n{text}{expansion}", differs.unwrap());
    }
}

#[test]
fn composites_of_texts_are_among_those_that_are_tested() {
    let tested: HashSet<_> = composites().into_iter().map(|(prim, d)| (prim.name(), d)).collect();
    for (op, d, text) in texts() {
        for inst in text.insts.iter().filter(|i| i.prim.expansion(i.dtype).is_some()) {
            assert!(tested.contains(&(inst.prim.name(), inst.dtype)), "{:?} of {op} of {d}", inst.prim);
        }
    }
}

#[test]
fn composites_have_the_bits_of_their_expansions() {
    for composite in Composite::all() {
        composite.check("composite", &run(&composite.alone, &composite.operands));
    }
}

#[test]
fn texts_of_simple_primitives_have_the_same_bits() {
    for (op, d, text) in texts() {
        let simple = text.expanded(|_| true);
        simple.verify().unwrap();
        assert!(
            simple.insts.iter().all(|i| i.prim.expansion(i.dtype).is_none()),
            "{op} of {d} has a composite:\n{simple}"
        );
        assert_eq!(text.expanded(|_| false), *text, "{op} of {d}");
        let operands = operands(&text.operands, 3);
        let differs = difference(&operands, &run(text, &operands), &run(&simple, &operands));
        assert!(differs.is_none(), "{op} of {d}, text and simple text: {}\n{simple}", differs.unwrap());
    }
}

/// The elements with other bits in their NaNs.
fn with_other_nans(d: DType, column: &[u128]) -> Column {
    let (part, width) = (d.real(), 8 * d.real().size());
    let one = |bits: u64| {
        let magnitude = bits & u64::MAX >> (65 - width);
        let turned = bits ^ 1 << (width - 1);
        let still_nan = magnitude ^ 1 > part.infinity_bits();
        match magnitude > part.infinity_bits() {
            false => bits,
            // The only other NaN of a float without infinities.
            true if !part.has_infinity() => turned,
            true => turned ^ if still_nan { 1 } else { 2 },
        }
    };
    let low = |bits: u128| bits as u64 & u64::MAX >> (64 - width);
    let both = |bits: &u128| u128::from(one(low(*bits))) | u128::from(one(low(bits >> width))) << width;
    column.iter().map(|bits| if d.is_complex() { both(bits) } else { one(low(*bits)).into() }).collect()
}

#[test]
fn what_an_operands_nans_show_is_what_the_facts_say() {
    let mut always = vec![];
    for (op, d, text) in texts() {
        for (i, of) in text.operands.iter().enumerate().filter(|(_, of)| !of.is_integral()) {
            let operands = operands(&text.operands, 4);
            let mut others = operands.clone();
            others[i] = with_other_nans(*of, &operands[i]);
            let result = text.dtype(text.result);
            let seen = |operands: &[Column], shows: Shows| -> Column {
                let all = run(text, operands).into_iter();
                all.map(|bits| if shows == Shows::InNans { canonical(result, bits) } else { bits }).collect()
            };
            let shows = text.shows(i);
            if shows == Shows::Always {
                always.push(format!("{op}.{d} {i}"));
                continue;
            }
            let differs = difference(&operands, &seen(&operands, shows), &seen(&others, shows));
            assert!(differs.is_none(), "{op} of {d}, operand {i} {shows:?}: {}\n{text}", differs.unwrap());
        }
    }
    let copysign = ["f16", "bf16", "f32", "f64"].map(|d| format!("copysign.{d} 1"));
    assert!(copysign.iter().all(|c| always.contains(c)) && always.len() == 4, "{always:?}");
    let moved = |op: Op| (0..op.arity()).map(|i| text(op, DType::F32).unwrap().shows(i)).collect::<Vec<_>>();
    assert_eq!(moved(Op::Where), [Shows::Never, Shows::InNans, Shows::InNans]);
    assert_eq!((moved(Op::Neg), moved(Op::Abs)), (vec![Shows::InNans], vec![Shows::InNans]));
    assert_eq!((moved(Op::Add), moved(Op::Positive)), (vec![Shows::Never; 2], vec![Shows::Never]));
}

#[test]
fn what_is_known_of_a_results_nans_holds() {
    for (op, d, text) in texts().into_iter().filter(|(_, _, t)| !t.dtype(t.result).is_integral()) {
        let result = text.dtype(text.result).real();
        for known in [Nan::Any, Nan::Quiet, Nan::Canonical] {
            let mut operands = operands(&text.operands, 5);
            for (column, of) in operands.iter_mut().zip(&text.operands).filter(|(_, of)| of.real().is_float()) {
                let quiet = u128::from(of.real().nan_bits() - of.real().infinity_bits());
                let quiet = if of.is_complex() { quiet | quiet << (4 * of.size()) } else { quiet };
                column.iter_mut().for_each(|bits| match known {
                    Nan::Canonical => *bits = canonical(*of, *bits),
                    Nan::Quiet if canonical(*of, *bits) != *bits => *bits |= quiet,
                    _ => {}
                });
            }
            let said = text.nan(&vec![known; operands.len()]);
            let quiet = result.nan_bits() - result.infinity_bits();
            let width = 8 * result.size();
            let parts = if text.dtype(text.result).is_complex() { 2 } else { 1 };
            for (row, bits) in evaluate(text, &operands).into_iter().enumerate() {
                for part in (0..parts).map(|p| (bits >> (p * width)) as u64 & u64::MAX >> (64 - width)) {
                    let is_nan = part & u64::MAX >> (65 - width) > result.infinity_bits();
                    let holds = match said {
                        Nan::Any => true,
                        Nan::Quiet => part & quiet != 0,
                        Nan::Canonical => part == result.nan_bits(),
                    };
                    let args: Vec<String> = operands.iter().map(|o| format!("{:#x}", o[row])).collect();
                    assert!(!is_nan || holds, "{op} of {d}: {part:#x} of {args:?} is not {said:?}\n{text}");
                }
            }
        }
    }
}

#[test]
fn what_is_compiled_has_a_text() {
    let mut seen = 0;
    for (op, d) in Op::ALL.iter().flat_map(|op| DType::ALL.map(|d| (*op, d))) {
        let step = Step { op: StepOp::Apply(op), dtype: d, args: [None; crate::ops::MAX_OPERANDS], out: 0 };
        let has_kernel = kernel(op, d, CpuLevel::Baseline).is_some();
        for level in [CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512] {
            if has_kernel && !op.has_dims() && crate::backend::is_lowerable_at(level, &step) {
                assert!(text(op, d).is_some(), "{op} of {d} is compiled at {level:?}, but has no text");
                seen += 1;
            }
        }
    }
    assert!(seen > 300, "only {seen}");
}
