//! Compares castwise with recorded results of the frameworks.
//!
//! `cargo run --release -p xtask -- conformance FILE.jsonl... --rules torch|paddle|numpy|jax [--mode eager|static|both] [--show N]`
//!
//! A line of a file is a case: the op, operands as bits, attributes, and the framework's result or error. Each case
//! runs in the requested modes; dtype, shape, bits (compared as the case says) and the kind of error must be the
//! framework's, or those of a rule of `conformance/deviations.rs`, which is counted separately. A file of points with
//! exact results (`ulp.jsonl`) is run by function: each point must be within the function's bar of `points.rs`. The
//! last line is `N passed, N failed, N skipped`; the exit code is 1 if a case failed and 2 if a file could not be read.

use std::collections::BTreeMap;
use std::process::ExitCode;

use castwise::prelude::*;

mod case;
mod compare;
mod composed;
mod deviations;
mod gradient;
mod run;
mod split;

use crate::points::{self, Points};
use case::{Arg, Case, Cmp, Expected, Unusable};
use run::Answer;

struct Options {
    files: Vec<String>,
    rules: Settings,
    modes: Vec<Mode>,
    show: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Eager,
    Static,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut o = Options {
            files: vec![],
            rules: Settings::new(Rules::Torch),
            modes: vec![Mode::Eager, Mode::Static],
            show: 10,
        };
        let mut rules = None;
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("`{arg}` wants a value"));
            match arg.as_str() {
                "--rules" => rules = Some(value()?.parse()?),
                "--show" => o.show = value()?.parse().map_err(|_| "`--show` wants a number")?,
                "--mode" => {
                    o.modes = match value()?.as_str() {
                        "eager" => vec![Mode::Eager],
                        "static" => vec![Mode::Static],
                        "both" => vec![Mode::Eager, Mode::Static],
                        other => return Err(format!("unknown mode `{other}`: eager, static or both")),
                    }
                }
                flag if flag.starts_with('-') => return Err(format!("unknown option `{flag}`")),
                _ => o.files.push(arg),
            }
        }
        o.rules = rules.ok_or("`--rules torch`, `paddle`, `numpy` or `jax` is missing")?;
        if o.files.is_empty() { Err("no file".into()) } else { Ok(o) }
    }
}

