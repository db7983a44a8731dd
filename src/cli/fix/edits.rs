//! Casts as edits of an expression's text.
//!
//! Guarantees: an edited text has the casts at the operands that were chosen, and nothing else is changed. Does not: know
//! whether the text is typed.

use std::collections::BTreeSet;
use std::ops::Range;

use castwise::expr::operand_ranges;
use castwise::{DType, SourceLocation, TypedProgram};

/// The applications whose operands are found.
const MOST_READ: usize = 256;

/// A cast of a part of the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Edit {
    pub(super) span: Range<usize>,
    pub(super) dtype: DType,
}

/// Whether a text is one group in parentheses, so that a cast needs none of its own.
fn is_group(text: &str) -> bool {
    if !text.starts_with('(') || !text.ends_with(')') {
        return false;
    }
    let (mut depth, mut quoted) = (0usize, false);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quoted => drop(chars.next()),
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => {
                depth = depth.saturating_sub(1);
                if depth == 0 && at + 1 < text.len() {
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}

/// What is inserted at a position, in the order of the text: what ends there, the innermost first; then what begins there, the
/// outermost first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Insertion {
    at: usize,
    begins: bool,
    depth: [usize; 2],
    words: String,
}

/// The text with casts. Edits of one range are nested in their order.
pub(super) fn edited(text: &str, edits: &[Edit]) -> String {
    let mut inserted: Vec<Insertion> = Vec::new();
    for (order, Edit { span, dtype }) in edits.iter().enumerate() {
        let Some(part) = text.get(span.clone()) else { continue };
        let group = is_group(part) && !edits[..order].iter().any(|e| e.span == *span);
        let (open, close, end) = match group {
            true => ("cast".to_string(), format!(", {dtype}"), span.end - 1),
            false => ("cast(".to_string(), format!(", {dtype})"), span.end),
        };
        let size = span.len();
        inserted.push(Insertion {
            at: span.start,
            begins: true,
            depth: [usize::MAX - size, usize::MAX - order],
            words: open,
        });
        inserted.push(Insertion { at: end, begins: false, depth: [size, order], words: close });
    }
    inserted.sort();
    let (mut made, mut at) = (String::new(), 0);
    for insertion in inserted {
        made += &text[at..insertion.at];
        made += &insertion.words;
        at = insertion.at;
    }
    made + &text[at..]
}

/// How near a part of the text is to one of others that it is in: the length of the smallest; and its own length.
pub(super) fn nearness(part: &Range<usize>, others: &[Range<usize>]) -> (usize, usize) {
    let around = others.iter().filter(|o| o.start <= part.start && part.end <= o.end);
    (around.map(ExactSizeIterator::len).min().unwrap_or(usize::MAX), part.len())
}

/// The parts of the text that can be cast: the operands of what the program applies. Each application is read again, so of
/// many the ones in the text of `lossy`, and the shortest of the others.
pub(super) fn sites(text: &str, typed: &TypedProgram, lossy: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut applied: BTreeSet<(usize, usize)> = BTreeSet::new();
    for n in typed.nodes() {
        if let SourceLocation::Text(range) = n.location {
            applied.insert((range.start as usize, range.end as usize));
        }
    }
    let mut applied: Vec<(usize, usize)> = applied.into_iter().collect();
    if applied.len() > MOST_READ {
        applied.sort_by_key(|(start, end)| (nearness(&(*start..*end), lossy), *start));
        applied.truncate(MOST_READ);
    }
    let mut found: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (start, end) in applied {
        let of = text.get(start..end).and_then(operand_ranges).unwrap_or_default();
        found.extend(of.into_iter().map(|r| (start + r.start, start + r.end)));
    }
    found.into_iter().map(|(start, end)| start..end).collect()
}
