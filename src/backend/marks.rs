//! What each part of a function's machine code is for, as dumps show it.
//!
//! Guarantees: recorded only for a dump. Does not: change the code.

/// What instructions are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A step of the kernel.
    Step(u32),
    /// Code around the steps: the frame, loop control, constants.
    Frame(&'static str),
}

/// A position in a function, and what the instructions from there on are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: usize,
    pub(crate) purpose: Purpose,
}
