//! Plans as bytes: what is read gives what was written, and compiles nothing that the process has compiled before.

mod common;

use std::sync::Arc;

use castwise::{DType, Rules};
use castwise_datafusion::{CastwiseLogicalCodec, CastwisePhysicalCodec, register, stats};
use common::{Random, column, config, table};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::physical_plan::collect;
use datafusion::prelude::ParquetReadOptions;
use datafusion::prelude::SessionContext;
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::logical_plan::DefaultLogicalExtensionCodec;
use datafusion_proto::physical_plan::DefaultPhysicalExtensionCodec;

const QUERY: &str = "
    SELECT castwise('a * 2 + b', castwise('x - 1', c0), c1) AS y, castwise_agg('sum(a * b)', c0, c1) AS s FROM t
    WHERE castwise('a > b', c0, c1) GROUP BY y ORDER BY y";

/// A session over a Parquet file, which plans can name.
async fn session(path: &str) -> SessionContext {
    let mut session = SessionContext::new_with_config(config(2, 64));
    register(&mut session, Rules::Torch).unwrap();
    session.register_parquet("t", path, ParquetReadOptions::default()).await.unwrap();
    session
}

async fn written(folder: &std::path::Path) -> String {
    let memory = SessionContext::new();
    let mut r = Random::new(3);
    let columns: Vec<ArrayRef> = vec![column(&mut r, DType::F32, 300, true), column(&mut r, DType::I32, 300, true)];
    table(&memory, &columns, 1, 300).unwrap();
    let path = folder.join("t.parquet").to_string_lossy().into_owned();
    memory.table("t").await.unwrap().write_parquet(&path, DataFrameWriteOptions::new(), None).await.unwrap();
    path
}

// One test, because the counters are those of the process.
#[tokio::test]
async fn plans_are_read_and_compile_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path()).await;
    physical(&path).await;
    logical(&path).await;
    without_metadata(&path).await;
}

/// DataFusion writes no metadata of a function's field in a physical plan: what needs it says so.
async fn without_metadata(path: &str) {
    let here = session(path).await;
    let frame = here.sql("SELECT castwise_agg('sum(a)', castwise('cast(a, bf16)', c0)) FROM t").await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    let codec = CastwisePhysicalCodec::new(Arc::new(DefaultPhysicalExtensionCodec {}));
    let bytes = physical_plan_to_bytes_with_extension_codec(plan, &codec).unwrap();
    let there = SessionContext::new();
    let error = match physical_plan_from_bytes_with_extension_codec(&bytes, &there.task_ctx(), &codec) {
        Ok(plan) => collect(plan, there.task_ctx()).await.unwrap_err(),
        Err(e) => e,
    };
    assert!(error.to_string().contains("argument `a`: FixedSizeBinary(2) has no metadata"), "{error}");
}

async fn physical(path: &str) {
    let here = session(path).await;
    let frame = here.sql(QUERY).await.unwrap();
    let plan = frame.clone().create_physical_plan().await.unwrap();
    let want = collect(plan.clone(), here.task_ctx()).await.unwrap();
    assert!(want.iter().map(|b| b.num_rows()).sum::<usize>() > 20);

    let codec = CastwisePhysicalCodec::new(Arc::new(DefaultPhysicalExtensionCodec {}));
    let bytes = physical_plan_to_bytes_with_extension_codec(plan, &codec).unwrap();
    // A process that knows none of the functions.
    let there = SessionContext::new_with_config(config(2, 64));
    let before = stats();
    for _ in 0..2 {
        let read = physical_plan_from_bytes_with_extension_codec(&bytes, &there.task_ctx(), &codec).unwrap();
        assert_eq!(collect(read, there.task_ctx()).await.unwrap(), want);
        assert_eq!(stats(), before);
    }
}

async fn logical(path: &str) {
    let here = session(path).await;
    let plan = here.sql("SELECT castwise('a * 2', CAST(3 AS REAL)) AS y, castwise('1 + a', 2)").await.unwrap();
    let (plan, want) = (plan.logical_plan().clone(), plan.collect().await.unwrap());
    let codec = CastwiseLogicalCodec::new(Arc::new(DefaultLogicalExtensionCodec {}));
    let bytes = logical_plan_to_bytes_with_extension_codec(&plan, &codec).unwrap();
    let there = SessionContext::new();
    let read = logical_plan_from_bytes_with_extension_codec(&bytes, &there.task_ctx(), &codec).unwrap();
    let got = there.execute_logical_plan(read).await.unwrap().collect().await.unwrap();
    assert_eq!(got, want);
    assert_eq!(got[0].column(0).null_count(), 0);
}
