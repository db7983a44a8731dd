//! Reading, computing and writing at the same time: a thread that reads, this one, which computes, and one that writes, with bounded
//! queues between them.
//!
//! Guarantees: what bounds memory are the slots of tiles, the gate of whole tensors (`read`) and `spare`; results are written in the order of
//! the jobs; after the first error nothing more is written. Does not: finish the output, so that after an error it never appears.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};

use castwise::{Error, Executor};

use super::decide::decide;
use super::job::{Running, Streamed};
use super::progress::bar;
use super::read::{Gate, Item, Permit, Reader};
use super::spare::Spares;
use super::write::{Written, write};
use crate::cli::args::{Check, Eval};
use crate::cli::check::Finite;
use crate::cli::compute::{compute, refused};
use crate::cli::failure::{Failure, tell};
use crate::cli::format::Format;
use crate::cli::inexact::Inexact;
use crate::cli::metrics::{Metrics, timed};
use crate::cli::outputs::{self, Output};
use crate::cli::plan::Work;

/// The tensors that wait between two threads at most. Their bytes are bounded otherwise.
const QUEUED: usize = 64;
/// Bytes of tiles' intermediate results and of written results that are kept for the next ones: not of a tensor that is larger than
/// this, which would be one more in memory.
const POOL: usize = 16 << 20;

/// Reads, computes and writes all tensors.
pub(in crate::cli) fn evaluate(
    arguments: &Eval,
    format: Format,
    work: &mut Work,
    output: &mut Output,
    metrics: &mut Metrics,
) -> Result<(), Failure> {
    let mut notes = Vec::new();
    let streams = decide(arguments, work, format, &mut notes)?;
    tell(&notes, arguments.quiet);
    work.notes.extend(notes);
    let bar = bar(work, &streams, arguments.quiet);
    // Results whose values may be refused are computed first.
    let is_back = |at: &usize| work.plans[work.jobs[*at].plan].conversion.is_back();
    let (mut order, others): (Vec<usize>, Vec<usize>) = (0..work.jobs.len()).partition(is_back);
    let back = order.len();
    order.extend(others);
    let mut inputs = std::mem::take(&mut work.inputs);
    let (items, from_reader) = mpsc::sync_channel(QUEUED);
    let (to_writer, written) = mpsc::sync_channel(QUEUED);
    let (free, freed) = mpsc::channel();
    let (gate, spares) = (Arc::new(Gate::default()), Spares::default());
    let mut computer = Computer::new(arguments, work, &streams, &spares, to_writer);
    let (read, computed, wrote) = std::thread::scope(|threads| {
        let reader = Reader {
            work,
            inputs: &mut inputs,
            gate: gate.clone(),
            to: items,
            spares: &spares,
            free: freed,
            slots: 0,
            bar: bar.clone(),
            read: 0,
            time: Default::default(),
        };
        let (order, streams) = (&order, &streams);
        let reader = threads.spawn(move || reader.run(order, streams));
        let (bar, output, work) = (&bar, &mut *output, &*work);
        let writer = threads.spawn(move || write(work, output, &written, &free, bar));
        let computed = computer.run(&from_reader, back);
        // Whoever waits for the others sees that they have gone.
        drop(from_reader);
        gate.close();
        computer.leave();
        let ended = "a thread of the command ended early";
        (
            reader.join().map_err(|_| Error::Internal(ended.into())),
            computed,
            writer.join().unwrap_or_else(|_| Err(Error::Internal(ended.into()))),
        )
    });
    bar.finish_and_clear();
    let Computer { inexact, finite, compile, compute, .. } = computer;
    work.inputs = inputs;
    let (written, writing) = wrote?;
    computed?;
    inexact.check(work)?;
    finite.check()?;
    let (read, reading) = read?;
    metrics.read += read;
    metrics.reading += reading;
    metrics.written += written;
    metrics.writing += writing;
    metrics.compile = compile;
    metrics.compute = compute.saturating_sub(compile);
    Ok(())
}

/// Computes what was read.
struct Computer<'a> {
    arguments: &'a Eval,
    work: &'a Work,
    streams: &'a [Option<Streamed>],
    spares: &'a Spares,
    executor: Executor,
    to: Option<SyncSender<Written>>,
    running: Option<(usize, Running<'a>)>,
    inexact: Inexact,
    finite: Finite,
    compile: std::time::Duration,
    compute: std::time::Duration,
}

/// Why computing stops.
enum Stop {
    /// The writer has gone, which knows why.
    Gone,
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(f: Failure) -> Stop {
        Stop::Failed(f)
    }
}

impl From<Error> for Stop {
    fn from(e: Error) -> Stop {
        Stop::Failed(e.into())
    }
}

