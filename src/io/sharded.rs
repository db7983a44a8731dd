//! Sharded checkpoints: several `.safetensors` files and an index, `model.safetensors.index.json`, which maps tensors
//! to files.
//!
//! Guarantees: a shard is a file in the directory of the index; the index lists each tensor of a shard exactly once,
//! for that shard, and each listed tensor is in its shard. Only the headers and one tensor are in memory at a time, and
//! one shard is open at a time. Does not: trust or check the index's `total_size` (writers disagree about its meaning),
//! or read shards of other formats.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::path::{Component, Path, PathBuf};

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::safetensors::Contents;
use super::stored::{Stored, StoredDType};
use super::{Origin, directory, format_error, open, read_bytes};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result, shown};
use crate::base::limits::{Limit, Limits};
use crate::tensor::Tensor;

mod writer;

pub use writer::{ShardedWriter, checkpoint_files};

/// An open sharded checkpoint: the headers are in memory, and the tensors stay on disk until
/// [`load`](ShardedSafeTensors::load) reads them.
///
/// ```
/// use std::collections::BTreeMap;
/// use castwise::{DType, Tensor, io::{Existing, ShardedSafeTensors, ShardedWriter}};
/// let directory = std::env::temp_dir().join(format!("castwise-doc-shards-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory).ok();
/// let index = directory.join("model.safetensors.index.json");
/// let (w, b) = (Tensor::full([8], 1.0f32)?, Tensor::full([2], 2.0f32)?);
///
/// let list = [("w".to_string(), w.dtype(), vec![8]), ("b".to_string(), b.dtype(), vec![2])];
/// let mut out = ShardedWriter::create(&index, &list, &BTreeMap::new(), 32, Existing::Replace)?; // at most 32 bytes per shard
/// out.write("w", &w)?;
/// out.write("b", &b)?;
/// out.finish()?;
///
/// let mut checkpoint = ShardedSafeTensors::open(&index)?;
/// assert_eq!(checkpoint.info("b")?, (DType::F32, &[2][..]));
/// assert_eq!(checkpoint.load("b")?.to_vec::<f32>()?, [2.0, 2.0]);
/// assert!(directory.join("model-00002-of-00002.safetensors").exists());
/// # std::fs::remove_dir_all(directory).ok();
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Debug)]
pub struct ShardedSafeTensors {
    path: PathBuf,
    shards: Vec<Contents>,
    shard_of: HashMap<String, usize>,
    /// The shard that was read last.
    opened: Option<(usize, File)>,
}

impl ShardedSafeTensors {
    /// Opens an index and checks the headers of its shards.
    pub fn open(path: impl AsRef<Path>) -> Result<ShardedSafeTensors> {
        ShardedSafeTensors::open_within(path, Limits::new())
    }

    /// [`open`](ShardedSafeTensors::open) with other limits for the size of the index and of each header, and for each
    /// tensor's dims and elements.
    pub fn open_within(path: impl AsRef<Path>, limits: Limits) -> Result<ShardedSafeTensors> {
        let path = path.as_ref();
        let refuse = |m: String| format_error(path, m);
        let (mut file, len) = open(path)?;
        limits.allow(Limit::Index, usize::try_from(len).unwrap_or(usize::MAX))?;
        let text = read_bytes(&mut file, Origin::file(path), len)?;
        let Index { weight_map } = serde_json::from_slice(&text).map_err(|e| refuse(format!("not an index: {e}")))?;
        let files: BTreeSet<&str> = weight_map.0.iter().map(|(_, shard)| shard.as_str()).collect();
        let mut shards = Vec::with_capacity(files.len());
        for file in &files {
            shards.push(open_shard(path, file, limits)?);
        }
        let number: HashMap<&str, usize> = files.iter().enumerate().map(|(i, f)| (*f, i)).collect();
        let shard_of: HashMap<String, usize> =
            weight_map.0.iter().filter_map(|(name, f)| Some((name.clone(), *number.get(f.as_str())?))).collect();
        let files: Vec<&str> = files.into_iter().collect();
        let file = |i: usize| files.get(i).map_or(String::new(), |f| shown(f));
        for (name, shard) in &weight_map.0 {
            let listed = shard_of.get(name).and_then(|i| shards.get(*i));
            if !listed.is_some_and(|s| s.has(name)) {
                let place = match shards.iter().position(|s| s.has(name)) {
                    Some(other) => format!("in `{}`", file(other)),
                    None => "in no shard".to_string(),
                };
                let (name, shard) = (shown(name), shown(shard));
                return Err(refuse(format!("the tensor `{name}` is listed in `{shard}`, but is {place}")));
            }
        }
        for (i, shard) in shards.iter().enumerate() {
            for name in shard.names() {
                match shard_of.get(name) {
                    Some(listed) if *listed == i => {}
                    Some(listed) => {
                        let (name, a, b) = (shown(name), file(*listed), file(i));
                        return Err(refuse(format!("the tensor `{name}` is in two shards, `{a}` and `{b}`")));
                    }
                    None => {
                        let (name, shard) = (shown(name), file(i));
                        return Err(refuse(format!("the tensor `{name}` of `{shard}` is not in the index")));
                    }
                }
            }
        }
        Ok(ShardedSafeTensors { path: path.to_path_buf(), shards, shard_of, opened: None })
    }

