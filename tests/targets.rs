//! Results that are written to borrowed memory: in every layout and at every address, beside and over feeds; what errors
//! leave; and the owners of results.

#![allow(unsafe_code, reason = "views of memory at addresses; each block has its proof")]

use castwise::prelude::*;
use castwise::{AsTarget, CancelToken, Complex, Element, Error, TensorLayout};

use crate::common::{Random, assert_same_bits, random_tensor};

const DTYPES: [DType; 8] =
    [DType::Bool, DType::U8, DType::I16, DType::BF16, DType::F32, DType::I64, DType::C64, DType::C128];

/// Shapes and strides of 3 by 4 elements, and the index of the first one in memory of `ROOM` elements.
const LAYOUTS: [([isize; 2], usize); 7] =
    [([4, 1], 0), ([4, 1], 1), ([1, 3], 0), ([-4, -1], 11), ([8, 2], 1), ([-1, 5], 2), ([13, -3], 9)];
const ROOM: usize = 40;

fn program(dtype: DType) -> (Program, Var) {
    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", dtype, [None, None]), p.data("y", dtype, [None, None]));
    let sum = &x + &y;
    (p, sum)
}

#[test]
fn every_layout_and_address_is_written_and_nothing_beside() {
    let mut random = Random(31);
    for dtype in DTYPES {
        let (p, sum) = program(dtype);
        let step = Executor::new().prepare(&p, [&sum]).unwrap();
        let [x, y] = [(); 2].map(|()| random_tensor(dtype, &[3, 4], &mut random, false));
        let want = step.run(&[&x, &y]).unwrap().remove(0);
        let size = dtype.size();
        for ((strides, first), shift) in LAYOUTS.iter().flat_map(|l| [0, 1].map(|shift| (l, shift))) {
            let layout = TensorLayout::new(dtype, [3, 4], strides).unwrap();
            let mut memory = vec![0xA5u8; ROOM * size + 1];
            let at = memory.as_mut_ptr().wrapping_add(shift + first * size);
            // SAFETY: the layout stays in the memory, which has no other use before the view's last one.
            let mut view = unsafe { layout.over_mut(at) }.unwrap();
            for _ in 0..2 {
                step.run_views_into(&[(&x).into(), (&y).into()], std::slice::from_mut(&mut view)).unwrap();
            }
            let mut expected = vec![0xA5u8; ROOM * size + 1];
            for (i, element) in want.as_bytes().unwrap().chunks_exact(size).enumerate() {
                let index = *first as isize + (i / 4) as isize * strides[0] + (i % 4) as isize * strides[1];
                expected[shift + index as usize * size..][..size].copy_from_slice(element);
            }
            assert!(memory == expected, "{dtype} {strides:?} {first} {shift}");
            // What was written reads back, from the same layout.
            // SAFETY: as above; the elements are results, so that bools are 0 or 1.
            let back = unsafe { layout.over(memory.as_ptr().wrapping_add(shift + first * size)) }.unwrap();
            assert_same_bits(&back.to_tensor().unwrap(), &want, &|| format!("{dtype} {strides:?}"));
        }
    }
}

