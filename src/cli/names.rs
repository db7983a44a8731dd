//! The names of an input's tensors in expressions: those of the file, renamed ones (`--rename`), or those whose siblings
//! the input has (`--sibling`).
//!
//! Guarantees: a name leads to one tensor of the file; two tensors that would have one name are an error. Does not: open
//! files.

use std::collections::HashMap;

use super::failure::Failure;
use super::report;
use super::spec::Rename;

/// The names of an input's tensors.
pub(super) enum Names {
    /// Those of the file.
    Stored,
    /// New names, in the order of the file, each with that of the file.
    Renamed { order: Vec<String>, stored: HashMap<String, String> },
    /// The tensors with a sibling, and the sibling of each by its name in expressions and in the file.
    Siblings(HashMap<String, (String, String)>),
}

impl Names {
    /// The names after these changes, in their order. Adds warnings about changes that match no name.
    pub(super) fn renamed(all: &[&str], rules: &[&Rename], notes: &mut Vec<String>) -> Result<Names, Failure> {
        if rules.is_empty() {
            return Ok(Names::Stored);
        }
        let mut order: Vec<String> = all.iter().map(|name| name.to_string()).collect();
        for rule in rules {
            let mut found = false;
            for name in &mut order {
                if rule.pattern.is_match(name) {
                    found = true;
                    *name = rule.pattern.replace_all(name, rule.to.as_str()).into_owned();
                }
            }
            if !found {
                let (rule, names) = (written(rule), report::names(order.iter().map(String::as_str)));
                notes.push(format!("warning: --rename `{rule}` matches no tensor's name; there are {names}"));
            }
        }
        let mut stored = HashMap::with_capacity(order.len());
        for (new, old) in order.iter().zip(all) {
            let refuse = |text: String| Failure { text: report::error(&format!("--rename: {text}")), code: 1 };
            if new.is_empty() {
                return Err(refuse(format!("nothing is left of the name `{}`", report::escaped(old))));
            }
            if let Some(other) = stored.insert(new.clone(), old.to_string()) {
                let (new, old, other) = (report::escaped(new), report::escaped(old), report::escaped(&other));
                return Err(refuse(format!("`{other}` and `{old}` both become `{new}`")));
            }
        }
        Ok(Names::Renamed { order, stored })
    }

    /// The names of the file with another one, for a tensor of the file.
    pub(super) fn with(all: &[&str], stored: impl Fn(&str) -> Option<String>, new: &str, of: &str) -> Names {
        let mut order: Vec<String> = all.iter().map(|n| n.to_string()).collect();
        let mut names: HashMap<String, String> = all.iter().filter_map(|n| Some((n.to_string(), stored(n)?))).collect();
        names.extend(stored(of).map(|own| (new.to_string(), own)));
        order.push(new.to_string());
        Names::Renamed { order, stored: names }
    }

    /// The siblings of tensors, whose names in the file `stored` gives if there are such tensors.
    pub(super) fn siblings(all: &[&str], rule: &Rename, stored: impl Fn(&str) -> Option<String>) -> Names {
        let sibling = |name: &&str| {
            let other = rule.pattern.is_match(name).then(|| rule.pattern.replace_all(name, rule.to.as_str()))?;
            let own = stored(&other).filter(|_| other != *name)?;
            Some((name.to_string(), (other.into_owned(), own)))
        };
        Names::Siblings(all.iter().filter_map(sibling).collect())
    }

    /// The name in the file of the tensor for a name in expressions. `None` for names that others have.
    pub(super) fn stored<'n>(&'n self, name: &'n str) -> Option<&'n str> {
        match self {
            Names::Stored => Some(name),
            Names::Renamed { stored, .. } => stored.get(name).map(String::as_str),
            Names::Siblings(of) => of.get(name).map(|(_, stored)| stored.as_str()),
        }
    }
}

/// A change of names as it was given.
pub(super) fn written(rule: &Rename) -> String {
    let Rename { input, pattern, to } = rule;
    report::escape_controls(&format!("{input}:{pattern}={to}"))
}
