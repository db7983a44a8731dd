//! Typed programs as pictures and tables of HTML, for notebooks, with the errors that were measured on some elements.
//!
//! Guarantees: one row a node, in order; casts are coloured by what they may lose, as in the command's drawings, and ops that lose
//! precision are named; a pointer shows the rule and the line. Text from outside is escaped; no script, no style beside the cells'
//! own and that of the picture, which has a class of its own. Does not: measure; the command's code does.

use std::collections::HashSet;

use castwise::picture::{Bar, Picture};
use castwise::shape::SymDim;
use castwise::{CastLoss, Error, NodeKind, NodeView, Program, Tensor, TypedProgram};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays;
use crate::cli::draw::{colour, label};
use crate::cli::explain_page::{bars, marks};
use crate::cli::numeric::{Measured, NodeError, number};
use crate::cli::sample::sample;
use crate::errors::{exception, unknown_name};
use crate::program::PyProgram;

/// Rows of one table at most.
const MOST: usize = 500;

/// The extent of a dim that is not known, where elements are random.
const EXTENT: usize = 256;

/// Text as HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A program with a heading: a picture and a table.
pub fn table(heading: &str, typed: &TypedProgram) -> String {
    of(heading, typed, None)
}

/// The errors of each node, with the bars of the picture and what they mean.
struct Errors {
    of: Vec<Option<NodeError>>,
    bars: Vec<Option<Bar>>,
    scale: String,
    result: String,
}

fn of(heading: &str, typed: &TypedProgram, errors: Option<&Errors>) -> String {
    let casts = typed.casts();
    let count = |l: CastLoss| casts.iter().filter(|c| c.loss == l).count();
    let (exact, rounds, range) = (count(CastLoss::Exact), count(CastLoss::Rounds), count(CastLoss::Range));
    let picture = match errors {
        Some(e) => Picture::of(typed).bars(e.bars.clone(), &e.scale).svg(),
        None => typed.to_svg(),
    };
    let measured = errors.map_or(String::new(), |e| format!("<br>{}", escaped(&e.result)));
    let titles = ["value", "op", "operands", "type", "rule", "loses", "source"];
    let titles = titles.into_iter().chain(errors.map(|_| "error"));
    let titles: String = titles.map(|t| format!("<th style=\"text-align:left\">{t}</th>")).collect();
    let mut text = format!(
        "<div><code>{}</code><br>{} cast{}: {exact} exact, {rounds} that round, {range} that may leave the range{measured}\
         <div style=\"overflow:auto;max-height:60em\">{picture}</div><table><tr>{titles}</tr>",
        escaped(heading),
        casts.len(),
        if casts.len() == 1 { "" } else { "s" },
    );
    let (results, marks): (HashSet<usize>, _) = (typed.results().into_iter().collect(), marks(typed));
    let worst = errors.and_then(Errors::worst);
    for (i, n) in typed.nodes().enumerate().take(MOST) {
        text += &row(&n, i, results.contains(&i), worst == Some(i), &marks[i]);
        if let Some(e) = errors {
            text += &e.cell(i);
        }
        text += "</tr>";
    }
    if typed.len() > MOST {
        text += &format!("<tr><td colspan=\"8\">(and {} more)</td></tr>", typed.len() - MOST);
    }
    text + "</table></div>"
}

/// The cells of a node that every table has.
fn row(n: &NodeView<'_>, i: usize, result: bool, worst: bool, marks: &[String]) -> String {
    let [what, of] = label(n).map(|l| escaped(&l));
    let operands: Vec<String> = n.kind.inputs().iter().map(|from| format!("%{from}")).collect();
    let (class, rule, loss) = match &n.kind {
        NodeKind::Cast { note, .. } => {
            let class = match note.loss {
                CastLoss::Exact => "exact",
                CastLoss::Rounds => "rounds",
                CastLoss::Range => "range",
            };
            let loss = if note.loss == CastLoss::Exact { String::new() } else { note.loss.to_string() };
            (class, note.reason.words(note.to), loss)
        }
        _ if !marks.is_empty() => ("marked", String::new(), String::new()),
        _ => ("node", String::new(), String::new()),
    };
    let loses: Vec<&str> =
        [loss.as_str()].into_iter().filter(|l| !l.is_empty()).chain(marks.iter().map(String::as_str)).collect();
    let (loses, rule, source) = (escaped(&loses.join("; ")), escaped(&rule), escaped(&n.location.to_string()));
    let hint = [rule.as_str(), loses.as_str(), source.as_str()].into_iter().filter(|t| !t.is_empty());
    let bold = if result { ";font-weight:bold" } else { "" };
    let frame = if worst { ";outline:2px solid #c0392b" } else { "" };
    let colour = if class == "marked" { "#ffe6a0" } else { colour(n) };
    format!(
        "<tr class=\"castwise-{class}{}\" title=\"{}\" style=\"background:{colour};color:#000{bold}{frame}\"><td>%{i}</td><td>{what}</td>\
         <td>{}</td><td>{of}</td><td>{rule}</td><td>{loses}</td><td>{source}</td>",
        if worst { " castwise-worst" } else { "" },
        hint.collect::<Vec<_>>().join("&#10;"),
        operands.join(", "),
    )
}

