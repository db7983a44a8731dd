//! Borrowed elements as feeds have the same results as their copies, in every layout, at every address where a slice
//! may begin, and at unaligned addresses.

use std::sync::Arc;

use castwise::prelude::*;
use castwise::{Complex, Element, Error, Feed, bf16};

use crate::common::{Random, assert_same_bits, random_tensor};

/// Elements in memory that has their alignment and no larger one. Complex elements begin at an odd multiple of their
/// part's size.
struct Odd<T> {
    words: Vec<u64>,
    start: usize,
    elements: Vec<T>,
}

impl<T: Element> Odd<T> {
    fn new(elements: Vec<T>) -> Odd<T> {
        let bytes: &[u8] = bytemuck::cast_slice(&elements);
        let mut words = vec![0u64; bytes.len() / 8 + 5];
        let first = words.as_ptr().addr();
        // The start is an odd multiple of the alignment, for any allocation.
        let unit = align_of::<T>();
        let start = (0..32).find(|at| (first + at) % 32 == unit).unwrap();
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[start..][..bytes.len()].copy_from_slice(bytes);
        Odd { words, start, elements }
    }

    fn slice(&self) -> &[T] {
        let bytes = bytemuck::cast_slice::<u64, u8>(&self.words);
        bytemuck::checked::cast_slice(&bytes[self.start..][..size_of_val(&self.elements[..])])
    }

    fn view(&self, first: usize, shape: &[usize]) -> TensorView<'_> {
        TensorView::from_slice(&self.slice()[first..][..shape.iter().product()], shape).unwrap()
    }
}

/// The same elements at an unaligned address.
struct Unaligned(Vec<u8>);

impl Unaligned {
    fn new<T: Element>(elements: &[T]) -> Unaligned {
        let mut bytes = vec![0];
        bytes.extend_from_slice(bytemuck::cast_slice(elements));
        Unaligned(bytes)
    }

    fn view(&self, d: DType, first: usize, shape: &[usize]) -> TensorView<'_> {
        // Allocations begin at even addresses.
        let bytes = &self.0[1 + first * d.size()..][..shape.iter().product::<usize>() * d.size()];
        assert!(bytes.is_empty() || bytes.as_ptr().addr() % 2 == 1 || d.size() == 1);
        TensorView::from_bytes(d, shape, bytes).unwrap()
    }
}

/// Views of borrowed elements in all layouts. All but the last ones have `rows` by `columns` elements. `from` makes a
/// view with a shape from the elements that begin at an index.
fn views<'a>(
    from: impl Fn(usize, &[usize]) -> TensorView<'a>,
    rows: usize,
    columns: usize,
) -> Vec<(&'static str, TensorView<'a>)> {
    let whole = |shape: &[usize]| from(0, shape);
    let flat = whole(&[rows, columns]);
    let odd = from(1, &[rows, columns]);
    let turned = whole(&[columns, rows]).transpose(0, 1).unwrap();
    let row = from(1, &[columns]).broadcast_to([rows, columns]).unwrap();
    let column = from(1, &[rows, 1]).broadcast_to([rows, columns]).unwrap();
    let wide = whole(&[rows, 2 * columns]);
    vec![
        ("contiguous", flat.clone()),
        ("odd offset", odd.clone()),
        ("transposed", turned.clone()),
        ("reversed", odd.flip(0).unwrap().flip(1).unwrap()),
        ("transposed and reversed", turned.flip(1).unwrap()),
        ("rows repeated", row),
        ("columns repeated", column),
        ("every second", wide.slice(1, 0, 2 * columns, 2).unwrap()),
        ("a part", wide.slice(1, 3, columns + 3, 1).unwrap()),
        ("a part backwards", wide.slice(1, 3, columns + 3, 1).unwrap().flip(1).unwrap()),
        ("one repeated", from(1, &[]).broadcast_to([rows, columns]).unwrap()),
        ("0-d", from(1, &[])),
        ("no rows", from(0, &[0, columns])),
        ("no columns", odd.slice(1, 1, 1, 1).unwrap()),
        ("one element", odd.slice(0, 1, 2, 1).unwrap().slice(1, 2, 3, 1).unwrap()),
    ]
}

