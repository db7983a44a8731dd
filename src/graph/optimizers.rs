//! Optimizers: one step as a few ops, in both modes.
//!
//! Guarantees: what changes from step to step are 0-d values that are fed, so that a program is compiled once; a step computes in the op math of
//! its dtype, and rounds a parameter and each of its states once. Does not: own parameters or states; whoever runs a step gives the old ones
//! and takes the new ones, in place if the targets of a run are its feeds.
//!
//! Sources: the documentation of `torch.optim`, whose order of ops these have; Chen et al., "Symbolic Discovery of Optimization
//! Algorithms", 2023 (Lion).

use crate::base::dtype::DType;
use crate::base::generator::Key;
use crate::base::location::here;
use crate::base::scalar::Scalar;
use crate::graph::var::{Mode, Var};
use crate::promotion::Rules;

/// What a step computes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd {
        /// What is kept of the last step's direction; 0 has no state.
        momentum: f64,
        /// What the gradient loses beside it.
        dampening: f64,
        /// Whether the step looks ahead.
        nesterov: bool,
    },
    /// Adam; AdamW if `decoupled`.
    Adam {
        /// What is kept of the mean of gradients, and of that of their squares.
        betas: (f64, f64),
        /// Keeps the divisor from 0.
        eps: f64,
        /// Whether the largest mean of squares divides.
        amsgrad: bool,
        /// Whether weights decay apart from the gradient.
        decoupled: bool,
    },
    /// Adagrad.
    Adagrad {
        /// Keeps the divisor from 0.
        eps: f64,
        /// By which the learning rate falls.
        lr_decay: f64,
    },
    /// RMSprop.
    RmsProp {
        /// What is kept of the mean of squares.
        alpha: f64,
        /// Keeps the divisor from 0.
        eps: f64,
        /// Whether the variance divides.
        centered: bool,
        /// What is kept of the last step.
        momentum: f64,
    },
    /// Lion, whose weights decay apart from the gradient.
    Lion {
        /// What of the mean makes the direction, and what of it is kept.
        betas: (f64, f64),
    },
    /// The exponential moving average: the parameter is the average, the "gradient" what is averaged.
    Ema {
        /// What is kept of the average.
        decay: f64,
    },
}

/// A step of an optimizer on one parameter.
///
/// ```
/// use castwise::{Optimizer, Step, prelude::*};
/// let step = Step::new(Optimizer::Sgd { momentum: 0.9, dampening: 0.0, nesterov: false }, DType::F32);
/// let p = Program::new(Rules::Torch);
/// let [w, g, buffer] = ["w", "g", "buffer"].map(|n| p.data(n, DType::F32, ["n"]));
/// let numbers: Vec<Var> = step.numbers().iter().map(|n| p.data(n, DType::F32, ())).collect();
/// let new = step.update(&w, &g, &[buffer], &numbers);
///
/// let [w, g, buffer] = [1.0f32, 0.5, 0.0].map(|v| Tensor::from([v]));
/// let mut feeds = vec![("w", w), ("g", g), ("buffer", buffer)];
/// for (name, v) in step.numbers().iter().zip(step.values(0.1, 1)) {
///     feeds.push((name, Tensor::scalar(v as f32)));
/// }
/// let feeds = Feeds::from(feeds);
/// let out = Executor::new().run(&p, feeds, &new)?;
/// assert_eq!((out[0].item::<f32>()?, out[1].item::<f32>()?), (0.95, 0.5));
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// What it computes.
    pub optimizer: Optimizer,
    /// The dtype of the parameter: half dtypes compute in f32.
    pub dtype: DType,
    /// The share of the parameter that is added to its gradient, or by which it decays.
    pub weight_decay: f64,
    /// Whether the gradient is followed upwards.
    pub maximize: bool,
}

impl Step {
    /// A step without decay of weights.
    pub fn new(optimizer: Optimizer, dtype: DType) -> Step {
        Step { optimizer, dtype, weight_decay: 0.0, maximize: false }
    }

