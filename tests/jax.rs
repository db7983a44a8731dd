//! Compares promotion with JAX cell by cell: `jnp.result_type` of every pair of operands, and the result of every op for
//! every pair, weak flags included.

use std::collections::BTreeMap;

use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, Complex, DType, DiagnosticKind, Op, Rules, Scalar, Settings};
use serde_json::Value;

fn golden(name: &str) -> Value {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Cells that are not compared, by reason, and those that differ.
#[derive(Default)]
struct Cells {
    compared: usize,
    left_out: BTreeMap<&'static str, usize>,
    differing: Vec<String>,
}

impl Cells {
    fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    /// Compares a recorded outcome: a dtype, with a star if it is weak, or `E:` and the kind of refusal.
    fn compare(&mut self, settings: &Settings, op: Op, operands: &[OperandType], want: &str, what: &str) {
        self.compared += 1;
        let got = match signature(settings, op, operands, &Attrs::default()) {
            Ok(s) => format!("{}{}", s.result, if s.weak { "*" } else { "" }),
            Err(d) => match d.kind {
                DiagnosticKind::PromotionRefused => "E:no_promotion".into(),
                DiagnosticKind::UnsupportedDType | DiagnosticKind::BoolArithmetic => "E:unsupported_dtype".into(),
                other => format!("E:{other:?}"),
            },
        };
        if got != want {
            self.differing.push(format!("{what}: {got}, not {want}"));
        }
    }

    fn report(&self) {
        println!("{} cells compared; left out: {:?}", self.compared, self.left_out);
        let n = self.differing.len();
        assert!(n == 0, "{n} of {} cells differ:\n{}", self.compared, self.differing.join("\n"));
    }
}

/// An operand in the notation of the tables: `dim:f32`, `weak:int`, `py:float` or `wrapped:float`. `None`: a dtype that
/// castwise does not have.
fn operand(settings: &Settings, notation: &str) -> Option<OperandType> {
    let weak = |narrow: DType, wide: DType| OperandType::weak(if settings.x64 { wide } else { narrow });
    Some(match notation.split_once(':')? {
        ("dim", d) => OperandType::dim(d.parse().ok()?),
        ("weak", "int") => weak(DType::I32, DType::I64),
        ("weak", "float") => weak(DType::F32, DType::F64),
        ("weak", "complex") => weak(DType::C64, DType::C128),
        (_, "bool") => OperandType::Scalar(Scalar::Bool(true)),
        (_, "int") => OperandType::Scalar(Scalar::Int(1)),
        (_, "float") => OperandType::Scalar(Scalar::Float(1.0)),
        (_, "complex") => OperandType::Scalar(Scalar::Complex(Complex::new(0.0, 1.0))),
        other => panic!("{other:?}"),
    })
}

fn is_scalar(o: &OperandType) -> bool {
    matches!(o, OperandType::Scalar(_))
}

/// The settings of a table's name: `x64/standard`, `x32e/strict`.
fn settings(name: &str) -> Settings {
    Settings::new(Rules::Jax).with_x64(name.starts_with("x64")).with_strict(name.ends_with("strict"))
}

#[test]
fn result_types() {
    let tables = golden("jax-result-type.json");
    let mut cells = Cells::default();
    for (name, table) in tables["tables"].as_object().unwrap() {
        let settings = settings(name);
        for (pair, want) in table.as_object().unwrap() {
            let (a, b) = pair.split_once('|').unwrap();
            let (Some(x), Some(y)) = (operand(&settings, a), operand(&settings, b)) else {
                cells.leave_out("a dtype that castwise lacks");
                continue;
            };
            // The dtypes of a sum, and of operands that nothing converts.
            for op in [Op::Add, Op::Maximum] {
                cells.compare(&settings, op, &[x, y], want.as_str().unwrap(), &format!("{name} {op}({a}, {b})"));
            }
        }
    }
    cells.report();
}

/// The ops that the tables have under another name, or that castwise's table does not have.
fn op(name: &str) -> Option<Op> {
    Op::from_name(name)
}

#[test]
fn op_rules() {
    let tables = golden("jax-op-rules.json");
    let mut cells = Cells::default();
    for name in ["x64", "x32"] {
        let (settings, table) = (settings(name), &tables[name]);
        let words = |v: &Value| v.as_str().unwrap().split(' ').map(str::to_string).collect::<Vec<_>>();
        let names = |v: &Value| v.as_array().unwrap().iter().map(|s| s.as_str().unwrap().to_string()).collect::<Vec<_>>();
        let notation = |s: &str| if s.contains(':') { s.to_string() } else { format!("dim:{s}") };
        let columns: Vec<String> = names(&table["columns"]).iter().map(|c| notation(c)).collect();
        let mut rows: Vec<(String, Value)> =
            table["binary"].as_object().unwrap().iter().map(|(op, rows)| (op.clone(), rows.clone())).collect();
        rows.push(("where".into(), table["where"].clone()));
        rows.push(("clamp".into(), table["clamp"].clone()));
        for (name_of_op, rows) in &rows {
            let Some(op) = op(name_of_op) else {
                cells.leave_out("an op that castwise lacks");
                continue;
            };
            for (a, results) in rows.as_object().unwrap() {
                for (b, want) in columns.iter().zip(words(results)) {
                    let (x, y) = (operand(&settings, &notation(a)), operand(&settings, b));
                    let (Some(x), Some(y)) = (x, y) else {
                        cells.leave_out("a dtype that castwise lacks");
                        continue;
                    };
                    if is_scalar(&x) && is_scalar(&y) {
                        cells.leave_out("an op of scalars alone, which castwise refuses");
                        continue;
                    }
                    if op == Op::Ldexp && x == y && matches!(x, OperandType::Tensor { dtype, .. } if dtype.is_float()) {
                        cells.leave_out("`ldexp` of two floats of one dtype, which castwise takes");
                        continue;
                    }
                    let operands = match op {
                        Op::Where => vec![OperandType::dim(DType::Bool), x, y],
                        Op::Clamp => vec![x, y, y],
                        _ => vec![x, y],
                    };
                    cells.compare(&settings, op, &operands, &want, &format!("{name} {op}({a}, {b})"));
                }
            }
        }
        for (name_of_op, results) in table["unary"].as_object().unwrap() {
            let Some(op) = op(name_of_op) else {
                cells.leave_out("an op that castwise lacks");
                continue;
            };
            for (a, want) in columns.iter().zip(words(results)) {
                match operand(&settings, a) {
                    None => cells.leave_out("a dtype that castwise lacks"),
                    Some(x) if is_scalar(&x) => cells.leave_out("an op of scalars alone, which castwise refuses"),
                    Some(x) => cells.compare(&settings, op, &[x], &want, &format!("{name} {op}({a})")),
                }
            }
        }
    }
    cells.report();
}