/// Steps that are compiled or not, and that read operands of one dtype as numbers or as bits.
fn fetches(x: &Var, y: &Var, d: DType) -> Vec<Var> {
    let bits = [DType::U8, DType::I16, DType::I32, DType::I64].into_iter().find(|b| b.size() == d.size());
    let mut all = vec![
        x.clone(),
        x.ne(y),
        x.ne(y).where_(x, y),
        x.cast(DType::F32),
        x.cast(DType::C128),
        y.cast(DType::Bool).any(),
    ];
    if let Some(bits) = bits {
        all.push(x.view_as(bits) ^ y.view_as(bits));
    }
    if d != DType::Bool {
        all.extend([x * y + x, -x, summed(x, d).sum()]);
    }
    all
}

/// The operand if it can be summed. c32 can't.
fn summed(x: &Var, d: DType) -> Var {
    x.cast(if d == DType::C32 { DType::C64 } else { d })
}

#[test]
fn borrowed_elements_give_the_results_of_their_copies() {
    fn check<T: Element>(shapes: &[(usize, usize)]) {
        let d = T::DTYPE;
        let exes = [(true, 1), (false, 1), (true, 3)]
            .map(|(jit, threads)| Executor::builder().jit(jit).threads(threads).build());
        for &(rows, columns) in shapes {
            let mut r = Random(d as u64 + rows as u64);
            let make = |r: &mut Random| {
                let t = random_tensor(d, &[2 * rows * columns + 1], r, false);
                Odd::new(t.to_vec::<T>().unwrap())
            };
            let (a, b) = (make(&mut r), make(&mut r));
            let (xs, ys) = (views(|i, s| a.view(i, s), rows, columns), views(|i, s| b.view(i, s), rows, columns));
            let bytes = [&a, &b].map(|odd| Unaligned::new(&odd.elements));
            let [us, vs] = bytes.each_ref().map(|bytes| views(|i, s| bytes.view(d, i, s), rows, columns));
            for (i, (name, x)) in xs.iter().enumerate() {
                let other = (i + 4..).map(|k| k % ys.len()).find(|k| ys[*k].1.shape() == x.shape()).unwrap();
                let (y, [xu, yu]) = (&ys[other].1, [&us[i].1, &vs[other].1]);
                let p = Program::new(Rules::Torch);
                let (u, v) = (p.data("x", d, x.shape()), p.data("y", d, y.shape()));
                let mut all = fetches(&u, &v, d);
                if d != DType::Bool && x.rank() == 2 {
                    all.extend([
                        summed(&u, d).over([1]).sum(),
                        summed(&(&u + &v), d).over([0]).keepdim().sum().cast(d) + &u,
                    ]);
                }
                let (cx, cy) = (x.to_tensor().unwrap(), y.to_tensor().unwrap());
                assert_same_bits(&xu.to_tensor().unwrap(), &cx, &|| format!("a copy of {d}, {name}"));
                assert!(cx.is_contiguous() && cx.as_bytes().unwrap().as_ptr().addr() % 64 == 0);
                let want = exes[0].run(&p, feeds! { "x" => cx, "y" => cy }, &all).unwrap();
                for exe in &exes {
                    let prepared = exe.prepare(&p, &all).unwrap();
                    // In the second run the layouts are cached.
                    for got in [
                        exe.run(&p, feeds! { "x" => x, "y" => y }, &all),
                        exe.run(&p, feeds! { "x" => x, "y" => y }, &all),
                        exe.run(&p, feeds! { "x" => cx, "y" => y }, &all),
                        exe.run(&p, feeds! { "x" => xu, "y" => yu }, &all),
                        prepared.run_views(&[x.clone(), y.clone()]),
                        prepared.run_views(&[xu.clone(), y.clone()]),
                        prepared.run_views(&[x.clone(), yu.clone()]),
                    ] {
                        for (k, (got, want)) in got.unwrap().iter().zip(&want).enumerate() {
                            let case = || format!("result {k} of {d}, {name} of {rows} by {columns}");
                            assert_same_bits(got, want, &case);
                        }
                    }
                }
            }
        }
    }
    let (few, all) = (&[(19, 70)][..], &[(3, 5), (19, 70), (2, 600)][..]);
    check::<bool>(all);
    check::<u8>(few);
    check::<u16>(few);
    check::<u32>(few);
    check::<u64>(few);
    check::<i16>(few);
    check::<i64>(few);
    check::<f16>(all);
    check::<bf16>(few);
    check::<f32>(all);
    check::<f64>(few);
    check::<Complex<f16>>(all);
    check::<Complex<f32>>(all);
    check::<Complex<f64>>(all);
}

