//! What a result was made from and how, for the metadata of the output: `--manifest`.
//!
//! Guarantees: the hashes are those of the bytes of all files that are read. With the same files, version and machine-independent options, a run has the same bits.
//! Does not: compare a manifest with anything.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use castwise::Error;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::args::Eval;
use super::failure::Failure;
use super::plan::Work;
use super::recipe::Recipe;
use super::spec::{InputSpec, Missing, Rename};

/// The key in the metadata.
pub(super) const KEY: &str = "castwise";

/// The bytes that are hashed at a time.
const BLOCK: usize = 1 << 20;

/// The manifest as JSON.
pub(super) fn text(arguments: &Eval, work: &Work) -> Result<String, Failure> {
    let common = &arguments.common;
    let mut inputs = Map::new();
    for i in &work.inputs {
        let mut files = Map::new();
        for path in i.files().into_iter().filter(|p| p.is_file()) {
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let member = common.inputs.iter().find_map(|(n, spec)| match spec {
                InputSpec::Member(_, member) if *n == i.name => Some(member),
                _ => None,
            });
            files.insert(member.map_or(name.clone(), |m| format!("{name}:{m}")), hash(path)?.into());
        }
        inputs.insert(i.name.clone(), Value::Object(files));
    }
    let mut parameters = Map::new();
    for (name, value) in &common.parameters {
        let file = Path::new(value);
        let text = value.to_string_lossy();
        let value = if file.is_file() { json!({ "file": text, "sha256": hash(file)? }) } else { text.into() };
        parameters.insert(name.clone(), value);
    }
    let renamed = |r: &Rename| json!([r.input, r.pattern.as_str(), r.to]);
    let missing = common.missing.as_ref().map(Missing::written);
    // As --fix wrote them.
    let fixed = arguments.fix.fix.map(|_| work.expressions.iter().map(|e| e.text.clone()).collect::<Vec<_>>());
    let maps: Vec<Value> = arguments.map.iter().map(|(r, e)| json!([r.as_str(), e])).collect();
    let texts = arguments.map.iter().map(|(_, e)| e.as_str()).chain(arguments.expression.as_deref());
    let mut recipes = Map::new();
    for name in texts.filter_map(|e| e.trim().strip_prefix('@')) {
        recipes.insert(name.to_string(), Recipe::load(name)?.text.into());
    }
    let all = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "expression": arguments.expression,
        "map": maps,
        "recipes": recipes,
        "parameters": parameters,
        "seed": common.seed,
        "rules": common.settings().named(),
        "rounding": common.settings().rounding.to_string(),
        "contraction": common.settings().contraction.to_string(),
        "out_dtype": common.out_dtype.map(|d| d.name()),
        "out_dtype_all": common.out_dtype_all,
        "default_dtype": common.default_dtype.name(),
        "zero_division": common.settings().zero_division.to_string(),
        "missing": missing,
        "rename": common.rename.iter().map(renamed).collect::<Vec<_>>(),
        "sibling": common.sibling.iter().map(|(name, r)| json!([name, renamed(r)])).collect::<Vec<_>>(),
        "tied": common.tied,
        "fixed": fixed,
        "select": common.select.as_ref().map(|r| r.as_str()),
        "skip": common.skip.as_ref().map(|r| r.as_str()),
        "inputs": inputs,
        // The models of a recipe count in this order.
        "order": work.inputs.iter().map(|i| i.name.as_str()).collect::<Vec<_>>(),
    });
    Ok(all.to_string())
}

/// The SHA-256 of a file.
fn hash(path: &Path) -> Result<String, Error> {
    let wrong = |source| Error::Io { path: path.display().to_string(), source };
    let mut file = File::open(path).map_err(wrong)?;
    let (mut hash, mut block) = (Sha256::new(), vec![0; BLOCK]);
    loop {
        match file.read(&mut block) {
            Ok(0) => break,
            Ok(n) => hash.update(block.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(wrong(e)),
        }
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}
