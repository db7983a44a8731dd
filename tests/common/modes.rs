//! The floating-point mode of the caller, on x86-64.
#![allow(unsafe_code, reason = "an instruction sets the mode")]

/// Values of MXCSR: subnormal operands read as zero, subnormal results flushed to zero, and both; rounding down, up and
/// towards zero; everything together.
pub const MODES: [u32; 7] = [0x1fc0, 0x9f80, 0x9fc0, 0x3f80, 0x5f80, 0x7f80, 0xffc0];

/// Sets MXCSR. Returns its old value.
fn set(mode: u32) -> u32 {
    let mut old = 0u32;
    // SAFETY: the instructions store and load four bytes of local variables, and all exceptions stay masked.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut old, options(nostack));
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack));
    }
    old
}

/// Runs `work` in a mode, which must be unchanged afterwards. After a failure the thread stays in the mode.
pub fn in_mode<T>(mode: u32, work: impl FnOnce() -> T) -> T {
    let old = set(mode);
    let made = work();
    let after = set(old) & !0x3f;
    assert_eq!(after, mode, "the caller's mode was changed");
    made
}
