//! Failed allocations of data, each one in turn: the run returns an error that says so, no result is partly written,
//! and the next run works. And what allocates nothing.
#![allow(unsafe_code, reason = "an allocator that refuses")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use castwise::Error;
use castwise::prelude::*;

/// Allocations of at least this size are data. Those of programs, plans and code are smaller.
const DATA: usize = 256 << 10;

thread_local! {
    /// How many allocations of data succeed, and whether all later ones fail too.
    static GRANTED: Cell<Option<(usize, bool)>> = const { Cell::new(None) };
    static REFUSED: Cell<usize> = const { Cell::new(0) };
    /// Requests so far, of any size.
    static REQUESTS: Cell<usize> = const { Cell::new(0) };
}

struct Refusing;

fn refuses(size: usize) -> bool {
    REQUESTS.set(REQUESTS.get() + 1);
    let Some((left, goes_on)) = GRANTED.get().filter(|_| size >= DATA) else { return false };
    if left > 0 {
        GRANTED.set(Some((left - 1, goes_on)));
        return false;
    }
    GRANTED.set(goes_on.then_some((0, true)));
    REFUSED.set(REFUSED.get() + 1);
    true
}

// SAFETY: all calls are passed to the system's allocator, or return null, which any allocator may do.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the call is passed on unchanged.
        if refuses(layout.size()) { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the call is passed on unchanged.
        if refuses(layout.size()) { std::ptr::null_mut() } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the call is passed on unchanged.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

const N: usize = 300 * 400;

/// The name of a run, and the run.
type Work<'a> = (&'a str, Box<dyn Fn() -> castwise::Result<Vec<Tensor>> + 'a>);

fn is_out_of_memory(e: &Error) -> bool {
    match e {
        Error::OutOfMemory { bytes } => *bytes > 0,
        Error::Earlier(e) => is_out_of_memory(e),
        _ => false,
    }
}

fn bytes(all: &[Tensor]) -> Vec<Vec<u8>> {
    all.iter().map(|t| t.contiguous().unwrap().as_bytes().unwrap().to_vec()).collect()
}

#[test]
fn every_request_for_data_that_is_refused_is_an_error() {
    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", DType::F32, [None, None]), p.data("y", DType::F64, [None]));
    let chain = (&x * 0.5 + 1.0).sqrt();
    let centred = &x.exp() - x.exp().over([1]).keepdim().mean();
    let columns = (&x + &y).over([0]).sum();
    let constant = p.constant(Tensor::full([300, 400], 0.25f64).unwrap());
    let folded = &x * (constant.sin() + 1.0);
    let t = Tensor::from_vec((0..N).map(|i| i as f32 / 1e4).collect(), [300, 400]).unwrap();
    let row = Tensor::full([400], 0.5f64).unwrap();
    let across = t.reshape([400, 300]).unwrap().transpose(0, 1).unwrap();
    let exes = [true, false].map(|jit| Executor::builder().threads(1).pool(0).jit(jit).build());
    let fetches = [&chain, &centred, &columns, &folded];
    let cx = Eager::new(Rules::Torch);
    let mut all: Vec<Work<'_>> = Vec::new();
    for exe in &exes {
        for (name, t) in [("rows", &t), ("across", &across)] {
            let (p, row) = (&p, &row);
            all.push((name, Box::new(move || exe.run(p, feeds! { "x" => t, "y" => row }, fetches))));
        }
        // A new plan is made, which also computes constants.
        let (p, t, row, folded) = (&p, &t, &row, &folded);
        let fresh =
            move || Executor::builder().threads(1).pool(0).build().run(p, feeds! { "x" => t, "y" => row }, [folded]);
        all.push(("fresh", Box::new(fresh)));
        let into = move || {
            let mut into = [Tensor::zeros(DType::F64, [300, 400])?];
            exe.run_into(p, feeds! { "x" => t, "y" => row }, [folded], &mut into).map(|()| into.to_vec())
        };
        all.push(("into", Box::new(into)));
    }
    all.push(("eager", Box::new(|| Ok(vec![(cx.tensor(&t).exp() * 0.5 + cx.tensor(&row)).sum().result()?]))));
    all.push(("copies", Box::new(|| Ok(vec![across.contiguous()?, Tensor::full([N], 1.5f32)?]))));
    all.push(("values", Box::new(|| across.to_vec::<f32>().and_then(|v| Ok(vec![Tensor::from_vec(v, [N])?])))));
    for (name, work) in &all {
        let right = bytes(&work().unwrap());
        for goes_on in [false, true] {
            let mut errors = 0;
            for n in 0.. {
                REFUSED.set(0);
                GRANTED.set(Some((n, goes_on)));
                let made = work();
                GRANTED.set(None);
                match made {
                    Ok(made) if REFUSED.get() == 0 => {
                        assert!(bytes(&made) == right, "{name}");
                        break;
                    }
                    Err(e) if is_out_of_memory(&e) => errors += 1,
                    other => panic!("{name}, request {n}, going on: {goes_on}: {:?}", other.map(|all| all.len())),
                }
                assert!(bytes(&work().unwrap()) == right, "{name} after request {n} was refused");
            }
            assert!(errors > 0, "{name}");
        }
    }
}

/// Borrowed elements are read in place: no memory of their size is allocated, for any layout.
#[test]
fn borrowed_feeds_are_not_copied() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None, None]);
    let fetches = [x.over([1]).sum(), ((&x * 0.5).tanh() + &x).over([0]).sum(), x.sum()];
    let elements: Vec<f32> = (0..=2 * N).map(|i| i as f32 / 1e4).collect();
    let rows = TensorView::from_slice(&elements[1..=N], [300, 400]).unwrap();
    let wide = TensorView::from_slice(&elements[..2 * N], [300, 800]).unwrap();
    let layouts = [
        ("rows", rows.clone()),
        ("across", rows.reshape([400, 300]).unwrap().transpose(0, 1).unwrap()),
        ("backwards", rows.flip(0).unwrap().flip(1).unwrap()),
        ("every second", wide.slice(1, 0, 800, 2).unwrap()),
        ("a part", wide.slice(1, 7, 407, 1).unwrap()),
        ("one row", rows.slice(0, 3, 4, 1).unwrap().broadcast_to([300, 400]).unwrap()),
    ];
    // No allocation of data succeeds while `work` runs.
    let alone = |work: &dyn Fn() -> castwise::Result<Vec<Tensor>>| {
        GRANTED.set(Some((0, true)));
        let made = work();
        GRANTED.set(None);
        made
    };
    for exe in [true, false].map(|jit| Executor::builder().threads(1).pool(0).jit(jit).build()) {
        for (name, view) in &layouts {
            let copy = view.to_tensor().unwrap();
            let right = bytes(&exe.run(&p, feeds! { "x" => copy }, &fetches).unwrap());
            let run = || exe.run(&p, feeds! { "x" => view }, &fetches);
            // Runs once without the limit, because each thread keeps the scratch memory of its loops.
            assert!(bytes(&run().unwrap()) == right, "{name}");
            assert!(bytes(&alone(&run).unwrap()) == right, "{name}");
        }
        // The test would detect a copy.
        let copied = || exe.run(&p, feeds! { "x" => Tensor::from_slice(&elements[1..=N], [300, 400])? }, &fetches);
        assert!(is_out_of_memory(&alone(&copied).unwrap_err()));
        let fetched = || exe.run(&p, feeds! { "x" => rows }, [&x]);
        assert!(is_out_of_memory(&alone(&fetched).unwrap_err()));
    }
    #[cfg(feature = "ndarray")]
    {
        let exe = Executor::builder().threads(1).pool(0).build();
        let a = ndarray::ArrayView2::from_shape((300, 400), &elements[1..=N]).unwrap();
        let wide = ndarray::ArrayView2::from_shape((300, 800), &elements[..2 * N]).unwrap();
        let run = |a: &ndarray::ArrayView2<'_, f32>| exe.run(&p, feeds! { "x" => a }, &fetches);
        let right = bytes(&run(&a).unwrap());
        assert!(bytes(&alone(&|| run(&a)).unwrap()) == right);
        run(&a.t()).unwrap();
        alone(&|| run(&a.t())).unwrap();
        alone(&|| run(&a.slice(ndarray::s![..;-1, ..;-1]))).unwrap();
        // Arrays with gaps between elements are copied, as documented.
        let gaps = wide.slice(ndarray::s![.., ..400]);
        assert!(is_out_of_memory(&alone(&|| run(&gaps)).unwrap_err()));
    }
}

/// Operands are few, so that typing one more op makes no request: only the lists of all nodes grow, by doubling.
#[test]
fn typing_an_op_allocates_nothing() {
    let requests = |rules, ops: usize| {
        let p = Program::new(rules);
        let (c, x, y) = (p.data("c", DType::Bool, [4]), p.data("x", DType::F16, [4]), p.data("y", DType::F32, [4]));
        let mut t = &x * &y;
        for i in 0..ops {
            t = match i % 5 {
                0 => t.exp(),
                1 => t * 0.5 + &x,
                2 => c.where_(&t, &x),
                3 => t.clamp(-1.0, 1.0),
                _ => t.lt(&y).where_(&y, &t),
            };
        }
        let before = REQUESTS.get();
        let typed = p.infer().unwrap();
        assert!(typed.len() > ops && typed.dtype(&t) == Some(DType::F32));
        REQUESTS.get() - before
    };
    for rules in Rules::ALL.iter().copied() {
        let (few, many) = (requests(rules, 50), requests(rules, 5000));
        assert!(many <= few + 20, "{rules}: {many} requests, not {few}");
    }
}
