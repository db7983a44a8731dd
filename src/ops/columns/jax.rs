//! JAX's column of the op table.
//!
//! Guarantees: a row that names none of it has `JAX`. Does not: decide anything; `promotion/jax.rs` reads it.

use super::{Choice, Promotion};
use crate::base::dtype::DTypeSet;

/// Whether a result is weak if its operands' bound in JAX's lattice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// Yes.
    Kept,
    /// No: reductions, `hypot`, `log2`, ….
    Dropped,
    /// Unless it is complex: `logaddexp`.
    Real,
    /// Unless it is computed from integers: `angle`.
    Float,
    /// If the first operand is a scalar: `heaviside`.
    FirstScalar,
    /// `pow`: yes with a scalar exponent. A power of integers is strong, and so is that of a float by an integer tensor.
    Power,
}

/// The column of JAX's rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct JaxColumns {
    /// How operands promote, if it differs from the row.
    pub promotion: Option<Promotion>,
    /// The common dtypes that the op accepts, if they differ from the row.
    pub accepts: Option<DTypeSet>,
    /// Whether the op keeps that its operands are weak.
    pub weak: Weakness,
    /// Whether the operand promotes with the scalar 0, because the function is defined so: `relu` is a maximum with it.
    pub beside_zero: bool,
    /// Whether all integers become the default float dtype, whatever their width.
    pub default_float: bool,
    /// Whether the second operand takes no part in promotion: the exponent of `ldexp`.
    pub count_apart: bool,
    /// Whether integers become floats also where the choice says that the result is one of the elements.
    pub floats_elements: bool,
    /// Whether positions are i32 also where the default integer is i64.
    pub short_positions: bool,
    /// The default of the number among the attributes, if it differs from the row.
    pub number: Option<f64>,
    /// The default of the choice among the attributes, if it differs from the row.
    pub choice: Option<Choice>,
}

/// JAX's column without overrides: a result of weak operands is weak.
pub(in crate::ops) const JAX: JaxColumns = JaxColumns {
    promotion: None,
    accepts: None,
    weak: Weakness::Kept,
    beside_zero: false,
    floats_elements: false,
    short_positions: false,
    default_float: false,
    count_apart: false,
    number: None,
    choice: None,
};

impl JaxColumns {
    /// Overrides when a result is weak.
    pub(in crate::ops) const fn weak(self, weak: Weakness) -> JaxColumns {
        JaxColumns { weak, ..self }
    }

    /// No result is weak.
    pub(in crate::ops) const fn strong(self) -> JaxColumns {
        self.weak(Weakness::Dropped)
    }

    /// Integers become floats also where the result is one of the elements.
    pub(in crate::ops) const fn floats_elements(self) -> JaxColumns {
        JaxColumns { floats_elements: true, ..self }
    }

    /// The operand promotes with the scalar 0.
    pub(in crate::ops) const fn beside_zero(self) -> JaxColumns {
        JaxColumns { beside_zero: true, ..self }
    }

    /// Positions are i32.
    pub(in crate::ops) const fn short_positions(self) -> JaxColumns {
        JaxColumns { short_positions: true, ..self }
    }

    /// Integers become the default float dtype.
    pub(in crate::ops) const fn default_float(self) -> JaxColumns {
        JaxColumns { default_float: true, ..self }
    }

    /// The second operand takes no part in promotion.
    pub(in crate::ops) const fn count_apart(self) -> JaxColumns {
        JaxColumns { count_apart: true, ..self }
    }
}

overrides! {
    JaxColumns:
    /// Overrides how operands promote.
    promotes(promotion: Promotion);
    /// Overrides the accepted dtypes.
    accepts(accepts: DTypeSet);
    /// Overrides the default of the number among the attributes.
    number(number: f64);
    /// Overrides the default of the choice among the attributes.
    choice(choice: Choice);
}
