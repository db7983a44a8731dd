//! Reductions over contiguous rows.
//!
//! Guarantees: each row is combined by the op's fold kernel in an order that depends on its length alone; a mean is the
//! sum over the number of elements. Does not: permute dims or widen half types; `launch` does.

use super::rows::kernel;
use super::{CpuLevel, operands};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Op;

/// Combines each of the rows of `run` elements in `from` into one element of `out`.
pub(crate) fn reduce(op: Op, dtype: DType, from: &[u8], run: usize, out: &mut [u8]) -> Result<()> {
    let size = dtype.size();
    let rows = out.len() / size;
    let f =
        kernel(op, dtype, CpuLevel::get()).ok_or_else(|| Error::Internal(format!("no kernel for {op} in {dtype}")))?;
    let aligned = |p: *const u8| p.addr().is_multiple_of(size.min(8));
    if from.len() != rows * run * size || !aligned(from.as_ptr()) || !aligned(out.as_ptr()) {
        return Err(Error::Internal(format!("{op} of {rows} rows of {run} {dtype} in {} bytes", from.len())));
    }
    for row in 0..rows {
        // SAFETY: row `row` lies inside both buffers, whose lengths and alignment were just checked; they are a
        // shared and an exclusive borrow, so they don't overlap; bool bytes of tensors are 0 or 1.
        unsafe {
            let start = from.as_ptr().add(row * run * size);
            f(operands([start]), out.as_mut_ptr().add(row * size), run);
        }
    }
    if op == Op::Mean {
        divide(dtype, out, run);
    }
    Ok(())
}

/// Divides every element (or part) by a count. NaNs stay canonical: 0 / 0 is made so.
fn divide(dtype: DType, all: &mut [u8], n: usize) {
    if dtype.real() == DType::F32 {
        for x in bytemuck::cast_slice_mut::<u8, f32>(all) {
            *x /= n as f32;
            *x = if x.is_nan() { f32::NAN } else { *x };
        }
    } else {
        for x in bytemuck::cast_slice_mut::<u8, f64>(all) {
            *x /= n as f64;
            *x = if x.is_nan() { f64::NAN } else { *x };
        }
    }
}
