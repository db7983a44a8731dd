//! Rewrites the casts in help texts to the syntax of a program as text.
//!
//! Guarantees: a help text that names no operand of the line is unchanged. Does not: read programs, or find mistakes.

use castwise::Op;
use regex::{Captures, Regex};

/// Replaces `cast(x, f32)` in a help text, where x is an operand of the op, by the cast of that operand as a line of
/// the program.
pub(super) fn casts(help: &str, line: &str) -> String {
    let Ok(call) = Regex::new(r"`cast\((\w+), (\w+)\)`") else { return help.to_string() };
    let own = |c: &Captures<'_>| match operand(line, &c[1]) {
        Some(value) => format!("`cast {value} {{dtype = {}}}`", &c[2]),
        None => c[0].to_string(),
    };
    call.replace_all(help, own).into_owned()
}

/// The value of an operand in a line of the program.
fn operand<'t>(line: &'t str, name: &str) -> Option<&'t str> {
    let (op, rest) = line.split_once('=')?.1.trim().split_once(' ')?;
    let op = Op::ALL.iter().find(|o| o.def().name == op || o.def().aliases.contains(&op))?;
    let position = op.def().operands.iter().position(|o| *o == name)?;
    // Quoted names and complex scalars can contain commas.
    let values = rest.split(['{', ';']).next().filter(|v| !v.contains(['(', '"']))?;
    values.split(',').nth(position).map(str::trim).filter(|v| v.starts_with('%'))
}
