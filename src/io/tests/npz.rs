//! `.npz`: round trips, and archives with false headers.

use std::io::{Cursor, Write};

use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

fn array(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy(1, &header(descr, "False", shape), data)
}

fn archive(members: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(name, SimpleFileOptions::default().compression_method(method)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The bytes with every occurrence of `from` replaced by `to`, which must have the same length.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let mut found = 0;
    for at in 0..=bytes.len() - from.len() {
        if &bytes[at..at + from.len()] == from {
            bytes[at..at + from.len()].copy_from_slice(to);
            found += 1;
        }
    }
    assert!(found > 0, "{from:02x?} is nowhere");
    bytes
}

#[test]
fn npz_files_come_back_as_they_were_written() {
    let dir = Dir::new("npz");
    let mut all: Vec<(String, Tensor)> = samples().into_iter().enumerate().map(|(i, t)| (format!("t{i}"), t)).collect();
    all.push(("layer/0.ü".into(), Tensor::full([100, 300], 0.5f32).unwrap().transpose(0, 1).unwrap()));
    let list: Vec<_> = all.iter().map(|(n, t)| (n.clone(), t.dtype(), t.shape().to_vec())).collect();
    let mut lengths = Vec::new();
    for compression in [Compression::Stored, Compression::Deflated] {
        let path = dir.0.join(format!("{compression:?}.npz"));
        let mut out = NpzWriter::create(&path, &list, compression, Existing::Keep).unwrap();
        // Any order is allowed.
        for (name, t) in all.iter().rev() {
            out.write(name, t).unwrap();
        }
        assert!(!path.exists());
        out.finish().unwrap();
        let mut file = Npz::open(&path).unwrap();
        assert_eq!(file.names().count(), all.len());
        for (name, t) in &all {
            assert_eq!(file.info(name).unwrap(), (t.dtype(), t.shape()));
            assert_same(&file.load(name).unwrap(), &t.contiguous().unwrap());
        }
        assert!(!file.has("t") && file.info("t").is_err() && file.load("t").is_err());
        // A member is an ordinary .npy file.
        let mut zip = zip::ZipArchive::new(std::fs::File::open(&path).unwrap()).unwrap();
        let mut member = Vec::new();
        zip.by_name("layer/0.ü.npy").unwrap().read_to_end(&mut member).unwrap();
        write_npy(dir.0.join("x.npy"), &all.last().unwrap().1, Existing::Replace).unwrap();
        assert_eq!(member, std::fs::read(dir.0.join("x.npy")).unwrap());
        lengths.push(std::fs::metadata(&path).unwrap().len());
    }
    assert!(lengths[1] * 10 < lengths[0], "{lengths:?}");
    assert_eq!(dir.names(), ["Deflated.npz", "Stored.npz", "x.npy"]);
}

#[test]
fn an_npz_file_is_all_or_nothing() {
    let dir = Dir::new("npz-whole");
    let path = dir.0.join("x.npz");
    let list = [("a".to_string(), DType::F32, vec![1]), ("b".to_string(), DType::F32, vec![1])];
    let create = |list: &[_]| NpzWriter::create(&path, list, Compression::Stored, Existing::Keep);
    let t = Tensor::full([1], 1.0f32).unwrap();
    let mut out = create(&list).unwrap();
    out.write("a", &t).unwrap();
    assert!(out.write("a", &t).is_err() && out.write("c", &t).is_err());
    assert!(out.write("b", &Tensor::scalar(1.0f32)).is_err());
    assert!(out.finish().is_err());
    drop(create(&list).unwrap());
    assert!(dir.names().is_empty());
    for d in [DType::BF16, DType::C32] {
        let e = create(&[("z".to_string(), d, vec![])]).err().unwrap().to_string();
        assert!(e.contains("`z`") && e.contains("--out-dtype"), "{e}");
    }
    for name in ["/x", "../x", "a/../../x", "\\x", "a\\..\\x", "C:x", "a\0"] {
        let e = create(&[(name.to_string(), DType::F32, vec![])]).err().unwrap().to_string();
        assert!(e.contains("can't be a member name"), "{name}: {e}");
    }
    assert!(create(&[list[0].clone(), list[0].clone()]).is_err());
    assert!(dir.names().is_empty());
}

#[test]
fn names_of_members_are_only_names() {
    let dir = Dir::new("npz-names");
    let bytes = array("'|u1'", "(2,)", &[1, 2]);
    let names = ["../../x.npy", "/etc/passwd.npy", "a/b.npy", ".npy", "\u{1b}[2J.npy"];
    let members: Vec<(&str, &[u8])> = names.iter().map(|n| (*n, &bytes[..])).collect();
    let path = dir.file("x.npz", &archive(&members, CompressionMethod::Stored));
    let mut file = Npz::open(path).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["../../x", "/etc/passwd", "a/b", "", "\u{1b}[2J"]);
    for name in ["../../x", "/etc/passwd", "a/b", "", "\u{1b}[2J"] {
        assert_eq!(file.load(name).unwrap().to_vec::<u8>().unwrap(), [1, 2]);
    }
    assert_eq!(dir.names(), ["x.npz"]);
}