    /// The share by which weights decay.
    pub fn weight_decay(self, weight_decay: f64) -> Step {
        Step { weight_decay, ..self }
    }

    /// Follows the gradient upwards.
    pub fn maximize(self, maximize: bool) -> Step {
        Step { maximize, ..self }
    }

    /// The names of the states, all of the parameter's shape, which begin with 0: those of `torch.optim`.
    pub fn states(&self) -> Vec<&'static str> {
        let given = |all: &[(bool, &'static str)]| all.iter().filter(|(has, _)| *has).map(|(_, n)| *n).collect();
        match self.optimizer {
            Optimizer::Sgd { momentum, .. } => given(&[(momentum != 0.0, "momentum_buffer")]),
            Optimizer::Adam { amsgrad, .. } => {
                given(&[(true, "exp_avg"), (true, "exp_avg_sq"), (amsgrad, "max_exp_avg_sq")])
            }
            Optimizer::Adagrad { .. } => vec!["sum"],
            Optimizer::RmsProp { centered, momentum, .. } => {
                given(&[(true, "square_avg"), (centered, "grad_avg"), (momentum > 0.0, "momentum_buffer")])
            }
            Optimizer::Lion { .. } => vec!["exp_avg"],
            Optimizer::Ema { .. } => Vec::new(),
        }
    }

    /// The names of the numbers that change from step to step: 0-d values in the op math of the dtype.
    pub fn numbers(&self) -> &'static [&'static str] {
        match self.optimizer {
            Optimizer::Sgd { .. } => &["lr", "share"],
            Optimizer::Adam { .. } => &["rate", "root", "kept"],
            Optimizer::Adagrad { .. } | Optimizer::RmsProp { .. } => &["rate"],
            Optimizer::Lion { .. } => &["lr", "kept"],
            Optimizer::Ema { .. } => &[],
        }
    }

    /// These numbers at a step, which are counted from 1.
    pub fn values(&self, lr: f64, step: u32) -> Vec<f64> {
        let t = step.max(1);
        let kept = 1.0 - lr * self.weight_decay;
        match self.optimizer {
            Optimizer::Sgd { dampening, .. } => vec![lr, if t == 1 { 1.0 } else { 1.0 - dampening }],
            Optimizer::Adam { betas: (one, two), .. } => {
                let correction = |beta: f64| 1.0 - beta.powi(t.min(i32::MAX as u32) as i32);
                vec![lr / correction(one), correction(two).sqrt(), kept]
            }
            Optimizer::Adagrad { lr_decay, .. } => vec![lr / (1.0 + f64::from(t - 1) * lr_decay)],
            Optimizer::RmsProp { .. } => vec![lr],
            Optimizer::Lion { .. } => vec![lr, kept],
            Optimizer::Ema { .. } => Vec::new(),
        }
    }

    /// The new parameter and the new states, in the order of [`states`](Step::states), from the old ones, the gradient, which may have another
    /// dtype, and the [numbers](Step::numbers). Too few states or numbers are a mistake, which the results are.
    #[track_caller]
    pub fn update<M: Mode>(&self, x: &Var<M>, g: &Var<M>, states: &[Var<M>], numbers: &[Var<M>]) -> Vec<Var<M>> {
        let math = self.dtype.op_math();
        let up = |v: &Var<M>| v.cast(math);
        let (wide, mut g) = (up(x), up(g));
        // What is missing is the parameter, so that the number of results tells.
        let state = |k: usize| states.get(k).map_or_else(|| wide.clone(), up);
        let number = |k: usize| numbers.get(k).map_or_else(|| wide.clone(), up);
        if self.maximize {
            g = -g;
        }
        let coupled = !matches!(
            self.optimizer,
            Optimizer::Adam { decoupled: true, .. } | Optimizer::Lion { .. } | Optimizer::Ema { .. }
        );
        if coupled && self.weight_decay != 0.0 {
            g = wide.fma(self.weight_decay, &g);
        }
        let (new, changed) = self.formulas(&wide, &g, &state, &number);
        let mut all = vec![x.assign(&new)];
        all.extend(states.iter().zip(changed).map(|(old, new)| old.assign(new)));
        all
    }

