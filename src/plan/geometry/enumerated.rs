//! Random domains against plain enumeration: a geometry reads every operand's elements in the order of nested loops
//! over the dims, and its reach is that of these loops.

use std::collections::BTreeMap;

use super::*;
use crate::base::random::Random;

/// A domain, its operands and what is reduced.
#[derive(Debug)]
struct Case {
    extents: Vec<usize>,
    strides: Vec<Vec<isize>>,
    spread: Vec<BroadcastKind>,
    reduced: Option<Vec<usize>>,
    /// Whether segments add sums.
    adds: bool,
}

impl Case {
    fn geometry(&self) -> Geometry {
        let reduced = self.reduced.as_deref().map(|dims| Reduction { dims, adds: self.adds });
        Geometry::new(&self.extents, &self.strides, &self.spread, reduced)
    }
}

fn case(r: &mut Random) -> Case {
    let rank = [0, 1, 2, 2, 3, 3, 4, 5, 8][r.index(9)];
    let mut extents: Vec<usize> = (0..rank).map(|_| [1, 1, 2, 3, 4][r.index(5)]).collect();
    if rank > 0 && r.index(2) == 0 {
        // Around the limits of short rows.
        extents[r.index(rank)] = [5, 15, 16, 17, 63, 64, 65, 127, 128, 256, 257][r.index(11)];
    }
    // More points would find no more.
    while extents.iter().product::<usize>() > 600 {
        let d = r.index(rank);
        extents[d] = extents[d].div_ceil(2);
    }
    let strides = (0..1 + r.index(3)).map(|_| strides(r, &extents)).collect::<Vec<_>>();
    let spread = strides.iter().map(|s| spread(r, s, &extents)).collect();
    let reduced = (r.index(2) == 0).then(|| (0..rank).filter(|_| r.index(2) == 0).collect());
    Case { extents, strides, spread, reduced, adds: r.index(2) == 0 }
}

/// Those of a dense tensor with its dims in any order, some backwards, some broadcast, some stepped; or any.
fn strides(r: &mut Random, extents: &[usize]) -> Vec<isize> {
    let mut order: Vec<usize> = (0..extents.len()).collect();
    if r.index(3) == 0 {
        (1..order.len()).for_each(|i| order.swap(i, r.index(i + 1)));
    }
    let (mut strides, mut step) = (vec![0; extents.len()], 1 + r.index(5) as isize / 4);
    let (broadcasts, backwards, any) = (r.index(2) == 0, r.index(6) == 0, r.index(12) == 0);
    for d in order.into_iter().rev() {
        if broadcasts && r.index(3) == 0 {
            continue;
        }
        strides[d] = if backwards && r.index(2) == 0 { -step } else { step };
        step *= extents[d] as isize;
        if any {
            strides[d] = r.index(9) as isize - 4;
        }
    }
    strides
}

/// What the type of such an operand can say: as much as is true, or nothing.
fn spread(r: &mut Random, strides: &[isize], extents: &[usize]) -> BroadcastKind {
    let still = |(n, s): (&usize, &isize)| *s == 0 || *n == 1;
    if r.index(3) > 0 && extents.iter().zip(strides).all(still) {
        return BroadcastKind::All;
    }
    let last = extents.last().zip(strides.last());
    if r.index(3) > 0 && last.is_some_and(still) { BroadcastKind::Inner } else { BroadcastKind::Varies }
}

/// The positions of all points of some dims, row-major.
fn points(dims: &[usize], extents: &[usize], strides: &[isize]) -> Vec<isize> {
    let mut all = vec![0];
    for d in dims {
        all = all.iter().flat_map(|at| (0..extents[*d] as isize).map(move |i| at + i * strides[*d])).collect();
    }
    all
}

/// For each result, the elements of an operand that it is made of, in order: nested loops over the dims.
fn plainly(c: &Case, strides: &[isize]) -> Vec<Vec<isize>> {
    let reduced = c.reduced.as_deref().unwrap_or(&[]);
    let kept: Vec<usize> = (0..c.extents.len()).filter(|d| !reduced.contains(d)).collect();
    let inner = points(reduced, &c.extents, strides);
    points(&kept, &c.extents, strides).iter().map(|at| inner.iter().map(|i| at + i).collect()).collect()
}

