//! Random expressions: SQL gives what castwise gives for the whole columns, bit for bit, whatever partitions, batches
//! and nulls there are, and refuses what castwise refuses.

mod common;

use castwise::{DType, Error, Executor, Program, Rules, Tensor};
use std::sync::Arc;

use castwise_datafusion::{Source, castwise_udf, dtype_of, field_of, register, register_functions};
use common::{DTYPES, Random, column, config, table, tensor, values};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, Float32Array, RecordBatch};
use datafusion::arrow::datatypes::{Field, Float64Type, Schema};
use datafusion::prelude::SessionContext;

const BINARY: [&str; 22] = [
    "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "maximum", "minimum",
    "atan2", "hypot", "copysign", "fmod",
];
const UNARY: [&str; 18] = [
    "abs",
    "-",
    "~",
    "sqrt",
    "exp",
    "log",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "floor",
    "ceil",
    "round",
    "sign",
    "isnan",
    "square",
    "reciprocal",
    "logical_not",
];
const CONSTANTS: [&str; 7] = ["2", "-1", "0.5", "3", "1e9", "true", "pi"];

/// An expression of columns `c0` to `c{columns - 1}`.
fn expression(r: &mut Random, columns: usize, depth: usize) -> String {
    if depth == 0 || r.below(8) == 0 {
        return if r.below(5) == 0 { r.of(&CONSTANTS).to_string() } else { format!("c{}", r.below(columns)) };
    }
    let mut part = || expression(r, columns, depth - 1);
    let (a, b, c) = (part(), part(), part());
    match r.below(10) {
        0..6 => match *r.of(&BINARY) {
            op if op.starts_with(|c: char| c.is_alphabetic()) => format!("{op}({a}, {b})"),
            op => format!("(({a}) {op} ({b}))"),
        },
        6..8 => format!("{}({a})", r.of(&UNARY)),
        8 => format!("cast({a}, {})", r.of(&DTYPES)),
        _ => format!("where(({a}) > ({b}), {b}, {c})"),
    }
}

/// What castwise gives for the rows that a mask selects; `None` if it refuses the expression.
fn reference(text: &str, rules: Rules, columns: &[ArrayRef], mask: &[bool]) -> Option<Result<Tensor, Error>> {
    let names = Source::expression(text, rules).ok()?.names().to_vec();
    let p = Program::new(rules);
    let mut feeds = Vec::new();
    for name in names {
        let Some(at) = name.strip_prefix('c').and_then(|n| n.parse::<usize>().ok()) else { continue };
        let t = tensor(&columns[at], mask);
        p.data(&name, t.dtype(), [None]);
        feeds.push((name, t));
    }
    let y = p.expression(text).ok()?;
    p.infer().ok()?;
    Some(Executor::new().run(&p, feeds, [&y]).map(|mut all| all.remove(0)))
}

/// The columns that an expression names, in the order in which it does.
fn named(text: &str) -> Vec<usize> {
    let Ok(source) = Source::expression(text, Rules::Torch) else { return Vec::new() };
    source.names().iter().filter_map(|n| n.strip_prefix('c')?.parse().ok()).collect()
}

fn bytes(t: &Tensor) -> Vec<u8> {
    t.contiguous().unwrap().as_bytes().unwrap().to_vec()
}