    /// As [`update`](Step::update), of a parameter in a narrower dtype that has a copy in the step's dtype, the master copy: the new narrow
    /// parameter, then the new copy and states. What is lost by rounding the parameter is not lost to the copy.
    ///
    /// ```
    /// use castwise::{Optimizer, Step, prelude::*};
    /// let step = Step::new(Optimizer::Sgd { momentum: 0.0, dampening: 0.0, nesterov: false }, DType::F32);
    /// let cx = Eager::new(Rules::Torch);
    /// let (w, g) = (cx.tensor(&Tensor::from([bf16::ONE])), cx.tensor(&Tensor::from([bf16::ONE])));
    /// let numbers: Vec<_> = step.values(1e-3, 1).iter().map(|v| cx.scalar(*v, DType::F32)).collect();
    /// let new = step.update_master(&w, &w.cast(DType::F32), &g, &[], &numbers);
    /// assert_eq!(new[0].result()?.item::<bf16>()?, bf16::ONE);              // 0.999 is not far enough from 1
    /// assert_eq!(new[1].result()?.item::<f32>()?, 0.999);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn update_master<M: Mode>(
        &self,
        x: &Var<M>,
        master: &Var<M>,
        g: &Var<M>,
        states: &[Var<M>],
        numbers: &[Var<M>],
    ) -> Vec<Var<M>> {
        let all = self.update(master, g, states, numbers);
        let narrow = x.assign(&all[0]);
        std::iter::once(narrow).chain(all).collect()
    }

    /// The new parameter and states in op math.
    fn formulas<M: Mode>(
        &self,
        x: &Var<M>,
        g: &Var<M>,
        state: &dyn Fn(usize) -> Var<M>,
        number: &dyn Fn(usize) -> Var<M>,
    ) -> (Var<M>, Vec<Var<M>>) {
        match self.optimizer {
            Optimizer::Sgd { momentum, nesterov, .. } => {
                let back = -number(0);
                if momentum == 0.0 {
                    return (g.fma(&back, x), Vec::new());
                }
                let buffer = g.fma(number(1), state(0) * momentum);
                let along = if nesterov { buffer.fma(momentum, g) } else { buffer.clone() };
                (along.fma(&back, x), vec![buffer])
            }
            Optimizer::Adam { betas: (one, two), eps, amsgrad, decoupled } => {
                let x = if decoupled { x * number(2) } else { x.clone() };
                let mean = state(0).lerp(g, 1.0 - one);
                let square = (state(1) * two).addcmul(g, g, 1.0 - two);
                let mut changed = vec![mean.clone(), square.clone()];
                let mut most = square;
                if amsgrad {
                    most = state(2).maximum(&most);
                    changed.push(most.clone());
                }
                let divisor = most.sqrt() / number(1) + eps;
                (x - mean / divisor * number(0), changed)
            }
            Optimizer::Adagrad { eps, .. } => {
                let sum = state(0).addcmul(g, g, 1.0);
                (x - g / (sum.sqrt() + eps) * number(0), vec![sum])
            }
            Optimizer::RmsProp { alpha, eps, centered, momentum } => {
                let square = (state(0) * alpha).addcmul(g, g, 1.0 - alpha);
                let mut changed = vec![square.clone()];
                let mut spread = square;
                if centered {
                    let mean = state(1).lerp(g, 1.0 - alpha);
                    spread = spread.addcmul(&mean, &mean, -1.0);
                    changed.push(mean);
                }
                let along = g / (spread.sqrt() + eps);
                if momentum > 0.0 {
                    let buffer = state(changed.len()) * momentum + along;
                    let new = buffer.fma(-number(0), x);
                    changed.push(buffer);
                    return (new, changed);
                }
                (x - along * number(0), changed)
            }
            Optimizer::Lion { betas: (one, two) } => {
                let mean = state(0);
                let along = mean.lerp(g, 1.0 - one).sign();
                (along.fma(-number(0), x * number(1)), vec![mean.lerp(g, 1.0 - two)])
            }
            Optimizer::Ema { decay } => (x.lerp(g, 1.0 - decay), Vec::new()),
        }
    }
}

