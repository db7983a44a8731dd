//! The input files of a command.
//!
//! Guarantees: the file name determines the format; of a folder, the model's weights are read. Only headers are read until a tensor is loaded. A .npy file, or one
//! tensor of another file, is loaded once and used for every tensor name. Does not: compute, or provide data for an
//! input that is only declared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use castwise::io::{ForeignDType, Npy, Npz, SafeTensors, ShardedSafeTensors, Stored, StoredDType, read_npy_from};
use castwise::shape::Dim;
use castwise::{DType, Error, Tensor};

use super::args::Common;
use super::failure::Failure;
use super::format::Format;
use super::names::Names;
use super::spec::{InputSpec, Rename};
use super::{folder, report};

/// One input: its name in the expression, and the source of its tensors.
pub(super) struct Input {
    pub(super) name: String,
    /// The file; if the input is only declared, its dtype and dims as text.
    pub(super) path: PathBuf,
    /// The folder that was given instead of the file.
    pub(super) folder: Option<PathBuf>,
    source: Source,
    names: Names,
}

enum Source {
    Declared(DType, Vec<Dim>),
    /// An array that has been read from a stream.
    Read(Tensor),
    /// The file, and its array if it has been loaded.
    Npy(Box<Npy>, Option<Tensor>),
    Npz(Box<Npz>),
    SafeTensors(Box<SafeTensors>),
    Sharded(Box<ShardedSafeTensors>),
    /// One tensor of a file, which is here once it has been loaded.
    Member(Box<Input>, String, Option<Tensor>),
}

impl Input {
    /// Opens an input of an expression, with the names that `--rename` and `--sibling` give its tensors. Adds warnings.
    pub(super) fn of(common: &Common, name: &str, spec: &InputSpec, notes: &mut Vec<String>) -> Result<Input, Failure> {
        let InputSpec::Sibling(rule) = spec else {
            let mut input = Input::open(name, spec)?;
            let rules: Vec<&Rename> = common.rename.iter().filter(|r| r.input == name).collect();
            let Some(all) = input.names() else {
                let text = format!("--rename: `{}` is not a file of several tensors", report::escaped(name));
                return if rules.is_empty() { Ok(input) } else { Err(Failure::usage(text)) };
            };
            input.names = Names::renamed(&all, &rules, notes)?;
            return Ok(input);
        };
        let given = common.inputs.iter().find(|(n, _)| *n == rule.input);
        let Some((whose, spec)) = given else { return Err(no_input("sibling", &rule.input)) };
        let mut input = Input::of(common, whose, spec, &mut Vec::new())?;
        let Some(all) = input.names() else {
            let text = format!("--sibling: `{}` is not a file of several tensors", report::escaped(whose));
            return Err(Failure::usage(text));
        };
        let names =
            Names::siblings(
                &all,
                rule,
                |n| if input.has(n) { input.names.stored(n).map(str::to_string) } else { None },
            );
        input.names = names;
        input.name = name.to_string();
        Ok(input)
    }

    /// Gives a model's embedding the name of its head too, if it has no head.
    fn tie(&mut self) -> bool {
        const EMBEDDING: &str = "model.embed_tokens.weight";
        let Some(all) = self.names().filter(|_| !self.has(HEAD) && self.has(EMBEDDING)) else { return false };
        if self.info(EMBEDDING).is_ok_and(|(dtype, _)| dtype == DType::Bool) {
            return false;
        }
        let stored = |n: &str| self.names.stored(n).map(str::to_string);
        self.names = Names::with(&all, stored, HEAD, EMBEDDING);
        true
    }

    /// Gives the tensors other names.
    pub(super) fn rename(&mut self, names: Names) {
        self.names = names;
    }

