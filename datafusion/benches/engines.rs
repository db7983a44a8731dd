//! castwise's functions beside DataFusion's own expressions, on the same Parquet file, partitions and threads, in turns.
//!
//! `cargo bench --bench engines -- --rows 10000000 --partitions 1 [--turns 7] [--in-memory 0] [--file t.parquet] [--only NAME] [--batch ROWS]
//! [--columns 20]` prints the least and the median time of each query for both, and their ratio; then the geometric mean of the ratios of more than
//! one op.
//! Beside them, as `floor`, the median of the query with a function that only reads its columns and returns the first, which a
//! function that computes something can hardly beat; a filter has its condition as a column there.
//!
//! Queries give columns, whose batches are dropped as they come, or aggregates; the sums of what both give are compared before. A
//! query's table has the columns that it reads. Unless `--in-memory 0` is given, it is read before. `--file` keeps the file, for
//! `engines_polars.py`; if there is one already, it must have as many rows as `--rows` says, if that is given, and as many columns to be
//! summed as `--columns` says.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use castwise::Rules;
use datafusion::arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, RecordBatch, UInt8Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::{DataFrame, ParquetReadOptions, SessionConfig, SessionContext};
use futures::StreamExt;

type Error = Box<dyn std::error::Error>;

/// A workload: its name, the columns that its table `t` has, and the queries of castwise, of DataFusion and of [`Touch`], whose only column is `y`.
struct Workload {
    name: &'static str,
    columns: String,
    queries: [String; 3],
}

/// A function that reads its contiguous arguments, some cache lines of each in turn as an elementwise kernel does, and returns the first.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Touch(Signature);

impl ScalarUDFImpl for Touch {
    fn name(&self) -> &str {
        "touch"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, columns: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(columns[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let columns: Vec<ArrayData> =
            ColumnarValue::values_to_arrays(&args.args)?.iter().map(|column| column.to_data()).collect();
        let columns: Vec<&[[u8; 64]]> = columns.iter().map(lines).collect();
        for from in (0..columns[0].len()).step_by(BLOCK) {
            for column in &columns {
                let lines = column.iter().skip(from).take(BLOCK);
                black_box(lines.fold([0; 64], |all, line| std::array::from_fn(|i| all[i] ^ line[i])));
            }
        }
        Ok(args.args[0].clone())
    }
}

/// Cache lines that [`Touch`] reads of a column before it reads of the next.
const BLOCK: usize = 16;

/// The contiguous values of a column in cache lines, without the partial line at the end.
fn lines(column: &ArrayData) -> &[[u8; 64]] {
    let size = column.data_type().primitive_width().unwrap_or(1);
    column.buffers()[0][column.offset() * size..][..column.len() * size].as_chunks().0
}

/// A partition of a table in memory. DataFusion's own table of batches copies the list of all its batches, with all their columns, in several
/// steps of planning; a table of this one costs nothing before it is read.
#[derive(Debug)]
struct Batches {
    schema: SchemaRef,
    batches: Arc<[RecordBatch]>,
}

impl PartitionStream for Batches {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = self.batches.clone();
        let each = (0..batches.len()).map(move |i| Ok(batches[i].clone()));
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::iter(each)))
    }
}

/// A table read into memory, with the partitions that it has.
async fn read(table: DataFrame) -> Result<StreamingTable, Error> {
    let schema: SchemaRef = Arc::new(table.schema().as_arrow().clone());
    let partitions = table.collect_partitioned().await?.into_iter().map(|batches| -> Arc<dyn PartitionStream> {
        Arc::new(Batches { schema: schema.clone(), batches: batches.into() })
    });
    Ok(StreamingTable::try_new(schema.clone(), partitions.collect())?)
}

/// The normal distribution by Abramowitz and Stegun, 7.1.26, since DataFusion has no `erf`.
fn normal(x: &str) -> String {
    let t = format!("(1 / (1 + 0.2316419 * abs({x})))");
    let p = format!(
        "(exp(-({x}) * ({x}) / 2) * 0.3989422804014327 * {t} * (0.319381530 + {t} * (-0.356563782 + {t} * (1.781477937 + {t} * (-1.821255978 + {t} * 1.330274429)))))"
    );
    format!("(CASE WHEN {x} < 0 THEN {p} ELSE 1 - {p} END)")
}

