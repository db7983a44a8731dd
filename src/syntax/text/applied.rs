//! Reads what is applied to operands: `mul %0, ~2`, `sum %0 {dims = [1]}`.
//!
//! Guarantees: a line whose operand has a mistake is read to its end. Does not: check the number of an op's operands.

use petgraph::graph::NodeIndex;

use super::lex::{Span, Token};
use super::parse::{Parsed, Reader, Stop, expected};
use crate::base::error::DiagnosticKind;
use crate::base::scalar::Scalar;
use crate::graph::program::Kind;
use crate::ops::{Attrs, MAX_OPERANDS, Op};

/// The operands of a line: the scalars among them, and the other nodes with their positions.
type Given = ([Option<Scalar>; MAX_OPERANDS], Vec<(NodeIndex, u8)>);

impl Reader<'_> {
    /// Reads the operands of what is applied: scalars and other nodes, with their positions. `None`: the line of one has a mistake.
    pub(super) fn inputs(&mut self) -> Parsed<(Option<Given>, usize)> {
        let (mut scalars, mut inputs) = ([None; MAX_OPERANDS], Vec::with_capacity(MAX_OPERANDS));
        let mut count = 0;
        // An operand whose line has a mistake suppresses errors about this operand, but the rest of the line is still
        // checked.
        let mut silent = false;
        loop {
            let (token, span) = self.next()?;
            if count == MAX_OPERANDS {
                return Err(span.syntax(format!("more than {MAX_OPERANDS} operands")).into());
            }
            match token {
                Token::Mark(b'%') => match self.value() {
                    Ok(node) => inputs.push((node, count as u8)),
                    Err(Stop::Silent) => silent = true,
                    Err(other) => return Err(other),
                },
                Token::Mark(b'~') => scalars[count] = Some(self.scalar()?),
                found => return Err(expected("an operand, `%` or `~`", &found, span).into()),
            }
            count += 1;
            if !self.takes(&Token::Mark(b',')) {
                break;
            }
        }
        Ok(((!silent).then_some((scalars, inputs)), count))
    }

    pub(super) fn application(&mut self, op: Op, start: Span) -> Parsed<NodeIndex> {
        let (given, _) = self.inputs()?;
        let attrs = if self.takes(&Token::Mark(b'{')) { self.attrs(op)? } else { Attrs::default() };
        let (scalars, inputs) = given.ok_or(Stop::Silent)?;
        let span = start.to(self.last());
        if inputs.is_empty() && op != Op::Cast {
            return Err(span.mistake(DiagnosticKind::BadParameter, format!("`{op}` of scalars alone")).into());
        }
        self.append(Kind::Apply { op, attrs, scalars }, span, &inputs)
    }
}