    pub(super) fn open(name: &str, spec: &InputSpec) -> Result<Input, Failure> {
        let (name, names) = (name.to_string(), Names::Stored);
        let given = match spec {
            InputSpec::File(path) => path,
            InputSpec::Member(path, member) => return Input::member(&name, path, member),
            InputSpec::Declared(dtype, dims) => {
                let (path, source) = (format!("{dtype}{dims}").into(), Source::Declared(*dtype, dims.0.clone()));
                return Ok(Input { name, path, folder: None, source, names });
            }
            InputSpec::Stdin => {
                let source = Source::Read(read_npy_from(&mut std::io::stdin().lock(), "stdin")?);
                return Ok(Input { name, path: "stdin".into(), folder: None, source, names });
            }
            InputSpec::Given(t) => {
                let source = Source::Read(t.clone());
                return Ok(Input { name, path: "an array".into(), folder: None, source, names });
            }
            InputSpec::Sibling(_) => return Err(Error::Internal("a sibling has no file of its own".into()).into()),
        };
        let folder = (Format::of(given) == Ok(Format::Folder)).then(|| given.clone());
        let path = &folder.as_ref().map_or(Ok(given.clone()), |f| folder::weights(f))?;
        let source = match Format::of(path).map_err(Failure::usage)? {
            Format::Folder | Format::Pipe | Format::Text => {
                return Err(Error::Internal("the weights of a model are a file".into()).into());
            }
            Format::Npy => Source::Npy(Box::new(Npy::open(path)?), None),
            Format::Npz => Source::Npz(Box::new(Npz::open(path)?)),
            Format::SafeTensors => Source::SafeTensors(Box::new(SafeTensors::open(path)?)),
            Format::Index => Source::Sharded(Box::new(ShardedSafeTensors::open(path)?)),
        };
        Ok(Input { name, path: path.to_path_buf(), folder, source, names })
    }

    /// Opens one tensor of a file.
    fn member(name: &str, path: &Path, member: &str) -> Result<Input, Failure> {
        let file = Input::open(name, &InputSpec::File(path.to_path_buf()))?;
        let names = file.names();
        if names.is_none() || !file.has(member) {
            return Err(absent(path, member, names.as_deref()));
        }
        let (path, folder) = (file.path.clone(), file.folder.clone());
        let source = Source::Member(Box::new(file), member.to_string(), None);
        Ok(Input { name: name.to_string(), path, folder, source, names: Names::Stored })
    }

    /// The files that this input reads.
    pub(super) fn files(&self) -> Vec<&Path> {
        let mut files = vec![self.path.as_path()];
        match &self.source {
            Source::Sharded(f) => files.extend(f.files()),
            Source::Member(file, ..) => return file.files(),
            _ => {}
        }
        files
    }

    /// Whether this input has tensors for names: it is a file of several tensors, or has the siblings of such tensors.
    pub(super) fn is_named(&self) -> bool {
        !matches!(self.source, Source::Npy(..) | Source::Declared(..) | Source::Member(..) | Source::Read(_))
    }

    /// Whether this input has siblings of another input's tensors.
    pub(super) fn is_sibling(&self) -> bool {
        matches!(self.names, Names::Siblings(_))
    }

    /// The names of tensors and of their siblings, if this input has siblings.
    pub(super) fn siblings(&self) -> impl Iterator<Item = (&str, &str)> {
        let of = if let Names::Siblings(of) = &self.names { Some(of) } else { None };
        of.into_iter().flatten().map(|(of, (name, _))| (of.as_str(), name.as_str()))
    }

    /// Whether its tensor for a name is the one that `other`, an input of the same file, has for `name`.
    pub(super) fn is_tensor_of(&self, tensor: &str, other: &Input, name: &str) -> bool {
        let own = match &self.source {
            Source::Member(_, member, _) => Some(member.as_str()),
            _ => self.names.stored(tensor),
        };
        self.path == other.path && own.is_some() && own == other.names.stored(name)
    }

    /// The names of the tensors, in the order of the file; `None` if the input is one array for all names, or siblings
    /// of tensors.
    pub(super) fn names(&self) -> Option<Vec<&str>> {
        match &self.names {
            Names::Stored => {}
            Names::Renamed { order, .. } => return Some(order.iter().map(String::as_str).collect()),
            Names::Siblings(_) => return None,
        }
        match &self.source {
            Source::Npy(..) | Source::Declared(..) | Source::Member(..) | Source::Read(_) => None,
            Source::Npz(f) => Some(f.names().collect()),
            Source::SafeTensors(f) => Some(f.names().collect()),
            Source::Sharded(f) => Some(f.names().collect()),
        }
    }

    /// Whether the input has a tensor for this name.
    pub(super) fn has(&self, tensor: &str) -> bool {
        let Some(tensor) = self.names.stored(tensor) else { return false };
        match &self.source {
            Source::Npy(..) | Source::Declared(..) | Source::Member(..) | Source::Read(_) => true,
            Source::Npz(f) => f.has(tensor),
            Source::SafeTensors(f) => f.has(tensor),
            Source::Sharded(f) => f.has(tensor),
        }
    }

