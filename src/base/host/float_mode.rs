//! The CPU's floating-point mode: everything is computed, read and printed in the standard one, whatever the caller's is.
//!
//! Guarantees: while a [`FloatMode`] lives, its thread rounds to nearest (ties to even), keeps subnormals and takes no
//! exception traps; then the caller's mode is back. Does not: exist on other machines than x86-64, where the mode is
//! left alone; hold back arithmetic on values that the function has in registers already, which the compiler may move
//! out of the guard: [`in_standard_mode`] does.

use std::hint::black_box;

/// The standard mode of the thread, until this is dropped.
#[must_use]
pub(crate) struct FloatMode {
    /// The caller's mode, if it is another one.
    #[cfg(target_arch = "x86_64")]
    callers: Option<u32>,
    /// It belongs to its thread.
    _thread: std::marker::PhantomData<*const ()>,
}

/// MXCSR as every thread starts with: nearest rounding, all exceptions masked, subnormals kept.
#[cfg(target_arch = "x86_64")]
const STANDARD: u32 = 0x1f80;

/// The sticky flags that operations leave: not part of the mode.
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
    // standard mode; a caller that runs in another one gets back what it had.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, preserves_flags)) };
}

impl FloatMode {
    /// Sets the standard mode. Costs a read of the register if it is set already.
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

/// `f` of a value, computed in the standard mode. For functions of a few instructions: the compiler doesn't know that
/// arithmetic depends on the mode, but can't move it past values that it knows nothing of.
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
