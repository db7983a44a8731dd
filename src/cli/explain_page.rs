//! The page of `explain --html`: pictures of programs, and a table of their nodes.
//!
//! Guarantees: every node that a picture shows or leaves out has a row (up to the page's limit), with rule, loss and source;
//! errors are those that `--numeric` prints. Does not: measure or lay out.

use castwise::picture::{Bar, Picture};
use castwise::{CastLoss, NodeKind, TypedProgram};

use super::draw::label;
use super::failure::Failure;
use super::findings::findings;
use super::html::{Cell, Page};
use super::numeric::{NodeError, OfKind, number};
use super::plan::Work;
use super::source::Source;
use super::{describe, report};

/// The programs that have a picture at most.
const MOST_PICTURES: usize = 40;
const TITLES: [&str; 7] = ["value", "op", "type", "loss", "rule", "marks", "source"];
const NUMERIC: [&str; 4] = ["error in the result", "largest", "own error", "largest own"];

/// The page about an expression.
pub(super) fn of_work(work: &Work, measured: Option<&[OfKind]>) -> Result<Page, Failure> {
    let kinds = work.kinds()?;
    let mut page = empty(measured.is_some());
    let s = if kinds.len() == 1 { "" } else { "s" };
    page.summary = format!("{} program{s}", kinds.len());
    if kinds.len() > MOST_PICTURES {
        page.summary += &format!(", of which the first {MOST_PICTURES} are shown");
    }
    for (i, kind) in kinds.iter().enumerate().take(MOST_PICTURES) {
        let Some(first) = kind.first() else { continue };
        let (plan, e) = work.of(first);
        if i == 0 {
            page.title = format!("castwise explain: {}", report::cut(&e.text, 120));
        }
        let heading = format!("{}{}", work.heading(kind), describe::result(plan).trim_end());
        add(&mut page, &heading.replace('\n', " "), &plan.typed, &e.text, measured.and_then(|m| m.get(i)));
    }
    if kinds.len() > 1 {
        page.titles.insert(1, "picture".to_string());
    } else {
        page.rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    Ok(page)
}

/// The page about a program as text.
pub(super) fn of_source(typed: &TypedProgram, source: &Source) -> Page {
    let mut page = empty(false);
    page.title = format!("castwise explain: {}", source.path);
    page.summary = "1 program".to_string();
    add(&mut page, "the program", typed, &source.text, None);
    page.rows.iter_mut().for_each(|row| drop(row.remove(1)));
    page
}

fn empty(numeric: bool) -> Page {
    let titles = TITLES.iter().chain(if numeric { &NUMERIC[..] } else { &[] });
    Page {
        title: String::new(),
        summary: String::new(),
        pictures: Vec::new(),
        what: "values",
        titles: titles.map(|t| t.to_string()).collect(),
        rows: Vec::new(),
    }
}

/// Adds a program: its picture, and its rows.
fn add(page: &mut Page, heading: &str, typed: &TypedProgram, source: &str, measured: Option<&OfKind>) {
    let picture = page.pictures.len();
    let errors: Vec<Option<NodeError>> = (0..typed.len()).map(|i| measured.and_then(|m| m.measured().of(i))).collect();
    let drawn = Picture::of(typed).source(source);
    let drawn = match measured {
        Some(m) => {
            let (bars, scale) = bars(&errors, m.measured().traced());
            drawn.bars(bars, &scale)
        }
        None => drawn,
    };
    let found = findings(typed, source).iter().filter(|f| !f.requested).count();
    let places = if found == 1 { "place" } else { "places" };
    let count =
        format!("{} values, {} casts, {found} {places} that may lose something", typed.len(), typed.casts().len());
    let about = measured.map_or(count.clone(), |m| format!("{count}; {}", m.of_result()));
    let about = format!("<p>{}</p>", castwise::picture::escaped(&about));
    let fit = format!("<p><button data-fit=\"{picture}\">Fit into the window</button></p>");
    page.pictures.push((heading.to_string(), format!("{about}{fit}<div class=\"program\">{}</div>", drawn.svg())));
    page.rows.extend(rows(typed, source, picture, measured.is_some(), &errors));
}

/// The words about what ops and scalars lose beside casts, by node.
pub(crate) fn marks(typed: &TypedProgram) -> Vec<Vec<String>> {
    let mut marks = vec![Vec::new(); typed.len()];
    let mut add = |node: usize, words: String| {
        if let Some(of) = marks.get_mut(node) {
            of.push(words);
        }
    };
    typed.hidden_roundings().iter().for_each(|n| add(n.node, format!("rounds to {} before {}", n.dtype, n.to)));
    typed.hidden_wraps().iter().for_each(|n| add(n.node, format!("may wrap in {} ({})", n.dtype, n.ranges())));
    typed.changed_scalars().iter().for_each(|s| add(s.node, format!("{} is {} in {}", s.value, s.used, s.to)));
    marks
}

fn rows(
    typed: &TypedProgram,
    source: &str,
    picture: usize,
    numeric: bool,
    errors: &[Option<NodeError>],
) -> Vec<Vec<Cell>> {
    let marks = marks(typed);
    let row = |(i, n): (usize, castwise::NodeView<'_>)| {
        let (loss, rule) = match &n.kind {
            NodeKind::Cast { note, .. } => {
                let sort = match note.loss {
                    CastLoss::Exact => 0.0,
                    CastLoss::Rounds => 1.0,
                    CastLoss::Range => 2.0,
                };
                (Cell::number(note.loss.to_string(), sort), note.reason.words(note.to))
            }
            _ => (Cell::text(String::new()), String::new()),
        };
        let [_, of] = label(&n);
        let what = n.label(|i| format!("%{i}"));
        let written = match report::span(source, n.location) {
            Some(span) => describe::piece(source, span),
            // A placeholder, which the text has no place for.
            None => String::new(),
        };
        let what = report::cut(&report::escaped(&what), 60);
        // The number of the picture, which a page of one picture leaves out.
        let which = Cell::number((picture + 1).to_string(), picture as f64);
        let mut cells = vec![Cell::node(picture, i), which, Cell::text(what), Cell::text(of), loss];
        cells.extend([rule, marks[i].join("; "), written].map(Cell::text));
        if numeric {
            let error = |v: Option<f64>| v.map_or_else(|| Cell::text(String::new()), |v| Cell::number(number(v), v));
            let of = errors.get(i).and_then(Option::as_ref);
            let (in_result, own) = (of.and_then(|e| e.in_result), of.map(|e| e.own));
            cells.extend(
                [in_result.map(|e| e[0]), in_result.map(|e| e[1]), own.map(|e| e[0]), own.map(|e| e[1])].map(error),
            );
        }
        cells
    };
    typed.nodes().enumerate().map(row).collect()
}

/// The bars of errors, on a logarithmic scale, and what they are.
pub(crate) fn bars(errors: &[Option<NodeError>], traced: bool) -> (Vec<Option<Bar>>, String) {
    let sizes = errors.iter().flatten().map(|e| e.weight).filter(|w| *w > 0.0);
    let (low, high) = sizes.fold((f64::MAX, 0f64), |(low, high), w| (low.min(w), high.max(w)));
    if high == 0.0 {
        return (Vec::new(), "No op or cast has an error.".to_string());
    }
    let (low, high) = (low.log10().floor(), high.log10().ceil());
    let high = high.max(low + 1.0);
    let bar = |e: &NodeError| {
        let part = if e.weight > 0.0 { ((e.weight.log10() - low) / (high - low)).max(0.03) } else { 0.0 };
        let pair = |[median, largest]: [f64; 2]| format!("median {}, maximum {}", number(median), number(largest));
        let in_result = e.in_result.map_or(String::new(), |r| format!("error in the result: {}; ", pair(r)));
        let hint = format!("{in_result}own error: {}{}", pair(e.own), e.notes);
        Bar { part, text: number(e.weight), hint }
    };
    let what = if traced { "in the result" } else { "of the op or cast itself" };
    let scale = format!("Bars: mean relative error {what}, from 1e{low:.0} to 1e{high:.0}, logarithmic.");
    (errors.iter().map(|e| e.as_ref().map(bar)).collect(), scale)
}
