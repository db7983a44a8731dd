//! Values that the feature `serde` writes read back.

use castwise::prelude::*;
use castwise::{Rounding, TensorMeta};
use serde::{Serialize, de::DeserializeOwned};

fn round_trip<T: Serialize + DeserializeOwned>(v: &T, json: &str) -> T {
    let text = serde_json::to_string(v).unwrap();
    assert_eq!(text, json);
    let again: T = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    again
}

#[test]
fn names_and_settings_read_back() {
    for d in DType::ALL {
        assert_eq!(round_trip(&d, &format!("\"{d}\"")), d);
    }
    for rules in Rules::ALL.iter() {
        assert_eq!(round_trip(rules, &format!("\"{rules}\"")), *rules);
    }
    for rounding in [Rounding::Exact, Rounding::Relaxed] {
        assert_eq!(round_trip(&rounding, &format!("\"{rounding}\"")), rounding);
    }
    let settings = Settings::new(Rules::Torch).with_default_dtype(DType::F64).with_rounding(Rounding::Relaxed);
    let json = r#"{"rules":"torch","default_dtype":"f64","rounding":"relaxed"}"#;
    assert_eq!(round_trip(&settings, json), settings);
    assert_eq!(serde_json::from_str::<Settings>(r#"{"rules":"paddle"}"#).unwrap(), Settings::new(Rules::Paddle));
    let wrong =
        [r#"{}"#, r#"{"rules":"polars"}"#, r#"{"rules":"torch","default_dtype":"i32"}"#, r#"{"rules":"torch","x":1}"#];
    wrong.iter().for_each(|w| assert!(serde_json::from_str::<Settings>(w).is_err(), "{w}"));
}

#[test]
fn types_of_tensors_read_back() {
    let t = Tensor::zeros(DType::BF16, [2, 0, 3]).unwrap();
    let meta = round_trip(&t.meta(), r#"{"dtype":"bf16","shape":[2,0,3]}"#);
    assert_eq!((meta.dtype, &meta.shape[..], meta.to_string()), (DType::BF16, t.shape(), "bf16[2, 0, 3]".to_string()));
    let huge = r#"{"dtype":"f32","shape":[4294967296,4294967296]}"#;
    assert!(serde_json::from_str::<TensorMeta>(huge).is_err());
}

#[test]
fn programs_are_their_text() {
    let p = Program::new(Rules::Paddle);
    let y = (p.data("a \"name\"", DType::F32, ["n"]) + f64::NAN).sum();
    p.set_fetches([("y", &y)]).unwrap();
    let json = serde_json::to_string(&p.to_string()).unwrap();
    assert_eq!(round_trip(&p, &json).to_string(), p.to_string());
    let wrong = serde_json::from_str::<Program>("\"castwise 1\"").map(|_| ()).unwrap_err();
    assert!(wrong.to_string().contains("expected `program`"), "{wrong}");
}
