//! Files composed byte by byte, valid and invalid.

use std::collections::BTreeMap;
use std::path::PathBuf;

use half::{bf16, f16};
use num_complex::Complex;

use super::*;

mod damage;
mod faults;
mod folder;
mod limits;
mod npz;
mod parts;
mod sharded;

/// A temporary directory for one test, removed when the test ends.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("castwise-io-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let mut all: Vec<String> =
            std::fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        all.sort();
        all
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn npy(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
    match version {
        1 => bytes.extend((header.len() as u16).to_le_bytes()),
        _ => bytes.extend((header.len() as u32).to_le_bytes()),
    }
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}   \n")
}

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn samples() -> Vec<Tensor> {
    let c = |re: f64, im: f64| Complex::new(re, im);
    vec![
        Tensor::from_slice(&[true, false, true], [3]).unwrap(),
        Tensor::from_slice(&[1u8, 255], [2, 1]).unwrap(),
        Tensor::from_slice(&[-1i8, 127], [1, 2]).unwrap(),
        Tensor::from_slice(&[i16::MIN, 7], [2]).unwrap(),
        Tensor::from_slice(&[i32::MIN, 7], [2]).unwrap(),
        Tensor::from_slice(&[i64::MIN, 7], [2]).unwrap(),
        Tensor::from_slice(&[f16::from_f32(1.5), f16::NAN], [2]).unwrap(),
        Tensor::from_slice(&[1.5f32, f32::NAN, -0.0], [3]).unwrap(),
        Tensor::scalar(2.5f64),
        Tensor::from_slice(&[Complex::new(1.0f32, -2.0)], [1]).unwrap(),
        Tensor::from_slice(&[c(1.0, -2.0), c(f64::INFINITY, 0.0)], [2]).unwrap(),
        Tensor::from_slice::<f32>(&[], [0, 3]).unwrap(),
    ]
}

fn assert_same(a: &Tensor, b: &Tensor) {
    assert_eq!((a.dtype(), a.shape(), a.as_bytes()), (b.dtype(), b.shape(), b.as_bytes()));
}

#[test]
fn npy_files_come_back_as_they_were_written() {
    let dir = Dir::new("npy");
    let path = dir.0.join("x.npy");
    for t in samples() {
        write_npy(&path, &t, Existing::Replace).unwrap();
        assert_same(&read_npy(&path).unwrap(), &t);
    }
    let view = Tensor::from_slice(&[1i32, 2, 3, 4, 5, 6], [2, 3]).unwrap().transpose(0, 1).unwrap();
    write_npy(&path, &view, Existing::Replace).unwrap();
    assert_same(&read_npy(&path).unwrap(), &view.contiguous().unwrap());
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!((&bytes[..10], (bytes.len() - 24) % 64), (&b"\x93NUMPY\x01\x00\x76\x00"[..], 0));
    assert_eq!(dir.names(), ["x.npy"]);
}

#[test]
fn npy_versions_orders_and_byte_orders_are_read() {
    let dir = Dir::new("npy-forms");
    let data: Vec<u8> = (1..=6i16).flat_map(i16::to_le_bytes).collect();
    let big: Vec<u8> = (1..=6i16).flat_map(i16::to_be_bytes).collect();
    for version in 1..=3 {
        let path = dir.file("c.npy", &npy(version, &header("'<i2'", "False", "(2, 3)"), &data));
        assert_eq!(read_npy(path).unwrap().to_vec::<i16>().unwrap(), [1, 2, 3, 4, 5, 6]);
    }
    let path = dir.file("f.npy", &npy(1, &header("'>i2'", "True", "(2, 3)"), &big));
    let t = read_npy(path).unwrap();
    assert_eq!((t.shape(), t.to_vec::<i16>().unwrap()), (&[2, 3][..], vec![1, 3, 5, 2, 4, 6]));
    let complex: Vec<u8> = [1.0f32, -2.0].into_iter().flat_map(f32::to_be_bytes).collect();
    let path = dir.file("z.npy", &npy(2, "{\"shape\":(),\"fortran_order\":False,\"descr\":\">c8\"}", &complex));
    assert_eq!(read_npy(path).unwrap().item::<Complex<f32>>().unwrap(), Complex::new(1.0, -2.0));
    let path = dir.file("0.npy", &npy(1, &header("'|u1'", "False", "(0L, 9223372036854775807L)"), &[]));
    assert_eq!(read_npy(path).unwrap().shape(), [0, i64::MAX as usize]);
}