impl<'a> Computer<'a> {
    fn new(
        arguments: &'a Eval,
        work: &'a Work,
        streams: &'a [Option<Streamed>],
        spares: &'a Spares,
        to: SyncSender<Written>,
    ) -> Computer<'a> {
        let builder = Executor::builder().pool(POOL);
        let executor = arguments.threads.map_or(builder.clone(), |n| builder.threads(n.into())).build();
        let (inexact, finite) = (Inexact::default(), Finite::default());
        let (compile, compute) = Default::default();
        Computer {
            arguments,
            work,
            streams,
            spares,
            executor,
            to: Some(to),
            running: None,
            inexact,
            finite,
            compile,
            compute,
        }
    }

    /// Computes all items. The first `back` jobs may be refused.
    fn run(&mut self, items: &Receiver<Item>, back: usize) -> Result<(), Failure> {
        let mut jobs = 0;
        for item in items {
            if matches!(item, Item::Whole { .. } | Item::Begin { .. }) {
                // All that are refused are named.
                if jobs == back && !self.inexact.is_empty() {
                    return Ok(());
                }
                jobs += 1;
            }
            match self.item(item) {
                Ok(()) => {}
                Err(Stop::Gone) => return Ok(()),
                Err(Stop::Failed(failure)) => return Err(failure),
            }
        }
        self.compile = self.executor.stats().compiling;
        Ok(())
    }

    /// Lets the writer end when it has written everything.
    fn leave(&mut self) {
        (self.to, self.running) = (None, None);
    }

    fn send(&self, written: Written) -> Result<(), Stop> {
        let to = self.to.as_ref().ok_or(Stop::Gone)?;
        to.send(written).map_err(|_| Stop::Gone)
    }

    fn item(&mut self, item: Item) -> Result<(), Stop> {
        match item {
            Item::Failed(e) => Err(e.into()),
            Item::Whole { job, feeds, permit } => self.whole(job, feeds, permit),
            Item::Stored { at, t, permit } => {
                if self.inexact.is_empty() && self.finite.is_empty() {
                    self.send(Written::Stored { at, t, permit })?;
                }
                Ok(())
            }
            Item::Begin { job, known } => {
                let streamed = self.streams.get(job).and_then(Option::as_ref);
                let streamed = streamed.ok_or_else(|| Error::Internal("a tile without a job".into()))?;
                let typed = &self.work.of(&self.work.jobs[job]).0.typed;
                self.running = Some((job, Running::new(streamed, typed, known)));
                Ok(())
            }
            Item::Tile { rows, mut slot } => {
                let Some((job, running)) = &mut self.running else { return Ok(()) };
                let made = timed(&mut self.compute, || running.tile(&rows, &mut slot, &self.executor));
                let (job, results) = (*job, made.map_err(|e| refused(self.work, &self.work.jobs[*job], &e))?);
                // The writer passes the slot on: if it has gone, the reader must not wait for slots.
                self.send(Written::Rows { job, slot, results })
            }
            Item::EndPass { last } => self.end_pass(last),
        }
    }

    fn end_pass(&mut self, last: bool) -> Result<(), Stop> {
        let Some((job, mut running)) = self.running.take() else { return Ok(()) };
        let refused = |e: Error| refused(self.work, &self.work.jobs[job], &e);
        timed(&mut self.compute, || running.end_pass(&self.executor)).map_err(refused)?;
        if !last {
            self.running = Some((job, running));
            return Ok(());
        }
        let results = timed(&mut self.compute, || running.results(&self.executor)).map_err(refused)?;
        for (result, t) in results {
            self.send(Written::Whole { job, result, t, permit: None })?;
        }
        Ok(())
    }

    fn whole(&mut self, at: usize, feeds: Vec<(String, castwise::Tensor)>, permit: Permit) -> Result<(), Stop> {
        let job = &self.work.jobs[at];
        let (plan, _) = self.work.of(job);
        let Computer { inexact, executor, compute: time, .. } = self;
        let computed = timed(time, || compute(plan, executor, &feeds, job, inexact));
        let results = computed.map_err(|e| refused(self.work, job, &e))?;
        if self.arguments.check == Some(Check::Finite) {
            for (r, t) in plan.results.iter().zip(&results) {
                let name = outputs::full_name(self.work.tensor(job), r.name.as_deref());
                timed(&mut self.compute, || self.finite.add(&self.executor, &plan.typed, &name, &feeds, t))?;
            }
        }
        feeds.into_iter().for_each(|(_, t)| self.spares.put(t));
        let permit = Arc::new(permit);
        for (result, t) in results.into_iter().enumerate() {
            if self.inexact.is_empty() && self.finite.is_empty() {
                self.send(Written::Whole { job: at, result, t, permit: Some(permit.clone()) })?;
            }
        }
        Ok(())
    }
}
