//! f8e4m3fn and f8e5m2: conversions as recorded from the frameworks, files, and what is refused.

use castwise::io::{Existing, SafeTensors, SafeTensorsWriter, write_npy};
use castwise::prelude::*;
use castwise::{Attrs, DiagnosticKind, F8E4M3FN, F8E5M2, Op, Operand};
use serde_json::Value;

use crate::common::EXECUTOR;

const BYTES: [DType; 2] = [DType::F8E4M3FN, DType::F8E5M2];

/// The elements with these bits, cast in both modes, which must agree.
fn cast(from: DType, bits: &[u64], to: DType) -> Vec<u8> {
    let bytes: Vec<u8> = bits.iter().flat_map(|b| b.to_le_bytes().into_iter().take(from.size())).collect();
    let t = Tensor::from_bytes(from, [bits.len()], &bytes).unwrap();
    let eager = Eager::new(Rules::Torch).tensor(&t).cast(to).result().unwrap();
    let p = Program::new(Rules::Torch);
    let y = p.data("x", from, [None]).cast(to);
    let compiled = EXECUTOR.with(|exe| exe.run(&p, feeds! { "x" => &t }, [&y])).unwrap();
    assert_eq!(eager.as_bytes(), compiled[0].as_bytes(), "{from} to {to}");
    eager.as_bytes().unwrap().to_vec()
}

fn is_nan(d: DType, code: u8) -> bool {
    code & 0x7f > if d == DType::F8E4M3FN { 0x7e } else { 0x7c }
}

/// Checks codes; a NaN must be the canonical one.
fn check(from: DType, to: DType, bits: &[u64], wanted: &[u8]) {
    let canonical = if to == DType::F8E4M3FN { 0x7f } else { 0x7e };
    for ((bits, want), got) in bits.iter().zip(wanted).zip(cast(from, bits, to)) {
        let want = if is_nan(to, *want) { canonical } else { *want };
        assert_eq!(got, want, "{bits:#x} of {from} to {to}: {got:#x}, not {want:#x}");
    }
}

fn hex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().unwrap();
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

/// A little-endian number.
fn word(text: &Value) -> u64 {
    hex(text).iter().rev().fold(0, |all, b| all << 8 | u64::from(*b))
}

#[test]
fn conversions_are_those_that_the_frameworks_gave() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/f8-casts.jsonl");
    let mut compared = 0;
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let [from, to] = ["from", "to"].map(|k| case[k].as_str().unwrap().parse::<DType>().unwrap());
        if let Some(all) = case["bits"].as_array() {
            // Every value, as f32. NaNs become the canonical one.
            let codes: Vec<u64> = (0..256).collect();
            let got = cast(from, &codes, to);
            for ((code, got), want) in codes.iter().zip(got.chunks(4)).zip(all) {
                let (got, want) = (u32::from_le_bytes(got.try_into().unwrap()), word(want) as u32);
                assert!(got == want || f32::from_bits(got).is_nan() && f32::from_bits(want).is_nan(), "{code:#x}");
            }
            compared += codes.len();
        } else if let Some(steps) = case["first"].as_array() {
            // From which bits on there is which code, signs apart.
            let step = |s: &Value| (s[0].as_u64().unwrap(), s[1].as_u64().unwrap() as u8);
            let sign = 1u64 << (8 * from.size() - 1);
            let (mut bits, mut wanted) = (vec![], vec![]);
            for (i, (first, code)) in steps.iter().map(step).enumerate() {
                let end = steps.get(i + 1).map_or(sign, |s| step(s).0);
                // f32 at both ends and between, the others whole.
                let some = if from == DType::F32 { end - first } else { 1 };
                let all = (first..end).step_by((some / 5).max(1) as usize).chain([end - 1]);
                for b in all.flat_map(|b| [b, b | sign]) {
                    bits.push(b);
                    wanted.push(code | if b & sign != 0 { 0x80 } else { 0 });
                }
            }
            check(from, to, &bits, &wanted);
            compared += bits.len();
        } else {
            // JAX rounds f64 once, but has NaN where PyTorch, and so castwise under its rules, has the largest number.
            let bits: Vec<u64> = case["x"].as_array().unwrap().iter().map(word).collect();
            let beyond = |(bits, code): (&u64, u8)| {
                let x = f64::from_bits(*bits);
                let saturates = to == DType::F8E4M3FN && is_nan(to, code) && !x.is_nan();
                if saturates { 0x7e | if x < 0.0 { 0x80 } else { 0 } } else { code }
            };
            let wanted: Vec<u8> = bits.iter().zip(hex(&case["jax"])).map(beyond).collect();
            check(from, to, &bits, &wanted);
            compared += bits.len();
        }
    }
    assert!(compared > 250_000, "only {compared}");
}

