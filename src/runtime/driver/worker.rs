//! One thread's part of a launch: where every slot of the schedule points, tile by tile.
//!
//! Guarantees: as [`super::run`]'s, under the bounds it has proved. Does not: split work among threads.

use std::cell::{Cell, RefCell};

use super::gather::{Strided, fill, gather, neighbours, tile_room};
use super::job::{FoldKernels, FoldOut, Job, begins_line, is_across};
use super::scratch::{Layout, PADDED, WIDE_LANES, WIDE_TILE, copy_room};
use super::{Access, Fold};
use crate::backend::abi::{ADD, AHEAD, STREAM, WIDTH, row_words, table_size, word};
use crate::kernels::reduce::LANES;
use crate::kernels::{Refusal, operands};
use crate::plan::schedule::{BlockStage, Slot, SlotId, Stage};
use crate::plan::tuning::{ROW_BLOCK, TILE, prefetches_tiles};

mod row_reduction;
mod rows;

const CACHE_LINE: usize = 64;

/// Asks for a cache line, wherever it is: no address faults.
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Memory of a thread, kept from launch to launch.
#[derive(Default)]
struct Scratch {
    words: Vec<u128>,
    table: Vec<*mut u8>,
    bases: Vec<*const u8>,
    index: Vec<usize>,
    moving: Vec<(SlotId, u32)>,
    direct: Vec<(SlotId, u32, usize)>,
    splats: Vec<(SlotId, u32)>,
    results: Vec<(SlotId, u32)>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch {
        words: Vec::new(),
        table: Vec::new(),
        bases: Vec::new(),
        index: Vec::new(),
        moving: Vec::new(),
        direct: Vec::new(),
        splats: Vec::new(),
        results: Vec::new(),
    }) };
}

/// A thread's view of a launch.
pub(super) struct Worker<'a> {
    job: &'a Job<'a>,
    /// The pointers of the slots.
    table: &'a mut [*mut u8],
    scratch: *mut u8,
    layout: Layout,
    /// Base address of each operand in the current row.
    bases: &'a mut [*const u8],
    /// The current row, by dims.
    index: &'a mut [usize],
    /// Slots of operands that move along the run and are copied, or turned, or repeated; and which operand.
    moving: &'a [(SlotId, u32)],
    /// Those that are read where they are, with the bytes of an element.
    direct: &'a [(SlotId, u32, usize)],
    /// Those that are the same along the run.
    splats: &'a [(SlotId, u32)],
    /// Slots of results, and which result.
    results: &'a [(SlotId, u32)],
    tiled: bool,
    /// Whether segments add up what they can.
    adds: bool,
    /// Whether operands are read on behind the rows.
    reads_on: bool,
    /// Whether all that is reduced are operands, where they are: a tile is then a piece.
    reads: bool,
    /// Whether these are rows of one piece each.
    reads_rows: bool,
    /// Elements that a long reduction finds side by side.
    side_by_side: Option<usize>,
    /// Whether one call can compute many rows.
    by_rows: bool,
    /// Whether an operand is written out for every row.
    periodic: bool,
    /// Whether one call can compute many tiles, which read what is written out from its first element on.
    by_tiles: bool,
    /// Whether the last tile was computed in two pieces, and its values to reduce are staged.
    split: bool,
    /// In a block of rows: which of them this is, and where the tile begins whose operands have been turned.
    turned: Option<(usize, usize)>,
    /// What the function said that has panicked.
    pub(super) said: Cell<Refusal>,
}

