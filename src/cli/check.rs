//! The checks of results: `--check finite`.
//!
//! Guarantees: a NaN is reported if no input has a NaN at the same position, and an infinity if no input has an
//! infinity there. (The difference of two infinities is a NaN that no input has.) If the expression has a reduction,
//! positions do not correspond, so a NaN or an infinity is reported if the inputs have none at all. Does not: check
//! intermediate values.

use castwise::shape::{Dim, Dims};
use castwise::{DType, Error, Executor, Feeds, NodeKind, Program, Rules, Tensor, TypedProgram, Var};

use super::failure::Failure;
use super::report;

/// The maximum number of tensors in the error.
const LISTED: usize = 20;

/// The tensors of a run that have new values which are not finite.
#[derive(Default)]
pub(super) struct Finite(Vec<Found>);

struct Found {
    name: String,
    nans: i64,
    infinities: i64,
    elements: usize,
}

/// Whether a program has an op whose elements depend on elements at other positions.
pub(super) fn combines_positions(typed: &TypedProgram) -> bool {
    typed.nodes().any(|n| matches!(n.kind, NodeKind::Reduce { .. } | NodeKind::Line { .. } | NodeKind::Indexed { .. }))
}

impl Finite {
    /// Counts the NaNs and infinities of a result that its inputs do not have.
    pub(super) fn add(
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
        let reduces = combines_positions(typed);
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

    /// Whether all results so far are finite.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns an error if a result is not finite.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.is_empty() {
            return Ok(());
        }
        let count = super::report::tensors(self.0.len());
        let has = if self.0.len() == 1 { "has" } else { "have" };
        let text = format!("{count} {has} new NaNs or infinities (refused by --check finite)");
        let mut lines = vec![report::error(&text)];
        for Found { name, nans, infinities, elements } in self.0.iter().take(LISTED) {
            let name = report::escaped(name);
            lines.push(format!("  `{name}`: {nans} NaN and {infinities} infinite of {elements} elements"));
        }
        if self.0.len() > LISTED {
            lines.push(format!("  (and {} more)", self.0.len() - LISTED));
        }
        lines.push("note: no output was written".to_string());
        Err(Failure { text: lines.join("\n"), code: 3 })
    }
}
