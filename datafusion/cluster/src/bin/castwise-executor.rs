//! A Ballista executor on loopback that runs castwise's functions:
//! `castwise-executor --port PORT --grpc-port PORT --scheduler-port PORT --work-dir FOLDER`.
//!
//! Guarantees: it binds 127.0.0.1 alone; the file `castwise-stats` of its folder says how many programs and loops it
//! has compiled. Does not: take more than one task at a time, so that a test can tell executors apart.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use castwise_cluster::{logical_codec, physical_codec, port, text};

/// Writes what was compiled whenever it has changed.
fn report(file: PathBuf) {
    std::thread::spawn(move || {
        let mut last = None;
        loop {
            let stats = castwise_datafusion::stats();
            if last != Some(stats) && std::fs::write(&file, format!("{} {}", stats.programs, stats.loops)).is_ok() {
                last = Some(stats);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = text("--work-dir")?;
    report(PathBuf::from(&folder).join("castwise-stats"));
    let config = ExecutorProcessConfig {
        bind_host: "127.0.0.1".into(),
        external_host: Some("127.0.0.1".into()),
        port: port("--port")?,
        grpc_port: port("--grpc-port")?,
        scheduler_host: "127.0.0.1".into(),
        scheduler_port: port("--scheduler-port")?,
        scheduler_connect_timeout_seconds: 20,
        vcores: 1,
        work_dir: Some(folder),
        executor_heartbeat_interval_seconds: 1,
        override_logical_codec: Some(logical_codec()),
        override_physical_codec: Some(physical_codec()),
        ..Default::default()
    };
    start_executor_process(Arc::new(config)).await?;
    Ok(())
}
