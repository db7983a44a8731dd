//! The HTML pages of `stats`, `diff` and `explain`: a table that can be sorted, and pictures as SVG.
//!
//! Guarantees: a page is one file that uses neither network nor storage; every text from a file is escaped; the number of
//! rows and bars is limited. Does not: measure anything.

use std::path::{Path, PathBuf};

use castwise::io::{Existing, check_output, write_text};
use castwise::picture::escaped;

use super::failure::Failure;
use super::outputs;

const PAGE: &str = include_str!("report.html");
/// The maximum number of rows and of bars.
const MOST_ROWS: usize = 5000;
const MOST_BARS: usize = 400;

/// A cell of the table: its text, and the number that rows are sorted by; or a picture.
pub(super) struct Cell {
    pub(super) text: String,
    sort: Option<f64>,
    svg: Option<String>,
    /// The picture and the node in it that the cell is about.
    node: Option<(usize, usize)>,
}

impl Cell {
    pub(super) fn text(text: String) -> Cell {
        Cell { text, sort: None, svg: None, node: None }
    }

    pub(super) fn number(text: String, sort: f64) -> Cell {
        Cell { text, sort: Some(sort), svg: None, node: None }
    }

    pub(super) fn picture(svg: String) -> Cell {
        Cell { text: String::new(), sort: None, svg: Some(svg), node: None }
    }

    /// A node of a picture, which a click shows there.
    pub(super) fn node(picture: usize, node: usize) -> Cell {
        Cell { text: format!("%{node}"), sort: Some(node as f64), svg: None, node: Some((picture, node)) }
    }

    fn html(&self) -> String {
        // JavaScript reads `Infinity`, and has no number for NaN.
        let sort = match self.sort {
            Some(v) if v.is_infinite() => format!(" data-sort=\"{}Infinity\"", if v < 0.0 { "-" } else { "" }),
            Some(v) if !v.is_nan() => format!(" data-sort=\"{v:e}\""),
            _ => String::new(),
        };
        let text = self.svg.clone().unwrap_or_else(|| escaped(&self.text));
        match self.node {
            Some((picture, node)) => {
                format!("<td{sort}><button data-to=\"{picture} {node}\">{text}</button></td>")
            }
            None => format!("<td{sort}>{text}</td>"),
        }
    }
}

/// What a page shows.
pub(super) struct Page {
    pub(super) title: String,
    pub(super) summary: String,
    /// Pictures with their titles.
    pub(super) pictures: Vec<(String, String)>,
    /// What the rows are.
    pub(super) what: &'static str,
    pub(super) titles: Vec<String>,
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Page {
    fn html(&self) -> String {
        // Pictures have no order.
        let drawn = |column: usize| self.rows.first().and_then(|r| r.get(column)).is_some_and(|c| c.svg.is_some());
        let head = self.titles.iter().map(|t| escaped(t)).enumerate().map(|(column, title)| match drawn(column) {
            true => format!("<th scope=\"col\">{title}</th>"),
            false => format!("<th scope=\"col\"><button>{title}</button></th>"),
        });
        let head: String = head.collect();
        let row = |r: &Vec<Cell>| format!("<tr>{}</tr>", r.iter().map(Cell::html).collect::<String>());
        let rows: Vec<String> = self.rows.iter().take(MOST_ROWS).map(row).collect();
        let left = self.rows.len().saturating_sub(MOST_ROWS);
        let note = match left {
            0 => "A click on the head of a column sorts the rows.".to_string(),
            n => format!(
                "A click on the head of a column sorts the rows. {n} more {} are not shown.{}",
                self.what,
                if self.what == "tensors" { " --json has all." } else { "" }
            ),
        };
        let pictures: Vec<String> =
            self.pictures.iter().map(|(title, svg)| format!("<h2>{}</h2>\n{svg}", escaped(title))).collect();
        // One pass, so that nothing is replaced in what was inserted.
        let mut page = String::new();
        let mut rest = PAGE;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, behind)) = after.split_once("}}") else { break };
            page += before;
            page += &match name {
                "TITLE" => escaped(&self.title),
                "SUMMARY" => escaped(&self.summary),
                "PICTURES" => pictures.join("\n"),
                "NOTE" => note.clone(),
                "WHAT" => self.what.to_string(),
                "HEAD" => head.clone(),
                _ => rows.join("\n"),
            };
            rest = behind;
        }
        page + rest
    }
}

/// Refuses the path of a page that exists, unless `force`, or can't be written.
pub(super) fn check(path: Option<&Path>, force: bool) -> Result<(), Failure> {
    let Some(path) = path.map(Path::to_path_buf) else { return Ok(()) };
    let exists = path.symlink_metadata().is_ok();
    outputs::keep(if exists { std::slice::from_ref(&path) } else { &[] }, force)?;
    Ok(check_output(&path, Existing::Replace)?)
}

/// Refuses the path of a page that is an input.
pub(super) fn unread(path: Option<&Path>, read: &[&Path]) -> Result<(), Failure> {
    match path {
        Some(path) => outputs::check(&[PathBuf::from(path)], read).map(|_| ()),
        None => Ok(()),
    }
}

