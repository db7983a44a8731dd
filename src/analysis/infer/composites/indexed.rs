//! Composites that move elements along a dim: `take_along_dim`, `scatter_add`, `pad`.
//!
//! Guarantees: the dtype stays; the index is in i64. What only feeds tell of extents is checked with them. Does not: see an index.

use super::{In, Made, WIDE, Writer};
use crate::base::dtype::DType;
use crate::base::error::DiagnosticKind;
use crate::base::indexing::Indexing;
use crate::base::shape::{SymDim, axes, dims_text};
use crate::graph::typed::{NodeId, TypedKind};

impl Writer<'_> {
    pub(super) fn take_along_dim(&mut self, x: NodeId, index: In) -> Made {
        let (axis, index) = (self.one_axis(x)?, self.index(x, index)?);
        self.index_fits(x, index, Some(axis))?;
        let extent = self.inference.shape(index).get(axis).cloned();
        Ok(self.moved(Indexing::Take, x, Some(index), x, (axis, extent)))
    }

    pub(super) fn scatter_add(&mut self, x: NodeId, index: In, like: In) -> Made {
        let dtype = self.dtype(x);
        if !WIDE.has(dtype) || matches!(dtype, DType::Bool | DType::C32) {
            let message = format!("{} is not supported", self.shown(x));
            return Err(self.refuse(DiagnosticKind::UnsupportedDType, &message).help("cast it"));
        }
        let (axis, index) = (self.one_axis(x)?, self.index(x, index)?);
        self.index_fits(x, index, None)?;
        let (like, extent) = self.extent_of(x, like, axis)?;
        Ok(self.moved(Indexing::ScatterAdd, x, Some(index), like, (axis, extent)))
    }

    pub(super) fn pad(&mut self, x: NodeId, like: In) -> Made {
        let axis = self.one_axis(x)?;
        let (like, extent) = self.extent_of(x, like, axis)?;
        let (start, step) = (self.whole(0, 0.0)?, self.whole(1, 1.0)?);
        if step < 1 {
            return Err(self.refuse(DiagnosticKind::BadParameter, &format!("the step {step} must be at least 1")));
        }
        let has = self.inference.shape(x).get(axis).cloned();
        if let (Some(SymDim::Fixed(m)), Some(SymDim::Fixed(n))) = (has, &extent)
            && Indexing::places(start, step, m, *n).is_none()
        {
            let message = format!("{m} elements from {start} on, each {step} behind the last, do not fit in {n}");
            return Err(self.refuse(DiagnosticKind::BadParameter, &message));
        }
        Ok(self.moved(Indexing::Pad { start, step }, x, None, like, (axis, extent)))
    }

    /// The one dim along which elements are moved.
    fn one_axis(&self, x: NodeId) -> Made<usize> {
        let (dims, rank) = (self.dims(-1), self.rank(x));
        if dims.len() != 1 {
            return Err(self.refuse(DiagnosticKind::Axis, &format!("it takes one dim, not {dims:?}")));
        }
        let found = axes(Some(&dims), rank).map_err(|m| self.refuse(DiagnosticKind::Axis, &m))?;
        // A 0-d value has the dims 0 and -1, which are none.
        Ok(found.first().copied().unwrap_or(0))
    }

    /// A number that must be whole.
    fn whole(&self, at: usize, default: f64) -> Made<i64> {
        let value = self.of.value(at, default);
        if value.fract() == 0.0 {
            return Ok(value as i64);
        }
        let name = self.of.takes().numbers[at];
        Err(self.refuse(DiagnosticKind::BadParameter, &format!("{name} = {value} is no integer")))
    }

    /// An index in i64.
    fn index(&mut self, x: NodeId, index: In) -> Made {
        let In::Node(n) = index else {
            return Err(self.refuse(DiagnosticKind::ArgNotTensor, "the index is a number"));
        };
        if !self.dtype(n).is_integral() || matches!(self.dtype(n), DType::Bool | DType::U64) {
            let message = format!("an index of {} for {}", self.shown(n), self.shown(x));
            return Err(self
                .refuse(DiagnosticKind::UnsupportedDType, &message)
                .help("an index has integers that i64 holds"));
        }
        if self.rank(n) != self.rank(x) {
            let message = format!("an index of {} for {}", self.shown(n), self.shown(x));
            return Err(self.refuse(DiagnosticKind::Broadcast, &message).help("it must have as many dims"));
        }
        self.cast(n, DType::I64)
    }

    /// Whether an index has the extents of x or 1, but along this dim.
    fn index_fits(&mut self, x: NodeId, index: NodeId, but: Option<usize>) -> Made<()> {
        let (of_x, of_index) = (self.inference.shape(x).clone(), self.inference.shape(index).clone());
        for (axis, (d, i)) in of_x.iter().zip(of_index.iter()).enumerate() {
            match (i, d) {
                _ if Some(axis) == but => {}
                (SymDim::Fixed(1), _) => {}
                (i, d) if i == d => {}
                (SymDim::Fixed(_), SymDim::Fixed(_)) => {
                    let message = format!("the dims {} of the index for {}", dims_text(&of_index), self.shown(x));
                    return Err(self.refuse(DiagnosticKind::Broadcast, &message));
                }
                (i, d) => self.must_broadcast(axis, (i.clone(), d.clone())),
            }
        }
        Ok(())
    }

    /// What a dim is like, and its extent there.
    fn extent_of(&self, x: NodeId, like: In, axis: usize) -> Made<(NodeId, Option<SymDim>)> {
        let like = self.like(like)?;
        if self.rank(like) != self.rank(x) {
            let message = format!("{} like {}: it must have as many dims", self.shown(x), self.shown(like));
            return Err(self.refuse(DiagnosticKind::Broadcast, &message));
        }
        Ok((like, self.inference.shape(like).get(axis).cloned()))
    }

    /// The node, whose dim has this extent.
    fn moved(
        &mut self,
        how: Indexing,
        from: NodeId,
        index: Option<NodeId>,
        like: NodeId,
        (axis, extent): (usize, Option<SymDim>),
    ) -> NodeId {
        let (dtype, weak, mut shape) =
            (self.dtype(from), self.inference.nodes[from as usize].weak, self.inference.shape(from).to_vec());
        if let (Some(dim), Some(extent)) = (shape.get_mut(axis), extent) {
            *dim = extent;
        }
        let shape = self.inference.shapes.id(&shape);
        let id = self.inference.push(TypedKind::Indexed { how, from, index, like, axis }, dtype, shape, self.location);
        self.inference.weak(id, weak)
    }
}
