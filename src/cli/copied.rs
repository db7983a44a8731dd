//! The files of a model's folder that are copied beside the tensors that are written.
//!
//! Guarantees: they come from the first input that is a folder; `config.json` says the dtype that is written. Does not:
//! copy anything if the output is no folder.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::args::Eval;
use super::config;
use super::failure::Failure;
use super::folder;
use super::format::Format;
use super::outputs::{List, Output};
use super::plan::Work;

/// The configuration of a model in its folder.
const CONFIG: &str = "config.json";

/// The files to copy.
#[derive(Default)]
pub(super) struct Copied {
    from: PathBuf,
    files: Vec<PathBuf>,
    /// The new text of `config.json`.
    config: Option<String>,
    /// Notes and warnings for standard error.
    pub(super) notes: Vec<String>,
}

impl Copied {
    /// The files to copy beside these tensors.
    pub(super) fn of(arguments: &Eval, format: Format, work: &Work, list: &List) -> Result<Copied, Failure> {
        let from = work.inputs.iter().find_map(|i| Some((i.folder.as_deref()?, i.files())));
        let Some((from, read)) = from.filter(|_| format == Format::Folder && !arguments.no_copy_rest) else {
            return Ok(Copied::default());
        };
        let folder::Rest { from, files, mut notes } = folder::rest(from, &read)?;
        let mut config = None;
        if files.iter().any(|f| f == Path::new(CONFIG)) {
            let (text, changes) = config::adapted(&from.join(CONFIG), list)?;
            notes.extend((!changes.is_empty()).then(|| format!("note: {CONFIG}: {}", changes.join("; "))));
            config = Some(text);
        }
        Ok(Copied { from, files, config, notes })
    }

    /// The line of a dry run about these files.
    pub(super) fn line(&self) -> String {
        let (count, from) = (self.files.len(), self.from.display());
        let s = if count == 1 { "" } else { "s" };
        if count == 0 {
            String::new()
        } else {
            format!("{count} other file{s} copied from {from}: {}\n", folder::listed(self.files.clone()))
        }
    }

    /// What a report says of these files: the folder that they are in, and their paths in it; null if there are none.
    pub(super) fn report(&self) -> Value {
        let files: Vec<String> = self.files.iter().map(|f| f.display().to_string()).collect();
        if files.is_empty() { Value::Null } else { json!({ "from": self.from.display().to_string(), "files": files }) }
    }

    /// The paths of the copies in the folder of the output.
    pub(super) fn paths(&self, output: &Path) -> Vec<PathBuf> {
        self.files.iter().map(|f| output.join(f)).collect()
    }

    /// Writes the copies.
    pub(super) fn write(&self, output: &Output) -> Result<(), Failure> {
        for name in &self.files {
            match &self.config {
                Some(text) if name == Path::new(CONFIG) => output.text(name, text)?,
                _ => output.copy(&self.from.join(name), name)?,
            }
        }
        Ok(())
    }
}
