//! Which ops have a text for which dtypes, and which are kernels: a list that changes only on purpose.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::super::{Prim, text};
use crate::base::dtype::DType;
use crate::kernels::{CpuLevel, kernel};
use crate::ops::Op;

/// The list. Ops of the tests alone are not in it.
fn listed() -> String {
    let mut list = String::new();
    for op in Op::ALL.iter().filter(|op| !op.has_dims() && !op.takes_dtype() && !op.name().starts_with("toy_")) {
        let of = |wanted: &dyn Fn(DType) -> bool| {
            let names: Vec<&str> = DType::ALL.into_iter().filter(|d| wanted(*d)).map(DType::name).collect();
            if names.is_empty() { "none".to_string() } else { names.join(" ") }
        };
        let texts = of(&|d| text(*op, d).is_some());
        let kernels = of(&|d| text(*op, d).is_none() && kernel(*op, d, CpuLevel::Baseline).is_some());
        writeln!(list, "{op}: texts {texts}; kernels {kernels}").unwrap();
    }
    list
}

#[test]
fn texts_and_kernels_are_those_that_are_listed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ssa/tests/texts.txt");
    let now = listed();
    if std::env::var_os("CASTWISE_BLESS").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let old = format!("{path} is old: `CASTWISE_BLESS=1 cargo test --lib ssa::tests::table` writes it anew");
    for (now, before) in now.lines().zip(before.lines()) {
        assert_eq!(now, before, "{old}");
    }
    assert_eq!(now.lines().count(), before.lines().count(), "{old}");
}

#[test]
fn every_primitive_but_those_of_expansions_is_in_a_text() {
    let all = Op::ALL.iter().flat_map(|op| DType::ALL.map(|d| text(*op, d))).flatten();
    let used: BTreeSet<&str> = all.flat_map(|t| t.insts.iter().map(|i| i.prim.name())).collect();
    for prim in [Prim::Scaled, Prim::Signed, Prim::ComplexMul, Prim::TestNot, Prim::AndNot, Prim::Fms, Prim::Exponent] {
        assert!(used.contains(prim.name()), "{prim:?}");
    }
    for (op, d, ways) in [(Op::Lerp, DType::F32, 3), (Op::Huber, DType::F64, 3), (Op::Heaviside, DType::I16, 3)] {
        let insts = &text(op, d).unwrap().insts;
        assert!(insts.len() >= ways && insts.iter().all(|i| !matches!(i.prim, Prim::Not)), "{op} of {d}");
    }
}

#[test]
fn texts_print_as_they_were_recorded() {
    let printed = |op, d| text(op, d).unwrap().to_string();
    assert_eq!(
        printed(Op::Lerp, DType::F32),
        "  %3 = abs.f32 %2
  %4 = const.f32 0.5
  %5 = lt.f32 %3, %4
  %6 = sub.f32 %1, %0
  %7 = mul.f32 %2, %6
  %8 = add.f32 %0, %7
  %9 = const.f32 1.0
  %10 = sub.f32 %9, %2
  %11 = mul.f32 %6, %10
  %12 = sub.f32 %1, %11
  %13 = select.f32 %5, %8, %12
  return canonical %13
"
    );
    assert_eq!(
        printed(Op::Sign, DType::I8),
        "  %1 = const.i8 1
  %2 = minimum.i8 %0, %1
  %3 = const.i8 -1
  %4 = maximum.i8 %2, %3
  return %4
"
    );
    assert_eq!(printed(Op::Lt, DType::Bool), "  %2 = and_not.bool %0, %1\n  return %2\n");
    assert_eq!(printed(Op::Neg, DType::F16), "  %1 = neg.f16 %0\n  return %1\n");
    assert_eq!(printed(Op::LogicalNot, DType::C64), {
        "  %1 = const.c64 0.0\n  %2 = eq.c64 %0, %1, both\n  return %2\n"
    });
}
