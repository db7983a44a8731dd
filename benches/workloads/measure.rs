//! Timing, and the only code that calls castwise.
//!
//! Guarantees: a timed call of a prepared program checks the feeds, allocates the result, computes it and drops it;
//! compilation happens during warm-up. Does not: pin threads or monitor the machine's load, but reports the number of
//! cores that were used.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use castwise::{Prepared, prelude::*};

/// A program with its feeds, ready for repeated calls.
pub struct Call {
    prepared: Prepared,
    feeds: Vec<Tensor>,
}

impl Call {
    /// Prepares a call; the feeds are in the order of the program's placeholders.
    pub fn new(executor: &Executor, program: &Program, fetch: &Var, feeds: Vec<Tensor>) -> castwise::Result<Call> {
        Ok(Call { prepared: executor.prepare(program, [fetch])?, feeds })
    }

    fn feeds(&self) -> Vec<&Tensor> {
        self.feeds.iter().collect()
    }

    /// One call that allocates its result.
    pub fn fresh(&self) -> castwise::Result<Tensor> {
        Ok(self.prepared.run(&self.feeds())?.swap_remove(0))
    }

    /// One call that writes into an existing tensor.
    pub fn run_into(&self, out: &mut Tensor) -> castwise::Result<()> {
        self.prepared.run_into(&self.feeds(), std::slice::from_mut(out))
    }
}

/// Seconds per call.
pub struct Times {
    pub median: f64,
    pub min: f64,
    pub runs: usize,
    /// The number of cores used, if the system reports it.
    pub cpu_per_wall: Option<f64>,
}

/// Warms up, then calls for at least `min_s` seconds and 5 times. Very short calls are timed in groups, so that the
/// clock's own cost does not dominate.
pub fn measure<T>(mut call: impl FnMut() -> castwise::Result<T>, min_s: f64) -> castwise::Result<Times> {
    let (start, mut warm) = (Instant::now(), 0u32);
    while warm < 2 || (start.elapsed().as_secs_f64() < min_s / 4.0 && warm < 5000) {
        black_box(call()?);
        warm += 1;
    }
    let inner = ((20e-6 / (start.elapsed().as_secs_f64() / f64::from(warm))) as usize).max(1);
    let (mut samples, cpu, start) = (Vec::new(), cpu_seconds(), Instant::now());
    let total = loop {
        let t = Instant::now();
        for _ in 0..inner {
            black_box(call()?);
        }
        samples.push(t.elapsed().as_secs_f64() / inner as f64);
        let total = start.elapsed().as_secs_f64();
        if (total >= min_s && samples.len() >= 5) || (total > 5.0 && samples.len() >= 3) {
            break total;
        }
    };
    let cpu_per_wall = cpu.zip(cpu_seconds()).map(|(a, b)| (b - a) / total);
    let runs = samples.len() * inner;
    Ok(Times { median: median(&mut samples), min: samples[0], runs, cpu_per_wall })
}

/// The median; sorts the values.
pub fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    let n = all.len();
    (all[(n - 1) / 2] + all[n / 2]) / 2.0
}

/// The CPU time of this process; Linux reports it in hundredths of a second.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The process name may contain spaces; it ends with the last `)`. User and system time are fields 14 and 15.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}
