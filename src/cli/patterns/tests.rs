//! Patterns of tensor names.

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
