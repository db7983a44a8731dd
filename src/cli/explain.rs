//! `castwise explain`: what an expression does with dtypes, without running it; with `--numeric`, what that costs.
//!
//! Guarantees: what a reader wants to know comes first, the typed program after it. Does not: write files.

use annotate_snippets::Level;
use castwise::{Diagnostic, Outcome, Program, Rounding, Rules, compare_all};

use super::args::{Common, Explain};
use super::failure::{Failure, print};
use super::plan::prepare;
use super::source::{self, Asked, Source};
use super::{describe, numeric, report};

pub(super) fn run(arguments: &Explain) -> Result<(), Failure> {
    if arguments.numeric && arguments.common.rounding == Rounding::Relaxed {
        return Err(Failure::usage("--numeric looks at each op alone: there is no relaxed rounding in it"));
    }
    let expression = match source::asked(&arguments.expression)? {
        Asked::Program(file) => return program(arguments, &Source::of(&arguments.common, file)?),
        Asked::Expression(text) => text,
    };
    let prepared = prepare(&arguments.common, &[], Some(expression));
    let (mut work, refused) = match prepared {
        // What one rule set refuses can still be compared.
        Err(failure) if arguments.compare && failure.code == 1 => {
            let under = |other| Common { rules: Some(other), ..arguments.common.clone() };
            let mut others = arguments.common.settings().rules.others();
            match others.find_map(|other| prepare(&under(other), &[], Some(expression)).ok()) {
                Some(work) => (work, Some(failure)),
                None => return Err(failure),
            }
        }
        prepared => (prepared?, None),
    };
    work.tell(false);
    let mut text = String::new();
    for kind in work.kinds()? {
        let Some(first) = kind.first() else { continue };
        let (plan, e) = work.of(first);
        text += &work.heading(&kind);
        if refused.is_none() {
            text += &describe::explain(&describe::result(plan), &plan.typed, &e.text, &e.path);
        }
        if arguments.compare {
            text += &(separator(&text) + &compared(&plan.program, &e.text, &e.path, &Diagnostic::clone));
        }
    }
    print(&text)?;
    if let Some(failure) = refused {
        return Err(failure);
    }
    if arguments.numeric {
        print("\n")?;
        print(&numeric::numeric(&mut work)?)?;
    }
    Ok(())
}

/// The same for a program as text.
fn program(arguments: &Explain, source: &Source) -> Result<(), Failure> {
    if arguments.numeric {
        return Err(Failure::usage("--numeric is for expressions, not for a program as text"));
    }
    let program = source.program()?;
    let typed = source.typed(&program);
    let mut text = String::new();
    if let Ok(typed) = &typed {
        let results: String = source::results(&program).iter().map(|(n, v)| source::line(typed, n, v)).collect();
        text += &describe::explain(&results, typed, &source.text, &source.path);
    }
    // What one rule set refuses can still be compared.
    if arguments.compare && typed.as_ref().err().is_none_or(|_| source.other(&program)) {
        text += &(separator(&text) + &compared(&program, &source.text, &source.path, &|d| source.own_words(d)));
    }
    print(&text)?;
    typed.map(drop)
}

fn separator(text: &str) -> String {
    if text.is_empty() { String::new() } else { "\n".to_string() }
}

/// Where the rule sets differ about a program; refusals in the words of what it is written in.
fn compared(program: &Program, source: &str, path: &str, words: &dyn Fn(&Diagnostic) -> Diagnostic) -> String {
    let found = compare_all(program, Rules::ALL);
    if found.is_empty() {
        let all: Vec<String> = Rules::ALL.iter().map(|r| format!("of {}", r.framework())).collect();
        return format!("the rules {} give the same dtypes\n", report::listed(&all, "and"));
    }
    let mut text = String::new();
    for d in &found {
        let outcome = |(rules, outcome): &(Rules, Outcome)| match outcome {
            Outcome::DType(d) => format!("{rules} gives {d}"),
            Outcome::Refused(_) => format!("{rules} refuses"),
        };
        let label = d.outcomes.iter().map(outcome).collect::<Vec<_>>().join(", ");
        let span = report::span(source, &d.location).unwrap_or(0..0);
        let title = format!("the rules differ about `{}`", d.op);
        text += &report::marked(Level::NOTE, &title, source, path, &[(span, label)]);
        text.push('\n');
        for (_, outcome) in &d.outcomes {
            if let Outcome::Refused(d) = outcome {
                let d = report::of_command(&words(d));
                let help = d.help.map_or(String::new(), |h| format!("; {h}"));
                text += &format!("  = {}{help}\n", d.message);
            }
        }
    }
    text
}
