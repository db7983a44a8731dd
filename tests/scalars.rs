//! Scalars that a tensor's dtype can't hold, or would round, against what PyTorch 2.15 answers: in both modes.

use castwise::prelude::*;
use castwise::{Attrs, Error, Op, Operand, apply, bf16, f16};

/// An expression in `x`, and what becomes of it: elements, or a refusal.
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
    // Other ops wrap, or refuse.
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

/// The weight of `lerp` in the half types is a number of f32, as PyTorch's is, and not rounded to theirs.
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
