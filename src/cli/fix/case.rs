//! One program of an expression, for tensors of certain dtypes: typed anew with casts, and measured.
//!
//! Guarantees: an expression with casts has the result dtypes of the one without, if need be by casts of whole results; errors
//! are those against the f64 counterpart of the expression as it was written, whatever casts it then has. Does not: search.

use std::ops::Range;
use std::time::{Duration, Instant};

use castwise::expr::statements;
use castwise::shape::{Dim, Dims};
use castwise::{CastLoss, Category, DType, Error, Executor, Feeds, Program, Scalar, Settings, Tensor, Var};

use super::edits::{Edit, edited};
use crate::cli::numeric::Errors;
use crate::cli::out_dtype::OutDtype;
use crate::cli::plan::{Plan, plan};
use crate::cli::reference::{Mirror, wide};
use crate::cli::sampled::Sampled;

/// The number of runs whose median time is told.
pub(super) const TIMED: usize = 7;

/// The operands, settings and scalars of a program.
pub(super) struct Case {
    pub(super) settings: Settings,
    pub(super) out: OutDtype,
    pub(super) operands: Vec<(String, DType, Vec<Dim>)>,
    pub(super) values: Vec<(String, Scalar)>,
    /// The results' names and dtypes, which casts must not change.
    pub(super) results: Vec<(Option<String>, DType)>,
    pub(super) data: Option<Data>,
}

/// Elements to measure on, and what the results should be.
pub(super) struct Data {
    sampled: Sampled,
    /// For each run, the exact results.
    references: Vec<Vec<Tensor>>,
    executor: Executor,
    /// For each result.
    compare: Vec<Option<Compare>>,
}

/// The program that compares a result with its reference.
struct Compare {
    program: Program,
    pair: [Var; 2],
}

/// What a run costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// The bytes that kernels read and write.
    pub(super) bytes: u64,
    pub(super) time: Duration,
}

impl Case {
    fn plan(&self, text: &str, out: OutDtype) -> Result<Plan, Error> {
        let operands: Vec<_> = self.operands.iter().map(|(n, d, s)| (n.as_str(), *d, s.clone())).collect();
        let values: Vec<_> = self.values.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        plan(self.settings, 0, text, out, &operands, &values)
    }

    /// The program of a text.
    pub(super) fn typed(&self, text: &str) -> Result<Plan, Error> {
        self.plan(text, self.out)
    }

    /// The dtype of a part of the text.
    pub(super) fn dtype_of(&self, text: &str, part: &Range<usize>) -> Option<DType> {
        const NAME: &str = "the operand of a cast";
        let values = statements(text)?;
        let at = values.iter().position(|v| v.start <= part.start && part.end <= v.end)?;
        // The statements before, whose names the part may use.
        let before = match at.checked_sub(1).and_then(|i| values.get(i)) {
            Some(last) => last.end + text.get(last.end..)?.find(';')? + 1,
            None => 0,
        };
        let alone = format!("{} \"{NAME}\" = {}", text.get(..before)?, text.get(part.clone())?);
        let plan = self.plan(&alone, OutDtype::default()).ok()?;
        plan.results.iter().find(|r| r.name.as_deref() == Some(NAME)).map(|r| r.dtype)
    }

    /// Measures on elements, those of files or random ones.
    pub(super) fn measure_on(&mut self, sampled: Sampled) -> Result<(), Error> {
        let mirror = Mirror::new(&sampled.plan.typed)?;
        let none = || Error::Internal("the result has no node".into());
        let all = mirror.exact_after(0)?;
        let exact = |v: &Var| sampled.plan.typed.position(v).map(|n| all[n].clone()).ok_or_else(none);
        let exact = sampled.plan.vars().iter().map(exact).collect::<Result<Vec<Var>, Error>>()?;
        let executor = Executor::new();
        let mut references = Vec::new();
        for run in 0..sampled.runs {
            let feeds = Feeds::from(sampled.feeds(run)?);
            references.push(executor.run(&mirror.program, feeds, &exact)?);
        }
        let compare = exact.iter().map(|_| None).collect();
        self.data = Some(Data { sampled, references, executor, compare });
        Ok(())
    }

