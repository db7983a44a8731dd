//! Which tensors are results, and the expression of each.
//!
//! Guarantees: no tensor is left out but one that another tensor's expression uses as its sibling, and those that options leave out. Does not: infer
//! dtypes.

use std::collections::{HashMap, HashSet};

use regex::Regex;

use super::args::Common;
use super::expression::Expression;
use super::failure::Failure;
use super::inputs::Input;
use super::plan::Work;
use super::recipe::{Recipes, Values};
use super::report::tensors;
use super::spec::{Missing, UNNAMED};
use super::{close, members, missing, report};

/// The first expression for a name.
fn position(expressions: &[Expression], name: &str) -> Option<usize> {
    expressions.iter().position(|e| e.pattern.as_ref().is_none_or(|p| p.is_match(name)))
}

/// What tensors are computed by.
struct Chosen<'n> {
    /// In the order of the names.
    all: Vec<(&'n str, usize)>,
    /// The tensors that are no results of their own, since the expressions of others use them as siblings.
    used: HashSet<&'n str>,
    values: Values,
}

/// Replaces recipes by the expressions of their tensors. Names without an expression have none then.
fn specialise<'n>(
    inputs: &[Input],
    expressions: &mut Vec<Expression>,
    recipes: &Recipes,
    names: &[(&'n str, Option<usize>)],
) -> Result<Chosen<'n>, Failure> {
    let mut owners: HashMap<&str, Vec<(&str, usize)>> = HashMap::new();
    for (i, input) in inputs.iter().enumerate() {
        input.siblings().for_each(|(of, name)| owners.entry(name).or_default().push((of, i)));
    }
    let given = expressions.len();
    let mut specialiser = recipes.specialiser(inputs);
    let (mut made, mut used) = (HashMap::new(), HashSet::new());
    // Siblings come after what may use them.
    let (siblings, others): (Vec<_>, Vec<_>) = names.iter().copied().partition(|(name, _)| owners.contains_key(name));
    for (name, e) in others.into_iter().chain(siblings) {
        let uses = |(of, input): &(&str, usize)| {
            let e = made.get(of).copied().or_else(|| position(&expressions[..given], of));
            e.is_some_and(|e| expressions[e].uses.contains(input))
        };
        if owners.get(name).is_some_and(|of| of.iter().any(uses)) {
            used.insert(name);
        } else if let Some(e) = e {
            made.insert(name, specialiser.expression(name, e, expressions)?);
        }
    }
    let all: Vec<(&str, usize)> = names.iter().filter_map(|(name, _)| Some((*name, *made.get(name)?))).collect();
    let values = specialiser.values(expressions, all.iter().map(|(_, e)| *e));
    Ok(Chosen { all, used, values })
}

impl Work {
    /// The names to evaluate, in the order of the first input that has them, each with its expression. Adds notes about
    /// names that an input lacks.
    pub(super) fn names(&mut self, common: &Common, recipes: &Recipes) -> Result<Vec<(String, usize)>, Failure> {
        if !self.named {
            let last = self.expressions.len() - 1;
            let chosen = specialise(&self.inputs, &mut self.expressions, recipes, &[(UNNAMED, Some(last))])?;
            self.notes.extend(chosen.values.notes.iter().cloned());
            self.values = chosen.values;
            return Ok(chosen.all.into_iter().map(|(n, e)| (n.to_string(), e)).collect());
        }
        let mut seen = HashSet::new();
        let mut every: Vec<&str> = Vec::new();
        for input in &self.inputs {
            every.extend(input.names().unwrap_or_default().into_iter().filter(|n| seen.insert(*n)));
        }
        let selected = |n: &&str| {
            common.select.as_ref().is_none_or(|r| r.is_match(n)) && !common.skip.as_ref().is_some_and(|r| r.is_match(n))
        };
        let mut names: Vec<(&str, Option<usize>)> =
            every.iter().copied().filter(selected).map(|n| (n, position(&self.expressions, n))).collect();
        let chosen = specialise(&self.inputs, &mut self.expressions, recipes, &names)?;
        every.retain(|n| !chosen.used.contains(n));
        names.retain(|(n, _)| !chosen.used.contains(n));
        if names.is_empty() && !every.is_empty() {
            let text = "--select and --skip select no tensor name";
            return Err(Failure { text: report::error(text), code: 1 });
        }
        let mut notes = self.unused(common, &every, &names);
        let unmapped: Vec<&str> = names.iter().filter(|(_, e)| e.is_none()).map(|(n, _)| *n).collect();
        if !unmapped.is_empty() {
            let count = unmapped.len();
            let matches = if count == 1 { "matches" } else { "match" };
            notes.push(format!(
                "warning: {} {matches} no --map, left out: {}",
                tensors(count),
                report::names(unmapped)
            ));
        }
        let all: Vec<(String, usize)> = chosen.all.into_iter().map(|(n, e)| (n.to_string(), e)).collect();
        self.notes.extend(notes);
        self.notes.extend(chosen.values.notes.iter().cloned());
        self.values = chosen.values;
        self.complete(common, recipes, all)
    }

