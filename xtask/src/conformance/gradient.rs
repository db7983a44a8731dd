//! Cases of gradients: an op or a program, cotangents of its results, and the gradients of its operands.
//!
//! Each runs compiled, op by op, and with all dims dynamic; the three have the same bits (with dynamic dims, but for the
//! sign of zeros). With dynamic dims a case may be refused, for the reasons listed here alone. Compared are dtype, shape and elements, as the case says.

use castwise::shape::{Dim, Dims};
use castwise::{DType, Diagnostic, DiagnosticKind, Error, Executor, Operand, Pass, Program, Settings, Tensor, Var};
use serde_json::Value;

use super::case::{Arg, Case, Unusable, tensor};
use super::compare::{elements, epsilon, parts, same};
use super::run;

/// The differences from PyTorch that docs/deviations.md states.
pub const DEVIATIONS: [(&str, &str); 2] = [
    ("gradient-quirk", "PyTorch departs from its own formula; the rule's answer is recorded beside"),
    ("gradient-complex-products", "PyTorch contracts products of complex numbers in its vector loops"),
];

/// The only refusals of dynamic dims: the kind, and how the message begins and ends.
const NEED_FIXED_DIMS: [(DiagnosticKind, &str, &str); 3] = [
    (DiagnosticKind::BadParameter, "`reshape` of ", " depend on dynamic dims"),
    (DiagnosticKind::BadParameter, "`squeeze` of ", " is dynamic: only its feed tells whether its extent is 1"),
    (DiagnosticKind::NotDifferentiable, "`quantile` has ", " over all dims of which at most one is dynamic alone"),
];

/// A recorded case of gradients.
pub struct Gradients {
    /// The op and its operands, unless it is a program.
    case: Option<Case>,
    text: Value,
    names: Vec<String>,
    feeds: Vec<Tensor>,
    /// One for each operand; `None` if it takes none.
    wanted: Vec<Option<Tensor>>,
    cotangents: Vec<Tensor>,
    refused: bool,
    zeros: bool,
    tolerance: Option<(f64, f64)>,
    settings: Settings,
}

/// How a case is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    Compiled,
    OpByOp,
    Dynamic,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Compiled, Way::OpByOp, Way::Dynamic];
}

fn wrong(e: impl std::fmt::Display) -> String {
    e.to_string().lines().take(2).collect::<Vec<_>>().join(" ")
}

impl Gradients {
    /// Whether a line is such a case.
    pub fn is_one(v: &Value) -> bool {
        v["grads"].is_array() || v["error"] == "not_differentiable"
    }

    pub fn parse(file: &str, line: usize, v: &Value, settings: Settings) -> Result<Gradients, Unusable> {
        let list = |key: &str| v[key].as_array().cloned().unwrap_or_default();
        let program = v["op"] == "program";
        let case = match program {
            true => None,
            // What the op itself gives is recorded as the other files have it.
            false => Some(Case::parse(file, line, &v.to_string(), settings)?),
        };
        let mut feeds = Vec::new();
        for a in list("args").iter().filter(|a| a["kind"] == "tensor") {
            feeds.push(tensor(a)?);
        }
        let names = match program {
            true => list("names").iter().filter_map(|n| n.as_str().map(str::to_string)).collect(),
            // Those of the operands that are tensors.
            false => {
                let named = list("args").into_iter().zip(run::NAMES);
                named.filter(|(a, _)| a["kind"] == "tensor").map(|(_, n)| n.to_string()).collect()
            }
        };
        let wanted = if v["spec"].is_array() { list("spec") } else { list("grads") };
        let wanted = wanted.iter().map(|g| if g.is_null() { Ok(None) } else { tensor(g).map(Some) });
        let cots = if v["cots"].is_array() { list("cots") } else { vec![v["cot"].clone()] };
        let cotangents = cots.iter().filter(|c| c.is_object()).map(tensor).collect::<Result<_, _>>()?;
        let tolerance =
            v["tol"].as_object().map(|t| (t["rtol"].as_f64().unwrap_or(0.0), t["atol"].as_f64().unwrap_or(0.0)));
        Ok(Gradients {
            case,
            text: v.clone(),
            names,
            feeds,
            wanted: wanted.collect::<Result<_, _>>()?,
            cotangents,
            refused: v["error"].is_string(),
            zeros: v["cmp"] != "exact",
            tolerance,
            settings,
        })
    }

