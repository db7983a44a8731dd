//! Integers and bools that a recipe copies: they must be equal in all inputs.
//!
//! Guarantees: an output is only begun if they are. Does not: keep the tensors in memory.

use super::failure::Failure;
use super::plan::Work;
use super::report;

/// Compares the tensors byte for byte.
pub(super) fn check(work: &mut Work) -> Result<(), Failure> {
    let mut differ: Vec<(&str, &str, &str)> = Vec::new();
    let mut wrong = Vec::new();
    for (at, (name, positions)) in work.values.equal.iter().enumerate() {
        let Some((first, others)) = positions.split_first() else { continue };
        let one = work.inputs[*first].bytes_of(name)?;
        for other in others {
            if work.inputs[*other].bytes_of(name)? != one {
                wrong.push((at, *first, *other));
                break;
            }
        }
    }
    for (at, first, other) in wrong {
        let name = work.values.equal[at].0.as_str();
        differ.push((name, &work.inputs[first].name, &work.inputs[other].name));
    }
    let Some((_, a, b)) = differ.first() else { return Ok(()) };
    let names = report::names(differ.iter().map(|(name, ..)| *name));
    let (a, b) = (report::escaped(a), report::escaped(b));
    let text = format!(
        "integers are copied if they are equal in all inputs; they differ in `{a}` and `{b}`: {names}\nhelp: --skip leaves them out; --map 'REGEX={a}' takes those of `{a}`"
    );
    Err(Failure { text: report::error(&text), code: 1 })
}
