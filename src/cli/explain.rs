//! `castwise explain`: what an expression does with dtypes, without running it; with `--numeric`, what that costs.
//!
//! Guarantees: what a reader wants to know comes first, the typed program after it. Does not: write files.

use annotate_snippets::Level;
use castwise::{Outcome, Rounding, Rules, compare};

use super::args::{Common, Explain};
use super::plan::{Work, prepare};
use super::{Failure, describe, numeric, print, report, say};

pub(super) fn run(arguments: &Explain) -> Result<(), Failure> {
    if arguments.numeric && arguments.common.rounding == Rounding::Relaxed {
        return Err(Failure::usage("--numeric looks at each op alone: there is no relaxed rounding in it"));
    }
    let prepared = prepare(&arguments.common, &[], Some(&arguments.expression));
    let (mut work, refused) = match prepared {
        // What one rule set refuses can still be compared.
        Err(failure) if arguments.compare && failure.code == 1 => {
            let other = match arguments.common.settings().rules {
                Rules::Torch => Rules::Paddle,
                Rules::Paddle => Rules::Torch,
            };
            let common = Common { rules: Some(other), ..arguments.common.clone() };
            match prepare(&common, &[], Some(&arguments.expression)) {
                Ok(work) => (work, Some(failure)),
                Err(_) => return Err(failure),
            }
        }
        prepared => (prepared?, None),
    };
    work.notes.iter().for_each(|n| say(n));
    let mut text = String::new();
    for kind in work.kinds()? {
        let Some(first) = kind.first() else { continue };
        let (plan, e) = work.of(first);
        text += &work.heading(&kind);
        if refused.is_none() {
            text += &describe::explain(plan, e);
        }
        if arguments.compare {
            text += &(separator(&text) + &compared(&work, first));
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

fn separator(text: &str) -> String {
    if text.is_empty() { String::new() } else { "\n".to_string() }
}

/// Where the two rule sets differ about a program.
fn compared(work: &Work, job: &super::plan::Job) -> String {
    let (plan, e) = work.of(job);
    let found = compare(&plan.program, Rules::Torch, Rules::Paddle);
    if found.is_empty() {
        return "the rules of PyTorch and of Paddle give the same dtypes\n".to_string();
    }
    let mut text = String::new();
    for d in &found {
        let outcome = |(rules, outcome): &(Rules, Outcome)| match outcome {
            Outcome::DType(d) => format!("{rules} gives {d}"),
            Outcome::Refused(_) => format!("{rules} refuses"),
        };
        let label = d.outcomes.iter().map(outcome).collect::<Vec<_>>().join(", ");
        let span = report::span(&e.text, &d.place).unwrap_or(0..0);
        let title = format!("the rules differ about `{}`", d.op);
        text += &report::marked(Level::NOTE, &title, &e.text, &e.path, &[(span, label)]);
        text.push('\n');
        for (_, outcome) in &d.outcomes {
            if let Outcome::Refused(d) = outcome {
                let help = d.help.as_deref().map_or(String::new(), |h| format!("; {}", report::of_command(h)));
                text += &format!("  = {}{help}\n", report::of_command(&d.message));
            }
        }
    }
    text
}
