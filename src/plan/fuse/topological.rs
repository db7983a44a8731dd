//! The order in which kernels run.
//!
//! Guarantees: the same order every time, in time linear in the edges but for a logarithm. Does not: know what a kernel is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::HashSet;

use crate::base::error::{Error, Result};

/// Groups in an order that respects the edges.
pub(super) fn topological(count: usize, edges: &HashSet<(u32, u32)>) -> Result<Vec<u32>> {
    let (mut waits, mut next) = (vec![0usize; count], vec![Vec::new(); count]);
    for (from, to) in edges {
        waits[*to as usize] += 1;
        next[*from as usize].push(*to);
    }
    // A fixed order among the ready ones, so that a plan prints the same every time.
    let mut ready: BinaryHeap<Reverse<u32>> =
        (0..count as u32).filter(|g| waits[*g as usize] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse(g)) = ready.pop() {
        order.push(g);
        for to in &next[g as usize] {
            waits[*to as usize] -= 1;
            if waits[*to as usize] == 0 {
                ready.push(Reverse(*to));
            }
        }
    }
    if order.len() == count { Ok(order) } else { Err(Error::Internal("domains that need each other".into())) }
}
