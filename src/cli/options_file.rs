//! Options from a file: `--config FILE`.
//!
//! Guarantees: the file says what arguments say, and an option among the arguments wins; a key that is no option is a usage error of the
//! command. Does not: let an argument replace the expression, or an input, parameter or sibling: to give these twice is a usage error.

use std::ffi::OsString;
use std::path::PathBuf;

use castwise::io::read_text;
use toml::{Table, Value};

use super::failure::Failure;
use super::report;

/// The maximum size of a file in bytes.
const MOST: u64 = 1 << 20;

/// The commands that have the option.
const COMMANDS: [&str; 4] = ["dump", "eval", "explain", "grad"];

/// Arguments, and the file that some of them are from.
pub(super) type WithFile = (Vec<OsString>, Option<PathBuf>);

/// Adds the arguments of the file that `--config` names.
pub(super) fn with_file(mut arguments: Vec<OsString>, root: &clap::Command) -> Result<WithFile, Failure> {
    let is_command = arguments.get(1).and_then(|c| c.to_str()).is_some_and(|c| COMMANDS.contains(&c));
    let end = arguments.iter().position(|a| a == "--").unwrap_or(arguments.len());
    let is_option = |a: &OsString| a.to_str().is_some_and(|a| a == "--config" || a.starts_with("--config="));
    let Some(at) = arguments[..end].iter().position(is_option).filter(|_| is_command) else {
        return Ok((arguments, None));
    };
    let joined = arguments[at].to_str().and_then(|a| a.strip_prefix("--config=")).map(OsString::from);
    let Some(path) = joined.or_else(|| arguments.get(at + 1).cloned()) else { return Ok((arguments, None)) };
    let path = PathBuf::from(path);
    let refuse = |text: String| Failure { text: report::error(&format!("{}: {text}", path.display())), code: 2 };
    let table: Table = toml::from_str(&read_text(&path, MOST)?)
        .map_err(|e: toml::de::Error| refuse(report::cut(e.to_string().trim_end(), 400)))?;
    let mut made: Vec<OsString> = Vec::new();
    for (key, value) in table {
        let more = match (key.as_str(), &value) {
            // With a space, so that no expression is an option.
            ("expression", Value::String(text)) if text.starts_with('-') => vec![format!(" {text}")],
            ("expression", Value::String(text)) => vec![text.clone()],
            ("inputs" | "parameters" | "siblings", Value::Table(entries)) => {
                let option = format!("--{}", key.trim_end_matches('s'));
                let all = flat(entries).into_iter();
                all.flat_map(|(name, v)| [option.clone(), format!("{name}={}", written(v))]).collect()
            }
            ("expression", _) => return Err(refuse("`expression` is a text".into())),
            ("inputs" | "parameters" | "siblings", _) => return Err(refuse(format!("`{key}` is a table of names"))),
            (_, Value::Table(_)) => return Err(refuse(format!("`{}` is no option with names", report::escaped(&key)))),
            _ => {
                let name = key.replace('_', "-");
                let command = arguments.get(1).and_then(|c| c.to_str()).and_then(|c| root.find_subcommand(c));
                let known = |c: &clap::Command| c.get_arguments().any(|a| a.get_long() == Some(&name));
                if name == "config" || !command.is_some_and(known) {
                    return Err(refuse(format!("there is no option `{}`", report::escaped(&key))));
                }
                option(&name, &value, &arguments)
            }
        };
        made.extend(more.into_iter().map(OsString::from));
    }
    arguments.splice(2..2, made);
    Ok((arguments, Some(path)))
}

/// The entries of a table of names, in which `weight.math = 1` is the name `weight.math`, and `{filter = "mlp", value = 1}` a value.
fn flat(entries: &Table) -> Vec<(String, &Value)> {
    let mut all = Vec::new();
    for (name, value) in entries {
        match value {
            Value::Table(more) if !more.contains_key("value") => {
                all.extend(flat(more).into_iter().map(|(end, v)| (format!("{name}.{end}"), v)));
            }
            value => all.push((name.clone(), value)),
        }
    }
    all
}

/// An option, unless it is among the arguments.
fn option(name: &str, value: &Value, arguments: &[OsString]) -> Vec<String> {
    let long = format!("--{name}");
    let short = match name {
        "output" => "-o",
        "force" => "-f",
        "quiet" => "-q",
        _ => "--",
    };
    // The first argument is an expression, if more than a letter follows its sign.
    let attached = |i: usize, a: &str| short != "--" && a.starts_with(short) && (i != 2 || a == short);
    let is_it = |(i, a): (usize, &OsString)| {
        a.to_str().is_some_and(|a| a == long || a.starts_with(&format!("{long}=")) || attached(i, a))
    };
    if arguments.iter().enumerate().any(is_it) {
        return Vec::new();
    }
    match value {
        Value::Boolean(true) => vec![long],
        Value::Boolean(false) => Vec::new(),
        Value::Array(all) => all.iter().map(|v| format!("{long}={}", written(v))).collect(),
        one => vec![format!("{long}={}", written(one))],
    }
}

/// A value as an argument: texts as they are, lists and tables as YAML reads them.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(n) => n.to_string(),
        Value::Float(n) => n.to_string(),
        Value::Boolean(b) => b.to_string(),
        Value::Datetime(d) => d.to_string(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
