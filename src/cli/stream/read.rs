//! The thread that reads: whole tensors and tiles, in the order in which they are computed.
//!
//! Guarantees: at most [`IN_FLIGHT`] bytes of whole tensors are between reading and having been written, or those of one
//! tensor; a tile is read into memory that a written tile has left, a whole tensor into that of one before it (`spare`). Does not: compute.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use castwise::io::Stored;
use castwise::{Error, Tensor};
use indicatif::ProgressBar;

use super::job::{SLOTS, Slot, Streamed};
use super::spare::Spares;
use crate::cli::inputs::{Input, bytes};
use crate::cli::metrics::timed;
use crate::cli::plan::Work;

/// Bytes of whole tensors that are read, computed and written at a time.
const IN_FLIGHT: u64 = 48 << 20;

/// Counts bytes, and lets more in when others have left.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    bytes: u64,
    closed: bool,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for so many bytes, or nothing else is counted. `None` if the gate is closed.
    fn enter(self: &Arc<Gate>, bytes: u64) -> Option<Permit> {
        let mut state = self.state();
        while !state.closed && state.bytes > 0 && state.bytes + bytes > IN_FLIGHT {
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return None;
        }
        state.bytes += bytes;
        Some(Permit { gate: self.clone(), bytes })
    }

    /// Lets nothing in any more.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.left.notify_all();
    }
}

/// Bytes that are counted until this is dropped.
pub(super) struct Permit {
    gate: Arc<Gate>,
    bytes: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.state().bytes -= self.bytes;
        self.gate.left.notify_all();
    }
}

/// What was read.
pub(super) enum Item {
    /// The operands of a job.
    Whole {
        job: usize,
        feeds: Vec<(String, Tensor)>,
        permit: Permit,
    },
    /// The resident operands of a streamed job, whose tiles follow.
    Begin {
        job: usize,
        known: HashMap<usize, Tensor>,
    },
    Tile {
        rows: Range<usize>,
        slot: Slot,
    },
    /// The pass over the tiles of a job has ended, and the job if it is the last one.
    EndPass {
        last: bool,
    },
    /// A tensor to copy.
    Stored {
        at: usize,
        t: Stored,
        permit: Permit,
    },
    Failed(Error),
}

/// Reads items and passes them on.
pub(super) struct Reader<'a> {
    pub(super) work: &'a Work,
    pub(super) inputs: &'a mut [Input],
    pub(super) gate: Arc<Gate>,
    pub(super) to: SyncSender<Item>,
    /// Memory of whole tensors that have been computed with.
    pub(super) spares: &'a Spares,
    /// The slots of tiles that are written.
    pub(super) free: Receiver<Slot>,
    /// How many slots there are.
    pub(super) slots: usize,
    pub(super) bar: ProgressBar,
    pub(super) read: u64,
    pub(super) time: Duration,
}

/// The receiver of items has gone.
struct Gone;

enum Stop {
    Gone,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(e: Error) -> Stop {
        Stop::Failed(e)
    }
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Stop {
        Stop::Gone
    }
}

impl Reader<'_> {
    /// Reads these jobs, and the tensors to copy. Returns the number of bytes, and the time.
    pub(super) fn run(mut self, jobs: &[usize], streams: &[Option<Streamed>]) -> (u64, Duration) {
        if let Err(Stop::Failed(e)) = self.all(jobs, streams) {
            let _ = self.to.send(Item::Failed(e));
        }
        (self.read, self.time)
    }

    fn all(&mut self, jobs: &[usize], streams: &[Option<Streamed>]) -> Result<(), Stop> {
        for at in jobs {
            match streams.get(*at) {
                Some(Some(streamed)) => self.stream(streamed)?,
                _ => self.whole(*at)?,
            }
        }
        for (at, u) in self.work.unchanged.iter().enumerate() {
            let permit = self.gate.enter(u.bytes()?).ok_or(Gone)?;
            let t = timed(&mut self.time, || self.inputs[u.input].load_stored(&u.name))?;
            self.count(t.bytes().len() as u64);
            self.send(Item::Stored { at, t, permit })?;
        }
        Ok(())
    }

    fn send(&self, item: Item) -> Result<(), Gone> {
        self.to.send(item).map_err(|_| Gone)
    }

    fn count(&mut self, n: u64) {
        self.read += n;
        self.bar.inc(n);
    }

    /// Reads a tensor of an input as a whole.
    fn load(&mut self, input: usize, name: &str) -> Result<Tensor, Error> {
        let spares = self.spares;
        let input = &mut self.inputs[input];
        let (t, n) = timed(&mut self.time, || input.load_into(name, |dtype, shape| spares.take(dtype, shape)))?;
        self.count(n);
        Ok(t)
    }

    fn whole(&mut self, at: usize) -> Result<(), Stop> {
        let job = &self.work.jobs[at];
        let (plan, e) = self.work.of(job);
        let mut size = plan.bytes()?;
        for i in &e.uses {
            size = size.saturating_add(self.inputs[*i].to_read(&job.name));
        }
        let permit = self.gate.enter(size).ok_or(Gone)?;
        let mut feeds = Vec::with_capacity(e.uses.len());
        for i in &e.uses {
            let t = self.load(*i, &job.name)?;
            feeds.push((self.inputs[*i].name.clone(), t));
        }
        self.send(Item::Whole { job: at, feeds, permit })?;
        Ok(())
    }

    fn stream(&mut self, s: &Streamed) -> Result<(), Stop> {
        let job = &self.work.jobs[s.job];
        let (plan, e) = self.work.of(job);
        // Tiles have memory of their own.
        self.spares.free();
        let mut known = HashMap::new();
        for (node, name) in s.residents(&plan.typed) {
            let input = e.uses.iter().copied().find(|i| self.inputs[*i].name == name);
            let input = input.ok_or_else(|| Error::Internal("an input without a file".into()))?;
            known.insert(node, self.load(input, &job.name)?);
        }
        self.send(Item::Begin { job: s.job, known })?;
        for (pass, inputs) in s.passes.iter().enumerate() {
            for rows in s.tiles() {
                let mut slot = match self.free.try_recv() {
                    Ok(slot) => slot,
                    Err(_) if self.slots < SLOTS => {
                        self.slots += 1;
                        Slot::default()
                    }
                    Err(_) => self.free.recv().map_err(|_| Gone)?,
                };
                slot.read.truncate(inputs.len());
                for (i, input) in inputs.iter().enumerate() {
                    let shape = s.split.tile(input.node, rows.len());
                    slot.prepare(i, input.dtype, &shape)?;
                    let (from, into) = (&mut self.inputs[input.input], &mut slot.read[i]);
                    timed(&mut self.time, || from.load_part(&job.name, rows.start * input.width, into))?;
                    self.count(bytes(input.dtype, &shape));
                }
                self.send(Item::Tile { rows, slot })?;
            }
            self.send(Item::EndPass { last: pass + 1 == s.passes.len() })?;
        }
        Ok(())
    }
}
