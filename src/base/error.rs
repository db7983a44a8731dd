//! What can go wrong, as types: one [`Error`] for the library, one [`Diagnostic`] for a mistake in a program.
//!
//! Guarantees: a diagnostic names the op, its operands with dtype and shape, what was expected, and the place the
//! user wrote it (a source line, or a range of the expression's text). Names from files and feeds are escaped and cut.
//! Does not: print in colour or draw carets; that is the command's business.

use std::fmt;

use crate::base::dtype::{DType, UnknownDType};

pub(crate) use crate::base::location::SourceLocation;
pub(crate) use crate::base::names::{Name, Quoted, nearest, shown, shown_path};

/// The result of a castwise call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a mistake in a program, for code that wants to tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// The op does not take this dtype (after promotion).
    UnsupportedDType,
    /// The rule set has no implicit promotion for this mix; a cast would make it work.
    PromotionRefused,
    /// A dtype differs where the op wants equal ones.
    DTypeMismatch,
    /// The op takes tensors there, not a scalar.
    ArgNotTensor,
    /// A result that can't be cast to the dtype of its output.
    Cast,
    /// Shapes do not broadcast.
    Broadcast,
    /// `axis` out of range, or an operand that does not fit there; a dim of a reduction out of range, or named twice.
    Axis,
    /// The condition of `where` is not bool.
    ConditionDType,
    /// `-` on bool.
    BoolArithmetic,
    /// A negative integer exponent on integers.
    NegativeIntegerPower,
    /// A parameter out of its range.
    BadParameter,
    /// A handle of another program.
    ForeignVar,
    /// A name used twice or not at all where it must be unique or known.
    Name,
    /// The text does not parse.
    Syntax,
}

impl DiagnosticKind {
    /// Every kind, as the text form names them.
    pub(crate) const ALL: [DiagnosticKind; 14] = [
        DiagnosticKind::UnsupportedDType,
        DiagnosticKind::PromotionRefused,
        DiagnosticKind::DTypeMismatch,
        DiagnosticKind::ArgNotTensor,
        DiagnosticKind::Cast,
        DiagnosticKind::Broadcast,
        DiagnosticKind::Axis,
        DiagnosticKind::ConditionDType,
        DiagnosticKind::BoolArithmetic,
        DiagnosticKind::NegativeIntegerPower,
        DiagnosticKind::BadParameter,
        DiagnosticKind::ForeignVar,
        DiagnosticKind::Name,
        DiagnosticKind::Syntax,
    ];

    /// The kind of this name.
    pub(crate) fn from_name(name: &str) -> Option<DiagnosticKind> {
        DiagnosticKind::ALL.into_iter().find(|f| format!("{f:?}") == name)
    }
}

/// One mistake in a program, with everything a reader needs to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What kind of mistake.
    pub kind: DiagnosticKind,
    /// One sentence: op, operands with dtype and shape, expected and found.
    pub message: String,
    /// What to write instead, if there is an answer.
    pub help: Option<String>,
    /// Where the user wrote it.
    pub location: SourceLocation,
    /// The settings that the message and the help name.
    settings: [Box<[Mention]>; 2],
}

/// A setting that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mention {
    /// Where in the text it begins.
    at: usize,
    /// What stands there: the setting as Rust has it.
    spelled: String,
    setting: &'static str,
    value: &'static str,
}

/// A text, and the settings that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phrase {
    text: String,
    settings: Vec<Mention>,
}

impl<T: Into<String>> From<T> for Phrase {
    fn from(text: T) -> Phrase {
        Phrase { text: text.into(), settings: Vec::new() }
    }
}

impl Phrase {
    /// A setting and its value, with the Rust expression of both: `rules`, `torch`, `Rules::Torch`.
    pub(crate) fn setting(setting: &'static str, value: &'static str, spelled: String) -> Phrase {
        Phrase { text: spelled.clone(), settings: vec![Mention { at: 0, spelled, setting, value }] }
    }

    /// This text and then another.
    pub(crate) fn and(mut self, other: impl Into<Phrase>) -> Phrase {
        let (other, at) = (other.into(), self.text.len());
        self.settings.extend(other.settings.into_iter().map(|m| Mention { at: at + m.at, ..m }));
        self.text += &other.text;
        self
    }
}

/// A text with other words for the settings it names. What was changed in it since, so that it no longer names one there, stays.
fn worded(text: &str, settings: &[Mention], word: &dyn Fn(&str, &str) -> String) -> String {
    let (mut new, mut done) = (String::with_capacity(text.len()), 0);
    for m in settings {
        if let (Some(before), true) =
            (text.get(done..m.at), text.get(m.at..).is_some_and(|t| t.starts_with(&m.spelled)))
        {
            new += before;
            new += &word(m.setting, m.value);
            done = m.at + m.spelled.len();
        }
    }
    new + text.get(done..).unwrap_or_default()
}

