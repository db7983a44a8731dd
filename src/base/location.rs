//! Where the user wrote what a program holds.
//!
//! Guarantees: a location is 16 bytes and cheap to clone; what [`with_location`] runs has its location in every node and
//! mistake that it makes on this thread, in both modes, and nothing has it afterwards, also if it panics; names of files and
//! functions are escaped where a location is printed. Does not: read files; change the locations of parsed text, which are
//! places in that text.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use crate::base::names::shown_path;

/// Where the user wrote the thing a diagnostic or a cast speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceLocation {
    /// Not known: made by the library itself.
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

/// A line of a source in any language: for bindings, whose users' lines are known at run time only. Prints as `train.py:12`,
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

/// Runs code whose nodes, values and mistakes get a location, in place of the lines of Rust that made them: operators, methods,
/// placeholders, constants and programs, in a program as in eager mode. For bindings, which know the line of their caller. What
/// is called within may give a location in turn, which holds for what that runs.
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

/// The location that is given, or the caller's line.
#[track_caller]
pub(crate) fn here() -> SourceLocation {
    let given = GIVEN.try_with(|given| given.borrow().clone()).ok().flatten();
    given.unwrap_or(SourceLocation::Rust(Location::caller()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_small() {
        assert_eq!(size_of::<SourceLocation>(), 16);
    }

    #[test]
    fn locations_nest_and_end_also_by_panics() {
        let at = |line: u32| SourceLine::new("a.py", line);
        let line = line!() + 1;
        let rust = |l: SourceLocation| matches!(l, SourceLocation::Rust(l) if l.line() == line + 1);
        assert!(rust(here()));
        with_location(at(1), || {
            assert_eq!(here(), at(1).into());
            let caught =
                std::panic::catch_unwind(|| with_location(at(2), || std::panic::resume_unwind(Box::new(here()))));
            assert_eq!(caught.unwrap_err().downcast_ref::<SourceLocation>(), Some(&at(2).into()));
            assert_eq!(here(), at(1).into());
            // Other threads are elsewhere.
            assert!(matches!(std::thread::spawn(here).join().unwrap(), SourceLocation::Rust(_)));
            with_location(SourceLocation::None, || assert_eq!(here(), SourceLocation::None));
            assert_eq!(here(), at(1).into());
        });
        assert!(matches!(here(), SourceLocation::Rust(_)));
    }

    #[test]
    fn names_in_lines_are_escaped() {
        let line = SourceLine::new("a\u{1b}[2J.py", 3).in_function("f\n\u{202e}");
        assert_eq!(line.to_string(), "a\\u{1b}[2J.py:3, in f\\u{a}\\u{202e}");
    }
}