    /// The error of a text's results.
    pub(super) fn error(&mut self, text: &str) -> Result<Option<Errors>, Error> {
        let Some(data) = &mut self.data else { return Ok(None) };
        let plan = data.sampled.replan(text)?;
        let mut errors = Errors::default();
        for (run, references) in data.references.iter().enumerate() {
            let feeds = Feeds::from(data.sampled.feeds(run)?);
            let results = data.executor.run(&plan.program, feeds, &plan.vars())?;
            for ((result, reference), known) in results.iter().zip(references).zip(&mut data.compare) {
                compared(known, &data.executor, self.settings, result, reference, &mut errors)?;
            }
        }
        Ok(Some(errors))
    }

    /// The error that a result's dtype alone has: that of the exact results in it.
    pub(super) fn least_error(&mut self, result: usize) -> Result<Option<Errors>, Error> {
        let (Some(data), Some((_, dtype))) = (&mut self.data, self.results.get(result)) else { return Ok(None) };
        let mut errors = Errors::default();
        for reference in data.references.iter().filter_map(|all| all.get(result)) {
            let p = Program::with_settings(self.settings);
            let e = p.data("e", reference.dtype(), fixed(reference));
            let rounded = e.cast(*dtype);
            let made = data.executor.run(&p, Feeds::from(vec![("e".to_string(), reference.clone())]), [&rounded])?;
            let made = made.first().ok_or_else(|| Error::Internal("a run without a result".into()))?;
            compared(&mut data.compare[result], &data.executor, self.settings, made, reference, &mut errors)?;
        }
        Ok(Some(errors))
    }

