//! Warnings about inputs that have the name of a tensor in their file.
//!
//! Guarantees: each warning has the argument that selects this tensor only. Does not: refuse anything.

use super::inputs::Input;
use super::report;

/// A warning for each input that has the name of one of its own tensors.
pub(super) fn hints(inputs: &[Input]) -> impl Iterator<Item = String> {
    let called = inputs.iter().filter(|i| i.names().is_some() && i.has(&i.name));
    called.map(|i| {
        let (name, path) = (report::escaped(&i.name), i.path.display());
        format!(
            "warning: the input `{name}` is every tensor of {path} in turn; to use only its tensor `{name}`, write \
             `-i {name}={path}:{name}`"
        )
    })
}
