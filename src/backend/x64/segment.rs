//! A segment on its way through the back end: lowered, allocated, encoded.
//!
//! Guarantees: the same segment gives the same code, for running and for dumps. Does not: make code executable, or
//! print.

use super::alloc::{self, Allocated, Machine};
use super::emit::{self, AllocatedSegment};
use super::ir::{BOTH, Body};
use super::isa::Isa;
use super::paired_stores::PairedStores;
use super::prefetch::Ahead;
use super::{instructions, kept_sums, lower, prefetch};
use crate::backend::access_order::AccessOrder;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::host::is_amd;
use crate::kernels::reduce::LANES;
use crate::plan::kernel::{Kernel, ValueId};
use crate::plan::schedule::{Schedule, Segment, Slot, SlotId};

/// Elements of an iteration: as many as a vector holds of the segment's widest dtype.
pub(super) fn lanes(isa: Isa, kernel: &Kernel, segment: &Segment) -> usize {
    let sizes = segment.steps.iter().map(|s| {
        let step = &kernel.steps[*s as usize];
        let args = step.args.iter().flatten().map(|a| kernel.value(*a).dtype.size()).max().unwrap_or(1);
        args.max(kernel.value(step.out).dtype.size())
    });
    isa.bytes() / sizes.max().unwrap_or(1)
}

/// What the slots of a schedule are, as far as loops treat them differently.
pub(super) struct SlotKinds {
    /// Whether a single segment is all that runs.
    is_only_stage: bool,
    /// Operands and results, which may be streamed.
    operands: Vec<SlotId>,
    results: Vec<SlotId>,
    /// Values that segments can accumulate, and their dtypes.
    sums: Vec<(SlotId, DType)>,
    /// The number of all slots.
    count: usize,
    /// If the segment walks rows: the slots that move from row to row.
    rows: Option<Vec<SlotId>>,
}

impl SlotKinds {
    pub(super) fn of(kernel: &Kernel, schedule: &Schedule) -> SlotKinds {
        let slots = |of_kind: fn(&Slot) -> bool| {
            let all = schedule.slots.iter().enumerate().filter(move |(_, s)| of_kind(s));
            all.map(|(i, _)| i as SlotId).collect()
        };
        let sums = kernel.folds.iter().zip(&schedule.folds).filter(|(_, f)| f.is_sum);
        SlotKinds {
            is_only_stage: schedule.body.len() == 1,
            operands: slots(|s| matches!(s, Slot::Input(_))),
            results: slots(|s| matches!(s, Slot::Output(_))),
            sums: sums.map(|((_, v), f)| (f.slot, kernel.value(*v).dtype)).collect(),
            count: schedule.slots.len(),
            rows: schedule.walks_rows.then(|| slots(|s| !matches!(s, Slot::Const(_)))),
        }
    }
}

/// Which bodies have loops over pairs of vectors, by their number of nodes.
#[derive(Debug)]
pub(super) struct Pairing {
    /// At least so many: out-of-order execution overlaps iterations of shorter bodies anyway.
    pub(super) least: usize,
    /// The same for bodies with [`PairedStores`].
    pub(super) least_with_stores: usize,
    /// Longer ones are rare, and would take long to compile.
    pub(super) most: usize,
}

pub(super) const PAIRING: Pairing = Pairing { least: 20, least_with_stores: 0, most: 400 };

/// Nodes from which a body has no loop that keeps sums in registers, which repeats its code for each vector of lanes. Not measured.
const SHORT: usize = 20;

/// A loop over pairs of vectors.
struct Pairs {
    stores: PairedStores,
    /// Whether it serves only results that are streamed. For results in the caches a short loop without joined stores
    /// is faster (f16: 4 to 12 %).
    only_streamed: bool,
}

impl Pairing {
    fn of(&self, body: &Body, lanes: usize) -> Option<Pairs> {
        let n = body.nodes.len();
        let stores = PairedStores::of(body, lanes);
        let short = n < self.least;
        let pairs = n <= self.most && (!short || stores != PairedStores::Separate && n >= self.least_with_stores);
        pairs.then_some(Pairs { stores, only_streamed: short && stores == PairedStores::Halves })
    }
}

/// A segment with its bodies.
pub(super) struct SegmentCode<'a> {
    isa: Isa,
    slots: &'a SlotKinds,
    /// Elements of a vector of the widest dtype.
    pub(super) lanes: usize,
    pub(super) body: Body,
    pub(super) allocated: Allocated,
    /// The same over two vectors, if there is a loop over pairs.
    pub(super) pair: Option<(Body, Allocated)>,
    /// The body with registers for a loop that keeps sums in registers, if there is one.
    kept: Option<Allocated>,
    only_streamed: bool,
    has_16_byte_elements: bool,
    /// The slots of operands that are prefetched, and how.
    operands: Vec<SlotId>,
    ahead: Ahead,
}