    /// What a run of a text costs.
    pub(super) fn cost(&self, text: &str) -> Result<Option<Cost>, Error> {
        let Some(data) = &self.data else { return Ok(None) };
        let plan = data.sampled.replan(text)?;
        let feeds = Feeds::from(data.sampled.feeds(0)?);
        let results = plan.vars();
        let run = || data.executor.run(&plan.program, feeds.clone(), &results).map(drop);
        run()?;
        let moved = || {
            let stats = data.executor.stats();
            stats.bytes_read + stats.bytes_written
        };
        let before = moved();
        run()?;
        let bytes = moved() - before;
        let mut times = Vec::with_capacity(TIMED);
        for _ in 0..TIMED {
            let start = Instant::now();
            run()?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        Ok(Some(Cost { bytes, time: times[TIMED / 2] }))
    }

    /// The number of elements that errors are measured on, and whether they are random.
    pub(super) fn measured_on(&self) -> Option<String> {
        let sampled = &self.data.as_ref()?.sampled;
        let what = if sampled.drawn { "random elements (floats uniform between 0 and 1)" } else { "elements" };
        Some(format!("{} {what}", sampled.runs * sampled.largest))
    }
}

fn fixed(t: &Tensor) -> Dims {
    Dims(t.shape().iter().map(|n| Dim::Fixed(*n)).collect())
}

/// Adds the errors of a result against its reference.
fn compared(
    known: &mut Option<Compare>,
    executor: &Executor,
    settings: Settings,
    result: &Tensor,
    reference: &Tensor,
    errors: &mut Errors,
) -> Result<(), Error> {
    let compare = known.get_or_insert_with(|| {
        let program = Program::with_settings(settings);
        let x = program.data("x", result.dtype(), fixed(result));
        let e = program.data("e", reference.dtype(), fixed(reference));
        let pair = if reference.dtype() == DType::Bool {
            [x.ne(&e).cast(DType::F64), e.ne(&x).logical_not().cast(DType::F64)]
        } else {
            let to = wide(result.dtype());
            let x = if to == result.dtype() { x } else { x.cast(to) };
            [(x - &e).abs(), e.abs()]
        };
        Compare { program, pair }
    });
    let feeds = vec![("x".to_string(), result.clone()), ("e".to_string(), reference.clone())];
    let values = executor.run(&compare.program, Feeds::from(feeds), &compare.pair)?;
    if let [e, m] = &values[..] {
        errors.add(&e.to_vec::<f64>()?, &m.to_vec::<f64>()?);
    }
    Ok(())
}

/// The part of a text that is the value of a result; of one without a name, the last.
fn value_of(text: &str, name: Option<&str>) -> Option<Range<usize>> {
    let mut values = statements(text)?;
    let Some(name) = name else { return values.pop() };
    let mut from = 0;
    let mut found = None;
    for value in values {
        let before = text.get(from..value.start)?;
        let own = before.trim_start_matches(|c: char| c == ';' || c == ')' || c.is_whitespace()).trim_end();
        let own = own.strip_suffix('=').unwrap_or(own).trim_end();
        let quoted = own.strip_prefix('"').and_then(|own| own.strip_suffix('"'));
        let is_it = match quoted {
            Some(inside) => inside.replace("\\\"", "\"").replace("\\\\", "\\") == name,
            None => own == name,
        };
        from = value.end;
        if is_it {
            found = Some(value);
        }
    }
    found
}

/// The programs of one expression, for all dtypes that it is used with.
pub(super) struct Cases {
    pub(super) text: String,
    pub(super) all: Vec<Case>,
}

impl Cases {
    /// The text with casts, and its programs; `None` if they are not typed or a result would have another dtype.
    pub(super) fn with(&self, edits: &[Edit]) -> Option<(String, Vec<Plan>)> {
        let typed = |text: &str| self.all.iter().map(|c| c.typed(text)).collect::<Result<Vec<Plan>, Error>>().ok();
        let same = |p: &Plan, c: &Case, i: usize| p.results.get(i).map(|r| r.dtype) == c.results.get(i).map(|r| r.1);
        let results = self.all.first()?.results.len();
        let text = edited(&self.text, edits);
        let plans = typed(&text)?;
        let changed = |plans: &[Plan]| -> Vec<usize> {
            let is = |i: &usize| !plans.iter().zip(&self.all).all(|(p, c)| same(p, c, *i));
            (0..results).filter(is).collect()
        };
        let changed_results = changed(&plans);
        if changed_results.is_empty() {
            return Some((text, plans));
        }
        // Whole results, back in their dtypes.
        let mut edits = edits.to_vec();
        for i in changed_results {
            let (name, dtype) = self.all.first()?.results.get(i)?;
            edits.push(Edit { span: value_of(&self.text, name.as_deref())?, dtype: *dtype });
        }
        let text = edited(&self.text, &edits);
        let plans = typed(&text)?;
        changed(&plans).is_empty().then_some((text, plans))
    }

    /// The casts to choose from, the cheapest first: those that lose nothing, to narrow dtypes, of short parts.
    pub(super) fn candidates(&self, parts: &[Range<usize>]) -> Vec<Edit> {
        const TO: [DType; 7] = [DType::I16, DType::I32, DType::I64, DType::F32, DType::F64, DType::C64, DType::C128];
        let mut found: Vec<(bool, usize, usize, Edit)> = Vec::new();
        for span in parts {
            let dtypes: Vec<DType> = self.all.iter().filter_map(|c| c.dtype_of(&self.text, span)).collect();
            let Some(widest) = dtypes.iter().copied().max_by_key(|d| (d.category(), d.size())) else { continue };
            for dtype in TO {
                let useful = dtypes.iter().any(|d| *d != dtype && *d != DType::Bool)
                    && dtype.category() >= widest.category()
                    && (dtype.is_complex() == widest.is_complex());
                let loss = dtypes.iter().map(|d| CastLoss::of(*d, dtype)).max();
                let lossy = loss.is_none_or(|l| l != CastLoss::Exact);
                let rounds = lossy && widest.category() == Category::Int && dtype.category() == Category::Float;
                if useful && (!lossy || rounds && loss == Some(CastLoss::Rounds)) {
                    found.push((lossy, dtype.size(), span.len(), Edit { span: span.clone(), dtype }));
                }
            }
        }
        found.sort_by_key(|(lossy, size, len, e)| (*lossy, *size, e.dtype.category(), *len, e.span.start));
        found.into_iter().map(|(_, _, _, e)| e).collect()
    }
}
