//! Scalars and one-element tensors that a dtype can't hold or would round, compared with PyTorch 2.15 and PaddlePaddle
//! 3.3.1.

use castwise::prelude::*;
use castwise::{Attrs, DiagnosticKind, Error, Op, Operand, apply, bf16, f16};

/// An expression in `x`, and its outcome: elements, or an error.
type Case = (&'static str, Option<&'static [i64]>);

const U8: &[u8] = &[0, 50, 200, 255];
const OF_U8: &[Case] = &[
    ("clamp(x, -5, 100)", Some(&[0, 50, 100, 100])),
    ("clamp(x, -5, 300)", Some(&[0, 50, 200, 255])),
    ("clamp(x, -5, 1099511627776)", Some(&[0, 50, 200, 255])),
    ("clamp(x, 300, 400)", None),
    ("clamp(x, -5, -1)", None),
    ("clamp_min(x, -5)", Some(&[0, 50, 200, 255])),
    ("clamp_min(x, 300)", None),
    ("clamp_max(x, 300)", Some(&[0, 50, 200, 255])),
    ("clamp_max(x, -1)", None),
    // Other ops wrap, or return an error.
    ("x + 300", Some(&[44, 94, 244, 43])),
    ("300 ** x", Some(&[1, 0, 0, 0])),
    ("x ** 300", None),
    ("x ** -1", None),
    ("add_scaled(x, x, -1)", Some(&[0, 0, 0, 0])),
    ("add_scaled(x, x, 300)", None),
    ("sub_scaled(x, x, -1)", Some(&[0, 100, 144, 254])),
    ("addcmul(x, x, x, 300)", None),
    ("where(x > 60, x, 255)", Some(&[255, 255, 200, 255])),
    ("where(x > 60, x, 300)", None),
];
const I8: &[i8] = &[-128, 0, 127];
const OF_I8: &[Case] = &[
    ("clamp(x, -200, 200)", Some(&[-128, 0, 127])),
    ("clamp_min(x, 128)", None),
    ("clamp_max(x, -129)", None),
    ("x ** 200", None),
];

fn check<T: castwise::Element>(data: &[T], cases: &[Case], to_int: impl Fn(T) -> i64) {
    let x = Tensor::from_slice(data, [data.len()]).unwrap();
    for (text, expected) in cases {
        let p = Program::new(Rules::Torch);
        p.data("x", T::DTYPE, [None]);
        let compiled =
            p.expression(text).map(|y| Executor::new().run(&p, feeds! { "x" => x }, [&y]).map(|mut r| r.remove(0)));
        let compiled = compiled.and_then(|r| r);
        match expected {
            Some(elements) => {
                let got: Vec<i64> = compiled.unwrap().to_vec::<T>().unwrap().into_iter().map(&to_int).collect();
                assert_eq!(&got, elements, "{text} of {}", T::DTYPE);
            }
            None => {
                let wrong = compiled.expect_err(text);
                assert!(matches!(wrong, Error::Invalid(_)), "{text} of {}: {wrong}", T::DTYPE);
            }
        }
    }
}

#[test]
fn integers_that_a_dtype_can_not_hold() {
    check(U8, OF_U8, i64::from);
    check(I8, OF_I8, i64::from);
}

#[test]
fn eager_bounds_are_those_of_programs() {
    let x = Eager::new(Rules::Torch).tensor(&Tensor::from_slice(U8, [4]).unwrap());
    let clamp = |low: i64, high: i64| {
        let operands = [Operand::Var(x.clone()), Operand::Scalar(low.into()), Operand::Scalar(high.into())];
        apply(Op::Clamp, &operands, Attrs::default()).result()
    };
    assert_eq!(clamp(-5, 300).unwrap().to_vec::<u8>().unwrap(), U8);
    assert!(clamp(300, 400).unwrap_err().to_string().contains("u8"));
}

/// For f16 and bf16, the weight of `lerp` is an f32 number as in PyTorch, and is not rounded to their dtype.
#[test]
fn a_weight_stays_in_op_math() {
    macro_rules! check {
        ($t:ty) => {{
            let n = 2000usize;
            let number = |i: usize, k: usize| <$t>::from_f32(((i * 7919 + k * 104_729) % 4001) as f32 / 1000.0 - 2.0);
            let [a, b] = [0, 1].map(|k| (0..n).map(|i| number(i, k)).collect::<Vec<$t>>());
            let p = Program::new(Rules::Torch);
            let names = ["a", "b"].map(|name| p.data(name, <$t as castwise::Element>::DTYPE, [None]));
            let y = p.expression("lerp(a, b, 0.3)").unwrap();
            let feeds =
                feeds! { "a" => Tensor::from_slice(&a, [n]).unwrap(), "b" => Tensor::from_slice(&b, [n]).unwrap() };
            let got = Executor::new().run(&p, feeds, [&y]).unwrap().remove(0).to_vec::<$t>().unwrap();
            let weight = |w: f32, i: usize| <$t>::from_f32(a[i].to_f32() + w * (b[i].to_f32() - a[i].to_f32()));
            assert!((0..n).all(|i| got[i].to_bits() == weight(0.3, i).to_bits()));
            assert!((0..n).any(|i| got[i].to_bits() != weight(<$t>::from_f32(0.3).to_f32(), i).to_bits()));
            drop(names);
        }};
    }
    check!(f16);
    check!(bf16);
}

