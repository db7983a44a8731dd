//! `castwise ops`: lists the ops, and describes one. `castwise complete`: names for completion by a shell.
//!
//! Guarantees: the texts are those of `docs/ops.md`. Does not: know any op by name.

use castwise::{Composite, Op, ops_markdown};

use super::failure::{Failure, print};
use super::inputs::Input;
use super::spec::{InputSpec, located};
use super::{recipe, report};

/// The arguments of `castwise ops`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise ops
  castwise ops quantile
  castwise table add --rules jax      the promotion of an op in full")]
pub(super) struct Arguments {
    /// An op: its operands, what it takes and gives under each rule set, and where it is compiled.
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// The arguments of `castwise complete`.
#[derive(clap::Args)]
pub(super) struct Complete {
    /// The word before the one that is completed.
    #[arg(allow_hyphen_values = true)]
    before: String,
    /// What there is of the word.
    #[arg(allow_hyphen_values = true)]
    word: String,
}

/// The first sentence of a description.
fn first(doc: &str) -> &str {
    let doc = doc.trim();
    doc.split_once(". ").map_or(doc, |(first, _)| first).trim_end_matches('.')
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(name) = &arguments.name else {
        let ops = Op::ALL.iter().map(|op| (op.name(), op.def().doc));
        let lines = ops.chain(Composite::all().map(|c| (c.name(), c.doc())));
        return print(&lines.map(|(name, doc)| format!("{name:22} {}\n", first(doc))).collect::<String>());
    };
    let whole = ops_markdown();
    if let Some(op) = Op::from_name(name) {
        let section = whole.split("\n## ").find(|s| s.lines().next() == Some(op.name()));
        return print(&format!(
            "{}\n",
            section.unwrap_or_default().split("\n# ").next().unwrap_or_default().trim_end()
        ));
    }
    let start = format!("- `{name}(");
    if let Some(line) = whole.lines().find(|l| l.starts_with(&start)) {
        return print(&format!("{}\n", line.trim_start_matches("- ")));
    }
    let known = names();
    let near = known.iter().filter(|n| n.contains(name.as_str()) || name.contains(n.as_str()));
    let near: Vec<String> = near.take(5).map(|n| format!("`{n}`")).collect();
    let near = if near.is_empty() { String::new() } else { format!("; there are {}", report::listed(&near, "and")) };
    Err(Failure::usage(format!("there is no op `{}`{near}", report::escaped(name))))
}

/// The names of ops and composites.
fn names() -> Vec<String> {
    let ops = Op::ALL.iter().map(|op| op.name());
    ops.chain(Composite::all().map(|c| c.name())).map(str::to_string).collect()
}

/// Prints the names that a word can become.
pub(super) fn complete(arguments: &Complete, root: &clap::Command) -> Result<(), Failure> {
    let Complete { before, word } = arguments;
    let recipes = |sign: &str| recipe::ALL.iter().map(|(n, _)| format!("{sign}{n}")).collect::<Vec<_>>();
    let all = match before.as_str() {
        "ops" | "table" | "--op" => names(),
        "show" => recipes(""),
        "man" | "help" => {
            let shown = |c: &&clap::Command| !c.is_hide_set();
            root.get_subcommands().filter(shown).map(|c| c.get_name().to_string()).collect()
        }
        _ if word.starts_with('@') => recipes("@"),
        _ => tensors(word),
    };
    let fitting = all.iter().filter(|n| n.starts_with(word.as_str()));
    print(&fitting.map(|n| report::escape_controls(n) + "\n").collect::<String>())
}

/// `NAME=FILE:` or `FILE:`, also behind `--input=`, with the names of the file's tensors, without those that a shell would not read as they are: bash puts
/// a completion into the line as it is, and files are untrusted.
fn tensors(word: &str) -> Vec<String> {
    let value = word.strip_prefix("--input=").unwrap_or(word);
    let file = value.split_once('=').map_or(value, |(_, file)| file);
    let name = &word[..word.len() - file.len()];
    let Some(colon) = file.rfind(':') else { return Vec::new() };
    let InputSpec::Member(path, _) = located(file.into()) else { return Vec::new() };
    let Ok(input) = Input::open("", &InputSpec::File(path)) else { return Vec::new() };
    let plain = |n: &&str| n.chars().all(|c| c.is_alphanumeric() || "._-/+,@%".contains(c));
    let all = input.names().unwrap_or_default();
    all.into_iter().filter(plain).take(10_000).map(|n| format!("{name}{}:{n}", &file[..colon])).collect()
}
