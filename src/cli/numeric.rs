//! `explain --numeric`: measures the error of each op and cast of a program.
//!
//! Guarantees: a node's own error is the difference between its result and the same op in f64 on the same operands. A
//! node's error in the result is the difference between two results: one with the nodes before it in their dtypes and
//! the others in f64, and one with this node in its dtype too. These errors add up to the whole error. Nodes are
//! ordered by the mean of this relative error, in which no element counts more than 1. The output says which tensors
//! and how many elements were measured. Does not: bound errors; other data may have other errors.

use annotate_snippets::Level;
use castwise::{Category, DType, Error, Executor, Feeds, NodeKind, Tensor, TypedProgram, Var};

use super::expression::Expression;
use super::failure::Failure;
use super::findings::of_operand;
use super::plan::{Job, Plan, Work};
use super::reference::Mirror;
use super::sampled::{EXTENT, Sampled};
use super::{describe, report};

/// The errors of one measurement that are kept for the median.
const DRAWN: usize = 1 << 16;
/// The tensors of one kind are measured until this number of elements is reached.
const ENOUGH: usize = 1 << 24;
/// Of a tensor with more elements, only the first rows are measured, if possible.
const LARGE: usize = 1 << 22;
/// The maximum number of bytes of results of one run.
const AT_ONCE: usize = 256 << 20;
/// The maximum number of nodes whose error in the result is measured.
const TRACED: usize = 64;
/// The maximum number of errors that are kept for the median.
const KEPT: usize = 1 << 20;
/// The maximum number of nodes that are listed.
const LISTED: usize = 20;

/// The relative errors of one node.
#[derive(Clone, Default)]
pub(super) struct Errors {
    kept: Vec<f64>,
    largest: f64,
    /// The number of elements.
    count: u64,
    /// The number of elements that have no relative error, because their f64 value is 0 or not finite.
    undefined: u64,
    /// The number of elements that are not finite although their f64 value is.
    lost: u64,
    differs: bool,
}

impl Errors {
    pub(super) fn add(&mut self, errors: &[f64], magnitudes: &[f64]) {
        let stride = errors.len().div_ceil(DRAWN).max(1);
        for (i, (e, m)) in errors.iter().zip(magnitudes).enumerate() {
            self.count += 1;
            // If the f64 value is a NaN or infinite, there is nothing to compare.
            let defined = m.is_finite();
            self.differs |= defined && *e != 0.0;
            if defined && !e.is_finite() {
                self.lost += 1;
            } else if !defined || *m == 0.0 && *e != 0.0 {
                self.undefined += 1;
            } else {
                let relative = if *e == 0.0 { 0.0 } else { e / m };
                self.largest = self.largest.max(relative);
                if i % stride == 0 && self.kept.len() < KEPT {
                    self.kept.push(relative);
                }
            }
        }
    }

    pub(super) fn median(&self) -> f64 {
        let mut all = self.kept.clone();
        let middle = all.len() / 2;
        if all.is_empty() { f64::NAN } else { *all.select_nth_unstable_by(middle, f64::total_cmp).1 }
    }

    /// The mean relative error, in which an element counts at most 1. Nodes are ordered by it.
    pub(super) fn weight(&self) -> f64 {
        let lost = self.lost as f64 / self.count.max(1) as f64;
        lost + self.kept.iter().map(|e| e.min(1.0)).sum::<f64>() / self.kept.len().max(1) as f64
    }

    /// The largest relative error.
    pub(super) fn largest(&self) -> f64 {
        self.largest
    }

    /// The number of elements that are not finite although they should be.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether no relative error is larger than this one, and no element is lost.
    pub(super) fn within(&self, most: f64) -> bool {
        self.lost == 0 && self.largest <= most
    }

    fn notes(&self) -> String {
        let mut text = String::new();
        if self.lost > 0 {
            text += &format!("; not finite in {} of {}", self.lost, self.count);
        }
        if self.undefined > 0 {
            text += &format!("; {} of {} have no relative error", self.undefined, self.count);
        }
        text
    }
}