/// The elements of an expression in `x` and a 0-d `s`, in compiled loops and by block kernels only, which must be
/// equal.
fn value<T: castwise::Element>(rules: Rules, text: &str, x: &Tensor, s: &Tensor) -> Result<Vec<T>, Error> {
    let p = Program::new(rules);
    p.data("x", x.dtype(), x.shape());
    p.data("s", s.dtype(), s.shape());
    let y = p.expression(text)?;
    let run = |executor: Executor| executor.run(&p, feeds! { "x" => x, "s" => s }, [&y]).map(|mut all| all.remove(0));
    let (compiled, blocks) = (run(Executor::new())?, run(Executor::builder().jit(false).build())?);
    assert_eq!(compiled.as_bytes(), blocks.as_bytes(), "{text}");
    compiled.to_vec::<T>()
}

#[test]
fn one_element_of_another_dtype_stays_in_op_math_beside_halves() {
    let half = |v: f32| Tensor::from([f16::from_f32(v)]);
    for (text, x, s, expected) in [
        ("x * s", 3.0, 0.1f32, 0.300_048_83),
        ("x // s", 1.0, 0.1, 9.0),
        ("x * s", 0.5, 1e5, 49984.0),
        ("x / s", 5e4, 1e5, 0.499_755_86),
        // On the left, the 0-d tensor is cast first.
        ("s * x", 3.0, 0.1, 0.299_804_7),
        // A scalar on the left of a quotient does not overflow here; PyTorch's reciprocal does.
        ("1e5 / x", 1000.0, 0.0, 100.0),
        ("add_scaled(x, x, 0.1)", 3.0, 0.0, 3.300_781_3),
    ] {
        let got = value::<f16>(Rules::Torch, text, &half(x), &Tensor::scalar(s)).unwrap();
        assert_eq!(got[0].to_f32(), expected, "{text} of {x} and {s}");
    }
    for text in
        ["x ** 1e5", "add_scaled(x, x, 1e5)", "sub_scaled(x, x, 7e4)", "clamp_min(x, 1e5)", "clamp_max(x, -1e5)"]
    {
        assert!(value::<f16>(Rules::Torch, text, &half(3.0), &Tensor::scalar(0.0f32)).is_err(), "{text}");
    }
    for (text, expected) in [("clamp_max(x, 1e5)", 3.0), ("where(x > 0, 1e5, x)", f32::INFINITY)] {
        let got = value::<f16>(Rules::Torch, text, &half(3.0), &Tensor::scalar(0.0f32)).unwrap();
        assert_eq!(got[0].to_f32(), expected, "{text}");
    }
    let single = |text| value::<f32>(Rules::Torch, text, &Tensor::from([2.0f32, 0.5]), &Tensor::scalar(0.0f32));
    assert_eq!(single("x ** 1e300").unwrap(), [f32::INFINITY, 0.0]);
    assert!(single("where(x > 0, x, 1e39)").is_err() && single("add_scaled(x, x, 1e39)").is_err());
}

#[test]
fn powers_of_one_half_are_roots_under_pytorchs_rules() {
    let (x, s) = (Tensor::from([f64::NEG_INFINITY, -0.0]), Tensor::scalar(0.0f32));
    for (text, roots, powers) in [("x ** 0.5", "[NaN, -0.0]", "[inf, 0.0]"), ("x ** -0.5", "[NaN, -inf]", "[0.0, inf]")]
    {
        let of = |rules, text: &str| format!("{:?}", value::<f64>(rules, text, &x, &s).unwrap());
        assert_eq!((of(Rules::Torch, text), of(Rules::Paddle, text)), (roots.into(), powers.into()), "{text}");
        let float_power = text.replace("x ** ", "float_power(x, ") + ")";
        assert_eq!(of(Rules::Torch, &float_power), roots);
    }
}

#[test]
fn paddles_dtypes_of_sums_products_and_hypot() {
    let s = Tensor::scalar(1i64);
    let narrow = Tensor::from([30_000i16, 10_000]);
    assert_eq!(value::<i16>(Rules::Paddle, "sum(x)", &narrow, &s).unwrap(), [-25_536]);
    assert_eq!(value::<i64>(Rules::Torch, "sum(x)", &narrow, &s).unwrap(), [40_000]);
    let ints = Tensor::from([65_536i32, 65_536]);
    assert_eq!(value::<i32>(Rules::Paddle, "prod(x)", &ints, &s).unwrap(), [0]);
    assert_eq!(value::<i64>(Rules::Paddle, "sum(x)", &ints, &s).unwrap(), [131_072]);
    assert_eq!(value::<f32>(Rules::Paddle, "hypot(x, x)", &Tensor::from([3i32]), &s).unwrap(), [3.0f32.hypot(3.0)]);
    assert!(value::<i32>(Rules::Paddle, "gcd(x, s)", &ints, &s).is_err());
    assert!(value::<f64>(Rules::Paddle, "lerp(x, s, 0.5)", &Tensor::from([1.0f32]), &Tensor::scalar(1.0f64)).is_err());
}

