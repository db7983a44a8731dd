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

pub(super) fn completions(arguments: &Completions, root: clap::Command) -> Result<(), Failure> {
    let mut root = shown(&root);
    let mut bytes = Vec::new();
    clap_complete::generate(arguments.shell, &mut root, "castwise", &mut bytes);
    let script = String::from_utf8_lossy(&bytes).into_owned();
    let script = match arguments.shell {
        // `compgen` splits names of files at spaces and puts them into the line as they are. Bash's own completion of
        // files, which follows where there is nothing else, quotes them.
        Shell::Bash => script.replace("COMPREPLY=($(compgen -f \"${cur}\"))", "COMPREPLY=()"),
        Shell::Zsh => colons(script, &root),
        _ => script,
    };
    print(&(script + names(arguments.shell)))
}

/// The command without its hidden commands, which scripts of most shells would list.
fn shown(root: &clap::Command) -> clap::Command {
    let commands = root.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let new = clap::Command::new("castwise").version(env!("CARGO_PKG_VERSION"));
    new.args(root.get_arguments().cloned()).subcommands(commands)
}

/// A script for zsh with the colons in names of values escaped: zsh would run what follows them as a command.
fn colons(script: String, root: &clap::Command) -> String {
    let arguments = root.get_subcommands().flat_map(|command| command.get_arguments());
    let values = arguments.filter_map(|argument| argument.get_value_names()).flatten();
    let with_colons = values.filter(|value| value.contains(':'));
    with_colons.fold(script, |script, value| {
        script.replace(&format!(":{value}:"), &format!(":{}:", value.replace(':', "\\:")))
    })
}

/// What completes the names of ops, recipes and tensors: before the script for commands and options is asked, the command is.
fn names(shell: Shell) -> &'static str {
    match shell {
        // Bash replaces what it gives as the second argument: what follows the last `=`, `:` or (with it) `@`, if these break
        // words.
        Shell::Bash => {
            r#"
_castwise_names() {
    local line="${COMP_LINE:0:COMP_POINT}" name
    local word="${line##* }" rest="${line% *}"
    word="${word#[\"\']}"
    local cut="${word%"$2"}"
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
            r#"
function __fish_castwise_names
    # The word without its quotes and backslashes, also where a quote is still open.
    set -l word (commandline -ct)
    set word (string unescape -- $word; or string unescape -- $word\'; or string unescape -- $word\")
    castwise complete -- (commandline -opc)[-1] (string replace -r -- '^(--input=|-i)' '' "$word") 2>/dev/null
end
complete -c castwise -a '(__fish_castwise_names)'
# What follows an option is completed by what is known of the option.
complete -c castwise -n '__fish_castwise_using_subcommand eval run explain grad dump merge' -s i -l input -r -a '(__fish_castwise_names)'
complete -c castwise -n '__fish_castwise_using_subcommand ops table man help completions' -f
complete -c castwise -n '__fish_castwise_using_subcommand completions' -a 'bash elvish fish powershell zsh'
"#
        }
        Shell::Zsh => {
            r#"
_castwise_named() {
    local -a names
    names=("${(@f)$(castwise complete -- "${words[CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    [[ -n "${names[1]}" ]] && compadd -U -- $names
}
_castwise_names() {
    _castwise_named && return
    # A file after the name of an input.
    if [[ "$PREFIX" == [[:alpha:]_]*=* ]] && compset -P "[^=]#="; then _files; else _castwise "$@"; fi
}
compdef _castwise_names castwise
# The first time, if zsh has found this file itself, the script above has asked `_castwise` alone.
if [[ "$funcstack[1]" == _castwise ]]; then _castwise_named || (( compstate[nmatches] )); fi
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
