//! Results that are printed instead of written to a file: as text, or as JSON.
//!
//! Guarantees: floats are the shortest decimals that parse back in their dtype; the text of a single number is the number
//! alone. Does not: print results of more than [`MOST`] elements.

use castwise::Tensor;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::report;

/// The maximum number of elements of a result that is printed.
pub(super) const MOST: usize = 1000;

/// A result: the tensor name that it was computed for, if there are any, its own name in the expression, and its value.
pub(super) struct Shown {
    pub(super) tensor: Option<String>,
    pub(super) result: Option<String>,
    pub(super) value: Tensor,
}

/// Refuses a result that is too large to be printed.
pub(super) fn check(name: &str, shape: &[usize]) -> Result<(), Failure> {
    match shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)) {
        Some(n) if n <= MOST => Ok(()),
        n => {
            let (name, n) = (report::escaped(name), n.map_or("too many".to_string(), |n| n.to_string()));
            let text = format!("`{name}` has {n} elements; at most {MOST} are printed: give a file with -o FILE");
            Err(Failure::usage(text))
        }
    }
}

/// The elements as text, row-major.
fn elements(t: &Tensor) -> Vec<String> {
    let shown = if t.numel() == 0 { String::new() } else { format!("{t:#}") };
    shown.split([' ', '\n', '[', ']']).filter(|part| !part.is_empty()).map(str::to_string).collect()
}

/// The results as text. Numbers are rows of a table by tensor name; results with dims follow each other with their names.
pub(super) fn text(all: &[Shown]) -> String {
    if let [Shown { tensor: None, result: None, value }] = all {
        return format!("{value}\n");
    }
    if all.iter().any(|s| s.value.rank() > 0) {
        let one = |s: &Shown| format!("{}: {}{:?}\n{}\n", name(s), s.value.dtype(), s.value.shape(), s.value);
        return all.iter().map(one).collect::<Vec<_>>().join("\n");
    }
    if all.iter().all(|s| s.tensor.is_none()) {
        return all.iter().map(|s| format!("{} = {}\n", name(s), s.value)).collect();
    }
    let mut columns: Vec<Option<&str>> = Vec::new();
    let mut rows: Vec<(&str, Vec<(usize, String)>)> = Vec::new();
    for s in all {
        let (tensor, result) = (s.tensor.as_deref().unwrap_or_default(), s.result.as_deref());
        let column = columns.iter().position(|c| *c == result).unwrap_or_else(|| {
            columns.push(result);
            columns.len() - 1
        });
        match rows.last_mut() {
            Some((last, cells)) if *last == tensor => cells.push((column, s.value.to_string())),
            _ => rows.push((tensor, vec![(column, s.value.to_string())])),
        }
    }
    let mut table = vec![vec!["tensor".to_string()]];
    table[0].extend(columns.iter().map(|c| report::escaped(c.unwrap_or(super::spec::UNNAMED))));
    for (tensor, cells) in rows {
        let mut row = vec![String::new(); columns.len() + 1];
        row[0] = report::escaped(tensor);
        cells.into_iter().for_each(|(column, value)| row[column + 1] = value);
        table.push(row);
    }
    aligned(&table)
}

/// A table whose first column is aligned to the left and all others to the right.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, cell) in row.iter().enumerate() {
            let width = widths[c];
            line += &if c == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn name(s: &Shown) -> String {
    let parts = s.tensor.iter().chain(&s.result).map(|n| report::escaped(n));
    let all: Vec<String> = parts.collect();
    if all.is_empty() { super::spec::UNNAMED.to_string() } else { all.join(".") }
}

/// The results as JSON: an object by tensor name, if there are any, and by the names of results.
pub(super) fn json(all: &[Shown]) -> Value {
    let mut values = Map::new();
    for s in all {
        let value = array(&mut elements(&s.value).into_iter(), s.value.shape());
        let own = s.result.as_deref().unwrap_or(super::spec::UNNAMED);
        match (&s.tensor, &s.result) {
            (Some(tensor), None) => drop(values.insert(tensor.clone(), value)),
            (Some(tensor), Some(result)) => {
                let of = values.entry(tensor.clone()).or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(of) = of {
                    of.insert(result.clone(), value);
                }
            }
            (None, _) => drop(values.insert(own.to_string(), value)),
        }
    }
    Value::Object(values)
}

/// The results as the text of a JSON object.
pub(super) fn lines(all: &[Shown]) -> String {
    format!("{:#}\n", json(all))
}

/// Nested arrays. NaNs, infinities and complex numbers, which JSON lacks, are strings.
fn array(elements: &mut impl Iterator<Item = String>, shape: &[usize]) -> Value {
    match shape {
        [] => elements.next().map_or(Value::Null, |e| serde_json::from_str(&e).unwrap_or(Value::String(e))),
        [n, inner @ ..] => Value::Array((0..*n).map(|_| array(elements, inner)).collect()),
    }
}
