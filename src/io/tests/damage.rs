//! Every truncation and every flipped bit of a small file of each format gives an error or a valid tensor.

use std::io::{Seek, SeekFrom};

use super::*;

/// Reads all tensors of a file. Each must have the number of bytes of its dtype and shape.
fn read_all(path: &Path) -> Result<Vec<Tensor>> {
    let name = path.to_string_lossy().into_owned();
    let mut all = Vec::new();
    if name.ends_with(".npy") {
        all.push(read_npy(path)?);
    } else if name.ends_with(".npz") {
        let mut file = Npz::open(path)?;
        for name in file.names().map(str::to_string).collect::<Vec<_>>() {
            all.push(file.load(&name)?);
        }
    } else if name.ends_with(".safetensors") {
        let mut file = SafeTensors::open(path)?;
        for name in file.names().map(str::to_string).collect::<Vec<_>>() {
            all.push(file.load(&name)?);
        }
    } else {
        let mut file = ShardedSafeTensors::open(path)?;
        for name in file.names().map(str::to_string).collect::<Vec<_>>() {
            all.push(file.load(&name)?);
        }
    }
    for t in &all {
        assert_eq!(t.as_bytes().map(<[u8]>::len), Some(t.shape().iter().product::<usize>() * t.dtype().size()));
    }
    Ok(all)
}

fn x() -> Tensor {
    Tensor::from_slice(&[true, false, true, true], [2, 2]).unwrap()
}

fn y() -> Tensor {
    Tensor::from_slice(&[1.5f32, -2.0], [2]).unwrap()
}

/// A valid file of each format, with `x` and `y` (`.npy`: with `y`).
fn files(dir: &Dir) -> Vec<PathBuf> {
    let path = |name: &str| dir.0.join(name);
    write_npy(path("a.npy"), &y(), Existing::Keep).unwrap();
    let list = [("x".to_string(), DType::Bool, vec![2, 2]), ("y".to_string(), DType::F32, vec![2])];
    for (name, compression) in [("stored.npz", Compression::Stored), ("deflated.npz", Compression::Deflated)] {
        let mut out = NpzWriter::create(path(name), &list, compression, Existing::Keep).unwrap();
        out.write("x", &x()).unwrap();
        out.write("y", &y()).unwrap();
        out.finish().unwrap();
    }
    let metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
    let mut out = SafeTensorsWriter::create(path("a.safetensors"), &list, &metadata, Existing::Keep).unwrap();
    out.write("x", &x()).unwrap();
    out.write("y", &y()).unwrap();
    out.finish().unwrap();
    let mut out = ShardedWriter::create(path("m.index.json"), &list, &metadata, 8, Existing::Keep).unwrap();
    out.write("x", &x()).unwrap();
    out.write("y", &y()).unwrap();
    out.finish().unwrap();
    dir.names().into_iter().map(|n| dir.0.join(n)).collect()
}

#[test]
fn every_cut_of_a_file_is_an_error() {
    let dir = Dir::new("cuts");
    for path in files(&dir) {
        let whole = std::fs::read(&path).unwrap();
        assert!(!read_all(&path).unwrap().is_empty(), "{}", path.display());
        // The index may lack its final newline.
        let needed = whole.len() - usize::from(whole.ends_with(b"\n"));
        for n in (0..needed).rev() {
            File::options().write(true).open(&path).unwrap().set_len(n as u64).unwrap();
            assert!(read_all(&path).is_err(), "{}: {n} bytes of {}", path.display(), whole.len());
        }
        std::fs::write(&path, whole).unwrap();
    }
}

#[test]
fn every_flipped_bit_is_an_error_or_a_tensor() {
    let dir = Dir::new("flips");
    for path in files(&dir) {
        let whole = std::fs::read(&path).unwrap();
        let sum = path.extension().is_some_and(|e| e == "npz");
        let (mut errors, mut tensors) = (0, 0);
        let mut file = File::options().write(true).open(&path).unwrap();
        let mut put = |at: usize, byte: u8| {
            file.seek(SeekFrom::Start(at as u64)).unwrap();
            file.write_all(&[byte]).unwrap();
        };
        for bit in 0..whole.len() * 8 {
            let (at, byte) = (bit / 8, whole[bit / 8]);
            put(at, byte ^ 1 << (bit % 8));
            match read_all(&path) {
                Err(_) => errors += 1,
                // With an archive's checksums, only the original values can be read.
                Ok(all) if sum => {
                    tensors += 1;
                    for (t, want) in all.iter().zip([x(), y()]) {
                        assert_same(t, &want);
                    }
                }
                Ok(_) => tensors += 1,
            }
            put(at, byte);
        }
        assert!(errors > 0 && tensors > 0, "{}: {errors} errors, {tensors} tensors", path.display());
    }
}

