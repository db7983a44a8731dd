//! Stable sorts of lines to compare with, and ops in both modes.

use std::sync::OnceLock;

use castwise::prelude::*;
use castwise::{Attrs, Op, apply};

/// An executor with so many threads, one or three.
pub fn executor(threads: usize) -> &'static Executor {
    static ALL: [OnceLock<Executor>; 2] = [const { OnceLock::new() }; 2];
    ALL[usize::from(threads > 1)].get_or_init(|| Executor::builder().threads(threads).build())
}

/// The result in both modes, with fixed and dynamic dims and several numbers of threads.
pub fn run(rules: Rules, op: Op, attrs: &Attrs, t: &Tensor) -> castwise::Result<Tensor> {
    let eager = apply(op, &[Eager::new(rules).tensor(t).into()], attrs.clone()).result();
    for (dynamic, threads) in [(false, 1), (true, 3)] {
        let p = Program::new(rules);
        let dims: Vec<Option<usize>> = t.shape().iter().map(|n| (!dynamic).then_some(*n)).collect();
        let y = apply(op, &[p.data("x", t.dtype(), dims).into()], attrs.clone());
        let compiled = executor(threads).run(&p, feeds! { "x" => t.clone() }, [&y]);
        match (&eager, compiled) {
            (Ok(one), Ok(other)) => assert_eq!(one.as_bytes(), other[0].as_bytes(), "{op} {attrs:?} of {t:?}"),
            (one, other) => assert_eq!(one.is_err(), other.is_err(), "{op} {attrs:?} of {t:?}: {other:?}"),
        }
    }
    eager
}

/// The positions of a line's elements in order; equal ones as they are, NaNs as the largest.
pub fn order(line: &[f64], reversed: bool) -> Vec<usize> {
    let mut at: Vec<usize> = (0..line.len()).collect();
    at.sort_by(|a, b| {
        let order = match (line[*a], line[*b]) {
            (a, b) if a.is_nan() || b.is_nan() => a.is_nan().cmp(&b.is_nan()),
            (a, b) => a.partial_cmp(&b).unwrap(),
        };
        if reversed { order.reverse() } else { order }
    });
    at
}
