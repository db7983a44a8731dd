//! Bodies as text, compared with recorded ones, and the steps that code is attributed to.

use std::collections::HashSet;

use super::{Make, single_kernels};
use crate::backend::listing::{Listing, Purpose};
use crate::backend::x64::isa::Isa;
use crate::backend::x64::segment::{PAIRING, SegmentCode, SlotKinds};
use crate::backend::x64::{is_lowerable, listing};
use crate::base::dtype::DType::*;
use crate::kernels::CpuLevel;
use crate::ops::Op;
use crate::plan::kernel::Kernel;
use crate::plan::schedule::{Class, Schedule, schedule};

/// Where the recorded text is; `CASTWISE_BLESS=1` writes it anew.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/backend/x64/tests/printed.txt");

/// Small kernels: arithmetic with a uniform operand and a constant; a comparison and a choice; bf16, which is handled in pairs.
fn kernels() -> [(&'static str, Kernel, Vec<Class>); 3] {
    let mut m = Make::default();
    let (x, y, c) = (m.input(F32), m.input(F32), m.constant(F32));
    let product = m.apply(Op::Mul, F32, &[x, y]);
    let sum = m.apply(Op::Add, F32, &[product, c]);
    let arithmetic = m.output(sum);
    let mut m = Make::default();
    let (x, y) = (m.input(I16), m.input(I16));
    let less = m.apply(Op::Lt, I16, &[x, y]);
    let chosen = m.apply(Op::Where, I16, &[less, x, y]);
    let wide = m.cast(I16, F32, chosen);
    let choice = m.output(wide);
    let mut m = Make::default();
    let (x, y) = (m.input(BF16), m.input(BF16));
    let (x, y) = (m.cast(BF16, F32, x), m.cast(BF16, F32, y));
    let sum = m.apply(Op::Sub, F32, &[x, y]);
    let near = m.cast(F32, BF16, sum);
    let pairs = m.output(near);
    [
        ("x*y + c of f32, y uniform", arithmetic, vec![Class::Vector, Class::Splat]),
        ("f32(where(x < y, x, y)) of i16", choice, vec![Class::Vector; 2]),
        ("x - y of bf16", pairs, vec![Class::Vector; 2]),
    ]
}

fn planned(isa: Isa, kernel: &Kernel, classes: &[Class]) -> Schedule {
    schedule(kernel, classes, CpuLevel::get(), &|s| is_lowerable(isa, s)).unwrap()
}

#[test]
fn bodies_print_before_and_after_register_allocation() {
    let mut text = String::new();
    for (name, kernel, classes) in kernels() {
        for isa in [Isa::Avx512, Isa::Avx2] {
            let schedule = planned(isa, &kernel, &classes);
            let slots = SlotKinds::of(&kernel, &schedule);
            let made = SegmentCode::new(isa, &kernel, &schedule.segments[0], &slots, &PAIRING).unwrap();
            text += &format!("== {name}, {isa:?}, {} elements\n{}--\n{}", made.lanes, made.body, made.allocated);
            if let Some((body, allocated)) = made.pair {
                text += &format!("== {name}, {isa:?}, over two vectors\n{body}--\n{allocated}");
            }
        }
    }
    if std::env::var_os("CASTWISE_BLESS").is_some() {
        std::fs::write(RECORDED, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(RECORDED).unwrap());
}

/// The steps of all lines.
fn steps(listings: &[Listing]) -> HashSet<u32> {
    let lines = listings.iter().flat_map(|l| &l.lines);
    lines.filter_map(|l| if let Some(Purpose::Step(s)) = l.purpose { Some(s) } else { None }).collect()
}

/// A line for each instruction is for a step or a named part of the frame, and what a step stores has instructions.
#[test]
fn every_instruction_serves_a_step_or_the_frame() {
    for (name, kernel) in single_kernels() {
        for isa in [Isa::Avx512, Isa::Avx2] {
            let schedule = planned(isa, &kernel, &vec![Class::Vector; kernel.inputs.len()]);
            if schedule.segments.is_empty() {
                continue;
            }
            let stored: HashSet<u32> = schedule.segments.iter().filter_map(|s| s.steps.last().copied()).collect();
            let all = [listing::machine_code, listing::bodies].map(|made| made(isa, &kernel, &schedule).unwrap());
            for listings in &all {
                assert!(listings.iter().flat_map(|l| &l.lines).all(|l| l.purpose.is_some()), "{name}, {isa:?}");
                let found = steps(listings);
                assert!(found.is_superset(&stored), "{name}, {isa:?}: {found:?} of {stored:?}");
                assert!(found.iter().all(|s| (*s as usize) < kernel.steps.len()), "{name}, {isa:?}: {found:?}");
            }
        }
    }
}

/// What calls a function says which.
#[test]
fn slow_paths_are_named() {
    let (_, kernel) = single_kernels().into_iter().find(|(name, _)| name == "sin of f32").unwrap();
    for isa in [Isa::Avx512, Isa::Avx2] {
        let bodies = listing::bodies(isa, &kernel, &planned(isa, &kernel, &[Class::Vector])).unwrap();
        let text = super::text(bodies);
        let named = text.lines().filter(|l| l.contains("slow_path.sin.f32") && l.contains(", if any "));
        // Before and after register allocation, over one vector and twice over two.
        assert_eq!(named.count(), 6, "{isa:?}: {text}");
    }
}

/// The loop needs more registers than AVX2 has.
#[test]
fn sums_of_short_bodies_are_kept_in_registers_with_avx512() {
    let mut m = Make::default();
    let x = m.input(F32);
    let square = m.apply(Op::Mul, F32, &[x, x]);
    let mut kernel = m.output(square);
    kernel.outputs.clear();
    kernel.folds.push((Op::Sum, square));
    for isa in [Isa::Avx512, Isa::Avx2] {
        let code = listing::machine_code(isa, &kernel, &planned(isa, &kernel, &[Class::Vector])).unwrap();
        let lines = code.iter().flat_map(|l| &l.lines);
        let kept = lines.filter(|l| matches!(l.purpose, Some(Purpose::Frame("loop that accumulates in registers"))));
        assert_eq!(kept.count() > 0, isa == Isa::Avx512, "{isa:?}");
    }
}

/// Three loads and a store of a remainder, and one subroutine for each direction. AVX-512 has masks.
#[test]
fn remainders_of_avx2_share_their_subroutines() {
    let mut m = Make::default();
    let (x, y, z) = (m.input(F32), m.input(F32), m.input(F32));
    let product = m.apply(Op::Mul, F32, &[x, y]);
    let sum = m.apply(Op::Add, F32, &[product, z]);
    let kernel = m.output(sum);
    for (isa, subroutines, calls) in [(Isa::Avx512, 0, 0), (Isa::Avx2, 2, 4)] {
        let code = listing::machine_code(isa, &kernel, &planned(isa, &kernel, &[Class::Vector; 3])).unwrap();
        let count = |of: &str| code.iter().flat_map(|l| &l.lines).filter(|l| l.text.contains(of)).count();
        assert_eq!((count("ret") - 1, count("call")), (subroutines, calls), "{isa:?}");
    }
}