    /// Warnings about patterns that select no tensor. `every` has all names, `chosen` the selected ones.
    fn unused(&self, common: &Common, every: &[&str], chosen: &[(&str, Option<usize>)]) -> Vec<String> {
        let found = |pattern: &Regex| every.iter().any(|n| pattern.is_match(n));
        let warning = |option: &str, pattern: &Regex, what: &str| {
            format!("warning: --{option} `{}` {what}", report::escaped(pattern.as_str()))
        };
        let nowhere = "matches no tensor's name";
        let mut notes = Vec::new();
        notes.extend(common.skip.as_ref().filter(|p| !found(p)).map(|p| warning("skip", p, nowhere)));
        for (i, e) in self.expressions.iter().enumerate() {
            let Some(pattern) = e.pattern.as_ref().filter(|_| !chosen.iter().any(|(_, e)| *e == Some(i))) else {
                continue;
            };
            let taken = "has no tensor left: the tensors that it matches have an earlier --map, or are not selected";
            notes.push(warning("map", pattern, if found(pattern) { taken } else { nowhere }));
        }
        notes
    }

    /// Keeps the names that all inputs of their expressions have, and handles the others as `--missing` says.
    fn complete(
        &mut self,
        common: &Common,
        recipes: &Recipes,
        chosen: Vec<(String, usize)>,
    ) -> Result<Vec<(String, usize)>, Failure> {
        let lacks = missing::lacks(&self.inputs, &self.expressions, &chosen);
        let has = |n: &str, e: &Expression| e.uses.iter().all(|i| self.inputs[*i].has(n));
        let has_all = |(n, e): &(String, usize)| has(n, &self.expressions[*e]);
        // A selection may be of copied tensors alone. That the inputs' names fit is then shown by names that are not selected.
        let fits =
            |i: &Input| i.names().unwrap_or_default().into_iter().any(|n| self.expressions.iter().any(|e| has(n, e)));
        let copied = matches!(common.missing, Some(Missing::Copy(_))) && self.inputs.iter().any(fits);
        if !copied && !chosen.iter().any(has_all) {
            let mut text = report::error("there is no tensor name that all inputs have");
            close::hints(&self.inputs, &lacks)
                .chain(members::hints(&self.inputs))
                .for_each(|hint| text += &format!("\n{}", report::escape_controls(&hint)));
            return Err(Failure { text, code: 1 });
        }
        let from = match common.missing.as_ref().unwrap_or(&Missing::Error) {
            Missing::Error if lacks.is_empty() => return Ok(chosen),
            Missing::Error => {
                let hints = close::hints(&self.inputs, &lacks).chain(members::hints(&self.inputs));
                return Err(missing::refused(&self.inputs, &lacks, hints));
            }
            Missing::Skip => {
                self.notes.extend(lacks.iter().map(|l| l.skipped(&self.inputs)));
                return Ok(chosen.into_iter().filter(has_all).collect());
            }
            Missing::Copy(from) => from.as_deref(),
        };
        self.notes.extend(lacks.iter().map(|l| l.copied(&self.inputs)));
        let mut copies: HashMap<usize, usize> = HashMap::new();
        let mut names = Vec::with_capacity(chosen.len());
        for (name, e) in chosen {
            if self.expressions[e].uses.iter().all(|i| self.inputs[*i].has(&name)) {
                names.push((name, e));
                continue;
            }
            let of_model = |input: &str| recipes.is_of_model(input);
            let source = missing::source(&self.inputs, &self.expressions[e].uses, of_model, from, &name)?;
            let copy = *copies.entry(source).or_insert_with(|| {
                self.expressions.push(Expression::input(&self.inputs[source].name, source));
                self.expressions.len() - 1
            });
            names.push((name, copy));
        }
        Ok(names)
    }
}
