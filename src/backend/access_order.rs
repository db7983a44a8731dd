//! In which order the loops of a segment read and write the elements of their slots.
//!
//! Guarantees: taken from the code that runs: a load that is repeated because registers were short counts. Does not: decide what
//! may share memory; `runtime::launch` does.

use crate::plan::schedule::{Segment, SlotId};

/// For each body of a segment's loops, and for each vector of its iterations, when slots are read and written.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessOrder {
    bodies: Vec<Vec<Accesses>>,
}

/// The positions in a body of the last load from a slot and of the first store to it; slots that are not in the list have neither.
#[derive(Clone, Copy, Debug)]
struct Accesses {
    last_load: Option<u32>,
    first_store: Option<u32>,
}

const NONE: Accesses = Accesses { last_load: None, first_store: None };

impl AccessOrder {
    /// The order of a body that loads each operand once, at the first step that uses it, and stores each result after its step.
    pub(super) fn of_steps(args: impl Fn(u32) -> Vec<u32>, out: impl Fn(u32) -> u32, segment: &Segment) -> AccessOrder {
        let mut order = AccessOrder::default();
        order.begin();
        for (v, slot, _) in &segment.loads {
            let at = segment.steps.iter().position(|s| args(*s).contains(v)).unwrap_or(segment.steps.len());
            order.load(*slot, 2 * at as u32);
        }
        for (v, slot) in &segment.stores {
            let at = segment.steps.iter().position(|s| out(*s) == *v).unwrap_or(0);
            order.store(*slot, 2 * at as u32 + 1);
        }
        order
    }

    /// Begins with the next body, or with another vector of one.
    pub(super) fn begin(&mut self) {
        self.bodies.push(Vec::new());
    }

    pub(super) fn load(&mut self, slot: SlotId, at: u32) {
        self.slot(slot).last_load = Some(at);
    }

    pub(super) fn store(&mut self, slot: SlotId, at: u32) {
        self.slot(slot).first_store.get_or_insert(at);
    }

    fn slot(&mut self, slot: SlotId) -> &mut Accesses {
        if self.bodies.is_empty() {
            self.begin();
        }
        let last = self.bodies.len() - 1;
        let body = &mut self.bodies[last];
        body.resize(body.len().max(slot as usize + 1), NONE);
        &mut body[slot as usize]
    }

    /// Whether each element of one slot is read for the last time before that of the other slot is written.
    pub(crate) fn reads_first(&self, read: SlotId, written: SlotId) -> bool {
        let of = |body: &[Accesses], slot: SlotId| body.get(slot as usize).copied().unwrap_or(NONE);
        self.bodies.iter().all(|body| match (of(body, read).last_load, of(body, written).first_store) {
            (Some(load), Some(store)) => load < store,
            _ => true,
        })
    }
}
