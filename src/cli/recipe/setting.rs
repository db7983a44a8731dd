//! Settings of recipes: a number, a list that is interpolated over the layers of a model, or either by the names of tensors.
//!
//! Guarantees: they mean what they mean in mergekit: a list of n numbers at the place t from 0 to 1 is interpolated in f64,
//! and of n truth values it is the one at t (n - 1), rounded down; the first filter that a
//! tensor's name contains counts; numbers are finite. Does not: know parameters.

use super::super::report;
use super::super::yaml::{Node, Value};

/// The most values of a list.
const MOST: usize = 4096;

/// A number or a truth value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::cli) enum Number {
    Bool(bool),
    Real(f64),
}

/// The value of a parameter for tensors of any name.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) enum Setting {
    One(Number),
    /// A word for true or false in quotes, such as `'no'`, of which a parameter makes a truth value or an error.
    Word(bool),
    /// Values from the first layer to the last.
    Gradient(Vec<f64>),
    /// Truth values from the first layer to the last, which are not interpolated.
    Steps(Vec<bool>),
    /// A list that has more than numbers, of which a parameter makes `Steps`, a `Gradient` or an error.
    Mixed(Vec<Setting>),
    /// By parts of names; none is for all names.
    Filters(Vec<(Option<String>, Setting)>),
}

impl Setting {
    /// Reads the text of a setting: `0.5`, `true`, `[0, 0.5, 1]`, `[{filter: mlp, value: 0.3}, {value: 1}]`.
    pub(in crate::cli) fn read(text: &str) -> Result<Setting, String> {
        Setting::of(&Node::read(text).map_err(|(_, why)| why)?).map_err(|(_, why)| why)
    }

    /// The setting of a YAML value. The error has the line.
    pub(in crate::cli) fn of(node: &Node) -> Result<Setting, (u64, String)> {
        let list = match &node.value {
            Value::List(list) => list,
            Value::Map(_) => return Setting::filter(node).map(|one| Setting::Filters(vec![one])),
            _ => return Setting::flat(node),
        };
        if !list.iter().any(|n| matches!(n.value, Value::Map(_))) {
            return Setting::flat(node);
        }
        if list.len() > MOST {
            return Err((node.line, format!("more than {MOST} filters")));
        }
        list.iter().map(Setting::filter).collect::<Result<Vec<_>, _>>().map(Setting::Filters)
    }

    /// A value without filters.
    fn flat(node: &Node) -> Result<Setting, (u64, String)> {
        let wrong = |n: &Node| (n.line, format!("expected a number, found {}", n.kind()));
        match &node.value {
            Value::Bool(b) => Ok(Setting::One(Number::Bool(*b))),
            Value::List(list) if (1..=MOST).contains(&list.len()) => {
                if let Some(values) = list.iter().map(Node::number).collect() {
                    return Ok(Setting::Gradient(values));
                }
                let one = |n: &Node| if let Value::List(_) = n.value { Err(wrong(n)) } else { Setting::flat(n) };
                list.iter().map(one).collect::<Result<_, _>>().map(Setting::Mixed)
            }
            Value::List(_) => Err((node.line, format!("a list has 1 to {MOST} values"))),
            Value::Text(text) if let Some(truth) = word(text) => Ok(Setting::Word(truth)),
            _ => node.number().map(|n| Setting::One(Number::Real(n))).ok_or_else(|| wrong(node)),
        }
    }

    fn filter(node: &Node) -> Result<(Option<String>, Setting), (u64, String)> {
        let Value::Map(entries) = &node.value else {
            return Err((node.line, format!("expected `filter` and `value`, found {}", node.kind())));
        };
        let (mut filter, mut value) = (None, None);
        for (key, line, node) in entries {
            match (key.as_str(), &node.value) {
                // mergekit takes `*` for all names, too.
                ("filter", Value::Null) => {}
                ("filter", Value::Text(text)) => filter = (text != "*").then(|| text.clone()),
                ("filter", _) => return Err((node.line, format!("a filter is a part of a name, not {}", node.kind()))),
                ("value", _) => value = Some(Setting::flat(node)?),
                _ => {
                    return Err((*line, format!("`{}`: a filter has `filter` and `value` only", report::escaped(key))));
                }
            }
        }
        let value = value.ok_or_else(|| (node.line, "a filter without `value`".to_string()))?;
        Ok((filter, value))
    }

