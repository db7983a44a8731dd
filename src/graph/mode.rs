//! The mode of a program's handles: what is applied becomes a node.
//!
//! Guarantees: nothing is computed; a handle of another program is a mistake that names what was applied. Does not: check numbers of
//! operands that the graph can hold, dtypes or shapes.

use std::sync::Arc;

use petgraph::graph::NodeIndex;
use smallvec::SmallVec;

use crate::base::blocks::BlockSize;
use crate::base::composite::Composite;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, SourceLocation};
use crate::base::generator::Generator;
use crate::base::scalar::Scalar;
use crate::base::view::View;
use crate::graph::program::{Kind, NodeRef, Program, Shared, cast_scalar};
use crate::graph::var::{Graph, Mode, Operand, Sealed, Var};
use crate::ops::{Attrs, MAX_OPERANDS, Op};
use crate::promotion::{Rules, Settings};

/// The operands of a node: the scalars among them, and the other nodes with their positions.
type Given = ([Option<Scalar>; MAX_OPERANDS], SmallVec<[(NodeIndex, u8); MAX_OPERANDS]>);

/// Reads the operands of what has this name, at most [`MAX_OPERANDS`]. Error: one is another program's.
fn given(program: &Arc<Shared>, name: &str, operands: &[Operand<Graph>]) -> Result<Given, Diagnostic> {
    let mut all = Given::default();
    for (i, o) in operands.iter().enumerate().take(MAX_OPERANDS) {
        match o {
            Operand::Scalar(s) => all.0[i] = Some(*s),
            Operand::Var(v) if Arc::ptr_eq(&v.0.program, program) => all.1.push((v.0.node, i as u8)),
            Operand::Var(_) => {
                let message = format!("operand {i} of `{name}` is a handle of another program");
                return Err(Diagnostic::new(DiagnosticKind::ForeignVar, message));
            }
        }
    }
    Ok(all)
}

impl Sealed for Graph {}

impl Mode for Graph {
    type Value = NodeRef;

    fn refuse(value: &NodeRef, mistake: Diagnostic) -> Var {
        let location = mistake.location.clone();
        value.program.push(Kind::Poison(Box::new(mistake)), location, &[])
    }

    fn settings(value: &NodeRef) -> Settings {
        value.program.settings
    }

    fn apply(op: Op, operands: &[Operand<Graph>], attrs: Attrs, location: SourceLocation) -> Var {
        let first = operands.iter().find_map(|o| match o {
            Operand::Var(v) => Some(v),
            Operand::Scalar(_) => None,
        });
        // Methods and operators have a handle as `self`; only `apply` can be called with scalars alone.
        let Some(first) = first else {
            let program = Program::new(Rules::default());
            let message = match op.wrong_count(operands.len()) {
                Some(wrong) => wrong.message,
                None => format!("`{op}` of scalars alone"),
            };
            return program.poison(DiagnosticKind::BadParameter, message, location);
        };
        let program = &first.0.program;
        // What the graph could not hold; every other number is refused by the op's signature.
        if operands.len() > MAX_OPERANDS
            && let Some(d) = op.wrong_count(operands.len())
        {
            return program.push(Kind::Poison(Box::new(d.at(&location))), location, &[]);
        }
        match given(program, op.name(), operands) {
            Ok((scalars, inputs)) => program.push(Kind::Apply { op, attrs, scalars }, location, &inputs),
            Err(d) => program.push(Kind::Poison(Box::new(d.at(&location))), location, &[]),
        }
    }

    fn composite(
        beside: &NodeRef,
        composite: &Composite,
        operands: &[Operand<Graph>],
        location: SourceLocation,
    ) -> Var {
        let program = &beside.program;
        let given = composite.counted(operands.len()).and_then(|()| given(program, composite.name(), operands));
        match given {
            Ok((scalars, inputs)) => {
                program.push(Kind::Composite { composite: composite.clone(), scalars }, location, &inputs)
            }
            Err(d) => program.push(Kind::Poison(Box::new(d.at(&location))), location, &[]),
        }
    }

    fn view(value: &NodeRef, view: View, location: SourceLocation) -> Var {
        value.program.push(Kind::View(view), location, &[(value.node, 0)])
    }

    fn blocks(scale: &NodeRef, like: &NodeRef, size: BlockSize, location: SourceLocation) -> Var {
        let program = &scale.program;
        if !Arc::ptr_eq(&like.program, program) {
            let message = "what `blocks` are like is a handle of another program";
            let d = Diagnostic::new(DiagnosticKind::ForeignVar, message).at(&location);
            return program.push(Kind::Poison(Box::new(d)), location, &[]);
        }
        program.push(Kind::Blocks(size), location, &[(scale.node, 0), (like.node, 1)])
    }

    fn generate(like: &NodeRef, generator: Generator, location: SourceLocation) -> Var {
        like.program.push(Kind::Generate(generator), location, &[(like.node, 0)])
    }

    fn scalar(beside: &NodeRef, scalar: Scalar, dtype: DType, location: SourceLocation) -> Var {
        beside.program.push(cast_scalar(scalar, dtype), location, &[])
    }
}
