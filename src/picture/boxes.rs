//! The boxes of a picture and the lines between them.
//!
//! Guarantees: an operand's box is at a level above that of its use, at most [`FAR`] levels; what is farther away is named
//! by a small box beside its use, so no line crosses the whole picture, and the number of boxes and bends is linear in that
//! of the nodes. A program of more nodes than a picture has is shown from its end. Does not: place boxes within a level.

use crate::base::shape::dims_text;
use crate::graph::typed::TypedProgram;
use crate::graph::view::{NodeKind, NodeView};

use super::draw::Picture;
use super::marks::{Mark, marks};
use super::text::{cells, cut};

/// The number of nodes that a picture shows: of a program with more, the last ones.
pub const MOST_NODES: usize = 1000;
/// The number of levels that a line crosses at most.
const FAR: usize = 4;
/// The number of characters of a line of a box at most, and of the name of a box that is farther away.
const CELLS: usize = 34;
const REFERENCE: usize = 22;
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
    /// The name of a node that is farther away, or not shown.
    Reference(usize),
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
    let levels = levels(&views, made.left);
    // The boxes of the nodes shown, at their positions less those left out.
    for (i, n) in views.iter().enumerate().skip(made.left) {
        let mut lines = vec![cut(&head(n), CELLS), cut(&type_line(i, n), CELLS)];
        lines.extend(made.marks[i].badge.as_ref().map(|b| cut(b, CELLS)));
        let bar = picture.bars.get(i).is_some_and(Option::is_some);
        let badge = lines.len() > 2;
        let widest = lines.iter().enumerate().map(|(k, l)| cells(l) + if k == 2 { 2 } else { 0 }).max().unwrap_or(0);
        let results = names(typed, i);
        let widest = widest.max(results.as_ref().map_or(0, |r| cells(r)));
        lines.extend(results);
        let width = (widest as f64 * CELL + 2.0 * PADDING).max(if bar || badge { 150.0 } else { 70.0 });
        let height = lines.len() as f64 * LINE + PADDING + if bar { LINE + BAR } else { 0.0 };
        made.all.push(Box { shows: Shows::Node(i), level: levels[i], width: width.ceil(), height, lines });
    }
    for (i, n) in views.iter().enumerate().skip(made.left) {
        let mut inputs = n.kind.inputs();
        inputs.sort_unstable();
        inputs.dedup();
        for from in inputs {
            made.connect(&views, from, i, levels[i]);
        }
    }
    made
}

/// The names of the results that a node is, as the last line of its box.
fn names(typed: &TypedProgram, i: usize) -> Option<String> {
    let named: Vec<String> =
        typed.fetches.iter().filter(|(_, n)| *n as usize == i).flat_map(|(name, _)| name.iter().map(|n| cut(n, CELLS - 9))).collect();
    (!named.is_empty()).then(|| cut(&format!("result {}", named.join(", ")), CELLS))
}

/// The level of each node that is shown: one more than those of its operands. Placeholders, and what is made of one alone for
/// one use, are above their first use.
fn levels(views: &[NodeView<'_>], left: usize) -> Vec<usize> {
    let inputs: Vec<Vec<usize>> = views.iter().map(|n| n.kind.inputs()).collect();
    let (mut levels, mut uses) = (vec![0usize; views.len()], vec![0usize; views.len()]);
    for (i, of) in inputs.iter().enumerate().skip(left) {
        // What is left out is named in the level above, too.
        levels[i] = of.iter().map(|from| if *from < left { 1 } else { levels[*from] + 1 }).max().unwrap_or(0);
        of.iter().for_each(|from| uses[*from] += 1);
    }
    let mut sinks = vec![false; views.len()];
    for (i, of) in inputs.iter().enumerate().skip(left) {
        sinks[i] = match of[..] {
            [] => true,
            [from] => from >= left && sinks[from] && uses[from] == 1,
            _ => false,
        };
    }
    let mut first = vec![usize::MAX; views.len()];
    for (i, of) in inputs.iter().enumerate().skip(left).rev() {
        if sinks[i] && first[i] != usize::MAX {
            levels[i] = first[i] - 1;
        }
        of.iter().for_each(|from| first[*from] = first[*from].min(levels[i]));
    }
    levels
}

impl Boxes {
    fn add(&mut self, b: Box) -> u32 {
        self.all.push(b);
        self.all.len() as u32 - 1
    }

    /// The line from an operand to the node that uses it.
    fn connect(&mut self, views: &[NodeView<'_>], from: usize, to: usize, level: usize) {
        let end = (to - self.left) as u32;
        let above = from.checked_sub(self.left).map(|at| (at as u32, self.all[at].level));
        let mut line = match above {
            Some((at, start)) if level - start <= FAR => {
                let bend = |level| Box { shows: Shows::Bend, level, width: 8.0, height: 0.0, lines: Vec::new() };
                let bends: Vec<u32> = (start + 1..level).map(|level| self.add(bend(level))).collect();
                [vec![at], bends].concat()
            }
            _ => {
                let text = cut(&format!("%{from} {}", head(&views[from])), REFERENCE);
                let width = cells(&text) as f64 * CELL + PADDING;
                let lines = vec![text];
                let named = Box { shows: Shows::Reference(from), level: level - 1, width, height: LINE + 6.0, lines };
                vec![self.add(named)]
            }
        };
        line.push(end);
        self.steps.extend(line.windows(2).map(|w| (w[0], w[1])));
        self.lines.push(line);
    }
}
