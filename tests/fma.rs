//! `fma` is the exact number rounded once, in every float dtype, in both modes, and at every CPU level. Under the setting
//! that contracts sums of products, these are computed by it.

use castwise::prelude::*;
use castwise::{Attrs, Contraction, DiagnosticKind, Op, Operand, apply};

use crate::common::levels::{at_every_level, only_memory_counts};
use crate::common::{Random, element};
use crate::reference::format::{Beyond, encode};
use crate::reference::{self, Expected, Value};

const DTYPES: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// Numbers of which products and sums round, cancel, overflow and underflow, as bits.
fn numbers(d: DType) -> Vec<u128> {
    let (digits, least, most) = match d {
        DType::F16 => (11, -24, 15),
        DType::BF16 => (8, -133, 127),
        DType::F32 => (24, -149, 127),
        _ => (53, -1074, 1023),
    };
    let ulp = 2f64.powi(1 - digits);
    let power = |e: i32| if e < -1022 { 2f64.powi(e + 60) * 2f64.powi(-60) } else { 2f64.powi(e) };
    let some = [
        0.0,
        1.0,
        1.0 + ulp,
        1.0 - ulp / 2.0,
        1.5,
        3.0,
        ulp,
        ulp / 2.0,
        ulp / 2.0 * (1.0 + ulp),
        power(least),
        power(least + digits - 1),
        power(most),
        (2.0 - ulp) * power(most),
        f64::INFINITY,
    ];
    let all = some.iter().flat_map(|v| [*v, -*v]).chain([f64::NAN]);
    all.map(|v| encode(d, Value::Real(v), Beyond::Largest)).collect()
}

/// Triples of bits: all of the numbers above, and random ones, of which the third is often close to the product.
fn triples(d: DType) -> Vec<[u128; 3]> {
    let some = numbers(d);
    let mut all: Vec<[u128; 3]> = Vec::new();
    for x in &some {
        for y in &some {
            all.extend(some.iter().map(|z| [*x, *y, *z]));
        }
    }
    let mut r = Random(7);
    let mut any = || {
        let mut bits = [0; 16];
        let bytes = element(d, &mut r, false);
        bits[..bytes.len()].copy_from_slice(&bytes);
        u128::from_ne_bytes(bits)
    };
    let beyond = (d, Beyond::Largest);
    for i in 0..20_000 {
        let (x, y, z) = (any(), any(), any());
        let product = match reference::element(Op::Mul, d, beyond, &[x, y]) {
            Ok(Expected::Bits(bits)) if i % 2 == 0 => bits ^ (1 << (8 * d.size() - 1)),
            _ => z,
        };
        all.push([x, y, product]);
    }
    all
}

fn tensor(d: DType, all: &[[u128; 3]], i: usize) -> Tensor {
    let bytes: Vec<u8> = all.iter().flat_map(|t| t[i].to_ne_bytes()[..d.size()].to_vec()).collect();
    Tensor::from_bytes(d, [all.len()], &bytes).unwrap()
}

#[test]
fn every_result_is_the_exact_number_rounded_once() {
    at_every_level("fma::every_result_is_the_exact_number_rounded_once", || {
        for d in DTYPES {
            let all = triples(d);
            let [x, y, z] = [0, 1, 2].map(|i| tensor(d, &all, i));
            let p = Program::new(Rules::Torch);
            let [a, b, c] = ["x", "y", "z"].map(|name| p.data(name, d, [None]));
            let fused = a.fma(&b, &c);
            let feeds = feeds! { "x" => &x, "y" => &y, "z" => &z };
            let made = Executor::new().run(&p, feeds, [&fused]).unwrap().remove(0);
            let e = Eager::new(Rules::Torch);
            let eager = e.tensor(&x).fma(e.tensor(&y), e.tensor(&z)).result().unwrap();
            assert!(made.as_bytes() == eager.as_bytes(), "{d}");
            if only_memory_counts() {
                continue;
            }
            for (t, got) in all.iter().zip(made.as_bytes().unwrap().chunks_exact(d.size())) {
                let Ok(Expected::Bits(want)) = reference::element(Op::Fma, d, (d, Beyond::Largest), t) else {
                    panic!("{t:x?}")
                };
                assert!(got == &want.to_ne_bytes()[..d.size()], "{d} {t:x?} is {want:x}, not {got:x?}");
            }
        }
    });
}