impl Diagnostic {
    /// A diagnostic without help or place.
    pub fn new(kind: DiagnosticKind, message: impl Into<Phrase>) -> Diagnostic {
        let Phrase { text: message, settings } = message.into();
        Diagnostic {
            kind,
            message,
            help: None,
            location: SourceLocation::None,
            settings: [settings.into(), Box::default()],
        }
    }

    /// The same with a suggestion.
    pub fn help(mut self, help: impl Into<Phrase>) -> Diagnostic {
        let Phrase { text, settings } = help.into();
        self.help = Some(text);
        self.settings[1] = settings.into();
        self
    }

    /// The same with one more suggestion.
    pub(crate) fn also(mut self, help: impl Into<Phrase>) -> Diagnostic {
        let Some(text) = self.help.take() else { return self.help(help) };
        let before = Phrase { text, settings: std::mem::take(&mut self.settings[1]).into() };
        self.help(before.and("; ").and(help))
    }

    /// The same with other words for the settings that message and help name: `word` is given a setting and its value, `rules`
    /// and `torch` where the text has `Rules::Torch`.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Paddle);
    /// let _ = p.data("i", DType::I64, [3]) + p.data("x", DType::F32, [3]);
    /// let error = p.check().expect_err("Paddle does not mix them");
    /// let d = &error.diagnostics()[0];
    /// assert!(d.message.contains("under Rules::Paddle"));
    /// let d = d.worded(|setting, value| format!("--{setting} {value}"));
    /// assert!(d.message.contains("under --rules paddle") && d.help.is_some_and(|h| h.ends_with("--rules torch would give f32")));
    /// ```
    pub fn worded(&self, word: impl Fn(&str, &str) -> String) -> Diagnostic {
        let [message, help] = &self.settings;
        Diagnostic {
            kind: self.kind,
            message: worded(&self.message, message, &word),
            help: self.help.as_deref().map(|h| worded(h, help, &word)),
            location: self.location.clone(),
            settings: Default::default(),
        }
    }

