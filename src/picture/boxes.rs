//! The boxes of a picture and the lines between them.
//!
//! Guarantees: an operand's box is at a level above that of its use, at most [`FAR`] levels; what is farther away has no line,
//! and is named in the box of its use, so no line crosses the whole picture, and the number of boxes and bends is linear in
//! that of the nodes. A program of more nodes than a picture has is shown from its end. Does not: place boxes within a level.

use crate::base::shape::dims_text;
use crate::graph::typed::TypedFetch;
use crate::graph::view::{NodeKind, NodeView};

use super::marks::{Mark, marks};
use super::options::Picture;
use super::text::{cells, cut};

/// The number of levels that a line crosses at most.
const FAR: usize = 3;
/// The number of characters of a line of a box at most.
const CELLS: usize = 34;
/// The sizes of text of 12 pixels in a font of equal widths, and of boxes.
const CELL: f64 = 7.3;
const PADDING: f64 = 10.0;
const LINE: f64 = 17.0;
/// The height of the bar of an error.
const BAR: f64 = 10.0;

/// What a box shows.
#[derive(Clone, Debug)]
pub(super) enum Shows {
    /// A node.
    Node(usize),
    /// Nothing: a line passes.
    Bend,
}

/// A box.
#[derive(Clone, Debug)]
pub(super) struct Box {
    pub(super) shows: Shows,
    pub(super) level: usize,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) lines: Vec<String>,
    /// Whether it is a placeholder, or is computed from a placeholder alone: it is drawn in the level before its first use.
    pub(super) aside: bool,
}

/// The boxes, the lines from level to level, and for each operand the boxes that its line passes.
#[derive(Debug, Default)]
pub(super) struct Boxes {
    pub(super) all: Vec<Box>,
    pub(super) steps: Vec<(u32, u32)>,
    pub(super) lines: Vec<Vec<u32>>,
    /// The marks of all nodes.
    pub(super) marks: Vec<Mark>,
    /// The number of nodes at the beginning that are not shown.
    pub(super) left: usize,
}

/// The position of a node and its type: the second line of its box.
fn type_line(i: usize, n: &NodeView<'_>) -> String {
    let star = if n.weak { "*" } else { "" };
    let dims = if n.shape.is_empty() { String::new() } else { dims_text(n.shape) };
    format!("%{i} {}{star}{dims}", n.dtype)
}

/// What a node is: the first line of its box.
pub(super) fn head(n: &NodeView<'_>) -> String {
    match &n.kind {
        NodeKind::Cast { from, note } => format!("cast %{from} to {}", note.to),
        _ => n.label(|i| format!("%{i}")),
    }
}

/// The boxes of a program.
pub(super) fn boxes(picture: &Picture<'_>) -> Boxes {
    let typed = picture.typed;
    let views: Vec<NodeView<'_>> = typed.nodes().collect();
    let mut made = Boxes { left: views.len().saturating_sub(picture.most), marks: marks(typed), ..Boxes::default() };
    let (levels, aside) = levels(&views, made.left);
    let left = made.left;
    let near = |from: usize, to: usize| from >= left && levels[to] - levels[from] <= FAR;
    let operands: Vec<Vec<usize>> = views.iter().map(operands).collect();
    let fetches = typed.fetches();
    // The boxes of the nodes shown, at their positions less those left out.
    for (i, n) in views.iter().enumerate().skip(made.left) {
        let badge = made.marks[i].badge.as_ref();
        let mut lines = vec![cut(&head(n), CELLS), cut(&type_line(i, n), CELLS)];
        lines.extend(badge.map(|b| cut(b, CELLS - 2)));
        let far = operands[i].iter().filter(|from| !near(**from, i));
        lines.extend(far.map(|from| cut(&format!("↑ %{from} {}", head(&views[*from])), CELLS)));
        lines.extend(names(&fetches, i));
        let bar = picture.bars.get(i).is_some_and(Option::is_some);
        // The sign of a badge has two cells.
        let widest = lines.iter().map(|l| cells(l)).chain(badge.map(|b| cells(b) + 2)).max().unwrap_or(0);
        let least = if bar || badge.is_some() { 150.0 } else { 70.0 };
        let width = (widest as f64 * CELL + 2.0 * PADDING).max(least).ceil();
        let height = lines.len() as f64 * LINE + PADDING + if bar { LINE + BAR } else { 0.0 };
        made.all.push(Box { shows: Shows::Node(i), level: levels[i], width, height, lines, aside: aside[i] });
    }
    for (i, of) in operands.iter().enumerate().skip(made.left) {
        for from in of {
            if near(*from, i) {
                made.connect(*from, i);
            }
        }
    }
    made
}

/// The nodes that a node uses, each once.
fn operands(n: &NodeView<'_>) -> Vec<usize> {
    let mut inputs = n.kind.inputs();
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}

/// The names of the results that a node is, as the last line of its box.
fn names(fetches: &[TypedFetch], i: usize) -> Option<String> {
    let of_node = fetches.iter().filter(|(_, n)| *n as usize == i);
    let named: Vec<String> = of_node.filter_map(|(name, _)| Some(cut(name.as_ref()?, CELLS - 9))).collect();
    (!named.is_empty()).then(|| cut(&format!("result {}", named.join(", ")), CELLS))
}

/// The level of each node that is shown: one more than those of its operands; and whether it is aside: placeholders, and what
/// is made of one alone, are above their first use.
fn levels(views: &[NodeView<'_>], left: usize) -> (Vec<usize>, Vec<bool>) {
    let (mut levels, mut aside) = (vec![0usize; views.len()], vec![false; views.len()]);
    let inputs: Vec<Vec<usize>> = views.iter().map(operands).collect();
    for (i, of) in inputs.iter().enumerate().skip(left) {
        let shown = of.iter().filter(|from| **from >= left);
        levels[i] = shown.map(|from| levels[*from] + 1).max().unwrap_or(0);
        aside[i] = of.len() < 2 && of.iter().all(|from| *from < left || aside[*from]);
    }
    let mut first = vec![usize::MAX; views.len()];
    for (i, of) in inputs.iter().enumerate().skip(left).rev() {
        if aside[i] && first[i] != usize::MAX {
            levels[i] = first[i] - 1;
        }
        of.iter().for_each(|from| first[*from] = first[*from].min(levels[i]));
    }
    (levels, aside)
}

impl Boxes {
    /// The line from an operand to the node that uses it.
    fn connect(&mut self, from: usize, to: usize) {
        let (start, end) = (from - self.left, to - self.left);
        let mut line = vec![start as u32];
        for level in self.all[start].level + 1..self.all[end].level {
            line.push(self.all.len() as u32);
            let (width, height) = (8.0, 0.0);
            self.all.push(Box { shows: Shows::Bend, level, width, height, lines: Vec::new(), aside: false });
        }
        line.push(end as u32);
        self.steps.extend(line.windows(2).map(|w| (w[0], w[1])));
        self.lines.push(line);
    }
}