    /// The names of the tensors, shard by shard, in the order of their data.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.shards.iter().flat_map(Contents::names)
    }

    /// Whether there is a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.shard_of.contains_key(name)
    }

    /// The `__metadata__` of the first shard: a map of strings.
    pub fn metadata(&self) -> Option<&BTreeMap<String, String>> {
        self.shards.first().map(|s| &s.metadata)
    }

    /// The paths of the shards.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.shards.iter().map(|s| s.path.as_path())
    }

    /// The dtype and shape of a tensor. Errors: there is no such tensor; castwise does not have its dtype.
    pub fn info(&self, name: &str) -> Result<(DType, &[usize])> {
        self.find(name)?.1.info(name)
    }

    /// Reads a tensor.
    pub fn load(&mut self, name: &str) -> Result<Tensor> {
        self.read(name, |shard, file| shard.load(file, name))
    }

    /// Reads a part of a tensor, as [`SafeTensors::load_part`](super::SafeTensors::load_part).
    pub fn load_part(&mut self, name: &str, first: usize, into: &mut Tensor) -> Result<()> {
        self.read(name, |shard, file| shard.load_part(file, name, first, into))
    }

    /// The dtype and shape of a tensor, whose dtype may be one that castwise lacks. Errors: there is no such tensor.
    pub fn stored(&self, name: &str) -> Result<(StoredDType, &[usize])> {
        self.find(name)?.1.stored(name)
    }

    /// Reads a tensor of any dtype as bytes, for [`ShardedWriter::write_stored`].
    pub fn load_stored(&mut self, name: &str) -> Result<Stored> {
        self.read(name, |shard, file| shard.load_stored(file, name))
    }

    /// Reads from the shard of a tensor, which stays open.
    fn read<T>(&mut self, name: &str, read: impl FnOnce(&Contents, &mut File) -> Result<T>) -> Result<T> {
        let last = self.opened.take();
        let (i, shard) = self.find(name)?;
        let mut file = match last {
            Some((opened, file)) if opened == i => file,
            _ => shard.reopen()?,
        };
        let t = read(shard, &mut file)?;
        self.opened = Some((i, file));
        Ok(t)
    }

    fn find(&self, name: &str) -> Result<(usize, &Contents)> {
        let found = self.shard_of.get(name).and_then(|i| Some((*i, self.shards.get(*i)?)));
        found.ok_or_else(|| format_error(&self.path, format!("there is no tensor `{}`", shown(name))))
    }
}

/// Reads the header of a shard.
fn open_shard(index: &Path, file: &str, limits: Limits) -> Result<Contents> {
    let refuse = |m: &str| format_error(index, format!("the shard `{}` {m}", shown(file)));
    let mut parts = Path::new(file).components();
    let one = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    if !one || file.contains(['/', '\\', '\0']) {
        return Err(refuse("is not the name of a file in the directory of the index"));
    }
    if !file.ends_with(".safetensors") {
        return Err(refuse("is not a .safetensors file"));
    }
    match Contents::open(&directory(index).join(file), limits) {
        Err(Error::Io { source, .. }) => Err(refuse(&format!("can't be read: {source}"))),
        opened => Ok(opened?.0),
    }
}

/// The part of an index that is read. A duplicate field is an error.
#[derive(serde::Deserialize)]
struct Index {
    weight_map: WeightMap,
}

/// Tensors and their shards, with unique tensor names.
struct WeightMap(Vec<(String, String)>);

impl<'de> Deserialize<'de> for WeightMap {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<WeightMap, D::Error> {
        struct OfMap;
        impl<'de> Visitor<'de> for OfMap {
            type Value = WeightMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object that maps tensors to shards")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WeightMap, A::Error> {
                let (mut all, mut seen) = (Vec::new(), HashSet::new());
                while let Some((name, shard)) = map.next_entry::<String, String>()? {
                    if !seen.insert(name.clone()) {
                        return Err(A::Error::custom(format!("duplicate tensor `{}`", shown(&name))));
                    }
                    all.push((name, shard));
                }
                Ok(WeightMap(all))
            }
        }
        d.deserialize_map(OfMap)
    }
}
