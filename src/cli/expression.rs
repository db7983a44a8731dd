//! The expressions of a command: their text, where they were written, and what they use.
//!
//! Does not: type them (`plan`).

use std::collections::HashSet;

use castwise::{DType, Program, Scalar};
use regex::Regex;

use super::args::Common;
use super::failure::Failure;
use super::report;
use super::scalars::Scalars;

/// An expression, and which names it is for.
pub(super) struct Expression {
    pub(super) text: String,
    /// Where the user wrote it.
    pub(super) path: String,
    /// Found in the names it is for; none: for all that are left.
    pub(super) pattern: Option<Regex>,
    /// Positions of the inputs that it uses.
    pub(super) uses: Vec<usize>,
    /// The parameters that it uses.
    pub(super) parameters: Vec<String>,
}

impl Expression {
    /// That of tensors that are copied from the input at a position.
    pub(super) fn input(name: &str, position: usize) -> Expression {
        let (text, path) = (name.to_string(), "--missing copy".to_string());
        Expression { text, path, pattern: None, uses: vec![position], parameters: Vec::new() }
    }
}

/// Reads an expression for its own sake: what it uses. A parameter that has a value for each tensor stands there as a
/// tensor would, so that no value decides what is said of the others; where an op takes none but a scalar, one of the
/// values.
pub(super) fn read_expression(
    common: &Common,
    scalars: &Scalars,
    text: String,
    path: String,
    pattern: Option<Regex>,
) -> Result<Expression, Failure> {
    let (mut used, mut parameters) = (HashSet::new(), Vec::new());
    let mut read = |value: &dyn Fn(&str) -> Option<Scalar>| {
        let program = Program::with_settings(common.settings());
        for name in common.inputs.iter().map(|(n, _)| n.as_str()).chain(scalars.names()) {
            program.data(name, DType::F32, ());
        }
        used.clear();
        parameters.clear();
        let result = program.expression_with(&text, |name| {
            if scalars.names().any(|p| p == name) {
                parameters.push(name.to_string());
            } else {
                used.insert(name.to_string());
            }
            value(name)
        });
        result.map(drop)
    };
    let mut outcome = read(&|name| scalars.only(name));
    for row in 0..scalars.rows() {
        if outcome.is_ok() {
            break;
        }
        outcome = read(&|name| scalars.any(name, row));
    }
    outcome.map_err(|e| Failure { text: report::of_expression(&text, &path, &e, &[]), code: 1 })?;
    let uses = (0..common.inputs.len()).filter(|i| used.contains(&common.inputs[*i].0)).collect();
    Ok(Expression { text, path, pattern, uses, parameters })
}
