//! The scalars of an expression that are given beside it: one value, or one for each tensor name.
//!
//! Guarantees: a key that is a tensor's name counts for that tensor alone; of the others, the first that is found in
//! a name counts, in the order of the file; a name without a value is an error. Does not: read anything but numbers,
//! `true` and `false`.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use castwise::expr::parse_constant;
use castwise::{Error, Scalar};
use regex::Regex;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::{Failure, report};

/// The largest file of scalars.
const MAX_FILE: u64 = 64 << 20;
/// How many rows of a table are tried for reading an expression.
const LOOKED_AT: usize = 64;

pub(super) struct Scalars(Vec<Parameter>);

struct Parameter {
    name: String,
    values: Values,
}

enum Values {
    One(Scalar),
    PerName { path: String, table: Vec<Row> },
}

struct Row {
    key: String,
    pattern: Result<Regex, String>,
    value: Scalar,
}

impl Scalars {
    pub(super) fn read(arguments: &[(String, String)]) -> Result<Scalars, Failure> {
        let mut all: Vec<Parameter> = Vec::new();
        for (name, text) in arguments {
            if all.iter().any(|p| p.name == *name) {
                return Err(Failure::usage(format!("the parameter `{}` is given twice", report::escaped(name))));
            }
            let values = match parse_constant(text) {
                Ok(value) => Values::One(value),
                Err(e) if matches!(Path::new(text).try_exists(), Ok(false)) => return Err(neither(name, text, &e)),
                Err(_) => Values::PerName { path: text.clone(), table: table(text)? },
            };
            all.push(Parameter { name: name.clone(), values });
        }
        Ok(Scalars(all))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|p| p.name.as_str())
    }

    /// A parameter's value, if it is the same for all tensors.
    pub(super) fn only(&self, name: &str) -> Option<Scalar> {
        match self.0.iter().find(|p| p.name == name)?.values {
            Values::One(v) => Some(v),
            Values::PerName { .. } => None,
        }
    }

    /// How many values a parameter has at most, of those that are looked at before a tensor is chosen.
    pub(super) fn rows(&self) -> usize {
        let rows = |p: &Parameter| if let Values::PerName { table, .. } = &p.values { table.len() } else { 1 };
        self.0.iter().map(rows).max().unwrap_or(0).min(LOOKED_AT)
    }

    /// The value of a parameter in a row of its table, or the last before it.
    pub(super) fn any(&self, name: &str, row: usize) -> Option<Scalar> {
        let p = self.0.iter().find(|p| p.name == name)?;
        Some(match &p.values {
            Values::One(v) => *v,
            Values::PerName { table, .. } => {
                table.get(row.min(table.len().saturating_sub(1))).map_or(Scalar::Float(0.5), |r| r.value)
            }
        })
    }

    /// A parameter's value for a tensor; `is_tensor` tells which keys are names of tensors.
    pub(super) fn value(
        &self,
        parameter: &str,
        tensor: &str,
        is_tensor: &HashSet<&str>,
    ) -> Result<Option<Scalar>, Failure> {
        let Some(p) = self.0.iter().find(|p| p.name == parameter) else { return Ok(None) };
        let (path, table) = match &p.values {
            Values::One(v) => return Ok(Some(*v)),
            Values::PerName { path, table } => (path, table),
        };
        if let Some(row) = table.iter().find(|r| r.key == tensor) {
            return Ok(Some(row.value));
        }
        for row in table.iter().filter(|r| !is_tensor.contains(r.key.as_str())) {
            match &row.pattern {
                Ok(pattern) if pattern.is_match(tensor) => return Ok(Some(row.value)),
                Ok(_) => {}
                Err(e) => {
                    let key = report::escaped(&row.key);
                    return Err(fault(path, &format!("the key `{key}` is no tensor's name, and {e}")));
                }
            }
        }
        let (tensor, parameter) = (report::escaped(tensor), report::escaped(parameter));
        Err(fault(
            path,
            &format!("`{parameter}` has no value for the tensor `{tensor}` (the key \".*\" is found in every name)"),
        ))
    }

    /// The keys that are found in none of the names.
    pub(super) fn idle<'s>(&'s self, names: &[&str]) -> Vec<(&'s str, &'s str)> {
        let mut idle = Vec::new();
        for p in &self.0 {
            let Values::PerName { table, .. } = &p.values else { continue };
            let found = |r: &Row| names.iter().any(|n| r.key == *n || r.pattern.as_ref().is_ok_and(|p| p.is_match(n)));
            idle.extend(table.iter().filter(|r| !found(r)).map(|r| (p.name.as_str(), r.key.as_str())));
        }
        idle
    }
}