/// The verdict on a case.
enum Verdict {
    Passed,
    /// The framework's value is not reliable; ours has the same dtype and shape.
    Informative,
    Deviation(&'static str),
    Failed(String),
}

fn judge(case: &Case, answer: &Answer) -> Verdict {
    let result = compare::compare(case, answer);
    // If the framework departs from the rules, its own answer would be wrong.
    // In JAX's cases the mark says that bits may differ from plain arithmetic.
    if result.is_ok() && (!case.quirk || case.settings.rules == Rules::Jax) {
        return Verdict::Passed;
    }
    if let Some(d) = deviations::explanation(case, answer) {
        return Verdict::Deviation(d.name);
    }
    let same_kind = match (&case.expected, answer) {
        (Expected::Value(want), Ok(got)) => want.dtype() == got.dtype() && want.shape() == got.shape(),
        _ => false,
    };
    match result {
        _ if case.cmp == Cmp::Informative && same_kind => Verdict::Informative,
        Ok(()) => Verdict::Failed("the framework's answer, which departs from the rules".into()),
        Err(why) => Verdict::Failed(why),
    }
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: BTreeMap<String, usize>,
    informative: usize,
    deviations: BTreeMap<&'static str, usize>,
    failures: BTreeMap<String, usize>,
    /// Cases of gradients that were not run with dynamic dims, by op.
    fixed_dims: BTreeMap<String, usize>,
}

impl Tally {
    fn add(&mut self, case: &Case, mode: Mode, verdict: Verdict, answer: &Answer, show: usize) -> bool {
        match verdict {
            Verdict::Passed => true,
            Verdict::Informative => {
                self.informative += 1;
                true
            }
            Verdict::Deviation(name) => {
                *self.deviations.entry(name).or_default() += 1;
                true
            }
            Verdict::Failed(why) => {
                let kind = why.split([':', ',']).next().unwrap_or_default();
                *self.failures.entry(format!("{}: {kind}", case.op_name)).or_default() += 1;
                if self.failed < show {
                    print_failure(case, mode, &why, answer);
                }
                false
            }
        }
    }
}

fn print_failure(case: &Case, mode: Mode, why: &str, answer: &Answer) {
    println!("FAILED {}:{} {} ({mode:?}): {why}", case.file, case.line, case.summary());
    print!("{}", run::program(case).0);
    for (a, name) in case.args.iter().zip(run::NAMES) {
        if let Arg::Tensor(t, weak) = a {
            println!("  {name} = {t:?}{}", if *weak { " (weak)" } else { "" });
        }
    }
    match &case.expected {
        Expected::Value(t) => println!("  expected {t:?} ({:?})", case.cmp),
        Expected::Error(category) => println!("  expected the error {category}"),
        Expected::KernelMissing(d) => println!("  expected promotion to {d:?} (no kernel in the framework)"),
    }
    match answer {
        Ok(t) => println!("  got      {t:?}\n"),
        Err(e) => println!("  got      {}\n", e.to_string().replace('\n', "\n           ")),
    }
}

/// Runs the files that the arguments name.
pub fn main(args: Vec<String>) -> ExitCode {
    let options = match Options::parse(args.into_iter()) {
        Ok(o) => o,
        Err(e) => {
            eprintln!(
                "error: {e}\nusage: conformance FILE.jsonl... --rules torch|paddle|numpy|jax [--mode eager|static|both] [--show N]"
            );
            return ExitCode::from(2);
        }
    };
    let executor = Executor::builder().threads(1).build();
    let mut tally = Tally::default();
    for file in &options.files {
        let text = match std::fs::read_to_string(file) {
            Ok(t) => t,
            Err(e) => {
                eprintln!("error: {file}: {e}");
                return ExitCode::from(2);
            }
        };
        if points::is_points(&text) {
            if let Err(e) = points_of(file, &text, &options, &executor, &mut tally) {
                eprintln!("error: {file}: {e}");
                return ExitCode::from(2);
            }
            continue;
        }
        for (i, line) in text.lines().enumerate() {
            if let Some(v) = serde_json::from_str(line).ok().filter(gradient::Gradients::is_one) {
                match gradient::Gradients::parse(file, i + 1, &v, options.rules) {
                    Ok(case) => gradients(file, i + 1, &case, &options, &executor, &mut tally),
                    Err(Unusable::Skipped(what)) => *tally.skipped.entry(what).or_default() += 1,
                    Err(Unusable::Malformed(what)) => {
                        eprintln!("error: {file}:{}: {what}", i + 1);
                        return ExitCode::from(2);
                    }
                }
                continue;
            }
            for line in split::single(line).iter() {
                match Case::parse(file, i + 1, line, options.rules) {
                    Ok(case) => one(&case, &options, &executor, &mut tally),
                    Err(Unusable::Skipped(what)) => *tally.skipped.entry(what).or_default() += 1,
                    Err(Unusable::Malformed(what)) => {
                        eprintln!("error: {file}:{}: {what}", i + 1);
                        return ExitCode::from(2);
                    }
                }
            }
        }
    }
    report(&tally);
    if tally.failed > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

/// Runs a case in the requested modes; it passes if it passes in all of them.
fn one(case: &Case, options: &Options, executor: &Executor, tally: &mut Tally) {
    let mut first: Option<Answer> = None;
    for mode in &options.modes {
        let answer = answer(case, *mode, executor);
        let verdict = match &first {
            // The second mode must give the same bits as the first.
            Some(Ok(one)) => match &answer {
                Ok(two) if compare::elements(one) == compare::elements(two) => Verdict::Passed,
                _ => Verdict::Failed("the modes differ".into()),
            },
            Some(Err(_)) if answer.is_ok() => Verdict::Failed("the modes differ".into()),
            Some(Err(_)) => Verdict::Passed,
            None => judge(case, &answer),
        };
        let verdict = match (verdict, case.weak) {
            (Verdict::Passed, Some(weak)) if answer.is_ok() && run::weak(case, *mode == Mode::Eager) != weak => {
                // Eager JAX takes a 0-d weak tensor for a Python scalar.
                if deviations::takes_for_scalar(case) {
                    Verdict::Deviation("weak-zero-dim")
                } else {
                    Verdict::Failed(format!("{}weak", if weak { "not " } else { "" }))
                }
            }
            (verdict, _) => verdict,
        };
        if !tally.add(case, *mode, verdict, &answer, options.show) {
            tally.failed += 1;
            return;
        }
        first = Some(answer);
    }
    tally.passed += 1;
}

/// Runs a case of gradients in each way; it passes if it passes in the first, and the others have the same bits.
fn gradients(
    file: &str,
    line: usize,
    case: &gradient::Gradients,
    options: &Options,
    executor: &Executor,
    tally: &mut Tally,
) {
    let mut first: Option<Vec<Tensor>> = None;
    for way in gradient::Way::ALL {
        let answer = case.run(way, executor);
        if way == gradient::Way::Dynamic && case.needs_fixed_dims(&answer) {
            *tally.fixed_dims.entry(case.name()).or_default() += 1;
            continue;
        }
        // A dim that could be 1 is summed where it is not, too: -0 becomes 0.
        let same = |one: &[Tensor], two: &[Tensor], zeros: bool| {
            let bits = |(a, b): (&Tensor, &Tensor)| {
                let (x, y) = (compare::elements(a), compare::elements(b));
                x.len() == y.len()
                    && x.iter().zip(&y).all(|(x, y)| x == y || zeros && compare::same(a.dtype(), x, y, true))
            };
            one.len() == two.len() && one.iter().zip(two).all(bits)
        };
        let verdict = match (&first, &answer) {
            (Some(one), Ok((two, _))) if !same(one, two, way == gradient::Way::Dynamic) => {
                Err("the ways differ".to_string())
            }
            (Some(_), Ok(_)) => Ok(()),
            _ => case.compare(&answer),
        };
        if let Err(why) = verdict {
            let kind = why.split([':', ',']).next().unwrap_or_default();
            *tally.failures.entry(format!("gradient of {}: {kind}", case.name())).or_default() += 1;
            if tally.failed < options.show {
                println!("FAILED {file}:{line} gradient of {} ({way:?}): {why}\n{}", case.name(), case.show());
                if let Ok((got, p)) = &answer {
                    println!("  got {got:?}\n{p}");
                }
            }
            tally.failed += 1;
            return;
        }
        first = first.or(answer.ok().map(|(got, _)| got));
    }
    for name in case.deviations() {
        *tally.deviations.entry(name).or_default() += 1;
    }
    tally.passed += 1;
}

/// Runs the functions of a file of points in the requested modes; a point passes if it is within its bar in all of
/// them.
fn points_of(file: &str, text: &str, options: &Options, executor: &Executor, tally: &mut Tally) -> Result<(), String> {
    for p in Points::read(text)? {
        let (Some(op), Some(bar)) = (p.op(), points::bar(&p.function, p.ill_conditioned)) else {
            *tally.skipped.entry(p.function.clone()).or_default() += p.wanted.len();
            continue;
        };
        let tensors = p.tensors().map_err(|e| e.to_string())?;
        let case = Case::bare(file, op, tensors, options.rules);
        let answers: Vec<Answer> = options.modes.iter().map(|m| answer(&case, *m, executor)).collect();
        let answers: Result<Vec<Tensor>, _> = answers.into_iter().collect();
        let answers = answers.map_err(|e| format!("{}: {e}", p.function))?;
        let errors: Vec<Vec<f64>> = answers.iter().map(|t| p.errors(t)).collect();
        for i in 0..p.wanted.len() {
            let worst = errors.iter().map(|e| e[i]).fold(0.0, f64::max);
            if worst <= bar {
                tally.passed += 1;
                continue;
            }
            let kind = format!("{}: {} point beyond {bar} ulp", p.function, p.dtype);
            *tally.failures.entry(kind).or_default() += 1;
            if tally.failed < options.show {
                let x: Vec<f64> =
                    p.operands.iter().map(|b| points::real(&b[i * p.dtype.size()..][..p.dtype.size()])).collect();
                let (y, rest) = &p.wanted[i];
                println!(
                    "FAILED {file} {} {}{x:?}: {worst} ulp from {} + {rest} ulp",
                    p.function,
                    p.dtype,
                    points::real(y)
                );
            }
            tally.failed += 1;
        }
    }
    Ok(())
}

fn answer(case: &Case, mode: Mode, executor: &Executor) -> Answer {
    match mode {
        Mode::Eager => run::eager(case),
        Mode::Static => run::compiled(case, executor),
    }
}

fn report(t: &Tally) {
    let lines = |title: &str, all: &BTreeMap<String, usize>| {
        if !all.is_empty() {
            println!("{title}:");
        }
        for (name, n) in all {
            println!("  {n:5}  {name}");
        }
    };
    lines("skipped", &t.skipped);
    if !t.deviations.is_empty() {
        println!("passed by a documented deviation:");
    }
    for d in deviations::all().filter(|d| t.deviations.contains_key(d.name)) {
        println!("  {:5}  {}: {}", t.deviations[d.name], d.name, d.reason);
    }
    for (name, reason) in gradient::DEVIATIONS.iter().filter(|(name, _)| t.deviations.contains_key(name)) {
        println!("  {:5}  {name}: {reason}", t.deviations[name]);
    }
    if t.informative > 0 {
        println!("passed where the framework's value is no fact: {}", t.informative);
    }
    lines("gradients not run with dynamic dims, which are refused", &t.fixed_dims);
    lines("failed", &t.failures);
    println!("{} passed, {} failed, {} skipped", t.passed, t.failed, t.skipped.values().sum::<usize>());
}
