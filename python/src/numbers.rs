//! Python numbers for placeholders, which have dtypes.
//!
//! Guarantees: a number is refused if the dtype is of a lower category, or does not hold the integer. Does not: check shapes.

use castwise::{DType, Eager, Error, Result, Rules, Scalar, Tensor};

/// A number as the 0-d tensor that is fed for a placeholder of this name and dtype.
pub fn fed(name: &str, number: Scalar, dtype: DType) -> Result<Tensor> {
    let wrong = |why: String| {
        let problem = format!("is the number {number}, the program declares {dtype}{why}");
        Err(Error::Feed { name: name.into(), problem })
    };
    if number.category() > dtype.category() {
        return wrong(String::new());
    }
    match (number, dtype.int_range()) {
        (Scalar::Int(v), Some((low, high))) if !(low..=high).contains(&v) => {
            wrong(format!(", which holds {low} to {high}"))
        }
        // PyTorch's rules have every dtype.
        _ => Eager::new(Rules::Torch).scalar(number, dtype).result(),
    }
}