impl Errors {
    fn new(typed: &TypedProgram, measured: &Measured) -> Errors {
        let of: Vec<Option<NodeError>> = (0..typed.len()).map(|i| measured.of(i)).collect();
        let (bars, scale) = bars(&of, measured.traced());
        Errors { of, bars, scale, result: measured.of_result(1) }
    }

    /// The node with the largest error.
    fn worst(&self) -> Option<usize> {
        self.order().first().copied()
    }

    /// The nodes that have errors, the largest first.
    fn order(&self) -> Vec<usize> {
        let weight = |i: &usize| self.of[*i].as_ref().map_or(0.0, |e| e.weight);
        let mut all: Vec<usize> = (0..self.of.len()).filter(|i| self.of[*i].is_some()).collect();
        all.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        all
    }

    /// The bar of a node, as a cell.
    fn cell(&self, node: usize) -> String {
        let Some(bar) = self.bars.get(node).and_then(Option::as_ref) else { return "<td></td>".to_string() };
        let part = if bar.part > 0.0 { (100.0 * bar.part.min(1.0)).round() } else { 0.0 };
        format!(
            "<td title=\"{}\" style=\"white-space:nowrap\"><span style=\"display:inline-block;width:8em;background:#ddd\">\
             <span class=\"castwise-bar\" style=\"display:block;height:0.7em;width:{part}%;background:#c0392b\"></span></span> {}</td>",
            escaped(&bar.hint),
            escaped(&bar.text)
        )
    }

    /// The errors as text, the largest first.
    fn text(&self, typed: &TypedProgram) -> String {
        let nodes: Vec<NodeView<'_>> = typed.nodes().collect();
        let mut text = format!("{}\n", self.result);
        let order = self.order();
        for &i in order.iter().take(20) {
            let Some(e) = &self.of[i] else { continue };
            let [median, largest] = e.in_result.unwrap_or(e.own);
            let (n, what) = (&nodes[i], nodes[i].label(|i| format!("%{i}")));
            text +=
                &format!("  {:<8} {:<8} %{i} {what}, at {}{}\n", number(median), number(largest), n.location, e.notes);
        }
        if order.is_empty() { text + "  no op or cast has an error\n" } else { text }
    }
}

/// Measures the errors of a program on the arrays of `feeds`, and random elements for placeholders that it does not name: as text,
/// the largest first, and as a picture and a table.
#[pyfunction]
pub fn measured(
    py: Python<'_>,
    program: &Bound<'_, PyProgram>,
    feeds: &Bound<'_, PyDict>,
) -> PyResult<(String, String)> {
    let program = program.get();
    let fail = |e: Error| exception(py, &e, None);
    let typed = program.program().infer().map_err(fail)?;
    let results = typed.results();
    let &[result] = &results[..] else {
        return Err(PyValueError::new_err(format!(
            "errors are measured of one result, and the program has {}",
            results.len()
        )));
    };
    let (given, drawn) = elements(py, program.program(), &typed, feeds)?;
    let count = given.iter().map(|(_, t)| t.numel()).max().unwrap_or(1);
    let mut all = Measured::default();
    py.detach(|| all.add(&typed, result, [1, count], &|_| Ok(given.clone()), drawn)).map_err(fail)?;
    let errors = Errors::new(&typed, &all);
    Ok((errors.text(&typed), of(&program.heading(), &typed, Some(&errors))))
}

/// The elements of each placeholder, and whether some are random.
fn elements(
    py: Python<'_>,
    program: &Program,
    typed: &TypedProgram,
    feeds: &Bound<'_, PyDict>,
) -> PyResult<(Vec<(String, Tensor)>, bool)> {
    let (mut all, mut drawn) = (Vec::new(), false);
    let names = program.feed_names();
    for (key, _) in feeds.iter() {
        let key: String = key.extract()?;
        if !names.contains(&key) {
            return Err(unknown_name("placeholder", &key, &names));
        }
    }
    for name in names {
        if let Some(array) = feeds.get_item(&name)? {
            all.push((name.clone(), arrays::array(&array, &name)?.tensor().map_err(|e| exception(py, &e, None))?));
            continue;
        }
        drawn = true;
        let none = || PyKeyError::new_err(name.clone());
        let (dtype, shape) =
            program.feed(&name).and_then(|v| Some((typed.dtype(&v)?, typed.shape(&v)?.to_vec()))).ok_or_else(none)?;
        let shape: Vec<usize> = shape.iter().map(|d| if let SymDim::Fixed(n) = d { *n } else { EXTENT }).collect();
        let t = sample(dtype, &shape, all.len() as u64).map_err(|e| exception(py, &e, None))?;
        all.push((name, t));
    }
    Ok((all, drawn))
}
