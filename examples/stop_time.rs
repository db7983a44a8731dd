//! How long a run goes on after it was told to stop: `cargo run --release --example stop_time -- 100000000 200`, the
//! number of elements and of stops (few of both by default).
//!
//! A run is stopped at moments spread over its first half second; printed are the median, the 99th percentile and the
//! longest time from the call of `cancel` to the return of the run. Does not: measure compilation, which is done
//! before.

use std::time::{Duration, Instant};

use castwise::prelude::*;
use castwise::{CancelToken, Error};

fn main() -> castwise::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse().ok());
    let mut number = |default: usize| arguments.next().flatten().unwrap_or(default);
    let (elements, stops) = (number(4_000_000), number(15).max(1));
    let x = Tensor::zeros(DType::F32, [elements])?;
    for (name, write) in [
        ("one compiled loop", (|x| x * 0.5 + 1.0) as fn(&Var) -> Var),
        ("block kernels", |x| x.sin().erf().log1p() + x.cast(DType::F64).tan()),
        ("a sum", |x| x.exp().sum()),
    ] {
        let p = Program::new(Rules::Torch);
        let y = write(&p.data("x", DType::F32, [None]));
        let step = Executor::new().prepare(&p, [&y])?;
        step.run(&[&x])?;
        let start = Instant::now();
        step.run(&[&x])?;
        let whole = start.elapsed();
        let mut times = Vec::new();
        for i in 0..stops {
            let token = CancelToken::new();
            let (stopped, time) = std::thread::scope(|s| {
                let run = s.spawn(|| (step.run_with(&[&x], &token), Instant::now()));
                let part = (i * 7919 % stops) as f64 / stops as f64;
                std::thread::sleep(whole.min(Duration::from_millis(500)).mul_f64(part));
                let told = Instant::now();
                token.cancel();
                run.join().map(|(made, end)| (made, end.saturating_duration_since(told))).expect("runs do not panic")
            });
            // Some end just before.
            if matches!(stopped, Err(Error::Cancelled)) {
                times.push(time);
            }
        }
        times.sort_unstable();
        let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
        if let (Some(median), Some(late), Some(last)) = (at(50), at(99), times.last()) {
            println!("{name} ({whole:?} alone): {} stops, {median:?}, {late:?}, {last:?}", times.len());
        }
    }
    Ok(())
}
