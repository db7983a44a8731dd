//! Truth values of lanes.

use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A truth value: `bool`, or a mask that is recorded.
pub(crate) trait Mask:
    Copy + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// A constant; `self` says where it is wanted.
    fn c(self, value: bool) -> Self;
}

impl Mask for bool {
    #[inline(always)]
    fn c(self, value: bool) -> bool {
        value
    }
}
