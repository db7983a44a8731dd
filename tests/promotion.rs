//! Compares promotion with the frameworks: PyTorch's recorded tables cell by cell, and the tables of Paddle's guide;
//! also tests commutativity over all pairs. A failing test prints only the cells that differ.

use std::collections::{BTreeMap, BTreeSet};

use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, Category, DType, DiagnosticKind, Op, Rules, Scalar, Settings, promote_types};
use num_complex::Complex;
use serde_json::Value;

mod forms;
mod model;
mod numpy;
mod rules_file;

const PADDLE_DTYPES: [&str; 12] = ["bf16", "f16", "f32", "f64", "bool", "u8", "i8", "i16", "i32", "i64", "c64", "c128"];

fn dtype(name: &str) -> DType {
    name.parse().unwrap()
}

fn golden(name: &str) -> Value {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// An operand, from its notation in the recorded tables: `dim:f32`, `zero:f32`, `wrapped:float`.
fn operand(class: &str) -> OperandType {
    match class.split_once(':').unwrap() {
        ("dim", d) => OperandType::dim(dtype(d)),
        ("zero", d) => OperandType::zero(dtype(d)),
        (_, kind) => OperandType::Scalar(scalar(kind)),
    }
}

fn scalar(kind: &str) -> Scalar {
    match kind {
        "bool" => Scalar::Bool(true),
        "int" => Scalar::Int(2),
        "float" => Scalar::Float(2.5),
        "complex" => Scalar::Complex(Complex::new(1.0, 2.0)),
        _ => panic!("a scalar of kind {kind}"),
    }
}

/// The result's dtype, or `-` for an error.
fn result(settings: &Settings, op: Op, operands: &[OperandType]) -> String {
    signature(settings, op, operands, &Attrs::default()).map_or("-".into(), |s| s.result.to_string())
}

fn report(differing: Vec<String>, cells: usize) {
    assert!(cells > 0, "nothing was compared");
    assert!(differing.is_empty(), "{} of {cells} cells differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn torch_promote_types() {
    let (table, mut differing, mut cells) = (golden("torch-promote-types.json"), vec![], 0);
    for a in rules_file::DTYPES.map(dtype) {
        for b in rules_file::DTYPES.map(dtype) {
            let (want, got) = (dtype(table[a.name()][b.name()].as_str().unwrap()), promote_types(a, b));
            cells += 1;
            if Some(want) != got {
                differing.push(format!("{a} x {b}: {got:?}, not {want}"));
            }
        }
    }
    assert_eq!(cells, 169);
    report(differing, cells);
}

/// `torch.result_type` and the dtype of `a + b`, over all pairs of operand classes and all default dtypes.
#[test]
fn torch_result_type() {
    let (tables, mut differing, mut cells, mut exceptions) = (golden("torch-result-type.json"), vec![], 0, 0);
    for (default, table) in tables.as_object().unwrap() {
        let settings = Settings::new(Rules::Torch).with_default_dtype(dtype(default));
        for (pair, recorded) in table.as_object().unwrap() {
            let (a, b) = pair.split_once('|').unwrap();
            let got = result(&settings, Op::Add, &[operand(a), operand(b)]);
            let result_type = recorded[0].as_str().unwrap();
            // PyTorch 2.15 promotes bf16 and a complex operand of a lower tier to a dtype without kernels. Earlier
            // versions gave c64, which is also the result within a tier.
            let bf16_complex = result_type == "torch.bcomplex32";
            exceptions += usize::from(bf16_complex);
            let want = if bf16_complex { "c64" } else { result_type };
            cells += 1;
            if got != want {
                differing.push(format!("{pair}, default {default}: {got}, not {want}"));
            }
            // PyTorch does not add two Python scalars, so there is no second entry.
            match recorded[1].as_str() {
                Some(sum) if !bf16_complex && got != sum => {
                    differing.push(format!("{pair}, default {default}: a + b is {got}, not {sum}"));
                }
                _ => {}
            }
        }
    }
    assert_eq!((cells, exceptions), (3600, 40));
    report(differing, cells);
}

/// The operands of an op whose promoted ones are `a` and `b`.
fn application(op: Op, a: OperandType, b: OperandType) -> Vec<OperandType> {
    if op == Op::Where { vec![OperandType::dim(DType::Bool), a, b] } else { vec![a, b] }
}

/// Every op of the table that has recorded rules, over every pair of operand classes: the outcome follows from the
/// common dtype.
#[test]
fn torch_op_rules() {
    let table = golden("torch-result-type.json");
    let settings = Settings::new(Rules::Torch);
    let (mut differing, mut cells, mut ops) = (vec![], 0, BTreeSet::new());
    for row in rules_file::rows() {
        // `torch_op_rules_row_by_row` tests the other forms.
        let (name, outcomes) = (row.name.as_str(), &row.outcomes);
        let Some(op) = Op::from_name(name).filter(|op| op.arity() == 2 || *op == Op::Where) else { continue };
        ops.insert(op.name());
        for (pair, recorded) in table["float32"].as_object().unwrap() {
            let (a, b) = pair.split_once('|').unwrap();
            let scalars = [a, b].iter().filter(|o| o.starts_with("wrapped")).count();
            let common = recorded[0].as_str().unwrap();
            if common == "torch.bcomplex32" || scalars == 2 {
                continue;
            }
            let bool_operand = [a, b].iter().any(|o| o.ends_with(":bool"));
            // The file has the outcome for mixed dtypes. With equal dtypes, `heaviside` accepts all but complex
            // numbers.
            let heaviside = name == "heaviside" && !dtype(common).is_complex();
            if heaviside && scalars > 0 {
                continue; // PyTorch has no such form.
            }
            let one_dtype = a.split(':').nth(1) == b.split(':').nth(1);
            let (a, b) = (operand(a), operand(b));
            let want = match outcomes[common].as_str() {
                // Subtraction refuses a bool on either side, whatever the common dtype is.
                _ if op == Op::Sub && bool_operand => "-",
                _ if heaviside => {
                    if one_dtype {
                        common
                    } else {
                        "-"
                    }
                }
                "=common" => common,
                outcome if outcome.starts_with("E:") => "-",
                outcome => outcome,
            };
            let got = result(&settings, op, &application(op, a, b));
            cells += 1;
            if got != want {
                differing.push(format!("{name} of {pair}: {got}, not {want}"));
            }
        }
    }
    println!("{} ops, {cells} applications", ops.len());
    assert!(ops.len() >= 22, "{ops:?}");
    report(differing, cells);
}

/// Every row of the file, with or without exceptions, in every cell that was recorded. `model` says which cells are the
/// recorded exceptions. The test first checks that the model agrees with the file, then that castwise agrees with the
/// model.
#[test]
fn torch_op_rules_row_by_row() {
    use rules_file::Exceptions;
    let tables = rules_file::Tables::new(golden("torch-result-type.json"), golden("torch-promote-types.json"));
    let world = |recorded| model::World { tables: &tables, recorded, readings: Default::default() };
    let (recorded, documented) = (world(true), world(false));
    let (rows, mut walked, mut cells, mut departures, mut differing) = (rules_file::rows(), 0, 0, 0, vec![]);
    for row in &rows {
        let pairs = rules_file::cells(row);
        let written = |outcome: &model::Outcome| outcome.clone().map_or_else(|refusal| refusal, str::to_string);
        let outcomes: Vec<(&str, String)> =
            pairs.iter().map(|(a, b)| (tables.common(*a, *b), written(&recorded.outcome(row, *a, *b)))).collect();
        let mut exceptions = rules_file::exceptions(row, &outcomes).unwrap();
        if row.name == "div" {
            // PyTorch computed one quotient of c32, but the file does not say for which operands. castwise refuses all.
            *documented.readings.borrow_mut().entry("c32-division").or_default() += 1;
            exceptions = Exceptions::Counts([("c32: c32".to_string(), 1)].into());
        }
        assert_eq!(exceptions, row.exceptions, "{}: the model's exceptions are not the recorded ones", row.name);
        let answers: Option<Vec<_>> = pairs.iter().map(|(a, b)| forms::answer(&row.name, *a, *b)).collect();
        let Some(answers) = answers else { panic!("castwise is not asked about `{}`", row.name) };
        for ((a, b), got) in pairs.into_iter().zip(answers) {
            let want = documented.outcome(row, a, b);
            departures += usize::from(want != recorded.outcome(row, a, b));
            cells += 1;
            let same = match (&want, &got) {
                (Ok(want), Ok(got)) => *want == got.name(),
                (Err(want), Err(got)) => forms::faults(want).contains(got),
                _ => false,
            };
            if !same {
                differing.push(format!("{} of {a} and {b}: {got:?}, not {want:?}", row.name));
            }
        }
        walked += 1;
    }
    println!("{walked} rows, {cells} cells, {departures} of them read otherwise: {:?}", documented.readings.borrow());
    assert_eq!((walked, rows.len()), (68, 68), "a row that was not walked");
    assert_eq!(cells, rows.iter().map(|row| rules_file::cells(row).len()).sum::<usize>());
    // Each reading is used, and is documented.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/deviations.md");
    let documents = std::fs::read_to_string(path).unwrap();
    for (reading, words) in model::READINGS {
        assert!(documented.readings.borrow().contains_key(reading), "{reading} decides nothing");
        assert!(documents.contains(words), "docs/deviations.md does not say {words}");
    }
    report(differing, cells);
}

/// The guide's table of two tensors. Three cells follow the rows f64 and i64, in both orders: the row c64 of the guide
/// says c64 for f64 and c128 for i64, although the guide promises commutativity.
const TENSOR_TENSOR: &str = "
    bf16 | bf16 | f32  | f32  | f64  | -   | -   | -   | -   | -   | -   | c64  | c128
    f16  | f32  | f16  | f32  | f64  | -   | -   | -   | -   | -   | -   | c64  | c128
    f32  | f32  | f32  | f32  | f64  | -   | -   | -   | -   | -   | -   | c64  | c128
    f64  | f64  | f64  | f64  | f64  | -   | -   | -   | -   | -   | -   | c128 | c128
    bool | -    | -    | -    | -    | -   | -   | -   | -   | -   | -   | c64  | c128
    u8   | -    | -    | -    | -    | -   | -   | -   | -   | -   | -   | c64  | c128
    i8   | -    | -    | -    | -    | -   | -   | -   | -   | -   | -   | c64  | c128
    i16  | -    | -    | -    | -    | -   | -   | -   | -   | -   | -   | c64  | c128
    i32  | -    | -    | -    | -    | -   | -   | -   | -   | -   | -   | c64  | c128
    i64  | -    | -    | -    | -    | -   | -   | -   | -   | -   | -   | c64  | c128
    c64  | c64  | c64  | c64  | c128 | c64 | c64 | c64 | c64 | c64 | c64 | c64  | c128
    c128 | c128 | c128 | c128 | c128 | c128| c128| c128| c128| c128| c128| c128 | c128";

/// The guide's table of a tensor and a scalar, with the columns bool, int, float, complex.
const TENSOR_SCALAR: &str = "
    bool | bool | i64  | f32  | c64
    u8   | u8   | u8   | f32  | c64
    i8   | i8   | i8   | f32  | c64
    i16  | i16  | i16  | f32  | c64
    i32  | i32  | i32  | f32  | c64
    i64  | i64  | i64  | f32  | c64
    bf16 | bf16 | bf16 | bf16 | c64
    f16  | f16  | f16  | f16  | c64
    f32  | f32  | f32  | f32  | c64
    f64  | f64  | f64  | f64  | c128
    c64  | c64  | c64  | c64  | c64
    c128 | c128 | c128 | c128 | c128";

/// The cells of a table with these columns, by row and column.
fn cells<'a>(table: &'a str, columns: &[&'a str]) -> BTreeMap<(&'a str, &'a str), &'a str> {
    let mut all = BTreeMap::new();
    for line in table.lines().filter(|l| l.contains('|')) {
        let row: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(row.len(), columns.len() + 1, "{line}");
        all.extend(columns.iter().zip(&row[1..]).map(|(c, cell)| ((row[0], *c), *cell)));
    }
    all
}

/// The common dtype of two tensors with dims: equal dtypes need no promotion, others follow the table.
fn tensors(a: &str, b: &str) -> &'static str {
    if a == b {
        return PADDLE_DTYPES.iter().find(|d| **d == a).unwrap();
    }
    cells(TENSOR_TENSOR, &PADDLE_DTYPES)[&(a, b)]
}

/// How the result dtype of an op follows from the common dtype, and which operands are refused.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Common,
    Bool,
    /// Bool and integers become f32.
    Divide,
    /// Bool and integers become f64.
    Atan2,
}

/// The guide's APIs that are in the op table: the class of the result, whether an operand may be a scalar, whether a
/// 0-d tensor promotes as a scalar, and the common dtypes that the op does not support.
const APIS: &[(&str, Class, bool, bool, &[&str])] = &[
    ("add", Class::Common, true, true, &[]),
    ("subtract", Class::Common, true, true, &["bool"]),
    ("multiply", Class::Common, true, true, &[]),
    ("divide", Class::Divide, true, true, &[]),
    ("floor_divide", Class::Common, true, true, &["bool", "c64", "c128"]),
    ("remainder", Class::Common, true, true, &["bool"]),
    ("pow", Class::Common, true, true, &["bool"]),
    ("equal", Class::Bool, true, true, &[]),
    ("not_equal", Class::Bool, true, true, &[]),
    ("less_than", Class::Bool, true, true, &["c64", "c128"]),
    ("less_equal", Class::Bool, true, true, &["c64", "c128"]),
    ("greater_than", Class::Bool, true, true, &["c64", "c128"]),
    ("greater_equal", Class::Bool, true, true, &["c64", "c128"]),
    ("logical_and", Class::Bool, true, false, &[]),
    ("logical_or", Class::Bool, true, false, &[]),
    ("logical_xor", Class::Bool, true, false, &[]),
    ("where", Class::Common, true, false, &[]),
    ("maximum", Class::Common, false, false, &["c64", "c128"]),
    ("minimum", Class::Common, false, false, &["c64", "c128"]),
    ("fmax", Class::Common, false, false, &["c64", "c128"]),
    ("fmin", Class::Common, false, false, &["c64", "c128"]),
    ("atan2", Class::Atan2, false, false, &["c64", "c128"]),
    ("nextafter", Class::Common, false, false, &["bool", "u8", "i8", "i16", "i32", "i64", "c64", "c128"]),
];

fn outcome(class: Class, common: &str, refuses: &[&str]) -> String {
    match class {
        _ if common == "-" || refuses.contains(&common) => "-".into(),
        Class::Bool => "bool".into(),
        Class::Divide if dtype(common).is_integral() => "f32".into(),
        Class::Atan2 if dtype(common).is_integral() => "f64".into(),
        _ => common.into(),
    }
}

/// Compares every API of the guide over all cells that `case` returns: the operands and their common dtype.
fn compare_apis(case: impl Fn(bool, bool) -> Vec<([OperandType; 2], String)>) {
    let settings = Settings::new(Rules::Paddle);
    let (mut differing, mut count, mut apis) = (vec![], 0, 0);
    for (api, class, scalars, zero_dim_is_scalar, refuses) in APIS {
        let Some(op) = Op::from_name(api) else { continue };
        apis += 1;
        for ([a, b], common) in case(*scalars, *zero_dim_is_scalar) {
            let want = outcome(*class, &common, refuses);
            let got = result(&settings, op, &application(op, a, b));
            count += 1;
            if got != want {
                differing.push(format!("{api}({a}, {b}): {got}, not {want}"));
            }
        }
    }
    assert!(apis >= 21, "{apis} of {} APIs are in the op table", APIS.len());
    report(differing, count);
}

#[test]
fn paddle_tensor_with_tensor() {
    compare_apis(|_, _| {
        let one =
            |a: &str, b: &str| ([OperandType::dim(dtype(a)), OperandType::dim(dtype(b))], tensors(a, b).to_string());
        PADDLE_DTYPES.iter().flat_map(|a| PADDLE_DTYPES.iter().map(move |b| one(a, b))).collect()
    });
}

#[test]
fn paddle_tensor_with_scalar() {
    let kinds = ["bool", "int", "float", "complex"];
    compare_apis(|scalars, _| {
        let table = cells(TENSOR_SCALAR, &kinds);
        assert_eq!(table.len(), 48);
        let mut all = vec![];
        for ((tensor, kind), cell) in table {
            let common = if scalars { cell } else { "-" };
            for tensor in [OperandType::dim(dtype(tensor)), OperandType::zero(dtype(tensor))] {
                let s = OperandType::Scalar(scalar(kind));
                all.extend([([tensor, s], common.to_string()), ([s, tensor], common.to_string())]);
            }
        }
        all
    });
}

/// 0-d tensors that promote as scalars: one of the same class follows the tensor with dims, and all others follow the
/// full table, which is PyTorch's.
#[test]
fn paddle_zero_dim() {
    let full = golden("torch-promote-types.json");
    compare_apis(|_, zero_dim_is_scalar| {
        let mut all = vec![];
        for a in PADDLE_DTYPES {
            for b in PADDLE_DTYPES {
                let same_class = dtype(a).category() == dtype(b).category();
                let lookup = full[a][b].as_str().unwrap();
                let (dim, zero) = (OperandType::dim, OperandType::zero);
                let (one, both) = match zero_dim_is_scalar {
                    true => (if same_class { a } else { lookup }, lookup),
                    false => (tensors(a, b), tensors(a, b)),
                };
                all.push(([dim(dtype(a)), zero(dtype(b))], one.to_string()));
                all.push(([zero(dtype(b)), dim(dtype(a))], one.to_string()));
                all.push(([zero(dtype(a)), zero(dtype(b))], both.to_string()));
            }
        }
        all
    });
}

/// Bitwise ops promote no tensors, 0-d or not; an integer or bool scalar follows the tensor.
#[test]
fn paddle_bitwise() {
    let settings = Settings::new(Rules::Paddle);
    let (mut differing, mut count) = (vec![], 0);
    let mut check = |op: Op, operands: [OperandType; 2], want: &str| {
        let got = result(&settings, op, &operands);
        count += 1;
        if got != want {
            differing.push(format!("{op}({}, {}): {got}, not {want}", operands[0], operands[1]));
        }
    };
    let bits = |d: &str| matches!(dtype(d).category(), Category::Bool | Category::Int);
    for op in [Op::BitwiseAnd, Op::BitwiseOr, Op::BitwiseXor] {
        for a in PADDLE_DTYPES {
            for b in PADDLE_DTYPES {
                let want = if a == b && bits(a) { a } else { "-" };
                for (a, b) in [
                    (OperandType::dim(dtype(a)), OperandType::dim(dtype(b))),
                    (OperandType::dim(dtype(a)), OperandType::zero(dtype(b))),
                    (OperandType::zero(dtype(a)), OperandType::dim(dtype(b))),
                ] {
                    check(op, [a, b], want);
                }
            }
        }
        for ((tensor, kind), cell) in cells(TENSOR_SCALAR, &["bool", "int", "float", "complex"]) {
            let (t, s) = (OperandType::dim(dtype(tensor)), OperandType::Scalar(scalar(kind)));
            let want = if bits(cell) { cell } else { "-" };
            check(op, [t, s], want);
            check(op, [s, t], want);
        }
    }
    report(differing, count);
}

/// The error for a refused mix names both operands and suggests a cast; the error for a refused scalar suggests an
/// alternative.
#[test]
fn paddle_refusals_say_what_to_write() {
    let settings = Settings::new(Rules::Paddle);
    for a in PADDLE_DTYPES {
        for b in PADDLE_DTYPES {
            let operands = [OperandType::dim(dtype(a)), OperandType::dim(dtype(b))];
            let Err(d) = signature(&settings, Op::Add, &operands, &Attrs::default()) else { continue };
            let help = d.help.unwrap_or_default();
            assert_eq!(d.kind, DiagnosticKind::PromotionRefused, "{a} + {b}");
            assert!(d.message.contains(&format!("{a} and {b}")) && help.contains("cast"), "{}; {help}", d.message);
        }
        let operands = [OperandType::dim(dtype(a)), OperandType::Scalar(Scalar::Int(2))];
        let d = signature(&settings, Op::Maximum, &operands, &Attrs::default()).unwrap_err();
        assert_eq!(d.kind, DiagnosticKind::ArgNotTensor);
        assert!(d.help.unwrap_or_default().contains("0-d"), "{}", d.message);
    }
    // Also where the common dtype is not asked for.
    for (op, operands) in [
        (Op::Median, vec![DType::U16]),
        (Op::Ldexp, vec![DType::U32, DType::F32]),
        (Op::Assign, vec![DType::F32, DType::U16]),
    ] {
        let operands: Vec<OperandType> = operands.into_iter().map(OperandType::dim).collect();
        let d = signature(&settings, op, &operands, &Attrs::default()).unwrap_err();
        assert!(d.message.contains("Paddle has no u"), "{op}: {}", d.message);
    }
}

/// The order of the operands affects neither the result dtype, nor the compute dtype, nor whether there is an error.
#[test]
fn commutative_in_dtype() {
    for rules in Rules::ALL.iter().copied() {
        let (settings, mut differing, mut count) = (Settings::new(rules), vec![], 0);
        let mut operands: Vec<OperandType> =
            ["bool", "int", "float", "complex"].map(|k| OperandType::Scalar(scalar(k))).into();
        for d in DType::ALL {
            operands.extend([OperandType::dim(d), OperandType::zero(d)]);
        }
        // `assign` writes to its first operand; NumPy's and JAX's `ldexp` takes an integer as its second one; NumPy makes
        // an array of what is clipped; in JAX an integer exponent that is a scalar does not promote.
        let ordered: &[Op] = match rules {
            Rules::NumPy => &[Op::Ldexp, Op::ClampMin, Op::ClampMax],
            Rules::Jax => &[Op::Ldexp, Op::LdexpFloat, Op::Pow, Op::PowChecked],
            _ => &[],
        };
        let symmetric = |op: &Op| {
            let first = op.def().promotion == castwise::ops::Promotion::First;
            op.arity() == 2 && !first && !ordered.contains(op)
        };
        for op in Op::ALL.iter().copied().filter(|op| symmetric(op) || *op == Op::Where) {
            for a in &operands {
                for b in &operands {
                    let one = signature(&settings, op, &application(op, *a, *b), &Attrs::default());
                    let other = signature(&settings, op, &application(op, *b, *a), &Attrs::default());
                    // NumPy compares u64 with signed integers in the dtype of the first.
                    let exact = |s: &castwise::promotion::Signature| rules == Rules::NumPy && s.result == DType::Bool;
                    let decided =
                        |s: castwise::promotion::Signature| (if exact(&s) { s.result } else { s.compute }, s.result);
                    let fault = |d: castwise::Diagnostic| d.kind;
                    count += 1;
                    let (one, other) = (one.map(decided).map_err(fault), other.map(decided).map_err(fault));
                    if one != other {
                        differing.push(format!("{rules}: {op}({a}, {b}) is {one:?}, swapped {other:?}"));
                    }
                }
            }
        }
        report(differing, count);
    }
}