/// Writes a page.
pub(super) fn write(path: &Path, force: bool, page: &Page) -> Result<(), Failure> {
    let existing = if force { Existing::Replace } else { Existing::Keep };
    Ok(write_text(path, &page.html(), existing)?)
}

/// The number of elements between thresholds, from the numbers that are at least as large as each.
pub(super) fn differences(at_least: &[i64]) -> Vec<i64> {
    let next = at_least.iter().skip(1).chain([&0]);
    at_least.iter().zip(next).map(|(n, next)| n - next).collect()
}

/// A histogram without labels, for a cell.
pub(super) fn small_histogram(bins: &[i64]) -> String {
    let most = bins.iter().copied().max().unwrap_or(0).max(1) as f64;
    let bar = |(i, n): (usize, &i64)| {
        let height = if *n > 0 { (20.0 * *n as f64 / most).max(1.0) } else { 0.0 };
        format!("<rect x=\"{}\" y=\"{:.1}\" width=\"2\" height=\"{height:.1}\"/>", 3 * i, 20.0 - height)
    };
    let bars: String = bins.iter().enumerate().filter(|(_, n)| **n > 0).map(bar).collect();
    let width = 3 * bins.len();
    format!(
        "<svg class=\"chart\" width=\"{width}\" height=\"20\" viewBox=\"0 0 {width} 20\" aria-hidden=\"true\">{bars}</svg>"
    )
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 220.0;
/// The space for labels: at the left, below, and above.
const LEFT: f64 = 60.0;
const BELOW: f64 = 24.0;
const ABOVE: f64 = 14.0;

/// Bars with labels below. `bars`: the height as a part of 1, the label, and the text that a pointer shows.
fn chart(what: &str, bars: &[(f64, String, String)], levels: &[(f64, String)]) -> String {
    let (width, height) = ((WIDTH - LEFT) / bars.len().max(1) as f64, HEIGHT - BELOW - ABOVE);
    // Labels must not overlap.
    let every = (34.0 / width).ceil().max(1.0) as usize;
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"{}\">",
        escaped(what)
    );
    for (at, label) in levels {
        let y = ABOVE + height * (1.0 - at);
        svg += &format!("<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
        svg +=
            &format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", LEFT - 6.0, y + 4.0, escaped(label));
    }
    for (i, (part, label, hint)) in bars.iter().enumerate() {
        let (x, tall) = (LEFT + width * i as f64, height * part.clamp(0.0, 1.0));
        let (y, wide) = (ABOVE + height - tall, (width * 0.8).max(0.5));
        svg += &format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\"><title>{}</title></rect>",
            escaped(hint)
        );
        if i % every == 0 {
            let (x, y) = (x + wide / 2.0, HEIGHT - 8.0);
            svg += &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", escaped(label));
        }
    }
    svg + "</svg>"
}

/// A histogram of exponents: bins from `first` on, each `step` wide.
pub(super) fn histogram(bins: &[i64], first: i32, step: i32) -> String {
    let (most, all) = (bins.iter().copied().max().unwrap_or(0).max(1) as f64, bins.iter().sum::<i64>().max(1) as f64);
    let bar = |(i, n): (usize, &i64)| {
        let low = first + step * i as i32;
        let share = 100.0 * *n as f64 / all;
        (*n as f64 / most, format!("2^{low}"), format!("2^{low} to 2^{}: {n} elements ({share:.2}%)", low + step))
    };
    let bars: Vec<_> = bins.iter().enumerate().map(bar).collect();
    let level = |part: f64| (part, format!("{:.1}%", 100.0 * part * most / all));
    chart("Elements by exponent", &bars, &[level(0.0), level(0.5), level(1.0)])
}

/// Errors on a logarithmic scale. A bar has no height if there is no error, and all of it if the error is infinite.
pub(super) fn errors(of: &[(String, f64)]) -> String {
    let finite = of.iter().map(|(_, e)| *e).filter(|e| *e > 0.0 && e.is_finite());
    let (low, high) = finite.fold((f64::MAX, 0f64), |(low, high), e| (low.min(e), high.max(e)));
    let (low, high) = if high > 0.0 { (low.log10().floor(), high.log10().ceil()) } else { (-1.0, 0.0) };
    let (low, high) = (low, high.max(low + 1.0));
    let part = |e: f64| match e {
        e if e.is_infinite() => 1.0,
        e if e > 0.0 => ((e.log10() - low) / (high - low)).max(0.02),
        _ => 0.0,
    };
    let bar = |(label, e): &(String, f64)| (part(*e), label.clone(), format!("layer {label}: {e:.3e}"));
    let bars: Vec<_> = of.iter().take(MOST_BARS).map(bar).collect();
    let level = |part: f64| (part, format!("1e{:.0}", low + part * (high - low)));
    let more = of.len().saturating_sub(MOST_BARS);
    let more =
        if more > 0 { format!("<p class=\"muted\">{more} more layers are not shown.</p>") } else { String::new() };
    chart("Largest relative error by layer", &bars, &[level(0.0), level(1.0)]) + &more
}
