//! Measures how long a run continues after it was told to stop.
//!
//! `cargo run --release -p xtask -- stop_time 100000000 200 [CASE [THREADS]]`: the number of elements and of stops (few
//! of both by default), one of the cases below (or `all`), and the number of threads of a run (1 and 2 by default).
//!
//! Runs are stopped at times spread over their first quarter of a second, until the given number of runs has been
//! stopped before their end. Prints the median, the 99th percentile and the maximum of the time from the call of
//! `cancel` to the return of the run. Does not: measure compilation, which happens before.

use std::time::{Duration, Instant};

use castwise::prelude::*;
use castwise::{CancelToken, Error, Prepared};

/// A case: its name, whether the operand is a transposed matrix to which a row is added, and the expression.
type Case = (&'static str, bool, fn(&Var, &Var) -> Var);

const CASES: [Case; 6] = [
    ("chain", false, |x, _| x * 0.5 + 1.0),
    ("functions", false, |x, _| x.sin().erf().log1p() + x.cast(DType::F64).tan()),
    ("sum", false, |x, _| x.sum()),
    ("sum-of-exp", false, |x, _| x.exp().sum()),
    ("sort", false, |x, _| x.sort()),
    ("transposed", true, |x, row| x * row + 1.0),
];

/// Measures the cases that the arguments name.
pub fn main(arguments: Vec<String>) -> castwise::Result<()> {
    let number = |i: usize| arguments.get(i).and_then(|a| a.parse::<usize>().ok());
    let (elements, stops) = (number(0).unwrap_or(4_000_000), number(1).unwrap_or(15).max(1));
    let chosen = arguments.get(2).map_or("all", String::as_str);
    let threads = number(3).map_or(vec![1, 2], |n| vec![n]);
    for (name, across, write) in CASES.into_iter().filter(|c| chosen == "all" || chosen == c.0) {
        for threads in &threads {
            let p = Program::new(Rules::Torch);
            let side = elements.isqrt();
            let (x, row) = match across {
                true => (Tensor::full([side, side], 0.5f32)?.transpose(0, 1)?, Tensor::full([side], 2.0f32)?),
                false => (Tensor::random(DType::F32, [elements], 1)?, Tensor::scalar(0.0f32)),
            };
            let dims = vec![None; x.rank()];
            let y = write(&p.data("x", DType::F32, dims), &p.data("row", DType::F32, vec![None; row.rank()]));
            let step = Executor::builder().threads(*threads).build().prepare(&p, [&y])?;
            step.run(&[&x, &row])?;
            let mut whole = Duration::MAX;
            for _ in 0..3 {
                let start = Instant::now();
                step.run(&[&x, &row])?;
                whole = whole.min(start.elapsed());
            }
            let times = stopped(&step, &[&x, &row], whole.min(Duration::from_millis(250)), stops);
            let at = |share: f64| times.get(((times.len() as f64 * share).ceil() as usize).saturating_sub(1));
            if let (Some(median), Some(late), Some(last)) = (at(0.5), at(0.99), times.last()) {
                let n = x.numel();
                println!(
                    "{name}, {n} elements, {threads} threads ({whole:.1?} alone): {} stops, p50 {median:.3?}, p99 {late:.3?}, max {last:.3?}",
                    times.len()
                );
            }
        }
    }
    Ok(())
}

/// The times that stopped runs continued, in ascending order. Runs that end before they are stopped are not counted.
fn stopped(step: &Prepared, feeds: &[&Tensor], span: Duration, stops: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    for i in 0..20 * stops {
        let token = CancelToken::new();
        let (made, time) = std::thread::scope(|s| {
            let run = s.spawn(|| (step.run_with(feeds, &token), Instant::now()));
            std::thread::sleep(span.mul_f64((i * 7919 % stops) as f64 / stops as f64));
            let told = Instant::now();
            token.cancel();
            run.join().map(|(made, end)| (made, end.saturating_duration_since(told))).expect("runs do not panic")
        });
        if matches!(made, Err(Error::Cancelled)) {
            times.push(time);
        }
        if times.len() == stops {
            break;
        }
    }
    times.sort_unstable();
    times
}
