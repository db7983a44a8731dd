//! Kernels that write each element of a row as often as its block is long.
//!
//! Does not: know where a row of blocks begins; `driver` does.

use super::{BlockFn, CpuLevel, levels, slice_mut};
use crate::ops::MAX_OPERANDS;

/// A kernel for elements of so many bytes. The first operand is the element of the first block, and need not be aligned. Three more are numbers:
/// the bytes from a block's element to the next one's, which may be negative, the length of a block, and what is left of the first one.
///
/// # Safety
/// As for a [`BlockFn`], but for the operands: there is an element for each block that `n` elements are of.
pub(crate) fn repeat_kernel(size: usize, level: CpuLevel) -> BlockFn {
    match size {
        1 => repeat::<u8>(level),
        2 => repeat::<u16>(level),
        4 => repeat::<u32>(level),
        8 => repeat::<u64>(level),
        _ => repeat::<[u64; 2]>(level),
    }
}

/// # Safety
/// As for what [`repeat_kernel`] gives.
#[inline(always)]
unsafe fn repeat_body<T: Copy>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    let (step, length, mut left) = (args[1].addr() as isize, args[2].addr().max(1), args[3].addr().max(1));
    // SAFETY: the contract.
    let (mut from, mut out) = (args[0], unsafe { slice_mut::<T>(out, n) });
    while !out.is_empty() {
        let (own, rest) = out.split_at_mut(left.min(out.len()));
        // SAFETY: the contract: there is an element for each block.
        own.fill(unsafe { from.cast::<T>().read_unaligned() });
        (from, out, left) = (from.wrapping_offset(step), rest, length);
    }
    0
}

levels!(repeat, repeat_body, <T: Copy>);
