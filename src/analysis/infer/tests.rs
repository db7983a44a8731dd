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
