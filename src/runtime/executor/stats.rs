//! What an executor has done so far, in numbers.
//!
//! Guarantees: counting costs a run four relaxed additions to numbers of its thread; nothing is timed run by run unless the executor was built
//! so; numbers never go back. Does not: give one moment's picture while other threads run; each number is right by
//! itself.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::base::dtype::DType;
use crate::base::host::{Kept, PerThread};
use crate::plan::fuse::Plan;
use crate::plan::kernel::Kernel;

/// What an [`Executor`](crate::Executor) has done since it was built, by [`Executor::stats`](crate::Executor::stats).
///
/// ```
/// use castwise::prelude::*;
/// let p = Program::new(Rules::Torch);
/// let y = (p.data("x", DType::F32, [None]) + 1).sqrt();
/// let exe = Executor::builder().timing(true).build();
/// for n in [100, 100, 200] {
///     exe.run(&p, feeds! { "x" => Tensor::full([n], 3.0f32)? }, [&y])?;
/// }
/// let stats = exe.stats();
/// assert_eq!((stats.runs, stats.inferences, stats.plans, stats.kernels), (3, 1, 1, 3));
/// assert_eq!((stats.bytes_read, stats.bytes_written), (1600, 1600));
/// assert_eq!(stats.kernel_times[0].launches, 3);
/// println!("{stats}");
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Runs, failed ones too.
    pub runs: u64,
    /// Runs whose feeds had other dtypes or layouts than those before, so that they were bound anew.
    pub bindings: u64,
    /// Programs that were typed.
    pub inferences: u64,
    /// Sets of fetches that were planned.
    pub plans: u64,
    /// Plans that were found in the cache.
    pub plan_hits: u64,
    /// Kernels that were compiled.
    pub compiles: u64,
    /// Kernels that were wanted and found in the cache.
    pub kernel_hits: u64,
    /// Kernels that were launched.
    pub kernels: u64,
    /// Bytes of the kernels' operands: feeds, constants and what other kernels left.
    pub bytes_read: u64,
    /// Bytes of the kernels' results.
    pub bytes_written: u64,
    /// Time spent typing programs.
    pub inferring: Duration,
    /// Time spent planning.
    pub planning: Duration,
    /// Time spent scheduling and compiling kernels.
    pub compiling: Duration,
    /// Time spent running plans, compilation within included: zero unless the executor was built with
    /// [`timing`](crate::ExecutorBuilder::timing).
    pub running: Duration,
    /// The kernels that took most time first: empty without [`timing`](crate::ExecutorBuilder::timing).
    pub kernel_times: Vec<KernelTime>,
}

/// How long the launches of one kernel took.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelTime {
    /// The kernel as text.
    pub kernel: String,
    /// How often it was launched.
    pub launches: u64,
    /// The time of all launches.
    pub time: Duration,
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stats { runs, bindings, inferences, plans, plan_hits, compiles, kernel_hits, kernels, .. } = self;
        writeln!(f, "{runs} runs, {bindings} with new layouts, {:?}", self.running)?;
        writeln!(f, "{kernels} kernels launched, {} bytes read, {} written", self.bytes_read, self.bytes_written)?;
        writeln!(f, "{inferences} programs typed, {:?}", self.inferring)?;
        writeln!(f, "{plans} plans made, {:?}; {plan_hits} found", self.planning)?;
        writeln!(f, "{compiles} kernels compiled, {:?}; {kernel_hits} found", self.compiling)
    }
}

/// The kernels of one run with feeds of some layouts, and the bytes they move.
#[derive(Clone, Copy, Default)]
pub(super) struct Traffic {
    pub(super) kernels: u64,
    pub(super) read: u64,
    pub(super) written: u64,
}

