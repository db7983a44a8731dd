//! Error types: [`Error`] for the library, [`Diagnostic`] for a mistake in a program.
//!
//! Guarantees: a diagnostic names the op, its operands with dtype and shape, what was expected, and the source location
//! (a Rust line, or a range of the expression's text). Names from files and feeds are escaped and truncated. Does not:
//! print in color or draw carets; the command does that.

use std::fmt::{self, Write};
use std::ops::Range;
use std::panic::Location;

use crate::base::dtype::{DType, UnknownDType};

/// The result of a castwise call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

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
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceLocation::None => f.write_str("(no source line)"),
            SourceLocation::Rust(l) => write!(f, "{}:{}:{}", l.file(), l.line(), l.column()),
            SourceLocation::Text(r) => write!(f, "characters {}..{}", r.start, r.end),
        }
    }
}

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
    /// A parameter is out of range.
    BadParameter,
    /// A handle belongs to another program.
    ForeignVar,
    /// A name that must be unique is used twice, or a name is unknown.
    Name,
    /// The text does not parse.
    Syntax,
}

impl DiagnosticKind {
    /// Every kind, in declaration order. The text form uses their names.
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

/// Whether this character changes the text direction in a terminal; `escape_debug` does not escape these.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text in double quotes that parses back: quotes, backslashes and invisible characters are escaped.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\'' => f.write_char(c)?,
                c if is_direction_mark(c) || c.escape_debug().len() > 1 => write!(f, "{}", c.escape_unicode())?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// A name in the text form: bare if it is a plain identifier, else quoted.
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        let plain = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        if plain { f.write_str(self.0) } else { Quoted(self.0).fmt(f) }
    }
}

/// A name from outside, made safe for a message: control characters escaped, truncated to 80 characters.
pub(crate) fn shown(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars().take(80) {
        if is_direction_mark(c) { text.extend(c.escape_unicode()) } else { text.extend(c.escape_debug()) }
    }
    if name.chars().nth(80).is_some() {
        text.push('…');
    }
    text
}

/// The candidate most similar to a mistyped word: one that starts with the word, or one within an edit distance of a
/// quarter of the shorter word's length, but at least 1 and at most 3.
pub(crate) fn nearest<'n>(word: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if word.len() > 64 {
        return None;
    }
    let begun = |n: &str| word.len() >= 3 && n.starts_with(word);
    let cost = |n: &str| if begun(n) { 0 } else { edits(word, n) };
    let allowed = |n: &str| (word.len().min(n.len()) / 4).clamp(1, 3);
    let likely = |n: &&str| n.len() <= 64 && cost(n) <= allowed(n) && (begun(n) || word.len().min(n.len()) > 2);
    candidates.filter(likely).min_by_key(|n| (cost(n), n.len().abs_diff(word.len())))
}

/// The edit distance of two words (Damerau–Levenshtein, with swaps of adjacent letters).
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut older: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (above[j] + (x != y) as usize).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(older[j - 1] + 1);
            }
            row.push(least);
        }
        older = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

/// A path made safe for a message: control characters escaped, truncated to the maximum length of a path.
pub(crate) fn shown_path(path: &str) -> String {
    let mut text = String::new();
    for c in path.chars().take(4096) {
        if c.is_control() || is_direction_mark(c) { text.extend(c.escape_unicode()) } else { text.push(c) }
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
                ConditionDType | BoolArithmetic | NegativeIntegerPower | BadParameter | ForeignVar | Name | Syntax => {}
            }
            assert_eq!(DiagnosticKind::from_name(&format!("{f:?}")), Some(f));
        }
        assert_eq!(DiagnosticKind::ALL.map(|f| f as usize), std::array::from_fn(|i| i));
    }

    #[test]
    fn names_are_escaped_and_cut() {
        assert_eq!(shown("a\x1b[2J\u{202e}"), "a\\u{1b}[2J\\u{202e}");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), 81);
        let e = Error::Format { path: "a b/\u{1b}[2J\n\u{202e}'\".npy".into(), message: "broken".into() };
        assert_eq!(e.to_string(), "a b/\\u{1b}[2J\\u{a}\\u{202e}'\".npy: broken");
        let e = Error::Io { path: "\u{7}".repeat(5000), source: std::io::ErrorKind::NotFound.into() };
        assert!(!e.to_string().contains('\u{7}') && e.to_string().len() < 30_000);
        assert_eq!(Name("layer.0").to_string(), "layer.0");
        assert_eq!(Name("0").to_string(), "\"0\"");
        assert_eq!(Name("it's \"ä\"\\\n\u{202e}").to_string(), r#""it's \"ä\"\\\u{a}\u{202e}""#);
    }
}