/// The measurements of one program.
#[derive(Default)]
pub(crate) struct Measured {
    own: Vec<Errors>,
    in_result: Vec<Errors>,
    result: Errors,
    /// Whether there were too many nodes with errors to measure those in the result.
    untraced: bool,
    tensors: usize,
    runs: usize,
    elements: usize,
    drawn: bool,
}

/// The tensors that have one program, and its errors.
pub(super) struct OfKind {
    kind: Vec<Job>,
    all: Measured,
}

/// The error of a node, for a picture.
pub(crate) struct NodeError {
    /// What nodes are ordered by: the mean relative error in the result, or the node's own, in which no element counts more
    /// than 1.
    pub(crate) weight: f64,
    /// The median and the largest error in the result, if that was measured.
    pub(crate) in_result: Option<[f64; 2]>,
    /// The node's own.
    pub(crate) own: [f64; 2],
    pub(crate) notes: String,
}

/// Runs the program of each kind on its data, once in its dtypes and once in f64.
pub(super) fn measured(work: &mut Work) -> Result<Vec<OfKind>, Failure> {
    let kinds: Vec<Vec<Job>> = work
        .kinds()?
        .into_iter()
        .map(|k| k.into_iter().map(|j| Job { name: j.name.clone(), plan: j.plan }).collect())
        .collect();
    let mut made = Vec::new();
    for kind in kinds {
        let mut all = Measured::default();
        for job in &kind {
            if all.elements < ENOUGH {
                measure(work, job, &mut all)?;
            }
        }
        made.push(OfKind { kind, all });
    }
    Ok(made)
}

/// The text of measurements.
pub(super) fn text(work: &Work, measured: &[OfKind]) -> String {
    let mut text = String::new();
    for OfKind { kind, all } in measured {
        let Some(first) = kind.first() else { continue };
        let (plan, e) = work.of(first);
        text += &work.heading(&kind.iter().collect::<Vec<_>>());
        text += &summary(plan, e, all, kind.len());
    }
    text
}

impl OfKind {
    /// The measurements.
    pub(super) fn measured(&self) -> &Measured {
        &self.all
    }

    /// The median and the largest error of the result, and what they were measured on.
    pub(super) fn of_result(&self) -> String {
        self.all.of_result(self.kind.len())
    }
}

impl Measured {
    /// Runs a program, `runs` times on `elements` elements in all, in its dtypes and in f64, and adds the errors. `result` is the
    /// node of its result.
    pub(crate) fn add(
        &mut self,
        typed: &TypedProgram,
        result: usize,
        [runs, elements]: [usize; 2],
        feeds: &dyn Fn(usize) -> Result<Vec<(String, Tensor)>, Error>,
        drawn: bool,
    ) -> Result<(), Error> {
        trace(typed, result, &Executor::new(), runs, feeds, self)?;
        self.tensors += 1;
        self.runs += runs;
        self.elements += elements;
        self.drawn |= drawn;
        Ok(())
    }

    /// The error of a node, if it has one.
    pub(crate) fn of(&self, node: usize) -> Option<NodeError> {
        let own = self.own.get(node).filter(|o| o.differs)?;
        let in_result = self.in_result.get(node).filter(|_| self.traced());
        let weight = in_result.unwrap_or(own).weight();
        let both = |e: &Errors| [e.median(), e.largest];
        Some(NodeError { weight, in_result: in_result.map(both), own: both(own), notes: own.notes() })
    }

    /// Whether the errors are those in the result.
    pub(crate) fn traced(&self) -> bool {
        !self.untraced
    }

    fn measured_on(&self, tensors: usize) -> String {
        let from = match (self.drawn, self.tensors) {
            (true, _) => "random elements (floats uniform between 0 and 1)".to_string(),
            (false, 1) if tensors == 1 => "elements".to_string(),
            (false, n) => format!("elements of {n} of {tensors} tensors"),
        };
        format!("measured on {} {from}, relative to the same program in f64", self.elements)
    }