    /// The metadata of the file.
    pub(super) fn metadata(&self) -> Option<&BTreeMap<String, String>> {
        match &self.source {
            Source::Declared(..) | Source::Npy(..) | Source::Npz(_) | Source::Member(..) | Source::Read(_) => None,
            Source::SafeTensors(f) => Some(f.metadata()),
            Source::Sharded(f) => f.metadata(),
        }
    }

    /// The dtype and shape of the tensor for this name.
    pub(super) fn info(&self, tensor: &str) -> Result<(DType, Vec<Dim>), Error> {
        let tensor = self.names.stored(tensor).unwrap_or(tensor);
        let (dtype, shape) = match &self.source {
            Source::Declared(dtype, dims) => return Ok((*dtype, dims.clone())),
            Source::Member(file, member, _) => return file.info(member),
            Source::Npy(f, _) => f.info(),
            Source::Read(t) => (t.dtype(), t.shape()),
            Source::Npz(f) => f.info(tensor)?,
            Source::SafeTensors(f) => f.info(tensor)?,
            Source::Sharded(f) => f.info(tensor)?,
        };
        Ok((dtype, shape.iter().map(|n| Dim::Fixed(*n)).collect()))
    }

    /// The dtype and shape of the tensor of this name, if castwise lacks the dtype.
    pub(super) fn foreign<'i>(&'i self, tensor: &'i str) -> Option<(ForeignDType, &'i [usize])> {
        let tensor = self.names.stored(tensor)?;
        let stored = match &self.source {
            Source::SafeTensors(f) => f.stored(tensor),
            Source::Sharded(f) => f.stored(tensor),
            _ => return None,
        };
        match stored {
            Ok((StoredDType::Foreign(dtype), shape)) => Some((dtype, shape)),
            _ => None,
        }
    }

    /// Reads the tensor of this name as bytes.
    pub(super) fn load_stored(&mut self, tensor: &str) -> Result<Stored, Error> {
        let tensor = self.names.stored(tensor).unwrap_or(tensor);
        match &mut self.source {
            Source::SafeTensors(f) => f.load_stored(tensor),
            Source::Sharded(f) => f.load_stored(tensor),
            _ => Err(Error::Internal("only tensors of .safetensors files are copied as bytes".into())),
        }
    }

    /// The elements of the tensor for this name as bytes, in row-major order.
    pub(super) fn bytes_of(&mut self, tensor: &str) -> Result<Vec<u8>, Error> {
        if self.foreign(tensor).is_some() {
            return Ok(self.load_stored(tensor)?.bytes().to_vec());
        }
        let t = self.load(tensor)?.0.contiguous()?;
        Ok(t.as_bytes().map(<[u8]>::to_vec).unwrap_or_default())
    }

    /// The number of bytes to read for this name; 0 if one array is used for all names.
    pub(super) fn to_read(&self, tensor: &str) -> u64 {
        match (&self.source, self.info(tensor)) {
            (Source::Npy(..) | Source::Declared(..) | Source::Member(..) | Source::Read(_), _) | (_, Err(_)) => 0,
            (_, Ok((dtype, dims))) => bytes(dtype, &extents(&dims)),
        }
    }

    /// Whether the input has no data.
    pub(super) fn is_declared(&self) -> bool {
        matches!(self.source, Source::Declared(..))
    }

    /// Loads the tensor for this name. Also returns the number of bytes that were read.
    pub(super) fn load(&mut self, tensor: &str) -> Result<(Tensor, u64), Error> {
        let tensor = self.names.stored(tensor).unwrap_or(tensor);
        let t = match &mut self.source {
            Source::Declared(..) => return Err(Error::Internal("a declared input has no data to read".into())),
            Source::Npy(_, Some(t)) | Source::Member(_, _, Some(t)) | Source::Read(t) => return Ok((t.clone(), 0)),
            Source::Member(file, member, array) => array.insert(file.load(member)?.0).clone(),
            Source::Npy(f, array) => array.insert(f.load()?).clone(),
            Source::Npz(f) => f.load(tensor)?,
            Source::SafeTensors(f) => f.load(tensor)?,
            Source::Sharded(f) => f.load(tensor)?,
        };
        let bytes = bytes(t.dtype(), t.shape());
        Ok((t, bytes))
    }

    /// As `load`; the tensor of a checkpoint is read into the one that `room` returns for its dtype and shape.
    pub(super) fn load_into(
        &mut self,
        tensor: &str,
        room: impl FnOnce(DType, &[usize]) -> Result<Tensor, Error>,
    ) -> Result<(Tensor, u64), Error> {
        if !matches!(self.source, Source::SafeTensors(_) | Source::Sharded(_)) {
            return self.load(tensor);
        }
        let (dtype, dims) = self.info(tensor)?;
        let mut t = room(dtype, &extents(&dims))?;
        self.load_part(tensor, 0, &mut t)?;
        let bytes = bytes(dtype, t.shape());
        Ok((t, bytes))
    }

    /// Whether tensors of this input can be read in parts.
    pub(super) fn has_parts(&self) -> bool {
        match &self.source {
            Source::Declared(..) | Source::Npz(_) => false,
            Source::Npy(f, _) => f.has_parts(),
            Source::Member(file, ..) => file.has_parts(),
            Source::Read(_) | Source::SafeTensors(_) | Source::Sharded(_) => true,
        }
    }

    /// Reads a part of the tensor for this name: as many elements as `into` has, from the element `first` on.
    pub(super) fn load_part(&mut self, tensor: &str, first: usize, into: &mut Tensor) -> Result<(), Error> {
        let tensor = self.names.stored(tensor).unwrap_or(tensor);
        match &mut self.source {
            Source::Read(t) => {
                let part = t.reshape([t.numel()])?.slice(0, first, first + into.numel(), 1)?;
                *into = part.reshape(into.shape())?;
                Ok(())
            }
            Source::Npy(f, _) => f.load_part(first, into),
            Source::SafeTensors(f) => f.load_part(tensor, first, into),
            Source::Sharded(f) => f.load_part(tensor, first, into),
            Source::Member(file, member, _) => file.load_part(member, first, into),
            Source::Declared(..) | Source::Npz(_) => Err(Error::Internal("the input is not read in parts".into())),
        }
    }

    /// The number of bytes that are read once for all tensor names.
    pub(super) fn to_read_once(&self) -> u64 {
        match &self.source {
            Source::Npy(f, _) => bytes(f.info().0, f.info().1),
            Source::Member(file, member, _) => file.to_read(member),
            _ => 0,
        }
    }
}