/// Gives a worker with the thread's scratch to `work`.
pub(super) fn with_worker<T>(job: &Job<'_>, work: impl FnOnce(&mut Worker<'_>) -> T) -> T {
    let (launch, layout) = (job.launch, Layout::new(job));
    let words = layout.total.div_ceil(16) + 4;
    // A custom op's function may start another launch on this thread: it finds an empty scratch and fills its own.
    // A thread that ends may have dropped its own already.
    let mut scratch = SCRATCH.try_with(RefCell::take).unwrap_or_default();
    if scratch.words.len() < words {
        scratch.words.resize(words, 0);
    }
    let start = scratch.words.as_mut_ptr().cast::<u8>();
    let skip = start.align_offset(64);
    scratch.table.clear();
    scratch.table.resize(table_size(launch.schedule.slots.len()), std::ptr::null_mut());
    scratch.table[row_words(launch.schedule.slots.len())[1]] = word(1);
    scratch.bases.clear();
    scratch.bases.resize(launch.inputs.len(), std::ptr::null());
    scratch.index.clear();
    scratch.index.resize(launch.geometry.rows.len(), 0);
    scratch.moving.clear();
    scratch.direct.clear();
    scratch.splats.clear();
    scratch.results.clear();
    for (s, slot) in launch.schedule.slots.iter().enumerate() {
        match slot {
            Slot::Input(i) => match launch.geometry.operands[*i as usize].access {
                Access::Broadcast => scratch.splats.push((s as SlotId, *i)),
                Access::Contiguous => scratch.direct.push((s as SlotId, *i, launch.inputs[*i as usize].dtype.size())),
                _ => scratch.moving.push((s as SlotId, *i)),
            },
            Slot::Output(o) => scratch.results.push((s as SlotId, *o)),
            _ => {}
        }
    }
    let mut worker = Worker {
        job,
        table: &mut scratch.table,
        // SAFETY: `words` leaves room for the alignment of 64.
        scratch: unsafe { start.add(skip) },
        layout,
        bases: &mut scratch.bases,
        index: &mut scratch.index,
        moving: &scratch.moving,
        direct: &scratch.direct,
        splats: &scratch.splats,
        results: &scratch.results,
        tiled: job.is_tiled(),
        adds: launch.adds(),
        reads_on: launch.reads_on(),
        reads: launch.reduces_operands(),
        reads_rows: launch.is_long() && launch.reduces_operands() && launch.pieces() == 1,
        side_by_side: launch.side_by_side(),
        by_tiles: launch.any_length && launch.pattern().is_some(),
        by_rows: launch.walks_rows(job.is_tiled()),
        periodic: launch.geometry.operands.iter().any(|o| matches!(o.access, Access::Periodic(_))),
        split: false,
        turned: None,
        said: Cell::default(),
    };
    // SAFETY: the scratch is as large as its layout.
    unsafe { worker.fixed_slots() };
    let made = work(&mut worker);
    let _ = SCRATCH.try_with(|kept| kept.replace(scratch));
    made
}