#[test]
fn random_edits_are_errors_or_tensors() {
    // Bytes that occur in headers, and bytes that invalidate numbers.
    const BYTES: &[u8] = b"()[]{}'\",:0123456789TrueFalsdcipth_o<>|=\\-+.LE \n\0\x01\x7f\x80\xff";
    let dir = Dir::new("edits");
    let mut state = 1u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    for path in files(&dir) {
        let whole = std::fs::read(&path).unwrap();
        let mut errors = 0;
        let file = File::options().write(true).open(&path).unwrap();
        let put = |bytes: &[u8]| {
            (&file).rewind().unwrap();
            (&file).write_all(bytes).unwrap();
            file.set_len(bytes.len() as u64).unwrap();
        };
        for _ in 0..3000 {
            let mut bytes = whole.clone();
            for _ in 0..=below(4) {
                let (at, byte) = (below(bytes.len()), BYTES[below(BYTES.len())]);
                match below(4) {
                    0 => bytes.insert(at, byte),
                    1 => drop(bytes.remove(at)),
                    2 => {
                        // Insert a copy of bytes from elsewhere.
                        let from = below(bytes.len());
                        let run = bytes[from..bytes.len().min(from + 12)].to_vec();
                        drop(bytes.splice(at..at, run));
                    }
                    _ => bytes[at] = byte,
                }
            }
            put(&bytes);
            errors += usize::from(read_all(&path).is_err());
        }
        assert!(errors > 1000, "{}: {errors}", path.display());
        put(&whole);
    }
}

#[test]
fn what_is_not_a_regular_file_is_refused() {
    let dir = Dir::new("irregular");
    for name in ["d.npy", "d.npz", "d.safetensors", "d.index.json"] {
        std::fs::create_dir(dir.0.join(name)).unwrap();
        assert!(matches!(read_all(&dir.0.join(name)), Err(Error::Format { .. })), "{name}");
        #[cfg(unix)]
        {
            let link = dir.0.join(format!("zero-{name}"));
            std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
            assert!(matches!(read_all(&link), Err(Error::Format { .. })), "{name}");
        }
        assert!(matches!(read_all(&dir.0.join(format!("none-{name}"))), Err(Error::Io { .. })), "{name}");
        #[cfg(unix)]
        {
            // Opening it would wait for a writer.
            let fifo = dir.0.join(format!("fifo-{name}"));
            assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
            assert!(matches!(read_all(&fifo), Err(Error::Format { .. })), "{name}");
        }
    }
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_an_error() {
    let dir = Dir::new("meanwhile");
    for path in files(&dir) {
        let whole = std::fs::read(&path).unwrap();
        let name = path.to_string_lossy().into_owned();
        let cut = |n: usize| File::options().write(true).open(&path).unwrap().set_len(n as u64).unwrap();
        if name.ends_with(".npz") {
            let mut file = Npz::open(&path).unwrap();
            cut(whole.len() / 2);
            assert!(file.load("y").is_err(), "{name}");
        } else if name.ends_with("a.safetensors") {
            let mut file = SafeTensors::open(&path).unwrap();
            // The bytes of `x` follow the floats.
            cut(whole.len() - 1);
            assert!(matches!(file.load("x"), Err(Error::Format { .. })), "{name}");
            assert_same(&file.load("y").unwrap(), &y());
        }
        std::fs::write(&path, whole).unwrap();
    }
}

#[test]
fn a_hundred_thousand_tensors_are_read() {
    let dir = Dir::new("many");
    let entries: Vec<String> = (0..100_000)
        .map(|i| format!(r#""layer.{i}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#, i + 1))
        .collect();
    let path = dir.file("a.safetensors", &safetensors(&format!("{{{}}}", entries.join(",")), &[7; 100_000]));
    let mut file = SafeTensors::open(path).unwrap();
    assert_eq!(file.names().count(), 100_000);
    assert_eq!(file.load("layer.99999").unwrap().to_vec::<u8>().unwrap(), [7]);
}
