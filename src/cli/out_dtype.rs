//! The dtypes of results: `--out-dtype`.
//!
//! Guarantees: without `--out-dtype-all`, a float dtype never rounds a result that was computed from integers or bools
//! only. Such a result keeps its dtype, or is cast back to the inputs' dtype (`inexact` refuses it if that is not
//! exact). Does not: change casts that an expression ends with.

use castwise::promotion::promote_types;
use castwise::{
    Attrs, DType, Diagnostic, DiagnosticKind, Error, Graph, Mode, NodeKind, Op, Operand, Program, Reason,
    SourceLocation, TypedProgram, Var,
};

use super::report;

/// The values of `--out-dtype` and `--out-dtype-all`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutDtype {
    pub(crate) dtype: Option<DType>,
    /// Whether results that were computed from integers or bools only are converted too.
    pub(crate) all: bool,
}

/// The conversion of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// The result is written as it is computed.
    Same,
    /// The result keeps its dtype, although another one was requested, because it was computed from integers or bools
    /// only.
    Kept,
    /// The result is cast to this dtype.
    Converted(DType),
    /// The result is cast back to the dtype of the integers or bools that it was computed from, if that is exact.
    Back(DType),
}

impl Conversion {
    /// Whether the result is cast back, so that its values decide whether it is accepted.
    pub(super) fn is_back(self) -> bool {
        matches!(self, Conversion::Back(_))
    }
}

impl OutDtype {
    /// Whether every result is converted, whatever it was computed from.
    pub(super) fn converts_all(self) -> bool {
        self.dtype.is_some_and(|to| self.all || to.is_integral())
    }

    /// The conversion of a result, given the dtypes and ranks of its operands. `location` is that of the expression.
    pub(super) fn conversion(
        self,
        operands: &[(DType, usize)],
        program: &Program,
        v: &Var,
        location: SourceLocation,
    ) -> Result<Conversion, Error> {
        let Some(to) = self.dtype else { return Ok(Conversion::Same) };
        let typed = program.infer()?;
        let result = typed.dtype(v).ok_or_else(|| Error::Internal("the result has no type".into()))?;
        if self.converts_all() {
            return Ok(Conversion::Converted(to));
        }
        // As in promotion, 0-d tensors do not count if there are tensors with dims.
        let rank = usize::from(operands.iter().any(|(_, rank)| *rank > 0));
        let tensors = operands.iter().filter(|o| o.1 >= rank).map(|o| o.0);
        match tensors.reduce(common) {
            Some(common) if common.is_integral() => {
                let kept = result.is_integral() || is_cast(&typed, v);
                Ok(if kept { Conversion::Kept } else { Conversion::Back(common) })
            }
            _ if result.is_complex() && to.is_float() => {
                complex(to).map(Conversion::Converted).ok_or_else(|| no_complex(to, location))
            }
            _ => Ok(Conversion::Converted(to)),
        }
    }
}

impl OutDtype {
    /// Converts results that have names, each as it would be alone, but for those that would be cast back, which are refused.
    /// Returns [`Conversion::Kept`] if one of them keeps its dtype.
    pub(super) fn convert_named(
        self,
        operands: &[(DType, usize)],
        program: &Program,
        results: &mut [(Option<String>, Var)],
        location: &SourceLocation,
    ) -> Result<Conversion, Error> {
        let mut all = Conversion::Same;
        for (name, v) in results {
            match self.conversion(operands, program, v, location.clone())? {
                Conversion::Same => {}
                Conversion::Kept => all = Conversion::Kept,
                Conversion::Converted(dtype) => {
                    *v = Graph::apply(Op::Cast, &[Operand::Var(v.clone())], Attrs::cast(dtype), location.clone());
                }
                Conversion::Back(dtype) => return Err(not_back(name.as_deref().unwrap_or_default(), dtype, location)),
            }
        }
        Ok(all)
    }
}

/// The common dtype of two dtypes; i64 or the one that is no integer where PyTorch promotes to none.
fn common(a: DType, b: DType) -> DType {
    promote_types(a, b).unwrap_or(match (a.is_integral(), b.is_integral()) {
        (true, true) => DType::I64,
        (true, false) => b,
        _ => a,
    })
}

/// Whether the expression ends with a cast.
fn is_cast(typed: &TypedProgram, v: &Var) -> bool {
    let node = typed.position(v).and_then(|i| typed.nodes().nth(i));
    node.is_some_and(|n| matches!(n.kind, NodeKind::Cast { note, .. } if note.reason == Reason::Requested))
}

/// The complex dtype whose parts have this dtype.
fn complex(part: DType) -> Option<DType> {
    DType::ALL.into_iter().find(|d| d.is_complex() && d.real() == part)
}

/// The error for a named result that `--out-dtype` would cast back.
fn not_back(name: &str, dtype: DType, location: &SourceLocation) -> Error {
    let name = report::escaped(name);
    let message = format!(
        "`--out-dtype` does not cast `{name}` back to {dtype}, the dtype that it was computed from: it has a name"
    );
    let help = format!("cast it in the expression, as in `{name} = cast(..., f32)`");
    Error::Invalid(vec![Diagnostic::new(DiagnosticKind::Cast, message).help(help).at(location)])
}

fn no_complex(to: DType, location: SourceLocation) -> Error {
    let message = format!("the result is complex, and there is no complex dtype with parts of {to}");
    let help = "`--out-dtype c64` keeps both parts, `--out-dtype-all` keeps the real part";
    Error::Invalid(vec![Diagnostic::new(DiagnosticKind::Cast, message).help(help).at(&location)])
}
