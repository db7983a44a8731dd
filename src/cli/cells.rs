//! The promotion of an op as tables: the result of `signature` for each pair of operands.
//!
//! Guarantees: the library decides each cell and its reason. The table of an op with one operand has one row. Does not:
//! print.

use castwise::ops::{Output, Promotion};
use castwise::promotion::{OperandType, Signature, reason, signature};
use castwise::{Attrs, CastLoss, Complex, DType, Diagnostic, DiagnosticKind, Op, Program, Rules, Scalar, Settings};

/// A row or column: its title, and the operand.
pub(super) type Side = (&'static str, OperandType);

/// One table of an op: the operand types of its rows and columns.
pub(super) struct Tier {
    pub(super) title: &'static str,
    pub(super) rows: Vec<Side>,
    pub(super) columns: Vec<Side>,
}

/// A pair of operands that the rules accept.
pub(super) struct Cell {
    /// The result dtype, with a star if the result is weak; for `cast`, the loss.
    pub(super) shown: String,
    /// The worst loss of the casts that the rules imply. The values of scalars are not judged.
    pub(super) loss: CastLoss,
    /// The dtype that the op computes in.
    pub(super) compute: DType,
    /// The casts with their reasons, and what else is worth knowing.
    pub(super) why: Vec<String>,
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

/// Weak tensors of the default dtypes of 32 and of 64 bits.
fn weak() -> Vec<Side> {
    use DType::{C64, C128, F32, F64, I32, I64};
    let names = [("i32*", I32), ("i64*", I64), ("f32*", F32), ("f64*", F64), ("c64*", C64), ("c128*", C128)];
    names.map(|(name, dtype)| (name, OperandType::weak(dtype))).to_vec()
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

/// The tables of an op. Those of weak tensors are of interest under rules that have them; others take them for strong.
pub(super) fn tiers(op: Op, with_weak: bool) -> Vec<Tier> {
    let tier = |title, rows, columns| Tier { title, rows, columns };
    if is_given(op) {
        return vec![tier("from, to", tensors(), tensors())];
    }
    let (mut tiers, weak) = if promoted(op).len() == 1 {
        let one = vec![("", OperandType::Scalar(Scalar::Bool(true)))];
        (vec![tier("tensor", one.clone(), tensors())], vec![tier("weak tensor", one, weak())])
    } else {
        let tiers = vec![
            tier("tensor, tensor", tensors(), tensors()),
            tier("tensor, 0-d tensor", tensors(), zero_dim()),
            tier("tensor, scalar", tensors(), scalars()),
            tier("scalar, tensor", scalars(), tensors()),
            tier("0-d tensor, scalar", zero_dim(), scalars()),
        ];
        let weak = vec![tier("tensor, weak tensor", tensors(), weak()), tier("weak tensor, tensor", weak(), tensors())];
        (tiers, weak)
    };
    tiers.extend(weak.into_iter().filter(|_| with_weak));
    tiers
}

/// The cell of an op for a row and a column, or the refusal.
pub(super) fn cell(settings: &Settings, op: Op, row: OperandType, column: OperandType) -> Result<Cell, Diagnostic> {
    if is_given(op) {
        return given(*settings, op, row, column);
    }
    let operands = applied(settings.rules, op, row, column);
    let s = signature(settings, op, &operands, &Attrs::default())?;
    let mut loss = CastLoss::Exact;
    let mut why = Vec::new();
    for (i, o) in operands.iter().enumerate() {
        let (name, to) = (op.def().operands[i], s.operand(i));
        match o {
            OperandType::Tensor { dtype, .. } if *dtype != to => {
                let of_cast = CastLoss::of(*dtype, to);
                why.push(format!(
                    "{name}: {dtype} -> {to} ({}), {of_cast}",
                    reason(op, &operands, *dtype, to).words(to)
                ));
                loss = loss.max(of_cast);
            }
            OperandType::Scalar(_) if s.compute != to => why.push(format!("{name} is used as {to}")),
            _ => {}
        }
    }
    if why.is_empty() {
        why.push("no cast".to_string());
    }
    if s.weak {
        why.push("the result is weak: it promotes as a scalar does".to_string());
    }
    match cast_back(op, &s) {
        Some(of_cast) => {
            why.push(format!("computed in {}, and the result is cast: {0} -> {}, {of_cast}", s.compute, s.result));
            loss = loss.max(of_cast);
        }
        None if s.compute != s.result => why.push(format!("computed in {}", s.compute)),
        None => {}
    }
    let shown = format!("{}{}", s.result, if s.weak { "*" } else { "" });
    Ok(Cell { shown, loss, compute: s.compute, why })
}

/// The operands of an application: those of the row and column, and what the op takes besides.
fn applied(rules: Rules, op: Op, row: OperandType, column: OperandType) -> Vec<OperandType> {
    let strong = |o: OperandType| match o {
        OperandType::Tensor { dtype, weak: true, .. } if !rules.has_weak() => OperandType::dim(dtype),
        o => o,
    };
    let (count, mut operands) = (promoted(op).len(), Vec::with_capacity(op.arity()));
    if op == Op::Where {
        operands.push(OperandType::dim(DType::Bool));
    }
    // Further operands have the type of the second one.
    operands.extend((0..count).map(|i| strong(if i == 0 && count > 1 { row } else { column })));
    operands.resize(op.arity(), OperandType::Scalar(Scalar::Int(1)));
    operands
}

/// The loss of the cast of a result to another dtype than the op gives.
fn cast_back(op: Op, s: &Signature) -> Option<CastLoss> {
    let gives = match op.def().output {
        Output::Same | Output::Fold | Output::Line => s.compute,
        Output::Bool => DType::Bool,
        Output::Real | Output::FoldReal => s.compute.real(),
        Output::FoldLong | Output::LineLong => s.result,
    };
    (gives != s.result).then(|| CastLoss::of(gives, s.result))
}

/// The cell of `cast` or `view_as`, whose column is the dtype argument.
fn given(settings: Settings, op: Op, row: OperandType, column: OperandType) -> Result<Cell, Diagnostic> {
    let (OperandType::Tensor { dtype: from, .. }, OperandType::Tensor { dtype: to, .. }) = (row, column) else {
        return Err(Diagnostic::new(DiagnosticKind::ArgNotTensor, "not a tensor"));
    };
    let program = Program::with_settings(settings);
    let x = program.data("x", from, [2]);
    let _ = if op == Op::Cast { x.cast(to) } else { x.view_as(to) };
    if let Err(e) = program.infer() {
        let other = || Diagnostic::new(DiagnosticKind::Cast, e.to_string());
        return Err(e.diagnostics().first().cloned().unwrap_or_else(other));
    }
    if op != Op::Cast {
        return Ok(Cell {
            shown: to.to_string(),
            loss: CastLoss::Exact,
            compute: to,
            why: vec!["the same bits".into()],
        });
    }
    let loss = CastLoss::of(from, to);
    let why = match loss {
        CastLoss::Exact => "every value is preserved",
        CastLoss::Rounds => "values may be rounded",
        CastLoss::Range => "values may leave the range, or lose their sign or imaginary part",
    };
    Ok(Cell { shown: loss.to_string(), loss, compute: to, why: vec![why.to_string()] })
}

/// The text of a cell with placeholders: `\u{1}` for the row's dtype, `\u{2}` for the column's, `\u{3}` for the op. Cells
/// that differ in these only have the same template. The star of a weak operand's title is no part of its dtype.
pub(super) fn template(why: &str, op: Op, row: &str, column: &str) -> String {
    let (row, column) = (row.trim_end_matches('*'), column.trim_end_matches('*'));
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
