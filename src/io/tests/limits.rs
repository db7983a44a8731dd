//! The limits of headers: sizes one below, at and one above each limit.

use super::*;
use crate::base::limits::{Limit, Limits};

fn only(limit: Limit, value: usize) -> Limits {
    Limits::new().with(limit, value as u64).unwrap()
}

/// Whether the result is an error; its message must contain `what`.
fn refused<T>(made: Result<T>, what: &str) -> bool {
    match made {
        Err(e) => {
            assert!(e.to_string().contains(what), "{e}");
            true
        }
        Ok(_) => false,
    }
}

#[test]
fn headers_of_npy_files_are_as_long_as_the_limit() {
    let dir = Dir::new("limits-npy");
    let dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    let padded = |n: usize| format!("{dict}{}\n", " ".repeat(n - dict.len() - 1));
    // Limits below, equal to and above the default.
    for most in [100, 1 << 16, 1 << 20] {
        for (n, beyond) in [(most - 1, false), (most, false), (most + 1, true)] {
            let bytes = npy(2, &padded(n), &[0; 8]);
            let path = dir.file("x.npy", &bytes);
            let what = format!("the header has {n} bytes, more than the maximum of {most}");
            assert_eq!(refused(Npy::open_within(&path, only(Limit::NpyHeader, most)), &what), beyond);
            if most == 1 << 16 {
                assert_eq!(refused(read_npy(&path), &what), beyond);
            }
        }
    }
}

#[test]
fn headers_of_members_of_archives_are_as_long_as_the_limit() {
    let dir = Dir::new("limits-npz");
    let path = dir.0.join("x.npz");
    let t = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    let mut out =
        NpzWriter::create(&path, &[("x".into(), DType::F32, vec![2])], Compression::Stored, Existing::Replace).unwrap();
    out.write("x", &t).unwrap();
    out.finish().unwrap();
    // The headers of small arrays have 128 bytes in NumPy's form, 10 of which precede the text.
    for (most, beyond) in [(117, true), (118, false), (119, false)] {
        let mut file = Npz::open_within(&path, only(Limit::NpyHeader, most)).unwrap();
        let what = format!("the header has 118 bytes, more than the maximum of {most}");
        assert_eq!(refused(file.info("x").map(drop), &what), beyond);
        assert_eq!(refused(file.load("x"), &what), beyond);
    }
}

#[test]
fn headers_of_safetensors_are_as_long_as_the_limit() {
    let dir = Dir::new("limits-safetensors");
    let dict = r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    // A lower limit, and the default.
    for (most, limits) in [(100, only(Limit::SafetensorsHeader, 100)), (100_000_000, Limits::new())] {
        for (n, beyond) in [(most - 1, false), (most, false), (most + 1, true)] {
            let path =
                dir.file("x.safetensors", &safetensors(&(dict.to_string() + &" ".repeat(n - dict.len())), &[0; 8]));
            let what = format!("the header has {n} bytes, more than the maximum of {most}");
            assert_eq!(refused(SafeTensors::open_within(&path, limits), &what), beyond);
        }
    }
    // A raised limit applies to reading; written files keep to the limit of other readers.
    let path = dir.file("x.safetensors", &safetensors(&(dict.to_string() + &" ".repeat(100_000_000)), &[0; 8]));
    assert!(SafeTensors::open_within(&path, only(Limit::SafetensorsHeader, 200_000_000)).is_ok());
    let metadata = |n: usize| BTreeMap::from([("m".to_string(), "x".repeat(n))]);
    let list = [("w".to_string(), DType::F32, vec![2])];
    let path = dir.0.join("long.safetensors");
    let made = |n| SafeTensorsWriter::create(&path, &list, &metadata(n), Existing::Replace).map(drop);
    // The header is padded to a multiple of 8.
    let around = 100_000_000 - dict.len() - r#""__metadata__":{"m":""},"#.len();
    assert!(!refused(made(around), ""));
    assert!(refused(
        made(around + 1),
        "the size of the .safetensors header is 100000008, more than the limit of 100000000"
    ));
}

