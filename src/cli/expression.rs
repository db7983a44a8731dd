//! The expressions of a command: their text, the argument that they come from, and the inputs and parameters that they
//! use.
//!
//! Does not: infer dtypes (`plan` does).

use std::collections::HashSet;

use castwise::{DType, Program, Scalar};
use regex::Regex;

use super::args::Common;
use super::failure::Failure;
use super::report;
use super::scalars::Scalars;

/// An expression, and the tensor names that it applies to.
pub(super) struct Expression {
    pub(super) text: String,
    /// The argument that the expression comes from, for error messages.
    pub(super) path: String,
    /// Matches the names that the expression applies to. Without a pattern, it applies to all remaining names.
    pub(super) pattern: Option<Regex>,
    /// The positions of the inputs that the expression uses.
    pub(super) uses: Vec<usize>,
    /// The parameters that the expression uses.
    pub(super) parameters: Vec<String>,
    /// The recipe that the text names, whose expression depends on the tensor.
    pub(super) recipe: Option<usize>,
}

impl Expression {
    /// The expression for tensors that are copied from the input at a position.
    pub(super) fn input(name: &str, position: usize) -> Expression {
        let (text, path) = (name.to_string(), "--missing copy".to_string());
        Expression { text, path, pattern: None, uses: vec![position], parameters: Vec::new(), recipe: None }
    }

    /// The text in one line; of a recipe, its name.
    pub(super) fn line(&self) -> &str {
        if self.text.contains('\n') { &self.path } else { &self.text }
    }
}

/// Reads an expression to find the names that it uses. A parameter with a value per tensor is read as a tensor at
/// first, so that no particular value affects the errors. If that fails, because an op requires a scalar, the values
/// are tried.
pub(super) fn read_expression(
    common: &Common,
    scalars: &Scalars,
    text: String,
    path: String,
    pattern: Option<Regex>,
) -> Result<Expression, Failure> {
    let inputs: Vec<&str> = common.specs().into_iter().map(|(name, _)| name).collect();
    let (mut used, mut parameters) = (HashSet::new(), Vec::new());
    let mut read = |value: &dyn Fn(&str) -> Option<Scalar>| {
        let program = Program::with_settings(common.settings());
        for name in inputs.iter().copied().chain(scalars.names()) {
            program.data(name, DType::F32, ());
        }
        used.clear();
        parameters.clear();
        let result = program.results_with(&text, |name| {
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
    let uses = (0..inputs.len()).filter(|i| used.contains(inputs[*i])).collect();
    Ok(Expression { text, path, pattern, uses, parameters, recipe: None })
}
