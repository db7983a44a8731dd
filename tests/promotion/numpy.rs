//! NumPy's recorded tables, cell by cell: the dtypes of `np.result_type` and of `a + b` for all classes of operands,
//! the results of each op for all dtypes and Python scalars, and the outputs that `same_kind` allows.
//!
//! A cell that differs on purpose is counted under a name that docs/deviations.md has.

use std::collections::BTreeMap;

use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, DType, DiagnosticKind, Op, Rules, Scalar, Settings};
use num_complex::Complex;
use serde_json::Value;

use super::{application, golden, operand};

const NUMPY: Settings = Settings::new(Rules::NumPy);

/// The ops of the table that castwise lacks.
const LACKING: [&str; 3] = ["fabs", "rint", "signbit"];

/// A column or row of the op table: a dtype, or a Python scalar of value 1.
fn side(name: &str) -> OperandType {
    match name {
        "py:bool" => OperandType::Scalar(Scalar::Bool(true)),
        "py:int" => OperandType::Scalar(Scalar::Int(1)),
        "py:float" => OperandType::Scalar(Scalar::Float(1.0)),
        "py:complex" => OperandType::Scalar(Scalar::Complex(Complex::new(0.0, 1.0))),
        name => OperandType::dim(name.parse().unwrap()),
    }
}

/// The result's dtype, or the kind of the refusal in the table's words.
fn outcome(op: Op, operands: &[OperandType], attrs: &Attrs) -> String {
    match signature(&NUMPY, op, operands, attrs) {
        Ok(s) => s.result.to_string(),
        Err(d) => match d.kind {
            DiagnosticKind::BoolArithmetic => format!("E:bool_{op}"),
            DiagnosticKind::UnsupportedDType => "E:unsupported_dtype".to_string(),
            kind => format!("E:{kind:?}"),
        },
    }
}

/// What the walk of a table found.
#[derive(Default)]
struct Walk {
    cells: usize,
    departures: BTreeMap<&'static str, usize>,
    differing: Vec<String>,
}

