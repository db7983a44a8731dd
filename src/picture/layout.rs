//! Where boxes are: a level below the other, in an order with few crossings.
//!
//! Guarantees: boxes of one level do not overlap; a graph that the library can't place is placed in the order of its boxes.
//! The order within levels is the library's. Its coordinates let a long chain whose ops have a second operand each drift by
//! half a box a level, so boxes are then moved to those that they are joined to, as near as the order allows. Does not:
//! choose levels.

use rust_sugiyama::configure::{Config, RankingType};

use super::boxes::{Boxes, Shows};

/// Between two boxes of a level, two levels, and two parts without lines between them.
const GAP: f64 = 18.0;
const BETWEEN: f64 = 38.0;
/// How often levels are straightened, from above and from below in turns.
const PASSES: usize = 7;
/// The library recurses along the lines.
const STACK: usize = 64 << 20;

/// The centre of each box, and the height of each level.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) x: Vec<f64>,
    pub(super) y: Vec<f64>,
    /// The upper and the lower end of each level.
    pub(super) levels: Vec<[f64; 2]>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Places boxes.
pub(super) fn places(boxes: &Boxes) -> Places {
    let mut x = centres(boxes).unwrap_or_else(|| vec![0.0; boxes.all.len()]);
    let levels = boxes.all.iter().map(|b| b.level + 1).max().unwrap_or(0);
    let (mut of_level, mut tall) = (vec![Vec::new(); levels], vec![0f64; levels]);
    for (i, b) in boxes.all.iter().enumerate() {
        of_level[b.level].push(i);
        tall[b.level] = tall[b.level].max(b.height);
    }
    for level in &mut of_level {
        level.sort_by(|a, b| x[*a].total_cmp(&x[*b]).then(a.cmp(b)));
    }
    straighten(boxes, &of_level, &mut x);
    let left = boxes.all.iter().zip(&x).map(|(b, x)| x - b.width / 2.0).fold(f64::INFINITY, f64::min);
    x.iter_mut().for_each(|x| *x -= left);
    let width = boxes.all.iter().zip(&x).map(|(b, x)| x + b.width / 2.0).fold(0.0, f64::max);
    let mut top = 0.0;
    let ends: Vec<[f64; 2]> = tall
        .iter()
        .map(|tall| {
            let here = [top, top + tall];
            top += tall + BETWEEN;
            here
        })
        .collect();
    let y = boxes.all.iter().map(|b| ends[b.level].iter().sum::<f64>() / 2.0).collect();
    let height = ends.last().map_or(0.0, |e| e[1]);
    Places { x, y, levels: ends, width, height }
}

/// Moves boxes to the means of those that they are joined to in the level before, and in the level behind, in turns.
fn straighten(boxes: &Boxes, of_level: &[Vec<usize>], x: &mut [f64]) {
    let (mut above, mut below) = (vec![Vec::new(); x.len()], vec![Vec::new(); x.len()]);
    for (from, to) in &boxes.steps {
        above[*to as usize].push(*from as usize);
        below[*from as usize].push(*to as usize);
    }
    for pass in 0..PASSES {
        let down = pass % 2 == 0;
        let joined = if down { &above } else { &below };
        let place = |level: &Vec<usize>, x: &mut [f64]| {
            let wanted: Vec<(f64, f64)> = level.iter().map(|i| wanted(boxes, &joined[*i], x, *i)).collect();
            let widths: Vec<f64> = level.iter().map(|i| boxes.all[*i].width).collect();
            level.iter().zip(apart(&wanted, &widths)).for_each(|(i, at)| x[*i] = at);
        };
        if down {
            of_level.iter().for_each(|level| place(level, x));
        } else {
            of_level.iter().rev().for_each(|level| place(level, x));
        }
    }
}

/// Where a box should be, and how much that counts.
fn wanted(boxes: &Boxes, joined: &[usize], x: &[f64], own: usize) -> (f64, f64) {
    let weight = |i: usize| match boxes.all[i].shows {
        _ if boxes.all[i].aside => 1e-3,
        Shows::Bend => 3.0,
        Shows::Node(_) => 1.0,
    };
    let all: f64 = joined.iter().map(|i| weight(*i)).sum();
    let at = if joined.is_empty() { x[own] } else { joined.iter().map(|i| weight(*i) * x[*i]).sum::<f64>() / all };
    (at, weight(own) * if joined.is_empty() { 0.1 } else { 1.0 })
}

/// The centres nearest to the wanted ones (by the squares of the distances, with weights) at which boxes keep their order and
/// do not overlap: what overlaps is one block, at the mean of what its boxes want.
fn apart(wanted: &[(f64, f64)], widths: &[f64]) -> Vec<f64> {
    let mut offsets = Vec::with_capacity(widths.len());
    let mut at = 0.0;
    for (i, width) in widths.iter().enumerate() {
        at += if i > 0 { (widths[i - 1] + width) / 2.0 + GAP } else { 0.0 };
        offsets.push(at);
    }
    // Blocks: the weighted sum of the wanted beginnings, the weight, and the number of boxes.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for ((want, weight), offset) in wanted.iter().zip(&offsets) {
        let mut block = ((want - offset) * weight, *weight, 1);
        while let Some(last) = blocks.pop_if(|b| b.0 / b.1 >= block.0 / block.1) {
            block = (last.0 + block.0, last.1 + block.1, last.2 + block.2);
        }
        blocks.push(block);
    }
    let starts = blocks.iter().flat_map(|(sum, weight, count)| std::iter::repeat_n(sum / weight, *count));
    starts.zip(offsets).map(|(start, offset)| start + offset).collect()
}

/// The horizontal centres of all boxes; parts without lines between them are beside each other.
fn centres(boxes: &Boxes) -> Option<Vec<f64>> {
    let sizes: Vec<(u32, (f64, f64))> =
        boxes.all.iter().enumerate().map(|(i, b)| (i as u32, (b.width, b.height.max(1.0)))).collect();
    let steps = boxes.steps.clone();
    let run = move || {
        let config = Config {
            vertex_spacing: GAP,
            dummy_vertices: false,
            ranking_type: RankingType::MinimizeEdgeLength,
            transpose: sizes.len() < 600,
            ..Config::default()
        };
        rust_sugiyama::from_vertices_and_edges(&sizes, &steps, &config)
    };
    let mut parts = std::thread::Builder::new().stack_size(STACK).spawn(run).ok()?.join().ok()?;
    parts.iter_mut().for_each(|(part, ..)| part.sort_unstable_by_key(|(i, _)| *i));
    parts.sort_by_key(|(part, ..)| part.first().map(|(i, _)| *i));
    let mut x = vec![f64::NAN; boxes.all.len()];
    let mut start = 0.0;
    for (part, ..) in parts {
        let half = |i: usize| boxes.all.get(i).map_or(0.0, |b| b.width / 2.0);
        let left = part.iter().map(|(i, (x, _))| x - half(*i)).fold(f64::INFINITY, f64::min);
        let mut end = start;
        for (i, (at, _)) in &part {
            let centre = start + at - left;
            *x.get_mut(*i)? = centre;
            end = f64::max(end, centre + half(*i));
        }
        start = end + 2.0 * GAP;
    }
    x.iter().all(|x| x.is_finite()).then_some(x)
}
