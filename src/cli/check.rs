//! What results are checked for: `--check finite`.
//!
//! Guarantees: a NaN counts if no input has one at its place, and so does an infinity (a difference of two is a NaN that
//! nobody had); where something is reduced, a place is made of many elements, so that it counts if the inputs have none at
//! all. Does not: look at values on the way to a result.

use castwise::shape::{Dim, Dims};
use castwise::{DType, Error, Executor, Feeds, NodeKind, Program, Rules, Tensor, TypedProgram, Var};

use super::failure::Failure;
use super::report;

/// How many tensors are told of.
const TOLD: usize = 20;

/// The tensors of a run that have values which are not finite.
#[derive(Default)]
pub(super) struct Finite(Vec<Found>);

struct Found {
    name: String,
    nans: i64,
    infinities: i64,
    elements: usize,
}

impl Finite {
    /// Counts what a result has, and the tensors that it was computed from have not.
    pub(super) fn look(
        &mut self,
        executor: &Executor,
        typed: &TypedProgram,
        name: &str,
        feeds: &[(String, Tensor)],
        result: &Tensor,
    ) -> Result<(), Error> {
        if result.dtype().is_integral() {
            return Ok(());
        }
        let reduces = typed.nodes().any(|n| matches!(n.kind, NodeKind::Reduce { .. }));
        let program = Program::new(Rules::default());
        let data = |name: String, t: &Tensor| {
            (
                program.data(&name, t.dtype(), Dims(t.shape().iter().map(|n| Dim::Fixed(*n)).collect())),
                (name, t.clone()),
            )
        };
        let (value, fed) = data("result".into(), result);
        let (mut nan, mut infinite, mut all) = (value.isnan(), value.isinf(), vec![fed]);
        for (i, (_, t)) in feeds.iter().enumerate().filter(|(_, (_, t))| !t.dtype().is_integral()) {
            let (operand, fed) = data(format!("operand {i}"), t);
            let lacks = |has: Var| if reduces { has.any() } else { has }.logical_not();
            nan = nan.logical_and(lacks(operand.isnan()));
            infinite = infinite.logical_and(lacks(operand.isinf()));
            all.push(fed);
        }
        let counts = [nan, infinite].map(|found| found.cast(DType::I64).sum());
        let counts = executor.run(&program, Feeds::from(all), &counts)?;
        let [nans, infinities] = [0, 1].map(|i| counts.get(i).map_or(Ok(0), Tensor::item));
        let (nans, infinities) = (nans?, infinities?);
        if nans > 0 || infinities > 0 {
            self.0.push(Found { name: name.to_string(), nans, infinities, elements: result.numel() });
        }
        Ok(())
    }

    /// Whether nothing was found.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An error if something was found.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.is_empty() {
            return Ok(());
        }
        let count = super::report::tensors(self.0.len());
        let text = format!("values that are not finite arose in {count}, and --check finite refuses that");
        let mut lines = vec![report::error(&text)];
        for Found { name, nans, infinities, elements } in self.0.iter().take(TOLD) {
            let name = report::escaped(name);
            lines.push(format!("  `{name}`: {nans} NaN and {infinities} infinite of {elements} elements"));
        }
        if self.0.len() > TOLD {
            lines.push(format!("  (and {} more)", self.0.len() - TOLD));
        }
        lines.push("note: no output was written".to_string());
        Err(Failure { text: lines.join("\n"), code: 3 })
    }
}
