//! Error types: [`Error`] for the library, [`Diagnostic`] for a mistake in a program.
//!
//! Guarantees: a diagnostic names the op, its operands with dtype and shape, what was expected, and the source location
//! (a source line, or a range of the expression's text). Names from files and feeds are escaped and truncated. Does not:
//! print in color or draw carets; the command does that.

use std::fmt;

use crate::base::dtype::DType;
use crate::base::dtype_names::UnknownDType;

pub(crate) use crate::base::location::SourceLocation;
pub(crate) use crate::base::names::{Name, Quoted, nearest, shown, shown_path};

/// The result of a castwise call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a mistake in a program, for programmatic matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// The op does not support this dtype (after promotion).
    UnsupportedDType,
    /// The rule set has no implicit promotion for these dtypes; an explicit cast is needed.
    PromotionRefused,
    /// Operands have different dtypes, but the op requires equal ones.
    DTypeMismatch,
    /// A scalar was given for an operand that must be a tensor.
    ArgNotTensor,
    /// The result can't be cast to the dtype of the output.
    Cast,
    /// Shapes do not broadcast.
    Broadcast,
    /// `axis` is out of range, or an operand does not fit there; a dim of a reduction is out of range or named twice.
    Axis,
    /// The condition of `where` is not bool.
    ConditionDType,
    /// `-` on bool.
    BoolArithmetic,
    /// A negative integer exponent on integers.
    NegativeIntegerPower,
    /// An integer scalar is out of the range of the dtype that it is converted to.
    ScalarOverflow,
    /// A parameter is out of range.
    BadParameter,
    /// A handle belongs to another program.
    ForeignVar,
    /// A name that must be unique is used twice, or a name is unknown.
    Name,
    /// The text does not parse.
    Syntax,
    /// A gradient is asked for of, or through, what has none.
    NotDifferentiable,
}

impl DiagnosticKind {
    /// Every kind, in declaration order. The text form uses their names.
    pub(crate) const ALL: [DiagnosticKind; 16] = [
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
        DiagnosticKind::ScalarOverflow,
        DiagnosticKind::BadParameter,
        DiagnosticKind::ForeignVar,
        DiagnosticKind::Name,
        DiagnosticKind::Syntax,
        DiagnosticKind::NotDifferentiable,
    ];

    /// The kind of this name.
    pub(crate) fn from_name(name: &str) -> Option<DiagnosticKind> {
        DiagnosticKind::ALL.into_iter().find(|f| format!("{f:?}") == name)
    }
}

/// One mistake in a program, with what is needed to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The kind of mistake.
    pub kind: DiagnosticKind,
    /// One sentence with the op, its operands with dtype and shape, and what was expected and found.
    pub message: String,
    /// What to write instead, if there is a suggestion.
    pub help: Option<String>,
    /// The source location.
    pub location: SourceLocation,
    /// The settings that the message and the help mention.
    settings: [Box<[Mention]>; 2],
}

/// A setting that a text mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mention {
    /// Its byte offset in the text.
    at: usize,
    /// The text at that offset: the setting as a Rust expression.
    spelled: String,
    setting: &'static str,
    value: &'static str,
}

/// A text and the settings that it mentions.
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
    /// A mention of a setting and its value, spelled as a Rust expression: `rules`, `torch`, `Rules::Torch`.
    pub(crate) fn setting(setting: &'static str, value: &'static str, spelled: String) -> Phrase {
        Phrase { text: spelled.clone(), settings: vec![Mention { at: 0, spelled, setting, value }] }
    }

    /// This text followed by another.
    pub(crate) fn and(mut self, other: impl Into<Phrase>) -> Phrase {
        let (other, at) = (other.into(), self.text.len());
        self.settings.extend(other.settings.into_iter().map(|m| Mention { at: at + m.at, ..m }));
        self.text += &other.text;
        self
    }
}

