//! A scheduler and two executors as processes on loopback, over Parquet files of 10^7 rows: the result has the bits of
//! one process, a second query compiles nothing, and with an executor killed in the middle the query is right or fails.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use castwise::Rules;
use castwise_cluster::logical_codec;
use castwise_datafusion::register;
use datafusion::arrow::array::{ArrayRef, Float32Array, Int64Array, RecordBatch};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

const FILES: i64 = 8;
const ROWS: i64 = 1_250_000;

/// Sums of integers and extremes, which no order changes, of what castwise computes in f32 and casts; by group, so
/// that there is a shuffle.
const QUERY: &str = "
    SELECT g, castwise_agg('sum(cast(round(a * 1000), i64))', y) AS total, castwise_agg('amax(a)', y) AS most, count(y) AS n
    FROM (SELECT g, castwise('x * 0.5 + z', castwise('a * a - 1', x), z) AS y FROM t)
    WHERE castwise('a > -0.75', y) GROUP BY g ORDER BY g";

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ports that were free a moment ago.
fn ports<const N: usize>() -> [u16; N] {
    let all: Vec<TcpListener> = (0..N).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    std::array::from_fn(|i| all[i].local_addr().unwrap().port())
}

fn started(program: &str, options: &[(&str, String)], log: &Path) -> Process {
    let log = std::fs::File::create(log).unwrap();
    let mut command = Command::new(program);
    options.iter().for_each(|(option, value)| {
        command.args([*option, value]);
    });
    Process(command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap())
}

struct Cluster {
    folder: PathBuf,
    scheduler: u16,
    _scheduler: Process,
    executors: Vec<(Process, PathBuf)>,
    started: usize,
}

impl Cluster {
    fn start(folder: &Path) -> Cluster {
        let [scheduler] = ports();
        let options = [("--port", scheduler.to_string())];
        let process = started(env!("CARGO_BIN_EXE_castwise-scheduler"), &options, &folder.join("scheduler.log"));
        listens(scheduler);
        let executors = Vec::new();
        let mut all = Cluster { folder: folder.into(), scheduler, _scheduler: process, executors, started: 0 };
        all.add_executor();
        all.add_executor();
        all
    }

    fn add_executor(&mut self) {
        let [port, grpc] = ports();
        let work = self.folder.join(format!("executor{}", self.started));
        std::fs::create_dir(&work).unwrap();
        let options = [
            ("--port", port.to_string()),
            ("--grpc-port", grpc.to_string()),
            ("--scheduler-port", self.scheduler.to_string()),
            ("--work-dir", work.to_string_lossy().into_owned()),
        ];
        let log = self.folder.join(format!("executor{}.log", self.started));
        self.executors.push((started(env!("CARGO_BIN_EXE_castwise-executor"), &options, &log), work));
        self.started += 1;
        listens(grpc);
        // It has registered with the scheduler.
        std::thread::sleep(Duration::from_secs(2));
    }

    async fn session(&self, data: &Path) -> SessionContext {
        let config = SessionConfig::new_with_ballista()
            .with_target_partitions(8)
            .with_ballista_logical_extension_codec(logical_codec());
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        let address = format!("df://127.0.0.1:{}", self.scheduler);
        let mut session = SessionContext::remote_with_state(&address, state).await.unwrap();
        register(&mut session, Rules::Torch).unwrap();
        session.register_parquet("t", data.to_string_lossy(), ParquetReadOptions::default()).await.unwrap();
        session
    }

    /// The programs and loops that each executor has compiled.
    fn compiled(&self) -> Vec<String> {
        std::thread::sleep(Duration::from_millis(200));
        self.executors
            .iter()
            .map(|(_, f)| std::fs::read_to_string(f.join("castwise-stats")).unwrap_or_default())
            .collect()
    }
}

/// Returns when something listens at a port.
fn listens(port: u16) {
    let begin = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(30), "nothing listens at {port}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

async fn written(data: &Path) {
    for file in 0..FILES {
        let first = file * ROWS;
        let number = |i: i64, m: i64| (i.wrapping_mul(2_654_435_761) >> 7).rem_euclid(m);
        let g: ArrayRef = Arc::new(Int64Array::from_iter_values((first..first + ROWS).map(|i| i % 5)));
        let x: ArrayRef = Arc::new(Float32Array::from_iter(
            (first..first + ROWS).map(|i| (number(i, 13) > 0).then(|| number(i, 10_007) as f32 / 5000.0 - 1.0)),
        ));
        let z: ArrayRef =
            Arc::new(Float32Array::from_iter_values((first..first + ROWS).map(|i| number(i, 4_099) as f32 / 4000.0)));
        let batch = RecordBatch::try_from_iter([("g", g), ("x", x), ("z", z)]).unwrap();
        let path = data.join(format!("{file}.parquet"));
        let frame = SessionContext::new().read_batch(batch).unwrap();
        frame.write_parquet(&path.to_string_lossy(), DataFrameWriteOptions::new(), None).await.unwrap();
    }
}

async fn answer(session: &SessionContext) -> Result<String, String> {
    let frame = session.sql(QUERY).await.map_err(|e| e.to_string())?;
    let batches = frame.collect().await.map_err(|e| e.to_string())?;
    pretty_format_batches(&batches).map(|t| t.to_string()).map_err(|e| e.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_processes_is_right_or_fails() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("t");
    std::fs::create_dir(&data).unwrap();
    written(&data).await;
    let mut local = SessionContext::new();
    register(&mut local, Rules::Torch).unwrap();
    local.register_parquet("t", data.to_string_lossy(), ParquetReadOptions::default()).await.unwrap();
    let want = answer(&local).await.unwrap();
    println!("{want}");

    let mut cluster = Cluster::start(folder.path());
    let session = cluster.session(&data).await;
    assert_eq!(answer(&session).await.as_ref(), Ok(&want));
    let once = cluster.compiled();
    println!("programs and loops of each executor after the first query: {once:?}");
    assert!(once.iter().all(|s| !s.is_empty() && !s.starts_with("0 ")), "an executor computed nothing: {once:?}");
    assert_eq!(answer(&session).await.as_ref(), Ok(&want));
    assert_eq!(cluster.compiled(), once, "the second query compiled something");

    // An executor is killed after more and more of the query's time, and replaced by a new one.
    let begin = Instant::now();
    answer(&session).await.unwrap();
    let whole = begin.elapsed();
    let mut in_the_middle = 0;
    for sixth in 1..6 {
        let after = whole * sixth / 6;
        let running = session.clone();
        let query = tokio::spawn(async move { answer(&running).await });
        tokio::time::sleep(after).await;
        in_the_middle += usize::from(!query.is_finished());
        drop(cluster.executors.remove(0));
        match tokio::time::timeout(Duration::from_secs(180), query).await.expect("the query hangs").unwrap() {
            Ok(got) => {
                println!("with an executor killed after {after:?} of {whole:?}: right");
                assert_eq!(got, want, "a query with a killed executor is wrong");
            }
            Err(e) => {
                println!("with an executor killed after {after:?} of {whole:?}: {e}");
                assert!(e.to_lowercase().contains("executor"), "the error does not name the executor: {e}");
            }
        }
        cluster.add_executor();
        // The lost one is known to be lost.
        tokio::time::sleep(Duration::from_secs(7)).await;
        assert_eq!(answer(&session).await.as_ref(), Ok(&want));
    }
    println!("killed before the query had ended: {in_the_middle} of 5");
    assert!(in_the_middle > 0, "each query had ended when the executor was killed");
}
