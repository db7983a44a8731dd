//! Inference of reductions: their dims, numbers and choices.
//!
//! Guarantees: the number of a typed reduction is one that its op takes; where it counts elements, at most as many as there are,
//! if the extents are known. Does not: decide dtypes; `promotion` does.

use super::Inference;
use crate::base::error::{Diagnostic, DiagnosticKind, SourceLocation};
use crate::base::shape::{SymDim, axes, reduced};
use crate::graph::typed::{NodeId, TypedKind};
use crate::ops::{Attrs, Choice, Number, Op};
use crate::promotion::operand::{OperandType, Signature};

impl Inference {
    /// A reduction over dims.
    pub(super) fn reduce(
        &mut self,
        op: Op,
        attrs: &Attrs,
        from: NodeId,
        sig: &Signature,
        seen: &[OperandType],
        location: &SourceLocation,
    ) -> Result<NodeId, Diagnostic> {
        let dims = self.shape(from).clone();
        let axes = axes(attrs.dims.as_deref(), dims.len())
            .map_err(|m| Diagnostic::new(DiagnosticKind::Axis, format!("`{op}`: {m}")))?;
        if op.is_position() && attrs.dims.is_some() && axes.len() > 1 {
            let message = format!("`{op}` over the dims {axes:?}: it takes one dim, or all");
            return Err(Diagnostic::new(DiagnosticKind::Axis, message));
        }
        let shape = self.shapes.id(&reduced(&dims, &axes, attrs.keepdim));
        let from = self.cast(from, sig.operand(0), op, 0, seen, location);
        let number = self.number(op, attrs, &dims, &axes, sig)?;
        let choice = self.choice(op, attrs);
        let kind = TypedKind::Reduce { op: sig.op, from, axes: axes.into(), keep: attrs.keepdim, number, choice };
        Ok(self.over_dims(op, kind, shape, sig, seen, location))
    }

    /// Appends an op over dims, and casts what it gives to the dtype of its result.
    pub(super) fn over_dims(
        &mut self,
        op: Op,
        kind: TypedKind,
        shape: u32,
        sig: &Signature,
        seen: &[OperandType],
        location: &SourceLocation,
    ) -> NodeId {
        let dtype = if op.gives_long() { sig.result } else { sig.op.result(sig.compute) };
        let id = self.push(kind, dtype, shape, location);
        let id = self.cast(id, sig.result, op, 0, seen, location);
        self.weak(id, sig.weak)
    }

    /// The choice of an op, if it takes one.
    pub(super) fn choice(&self, op: Op, attrs: &Attrs) -> Option<Choice> {
        self.settings.rules.set().chosen(op.def(), attrs.choice)
    }

    /// The number of an op along these dims, if it takes one.
    pub(super) fn number(
        &self,
        op: Op,
        attrs: &Attrs,
        dims: &[SymDim],
        axes: &[usize],
        sig: &Signature,
    ) -> Result<Option<Number>, Diagnostic> {
        let (def, rules) = (op.def(), self.settings.rules.set());
        let bad = |message: String| Diagnostic::new(DiagnosticKind::BadParameter, message);
        let Some(of) = def.number else {
            let dtype = sig.operand(0);
            return match attrs.number {
                Some(n) if !dtype.is_float() => {
                    Err(bad(format!("`{op}` of {dtype} with {} = {n}, which is for floats", op.number_name())))
                }
                number => Ok(number),
            };
        };
        let Some(number) = attrs.number.map(Number::get).or(rules.number(def)) else {
            let example = if of.counts { of.least } else { 0.5 };
            let help = format!("write it, e.g. `{op}(x, {}={example})`", of.name);
            return Err(bad(format!("`{op}` without `{}`", of.name)).help(help));
        };
        let extent = |axis: &usize| if let SymDim::Fixed(n) = dims[*axis] { Some(n) } else { None };
        let known = if of.counts { axes.iter().map(extent).product::<Option<usize>>() } else { None };
        // A 0-d value has one element, which it can't be without.
        if of.counts && dims.is_empty() && number != 1.0 {
            return Err(bad(format!("`{op}` with `{}` = {number} of a 0-d value, which has one element", of.name)));
        }
        match known.filter(|n| number > *n as f64) {
            Some(n) => Err(bad(format!("`{op}` with `{}` = {number} of {n} elements", of.name))),
            None => Ok(Some(rules.number_of(def, number, sig.compute).into())),
        }
    }
}