#[test]
fn what_computes_it_is_shown_and_integers_are_refused() {
    for rules in Rules::ALL {
        let result = |x: DType, z: DType| {
            let p = Program::new(*rules);
            let fused = p.data("x", x, [3]).fma(p.data("y", x, [3]), p.data("z", z, [3]));
            (p.infer().map(|t| (t.dtype(&fused).unwrap(), t.to_string())), p)
        };
        for (d, row) in [(DType::F16, "fma_half"), (DType::BF16, "fma_half"), (DType::F32, "fma"), (DType::F64, "fma")]
        {
            let (dtype, text) = result(d, d).0.unwrap();
            assert!(dtype == d && text.contains(&format!("= {row} %x, %y, %z")), "{rules}: {text}");
            // What a typed program applies is applied as it is.
            let p = Program::new(*rules);
            let [x, y, z] = ["x", "y", "z"].map(|name| p.data(name, d, [3]));
            x.fma_half(y, z);
            assert!(p.infer().unwrap().to_string().contains(&format!("= {row} %x, %y, %z")), "{rules}");
        }
        for d in [DType::I32, DType::Bool, DType::C64] {
            let error = result(d, d).0.unwrap_err();
            assert_eq!(error.diagnostics()[0].kind, DiagnosticKind::UnsupportedDType, "{rules} {error}");
        }
    }
    let p = Program::new(Rules::Torch);
    p.data("x", DType::F32, [3]);
    p.expression("fma(x, 2, z=1) + fma(x, x, x)").and_then(|_| p.check()).unwrap();
}

/// The ops that the setting contracts, with the row that is applied instead and the place of a scalar.
const CONTRACTED: [(Op, Op, Option<usize>); 4] = [
    (Op::AddScaled, Op::AddScaledFma, Some(2)),
    (Op::SubScaled, Op::SubScaledFma, Some(2)),
    (Op::Addcmul, Op::AddcmulFma, Some(3)),
    (Op::Lerp, Op::LerpFma, None),
];

#[test]
fn contracted_ops_round_a_product_and_its_sum_once() {
    let settings = Settings::new(Rules::Torch).with_contraction(Contraction::Torch);
    at_every_level("fma::contracted_ops_round_a_product_and_its_sum_once", || {
        for ((op, row, scalar), d) in CONTRACTED.iter().flat_map(|c| DTYPES.map(|d| (c, d))) {
            let all = triples(d);
            let (tensors, value) = ([0, 1, 2].map(|i| tensor(d, &all, i)), 0.75);
            let count = op.arity() - usize::from(scalar.is_some());
            let p = Program::with_settings(settings);
            let mut operands: Vec<Operand> =
                ["x", "y", "z"][..count].iter().map(|name| p.data(name, d, [None]).into()).collect();
            operands.extend(scalar.map(|_| value.into()));
            let made = apply(*op, &operands, Attrs::default());
            let text = p.infer().unwrap().to_string();
            let applied = if d.size() >= 4 { row } else { op };
            assert!(text.contains(&format!("= {applied} %x")), "{text}");
            let feeds: Vec<(&str, &Tensor)> = ["x", "y", "z"].into_iter().zip(&tensors).take(count).collect();
            let made = Executor::new().run(&p, feeds, [&made]).unwrap().remove(0);
            let e = Eager::with_settings(settings);
            let mut operands: Vec<Operand<Eager>> = tensors[..count].iter().map(|t| e.tensor(t).into()).collect();
            operands.extend(scalar.map(|_| value.into()));
            let eager = apply(*op, &operands, Attrs::default()).result().unwrap();
            assert!(made.as_bytes() == eager.as_bytes(), "{op} {d}");
            if only_memory_counts() {
                continue;
            }
            let beyond = (d, Beyond::Largest);
            for (t, got) in all.iter().zip(made.as_bytes().unwrap().chunks_exact(d.size())) {
                let mut args = t[..count].to_vec();
                args.extend(scalar.map(|_| encode(d, Value::Real(value), Beyond::Largest)));
                let Ok(Expected::Bits(want)) = reference::element(*applied, d, beyond, &args) else { panic!("{t:x?}") };
                assert!(got == &want.to_ne_bytes()[..d.size()], "{applied} {d} {t:x?} is {want:x}, not {got:x?}");
            }
        }
    });
}

#[test]
fn the_setting_is_printed_and_read() {
    let contracted = Settings::new(Rules::Torch).with_contraction(Contraction::Torch);
    let p = Program::with_settings(contracted);
    let x = p.data("x", DType::F32, [3]);
    x.addcmul(&x, &x, 2);
    let text = p.to_string();
    assert!(text.starts_with("castwise 1\nprogram(rules = torch, contraction = torch) (%x: f32[3])"), "{text}");
    let read = Program::parse(&text).unwrap();
    assert_eq!((read.to_string(), read.settings()), (text, contracted));
    assert!(p.infer().unwrap().to_string().contains("= addcmul_fma %x"));
    assert_eq!("torch".parse(), Ok(Contraction::Torch));
    assert_eq!("on".parse::<Contraction>().unwrap_err(), "unknown contraction `on`: `off` or `torch`");
    // Without it, nothing is contracted; each row can be applied by its name.
    let q = p.with_rules(Rules::Jax);
    assert_eq!(q.settings().contraction, Contraction::Torch);
    let plain = Program::new(Rules::Torch);
    plain.data("x", DType::F64, [3]);
    plain.expression("lerp(x, x, 0.5) + lerp_fma(x, x, 0.5)").unwrap();
    let text = plain.infer().unwrap().to_string();
    assert!(text.contains("= lerp %x") && text.contains("= lerp_fma %x"), "{text}");
}