/// All types of feeds: tensors and borrowed elements, by value and by reference.
#[test]
fn feeds_are_tensors_views_slices_vectors_and_arrays() {
    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", DType::F32, [None]), p.data("y", DType::F32, [None]));
    let (sum, exe) = (&x + &y, Executor::new());
    let t = Tensor::from([1.0f32, 2.0]);
    let (vector, array) = (vec![10.0f32, 20.0], [10.0f32, 20.0]);
    let (slice, view) = (&vector[..], TensorView::from(&t));
    let (arc, boxed) = (Arc::new(t.clone()), Box::new(t.clone()));
    let many = [&t];
    let runs = [
        feeds! { "x" => t, "y" => &vector },
        feeds! { "x" => &t, "y" => &&vector },
        feeds! { "x" => &&t, "y" => &vector[..] },
        feeds! { "x" => arc, "y" => slice },
        feeds! { "x" => boxed, "y" => &slice },
        feeds! { "x" => &arc, "y" => &array },
        feeds! { "x" => view, "y" => &[10.0f32, 20.0] },
        feeds! { "x" => &view, "y" => many[0] },
        Feeds::from([("x", Feed::from(&t)), ("y", Feed::from(slice))]),
        Feeds::from(vec![("x", &vector), ("y", &vector)]),
    ];
    let results = runs.map(|feeds| exe.run(&p, feeds, [&sum]).unwrap()[0].to_vec::<f32>().unwrap());
    assert!(results[..7].iter().all(|r| *r == [11.0, 22.0]), "{results:?}");
    assert_eq!(results[7..], [[2.0, 4.0], [11.0, 22.0], [20.0, 40.0]]);
    // A view with another dtype, rank or extent gives the same error as a tensor.
    let wrong = |feeds: Feeds<'_>| exe.run(&p, feeds, [&sum]).unwrap_err().to_string();
    assert!(wrong(feeds! { "x" => t, "y" => &[1.0f64, 2.0] }).contains("feed `y`: is f64[2]"));
    let table = TensorView::from_slice(slice, [2, 1]).unwrap();
    assert!(wrong(feeds! { "x" => t, "y" => table }).contains("feed `y`: is f32[2, 1]"));
    assert!(wrong(feeds! { "x" => t, "y" => &[1.0f32; 3] }).contains("cannot broadcast"));
}

#[test]
fn a_borrowed_feed_can_be_a_result_twice_and_under_another_shape() {
    let p = Program::new(Rules::Paddle);
    let (x, y) = (p.data("x", DType::I32, [None]), p.data("y", DType::I32, [None, None]));
    // Paddle's axis broadcasts `x` as a column.
    let sum = y.at_axis(0).add(&x);
    let numbers: Vec<i32> = (0..7).collect();
    let (column, table) =
        (TensorView::from_slice(&numbers[..3], [3]).unwrap(), TensorView::from_slice(&numbers[1..], [3, 2]).unwrap());
    for exe in [true, false].map(|jit| Executor::builder().jit(jit).build()) {
        let feeds = feeds! { "x" => column.flip(0).unwrap(), "y" => table };
        let mut out = exe.run(&p, feeds, [&x, &sum, &x, &y]).unwrap();
        let got: Vec<Vec<i32>> = out.iter().map(|t| t.to_vec().unwrap()).collect();
        assert_eq!(got, [vec![2, 1, 0], vec![3, 4, 4, 5, 5, 6], vec![2, 1, 0], vec![1, 2, 3, 4, 5, 6]]);
        // Results outlive the borrowed elements, and can be written to.
        let mut into = [out.remove(0)];
        exe.run_into(&p, feeds! { "x" => &numbers[..3], "y" => table }, [&x], &mut into).unwrap();
        assert_eq!(into[0].to_vec::<i32>().unwrap(), [0, 1, 2]);
        assert_eq!(out[1].to_vec::<i32>().unwrap(), [2, 1, 0]);
    }
    // The same elements are used twice in one run.
    let q = Program::new(Rules::Torch);
    let (a, b) = (q.data("a", DType::I32, [None]), q.data("b", DType::I32, [None]));
    let back = TensorView::from(&Tensor::from([1i32, 2, 3])).flip(0).unwrap().to_tensor().unwrap();
    let out =
        Executor::new().run(&q, feeds! { "a" => &numbers[1..4], "b" => &numbers[1..4] }, [&(&a * &b), &(&b - &a)]);
    assert_eq!(out.unwrap()[0].to_vec::<i32>().unwrap(), [1, 4, 9]);
    let out = Executor::new().run(&q, feeds! { "a" => &numbers[1..4], "b" => back }, [&(&a * &b)]).unwrap();
    assert_eq!(out[0].to_vec::<i32>().unwrap(), [3, 4, 3]);
    // The memory of a result's copy is counted.
    let exe = Executor::builder().max_bytes(11).build();
    let limited = exe.run(&q, feeds! { "a" => &numbers[..3], "b" => &numbers[..3] }, [&a]);
    assert!(matches!(limited, Err(Error::Limit { max: 11, got: 12, .. })));
}

