//! The table of `src/backend/measured.rs`: each op and dtype that is compiled, alone, as a loop and as a block kernel.
//!
//! `cargo bench --bench compiled [-- OP.DTYPE …]`. Prints ns an element of every step, then the rows that the table
//! should have. `CASTWISE_CPU` chooses the level, and `CASTWISE_LOOPS=cranelift` Cranelift's loops beside its kernels.
//! Guarantees: one thread; operands and result in the L1 cache; what a call costs is subtracted, by calls on an eighth
//! of the elements; rounds are interleaved, and medians are printed. Does not: write the table. The time of a pass is that
//! of the fastest compiled step of as many operands of the same dtype, so it is rather too long, for the loop.

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use castwise::prelude::*;
use castwise::{Attrs, Category, CpuLevel, Operand, Prepared, apply};

/// Bytes of operands and result together.
const BYTES: usize = 24 << 10;
const ROUNDS: usize = 25;
/// The time of one measurement in ns.
const SAMPLE: f64 = 60_000.0;
/// As in the table.
const MARGIN: f64 = 1.15;

/// A step alone: its program, and the result.
fn step(op: Op, d: DType) -> Option<(Program, Var)> {
    [Rules::Torch, Rules::Paddle].into_iter().find_map(|rules| {
        let p = Program::new(rules);
        let of = |i: usize| if op == Op::Where && i == 0 { DType::Bool } else { d };
        let vars: Vec<Operand> = (0..op.arity()).map(|i| p.data(&format!("x{i}"), of(i), [None]).into()).collect();
        let y = apply(op, &vars, Attrs::default());
        let key = format!("{op}.{d}(");
        let is_alone = p.infer().ok()?.casts().is_empty() && Executor::new().ssa(&p, [&y]).ok()?.starts_with(&key);
        is_alone.then_some((p, y))
    })
}

/// Elements whose bytes are those of numbers between 0 and 1, or of small integers.
fn data(d: DType, n: usize) -> castwise::Result<Tensor> {
    let whole = matches!(d.category(), Category::Int | Category::Bool);
    let value = |i: usize| ((i * 7919 % 97) as f32 + 1.0) * if whole { 1.0 } else { 0.01 };
    let value = |i| if d == DType::Bool { (i % 3 != 0) as u8 as f32 } else { value(i) };
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]).cast(d);
    Ok(Executor::new().run(&p, feeds! { "x" => Tensor::from_vec((0..n).map(value).collect(), [n])? }, [&x])?.remove(0))
}

/// A step in both modes, and operands and results of two lengths.
struct Case {
    modes: [Prepared; 2],
    operands: [Vec<Tensor>; 2],
    results: [[Tensor; 1]; 2],
    lengths: [usize; 2],
}

impl Case {
    /// None if the step is not compiled.
    fn new(op: Op, d: DType, p: &Program, y: &Var) -> castwise::Result<Option<Case>> {
        let dtypes: Vec<DType> =
            (0..op.arity()).map(|i| if op == Op::Where && i == 0 { DType::Bool } else { d }).collect();
        let Some(result) = p.infer()?.dtype(y) else { return Ok(None) };
        let size = dtypes.iter().map(|d| d.size()).sum::<usize>() + result.size();
        let most = BYTES / size / 512 * 512;
        let lengths = [most, most / 8];
        let operands = lengths.map(|n| dtypes.iter().map(|d| data(*d, n)).collect::<castwise::Result<Vec<_>>>());
        let [long, short] = operands;
        let modes = [true, false].map(|jit| Executor::builder().threads(1).jit(jit).build());
        let prepared = [modes[0].prepare(p, [y])?, modes[1].prepare(p, [y])?];
        let mut case = Case {
            modes: prepared,
            operands: [long?, short?],
            results: [[Tensor::zeros(result, [lengths[0]])?], [Tensor::zeros(result, [lengths[1]])?]],
            lengths,
        };
        case.seconds(0, 0, 1)?;
        Ok((modes[0].compiles() == 1).then_some(case))
    }

    /// The time of some calls.
    fn seconds(&mut self, mode: usize, length: usize, calls: usize) -> castwise::Result<f64> {
        let given: Vec<&Tensor> = self.operands[length].iter().collect();
        let start = Instant::now();
        for _ in 0..calls {
            self.modes[mode].run_into(black_box(&given), &mut self.results[length])?;
        }
        Ok(start.elapsed().as_secs_f64() / calls as f64)
    }