/// The workloads, with the sum of so many columns, if there are any.
fn workloads(columns: usize) -> Vec<Workload> {
    let ten = "((((((((((a * 0.5) + b) * a) - b) * 0.25) + a) * b) + 1) * a) - b)";
    let ten_sql = "((((((((((a * 0.5::REAL) + b) * a) - b) * 0.25::REAL) + a) * b) + 1::REAL) * a) - b)";
    let d1 = "(ln(spot / strike) + (0.03 + vol * vol / 2) * years) / (vol * sqrt(years))";
    let d2 = format!("({d1} - vol * sqrt(years))");
    let scholes = format!("spot * {} - strike * exp(-0.03 * years) * {}", normal(d1), normal(&d2));
    let call = "t = v * sqrt(y); d1 = (log(s / k) + (0.03 + v * v / 2) * y) / t; d2 = d1 - t; \
        s * (1 + erf(d1 * 0.7071067811865476)) / 2 - k * exp(-0.03 * y) * (1 + erf(d2 * 0.7071067811865476)) / 2";
    let workload = |name, list: &str, expressions: [&str; 3]| Workload {
        name,
        columns: list.into(),
        queries: expressions.map(|of| format!("SELECT {of} AS y FROM t")),
    };
    let by_row = |name, list: &str, ours: &str, theirs: &str| {
        workload(name, list, [&format!("castwise('{ours}', {list})"), theirs, &format!("touch({list})")])
    };
    let ndvi = "(cast(n, f32) - r) / (n + cast(r, f32) + 1)";
    let ndvi_sql = "(nir::REAL - red::REAL) / (nir::REAL + red::REAL + 1::REAL)";
    let mut all = vec![
        workload("read", "a", ["a"; 3]),
        by_row("one op, f32", "a, b", "a + b", "a + b"),
        by_row("ten ops, f32", "a, b", ten, ten_sql),
        by_row("black-scholes, f64", "vol, years, spot, strike", call, &scholes),
        by_row("ndvi, casts", "nir, red", ndvi, ndvi_sql),
        Workload {
            name: "filter and expression",
            columns: "a, b, inside".into(),
            queries: [
                "SELECT castwise('a * b + 1', a, b) AS y FROM t WHERE castwise('a * a + b * b < 0.5', a, b)".into(),
                "SELECT a * b + 1::REAL AS y FROM t WHERE a * a + b * b < 0.5::REAL".into(),
                "SELECT touch(a, b) AS y FROM t WHERE inside".into(),
            ],
        },
        workload("aggregate", "a, b", ["castwise_agg('sum(a * b)', a, b)", "sum(a * b)", "count(touch(a, b))"]),
    ];
    if columns > 0 {
        let summed: Vec<String> = (0..columns).map(|i| format!("c{i}")).collect();
        let sum = summed.join(" + ");
        all.push(by_row("sum of columns", &summed.join(", "), &sum, &sum));
    }
    all
}

/// The text after an option, if that is given.
fn text(name: &str) -> Result<Option<String>, Error> {
    let mut from = std::env::args().skip_while(|arg| arg != name);
    match (from.next(), from.next()) {
        (Some(_), None) => Err(format!("{name} has no value").into()),
        (_, value) => Ok(value),
    }
}

/// The number after an option, if that is given.
fn number(name: &str) -> Result<Option<usize>, Error> {
    let Some(text) = text(name)? else { return Ok(None) };
    text.parse().map(Some).map_err(|_| format!("{name} takes a number, not {text}").into())
}

async fn written(rows: usize, columns: usize, path: &str) -> Result<(), Error> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1 << 24) as f64
    };
    let mut f32s = || -> ArrayRef { Arc::new(Float32Array::from_iter_values((0..rows).map(|_| next() as f32))) };
    let (a, b) = (f32s(), f32s());
    let inside: ArrayRef = {
        let pairs = a.as_primitive::<Float32Type>().values().iter().zip(b.as_primitive::<Float32Type>().values());
        Arc::new(pairs.map(|(a, b)| Some(a * a + b * b < 0.5)).collect::<BooleanArray>())
    };
    let mut f64s = |low: f64, width: f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values((0..rows).map(|_| low + width * next())))
    };
    let (spot, strike, years, vol) = (f64s(80.0, 40.0), f64s(90.0, 20.0), f64s(0.1, 2.0), f64s(0.1, 0.4));
    let mut bytes =
        || -> ArrayRef { Arc::new(UInt8Array::from_iter_values((0..rows).map(|_| (next() * 255.0) as u8))) };
    let (nir, red) = (bytes(), bytes());
    let summed: Vec<(String, ArrayRef)> = (0..columns).map(|i| (format!("c{i}"), a.clone())).collect();
    let columns = [
        ("a", a),
        ("b", b),
        ("spot", spot),
        ("strike", strike),
        ("years", years),
        ("vol", vol),
        ("nir", nir),
        ("red", red),
        ("inside", inside),
    ];
    let columns = columns.map(|(name, column)| (name.to_string(), column)).into_iter().chain(summed);
    let batch = RecordBatch::try_from_iter(columns)?;
    SessionContext::new().read_batch(batch)?.write_parquet(path, DataFrameWriteOptions::new(), None).await?;
    Ok(())
}

