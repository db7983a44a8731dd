//! Regular expressions from a file, all of which are looked for in a name at once.
//!
//! Guarantees: the syntax is that of the crate `regex`; together they take some tens of megabytes at most, however they are
//! written. Those without operators but the dot, which names of tensors of another model are, are any number, and a
//! search for them takes no longer with more of them. Does not: say where in a name an expression is found.

use std::ops::Range;

use regex_automata::meta::{self, Regex};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind, PatternSet};

use super::report;

/// The most bytes of one expression. A class of two letters (`\w`) takes kilobytes when it is read, before anything can
/// be said about the size of the whole.
pub(super) const MAX_LENGTH: usize = 16 << 10;
/// The most bytes of states that all of them are compiled to: what the crate `regex` lets a single one have.
const MAX_STATES: usize = 10 << 20;
/// What a search may keep of the sets of states it has been in.
const MAX_CACHE: usize = 32 << 20;
/// Names up to here are searched from each of their characters. These searches share their few sets of states, where in
/// one search for all beginnings each set has the first states of all expressions.
const SHORT: usize = 256;
/// How much is shown of what is wrong with one, which quotes it.
const SHOWN: usize = 500;

/// Expressions, by their positions.
pub(super) struct Patterns<'p> {
    plain: Plain<'p>,
    /// The others, as one automaton, and their positions.
    all: Regex,
    positions: Vec<usize>,
    found: PatternSet,
}

/// Which expression is refused, and why.
pub(super) struct Refused {
    pub(super) position: usize,
    pub(super) why: String,
}

impl<'p> Patterns<'p> {
    pub(super) fn new(patterns: impl Iterator<Item = &'p str>) -> Result<Patterns<'p>, Refused> {
        let (mut plain, mut parsed, mut positions, mut left) = (Vec::new(), Vec::new(), Vec::new(), MAX_STATES);
        for (position, pattern) in patterns.enumerate() {
            if is_plain(pattern) {
                plain.push((pattern, position));
                continue;
            }
            let refuse = |why: String| Refused { position, why };
            check_length(pattern).map_err(refuse)?;
            let one = syntax::parse(pattern).map_err(|e| refuse(not_one(&e)))?;
            // Each one is measured, so that those that are kept to be compiled together are bounded too.
            let config = thompson::Config::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(left));
            let compiled = thompson::Compiler::new().configure(config).build_from_hir(&one);
            let size = compiled.map(|c| c.memory_usage()).map_err(|_| refuse(too_large()))?;
            left = left.checked_sub(size).ok_or_else(|| refuse(too_large()))?;
            parsed.push(one);
            positions.push(position);
        }
        let config = meta::Config::new()
            .match_kind(MatchKind::All)
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(Some(2 * MAX_STATES))
            .hybrid_cache_capacity(MAX_CACHE);
        let all = Regex::builder().configure(config).build_many_from_hir(&parsed);
        let position = positions.last().copied().unwrap_or_default();
        let all = all.map_err(|_| Refused { position, why: too_large() })?;
        let found = PatternSet::new(all.pattern_len());
        Ok(Patterns { plain: Plain::new(plain), all, positions, found })
    }

    /// Calls a function with the position of each that is found in a name, in no order and perhaps several times.
    pub(super) fn find_in(&mut self, name: &str, mut found: impl FnMut(usize)) {
        self.plain.find_in(name, &mut found);
        if self.positions.is_empty() {
            return;
        }
        self.found.clear();
        let input = Input::new(name);
        if name.len() > SHORT {
            self.all.which_overlapping_matches(&input, &mut self.found);
        } else {
            for from in 0..=name.len() {
                let input = input.clone().range(from..).anchored(Anchored::Yes);
                self.all.which_overlapping_matches(&input, &mut self.found);
            }
        }
        self.found.iter().filter_map(|i| self.positions.get(i.as_usize())).for_each(|p| found(*p));
    }
}

/// Whether an expression is characters that stand for themselves, and dots.
fn is_plain(pattern: &str) -> bool {
    !pattern.contains(['\\', '^', '$', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}'])
}

/// Expressions of characters and dots, in order, each with its position.
struct Plain<'p>(Vec<(&'p str, usize)>);

