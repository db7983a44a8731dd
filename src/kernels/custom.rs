//! Kernels of custom ops: the users' functions, called on slices of elements.
//!
//! Guarantees: a panic of a function becomes an error with the panic message, like a division by zero, and does not
//! unwind through the driver or compiled code; NaN results are made canonical, so they do not depend on how the
//! function's loop was compiled. Does not: compile a function for several CPU levels; there is one version of it, so it
//! has one result.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::num::Canonical;
use super::{BlockFn, Refusal, slice, slice_mut};
use crate::base::dtype::{DType, with_math};
use crate::ops::{Custom, MAX_OPERANDS, Math};

/// Runs a custom op on `n` elements, like [`BlockFn`] for an op of the table.
///
/// # Safety
/// As [`BlockFn`], for the dtype that [`custom_kernel`] returned the function for.
pub(crate) type CustomFn =
    unsafe fn(op: Custom, args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> Result<(), Refusal>;

/// The kernel that calls a custom op's function for a dtype; `None` if the op has none.
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
    // SAFETY: the contract of `CustomFn`: the op's operands are valid for `n` elements.
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
            let message =
                payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
            let message = message.map(str::to_string);
            // The payload's own destructor may panic.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(again);
            }
            Err(message)
        }
    }
}

/// The function that runs a step that is not compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Runner {
    /// A kernel of the op table.
    Kernel(BlockFn),
    /// A custom op's function.
    Custom(CustomFn, Custom),
}

impl Runner {
    /// Runs the function on `n` elements.
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
