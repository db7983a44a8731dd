//! What inference decides of shapes, and how often.

use crate::base::dtype::DType;
use crate::graph::program::Program;
use crate::graph::var::Var;
use crate::promotion::Rules;

#[test]
fn dims_are_checked_once_and_only_if_something_is_to_decide() {
    let p = Program::new(Rules::Torch);
    let of = |name: &str, dims: [Option<usize>; 2]| p.data(name, DType::F32, dims);
    let (a, b) = (of("a", [None, Some(4)]), of("b", [None, Some(4)]));
    let (row, whole) = (of("row", [Some(1), Some(4)]), of("whole", [Some(3), Some(4)]));
    let checks = || p.infer().unwrap().checks.iter().map(|c| c.axis).collect::<Vec<_>>();
    let all: Vec<Var> = vec![&a + &a, &whole * &row, &whole - 1.0];
    assert_eq!((all.len(), checks()), (3, vec![]));
    let sum = &a + &b;
    assert_eq!(checks(), [0]);
    let _ = (&a * &b, &sum + &sum, sum.exp() - &sum);
    assert_eq!(checks(), [0]);
    let _ = p.data("c", DType::F32, [None]) + &whole;
    assert_eq!(checks(), [0, 1]);
}

#[test]
fn a_typed_program_stays_as_it_was_typed() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F16, [None]);
    let y = x.exp();
    let (before, kept) = (p.infer().unwrap(), p.infer().unwrap().explain());
    let z = &y + p.data("w", DType::F32, [None]);
    let after = p.infer().unwrap();
    assert_eq!((before.explain(), before.dtype(&z)), (kept, None));
    assert_eq!((after.dtype(&z), after.fetches().len(), before.fetches().len()), (Some(DType::F32), 1, 1));
    assert_eq!(after.to_string(), p.with_rules(Rules::Torch).infer().unwrap().to_string());
}

#[test]
fn mistakes_are_reported_each_time() {
    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", DType::F32, [2]), p.data("y", DType::F32, [3]));
    p.check().unwrap();
    let _ = &x + &y;
    let first = p.check().unwrap_err().to_string();
    let _ = x.sin() * &y;
    let both = p.check().unwrap_err();
    assert_eq!((both.diagnostics().len(), p.check().unwrap_err().to_string()), (2, both.to_string()));
    assert!(both.to_string().contains(first.lines().next().unwrap()));
}