/// The text with its mentions of settings replaced by `word`. A mention is left alone if the text there has changed.
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
    /// A diagnostic without help or location.
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

    /// Sets the help, a suggestion.
    pub fn help(mut self, help: impl Into<Phrase>) -> Diagnostic {
        let Phrase { text, settings } = help.into();
        self.help = Some(text);
        self.settings[1] = settings.into();
        self
    }

    /// Appends a suggestion to the help.
    pub(crate) fn also(mut self, help: impl Into<Phrase>) -> Diagnostic {
        let Some(text) = self.help.take() else { return self.help(help) };
        let before = Phrase { text, settings: std::mem::take(&mut self.settings[1]).into() };
        self.help(before.and("; ").and(help))
    }

    /// The same diagnostic with settings worded in another syntax: `word` receives each setting and its value, such as
    /// `rules` and `torch` where the text has `Rules::Torch`, and returns the replacement.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Paddle);
    /// let _ = p.data("i", DType::I64, [3]) + p.data("x", DType::F32, [3]);
    /// let error = p.check().expect_err("Paddle does not mix them");
    /// let d = &error.diagnostics()[0];
    /// assert!(d.message.contains("under Rules::Paddle"));
    /// let d = d.worded(|setting, value| format!("--{setting} {value}"));
    /// assert!(d.message.contains("under --rules paddle"));
    /// assert!(d.help.is_some_and(|h| h.contains("; --rules torch")));
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

    /// Sets the location.
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

