//! Compares many applications over the same operands, each one in eager mode and all of them as one program, bit for
//! bit.

use castwise::prelude::*;
use castwise::{Attrs, DiagnosticKind, Error, Op, Operand};

use crate::common::operands::Given;
use crate::common::{EXECUTOR, assert_same_bits};

/// An op, and the indices of its operands.
#[derive(Clone, Debug)]
pub struct Application {
    pub op: Op,
    pub operands: Vec<usize>,
    /// A scalar after the operands, for an op with a parameter.
    pub parameter: Option<Scalar>,
    pub attrs: Attrs,
}

impl Application {
    pub fn apply<M: Mode>(&self, operand: impl Fn(usize) -> Operand<M>) -> Var<M> {
        let mut operands: Vec<Operand<M>> = self.operands.iter().map(|i| operand(*i)).collect();
        operands.extend(self.parameter.map(Operand::Scalar));
        castwise::apply(self.op, &operands, self.attrs.clone())
    }
}

/// The numbers of applications that gave a result and an error, in both modes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub agreed: usize,
    pub refused: usize,
    pub failed: usize,
    /// The number of applications that were skipped, because they were refused for these dtypes in another layout.
    pub known: usize,
}

/// The result of a comparison, with its counts.
#[derive(Debug, Default)]
pub struct Outcome {
    pub tally: Tally,
    /// The applications that divide by an integer 0. They are tried again without zeros.
    pub again: Vec<Application>,
    /// The indices of applications that are refused because of their dtypes, for all shapes.
    pub refused: Vec<usize>,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.agreed += other.agreed;
        self.refused += other.refused;
        self.failed += other.failed;
        self.known += other.known;
    }
}

impl Tally {
    pub fn all(&self) -> usize {
        self.agreed + self.refused + self.failed + self.known
    }
}

/// A program whose placeholders are the tensors.
struct Written<'a> {
    program: Program,
    vars: Vec<Option<Var>>,
    givens: &'a [Given],
}

impl<'a> Written<'a> {
    fn new(rules: Rules, givens: &'a [Given]) -> Written<'a> {
        let program = Program::new(rules);
        let var = |(i, g): (usize, &Given)| match g {
            Given::Tensor(t) => Some(program.data(&format!("x{i}"), t.dtype(), t.shape())),
            Given::Scalar(_) => None,
        };
        let vars = givens.iter().enumerate().map(var).collect();
        Written { program, vars, givens }
    }

    fn apply(&self, a: &Application) -> Var {
        a.apply(|i| match (&self.vars[i], &self.givens[i]) {
            (Some(v), _) => v.into(),
            (None, Given::Scalar(s)) => (*s).into(),
            (None, Given::Tensor(_)) => unreachable!("every tensor has a placeholder"),
        })
    }

    fn run(&self, fetches: &[Var]) -> castwise::Result<Vec<Tensor>> {
        let feed = |(i, g): (usize, &Given)| match g {
            Given::Tensor(t) => Some((format!("x{i}"), t.clone())),
            Given::Scalar(_) => None,
        };
        let feeds: Vec<(String, Tensor)> = self.givens.iter().enumerate().filter_map(feed).collect();
        EXECUTOR.with(|e| e.run(&self.program, feeds, fetches))
    }
}

/// The kind of an error: the diagnostic's kind or the variant, and the first line of its text.
fn kind(e: &Error) -> (Option<DiagnosticKind>, String) {
    let text = e.to_string();
    assert!(!text.contains("internal error"), "{text}");
    (e.diagnostics().first().map(|d| d.kind), text.lines().next().unwrap_or_default().to_string())
}

/// Compares all applications.
pub fn compare(rules: Rules, givens: &[Given], all: &[Application]) -> Outcome {
    let (cx, mut outcome) = (Eager::new(rules), Outcome::default());
    let eager: Vec<Option<Var<Eager>>> = givens
        .iter()
        .map(|g| match g {
            Given::Tensor(t) => Some(cx.tensor(t)),
            Given::Scalar(_) => None,
        })
        .collect();
    let (together, refusals) = (Written::new(rules, givens), Written::new(rules, givens));
    let (mut of, mut singles, mut fetches, mut refused) = (vec![], vec![], vec![], vec![]);
    for (i, a) in all.iter().enumerate() {
        let one = a.apply(|i| match (&eager[i], &givens[i]) {
            (Some(v), _) => v.into(),
            (None, Given::Scalar(s)) => (*s).into(),
            (None, Given::Tensor(_)) => unreachable!("every tensor has a handle"),
        });
        let e = match one.result() {
            Ok(t) => {
                of.push(a);
                singles.push(t);
                fetches.push(together.apply(a));
                continue;
            }
            Err(e) => e,
        };
        if e.diagnostics().is_empty() {
            let alone = Written::new(rules, givens);
            let result = alone.apply(a);
            match alone.run(&[result]) {
                Err(fused) => assert_eq!(kind(&e), kind(&fused), "{}", alone.program),
                Ok(_) => panic!("eagerly: {e}\n{}", alone.program),
            }
            outcome.tally.failed += 1;
            if matches!(kind(&e), (None, line) if line.starts_with("integer division by zero")) {
                outcome.again.push(a.clone());
            }
        } else {
            refusals.apply(a);
            refused.push((i, e));
        }
    }
    // A program reports all its mistakes at once, in the order of its nodes.
    let mistakes = refusals.program.check().err();
    let mistakes = mistakes.as_ref().map_or(&[][..], |e| e.diagnostics());
    assert_eq!(mistakes.len(), refused.len(), "refusals of {:?}\n{}", refused, refusals.program);
    for ((i, e), mistake) in refused.iter().zip(mistakes) {
        let [one] = e.diagnostics() else { panic!("one application, and: {e}") };
        assert_eq!(
            (one.kind, &one.message, &one.help),
            (mistake.kind, &mistake.message, &mistake.help),
            "{:?}",
            all[*i]
        );
        outcome.tally.refused += 1;
        outcome.refused.extend((one.kind != DiagnosticKind::Broadcast).then_some(*i));
    }
    let fused = together.run(&fetches).unwrap_or_else(|e| panic!("eagerly all of it works: {e}\n{}", together.program));
    assert_eq!(fused.len(), singles.len());
    for ((one, fused), a) in singles.iter().zip(&fused).zip(of) {
        outcome.tally.agreed += 1;
        let same = one.dtype() == fused.dtype() && one.shape() == fused.shape() && one.as_bytes() == fused.as_bytes();
        if !same || one.as_bytes().is_none() {
            let case = || {
                let alone = Written::new(rules, givens);
                alone.apply(a);
                format!("among {} others: {}\n{givens:?}", all.len() - 1, alone.program)
            };
            assert_same_bits(one, fused, &case);
        }
    }
    outcome
}
