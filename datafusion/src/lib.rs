//! castwise in DataFusion: compiled elementwise programs as SQL functions and aggregates, with the dtypes of PyTorch,
//! Paddle, NumPy or JAX.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use castwise::Rules;
//! use datafusion::prelude::SessionContext;
//! let mut session = SessionContext::new();
//! castwise_datafusion::register(&mut session, Rules::Torch)?;
//! let typed = session.sql("SELECT castwise('(nir - red) / (nir + red)', 0.5, 0.25) AS ndvi").await?;
//! assert_eq!(typed.schema().field(0).data_type().to_string(), "Float64");
//! // A mistake is an error of the plan, with its place.
//! let refused = session.sql("SELECT castwise('a & b', 0.5, 1)").await.unwrap_err().to_string();
//! assert!(refused.contains("\n    a & b\n    ^^^^^"), "{refused}");
//! # Ok(())
//! # }
//! ```
//!
//! docs/datafusion.md has types, nulls, aggregates, what is fused, and clusters.
//!
//! Guarantees: dtypes are castwise's inference and known when a query is planned; functions, sums of integers and
//! extremes have the bits of the same program on one tensor, whatever partitions and batches there are. Does not: fix
//! the last bits of other aggregates, which depend on these; plan, schedule or read files, which DataFusion does.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod aggregate;
#[cfg(feature = "proto")]
mod codec;
mod columns;
mod compiled;
mod fusion;
mod groups;
#[cfg(feature = "proto")]
mod payload;
mod report;
mod rows;
mod scalar;
mod source;
mod sql;
mod state;
mod types;

pub use aggregate::castwise_agg;
#[cfg(feature = "proto")]
pub use codec::{CastwiseLogicalCodec, CastwisePhysicalCodec};
pub use compiled::{Stats, stats};
pub use fusion::CastwiseFusion;
pub use scalar::castwise_udf;
pub use source::Source;
pub use sql::{register, register_functions};
pub use types::{dtype_of, field_of};

/// The page of this crate, whose examples are documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/datafusion.md")]
pub struct Page;
