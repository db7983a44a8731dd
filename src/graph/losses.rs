//! The losses: what is composed of a few rows of the op table, in both modes.
//!
//! Guarantees: both modes run the same rows; operands meet as the rule set wants it (PyTorch broadcasts before it
//! promotes, Paddle's `huber_loss` wants equal shapes); a bad parameter is refused as any mistake of a program.
//! Sources: the documentation of each loss in PyTorch and PaddlePaddle.

use crate::base::error::{Diagnostic, DiagnosticKind, Error, shown};
use crate::base::location::here;
use crate::base::scalar::Scalar;
use crate::graph::var::{Mode, Operand, Var};
use crate::ops::{Attrs, LossShapes, Op};

/// What becomes of a loss's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// They stay.
    None,
    /// Their mean: NaN of nothing. Integers are refused.
    #[default]
    Mean,
    /// Their sum: 0 of nothing. Integers are summed in i64.
    Sum,
}

/// The parameters of [`Var::poisson_nll_loss`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoissonNll {
    /// Whether x is the logarithm of the rate. Default: true.
    pub log_input: bool,
    /// Whether to add Stirling's term. Default: false.
    pub full: bool,
    /// Keeps the logarithm of the rate finite. Default: 1e-8.
    pub epsilon: f64,
    /// Default: mean.
    pub reduction: Reduction,
}

impl Default for PoissonNll {
    fn default() -> PoissonNll {
        PoissonNll { log_input: true, full: false, epsilon: 1e-8, reduction: Reduction::Mean }
    }
}

impl std::str::FromStr for Reduction {
    type Err = Error;

    /// ```
    /// use castwise::{DiagnosticKind, Reduction};
    /// assert_eq!("sum".parse::<Reduction>()?, Reduction::Sum);
    /// let refusal = "avg".parse::<Reduction>().expect_err("no such reduction");
    /// assert_eq!(refusal.diagnostics()[0].kind, DiagnosticKind::BadParameter);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    fn from_str(s: &str) -> Result<Reduction, Error> {
        match s {
            "none" => Ok(Reduction::None),
            "mean" => Ok(Reduction::Mean),
            "sum" => Ok(Reduction::Sum),
            _ => {
                let message = format!("unknown reduction `{}`: `none`, `mean` or `sum`", shown(s));
                Err(Diagnostic::new(DiagnosticKind::BadParameter, message).into())
            }
        }
    }
}

impl<M: Mode> Var<M> {
    /// |x - y|; the modulus for complex numbers.
    ///
    /// ```
    /// use castwise::{Reduction, prelude::*};
    /// let cx = Eager::new(Rules::Torch);
    /// let x = cx.tensor(&Tensor::from_slice(&[1.0f32, 2.0, 4.0], [3])?);
    /// let y = cx.tensor(&Tensor::from_slice(&[1.0f32, 0.0, 1.0], [3])?);
    /// assert_eq!(x.l1_loss(&y, Reduction::Sum).result()?.item::<f32>()?, 5.0);
    /// assert_eq!(x.mse_loss(&y, Reduction::None).result()?.to_vec::<f32>()?, [0.0, 4.0, 9.0]);
    /// assert_eq!(x.huber_loss(&y, 1.0, Reduction::None).result()?.to_vec::<f32>()?, [0.0, 1.5, 2.5]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn l1_loss(&self, target: &Var<M>, reduction: Reduction) -> Var<M> {
        self.loss(Op::Sub, target, None, LossShapes::Broadcast).abs().reduced(reduction)
    }

    /// (x - y)².
    #[track_caller]
    pub fn mse_loss(&self, target: &Var<M>, reduction: Reduction) -> Var<M> {
        self.loss(Op::SquaredDifference, target, None, LossShapes::Broadcast).reduced(reduction)
    }

    /// Half of (x - y)² where |x - y| is at most `delta`, `delta * (|x - y| - delta / 2)` beyond. `delta` is greater
    /// than 0. Under PyTorch's rules the result has the dtype of x; under Paddle's the shapes must be equal.
    #[track_caller]
    pub fn huber_loss(&self, target: &Var<M>, delta: f64, reduction: Reduction) -> Var<M> {
        let shapes = M::settings(&self.0).rules.set().losses().huber;
        self.loss(Op::Huber, target, Some(delta), shapes).reduced(reduction)
    }

    /// (x - y)² / (2 * `beta`) where |x - y| is below `beta`, |x - y| - `beta` / 2 beyond. `beta` is at least 0, where
    /// it is the L1 loss.
    #[track_caller]
    pub fn smooth_l1_loss(&self, target: &Var<M>, beta: f64, reduction: Reduction) -> Var<M> {
        if beta == 0.0 {
            return self.l1_loss(target, reduction);
        }
        self.loss(Op::SmoothL1, target, Some(beta), LossShapes::Broadcast).reduced(reduction)
    }

    /// The negative log likelihood of `self` as the (logarithm of the) rate of a Poisson distribution.
    ///
    /// `exp(x) - y * x` if `log_input`, else `x - y * log(x + epsilon)`; `full` adds Stirling's approximation of
    /// `log(y!)` where y > 1. Composed of these ops, each with its own promotion and rounding; under Paddle's rules
    /// the operands promote first, shapes must be equal, and `epsilon` must be greater than 0.
    #[track_caller]
    pub fn poisson_nll_loss(&self, target: &Var<M>, options: PoissonNll) -> Var<M> {
        let promotes = M::settings(&self.0).rules.set().losses().poisson_promotes;
        let attrs = || Attrs { loss: Some(LossShapes::Equal), ..Attrs::default() };
        let promoted = |a: &Var<M>, b: &Var<M>| M::apply(Op::PromoteWith, &[a.into(), b.into()], attrs(), here());
        let (x, y) =
            if promotes { (promoted(self, target), promoted(target, self)) } else { (self.clone(), target.clone()) };
        if promotes && options.epsilon <= 0.0 {
            let message = format!("`poisson_nll_loss` with epsilon {}, which must be greater than 0", options.epsilon);
            return M::refuse(&self.0, Diagnostic::new(DiagnosticKind::BadParameter, message).at(&here()));
        }
        let likelihood = if options.log_input { x.exp() - &y * &x } else { &x - &y * (&x + options.epsilon).log() };
        let loss = if options.full {
            let stirling = &y * y.log() - &y + (&y * (2.0 * std::f64::consts::PI)).log() * 0.5;
            // PyTorch adds in place: the dtype stays.
            likelihood.assign(&likelihood + y.le(1).where_(0, stirling))
        } else {
            likelihood
        };
        loss.reduced(options.reduction)
    }

    #[track_caller]
    fn loss(&self, op: Op, target: &Var<M>, parameter: Option<f64>, shapes: LossShapes) -> Var<M> {
        let mut operands: Vec<Operand<M>> = vec![self.into(), target.into()];
        operands.extend(parameter.map(|p| Operand::Scalar(Scalar::Float(p))));
        M::apply(op, &operands, Attrs { loss: Some(shapes), ..Attrs::default() }, here())
    }

    #[track_caller]
    fn reduced(&self, reduction: Reduction) -> Var<M> {
        match reduction {
            Reduction::None => self.clone(),
            Reduction::Mean => self.mean(),
            Reduction::Sum => self.sum(),
        }
    }
}
