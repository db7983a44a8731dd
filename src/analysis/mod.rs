//! What is found out about a program without running it: dtypes and shapes, comparison of rule sets, precision.
//!
//! Does not: change programs or plan kernels.

pub(crate) mod compare;
pub(crate) mod infer;
pub(crate) mod precision;
