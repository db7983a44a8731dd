//! `--fix` for tensors of a caller: what the Python module calls.
//!
//! Guarantees: what `castwise explain --fix` finds on a file of the same elements. Does not: print.

use std::ffi::{OsStr, OsString};

use castwise::{Error, Settings, Tensor};

use super::goal::Goal;
use super::run::{cases, search, text_of};
use super::told::Told;
use crate::cli::args::Common;
use crate::cli::plan::prepare;
use crate::cli::report;
use crate::cli::spec::InputSpec;
use crate::cli::values;

/// What a name of an expression is.
pub(crate) enum Operand {
    /// A dtype with a shape, as text.
    Declared(String),
    Given(Tensor),
    /// A number, as text.
    Number(String),
}

/// Why there is no such expression, as text without a prefix.
pub(crate) enum Unfixed {
    /// An operand has a name that the expression does not have.
    Name(String),
    Refused(String),
}

impl From<String> for Unfixed {
    fn from(text: String) -> Unfixed {
        Unfixed::Refused(text)
    }
}

/// The expression with casts that reach a goal.
pub(crate) fn fixed(
    settings: Settings,
    text: &str,
    operands: Vec<(String, Operand)>,
    goal: Goal,
) -> Result<String, Unfixed> {
    let given: Vec<String> = operands.iter().map(|(name, _)| name.clone()).collect();
    let (mut inputs, mut parameters) = (Vec::new(), Vec::new());
    for (name, operand) in operands {
        match operand {
            Operand::Declared(what) => match values::input(OsStr::new(&format!("{name}={what}")))? {
                declared @ (_, InputSpec::Declared(..)) => inputs.push(declared),
                _ => {
                    let what = report::escaped(&what);
                    return Err(format!("`{what}` is no dtype with a shape, as `bf16[3, n]`").into());
                }
            },
            Operand::Given(t) => inputs.push((name, InputSpec::Given(t))),
            Operand::Number(n) => parameters.push((name, OsString::from(n))),
        }
    }
    let common = Common::of(settings, inputs, parameters);
    let plain = |text: String| text.strip_prefix("error: ").unwrap_or(&text).replacen("--fix: ", "", 1);
    let mut work = prepare(&common, &[], Some(text)).map_err(|f| plain(f.text))?;
    let inputs = work.inputs.iter().map(|i| &i.name);
    let names: Vec<&String> = inputs.chain(work.expressions.iter().flat_map(|e| &e.parameters)).collect();
    if let Some(unknown) = given.iter().find(|name| !names.contains(name)) {
        let all = names.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(", ");
        let unknown = report::escaped(unknown);
        return Err(Unfixed::Name(format!("there is no argument `{unknown}`; the names are {all}")));
    }
    let refused = |e: &Error| plain(report::of_expression(text, "EXPR", e, &[]));
    let mut cases = cases(&mut work, 0, matches!(goal, Goal::Tolerance(_))).map_err(|f| plain(f.text))?;
    let found = search(&mut cases, goal).map_err(|e| refused(&e))?;
    let new = text_of(&cases, &found);
    if found.score.reached {
        return Ok(new);
    }
    let told = Told::of(&mut cases, goal, &found, &new).map_err(|e| refused(&e))?;
    Err(plain(told.refusal()).into())
}
