//! A picture as an SVG document.
//!
//! Guarantees: see the module `picture`. Does not: place anything.

use std::fmt::Write;

use crate::graph::view::NodeView;

use super::boxes::{Box, Boxes, Shows, head};
use super::layout::Places;
use super::marks::Class;
use super::options::{Bar, Picture};
use super::text::{cells, cut, escaped, written};

const STYLE: &str = include_str!("style.css");
/// The space around the boxes, and the height of a line of the legend.
const MARGIN: f64 = 16.0;
const LEGEND: f64 = 24.0;
/// The number of characters of a source that a pointer shows.
const SOURCE: usize = 200;
/// The width of a character, and the height of a line of a box.
const CELL: f64 = 7.3;
const LINE: f64 = 17.0;

/// The document.
pub(super) fn document(picture: &Picture<'_>, boxes: &Boxes, places: &Places) -> String {
    let views: Vec<NodeView<'_>> = picture.typed.nodes().collect();
    let (legend, wide, top) = legend(picture, boxes, places.width + 2.0 * MARGIN);
    let (width, height) = (wide.max(places.width + 2.0 * MARGIN).ceil(), (places.height + top + MARGIN).ceil());
    let (shown, all) = (views.len() - boxes.left, views.len());
    let about = if boxes.left > 0 { format!("the last {shown} of {all} nodes") } else { format!("{all} nodes") };
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"castwise-picture\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"A program of castwise: {about}\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{legend}"
    );
    let _ = writeln!(text, "<g transform=\"translate({} {top})\">", (width - places.width) / 2.0);
    wires(&mut text, boxes, places);
    let (results, fetches) = (picture.typed.results(), picture.typed.fetches());
    let fetched = |i: usize| {
        let named = fetches.iter().any(|(_, n)| *n as usize == i);
        named || fetches.is_empty() && results.binary_search(&i).is_ok()
    };
    for (b, (x, y)) in boxes.all.iter().zip(places.x.iter().zip(&places.y)) {
        match b.shows {
            Shows::Node(i) => node(&mut text, picture, boxes, b, [*x, *y], &views[i], i, fetched(i)),
            Shows::Bend => {}
        }
    }
    text + "</g>\n</svg>\n"
}

/// The group of a box, and its frame around a centre.
fn begin(text: &mut String, class: &str, b: &Box, at: [f64; 2], hints: &[String], node: usize) {
    let hints: Vec<String> = hints.iter().map(|h| escaped(h)).collect();
    let [x, y] = at;
    let (w, h) = (b.width, b.height);
    let _ = write!(
        text,
        "<g class=\"{class}\" data-node=\"{node}\" tabindex=\"0\" transform=\"translate({x:.1} {y:.1})\"><title>{}</title>\
         <rect class=\"box\" x=\"{:.1}\" y=\"{:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"5\"/>",
        hints.join("\n"),
        -w / 2.0,
        -h / 2.0
    );
}

