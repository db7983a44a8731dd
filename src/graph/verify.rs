//! Checks a typed program's invariants, which `typed` lists.
//!
//! Guarantees: an error names the node that breaks one. Does not: change a program.

use crate::base::dtype::{Category, DType};
use crate::base::error::{Error, Result};
use crate::base::indexing::Indexing;
use crate::base::shape::{SymDim, broadcast, reduced};
use crate::base::view::{Slice, Unknown, View};
use crate::graph::typed::{Arg, Args, NodeId, TypedKind, TypedNode, TypedProgram};
use crate::ops::Op;

impl TypedProgram {
    /// Checks the invariants of `graph::typed`. An error is a bug in castwise.
    pub fn verify(&self) -> Result<()> {
        for (i, n) in self.nodes.iter().enumerate() {
            self.verify_node(i, n).map_err(|m| Error::Internal(format!("typed node {i}: {m}")))?;
        }
        Ok(())
    }

    fn verify_node(&self, i: usize, n: &TypedNode) -> Result<(), String> {
        if let Some(late) = n.inputs().chain(n.kind.like()).find(|a| *a as usize >= i) {
            return Err(format!("uses the later node {late}"));
        }
        match &n.kind {
            TypedKind::Feed(_) | TypedKind::Constant(_) => Ok(()),
            TypedKind::Generate { like, generator } => {
                let (shape, rank) = (self.nodes[*like as usize].shape, self.shapes[n.shape as usize].len());
                let same = shape == n.shape && generator.check(rank, n.dtype).is_ok();
                if same { Ok(()) } else { Err(format!("{} has a wrong type", generator.name())) }
            }
            TypedKind::Blocks { from, like, size } => {
                let (source, like) = (&self.nodes[*from as usize], &self.nodes[*like as usize]);
                let fits = size.check(self.shape_of(*from), &self.shapes[n.shape as usize]).is_ok();
                let same = source.dtype == n.dtype && source.weak == n.weak && like.shape == n.shape && fits;
                if same { Ok(()) } else { Err("blocks have a wrong type".into()) }
            }
            TypedKind::Cast { from, .. } => {
                let source = &self.nodes[*from as usize];
                if source.shape == n.shape { Ok(()) } else { Err("a cast changes the shape".into()) }
            }
            TypedKind::Bits { from } => {
                let source = &self.nodes[*from as usize];
                let same = source.shape == n.shape && source.dtype.size() == n.dtype.size();
                if same { Ok(()) } else { Err("the same bits have another size".into()) }
            }
            TypedKind::Indexed { how, from, index, like, axis } => {
                let inputs = (*from, *index, *like);
                if self.is_moved(n, *how, inputs, *axis) {
                    Ok(())
                } else {
                    Err(format!("{} has a wrong type", how.name()))
                }
            }
            TypedKind::Extent { .. } if n.dtype == DType::F64 && self.shapes[n.shape as usize].is_empty() => Ok(()),
            TypedKind::Extent { .. } => Err("a number of elements has a wrong type".into()),
            TypedKind::Reduce { op, from, axes, keep, .. } => {
                let source = &self.nodes[*from as usize];
                let shape = reduced(&self.shapes[source.shape as usize], axes, *keep);
                let fits = op.result(source.dtype) == n.dtype || op.gives_long() && n.dtype.category() == Category::Int;
                let same = fits && shape[..] == *self.shapes[n.shape as usize];
                if same { Ok(()) } else { Err(format!("{op} has a wrong dtype or shape")) }
            }
            TypedKind::Line { op, from, axis, number, .. } => {
                let source = &self.nodes[*from as usize];
                let fits = op.result(source.dtype) == n.dtype || op.gives_long() && n.dtype.category() == Category::Int;
                let shape = op.line_shape(&self.shapes[source.shape as usize], *axis, *number);
                if fits && shape[..] == *self.shapes[n.shape as usize] {
                    Ok(())
                } else {
                    Err(format!("{op} has a wrong dtype or shape"))
                }
            }
            TypedKind::View { from, view: Some(view) } => self.verify_view(n, &self.nodes[*from as usize], view),
            TypedKind::View { from, view: None } => {
                let ones = |s: u32| -> Vec<&SymDim> {
                    self.shapes[s as usize].iter().filter(|d| **d != SymDim::Fixed(1)).collect()
                };
                let source = &self.nodes[*from as usize];
                let same = source.dtype == n.dtype && ones(source.shape) == ones(n.shape);
                if same { Ok(()) } else { Err("a view changes more than ones".into()) }
            }
            TypedKind::Apply { op, compute, args } => {
                self.verify_dtypes(n, *op, *compute, args)?;
                if n.inputs().all(|a| self.nodes[a as usize].shape == n.shape) {
                    return Ok(());
                }
                let mut shape = Vec::new();
                for a in n.inputs() {
                    shape = broadcast(&shape, self.shape_of(a)).map_err(|e| format!("{op}: {e:?}"))?;
                }
                if shape[..] == *self.shapes[n.shape as usize] {
                    Ok(())
                } else {
                    Err(format!("{op} has a wrong shape"))
                }
            }
        }
    }

