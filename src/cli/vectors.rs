//! Tensors that `stats` and `diff` read in parts, as vectors.
//!
//! Guarantees: a tensor that is hashed is hashed once, in order. Does not: measure.

use castwise::{DType, Error, Tensor};
use sha2::{Digest, Sha256};

use super::inputs::Input;
use super::stream::Parts;

/// Elements of a part that is compared as bytes.
const PART: usize = 1 << 18;

/// A tensor of an input.
pub(super) struct Vector<'a> {
    /// The placeholder that it is for.
    pub(super) name: &'static str,
    pub(super) input: &'a mut Input,
    pub(super) member: &'a str,
}

/// The operands of a program.
pub(super) struct Vectors<'a> {
    pub(super) all: Vec<Vector<'a>>,
    /// What hashes the first one.
    pub(super) hash: Option<Sha256>,
}

impl Parts for Vectors<'_> {
    fn find(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|v| v.name == name)
    }

    fn has_parts(&self, operand: usize) -> bool {
        self.all[operand].input.has_parts()
    }

    fn whole(&mut self, name: &str) -> Result<Tensor, Error> {
        Err(Error::Internal(format!("`{name}` is read in parts")))
    }

    fn part(&mut self, operand: usize, first: usize, into: &mut Tensor, again: bool) -> Result<(), Error> {
        let Vector { input, member, .. } = &mut self.all[operand];
        input.load_part(member, first, into)?;
        if let Some(hash) = self.hash.as_mut().filter(|_| operand == 0 && !again) {
            hash.update(into.as_bytes().ok_or_else(|| Error::Internal("a part without bytes".into()))?);
        }
        Ok(())
    }

    fn rows(&mut self, _: usize, _: &Tensor) -> Result<(), Error> {
        Err(Error::Internal("a measure has no rows".into()))
    }
}

impl Vectors<'_> {
    /// Whether two operands of a dtype have the same bytes.
    pub(super) fn are_equal(&mut self, dtype: DType, elements: usize) -> Result<bool, Error> {
        let [a, b] = &mut self.all[..] else { return Ok(false) };
        let (mut x, mut y, mut first) = (Tensor::zeros(dtype, [0])?, Tensor::zeros(dtype, [0])?, 0);
        while first < elements {
            let n = PART.min(elements - first);
            if x.numel() != n || x.as_mut_ptr().is_none() {
                (x, y) = (Tensor::zeros(dtype, [n])?, Tensor::zeros(dtype, [n])?);
            }
            a.input.load_part(a.member, first, &mut x)?;
            b.input.load_part(b.member, first, &mut y)?;
            if x.as_bytes() != y.as_bytes() {
                return Ok(false);
            }
            first += n;
        }
        Ok(true)
    }
}