impl Worker<'_> {
    /// Runs pieces, counted along the rows.
    ///
    /// # Safety
    /// The bounds of all operands must have been proved for the whole domain, and the results' sizes.
    pub(super) unsafe fn tiles(&mut self, from: usize, to: usize) -> Result<(), u32> {
        let launch = self.job.launch;
        let (run, tile, piece, pieces) = (launch.geometry.run, launch.tile(), launch.piece(), launch.pieces());
        let (mut unit, mut follows) = (from, false);
        while unit < to {
            let (row, first) = (unit / pieces, unit % pieces);
            let last = pieces.min(first + (to - unit));
            // SAFETY: passed on; the row and the columns are of the domain.
            unsafe {
                if std::mem::replace(&mut follows, true) {
                    self.next_row()?
                } else {
                    self.seek(row)?
                }
                if self.by_rows && first == 0 && to - unit >= 2 * pieces {
                    unit += pieces * self.rows(row, (to - unit) / pieces)?;
                    follows = false;
                    continue;
                }
                if self.reads_rows {
                    unit += self.rows_read(row, to - unit);
                    follows = false;
                    continue;
                }
                let (mut at, end) = (first * piece, run.min(last * piece));
                if self.by_tiles {
                    at += self.whole_tiles(row, at, end);
                }
                while at < end {
                    let n = match self.side_by_side {
                        // A segment adds up as far as to where the lanes begin anew.
                        Some(_) if self.adds && !at.is_multiple_of(LANES) => (end - at).min(LANES - at % LANES),
                        Some(all) => (end - at).min(all - at % all).min(piece - at % piece),
                        None if self.tiled => (end - at).min(tile),
                        None => end - at,
                    };
                    self.begin_lanes(0, at);
                    self.span(row, at, n)?;
                    self.fold_rows(row, 0, at, n);
                    at += n;
                }
            }
            unit += last - first;
        }
        Ok(())
    }

    /// Pointers that stay the same for the whole launch.
    unsafe fn fixed_slots(&mut self) {
        let launch = self.job.launch;
        for (to, slot) in self.table.iter_mut().zip(&launch.schedule.slots) {
            // SAFETY: the offsets are those of the layout.
            unsafe {
                match *slot {
                    Slot::Const(c) => *to = (&raw const launch.consts[c as usize]).cast_mut().cast(),
                    Slot::Tile(t) => *to = self.scratch.add(t as usize * WIDE_TILE),
                    Slot::Single(_) | Slot::Input(_) | Slot::Output(_) => {}
                }
            }
        }
        // SAFETY: constants' slots have just been set.
        unsafe {
            self.singles(|_| 0);
            self.fills(true);
        }
    }

    unsafe fn fills(&mut self, constant: bool) {
        for f in self.job.launch.schedule.fills.iter().filter(|f| f.constant == constant) {
            // SAFETY: the source holds one element; the target is a tile.
            unsafe { fill(self.table[f.from as usize], f.dtype, TILE, self.table[f.to as usize]) };
        }
    }

    /// Goes to a row.
    unsafe fn seek(&mut self, row: usize) -> Result<(), u32> {
        let (launch, g) = (self.job.launch, self.job.launch.geometry);
        let mut rest = row;
        for (i, n) in self.index.iter_mut().zip(&g.rows).rev() {
            *i = rest % n;
            rest /= n;
        }
        for ((base, o), b) in self.bases.iter_mut().zip(&g.operands).zip(launch.inputs) {
            let steps: isize = self.index.iter().zip(&o.rows).map(|(i, s)| *i as isize * s).sum();
            // SAFETY: inside the buffer, by `Buffer::check`.
            *base = unsafe { b.bytes.as_ptr().offset((b.offset as isize + steps) * b.dtype.size() as isize) };
        }
        // SAFETY: passed on.
        unsafe { self.row_started() }
    }

    /// Goes to the next row.
    unsafe fn next_row(&mut self) -> Result<(), u32> {
        let (launch, g) = (self.job.launch, self.job.launch.geometry);
        let mut d = g.rows.len();
        while d > 0 {
            d -= 1;
            self.index[d] += 1;
            let wrapped = self.index[d] == g.rows[d];
            if wrapped {
                self.index[d] = 0;
            }
            for ((base, o), b) in self.bases.iter_mut().zip(&g.operands).zip(launch.inputs) {
                let steps = if wrapped { o.rows[d] * (1 - g.rows[d] as isize) } else { o.rows[d] };
                *base = base.wrapping_offset(steps * b.dtype.size() as isize);
            }
            if !wrapped {
                break;
            }
        }
        // SAFETY: passed on.
        unsafe { self.row_started() }
    }

    /// What depends on the row: the pointers of operands that are the same along it, and values computed of them.
    unsafe fn row_started(&mut self) -> Result<(), u32> {
        let launch = self.job.launch;
        for (slot, i) in self.splats {
            self.table[*slot as usize] = self.bases[*i as usize].cast_mut();
        }
        if self.periodic {
            // SAFETY: passed on.
            unsafe { self.patterns() };
        }
        // SAFETY: the prologue reads and writes single elements; passed on.
        unsafe {
            launch.schedule.prologue.iter().try_for_each(|stage| self.block(stage, 1))?;
            self.fills(false);
        }
        Ok(())
    }

    /// Writes operands out that repeat along the run, so that a tile can begin anywhere in them.
    unsafe fn patterns(&mut self) {
        let launch = self.job.launch;
        let mut to = self.layout.gathered;
        for (i, o) in launch.geometry.operands.iter().enumerate() {
            if let Access::Periodic(period) = o.access {
                let size = launch.inputs[i].dtype.size();
                let (once, all) = (period * size, (period + launch.tile().min(launch.geometry.run)) * size);
                // SAFETY: the operand has `period` neighbours from its base on; the scratch has room for all, of which the
                // first `written` bytes, whole periods, are copied behind themselves.
                unsafe {
                    let to = self.scratch.add(to);
                    std::ptr::copy_nonoverlapping(self.bases[i], to, once);
                    let mut written = once;
                    while written < all {
                        let n = written.min(all - written);
                        std::ptr::copy_nonoverlapping(to, to.add(written), n);
                        written += n;
                    }
                }
            }
            to += copy_room(o);
        }
    }

    /// Computes `n` elements of the row from `at` on. What is reduced of them is then where [`Worker::folded`] says.
    unsafe fn span(&mut self, row: usize, at: usize, n: usize) -> Result<(), u32> {
        let launch = self.job.launch;
        self.split = false;
        let whole = if launch.any_length || launch.segments.is_empty() { n } else { n - n % WIDTH };
        // SAFETY: passed on.
        unsafe {
            if whole > 0 {
                self.tile(row, at, whole, false)?;
            }
            if whole == n {
                return Ok(());
            }
            if whole > 0 {
                self.stage(0, whole);
            }
            self.tile(row, at + whole, n - whole, true)?;
            if whole > 0 {
                self.stage(whole, n - whole);
                self.split = true;
            }
        }
        Ok(())
    }

    /// Runs the body on `n` elements from `at`; `padded` if they are fewer than segments take.
    unsafe fn tile(&mut self, row: usize, at: usize, n: usize, padded: bool) -> Result<(), u32> {
        let launch = self.job.launch;
        let position = row * launch.geometry.run + at;
        // SAFETY: elements `at..at + n` of the row exist; padded copies hold at most WIDTH elements.
        unsafe {
            for (slot, i, size) in self.direct {
                let from = self.bases[*i as usize].add(at * size);
                self.table[*slot as usize] = if padded {
                    let to = self.padded(*i as usize);
                    std::ptr::copy_nonoverlapping(from, to, n * size);
                    to
                } else {
                    from.cast_mut()
                };
            }
            for (slot, i) in self.moving {
                self.table[*slot as usize] = self.input(*i as usize, at, n, padded);
            }
            let mut stream = self.job.stream;
            for (slot, o) in self.results {
                let out = self.job.outputs[*o as usize];
                let pad = self.padded(launch.inputs.len() + *o as usize);
                let to = if padded { pad } else { out.start.add(position * out.dtype.size()) };
                stream &= begins_line(to);
                self.table[*slot as usize] = to;
            }
            let width = if padded { WIDTH } else { n };
            let width = width | self.bits(stream);
            for stage in &launch.schedule.body {
                match stage {
                    Stage::Block(b) => self.block(b, n)?,
                    Stage::Segment(s) => (launch.segments[*s as usize].run)(self.table.as_mut_ptr(), width),
                }
            }
            for f in &launch.schedule.out_fills {
                fill(self.table[f.from as usize], f.dtype, n, self.table[f.to as usize]);
            }
            if padded {
                for (o, out) in self.job.outputs.iter().enumerate() {
                    let (size, from) = (out.dtype.size(), self.padded(launch.inputs.len() + o));
                    std::ptr::copy_nonoverlapping(from, out.start.add(position * size), n * size);
                }
            }
        }
        Ok(())
    }

    /// Where the values are that reduction `k` combines.
    fn folded(&self, k: usize) -> *const u8 {
        if self.split {
            // SAFETY: a place of the layout.
            return unsafe { self.staged(k, 0) };
        }
        self.table[self.job.launch.schedule.folds[k].slot as usize].cast_const()
    }

    /// Keeps `n` values of each reduction, behind the first `at`.
    unsafe fn stage(&mut self, at: usize, n: usize) {
        for (k, fold) in self.job.folds.iter().enumerate() {
            let size = fold.dtype.size();
            // SAFETY: a staged tile has room for all elements of a tile.
            unsafe { std::ptr::copy_nonoverlapping(self.folded(k), self.staged(k, 0).add(at * size), n * size) };
        }
    }

    /// The lanes of reduction `k` in the `r`-th of the rows that are walked together.
    unsafe fn lanes(&self, k: usize, r: usize) -> *mut u8 {
        // SAFETY: the layout has lanes for every reduction and row.
        unsafe { self.scratch.add(self.layout.lanes + (k * ROW_BLOCK + r) * WIDE_LANES) }
    }

    /// Makes the lanes of long rows ready for the tile at `at`.
    unsafe fn begin_lanes(&mut self, r: usize, at: usize) {
        let launch = self.job.launch;
        if self.reads || !launch.is_long() {
            return;
        }
        for (k, fold) in self.job.folds.iter().enumerate() {
            // SAFETY: the lanes are this row's own.
            unsafe {
                let lanes = self.lanes(k, r);
                if at.is_multiple_of(launch.piece()) {
                    // A tile that begins at a later lane has room behind the last; no other row is walked beside it.
                    let n = if self.side_by_side.is_some() { 2 * LANES } else { LANES };
                    fill((&raw const fold.nothing).cast(), fold.dtype, n, lanes);
                }
                let reduced = launch.schedule.folds[k];
                if self.adds && reduced.is_sum {
                    self.table[reduced.slot as usize] = lanes.add(at % LANES * fold.dtype.size());
                }
            }
        }
    }

    /// Combines the elements of a tile with those of its piece before it, and of the whole piece into one; or those of
    /// each short row in it into one. The row is the `r`-th of those that are walked together.
    unsafe fn fold_rows(&mut self, row: usize, r: usize, at: usize, n: usize) {
        let launch = self.job.launch;
        let (run, piece) = (launch.geometry.run, launch.piece());
        let Some(Fold::Rows(length)) = launch.geometry.fold else { return };
        for (k, FoldOut { start, dtype, kernels, .. }) in self.job.folds.iter().enumerate() {
            let (FoldKernels { f, tile, whole }, from) = (*kernels, self.folded(k));
            // SAFETY: the partial results have an element for this piece, or for each short row; the kernel for short
            // rows takes their length as its second operand; the lanes are this row's own.
            unsafe {
                if length < run {
                    let to = start.add(at / length * dtype.size());
                    f(operands([from, std::ptr::without_provenance(length)]), to, n);
                    continue;
                }
                if self.reads {
                    let position = row * launch.pieces() + at / piece;
                    whole(operands([from]), start.add(position * dtype.size()), n);
                    continue;
                }
                let lanes = self.lanes(k, r);
                if !(self.adds && launch.schedule.folds[k].is_sum) {
                    if prefetches_tiles() {
                        self.ahead(at + n, n);
                    }
                    // Up to where the lanes begin anew, if what lies side by side begins between, and from there on.
                    let (size, first) = (dtype.size(), at % LANES);
                    let head = if first == 0 { 0 } else { n.min(LANES - first) };
                    if head > 0 {
                        tile(operands([from]), lanes.add(first * size), head);
                    }
                    tile(operands([from.add(head * size)]), lanes, n - head);
                }
                if at + n == run || (at + n).is_multiple_of(piece) {
                    let position = row * launch.pieces() + at / piece;
                    f(operands([lanes.cast_const()]), start.add(position * dtype.size()), LANES);
                }
            }
        }
    }

    /// What segments are told with the number of elements.
    fn bits(&self, stream: bool) -> usize {
        let bit = |set: bool, bit: usize| if set { bit } else { 0 };
        bit(stream, STREAM) | bit(self.adds, ADD) | bit(self.reads_on && (stream || self.adds), AHEAD)
    }

    /// Has the memory fetch `n` elements from `at` on of the operands that are read where they are: a reduction adds up
    /// what it has in the meantime.
    fn ahead(&self, at: usize, n: usize) {
        for (_, i, size) in self.direct {
            let start = self.bases[*i as usize].wrapping_add(at * size);
            (0..n * size).step_by(CACHE_LINE).for_each(|line| prefetch(start.wrapping_add(line)));
        }
    }

    /// Where a uniform value lies, of the current row or of so many from it on as are computed together.
    unsafe fn single(&self, s: u32) -> *mut u8 {
        // SAFETY: the layout has a place for every one.
        unsafe { self.scratch.add(self.layout.singles + s as usize * self.layout.single) }
    }

    unsafe fn padded(&self, index: usize) -> *mut u8 {
        // SAFETY: the layout has a padded place for every operand and result.
        unsafe { self.scratch.add(self.layout.padded + index * PADDED) }
    }

    /// One of the three tiles of reduction `k`.
    unsafe fn staged(&self, k: usize, which: usize) -> *mut u8 {
        // SAFETY: the layout has three tiles for every reduction.
        unsafe { self.scratch.add(self.layout.staged + (3 * k + which) * WIDE_TILE) }
    }

    /// Where elements `at..at + n` of operand `i` can be read; if `padded`, some behind them too.
    unsafe fn input(&self, i: usize, at: usize, n: usize, padded: bool) -> *mut u8 {
        let launch = self.job.launch;
        let (dtype, base) = (launch.inputs[i].dtype, self.bases[i]);
        let operands = &launch.geometry.operands;
        let room = || operands[..i].iter().map(copy_room).sum::<usize>() + self.layout.gathered;
        // SAFETY: elements `at..at + n` of the row exist; the copies go to places of their own.
        unsafe {
            match &operands[i].access {
                Access::Broadcast => base.cast_mut(),
                Access::Contiguous => base.add(at * dtype.size()).cast_mut(),
                Access::Periodic(period) => self.scratch.add(room() + at % period * dtype.size()),
                Access::Gather(..) if is_across(&operands[i]) && self.turned.is_some() => {
                    let (r, start) = self.turned.unwrap_or_default();
                    self.scratch.add(room() + r * tile_room(dtype.size()) + (at - start) * dtype.size())
                }
                Access::Gather(extents, strides) => {
                    let from = Strided { base, extents, strides };
                    if let Some(place) = neighbours(from, dtype, at, n).filter(|_| !padded) {
                        return place.cast_mut();
                    }
                    let to = self.scratch.add(room());
                    gather(from, dtype, at, n, to);
                    to
                }
            }
        }
    }

    /// A stage has refused its data.
    #[cold]
    fn refused(&self, stage: &BlockStage, said: Refusal) -> u32 {
        self.said.set(said);
        stage.step
    }

    unsafe fn block(&self, stage: &BlockStage, n: usize) -> Result<(), u32> {
        let args = stage.args.map(|a| a.map_or(std::ptr::null(), |a| self.table[a as usize].cast_const()));
        // SAFETY: every slot points at `n` elements of its value's dtype, aligned; the result has a slot of its own.
        unsafe { stage.f.run(args, self.table[stage.out as usize], n) }.map_err(|said| self.refused(stage, said))
    }
}
