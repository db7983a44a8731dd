//! The strategies of small kernels over domains of each kind.

use std::collections::BTreeSet;

use super::*;
use crate::base::dtype::DType;
use crate::base::random::Random;
use crate::base::shape::contiguous_strides;
use crate::kernels::CpuLevel;
use crate::ops::Op;
use crate::plan::geometry::{BroadcastKind, Geometry, OperandAccess, Reduction};
use crate::plan::kernel::{Kernel, KernelBuilder, Operand};
use crate::plan::schedule::{Schedule, schedule};
use crate::plan::tuning::{PLAIN_TILES, TILE, TILE_BYTES};

/// What a kernel computes of its operands before it stores or reduces it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Body {
    Nothing,
    Lowered,
    Kernel,
}

/// A kernel that adds its operands and stores or reduces the sum.
fn kernel(operands: usize, body: Body, fold: Option<Op>) -> Kernel {
    let mut b = KernelBuilder::default();
    let inputs: Vec<_> = (0..operands).map(|_| b.input(DType::F32)).collect();
    let value = if body == Body::Nothing {
        inputs[0]
    } else {
        let add = |b: &mut KernelBuilder, x, y| b.apply(Op::Add, DType::F32, &[Operand::Value(x), Operand::Value(y)]);
        let sum = inputs[1..].iter().fold(inputs[0], |x, y| add(&mut b, x, *y));
        b.apply(Op::Neg, DType::F32, &[Operand::Value(sum)])
    };
    match fold {
        Some(op) => b.kernel.folds.push((op, value)),
        None => b.kernel.outputs.push(value),
    }
    b.kernel
}

/// A domain, the strides of each operand, and the dims that are reduced by an op.
struct Case<'a> {
    extents: &'a [usize],
    strides: &'a [&'a [isize]],
    reduced: Option<(Op, &'a [usize])>,
    body: Body,
    multiple: usize,
}

impl Case<'_> {
    fn planned(&self) -> (Schedule, Geometry) {
        let strides: Vec<Vec<isize>> = self.strides.iter().map(|s| s.to_vec()).collect();
        let kind = |s: &Vec<isize>| if s.last() == Some(&0) { BroadcastKind::Inner } else { BroadcastKind::Varies };
        let spread: Vec<BroadcastKind> = strides.iter().map(kind).collect();
        let kernel = kernel(strides.len(), self.body, self.reduced.map(|r| r.0));
        let adds = self.multiple == 1 && kernel.adds_up();
        let reduced = self.reduced.map(|(_, dims)| Reduction { dims, adds });
        let geometry = Geometry::new(self.extents, &strides, &spread, reduced);
        let is_lowered = self.body == Body::Lowered;
        let schedule = schedule(&kernel, &geometry.classes(), CpuLevel::get(), &|_| is_lowered).unwrap();
        (schedule, geometry)
    }

    fn strategy(&self) -> Strategy {
        let (schedule, geometry) = self.planned();
        choose(&schedule, &geometry, self.multiple)
    }

    /// The walk, and the fold if there is one.
    fn text(&self) -> String {
        let s = self.strategy();
        if s.fold == RowFold::None { s.walk.to_string() } else { format!("{}; {}", s.walk, s.fold) }
    }
}

#[test]
fn each_domain_has_its_walk() {
    use Body::{Kernel, Lowered};
    let case = |extents, strides, body, multiple| Case { extents, strides, reduced: None, body, multiple }.text();
    assert_eq!(case(&[1000], &[&[1], &[1]], Lowered, 1), "call, without scratch");
    assert_eq!(case(&[1008], &[&[1], &[1]], Lowered, 16), "call, without scratch");
    assert_eq!(case(&[1000], &[&[1], &[1]], Lowered, 16), "ranges of rows");
    assert_eq!(case(&[1000], &[&[1], &[1]], Kernel, 1), "tiles");
    // A number for each row, without and with room for it in the calls of segments.
    let by_rows = "rows, 1000 elements of up to 90 rows a call";
    assert_eq!(case(&[90, 1000], &[&[1000, 1], &[1, 0]], Lowered, 1), by_rows);
    assert_eq!(case(&[90, 1000], &[&[1000, 1], &[1, 0]], Lowered, 16), "ranges of rows");
    assert_eq!(case(&[90, 8192], &[&[8192, 1], &[0, 1]], Lowered, 1), "rows, 2048 elements of up to 90 rows a call");
    assert_eq!(case(&[90, 3], &[&[3, 1], &[0, 1]], Lowered, 1), "patterns, many tiles a call");
    assert_eq!(case(&[90, 3], &[&[3, 1], &[0, 1]], Lowered, 16), "tiles");
    assert_eq!(case(&[90, 1000], &[&[1000, 1], &[1, 90]], Lowered, 1), "blocks of 16 rows, tile by tile");
    assert_eq!(case(&[90, 1000], &[&[1000, 1], &[3000, 3]], Lowered, 1), "tiles");
}

