//! The tensors that an output must contain, and which of them are written.
//!
//! Guarantees: names are unique; a tensor is accepted once, and only with the dtype and shape that it was listed with;
//! after a tensor whose writing failed, no tensor is accepted and the file is never complete. Does not: write.

use std::collections::HashMap;
use std::path::Path;

use super::format_error;
use super::stored::StoredDType;
use crate::base::error::{Result, shown};
use crate::base::shape::dims_text;

struct Entry {
    dtype: StoredDType,
    shape: Vec<usize>,
    /// The writer's data for the tensor: an offset, or a shard.
    at: u64,
    written: bool,
}

#[derive(Default)]
pub(super) struct Ledger {
    entries: HashMap<String, Entry>,
    missing: usize,
    /// Whether a tensor was taken and is not written yet.
    writing: bool,
}

impl Ledger {
    /// Lists a tensor. Errors: the name is listed already.
    pub(super) fn add(
        &mut self,
        path: &Path,
        name: &str,
        dtype: impl Into<StoredDType>,
        shape: &[usize],
        at: u64,
    ) -> Result<()> {
        let entry = Entry { dtype: dtype.into(), shape: shape.to_vec(), at, written: false };
        if self.entries.insert(name.to_string(), entry).is_some() {
            return Err(format_error(path, format!("duplicate name `{}`", shown(name))));
        }
        self.missing += 1;
        Ok(())
    }

    /// Accepts a tensor of this dtype and shape for writing and returns the writer's data for it. Errors: it is not
    /// listed, has another dtype or shape than listed, or is written already.
    pub(super) fn take(
        &mut self,
        path: &Path,
        name: &str,
        dtype: impl Into<StoredDType>,
        shape: &[usize],
    ) -> Result<u64> {
        let dtype = dtype.into();
        let refuse = |m: &str| format_error(path, format!("the tensor `{}` {m}", shown(name)));
        if self.writing {
            return Err(refuse("follows a tensor that could not be written"));
        }
        let entry = self.entries.get_mut(name).ok_or_else(|| refuse("is not listed"))?;
        if entry.written {
            return Err(refuse("is written twice"));
        }
        if entry.dtype != dtype || entry.shape != shape {
            let (listed, given) = (dims_text(&entry.shape), dims_text(shape));
            return Err(refuse(&format!("is {dtype}{given}, but listed as {}{listed}", entry.dtype)));
        }
        entry.written = true;
        self.writing = true;
        Ok(entry.at)
    }

    /// Accepts a tensor whose parts are written one by one, others in between. Errors: those of [`take`](Ledger::take).
    pub(super) fn begin(
        &mut self,
        path: &Path,
        name: &str,
        dtype: impl Into<StoredDType>,
        shape: &[usize],
    ) -> Result<u64> {
        let at = self.take(path, name, dtype, shape)?;
        self.writing = false;
        Ok(at)
    }

    /// Marks a tensor as written whose last part is.
    pub(super) fn ended(&mut self) {
        self.missing -= 1;
    }

    /// Marks the tensor that was taken last as written.
    pub(super) fn written(&mut self) {
        if std::mem::take(&mut self.writing) {
            self.missing -= 1;
        }
    }

    /// Whether every listed tensor is written.
    pub(super) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// An error if a listed tensor was not written.
    pub(super) fn complete(&self, path: &Path) -> Result<()> {
        match self.missing {
            0 => Ok(()),
            n => Err(format_error(path, format!("{n} listed tensors were not written"))),
        }
    }
}

#[cfg(test)]
mod tests;