/// The head of a language model, which is its embedding in models without one.
const HEAD: &str = "lm_head.weight";

/// Gives models without a head one, if others have it. Adds notes.
pub(super) fn tie(inputs: &mut [Input], notes: &mut Vec<String>) {
    if !inputs.iter().any(|i| i.is_named() && i.has(HEAD)) {
        return;
    }
    for i in inputs.iter_mut() {
        if i.tie() {
            let name = report::escaped(&i.name);
            notes.push(format!("note: `{name}` has no {HEAD}: its model.embed_tokens.weight is taken"));
        }
    }
}

/// The usage error for an option that names an input that is not given.
pub(super) fn no_input(option: &str, name: &str) -> Failure {
    Failure::usage(format!("--{option}: there is no input `{}`", report::escaped(name)))
}

/// The extents of a tensor of a file, whose dims are all fixed; 0 for others, which only declared inputs have.
pub(super) fn extents(dims: &[Dim]) -> Vec<usize> {
    dims.iter().map(|d| if let Dim::Fixed(n) = d { *n } else { 0 }).collect()
}

/// The size of a tensor's elements in bytes.
pub(super) fn bytes(dtype: DType, shape: &[usize]) -> u64 {
    shape.iter().fold(dtype.size() as u64, |n, d| n.saturating_mul(*d as u64))
}

/// The error for a file that has no tensor of this name.
fn absent(path: &Path, member: &str, names: Option<&[&str]>) -> Failure {
    let (path, member) = (path.display(), report::escaped(member));
    let text = match names {
        None => format!(
            "{path} is one array without a name: `:{member}` is valid after .npz, .safetensors and .index.json only"
        ),
        Some([]) => format!("{path}: there is no tensor `{member}`: the file has no tensors"),
        Some(all) => format!("{path}: there is no tensor `{member}`; there are {}", report::names(all.iter().copied())),
    };
    if names.is_none() { Failure::usage(text) } else { Failure { text: report::error(&text), code: 1 } }
}
