//! YAML as a tree whose values know their lines.
//!
//! Guarantees: the size of a document is bounded, and so is what aliases expand to (the limits of the crate `serde-saphyr`); a key that occurs
//! twice is an error. Does not: know what a document means.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::report;

/// The maximum length of an error, which may quote the document.
const SHOWN: usize = 400;

/// A value and the line that it begins in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) line: u64,
    pub(super) value: Value,
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
    /// Reads a document. The error has no path.
    pub(super) fn read(text: &str) -> Result<Node, String> {
        serde_saphyr::from_str(text).map_err(|e| {
            let whole = e.to_string();
            let line = whole.lines().next().unwrap_or_default();
            report::cut(line.strip_prefix("error: ").unwrap_or(line), SHOWN)
        })
    }

    /// What kind of value this is, for messages.
    pub(super) fn kind(&self) -> String {
        match &self.value {
            Value::Null => "nothing".into(),
            Value::Bool(b) => b.to_string(),
            Value::Number(n) => n.to_string(),
            Value::Text(t) => format!("`{}`", report::escaped(&report::cut(t, 60))),
            Value::List(_) => "a list".into(),
            Value::Map(_) => "a mapping".into(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Node, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Value>::deserialize(d)?;
        Ok(Node { line: referenced.line(), value })
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