    /// ns an element, compiled and as a kernel.
    fn measure(&mut self) -> castwise::Result<[f64; 2]> {
        let mut calls = [[0; 2]; 2];
        for (mode, length) in PAIRS {
            self.seconds(mode, length, 20)?;
            calls[mode][length] = (SAMPLE / (self.seconds(mode, length, 20)? * 1e9)).ceil() as usize;
        }
        let mut rounds = [vec![], vec![]];
        for _ in 0..ROUNDS {
            let mut times = [[0.0; 2]; 2];
            for (mode, length) in PAIRS {
                times[mode][length] = self.seconds(mode, length, calls[mode][length])?;
            }
            for (all, [long, short]) in rounds.iter_mut().zip(times) {
                all.push((long - short) * 1e9 / (self.lengths[0] - self.lengths[1]) as f64);
            }
        }
        Ok(rounds.map(|mut all| {
            all.sort_by(f64::total_cmp);
            all[ROUNDS / 2]
        }))
    }
}

/// Modes and lengths.
const PAIRS: [(usize, usize); 4] = [(0, 0), (1, 0), (0, 1), (1, 1)];

/// A line of the table.
struct Row {
    op: Op,
    dtype: DType,
    compiled: f64,
    kernel: f64,
}

fn rows(wanted: &[String]) -> castwise::Result<Vec<Row>> {
    let mut rows = vec![];
    for op in Op::ALL.iter().copied().filter(|op| !op.has_dims()) {
        for dtype in DType::ALL {
            let Some((p, y)) = step(op, dtype) else { continue };
            if !wanted.is_empty() && !wanted.contains(&format!("{op}.{dtype}")) {
                continue;
            }
            let Some(mut case) = Case::new(op, dtype, &p, &y)? else { continue };
            let [compiled, kernel] = case.measure()?;
            rows.push(Row { op, dtype, compiled, kernel });
        }
    }
    Ok(rows)
}

fn report(wanted: &[String]) -> castwise::Result<()> {
    let rows = rows(wanted)?;
    let pass = |row: &Row| {
        let alike = rows.iter().filter(|r| (r.op.arity(), r.dtype) == (row.op.arity(), row.dtype));
        alike.map(|r| r.compiled).fold(f64::MAX, f64::min)
    };
    println!(
        "| op | dtype | compiled | pass | kernel | kernel / compiled |\n| --- | --- | ---: | ---: | ---: | ---: |"
    );
    for r in &rows {
        let (c, k) = (r.compiled, r.kernel);
        println!("| {} | {} | {c:.4} | {:.4} | {k:.4} | {:.2} |", r.op, r.dtype, pass(r), k / c);
    }
    let mut ratios: Vec<f64> = rows.iter().map(|r| r.kernel / r.compiled).collect();
    ratios.sort_by(f64::total_cmp);
    if let [first, .., last] = ratios[..] {
        let (middle, slower) = (ratios[ratios.len() / 2], ratios.iter().filter(|r| **r < 1.0 / MARGIN).count());
        println!("\n{} steps; kernel / compiled from {first:.2} to {last:.2}, median {middle:.2};", rows.len());
        println!("{slower} are slower compiled, alone, by the margin");
    }
    println!("\nRows of the table at {:?}:", CpuLevel::get());
    for r in &rows {
        let (c, k, pass) = (r.compiled, r.kernel, pass(r));
        if c - pass >= MARGIN * (k + pass) {
            println!("    row({:?}, {:?}, {:?}, {c:.3}, {pass:.3}, {k:.3}),", r.op, r.dtype, CpuLevel::get());
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let loops = std::env::var("CASTWISE_LOOPS").unwrap_or_default();
    if loops.split(',').any(|word| word == "every") {
        return Ok(report(&wanted)?);
    }
    // The library reads the variable once, so another process ignores the table.
    let mut child = Command::new(std::env::current_exe()?);
    let status = child.args(&wanted).env("CASTWISE_LOOPS", format!("every,{loops}")).status()?;
    if status.success() { Ok(()) } else { Err("the measurement failed".into()) }
}