/// The same as the driver reads a geometry.
fn walked(g: &Geometry, o: &OperandAccess) -> Vec<Vec<isize>> {
    let dims: Vec<usize> = (0..g.rows.len()).collect();
    let within: Vec<isize> = match &o.access {
        Access::Broadcast => vec![0; g.inner],
        Access::Contiguous => (0..g.inner as isize).collect(),
        Access::Periodic(n) => (0..g.inner).map(|i| (i % n) as isize).collect(),
        Access::Gather(extents, strides) | Access::Generated(extents, strides) => {
            points(&(0..extents.len()).collect::<Vec<_>>(), extents, strides)
        }
    };
    assert_eq!(within.len(), g.inner, "{g:?}");
    let rows: Vec<Vec<isize>> =
        points(&dims, &g.rows, &o.rows).iter().map(|row| within.iter().map(|i| row + i).collect()).collect();
    assert_eq!(rows.len(), g.row_count(), "{g:?}");
    match g.fold {
        None => rows.concat().into_iter().map(|at| vec![at]).collect(),
        Some(Fold::Rows(n)) => rows.concat().chunks(n).map(<[isize]>::to_vec).collect(),
        Some(Fold::Stacked { count, width }) => {
            let column = |group: &[isize], i: usize| group.iter().skip(i).step_by(width).copied().collect();
            rows.concat().chunks(count * width).flat_map(|group| (0..width).map(move |i| column(group, i))).collect()
        }
        Some(Fold::Columns(n)) => {
            let column = |group: &[Vec<isize>], i: usize| group.iter().map(|row| row[i]).collect();
            rows.chunks(n).flat_map(|group| (0..g.inner).map(move |i| column(group, i))).collect()
        }
    }
}

/// Checks so many cases, and counts the ways of reading and of reducing that they had.
fn check(seed: u64, cases: usize) -> BTreeMap<String, usize> {
    let (mut r, mut seen) = (Random(seed), BTreeMap::new());
    for _ in 0..cases {
        let c = case(&mut r);
        let g = c.geometry();
        for (strides, o) in c.strides.iter().zip(&g.operands) {
            let plain = plainly(&c, strides);
            assert_eq!(walked(&g, o), plain, "{c:?}\n{g:?}");
            let all = || plain.iter().flatten().map(|at| *at as i128);
            let reach = (all().min().unwrap_or(0), all().max().unwrap_or(0));
            assert_eq!(o.reach, reach, "{c:?}\n{g:?}");
            let kind = format!("{:?} {:?}", g.fold, o.access);
            let letters = kind.chars().filter(|k| k.is_alphabetic() || *k == ' ').collect::<String>();
            let words: Vec<&str> = letters.split_whitespace().take(2).collect();
            *seen.entry(words.join(" ")).or_default() += 1;
        }
    }
    seen
}

#[test]
fn reads_and_reaches_are_those_of_nested_loops() {
    const PARTS: usize = 4;
    // The whole number needs an optimized build.
    let cases = if cfg!(debug_assertions) { 30_000 } else { 1_000_000 };
    let mut seen = BTreeMap::<String, usize>::new();
    std::thread::scope(|scope| {
        let parts: Vec<_> = (1..=PARTS as u64).map(|seed| scope.spawn(move || check(seed, cases / PARTS))).collect();
        // A part that fails says why.
        let seen_by =
            |part: std::thread::ScopedJoinHandle<'_, _>| part.join().unwrap_or_else(|e| std::panic::resume_unwind(e));
        for (kind, n) in parts.into_iter().flat_map(seen_by) {
            *seen.entry(kind).or_default() += n;
        }
    });
    // Every way of reading with every way of reducing.
    assert!(seen.len() >= 11 && seen.values().all(|n| *n >= cases / 10_000), "{seen:?}");
}

#[test]
fn a_domain_without_elements_has_a_geometry() {
    let mut r = Random(2);
    for _ in 0..10_000 {
        let mut c = case(&mut r);
        if let Some(d) = c.extents.len().checked_sub(1) {
            c.extents[r.index(d + 1)] = 0;
            let g = c.geometry();
            assert_eq!(g.row_count() * g.inner, 0, "{c:?}");
        }
    }
}