#[test]
fn broken_npy_files_are_refused_with_the_reason() {
    let dir = Dir::new("npy-bad");
    let good = header("'<f8'", "False", "(2,)");
    let long = format!("{{'shape': ({}), 'descr': '<f4', 'fortran_order': False}}", "1,".repeat(65));
    let mut huge = npy(2, &good, &[0; 16]);
    huge[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let versioned = |major: u8, minor: u8| {
        let mut bytes = npy(1, &good, &[0; 16]);
        (bytes[6], bytes[7]) = (major, minor);
        bytes
    };
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "not a .npy file"),
        (b"\x93NUM".to_vec(), "not a .npy file"),
        (b"\x93NUMPY".to_vec(), "ends within its header"),
        (b"\x93NUMPY\x01\x00\x10".to_vec(), "ends within its header"),
        (b"PK\x03\x04aaaaaaaaaaaa".to_vec(), "zip archive"),
        (npy(4, &good, &[0; 16]), "version 4.0"),
        (versioned(0, 0), "version 0.0"),
        (versioned(1, 1), "version 1.1"),
        (versioned(255, 255), "version 255.255"),
        (huge, "the header has 4294967295 bytes"),
        (npy(1, "", &[0; 16]), "not the dict"),
        (npy(1, "{}", &[0; 16]), "missing key 'fortran_order'"),
        (npy(1, "{'fortran_order': False, 'descr': '<f8'}", &[0; 16]), "missing key 'shape'"),
        (npy(1, &good.replace("'shape'", "'descr'"), &[0; 16]), "missing key 'shape'"),
        (npy(1, &good.replace("{", "{'descr': '<f8', "), &[0; 16]), "a duplicate or unknown key"),
        (npy(1, &good.replace("{", "{'x': 1, "), &[0; 16]), "a duplicate or unknown key"),
        (npy(1, &good.replace("'shape'", "'shapes'"), &[0; 16]), "missing key 'shape'"),
        (npy(1, &good.replace("'shape'", "b'shape'"), &[0; 16]), "unexpected word `b`"),
        (npy(1, &good.replace("{", "{{"), &[0; 16]), "dict within"),
        (npy(1, &format!("{good}x"), &[0; 16]), "unexpected word `x`"),
        (npy(1, &format!("{good},"), &[0; 16]), "not the dict"),
        (npy(1, &format!("{good}\u{e9}"), &[0; 16]), "unexpected byte 0xc3"),
        (npy(1, &good.replace("<f8", "<f8\n"), &[0; 16]), "unexpected byte 0x0a in a string"),
        (npy(1, &good.replace("<f8", "\\x3cf8"), &[0; 16]), "unexpected byte 0x5c in a string"),
        (npy(1, &good.replace("'<f8'", "'<f8"), &[0; 16]), "unexpected word `fortran`"),
        (npy(1, "{'descr", &[0; 16]), "an unterminated string"),
        (npy(1, "['descr', '<f8']", &[0; 16]), "structured"),
        (npy(1, "('descr', '<f8')", &[0; 16]), "expected a python dict"),
        (npy(1, &header("'<f8'", "False", "(2)"), &[0; 16]), "not the dict"),
        (npy(1, &header("'<f8'", "False", "[2]"), &[0; 16]), "structured"),
        (npy(1, &header("'<f8'", "False", "2"), &[0; 16]), "list or tuple"),
        (npy(1, &header("'<f8'", "False", "(-2,)"), &[0; 16]), "unexpected byte 0x2d (`-`)"),
        (npy(1, &header("'<f8'", "False", "(2.0,)"), &[0; 16]), "unexpected byte 0x2e (`.`)"),
        (npy(1, &header("'<f8'", "False", "(0x2,)"), &[0; 16]), "unexpected word `x`"),
        (npy(1, &header("'<f8'", "False", "(True,)"), &[0; 16]), "must be an integer"),
        (npy(1, &header("'<f8'", "False", "((2,),)"), &[0; 16]), "must be an integer"),
        (npy(1, &header("'<f8'", "False", "(99999999999999999999999,)"), &[0; 16]), "beyond all limits"),
        (npy(1, &header("'<f8'", "False", &format!("({},)", "9".repeat(60_000))), &[0; 16]), "beyond all limits"),
        (npy(1, &header("'<f8'", "False", "(0, 4294967296, 4294967296)"), &[]), "beyond all limits"),
        (npy(1, &header("'<f8'", "False", "(18446744073709551615,)"), &[0; 16]), "limit"),
        (npy(1, &header("'<f8'", "False", "(4294967296, 4294967296)"), &[0; 16]), "beyond all limits"),
        (npy(1, &header("'<f8'", "False", "(4194305, 4194305, 211106198978564)"), &[0; 16]), "beyond all limits"),
        (npy(1, &header("'<f8'", "False", "(65536, 65536)"), &[]), "0 bytes of data"),
        (npy(1, &long, &[0; 4]), "more than 64 dims"),
        (npy(1, &header("'<f8'", "1", "(2,)"), &[0; 16]), "not a bool"),
        (npy(1, &header("'<f8'", "'True'", "(2,)"), &[0; 16]), "not a bool"),
        (npy(1, &header("'<f8'", "False", "(0, 9223372036854775808)"), &[]), "limit"),
        (npy(1, &header("'|O'", "False", "(2,)"), &[0; 16]), "Python objects"),
        (npy(1, &header("[('x', '<f8')]", "False", "(2,)"), &[0; 16]), "structured"),
        (npy(1, &header("'<U4'", "False", "(1,)"), &[0; 16]), "text"),
        (npy(1, &header("'|V2'", "False", "(8,)"), &[0; 16]), "bf16"),
        (npy(1, &header("'<M8[ns]'", "False", "(2,)"), &[0; 16]), "dates"),
        (npy(1, &header("'<f16'", "False", "(1,)"), &[0; 16]), "floats"),
        (npy(1, &header("'<f3'", "False", "(8,)"), &[0; 16]), "invalid size"),
        (npy(1, &header("'f8'", "False", "(2,)"), &[0; 16]), "nvalid type"),
        (npy(1, &header("'<i99999999999999999999999'", "False", "(2,)"), &[0; 16]), "nvalid type"),
        (npy(1, &header("'|f8'", "False", "(2,)"), &[0; 16]), "endianness"),
        (npy(1, &good, &[0; 15]), "15 bytes of data"),
        (npy(1, &good, &[0; 17]), "17 bytes of data"),
        (npy(1, &header("'|b1'", "False", "(4,)"), &[0, 1, 255, 1]), "element 2 of the array is the bool byte 255"),
        (npy(1, &"(".repeat(60_000), &[]), "nested more than 8 deep"),
        (npy(2, &"{".repeat(60_000), &[]), "a dict within"),
        (npy(2, &"'".repeat(60_000), &[]), "not the dict"),
        (npy(2, &format!("{{{}", "'a':1,".repeat(9_000)), &[]), "more than 64 dims"),
        (npy(2, &" ".repeat(65_536), &[]), "not the dict"),
        (npy(2, &" ".repeat(65_537), &[]), "more than the maximum of 65536"),
    ];
    let mut wrong = Vec::new();
    for (bytes, message) in cases {
        let path = dir.file("bad.npy", &bytes);
        match read_npy(&path) {
            Err(e) if e.to_string().contains(message) && e.to_string().contains("bad.npy") => {}
            other => wrong.push(format!("{message}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(matches!(read_npy(&dir.0), Err(Error::Format { .. })));
    assert!(matches!(read_npy(dir.0.join("none")), Err(Error::Io { .. })));
    let e = write_npy(dir.0.join("b.npy"), &Tensor::scalar(bf16::ONE), Existing::Replace).unwrap_err().to_string();
    assert!(e.contains("--out-dtype"), "{e}");
    assert_eq!(dir.names(), ["bad.npy"]);
}

#[test]
fn safetensors_come_back_as_they_were_written() {
    let dir = Dir::new("safetensors");
    let path = dir.0.join("x.safetensors");
    let mut all: Vec<(String, Tensor)> = samples().into_iter().enumerate().map(|(i, t)| (format!("t{i}"), t)).collect();
    all.retain(|(_, t)| t.dtype() != DType::C128);
    all.push(("bf \"16\"\n".into(), Tensor::from_slice(&[bf16::ONE], [1, 1]).unwrap()));
    let list: Vec<_> = all.iter().map(|(n, t)| (n.clone(), t.dtype(), t.shape().to_vec())).collect();
    let metadata = BTreeMap::from([("format".to_string(), "pt".to_string()), ("a\"b".into(), "ü\n".into())]);
    let mut out = SafeTensorsWriter::create(&path, &list, &metadata, Existing::Keep).unwrap();
    for (name, t) in &all {
        out.write(name, t).unwrap();
    }
    assert!(!path.exists());
    out.finish().unwrap();
    let mut file = SafeTensors::open(&path).unwrap();
    assert_eq!((file.names().count(), file.metadata()), (all.len(), &metadata));
    for (name, t) in &all {
        assert_eq!(file.info(name).unwrap(), (t.dtype(), t.shape()));
        assert_same(&file.load(name).unwrap(), t);
    }
    // The reference implementation reads the same tensors.
    let bytes = std::fs::read(&path).unwrap();
    let theirs = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    for (name, t) in &all {
        let view = theirs.tensor(name).unwrap();
        assert_eq!((view.shape(), Some(view.data())), (t.shape(), t.as_bytes()));
    }
    assert_eq!(dir.names(), ["x.safetensors"]);
}

#[test]
fn a_safetensors_file_is_all_or_nothing() {
    let dir = Dir::new("whole");
    let path = dir.0.join("x.safetensors");
    let t = Tensor::from_slice(&[1.0f32], [1]).unwrap();
    let list = [("a".to_string(), DType::F32, vec![1]), ("b".to_string(), DType::F32, vec![1])];
    let create = |existing| SafeTensorsWriter::create(&path, &list, &BTreeMap::new(), existing);

    let mut out = create(Existing::Keep).unwrap();
    assert_eq!(dir.names().len(), 1);
    out.write("a", &t).unwrap();
    assert!(out.write("a", &t).is_err(), "twice");
    assert!(out.write("c", &t).is_err(), "not listed");
    assert!(out.write("b", &Tensor::scalar(1.0f32)).is_err(), "another shape");
    assert!(out.finish().unwrap_err().to_string().contains("1 listed"));
    assert!(dir.names().is_empty());

    drop(create(Existing::Keep).unwrap());
    assert!(dir.names().is_empty());

    let mut out = create(Existing::Keep).unwrap();
    out.write("a", &t).unwrap();
    out.write("b", &t).unwrap();
    std::fs::write(&path, b"came meanwhile").unwrap();
    assert!(matches!(out.finish(), Err(Error::Io { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"came meanwhile");
    assert!(create(Existing::Keep).is_err());
    let mut out = create(Existing::Replace).unwrap();
    out.write("b", &t).unwrap();
    out.write("a", &t).unwrap();
    out.finish().unwrap();
    assert!(SafeTensors::open(&path).is_ok());
    assert_eq!(dir.names(), ["x.safetensors"]);

    let twice = [list[0].clone(), list[0].clone()];
    assert!(SafeTensorsWriter::create(&path, &twice, &BTreeMap::new(), Existing::Replace).is_err());
    let c128 = [("z".to_string(), DType::C128, vec![])];
    let e = SafeTensorsWriter::create(&path, &c128, &BTreeMap::new(), Existing::Replace).err().unwrap().to_string();
    assert!(e.contains("c128") && e.contains("--out-dtype"), "{e}");
    assert!(SafeTensorsWriter::create("/", &list, &BTreeMap::new(), Existing::Replace).is_err());
    assert!(SafeTensorsWriter::create(&dir.0, &list, &BTreeMap::new(), Existing::Replace).is_err());
    assert!(SafeTensorsWriter::create("/dev/null", &list, &BTreeMap::new(), Existing::Replace).is_err());
}

#[test]
fn broken_safetensors_are_refused_with_the_reason() {
    let dir = Dir::new("safetensors-bad");
    let entry = |name: &str, dtype: &str, shape: &str, at: &str| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{at}}}"#)
    };
    let two = |a: &str, b: &str| format!("{{{a},{b}}}");
    let one = |a: String| format!("{{{a}}}");
    let x = entry("x", "F32", "[1]", "[0,4]");
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![1, 2, 3], "too short"),
        (u64::MAX.to_le_bytes().to_vec(), "the header has 18446744073709551615 bytes"),
        (9u64.to_le_bytes().to_vec(), "more than the maximum of 0"),
        (safetensors("", &[]), "header"),
        (safetensors("[]", &[]), "an object that maps names to tensors"),
        (safetensors("{}x", &[]), "trailing"),
        (safetensors("\u{0}", &[]), "header"),
        (safetensors(&deep, &[]), "header"),
        (safetensors("{}", &[0]), "1 bytes of data"),
        (safetensors(&two(&x, &x), &[0; 4]), "duplicate name `x`"),
        (safetensors(&one(x.replace("\"shape\"", "\"dtype\":\"F32\",\"shape\"")), &[0; 4]), "duplicate field"),
        (safetensors(&two(&x, &entry("y", "F32", "[1]", "[2,6]")), &[0; 6]), "`y` is at 2..6"),
        (safetensors(&two(&x, &entry("y", "F32", "[1]", "[5,9]")), &[0; 9]), "`y` is at 5..9"),
        (safetensors(&one(entry("x", "F32", "[1]", "[4,0]")), &[0; 4]), "4..0"),
        (safetensors(&one(entry("x", "F32", "[1]", "[0,-4]")), &[0; 4]), "invalid value"),
        (safetensors(&one(entry("x", "F32", "[1]", "[0,4.0]")), &[0; 4]), "invalid type"),
        (safetensors(&one(entry("x", "F32", "[1]", "[0,4e0]")), &[0; 4]), "invalid type"),
        (
            safetensors(&one(entry("x", "F32", "[1]", "[0,9007199254740993]")), &[0; 4]),
            "does not match its 9007199254740993 bytes",
        ),
        (safetensors(&one(entry("x", "F32", "[1]", "[0,18446744073709551616]")), &[0; 4]), "header"),
        (100_000_001u64.to_le_bytes().iter().copied().chain([0; 9]).collect(), "the header has 100000001 bytes"),
        (safetensors("{", &[]), "header"),
        (safetensors("\u{feff}{}", &[]), "header"),
        (vec![2, 0, 0, 0, 0, 0, 0, 0, b'{', 0xff], "header"),
        (safetensors(&one(entry("x", "F32", "[2]", "[0,4]")), &[0; 4]), "does not match its 4 bytes"),
        (safetensors(&one(entry("x", "F32", "[4611686018427387904,4]", "[0,0]")), &[]), "does not match its 0 bytes"),
        (safetensors(&one(entry("x", "F4", "[1]", "[0,1]")), &[0]), "F4[1]"),
        (safetensors(&one(entry("x", "E5M9", "[1]", "[0,1]")), &[0]), "`x` has the unknown dtype `E5M9`"),
        (safetensors(r#"{"__metadata__":{"a":1}}"#, &[]), "header"),
        (safetensors(&one(x.clone()), &[0; 5]), "5 bytes of data, but the header lists 4"),
    ];
    for (bytes, message) in cases {
        let path = dir.file("bad.safetensors", &bytes);
        let e = SafeTensors::open(&path).expect_err(message).to_string();
        assert!(e.contains(message) && e.contains("bad.safetensors"), "{message}: {e}");
    }
    // Unusual but valid files: no tensors, trailing spaces, tensors out of order, empty tensors, odd names.
    let empty = entry("", "F32", "[0]", "[4,4]");
    let all = format!(
        "{{{empty},{},{},{}}}    ",
        entry("../x", "U8", "[1]", "[4,5]"),
        entry("a\\u0000", "I8", "[0,9]", "[4,4]"),
        x
    );
    let mut file = SafeTensors::open(dir.file("ok.safetensors", &safetensors(&all, &[0, 0, 128, 63, 7]))).unwrap();
    assert_eq!(file.load("x").unwrap().to_vec::<f32>().unwrap(), [1.0]);
    assert_eq!(file.load("../x").unwrap().to_vec::<u8>().unwrap(), [7]);
    assert_eq!((file.load("").unwrap().shape(), file.load("a\0").unwrap().shape()), (&[0][..], &[0, 9][..]));
    assert_eq!(SafeTensors::open(dir.file("ok.safetensors", &safetensors("{}", &[]))).unwrap().names().count(), 0);
    let mixed = two(&entry("x", "F8_E8M0", "[4]", "[0,4]"), &entry("y", "BOOL", "[2]", "[4,6]"));
    let mut file = SafeTensors::open(dir.file("ok.safetensors", &safetensors(&mixed, &[1; 6]))).unwrap();
    let e = file.load("x").unwrap_err().to_string();
    assert!(e.contains("`x`") && e.contains("F8_E8M0"), "{e}");
    assert_eq!(file.load("y").unwrap().to_vec::<bool>().unwrap(), [true, true]);
    let mut file = SafeTensors::open(dir.file("ok.safetensors", &safetensors(&mixed, &[3; 6]))).unwrap();
    assert!(file.load("y").unwrap_err().to_string().contains("element 0 of `y`"));
    let odd = two(&entry("b", "U8", "[1]", "[0,1]"), &entry("d", "F64", "[]", "[1,9]"));
    let bytes = safetensors(&format!("{odd}   "), &[0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    let mut file = SafeTensors::open(dir.file("odd.safetensors", &bytes)).unwrap();
    assert_eq!(file.load("d").unwrap().item::<f64>().unwrap(), 1.0);
}
