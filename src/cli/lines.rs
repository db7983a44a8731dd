//! Help in the words of a program as text: casts as its lines have them.
//!
//! Guarantees: a help that speaks of no operand of the line stays as it is. Does not: read programs, or find mistakes.

use castwise::Op;
use regex::{Captures, Regex};

/// A help with its casts as lines have them: `cast(x, f32)` speaks of the operand x of the op.
pub(super) fn casts(help: &str, line: &str) -> String {
    let Ok(call) = Regex::new(r"`cast\((\w+), (\w+)\)`") else { return help.to_string() };
    let own = |c: &Captures<'_>| match operand(line, &c[1]) {
        Some(value) => format!("`cast {value} {{dtype = {}}}`", &c[2]),
        None => c[0].to_string(),
    };
    call.replace_all(help, own).into_owned()
}

/// The value that a line has for an operand of its op.
fn operand<'t>(line: &'t str, name: &str) -> Option<&'t str> {
    let (op, rest) = line.split_once('=')?.1.trim().split_once(' ')?;
    let op = Op::ALL.iter().find(|o| o.def().name == op || o.def().aliases.contains(&op))?;
    let position = op.def().operands.iter().position(|o| *o == name)?;
    // Commas stand in quotes and in complex scalars too.
    let values = rest.split(['{', ';']).next().filter(|v| !v.contains(['(', '"']))?;
    values.split(',').nth(position).map(str::trim).filter(|v| v.starts_with('%'))
}
