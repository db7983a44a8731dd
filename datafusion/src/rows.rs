//! The rows of a batch that an aggregate counts.
//!
//! Guarantees: rows with a null, and rows that a filter leaves out, are not computed. Does not: reduce.

use castwise::DType;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::and;
use datafusion::common::Result;

use crate::columns::Column;
use crate::compiled::Compiled;

/// The rows of a batch that count: those without nulls that the filter selects, and the mask that selects them; `None`
/// if there are none.
pub(crate) fn columns_of<'a>(
    compiled: &Compiled,
    values: &'a [ArrayRef],
    filter: Option<&BooleanArray>,
) -> Result<Option<(Vec<Column<'a>>, Option<BooleanArray>)>> {
    let rows = values.first().map_or(0, |v| v.len());
    let one = |(v, dtype): (&'a ArrayRef, &DType)| Column::of_rows(v, *dtype);
    let columns: Vec<Column<'a>> = values.iter().zip(&compiled.dtypes).map(one).collect::<Result<_>>()?;
    let used = columns.iter().zip(&compiled.used).filter(|(_, used)| **used);
    let valid = used.fold(None, |all, (c, _)| NullBuffer::union(all.as_ref(), c.validity().as_ref()));
    let mask = match valid {
        Some(valid) => Some(both(&BooleanArray::new(valid.into_inner(), None), filter)?),
        None => filter.cloned(),
    };
    match mask {
        _ if rows == 0 => Ok(None),
        Some(mask) if mask.true_count() == 0 => Ok(None),
        Some(mask) if mask.true_count() < rows => {
            let columns = columns.iter().map(|c| c.filtered(&mask)).collect::<Result<_>>()?;
            Ok(Some((columns, Some(mask))))
        }
        _ => Ok(Some((columns, None))),
    }
}

/// The rows that both masks select.
fn both(a: &BooleanArray, b: Option<&BooleanArray>) -> Result<BooleanArray> {
    Ok(match b {
        Some(b) => and(a, b)?,
        None => a.clone(),
    })
}
