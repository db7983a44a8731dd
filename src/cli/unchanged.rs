//! Tensors of dtypes that castwise lacks, where an expression only names an input: they are copied byte for byte.
//!
//! Does not: copy such tensors where an expression computes with them, which is an error.

use castwise::Error;
use castwise::io::StoredDType;

use super::expression::Expression;
use super::inputs::Input;
use super::report;

/// A tensor to copy.
pub(super) struct Unchanged {
    pub(super) name: String,
    /// The position of the input that it is copied from.
    pub(super) input: usize,
    pub(super) dtype: StoredDType,
    pub(super) shape: Vec<usize>,
    /// The expression: the input's name.
    pub(super) text: String,
}

impl Unchanged {
    /// The tensor that an expression copies from an input, if its dtype is one that castwise lacks.
    pub(super) fn of(name: &str, expression: &Expression, inputs: &[Input]) -> Option<Unchanged> {
        let ([input], []) = (&expression.uses[..], &expression.parameters[..]) else { return None };
        let from = inputs.get(*input).filter(|i| expression.text.trim() == i.name)?;
        let (dtype, shape) = from.foreign(name)?;
        let (dtype, shape) = (StoredDType::Foreign(dtype), shape.to_vec());
        Some(Unchanged { name: name.to_string(), input: *input, dtype, shape, text: expression.text.clone() })
    }

    /// The size of the elements in bytes.
    pub(super) fn bytes(&self) -> Result<u64, Error> {
        Ok(self.dtype.byte_len(&self.shape)? as u64)
    }
}

/// The note about these tensors, if there are any.
pub(super) fn note(all: &[Unchanged]) -> Option<String> {
    let mut dtypes: Vec<String> = Vec::new();
    for u in all {
        let dtype = u.dtype.to_string();
        if !dtypes.contains(&dtype) {
            dtypes.push(dtype);
        }
    }
    let (count, dtypes) = (report::tensors(all.len()), report::listed(&dtypes, "and"));
    let names = report::names(all.iter().map(|u| u.name.as_str()));
    (!all.is_empty())
        .then(|| format!("note: {count} of {dtypes}, which castwise does not have, copied unchanged: {names}"))
}
