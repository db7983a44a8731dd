//! The CPU's floating-point mode: values are computed, read and printed in the standard mode, whatever the caller's is.
//!
//! Guarantees: while a [`FloatMode`] lives, its thread rounds to nearest (ties to even), keeps subnormals and masks
//! exceptions; when it is dropped, the caller's mode is restored. Does not: do anything on machines other than x86-64;
//! order arithmetic on values that are already in registers, which the compiler may move out of the guard's scope
//! ([`in_standard_mode`] prevents that).

use std::hint::black_box;

/// A guard: the thread is in the standard mode until it is dropped.
#[must_use]
pub(crate) struct FloatMode {
    /// The caller's mode, if it differs from the standard one.
    #[cfg(target_arch = "x86_64")]
    callers: Option<u32>,
    /// The mode is per thread, so the guard must not be sent.
    _thread: std::marker::PhantomData<*const ()>,
}

/// The initial value of MXCSR in every thread: round to nearest, all exceptions masked, subnormals kept.
#[cfg(target_arch = "x86_64")]
const STANDARD: u32 = 0x1f80;

/// MXCSR's sticky exception flags, which are not part of the mode.
#[cfg(target_arch = "x86_64")]
const FLAGS: u32 = 0x3f;

#[cfg(target_arch = "x86_64")]
fn get() -> u32 {
    let mut mode = 0u32;
    // SAFETY: stores four bytes to a local variable.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack, preserves_flags)) };
    mode
}

#[cfg(target_arch = "x86_64")]
fn set(mode: u32) {
    // SAFETY: loads a value that is the standard one or was read from the register before. Rust code expects the
    // standard mode; a caller that runs in another mode gets its own mode back.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, preserves_flags)) };
}

impl FloatMode {
    /// Sets the standard mode. If it is set already, the cost is one read of the register.
    #[inline]
    pub(crate) fn standard() -> FloatMode {
        #[cfg(target_arch = "x86_64")]
        {
            let callers = Some(get()).filter(|mode| mode & !FLAGS != STANDARD);
            if callers.is_some() {
                set(STANDARD);
            }
            FloatMode { callers, _thread: std::marker::PhantomData }
        }
        #[cfg(not(target_arch = "x86_64"))]
        FloatMode { _thread: std::marker::PhantomData }
    }
}

impl Drop for FloatMode {
    #[inline]
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if let Some(mode) = self.callers {
            set(mode);
        }
    }
}

/// Computes `f` of a value in the standard mode. Meant for functions of a few instructions: the compiler doesn't know
/// that arithmetic depends on the mode, but `black_box` keeps it from moving the arithmetic out of the guard's scope.
#[inline]
pub(crate) fn in_standard_mode<A, B>(value: A, f: impl FnOnce(A) -> B) -> B {
    let _standard = FloatMode::standard();
    black_box(f(black_box(value)))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_callers_mode_comes_back() {
        let before = get();
        for mode in [0x1f80, 0x9fc0, 0x3f80, 0x5f80, 0x7f80, 0xffc0] {
            set(mode);
            {
                let _standard = FloatMode::standard();
                assert_eq!(get() & !FLAGS, STANDARD);
            }
            assert_eq!(get() & !FLAGS, mode);
        }
        set(before);
    }
}