    /// Whether what moves elements along a dim has a dtype and a shape that follow from its operands.
    fn is_moved(
        &self,
        n: &TypedNode,
        how: Indexing,
        (from, index, like): (NodeId, Option<NodeId>, NodeId),
        axis: usize,
    ) -> bool {
        let source = &self.nodes[from as usize];
        let of_index = index.map(|i| (self.nodes[i as usize].dtype, self.shape_of(i)));
        let extent = match (how, of_index) {
            (Indexing::Take, Some((_, shape))) => shape.get(axis),
            (Indexing::Take, None) => None,
            _ => self.shape_of(like).get(axis),
        };
        let mut shape = self.shape_of(from).to_vec();
        if let (Some(to), Some(extent)) = (shape.get_mut(axis), extent) {
            *to = extent.clone();
        }
        let indexed = matches!(how, Indexing::Pad { .. }) == of_index.is_none();
        let positions = of_index.is_none_or(|(dtype, dims)| dtype == DType::I64 && dims.len() == shape.len());
        source.dtype == n.dtype
            && source.weak == n.weak
            && indexed
            && positions
            && shape[..] == *self.shapes[n.shape as usize]
    }

    fn verify_view(&self, n: &TypedNode, source: &TypedNode, view: &View) -> Result<(), String> {
        // The extent of a slice of a dynamic dim is any symbol.
        struct Open;
        const ANY: SymDim = SymDim::Fixed(usize::MAX);
        impl Unknown for Open {
            fn sliced(&mut self, _: &SymDim, _: Slice) -> SymDim {
                ANY
            }
            fn expanded(&mut self, _: usize, _: &SymDim, _: usize) {}
            fn fed(&mut self) -> Option<SymDim> {
                Some(ANY)
            }
        }
        let shape = view.dims(&self.shapes[source.shape as usize], &mut Open).map_err(|(_, m, _)| m)?;
        let has = &self.shapes[n.shape as usize];
        let fits = |(want, has): (&SymDim, &SymDim)| {
            want == has || *want == ANY && matches!(has, SymDim::Sym(_) | SymDim::Fixed(1))
        };
        let same = source.dtype == n.dtype && source.weak == n.weak && shape.len() == has.len();
        if same && shape.iter().zip(has.iter()).all(fits) {
            Ok(())
        } else {
            Err(format!("{} has a wrong type", view.name()))
        }
    }

    fn verify_dtypes(&self, n: &TypedNode, op: Op, compute: DType, args: &Args) -> Result<(), String> {
        if args.iter().flatten().count() != op.arity() {
            return Err(format!("{op} has a wrong number of operands"));
        }
        for (k, arg) in args.iter().flatten().enumerate() {
            let want = if op == Op::Where && k == 0 { DType::Bool } else { compute };
            match *arg {
                // A 0-d operand may stay in op math, as a scalar does.
                Arg::Node(a) if [want, want.op_math()].contains(&self.nodes[a as usize].dtype) => {}
                Arg::Scalar(_, d) if d == want || d == want.op_math() => {}
                _ => return Err(format!("operand {k} of {op} is not {want}")),
            }
        }
        if op.result(compute) == n.dtype { Ok(()) } else { Err(format!("{op} in {compute} gives {}", n.dtype)) }
    }
}
