//! The buffers of views.
//!
//! Guarantees: a view has one buffer, which is made before the first kernel that reads it, behind those of the views that it is made
//! of; what it is a view of stays counted as long as a view of it is read. Does not: make layouts; runs do.

use super::{BufferId, Fusion, NodeId, Origin};
use crate::base::error::{Error, Result};
use crate::graph::typed::TypedKind;

use super::alias::Aliases;

impl Fusion {
    /// The buffer of a value that is read at `at`, in which it is not computed. Views get theirs here, which `made` lists.
    pub(super) fn operand(
        &mut self,
        node: NodeId,
        aliases: &Aliases,
        at: usize,
        made: &mut Vec<BufferId>,
    ) -> Result<BufferId> {
        let source = aliases.source(node);
        let missing = || Error::Internal(format!("typed node {source} is read too early"));
        let root = self.buffer_of.get(&source).copied().ok_or_else(missing)?;
        self.reads(root, at);
        // The views on the way that have no buffer yet, the last one first.
        let mut chain = Vec::new();
        let mut next = node;
        let mut base = loop {
            if let Some(known) = self.buffer_of.get(&next) {
                break *known;
            }
            chain.push(next);
            next = match self.plan.typed.nodes[next as usize].kind {
                TypedKind::View { from, .. } => aliases.value(from),
                _ => return Err(missing()),
            };
        };
        self.reads(base, at);
        for view in chain.into_iter().rev() {
            base = self.buffer(view, Origin::View(base, view));
            self.reads(base, at);
            made.push(base);
        }
        Ok(base)
    }

    fn reads(&mut self, buffer: BufferId, at: usize) {
        let buffer = &mut self.plan.buffers[buffer as usize];
        (buffer.last_use, buffer.read) = (at, true);
    }

    /// Says for each kernel which buffers it is the last to read.
    pub(super) fn release(&mut self) {
        for (i, b) in self.plan.buffers.iter().enumerate() {
            if b.read
                && let Some(last) = self.plan.work.get_mut(b.last_use)
            {
                last.releases.push(i as BufferId);
            }
        }
    }
}