/// Gradients with their global norm limited: each times `most` over the norm of all, if that is larger; and that norm. Norms are computed in f32, of
/// f64 in f64, and under JAX's strict promotion in the gradients' dtype. Without gradients there is nothing.
///
/// ```
/// use castwise::{clip_by_norm, prelude::*};
/// let cx = Eager::new(Rules::Torch);
/// let (a, b) = (cx.tensor(&Tensor::from([3.0f32])), cx.tensor(&Tensor::from([4.0f32])));
/// let (clipped, norm) = clip_by_norm(&[a, b], 1.0).ok_or("no gradients")?;
/// assert_eq!(norm.result()?.item::<f32>()?, 5.0);
/// assert!((clipped[1].result()?.item::<f32>()? - 0.8).abs() < 1e-5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn clip_by_norm<M: Mode>(gradients: &[Var<M>], most: f64) -> Option<(Vec<Var<M>>, Var<M>)> {
    let at = here();
    let wide = |g: &Var<M>| {
        let settings = M::settings(&g.0);
        if settings.rules == Rules::Jax && settings.strict {
            return g.clone();
        }
        // -0 changes no number.
        g + M::scalar(&g.0, Scalar::Float(-0.0), DType::F32, at.clone()).expand_like(g)
    };
    let squares = gradients.iter().map(|g| wide(g).norm().square());
    let norm = squares.reduce(|a, b| a + b)?.sqrt();
    // PyTorch's `clip_grad_norm_` adds 1e-6.
    let scale = (norm.add(1e-6).reciprocal() * most).clamp_max(1.0);
    Some((gradients.iter().map(|g| g.assign(g * &scale)).collect(), norm))
}

/// Gradients with each element limited to `-most` to `most`. NaNs stay.
///
/// ```
/// use castwise::{clip_by_value, prelude::*};
/// let g = Eager::new(Rules::Torch).tensor(&Tensor::from([3.0f32, -0.5, -4.0]));
/// assert_eq!(clip_by_value(&[g], 1.0)[0].result()?.to_vec::<f32>()?, [1.0, -0.5, -1.0]);
/// # Ok::<(), castwise::Error>(())
/// ```
#[track_caller]
pub fn clip_by_value<M: Mode>(gradients: &[Var<M>], most: f64) -> Vec<Var<M>> {
    gradients.iter().map(|g| g.assign(g.clamp(-most, most))).collect()
}

/// The scale of a loss whose gradients would underflow in a half dtype, from step to step, as PyTorch's `GradScaler` has it: a step whose gradients are not finite is
/// skipped, and lowers it; so many steps that are not skipped raise it.
///
/// ```
/// use castwise::{LossScale, all_finite, prelude::*};
/// let cx = Eager::new(Rules::Torch);
/// let (scale, count) = (cx.scalar(65536.0, DType::F32), cx.scalar(7, DType::I32));
/// let (g, w) = (cx.tensor(&Tensor::from([f16::INFINITY])), cx.tensor(&Tensor::from([f16::ONE])));
/// let fine = all_finite(&[g.clone()]).ok_or("no gradients")?;
/// let new = LossScale::kept(&fine, &w, &(&w - &g));
/// assert_eq!(new.result()?.item::<f16>()?, f16::ONE);
/// let (scale, count) = LossScale::default().next(&fine, &scale, &count);
/// assert_eq!((scale.result()?.item::<f32>()?, count.result()?.item::<i32>()?), (32768.0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossScale {
    /// By what it is raised.
    pub growth: f64,
    /// By what it is lowered.
    pub backoff: f64,
    /// After so many steps in a row it is raised.
    pub interval: i32,
}

impl Default for LossScale {
    /// PyTorch's: doubled after 2,000 steps, halved.
    fn default() -> LossScale {
        LossScale { growth: 2.0, backoff: 0.5, interval: 2000 }
    }
}

