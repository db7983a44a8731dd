//! Regular expressions from a file, which are all searched for in a name at once.
//!
//! Guarantees: the syntax is that of the crate `regex`. Together the expressions take at most some tens of megabytes.
//! Expressions without operators other than the dot, such as tensor names of another model, are not limited in number,
//! and the time of a search does not grow with it. Does not: report the position of a match.

use std::ops::Range;

use regex_automata::meta::{self, Regex};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind, PatternSet};

use super::report;

/// The maximum length of one expression in bytes. Parsing a class of two characters (`\w`) takes kilobytes, before the
/// size of the compiled expression is known.
pub(super) const MAX_LENGTH: usize = 16 << 10;
/// The maximum size of the compiled states of all expressions, which is the limit of the crate `regex` for a single
/// one.
const MAX_STATES: usize = 10 << 20;
/// The size of the lazy DFA's cache during a search.
const MAX_CACHE: usize = 32 << 20;
/// Names of at most this length are searched with one anchored search per position. These searches share few sets of
/// states. In a single unanchored search, each set would contain the first states of all expressions.
const SHORT: usize = 256;
/// The maximum length of an error about an expression, which quotes it.
const SHOWN: usize = 500;

/// A set of expressions, which are identified by their positions.
pub(super) struct Patterns<'p> {
    plain: Plain<'p>,
    /// The other expressions as one automaton, and their positions.
    all: Regex,
    positions: Vec<usize>,
    found: PatternSet,
}

/// The position of a refused expression, and the reason.
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
            // Each expression is compiled separately first, which bounds the size of those that are compiled together.
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

    /// Calls a function with the position of each expression that matches in a name, in any order and possibly several
    /// times.
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

/// Whether an expression consists of literal characters and dots.
fn is_plain(pattern: &str) -> bool {
    !pattern.contains(['\\', '^', '$', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}'])
}

/// Expressions of literal characters and dots, sorted, each with its position.
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
        // Ranges of expressions with a common prefix, the length of that prefix, and the rest of the name after it.
        let mut open: Vec<(Range<usize>, usize, &str)> = Vec::new();
        let mut rest = name;
        loop {
            open.push((0..self.0.len(), 0, rest));
            while let Some((range, depth, rest)) = open.pop() {
                // The expression that ends here, if there is one, is the first of the range.
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

    /// The expressions of a range whose next character is `next`.
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

/// Refuses an expression that is too long to be parsed.
pub(super) fn check_length(pattern: &str) -> Result<(), String> {
    let len = pattern.len();
    if len <= MAX_LENGTH {
        return Ok(());
    }
    Err(format!("the regular expression has {len} bytes: the limit is {MAX_LENGTH}"))
}

fn not_one(e: &dyn std::fmt::Display) -> String {
    report::cut(&e.to_string(), SHOWN)
}

fn too_large() -> String {
    format!("the regular expressions are too large when compiled: the limit is {} MiB", MAX_STATES >> 20)
}

#[cfg(test)]
mod tests;