/// The error of a castwise call. Each variant's documentation says what caused it.
///
/// ```
/// use castwise::{Error, DiagnosticKind, prelude::*};
/// let p = Program::new(Rules::Torch);
/// let (x, y) = (p.data("x", DType::F32, [3]), p.data("y", DType::F32, [4]));
/// let z = &x + &y;
/// let result = Executor::new().run(&p, feeds! {}, [&z]);
/// assert!(matches!(&result, Err(Error::Invalid(mistakes)) if mistakes[0].kind == DiagnosticKind::Broadcast));
/// if let Err(error) = result {
///     println!("{error}");                                           // names the line of `&x + &y`
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program is invalid: all its mistakes, in program order.
    #[error("{}", list(.0))]
    Invalid(Vec<Diagnostic>),
    /// A string is not the name of a dtype.
    #[error(transparent)]
    UnknownDType(#[from] UnknownDType),
    /// A tensor was read as a dtype that it does not have.
    #[error("the tensor is {found}, not {expected}")]
    DType {
        /// The dtype that the caller asked for.
        expected: DType,
        /// The dtype of the tensor.
        found: DType,
    },
    /// A shape, view or index does not fit its tensor.
    #[error("{0}")]
    Shape(String),
    /// A feed is missing, unknown, or not what the program declares.
    #[error("feed `{}`: {problem}", shown(.name))]
    Feed {
        /// The name of the feed.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An integer division or remainder had a zero divisor in the data.
    #[error("integer division by zero in `{op}`\n  at {location}")]
    DivisionByZero {
        /// The op that divided.
        op: &'static str,
        /// The source location.
        location: SourceLocation,
    },
    /// An integer power had a negative exponent in the data, under NumPy's rules.
    #[error("negative exponent in `{op}` of integers\n  at {location}")]
    NegativeExponent {
        /// The op.
        op: &'static str,
        /// The source location.
        location: SourceLocation,
    },
    /// A custom op can't be registered.
    #[error(transparent)]
    CustomOp(#[from] CustomOpError),
    /// The function of a custom op panicked. The run has no results; the executor can be used further.
    #[error("the function of the custom op `{op}` panicked{}\n  at {location}", said(.message))]
    Panicked {
        /// The op.
        op: &'static str,
        /// The panic message, if it is text.
        message: Option<String>,
        /// The source location of the op's application.
        location: SourceLocation,
    },
    /// An empty reduction: the maximum or minimum over dims without elements.
    #[error("`{op}` over dims without elements\n  at {location}")]
    EmptyReduction {
        /// The op that reduced.
        op: &'static str,
        /// The source location.
        location: SourceLocation,
    },
    /// The data does not fit into memory.
    #[error("out of memory: {bytes} bytes could not be allocated")]
    OutOfMemory {
        /// The size of the failed allocation.
        bytes: usize,
    },
    /// A limit of this library or of the settings was exceeded.
    #[error("{which} is {got}, more than the limit of {max}")]
    Limit {
        /// The limited size.
        which: &'static str,
        /// The limit.
        max: u64,
        /// The requested value.
        got: u64,
    },
    /// The run's [`CancelToken`](crate::CancelToken) was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// The run exceeded the executor's time limit.
    #[error("the run was stopped: it took longer than {limit:?}")]
    TimeLimit {
        /// The time limit.
        limit: std::time::Duration,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", shown_path(.path))]
    Io {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file violates its format.
    #[error("{}: {message}", shown_path(.path))]
    Format {
        /// The file.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// An eager value was computed from a value that had failed with this error.
    #[error(transparent)]
    Earlier(std::sync::Arc<Error>),
    /// A bug in castwise: please report it with the program's text.
    #[error("internal error (a bug in castwise): {0}")]
    Internal(String),
}

impl From<Diagnostic> for Error {
    fn from(d: Diagnostic) -> Error {
        Error::Invalid(vec![d])
    }
}

impl Error {
    /// The diagnostics of an invalid program; empty for other errors.
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
    /// The name of the op or of an operand is not an identifier of the text form.
    #[error("`{}` can't be the name of an op or an operand: {why}", shown(.name))]
    Identifier {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An op of the table has this name or alias.
    #[error("the op table has an op `{name}` already")]
    NameOfTable {
        /// The name.
        name: String,
    },
    /// The registry has a custom op of this name.
    #[error("a custom op `{name}` is registered already")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The op has no operands, or more than the maximum.
    #[error("the custom op `{op}` has {got} operands; an op has 1 to {max}")]
    Arity {
        /// The op.
        op: String,
        /// The number of its operands.
        got: usize,
        /// The maximum number of operands.
        max: usize,
    },
    /// The promotion needs an attribute, which custom ops do not have.
    #[error("the custom op `{op}` can't be promoted as `cast` is: nothing gives the dtype")]
    Promotion {
        /// The op.
        op: String,
    },
    /// The op has no function for any dtype that its promotion computes in.
    #[error("the custom op `{op}` has no function for a dtype that it computes in: {computes}")]
    NoFunction {
        /// The op.
        op: String,
        /// The dtypes that its promotion computes in (the half types compute in f32, c32 in c64).
        computes: String,
    },
    /// A function is for a dtype that the promotion never computes in.
    #[error("the custom op `{op}` has a function for {dtype}, but its promotion computes in {computes} only")]
    UselessFunction {
        /// The op.
        op: String,
        /// The dtype of the function.
        dtype: DType,
        /// The dtypes that its promotion computes in.
        computes: String,
    },
    /// Two functions are for the same dtype.
    #[error("the custom op `{op}` has two functions for {dtype}")]
    TwoFunctions {
        /// The op.
        op: String,
        /// The dtype.
        dtype: DType,
    },
    /// The process has the maximum number of custom ops.
    #[error("this process has {max} custom ops already")]
    TooMany {
        /// The limit.
        max: usize,
    },
}

/// The diagnostics, one per line, at most the first hundred.
fn list(all: &[Diagnostic]) -> String {
    let mut text = all.iter().take(100).map(ToString::to_string).collect::<Vec<_>>().join("\n");
    if all.len() > 100 {
        text += &format!("\n(and {} more)", all.len() - 100);
    }
    text
}

/// A panic message made safe, for use after "panicked": each line escaped like a path and indented.
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
            // This match fails to compile for a new kind, which must be added to `ALL` too.
            match f {
                UnsupportedDType | PromotionRefused | DTypeMismatch | ArgNotTensor | Cast | Broadcast | Axis => {}
                ConditionDType | BoolArithmetic | NegativeIntegerPower | ScalarOverflow | BadParameter => {}
                ForeignVar | Name | Syntax | NotDifferentiable => {}
            }
            assert_eq!(DiagnosticKind::from_name(&format!("{f:?}")), Some(f));
        }
        assert_eq!(DiagnosticKind::ALL.map(|f| f as usize), std::array::from_fn(|i| i));
    }
}
