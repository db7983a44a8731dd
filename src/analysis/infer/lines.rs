//! Inference of ops on the lines along a dim.
//!
//! Guarantees: such an op has one dim of its operand. Does not: decide dtypes.

use super::Inference;
use crate::base::error::{Diagnostic, DiagnosticKind, SourceLocation};
use crate::base::shape::{axes, dims_text};
use crate::graph::typed::{NodeId, TypedKind};
use crate::ops::{Attrs, Op};
use crate::promotion::operand::{OperandType, Signature};

impl Inference {
    pub(super) fn line(
        &mut self,
        op: Op,
        attrs: &Attrs,
        from: NodeId,
        sig: &Signature,
        seen: &[OperandType],
        location: &SourceLocation,
    ) -> Result<NodeId, Diagnostic> {
        let axis = self.line_axis(op, attrs, from)?;
        let from = self.cast(from, sig.operand(0), op, 0, seen, location);
        let dims = self.shape(from).clone();
        let number = self.number(op, attrs, &dims, &[axis][..dims.len().min(1)], sig)?;
        let kind = TypedKind::Line { op: sig.op, from, axis, number, choice: self.choice(op, attrs) };
        let shape = self.shapes.id(&op.line_shape(&dims, axis, number));
        Ok(self.over_dims(op, kind, shape, sig, seen, location))
    }

    /// The dim along which an op on lines works: the one that is given, the op's default, or the only one.
    fn line_axis(&self, op: Op, attrs: &Attrs, from: NodeId) -> Result<usize, Diagnostic> {
        let (dims, bad) = (self.shape(from), |m: String| Diagnostic::new(DiagnosticKind::Axis, format!("`{op}`{m}")));
        if attrs.keepdim {
            return Err(bad(" takes no `keepdim`: it keeps all dims".into()));
        }
        let given = match (attrs.dims.as_deref(), op.def().default_dim) {
            (Some(given), _) => given,
            (None, Some(default)) => &[default],
            (None, None) if dims.len() < 2 => &[-1],
            (None, None) => {
                let what = format!(" of {} works along one dim, which is missing", dims_text(dims));
                return Err(bad(what).help("give it, e.g. `dim=-1`"));
            }
        };
        if given.len() != 1 {
            return Err(bad(format!(" over the dims {given:?}: it takes one dim")));
        }
        let axis = axes(Some(given), dims.len()).map_err(|m| bad(format!(": {m}")))?;
        // A 0-d value has the dims 0 and -1, which are none.
        Ok(axis.first().copied().unwrap_or(0))
    }
}
