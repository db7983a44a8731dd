//! Runs one planned kernel on tensors: geometry, schedule, code, driver.
//!
//! Guarantees: the one way to run a kernel, for eager mode and for compiled programs; results are fresh contiguous
//! tensors. Does not: keep anything between runs; the caller holds the cache.

use std::sync::Arc;

use crate::block::driver::{Buffer, Launch, Output, SegmentFn, run};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::geometry::{Geometry, Spread};
use crate::kernel::Kernel;
use crate::scalar::Bits;
use crate::schedule::{Class, Schedule};
use crate::shape::numel;
use crate::tensor::{Pool, Storage, Tensor};

/// A kernel made ready for one assignment of classes: its schedule, and its compiled segments.
pub(crate) trait Ready {
    fn schedule(&self) -> &Schedule;
    fn segments(&self) -> &[SegmentFn];
}

/// The outcome of data that an op refuses: the index of its step.
pub(crate) struct Refused(pub(crate) u32);

/// A kernel, its constants, its operands and its domain.
pub(crate) struct Call<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) consts: &'a [Bits],
    pub(crate) inputs: &'a [&'a Tensor],
    /// How each operand is spread over the domain by its type.
    pub(crate) spread: &'a [Spread],
    pub(crate) extents: &'a [usize],
    pub(crate) threads: usize,
    /// Where the results' memory comes from.
    pub(crate) pool: Option<&'a Arc<Pool>>,
}

/// Runs a kernel; `ready` gives its schedule and code for the operands' classes.
pub(crate) fn launch<R: Ready>(
    call: &Call<'_>,
    ready: impl FnOnce(&[Class]) -> Result<R>,
) -> Result<Result<Vec<Tensor>, Refused>> {
    let total = numel(call.extents)?;
    let outputs: Vec<DType> = call.kernel.outputs.iter().map(|v| call.kernel.value(*v).dtype).collect();
    let fresh = |bytes: usize| call.pool.map_or_else(|| Storage::zeroed(bytes), |pool| Storage::pooled(bytes, pool));
    let mut storages = outputs.iter().map(|d| fresh(total * d.size())).collect::<Result<Vec<_>>>()?;
    if total > 0 {
        let strides = call.inputs.iter().map(|t| aligned_strides(t, call.extents)).collect::<Result<Vec<_>>>()?;
        let geometry = Geometry::new(call.extents, &strides, call.spread);
        let ready = ready(&geometry.classes())?;
        let buffers: Vec<Buffer<'_>> = call
            .inputs
            .iter()
            .map(|t| {
                let (bytes, offset) = t.raw();
                Buffer { bytes, dtype: t.dtype(), offset }
            })
            .collect();
        let launch = Launch {
            schedule: ready.schedule(),
            segments: ready.segments(),
            geometry: &geometry,
            consts: call.consts,
            inputs: &buffers,
        };
        let mut results: Vec<Output<'_>> =
            storages.iter_mut().zip(&outputs).map(|(s, d)| Output { bytes: s.bytes_mut(), dtype: *d }).collect();
        let threads = if total * call.kernel.steps.len().max(1) < PARALLEL_WORK { 1 } else { call.threads };
        if let Err(fault) = run(&launch, &mut results, threads)? {
            return Ok(Err(Refused(fault.step)));
        }
    }
    let made = storages.into_iter().zip(outputs).map(|(s, d)| Tensor::from_storage(s, d, call.extents));
    made.collect::<Result<Vec<_>>>().map(Ok)
}

/// Element-steps below which waking another thread costs more than it brings (about 60 µs of work).
const PARALLEL_WORK: usize = 1 << 18;

/// A tensor's strides along the dims of a domain it broadcasts to.
fn aligned_strides(t: &Tensor, extents: &[usize]) -> Result<Vec<isize>> {
    let front = extents.len().checked_sub(t.rank());
    let front = front.ok_or_else(|| Error::Internal(format!("{:?} in a domain of {extents:?}", t.shape())))?;
    let mut strides = vec![0; extents.len()];
    for (i, (n, s)) in t.shape().iter().zip(t.strides()).enumerate() {
        match (*n, extents[front + i]) {
            (1, _) => {}
            (n, e) if n == e => strides[front + i] = *s,
            _ => return Err(Error::Internal(format!("{:?} does not broadcast to {extents:?}", t.shape()))),
        }
    }
    Ok(strides)
}
