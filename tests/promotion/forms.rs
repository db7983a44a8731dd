//! castwise's outcome for a cell of `torch-op-rules.txt`: the row's form is built as a program of two operands, and the
//! outcome is the inferred dtype or the error.

use castwise::prelude::*;
use castwise::{DiagnosticKind, Op, Operand, PoissonNll, Reduction};
use num_complex::Complex;

use super::rules_file::{Cell, Tier};

/// The scalar of a kind. The recorded tensors have no imaginary parts, but the recorded complex scalar has one.
fn scalar(kind: &str, imaginary: f64) -> Scalar {
    match kind {
        "bool" => Scalar::Bool(true),
        k if k.starts_with(['i', 'u']) => Scalar::Int(1),
        k if k.starts_with('f') || k == "bf16" => Scalar::Float(1.0),
        _ => Scalar::Complex(Complex::new(1.0, imaginary)),
    }
}

/// An operand, which a row's form may use several times.
struct Given {
    var: Option<Var>,
    /// The scalar that replaces the operand where the form only accepts a scalar: `alpha`, `value`.
    scalar: Scalar,
}

impl Given {
    fn new(p: &Program, name: &str, cell: Cell) -> Given {
        let var = |dims: &[usize]| Some(p.data(name, cell.name.parse().unwrap(), dims));
        let imaginary = if cell.tier == Tier::Wrapped { 2.0 } else { 0.0 };
        let var = match cell.tier {
            Tier::Dim => var(&[3]),
            Tier::Zero => var(&[]),
            Tier::Wrapped => None,
        };
        Given { var, scalar: scalar(cell.name, imaginary) }
    }

    fn operand(&self) -> Operand {
        self.var.as_ref().map_or(Operand::Scalar(self.scalar), Operand::from)
    }
}

fn plain(p: &Program, name: &str, a: &Given, b: &Given) -> Option<Var> {
    // PyTorch's names of rounding modes.
    let op = Op::from_name(name)?;
    let mut operands = vec![a.operand(), b.operand()];
    if op == Op::Where {
        operands.insert(0, (&p.data("condition", DType::Bool, [3])).into());
    }
    (op.arity() == operands.len()).then(|| castwise::apply(op, &operands, Default::default()))
}

/// Applies the row's form to two operands; `None` if castwise does not have the row.
fn apply(p: &Program, name: &str, a: &Given, b: &Given) -> Option<Var> {
    let loss = name.split_once('/');
    let Some(x) = a.var.as_ref().filter(|_| loss.is_some() || name.contains('(')) else {
        return plain(p, name, a, b);
    };
    if let Some((loss, form)) = loss {
        let (y, reduction) = (b.var.as_ref()?, form.parse().unwrap_or(Reduction::None));
        let poisson =
            PoissonNll { log_input: form != "none_nolog", full: form == "none_full", reduction, epsilon: 1e-8 };
        return Some(match loss {
            "huber_loss" => x.huber_loss(y, 1.0, reduction),
            "smooth_l1_loss" => x.smooth_l1_loss(y, 1.0, reduction),
            "mse_loss" => x.mse_loss(y, reduction),
            "l1_loss" => x.l1_loss(y, reduction),
            "poisson_nll_loss" => x.poisson_nll_loss(y, poisson),
            _ => return None,
        });
    }
    let y = || b.operand();
    Some(match name {
        "clamp_min(tensor)" => x.clamp_min(y()),
        "clamp_max(tensor)" => x.clamp_max(y()),
        "clamp(x,min=b,max=b)" => x.clamp(y(), y()),
        "lerp(x,end,0.5)" => x.lerp(y(), 0.5),
        "lerp(x,x,weight=b)" => x.lerp(x, y()),
        "addcmul(x,b,b)" => x.addcmul(y(), y(), 1),
        "addcmul(x,x,b)" => x.addcmul(x, y(), 1),
        "addcmul(x,x,x,value=b)" => x.addcmul(x, x, b.scalar),
        "addcdiv(x,b,b)" => x.addcdiv(y(), y(), 1),
        "add(alpha=b)" => x.add_scaled(x, b.scalar),
        "sub(alpha=b)" => x.sub_scaled(x, b.scalar),
        _ => return None,
    })
}

/// The dtype of the row's form for two operands, or the error; `None` if castwise does not have the row.
pub fn answer(name: &str, a: Cell, b: Cell) -> Option<Result<DType, DiagnosticKind>> {
    let p = Program::new(Rules::Torch);
    let (x, y) = (Given::new(&p, "x", a), Given::new(&p, "y", b));
    let result = apply(&p, name, &x, &y)?;
    Some(match p.infer() {
        Ok(typed) => Ok(typed.dtype(&result).unwrap()),
        Err(e) => Err(e.diagnostics()[0].kind),
    })
}

/// The kinds of diagnostics that correspond to PyTorch's error.
pub fn faults(refusal: &str) -> &'static [DiagnosticKind] {
    match refusal {
        "E:bool_sub" => &[DiagnosticKind::BoolArithmetic],
        r if r.contains("can't be cast") => &[DiagnosticKind::Cast],
        r if r.contains("expected dtype") || r.contains("tensors with di") => &[DiagnosticKind::DTypeMismatch],
        // Both apply; PyTorch checks complex numbers first.
        r if r.contains("heaviside") => &[DiagnosticKind::DTypeMismatch, DiagnosticKind::UnsupportedDType],
        r if r.contains("alpha") => &[DiagnosticKind::BadParameter],
        // `value` is a parameter of `addcmul`, but the scalar is an operand of `clamp`.
        r if r.contains("value cannot be converted") => {
            &[DiagnosticKind::BadParameter, DiagnosticKind::UnsupportedDType]
        }
        _ => &[DiagnosticKind::UnsupportedDType],
    }
}