    /// The same at a place.
    pub fn at(mut self, location: &SourceLocation) -> Diagnostic {
        self.location = location.clone();
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.location != SourceLocation::None {
            write!(f, "\n  at {}", self.location)?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// Everything that a castwise call can answer besides a result. Each variant says whose business it is.
///
/// ```
/// use castwise::{Error, DiagnosticKind, prelude::*};
/// let p = Program::new(Rules::Torch);
/// let (x, y) = (p.data("x", DType::F32, [3]), p.data("y", DType::F32, [4]));
/// let z = &x + &y;
/// let result = Executor::new().run(&p, feeds! {}, [&z]);
/// assert!(matches!(&result, Err(Error::Invalid(mistakes)) if mistakes[0].kind == DiagnosticKind::Broadcast));
/// if let Err(error) = result {
///     println!("{error}");                                           // with the line above
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program is wrong: all its mistakes, in program order.
    #[error("{}", list(.0))]
    Invalid(Vec<Diagnostic>),
    /// Not the name of a dtype.
    #[error(transparent)]
    UnknownDType(#[from] UnknownDType),
    /// A tensor was read as another dtype than it has.
    #[error("the tensor is {found}, not {expected}")]
    DType {
        /// What the caller asked for.
        expected: DType,
        /// What the tensor is.
        found: DType,
    },
    /// A shape, view or index that does not fit its tensor.
    #[error("{0}")]
    Shape(String),
    /// A feed that is missing, unknown, or not what the program declares.
    #[error("feed `{}`: {problem}", shown(.name))]
    Feed {
        /// The name of the feed.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Integer division or remainder by zero in the data.
    #[error("integer division by zero in `{op}`\n  at {location}")]
    DivisionByZero {
        /// The op that divided.
        op: &'static str,
        /// Where the user wrote it.
        location: SourceLocation,
    },
    /// A custom op that can't be registered.
    #[error(transparent)]
    CustomOp(#[from] CustomOpError),
    /// The function of a custom op panicked. The run has no results; the executor can be used further.
    #[error("the function of the custom op `{op}` panicked{}\n  at {location}", said(.message))]
    Panicked {
        /// The op.
        op: &'static str,
        /// What it panicked with, if that was text.
        message: Option<String>,
        /// Where the user wrote its application.
        location: SourceLocation,
    },
    /// The largest or smallest of no elements.
    #[error("`{op}` over dims without elements\n  at {location}")]
    EmptyReduction {
        /// The op that reduced.
        op: &'static str,
        /// Where the user wrote it.
        location: SourceLocation,
    },
    /// The data does not fit into memory.
    #[error("out of memory: {bytes} bytes could not be allocated")]
    OutOfMemory {
        /// What was asked of the allocator.
        bytes: usize,
    },
    /// A limit of this library or of the settings.
    #[error("{which} is {got}, more than the limit of {max}")]
    Limit {
        /// What is limited.
        which: &'static str,
        /// The limit.
        max: u64,
        /// What was asked for.
        got: u64,
    },
    /// The run's [`CancelToken`](crate::CancelToken) was pulled.
    #[error("the run was cancelled")]
    Cancelled,
    /// The run took longer than the executor lets it.
    #[error("the run was stopped: it took longer than {limit:?}")]
    TimeLimit {
        /// The limit of the executor's settings.
        limit: std::time::Duration,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", shown_path(.path))]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what its format demands.
    #[error("{}: {message}", shown_path(.path))]
    Format {
        /// The file.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// An eager value was computed from one that had failed with this error.
    #[error(transparent)]
    Earlier(std::sync::Arc<Error>),
    /// A fault of castwise itself: please report it with the program's text.
    #[error("internal error (a bug in castwise): {0}")]
    Internal(String),
}

impl From<Diagnostic> for Error {
    fn from(d: Diagnostic) -> Error {
        Error::Invalid(vec![d])
    }
}

impl Error {
    /// The diagnostics of a wrong program; empty for other errors.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Error::Invalid(list) => list,
            Error::Earlier(e) => e.diagnostics(),
            _ => &[],
        }
    }
}

/// Why a custom op can't be registered.
///
/// ```
/// use castwise::{CustomOp, CustomOpError, Error, Promotion, Registry};
/// let exp = CustomOp::new("exp", ["x"], Promotion::IntToFloat).with(|[x]: [f32; 1]| x.exp());
/// let result = Registry::new().register(exp);
/// assert!(matches!(result, Err(Error::CustomOp(CustomOpError::NameOfTable { name })) if name == "exp"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CustomOpError {
    /// A name, of the op or of an operand, that the text form could not read.
    #[error("`{}` can't be the name of an op or an operand: {why}", shown(.name))]
    Identifier {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An op of the table has the name, or goes by it.
    #[error("the op table has an op `{name}` already")]
    NameOfTable {
        /// The name.
        name: String,
    },
    /// The registry has a custom op of the name.
    #[error("a custom op `{name}` is registered already")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// An op without operands, or with more than ops have.
    #[error("the custom op `{op}` has {got} operands; an op has 1 to {max}")]
    Arity {
        /// The op.
        op: String,
        /// The number of its operands.
        got: usize,
        /// The most that an op has.
        max: usize,
    },
    /// A promotion that needs an attribute.
    #[error("the custom op `{op}` can't be promoted as `cast` is: nothing gives the dtype")]
    Promotion {
        /// The op.
        op: String,
    },
    /// No function for any dtype that the promotion computes in.
    #[error("the custom op `{op}` has no function for a dtype that it computes in: {computes}")]
    NoFunction {
        /// The op.
        op: String,
        /// The dtypes that its promotion computes in (the half types compute in f32, c32 in c64).
        computes: String,
    },
    /// A function that would never be called.
    #[error("the custom op `{op}` has a function for {dtype}, but its promotion computes in {computes} only")]
    UselessFunction {
        /// The op.
        op: String,
        /// The dtype of the function.
        dtype: DType,
        /// The dtypes that its promotion computes in.
        computes: String,
    },
    /// Two functions for one dtype.
    #[error("the custom op `{op}` has two functions for {dtype}")]
    TwoFunctions {
        /// The op.
        op: String,
        /// The dtype.
        dtype: DType,
    },
    /// As many custom ops as a process can have.
    #[error("this process has {max} custom ops already")]
    TooMany {
        /// The limit.
        max: usize,
    },
}

/// The diagnostics one below the other, the first hundred of them.
fn list(all: &[Diagnostic]) -> String {
    let mut text = all.iter().take(100).map(ToString::to_string).collect::<Vec<_>>().join("\n");
    if all.len() > 100 {
        text += &format!("\n(and {} more)", all.len() - 100);
    }
    text
}

/// What was panicked with, as it may stand behind "panicked": its lines indented, each as a path.
fn said(message: &Option<String>) -> String {
    let lines = message.iter().flat_map(|text| text.lines()).take(100).map(shown_path).collect::<Vec<_>>();
    if lines.is_empty() { String::new() } else { format!(": {}", lines.join("\n    ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_mistake_has_a_name() {
        for f in DiagnosticKind::ALL {
            use DiagnosticKind::*;
            // A new kind does not compile here: it belongs into `ALL` too.
            match f {
                UnsupportedDType | PromotionRefused | DTypeMismatch | ArgNotTensor | Cast | Broadcast | Axis => {}
                ConditionDType | BoolArithmetic | NegativeIntegerPower | BadParameter | ForeignVar | Name | Syntax => {}
            }
            assert_eq!(DiagnosticKind::from_name(&format!("{f:?}")), Some(f));
        }
        assert_eq!(DiagnosticKind::ALL.map(|f| f as usize), std::array::from_fn(|i| i));
    }
}
