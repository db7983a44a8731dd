//! Where boxes are: a level below the other, in an order with few crossings.
//!
//! Guarantees: boxes of one level do not overlap; a graph that the library can't place is placed in the order of its boxes.
//! Does not: choose levels.

use rust_sugiyama::configure::{Config, RankingType};

use super::boxes::Boxes;

/// Between two boxes of a level, two levels, and two parts without lines between them.
const GAP: f64 = 18.0;
const BETWEEN: f64 = 38.0;
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
        let mut end = f64::NEG_INFINITY;
        for i in level.iter() {
            let half = boxes.all[*i].width / 2.0;
            x[*i] = x[*i].max(end + half);
            end = x[*i] + half + GAP;
        }
    }
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