/// A field of records, on one thread and on several, with results in the caller's memory, and fetched unchanged.
#[test]
fn bytes_that_begin_anywhere_are_read() {
    let n = 1 << 18;
    // Each record has a u8, an f32 and three more bytes.
    let records: Vec<u8> = (0..n).flat_map(|i| [&[7][..], &(i as f32).to_ne_bytes(), &[8, 9, 10]].concat()).collect();
    let numbers = TensorView::from_bytes(DType::F32, [2 * n - 1], &records[1..records.len() - 3]).unwrap();
    let numbers = numbers.slice(0, 0, 2 * n - 1, 2).unwrap();
    let right: Vec<f32> = (0..n).map(|i| i as f32 * 0.5 + 1.0).collect();
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    let (y, least) = (&x * 0.5 + 1.0, x.amin());
    for (threads, jit) in [(1, true), (3, true), (3, false)] {
        let step = Executor::builder().threads(threads).jit(jit).build().prepare(&p, [&y, &least, &x]).unwrap();
        let mut out = [(); 3].map(|()| Tensor::zeros(DType::F32, [n]).unwrap());
        out[1] = Tensor::scalar(-1.0f32);
        for x in [&numbers, &numbers.flip(0).unwrap().flip(0).unwrap()] {
            step.run_views_into(std::slice::from_ref(x), &mut out).unwrap();
            assert!(out[0].to_vec::<f32>().unwrap() == right);
            assert_eq!(out[1].item::<f32>().unwrap(), 0.0);
            assert_eq!(out[2].to_vec::<f32>().unwrap()[n - 1], (n - 1) as f32);
        }
    }
    let wrong = |bytes: &[u8]| TensorView::from_bytes(DType::Bool, [3], bytes).unwrap_err().to_string();
    assert_eq!(wrong(&[1, 0, 2]), "byte 2 of a bool tensor is 2, neither 0 nor 1");
    assert_eq!(wrong(&[1, 0]), "2 bytes for bool[3], which has 3");
}

#[test]
fn prepared_programs_take_views_and_tensors_in_turn() {
    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", DType::F32, [None]), p.data("y", DType::F32, [None]));
    let step = Executor::builder().threads(1).build().prepare(&p, [&(&x * 2.0 + &y)]).unwrap();
    let (t, elements) = (Tensor::from([1.0f32, 2.0]), [1.0f32, 2.0, 4.0, 8.0]);
    let view = |at: usize| TensorView::from_slice(&elements[at..at + 2], [2]).unwrap();
    let first = |made: castwise::Result<Vec<Tensor>>| made.unwrap()[0].to_vec::<f32>().unwrap();
    let mut into = [Tensor::zeros(DType::F32, [2]).unwrap()];
    let address = into[0].as_bytes().unwrap().as_ptr();
    for _ in 0..2 {
        assert_eq!(first(step.run(&[&t, &t])), [3.0, 6.0]);
        assert_eq!(first(step.run_views(&[view(1), view(0)])), [5.0, 10.0]);
        assert_eq!(first(step.run_views(&[TensorView::from(&t), view(2).flip(0).unwrap()])), [10.0, 8.0]);
        step.run_views_into(&[view(2), view(1)], &mut into).unwrap();
        assert_eq!(
            (into[0].to_vec::<f32>().unwrap(), into[0].as_bytes().unwrap().as_ptr()),
            (vec![10.0, 20.0], address)
        );
    }
    assert!(step.run_views(&[view(0)]).unwrap_err().to_string().contains("1 tensors for 2"));
}
