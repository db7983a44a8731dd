//! The scalar parameters of an expression: one value, or one for each tensor name.
//!
//! Guarantees: a key that is a tensor's name applies to that tensor only. Other keys are regular expressions, and the
//! first one in the file that matches a name applies to it. A name without a value is an error. Time and memory are
//! linear in the number of keys plus the number of names. Does not: read values other than numbers, `true` and `false`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use castwise::expr::parse_constant;
use castwise::io::read_text;
use castwise::{Error, Scalar};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::failure::Failure;
use super::patterns::Patterns;
use super::report;

/// The maximum size of a parameter file, which allows some hundred thousand names.
const MAX_FILE: u64 = 16 << 20;
/// The maximum number of rows of a table that are tried when an expression is read.
const TRIED: usize = 64;
/// The maximum length of a JSON error, which may quote the file.
const SHOWN: usize = 300;

pub(super) struct Scalars(Vec<Parameter>);

struct Parameter {
    name: String,
    values: Values,
}

enum Values {
    One(Scalar),
    PerName(Table),
}

/// The contents of a parameter file.
struct Table {
    path: PathBuf,
    /// The keys, with the positions of their values.
    rows: HashMap<String, usize>,
    /// The values in the order of the file.
    values: Vec<Scalar>,
}

impl Scalars {
    pub(super) fn read(arguments: &[(String, OsString)]) -> Result<Scalars, Failure> {
        let mut all: Vec<Parameter> = Vec::new();
        for (name, value) in arguments {
            if all.iter().any(|p| p.name == *name) {
                return Err(Failure::usage(format!("the parameter `{}` is given twice", report::escaped(name))));
            }
            // A value that is not UTF-8 can't be a number, but may be a file name.
            let values = match value.to_str().map(parse_constant) {
                Some(Ok(value)) => Values::One(value),
                number if matches!(Path::new(value).try_exists(), Ok(false)) => {
                    return Err(neither(name, value, number.and_then(Result::err)));
                }
                _ => Values::PerName(Table::read(Path::new(value))?),
            };
            all.push(Parameter { name: name.clone(), values });
        }
        Ok(Scalars(all))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|p| p.name.as_str())
    }

    fn tables(&self) -> impl Iterator<Item = (&str, &Table)> {
        self.0.iter().filter_map(|p| match &p.values {
            Values::One(_) => None,
            Values::PerName(table) => Some((p.name.as_str(), table)),
        })
    }

    /// The parameter files.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.tables().map(|(_, t)| t.path.as_path())
    }

    /// The value of a parameter that has the same value for all tensors.
    pub(super) fn only(&self, name: &str) -> Option<Scalar> {
        match self.0.iter().find(|p| p.name == name)?.values {
            Values::One(v) => Some(v),
            Values::PerName(_) => None,
        }
    }

    /// The largest number of values that a parameter has, at most [`TRIED`].
    pub(super) fn rows(&self) -> usize {
        let rows = |p: &Parameter| if let Values::PerName(table) = &p.values { table.values.len() } else { 1 };
        self.0.iter().map(rows).max().unwrap_or(0).min(TRIED)
    }

    /// The value of a parameter in a row of its table, or in the last row if the table has fewer.
    pub(super) fn any(&self, name: &str, row: usize) -> Option<Scalar> {
        let p = self.0.iter().find(|p| p.name == name)?;
        Some(match &p.values {
            Values::One(v) => *v,
            Values::PerName(Table { values, .. }) => {
                values.get(row).or(values.last()).copied().unwrap_or(Scalar::Float(0.5))
            }
        })
    }

    /// The values of the used parameters for these tensors. `is_tensor` tells whether a key is the name of a tensor,
    /// selected or not.
    pub(super) fn of_tensors(
        &self,
        names: &[&str],
        is_used: impl Fn(&str) -> bool,
        is_tensor: impl Fn(&str) -> bool,
    ) -> Result<OfTensors<'_>, Failure> {
        let mut of = OfTensors { scalars: self, found: HashMap::new(), unused: Vec::new() };
        for (parameter, table) in self.tables().filter(|(p, _)| is_used(p)) {
            let (values, unused) = table.find(names, &is_tensor)?;
            of.found.insert(parameter, values);
            if !unused.is_empty() {
                of.unused.push((parameter, unused));
            }
        }
        Ok(of)
    }
}

/// The values of parameters for a list of tensors.
pub(super) struct OfTensors<'s> {
    scalars: &'s Scalars,
    /// The values by parameter, then by the position of the tensor.
    found: HashMap<&'s str, Vec<Option<Scalar>>>,
    /// The parameters that have keys which match none of the names, with these keys.
    pub(super) unused: Vec<(&'s str, Vec<&'s str>)>,
}

impl OfTensors<'_> {
    /// The value of a parameter for the tensor at a position of the list.
    pub(super) fn value(&self, parameter: &str, position: usize, tensor: &str) -> Result<Option<Scalar>, Failure> {
        let Some(p) = self.scalars.0.iter().find(|p| p.name == parameter) else { return Ok(None) };
        let path = match &p.values {
            Values::One(v) => return Ok(Some(*v)),
            Values::PerName(table) => &table.path,
        };
        if let Some(v) = self.found.get(parameter).and_then(|all| *all.get(position)?) {
            return Ok(Some(v));
        }
        let (tensor, parameter) = (report::escaped(tensor), report::escaped(parameter));
        let text = format!("`{parameter}` has no value for the tensor `{tensor}` (the key \".*\" matches every name)");
        Err(fault(path, &text))
    }
}