/// What begins between two cache lines is computed in two calls: on one thread and on two, in runs that can be stopped, and in rows.
#[test]
fn long_results_between_cache_lines_are_those_at_the_beginning_of_one() {
    let (rows, columns, mut random) = (5, 9001, Random(32));
    let executors = [1, 2].map(|n| Executor::builder().threads(n).build());
    for dtype in DTYPES {
        let (p, sum) = program(dtype);
        let (size, n) = (dtype.size(), rows * columns);
        let x = random_tensor(dtype, &[rows, columns], &mut random, false);
        // One row, so that all is one loop, or a row that each other row is added to.
        for y in [[rows, columns], [1, columns]].map(|shape| random_tensor(dtype, &shape, &mut random, false)) {
            let feeds = [(&x).into(), (&y).into()];
            let want = Executor::new().prepare(&p, [&sum]).unwrap().run(&[&x, &y]).unwrap().remove(0);
            for (exe, first, stopped) in
                executors.iter().flat_map(|e| [0, 1, 3, 7].map(|f| [(e, f, false), (e, f, true)])).flatten()
            {
                let (step, token) = (exe.prepare(&p, [&sum]).unwrap(), CancelToken::new());
                let mut memory = vec![0xA5u8; (n + 2 * first) * size];
                let mut view =
                    TensorViewMut::from_bytes(dtype, [rows, columns], &mut memory[first * size..][..n * size]).unwrap();
                let into = std::slice::from_mut(&mut view);
                match stopped {
                    true => step.run_views_into_with(&feeds, into, &token).unwrap(),
                    false => step.run_views_into(&feeds, into).unwrap(),
                }
                let (before, rest) = memory.split_at(first * size);
                let (made, after) = rest.split_at(n * size);
                assert!(made == want.as_bytes().unwrap(), "{dtype} {:?} {first} {stopped}", y.shape());
                assert!(before.iter().chain(after).all(|b| *b == 0xA5), "{dtype} {first}");
            }
        }
    }
}

/// A run with the feed at one place of memory and the result at another, of all distances, on one thread and on several, with
/// one kernel and with two: it gives what it gives for a copy of the feed.
#[test]
fn feeds_in_the_memory_of_results_are_read_first() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    let (y, scaled) = (&x * 2.0 + 1.0, &x / (x.sum() + 1.0));
    for (n, threads) in [(5usize, 1), (40_000, 1), (300_000, 3)] {
        let exe = Executor::builder().threads(threads).build();
        for fetch in [&y, &scaled, &x] {
            let step = exe.prepare(&p, [fetch]).unwrap();
            let all: Vec<f32> = (0..2 * n).map(|i| (i % 1000) as f32).collect();
            for (from, to, strides) in [
                (0, 0, [1, 1]),
                (0, 1, [1, 1]),
                (1, 0, [1, 1]),
                (0, n, [1, 1]),
                (0, 0, [2, 1]),
                (0, 0, [1, 2]),
                (0, 1, [2, 2]),
                (n - 1, 0, [-1, 1]),
                (0, n - 1, [1, -1]),
            ] {
                let element = |i: usize| all[(from as isize + i as isize * strides[0]) as usize];
                let copy: Vec<f32> = (0..n).map(element).collect();
                let want = step.run_views(&[TensorView::from_slice(&copy, [n]).unwrap()]).unwrap().remove(0);
                let mut expected = all.clone();
                for (i, v) in want.to_vec::<f32>().unwrap().into_iter().enumerate() {
                    expected[(to as isize + i as isize * strides[1]) as usize] = v;
                }
                let mut memory = all.clone();
                let start: *mut f32 = memory.as_mut_ptr();
                // SAFETY: both stay in the vector, whose elements nothing else uses before their last use.
                let (feed, target) = unsafe {
                    let feed = TensorView::from_raw_parts(DType::F32, start.add(from).cast(), [n], &strides[..1]);
                    let target = TensorViewMut::from_raw_parts(DType::F32, start.add(to).cast(), [n], &strides[1..]);
                    (feed.unwrap(), target.unwrap())
                };
                step.run_views_into(&[feed], &mut [target]).unwrap();
                assert!(memory == expected, "{n} elements from {from} to {to} by {strides:?}");
            }
        }
    }
}

/// Fetches, the shapes of their feeds, in program order, and for each fetch the feed that its target is over.
type InPlace = (Program, Vec<Var>, Vec<Vec<usize>>, Vec<Option<usize>>);

