//! What is written is read; what is cut or changed is an error.

use castwise::{DType, Rules, ZeroDivision};

use super::*;

fn functions() -> Vec<ScalarUDF> {
    let p = Program::new(Rules::Jax);
    let y = p.data("x", DType::F32, [None]) * 2.0;
    p.set_fetches([(None::<&str>, &y)]).unwrap();
    let odd = Settings::new(Rules::NumPy).with_zero_division(ZeroDivision::Error).with_default_dtype(DType::F16);
    vec![
        castwise_udf("half", Source::expression("x / 2 + \"é\"", odd).unwrap()),
        castwise_udf("twice", Source::program(&p).unwrap()),
        sql_function("castwise", odd),
    ]
}

#[test]
fn functions_are_read_as_they_were_written() {
    for function in functions() {
        let bytes = encode_scalar(&function).unwrap();
        assert_eq!(decode_scalar(function.name(), &bytes).unwrap().unwrap(), function);
    }
    assert!(decode_scalar("sqrt", b"something else").is_none());
}

#[test]
fn damage_is_an_error_and_no_panic() {
    for function in functions() {
        let bytes = encode_scalar(&function).unwrap();
        for cut in 0..bytes.len() {
            if let Some(Ok(found)) = decode_scalar(function.name(), &bytes[..cut]) {
                assert_ne!(found, function);
            }
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x11;
            let _ = decode_scalar(function.name(), &changed);
        }
    }
}

#[test]
fn another_version_is_refused_by_name() {
    let bytes = encode_scalar(&functions()[0]).unwrap();
    let old = String::from_utf8(bytes).unwrap().replacen(VERSION, "0.0.9", 1);
    let error = decode_scalar("half", old.as_bytes()).unwrap().unwrap_err().to_string();
    assert!(error.contains("castwise-datafusion 0.0.9, this process has"), "{error}");
}
