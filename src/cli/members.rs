//! Inputs whose name is that of a tensor in their file.
//!
//! Guarantees: each is a warning with what to write for that tensor alone. Does not: refuse anything.

use super::inputs::Input;
use super::report;

/// Inputs that are called as one of their own tensors is, each with the way to write that tensor alone.
pub(super) fn hints(inputs: &[Input]) -> impl Iterator<Item = String> {
    let called = inputs.iter().filter(|i| i.names().is_some() && i.has(&i.name));
    called.map(|i| {
        let (name, path) = (report::escaped(&i.name), i.path.display());
        format!(
            "warning: `{name}` stands for each tensor of {path} in turn, not for its tensor `{name}` alone: did you mean \
             `-i {name}={path}:{name}`?"
        )
    })
}