/// Programs of which results go to the memory of feeds: in kernels that may write there, and in all ways that may not.
fn in_place_programs(dtype: DType, rows: usize, n: usize) -> Vec<InPlace> {
    let whole = || vec![rows, n];
    let program = |shapes: &[Vec<usize>]| {
        let p = Program::new(Rules::Torch);
        let feed = |(i, shape): (usize, &Vec<usize>)| p.data(&format!("x{i}"), dtype, vec![None; shape.len()]);
        let feeds: Vec<Var> = shapes.iter().enumerate().map(feed).collect();
        (p, feeds)
    };
    let mut all = Vec::new();
    let mut add = |shapes: Vec<Vec<usize>>, over: &[Option<usize>], make: &dyn Fn(&[Var]) -> Vec<Var>| {
        let (p, feeds) = program(&shapes);
        all.push((p, make(&feeds), shapes, over.to_vec()));
    };
    let one = [Some(0)];
    add(vec![whole()], &one, &|x| vec![&x[0] * &x[0] + &x[0]]);
    for other in [vec![n], vec![rows, 1], vec![], vec![rows, n], vec![1]] {
        add(vec![whole(), other.clone()], &one, &|x| vec![&x[0] + &x[1]]);
        add(vec![other, whole()], &[Some(1)], &|x| vec![&x[0] * &x[1] - &x[0]]);
    }
    add(vec![whole(), vec![n, rows]], &one, &|x| vec![&x[0] + x[1].transpose(0, 1)]);
    add(vec![whole()], &one, &|x| vec![x[0].flip([1]) + &x[0]]);
    add(vec![whole()], &one, &|x| vec![x[0].unsqueeze(0).squeeze(0) * &x[0]]);
    add(vec![whole()], &one, &|x| vec![&x[0] + x[0].sum().cast(dtype)]);
    add(vec![whole()], &one, &|x| vec![x[0].eq(&x[0]).cast(dtype)]);
    add(vec![whole()], &[None, Some(0)], &|x| vec![x[0].clone(), &x[0] + &x[0]]);
    add(vec![whole()], &[None, Some(0)], &|x| vec![x[0].slice(0, 0, 1, 1), &x[0] + &x[0]]);
    add(vec![whole()], &[Some(0), None], &|x| vec![&x[0] + &x[0], &x[0] * &x[0]]);
    add(vec![whole()], &[None, Some(0)], &|x| vec![&x[0] + &x[0], &x[0] * &x[0]]);
    // Steps of an optimizer: three feeds, each over a result.
    add(vec![whole(); 4], &[Some(0), Some(1), Some(2)], &|x| {
        let (m, v) = (&x[1] * &x[3] + &x[1], &x[2] + &x[3] * &x[3]);
        vec![&x[0] - &m * &v, m, v]
    });
    // Crossed: the first result is stored before the feed in its memory is read.
    add(vec![whole(); 2], &[Some(1), Some(0)], &|x| vec![&x[0] + &x[0], &x[1] * &x[1] + &x[0]]);
    // More feeds than registers, all of them read for every result.
    let feeds = 40;
    add(vec![whole(); feeds], &(0..feeds).map(Some).collect::<Vec<_>>(), &|x| {
        let sum = |i: usize| (1..x.len()).fold(x[i].clone(), |sum, j| sum + &x[(i + j) % x.len()] * &x[i]);
        (0..x.len()).map(sum).collect()
    });
    all
}

