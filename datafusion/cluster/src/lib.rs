//! What the processes of a cluster have in common: the codecs and the session.
//!
//! Guarantees: a plan with castwise's functions is read by every process that has these. Does not: schedule, which is
//! Ballista's.

use std::sync::Arc;

use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use castwise::Rules;
use castwise_datafusion::{CastwiseLogicalCodec, CastwisePhysicalCodec, register_functions};
use datafusion::common::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;

/// Ballista's codec of logical plans, with castwise's functions.
pub fn logical_codec() -> Arc<CastwiseLogicalCodec> {
    Arc::new(CastwiseLogicalCodec::new(Arc::new(BallistaLogicalExtensionCodec::default())))
}

/// Ballista's codec of physical plans, with castwise's functions.
pub fn physical_codec() -> Arc<CastwisePhysicalCodec> {
    Arc::new(CastwisePhysicalCodec::new(Arc::new(BallistaPhysicalExtensionCodec::default())))
}

/// The scheduler's session.
pub fn session_state(config: SessionConfig) -> Result<SessionState> {
    let mut state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    register_functions(&mut state, Rules::Torch)?;
    Ok(state)
}

/// The number after an option of the command line. Error: the sentence that says what is missing.
pub fn port(option: &str) -> std::result::Result<u16, String> {
    text(option)?.parse().map_err(|_| format!("{option} takes a port"))
}

/// The text after an option of the command line.
pub fn text(option: &str) -> std::result::Result<String, String> {
    let mut all = std::env::args().skip_while(|arg| arg != option).skip(1);
    all.next().ok_or_else(|| format!("{option} is missing"))
}
