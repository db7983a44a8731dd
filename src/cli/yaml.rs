//! YAML as a tree whose values know their lines.
//!
//! Guarantees: the size of a document is bounded, and so is what aliases expand to (the limits of the crate `serde-saphyr`); a key that occurs
//! twice is an error. Integers that YAML 1.1 and 1.2 read differently (`010`, `0o10`) are texts. Does not: know what a document means.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, Spanned};

use super::report;

/// The maximum length of a key in an error.
const SHOWN: usize = 60;

/// A value and the line that it begins in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) line: u64,
    pub(super) value: Value,
    /// The byte of the document that a number begins at, also if an alias repeats it.
    start: Option<u64>,
}

/// A value. Numbers are those of f64, which has all integers up to 2^53.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    /// The entries in their order.
    Map(Vec<(String, u64, Node)>),
}

impl Node {
    /// Reads a document. The error has its line, which is 0 if it is about the whole, and no path.
    pub(super) fn read(text: &str) -> Result<Node, (u64, String)> {
        let options =
            serde_saphyr::options! { leading_zero_numbers_as_strings: true, underscored_numbers_as_strings: true };
        let mut node: Node = serde_saphyr::from_str_with_options(text, options).map_err(|e| wrong(&e))?;
        node.octals(text);
        Ok(node)
    }

    /// Makes the numbers that are written `0o…` texts, as YAML 1.1 has them: the parser has no option for that.
    fn octals(&mut self, document: &str) {
        match &mut self.value {
            Value::Number(_) => {
                let start = self.start.and_then(|n| usize::try_from(n).ok());
                let rest = start.and_then(|n| document.get(n..)).unwrap_or_default();
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-')));
                let written = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                if is_octal(written) {
                    self.value = Value::Text(written.to_string());
                }
            }
            Value::List(all) => all.iter_mut().for_each(|n| n.octals(document)),
            Value::Map(all) => all.iter_mut().for_each(|(_, _, n)| n.octals(document)),
            Value::Null | Value::Bool(_) | Value::Text(_) => {}
        }
    }

    /// The finite number that this is, also as a text in quotes, which mergekit takes for a number. A text that YAML 1.1 and 1.2 read
    /// differently is none: whether it had quotes is not known.
    pub(super) fn number(&self) -> Option<f64> {
        match &self.value {
            Value::Number(n) => Some(*n),
            Value::Text(t) if !two_values(t) && t.len() < SHOWN => {
                t.trim().parse().ok().filter(|n: &f64| n.is_finite())
            }
            _ => None,
        }
    }

    /// What kind of value this is, for messages.
    pub(super) fn kind(&self) -> String {
        match &self.value {
            Value::Null => "nothing".into(),
            Value::Bool(b) => b.to_string(),
            Value::Number(n) => n.to_string(),
            Value::Text(t) if two_values(t) || is_octal(t) => {
                format!("`{t}`, which YAML 1.1 and YAML 1.2 read differently: write the decimal digits alone")
            }
            Value::Text(t) => format!("`{}`", report::escaped(&report::cut(t, SHOWN))),
            Value::List(_) => "a list".into(),
            Value::Map(_) => "a mapping".into(),
        }
    }
}

/// Whether a text is an integer with a leading zero or with underscores, or one of base 60.
fn two_values(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let two = digits.len() > 1 && digits.starts_with('0') || digits.contains(['_', ':']);
    two && digits.len() < SHOWN
        && digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_' || b == b':')
}

/// Whether a text is an integer of YAML 1.2 in base 8, which is a text in YAML 1.1.
fn is_octal(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text).strip_prefix("0o").unwrap_or_default();
    (1..SHOWN).contains(&digits.len()) && digits.bytes().all(|b| (b'0'..=b'7').contains(&b))
}

/// The line of an error, and what is wrong, in this command's words.
fn wrong(e: &Error) -> (u64, String) {
    let line = e.location().map_or(0, |l| l.line());
    let mut inner = e.without_snippet();
    while let Error::AliasError { error, .. } = inner {
        inner = error.without_snippet();
    }
    let text = match inner {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("`{}` is given twice", report::escaped(&report::cut(key, SHOWN)))
        }
        Error::DuplicateMappingKey { .. } => "a key is given twice".into(),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "the document is too large, by itself or with its aliases replaced by their values".into()
        }
        Error::NonFiniteFloat { .. } => "numbers are finite".into(),
        Error::Eof { .. } => "the document is empty".into(),
        Error::MultipleDocuments { .. } => "there is one document in a file".into(),
        other if other.to_string().contains("recursion limit") => {
            "more lists and mappings in each other than are read".into()
        }
        _ => {
            let column = e.location().map_or(0, |l| l.column());
            let at = if column > 0 { format!(" at column {column}") } else { String::new() };
            format!("this is no YAML that castwise reads{at}")
        }
    };
    (line, text)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Node, D::Error> {
        let Spanned { value, referenced, defined } = Spanned::<Value>::deserialize(d)?;
        Ok(Node { line: referenced.line(), value, start: defined.span().byte_offset() })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Value, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }

            fn visit_none<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }

            fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Value, D::Error> {
                Value::deserialize(d)
            }

            fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
                Ok(Value::Bool(b))
            }

            fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
                Ok(Value::Number(n as f64))
            }

            fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
                Ok(Value::Number(n as f64))
            }

            fn visit_f64<E>(self, n: f64) -> Result<Value, E> {
                Ok(Value::Number(n))
            }

            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Value, A::Error> {
                let mut list = Vec::new();
                while let Some(node) = all.next_element()? {
                    list.push(node);
                }
                Ok(Value::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Value, A::Error> {
                let mut map = Vec::new();
                while let Some(key) = all.next_key::<Spanned<String>>()? {
                    map.push((key.value, key.referenced.line(), all.next_value()?));
                }
                Ok(Value::Map(map))
            }
        }
        d.deserialize_any(Any)
    }
}
