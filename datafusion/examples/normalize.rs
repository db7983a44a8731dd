//! Features with mean 0 and variance 1: aggregates of the training data, and an expression that uses them for every
//! row, stored as bf16.
//!
//! `cargo run --example normalize`

use std::sync::Arc;

use castwise::{DType, Rules};
use castwise_datafusion::{dtype_of, register};
use datafusion::arrow::array::{ArrayRef, AsArray, Float32Array, RecordBatch};
use datafusion::arrow::datatypes::Float32Type;
use datafusion::prelude::SessionContext;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut session = SessionContext::new();
    register(&mut session, Rules::Torch)?;
    let n = 200_000;
    let income: ArrayRef = Arc::new(Float32Array::from_iter(
        // Some are unknown.
        (0..n).map(|i| (i % 11 != 0).then(|| 30_000.0 + (i * 7919 % 50_021) as f32)),
    ));
    session.register_batch("people", RecordBatch::try_from_iter([("income", income)])?)?;

    let scaled = "
        SELECT castwise('(log1p(x) - mean) / sqrt(var + 1e-6)', income, mean, var) AS feature
        FROM people
        CROSS JOIN (SELECT castwise_agg('mean(log1p(x))', income) AS mean, castwise_agg('var(log1p(x))', income) AS var FROM people)";
    let stored = session.sql(&format!("SELECT castwise('cast(x, bf16)', feature) AS feature FROM ({scaled})")).await?;
    assert_eq!(dtype_of(stored.schema().field(0)), Ok(DType::BF16));

    let check = format!(
        "SELECT castwise_agg('mean(x)', feature) AS mean, castwise_agg('var(x)', feature) AS var FROM ({scaled})"
    );
    let frame = session.sql(&check).await?;
    frame.clone().show().await?;
    let batch = &frame.collect().await?[0];
    let of = |i: usize| batch.column(i).as_primitive::<Float32Type>().value(0);
    assert!(of(0).abs() < 1e-3 && (of(1) - 1.0).abs() < 1e-3, "{} {}", of(0), of(1));
    Ok(())
}