    /// This setting for a parameter that is true or false, where 0 and 1 are such values, too.
    pub(in crate::cli) fn truth(self) -> Result<Setting, String> {
        match self {
            Setting::One(Number::Real(n)) => of_number(n).map(|truth| Setting::One(Number::Bool(truth))),
            Setting::Word(truth) => Ok(Setting::One(Number::Bool(truth))),
            Setting::Gradient(values) => {
                values.into_iter().map(of_number).collect::<Result<_, _>>().map(Setting::Steps)
            }
            Setting::Mixed(all) => {
                let one = |s: Setting| match s.truth()? {
                    Setting::One(Number::Bool(truth)) => Ok(truth),
                    other => Err(format!("expected true or false, found {}", other.text())),
                };
                all.into_iter().map(one).collect::<Result<_, String>>().map(Setting::Steps)
            }
            Setting::Filters(all) => filters(all, Setting::truth),
            truth => Ok(truth),
        }
    }

    /// This setting for a parameter that is a number.
    pub(in crate::cli) fn number(self) -> Result<Setting, String> {
        match self {
            Setting::Word(truth) => Err(format!("expected a number, found a word for {truth}")),
            Setting::Mixed(all) => {
                let one = |s: Setting| match s.number()? {
                    Setting::One(Number::Bool(truth)) => Ok(f64::from(u8::from(truth))),
                    Setting::One(Number::Real(n)) => Ok(n),
                    other => Err(format!("expected a number, found {}", other.text())),
                };
                all.into_iter().map(one).collect::<Result<_, String>>().map(Setting::Gradient)
            }
            Setting::Filters(all) => filters(all, Setting::number),
            number => Ok(number),
        }
    }

    /// The value for a tensor at a place of the model from 0 to 1; none if no filter matches.
    pub(in crate::cli) fn resolve(&self, tensor: &str, place: f64) -> Option<Number> {
        let first = match self {
            Setting::Filters(all) => {
                let of =
                    |f: &&(Option<String>, Setting)| f.0.as_ref().is_none_or(|part| tensor.contains(part.as_str()));
                &all.iter().find(of)?.1
            }
            one => one,
        };
        match first {
            Setting::One(n) => Some(*n),
            Setting::Gradient(values) => Some(Number::Real(interpolated(values, place))),
            Setting::Steps(values) => {
                values.get((place * (values.len().saturating_sub(1)) as f64) as usize).map(|b| Number::Bool(*b))
            }
            Setting::Filters(_) | Setting::Word(_) | Setting::Mixed(_) => None,
        }
    }

    /// This setting, and another one where no filter of this one matches.
    pub(in crate::cli) fn or(self, other: Setting) -> Setting {
        let filters = |s: Setting| if let Setting::Filters(all) = s { all } else { vec![(None, s)] };
        Setting::Filters(filters(self).into_iter().chain(filters(other)).collect())
    }

    /// The text that [`read`](Setting::read) reads.
    pub(in crate::cli) fn text(&self) -> String {
        match self {
            Setting::One(Number::Bool(b)) | Setting::Word(b) => b.to_string(),
            Setting::One(Number::Real(n)) => n.to_string(),
            Setting::Gradient(values) => listed(values.iter().map(f64::to_string)),
            Setting::Steps(values) => listed(values.iter().map(bool::to_string)),
            Setting::Mixed(values) => listed(values.iter().map(Setting::text)),
            Setting::Filters(all) => {
                let one = |(filter, value): &(Option<String>, Setting)| match filter {
                    Some(f) => format!("{{filter: {}, value: {}}}", serde_json::Value::from(f.as_str()), value.text()),
                    None => format!("{{value: {}}}", value.text()),
                };
                listed(all.iter().map(one))
            }
        }
    }
}

fn listed(all: impl Iterator<Item = String>) -> String {
    format!("[{}]", all.collect::<Vec<_>>().join(", "))
}

/// Filters whose values are converted.
fn filters(
    all: Vec<(Option<String>, Setting)>,
    convert: fn(Setting) -> Result<Setting, String>,
) -> Result<Setting, String> {
    all.into_iter().map(|(filter, value)| Ok((filter, convert(value)?))).collect::<Result<_, _>>().map(Setting::Filters)
}

/// 0 and 1 as booleans; any other number is an error.
fn of_number(n: f64) -> Result<bool, String> {
    if n == 0.0 || n == 1.0 { Ok(n == 1.0) } else { Err(format!("expected true or false, found {n}")) }
}

/// What a text says that mergekit takes for true or false, in quotes or, as YAML 1.1 has it, without.
fn word(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|w| w.eq_ignore_ascii_case(text));
    match () {
        () if is(&["true", "t", "yes", "y", "on"]) => Some(true),
        () if is(&["false", "f", "no", "n", "off"]) => Some(false),
        () => None,
    }
}

fn interpolated(values: &[f64], place: f64) -> f64 {
    let at = |i: usize| values.get(i.min(values.len().saturating_sub(1))).copied().unwrap_or(0.0);
    let scaled = place * (values.len().saturating_sub(1)) as f64;
    let whole = scaled as usize;
    let part = scaled - whole as f64;
    (1.0 - part) * at(whole) + part * at(whole + 1)
}
