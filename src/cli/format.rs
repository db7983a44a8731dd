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
            end => Err(format!(
                "{}: the extension is not .npy, .npz, .safetensors or .index.json; {}",
                path.display(),
                end.and_then(advice).unwrap_or("write a / after the name of a folder")
            )),
        }
    }
}

/// What to do with a file of another kind, by its extension, which a member may follow.
fn advice(extension: &[u8]) -> Option<&'static str> {
    match extension.split(|b| *b == b':').next()? {
        b"tif" | b"tiff" | b"jp2" | b"vrt" => Some(
            "rasters are read and written by GDAL or rasterio, and their bands go through NumPy: \
             numpy.save(\"band.npy\", rasterio.open(\"scene.tif\").read(1))",
        ),
        b"bin" | b"pt" | b"pth" | b"ckpt" => Some(
            "PyTorch's files are pickled programs, which castwise does not run: \
             safetensors.torch.save_file(torch.load(FILE, weights_only=True), \"model.safetensors\")",
        ),
        _ => None,
    }
}
