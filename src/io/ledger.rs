//! Which tensors a file in the making is to have, and which of them it has.
//!
//! Guarantees: a name stands once; a tensor is taken once, and only with the dtype and shape it was listed with; after
//! a tensor whose writing failed, nothing is taken and the file is never complete. Does not: write.

use std::collections::HashMap;
use std::path::Path;

use super::format_error;
use crate::base::dtype::DType;
use crate::base::error::{Result, shown};
use crate::base::shape::dims_text;
use crate::tensor::Tensor;

struct Entry {
    dtype: DType,
    shape: Vec<usize>,
    /// What the writer wants to know when the tensor comes: an offset, a shard.
    at: u64,
    written: bool,
}

#[derive(Default)]
pub(super) struct Ledger {
    entries: HashMap<String, Entry>,
    missing: usize,
    /// A tensor was taken, and is not written yet.
    writing: bool,
}

impl Ledger {
    /// Lists a tensor. Errors: a name that is listed already.
    pub(super) fn add(&mut self, path: &Path, name: &str, dtype: DType, shape: &[usize], at: u64) -> Result<()> {
        let entry = Entry { dtype, shape: shape.to_vec(), at, written: false };
        if self.entries.insert(name.to_string(), entry).is_some() {
            return Err(format_error(path, format!("the name `{}` stands twice", shown(name))));
        }
        self.missing += 1;
        Ok(())
    }

    /// Takes a tensor that is to be written; answers what was listed with it. Errors: not on the list, another dtype
    /// or shape than listed, written already.
    pub(super) fn take(&mut self, path: &Path, name: &str, t: &Tensor) -> Result<u64> {
        let refuse = |m: &str| format_error(path, format!("the tensor `{}` {m}", shown(name)));
        if self.writing {
            return Err(refuse("comes after one that could not be written"));
        }
        let entry = self.entries.get_mut(name).ok_or_else(|| refuse("is not on the list"))?;
        if entry.written {
            return Err(refuse("is written twice"));
        }
        if entry.dtype != t.dtype() || entry.shape != t.shape() {
            let (listed, given) = (dims_text(&entry.shape), dims_text(t.shape()));
            return Err(refuse(&format!("is {}{given}, but listed as {}{listed}", t.dtype(), entry.dtype)));
        }
        entry.written = true;
        self.writing = true;
        Ok(entry.at)
    }

    /// The tensor that was taken last is written.
    pub(super) fn written(&mut self) {
        if std::mem::take(&mut self.writing) {
            self.missing -= 1;
        }
    }

    /// Whether every listed tensor is written.
    pub(super) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Errors: a listed tensor was not written.
    pub(super) fn complete(&self, path: &Path) -> Result<()> {
        match self.missing {
            0 => Ok(()),
            n => Err(format_error(path, format!("{n} listed tensors were not written"))),
        }
    }
}

#[cfg(test)]
mod tests;
