//! Generators in programs: an element follows from its index in the generator's shape, however the program is fused, walked,
//! cut and typed, in both modes and at each CPU level. Does not: check the numbers of large indices (`kernels::generate` does).

use castwise::{Attrs, Generator, Key, Op, Pass, prelude::*};

use crate::common::{Random, levels, random_tensor};
use crate::reference::generators::{self as reference, w32};

fn bytes(t: &Tensor) -> Vec<u8> {
    t.contiguous().unwrap().as_bytes().unwrap().to_vec()
}

/// The generators of the tests.
fn generators() -> Vec<Generator> {
    let key = Key { seed: 0x0123_4567_89ab_cdef, stream: 3 };
    let (dim, dtype) = (None, None);
    vec![
        Generator::Index { dim },
        Generator::Index { dim: Some(0) },
        Generator::Index { dim: Some(-1) },
        Generator::Arange { start: 5.into(), step: (-3).into(), dim, dtype: Some(DType::I16) },
        Generator::Arange { start: 0.25.into(), step: 1.into(), dim: Some(-1), dtype },
        Generator::Linspace { start: -2.0, end: 5.0, dim: Some(0), dtype },
        Generator::Uniform { key, dtype },
        Generator::Uniform { key, dtype: Some(DType::F64) },
        Generator::Uniform { key, dtype: Some(DType::F16) },
        Generator::Normal { key, dtype },
        Generator::Normal { key, dtype: Some(DType::F64) },
        Generator::Normal { key, dtype: Some(DType::BF16) },
        Generator::Bernoulli { p: 0.3, key },
        Generator::Randint { low: -7, high: 100, key, dtype: Some(DType::I8) },
        Generator::Randint { low: i32::MIN.into(), high: i32::MAX.into(), key, dtype },
    ]
}

/// What the definition says of a uniform f32.
fn uniform(key: Key, i: u64) -> f32 {
    (w32(key, i) >> 8) as f32 / 16_777_216.0
}

#[test]
fn uniform_numbers_are_those_of_the_definition_at_every_level() {
    levels::at_every_level("generators::uniform_numbers_are_those_of_the_definition_at_every_level", || {
        let key = Key { seed: u64::MAX - 4, stream: 1 << 33 };
        for shape in [vec![], vec![0], vec![1], vec![3, 0, 2], vec![1000], vec![37, 129], vec![2, 3, 5, 700]] {
            let n: usize = shape.iter().product();
            let want: Vec<f32> = (0..n as u64).map(|i| uniform(key, i)).collect();
            let like = Tensor::zeros(DType::U8, &shape[..]).unwrap();
            let eager = Eager::new(Rules::Torch).tensor(&like).uniform(key, None).result().unwrap();
            assert_eq!((eager.shape(), eager.to_vec::<f32>().unwrap()), (&shape[..], want.clone()));
            let p = Program::new(Rules::Torch);
            let y = p.data("x", DType::U8, vec![None; shape.len()]).uniform(key, None);
            let run = Executor::new().run(&p, feeds! { "x" => like }, [&y]).unwrap();
            assert_eq!(run[0].to_vec::<f32>().unwrap(), want);
        }
    });
}

#[test]
fn random_numbers_of_every_dtype_are_those_of_the_definition() {
    let key = Key { seed: 1 << 63, stream: 77 };
    let like = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::Bool, [3, 333]).unwrap());
    for dtype in DType::ALL {
        let Some(want) = reference::random(key, dtype, &[3, 333]) else { continue };
        let made = match dtype {
            DType::Bool => like.bernoulli(0.25, key),
            d if d.is_float() => like.uniform(key, d),
            d => like.randint(0, 7, key, d),
        };
        assert_eq!(bytes(&made.result().unwrap()), bytes(&want), "{dtype}");
    }
}

/// Sums in i64 or f64 of a generator's elements, over some dims, are those of its tensor.
fn check_reductions(g: Generator, shape: &[usize], whole: &Tensor, executor: &Executor) {
    for set in 0..1u32 << shape.len() {
        let dims: Vec<i64> = (0..shape.len() as i64).filter(|d| set >> d & 1 == 1).collect();
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::Bool, shape.to_vec());
        let (wide, attrs) = (x.generate(g).cast(DType::F64) * 3.0, Attrs::dims(dims.clone()));
        let made = [Op::Sum, Op::Amax].map(|op| castwise::apply(op, &[(&wide).into()], attrs.clone()));
        let q = Program::new(Rules::Torch);
        let given = q.data("g", whole.dtype(), shape.to_vec()).cast(DType::F64) * 3.0;
        let read = [Op::Sum, Op::Amax].map(|op| castwise::apply(op, &[(&given).into()], attrs.clone()));
        let like = Tensor::zeros(DType::Bool, shape).unwrap();
        let made = executor.run(&p, feeds! { "x" => like }, made.iter()).unwrap();
        let read = executor.run(&q, feeds! { "g" => whole }, read.iter()).unwrap();
        for (a, b) in made.iter().zip(&read) {
            assert_eq!(bytes(a), bytes(b), "{g:?} of {shape:?} over {dims:?}");
        }
    }
}

