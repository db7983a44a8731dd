//! Reads `torch-op-rules.txt`. It has one row for each op or form of an op, with the outcome that PyTorch 2.15 gave for
//! each common dtype of two operands, the sides on which a scalar was tried, and the exceptions, of which it has the
//! counts or only the number of kinds.
//!
//! Does not: use castwise; `tests/promotion.rs` compares the rows with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The exceptions of a row: cells whose outcome is not that of their common dtype.
#[derive(Debug, PartialEq)]
pub enum Exceptions {
    /// The number of cells of each `common: outcome`.
    Counts(BTreeMap<String, usize>),
    /// The number of distinct `common: outcome`.
    Kinds(usize),
}

/// A line of the file.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    /// The outcome by common dtype: `=common`, a dtype, or `E:` and PyTorch's message.
    pub outcomes: BTreeMap<String, String>,
    pub right_scalars: bool,
    pub left_scalars: bool,
    pub exceptions: Exceptions,
}

/// The quoted strings of a Python literal, each with what follows it up to the next one, and whether it is in a list.
fn strings(literal: &str) -> Vec<(String, String, bool)> {
    let (mut all, mut in_list): (Vec<(String, String, bool)>, bool) = (vec![], false);
    let mut chars = literal.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let text: String = chars.by_ref().take_while(|x| *x != c).collect();
                all.push((text, String::new(), in_list));
            }
            '[' => in_list = true,
            ']' => in_list = false,
            c => all.iter_mut().last().into_iter().for_each(|(_, after, _)| after.push(c)),
        }
    }
    all
}

impl Row {
    fn parse(line: &str) -> Row {
        let columns: Vec<&str> = line.split(" | ").collect();
        let [name, outcomes, scalars, exceptions] = columns[..] else { panic!("four columns: {line}") };
        let (mut by_common, mut outcome) = (BTreeMap::new(), String::new());
        for (text, _, in_list) in strings(outcomes) {
            if in_list {
                by_common.insert(text, outcome.clone());
            } else {
                outcome = text.trim_start_matches("torch.").to_string();
            }
        }
        let exceptions = exceptions.strip_prefix("exc ").unwrap();
        let exceptions = match exceptions.strip_suffix(" kinds") {
            Some(n) => Exceptions::Kinds(n.parse().unwrap()),
            None => {
                let digits = |s: &str| s.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
                Exceptions::Counts(strings(exceptions).into_iter().map(|(text, n, _)| (text, digits(&n))).collect())
            }
        };
        Row {
            name: name.to_string(),
            outcomes: by_common,
            right_scalars: scalars.contains("'right'"),
            left_scalars: scalars.contains("'left'"),
            exceptions,
        }
    }
}

/// Every row of the file.
pub fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/torch-op-rules.txt");
    std::fs::read_to_string(path).unwrap().lines().map(Row::parse).collect()
}

/// The tier of an operand in promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Dim,
    Zero,
    /// A Python scalar.
    Wrapped,
}

/// An operand of a cell: a dtype, or the kind of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub tier: Tier,
    pub name: &'static str,
}

pub const DTYPES: [&str; 13] =
    ["bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c32", "c64", "c128"];
pub const KINDS: [&str; 4] = ["bool", "int", "float", "complex"];

pub const fn dim(name: &'static str) -> Cell {
    Cell { tier: Tier::Dim, name }
}

pub const fn zero(name: &'static str) -> Cell {
    Cell { tier: Tier::Zero, name }
}

pub const fn wrapped(name: &'static str) -> Cell {
    Cell { tier: Tier::Wrapped, name }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tier = match self.tier {
            Tier::Dim => "dim",
            Tier::Zero => "zero",
            Tier::Wrapped => "wrapped",
        };
        write!(f, "{tier}:{}", self.name)
    }
}

/// The pairs of operands that a row was recorded for: both with dims, the second one 0-d, both 0-d, and a tensor with
/// dims and a scalar on each side that accepts one.
pub fn cells(row: &Row) -> Vec<(Cell, Cell)> {
    let mut all = vec![];
    for a in DTYPES {
        for b in DTYPES {
            all.extend([(dim(a), dim(b)), (dim(a), zero(b)), (zero(a), zero(b))]);
        }
        for kind in KINDS {
            all.extend(row.right_scalars.then_some((dim(a), wrapped(kind))));
            all.extend(row.left_scalars.then_some((wrapped(kind), dim(a))));
        }
    }
    all
}

/// PyTorch's recorded common dtypes of two operands of any tier, and of two dtypes of one tier.
pub struct Tables {
    result_type: Value,
    promote_types: Value,
}

/// Every dtype in the tables.
const NAMES: [&str; 14] =
    ["bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c32", "c64", "c128", "bcomplex32"];

/// A recorded dtype.
pub fn known(name: &str) -> &'static str {
    let name = name.trim_start_matches("torch.");
    NAMES.iter().find(|n| **n == name).unwrap_or_else(|| panic!("a dtype {name}"))
}

impl Tables {
    pub fn new(result_type: Value, promote_types: Value) -> Tables {
        Tables { result_type, promote_types }
    }

    /// The common dtype of two operands.
    pub fn common(&self, a: Cell, b: Cell) -> &'static str {
        known(self.result_type["float32"][format!("{a}|{b}")][0].as_str().unwrap())
    }

    /// The common dtype of two operands after they have been broadcast to one shape.
    pub fn broadcast(&self, a: Cell, b: Cell) -> &'static str {
        known(self.promote_types[a.name][b.name].as_str().unwrap())
    }
}

/// The exceptions in the outcomes of all cells, in the file's form. The error is an outcome of the row that no cell
/// has.
pub fn exceptions(row: &Row, outcomes: &[(&'static str, String)]) -> Result<Exceptions, String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut met: BTreeSet<&str> = BTreeSet::new();
    for (common, outcome) in outcomes {
        let stated = row.outcomes.get(*common).ok_or(format!("{}: no outcome for {common}", row.name))?;
        let as_stated = if stated == "=common" { outcome == common } else { outcome == stated };
        if as_stated {
            met.insert(common);
        } else {
            *counts.entry(format!("{common}: {outcome}")).or_default() += 1;
        }
    }
    match row.outcomes.keys().find(|common| !met.contains(common.as_str())) {
        Some(common) => Err(format!("{}: no cell of common dtype {common} has the stated outcome", row.name)),
        None if matches!(row.exceptions, Exceptions::Kinds(_)) => Ok(Exceptions::Kinds(counts.len())),
        None => Ok(Exceptions::Counts(counts)),
    }
}
