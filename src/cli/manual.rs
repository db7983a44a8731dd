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
    bytes.extend_from_slice(names(arguments.shell).as_bytes());
    text(bytes)
}

/// What completes the names of ops, recipes and tensors: before the script for commands and options is asked, the command is.
fn names(shell: Shell) -> &'static str {
    match shell {
        // Bash replaces what follows the last of `=`, `:` and `@` in a word.
        Shell::Bash => {
            r#"
_castwise_names() {
    local line="${COMP_LINE:0:COMP_POINT}" name
    local word="${line##* }" rest="${line% *}"
    local cut="${word%"${word##*[=:@]}"}"
    COMPREPLY=()
    while IFS= read -r name; do
        COMPREPLY+=("${name#"$cut"}")
    done < <("${COMP_WORDS[0]}" complete -- "${rest##* }" "$word" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -gt 0 ]] || _castwise "$@"
}
complete -F _castwise_names -o bashdefault -o default castwise
"#
        }
        Shell::Fish => {
            "
complete -c castwise -a '(castwise complete -- (commandline -opc)[-1] (commandline -ct) 2>/dev/null)'
"
        }
        Shell::Zsh => {
            r#"
_castwise_names() {
    local -a names
    names=("${(@f)$(castwise complete -- "${words[CURRENT-1]}" "${words[CURRENT]}" 2>/dev/null)}")
    if [[ -n "${names[1]}" ]]; then compadd -U -- $names; else _castwise "$@"; fi
}
compdef _castwise_names castwise
"#
        }
        _ => "",
    }
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
