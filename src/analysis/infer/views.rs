//! Types the views of a program.
//!
//! Guarantees: a view has its operand's dtype and weakness; equal slices of one dynamic dim are one symbol. Does not: know which shape
//! a view has; [`View::shape`] does.

use super::Inference;
use crate::base::error::{Diagnostic, SourceLocation};
use crate::base::shape::SymDim;
use crate::base::view::{Slice, Unknown, View};
use crate::graph::typed::{Asked, DimCheck, DynDim, NodeId, TypedKind};

impl Inference {
    pub(super) fn view(&mut self, view: &View, from: NodeId, location: &SourceLocation) -> Result<NodeId, Diagnostic> {
        let (n, dims) = (&self.nodes[from as usize], self.shape(from).clone());
        let (dtype, weak, limits) = (n.dtype, n.weak, self.limits);
        let mut unknown = Symbols { inference: self, op: view.name(), location };
        let shape = view.shape(dtype, &dims, &limits, &mut unknown)?;
        let shape = self.shapes.id(&shape);
        let id = self.push(TypedKind::View { from, view: Some(view.clone()) }, dtype, shape, location);
        Ok(self.weak(id, weak))
    }
}

/// Makes the symbols and checks that a view of dynamic dims needs.
struct Symbols<'a> {
    inference: &'a mut Inference,
    op: &'static str,
    location: &'a SourceLocation,
}

impl Unknown for Symbols<'_> {
    fn sliced(&mut self, of: &SymDim, slice: Slice) -> SymDim {
        let fresh = self.inference.dyn_dims.len() as u32;
        let symbol = *self.inference.sliced_dims.entry((of.clone(), slice)).or_insert(fresh);
        if symbol == fresh {
            self.inference.dyn_dims.push(DynDim::Sliced { of: of.clone(), slice });
        }
        SymDim::symbol(symbol)
    }

    fn expanded(&mut self, axis: usize, of: &SymDim, extent: usize) {
        let dims = (of.clone(), SymDim::Fixed(extent));
        if self.inference.checked.insert(dims.clone()) {
            self.inference.checks.push(DimCheck {
                dims,
                op: self.op,
                axis,
                asked: Asked::Broadcast,
                location: self.location.clone(),
            });
        }
    }
}