impl Walk {
    fn cell(
        &mut self,
        what: impl FnOnce() -> String,
        got: String,
        want: &str,
        departure: Option<(&'static str, &str)>,
    ) {
        self.cells += 1;
        if let Some((name, ours)) = departure {
            *self.departures.entry(name).or_default() += 1;
            if got != ours {
                self.differing.push(format!("{}: {got}, not {ours} ({name})", what()));
            }
        } else if got != want {
            self.differing.push(format!("{}: {got}, not {want}", what()));
        }
    }

    /// Each departure is documented.
    fn report(self, cells: usize) {
        println!("{} cells, {:?}", self.cells, self.departures);
        assert_eq!(self.cells, cells);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/deviations.md");
        let documents = std::fs::read_to_string(path).unwrap();
        for name in self.departures.keys() {
            assert!(documents.contains(&format!("`{name}`")), "docs/deviations.md does not name {name}");
        }
        super::report(self.differing, self.cells);
    }
}

fn words(v: &Value) -> Vec<&str> {
    v.as_str().unwrap().split(' ').collect()
}

#[test]
fn numpy_op_rules_cell_by_cell() {
    let file = golden("numpy-op-rules.json");
    let columns: Vec<&str> = file["columns"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    let mut walk = Walk::default();
    let none = Attrs::default();
    for (name, rows) in file["binary"].as_object().unwrap() {
        let op = Op::from_name(name).unwrap();
        for (a, cells) in rows.as_object().unwrap() {
            for (b, want) in columns.iter().zip(words(cells)) {
                let got = outcome(op, &[side(a), side(b)], &none);
                walk.cell(|| format!("{name}({a}, {b})"), got, want, None);
            }
        }
    }
    for (name, op) in [("where", Op::Where), ("clamp", Op::Clamp)] {
        for (a, cells) in file[name].as_object().unwrap() {
            for (b, want) in columns.iter().zip(words(cells)) {
                let first = if op == Op::Where { OperandType::dim(DType::Bool) } else { side(a) };
                let got = outcome(op, &[first, if op == Op::Where { side(a) } else { side(b) }, side(b)], &none);
                walk.cell(|| format!("{name}({a}, {b})"), got, want, None);
            }
        }
    }
    let mut lacking = vec![];
    for (name, cells) in file["unary"].as_object().unwrap() {
        let Some(op) = Op::from_name(name) else {
            lacking.push(name.as_str());
            continue;
        };
        for (a, want) in columns.iter().zip(words(cells)) {
            // `np.real(1)` is a Python number.
            if !matches!(want, "int" | "float") {
                walk.cell(|| format!("{name}({a})"), outcome(op, &[side(a)], &none), want, None);
            }
        }
    }
    assert_eq!(lacking, LACKING);
    for (a, cells) in file["out_same_kind"].as_object().unwrap() {
        let wanted = words(cells);
        for b in columns.iter().filter(|c| !c.starts_with("py:")) {
            let got = signature(&NUMPY, Op::Cast, &[side(a)], &Attrs::output(b.parse().unwrap()));
            let fault = got.map_or_else(|d| format!("{:?}", d.kind), |s| s.result.to_string());
            let want = if wanted.contains(b) { b } else { "Cast" };
            walk.cell(|| format!("out of {a} to {b}"), fault, want, None);
        }
    }
    let (binary, unary) = (37 * 18 * 18, (50 - LACKING.len()) * 18 - 8);
    walk.report(binary + 2 * 18 * 18 + unary + 14 * 14);
}

#[test]
fn numpy_result_type_cell_by_cell() {
    let file = golden("numpy-result-type.json");
    let mut walk = Walk::default();
    for (pair, cell) in file["numpy_dtypes"].as_object().unwrap() {
        let (a, b) = pair.split_once('|').unwrap();
        let operands = [operand(a), operand(b)];
        let [promoted, sum] = [&cell[0], &cell[1]].map(|c| c.as_str().unwrap());
        let both = |op| outcome(op, &operands, &Attrs::default());
        walk.cell(|| format!("result_type({pair})"), both(Op::PromoteWith), promoted, None);
        walk.cell(|| format!("sum of {pair}"), both(Op::Add), sum, None);
    }
    walk.report(2 * 32 * 32);
}

/// ml_dtypes' bf16. Its `np.result_type` raises where its sums have a dtype, which is ours; and a Python float widens
/// it.
#[test]
fn ml_dtypes_result_type_cell_by_cell() {
    let file = golden("numpy-result-type.json");
    let mut walk = Walk::default();
    for (pair, cell) in file["with_ml_dtypes"].as_object().unwrap() {
        let (a, b) = pair.split_once('|').unwrap();
        if pair.contains("f8") {
            continue;
        }
        let got = outcome(Op::Add, &[operand(a), operand(b)], &Attrs::default());
        let weak = [a, b].contains(&"wrapped:float").then_some(("bf16-weak-float", "bf16"));
        walk.cell(|| pair.clone(), got, cell[1].as_str().unwrap(), weak);
    }
    walk.report(37);
}

#[test]
fn integers_out_of_range_are_refused_but_compare_and_clip() {
    let of =
        |op, operands: &[OperandType]| signature(&NUMPY, op, operands, &Attrs::default()).map(|s| (s.op, s.compute));
    let u8 = OperandType::dim(DType::U8);
    let int = |v: i128| OperandType::Scalar(Scalar::Int(v));
    for (op, v) in [(Op::Add, 300), (Op::Add, -1), (Op::Maximum, 300), (Op::BitwiseAnd, 256), (Op::ShiftLeft, 999)] {
        for operands in [[u8, int(v)], [int(v), u8]] {
            let d = of(op, &operands).unwrap_err();
            assert_eq!(d.kind, DiagnosticKind::ScalarOverflow, "{op}");
            assert!(d.message.contains("u8 holds 0 to 255") && d.message.contains(&format!("= {v}")), "{d}");
            assert!(d.help.as_deref().unwrap_or_default().starts_with("cast the tensor first, e.g. `cast("), "{d}");
        }
    }
    let d = of(Op::Where, &[OperandType::dim(DType::Bool), u8, int(300)]).unwrap_err();
    assert_eq!(d.kind, DiagnosticKind::ScalarOverflow);
    // In f64 every integer has a place.
    assert_eq!(of(Op::Div, &[u8, int(70_000)]), Ok((Op::Div, DType::F64)));
    assert_eq!(of(Op::Eq, &[u8, int(300)]), Ok((Op::Eq, DType::I64)));
    assert_eq!(of(Op::Eq, &[u8, int(30)]), Ok((Op::Eq, DType::U8)));
    assert_eq!(of(Op::Lt, &[int(-1), u8]), Ok((Op::Lt, DType::I64)));
    for op in [Op::LogicalAnd, Op::LogicalOr, Op::LogicalXor] {
        assert_eq!(of(op, &[u8, int(256)]), Ok((op, DType::U8)));
        assert_eq!(of(op, &[int(-256), u8]), Ok((op, DType::U8)));
    }
    assert_eq!(of(Op::Clamp, &[u8, int(-1), int(300)]), Ok((Op::Clamp, DType::U8)));
    assert_eq!(of(Op::Clamp, &[u8, int(300), int(400)]).unwrap_err().kind, DiagnosticKind::ScalarOverflow);
    assert_eq!(of(Op::ClampMax, &[u8, int(-1)]).unwrap_err().kind, DiagnosticKind::ScalarOverflow);
}

#[test]
fn ops_are_the_rows_that_have_numpys_values() {
    let row = |settings: Settings, op, d| {
        let operands = application(op, OperandType::dim(d), OperandType::dim(d));
        signature(&settings, op, &operands[..op.arity()], &Attrs::default()).unwrap().op
    };
    let strict = NUMPY.with_zero_division(castwise::ZeroDivision::Error);
    for (op, d, numpy, error) in [
        (Op::FloorDivide, DType::I32, Op::FloorDivideOrZero, Op::FloorDivide),
        (Op::FloorDivide, DType::F32, Op::FloorDivide, Op::FloorDivide),
        (Op::Remainder, DType::Bool, Op::RemainderOrZero, Op::Remainder),
        (Op::Remainder, DType::F16, Op::RemainderSigned, Op::RemainderSigned),
        (Op::Fmod, DType::U8, Op::FmodOrZero, Op::Fmod),
        (Op::Fmod, DType::F64, Op::Fmod, Op::Fmod),
        (Op::DivTrunc, DType::I8, Op::DivTruncOrZero, Op::DivTrunc),
        (Op::Pow, DType::I64, Op::PowChecked, Op::PowChecked),
        (Op::Pow, DType::U8, Op::Pow, Op::Pow),
        (Op::Sign, DType::C64, Op::SignOrNan, Op::SignOrNan),
        (Op::Sign, DType::I8, Op::Sign, Op::Sign),
        (Op::Heaviside, DType::I8, Op::HeavisideOrNan, Op::HeavisideOrNan),
    ] {
        assert_eq!((row(NUMPY, op, d), row(strict, op, d)), (numpy, error), "{op} of {d}");
        for other in [Rules::Torch, Rules::Paddle] {
            let d = if d == DType::Bool { DType::I8 } else { d };
            let operands = application(op, OperandType::dim(d), OperandType::dim(d));
            let Ok(s) = signature(&Settings::new(other), op, &operands[..op.arity()], &Attrs::default()) else {
                continue;
            };
            assert_eq!(s.op, op, "{other}");
        }
        // What computes is not replaced once more.
        if numpy.def().accepts.has(d) {
            assert_eq!(row(NUMPY, numpy, d), numpy);
        }
    }
}
