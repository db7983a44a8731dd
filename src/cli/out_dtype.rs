//! The dtypes that results are written with: `--out-dtype`.
//!
//! Guarantees: without `--out-dtype-all`, a float dtype never rounds a result computed from integers or bools alone: it keeps
//! its dtype, or is cast back to the inputs' dtype (`inexact` refuses it where that is not exact). Does not: change casts that an
//! expression ends with.

use castwise::promotion::promote_types;
use castwise::{
    DType, Diagnostic, DiagnosticKind, Error, NodeKind, Program, Reason, SourceLocation, TypedProgram, Var,
};

/// The values of `--out-dtype` and `--out-dtype-all`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutDtype {
    pub(crate) dtype: Option<DType>,
    /// Whether results computed from integers or bools alone are converted too.
    pub(crate) all: bool,
}

/// How a result is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It is written as it is computed.
    Same,
    /// The same, although another dtype was asked for: it was computed from integers or bools alone.
    Spared,
    /// It is converted.
    Converted(DType),
    /// It is cast back to this dtype, that of the integers or bools that it was computed from, if that is exact.
    Back(DType),
}

impl Made {
    /// Whether the values decide if there is a result.
    pub(super) fn is_back(self) -> bool {
        matches!(self, Made::Back(_))
    }
}

impl OutDtype {
    /// How a result is converted, by the dtypes and ranks of its operands. `place`: the place of the expression.
    pub(super) fn made(
        self,
        operands: &[(DType, usize)],
        program: &Program,
        v: &Var,
        location: SourceLocation,
    ) -> Result<Made, Error> {
        let Some(to) = self.dtype else { return Ok(Made::Same) };
        let typed = program.infer()?;
        let result = typed.dtype(v).ok_or_else(|| Error::Internal("a result without a type".into()))?;
        if self.all || to.is_integral() {
            return Ok(Made::Converted(to));
        }
        // As in promotion, a 0-d tensor beside tensors with dims is a parameter of theirs.
        let rank = usize::from(operands.iter().any(|(_, rank)| *rank > 0));
        let tensors = operands.iter().filter(|o| o.1 >= rank).map(|o| o.0);
        match tensors.reduce(promote_types) {
            Some(common) if common.is_integral() => {
                let kept = result.is_integral() || is_cast(&typed, v);
                Ok(if kept { Made::Spared } else { Made::Back(common) })
            }
            _ if result.is_complex() && to.is_float() => {
                complex(to).map(Made::Converted).ok_or_else(|| no_complex(to, location))
            }
            _ => Ok(Made::Converted(to)),
        }
    }
}

/// Whether the expression ends with a cast.
fn is_cast(typed: &TypedProgram, v: &Var) -> bool {
    let node = typed.position(v).and_then(|i| typed.nodes().nth(i));
    node.is_some_and(|n| matches!(n.kind, NodeKind::Cast { note, .. } if note.reason == Reason::Requested))
}

/// The complex dtype whose parts are of this one.
fn complex(part: DType) -> Option<DType> {
    DType::ALL.into_iter().find(|d| d.is_complex() && d.real() == part)
}

fn no_complex(to: DType, location: SourceLocation) -> Error {
    let message = format!("the result is complex, and no complex dtype has parts of {to}");
    let help = "`--out-dtype c64` keeps both parts, `--out-dtype-all` the real one";
    Error::Invalid(vec![Diagnostic::new(DiagnosticKind::Cast, message).help(help).at(&location)])
}