#[test]
fn every_op_but_casts_is_refused_and_says_what_to_write() {
    let stores = [Rules::Torch, Rules::Paddle, Rules::NumPy];
    for (rules, d) in stores.into_iter().flat_map(|r| BYTES.map(|d| (r, d))) {
        let t = Tensor::zeros(d, [2]).unwrap();
        for op in Op::ALL.iter().copied().filter(|op| !matches!(op, Op::Cast | Op::ViewAs)) {
            let x = Eager::new(rules).tensor(&t);
            let parameter = (op.def().parameters() > 0).then_some(Operand::Scalar(Scalar::Int(1)));
            let tensors = op.arity() - op.def().parameters();
            let all: Vec<Operand<Eager>> = std::iter::repeat_n((&x).into(), tensors).chain(parameter).collect();
            let Err(e) = castwise::apply(op, &all, Attrs::default()).result() else {
                panic!("{op} of {d} under {rules}")
            };
            let [mistake] = e.diagnostics() else { panic!("{op} of {d} under {rules}: {e}") };
            assert_eq!(mistake.kind, DiagnosticKind::UnsupportedDType, "{op}");
            let help = mistake.help.as_ref().unwrap();
            assert!(help.starts_with("cast the ") && help.contains("`cast("), "{op}: {help}");
        }
        // As the dtype of a result as well.
        let f = Eager::new(rules).tensor(&Tensor::from([1.0f32]));
        assert!(f.over([0]).dtype(d).sum().result().is_err());
        let bits = Eager::new(rules).tensor(&Tensor::from([0xb8u8])).view_as(d);
        assert_eq!(bits.view_as(DType::U8).result().unwrap().to_vec::<u8>().unwrap(), [0xb8]);
        assert!(!rules.accepts(Op::Add).has(d) && rules.accepts(Op::Cast).has(d));
        let settings = Settings::new(rules).with_default_dtype(d);
        assert!((Eager::with_settings(settings).tensor(&Tensor::from([1.0f32])) + 1).result().is_err());
    }
}

#[test]
fn files_and_texts_hold_every_bit() {
    let path = std::env::temp_dir().join(format!("castwise-byte-floats-{}.safetensors", std::process::id()));
    let codes: Vec<u8> = (0..=255).collect();
    let tensors = BYTES.map(|d| (d.name().to_string(), Tensor::from_bytes(d, [16, 16], &codes).unwrap()));
    let list: Vec<_> = tensors.iter().map(|(n, t)| (n.clone(), t.dtype(), t.shape().to_vec())).collect();
    let mut out = SafeTensorsWriter::create(&path, &list, &Default::default(), Existing::Replace).unwrap();
    tensors.iter().for_each(|(n, t)| out.write(n, t).unwrap());
    out.finish().unwrap();
    let mut file = SafeTensors::open(&path).unwrap();
    for (name, t) in &tensors {
        let read = file.load(name).unwrap();
        assert_eq!((read.dtype(), read.as_bytes()), (t.dtype(), t.as_bytes()));
        let refused = write_npy(path.with_extension("npy"), t, Existing::Replace).unwrap_err().to_string();
        assert!(refused.contains("write .safetensors, or cast"), "{refused}");
        // As text, value by value, and as a program's constant.
        for row in 0..16 {
            let some = t.slice(0, row, row + 1, 1).unwrap().contiguous().unwrap();
            let p = Program::new(Rules::Torch);
            let y = p.constant(some.clone()).cast(DType::F32);
            let text = p.to_string();
            let back: Program = text.parse().unwrap();
            assert_eq!(back.to_string(), text);
            let _ = y;
        }
    }
    std::fs::remove_file(&path).unwrap();
}

/// As ml_dtypes, which has them under NumPy.
#[test]
fn beyond_the_largest_number_is_nan_under_numpys_rules() {
    let values = [448.0f32, 464.0, 464.1, -1e9, f32::INFINITY, f32::NAN];
    let wide = values.map(f64::from);
    let codes = |rules, t: &Tensor, to| {
        let eager = Eager::new(rules).tensor(t).cast(to).result().unwrap();
        let p = Program::new(rules);
        let y = p.data("x", t.dtype(), [None]).cast(to);
        let compiled = EXECUTOR.with(|exe| exe.run(&p, feeds! { "x" => t }, [&y])).unwrap();
        assert_eq!(eager.as_bytes(), compiled[0].as_bytes());
        eager.as_bytes().unwrap().to_vec()
    };
    for t in [Tensor::from(values), Tensor::from(wide)] {
        assert_eq!(codes(Rules::Torch, &t, DType::F8E4M3FN), [0x7e, 0x7e, 0x7e, 0xfe, 0x7e, 0x7f], "{}", t.dtype());
        let nan = codes(Rules::NumPy, &t, DType::F8E4M3FN);
        assert_eq!(
            nan.iter().map(|c| c & 0x7f).collect::<Vec<_>>(),
            [0x7e, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f],
            "{}",
            t.dtype()
        );
        for rules in [Rules::Torch, Rules::NumPy] {
            assert_eq!(codes(rules, &t, DType::F8E5M2)[3..], [0xfc, 0x7c, 0x7e], "{}", t.dtype());
        }
    }
    assert_eq!(codes(Rules::NumPy, &Tensor::from([448i64, 1 << 40]), DType::F8E4M3FN), [0x7e, 0x7f]);
}

#[test]
fn the_rust_types_are_numbers() {
    assert_eq!((F8E4M3FN::from_f32(448.0).to_bits(), F8E4M3FN::from_f32(f32::INFINITY).to_bits()), (0x7e, 0x7e));
    assert_eq!((F8E5M2::from_f32(-1e9).to_f32(), F8E5M2::from_f64(2.5).to_f64()), (f32::NEG_INFINITY, 2.5));
    assert!(
        F8E4M3FN::from_f32(f32::NAN) != F8E4M3FN::from_f32(f32::NAN) && F8E5M2::from_bits(0x80) == F8E5M2::default()
    );
    // Rounding to f32 first would make it a tie.
    assert_eq!(F8E4M3FN::from_f64(1.0625 + 1e-12).to_f64(), 1.125);
    // Exact decimals.
    let t = Tensor::from([F8E4M3FN::from_f32(0.3), F8E4M3FN::from_f32(-1e6)]);
    assert_eq!((t.dtype(), t.to_string()), (DType::F8E4M3FN, "[   0.3125 -448.0   ]".to_string()));
    assert_eq!(format!("{t:?}"), "f8e4m3fn[2] [0.3125, -448.0]");
}
