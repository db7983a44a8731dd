//! Source locations: where the user wrote what a program contains.
//!
//! Guarantees: a location has 16 bytes and is cheap to clone; every node and mistake that a closure in [`with_location`] makes on
//! this thread has its location, in both modes, and none does after it, even if the closure panics; names of files and
//! functions are escaped when a location is printed. Does not: read files; change the locations of parsed text, which are
//! ranges of that text.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use crate::base::names::shown_path;

/// The source location that a diagnostic or a cast refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceLocation {
    /// Unknown, or created by the library itself.
    #[default]
    None,
    /// A line of Rust.
    Rust(&'static Location<'static>),
    /// A byte range of the program or expression text.
    Text(Range<u32>),
    /// A line that code made at run time: see [`with_location`].
    Line(Arc<SourceLine>),
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceLocation::None => f.write_str("(no source line)"),
            SourceLocation::Rust(l) => write!(f, "{}:{}:{}", l.file(), l.line(), l.column()),
            SourceLocation::Text(r) => write!(f, "characters {}..{}", r.start, r.end),
            SourceLocation::Line(l) => l.fmt(f),
        }
    }
}

impl From<Arc<SourceLine>> for SourceLocation {
    fn from(line: Arc<SourceLine>) -> SourceLocation {
        SourceLocation::Line(line)
    }
}

impl From<SourceLine> for SourceLocation {
    fn from(line: SourceLine) -> SourceLocation {
        SourceLocation::Line(Arc::new(line))
    }
}

/// A source line in any language, made at run time: for bindings. Prints as `train.py:12`,
/// with a column as `train.py:12:5`, with a function as `train.py:12:5, in loss`.
///
/// ```
/// use castwise::SourceLine;
/// let line = SourceLine::new("train.py", 12);
/// assert_eq!(line.to_string(), "train.py:12");
/// assert_eq!(line.with_column(5).in_function("loss").to_string(), "train.py:12:5, in loss");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SourceLine {
    /// The file, as its language names it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, if it is known.
    pub column: Option<u32>,
    /// The function that the line is in, if it is known.
    pub function: Option<Arc<str>>,
}

impl SourceLine {
    /// A line of a file.
    pub fn new(file: impl Into<Arc<str>>, line: u32) -> SourceLine {
        SourceLine { file: file.into(), line, column: None, function: None }
    }

    /// The same with a column.
    pub fn with_column(self, column: u32) -> SourceLine {
        SourceLine { column: Some(column), ..self }
    }

    /// The same in a function.
    pub fn in_function(self, function: impl Into<Arc<str>>) -> SourceLine {
        SourceLine { function: Some(function.into()), ..self }
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", shown_path(&self.file), self.line)?;
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        match &self.function {
            Some(function) => write!(f, ", in {}", shown_path(function)),
            None => Ok(()),
        }
    }
}

thread_local! {
    /// What [`with_location`] runs at on this thread.
    static GIVEN: RefCell<Option<SourceLocation>> = const { RefCell::new(None) };
}

/// Runs a closure; the nodes, values and mistakes that it makes have the given location instead of the Rust line of the call:
/// those of operators, methods, placeholders, constants and programs, in programs and in eager mode. For bindings, which know
/// their caller's line. Calls may be nested; the innermost location applies.
///
/// ```
/// use castwise::{SourceLine, prelude::*, with_location};
/// let p = Program::new(Rules::Torch);
/// let (x, y) = (p.data("x", DType::F32, [3]), p.data("y", DType::F32, [4]));
/// with_location(SourceLine::new("train.py", 12), || &x + &y);
/// let error = p.check().expect_err("3 and 4 do not broadcast");
/// assert!(error.to_string().ends_with("\n  at train.py:12"));
/// ```
pub fn with_location<T>(location: impl Into<SourceLocation>, run: impl FnOnce() -> T) -> T {
    /// Puts the location back that was given before.
    struct Restore(Option<SourceLocation>);
    impl Drop for Restore {
        fn drop(&mut self) {
            // Only a thread that ends has none, and then nothing is left to restore.
            let _ = GIVEN.try_with(|given| given.replace(self.0.take()));
        }
    }
    let before = GIVEN.try_with(|given| given.replace(Some(location.into()))).ok().flatten();
    let _restore = Restore(before);
    run()
}

/// The location that is given.
pub(crate) fn given() -> Option<SourceLocation> {
    GIVEN.try_with(|given| given.borrow().clone()).ok().flatten()
}

/// The location that is given, or the caller's line.
#[track_caller]
pub(crate) fn here() -> SourceLocation {
    given().unwrap_or(SourceLocation::Rust(Location::caller()))
}

#[cfg(test)]
mod tests;
