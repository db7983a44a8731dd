//! Elementary functions, implemented here so that no result depends on the host's libm.
//!
//! Guarantees: functions are plain Rust expressions over one element, without tables or data-dependent loops if they
//! are meant to vectorize; they give the same bits on every CPU level; NaN results are canonical; the accuracy is as
//! each function's doc states.

pub(crate) mod complex;
pub(crate) mod erf;
pub(crate) mod erf_parts;
pub(crate) mod exp;
pub(crate) mod fma;
pub(crate) mod hyper;
pub(crate) mod inline;
pub(crate) mod invtrig;
pub(crate) mod lane;
pub(crate) mod log;
pub(crate) mod pow;
#[cfg(test)]
mod tests;
pub(crate) mod trig;
pub(crate) mod trig_reduce;