    /// The median and the largest error of the result, and what they were measured on.
    pub(crate) fn of_result(&self, tensors: usize) -> String {
        let Errors { largest, .. } = self.result;
        let (median, on) = (number(self.result.median()), self.measured_on(tensors));
        format!("median relative error {median}, maximum {}{}; {on}", number(largest), self.result.notes())
    }
}

fn measure(work: &mut Work, job: &Job, all: &mut Measured) -> Result<(), Failure> {
    let e = work.of(job).1;
    let (text, path) = (e.text.clone(), e.path.clone());
    let sampled = Sampled::of(work, job, LARGE)?;
    let refuse = |e: Error| Failure { text: report::of_expression(&text, &path, &e, &[]), code: 1 };
    let plan = &sampled.plan;
    let result = plan.typed.position(&plan.result).ok_or_else(|| Error::Internal("the result has no node".into()));
    let times = [sampled.runs, sampled.runs * sampled.largest];
    let added = |result| all.add(&plan.typed, result, times, &|run| sampled.feeds(run), sampled.drawn);
    result.and_then(added).map_err(refuse)
}

/// Evaluates a program in its dtypes and in f64, and records the errors. `result` is its result's node.
fn trace(
    typed: &TypedProgram,
    result: usize,
    executor: &Executor,
    runs: usize,
    feeds: &dyn Fn(usize) -> Result<Vec<(String, Tensor)>, Error>,
    all: &mut Measured,
) -> Result<(), Error> {
    let mirror = Mirror::new(typed)?;
    let sizes: Vec<usize> = typed.nodes().map(|n| elements(n.shape)).collect();
    all.own.resize(sizes.len(), Errors::default());
    all.in_result.resize(sizes.len(), Errors::default());

    let exact = mirror.exact_after(0)?;
    let whole = mirror.error(result, &mirror.widened(result), &exact[result]);
    let own = mirror.own_errors()?;
    let mut lossy: Vec<usize> = Vec::new();
    for run in 0..runs {
        let mut differs = Vec::new();
        let wanted: Vec<_> = own.iter().map(|(i, pair)| (pair, sizes[*i])).collect();
        fetch(&mirror, executor, feeds(run)?, &wanted, &mut |at, e, m| {
            let mut here = Errors::default();
            here.add(e, m);
            differs.extend(here.differs.then_some(own[at].0));
            all.own[own[at].0].add(e, m);
        })?;
        fetch(&mirror, executor, feeds(run)?, &[(&whole, sizes[result])], &mut |_, e, m| all.result.add(e, m))?;
        lossy.extend(differs);
    }
    lossy.sort_unstable();
    lossy.dedup();
    if lossy.len() > TRACED {
        all.untraced = true;
        return Ok(());
    }
    // Nodes without an error of their own do not change the result, so only the lossy ones are measured.
    let mut before = exact[result].clone();
    let mut steps = Vec::new();
    for i in &lossy {
        let after = mirror.exact_after(i + 1)?[result].clone();
        let [change, _] = mirror.error(result, &after, &before);
        steps.push([change, whole[1].clone()]);
        before = after;
    }
    let wanted: Vec<_> = steps.iter().map(|p| (p, sizes[result])).collect();
    for run in 0..runs {
        fetch(&mirror, executor, feeds(run)?, &wanted, &mut |at, e, m| all.in_result[lossy[at]].add(e, m))?;
    }
    Ok(())
}

fn elements(shape: &[castwise::shape::SymDim]) -> usize {
    shape.iter().map(|d| if let castwise::shape::SymDim::Fixed(n) = d { *n } else { EXTENT }).product()
}

/// Receives the index of a pair, its errors and its magnitudes.
type Take<'a> = &'a mut dyn FnMut(usize, &[f64], &[f64]);

