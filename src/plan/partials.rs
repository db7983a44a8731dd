//! How reductions are divided into partial results, for code that reduces a tensor part by part.
//!
//! Guarantees: if each part has a whole number of these units, and the partial results of all units are reduced as one tensor in
//! their order, in the dtype that the reduction computes in, the result has the bits of the reduction of the whole tensor. Does not: reduce.

use crate::kernels::reduce::side_by_side;
use crate::plan::tuning::{FOLDED_ROWS, PIECE, TILE};

/// The elements of a unit of a reduction over all dims: each is reduced to one element. The last unit may be shorter.
///
/// ```
/// use castwise::{parts::elements, prelude::*};
/// let p = Program::new(Rules::Torch);
/// let x = p.data("x", DType::F32, [None]);
/// let sum = |t: Tensor| -> castwise::Result<Tensor> {
///     Ok(Executor::new().run(&p, feeds! { "x" => t }, [&x.sum()])?.remove(0))
/// };
/// let all: Vec<f32> = (0..50_000).map(|i| (i as f32).sqrt()).collect();
/// let part = |of: &[f32]| sum(Tensor::from_slice(of, [of.len()])?)?.item::<f32>();
/// let partial = all.chunks(elements()).map(part).collect::<castwise::Result<Vec<f32>>>()?;
/// let whole = sum(Tensor::from_vec(all, [50_000])?)?;
/// let count = partial.len();
/// assert_eq!(sum(Tensor::from_vec(partial, [count])?)?.as_bytes(), whole.as_bytes());
/// # Ok::<(), castwise::Error>(())
/// ```
pub fn elements() -> usize {
    PIECE
}

/// The rows of a unit of a reduction over the first dim of rows of `width` elements: each unit is reduced to one row. The last
/// unit has the remaining rows. `None` if a tensor of so many rows can't be reduced in such units with the same bits.
///
/// ```
/// use castwise::parts::rows;
/// assert_eq!((rows(1_000_000, 4096), rows(1_000_001, 3)), (Some(64), None));
/// ```
pub fn rows(count: usize, width: usize) -> Option<usize> {
    let together = side_by_side(count, width);
    let unit = FOLDED_ROWS * together;
    let is_unit = |n: usize| width.saturating_mul(n) > TILE && side_by_side(n, width) == together;
    let rest = count % unit;
    (width > 1 && is_unit(count) && is_unit(unit) && (rest == 0 || is_unit(rest))).then_some(unit)
}
