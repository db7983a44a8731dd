//! Tests of `--fix`: edits of text, and the sets that are found, compared with those of an exhaustive search.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use castwise::{DType, Rules, Settings, Tensor};
use clap::Parser;

use super::edits::{Edit, edited, sites};
use super::goal::Goal;
use super::library::{Operand, Unfixed, fixed};
use super::run::{ByGoal, candidates, cases, search};
use super::search::exhaustive;
use crate::cli::args::Common;
use crate::cli::findings::Kind;
use crate::cli::plan::{Plan, Work, prepare};

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    common: Common,
}

fn work(text: &str, options: &[&str]) -> (Work, Common) {
    let options = Options::try_parse_from(std::iter::once("test").chain(options.iter().copied())).unwrap();
    let Ok(work) = prepare(&options.common, &[], Some(text)) else { panic!("{text}") };
    (work, options.common)
}

fn edit(text: &str, part: &str, dtype: DType) -> Edit {
    let start = text.find(part).unwrap();
    Edit { span: start..start + part.len(), dtype }
}

#[test]
fn edits_nest() {
    let text = "(a + b)*c - (a)*(\"(\" + d)";
    let [f32, f64] = [DType::F32, DType::F64];
    let group = edit(text, "(a + b)", f32);
    assert_eq!(edited(text, std::slice::from_ref(&group)), "cast(a + b, f32)*c - (a)*(\"(\" + d)");
    let inner = [edit(text, "a", f64), edit(text, "b", f32)];
    let all = [&inner[..], &[group.clone(), edit(text, "(a + b)*c", f64), edit(text, "(\"(\" + d)", f32)]].concat();
    let nested = "cast(cast(cast(a, f64) + cast(b, f32), f32)*c, f64) - (a)*cast(\"(\" + d, f32)";
    assert_eq!(edited(text, &all), nested);
    let reversed: Vec<Edit> = all.into_iter().rev().collect();
    assert_eq!(edited(text, &reversed), nested, "in any order");
    let twice = [group.clone(), Edit { dtype: f64, ..group }];
    assert_eq!(edited(text, &twice), "cast(cast(a + b, f32), f64)*c - (a)*(\"(\" + d)");
    // The beginning and the end of the group are no pair.
    let both = edit("(a)*(b) + c", "(a)*(b)", f32);
    assert_eq!(edited("(a)*(b) + c", &[both]), "cast((a)*(b), f32) + c");
    assert_eq!(edited(text, &[]), text);
}

#[test]
fn sites_are_operands() {
    let text = "t = softmax(a*0.5, dims=-1); amax(t) - b";
    let (work, _) = work(text, &["-i", "a=bf16[4,4]", "-i", "b=f32[4]"]);
    let parts: Vec<&str> = sites(text, &work.plans[0].typed, &[]).into_iter().map(|r| &text[r]).collect();
    for part in ["a*0.5", "a", "amax(t)", "b"] {
        assert!(parts.contains(&part), "{part}: {parts:?}");
    }
}

/// An expression and its inputs, with a goal and the number of casts that reach it, if any do.
type Example = (&'static str, &'static [&'static str], Goal, Option<usize>);

const LOSSY: Goal = Goal::Findings(Kind::Rounds);
const WRAP: Goal = Goal::Findings(Kind::Wraps);

const EXAMPLES: &[Example] = &[
    ("0.7*a + 0.3*b", &["a=bf16[64]", "b=f16[64]"], LOSSY, Some(2)),
    ("0.7*a + 0.3*b", &["a=bf16[64]", "b=f16[64]"], Goal::Tolerance(1e-5), Some(2)),
    ("0.7*a + 0.3*b", &["a=bf16[64]", "b=f16[64]"], Goal::Tolerance(1e-14), None),
    ("(nir - red) / (nir + red)", &["nir=u8[64]", "red=u8[64]"], LOSSY, Some(2)),
    ("(nir - red) / (nir + red)", &["nir=u8[64]", "red=u8[64]"], WRAP, Some(2)),
    ("(nir - red) / (nir + red)", &["nir=u8[64]", "red=u8[64]"], Goal::Tolerance(1e-6), Some(2)),
    ("steps * loss", &["steps=i64[64]", "loss=f32[64]"], LOSSY, Some(1)),
    ("a * b * c", &["a=bf16[64]", "b=bf16[64]", "c=f32[64]"], LOSSY, Some(1)),
    ("a*b + c*d - b*0.1", &["a=bf16[64]", "b=bf16[64]", "c=f16[64]", "d=f32[64]"], LOSSY, Some(2)),
    ("a*b + c*d - b*0.1", &["a=bf16[64]", "b=bf16[64]", "c=f16[64]", "d=f32[64]"], Goal::Tolerance(1e-4), Some(2)),
    ("sum(a*b, dims=-1) + c", &["a=bf16[64,8]", "b=bf16[64,8]", "c=f32[64]"], LOSSY, Some(1)),
    ("(u + v) * (u - v) * 1.5 + u*v", &["u=u8[64]", "v=i8[64]"], WRAP, Some(1)),
    ("a*a*a + b*b + c*c", &["a=bf16[64]", "b=f16[64]", "c=f32[64]"], Goal::Tolerance(1e-5), Some(2)),
    ("exp(20*x)", &["x=f16[256]"], Goal::Tolerance(1e-3), None),
    ("a + b", &["a=f32[64]", "b=f64[64]"], LOSSY, Some(0)),
    // Several results, of which one would get another dtype.
    ("low = 0.7*a + 0.3*b; high = b - a", &["a=bf16[64]", "b=f16[64]"], LOSSY, Some(2)),
    (
        "\"a b\" = a*b*c*d; z = a + b",
        &["a=bf16[64]", "b=bf16[64]", "c=bf16[64]", "d=bf16[64]"],
        Goal::Tolerance(4e-3),
        Some(1),
    ),
];

fn options(inputs: &'static [&'static str]) -> Vec<&'static str> {
    inputs.iter().flat_map(|i| ["-i", i]).collect()
}

