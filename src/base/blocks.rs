//! `BlockSize`: how many elements of each dim share one element of a smaller tensor.
//!
//! Does not: know memory; the driver reads blocks.

use std::fmt;
use std::sync::Arc;

use crate::base::error::{Diagnostic, DiagnosticKind};
use crate::base::shape::{SymDim, dims_text};

/// The size of blocks: one for all dims, or one for each.
///
/// ```
/// use castwise::BlockSize;
/// assert_eq!(BlockSize::from(128).to_string(), "[128]");
/// assert_eq!(BlockSize::from([1, 128]).to_string(), "[1, 128]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockSize(pub(crate) Arc<[usize]>);

impl From<usize> for BlockSize {
    fn from(size: usize) -> BlockSize {
        BlockSize([size].into())
    }
}

impl<const N: usize> From<[usize; N]> for BlockSize {
    fn from(sizes: [usize; N]) -> BlockSize {
        BlockSize(sizes.into())
    }
}

impl From<Vec<usize>> for BlockSize {
    fn from(sizes: Vec<usize>) -> BlockSize {
        BlockSize(sizes.into())
    }
}

impl BlockSize {
    /// The name in the text form.
    pub(crate) const NAME: &'static str = "blocks";

    /// The size along a dim.
    pub(crate) fn along(&self, dim: usize) -> usize {
        if self.0.len() == 1 { self.0[0] } else { self.0.get(dim).copied().unwrap_or(1) }
    }

    /// The number of blocks along a dim of this extent, the last of which may be smaller.
    pub(crate) fn blocks(&self, dim: usize, extent: usize) -> usize {
        extent.div_ceil(self.along(dim).max(1))
    }

    /// The refusal of sizes and shapes: the scale must have an element for each block. What only feeds can tell is not refused.
    pub(crate) fn check(&self, scale: &[SymDim], like: &[SymDim]) -> Result<(), Diagnostic> {
        let refuse =
            |message: String| Err(Diagnostic::new(DiagnosticKind::BadParameter, format!("`blocks`: {message}")));
        if self.0.contains(&0) {
            return refuse(format!("the size {self} has no elements"));
        }
        if self.0.len() != 1 && self.0.len() != like.len() {
            return refuse(format!("{} sizes for {} dims", self.0.len(), like.len()));
        }
        if scale.len() != like.len() {
            let message = format!("`blocks`: {} has other dims than {}", dims_text(scale), dims_text(like));
            return Err(Diagnostic::new(DiagnosticKind::Broadcast, message));
        }
        for (d, (s, l)) in scale.iter().zip(like).enumerate() {
            let (SymDim::Fixed(s), SymDim::Fixed(l)) = (s, l) else { continue };
            self.check_dim(d, *s, *l)?;
        }
        Ok(())
    }

    /// The refusal of a dim whose extents are known.
    pub(crate) fn check_dim(&self, dim: usize, scale: usize, like: usize) -> Result<(), Diagnostic> {
        let blocks = self.blocks(dim, like);
        if scale == blocks {
            return Ok(());
        }
        let size = self.along(dim);
        let message =
            format!("`blocks`: dim {dim} of the scale is {scale}, but {like} elements are {blocks} blocks of {size}");
        Err(Diagnostic::new(DiagnosticKind::Broadcast, message))
    }
}

impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
