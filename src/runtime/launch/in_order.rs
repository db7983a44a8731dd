//! Full reductions of a transposed operand: rows that are far apart in its memory are copied together, so that a cache line is read once,
//! and then reduced in the order of the operand's contiguous copy.
//!
//! Guarantees: the bits of the reduction of a contiguous copy; a few rows for each thread are copied at once. Does not: serve kernels
//! of several operands, or rows too long for that.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::{SmallVec, smallvec};

use super::kernel::{Targets, is_parallel, launch};
use super::operand::Operand;
use super::prepared::{Blocks, Call, PreparedLaunch, Ready, prepare_call};
use super::run::{MemoryBudget, Run};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::kernels::CpuLevel;
use crate::plan::fuse::PlannedKernel;
use crate::plan::geometry::{Access, BroadcastKind, Fold, Reduction};
use crate::plan::kernel::KernelBuilder;
use crate::plan::schedule::{Class, schedule};
use crate::plan::tuning::{IN_ORDER_BYTES, IN_ORDER_FROM, PIECE, ROW_BLOCK};
use crate::runtime::thread_pool::share;
use crate::tensor::layout::Layout;
use crate::tensor::{Storage, Tensor, TensorRef};

/// The partial results of a reduction, by the pieces that are reduced together; each part is taken when they are.
type Parts<'a> = Vec<Mutex<Option<&'a mut [u8]>>>;

/// How a transposed operand is reduced.
pub(super) struct InOrder {
    /// The extents and strides of the operand, of which the first dim has the smallest stride.
    extents: Vec<usize>,
    strides: Vec<isize>,
    dtype: DType,
    /// Pieces that are reduced together.
    pieces: usize,
}

impl InOrder {
    /// How a kernel's launch reads its operand in order, if it reduces all elements of one transposed operand.
    pub(super) fn of<R>(k: &PlannedKernel, prepared: &PreparedLaunch<R>) -> Option<InOrder> {
        let g = &prepared.geometry;
        let ([dtype], [o]) = (&k.kernel.inputs[..], &g.operands[..]) else { return None };
        let Access::Gather(extents, strides) = &o.access else { return None };
        let is_full = g.rows.is_empty() && g.fold == Some(Fold::Rows(g.inner)) && k.outputs.is_empty();
        let transposed = strides[1..].iter().all(|s| s.unsigned_abs() > strides[0].unsigned_abs()) && strides[0] != 0;
        if k.kernel.folds.iter().any(|(op, _)| op.is_search() || op.is_line()) {
            return None;
        }
        if !is_full || extents.len() < 2 || !transposed || g.inner < IN_ORDER_FROM {
            return None;
        }
        let row = g.inner / extents[0];
        let most = ROW_BLOCK.checked_mul(row).filter(|n| n.saturating_mul(dtype.size()) <= IN_ORDER_BYTES)?;
        let (extents, strides) = (extents.clone(), strides.clone());
        Some(InOrder { extents, strides, dtype: *dtype, pieces: most.div_ceil(PIECE) })
    }

    fn row(&self) -> usize {
        self.extents[1..].iter().product()
    }

    fn total(&self) -> usize {
        self.extents[0] * self.row()
    }

    fn threads(&self, k: &PlannedKernel, run: &Run<'_>) -> usize {
        if is_parallel(&k.kernel, self.total()) { run.threads } else { 1 }
    }

    /// Bytes of the copies of all threads.
    pub(super) fn scratch(&self, k: &PlannedKernel, run: &Run<'_>) -> usize {
        self.threads(k, run).saturating_mul((self.pieces * PIECE + 2 * self.row()).saturating_mul(self.dtype.size()))
    }

