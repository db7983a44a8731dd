//! What a typed program loses besides its casts: ops that round to 16 bits what is wider afterwards, integer ops that wrap
//! before (`wraps`), and scalars that a dtype does not hold.
//!
//! Guarantees: an op that only chooses, negates or compares values is never blamed for a rounding, but what made the
//! values is; a decimal is not said to change because a float dtype rounds it, as every decimal does; the value that a
//! scalar gets is that of the conversion which the kernels use. Does not: judge casts; [`CastLoss::of`] does.

use crate::base::dtype::{Category, DType};
use crate::base::error::SourceLocation;
use crate::base::host::FloatMode;
use crate::base::indexing::Indexing;
use crate::base::scalar::{Bits, Scalar, bits_of};
use crate::graph::typed::{Arg, TypedKind, TypedProgram};
use crate::kernels::cast::convert;
use crate::ops::{Choice, Op};
use crate::promotion::{CastLoss, Rounding};
use num_complex::Complex;

mod wraps;
pub use wraps::WrapNote;

/// An op that rounds to 16 bits a value that is wider afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundingNote {
    /// The position of its node in [`TypedProgram::nodes`].
    pub node: usize,
    /// The op.
    pub op: Op,
    /// The dtype it rounds to.
    pub dtype: DType,
    /// The dtype that its value is then cast to; the widest, if there are several.
    pub to: DType,
    /// Where the user wrote the op.
    pub location: SourceLocation,
}

/// A scalar that has another value in the dtype that inference gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalarNote {
    /// The position in [`TypedProgram::nodes`] of the node that it is an operand of.
    pub node: usize,
    /// The op that it is an operand of.
    pub op: Op,
    /// Which one.
    pub operand: usize,
    /// The scalar as it was written.
    pub value: Scalar,
    /// Its dtype.
    pub to: DType,
    /// The value that is computed with.
    pub used: Scalar,
    /// [`CastLoss::Range`] for one that wraps around, or becomes infinite or zero; [`CastLoss::Rounds`] for an integer that is
    /// rounded.
    pub loss: CastLoss,
    /// Where the user wrote the op.
    pub location: SourceLocation,
}

impl TypedProgram {
    /// Arithmetic in f16, bf16 or c32 whose result is then cast up: precision that the result's dtype hides. What lies
    /// between the two, and rounds nothing itself (`neg`, `where`, `amax`), is looked through. So is every op but a
    /// reduction under [`Rounding::Relaxed`], where a fused loop keeps its value wide.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let _ = (p.data("a", DType::BF16, [4]) * 0.7).abs() + p.data("b", DType::F32, [4]);
    /// let found = p.infer()?.hidden_roundings();
    /// assert_eq!((found[0].op, found[0].dtype, found[0].to), (Op::Mul, DType::BF16, DType::F32));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn hidden_roundings(&self) -> Vec<RoundingNote> {
        // For each node, the widest dtype that its own elements are cast to: users come behind it.
        let mut widest: Vec<Option<DType>> = vec![None; self.nodes.len()];
        let mut found = Vec::new();
        let rounds = self.settings.rounding == Rounding::Exact;
        for (i, n) in self.nodes.iter().enumerate().rev() {
            if let TypedKind::Cast { from, .. } = n.kind {
                let source = self.nodes[from as usize].dtype;
                if source.size() < n.dtype.size() && source != source.op_math() {
                    widen(&mut widest[from as usize], n.dtype);
                }
            }
            let Some(to) = widest[i] else { continue };
            match n.kind {
                TypedKind::Apply { op, compute, .. } if rounds && !op.is_exact(compute) => {
                    found.push(RoundingNote { node: i, op, dtype: n.dtype, to, location: n.location.clone() });
                }
                // An element that is found is none that was rounded.
                TypedKind::Reduce { op, choice, .. } | TypedKind::Line { op, choice, .. }
                    if !op.is_exact(n.dtype) && !choice.is_some_and(Choice::is_element) =>
                {
                    found.push(RoundingNote { node: i, op, dtype: n.dtype, to, location: n.location.clone() });
                }
                TypedKind::Indexed { how: Indexing::ScatterAdd, .. } if !Op::Sum.is_exact(n.dtype) => {
                    let (op, location) = (Op::Sum, n.location.clone());
                    found.push(RoundingNote { node: i, op, dtype: n.dtype, to, location });
                }
                TypedKind::Apply { op, ref args, .. } => {
                    for (k, arg) in args.iter().flatten().enumerate() {
                        if let Arg::Node(from) = *arg
                            && hands_on(op, k)
                            && self.nodes[from as usize].dtype.real() == n.dtype.real()
                        {
                            widen(&mut widest[from as usize], to);
                        }
                    }
                }
                TypedKind::Reduce { from, .. }
                | TypedKind::Line { from, .. }
                | TypedKind::View { from, .. }
                | TypedKind::Indexed { from, .. }
                | TypedKind::Blocks { from, .. } => widen(&mut widest[from as usize], to),
                TypedKind::Feed(_)
                | TypedKind::Constant(_)
                | TypedKind::Extent { .. }
                | TypedKind::Generate { .. }
                | TypedKind::Cast { .. }
                | TypedKind::Bits { .. } => {}
            }
        }
        found.reverse();
        found
    }

    /// Scalars that the dtype they got changes: `x + 300` adds 44 to a tensor of u8. That a float dtype rounds a
    /// decimal is no change, unless it becomes infinite or zero.
    ///
    /// ```
    /// use castwise::{CastLoss, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let _ = (p.data("u", DType::U8, [4]) + 300, p.data("x", DType::F32, [4]) * 0.3);
    /// let changed = p.infer()?.changed_scalars();
    /// assert_eq!(changed.len(), 1);
    /// assert_eq!((changed[0].used, changed[0].loss), (Scalar::Int(44), CastLoss::Range));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn changed_scalars(&self) -> Vec<ScalarNote> {
        let _standard = FloatMode::standard();
        let mut found = Vec::new();
        for (node, n) in self.nodes.iter().enumerate() {
            let TypedKind::Apply { op, args, .. } = &n.kind else { continue };
            for (operand, arg) in args.iter().flatten().enumerate() {
                let Arg::Scalar(value, to) = *arg else { continue };
                let used = value_in(value, to);
                let loss = loss(value, used);
                // A bool operand of a logical op is the truth of a number, which is what was asked for.
                if loss != CastLoss::Exact && to != DType::Bool {
                    let (op, location) = (*op, n.location.clone());
                    found.push(ScalarNote { node, op, operand, value, to, used, loss, location });
                }
            }
        }
        found
    }
}

