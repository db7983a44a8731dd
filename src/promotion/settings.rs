//! The settings of a program: the rule set, the default dtype, when f16 and bf16 are rounded, what integers divided by zero
//! give, and whether sums of products are contracted.
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
    /// JAX's lattice: an integer never widens a float, and a result of scalars, or of an integer and a float scalar, is
    /// weak, which means that it promotes as a scalar does.
    Jax,
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
        Rules::Jax,
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
    /// When intermediate values of f16, bf16 and 8-bit floats are rounded.
    pub rounding: Rounding,
    /// What `//` and `%` of integers by zero give.
    pub zero_division: ZeroDivision,
    /// Whether sums of products are fused where PyTorch fuses them.
    pub contraction: Contraction,
    /// Of JAX's rules: whether the default dtypes have 64 bits (`jax_enable_x64`), so that a float scalar is f64 and not
    /// f32, and u32 with i32 gives i64 and not i32. Tensors of 64 bits exist either way. Other rule sets ignore it.
    pub x64: bool,
    /// Of JAX's rules: whether tensors of different dtypes are refused (`jax_numpy_dtype_promotion = "strict"`). Other
    /// rule sets ignore it.
    pub strict: bool,
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

/// Whether the product and the sum of `add_scaled`, `sub_scaled`, `addcmul` and `lerp` in f32 and f64 are rounded once.
/// Other dtypes, and all other ops, are never contracted.
///
/// ```
/// use castwise::{Contraction, prelude::*};
/// let scaled = |settings: Settings| {
///     let cx = Eager::with_settings(settings);
///     let (x, y) = (cx.tensor(&Tensor::from([1.0f32])), cx.tensor(&Tensor::from([-1.0f32 - f32::EPSILON])));
///     x.add_scaled(&y, 1.0 - f64::from(f32::EPSILON)).result()?.item::<f32>()
/// };
/// let torch = Settings::new(Rules::Torch);
/// assert_eq!(scaled(torch)?, 0.0);                                       // the product was rounded to -1
/// assert_eq!(scaled(torch.with_contraction(Contraction::Torch))?, f32::EPSILON * f32::EPSILON);
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Contraction {
    /// Product and sum are rounded one after the other.
    #[default]
    Off,
    /// As PyTorch's loops on x86-64 do it, by one fused multiply-add. Typed programs show the op that is applied instead:
    /// `add_scaled_fma`, `sub_scaled_fma`, `addcmul_fma`, `lerp_fma`.
    Torch,
}

impl fmt::Display for Contraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Contraction::Off { "off" } else { "torch" })
    }
}

impl std::str::FromStr for Contraction {
    type Err = String;

    fn from_str(s: &str) -> Result<Contraction, String> {
        match s {
            "off" => Ok(Contraction::Off),
            "torch" => Ok(Contraction::Torch),
            _ => Err(format!("unknown contraction `{}`: `off` or `torch`", crate::base::error::shown(s))),
        }
    }
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

/// A setting that is on or off, and belongs to some rule sets only. The text form and the command refuse it with others.
#[derive(Clone, Copy)]
pub(crate) struct Flag {
    /// Its name in text and in the command.
    pub(crate) name: &'static str,
    /// The field.
    pub(crate) of: fn(&mut Settings) -> &mut bool,
}

impl Flag {
    /// Every flag of any rule set that has this name.
    pub(crate) fn named(name: &str) -> Option<Flag> {
        Rules::ALL.iter().flat_map(|r| r.flags()).find(|f| f.name == name).copied()
    }

    /// The flag of this name, if the rules have it.
    pub(crate) fn find(rules: Rules, name: &str) -> Result<Flag, String> {
        if let Some(flag) = rules.flags().iter().find(|f| f.name == name) {
            return Ok(*flag);
        }
        let have = |r: &&Rules| r.flags().iter().any(|f| f.name == name);
        let of: Vec<String> = Rules::ALL.iter().filter(have).map(|r| format!("`{r}`")).collect();
        let name = crate::base::error::shown(name);
        Err(match &of[..] {
            [] => format!("the rules `{rules}` have no setting `{name}`"),
            of => format!("the rules `{rules}` have no setting `{name}`, which belongs to {}", of.join(" and ")),
        })
    }
}

/// When intermediate values of f16, bf16 and 8-bit floats are rounded to their dtype.
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

/// Reads the name of a rule set and of those of its settings that are on: `jax,x64,strict`. All else has its default.
///
/// ```
/// use castwise::{Rules, Settings};
/// assert_eq!("jax,x64".parse(), Ok(Settings::new(Rules::Jax).with_x64(true)));
/// assert!("torch,x64".parse::<Settings>().is_err());
/// ```
impl std::str::FromStr for Settings {
    type Err = String;

    fn from_str(s: &str) -> Result<Settings, String> {
        let mut parts = s.split(',');
        let mut settings = Settings::new(parts.next().unwrap_or_default().parse()?);
        for name in parts {
            *(Flag::find(settings.rules, name)?.of)(&mut settings) = true;
        }
        Ok(settings)
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
        let (default_dtype, rounding) = (DType::F32, Rounding::Exact);
        let (zero_division, contraction) = (ZeroDivision::Rules, Contraction::Off);
        Settings { rules, default_dtype, rounding, zero_division, contraction, x64: false, strict: false }
    }

    /// These settings with other rules. Settings that the other rules do not have stay, and are ignored by them.
    pub const fn with_rules(self, rules: Rules) -> Settings {
        Settings { rules, ..self }
    }

    /// These settings with the rules of others, and their `x64` and `strict`.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let wide = Settings::new(Rules::Torch).with_default_dtype(DType::F64);
    /// let jax: Settings = "jax,x64".parse()?;
    /// assert_eq!(wide.with_rules_of(jax), wide.with_rules(Rules::Jax).with_x64(true));
    /// # Ok::<(), String>(())
    /// ```
    pub const fn with_rules_of(self, others: Settings) -> Settings {
        Settings { rules: others.rules, x64: others.x64, strict: others.strict, ..self }
    }

    /// The rule set with those of its settings that are on, as [`Settings`] are parsed: `jax,x64`.
    pub fn named(&self) -> String {
        let on = self.flags().map(|flag| format!(",{flag}"));
        std::iter::once(self.rules.to_string()).chain(on).collect()
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

    /// These settings with or without contraction of sums of products.
    pub const fn with_contraction(self, contraction: Contraction) -> Settings {
        Settings { contraction, ..self }
    }

    /// These settings with default dtypes of 64 bits, or of 32 bits, under JAX's rules.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let half = |s: Settings| (Eager::with_settings(s).tensor(&Tensor::from([1i32, 2])) * 0.5).result();
    /// let jax = Settings::new(Rules::Jax);
    /// assert_eq!(half(jax)?.dtype(), DType::F32);
    /// assert_eq!(half(jax.with_x64(true))?.dtype(), DType::F64);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub const fn with_x64(self, x64: bool) -> Settings {
        Settings { x64, ..self }
    }

    /// These settings with strict promotion, or the standard one, under JAX's rules.
    pub const fn with_strict(self, strict: bool) -> Settings {
        Settings { strict, ..self }
    }

    /// The flags of the rule set that are on.
    pub(crate) fn flags(mut self) -> impl Iterator<Item = &'static str> {
        self.rules.flags().iter().filter(move |f| *(f.of)(&mut self)).map(|f| f.name)
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
