//! Files that NumPy wrote (`tests/files/make.py`): castwise reads them, and writes tensors with the same bytes.

use std::path::{Path, PathBuf};

use castwise::io::{Existing, Npz, read_npy, write_npy};
use castwise::{DType, Element, Tensor, f16};
use num_complex::Complex;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn complex<T>(re: T, im: T) -> Complex<T> {
    Complex::new(re, im)
}

/// The six elements that the script writes for each dtype, with NumPy's name of the dtype.
fn samples() -> Vec<(&'static str, Tensor)> {
    fn of<T: Element>(v: [T; 6]) -> Tensor {
        Tensor::from_slice(&v, [2, 3]).unwrap()
    }
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let c = [(1.5, -2.5), (-0.0, inf), (0.0, 0.0), (0.0, 1.0), (nan, 0.0), (-1.0, 0.25)];
    vec![
        ("b1", of([true, false, true, true, false, false])),
        ("u1", of([u8::MIN, u8::MAX, 0, 1, 2, 100])),
        ("i1", of([i8::MIN, i8::MAX, 0, 1, 2, 100])),
        ("i2", of([i16::MIN, i16::MAX, 0, 1, 2, 100])),
        ("i4", of([i32::MIN, i32::MAX, 0, 1, 2, 100])),
        ("i8", of([i64::MIN, i64::MAX, 0, 1, 2, 100])),
        ("f2", of([0.0, -0.0, 1.5, f32::NEG_INFINITY, f32::NAN, 2f32.powi(-24)].map(f16::from_f32))),
        ("f4", of([0.0, -0.0, 1.5, f32::NEG_INFINITY, f32::NAN, f32::from_bits(1)])),
        ("f8", of([0.0, -0.0, 1.5, -inf, nan, f64::from_bits(1)])),
        ("c8", of(c.map(|(re, im)| complex(re as f32, im as f32)))),
        ("c16", of(c.map(|(re, im)| complex(re, im)))),
    ]
}

#[track_caller]
fn assert_same(got: &Tensor, want: &Tensor, what: &str) {
    assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()), "{what}");
    let (got, want) = (got.contiguous().unwrap(), want.contiguous().unwrap());
    assert!(got.as_bytes() == want.as_bytes(), "{what}: {:02x?} {:02x?}", got.as_bytes(), want.as_bytes());
}

/// Writes the tensor and compares the file with NumPy's.
#[track_caller]
fn assert_writes(t: &Tensor, name: &str) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("numpy-{}-{name}", std::process::id()));
    write_npy(&path, t, Existing::Replace).unwrap();
    let (ours, theirs) = (std::fs::read(&path).unwrap(), std::fs::read(file(name)).unwrap());
    std::fs::remove_file(path).unwrap();
    assert!(
        ours == theirs,
        "{name}:\n{}\n{}",
        String::from_utf8_lossy(&ours).escape_debug(),
        String::from_utf8_lossy(&theirs).escape_debug()
    );
}

#[test]
fn every_dtype_version_and_order_is_read() {
    for (kind, t) in samples() {
        assert_same(&read_npy(file(&format!("{kind}.npy"))).unwrap(), &t, kind);
        assert_same(&read_npy(file(&format!("{kind}-v2-big-fortran.npy"))).unwrap(), &t, kind);
        let zero_dim = t.slice(0, 1, 2, 1).unwrap().slice(1, 0, 1, 1).unwrap().reshape([]).unwrap();
        assert_same(&read_npy(file(&format!("{kind}-v3-0d.npy"))).unwrap(), &zero_dim, kind);
    }
}

#[test]
fn every_dtype_is_written_as_numpy_writes_it() {
    for (kind, t) in samples() {
        assert_writes(&t, &format!("{kind}.npy"));
    }
}

#[test]
fn shapes_are_read_and_written_as_numpy_writes_them() {
    let table: [(&str, DType, &[usize]); 8] = [
        ("0d", DType::F32, &[]),
        ("1d", DType::F32, &[5]),
        ("empty", DType::F32, &[0, 3]),
        ("wide", DType::F32, &[1_234_567_890_123, 0]),
        ("rank64", DType::F32, &[1; 64]),
        ("1-digits", DType::U8, &[1, 0, 7]),
        ("10-digits", DType::U8, &[1_000_000_000, 0, 7]),
        ("19-digits", DType::U8, &[1_000_000_000_000_000_000, 0, 7]),
    ];
    for (name, dtype, shape) in table {
        let (name, t) = (format!("shape-{name}.npy"), Tensor::zeros(dtype, shape).unwrap());
        assert_same(&read_npy(file(&name)).unwrap(), &t, &name);
        assert_writes(&t, &name);
    }
}

#[test]
fn archives_are_read() {
    for name in ["stored.npz", "deflated.npz"] {
        let mut archive = Npz::open(file(name)).unwrap();
        let matrix: Vec<f32> = (0..6u8).map(f32::from).collect();
        let mut table = vec![
            ("x", Tensor::from_slice(&matrix, [2, 3]).unwrap()),
            ("layer/bias", Tensor::from_slice(&[1i16, -1], [2]).unwrap()),
            ("zero", Tensor::zeros(DType::F64, [0, 2]).unwrap()),
        ];
        if name == "deflated.npz" {
            table.push(("run", Tensor::full([5000], 7i32).unwrap()));
        }
        let columns: Vec<_> = matrix.iter().map(|v| complex(*v, 0.0)).collect();
        table.push(("columns", Tensor::from_slice(&columns, [2, 3]).unwrap()));
        assert_eq!(archive.names().collect::<Vec<_>>(), table.iter().map(|(n, _)| *n).collect::<Vec<_>>());
        for (array, t) in table {
            assert_eq!(archive.info(array).unwrap(), (t.dtype(), t.shape()), "{name} {array}");
            assert_same(&archive.load(array).unwrap(), &t, array);
        }
    }
}
