//! What is computed, as text: an expression under settings, or a program, which has its own.
//!
//! Guarantees: it is text alone, so it compares, hashes and travels as that; its names are read once. Does not: know
//! dtypes.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use castwise::expr::{CONSTANTS, input_names};
use castwise::{DType, Error, Program, Settings, Var};
use datafusion::common::Result;

use crate::report::plan_error;

/// The text of a program, or an expression such as `(cast(nir, f32) - red) / (nir + cast(red, f32))` with the settings
/// under which it is typed. An expression's names are its arguments, in the order in which they first appear, a
/// program's placeholders in their order.
///
/// ```
/// use castwise::prelude::*;
/// use castwise_datafusion::Source;
/// let ndvi = Source::expression("(cast(nir, f32) - red) / (nir + cast(red, f32))", Rules::Torch)?;
/// assert_eq!(ndvi.names(), ["nir", "red"]);
/// let parts = Source::expression("d = nir - red; d / (nir + red)", Rules::Torch)?;
/// assert_eq!(parts.names(), ["nir", "red"]);
/// assert!(Source::expression("nir -", Rules::Torch).unwrap_err().to_string().contains("^"));
///
/// let p = Program::new(Rules::NumPy);
/// let doubled = p.data("x", DType::F32, [None]) * 2.0;
/// p.set_fetches([(None, &doubled)])?;
/// assert_eq!(Source::program(&p)?.names(), ["x"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Source(Arc<Inner>);

struct Inner {
    text: String,
    settings: Settings,
    is_program: bool,
    names: Vec<String>,
}

impl Source {
    /// An expression. Errors: it does not parse.
    pub fn expression(text: &str, settings: impl Into<Settings>) -> Result<Source> {
        let names = input_names(text).map_err(|e| plan_error(&e, text))?;
        Ok(Source(Arc::new(Inner { text: text.into(), settings: settings.into(), is_program: false, names })))
    }

    /// A program, with one result. Errors: the program's text can't be read.
    pub fn program(program: &Program) -> Result<Source> {
        Source::program_text(&program.to_string())
    }

    /// The text of a program. Errors: it does not parse.
    pub fn program_text(text: &str) -> Result<Source> {
        let program = Program::parse(text).map_err(|e| plan_error(&e, text))?;
        let (settings, names) = (program.settings(), program.feed_names());
        Ok(Source(Arc::new(Inner { text: text.into(), settings, is_program: true, names })))
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The settings under which it is typed.
    pub fn settings(&self) -> Settings {
        self.0.settings
    }

    /// Whether the text is that of a program.
    pub fn is_program(&self) -> bool {
        self.0.is_program
    }

    /// What its arguments are called, in their order.
    pub fn names(&self) -> &[String] {
        &self.0.names
    }

    /// The names for a number of arguments: of an expression, `pi` and `e` are the constants if the arguments are so
    /// many that these are not among them. Error: another number.
    pub(crate) fn names_for(&self, count: usize) -> std::result::Result<Vec<&String>, String> {
        let constant = |name: &str| !self.0.is_program && CONSTANTS.iter().any(|(known, _)| *known == name);
        let all: Vec<&String> = self.0.names.iter().collect();
        if all.len() == count {
            return Ok(all);
        }
        let others: Vec<&String> = all.iter().copied().filter(|name| !constant(name)).collect();
        if others.len() == count {
            return Ok(others);
        }
        let listed = others.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        let (n, text) = (others.len(), self.shown());
        Err(format!("castwise: {count} arguments for the {n} names of {text}: {listed}"))
    }

    /// The program for arguments of these dtypes, and its result. An argument is a column: one dim of any length.
    pub(crate) fn build(&self, names: &[&String], dtypes: &[DType]) -> std::result::Result<(Program, Var), Error> {
        if self.0.is_program {
            let program = Program::parse(&self.0.text)?;
            let fetches = program.fetches();
            let [one] = &fetches[..] else {
                return Err(Error::Shape(format!("the program has {} results; a function has one", fetches.len())));
            };
            let var = one.var.clone();
            return Ok((program, var));
        }
        let program = Program::with_settings(self.0.settings);
        for (name, dtype) in names.iter().zip(dtypes) {
            program.data(name, *dtype, [None]);
        }
        let var = program.expression(&self.0.text)?;
        Ok((program, var))
    }

    /// The text for a message: short.
    pub(crate) fn shown(&self) -> String {
        if self.0.is_program {
            return "a program".into();
        }
        let text = self.0.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(80) {
            Some((at, _)) => format!("`{}…`", &text[..at]),
            None => format!("`{text}`"),
        }
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        let of = |s: &Source| (s.0.is_program, s.0.settings);
        Arc::ptr_eq(&self.0, &other.0) || of(self) == of(other) && self.0.text == other.0.text
    }
}

impl Eq for Source {}

impl Hash for Source {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.0.text, self.0.settings, self.0.is_program).hash(state);
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} under {}", self.shown(), self.0.settings.named())
    }
}
