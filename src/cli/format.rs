//! The file formats that the command reads and writes.
//!
//! Guarantees: a path that ends with a slash is the folder of a model; the extension of any other file name, in upper or
//! lower case, determines the format, and without a known one a folder is that of a model. Does not: open files.

use std::path::Path;

/// A file format that the command reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Npy,
    Npz,
    SafeTensors,
    /// The index of a sharded checkpoint.
    Index,
    /// The folder of a model.
    Folder,
    /// A .npy file to standard output.
    Pipe,
    /// Text to standard output.
    Text,
}

impl Format {
    /// The format of a folder, or of a file by the extension of its name.
    pub(super) fn of(path: &Path) -> Result<Format, String> {
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Ok(Format::Folder);
        }
        let name = path.file_name().unwrap_or_default().as_encoded_bytes().to_ascii_lowercase();
        if name.ends_with(b".index.json") {
            return Ok(Format::Index);
        }
        match name.rsplit(|b| *b == b'.').next().filter(|end| end.len() < name.len()) {
            Some(b"npy") => Ok(Format::Npy),
            Some(b"npz") => Ok(Format::Npz),
            Some(b"safetensors") => Ok(Format::SafeTensors),
            _ if path.is_dir() => Ok(Format::Folder),
            _ => Err(format!(
                "{}: the extension is not .npy, .npz, .safetensors or .index.json; write a / after the name of a folder",
                path.display()
            )),
        }
    }
}
