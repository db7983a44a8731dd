//! Custom ops: users' functions, called over runs of elements as block kernels are.
//!
//! Guarantees: a function that panics is a refusal, like a division by zero, that keeps what was said, and unwinds into
//! nothing that the driver or compiled code has on the stack; NaNs that a function gives become canonical, so that its results do not depend on how
//! its loop was compiled. Does not: call a function at several CPU levels; there is one code of it, so it has one result.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::num::Canonical;
use super::{BlockFn, Refusal, slice, slice_mut};
use crate::base::dtype::{DType, with_math};
use crate::ops::{Custom, MAX_OPERANDS, Math};

/// Runs a custom op over `n` elements, as [`BlockFn`](super::BlockFn) does an op of the table.
///
/// # Safety
/// As [`BlockFn`](super::BlockFn), for the dtype that the function was [found](custom_kernel) for.
pub(crate) type CustomFn =
    unsafe fn(op: Custom, args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> Result<(), Refusal>;

/// What calls a custom op's function for a dtype; `None` if it has none.
pub(crate) fn custom_kernel(op: Custom, dtype: DType) -> Option<CustomFn> {
    with_math!(any, dtype, T => op.function::<T>().map(|_| call::<T> as CustomFn)).flatten()
}

/// # Safety
/// As [`CustomFn`], for operands and a result of `T`.
unsafe fn call<T: Math + Canonical>(
    op: Custom,
    args: [*const u8; MAX_OPERANDS],
    out: *mut u8,
    n: usize,
) -> Result<(), Refusal> {
    let Some(f) = op.function::<T>() else { return Err(None) };
    // SAFETY: the contract of `CustomFn`: what the op has as operands is valid for `n` elements.
    let operands = args.map(|p| if p.is_null() { &[][..] } else { unsafe { slice::<T>(p, n) } });
    // SAFETY: the same contract.
    let out = unsafe { slice_mut::<T>(out, n) };
    let operands = &operands[..op.def().operands.len().min(MAX_OPERANDS)];
    match catch_unwind(AssertUnwindSafe(|| f(operands, out))) {
        Ok(()) => {
            out.iter_mut().for_each(|to| *to = to.canonical());
            Ok(())
        }
        Err(payload) => {
            let said = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
            let said = said.map(str::to_string);
            // What was panicked with may panic itself when it is dropped.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(again);
            }
            Err(said)
        }
    }
}

/// What runs a step that is not compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Runner {
    /// A block kernel.
    Kernel(BlockFn),
    /// A custom op's function.
    Custom(CustomFn, Custom),
}

impl Runner {
    /// Runs it over `n` elements.
    ///
    /// # Safety
    /// As [`BlockFn`].
    #[inline]
    pub(crate) unsafe fn run(self, args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> Result<(), Refusal> {
        // SAFETY: passed on.
        unsafe {
            match self {
                Runner::Kernel(f) if f(args, out, n) == 0 => Ok(()),
                Runner::Kernel(_) => Err(None),
                Runner::Custom(f, custom) => f(custom, args, out, n),
            }
        }
    }
}
