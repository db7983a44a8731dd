//! What ops compute, as instructions: the row's text, recorded once for each compute dtype, which both back ends lower.
//!
//! A row of `ops/table.rs` says an op's arithmetic once. Rust's numbers run it in the kernels; here [`text()`] runs it
//! with lanes that record each operation (`record`), and keeps the resulting [`Text`]. `castwise dump --stage ssa`
//! prints it.
//!
//! **What a text may say.** The operators `+ - * /` and unary `-` of floats (`+ - -` of complex numbers) and `& | ^ !`
//! of truth values and integers; float literals left of an operator, constants elsewhere as `a.c(0.5)`; and what the
//! traits [`Int`], [`Real`], [`Cplx`] and [`Mask`] of `kernels::num` have: `a.wrapping_add(b)`, `Real::select(mask, a,
//! b)`, `Real::lt(a, b)`, `Real::exp(a)`, …. A comparison gives a mask; masks are combined by `& | ^ !`, and `select`
//! chooses by one. A text has no `==`, `<`, `if`, loop or table: what can't be said so is marked in the row, `float:
//! kernel |a| …`, may call anything, and stays a kernel. A NaN that leaves a text is made canonical, unless the row
//! says `bits`: `float: bits |a| -a`.
//!
//! **To add an op**, write its row. It is then a kernel at each CPU level, and where a back end has the primitives of
//! its text, it is compiled. A function of several primitives that rows share is a method of the trait with a default
//! text. A method for which machines have an instruction is a primitive of its own besides: its variant in [`Prim`],
//! what is known of its NaNs (`facts`), its default text as its expansion (`expand`), and an arm in each back end, of
//! which the compiler tells.
//!
//! Guarantees: a text has the kernel's bits, for every op and compute dtype that has one (`tests`). Does not: choose
//! instructions.
//!
//! [`Int`]: crate::kernels::num::Int
//! [`Real`]: crate::kernels::num::Real
//! [`Cplx`]: crate::kernels::num::Cplx
//! [`Mask`]: crate::kernels::num::Mask

mod expand;
mod facts;
mod lanes;
mod prim;
mod record;
mod rows;
#[cfg(test)]
pub(crate) mod tests;
mod text;

pub(crate) use {
    prim::{Nan, Parts, Predicate, Prim, Rounding, Shows},
    rows::{Form, text, text_for},
    text::{Inst, Text, Value},
};