/// Computes pairs of values and passes them to `take`. `wanted` has their sizes, which limit how many are computed in
/// one run.
fn fetch(
    mirror: &Mirror<'_>,
    executor: &Executor,
    feeds: Vec<(String, Tensor)>,
    wanted: &[(&[Var; 2], usize)],
    take: Take<'_>,
) -> Result<(), Error> {
    let mut at = 0;
    while at < wanted.len() {
        let (mut end, mut bytes) = (at, 0);
        while end < wanted.len() && (end == at || bytes + 16 * wanted[end].1 <= AT_ONCE) {
            bytes += 16 * wanted[end].1;
            end += 1;
        }
        let fetches: Vec<&Var> = wanted[at..end].iter().flat_map(|(pair, _)| pair.iter()).collect();
        let values = executor.run(&mirror.program, Feeds::from(feeds.clone()), fetches)?;
        for (i, pair) in values.chunks_exact(2).enumerate() {
            take(at + i, &pair[0].to_vec::<f64>()?, &pair[1].to_vec::<f64>()?);
        }
        at = end;
    }
    Ok(())
}

/// The text of a measurement.
fn summary(plan: &Plan, e: &Expression, all: &Measured, tensors: usize) -> String {
    let mut text = all.measured_on(tensors) + "\n";
    text += &format!(
        "result {}: median relative error {}, maximum {}{}\n",
        plan.dtype,
        number(all.result.median()),
        number(all.result.largest),
        all.result.notes()
    );
    let nodes: Vec<_> = plan.typed.nodes().collect();
    let mut places: Vec<usize> = (0..nodes.len()).filter(|i| all.own.get(*i).is_some_and(|o| o.differs)).collect();
    let weight = |i: &usize| if all.traced() { &all.in_result[*i] } else { &all.own[*i] }.weight();
    places.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let Some(worst) = places.first() else {
        return text + "no op or cast has an error\n";
    };
    text += "\n  error in the result    own error\n  median   maximum       median   maximum   op or cast\n";
    let label = |i: usize| label(&nodes[i].kind, nodes[i].dtype);
    let span = |i: usize| report::span(&e.text, nodes[i].location).unwrap_or(0..0);
    for i in places.iter().take(LISTED) {
        let in_result =
            if all.traced() { &all.in_result[*i] } else { &Errors { largest: f64::NAN, ..Errors::default() } };
        let own = &all.own[*i];
        text += &format!(
            "  {:<8} {:<13} {:<8} {:<9} {}, in `{}`{}\n",
            number(in_result.median()),
            number(in_result.largest),
            number(own.median()),
            number(own.largest),
            label(*i),
            describe::piece(&e.text, span(*i)),
            own.notes()
        );
    }
    if places.len() > LISTED {
        text += &format!("  (and {} more)\n", places.len() - LISTED);
    }
    let exact = nodes.iter().filter(|n| !matches!(n.kind, NodeKind::Feed(_) | NodeKind::Constant(_))).count();
    text += &format!("  {} other ops and casts have no error of their own\n\n", exact - places.len());
    text +=
        &report::marked(Level::NOTE, "this has the largest error", &e.text, &e.path, &[(span(*worst), label(*worst))]);
    text + "\n"
}

fn label(kind: &NodeKind<'_>, dtype: DType) -> String {
    match kind {
        NodeKind::Apply { op, .. } | NodeKind::Reduce { op, .. } | NodeKind::Line { op, .. } => {
            match dtype.category() {
                Category::Bool => format!("`{op}` gives another bool"),
                Category::Int => format!("`{op}` in {dtype}"),
                _ => format!("`{op}` rounds to {dtype}"),
            }
        }
        NodeKind::Cast { note, .. } => {
            format!("cast {} -> {}{}", note.from, note.to, of_operand(note))
        }
        _ => format!("a value of {dtype}"),
    }
}

/// Formats an error with two digits.
pub(crate) fn number(v: f64) -> String {
    match v {
        v if v.is_nan() => "-".to_string(),
        0.0 => "0".to_string(),
        v => format!("{v:.1e}"),
    }
}
