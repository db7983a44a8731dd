//! A typed program a second time, in f64: what it would give if nothing were rounded.
//!
//! Guarantees: every node has a counterpart: floats and integers in f64, complex numbers in c128, bool in bool; casts to
//! a wider category are numbers that stay, casts to a narrower one keep what they mean (an integer has no fraction, a
//! bool is whether a number is not zero). So an integer that wraps, saturates or loses digits differs from its
//! counterpart. Bits seen as another dtype are those of the counterpart in the dtype that was computed, and ops that have no
//! f64 (the bitwise ones) stay in their dtype. Does not: say more than f64 can: integers beyond 2^53 have no exact counterpart.

use castwise::{
    Category, DType, Error, NodeKind, NodeOperand, Op, Operand, Program, Rounding, Scalar, Tensor, TypedProgram, Var,
    Visit, apply,
};

/// A program that holds a typed program and its counterparts.
pub(super) struct Mirror<'t> {
    typed: &'t TypedProgram,
    dtypes: Vec<DType>,
    pub(super) program: Program,
    /// Each node as it is computed.
    pub(super) low: Vec<Var>,
}

/// The dtype of a node's counterpart.
pub(super) fn wide(d: DType) -> DType {
    match d.category() {
        Category::Bool => DType::Bool,
        Category::Int | Category::Float => DType::F64,
        Category::Complex => DType::C128,
    }
}

impl<'t> Mirror<'t> {
    /// The typed program anew, every cast written out. Its placeholders keep their names and dtypes.
    pub(super) fn new(typed: &'t TypedProgram) -> Result<Mirror<'t>, Error> {
        let program = Program::with_settings(typed.settings().with_rounding(Rounding::Exact));
        let low = typed.rewrite_into(&program, |n| n.copy_explicit())?;
        let dtypes = typed.nodes().map(|n| n.dtype).collect();
        Ok(Mirror { typed, dtypes, program, low })
    }

    /// A computed value in the dtype of its counterpart.
    pub(super) fn widened(&self, node: usize) -> Var {
        widen(&self.low[node], self.dtypes[node])
    }

    /// The counterpart of a node, from those of its operands.
    fn exact(&self, n: &Visit<'_>) -> Result<Var, Error> {
        let dtype = n.view().dtype;
        match &n.view().kind {
            NodeKind::Apply { op, compute, operands } => {
                let stays = compute.category() == Category::Int && !op.def().accepts.has(DType::F64);
                let mut given = n.operands()?;
                for (to, from) in given.iter_mut().zip(operands) {
                    match (&*to, from) {
                        (Operand::Var(v), NodeOperand::Node(i)) if stays && self.dtypes[*i] == *compute => {
                            *to = v.cast(*compute).into();
                        }
                        // Beside another scalar it would have a dtype of its own.
                        (Operand::Scalar(s), _) if *op == Op::Where => *to = self.constant(*s, dtype).into(),
                        _ => {}
                    }
                }
                let v = apply(*op, &given, n.attrs());
                Ok(if stays { widen(&v, dtype) } else { v })
            }
            NodeKind::Cast { from, .. } => Ok(convert(n.var(*from)?, self.dtypes[*from], dtype)),
            NodeKind::Bits { from } => Ok(widen(&n.var(*from)?.cast(self.dtypes[*from]).view_as(dtype), dtype)),
            NodeKind::Reduce { op, .. } | NodeKind::Line { op, .. } => {
                let mut attrs = n.attrs();
                attrs.dtype = None;
                Ok(apply(*op, &n.operands()?, attrs))
            }
            NodeKind::View { .. } | NodeKind::Blocks { .. } | NodeKind::Indexed { .. } => n.copy(),
            NodeKind::Generate { .. } => Ok(widen(&n.copy_explicit()?, dtype)),
            _ => Ok(self.widened(n.position())),
        }
    }

    /// A scalar in the dtype of its counterpart.
    fn constant(&self, s: Scalar, dtype: DType) -> Var {
        let t = match s {
            Scalar::Bool(v) => Tensor::scalar(v),
            Scalar::Int(v) => i64::try_from(v).map_or_else(|_| Tensor::scalar(v as u64), Tensor::scalar),
            Scalar::Float(v) => Tensor::scalar(v),
            Scalar::Complex(v) => Tensor::scalar(v),
        };
        self.program.constant(t).cast(wide(dtype))
    }

    /// The counterparts of all nodes, if the first `computed` of them are taken as they were computed.
    pub(super) fn exact_after(&self, computed: usize) -> Result<Vec<Var>, Error> {
        self.typed.rewrite_into(&self.program, |n| match n.position() {
            node if node < computed => Ok(self.widened(node)),
            _ => self.exact(n),
        })
    }

    /// The error of each node that computes, at its position: of its value against its counterpart from the operands that it had.
    pub(super) fn own_errors(&self) -> Result<Vec<(usize, [Var; 2])>, Error> {
        let mut all = Vec::new();
        self.typed.rewrite_into(&self.program, |n| {
            let (node, computed) = (n.position(), self.widened(n.position()));
            if !matches!(n.view().kind, NodeKind::Feed(_) | NodeKind::Constant(_)) {
                all.push((node, self.error(node, &computed, &self.exact(n)?)));
            }
            Ok(computed)
        })?;
        Ok(all)
    }

    /// |a - b| of two counterparts of a node, and |b|, in f64.
    pub(super) fn error(&self, node: usize, a: &Var, b: &Var) -> [Var; 2] {
        if self.dtypes[node] == DType::Bool {
            return [a.ne(b).cast(DType::F64), b.ne(b).logical_not().cast(DType::F64)];
        }
        [(a - b).abs(), b.abs()]
    }
}

fn widen(v: &Var, dtype: DType) -> Var {
    let to = wide(dtype);
    if to == dtype { v.clone() } else { v.cast(to) }
}

/// A counterpart of dtype `from` as one of dtype `to`.
fn convert(v: &Var, from: DType, to: DType) -> Var {
    let (from, to) = (from.category(), to.category());
    match to {
        _ if from == to => v.clone(),
        Category::Bool => v.ne(Scalar::Int(0)),
        Category::Complex => v.cast(DType::C128),
        _ if from == Category::Bool => v.cast(DType::F64),
        Category::Int if from == Category::Complex => v.real().trunc(),
        Category::Int => v.trunc(),
        Category::Float if from == Category::Complex => v.real(),
        Category::Float => v.clone(),
    }
}

#[cfg(test)]
mod tests;
