//! Lists whose length follows from a user's data: running out of memory for them is an error.
//!
//! Does not: allocate tensors; `tensor` does.

use super::error::{Error, Result};

/// Makes a list at least `n` elements long; new ones have the default.
pub(crate) fn lengthen<T: Clone + Default>(list: &mut Vec<T>, n: usize) -> Result<()> {
    if list.len() < n {
        let bytes = n.saturating_mul(size_of::<T>());
        list.try_reserve_exact(n - list.len()).map_err(|_| Error::OutOfMemory { bytes })?;
        list.resize(n, T::default());
    }
    Ok(())
}

/// A list of `n` elements that have the default.
pub(crate) fn list<T: Clone + Default>(n: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    lengthen(&mut all, n)?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_grow_and_never_shrink_and_too_long_ones_are_refused() -> Result<()> {
        let mut all = vec![7u128];
        lengthen(&mut all, 3)?;
        lengthen(&mut all, 2)?;
        assert_eq!((all, list::<u8>(2)?), (vec![7, 0, 0], vec![0, 0]));
        let refused = list::<u128>(usize::MAX / 16);
        assert!(matches!(refused, Err(Error::OutOfMemory { bytes }) if bytes == usize::MAX / 16 * 16), "{refused:?}");
        Ok(())
    }
}