impl LossScale {
    /// A result of a step, or what it replaces if the gradients were not finite. `fine` is 0-d.
    #[track_caller]
    pub fn kept<M: Mode>(fine: &Var<M>, old: &Var<M>, new: &Var<M>) -> Var<M> {
        old.assign(fine.where_(new, old))
    }

    /// The scale after a step, a 0-d float, and the number of steps since it was changed or one was skipped, a 0-d integer.
    #[track_caller]
    pub fn next<M: Mode>(&self, fine: &Var<M>, scale: &Var<M>, count: &Var<M>) -> (Var<M>, Var<M>) {
        let more = count + 1;
        let full = more.ge(i64::from(self.interval));
        let grown = scale * self.growth;
        // One that would be infinite stays.
        let grown = full.logical_and(grown.isfinite()).where_(&grown, scale);
        let next = fine.where_(&grown, scale * self.backoff);
        let waits = fine.logical_and(full.logical_not());
        (scale.assign(next), count.assign(waits.where_(&more, 0)))
    }
}

/// Whether all elements of all gradients are finite: what a scaled loss must not have overflowed. Without gradients there is nothing.
///
/// ```
/// use castwise::{all_finite, prelude::*};
/// let cx = Eager::new(Rules::Torch);
/// let (g, w) = (cx.tensor(&Tensor::from([f32::INFINITY])), cx.tensor(&Tensor::from([1.0f32])));
/// let fine = all_finite(&[g.clone()]).ok_or("no gradients")?;
/// // The step is skipped.
/// assert_eq!(fine.where_(&w - g, &w).result()?.item::<f32>()?, 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn all_finite<M: Mode>(gradients: &[Var<M>]) -> Option<Var<M>> {
    gradients.iter().map(|g| g.isfinite().all()).reduce(|a, b| a.logical_and(&b))
}

impl<M: Mode> Var<M> {
    /// f32 rounded to bf16 at random: up with the probability of the part that is rounded, so that the mean is the number. NaN and
    /// infinities stay. The random bits are those of [`randint`](Var::randint) for the key, which must differ from step to step.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::full([10_000], 1.0f32 + 1.0 / 512.0)?);
    /// let up = x.stochastic_bf16(7).cast(DType::F32).gt(1.0).count_nonzero().result()?.item::<i64>()?;
    /// assert!((2200..2800).contains(&up));                             // a quarter of the way to 1 + 1/128
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn stochastic_bf16(&self, key: impl Into<Key>) -> Var<M> {
        let noise = self.randint(0i128, 0x1_0000i128, key, DType::I32);
        self.rounded_by(&noise)
    }

    /// As [`stochastic_bf16`](Var::stochastic_bf16), for a step's number, a 0-d integer that is fed, so that a program is compiled once: each
    /// element's noise is turned by the fraction of the golden ratio from step to step, so that it is evenly spread over the steps too.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Torch);
    /// let x = cx.tensor(&Tensor::full([64], 1.0f32 + 1.0 / 512.0)?);
    /// let mut up = 0;
    /// for step in 1..=64 {
    ///     let rounded = x.stochastic_bf16_at(7, &cx.scalar(step, DType::I32));
    ///     up += rounded.cast(DType::F32).gt(1.0).count_nonzero().result()?.item::<i64>()?;
    /// }
    /// assert!((1000..1050).contains(&up));                             // a quarter of 4096
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn stochastic_bf16_at(&self, key: impl Into<Key>, step: &Var<M>) -> Var<M> {
        let turn = step.cast(DType::I32) * 40503;
        let noise = self.randint(0i128, 0x1_0000i128, key, DType::I32) + turn;
        self.rounded_by(&noise.bitwise_and(0xffff))
    }

    /// f32 cut to bf16 after these 16 bits are added.
    #[track_caller]
    fn rounded_by(&self, noise: &Var<M>) -> Var<M> {
        let rounded = (self.view_as(DType::I32) + noise).bitwise_and(-0x1_0000i64).view_as(DType::F32);
        self.isfinite().where_(&rounded, self).cast(DType::BF16)
    }
}