#[test]
fn indexes_are_as_long_as_the_limit() {
    let dir = Dir::new("limits-index");
    dir.file("1.safetensors", &safetensors(r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, &[0; 8]));
    let index = r#"{"weight_map":{"w":"1.safetensors"}}"#;
    for (most, limits) in [(100, only(Limit::Index, 100)), (100_000_000, Limits::new())] {
        for (n, beyond) in [(most - 1, false), (most, false), (most + 1, true)] {
            let text = index.to_string() + &" ".repeat(n - index.len());
            let path = dir.file("model.safetensors.index.json", text.as_bytes());
            let what = format!("the size of the index is {n}, more than the limit of {most}");
            assert_eq!(refused(ShardedSafeTensors::open_within(&path, limits), &what), beyond);
        }
    }
    // The limits also apply to the shards.
    let path = dir.file("model.safetensors.index.json", index.as_bytes());
    assert!(refused(
        ShardedSafeTensors::open_within(&path, only(Limit::SafetensorsHeader, 40)),
        "more than the maximum of 40"
    ));
}

#[test]
fn tensors_of_files_have_dims_and_elements_within_the_limits() {
    let dir = Dir::new("limits-shapes");
    let (rank, elements) = (only(Limit::Rank, 3), only(Limit::Elements, 6));
    let (of_rank, of_elements) = ("3", "the number of elements is 7, more than the limit of 6");
    for (limits, shape, what) in [
        (rank, vec![1, 1], None),
        (rank, vec![1, 1, 1], None),
        (rank, vec![1, 1, 1, 1], Some(of_rank)),
        (elements, vec![5], None),
        (elements, vec![2, 3], None),
        (elements, vec![7], Some(of_elements)),
    ] {
        let t = Tensor::zeros(DType::F32, &shape).unwrap();
        let list = [("w".to_string(), DType::F32, shape.clone())];
        let (npy, npz, one) = (dir.0.join("x.npy"), dir.0.join("x.npz"), dir.0.join("x.safetensors"));
        write_npy(&npy, &t, Existing::Replace).unwrap();
        let mut out = NpzWriter::create(&npz, &list, Compression::Stored, Existing::Replace).unwrap();
        out.write("w", &t).unwrap();
        out.finish().unwrap();
        let mut out = SafeTensorsWriter::create(&one, &list, &BTreeMap::new(), Existing::Replace).unwrap();
        out.write("w", &t).unwrap();
        out.finish().unwrap();
        let index = dir.file("x.safetensors.index.json", br#"{"weight_map":{"w":"x.safetensors"}}"#);
        let all = [
            Npy::open_within(&npy, limits).and_then(|mut f| f.load()),
            Npz::open_within(&npz, limits).and_then(|mut f| f.load("w")),
            SafeTensors::open_within(&one, limits).and_then(|mut f| f.load("w")),
            ShardedSafeTensors::open_within(&index, limits).and_then(|mut f| f.load("w")),
        ];
        for made in all {
            assert_eq!(refused(made, what.unwrap_or_default()), what.is_some(), "{shape:?}");
        }
    }
}

#[test]
fn texts_are_regular_files_of_utf8_as_long_as_was_said() {
    let dir = Dir::new("limits-text");
    let path = dir.file("x.cw", "é{}".as_bytes());
    for (most, beyond) in [(5, false), (4, false), (3, true), (0, true)] {
        assert_eq!(
            refused(read_text(&path, most), &format!("the file has 4 bytes, more than the maximum of {most}")),
            beyond
        );
    }
    assert_eq!(read_text(&path, 4).unwrap(), "é{}");
    assert_eq!(read_text(dir.file("empty", b""), 0).unwrap(), "");
    assert!(refused(read_text(dir.file("latin", b"x\xe9"), 9), "not text: byte 1 is not UTF-8"));
    assert!(refused(read_text(&dir.0, 9), "not a regular file"));
    assert!(matches!(read_text(dir.0.join("none"), 9), Err(Error::Io { .. })));
    // A sparse file that is larger than memory.
    let large = std::fs::File::create(dir.0.join("large")).and_then(|f| f.set_len(1 << 50));
    if large.is_ok() {
        assert!(
            matches!(read_text(dir.0.join("large"), u64::MAX), Err(Error::OutOfMemory { bytes }) if bytes == 1 << 50)
        );
    }
}
