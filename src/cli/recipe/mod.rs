//! Recipes: expressions with parameters, for any number of models, kept as text files: `@ties`, `@./my.recipe`.
//!
//! Guarantees: a recipe becomes an ordinary expression for each combination of dtypes, extents and parameters, before anything is typed or read; a tensor that is
//! integer or bool in all models is copied, not computed. Random numbers follow from the seed and the tensor's name alone. Does not: evaluate.

mod bind;
mod expand;
mod layers;
mod setting;
mod shipped;
#[cfg(test)]
mod tests;
mod text;

pub(super) use bind::{Recipes, Values};
pub(super) use setting::Setting;
pub(super) use shipped::{ALL, folder};
pub(super) use text::{Default_, Recipe};

/// The most models of a recipe.
const MODELS: usize = 64;