impl Table {
    fn read(path: &Path) -> Result<Table, Failure> {
        let text = read_text(path, MAX_FILE)?;
        let Rows { rows, values } = serde_json::from_str(&text).map_err(|e| {
            let why = report::cut(&e.to_string(), SHOWN);
            fault(path, &format!("not a JSON object of names and numbers: {why}"))
        })?;
        Ok(Table { path: path.to_path_buf(), rows, values })
    }

    /// The value for each name, and the keys that match none of them.
    fn find(
        &self,
        names: &[&str],
        is_tensor: impl Fn(&str) -> bool,
    ) -> Result<(Vec<Option<Scalar>>, Vec<&str>), Failure> {
        let named = |name: &&str| self.rows.get(*name).and_then(|row| self.values.get(*row)).copied();
        let mut values: Vec<Option<Scalar>> = names.iter().map(named).collect();
        let keys = self.rows.iter().map(|(key, row)| (*row, key.as_str()));
        let mut keys: Vec<(usize, &str)> = keys.filter(|(_, key)| !is_tensor(key)).collect();
        keys.sort_unstable();
        let mut patterns = Patterns::new(keys.iter().map(|(_, key)| *key)).map_err(|e| {
            let key = keys.get(e.position).map_or(String::new(), |(_, key)| report::escaped(key));
            fault(
                &self.path,
                &format!("the key `{key}` is neither a tensor's name nor a usable regular expression: {}", e.why),
            )
        })?;
        let mut unused = vec![true; keys.len()];
        for (name, value) in names.iter().zip(&mut values) {
            let mut first = None;
            patterns.find_in(name, |position| {
                first = Some(first.map_or(position, |p| position.min(p)));
                unused.get_mut(position).into_iter().for_each(|unused| *unused = false);
            });
            let row = first.and_then(|position: usize| keys.get(position));
            *value = value.or_else(|| row.and_then(|(row, _)| self.values.get(*row)).copied());
        }
        let unused = keys.iter().zip(unused).filter(|(_, unused)| *unused).map(|((_, key), _)| *key).collect();
        Ok((values, unused))
    }
}

/// The error for a value that is neither a number nor a file, with the mistake in the number if it begins like one.
fn neither(name: &str, value: &OsStr, e: Option<Error>) -> Failure {
    let text = value.to_string_lossy();
    let digit = text.trim_start_matches(['+', '-', '.']).starts_with(|c: char| c.is_ascii_digit());
    let d = e.as_ref().and_then(|e| e.diagnostics().first()).filter(|_| digit);
    let why = d.map_or(String::new(), |d| {
        let help = d.help.as_ref().map_or(String::new(), |h| format!("; {h}"));
        format!(" ({}{help})", d.message)
    });
    let (name, text) = (report::escaped(name), report::escaped(&text));
    let message = format!("the parameter `{name}`: `{text}` is neither a number{why} nor a file");
    Failure { text: report::error(&message), code: 1 }
}

fn fault(path: &Path, message: &str) -> Failure {
    Failure { text: report::error(&format!("{}: {message}", path.display())), code: 1 }
}

/// The entries of a JSON object: the keys with their positions in the file, and the values.
#[derive(Default)]
struct Rows {
    rows: HashMap<String, usize>,
    values: Vec<Scalar>,
}

/// A JSON number or boolean.
struct Number(Scalar);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Number, D::Error> {
        let found = |what: &str| Err(D::Error::custom(format!("expected a number, found {what}")));
        match serde_json::Value::deserialize(d)? {
            serde_json::Value::Bool(b) => Ok(Number(Scalar::Bool(b))),
            serde_json::Value::Number(n) => match (n.as_i128(), n.as_f64()) {
                (Some(i), _) => Ok(Number(Scalar::Int(i))),
                (None, Some(f)) => Ok(Number(Scalar::Float(f))),
                (None, None) => Err(D::Error::custom("the number is beyond the range of f64")),
            },
            serde_json::Value::String(text) => found(&format!("the string \"{}\"", report::escaped(&text))),
            serde_json::Value::Null => found("null"),
            serde_json::Value::Array(_) => found("an array"),
            serde_json::Value::Object(_) => found("an object"),
        }
    }
}

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Rows, D::Error> {
        struct OfObject;
        impl<'de> Visitor<'de> for OfObject {
            type Value = Rows;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of names and numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rows, A::Error> {
                let mut all = Rows::default();
                while let Some((key, Number(value))) = map.next_entry::<String, Number>()? {
                    match all.rows.entry(key) {
                        Entry::Vacant(new) => new.insert(all.values.len()),
                        Entry::Occupied(old) => {
                            let key = report::escaped(old.key());
                            return Err(A::Error::custom(format!("the key \"{key}\" occurs twice")));
                        }
                    };
                    all.values.push(value);
                }
                Ok(all)
            }
        }
        d.deserialize_map(OfObject)
    }
}
