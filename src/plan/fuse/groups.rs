//! The groups of nodes that become kernels, what they read of each other, and which of their values are stored.
//!
//! Guarantees: a value is stored if it is fetched, viewed, or read by a kernel that does not compute it; a group has no node that
//! nothing needs. Does not: decide what belongs together, or what is computed again.

use super::alias::Aliases;
use crate::graph::typed::{NodeId, TypedKind, TypedNode, TypedProgram};

/// The nodes of each kernel, in the order in which the kernels run.
pub(super) struct Groups {
    /// The nodes of each group, ascending.
    pub(super) list: Vec<Vec<NodeId>>,
    /// For each node, the group that it belongs to; `u32::MAX` if it is not computed. Other groups may compute it again.
    pub(super) of: Vec<u32>,
}

/// A value that a group needs and does not compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Read {
    pub(super) value: NodeId,
    pub(super) by: u32,
    /// Whether it is read where it lies, not element by element in the group's loop.
    pub(super) whole: bool,
}

/// Whether a node needs its operand in memory: elements in another order, or all of a line.
fn reads_whole(typed: &TypedProgram, n: &TypedNode, operand: NodeId) -> bool {
    let viewed = matches!(typed.nodes[operand as usize].kind, TypedKind::View { .. });
    viewed
        || match n.kind {
            TypedKind::Blocks { .. } | TypedKind::Line { .. } | TypedKind::Indexed { .. } => true,
            TypedKind::Reduce { op, .. } => op.is_search(),
            _ => false,
        }
}

/// The operands that a node reads, and whether it needs them in memory.
fn operands<'a>(
    typed: &'a TypedProgram,
    aliases: &'a Aliases,
    node: NodeId,
) -> impl Iterator<Item = (NodeId, bool)> + 'a {
    let n = &typed.nodes[node as usize];
    n.inputs().map(|a| aliases.operand(&n.kind, a)).map(move |a| (a, reads_whole(typed, n, a)))
}

impl Groups {
    /// What the groups read, by value and group.
    pub(super) fn reads(&self, typed: &TypedProgram, aliases: &Aliases) -> Vec<Read> {
        let mut all = Vec::new();
        for (by, nodes) in (0..).zip(&self.list) {
            for (value, whole) in nodes.iter().flat_map(|n| operands(typed, aliases, *n)) {
                if whole || self.of[value as usize] != by {
                    all.push(Read { value, by, whole });
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Has groups compute nodes of others again.
    pub(super) fn add(&mut self, again: Vec<(u32, NodeId)>) {
        for (g, n) in again {
            self.list[g as usize].push(n);
        }
        for nodes in &mut self.list {
            nodes.sort_unstable();
            nodes.dedup();
        }
    }

    /// Leaves out what nothing needs. Says which values are stored, and where each group is now.
    pub(super) fn settle(
        &mut self,
        typed: &TypedProgram,
        fetches: &[NodeId],
        aliases: &Aliases,
    ) -> (Vec<bool>, Vec<u32>) {
        let mut stored = vec![false; typed.len()];
        fetches.iter().for_each(|n| stored[aliases.source(*n) as usize] = true);
        // The group that computes a node, and the one that needs it, of those seen last.
        let (mut computes, mut needs) = (vec![u32::MAX; typed.len()], vec![u32::MAX; typed.len()]);
        for g in (0..self.list.len() as u32).rev() {
            let nodes = &mut self.list[g as usize];
            nodes.iter().for_each(|n| computes[*n as usize] = g);
            nodes.reverse();
            nodes.retain(|n| {
                let i = *n as usize;
                let needed = needs[i] == g || self.of[i] == g && stored[i];
                for (a, whole) in operands(typed, aliases, *n).filter(|_| needed) {
                    let a = aliases.source(a) as usize;
                    if whole || computes[a] != g { stored[a] = true } else { needs[a] = g }
                }
                needed
            });
            nodes.reverse();
        }
        let mut place = Vec::with_capacity(self.list.len());
        let mut next = 0;
        for nodes in &self.list {
            place.push(next);
            next += u32::from(!nodes.is_empty());
        }
        self.list.retain(|nodes| !nodes.is_empty());
        self.of.iter_mut().filter(|g| **g != u32::MAX).for_each(|g| *g = place[*g as usize]);
        (stored, place)
    }
}
