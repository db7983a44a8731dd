//! A Ballista scheduler on loopback that plans castwise's functions: `castwise-scheduler --port PORT`.
//!
//! Guarantees: it binds 127.0.0.1 alone. Does not: keep its state when it stops.

use std::sync::Arc;

use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use castwise_cluster::{logical_codec, physical_codec, port, session_state};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = SchedulerConfig {
        bind_host: "127.0.0.1".into(),
        external_host: "127.0.0.1".into(),
        bind_port: port("--port")?,
        // An executor that says nothing for so long is lost.
        executor_timeout_seconds: 5,
        expire_dead_executor_interval_seconds: 1,
        override_logical_codec: Some(logical_codec()),
        override_physical_codec: Some(physical_codec()),
        override_session_builder: Some(Arc::new(session_state)),
        ..Default::default()
    };
    let address = format!("127.0.0.1:{}", config.bind_port).parse()?;
    let cluster = BallistaCluster::new_from_config(&config).await?;
    start_server(cluster, address, Arc::new(config)).await?;
    Ok(())
}
