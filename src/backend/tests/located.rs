//! Source locations in Cranelift's code: they change no byte, and every step's instructions have its own.

use std::collections::HashSet;

use super::{each_conversion, each_op};
use crate::backend::code;
use crate::backend::cranelift::emit::emit;
use crate::backend::cranelift::{listing, lower};
use crate::backend::listing::{DISASSEMBLES, Line, Listing, Purpose};
use crate::kernels::CpuLevel;
use crate::plan::kernel::Kernel;
use crate::plan::schedule::{Class, Schedule, schedule};

fn planned(k: &Kernel) -> Schedule {
    let classes = vec![Class::Vector; k.inputs.len()];
    schedule(k, &classes, CpuLevel::get(), &|step| lower::is_lowerable(step)).unwrap()
}

/// The steps of all lines.
fn steps(listings: &[Listing]) -> HashSet<u32> {
    let lines = listings.iter().flat_map(|l| &l.lines);
    lines.filter_map(|l| if let Some(Purpose::Step(s)) = l.purpose { Some(s) } else { None }).collect()
}

#[test]
fn locations_change_no_code() {
    let mut bytes = 0;
    let mut check = |kernel: &Kernel, name: &str| {
        let s = planned(kernel);
        let code = |located| {
            let made =
                code::machine_code(CpuLevel::get(), s.segments.len(), &|i, b| emit(kernel, &s.segments[i], b, located))
                    .unwrap();
            made.into_iter().map(|c| c.bytes).collect::<Vec<_>>()
        };
        let (without, with) = (code(false), code(true));
        assert!(without == with, "{name}");
        bytes += with.iter().map(Vec::len).sum::<usize>();
    };
    each_op(&mut check);
    each_conversion(&mut check);
    assert!(bytes > 50_000, "{bytes} bytes");
}

#[test]
fn what_a_step_stores_has_its_location() {
    let mut segments = 0;
    let mut check = |kernel: &Kernel, name: &str| {
        let s = planned(kernel);
        let stored: HashSet<u32> = s.segments.iter().filter_map(|s| s.steps.last().copied()).collect();
        let clif = listing::clif(kernel, &s).unwrap();
        assert!(steps(&clif).is_superset(&stored), "{name}");
        assert!(clif.iter().flat_map(|l| &l.lines).all(|l| !l.text.contains('@')), "{name}");
        if DISASSEMBLES {
            let code = listing::machine_code(kernel, &s).unwrap();
            assert!(steps(&code).is_superset(&stored), "{name}");
            // Constants after the code would not be instructions.
            assert!(code.iter().flat_map(|l| &l.lines).all(|l| !l.text.contains("bad")), "{name}");
            let ends = |l: &Line| l.text.ends_with("  ret") || l.text.contains("  jmp ");
            assert!(code.iter().all(|l| l.lines.last().is_some_and(ends)), "{name}: {code:?}");
        }
        segments += s.segments.len();
    };
    each_op(&mut check);
    each_conversion(&mut check);
    assert!(segments > 200, "{segments} segments");
}
