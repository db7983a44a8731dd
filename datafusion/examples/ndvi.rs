//! The vegetation index of a Parquet table of satellite bands: bytes become floats where it matters, and a pixel
//! without data has none.
//!
//! `cargo run --example ndvi`

use std::sync::Arc;

use castwise::Rules;
use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt8Array, UInt32Array};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut session = SessionContext::new();
    castwise_datafusion::register(&mut session, Rules::Torch)?;

    // Two bands of 100 000 pixels; some are clouded.
    let n = 100_000u32;
    let tile: ArrayRef = Arc::new(UInt32Array::from_iter_values((0..n).map(|i| i / 25_000)));
    let nir: ArrayRef = Arc::new(UInt8Array::from_iter((0..n).map(|i| (i % 97 != 0).then_some((i % 251) as u8))));
    let red: ArrayRef = Arc::new(UInt8Array::from_iter_values((0..n).map(|i| (i % 199) as u8)));
    let bands = RecordBatch::try_from_iter([("tile", tile), ("nir", nir), ("red", red)])?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bands.parquet").to_string_lossy().into_owned();
    session.read_batch(bands)?.write_parquet(&path, DataFrameWriteOptions::new(), None).await?;
    session.register_parquet("bands", &path, ParquetReadOptions::default()).await?;

    // Bytes would wrap: nir - red is computed in f32 because one operand is.
    let query = "
        SELECT tile, count(ndvi) AS pixels, castwise_agg('mean(a)', ndvi) AS mean, castwise_agg('amax(a)', ndvi) AS highest
        FROM (SELECT tile, castwise('(cast(nir, f32) - red) / (cast(nir, f32) + red)', nir, red) AS ndvi FROM bands)
        WHERE castwise('isfinite(a)', ndvi)
        GROUP BY tile ORDER BY tile";
    let batches = session.sql(query).await?.collect().await?;
    println!("{}", pretty_format_batches(&batches)?);
    let pixels: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(pixels, 4);
    Ok(())
}
