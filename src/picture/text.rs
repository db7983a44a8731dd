//! Text of pictures: escaped, cut, and measured.
//!
//! Guarantees: escaped text is text in XML and HTML, whatever it contains. Does not: know the widths of fonts; the text of
//! boxes is in a font of equal widths.

use std::ops::Range;

use crate::base::error::SourceLocation;

/// Text for XML and HTML: markup, control characters, marks of direction and what XML has no character for are escaped.
///
/// ```
/// assert_eq!(castwise::picture::escaped("a<b & \u{1b}"), "a&lt;b &amp; \\u{1b}");
/// ```
pub fn escaped(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => made += "&amp;",
            '<' => made += "&lt;",
            '>' => made += "&gt;",
            '"' => made += "&quot;",
            '\'' => made += "&#39;",
            '\\' => made.push(c),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                made.extend(c.escape_unicode());
            }
            // Invisible characters, those that join others, and those that are none.
            c => made.extend(c.escape_debug()),
        }
    }
    made
}

/// The number of cells that a text has in a font of equal widths, at most: what is not Latin counts as two.
pub(super) fn cells(text: &str) -> usize {
    text.chars().map(|c| if (c as u32) < 0x300 || matches!(c, '…' | '≈' | '→' | '↑') { 1 } else { 2 }).sum()
}

/// The beginning of a text, of at most so many cells after it is escaped.
pub(super) fn cut(text: &str, most: usize) -> String {
    let shown: String = text.chars().take(most + 1).flat_map(visible).collect();
    if cells(&shown) <= most && text.chars().nth(most + 1).is_none() {
        return shown;
    }
    let (mut made, mut width) = (String::new(), 0);
    for c in shown.chars() {
        width += cells(c.encode_utf8(&mut [0; 4]));
        if width >= most {
            break;
        }
        made.push(c);
    }
    made + "…"
}

/// A character as it is shown: invisible ones by their numbers.
fn visible(c: char) -> impl Iterator<Item = char> {
    let plain = matches!(c, '\'' | '"' | '\\');
    let escape: Box<dyn Iterator<Item = char>> = match c {
        _ if plain => Box::new(std::iter::once(c)),
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Box::new(c.escape_unicode()),
        c => Box::new(c.escape_debug()),
    };
    escape
}

/// The text that a node was written as, if it was written in `source`.
pub(super) fn written<'s>(source: &'s str, location: &SourceLocation) -> Option<&'s str> {
    let SourceLocation::Text(Range { start, end }) = location else { return None };
    source.get(*start as usize..*end as usize).filter(|t| !t.is_empty())
}
