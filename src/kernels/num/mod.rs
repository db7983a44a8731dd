//! What the op table's texts may call: integer, real and complex arithmetic beyond Rust's operators.
//!
//! Guarantees: total functions, the same bits on every machine. [`Int`], [`Real`] and [`Cplx`] have two kinds of
//! implementors, Rust's numbers (which kernels compute with) and the recorder of `ssa` (which writes texts down for
//! compiled loops). Most of their methods are made of a few, so that both kinds share one text. `IntFn`, `RealFn` and
//! `CplxFn` have what kernels alone compute. Sources: Python's `//` and `%` as PyTorch's `div_floor_floating` and
//! `remainder` implement them; IEEE 754-2019 `maximum`/`minimum` with +0 > -0.

mod canonical;
pub(crate) mod complex;
mod int;
mod mask;
pub(crate) mod real;
#[cfg(test)]
mod tests;

pub(crate) use canonical::Canonical;
pub(crate) use complex::{Cplx, CplxFn};
pub(crate) use int::{Int, IntFn};
pub(crate) use mask::Mask;
pub(crate) use real::{Real, RealFn};