#[test]
fn an_element_does_not_depend_on_how_it_is_computed() {
    levels::at_every_level("generators::an_element_does_not_depend_on_how_it_is_computed", || {
        let mut r = Random(7);
        let executors =
            [Executor::new(), Executor::builder().threads(3).build(), Executor::builder().jit(false).build()];
        for shape in [vec![5usize], vec![70, 33], vec![3, 1, 260], vec![2, 40, 3, 7], vec![600, 2], vec![300, 700]] {
            let rank = shape.len() as i64;
            for g in generators() {
                let like = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::Bool, &shape[..]).unwrap());
                let whole = like.generate(g).result().unwrap();
                let reversed: Vec<usize> = shape.iter().rev().copied().collect();
                let back: Vec<i64> = (0..rank).rev().collect();
                let other = random_tensor(DType::F32, &reversed, &mut r, false);
                let p = Program::new(Rules::Torch);
                let x = p.data("x", DType::F32, vec![None; shape.len()]);
                let transposed = x.permute(back.clone());
                let made = transposed.generate(g);
                let fetches = [
                    made.clone(),
                    &made + &transposed,
                    made.permute(back) * 2,
                    made.unsqueeze(0) + made.unsqueeze(1),
                    made.slice(0, 1, None, 2).cast(DType::F64).exp(),
                ];
                let q = Program::new(Rules::Torch);
                let x = q.data("x", DType::F32, vec![None; shape.len()]);
                let back: Vec<i64> = (0..rank).rev().collect();
                let transposed = x.permute(back.clone());
                let given = q.data("g", whole.dtype(), vec![None; shape.len()]);
                let read = [
                    given.clone(),
                    &given + &transposed,
                    given.permute(back) * 2,
                    given.unsqueeze(0) + given.unsqueeze(1),
                    given.slice(0, 1, None, 2).cast(DType::F64).exp(),
                ];
                // The outer sum of a large shape is larger still.
                let few = if shape.iter().product::<usize>() > 10_000 { 3 } else { 5 };
                for executor in &executors {
                    let a = executor.run(&p, feeds! { "x" => &other }, &fetches[..few]).unwrap();
                    let b = executor.run(&q, feeds! { "x" => &other, "g" => &whole }, &read[..few]).unwrap();
                    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{g:?} of {shape:?}: {i}");
                        assert!(bytes(a) == bytes(b), "{g:?} of {shape:?}: fetch {i}");
                    }
                    check_reductions(g, &shape, &whole, executor);
                }
                let small = Executor::builder().tile(64).build();
                let a = small.run(&p, feeds! { "x" => &other }, &fetches[..1]).unwrap();
                assert_eq!(bytes(&a[0]), bytes(&whole));
            }
        }
    });
}

#[test]
fn texts_read_back_and_both_modes_agree() {
    for rules in Rules::ALL.iter().copied() {
        for g in generators() {
            let p = Program::new(rules);
            let y = p.data("x", DType::F32, ["n"]).generate(g);
            let text = p.to_string();
            let read = Program::parse(&text).unwrap();
            assert_eq!(read.to_string(), text);
            let like = Tensor::zeros(DType::F32, [9]).unwrap();
            let eager = Eager::new(rules).tensor(&like).generate(g).result().unwrap();
            let a = Executor::new().run(&p, feeds! { "x" => &like }, [&y]).unwrap();
            let b = Executor::new().run(&read, feeds! { "x" => &like }, [&read.fetches()[0].var]).unwrap();
            assert_eq!((bytes(&a[0]), bytes(&b[0])), (bytes(&eager), bytes(&eager)), "{rules} {g:?}");
            assert_eq!(p.infer().unwrap().dtype(&y), Some(eager.dtype()));
            for copy in [p.infer().unwrap().rewrite(|n| n.copy()), p.infer().unwrap().rewrite(|n| n.copy_explicit())] {
                let copy = copy.unwrap().program;
                let c = Executor::new().run(&copy, feeds! { "x" => &like }, [&copy.fetches()[0].var]).unwrap();
                assert_eq!(bytes(&c[0]), bytes(&eager));
            }
        }
    }
}