    /// The op's name.
    pub fn name(&self) -> String {
        self.text["op"].as_str().unwrap_or_default().to_string()
    }

    /// The program, its results, and its operands.
    fn program(&self, dynamic: bool) -> Result<(Program, Vec<Var>, Vec<Operand>), Error> {
        let dims = |t: &Tensor| match dynamic {
            true => Dims(vec![Dim::Dynamic; t.shape().len()]),
            false => Dims::from(t.shape()),
        };
        if let Some(case) = &self.case {
            let p = Program::with_settings(case.settings);
            let operand = |(a, name): (&Arg, &String)| match a {
                Arg::Tensor(t, _) => p.data(name, t.dtype(), dims(t)).into(),
                Arg::Scalar(s) => Operand::from(*s),
            };
            let names: Vec<String> = run::NAMES.iter().map(|n| n.to_string()).collect();
            let operands: Vec<Operand> = case.args.iter().zip(&names).map(operand).collect();
            let result = run::apply(case, &operands);
            return Ok((p, vec![result], operands));
        }
        let p = match self.text["program"].as_str() {
            Some(text) => {
                let (head, rest) = text.split_at(text.find('{').unwrap_or(0));
                let mut inside = false;
                let open = |c: char| {
                    inside = (inside || c == '[') && c != ']';
                    if inside && c.is_ascii_digit() && dynamic { '?' } else { c }
                };
                let head: String = head.chars().map(open).collect();
                Program::parse(&(head.replace("??", "?") + rest))?
            }
            None => {
                let p = Program::with_settings(self.settings);
                for (name, t) in self.names.iter().zip(&self.feeds) {
                    p.data(name, t.dtype(), dims(t));
                }
                let result = p.expression(self.text["expr"].as_str().unwrap_or_default())?;
                p.set_fetches([(None, &result)])?;
                p
            }
        };
        let results = p.fetches().into_iter().map(|f| f.var).collect();
        let operands = self.names.iter().filter_map(|n| p.feed(n)).map(Operand::from).collect();
        Ok((p, results, operands))
    }

    /// Whether the case has a gradient, which is refused with all dims dynamic for one of the reasons that need fixed ones.
    pub fn needs_fixed_dims(&self, answer: &Result<(Vec<Tensor>, Program), Error>) -> bool {
        let Err(e) = answer else { return false };
        let known = |d: &Diagnostic| {
            let is = |(kind, op, why): &(_, &str, &str)| {
                d.kind == *kind && d.message.starts_with(op) && d.message.ends_with(why)
            };
            NEED_FIXED_DIMS.iter().any(is)
        };
        !self.refused && !e.diagnostics().is_empty() && e.diagnostics().iter().all(known)
    }

    /// The gradients of the operands that have one, and the program that computes them.
    pub fn run(&self, way: Way, executor: &Executor) -> Result<(Vec<Tensor>, Program), Error> {
        let dynamic = way == Way::Dynamic;
        let (p, results, operands) = self.program(dynamic)?;
        let mut cotangents = Vec::new();
        for (i, c) in self.cotangents.iter().enumerate() {
            let dims = if dynamic { Dims(vec![Dim::Dynamic; c.shape().len()]) } else { Dims::from(c.shape()) };
            cotangents.push(p.data(&format!("cotangent{i}"), c.dtype(), dims));
        }
        let mut wrt = Vec::new();
        for (o, wanted) in operands.iter().zip(&self.wanted) {
            if let (Operand::Var(v), Some(_)) = (o, wanted) {
                wrt.push(v);
            }
        }
        let losses: Vec<&Var> = results.iter().collect();
        let given: Vec<Option<&Var>> = cotangents.iter().map(Some).collect();
        let gradients = p.gradients(&losses, &wrt, &given)?;
        let names = (0..cotangents.len()).map(|i| format!("cotangent{i}"));
        let named: Vec<(String, Tensor)> =
            self.names.iter().cloned().zip(self.feeds.clone()).chain(names.zip(self.cotangents.clone())).collect();
        let known = p.feed_names();
        let feeds = named.iter().filter(|(n, _)| known.contains(n)).map(|(n, t)| (n.as_str(), t.clone()));
        let feeds: Vec<(&str, Tensor)> = feeds.collect();
        let unfused = Executor::builder().threads(1).jit(false).without(Pass::Fusion).without(Pass::Merging);
        let unfused = (way == Way::OpByOp).then(|| unfused.build());
        let executor = unfused.as_ref().unwrap_or(executor);
        Ok((executor.run(&p, castwise::Feeds::from(feeds), &gradients)?, p))
    }

