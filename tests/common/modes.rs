//! The caller's floating-point mode, on x86-64.
#![allow(unsafe_code, reason = "an instruction sets the mode")]

/// Subnormals read as zeros, results flushed to zeros, and both; rounding down, up and towards zero; all of it.
pub const MODES: [u32; 7] = [0x1fc0, 0x9f80, 0x9fc0, 0x3f80, 0x5f80, 0x7f80, 0xffc0];

/// Sets MXCSR; gives what it was.
fn set(mode: u32) -> u32 {
    let mut old = 0u32;
    // SAFETY: stores and loads four bytes of local variables; all exceptions stay masked.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut old, options(nostack));
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack));
    }
    old
}

/// What `work` gives in a mode, which must still be that mode afterwards. A failure leaves the thread in it.
pub fn in_mode<T>(mode: u32, work: impl FnOnce() -> T) -> T {
    let old = set(mode);
    let made = work();
    let after = set(old) & !0x3f;
    assert_eq!(after, mode, "the caller's mode was changed");
    made
}
