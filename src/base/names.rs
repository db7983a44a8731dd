//! Names from outside as text: escaped for messages, quoted for the text form; suggestions for mistyped names.
//!
//! Guarantees: an escaped name contains no character that a terminal interprets; a quoted name parses back. Does not: know
//! what the names refer to.

use std::fmt::{self, Write};

/// Whether this character changes the text direction in a terminal; `escape_debug` does not escape these.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text in double quotes that parses back: quotes, backslashes and invisible characters are escaped.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\'' => f.write_char(c)?,
                c if is_direction_mark(c) || c.escape_debug().len() > 1 => write!(f, "{}", c.escape_unicode())?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// A name in the text form: bare if it is a plain identifier, else quoted.
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        let plain = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        if plain { f.write_str(self.0) } else { Quoted(self.0).fmt(f) }
    }
}

/// A name from outside, made safe for a message: control characters escaped, truncated to 80 characters.
pub(crate) fn shown(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars().take(80) {
        if is_direction_mark(c) { text.extend(c.escape_unicode()) } else { text.extend(c.escape_debug()) }
    }
    if name.chars().nth(80).is_some() {
        text.push('…');
    }
    text
}

/// The candidate most similar to a mistyped word: one that starts with the word, or one within an edit distance of a
/// quarter of the shorter word's length, but at least 1 and at most 3.
pub(crate) fn nearest<'n>(word: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if word.len() > 64 {
        return None;
    }
    let begun = |n: &str| word.len() >= 3 && n.starts_with(word);
    let cost = |n: &str| if begun(n) { 0 } else { edits(word, n) };
    let allowed = |n: &str| (word.len().min(n.len()) / 4).clamp(1, 3);
    let likely = |n: &&str| n.len() <= 64 && cost(n) <= allowed(n) && (begun(n) || word.len().min(n.len()) > 2);
    candidates.filter(likely).min_by_key(|n| (cost(n), n.len().abs_diff(word.len())))
}

/// The edit distance of two words (Damerau–Levenshtein, with swaps of adjacent letters).
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut older: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (above[j] + (x != y) as usize).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(older[j - 1] + 1);
            }
            row.push(least);
        }
        older = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

/// A path made safe for a message: control characters escaped, truncated to the maximum length of a path.
pub(crate) fn shown_path(path: &str) -> String {
    let mut text = String::new();
    for c in path.chars().take(4096) {
        if c.is_control() || is_direction_mark(c) { text.extend(c.escape_unicode()) } else { text.push(c) }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;

    #[test]
    fn names_are_escaped_and_cut() {
        assert_eq!(shown("a\x1b[2J\u{202e}"), "a\\u{1b}[2J\\u{202e}");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), 81);
        let e = Error::Format { path: "a b/\u{1b}[2J\n\u{202e}'\".npy".into(), message: "broken".into() };
        assert_eq!(e.to_string(), "a b/\\u{1b}[2J\\u{a}\\u{202e}'\".npy: broken");
        let e = Error::Io { path: "\u{7}".repeat(5000), source: std::io::ErrorKind::NotFound.into() };
        assert!(!e.to_string().contains('\u{7}') && e.to_string().len() < 30_000);
        assert_eq!(Name("layer.0").to_string(), "layer.0");
        assert_eq!(Name("0").to_string(), "\"0\"");
        assert_eq!(Name("it's \"ä\"\\\n\u{202e}").to_string(), r#""it's \"ä\"\\\u{a}\u{202e}""#);
    }
}