    /// Runs the launch; the partial results of each reduction, or nothing if data was refused.
    pub(super) fn run<R: Ready>(
        &self,
        k: &PlannedKernel,
        run: &Run<'_>,
        input: &Operand<'_>,
        ready: &(impl Fn(&[Class]) -> Result<R> + Sync),
    ) -> Result<Option<SmallVec<[Storage; 2]>>> {
        let (all, size) = (self.total().div_ceil(PIECE), |v: u32| k.kernel.value(v).dtype.size());
        let mut partials: SmallVec<[Storage; 2]> =
            k.kernel.folds.iter().map(|(_, v)| run.storage(all * size(*v))).collect::<Result<_>>()?;
        let parts = partials.iter_mut().zip(&k.kernel.folds).map(|(s, (_, v))| {
            s.bytes_mut().chunks_mut(self.pieces * size(*v)).map(|part| Mutex::new(Some(part))).collect::<Vec<_>>()
        });
        let parts: SmallVec<[Parts<'_>; 2]> = parts.collect();
        let (feeds, dyn_dims, pool, stop) = (run.feeds, run.dyn_dims, run.pool, run.stop);
        let failed = Mutex::new(None);
        let one = |at: usize| {
            let alone =
                Run { feeds, dyn_dims, threads: 1, pool, stop, memory: MemoryBudget::limited(usize::MAX), part: None };
            if let Err(e) = self.part(k, &alone, input, ready, (at, &parts)) {
                lock(&failed).get_or_insert(e);
            }
        };
        share(all.div_ceil(self.pieces), self.threads(k, run), &one);
        drop(parts);
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(Some(partials)),
            Some(None) => Ok(None),
            Some(Some(e)) => Err(e),
        }
    }

    /// Reduces some pieces. The error is `None` if data was refused.
    fn part<R: Ready>(
        &self,
        k: &PlannedKernel,
        run: &Run<'_>,
        input: &Operand<'_>,
        ready: &impl Fn(&[Class]) -> Result<R>,
        (at, parts): (usize, &[Parts<'_>]),
    ) -> Result<(), Option<Error>> {
        if let Some(stop) = run.stop {
            stop.check()?;
        }
        let (row, first) = (self.row(), at * self.pieces * PIECE);
        let end = self.total().min(first + self.pieces * PIECE);
        let (from, to) = (first / row, end.div_ceil(row));
        let copy = self.copied(run, input, from, to)?;
        let layout = Arc::new(Layout::new(&[end - first], &[1]));
        let whole = Operand::Tensor(TensorRef::Tensor(&copy));
        let inputs = [Operand::Part(&whole, (first - from * row) as isize, &layout)];
        let reduced = Some(Reduction { dims: &[0], adds: false });
        let call = Call { inputs: &inputs, spread: &[BroadcastKind::Varies], extents: &[end - first], reduced };
        let prepared = prepare_call(&call, vec![], ready)?;
        let made = launch(&k.kernel, &k.consts, run, &prepared, &inputs, Targets::default())?;
        let Ok((_, made)) = made else { return Err(None) };
        for (all, made) in parts.iter().zip(made) {
            let part = lock(&all[at]).take().filter(|p| p.len() == made.len());
            let part = part.ok_or_else(|| Error::Internal("partial results of another number".into()))?;
            part.copy_from_slice(made.bytes());
        }
        Ok(())
    }

    /// A contiguous copy of rows of the operand.
    fn copied(&self, run: &Run<'_>, input: &Operand<'_>, from: usize, to: usize) -> Result<Tensor> {
        let mut b = KernelBuilder::default();
        let x = b.input(self.dtype);
        let y = b.bits(x, self.dtype);
        b.kernel.outputs.push(y);
        let shape = [&[to - from], &self.extents[1..]].concat();
        let layout = Arc::new(Layout::new(&shape, &self.strides));
        let inputs = [Operand::Part(input, from as isize * self.strides[0], &layout)];
        let ready = |classes: &[Class]| schedule(&b.kernel, classes, CpuLevel::get(), &|_| false).map(Blocks);
        let call = Call { inputs: &inputs, spread: &[BroadcastKind::Varies], extents: &shape, reduced: None };
        let prepared = prepare_call(&call, vec![], ready)?;
        let targets = Targets { bytes: smallvec![None], ..Targets::default() };
        let made = launch(&b.kernel, &[], run, &prepared, &inputs, targets)?;
        let one = made.ok().and_then(|(mut all, _)| all.pop().flatten());
        one.ok_or_else(|| Error::Internal("no copy of a transposed operand".into()))
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
