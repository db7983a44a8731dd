//! Names that are close to those that an input lacks.
//!
//! Guarantees: few names are compared with all others, and each hint has the option that makes the names equal. Does not:
//! rename anything.

use std::collections::{HashMap, HashSet};

use super::inputs::Input;
use super::missing::Lack;
use super::report;

/// The number of lacked names of an input that are compared with all of its names.
const COMPARED: usize = 20;

/// Hints about the inputs that lack names: their names that differ in a part at the beginning, with the `--rename` for
/// it, or else the name that is closest.
pub(super) fn hints<'i>(inputs: &'i [Input], lacks: &'i [Lack]) -> impl Iterator<Item = String> + 'i {
    lacks.iter().filter_map(|lack| {
        let input = &inputs[lack.input];
        if input.is_sibling() && input.siblings().next().is_none() {
            let (name, path) = (report::escaped(&input.name), input.path.display());
            return Some(format!("help: no tensor of {path} has a sibling `{name}` by the rule of --sibling"));
        }
        let own: Vec<&str> = input.names()?;
        // Names that other inputs have, too, are not meant.
        let others: HashSet<&str> =
            inputs.iter().filter(|i| i.name != input.name).filter_map(Input::names).flatten().collect();
        let own: Vec<&str> = own.into_iter().filter(|n| !others.contains(n)).collect();
        let lacked: Vec<&str> = lack.names.iter().map(String::as_str).collect();
        prefixed(&input.name, &own, &lacked).or_else(|| closest(&input.name, &own, &lacked))
    })
}

/// The hint about a prefix that the names of one input have and those of others lack.
fn prefixed(input: &str, own: &[&str], lacked: &[&str]) -> Option<String> {
    let known: HashSet<&str> = own.iter().copied().collect();
    let wanted: HashSet<&str> = lacked.iter().copied().collect();
    // How many names become equal if this prefix is removed from, or added to, names of the input.
    let mut removed: HashMap<&str, usize> = HashMap::new();
    let mut added: HashMap<&str, usize> = HashMap::new();
    for name in own {
        parts(name).filter(|(_, rest)| wanted.contains(rest)).for_each(|(p, _)| *removed.entry(p).or_default() += 1);
    }
    for name in lacked {
        parts(name).filter(|(_, rest)| known.contains(rest)).for_each(|(p, _)| *added.entry(p).or_default() += 1);
    }
    let (remove, add) = (most_frequent(removed), most_frequent(added));
    let (prefix, count, adds) = match (remove, add) {
        (Some((p, n)), Some((_, m))) if n >= m => (p, n, false),
        (_, Some((p, m))) => (p, m, true),
        (Some((p, n)), None) => (p, n, false),
        (None, None) => return None,
    };
    let rule = if adds { format!("{input}:^={prefix}") } else { format!("{input}:^{}=", regex::escape(prefix)) };
    let names = if count == 1 { "a name".to_string() } else { format!("{count} names") };
    let differ = if count == 1 { "differs from one" } else { "differ from those" };
    let (input, prefix, rule) = (report::escaped(input), report::escaped(prefix), report::escape_controls(&rule));
    Some(format!("help: {names} of `{input}` {differ} of others by the prefix `{prefix}` only: --rename '{rule}'"))
}

/// The prefix that most names have; of several, the shortest.
fn most_frequent(of: HashMap<&str, usize>) -> Option<(&str, usize)> {
    of.into_iter().max_by(|(p, n), (q, m)| n.cmp(m).then(q.len().cmp(&p.len())).then(q.cmp(p)))
}

/// The ways to divide a name after a dot.
fn parts(name: &str) -> impl Iterator<Item = (&str, &str)> {
    name.match_indices('.').map(|(at, _)| name.split_at(at + 1)).filter(|(_, rest)| !rest.is_empty())
}

/// The hint about the name of an input that has the longest end in common with one that it lacks.
fn closest(input: &str, own: &[&str], lacked: &[&str]) -> Option<String> {
    let common = |a: &str, b: &str| {
        let ends = a.rsplit('.').zip(b.rsplit('.')).take_while(|(x, y)| x == y).count();
        let starts = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
        (ends > 0 && (ends > 1 || starts > 0)).then_some((ends, starts))
    };
    let pairs = lacked.iter().take(COMPARED).flat_map(|wanted| own.iter().map(move |name| (*wanted, *name)));
    let best = pairs.filter_map(|(wanted, name)| Some((common(wanted, name)?, wanted, name))).max_by_key(|(n, ..)| *n);
    let (_, wanted, name) = best?;
    let (input, wanted, name) = (report::escaped(input), report::escaped(wanted), report::escaped(name));
    Some(format!("help: `{input}` has no `{wanted}`, but `{name}`: --rename '{input}:REGEX=TEXT' renames tensors"))
}
