//! What a program chooses: whose rules, the default dtype, when half precision is rounded.
//!
//! Guarantees: plain data, printed with the program. Does not: decide anything by itself.

use std::fmt;

use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Phrase};

/// Whose rules decide about mixed dtypes.
///
/// ```
/// use castwise::prelude::*;
/// let (i, f) = (Tensor::from([1i64, 2]), Tensor::from([0.5f32, 0.5]));
/// let mix = |rules| (Eager::new(rules).tensor(&i) + Eager::new(rules).tensor(&f)).result();
/// assert_eq!(mix(Rules::Torch)?.dtype(), DType::F32);
/// assert!(mix(Rules::Paddle).is_err());
/// assert_eq!("paddle".parse(), Ok(Rules::Paddle));
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rules {
    /// PaddlePaddle's documented table: floats mix with floats, complex with anything; every other mix of tensors is
    /// an error; a scalar follows the tensor.
    Paddle,
    /// PyTorch's lattice over all dtypes, in three tiers: tensors with dims, 0-d tensors, scalars.
    #[default]
    Torch,
    /// The tests' own: see `toy.rs`.
    #[cfg(test)]
    Toy,
}

impl Rules {
    /// Every rule set.
    pub const ALL: &'static [Rules] = &[
        Rules::Torch,
        Rules::Paddle,
        #[cfg(test)]
        Rules::Toy,
    ];

    /// The other rule sets.
    pub fn others(self) -> impl Iterator<Item = Rules> {
        Rules::ALL.iter().copied().filter(move |r| *r != self)
    }

    /// The rule set as a message names it.
    pub(super) fn mention(self) -> Phrase {
        Phrase::setting("rules", self.name(), format!("Rules::{self:?}"))
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Rules {
    type Err = String;

    fn from_str(s: &str) -> Result<Rules, String> {
        let named = |r: &&Rules| r.name() == s;
        Rules::ALL.iter().find(named).copied().ok_or_else(|| {
            let names: Vec<String> = Rules::ALL.iter().map(|r| format!("`{r}`")).collect();
            let (last, first) = names.split_last().map_or(("", &[][..]), |(l, f)| (l.as_str(), f));
            format!("unknown rules `{}`: {} or {last}", crate::base::error::shown(s), first.join(", "))
        })
    }
}

/// What promotion depends on besides the operands: chosen per program, printed with it.
///
/// ```
/// use castwise::prelude::*;
/// let p = Program::with_settings(Settings::new(Rules::Torch).with_default_dtype(DType::F64));
/// let half = p.data("n", DType::I32, [4]) / 2;                           // integers divide to the default dtype
/// assert_eq!(p.infer()?.dtype(&half), Some(DType::F64));
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Settings {
    /// Whose rules.
    pub rules: Rules,
    /// What a float scalar counts as, and what integers become where an op wants floats (PyTorch's
    /// `torch.set_default_dtype`): f16, bf16, f32 or f64. Any other is a mistake that `check` reports.
    pub default_dtype: DType,
    /// When chains of f16 and bf16 are rounded.
    pub rounding: Rounding,
}

/// When values of f16 and bf16 between two ops are rounded to their dtype.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// After every op: fused results are those of one op at a time, bit for bit.
    #[default]
    Exact,
    /// Only where a value is stored: inside a fused loop they stay in f32, as with `torch.compile`. Results depend
    /// on what is fused, and what is stored is the f32 result rounded, which for functions of f16 may be rounded
    /// twice; never the default.
    Relaxed,
}

impl fmt::Display for Rounding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Rounding::Exact { "exact" } else { "relaxed" })
    }
}

impl std::str::FromStr for Rounding {
    type Err = String;

    fn from_str(s: &str) -> Result<Rounding, String> {
        match s {
            "exact" => Ok(Rounding::Exact),
            "relaxed" => Ok(Rounding::Relaxed),
            _ => Err(format!("unknown rounding `{}`: `exact` or `relaxed`", crate::base::error::shown(s))),
        }
    }
}

impl From<Rules> for Settings {
    fn from(rules: Rules) -> Settings {
        Settings::new(rules)
    }
}

impl Settings {
    /// The rules with the default dtype f32.
    pub const fn new(rules: Rules) -> Settings {
        Settings { rules, default_dtype: DType::F32, rounding: Rounding::Exact }
    }

    /// The same with another default dtype.
    pub const fn with_default_dtype(self, default_dtype: DType) -> Settings {
        Settings { default_dtype, ..self }
    }

    /// The same with another rounding.
    pub const fn with_rounding(self, rounding: Rounding) -> Settings {
        Settings { rounding, ..self }
    }

    /// Refuses a default dtype that is no float: what settings can say that no program can mean.
    pub(crate) fn check(&self) -> Result<(), Diagnostic> {
        if self.default_dtype.is_float() {
            return Ok(());
        }
        let message = format!("the default dtype is {}, not a float dtype", self.default_dtype);
        Err(Diagnostic::new(DiagnosticKind::BadParameter, message).help("choose f16, bf16, f32 or f64"))
    }
}