    fn has_no_gradient(e: &Error) -> bool {
        let all = e.diagnostics();
        !all.is_empty() && all.iter().all(|d| d.kind == DiagnosticKind::NotDifferentiable)
    }

    /// The first difference from what was recorded.
    pub fn compare(&self, answer: &Result<(Vec<Tensor>, Program), Error>) -> Result<(), String> {
        let got = match answer {
            Err(e) if self.refused && Self::has_no_gradient(e) => return Ok(()),
            Err(e) => return Err(format!("refused: {}", wrong(e))),
            Ok(_) if self.refused => return Err("not refused".into()),
            Ok((got, _)) => got,
        };
        for (k, (got, want)) in got.iter().zip(self.wanted.iter().flatten()).enumerate() {
            if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
                return Err(format!(
                    "gradient {k} is {}{:?}, not {}{:?}",
                    got.dtype(),
                    got.shape(),
                    want.dtype(),
                    want.shape()
                ));
            }
            for (i, (g, w)) in elements(got).iter().zip(elements(want)).enumerate() {
                if !self.close(got.dtype(), g, &w) {
                    return Err(format!(
                        "gradient {k}, element {i}: {:?}, not {:?}",
                        parts(got.dtype(), g),
                        parts(got.dtype(), &w)
                    ));
                }
            }
        }
        Ok(())
    }

    fn close(&self, d: DType, got: &[u8], want: &[u8]) -> bool {
        if same(d, got, want, self.zeros) {
            return true;
        }
        // Where ours is as near to the rule as its rounding allows, and what is recorded is near too.
        let eps = 4.0 * epsilon(d);
        let (rtol, atol) = match self.tolerance {
            Some(both) => both,
            None if self.is_quirk() => (eps, 0.0),
            // PyTorch contracts products of complex numbers in its vector loops, and rounds moduli otherwise.
            None if self.feeds.iter().any(|t| t.dtype().is_complex()) => {
                let (wr, wi) = parts(d, want);
                (0.0, eps * wr.hypot(wi))
            }
            None => return false,
        };
        let near = |g: f64, w: f64| g == w || g.is_nan() && w.is_nan() || (g - w).abs() <= atol + rtol * w.abs();
        let ((gr, gi), (wr, wi)) = (parts(d, got), parts(d, want));
        near(gr, wr) && near(gi, wi)
    }

    /// The differences that a case that passes may have.
    pub fn deviations(&self) -> impl Iterator<Item = &'static str> {
        let complex = self.tolerance.is_none() && self.feeds.iter().any(|t| t.dtype().is_complex());
        let all = [(self.is_quirk(), "gradient-quirk"), (complex && !self.refused, "gradient-complex-products")];
        all.into_iter().filter(|(has, _)| *has).map(|(_, name)| name)
    }

    fn is_quirk(&self) -> bool {
        self.text["cmp"] == "quirk"
    }

    /// The case, for people.
    pub fn show(&self) -> String {
        let mut all = String::new();
        for (name, t) in self.names.iter().zip(&self.feeds) {
            all += &format!("  {name} = {t:?}\n");
        }
        for t in &self.cotangents {
            all += &format!("  cotangent {t:?}\n");
        }
        for t in &self.wanted {
            all += &format!("  wanted {t:?}\n");
        }
        all
    }
}