impl<'p> Plain<'p> {
    fn new(mut all: Vec<(&'p str, usize)>) -> Plain<'p> {
        all.sort_unstable();
        Plain(all)
    }

    fn find_in(&self, name: &str, found: &mut impl FnMut(usize)) {
        if self.0.is_empty() {
            return;
        }
        // Ranges of expressions that begin alike, how long these beginnings are, and what is left of the name behind them.
        let mut open: Vec<(Range<usize>, usize, &str)> = Vec::new();
        let mut rest = name;
        loop {
            open.push((0..self.0.len(), 0, rest));
            while let Some((range, depth, rest)) = open.pop() {
                // The one that is no more than its beginning is the first.
                let first = self.0.get(range.start).filter(|(p, _)| p.len() == depth);
                first.into_iter().for_each(|(_, position)| found(*position));
                let mut chars = rest.chars();
                let Some(c) = chars.next() else { continue };
                let any = (c != '\n' && c != '.').then_some('.');
                for next in [Some(c), any].into_iter().flatten() {
                    let narrow = self.narrow(range.clone(), depth, next);
                    if !narrow.is_empty() {
                        open.push((narrow, depth + next.len_utf8(), chars.as_str()));
                    }
                }
            }
            let mut chars = rest.chars();
            if chars.next().is_none() {
                return;
            }
            rest = chars.as_str();
        }
    }

    /// Those of a range that go on with a character.
    fn narrow(&self, range: Range<usize>, depth: usize, next: char) -> Range<usize> {
        let mut buffer = [0; 4];
        let next = next.encode_utf8(&mut buffer).as_bytes();
        let start = |p: &str| {
            let rest = p.as_bytes().get(depth..).unwrap_or_default();
            rest.get(..next.len()).unwrap_or(rest).cmp(next)
        };
        let all = self.0.get(range.clone()).unwrap_or_default();
        let from = all.partition_point(|(p, _)| start(p).is_lt());
        let to = from + all.get(from..).unwrap_or_default().partition_point(|(p, _)| start(p).is_eq());
        range.start + from..range.start + to
    }
}

/// Refuses an expression that is too long to be read.
pub(super) fn check_length(pattern: &str) -> Result<(), String> {
    let len = pattern.len();
    if len <= MAX_LENGTH {
        return Ok(());
    }
    Err(format!("as a regular expression of {len} bytes it is too long: at most {MAX_LENGTH} are read"))
}

fn not_one(e: &dyn std::fmt::Display) -> String {
    format!("not a regular expression: {}", report::cut(&e.to_string(), SHOWN))
}

fn too_large() -> String {
    format!("with it the regular expressions become too large: compiled, at most {} MiB", MAX_STATES >> 20)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use regex::Regex;

    use super::*;
    use crate::random::Random;

    fn found(patterns: &[String], name: &str) -> Vec<usize> {
        let mut patterns = Patterns::new(patterns.iter().map(String::as_str)).map_err(|e| e.why).unwrap();
        let mut all = Vec::new();
        patterns.find_in(name, |p| all.push(p));
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn what_is_found_is_what_each_regex_alone_finds() {
        let mut random = Random(7);
        let mut text = |letters: &[&str], most: u64| -> String {
            let n = random.below(most + 1);
            (0..n).map(|_| letters[random.below(letters.len() as u64) as usize]).collect()
        };
        let (plain, more) = (["a", "b", ".", "é", "\n"], ["a", "b", ".", "\\b", "a*", "[^a]", "^", "$", "é?", "\\."]);
        let (mut hits, mut short) = (0, 0);
        for round in 0..3000 {
            let mut patterns: Vec<String> = (0..12).map(|i| text(if i % 2 == 0 { &plain } else { &more }, 4)).collect();
            patterns.sort();
            patterns.dedup();
            let name = text(&["a", "b", ".", "é", "\n", "-"], 7) + &"-".repeat(if round % 3 == 0 { SHORT } else { 0 });
            let expected = |p: &String| Regex::new(p).unwrap().is_match(&name);
            let expected: Vec<usize> = (0..patterns.len()).filter(|i| expected(&patterns[*i])).collect();
            assert_eq!(found(&patterns, &name), expected, "{patterns:?} in {name:?}");
            hits += expected.len();
            short += usize::from(name.len() <= SHORT);
        }
        assert!(hits > 5000 && short > 1000, "{hits} {short}");
    }
}
