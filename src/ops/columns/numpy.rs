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

overrides! {
    NumpyColumns:
    /// Overrides how operands promote.
    promotes(promotion: Promotion);
    /// Overrides the accepted dtypes.
    accepts(accepts: DTypeSet);
    /// Bools alone are cast to this dtype.
    bools(bools: DType);
    /// Overrides the default of the number among the attributes.
    number(number: f64);
    /// Overrides the default of the choice among the attributes.
    choice(choice: Choice);
}
