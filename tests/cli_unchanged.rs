//! Tensors of dtypes that castwise lacks, which a merge copies byte for byte.

use castwise::io::{Existing, ForeignDType, SafeTensors, ShardedSafeTensors, ShardedWriter, StoredDType};
use castwise::{DType, Tensor};

use crate::command::{Dir, half_tensor};

/// A checkpoint with a tensor `w` of f16 and three of dtypes that castwise lacks, one of them with two elements a byte.
/// Returns their bytes.
fn checkpoint(dir: &Dir, name: &str) -> [(&'static str, &'static str, Vec<u8>); 3] {
    let foreign = [
        ("scales", "F8_E8M0", vec![0x7f, 0xff, 0x00]),
        ("blocks", "F4", vec![0x12, 0x9f]),
        ("old", "F8_E4M3FNUZ", vec![0x80, 1, 2, 3, 4]),
    ];
    let (mut at, mut entries, mut data) = (0, Vec::new(), Vec::new());
    for (name, dtype, bytes) in &foreign {
        let count = if *dtype == "F4" { 2 * bytes.len() } else { bytes.len() };
        let end = at + bytes.len();
        entries.push(format!(r#""{name}":{{"dtype":"{dtype}","shape":[1,{count}],"data_offsets":[{at},{end}]}}"#));
        data.extend(bytes);
        at = end;
    }
    let w = half_tensor(1, &[4]);
    entries.push(format!(r#""w":{{"dtype":"F16","shape":[4],"data_offsets":[{at},{}]}}"#, at + 8));
    data.extend(w.as_bytes().unwrap());
    let header = format!("{{{}}}", entries.join(","));
    dir.file(name, &[&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat());
    foreign
}

fn foreign(dtype: StoredDType) -> String {
    match dtype {
        StoredDType::Foreign(d) => ForeignDType::to_string(&d),
        StoredDType::Known(d) => panic!("{d} is not foreign"),
    }
}

const MERGE: [&str; 8] =
    ["0.5*a + 0.5*b", "--map", "scales|blocks|old=b", "-i", "a=a.safetensors", "-i", "b=b.safetensors", "-o"];

#[test]
fn a_merge_copies_them_where_the_expression_only_names_them() {
    let dir = Dir::new("unchanged");
    checkpoint(&dir, "a.safetensors");
    let all = checkpoint(&dir, "b.safetensors");
    let out = dir.eval(&[&MERGE[..], &["m.safetensors"]].concat()).ok();
    let note = "note: 3 tensors of F8_E8M0, F4 and F8_E4M3FNUZ, which castwise does not have, copied unchanged: ";
    assert!(out.stderr.contains(note) && out.stderr.contains("4 tensors: "), "{}", out.stderr);
    let mut merged = SafeTensors::open(dir.0.join("m.safetensors")).unwrap();
    for (name, dtype, bytes) in &all {
        let (stored, shape) = merged.stored(name).unwrap();
        assert_eq!((foreign(stored), shape[0]), (dtype.to_string(), 1));
        assert_eq!(merged.load_stored(name).unwrap().bytes(), bytes, "{name}");
    }
    assert_eq!(merged.load("w").unwrap().as_bytes(), half_tensor(1, &[4]).as_bytes());
    // A sharded checkpoint, from a sharded one: each tensor in a shard of its own.
    let out = dir.eval(&[&MERGE[..], &["s.index.json", "--max-shard-size", "1"]].concat()).ok();
    assert!(out.stderr.contains("copied unchanged"), "{}", out.stderr);
    dir.eval(&["m", "-i", "m=s.index.json", "-o", "n.index.json", "--max-shard-size", "1"]).ok();
    let mut sharded = ShardedSafeTensors::open(dir.0.join("n.index.json")).unwrap();
    assert_eq!(sharded.files().count(), 4);
    for (name, _, bytes) in &all {
        assert_eq!(sharded.load_stored(name).unwrap().bytes(), bytes, "{name}");
    }
}

#[test]
fn a_dry_run_and_the_report_list_them() {
    let dir = Dir::new("unchanged-dry");
    checkpoint(&dir, "a.safetensors");
    checkpoint(&dir, "b.safetensors");
    let out = dir.eval(&[&MERGE[..], &["m.safetensors", "--dry-run"]].concat()).ok();
    assert!(out.stdout.contains("\nscales = b: F8_E8M0[1, 3], unchanged\n"), "{}", out.stdout);
    assert!(out.stdout.contains("4 tensors: would read 26 B and write 18 B"), "{}", out.stdout);
    let out = dir.eval(&[&MERGE[..], &["m.safetensors", "--json"]].concat()).ok();
    let report: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let tensors = report["tensors"].as_array().unwrap();
    let scales = tensors.iter().find(|t| t["name"] == "scales").unwrap();
    assert_eq!((&scales["dtype"], &scales["shape"]), (&"F8_E8M0".into(), &vec![1, 3].into()));
    assert_eq!((&report["bytes"]["read"], &report["bytes"]["written"]), (&26.into(), &18.into()));
}

#[test]
fn they_are_refused_where_they_would_be_computed_or_can_not_be_stored() {
    let dir = Dir::new("unchanged-refused");
    checkpoint(&dir, "a.safetensors");
    let refused = |arguments: &[&str]| dir.refused(&[arguments, &["-i", "a=a.safetensors"]].concat());
    let stderr = refused(&["a * 1", "-o", "m.safetensors"]);
    assert!(stderr.contains("the tensor `scales` is F8_E8M0, a dtype that castwise does not have"), "{stderr}");
    let stderr = refused(&["a", "-o", "m.safetensors", "--out-dtype", "f32", "--out-dtype-all"]);
    assert!(stderr.contains("the tensor `scales` is F8_E8M0"), "{stderr}");
    assert!(refused(&["a", "-o", "m.safetensors", "--out-dtype", "i32"]).contains("the tensor `scales` is F8_E8M0"));
    let stderr = refused(&["a", "-o", "m.npz"]);
    assert!(stderr.contains("NumPy has no F8_E8M0 (for `scales`): write .safetensors"), "{stderr}");
    assert!(!dir.names().iter().any(|n| n.starts_with("m.")));
}

#[test]
fn a_writer_accepts_only_what_it_lists() {
    let dir = Dir::new("unchanged-writer");
    checkpoint(&dir, "a.safetensors");
    let mut file = SafeTensors::open(dir.0.join("a.safetensors")).unwrap();
    let (dtype, shape) = file.stored("scales").unwrap();
    let list = [("scales".to_string(), dtype, shape.to_vec())];
    let t = file.load_stored("blocks").unwrap();
    let path = dir.0.join("b.safetensors.index.json");
    let mut out = ShardedWriter::create(&path, &list, &Default::default(), 10, Existing::Keep).unwrap();
    let error = out.write_stored("scales", &t).unwrap_err().to_string();
    assert!(error.contains("the tensor `scales` is F4[1, 4], but listed as F8_E8M0[1, 3]"), "{error}");
    let known = Tensor::zeros(DType::U8, [1, 3]).unwrap();
    assert!(out.write("scales", &known).is_err() && out.finish().is_err());
    let error = file.load("scales").unwrap_err().to_string();
    assert!(error.ends_with("the tensor `scales` is F8_E8M0, a dtype that castwise does not have"), "{error}");
}
