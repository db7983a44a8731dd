//! A merge as a command `castwise eval`: `--show`.
//!
//! Guarantees: the command has every option that the merge has; a shell reads each word as it is. Does not: show paths that are not UTF-8.

use super::super::args::{Check, Common, Eval, Target};
use super::super::spec::{InputSpec, Missing};

/// A word for a shell.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@./_-=:,+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_string()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// An input as it is given.
fn input(spec: &InputSpec) -> String {
    match spec {
        InputSpec::File(path) => path.display().to_string(),
        InputSpec::Member(path, member) => format!("{}:{member}", path.display()),
        InputSpec::Declared(dtype, dims) => format!("{dtype}{dims}"),
        InputSpec::Stdin => "-".to_string(),
        // No argument of a merge is one.
        InputSpec::Sibling(_) | InputSpec::Given(_) => String::new(),
    }
}

/// The command.
pub(super) fn command(eval: &Eval) -> String {
    let Eval { common, target, .. } = eval;
    let Common { inputs, rename, parameters, seed, tied, select, skip, out_dtype, missing, .. } = common;
    let Target { output, force, max_shard_size, compress } = target;
    let mut words = vec!["castwise".to_string(), "eval".into(), word(eval.expression.as_deref().unwrap_or_default())];
    let mut add = |option: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|v| [option.to_string(), word(&v)]));
    };
    for (name, spec) in inputs {
        add("-i", Some(format!("{name}={}", input(spec))));
    }
    for (name, value) in parameters {
        add("-p", Some(format!("{name}={}", value.to_string_lossy())));
    }
    for rule in rename {
        add("--rename", Some(format!("{}:{}={}", rule.input, rule.pattern, rule.to)));
    }
    add("--seed", seed.map(|s| s.to_string()));
    add("--missing", missing.as_ref().map(Missing::written));
    add("--select", select.as_ref().map(ToString::to_string));
    add("--skip", skip.as_ref().map(ToString::to_string));
    add("--out-dtype", out_dtype.map(|d| d.to_string()));
    add("--check", eval.check.map(|Check::Finite| "finite".to_string()));
    add("-o", output.as_ref().map(|o| o.display().to_string()));
    add("--max-shard-size", max_shard_size.map(|n| n.to_string()));
    add("--threads", eval.threads.map(|n| n.to_string()));
    add("--memory", eval.memory.map(|n| n.to_string()));
    let flags = [
        ("--tied", *tied),
        ("--force", *force),
        ("--compress", *compress),
        ("--no-copy-rest", eval.no_copy_rest),
        ("--manifest", eval.manifest),
        ("--dry-run", eval.dry_run),
        ("--explain", eval.explain),
        ("--json", eval.json),
        ("--quiet", eval.quiet),
    ];
    words.extend(flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag.to_string()));
    words.join(" ") + "\n"
}