impl<'a> SegmentCode<'a> {
    /// Lowers a segment and allocates its registers.
    pub(super) fn new(
        isa: Isa,
        kernel: &Kernel,
        segment: &Segment,
        slots: &'a SlotKinds,
        pairing: &Pairing,
    ) -> Result<SegmentCode<'a>> {
        let lanes = lanes(isa, kernel, segment);
        let body = lower::lower(isa, kernel, segment, lanes, &slots.sums);
        if let Some(instruction) = body.missing {
            let name = instructions::mnemonic(instruction);
            return Err(Error::Internal(format!("code generation: AVX2 has no expansion of {name}")));
        }
        if let Some(name) = body.refused {
            return Err(Error::Internal(format!("code generation: nothing lowers `{name}`")));
        }
        let size = |v: ValueId| kernel.value(v).dtype.size();
        let memory = segment.loads.iter().map(|(v, ..)| *v).chain(segment.stores.iter().map(|(v, _)| *v));
        let has_16_byte_elements = memory.into_iter().any(|v| kernel.value(v).dtype == DType::C128);
        // Operands with elements of 16 bytes are not prefetched: there is no scale for them.
        let moves = |(v, slot, one): &&(ValueId, SlotId, bool)| !one && slots.operands.contains(slot) && size(*v) <= 8;
        let operands: Vec<SlotId> = segment.loads.iter().filter(moves).map(|(_, slot, _)| *slot).collect();
        let widest = segment.loads.iter().filter(moves).map(|(v, ..)| size(*v)).max().unwrap_or(1);
        // The mask registers below are those of the remainder; number 0 cannot mask.
        let first_mask = if has_16_byte_elements { 3 } else { 2 };
        let allocated = alloc::allocate(&body, first_mask);
        let pairs = pairing.of(&body, lanes);
        let pair = pairs.as_ref().map(|pairs| {
            let mut pair = body.interleaved(2);
            pairs.stores.apply(&mut pair, lanes);
            let allocated = alloc::allocate(&pair, first_mask);
            (pair, allocated)
        });
        let step = if pair.is_some() { 2 * lanes } else { lanes };
        let ahead = prefetch::ahead(isa, operands.len(), widest, step, is_amd());
        let only_streamed = pairs.is_some_and(|p| p.only_streamed);
        let lowest = slots.sums.len() * (LANES / lanes);
        let short = pair.is_none() && body.nodes.len() < SHORT;
        let kept = short.then(|| kept_sums::allocate(&body, &allocated, first_mask, lowest)).flatten();
        Ok(SegmentCode {
            isa,
            slots,
            lanes,
            body,
            allocated,
            pair,
            kept,
            only_streamed,
            has_16_byte_elements,
            operands,
            ahead,
        })
    }

    /// The order of the accesses of its loops.
    pub(super) fn access_order(&self) -> AccessOrder {
        let mut order = AccessOrder::default();
        let bodies = std::iter::once(&self.allocated).chain(&self.kept).map(|allocated| (allocated, 0));
        for (allocated, of) in bodies.chain(self.pair.iter().flat_map(|(_, pair)| [(pair, 0), (pair, 1)])) {
            order.begin();
            for (at, machine) in (0..).zip(&allocated.body) {
                match machine {
                    Machine::Load { slot, vector, .. } if [of, BOTH].contains(vector) => order.load(*slot, at),
                    Machine::Store { store, .. } if [of, BOTH].contains(&store.vector) => order.store(store.slot, at),
                    _ => {}
                }
            }
        }
        order
    }

    /// The segment's function; `marked` records what its instructions are for.
    pub(super) fn function(&self, marked: bool) -> emit::Function {
        let segment = AllocatedSegment {
            isa: self.isa,
            lanes: self.lanes,
            allocated: &self.allocated,
            paired: self.pair.as_ref().map(|(_, allocated)| allocated),
            kept: self.kept.as_ref(),
            only_streamed: self.only_streamed,
            // The constants of the pair are those of the body and possibly more.
            constants: self.pair.as_ref().map_or(&self.body.constants, |(pair, _)| &pair.constants),
            has_16_byte_elements: self.has_16_byte_elements,
            is_only_stage: self.slots.is_only_stage,
            operands: &self.operands,
            ahead: self.ahead,
            results: &self.slots.results,
            sums: &self.slots.sums,
            slots: self.slots.count,
            rows: self.slots.rows.as_deref(),
        };
        emit::function(&segment, marked)
    }
}
