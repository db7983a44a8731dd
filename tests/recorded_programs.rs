//! Random programs that PyTorch and NumPy computed op by op: both modes give the same bits, at every CPU level.
//!
//! `tests/golden/record_programs.py` generated and recorded them in `programs.jsonl`, and describes its format.
//! Guarantees: dtype, shape and bits are compared for every step in eager mode, for all steps at once in compiled
//! loops, and for the steps that no other step uses, so that the others are never stored. Does not: compare the cases
//! that the script leaves out because castwise deviates from the frameworks. `CASTWISE_RECORDING` names another file in
//! this format.

mod recording;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use castwise::prelude::*;
use castwise::{CpuLevel, Operand};
use recording::{Recorded, Recording, Source, Step};

use crate::common::{self, levels};

static RECORDING: LazyLock<Recording> = LazyLock::new(Recording::read);

/// Appends the values of a program's steps.
fn apply<M: Mode>(steps: &[Step], values: &mut Vec<Var<M>>) {
    for step in steps {
        let operand = |s: &Source| -> Operand<M> {
            match s {
                Source::Value(i) => (&values[*i]).into(),
                Source::Scalar(s) => (*s).into(),
            }
        };
        let operands: Vec<Operand<M>> = step.operands.iter().map(operand).collect();
        values.push(castwise::apply(step.op, &operands, step.attrs.clone()));
    }
}

/// Checks the results of some steps. `way` says how they were computed.
fn check(r: &Recorded, way: &str, steps: &[usize], results: castwise::Result<Vec<Tensor>>) -> Result<(), String> {
    let results = results.map_err(|e| format!("{way}: {e}"))?;
    for (i, t) in steps.iter().zip(&results) {
        r.results[*i].check(t).map_err(|e| format!("{way}: %{}, {}: {e}", r.leaves.len() + i, r.steps[*i].text))?;
    }
    Ok(())
}

/// Runs a program in all ways. Every second program has dynamic dims.
fn run(r: &Recorded, dynamic: bool) -> Result<(), String> {
    let all: Vec<usize> = (0..r.steps.len()).collect();
    let eager = Eager::new(Rules::Torch);
    let mut values: Vec<Var<Eager>> = r.leaves.iter().map(|t| eager.tensor(t)).collect();
    apply(&r.steps, &mut values);
    check(r, "eager", &all, values[r.leaves.len()..].iter().map(Var::result).collect())?;

    let p = Program::new(Rules::Torch);
    let leaf = |(i, t): (usize, &Tensor)| {
        let dims: Vec<Option<usize>> = t.shape().iter().map(|n| (!dynamic).then_some(*n)).collect();
        p.data(&format!("x{i}"), t.dtype(), dims)
    };
    let mut values: Vec<Var> = r.leaves.iter().enumerate().map(leaf).collect();
    apply(&r.steps, &mut values);
    let unused: Vec<usize> = all.iter().copied().filter(|i| !r.uses(r.leaves.len() + i)).collect();
    for (way, steps) in [("static", &all), ("fused", &unused)] {
        let feeds: Vec<(String, Tensor)> =
            r.leaves.iter().enumerate().map(|(i, t)| (format!("x{i}"), t.clone())).collect();
        let fetches = steps.iter().map(|i| &values[r.leaves.len() + i]);
        check(r, way, steps, common::EXECUTOR.with(|e| e.run(&p, feeds, fetches)))?;
    }
    copied(&p).map_err(|e| format!("copied: {e}"))
}

/// A copy of a typed program is the same program.
fn copied(p: &Program) -> Result<(), String> {
    let typed = p.infer().map_err(|e| e.to_string())?;
    let copy = typed.rewrite(|n| n.copy()).map_err(|e| e.to_string())?.program;
    let text = copy.infer().map_err(|e| e.to_string())?.to_string();
    let same = (copy.to_string(), &text) == (p.to_string(), &typed.to_string());
    if same { Ok(()) } else { Err(format!("{typed}\nis now\n{text}")) }
}

fn run_all() {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(vec![]));
    let one = || {
        while let Some((number, r)) = RECORDING.programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(e) = run(r, number % 2 == 1) {
                wrong.lock().unwrap().push(format!("line {number}, by {}: {e}", r.by));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(one);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    let n = RECORDING.programs.len();
    assert!(n > 0, "no programs");
    assert!(wrong.is_empty(), "{} of {n} programs differ:\n{}", wrong.len(), wrong[..wrong.len().min(80)].join("\n"));
    println!("{n} programs at the level {:?}", CpuLevel::get());
}

#[test]
fn programs_have_the_bits_that_pytorch_and_numpy_gave() {
    levels::at_every_level("recorded_programs::programs_have_the_bits_that_pytorch_and_numpy_gave", run_all);
}

/// The recording must have enough cases for the test above to be meaningful.
#[test]
fn the_recording_has_operands_of_all_kinds() {
    let programs = RECORDING.programs.iter().map(|(_, r)| r);
    for by in ["torch", "numpy"] {
        assert!(programs.clone().filter(|r| r.by == by).count() >= 1000, "{by}");
    }
    let count = |f: &dyn Fn(&Recorded) -> bool| programs.clone().filter(|r| f(r)).count();
    for layout in ["plain", "fortran", "stepped", "backwards", "odd", "row", "npy"] {
        assert!(count(&|r| r.kinds.contains(layout)) >= 50, "{layout}");
    }
    // The recording has neither c32 nor the dtypes that NumPy or PyTorch compute little in.
    let recorded =
        |d: &DType| *d != DType::C32 && if d.is_unsigned() { d.size() == 1 } else { !d.is_float() || d.size() > 1 };
    for d in DType::ALL.into_iter().filter(recorded) {
        assert!(count(&|r| r.leaves.iter().any(|t| t.dtype() == d)) >= 50, "{d}");
    }
    for single in [&[][..], &[1], &[1, 1]] {
        assert!(count(&|r| r.leaves.iter().any(|t| t.shape() == single)) >= 100, "{single:?}");
    }
    let splat = |r: &Recorded, i: usize| r.value_is_single(i);
    for (name, position) in
        [("where", 0), ("where", 1), ("where", 2), ("mul", 0), ("mul", 1), ("clamp", 0), ("clamp", 1)]
    {
        let at = |r: &Recorded| {
            r.steps.iter().enumerate().any(|(k, s)| {
                let single = matches!(s.operands[position.min(s.operands.len() - 1)], Source::Value(i) if splat(r, i));
                s.op.name() == name && single && !splat(r, r.leaves.len() + k)
            })
        };
        assert!(count(&at) >= 10, "{name} with one element as operand {position}");
    }
}