#[tokio::test]
async fn sql_has_castwises_bits() {
    let (mut ran, mut refused, mut raised) = (0, 0, 0);
    for seed in 0..400 {
        let mut r = Random::new(seed);
        let rows = *r.of(&[1, 3, 8, 63, 100, 257]);
        let columns: Vec<ArrayRef> = (0..3)
            .map(|_| {
                let (dtype, nulls) = (*r.of(&DTYPES), r.below(2) == 0);
                column(&mut r, dtype, rows, nulls)
            })
            .collect();
        let text = expression(&mut r, 3, 1 + seed as usize % 4);
        let rules = *r.of(Rules::ALL);
        let used = named(&text);
        // Or the text is refused as such, with no names to give columns for.
        if used.is_empty() {
            continue;
        }
        let mask: Vec<bool> = (0..rows).map(|row| used.iter().all(|c| columns[*c].is_valid(row))).collect();
        let wanted = reference(&text, rules, &columns, &mask);

        let (partitions, batch) = (1 + r.below(3), *r.of(&[1, 5, 7, 64, 1000]));
        let mut session = SessionContext::new_with_config(config(partitions, batch));
        register(&mut session, Rules::Torch).unwrap();
        table(&session, &columns, partitions, batch).unwrap();
        let args = used.iter().map(|c| format!("c{c}")).collect::<Vec<_>>().join(", ");
        let query = format!("SELECT y FROM (SELECT castwise_{rules}('{text}', {args}) AS y, row FROM t) ORDER BY row");
        let what =
            || format!("seed {seed}: {rules} {text} {:?}", columns.iter().map(|c| c.data_type()).collect::<Vec<_>>());
        match (wanted, values(&session, &query).await) {
            (None, got) => {
                let error = got.expect_err(&what()).to_string();
                assert!(error.contains("castwise: "), "{}: {error}", what());
                refused += 1;
            }
            (Some(Err(e)), got) => {
                let error = got.expect_err(&what()).to_string();
                let first = e.to_string().lines().next().unwrap().to_string();
                assert!(error.contains(&first), "{}: {error}", what());
                raised += 1;
            }
            (Some(Ok(want)), got) => {
                let got = got.unwrap_or_else(|e| panic!("{}: {e}", what()));
                assert_eq!(*got.data_type(), *field_of("", want.dtype(), true).data_type(), "{}", what());
                let valid: Vec<bool> = (0..rows).map(|row| got.is_valid(row)).collect();
                assert_eq!(valid, mask, "{}", what());
                assert_eq!(bytes(&tensor(&got, &mask)), bytes(&want), "{}", what());
                ran += 1;
            }
        }
    }
    assert!(ran > 100 && refused > 20 && raised > 0, "{ran} ran, {refused} refused, {raised} raised");
}

/// A tree of castwise's functions in SQL, with the columns as arguments.
fn nested(r: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return format!("c{}", r.below(3));
    }
    let (a, b) = (nested(r, depth - 1), nested(r, depth - 1));
    match r.below(6) {
        0 => format!("castwise('x * y + 1', {a}, {b})"),
        1 => format!("castwise('x - y / 2', {a}, {b})"),
        2 => format!("castwise('cast(x, f16) + y', {a}, {b})"),
        3 => format!("castwise('maximum(x, y)', {a}, {b})"),
        4 => format!("({a} + {b})"),
        _ => format!("castwise('exp(x)', {a})"),
    }
}

#[tokio::test]
async fn fused_trees_have_the_bits_of_their_functions() {
    let mut ran = 0;
    for seed in 0..150 {
        let mut r = Random::new(1000 + seed);
        let columns: Vec<ArrayRef> = (0..3)
            .map(|_| {
                let dtype = *r.of(&[DType::I32, DType::F32, DType::F64, DType::U8, DType::F16]);
                column(&mut r, dtype, 100, true)
            })
            .collect();
        let query =
            format!("SELECT y FROM (SELECT {} AS y, row FROM t) ORDER BY row", nested(&mut r, 1 + seed as usize % 3));
        let mut with = SessionContext::new_with_config(config(2, 16));
        register(&mut with, Rules::Torch).unwrap();
        let mut without = SessionContext::new_with_config(config(2, 16));
        register_functions(&mut without, Rules::Torch).unwrap();
        let mut got = Vec::new();
        for session in [&with, &without] {
            table(session, &columns, 2, 16).unwrap();
            got.push(values(session, &query).await);
        }
        match (&got[0], &got[1]) {
            (Ok(a), Ok(b)) => {
                assert_eq!(a.data_type(), b.data_type(), "{query}");
                let mask: Vec<bool> = (0..100).map(|row| a.is_valid(row)).collect();
                assert_eq!(mask, (0..100).map(|row| b.is_valid(row)).collect::<Vec<_>>(), "{query}");
                let same = |t: &Tensor| -> Vec<u8> {
                    // A product has castwise's one NaN. DataFusion's own `+` makes others, which joined programs do not keep.
                    let cx = castwise::Eager::new(Rules::NumPy);
                    bytes(&cx.tensor(t).mul(1).result().unwrap())
                };
                assert_eq!(same(&tensor(a, &mask)), same(&tensor(b, &mask)), "{query}");
                ran += 1;
            }
            (a, b) => assert!(a.is_err() == b.is_err(), "{query}: {a:?} {b:?}"),
        }
    }
    assert!(ran > 60, "{ran}");
}