#[test]
fn what_a_generator_is_like_is_not_computed() {
    let p = Program::new(Rules::Torch);
    let quotient = p.data("x", DType::I32, [4]).floor_divide(0);
    let y = quotient.index_along(0);
    let out = Executor::new().run(&p, feeds! { "x" => Tensor::full([4], 1i32).unwrap() }, [&y]).unwrap();
    assert_eq!(out[0].to_vec::<i64>().unwrap(), [0, 1, 2, 3]);
    // A shape without a placeholder.
    let p = Program::new(Rules::Torch);
    let y = p.scalar(0, DType::Bool).expand([2, 3]).arange_like(0, 1);
    let out = Executor::new().run(&p, feeds! {}, [&y]).unwrap();
    assert_eq!(out[0].to_vec::<i64>().unwrap(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn mistakes_are_told() {
    let refused = |text: &str, what: &str| {
        let p = Program::new(Rules::Torch);
        p.data("x", DType::F32, ["n", "m"]);
        let e = p.expression(text).and_then(|_| p.check()).expect_err(text).to_string();
        assert!(e.contains(what), "{text}: {e}");
    };
    refused("index(x, 2)", "`index`");
    refused("index(x, dim=0.5)", "is an integer");
    refused("uniform(x, dtype=i32)", "`uniform` makes floats, not i32");
    refused("uniform(x, dtype=f8e5m2)", "`uniform` makes floats, not f8e5m2");
    refused("uniform(x, seed=18446744073709551616)", "beyond");
    refused("uniform(x, seed=1, seed=2)", "given twice");
    refused("uniform(x, 1, 2, 3)", "too many numbers");
    refused("uniform(x", "expected `,` or `)`");
    refused("uniform(x + 1)", "expected `,` or `)`");
    refused("uniform(2)", "takes the name of a value");
    refused("uniform(y)", "no input `y`");
    refused("arange_like(x, 0.5, dtype=i32)", "is no number of i32");
    refused("arange_like(x, 2j)", "`arange_like` takes a number here");
    refused("linspace(x, 0, 1, dtype=c64)", "makes floats, not c64");
    refused("bernoulli(x, 1.5)", "is not from 0 to 1");
    refused("bernoulli(x, nan)", "is not from 0 to 1");
    refused("bernoulli(x, 0.5, dtype=f32)", "takes no dtype");
    refused("randint(x, 3, 3)", "no integer is from 3 to below 3");
    refused("randint(x)", "no integer");
    refused("randint(x, 0, 257, dtype=u8)", "u8 does not have all integers from 0 to 256");
    refused("randint(x, -1, 2, dtype=u64)", "u64 does not have");
    refused("randint(x, 0, 2, dtype=f32)", "`randint` makes integers, not f32");
    refused("normal(x, dtype=bool)", "`normal` makes floats, not bool");
    for (line, what) in [
        ("%y = uniform %x {sed = 1}", "unknown attribute"),
        ("%y = uniform %x {seed = 1, seed = 2}", "given twice"),
        ("%y = uniform %x {seed = -1}", "from 0 to 2^64 - 1"),
        ("%y = uniform ~1", "expected"),
        ("%y = index %x {dtype = i32}", "unknown attribute"),
    ] {
        let text = format!("castwise 1\nprogram(rules = torch) (%x: f32[3]) {{\n  {line}\n}}\n");
        let e = Program::parse(&text).and_then(|p| p.check()).expect_err(line).to_string();
        assert!(e.contains(what), "{line}: {e}");
    }
}

#[test]
fn generators_of_an_expression_have_streams_of_their_own() {
    let p = Program::new(Rules::Torch);
    p.data("x", DType::F32, [100]);
    let y = p.expression("a = uniform(x, seed=7); b = uniform(x, seed=7); where(a == b, 1.0, 0.0)").unwrap().sum();
    let out = Executor::new().run(&p, feeds! { "x" => Tensor::full([100], 0f32).unwrap() }, [&y]).unwrap();
    assert!(out[0].item::<f32>().unwrap() < 3.0);
    assert!(p.to_string().contains("stream = 1"), "{p}");
}

/// The blocks of a scale, element by element.
fn expected_blocks(scale: &Tensor, like: &[usize], sizes: &[usize]) -> Vec<u8> {
    let (all, width) = (bytes(scale), scale.dtype().size());
    let mut out = Vec::new();
    for position in 0..like.iter().product() {
        let (mut rest, mut at, mut step) = (position, 0, 1);
        for d in (0..like.len()).rev() {
            at += rest % like[d] / sizes[d] * step;
            rest /= like[d];
            step *= scale.shape()[d];
        }
        out.extend(&all[at * width..(at + 1) * width]);
    }
    out
}

#[test]
fn blocks_are_those_of_index_arithmetic() {
    let mut r = Random(11);
    let shapes: [(&[usize], &[usize]); 9] = [
        (&[], &[]),
        (&[0], &[4]),
        (&[1], &[128]),
        (&[1000], &[128]),
        (&[256, 384], &[128, 128]),
        (&[300, 517], &[128, 128]),
        (&[5, 700], &[1, 3]),
        (&[4, 9, 50], &[3, 1000, 7]),
        (&[2, 3, 5, 7], &[2, 2, 2, 2]),
    ];
    for (shape, sizes) in shapes {
        let dims: Vec<usize> = shape.iter().zip(sizes).map(|(n, s)| n.div_ceil(*s)).collect();
        for dtype in [DType::U8, DType::F16, DType::F32, DType::F64, DType::C128] {
            let back: Vec<i64> = (0..shape.len() as i64).rev().collect();
            let scale = random_tensor(dtype, &dims.iter().rev().copied().collect::<Vec<_>>(), &mut r, false);
            let turned = Eager::new(Rules::Torch).tensor(&scale).permute(back.clone()).result().unwrap();
            let want = expected_blocks(&turned, shape, sizes);
            let like = random_tensor(DType::F32, shape, &mut r, false);
            let eager = Eager::new(Rules::Torch);
            let made = eager.tensor(&turned).blocks(&eager.tensor(&like), sizes.to_vec()).result().unwrap();
            assert_eq!((made.dtype(), made.shape(), bytes(&made)), (dtype, shape, want.clone()), "{shape:?} {sizes:?}");
            let whole = Tensor::from_bytes(dtype, shape, &want).unwrap();
            for dynamic in [false, true] {
                let p = Program::new(Rules::Torch);
                let (w, s, g) = if dynamic {
                    let any = || vec![None; shape.len()];
                    (p.data("w", DType::F32, any()), p.data("s", dtype, any()), p.data("g", dtype, any()))
                } else {
                    let turned: Vec<usize> = dims.iter().rev().copied().collect();
                    (
                        p.data("w", DType::F32, shape.to_vec()),
                        p.data("s", dtype, turned),
                        p.data("g", dtype, shape.to_vec()),
                    )
                };
                let read = Program::parse(&p.to_string()).unwrap().to_string();
                assert_eq!(read, p.to_string());
                let blocks = s.permute(back.clone()).blocks(&w, sizes.to_vec());
                let computed = (s.permute(back.clone()) * 2).blocks(&w, sizes.to_vec());
                let made = [
                    blocks.clone(),
                    &w * &blocks,
                    computed.clone(),
                    (&w * &blocks).sum(),
                    blocks.permute(back.clone()) + 1,
                    (&w * 2 + &computed).over(if shape.is_empty() { vec![] } else { vec![0] }).sum(),
                ];
                let read = [
                    g.clone(),
                    &w * &g,
                    &g * 2,
                    (&w * &g).sum(),
                    g.permute(back.clone()) + 1,
                    (&w * 2 + &g * 2).over(if shape.is_empty() { vec![] } else { vec![0] }).sum(),
                ];
                for executor in [Executor::new(), Executor::builder().threads(3).jit(false).build()] {
                    let feeds = feeds! { "w" => &like, "s" => &scale, "g" => &whole };
                    let a = executor.run(&p, feeds.clone(), made.iter()).unwrap();
                    let b = executor.run(&p, feeds, read.iter()).unwrap();
                    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()));
                        assert!(bytes(a) == bytes(b), "{dtype} {shape:?} {sizes:?} {dynamic}: {i}");
                    }
                }
                for copy in
                    [p.infer().unwrap().rewrite(|n| n.copy()), p.infer().unwrap().rewrite(|n| n.copy_explicit())]
                {
                    copy.unwrap().program.check().unwrap();
                }
            }
        }
    }
}

