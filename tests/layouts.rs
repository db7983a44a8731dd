//! Strided operands: transposed, permuted, flipped and sliced views give the same results as contiguous copies.

use castwise::Error;
use castwise::prelude::*;

/// Views of one shape over memory with other dim orders.
fn views(shape: &[usize], dtype: DType) -> Vec<Tensor> {
    let n: usize = shape.iter().product();
    let values = Tensor::from_vec((0..n as i64).map(|i| i * 7919 % 113 - 20).collect(), shape).unwrap();
    let cast = Eager::new(Rules::Torch).tensor(&values).cast(dtype).result().unwrap();
    let mut all = vec![cast.clone()];
    let rank = shape.len();
    for a in 0..rank {
        all.push(cast.flip(a).unwrap());
        for b in a + 1..rank {
            // The same elements, stored with two dims swapped.
            let swapped = cast.transpose(a, b).unwrap().contiguous().unwrap().transpose(a, b).unwrap();
            all.push(swapped.flip(b).unwrap());
            all.push(swapped);
        }
    }
    all
}

#[test]
fn views_across_give_the_results_of_their_copies() {
    for shape in
        [vec![70, 130], vec![130, 70], vec![17, 600], vec![600, 65], vec![3, 40, 200], vec![200, 3, 70], vec![16, 64]]
    {
        for dtype in [DType::U8, DType::F16, DType::F32, DType::I64, DType::C64, DType::C128] {
            let all = views(&shape, dtype);
            for (i, a) in all.iter().enumerate() {
                let b = &all[(i + 2) % all.len()];
                let p = Program::new(Rules::Torch);
                let (x, y) = (p.data("x", dtype, shape.as_slice()), p.data("y", dtype, shape.as_slice()));
                let product = &x * &y + &x;
                let mut fetches = vec![product.clone(), x.over([-1]).sum(), (&x + &y).over([0]).sum()];
                if dtype.is_float() {
                    // A step that a block kernel computes.
                    fetches.push((&x * 0.01).exp() + &y);
                }
                let copies = feeds! { "x" => a.contiguous().unwrap(), "y" => b.contiguous().unwrap() };
                let want = Executor::builder().threads(1).build().run(&p, copies, &fetches).unwrap();
                for (jit, threads) in [(true, 1), (false, 1), (true, 3)] {
                    let exe = Executor::builder().jit(jit).threads(threads).build();
                    let got = exe.run(&p, feeds! { "x" => a, "y" => b }, &fetches).unwrap();
                    for (k, (got, want)) in got.iter().zip(&want).enumerate() {
                        assert_eq!(
                            got.as_bytes(),
                            want.as_bytes(),
                            "result {k} of {dtype}{shape:?}, views {i}, {:?}",
                            a.strides()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn rows_of_broadcast_operands_give_the_results_of_single_ops() {
    for (n, rows) in [(64, 150), (65, 6), (100, 64), (512, 6), (3500, 6)] {
        for dtype in [DType::U8, DType::BF16, DType::F32, DType::F64, DType::C64] {
            let of = |shape: &[usize]| views(shape, dtype);
            let (wide, row, column, block) = (of(&[4, rows, n]), of(&[n]), of(&[4, rows, 1]), of(&[4, 1, 1]));
            let p = Program::new(Rules::Torch);
            let (x, w) = (p.data("x", dtype, [4, rows, n]), p.data("w", dtype, [n]));
            let (m, s) = (p.data("m", dtype, [4, rows, 1]), p.data("s", dtype, [4, 1, 1]));
            // One loop over rows, with one result and with two.
            let one = [(&x - &m) * &w + &s];
            let two = [&x * &s - &w, &x + &m];
            // Values per row, computed from row operands and constants.
            let uniform = [(&x - (&m * 3 + &s)) * (&s * &s - &m)];
            // Rows with gaps between them, reversed rows, and two dims swapped outside the rows.
            let cut = of(&[4, rows, n + 3]).swap_remove(0).slice(2, 1, n + 1, 1).unwrap();
            let stored = wide[0].transpose(0, 1).unwrap().contiguous().unwrap().transpose(0, 1).unwrap();
            for x in [&wide[0], &wide[0].flip(0).unwrap(), &wide[0].flip(1).unwrap(), &cut, &stored] {
                for fetches in [&one[..], &two[..], &uniform[..]] {
                    let feeds = || feeds! { "x" => x, "w" => &row[0], "m" => &column[0], "s" => &block[0] };
                    let want = Executor::builder().jit(false).threads(1).build().run(&p, feeds(), fetches).unwrap();
                    for threads in [1, 3] {
                        let got = Executor::builder().threads(threads).build().run(&p, feeds(), fetches).unwrap();
                        for (got, want) in got.iter().zip(&want) {
                            assert_eq!(got.as_bytes(), want.as_bytes(), "{dtype}[4, {rows}, {n}] of {:?}", x.strides());
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn operands_that_repeat_along_a_run_give_the_results_of_copies() {
    // Periods that do not divide a tile, that fill a tile, and that are longer than a tile, near the ends of tiles.
    for (rows, block, period) in
        [(5, 1, 3), (133, 4, 3), (2000, 2, 3), (700, 1, 7), (90, 3, 21), (40, 1, 61), (900, 8, 8)]
    {
        for dtype in [DType::Bool, DType::U8, DType::F16, DType::F32, DType::F64, DType::C64, DType::C128] {
            let of = |shape: &[usize]| views(shape, dtype).swap_remove(0);
            let wide = [rows, block, period];
            // One or two dims are repeated in each row; elements are repeated along the last dim, or along the last
            // two.
            let flipped = of(&[block, period]).flip(1).unwrap();
            let narrow = [of(&[period]), flipped.contiguous().unwrap(), of(&[rows, block, 1]), of(&[rows, 1, 1])];
            let a = of(&wide);
            let copy = |t: &Tensor| t.broadcast_to(wide).unwrap().contiguous().unwrap();
            let copies = narrow.each_ref().map(copy);
            let program = |all: &[Tensor; 4]| {
                let p = Program::new(Rules::Torch);
                let v = ["b", "c", "d", "e"].iter().zip(all).map(|(name, t)| p.data(name, dtype, t.shape())).collect();
                (p.data("a", dtype, wide), v, p)
            };
            let fetches = |x: &Var, v: &[Var]| {
                let sums = vec![(x + &v[0] * &v[1]).over([0]).sum(), (x * &v[2]).sum()];
                vec![
                    vec![x * &v[0] + &v[1], &v[1] + x],
                    vec![x.eq(&v[0])],
                    vec![x * &v[2]],
                    vec![x * &v[3] + &v[2]],
                    sums,
                ]
            };
            let (x, v, p): (Var, Vec<Var>, Program) = program(&narrow);
            let (y, w, q): (Var, Vec<Var>, Program) = program(&copies);
            let feeds = |[b, c, d, e]: [&Tensor; 4]| feeds! { "a" => &a, "b" => b, "c" => c, "d" => d, "e" => e };
            for (narrow_fetches, wide_fetches) in fetches(&x, &v).iter().zip(&fetches(&y, &w)) {
                let plain = Executor::builder().jit(false).threads(1).build();
                let want = plain.run(&q, feeds(copies.each_ref()), wide_fetches).unwrap();
                for (jit, threads, c) in
                    [(true, 1, &narrow[1]), (true, 3, &narrow[1]), (true, 1, &flipped), (false, 2, &flipped)]
                {
                    let exe = Executor::builder().jit(jit).threads(threads).build();
                    let got = exe.run(&p, feeds([&narrow[0], c, &narrow[2], &narrow[3]]), narrow_fetches).unwrap();
                    for (k, (got, want)) in got.iter().zip(&want).enumerate() {
                        let same = got.as_bytes() == want.as_bytes();
                        assert!(same, "result {k} of {dtype}{wide:?}, jit {jit}, {threads} threads\n{p}");
                    }
                }
            }
        }
    }
}

#[test]
fn long_results_of_operands_that_repeat_are_whole() {
    // One thread writes a result of this size with streaming stores.
    let shape = [1_900_001, 3];
    let p = Program::new(Rules::Torch);
    let (x, s) = (p.data("x", DType::U8, shape), p.data("s", DType::F32, [3]));
    let pixels: Vec<u8> = (0..shape[0] * 3).map(|i| (i * 31 % 251) as u8).collect();
    let scales = [3.0_f32, 0.7, 11.0];
    let want: Vec<f32> = pixels.iter().zip(scales.iter().cycle()).map(|(x, s)| f32::from(*x) / s).collect();
    let (x_fed, s_fed) = (Tensor::from_vec(pixels, shape).unwrap(), Tensor::from_vec(scales.to_vec(), [3]).unwrap());
    for threads in [1, 2] {
        let exe = Executor::builder().threads(threads).build();
        let got = exe.run(&p, feeds! { "x" => &x_fed, "s" => &s_fed }, [&(&x / &s)]).unwrap();
        assert_eq!(got[0].to_vec::<f32>().unwrap(), want);
    }
}

#[test]
fn a_division_by_zero_of_one_row_is_found() {
    let shapes = [[200, 70], [200, 1], [200, 1]];
    let p = Program::new(Rules::Torch);
    let [x, m, s] = [0, 1, 2].map(|i| p.data(["x", "m", "s"][i], DType::I32, shapes[i]));
    let y = &x + m.floor_divide(&s);
    let divisors = |zero: usize| (0..200).map(|row| i32::from(row != zero) * 3).collect::<Vec<_>>();
    for (zero, found) in [(0, true), (150, true), (199, true), (200, false)] {
        let [wide, column] = [14_000, 200].map(|n: i32| (0..n).collect::<Vec<i32>>());
        let feeds = feeds! {
            "x" => Tensor::from_vec(wide, shapes[0]).unwrap(),
            "m" => Tensor::from_vec(column, shapes[1]).unwrap(),
            "s" => Tensor::from_vec(divisors(zero), shapes[2]).unwrap(),
        };
        let got = Executor::builder().threads(1).build().run(&p, feeds, [&y]);
        assert_eq!(matches!(&got, Err(Error::DivisionByZero { op: "floor_divide", .. })), found, "{zero}: {got:?}");
    }
}