#[tokio::test]
async fn dtypes_that_arrow_lacks_stay_what_they_are() {
    let mut session = SessionContext::new_with_config(config(2, 7));
    register(&mut session, Rules::Torch).unwrap();
    let columns = [column(&mut Random::new(7), DType::F32, 100, true)];
    table(&session, &columns, 2, 7).unwrap();
    let frame = session.sql("SELECT castwise('cast(a, bf16)', c0) AS half FROM t ORDER BY row").await.unwrap();
    assert_eq!(dtype_of(frame.schema().field(0)), Ok(DType::BF16));
    let inner = "SELECT row, castwise('cast(a, bf16)', c0) AS half FROM t";
    let query = format!("SELECT castwise('a * 2', half) FROM ({inner}) ORDER BY row");
    let got = values(&session, &query).await.unwrap();
    let mask: Vec<bool> = (0..100).map(|row| columns[0].is_valid(row)).collect();
    let want = reference("cast(c0, bf16) * 2", Rules::Torch, &columns, &mask).unwrap().unwrap();
    assert_eq!(bytes(&tensor(&got, &mask)), bytes(&want));
}

/// Extremes of batches and partitions are merged in the dtype itself.
#[tokio::test]
async fn extremes_of_every_dtype_are_those_of_the_whole_column() {
    let mut session = SessionContext::new_with_config(config(3, 8));
    register(&mut session, Rules::Jax).unwrap();
    // No NaN, which would be the extreme.
    let numbers = (0..100).map(|i| (i % 7 > 0).then_some(((i * 37) % 101 - 50) as f32 / 4.0));
    let columns: [ArrayRef; 1] = [Arc::new(numbers.collect::<Float32Array>())];
    table(&session, &columns, 3, 8).unwrap();
    let mask: Vec<bool> = (0..100).map(|row| columns[0].is_valid(row)).collect();
    for dtype in DTYPES.into_iter().chain([DType::BF16, DType::F8E4M3FN, DType::F8E5M2]) {
        for op in ["amin", "amax"] {
            let text = format!("{op}(cast(c0, {dtype}))");
            let want = reference(&format!("cast({text}, f64)"), Rules::Jax, &columns, &mask).unwrap().unwrap();
            let query = format!("SELECT castwise('cast(a, f64)', castwise_agg('{text}', c0)) AS y FROM t");
            let got = values(&session, &query).await.unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(got.as_primitive::<Float64Type>().value(0), want.item::<f64>().unwrap(), "{text}");
        }
    }
}

#[tokio::test]
async fn arguments_that_a_program_wants_of_one_length_may_be_literals() {
    let p = Program::new(Rules::Torch);
    let product = p.data("x", DType::F32, ["n"]) * p.data("y", DType::F32, ["n"]);
    p.set_fetches([(None::<&str>, &product)]).unwrap();
    let session = SessionContext::new_with_config(config(2, 7));
    session.register_udf(castwise_udf("product", Source::program(&p).unwrap()));
    let columns: [ArrayRef; 1] = [Arc::new(Float32Array::from_iter_values((0..20).map(|i| i as f32)))];
    table(&session, &columns, 2, 7).unwrap();
    let got = values(&session, "SELECT product(c0, CAST(2 AS REAL)) AS y FROM t ORDER BY row").await.unwrap();
    let want: ArrayRef = Arc::new(Float32Array::from_iter_values((0..20).map(|i| 2.0 * i as f32)));
    assert_eq!(&got, &want);
    let one = values(&session, "SELECT product(CAST(3 AS REAL), CAST(2 AS REAL)) AS y").await.unwrap();
    assert_eq!(one.to_data(), Float32Array::from(vec![6.0]).to_data());
}

#[tokio::test]
async fn a_complex_number_with_a_null_part_is_null() {
    let parts = Float32Array::from(vec![Some(1.0), Some(2.0), None, Some(4.0)]);
    let item = Arc::new(Field::new("item", parts.data_type().clone(), true));
    let numbers = FixedSizeListArray::new(item, 2, Arc::new(parts), None);
    let metadata = field_of("z", DType::C64, false).metadata().clone();
    let field = Field::new("z", numbers.data_type().clone(), false).with_metadata(metadata);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(numbers)]).unwrap();
    let mut session = SessionContext::new();
    register(&mut session, Rules::Torch).unwrap();
    session.register_batch("t", batch).unwrap();
    let got = values(&session, "SELECT castwise('real(a)', z) AS y FROM t").await.unwrap();
    assert_eq!(got.to_data(), Float32Array::from(vec![Some(1.0), None]).to_data());
}