#[test]
fn results_over_feeds_are_those_beside_them() {
    let mut random = Random(55);
    for dtype in [DType::F32, DType::BF16, DType::I64, DType::U8, DType::C128] {
        for (rows, n, threads) in [(3, 37, 1), (1, 5, 1), (40, 1000, 3), (0, 4, 1)] {
            for (at, (p, fetches, shapes, over)) in in_place_programs(dtype, rows, n).into_iter().enumerate() {
                let step = Executor::builder().threads(threads).build().prepare(&p, &fetches);
                let step = step.unwrap();
                let feeds: Vec<Tensor> = shapes.iter().map(|s| random_tensor(dtype, s, &mut random, false)).collect();
                let want = step.run(&feeds.iter().collect::<Vec<_>>()).unwrap();
                // As the first call, and as one whose launches are known.
                for _ in 0..2 {
                    let bytes = |t: &Tensor| t.as_bytes().unwrap().to_vec();
                    let mut memory: Vec<Vec<u8>> = feeds.iter().map(bytes).collect();
                    let mut apart: Vec<Vec<u8>> = want.iter().map(|t| vec![0; bytes(t).len()]).collect();
                    let pointers: Vec<*mut u8> = memory.iter_mut().map(|m| m.as_mut_ptr()).collect();
                    // SAFETY: each is of a vector that lives longer, and that nothing else uses until the run has ended.
                    let views: Vec<TensorView<'_>> = unsafe {
                        let layout = |i: usize| TensorLayout::contiguous(dtype, &shapes[i]).unwrap();
                        (0..shapes.len()).map(|i| layout(i).over(pointers[i]).unwrap()).collect()
                    };
                    let targets = want.iter().zip(&over).zip(&mut apart);
                    let mut targets: Vec<TensorViewMut<'_>> = targets
                        .map(|((t, over), apart)| {
                            let first = over.map_or(apart.as_mut_ptr(), |i| pointers[i]);
                            // SAFETY: as above; no two targets are in the same vector.
                            unsafe { TensorLayout::contiguous(t.dtype(), t.shape()).unwrap().over_mut(first) }.unwrap()
                        })
                        .collect();
                    step.run_views_into(&views, &mut targets).unwrap();
                    drop((views, targets));
                    for (i, (t, over)) in want.iter().zip(&over).enumerate() {
                        let made = over.map_or(&apart[i], |i| &memory[i]);
                        assert!(*made == bytes(t), "{dtype} program {at} result {i} of {rows} by {n}\n{p}");
                    }
                }
            }
        }
    }
}

/// A run that may hold fewer bytes than a result has: it writes to the caller's memory, where the feed is.
#[test]
fn a_result_over_a_feed_takes_no_memory() {
    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", DType::F32, [None, None]), p.data("y", DType::F32, [None]));
    let (sum, flipped) = (&x * 0.5 + &y, x.flip([0]) + &y);
    let (rows, n) = (64, 100);
    for threads in [1, 2] {
        let exe = Executor::builder().threads(threads).max_bytes(rows * n).build();
        for (fetch, fits) in [(&sum, true), (&flipped, false)] {
            let step = exe.prepare(&p, [fetch]).unwrap();
            let (mut memory, bias) = (vec![1.0f32; rows * n], vec![2.0f32; n]);
            let first: *mut f32 = memory.as_mut_ptr();
            for (call, want) in [2.5, 3.25].into_iter().enumerate() {
                // SAFETY: both are of the vector, which nothing else uses before their last use.
                let (feed, target) = unsafe {
                    let layout = TensorLayout::contiguous(DType::F32, [rows, n]).unwrap();
                    (layout.over(first.cast()).unwrap(), layout.over_mut(first.cast()).unwrap())
                };
                let made = step.run_views_into(&[feed, TensorView::from_slice(&bias, [n]).unwrap()], &mut [target]);
                match made {
                    Ok(()) => assert!(fits && memory.iter().all(|v| *v == want), "{threads} threads, call {call}"),
                    Err(Error::Limit { .. }) => assert!(!fits, "{threads} threads, call {call}"),
                    Err(e) => panic!("{e}"),
                }
            }
        }
    }
}

#[test]
fn results_between_each_other_are_apart() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::I32, [None]);
    let step = Executor::new().prepare(&p, [&(&x + 1), &(&x * 10)]).unwrap();
    let mut memory = [7i32; 9];
    let start: *mut i32 = memory.as_mut_ptr();
    let mut into = [1, 0].map(|i| {
        let first = start.wrapping_add(i).cast();
        // SAFETY: the elements of the two are different ones of the array, which nothing else uses before their last use.
        unsafe { TensorViewMut::from_raw_parts(DType::I32, first, [4], &[2]) }.unwrap()
    });
    step.run_views_into(&[TensorView::from_slice(&[1, 2, 3, 4], [4]).unwrap()], &mut into).unwrap();
    assert_eq!(memory, [10, 2, 20, 3, 30, 4, 40, 5, 7]);
}