fn line(text: &mut String, class: &str, x: f64, y: f64, shown: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = write!(text, "<text{class} x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(shown));
}

#[allow(clippy::too_many_arguments, reason = "the parts of one box")]
fn node(
    text: &mut String,
    picture: &Picture<'_>,
    boxes: &Boxes,
    b: &Box,
    at: [f64; 2],
    n: &NodeView<'_>,
    i: usize,
    result: bool,
) {
    let mark = &boxes.marks[i];
    let mut hints = vec![format!("%{i}: {}", head(n)), format!("type: {}", b.lines.get(1).map_or("", |l| l))];
    hints.extend(mark.hints.iter().cloned());
    match written(picture.source, n.location) {
        Some(source) => hints.push(format!("source: {}", cut(source, SOURCE))),
        // Beside a text, lines of code are those of who reads the text.
        None if picture.source.is_empty() => hints.push(format!("source: {}", n.location)),
        None => {}
    }
    let bar = picture.bars.get(i).and_then(Option::as_ref);
    hints.extend(bar.map(|bar| bar.hint.clone()));
    let marked = mark.badge.is_some();
    let class = format!(
        "node {}{}{}",
        mark.class.name(),
        if marked { " marked" } else { "" },
        if result { " result" } else { "" }
    );
    begin(text, &class, b, at, &hints, i);
    let (left, mut y) = (8.0 - b.width / 2.0 + 2.0, LINE - b.height / 2.0);
    for (k, shown) in b.lines.iter().enumerate() {
        let badge = k == 2 && marked;
        let sign = if mark.class == Class::Range { "! " } else { "≈ " };
        let shown = if badge { format!("{sign}{shown}") } else { shown.clone() };
        line(text, if badge { "badge" } else { "" }, left, y, &shown);
        y += LINE;
    }
    if let Some(Bar { part, text: number, .. }) = bar {
        line(text, "", left, y, &format!("error {number}"));
        let (wide, full) = (b.width - 20.0, if *part > 0.0 { part.min(1.0) } else { 0.0 });
        let y = y + 5.0;
        let _ = write!(
            text,
            "<rect class=\"track\" x=\"{left:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"7\" rx=\"2\"/>\
             <rect class=\"bar\" x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"7\" rx=\"2\"/>",
            wide * full
        );
    }
    *text += "</g>\n";
}

/// The lines between boxes. Within a level they are vertical, so that they cross no box.
fn wires(text: &mut String, boxes: &Boxes, places: &Places) {
    // Where the lines leave and reach a box: beside each other, in the order of where they come from.
    let mut ends: Vec<Vec<(f64, usize)>> = vec![Vec::new(); boxes.all.len()];
    for (k, line) in boxes.lines.iter().enumerate() {
        if let [.., before, end] = line[..] {
            ends[end as usize].push((places.x[before as usize], k));
        }
    }
    let mut reach = vec![0.0; boxes.lines.len()];
    for (i, ends) in ends.iter_mut().enumerate() {
        ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let step = boxes.all[i].width / (ends.len() + 1) as f64;
        for (k, (_, line)) in ends.iter().enumerate() {
            reach[*line] = places.x[i] - boxes.all[i].width / 2.0 + step * (k + 1) as f64;
        }
    }
    for (k, line) in boxes.lines.iter().enumerate() {
        let mut path = String::new();
        for (at, i) in line.iter().enumerate() {
            let (b, i) = (&boxes.all[*i as usize], *i as usize);
            let [above, below] = places.levels[b.level];
            let (first, last) = (at == 0, at + 1 == line.len());
            let x = if last { reach[k] } else { places.x[i] };
            let top = if last { places.y[i] - b.height / 2.0 } else { above };
            if first {
                let _ = write!(path, "M{x:.1} {:.1}V{below:.1}", places.y[i] + b.height / 2.0);
            } else {
                let start = places.levels[b.level - 1][1];
                let middle = (start + above) / 2.0;
                let from = places.x[line[at - 1] as usize];
                let _ = write!(path, "C{from:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {above:.1}");
                let end = if last { top - 5.0 } else { below };
                let _ = write!(path, "V{end:.1}");
                if last {
                    let _ = writeln!(
                        text,
                        "<path class=\"wire\" d=\"{path}\"/><path class=\"head\" d=\"M{:.1} {:.1}h8l-4 7z\"/>",
                        x - 4.0,
                        top - 7.0
                    );
                }
            }
        }
    }
}

/// The legend, its width, and where the boxes begin.
fn legend(picture: &Picture<'_>, boxes: &Boxes, width: f64) -> (String, f64, f64) {
    let has = |c: Class| boxes.marks.iter().skip(boxes.left).any(|m| m.class == c);
    let items = [
        (Class::Input, "input"),
        (Class::Op, "op"),
        (Class::Exact, "exact cast"),
        (Class::Rounds, "≈ rounds"),
        (Class::Range, "! may leave the range"),
    ];
    let mut text = String::new();
    let (mut x, mut y, mut wide) = (MARGIN, MARGIN, 0f64);
    let width = width.max(440.0);
    for (class, words) in items.into_iter().filter(|(c, _)| has(*c)) {
        let size = cells(words) as f64 * CELL + 40.0;
        if x > MARGIN && x + size > width {
            (x, y) = (MARGIN, y + LEGEND);
        }
        let _ = write!(
            text,
            "<g class=\"{}\"><rect class=\"box\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"16\" height=\"14\" rx=\"3\"/></g>",
            class.name()
        );
        line(&mut text, "", x + 22.0, y + 11.5, words);
        x += size;
        wide = wide.max(x);
    }
    let mut more = Vec::new();
    more.extend((!picture.scale.is_empty()).then(|| picture.scale.clone()));
    if boxes.left > 0 {
        let marks = boxes.marks.iter().take(boxes.left).filter(|m| m.badge.is_some()).count();
        more.push(format!(
            "Only the last {} of {} nodes are shown.",
            boxes.marks.len() - boxes.left,
            boxes.marks.len()
        ));
        more.push(format!("Marked nodes among those that are not shown: {marks}."));
    }
    for words in more {
        y += LEGEND;
        line(&mut text, "", MARGIN, y + 11.5, &words);
        wide = wide.max(MARGIN * 2.0 + cells(&words) as f64 * CELL);
    }
    (text + "\n", wide, y + LEGEND + MARGIN)
}