#[test]
fn members_that_castwise_refuses_are_named_when_they_are_wanted() {
    let dir = Dir::new("npz-lazy");
    let (good, objects) = (array("'<i2'", "(1,)", &[7, 0]), array("'|O'", "(1,)", &[0; 8]));
    let (short, long) = (array("'<f8'", "(2,)", &[0; 15]), array("'<f8'", "(2,)", &[0; 17]));
    let bools = array("'|b1'", "(2,)", &[1, 2]);
    let members: [(&str, &[u8]); 6] = [
        ("good.npy", &good),
        ("objects.npy", &objects),
        ("short.npy", &short),
        ("long.npy", &long),
        ("text.npy", b"hello, world"),
        ("empty.npy", b""),
    ];
    let path = dir.file("x.npz", &archive(&members, CompressionMethod::Deflated));
    let mut file = Npz::open(path).unwrap();
    assert_eq!(file.load("good").unwrap().to_vec::<i16>().unwrap(), [7]);
    for (name, message) in [
        ("objects", "Python objects"),
        ("short", "15 bytes of data"),
        ("long", "17 bytes of data"),
        ("text", "not a .npy file"),
        ("empty", "not a .npy file"),
    ] {
        for e in [file.info(name).err().unwrap(), file.load(name).err().unwrap()] {
            let e = e.to_string();
            assert!(e.contains("x.npz") && e.contains(message) && e.contains(&format!("`{name}.npy`")), "{e}");
        }
    }
    let path = dir.file("b.npz", &archive(&[("b.npy", &bools)], CompressionMethod::Stored));
    let e = Npz::open(path).unwrap().load("b").unwrap_err().to_string();
    assert!(e.contains("bool byte 2"), "{e}");
}