#[test]
fn blocks_of_a_weight_dequantize_it() {
    let p = Program::new(Rules::Torch);
    p.data("w", DType::F8E4M3FN, [200, 300]);
    p.data("s", DType::F32, [2, 3]);
    let y = p.expression("cast(w, f32) * blocks(s, like=w, size=128)").unwrap();
    assert_eq!(p.infer().unwrap().dtype(&y), Some(DType::F32));
    let text = p.to_string();
    assert!(text.contains("blocks %s, %w {size = [128]}"), "{text}");
    assert_eq!(Program::parse(&text).unwrap().to_string(), text);
    let mut r = Random(3);
    let weight = random_tensor(DType::F8E4M3FN, &[200, 300], &mut r, false);
    let scale = random_tensor(DType::F32, &[2, 3], &mut r, false);
    let out = Executor::new().run(&p, feeds! { "w" => &weight, "s" => &scale }, [&y]).unwrap();
    let eager = Eager::new(Rules::Torch);
    let wide = eager.tensor(&weight).cast(DType::F32).result().unwrap().to_vec::<f32>().unwrap();
    let scale = scale.to_vec::<f32>().unwrap();
    let got = out[0].to_vec::<f32>().unwrap();
    for (i, (w, got)) in wide.iter().zip(got).enumerate() {
        let want = w * scale[i / 300 / 128 * 3 + i % 300 / 128];
        assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{i}");
    }
    let refused = |text: &str, what: &str| {
        let e = p.expression(text).and_then(|_| p.check()).expect_err(text).to_string();
        assert!(e.contains(what), "{text}: {e}");
    };
    refused("blocks(s, like=w, size=64)", "dim 0 of the scale is 2, but 200 elements are 4 blocks of 64");
    refused("blocks(s, like=w, size=0)", "has no elements");
    refused("blocks(s, like=w, size=(1, 2, 3))", "3 sizes for 2 dims");
    refused("blocks(s, like=w)", "takes a scale, what it is like, and a size");
    refused("blocks(s, w, 128, size=3)", "given twice");
    refused("blocks(s, like=w, size=-1)", "a positive integer");
    refused("blocks(3, like=w, size=1)", "takes the name of a value");
    refused("blocks(s, of=w, size=1)", "takes no `of`");
}

