//! `castwise explain`: shows the dtypes and casts of an expression without running it; with `--numeric`, measures the
//! precision that it loses.
//!
//! Guarantees: the summary precedes the typed program; a page is written last. Does not: write other files.

use annotate_snippets::Level;
use castwise::{Diagnostic, Outcome, Program, Rounding, Rules, compare_all};

use super::args::{Common, Explain, RuleSets};
use super::failure::{Failure, print};
use super::fix::{self, Goal};
use super::plan::prepare;
use super::source::{self, Asked, Source};
use super::{describe, explain_page, html, numeric, report};

pub(super) fn run(arguments: &Explain) -> Result<(), Failure> {
    if arguments.numeric && arguments.common.rounding == Rounding::Relaxed {
        return Err(Failure::usage("--numeric measures each op separately, so it does not support relaxed rounding"));
    }
    let page = arguments.html.as_deref();
    html::check(page, arguments.force)?;
    let expression = match source::asked(&arguments.expression)? {
        Asked::Program(file) => {
            html::unread(page, &[file])?;
            return program(arguments, &Source::of(&arguments.common, file)?);
        }
        Asked::Expression(text) => text,
    };
    let prepared = prepare(&arguments.common, &[], Some(expression));
    let (mut work, refused) = match prepared {
        // An expression that one rule set refuses can still be compared.
        Err(failure) if arguments.compare.is_some() && failure.code == 1 => {
            let under = |other| Common {
                rules: Some(arguments.common.settings().with_rules(other)),
                ..arguments.common.clone()
            };
            let mut others = arguments.common.settings().rules.others();
            match others.find_map(|other| prepare(&under(other), &[], Some(expression)).ok()) {
                Some(work) => (work, Some(failure)),
                None => return Err(failure),
            }
        }
        prepared => (prepared?, None),
    };
    if arguments.numeric && work.plans.iter().any(|p| p.results.len() > 1) {
        return Err(Failure::usage("--numeric measures an expression of one result"));
    }
    html::unread(page, &work.files())?;
    work.tell(false);
    let mut text = String::new();
    for kind in work.kinds()? {
        let Some(first) = kind.first() else { continue };
        let (plan, e) = work.of(first);
        text += &work.heading(&kind);
        if refused.is_none() {
            text += &describe::explain(&describe::result(plan), &plan.typed, &e.text, &e.path);
        }
        if let Some(RuleSets(rules)) = &arguments.compare {
            text += &(separator(&text) + &compared(&plan.program, rules, &e.text, &e.path, &Diagnostic::clone));
        }
    }
    print(&text)?;
    if let Some(failure) = refused {
        return Err(failure);
    }
    let mut measured = None;
    if arguments.numeric {
        print("\n")?;
        let found = numeric::measured(&mut work)?;
        print(&numeric::text(&work, &found))?;
        measured = Some(found);
    }
    if let Some(goal) = Goal::of(&arguments.fix) {
        let (text, failure) = fix::explain(&mut work, goal)?;
        print(&format!("\n{text}"))?;
        failure.map_or(Ok(()), Err)?;
    }
    match &arguments.html {
        Some(path) => html::write(path, arguments.force, &explain_page::of_work(&work, measured.as_deref())?),
        None => Ok(()),
    }
}

/// Explains a program as text.
fn program(arguments: &Explain, source: &Source) -> Result<(), Failure> {
    if arguments.numeric {
        return Err(Failure::usage("--numeric supports expressions only, not programs as text"));
    }
    if arguments.fix.fix.is_some() {
        return Err(Failure::usage("--fix supports expressions only, not programs as text"));
    }
    let program = source.program()?;
    let typed = source.typed(&program);
    let mut text = String::new();
    if let Ok(typed) = &typed {
        let results: String = source::results(&program).iter().map(|(n, v)| source::line(typed, n, v)).collect();
        text += &describe::explain(&results, typed, &source.text, &source.path);
    }
    // An expression that one rule set refuses can still be compared.
    if let Some(RuleSets(rules)) = &arguments.compare
        && typed.as_ref().err().is_none_or(|_| source.other(&program))
    {
        text +=
            &(separator(&text) + &compared(&program, rules, &source.text, &source.path, &|d| source.in_text_form(d)));
    }
    print(&text)?;
    let typed = typed?;
    match &arguments.html {
        Some(path) => html::write(path, arguments.force, &explain_page::of_source(&typed, source)),
        None => Ok(()),
    }
}

fn separator(text: &str) -> String {
    if text.is_empty() { String::new() } else { "\n".to_string() }
}

/// The ops for which the rule sets give different results. `words` rewords errors for the syntax that the program is
/// written in.
fn compared(
    program: &Program,
    rules: &[Rules],
    source: &str,
    path: &str,
    words: &dyn Fn(&Diagnostic) -> Diagnostic,
) -> String {
    let found = compare_all(program, rules);
    if found.is_empty() {
        let all: Vec<String> = rules.iter().map(|r| format!("of {}", r.framework())).collect();
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
        let title = format!("the rules differ for `{}`", d.op);
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