#[test]
fn archives_that_lie_are_refused() {
    let dir = Dir::new("npz-lies");
    let one = array("'<f4'", "(2,)", &[0; 8]);
    let len = one.len() as u32;
    let stored = |members: &[(&str, &[u8])]| archive(members, CompressionMethod::Stored);
    let deflated = archive(&[("a.npy", &one)], CompressionMethod::Deflated);
    let plain = stored(&[("a.npy", &one)]);
    // The declared size is in both the local and the central header, as u32.
    let declared = |bytes: &[u8], size: u32| replaced(bytes, &len.to_le_bytes(), &size.to_le_bytes());
    let huge = array("'<f8'", "(65536, 65536)", &[]);
    let claims = archive(&[("a.npy", &huge)], CompressionMethod::Deflated);
    let claims = replaced(&claims, &(huge.len() as u32).to_le_bytes(), &u32::MAX.wrapping_sub(1).to_le_bytes());
    let mut encrypted = plain.clone();
    for (at, flags) in [(0, 6), (plain.windows(4).position(|w| w == b"PK\x01\x02").unwrap(), 8)] {
        encrypted[at + flags] |= 1;
    }
    // Two entries of the central directory share one local header.
    let overlap = {
        let two = stored(&[("a.npy", &one), ("b.npy", &one)]);
        let second = two[4..].windows(4).position(|w| w == b"PK\x03\x04").unwrap() as u32 + 4;
        replaced(&two, &second.to_le_bytes(), &0u32.to_le_bytes())
    };
    let broken_sum = replaced(&plain, &[0; 8], &[0, 0, 0, 0, 0, 0, 0, 1]);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"PK\x05\x06".to_vec(), "x.npz"),
        (one.clone(), "x.npz"),
        (stored(&[("a.npy", &one), ("readme.txt", b"hello")]), "the member `readme.txt` is not a .npy file"),
        (stored(&[("a.npy", &one), ("dir/", b"")]), "the member `dir/` is not a .npy file"),
        (replaced(&stored(&[("a.npy", &one), ("b.npy", &one)]), b"b.npy", b"a.npy"), "duplicate member"),
        (overlap, "overlap"),
        (encrypted, "encrypted"),
        (declared(&plain, len - 1), "`a.npy`"),
        (declared(&plain, len + 1), "x.npz"),
        (declared(&deflated, len - 1), "7 bytes of data"),
        (declared(&deflated, len + 1), "9 bytes of data"),
        (declared(&deflated, u32::MAX - 1), "can't hold 4294967294 bytes"),
        (claims, "can't hold 4294967294 bytes"),
        (replaced(&deflated, &[8, 0], &[12, 0]), "only stored and deflated"),
        (broken_sum, "`a.npy`: Invalid checksum"),
    ];
    let mut wrong = Vec::new();
    for (bytes, message) in cases {
        let path = dir.file("x.npz", &bytes);
        match Npz::open(path).and_then(|mut f| f.load("a")) {
            Err(e @ Error::Format { .. }) if e.to_string().contains(message) && e.to_string().contains("x.npz") => {}
            other => wrong.push(format!("{message}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_zip_bomb_is_refused_before_memory_is_asked_for() {
    let dir = Dir::new("npz-bomb");
    // A member with a true header: 64 MiB of zeros, compressed to about 64 KiB, is read. A claim a thousand times
    // larger is not.
    let zeros = array("'|u1'", "(67108864,)", &vec![0; 1 << 26]);
    let bytes = archive(&[("a.npy", &zeros)], CompressionMethod::Deflated);
    assert!(bytes.len() < 100_000);
    let honest = dir.file("honest.npz", &bytes);
    assert_eq!(Npz::open(&honest).unwrap().load("a").unwrap().numel(), 1 << 26);
    // The header and the archive agree on 4 GB, at least sixty times what the compressed bytes could expand to.
    let (small, size) = (array("'|u1'", "(4294960000,                    )", &[]), 4_294_960_000u32);
    let lie = archive(&[("a.npy", &small)], CompressionMethod::Deflated);
    let lie = replaced(&lie, &(small.len() as u32).to_le_bytes(), &(size + small.len() as u32).to_le_bytes());
    let e = Npz::open(dir.file("lie.npz", &lie)).unwrap().load("a").unwrap_err().to_string();
    assert!(e.contains("can't hold"), "{e}");
    // The header and the archive agree on less data than is compressed.
    let packed = array("'|u1'", "(5,)", &[0; 4000]);
    let lie = archive(&[("a.npy", &packed)], CompressionMethod::Deflated);
    let declared = (packed.len() - 3995) as u32;
    let lie = replaced(&lie, &(packed.len() as u32).to_le_bytes(), &declared.to_le_bytes());
    let e = Npz::open(dir.file("less.npz", &lie)).unwrap().load("a").unwrap_err().to_string();
    assert!(e.contains("larger than its declared"), "{e}");
}