/// The bytes of `cast(s, dtype)` in both modes, and those of the cast of a tensor with the scalar's value.
fn cast_scalar(rules: Rules, s: castwise::Scalar, own: &Tensor, dtype: DType) -> [Vec<u8>; 4] {
    let bytes = |t: &Tensor| t.contiguous().unwrap().as_bytes().unwrap().to_vec();
    let p = Program::new(rules);
    let (x, text) = (p.scalar(s, dtype), p.to_string());
    let read = Program::parse(&text).unwrap();
    assert_eq!(read.to_string(), text);
    let run = |p: &Program, v: &castwise::Var| Executor::new().run(p, feeds! {}, [v]).unwrap().remove(0);
    let eager = Eager::new(rules);
    let all = [
        run(&p, &x),
        run(&read, &read.fetches()[0].var),
        eager.scalar(s, dtype).result().unwrap(),
        eager.tensor(own).cast(dtype).result().unwrap(),
    ];
    all.map(|t| {
        assert_eq!((t.dtype(), t.shape()), (dtype, &[][..]));
        bytes(&t)
    })
}

#[test]
fn a_scalar_is_cast_as_a_tensor_of_its_value() {
    let big = 1e300;
    let scalars: Vec<(castwise::Scalar, Tensor)> = vec![
        (true.into(), Tensor::scalar(true)),
        (i64::MIN.into(), Tensor::scalar(i64::MIN)),
        (300i64.into(), Tensor::scalar(300i64)),
        (0.3.into(), Tensor::scalar(0.3)),
        (big.into(), Tensor::scalar(big)),
        (500.0.into(), Tensor::scalar(500.0)),
        (f64::NAN.into(), Tensor::scalar(f64::NAN)),
        ((-0.0).into(), Tensor::scalar(-0.0)),
        (f64::NEG_INFINITY.into(), Tensor::scalar(f64::NEG_INFINITY)),
        (castwise::Complex::new(0.1, -0.7).into(), Tensor::scalar(castwise::Complex::new(0.1, -0.7))),
    ];
    for rules in Rules::ALL.iter().copied() {
        for dtype in DType::ALL {
            for (s, own) in &scalars {
                let p = Program::new(rules);
                p.scalar(*s, dtype);
                let tensor = Eager::new(rules).tensor(own).cast(dtype).result();
                // NumPy and JAX refuse integers that a dtype does not have, where tensors wrap.
                let beyond = match p.check() {
                    Ok(()) => false,
                    Err(e) => matches!(e.diagnostics()[0].kind, DiagnosticKind::ScalarOverflow),
                };
                assert_eq!(p.check().is_ok() || beyond, tensor.is_ok(), "{rules} {s:?} {dtype}");
                assert!(
                    !beyond || matches!(s, castwise::Scalar::Int(_)) && rules != Rules::Torch && rules != Rules::Paddle
                );
                if tensor.is_ok() && !beyond {
                    let [run, read, eager, tensor] = cast_scalar(rules, *s, own, dtype);
                    assert_eq!((&run, &read, &eager), (&tensor, &tensor, &tensor), "{rules} {s:?} {dtype}");
                }
            }
        }
    }
}

#[test]
fn a_cast_scalar_is_rounded_before_it_is_used() {
    let p = Program::new(Rules::Torch);
    p.data("x", DType::F32, [1]);
    // mergekit rounds weights to the dtype of the merge: 0.3 is 0.30078125 in bf16.
    let w = |name: &str| (name == "w").then_some(castwise::Scalar::Float(0.3));
    let x = Tensor::from([1.0f32]);
    for text in
        ["cast(0.3, bf16) * x", "cast(w, bf16) * x", "r = cast(w, dtype=bf16); x * r", "cast(1 - 0.7, bf16) * x"]
    {
        let y = p.expression_with(text, w).unwrap();
        let out = Executor::new().run(&p, feeds! { "x" => &x }, [&y]).unwrap();
        assert_eq!(out[0].to_vec::<f32>().unwrap(), [0.30078125], "{text}");
        let copy = p.infer().unwrap().rewrite(|n| n.copy()).unwrap();
        assert_eq!(copy.program.to_string(), p.to_string());
        let eager = Eager::new(Rules::Torch).tensor(&x);
        if !text.contains('w') {
            let y = castwise::expr::parse_expression(text, |_| Some(eager.clone())).unwrap();
            assert_eq!(y.result().unwrap().to_vec::<f32>().unwrap(), [0.30078125], "{text}");
        }
    }
    for text in ["cast(0.3, bf16)", "cast(0.3, bf16) * 2", "sqrt(0.3) * x", "view_as(0.3, i64) * x", "cast(0.3)"] {
        assert!(p.expression(text).is_err(), "{text}");
    }
    let foreign = Program::new(Rules::NumPy);
    foreign.scalar(0.3, DType::C32);
    assert!(foreign.check().is_err(), "NumPy has no c32");
}