/// Whether the result of an op is made of this operand's values, and not only decided or signed by them.
fn hands_on(op: Op, operand: usize) -> bool {
    match op {
        Op::Sign | Op::Sgn => false,
        Op::Copysign | Op::PromoteWith | Op::Nextafter => operand == 0,
        Op::Assign | Op::Heaviside => operand == 1,
        _ => true,
    }
}

fn widen(widest: &mut Option<DType>, to: DType) {
    if widest.is_none_or(|w| w.size() < to.size()) {
        *widest = Some(to);
    }
}

/// The value of a scalar in a dtype.
fn value_in(value: Scalar, to: DType) -> Scalar {
    let bits = convert(value.own_bits(), value.own_dtype(), to);
    let bytes = |from: DType| -> Bits { convert(bits, to, from) };
    match to.category() {
        Category::Bool => Scalar::Bool(bits.0[0] != 0),
        Category::Int if to.is_unsigned() => Scalar::from(bits_of(&bytes(DType::U64).0[..8])),
        Category::Int => Scalar::from(bits_of(&bytes(DType::I64).0[..8]) as i64),
        Category::Float => Scalar::Float(bytemuck::pod_read_unaligned(&bytes(DType::F64).0[..8])),
        Category::Complex => Scalar::Complex(bytemuck::pod_read_unaligned::<Complex<f64>>(&bytes(DType::C128).0)),
    }
}

/// What a scalar lost on its way to the value that is computed with.
fn loss(value: Scalar, used: Scalar) -> CastLoss {
    match (value, used) {
        (Scalar::Bool(_), _) => CastLoss::Exact,
        (Scalar::Int(v), Scalar::Int(u)) => {
            if u == v {
                CastLoss::Exact
            } else {
                CastLoss::Range
            }
        }
        (Scalar::Int(v), Scalar::Bool(u)) => {
            if i128::from(u) == v {
                CastLoss::Exact
            } else {
                CastLoss::Range
            }
        }
        (Scalar::Int(v), Scalar::Float(u)) | (Scalar::Int(v), Scalar::Complex(Complex { re: u, .. })) => {
            match u {
                _ if u.is_infinite() => CastLoss::Range,
                // Every integer of a dtype and every float beside one is a number of i128.
                _ if u as i128 == v => CastLoss::Exact,
                _ => CastLoss::Rounds,
            }
        }
        (Scalar::Float(v), Scalar::Float(u)) => float_loss(v, u),
        (Scalar::Float(v), Scalar::Complex(u)) => float_loss(v, u.re),
        (Scalar::Complex(v), Scalar::Complex(u)) => float_loss(v.re, u.re).max(float_loss(v.im, u.im)),
        (Scalar::Complex(v), Scalar::Float(u)) => {
            if v.im == 0.0 {
                float_loss(v.re, u)
            } else {
                CastLoss::Range
            }
        }
        (Scalar::Float(v), Scalar::Int(u)) => {
            if u as f64 == v {
                CastLoss::Exact
            } else {
                CastLoss::Range
            }
        }
        (Scalar::Float(_) | Scalar::Complex(_), _) => CastLoss::Range,
    }
}

/// A decimal is rounded by every float dtype; it changes if it is then no longer a finite number, or zero.
fn float_loss(v: f64, u: f64) -> CastLoss {
    let changed = v.is_finite() && (u.is_infinite() || u == 0.0 && v != 0.0);
    if changed { CastLoss::Range } else { CastLoss::Exact }
}

#[cfg(test)]
mod tests;
