//! What a kept plan is for, and how many there are.

use super::{MOST, STEPS};
use crate::base::dtype::DType;
use crate::base::error::Error;
use crate::base::scalar::Scalar;
use crate::graph::var::Var;
use crate::promotion::Rules;
use crate::runtime::eager::value::Eager;
use crate::tensor::Tensor;

fn kept() -> usize {
    STEPS.with(|steps| steps.borrow().len())
}

fn bits(v: &Var<Eager>) -> Vec<u32> {
    v.result().unwrap().to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
fn a_plan_is_for_its_scalars_rules_and_layouts() {
    let x = Tensor::from_slice(&[-0.0f32, 1.5, 2.5, f32::NAN, 4.5, 5.5], [2, 3]).unwrap();
    for _ in 0..2 {
        let cx = Eager::new(Rules::Torch);
        let v = cx.tensor(&x);
        assert_eq!(bits(&(&v + 0.0))[0], 0);
        assert_eq!(bits(&(&v + -0.0))[0], 1 << 31);
        assert_eq!(bits(&(&v * f64::NAN))[1], f32::NAN.to_bits());
        let whole = cx.tensor(&Tensor::full([2], 3i32).unwrap());
        let dtypes = [Scalar::Int(2), Scalar::Float(2.0), Scalar::Bool(true)].map(|s| {
            let sum = &whole + s;
            sum.result().unwrap().dtype()
        });
        assert_eq!(dtypes, [DType::I32, DType::F32, DType::I32]);
        let across = cx.tensor(&x.transpose(0, 1).unwrap());
        assert_eq!(bits(&(&across + 1.0))[..3], [1.0f32, f32::NAN, 2.5].map(f32::to_bits));
        // PyTorch promotes these, Paddle does not.
        let mixed = |rules| {
            let cx = Eager::new(rules);
            (cx.tensor(&Tensor::full([2], 3i32).unwrap()) + cx.tensor(&Tensor::full([2], 0.5f32).unwrap())).result()
        };
        assert!(mixed(Rules::Torch).is_ok() && mixed(Rules::Paddle).is_err());
    }
    // The second round found everything.
    assert_eq!(kept(), 8);
}

#[test]
fn an_error_names_the_line_of_its_own_application() {
    let cx = Eager::new(Rules::Torch);
    let (x, zero) = (cx.tensor(&Tensor::full([2], 7i32).unwrap()), cx.tensor(&Tensor::full([2], 0i32).unwrap()));
    let three = cx.tensor(&Tensor::full([2], 3i32).unwrap());
    assert_eq!(x.floor_divide(&three).result().unwrap().to_vec::<i32>().unwrap(), [2, 2]);
    let (failed, line) = (x.floor_divide(&zero), line!());
    let error: Error = failed.result().unwrap_err();
    assert!(error.to_string().contains(&format!("tests.rs:{line}")), "{error}");
}

#[test]
fn a_thread_keeps_so_many_plans_and_no_more() {
    let cx = Eager::new(Rules::Torch);
    let x = cx.tensor(&Tensor::full([2], 7i32).unwrap());
    for i in 0..3 * MOST as i64 {
        assert_eq!((&x + i).result().unwrap().to_vec::<i32>().unwrap()[0], 7 + i as i32);
        assert!(kept() <= MOST);
    }
}
