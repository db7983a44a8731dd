//! What other rule sets would make of a program, application by application.
//!
//! Guarantees: the outcomes are those of inference, also where a program as a whole is refused; one difference has one
//! entry: what merely uses a refused node has none. Does not: look at values or shapes; two rule sets that agree on
//! dtypes may round differently inside an op.

use std::fmt;

use crate::analysis::infer::outcomes;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, SourceLocation};
use crate::graph::program::{Kind, Program};
use crate::ops::Op;
use crate::promotion::{Rules, Settings};

/// What an application gives under a rule set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A result of this dtype.
    DType(DType),
    /// A mistake.
    Refused(Diagnostic),
}

/// An application that rule sets type differently, with what names them. `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference<R = Rules> {
    /// The op.
    pub op: Op,
    /// The position of the node: [`Program::var`] gives its handle.
    pub node: usize,
    /// Where the user wrote it.
    pub location: SourceLocation,
    /// What each rule set gives that has an answer, in the order of the question. At least one is a dtype.
    pub outcomes: Vec<(R, Outcome)>,
}

impl<R: fmt::Display> fmt::Display for Difference<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.op)?;
        if self.location != SourceLocation::None {
            write!(f, " at {}", self.location)?;
        }
        for (i, (rules, outcome)) in self.outcomes.iter().enumerate() {
            f.write_str(if i == 0 { ": " } else { "; " })?;
            match outcome {
                Outcome::DType(d) => write!(f, "{rules} gives {d}")?,
                Outcome::Refused(d) => write!(f, "{rules} refuses: {}", d.message)?,
            }
        }
        Ok(())
    }
}

/// The applications of a program whose result dtype differs between two rule sets, or that one of them refuses, in
/// program order. The program's own rules do not matter; its default dtype is that of both.
///
/// An application that both refuse is no difference, and one that uses a refused value has no outcome to compare:
/// neither is listed.
///
/// ```
/// use castwise::prelude::*;
/// use castwise::{Outcome, compare};
///
/// let p = Program::new(Rules::Torch);
/// let x = p.data("x", DType::I32, [3]) + p.data("y", DType::F32, [3]);
/// let _ = x * 2.0;
///
/// let found = compare(&p, Rules::Torch, Rules::Paddle);
/// assert_eq!(found.len(), 1);                                // `mul` only uses what Paddle refuses
/// assert_eq!(found[0].outcomes[0], (Rules::Torch, Outcome::DType(DType::F32)));
/// println!("{}", found[0]);
/// ```
pub fn compare(program: &Program, a: Rules, b: Rules) -> Vec<Difference> {
    compare_all(program, &[a, b])
}

/// As [`compare`], for any number of rule sets: the applications about which at least two of them differ.
///
/// ```
/// use castwise::prelude::*;
/// use castwise::compare_all;
/// let p = Program::new(Rules::Torch);
/// let _ = p.data("x", DType::I32, [3]) + p.data("y", DType::F32, [3]);
/// for difference in compare_all(&p, Rules::ALL) {
///     println!("{difference}");                              // `add` at …: torch gives f32; paddle refuses: …
/// }
/// ```
pub fn compare_all(program: &Program, rules: &[Rules]) -> Vec<Difference> {
    let all: Vec<_> = rules.iter().map(|r| (*r, program.settings().with_rules(*r))).collect();
    compare_settings(program, &all)
}

/// As [`compare_all`], for settings, each with what names it in the outcomes: two of them may be of one rule set.
///
/// ```
/// use castwise::prelude::*;
/// use castwise::compare_settings;
/// let p = Program::new(Rules::Jax);
/// let _ = p.data("n", DType::I32, [3]) * 0.5;
/// let of = |name: &'static str| name.parse::<Settings>().map(|settings| (name, settings));
/// let found = compare_settings(&p, &[of("jax")?, of("jax,x64")?]);
/// assert_eq!(found[0].to_string().split(": ").last(), Some("jax gives f32; jax,x64 gives f64"));
/// # Ok::<(), String>(())
/// ```
pub fn compare_settings<R: Clone>(program: &Program, settings: &[(R, Settings)]) -> Vec<Difference<R>> {
    let mut answers: Vec<_> = settings.iter().map(|(_, s)| outcomes(program, *s).into_iter()).collect();
    let state = program.shared.read();
    let mut found = Vec::new();
    for (node, weight) in state.nodes.node_weights().enumerate() {
        // What uses a refused value has no outcome.
        let of_node: Vec<(R, Outcome)> = answers
            .iter_mut()
            .zip(settings)
            .filter_map(|(all, (name, _))| Some((name.clone(), all.next()??)))
            .map(|(name, o)| (name, o.map_or_else(|d| Outcome::Refused(*d), Outcome::DType)))
            .collect();
        let Kind::Apply { op, .. } = &weight.kind else { continue };
        let dtype = |(_, o): &(R, Outcome)| if let Outcome::DType(d) = o { Some(*d) } else { None };
        let first = of_node.first().and_then(dtype);
        if of_node.iter().any(|o| dtype(o) != first) {
            found.push(Difference { op: *op, node, location: weight.location.clone(), outcomes: of_node });
        }
    }
    found
}
