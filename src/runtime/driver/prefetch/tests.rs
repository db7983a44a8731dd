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
    // The operands that are read, and whether partial results are read too.
    let programs: [(&Var, &[usize], bool); 5] = [
        (&(&a + 1.0), &[0], false),
        (&(&a * &b), &[0, 1], false),
        (&(a.arange_like(0, 1) + 1), &[], false),
        (&a.sum(), &[0], true),
        (&a.over([1]).mean(), &[0], true),
    ];
    let token = CancelToken::new();
    for (rows, columns) in [(1, 30_000), (300, 100), (5, 7)] {
        let whole = Tensor::full([3 * rows, columns], 0.5f32).unwrap();
        let part = whole.slice(0, rows, 2 * rows, 1).unwrap();
        let u = Tensor::full([columns], 0.5f64).unwrap();
        let bytes = [addresses(&part), addresses(&u)];
        for t in [&part, &part.flip(0).unwrap()] {
            for (i, (fetch, operands, partial)) in programs.iter().enumerate() {
                let step = Executor::builder().threads(1).build().prepare(&p, [*fetch]).unwrap();
                for stops in [false, true] {
                    SEEN.set(Some(Vec::new()));
                    if stops { step.run_with(&[t, &u], &token) } else { step.run(&[t, &u]) }.unwrap();
                    let seen = SEEN.take().unwrap();
                    let case = format!("{rows} x {columns}, {i}, {stops}");
                    let read = || operands.iter().map(|o| &bytes[*o]);
                    for bytes in read() {
                        let is_seen = |page| seen.iter().any(|at| at / PAGE == page && bytes.contains(at));
                        assert!((bytes.start / PAGE..bytes.end.div_ceil(PAGE)).all(is_seen), "{case}");
                    }
                    assert!(*partial || seen.iter().all(|at| read().any(|bytes| bytes.contains(at))), "{case}");
                }
            }
        }
    }
}
