//! Parts of tensors, read into memory that is there and written one after the other.
//!
//! Guarantees: a part lies in its tensor; memory into which a read failed holds valid elements; a tensor counts as written when
//! all of its bytes are. Does not: read parts of arrays in Fortran order or of compressed members.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use super::{Origin, format_error, io_error, read_exact, swap_bytes};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result, shown};
use crate::base::shape::check;
use crate::tensor::Tensor;

/// A tensor in a file: where its elements begin, and how many there are.
pub(super) struct Place<'a> {
    pub(super) path: &'a Path,
    /// The tensor in messages.
    pub(super) what: &'a str,
    pub(super) data_at: u64,
    pub(super) dtype: DType,
    pub(super) elements: usize,
    pub(super) big_endian: bool,
}

impl Place<'_> {
    /// Reads as many elements as `into` has, from the element `first` on.
    pub(super) fn read(&self, file: &mut File, first: usize, into: &mut Tensor) -> Result<()> {
        let origin = Origin::file(self.path);
        let count = into.numel();
        if into.dtype() != self.dtype || first.checked_add(count).is_none_or(|end| end > self.elements) {
            let (own, to, n) = (self.dtype, into.dtype(), self.elements);
            return Err(Error::Shape(format!(
                "elements {first} to {} of {to} are not in {} of {n} {own}",
                first as u128 + count as u128,
                self.what
            )));
        }
        let at = self.data_at + first as u64 * self.dtype.size() as u64;
        file.seek(SeekFrom::Start(at)).map_err(|e| io_error(self.path, e))?;
        let bytes = into.bytes_mut().ok_or_else(|| Error::Shape("the tensor shares its memory".into()))?;
        let read = read_exact(file, origin, bytes);
        if self.big_endian != cfg!(target_endian = "big") {
            swap_bytes(self.dtype, bytes);
        }
        let wrong = if self.dtype == DType::Bool { bytes.iter().position(|b| *b > 1) } else { None };
        match (read, wrong) {
            (Ok(()), None) => Ok(()),
            (failed, wrong) => {
                let byte = wrong.map_or(0, |at| bytes[at]);
                bytes.fill(0);
                failed?;
                let at = first + wrong.unwrap_or(0);
                let what = self.what;
                Err(origin.refuse(format!("element {at} of {what} is the bool byte {byte}, neither 0 nor 1")))
            }
        }
    }
}

/// A tensor of which parts are written.
struct Open {
    /// Where its bytes begin in the file.
    at: u64,
    dtype: DType,
    written: u64,
    bytes: u64,
}

/// The tensors of which parts are written.
#[derive(Default)]
pub(super) struct Parts(HashMap<String, Open>);

impl Parts {
    /// Whether a part of this tensor has been written, and not all of it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Begins a tensor whose bytes begin at `at`.
    pub(super) fn begin(&mut self, name: &str, dtype: DType, shape: &[usize], at: u64) -> Result<()> {
        let bytes = check(shape)? as u64 * dtype.size() as u64;
        self.0.insert(name.to_string(), Open { at, dtype, written: 0, bytes });
        Ok(())
    }

    /// Where the next part of this tensor begins.
    pub(super) fn next(&self, path: &Path, name: &str, part: &Tensor) -> Result<u64> {
        let refuse = |m: &str| format_error(path, format!("a part of the tensor `{}` {m}", shown(name)));
        let open = self.0.get(name).ok_or_else(|| refuse("is not expected"))?;
        let size = part.numel() as u64 * part.dtype().size() as u64;
        if part.dtype() != open.dtype || open.written + size > open.bytes {
            return Err(refuse("has another dtype, or more elements than are left"));
        }
        Ok(open.at + open.written)
    }

    /// Counts a part as written. Returns whether the tensor is whole.
    pub(super) fn written(&mut self, name: &str, part: &Tensor) -> bool {
        let Some(open) = self.0.get_mut(name) else { return false };
        open.written += part.numel() as u64 * part.dtype().size() as u64;
        let whole = open.written == open.bytes;
        if whole {
            self.0.remove(name);
        }
        whole
    }
}