/// The refusal of a value that can be read in no way; what is wrong with a number, if it looks like one.
fn neither(name: &str, text: &str, e: &Error) -> Failure {
    let digit = text.trim_start_matches(['+', '-', '.']).starts_with(|c: char| c.is_ascii_digit());
    let d = e.diagnostics().first().filter(|_| digit);
    let why = d.map_or(String::new(), |d| {
        let help = d.help.as_ref().map_or(String::new(), |h| format!("; {h}"));
        format!(" ({}{help})", d.message)
    });
    let (name, text) = (report::escaped(name), report::escaped(text));
    let message = format!("the parameter `{name}`: `{text}` is neither a number{why} nor a file");
    Failure { text: report::error(&message), code: 1 }
}

fn fault(path: &str, message: &str) -> Failure {
    Failure { text: report::error(&format!("{}: {message}", report::escaped(path))), code: 1 }
}

fn table(path: &str) -> Result<Vec<Row>, Failure> {
    let size = std::fs::metadata(path).map_err(|e| fault(path, &e.to_string()))?.len();
    if size > MAX_FILE {
        return Err(fault(path, "the file is larger than 64 MiB"));
    }
    let text = std::fs::read_to_string(path).map_err(|e| fault(path, &e.to_string()))?;
    let read: Table = serde_json::from_str(&text)
        .map_err(|e| fault(path, &format!("not a JSON object of names and numbers: {e}")))?;
    Ok(read.0)
}

/// The entries of a JSON object, in the order of the file.
struct Table(Vec<Row>);

/// A JSON number or truth value.
struct Number(Scalar);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Number, D::Error> {
        match serde_json::Value::deserialize(d)? {
            serde_json::Value::Bool(b) => Ok(Number(Scalar::Bool(b))),
            serde_json::Value::Number(n) if n.is_u64() && !n.is_i64() => {
                Err(D::Error::custom(format!("the integer {n} is beyond the range of i64; with a point it is a float")))
            }
            serde_json::Value::Number(n) => match (n.as_i64(), n.as_f64()) {
                (Some(i), _) => Ok(Number(Scalar::Int(i))),
                (None, Some(f)) => Ok(Number(Scalar::Float(f))),
                (None, None) => Err(D::Error::custom("a number that f64 does not hold")),
            },
            other => Err(D::Error::custom(format!("expected a number, found {other}"))),
        }
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Table, D::Error> {
        struct Rows;
        impl<'de> Visitor<'de> for Rows {
            type Value = Table;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of names and numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table, A::Error> {
                let mut rows: Vec<Row> = Vec::new();
                let mut seen = HashSet::new();
                while let Some((key, Number(value))) = map.next_entry::<String, Number>()? {
                    if !seen.insert(key.clone()) {
                        return Err(A::Error::custom(format!("the key {key:?} stands twice")));
                    }
                    let pattern = Regex::new(&key).map_err(|e| format!("not a regular expression: {e}"));
                    rows.push(Row { key, pattern, value });
                }
                Ok(Table(rows))
            }
        }
        d.deserialize_map(Rows)
    }
}
