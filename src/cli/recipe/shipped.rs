//! The recipes that ship with the command, and those in folders of users.
//!
//! Guarantees: a shipped recipe has its name, whatever a user's folder has. Does not: read their text.

use std::path::PathBuf;

/// A recipe's name and its text.
pub(in crate::cli) type Shipped = (&'static str, &'static str);

macro_rules! shipped {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../recipes/", $name, ".recipe")))),*] };
}

/// The recipes, those for models first.
pub(in crate::cli) const ALL: &[Shipped] = shipped![
    "linear" "slerp" "nuslerp" "task_arithmetic" "ties" "dare_linear" "dare_ties" "breadcrumbs" "breadcrumbs_ties" "della"
    "della_linear" "model_stock" "ema" "convert" "fp8_dequant" "ndvi"
];

/// The texts that recipes include.
const SHARED: &[Shipped] = shipped!["shared/task" "shared/magnitude" "shared/random" "shared/outliers" "shared/della" "shared/kept" "shared/sum" "shared/elect"];

/// The text of a recipe.
pub(super) fn recipe(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// A text to include.
pub(super) fn shared(name: &str) -> Option<&'static str> {
    SHARED.iter().find(|(n, _)| n.strip_prefix("shared/") == Some(name)).map(|(_, text)| *text)
}

/// The folder of the user's recipes: `CASTWISE_RECIPES`, or `castwise/recipes` in the folder of configurations.
pub(in crate::cli) fn folder() -> Option<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    given("CASTWISE_RECIPES").or_else(|| {
        let config = given("XDG_CONFIG_HOME").or_else(|| given("HOME").map(|home| home.join(".config")));
        config.map(|c| c.join("castwise").join("recipes"))
    })
}
