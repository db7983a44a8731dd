//! `fma` is the exact number rounded once, in every float dtype, in both modes, and at every CPU level.

mod common;
mod reference;

use castwise::prelude::*;
use castwise::{DiagnosticKind, Op};
use common::levels::{at_every_level, only_memory_counts};
use common::{Random, element};
use reference::format::{Beyond, encode};
use reference::{Expected, Value};

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
    at_every_level("every_result_is_the_exact_number_rounded_once", || {
        for d in DTYPES {
            let all = triples(d);
            let [x, y, z] = [0, 1, 2].map(|i| tensor(d, &all, i));
            let p = Program::new(Rules::Torch);
            let [a, b, c] = ["x", "y", "z"].map(|name| p.data(name, d, [None]));
            let fused = a.fma(&b, &c);
            let feeds = feeds! { "x" => &x, "y" => &y, "z" => &z };
            let made = Executor::new().run(&p, feeds, [&fused]).unwrap().remove(0);
            let e = Eager::new(Rules::Torch);
            let eager = e.tensor(&x).fma(&e.tensor(&y), &e.tensor(&z)).result().unwrap();
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
