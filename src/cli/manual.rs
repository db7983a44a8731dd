//! `castwise completions` and `castwise man`, which are generated from the definition of the command line.
//!
//! Guarantees: the output has every command and option. Does not: install anything.

use clap_complete::Shell;

use super::failure::{Failure, print};
use super::report;

/// The arguments of `castwise completions`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  castwise completions bash > ~/.local/share/bash-completion/completions/castwise")]
pub(crate) struct Completions {
    /// The shell to generate completions for.
    #[arg(value_enum)]
    shell: Shell,
}

/// The arguments of `castwise man`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  castwise man eval | man -l -")]
pub(crate) struct Man {
    /// The command to describe (default: castwise itself).
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

fn text(bytes: Vec<u8>) -> Result<(), Failure> {
    print(&String::from_utf8_lossy(&bytes))
}

pub(super) fn completions(arguments: &Completions, mut root: clap::Command) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    clap_complete::generate(arguments.shell, &mut root, "castwise", &mut bytes);
    text(bytes)
}

pub(super) fn man(arguments: &Man, mut root: clap::Command) -> Result<(), Failure> {
    root.build();
    let command = match &arguments.command {
        None => root,
        Some(name) => {
            let found = root.find_subcommand(name).cloned();
            found.ok_or_else(|| Failure::usage(format!("there is no command `{}`", report::escaped(name))))?
        }
    };
    let mut bytes = Vec::new();
    let written = clap_mangen::Man::new(command).render(&mut bytes);
    written.map_err(|source| castwise::Error::Io { path: "stdout".into(), source })?;
    text(bytes)
}
