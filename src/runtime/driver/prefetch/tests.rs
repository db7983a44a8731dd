//! Which addresses are prefetched.

use std::cell::RefCell;

use super::*;
use crate::base::cancel::CancelToken;
use crate::base::dtype::DType;
use crate::graph::program::Program;
use crate::graph::var::Var;
use crate::promotion::Rules;
use crate::runtime::executor::Executor;
use crate::tensor::Tensor;

thread_local! {
    /// What this thread has prefetched, if that is recorded.
    pub(super) static SEEN: RefCell<Option<Vec<usize>>> = const { RefCell::new(None) };
}

#[test]
fn a_range_has_its_first_address_and_the_pages_that_begin_in_it() {
    let of = |range: Range<usize>| pages(range).collect::<Vec<_>>();
    assert!(of(5000..5000).is_empty());
    assert_eq!(of(5000..5001), [5000]);
    assert_eq!(of(4096..8192), [4096]);
    assert_eq!(of(5000..8193), [5000, 8192]);
    assert_eq!(of(8192..usize::MAX).len(), PREFETCHED / PAGE, "the first ones");
    assert_eq!(of(usize::MAX - 1..usize::MAX), [usize::MAX - 1]);
}

/// The addresses of a tensor's bytes.
fn addresses(t: &Tensor) -> Range<usize> {
    let bytes = t.as_bytes().unwrap().as_ptr_range();
    bytes.start.addr()..bytes.end.addr()
}

#[test]
fn each_page_of_an_operand_is_prefetched_and_no_other_memory() {
    let p = Program::new(Rules::Torch);
    let (a, b) = (p.data("a", DType::F32, [None, None]), p.data("b", DType::F64, [None]));
    let one_loop: [&Var; 4] = [&(&a + 1.0), &(&a * &b), &a.sum(), &a.over([1]).mean()];
    let token = CancelToken::new();
    for (rows, columns) in [(1, 30_000), (300, 100), (5, 7)] {
        let t = Tensor::full([rows, columns], 0.5f32).unwrap();
        let u = Tensor::full([columns], 0.5f64).unwrap();
        for (i, fetch) in one_loop.iter().enumerate() {
            let step = Executor::builder().threads(1).build().prepare(&p, [*fetch]).unwrap();
            for stops in [false, true] {
                SEEN.set(Some(Vec::new()));
                if stops { step.run_with(&[&t, &u], &token) } else { step.run(&[&t, &u]) }.unwrap();
                let seen = SEEN.take().unwrap();
                let mut read = vec![addresses(&t)];
                read.extend((i == 1).then(|| addresses(&u)));
                let case = format!("{rows} x {columns}, {i}, {stops}");
                for bytes in &read {
                    let pages = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
                    let missing = pages.filter(|page| !seen.iter().any(|at| at / PAGE == *page && bytes.contains(at)));
                    assert_eq!(missing.count(), 0, "{case}");
                }
                // A reduction also reads its partial results.
                let others = seen.iter().filter(|at| !read.iter().any(|bytes| bytes.contains(at))).count();
                assert!(i >= 2 || others == 0, "{case}");
            }
        }
    }
}
