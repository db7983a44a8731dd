//! The sqllogictest files of `tests/slt`, each in a session of its own: types, nulls, errors, aggregates, what is
//! fused.

use castwise::Rules;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::DataFusionError;
use datafusion::prelude::{SessionConfig, SessionContext};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

struct Session(SessionContext);

#[async_trait::async_trait]
impl AsyncDB for Session {
    type Error = DataFusionError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, DataFusionError> {
        let batches = self.0.sql(sql).await?.collect().await?;
        let Some(columns) = batches.first().map(RecordBatch::num_columns).filter(|n| *n > 0) else {
            return Ok(DBOutput::StatementComplete(0));
        };
        let mut rows = Vec::new();
        for batch in &batches {
            rows.extend(rows_of(batch)?.into_iter().flat_map(lines_of));
        }
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows })
    }

    async fn shutdown(&mut self) {}
}

fn rows_of(batch: &RecordBatch) -> Result<Vec<Vec<String>>, DataFusionError> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<ArrayFormatter<'_>> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options)).collect::<Result<_, _>>()?;
    Ok((0..batch.num_rows()).map(|row| columns.iter().map(|c| c.value(row).to_string()).collect()).collect())
}

/// A row of values; of a plan a row for its kind, and one for each of its lines, numbered and with dashes for its
/// indentation.
fn lines_of(row: Vec<String>) -> Vec<Vec<String>> {
    let [kind, plan] = &row[..] else { return vec![row] };
    if !kind.ends_with("_plan") {
        return vec![row];
    }
    let line = |(i, line): (usize, &str)| {
        let text = line.trim_start();
        vec![format!("{:02}){}{text}", i + 1, "-".repeat(line.len() - text.len()))]
    };
    std::iter::once(vec![kind.clone()]).chain(plan.trim_end().lines().enumerate().map(line)).collect()
}

async fn session() -> Result<Session, DataFusionError> {
    // Several partitions, and batches that are smaller than the tables.
    let config = SessionConfig::new().with_target_partitions(3).with_batch_size(4);
    let mut session = SessionContext::new_with_config(config);
    castwise_datafusion::register(&mut session, Rules::Torch)?;
    Ok(Session(session))
}

#[tokio::test]
async fn every_file_says_what_queries_give() {
    let mut files: Vec<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slt"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    let mut failed = Vec::new();
    for file in files {
        let mut runner = Runner::new(session);
        if let Err(e) = runner.run_file_async(&file).await {
            failed.push(format!("{}", e.display(false)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
