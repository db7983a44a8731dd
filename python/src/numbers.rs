//! Python numbers for placeholders, which have dtypes.
//!
//! Guarantees: a number is refused if the dtype is of a lower category, or does not hold the integer. Does not: check shapes.

use castwise::{Category, DType, Eager, Error, Result, Rules, Scalar, Tensor};

/// The least and the largest element of an integer dtype.
fn range(dtype: DType) -> Option<(i128, i128)> {
    let unsigned = dtype.is_unsigned();
    let beyond = 1i128 << (8 * dtype.size() - usize::from(!unsigned));
    (dtype.category() == Category::Int).then_some((if unsigned { 0 } else { -beyond }, beyond - 1))
}

/// A number as the 0-d tensor that is fed for a placeholder of this name and dtype.
pub fn fed(name: &str, number: Scalar, dtype: DType) -> Result<Tensor> {
    let wrong = |why: String| {
        let problem = format!("is the number {number}, the program declares {dtype}{why}");
        Err(Error::Feed { name: name.into(), problem })
    };
    if number.category() > dtype.category() {
        return wrong(String::new());
    }
    match (number, range(dtype)) {
        (Scalar::Int(v), Some((low, high))) if !(low..=high).contains(&v) => {
            wrong(format!(", which holds {low} to {high}"))
        }
        // PyTorch's rules have every dtype.
        _ => Eager::new(Rules::Torch).scalar(number, dtype).result(),
    }
}
