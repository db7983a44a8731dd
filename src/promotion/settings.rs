//! The settings of a program: the rule set, the default dtype, when f16 and bf16 are rounded, and what integers divided
//! by zero give.
//!
//! Guarantees: settings are plain data and are printed with the program. Does not: decide dtypes.

use std::fmt;

use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Phrase};

/// The rule set that decides how dtypes promote.
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
    /// NumPy 2's rules (NEP 50): the least dtype that holds all arrays and NumPy scalars, whatever their rank; Python
    /// scalars follow them. Integers too large for a dtype are refused; an integer divided by zero is 0, unless
    /// [`zero_division`](Settings::zero_division) asks for an error.
    NumPy,
    /// PaddlePaddle's documented tables: float dtypes promote with float dtypes, and complex dtypes with any. All other
    /// mixes of tensors are errors. A scalar follows the tensor.
    Paddle,
    /// PyTorch's lattice over all dtypes, with three tiers of operands: tensors with dims, 0-d tensors, scalars.
    #[default]
    Torch,
    /// A rule set for tests, in `toy.rs`.
    #[cfg(test)]
    Toy,
}

impl Rules {
    /// Every rule set.
    pub const ALL: &'static [Rules] = &[
        Rules::Torch,
        Rules::Paddle,
        Rules::NumPy,
        #[cfg(test)]
        Rules::Toy,
    ];

    /// The other rule sets.
    pub fn others(self) -> impl Iterator<Item = Rules> {
        Rules::ALL.iter().copied().filter(move |r| *r != self)
    }

    /// The rule set's name in a message.
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

/// What promotion depends on besides the operands. Each program has its own settings, which are printed with it.
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
    /// The rule set.
    pub rules: Rules,
    /// The dtype of a float scalar, and the dtype that integers are cast to if an op computes in floats (PyTorch's
    /// `torch.set_default_dtype`): f16, bf16, f32 or f64. `check` reports any other dtype as a mistake.
    pub default_dtype: DType,
    /// When intermediate values of f16 and bf16 are rounded.
    pub rounding: Rounding,
    /// What `//` and `%` of integers by zero give.
    pub zero_division: ZeroDivision,
}

/// What the quotients and remainders of integers by zero give (`floor_divide`, `remainder`, `fmod`, `div_trunc`).
///
/// ```
/// use castwise::{Error, ZeroDivision, prelude::*};
/// let divide = |settings: Settings| {
///     let cx = Eager::with_settings(settings);
///     cx.tensor(&Tensor::from([7i32, 7])).floor_divide(cx.tensor(&Tensor::from([2i32, 0]))).result()
/// };
/// let numpy = Settings::new(Rules::NumPy);
/// assert_eq!(divide(numpy)?.to_vec::<i32>()?, [3, 0]);
/// let strict = divide(numpy.with_zero_division(ZeroDivision::Error));
/// assert!(strict.is_err_and(|e| e.to_string().contains("integer division by zero")));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ZeroDivision {
    /// What the rule set says: NumPy's rules give 0, all others an error.
    #[default]
    Rules,
    /// An error, as under `np.errstate(divide="raise")`.
    Error,
}

impl fmt::Display for ZeroDivision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == ZeroDivision::Rules { "rules" } else { "error" })
    }
}

impl std::str::FromStr for ZeroDivision {
    type Err = String;

    fn from_str(s: &str) -> Result<ZeroDivision, String> {
        match s {
            "rules" => Ok(ZeroDivision::Rules),
            "error" => Ok(ZeroDivision::Error),
            _ => Err(format!("unknown zero division `{}`: `rules` or `error`", crate::base::error::shown(s))),
        }
    }
}

/// When intermediate values of f16 and bf16 are rounded to their dtype.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// After every op. Fused results equal those of op-by-op execution bit for bit.
    #[default]
    Exact,
    /// Only when a value is stored. Inside a fused loop, intermediate values stay in f32, as with `torch.compile`.
    /// Results depend on what is fused. A stored value is the f32 result, rounded; functions of f16 may thus be rounded
    /// twice. This is never the default.
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
    /// Settings for a rule set, with the default dtype f32 and exact rounding.
    pub const fn new(rules: Rules) -> Settings {
        Settings { rules, default_dtype: DType::F32, rounding: Rounding::Exact, zero_division: ZeroDivision::Rules }
    }

    /// These settings with another default dtype.
    pub const fn with_default_dtype(self, default_dtype: DType) -> Settings {
        Settings { default_dtype, ..self }
    }

    /// These settings with another rounding.
    pub const fn with_rounding(self, rounding: Rounding) -> Settings {
        Settings { rounding, ..self }
    }

    /// These settings with another result of integers divided by zero.
    pub const fn with_zero_division(self, zero_division: ZeroDivision) -> Settings {
        Settings { zero_division, ..self }
    }

    /// Returns an error if the default dtype is not a float dtype that ops compute in, which the type of the field can't
    /// exclude.
    pub(crate) fn check(&self) -> Result<(), Diagnostic> {
        let refused = |why| Diagnostic::new(DiagnosticKind::BadParameter, why).help("choose f16, bf16, f32 or f64");
        no_default_dtype(self.default_dtype).map_or(Ok(()), |why| Err(refused(why)))
    }
}

/// The reason for which a dtype can't be the default dtype.
pub(crate) fn no_default_dtype(d: DType) -> Option<String> {
    let why = match d.is_float() {
        true if d.is_byte_float() => "which is only stored and cast",
        true => return None,
        false => "not a float dtype",
    };
    Some(format!("the default dtype is {d}, {why}"))
}
