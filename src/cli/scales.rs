//! Scales that checkpoints have beside weights in 8-bit floats.
//!
//! Guarantees: such a weight is written in another dtype only by an expression that uses its scale. Does not: look at arrays
//! and single tensors, which have no names, or at what is only printed.

use super::failure::Failure;
use super::inputs::extents;
use super::plan::{Job, Work};
use super::report::{self, tensors};

/// The ends that make the name of a weight that of its scale.
const SCALES: [&str; 2] = ["_scale_inv", "_scale"];

/// Refuses to write weights in another dtype without their scales.
pub(super) fn check(work: &Work) -> Result<(), Failure> {
    let mut all = work.jobs.iter().filter_map(|job| unscaled(work, job));
    let Some(text) = all.next() else { return Ok(()) };
    let more = match all.count() {
        0 => String::new(),
        n => format!(", and so would {} like it", tensors(n)),
    };
    let lines = [
        report::error(&format!("{text}{more}")),
        "help: `castwise eval @fp8_dequant -i w=…` applies such scales".into(),
    ];
    Err(Failure { text: lines.join("\n"), code: 1 })
}

/// The error about a tensor that is written without the scale of an operand.
fn unscaled(work: &Work, job: &Job) -> Option<String> {
    let (plan, e) = work.of(job);
    e.uses.iter().map(|i| &work.inputs[*i]).filter(|i| i.is_named() && !i.is_sibling()).find_map(|input| {
        let (dtype, dims) = input.info(&job.name).ok().filter(|(d, _)| d.is_byte_float())?;
        let scale = SCALES.iter().map(|end| format!("{}{end}", job.name)).find(|scale| input.has(scale))?;
        let used = e.uses.iter().any(|i| work.inputs[*i].is_tensor_of(&job.name, input, &scale));
        // Other shapes are statistics, and integers and bools bits or comparisons.
        let is_weight = |shape: Vec<usize>| shape == extents(&dims);
        let mut written = plan.results.iter().filter(|r| !r.dtype.is_integral() && r.dtype != dtype);
        let to = written.find(|r| !used && r.shape().is_ok_and(is_weight))?.dtype;
        let (name, scale, text) = (report::escaped(&job.name), report::escaped(&scale), report::escaped(e.line()));
        let path = input.path.display();
        Some(format!(
            "{path}: `{name}` is {dtype} with the scale `{scale}`, which `{text}` does not use: it would be written as {to} without \
             its scale"
        ))
    })
}