impl Traffic {
    /// That of a plan's run under these values of the dynamic dims.
    pub(super) fn of(plan: &Plan, dyn_dims: &[usize]) -> Traffic {
        let elements = |shape: u32| -> u64 {
            let dims = plan.typed.shapes[shape as usize].iter();
            dims.fold(1, |n, d| d.extent(dyn_dims).map_or(0, |extent| n.saturating_mul(extent as u64)))
        };
        // A domain that is too large for any run is refused only when it is aimed at.
        let bytes = |elements: u64, size: usize| elements.saturating_mul(size as u64);
        let mut all = Traffic::default();
        for k in &plan.work {
            let domain = elements(k.shape);
            if domain == 0 {
                continue;
            }
            all.kernels += 1;
            for (d, b) in k.kernel.inputs.iter().zip(&k.inputs) {
                all.read = all.read.saturating_add(bytes(elements(plan.buffers[*b as usize].shape), d.size()));
            }
            if let Some((node, ..)) = plan.moved(k) {
                let sizes = [plan.typed.nodes[node as usize].dtype.size(), DType::I64.size()];
                for (b, size) in k.inputs.iter().zip(sizes) {
                    all.read = all.read.saturating_add(bytes(elements(plan.buffers[*b as usize].shape), size));
                }
            }
            for v in &k.kernel.outputs {
                all.written = all.written.saturating_add(bytes(domain, k.kernel.value(*v).dtype.size()));
            }
            for (n, _) in &k.folds {
                let node = &plan.typed.nodes[*n as usize];
                all.written = all.written.saturating_add(bytes(elements(node.shape), node.dtype.size()));
            }
        }
        all
    }
}

/// A number that only grows.
#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Adds the nanoseconds since a moment.
    pub(super) fn since(&self, began: Instant) {
        self.add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }

    fn time(&self) -> Duration {
        Duration::from_nanos(self.get())
    }
}

/// For each kernel its launches and their time.
type Times = HashMap<Arc<Kernel>, (u64, Duration)>;

/// What each run counts.
#[derive(Default)]
struct Runs {
    runs: Counter,
    kernels: Counter,
    bytes_read: Counter,
    bytes_written: Counter,
}

/// What [`Stats`] is read from.
#[derive(Default)]
pub(super) struct Counters {
    runs: PerThread<Runs>,
    pub(super) bindings: Counter,
    pub(super) inferences: Counter,
    pub(super) plans: Counter,
    pub(super) plan_hits: Counter,
    pub(super) compiles: Counter,
    pub(super) kernel_hits: Counter,
    pub(super) inferring: Counter,
    pub(super) planning: Counter,
    pub(super) compiling: Counter,
    pub(super) running: Counter,
    times: Kept<Times>,
}

impl Counters {
    pub(super) fn run(&self, traffic: Traffic) {
        let own = self.runs.own();
        own.runs.add(1);
        own.kernels.add(traffic.kernels);
        own.bytes_read.add(traffic.read);
        own.bytes_written.add(traffic.written);
    }

    /// A launch; at most `most` kernels are timed.
    pub(super) fn launch(&self, kernel: &Arc<Kernel>, time: Duration, most: usize) {
        let mut times = self.times.lock();
        if let Some((launches, sum)) = times.get_mut(kernel) {
            (*launches, *sum) = (*launches + 1, sum.saturating_add(time));
        } else if times.len() < most {
            times.insert(kernel.clone(), (1, time));
        }
    }

    pub(super) fn stats(&self) -> Stats {
        let one = |(kernel, (launches, time)): (&Arc<Kernel>, &(u64, Duration))| KernelTime {
            kernel: kernel.to_string(),
            launches: *launches,
            time: *time,
        };
        let mut kernel_times: Vec<KernelTime> = self.times.lock().iter().map(one).collect();
        kernel_times.sort_by_key(|k| std::cmp::Reverse(k.time));
        let all = |count: fn(&Runs) -> &Counter| self.runs.all().fold(0u64, |n, own| n.wrapping_add(count(own).get()));
        Stats {
            runs: all(|own| &own.runs),
            bindings: self.bindings.get(),
            inferences: self.inferences.get(),
            plans: self.plans.get(),
            plan_hits: self.plan_hits.get(),
            compiles: self.compiles.get(),
            kernel_hits: self.kernel_hits.get(),
            kernels: all(|own| &own.kernels),
            bytes_read: all(|own| &own.bytes_read),
            bytes_written: all(|own| &own.bytes_written),
            inferring: self.inferring.time(),
            planning: self.planning.time(),
            compiling: self.compiling.time(),
            running: self.running.time(),
            kernel_times,
        }
    }
}
