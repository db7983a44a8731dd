//! Which calls run as they are, without a launch.

use std::sync::Arc;

use crate::base::dtype::DType;
use crate::graph::program::Program;
use crate::graph::var::Var;
use crate::kernels::CpuLevel;
use crate::promotion::Rules;
use crate::runtime::executor::Executor;
use crate::tensor::{Tensor, TensorRef};

#[test]
fn one_call_over_what_is_given_goes_the_short_way() {
    // Only code for any number of elements can be called like this.
    let any_length = CpuLevel::get() >= CpuLevel::Avx2 && cfg!(all(unix, target_arch = "x86_64"));
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None, None]);
    let (twice, sum) = (&x * 2.0, x.over([0]).sum());
    let small = Tensor::full([30, 20], 0.5f32).unwrap();
    let (gap, large) = (small.slice(1, 0, 10, 1).unwrap(), Tensor::full([1024, 1024], 0.5f32).unwrap());
    let cases: [(&[&Var], &Tensor, bool); 8] = [
        (&[&twice], &small, true),
        (&[&(&twice + 1.0)], &small, true),
        (&[&twice, &(&x + 1.0)], &small, false),
        (&[&twice, &twice], &small, false),
        (&[&sum], &small, false),
        (&[&x], &small, false),
        (&[&twice], &gap, false),
        (&[&twice], &large, false),
    ];
    for (i, (fetches, feed, short)) in cases.into_iter().enumerate() {
        let step = Executor::new().prepare(&p, fetches.iter().copied()).unwrap();
        let first = step.run(&[feed]).unwrap();
        assert_eq!(step.core.last.load().as_ref().unwrap().direct, short && any_length, "{i}");
        let second = step.run(&[feed]).unwrap();
        // The count of a layout's users is not one that other threads have.
        let layout = |t: &Tensor| Arc::as_ptr(TensorRef::Tensor(t).layout());
        let elementwise = !std::ptr::eq(fetches[0], &sum) && feed.is_contiguous();
        assert!(!elementwise || second.iter().all(|t| layout(t) == layout(feed)), "{i}");
        let bytes = |all: &[Tensor]| all.iter().map(|t| t.to_vec::<f32>().unwrap()).collect::<Vec<_>>();
        assert_eq!((second.len(), bytes(&second)), (fetches.len(), bytes(&first)), "{i}");
    }
}
