//! The layer that a tensor belongs to, by its name.
//!
//! Guarantees: places are those of mergekit: from 0 in the first layer to 1 in the last one, 1 in the only one, and 0 outside of layers. Does not: read configurations.

/// The names that the parts of names before a layer's number have.
const PARTS: [&str; 7] = ["layers", "layer", "h", "blocks", "block", "resblocks", "transformer_blocks"];

/// The number of the layer in a tensor's name.
fn layer(name: &str) -> Option<u64> {
    let mut parts = name.split('.').peekable();
    while let Some(part) = parts.next() {
        if PARTS.contains(&part)
            && let Some(n) = parts.peek().and_then(|n| n.parse().ok())
        {
            return Some(n);
        }
    }
    None
}

/// The layers of a model.
#[derive(Default)]
pub(super) struct Layers(u64);

impl Layers {
    pub(super) fn of<'n>(names: impl Iterator<Item = &'n str>) -> Layers {
        Layers(names.filter_map(layer).max().unwrap_or(0))
    }

    /// The place of a tensor, from 0 to 1.
    pub(super) fn place(&self, name: &str) -> f64 {
        match layer(name) {
            Some(n) if self.0 > 0 => n as f64 / self.0 as f64,
            Some(_) => 1.0,
            None => 0.0,
        }
    }
}