#[test]
fn each_reduction_has_its_walk_and_fold() {
    use Body::{Kernel, Lowered, Nothing};
    fn case(extents: &[usize], strides: &[&[isize]], op: Op, dims: &[usize], body: Body) -> String {
        Case { extents, strides, reduced: Some((op, dims)), body, multiple: 1 }.text()
    }
    let dense: &[&[isize]] = &[&[1000, 1]];
    assert_eq!(case(&[90, 1000], dense, Op::Sum, &[1], Nothing), "reduced rows, one a call; in place");
    assert_eq!(case(&[90, 1000], dense, Op::Sum, &[0, 1], Nothing), "tiles; in place");
    let by_rows = "rows, 1000 elements of up to 32 rows a call; segments into lanes";
    assert_eq!(case(&[90, 1000], dense, Op::Sum, &[1], Lowered), by_rows);
    assert_eq!(case(&[90, 1000], dense, Op::Amax, &[1], Lowered), "tiles; kernels into lanes");
    assert_eq!(case(&[90, 1000], dense, Op::Sum, &[1], Kernel), "tiles; kernels into lanes");
    assert_eq!(case(&[90, 1000], dense, Op::Sum, &[0, 1], Lowered), "tiles; segments into lanes");
    assert_eq!(case(&[90, 30], &[&[30, 1]], Op::Sum, &[1], Nothing), "tiles; short rows of 30");
    // Channel by channel of the images of a batch.
    let images: &[&[isize]] = &[&[3000, 1000, 1]];
    let parts = "tiles; kernels into lanes, contiguous parts of 1000";
    assert_eq!(case(&[90, 3, 1000], images, Op::Sum, &[0, 2], Nothing), parts);
    let across = |width| case(&[90, width], &[&[width as isize, 1]], Op::Sum, &[0], Nothing);
    assert_eq!(across(1000), "columns, 90 rows to one, in place at stride 1000");
    assert_eq!(across(100), "stacks in 2 groups, 90 rows of 100 to one, 1 together");
    assert_eq!(across(3), "stacks in tiles, 90 rows of 3 to one");
    assert_eq!(case(&[90, 1000], dense, Op::Sum, &[0], Kernel), "columns, 90 rows to one");
}

#[test]
fn a_strategy_prints_one_line_a_thing() {
    let strides: &[&[isize]] = &[&[1000, 1], &[1, 0]];
    let reduced = Some((Op::Mean, &[1][..]));
    let s = Case { extents: &[90, 1000], strides, reduced, body: Body::Lowered, multiple: 1 }.strategy();
    let text = "strategy {
  walk rows, 1000 elements of up to 32 rows a call
  fold segments into lanes
  prefetch segments that add or stream
  tile 8192
  piece 8192, 1 a row
  units 90, 131 between checks
  partials 90
  lengths any
}
";
    assert_eq!(s.to_string(), text);
}

/// Elements that the body computes in a call at most, and whether the calls of each piece end where it ends.
fn longest(s: &Strategy, inner: usize) -> usize {
    assert!(s.pieces * s.piece >= inner && (s.pieces - 1) * s.piece < inner, "{s}");
    match s.walk {
        Walk::Rows { columns, .. } => return columns,
        Walk::StackedTiles { .. } => return s.piece,
        Walk::Columns { .. } | Walk::StackedGroups(_) | Walk::RowBlocks => return s.tile,
        _ => {}
    }
    let mut most = 0;
    for piece in 0..s.pieces {
        let (mut at, end) = (piece * s.piece, inner.min((piece + 1) * s.piece));
        while at < end {
            let n = s.step(at, end);
            assert!(n > 0 && at + n <= end, "{s}");
            most = most.max(n);
            at += n;
        }
    }
    most
}

/// Scratch tiles have room for [`TILE_BYTES`], written out operands for some tiles more.
#[test]
fn calls_are_no_longer_than_the_tiles_that_they_write() {
    let (mut r, mut walks) = (Random(1), BTreeSet::new());
    for _ in 0..20_000 {
        let long = [10, 1000, 20_000][r.index(3)];
        let extents = [1 + r.index(100), 1 + r.index(10), 1 + r.index(long)];
        let dense = contiguous_strides(&extents);
        let (row, columns) = (extents[2] as isize, (extents[0] * extents[1]) as isize);
        let other =
            [[0, 0, 1], [extents[1] as isize, 1, 0], [1, extents[0] as isize, columns], [row, 0, 1]][r.index(4)];
        let body = [Body::Nothing, Body::Lowered, Body::Kernel][r.index(3)];
        let dims: &[usize] = [&[2][..], &[0], &[1, 2], &[0, 2], &[0, 1, 2]][r.index(5)];
        let fold = body == Body::Nothing || r.index(2) == 0;
        let (strides, reduced): (&[&[isize]], _) =
            (&[&dense, &other], fold.then_some(([Op::Sum, Op::Amax][r.index(2)], dims)));
        let strides = if body == Body::Nothing { &strides[r.index(2)..][..1] } else { strides };
        let multiple = if body == Body::Lowered { [1, 16][r.index(2)] } else { 1 };
        let case = Case { extents: &extents, strides, reduced, body, multiple };
        let (s, (schedule, g)) = (case.strategy(), case.planned());
        let longest = longest(&s, g.inner);
        let is_in_parts =
            matches!(s.fold, RowFold::Lanes { contiguous: Some(_) } | RowFold::Sums { contiguous: Some(_) });
        let added = if s.adds() { schedule.folds.iter().filter(|f| f.is_sum).count() } else { 0 };
        let copies = g.operands.iter().any(OperandAccess::is_gathered) && !is_in_parts;
        if schedule.tiles as usize > added || copies {
            assert!(longest * schedule.widest <= TILE_BYTES, "{longest}: {s}{g:?}");
        }
        if g.operands.iter().any(|o| !o.is_in_place()) && !is_in_parts {
            assert!(longest <= PLAIN_TILES * TILE, "{longest}: {s}{g:?}");
        }
        walks.insert(s.to_string().lines().nth(1).and_then(|l| l.split([' ', ',']).nth(3).map(str::to_string)));
    }
    // Calls, ranges, tiles, patterns, rows, reduced rows, blocks, columns, stacks.
    assert!(walks.len() >= 9, "{walks:?}");
}
