//! Prices of European options for a table of quotes: one expression with named parts, one loop, and a filter that
//! reads it.
//!
//! `cargo run --example black_scholes`

use std::sync::Arc;

use castwise::Rules;
use castwise_datafusion::{Source, castwise_udf, register};
use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::prelude::SessionContext;

/// The price of a call: spot price, strike, years, interest rate, volatility.
const CALL: &str = "
    t = vol * sqrt(years);
    d1 = (log(spot / strike) + (rate + vol * vol / 2) * years) / t;
    d2 = d1 - t;
    spot * (1 + erf(d1 * 0.7071067811865476)) / 2 - strike * exp(-rate * years) * (1 + erf(d2 * 0.7071067811865476)) / 2";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut session = SessionContext::new();
    register(&mut session, Rules::Torch)?;
    let call = Source::expression(CALL, Rules::Torch)?;
    // Arguments are given in the order in which the expression first names them.
    assert_eq!(call.names(), ["vol", "years", "spot", "strike", "rate"]);
    session.register_udf(castwise_udf("call_price", call));

    let n = 50_000;
    let of =
        |f: &dyn Fn(f64) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values((0..n).map(|i| f(i as f64)))) };
    let quotes = RecordBatch::try_from_iter([
        ("spot", of(&|i| 80.0 + i % 41.0)),
        ("strike", of(&|i| 90.0 + i % 23.0)),
        ("years", of(&|i| 0.1 + i % 12.0 / 6.0)),
        ("vol", of(&|i| 0.1 + i % 7.0 / 20.0)),
    ])?;
    session.register_batch("quotes", quotes)?;
    let query = "
        SELECT spot, strike, years, vol, call_price(vol, years, spot, strike, 0.03) AS price FROM quotes
        WHERE call_price(vol, years, spot, strike, 0.03) > 0.5 ORDER BY price DESC LIMIT 5";
    let frame = session.sql(query).await?;
    frame.clone().show().await?;
    let batches = frame.collect().await?;
    let prices = batches[0].column(4).as_primitive::<Float64Type>();
    // No call is dearer than the share, or cheaper than what it would give today.
    let (spot, strike) =
        (batches[0].column(0).as_primitive::<Float64Type>(), batches[0].column(1).as_primitive::<Float64Type>());
    for row in 0..prices.len() {
        assert!(prices.value(row) < spot.value(row) && prices.value(row) > spot.value(row) - strike.value(row));
    }
    Ok(())
}
