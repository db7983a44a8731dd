//! The promotion of an op as tables: the result of `signature` for each pair of operands.
//!
//! Guarantees: the library decides each cell and its reason. The table of an op with one operand has one row. Does not:
//! print.

use castwise::ops::Promotion;
use castwise::promotion::{OperandType, reason, signature};
use castwise::{Attrs, CastLoss, Complex, DType, Diagnostic, Op, Program, Scalar, Settings};

/// A row or column: its title, and the operand.
pub(super) type Side = (&'static str, OperandType);

/// One table of an op: the operand types of its rows and columns.
pub(super) struct Tier {
    pub(super) title: &'static str,
    pub(super) rows: Vec<Side>,
    pub(super) columns: Vec<Side>,
}

/// A cell of a table: its text, and the reason.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    /// The result dtype, with a star if the result is weak; for `cast`, the loss; `-` if the operands are refused.
    pub(super) shown: String,
    pub(super) why: String,
    /// A correction, and the outcome under other rules.
    pub(super) help: String,
}

impl Cell {
    fn new(shown: impl Into<String>, why: impl Into<String>) -> Cell {
        Cell { shown: shown.into(), why: why.into(), help: String::new() }
    }
}

fn tensors() -> Vec<Side> {
    DType::ALL.map(|d| (d.name(), OperandType::dim(d))).to_vec()
}

fn zero_dim() -> Vec<Side> {
    DType::ALL.map(|d| (d.name(), OperandType::zero(d))).to_vec()
}

fn scalars() -> Vec<Side> {
    vec![
        ("bool", OperandType::Scalar(Scalar::Bool(true))),
        ("int", OperandType::Scalar(Scalar::Int(2))),
        ("float", OperandType::Scalar(Scalar::Float(2.5))),
        ("complex", OperandType::Scalar(Scalar::Complex(Complex::new(2.0, 1.0)))),
    ]
}

/// The operands of an op that promote, which excludes the condition of `where` and parameters.
pub(super) fn promoted(op: Op) -> &'static [&'static str] {
    let def = op.def();
    let first = usize::from(op == Op::Where);
    def.operands.get(first..def.operands.len() - def.parameters()).unwrap_or_default()
}

/// Whether the op takes a dtype, so that columns are dtypes and not operands.
pub(super) fn is_given(op: Op) -> bool {
    op.def().promotion == Promotion::Given
}

/// The tables of an op.
pub(super) fn tiers(op: Op) -> Vec<Tier> {
    let tier = |title, rows, columns| Tier { title, rows, columns };
    if is_given(op) {
        return vec![tier("from, to", tensors(), tensors())];
    }
    if promoted(op).len() == 1 {
        let one = vec![("", OperandType::Scalar(Scalar::Bool(true)))];
        return vec![tier("tensor", one, tensors())];
    }
    vec![
        tier("tensor, tensor", tensors(), tensors()),
        tier("tensor, 0-d tensor", tensors(), zero_dim()),
        tier("tensor, scalar", tensors(), scalars()),
        tier("scalar, tensor", scalars(), tensors()),
        tier("0-d tensor, scalar", zero_dim(), scalars()),
    ]
}

/// The cell of an op for a row and a column.
pub(super) fn cell(settings: &Settings, op: Op, row: OperandType, column: OperandType) -> Cell {
    let def = op.def();
    if is_given(op) {
        return given(*settings, op, row, column);
    }
    let count = promoted(op).len();
    let mut operands = Vec::with_capacity(def.operands.len());
    if op == Op::Where {
        operands.push(OperandType::dim(DType::Bool));
    }
    // Further operands have the type of the second one.
    let of = |i: usize| if i == 0 && count > 1 { row } else { column };
    operands.extend((0..count).map(of));
    operands.resize(def.operands.len(), OperandType::Scalar(Scalar::Int(1)));
    match signature(settings, op, &operands, &Attrs::default()) {
        Err(d) => refused(&d),
        Ok(s) => {
            let mut parts = Vec::new();
            for (i, o) in operands.iter().enumerate() {
                let (name, to) = (def.operands[i], s.operand(i));
                match o {
                    OperandType::Tensor { dtype, .. } if *dtype != to => {
                        let (why, loss) = (reason(op, &operands, *dtype, to).words(to), CastLoss::of(*dtype, to));
                        parts.push(format!("{name}: {dtype} -> {to} ({why}), {loss}"));
                    }
                    OperandType::Scalar(_) if s.compute != to => parts.push(format!("{name} is used as {to}")),
                    _ => {}
                }
            }
            if parts.is_empty() {
                parts.push("no cast".to_string());
            }
            if s.weak {
                parts.push("the result is weak: it promotes as a scalar does".to_string());
            }
            if s.compute != s.result {
                parts.push(format!("computed in {}", s.compute));
            }
            Cell::new(format!("{}{}", s.result, if s.weak { "*" } else { "" }), parts.join("; "))
        }
    }
}

/// The cell of `cast` or `view_as`, whose column is the dtype argument.
fn given(settings: Settings, op: Op, row: OperandType, column: OperandType) -> Cell {
    let (OperandType::Tensor { dtype: from, .. }, OperandType::Tensor { dtype: to, .. }) = (row, column) else {
        return Cell::new("-", "not a tensor");
    };
    let program = Program::with_settings(settings);
    let x = program.data("x", from, [2]);
    if op == Op::Cast {
        let _ = x.cast(to);
    } else {
        let _ = x.view_as(to);
    }
    match program.infer() {
        Err(e) => {
            let first = e.diagnostics().first().cloned();
            first.map_or(Cell::new("-", e.to_string()), |d| refused(&d))
        }
        Ok(_) if op == Op::Cast => {
            let why = match CastLoss::of(from, to) {
                CastLoss::Exact => "every value is preserved",
                CastLoss::Rounds => "values may be rounded",
                CastLoss::Range => "values may leave the range, or lose their sign or imaginary part",
            };
            Cell::new(CastLoss::of(from, to).to_string(), why)
        }
        Ok(_) => Cell::new(to.name(), "the same bits"),
    }
}

fn refused(d: &Diagnostic) -> Cell {
    let d = super::report::of_command(d);
    Cell { shown: "-".to_string(), why: d.message, help: d.help.unwrap_or_default() }
}

/// The text of a cell with placeholders: `\u{1}` for the row, `\u{2}` for the column, `\u{3}` for the op. Cells that
/// differ in these only have the same template.
pub(super) fn template(why: &str, op: Op, row: &str, column: &str) -> String {
    let why = why.replace(&format!("`{op}`"), "`\u{3}`");
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut text = String::new();
    let mut rest = why.as_str();
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| word(c) != word(first)).unwrap_or(rest.len());
        let (token, behind) = rest.split_at(end);
        rest = behind;
        text += match token {
            t if t == row && !row.is_empty() => "\u{1}",
            t if t == column => "\u{2}",
            t => t,
        };
    }
    text
}