#[test]
fn targets_are_converted_and_refused_as_tensors_are() {
    let (p, y) = {
        let p = Program::new(Rules::Torch);
        let y = p.data("x", DType::F32, [None]) + 0.5;
        (p, y)
    };
    let x = Tensor::from([1.0f32, 70000.0]);
    let step = Executor::new().prepare(&p, [&y]).unwrap();
    let mut half = [f16::ZERO; 2];
    step.run_into(&[&x], &mut [TensorViewMut::from_slice(&mut half, [2]).unwrap()]).unwrap();
    assert_eq!(half, [f16::from_f32(1.5), f16::INFINITY]);
    let mut int = [3i32; 2];
    let wrong = step.run_into(&[&x], &mut [TensorViewMut::from_slice(&mut int, [2]).unwrap()]);
    assert!(matches!(wrong, Err(Error::DType { expected: DType::F32, found: DType::I32 })));
    let mut long = [3.0f32; 3];
    let wrong = step.run_into(&[&x], &mut [TensorViewMut::from_slice(&mut long, [3]).unwrap()]).unwrap_err();
    assert_eq!(wrong.to_string(), "tensor 0 is [3], result 0 is [2]");
    let mut none: [f32; 0] = [];
    let mut empty = TensorViewMut::from_slice(&mut none, [0]).unwrap();
    step.run_into(&[&Tensor::zeros(DType::F32, [0]).unwrap()], std::slice::from_mut(&mut empty)).unwrap();
    assert_eq!(format!("{empty:?}"), "mutable view of f32[0]");
    assert_eq!(format!("{:?}", empty.as_target()), "target of f32[0]");
    let mut made = [None];
    assert_eq!(format!("{:?}", made[0].as_target()), "target of any result");
    for _ in 0..2 {
        step.run_into(&[&x], &mut made).unwrap();
        assert_eq!(made[0].as_ref().unwrap().to_vec::<f32>().unwrap(), [1.5, 70000.5]);
    }
    assert_eq!((int, long), ([3; 2], [3.0; 3]));
}

#[test]
fn what_the_run_does_not_write_itself_is_unchanged_after_an_error() {
    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", DType::I32, [None]), p.data("y", DType::I32, [None]));
    let step = Executor::new().prepare(&p, [&(&x + 1), &x.floor_divide(&y)]).unwrap();
    let (feeds, zero) = (Tensor::from([1i32, 2, 3]), Tensor::from([1i32, 0, 3]));
    let (mut strided, mut wide) = ([9i32; 6], [9i64; 3]);
    for token in [None, Some(CancelToken::new())] {
        let mut into = [
            TensorViewMut::from_slice_strided(&mut strided, [3], &[2], 1).unwrap(),
            TensorViewMut::from_slice(&mut wide, [3]).unwrap(),
        ];
        let made = match &token {
            None => step.run_into(&[&feeds, &zero], &mut into),
            Some(token) => {
                token.cancel();
                step.run_into_with(&[&feeds, &feeds], &mut into, token)
            }
        };
        assert!(matches!(made, Err(Error::DivisionByZero { .. } | Error::Cancelled)), "{made:?}");
        assert_eq!((strided, wide), ([9; 6], [9; 3]));
    }
    let mut into = [Tensor::zeros(DType::I32, [3]).unwrap(), Tensor::zeros(DType::I32, [3]).unwrap()];
    let token = CancelToken::new();
    let views = [TensorView::from(&feeds), TensorView::from(&feeds)];
    assert_eq!(step.run_views_with(&views, &token).unwrap()[1].to_vec::<i32>().unwrap(), [1; 3]);
    step.run_views_into_with(&views, &mut into, &token).unwrap();
    assert_eq!(into[0].to_vec::<i32>().unwrap(), [2, 3, 4]);
    token.cancel();
    assert!(matches!(step.run_views_with(&views, &token), Err(Error::Cancelled)));
    assert!(matches!(step.run_views_into_with(&views, &mut into, &token), Err(Error::Cancelled)));
}

