//! `castwise recipes`: lists recipes, and prints one.
//!
//! Guarantees: what is printed is the whole text of a recipe, with what it includes. Does not: run one.

use std::path::PathBuf;

use super::failure::{Failure, print};
use super::recipe::{self, Default_, Recipe};
use super::report;

/// The arguments of `castwise recipes`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise recipes show ties
  castwise eval @ties -i base=base/ -i math=math/ -i code=code/ -p density=0.5 -p weight.code=0.7 -o merged/
  castwise explain @slerp -i base=bf16[8,8] -i a=bf16[8,8] -p t=0.3

A parameter is a number, or a list of numbers that is interpolated over the layers of a model, from the first to the last
([0, 0.5, 1]); or a list of filters, parts of tensors' names, of which the first that matches counts:
-p 't=[{filter: self_attn, value: [0, 0.5, 1]}, {filter: mlp, value: 0.3}, {value: 0.5}]'. A file with such a text works
too. `-p weight.code=0.7` is for the model `code` alone. `-p dtype=f32` is the dtype of the arithmetic.

A recipe of your own is a file, @./my.recipe, or NAME.recipe in the folder that CASTWISE_RECIPES names
(~/.config/castwise/recipes without it), as @NAME. docs/recipes.md has the form.")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Print the text of a recipe.
    Show {
        /// A name, or a file: ties, ./my.recipe
        #[arg(value_name = "NAME|FILE")]
        name: String,
    },
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(Command::Show { name }) = &arguments.command {
        let recipe = Recipe::load(name.strip_prefix('@').unwrap_or(name))?;
        return print(&(report::escape_controls(recipe.text.trim_end()) + "\n"));
    }
    let mut text = String::new();
    for (name, _) in recipe::ALL {
        text += &line(&Recipe::load(name)?);
    }
    for name in own()? {
        text += &match Recipe::load(&name) {
            Ok(recipe) => line(&recipe),
            Err(failure) => format!("{name}\n  {}\n", failure.text),
        };
    }
    print(&text)
}

/// A recipe's name, what it does, and its parameters.
fn line(recipe: &Recipe) -> String {
    let parameters: Vec<String> = recipe
        .parameters
        .iter()
        .map(|p| {
            let each = if p.each { "[.MODEL]" } else { "" };
            let default = match p.default {
                Default_::None => String::new(),
                Default_::Where(n) | Default_::Unless(n) => format!("={}", recipe::Setting::One(n).text()),
            };
            format!("{}{each}{default}", p.name)
        })
        .collect();
    let parameters = if parameters.is_empty() { String::new() } else { format!("\n  {}", parameters.join(", ")) };
    report::escape_controls(&format!("{}\n  {}{parameters}\n", recipe.name, recipe.summary))
}

/// The names of the recipes in the user's folder, sorted.
fn own() -> Result<Vec<String>, Failure> {
    let Some(entries) = recipe::folder().and_then(|f: PathBuf| std::fs::read_dir(f).ok()) else {
        return Ok(Vec::new());
    };
    let names = entries.flatten().filter_map(|e| e.file_name().to_str()?.strip_suffix(".recipe").map(str::to_string));
    let mut names: Vec<String> = names.filter(|n| !recipe::ALL.iter().any(|(s, _)| s == n)).collect();
    names.sort();
    names.truncate(1000);
    Ok(names)
}