#[test]
fn blocks_of_dynamic_dims_are_checked_when_they_are_known() {
    let p = Program::new(Rules::Torch);
    let w = p.data("w", DType::F32, [None]);
    let y = p.data("s", DType::F32, [None]).blocks(&w, 10);
    let run = |n: usize, blocks: usize| {
        let feeds = feeds! { "w" => Tensor::full([n], 1f32).unwrap(), "s" => Tensor::full([blocks], 2f32).unwrap() };
        Executor::new().run(&p, feeds, [&y])
    };
    assert_eq!(run(25, 3).unwrap()[0].shape(), [25]);
    let e = run(25, 2).unwrap_err().to_string();
    assert!(
        e.contains("dim 0 of the scale is 2, but 25 elements are 3 blocks of 10") && e.contains("generators.rs"),
        "{e}"
    );
}

/// What changes no element of a generator, or repeats its elements, reads it as it is: the plan makes it early enough for each.
#[test]
fn generators_are_made_before_all_that_read_them() {
    for text in [
        "  %0 = index %x {dim = 0}\n  %1 = cast %0 {dtype = i64}\n  %2 = sum %1\n  %3 = add %2, %0\n  fetch %3\n",
        "  %0 = uniform %x {seed = 1}\n  %1 = reshape %0 {shape = [6, 12]}\n  %2 = mean %1\n  %3 = sub %0, %2\n  fetch %3\n",
        "  %0 = linspace %x {start = 1, end = 2, dim = 0}\n  %1 = blocks %0, %0 {size = [1, 1]}\n  %2 = sort %1 {axis = 0}\n  fetch %2\n",
    ] {
        let text = format!("castwise 1\nprogram(rules = torch) (%x: f32[6, 12]) {{\n{text}}}\n");
        let p = Program::parse(&text).unwrap_or_else(|e| panic!("{text}{e}"));
        let feeds = || feeds! { "x" => Tensor::zeros(DType::F32, [6, 12]).unwrap() };
        let result = &p.fetches()[0].var;
        let fused = Executor::new().run(&p, feeds(), [result]).unwrap_or_else(|e| panic!("{text}{e}"));
        let apart = Executor::builder().without(Pass::Fusion).build().run(&p, feeds(), [result]).unwrap();
        assert_eq!(bytes(&fused[0]), bytes(&apart[0]), "{text}");
    }
}