/// The sum of the column that a query gives.
async fn sum(session: &SessionContext, query: &str) -> Result<f64, Error> {
    let batches = session.sql(&format!("SELECT sum(y) FROM ({query})")).await?.collect().await?;
    let sum = cast(batches[0].column(0), &DataType::Float64)?;
    Ok(sum.as_primitive::<Float64Type>().value(0))
}

/// The time that a query takes, planning included. Each partition is consumed by a task of its own.
async fn timed(session: &SessionContext, query: &str) -> Result<Duration, Error> {
    let begin = Instant::now();
    let streams = session.sql(query).await?.execute_stream_partitioned().await?;
    let consume = |mut stream: SendableRecordBatchStream| async move {
        let mut rows = 0;
        while let Some(batch) = stream.next().await {
            rows += batch?.num_rows();
        }
        Ok::<_, DataFusionError>(rows)
    };
    let tasks: Vec<_> = streams.into_iter().map(|stream| tokio::spawn(consume(stream))).collect();
    for task in tasks {
        task.await??;
    }
    Ok(begin.elapsed())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let (partitions, turns) = (number("--partitions")?.unwrap_or(1), number("--turns")?.unwrap_or(5).max(1));
    let (asked, in_memory) = (number("--rows")?, number("--in-memory")?.unwrap_or(1));
    let columns = number("--columns")?.unwrap_or(0);
    let folder = tempfile::tempdir()?;
    let path = text("--file")?.unwrap_or_else(|| folder.path().join("t.parquet").to_string_lossy().into_owned());
    if !std::path::Path::new(&path).exists() {
        written(asked.unwrap_or(1_000_000), columns, &path).await?;
    }
    let mut config = SessionConfig::new().with_target_partitions(partitions);
    if let Some(rows) = number("--batch")? {
        config = config.with_batch_size(rows);
    }
    let mut session = SessionContext::new_with_config(config);
    castwise_datafusion::register(&mut session, Rules::Torch)?;
    session.register_udf(ScalarUDF::from(Touch(Signature::variadic_any(Volatility::Immutable))));
    session.register_parquet("file", &path, ParquetReadOptions::default()).await?;
    let rows = session.table("file").await?.count().await?;
    if let Some(asked) = asked.filter(|asked| *asked != rows) {
        return Err(format!("{path} has {rows} rows, not {asked}").into());
    }
    println!("{rows} rows, {partitions} partitions, least and median of {turns} turns, ms");
    let mut ratios = [Vec::new(), Vec::new()];
    let only = text("--only")?;
    for Workload { name, columns, queries } in workloads(columns) {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let table = session.sql(&format!("SELECT {columns} FROM file")).await?;
        // Reading is the same for both, and not what is compared.
        let table: Arc<dyn TableProvider> =
            if in_memory == 1 { Arc::new(read(table).await?) } else { table.into_view() };
        session.deregister_table("t")?;
        session.register_table("t", table)?;
        let (got, want) = (sum(&session, &queries[0]).await?, sum(&session, &queries[1]).await?);
        // Sums of f32 are DataFusion's in f32 or f64, and its normal distribution is an approximation.
        assert!((got - want).abs() <= 1e-3 * want.abs(), "{name}: {got} {want}");
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..turns {
            for (times, query) in times.iter_mut().zip(&queries) {
                times.push(timed(&session, query).await?.as_secs_f64() * 1e3);
            }
        }
        times.iter_mut().for_each(|t| t.sort_by(f64::total_cmp));
        let [ours, theirs, floor] = times.each_ref().map(|t| t[turns / 2]);
        println!(
            "{name:24} castwise {:8.2} {ours:8.2}   datafusion {:8.2} {theirs:8.2}   ratio {:.2}   floor {floor:8.2}",
            times[0][0],
            times[1][0],
            theirs / ours,
        );
        if !["read", "one op, f32"].contains(&name) {
            ratios[0].push(theirs / ours);
            ratios[1].push(theirs / floor);
        }
    }
    let [mean, most] = ratios.map(|all| (all.iter().map(|r| r.ln()).sum::<f64>() / all.len() as f64).exp());
    println!("geometric mean of the ratios of more than one op: {mean:.2}; of DataFusion's to the floor: {most:.2}");
    Ok(())
}
