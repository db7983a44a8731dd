//! NumPy's column of the op table.
//!
//! Guarantees: a row that names none of it has `NUMPY`. Does not: decide anything; `promotion/numpy.rs` reads it.

use super::{Choice, Promotion};
use crate::base::dtype::{DType, DTypeSet};

/// The column of NumPy's rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NumpyColumns {
    /// How operands promote, if it differs from the row.
    pub promotion: Option<Promotion>,
    /// The common dtypes that the op accepts, if they differ from the row.
    pub accepts: Option<DTypeSet>,
    /// The dtype that bools are cast to if all operands are bool, for ops that NumPy has no bool arithmetic of.
    pub bools: Option<DType>,
    /// The default of the number among the attributes, if it differs from the row.
    pub number: Option<f64>,
    /// The default of the choice among the attributes, if it differs from the row.
    pub choice: Option<Choice>,
}

/// NumPy's column without overrides.
pub(in crate::ops) const NUMPY: NumpyColumns =
    NumpyColumns { promotion: None, accepts: None, bools: None, number: None, choice: None };

impl NumpyColumns {
    /// Overrides how operands promote.
    pub(in crate::ops) const fn promotes(self, promotion: Promotion) -> NumpyColumns {
        NumpyColumns { promotion: Some(promotion), ..self }
    }

    /// Overrides the accepted dtypes.
    pub(in crate::ops) const fn accepts(self, accepts: DTypeSet) -> NumpyColumns {
        NumpyColumns { accepts: Some(accepts), ..self }
    }

    /// Overrides the default of the number among the attributes.
    pub(in crate::ops) const fn number(self, default: f64) -> NumpyColumns {
        NumpyColumns { number: Some(default), ..self }
    }

    /// Overrides the default of the choice among the attributes.
    pub(in crate::ops) const fn choice(self, default: Choice) -> NumpyColumns {
        NumpyColumns { choice: Some(default), ..self }
    }

    /// Bools alone are cast to this dtype.
    pub(in crate::ops) const fn bools(self, to: DType) -> NumpyColumns {
        NumpyColumns { bools: Some(to), ..self }
    }
}