#[test]
fn as_few_casts_as_an_exhaustive_search_finds() {
    for (text, inputs, goal, casts) in EXAMPLES {
        let (mut work, _) = work(text, &options(inputs));
        let Ok(mut cases) = cases(&mut work, 0, matches!(goal, Goal::Tolerance(_))) else { panic!("{text}") };
        let found = search(&mut cases, *goal).unwrap();
        let (_, plans) = cases.with(&[]).unwrap();
        let candidates = candidates(&cases, &plans);
        let most = if candidates.len() <= 12 { 6 } else { 3 };
        let best = exhaustive(&mut ByGoal { cases: &mut cases, goal: *goal }, &candidates, most).unwrap();
        let (new, _) = cases.with(&found.edits).unwrap();
        match best {
            Some(best) => {
                assert!(found.score.reached, "{text} {goal:?}: {new}");
                assert_eq!(found.edits.len(), best.edits.len(), "{text} {goal:?}: {new}, and {:?}", best.edits);
            }
            None => assert!(!found.score.reached, "{text} {goal:?}: {new}"),
        }
        assert_eq!(found.score.reached.then_some(found.edits.len()), *casts, "{text} {goal:?}: {new}");
        // No cast can be left out, and the dtype of the result is the old one.
        for (old, plan) in plans.iter().zip(cases.with(&found.edits).unwrap().1) {
            let dtypes = |p: &Plan| p.results.iter().map(|r| (r.name.clone(), r.dtype)).collect::<Vec<_>>();
            assert_eq!(dtypes(old), dtypes(&plan), "{new}");
        }
    }
}

/// What the Python module calls: declared operands, tensors and numbers.
#[test]
fn tensors_of_a_caller_are_operands() {
    let find = |text: &str, operands: Vec<(&str, Operand)>, goal: Goal| {
        let operands = operands.into_iter().map(|(name, o)| (name.to_string(), o)).collect();
        fixed(Settings::new(Rules::Torch), text, operands, goal).map_err(|why| match why {
            Unfixed::Name(why) => format!("name: {why}"),
            Unfixed::Refused(why) => why,
        })
    };
    let declared = |text: &str| Operand::Declared(text.to_string());
    let halves = || vec![("a", declared("bf16[n]")), ("b", declared("f16[n]")), ("w", Operand::Number("0.7".into()))];
    let new = find("w*a + 0.3*b", halves(), Goal::Tolerance(1e-6)).unwrap();
    assert_eq!(new, "w*cast(a, f32) + 0.3*cast(b, f32)");
    let bytes = |all: &[u8]| Operand::Given(Tensor::from_slice(all, [all.len()]).unwrap());
    let bands = vec![("nir", bytes(&[200, 10, 7])), ("red", bytes(&[10, 200, 7]))];
    let new = find("(nir - red) / (nir + red)", bands, WRAP).unwrap();
    assert_eq!(new, "(cast(nir, i16) - red) / (cast(nir, i16) + red)");
    let why = find("a * 0.3", vec![("a", declared("bf16[8]"))], Goal::Tolerance(1e-9)).unwrap_err();
    assert!(why.starts_with("no set of casts") && why.contains("rounds"), "{why}");
    let why = find("a * b", vec![("a", declared("bf16[8]"))], LOSSY).unwrap_err();
    assert!(why.contains("there is no input `b`"), "{why}");
    let why = find("a * 2", vec![("a", declared("a.npy"))], LOSSY).unwrap_err();
    assert!(why.contains("no dtype with a shape"), "{why}");
    for unknown in [declared("f32[n]"), Operand::Number("3".into()), bytes(&[1])] {
        let operands = halves().into_iter().chain([("c", unknown)]).collect();
        let why = find("low = w*a; high = a - b", operands, LOSSY).unwrap_err();
        assert_eq!(why, "name: there is no argument `c`; the names are a, b, w");
    }
}
