//! Results in the memory of feeds: whether a launch may write where it reads.
//!
//! Guarantees: it may only if it reads each of the feed's elements for the result's element of the same index alone, and before it
//! writes that one, and if nothing else of the run reads the feed. Does not: compare addresses; `tensor::target` does.

use smallvec::SmallVec;

use super::kernel::Over;
use super::prepared::{PreparedLaunch, Ready};
use super::run::FEW;
use crate::plan::fuse::{BufferId, Origin, Plan};
use crate::plan::schedule::{Slot, SlotId};

/// Operands in the memory of results.
pub(super) type Overs = SmallVec<[Over; FEW]>;

/// The operands that are feeds in the memory of a result of a plan's only kernel; `None` if the launch must not write there.
pub(super) fn operands_over<R: Ready>(
    plan: &Plan,
    prepared: &PreparedLaunch<R>,
    output: usize,
    feeds: &[usize],
) -> Option<Overs> {
    let [k] = &*plan.work else { return None };
    // What is fetched beside the kernel's results, and what views show, is read when the kernel has run.
    let alone = k.folds.is_empty() && plan.views.is_empty() && plan.fetches.iter().all(|b| k.outputs.contains(b));
    let ready = &prepared.ready.as_ref()?.0;
    let (schedule, [order]) = (ready.schedule(), ready.orders()) else { return None };
    if !alone || !schedule.plain {
        return None;
    }
    let slot = |wanted: Slot| schedule.slots.iter().position(|s| *s == wanted).map(|s| s as SlotId);
    let (written, dtype) = (slot(Slot::Output(output as u32))?, k.kernel.value(k.kernel.outputs[output]).dtype);
    let mut over = Overs::new();
    for (input, b) in k.inputs.iter().enumerate() {
        if !is_of(plan, *b, feeds) {
            continue;
        }
        let itself = matches!(plan.buffers[*b as usize].origin, Origin::Feed(_));
        let same = itself && k.kernel.inputs[input] == dtype && prepared.geometry.in_order(input);
        let first = slot(Slot::Input(input as u32)).is_none_or(|read| order.reads_first(read, written));
        if !(same && first) {
            return None;
        }
        over.push(Over { input, output });
    }
    Some(over)
}

/// Whether a buffer has elements of one of these feeds.
fn is_of(plan: &Plan, buffer: BufferId, feeds: &[usize]) -> bool {
    let mut at = buffer;
    loop {
        match plan.buffers[at as usize].origin {
            Origin::Feed(i) => return feeds.contains(&(i as usize)),
            Origin::View(base, _) | Origin::Blocks(base, _) => at = base,
            Origin::Kernel | Origin::Constant(_) | Origin::Extent(..) | Origin::Generated(_) => return false,
        }
    }
}