#[test]
fn layouts_of_slices_are_checked() {
    let mut data = [0u8; 6];
    let mut refused = |shape: &[usize], strides: &[isize], offset: usize| {
        TensorViewMut::from_slice_strided(&mut data, shape, strides, offset).unwrap_err().to_string()
    };
    assert_eq!(refused(&[2, 3], &[0, 1], 0), "elements of u8[2, 3] with strides [0, 1] may overlap");
    assert_eq!(refused(&[4], &[2], 0), "[4] with strides [2] from element 0 leaves the slice of 6");
    assert_eq!(refused(&[2], &[-3], 2), "[2] with strides [-3] from element 2 leaves the slice of 6");
    assert!(TensorViewMut::from_slice_strided(&mut data, [0, 2], &[9, 9], 99).is_ok());
    assert!(TensorViewMut::from_slice(&mut data, [7]).is_err());
    let wrong = TensorViewMut::from_bytes(DType::F32, [2], &mut data).unwrap_err().to_string();
    assert_eq!(wrong, "6 bytes for f32[2], which has 8");
    let view = TensorViewMut::from_bytes(DType::I16, [3], &mut data).unwrap();
    assert_eq!((view.dtype(), view.shape(), view.strides()), (DType::I16, &[3][..], &[1][..]));
}

fn owned<T: Element>(mut t: Tensor, n: usize) {
    let address = t.as_bytes().unwrap().as_ptr();
    assert_eq!(t.as_mut_slice::<T>().unwrap().len(), n);
    assert_eq!(t.as_mut_ptr().unwrap().cast_const(), address);
    assert_eq!(t.as_mut_bytes().is_some(), t.dtype() != DType::Bool);
    // It can be moved to another owner, and the address is the same.
    let moved = Box::new(t);
    assert_eq!(moved.as_bytes().unwrap().as_ptr(), address);
}

#[test]
fn results_are_unshared_and_writable() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    let fetches = [&(&x * 2.0), &x.gt(0.0), &x.sum(), &x.cast(DType::C128), &x];
    for (n, feed) in [(3usize, Tensor::from([1.0f32, -2.0, 3.0])), (70_000, Tensor::full([70_000], 1.0f32).unwrap())] {
        let exe = Executor::new();
        for _ in 0..2 {
            let mut out = exe.run(&p, feeds! { "x" => &feed }, fetches).unwrap();
            // A fetched feed is the feed.
            let mut same = out.pop().unwrap();
            assert!(
                same.as_mut_bytes().is_none() && same.as_mut_ptr().is_none() && same.as_mut_slice::<f32>().is_none()
            );
            owned::<Complex<f64>>(out.pop().unwrap(), n);
            owned::<f32>(out.pop().unwrap(), 1);
            owned::<bool>(out.pop().unwrap(), n);
            owned::<f32>(out.pop().unwrap(), n);
            // The copy of a borrowed feed is not.
            let values = feed.as_slice::<f32>().unwrap();
            let out = exe.run(&p, feeds! { "x" => values }, [&x]).unwrap().remove(0);
            assert_ne!(out.as_bytes().unwrap().as_ptr(), values.as_ptr().cast());
            owned::<f32>(out, n);
        }
        let e = Eager::new(Rules::Torch).tensor(&feed);
        // As a result, when its value is gone.
        let made = {
            let value = &e + 1.0;
            value.result().unwrap()
        };
        owned::<f32>(made, n);
    }
    let mut t = Tensor::from([[1u8, 2], [3, 4]]);
    assert!(t.as_mut_slice::<i8>().is_none());
    // Part of a tensor, when it is the only one left.
    let mut row = t.slice(0, 1, 2, 1).unwrap();
    assert!(row.as_mut_bytes().is_none() && t.as_mut_bytes().is_none());
    drop(t);
    row.as_mut_bytes().unwrap().copy_from_slice(&[8, 9]);
    assert_eq!(row.to_vec::<u8>().unwrap(), [8, 9]);
    assert!(row.broadcast_to([2, 2]).unwrap().as_mut_bytes().is_none());
}
