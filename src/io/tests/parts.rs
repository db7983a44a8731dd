//! Parts of tensors: what is read is what was written, and what does not fit is refused.

use super::*;

fn numbers() -> Tensor {
    Tensor::from_vec((0..60u16).collect(), [3, 20]).unwrap()
}

/// Writes the numbers as two tensors, the parts of both in turn; the last part of `y` only if `whole`.
fn write(path: &Path, whole: bool) -> Result<()> {
    let t = numbers().reshape([60]).unwrap();
    let list = ["x", "y"].map(|n| (n.to_string(), DType::U16, vec![3, 20]));
    let mut out = ShardedWriter::create(path, &list, &BTreeMap::new(), 1000, Existing::Keep)?;
    for (from, to) in [(0, 7), (7, 8), (8, 60)] {
        let part = t.slice(0, from, to, 1)?;
        out.write_part("x", &[3, 20], &part)?;
        if to < 60 || whole {
            out.write_part("y", &[3, 20], &part)?;
        }
    }
    out.finish()
}

#[test]
fn parts_make_up_the_whole() {
    let dir = Dir::new("parts");
    let path = dir.0.join("m.index.json");
    assert!(write(&path, false).unwrap_err().to_string().contains("1 listed tensors were not written"));
    assert!(dir.names().is_empty());
    write(&path, true).unwrap();
    let mut file = ShardedSafeTensors::open(&path).unwrap();
    let mut part = Tensor::zeros(DType::U16, [2, 5]).unwrap();
    for name in ["x", "y"] {
        assert_eq!(file.load(name).unwrap().as_bytes(), numbers().as_bytes());
        file.load_part(name, 50, &mut part).unwrap();
        assert_eq!(part.to_vec::<u16>().unwrap(), (50..60).collect::<Vec<u16>>());
        assert!(file.load_part(name, 51, &mut part).is_err() && file.load_part(name, usize::MAX, &mut part).is_err());
        assert!(file.load_part(name, 0, &mut Tensor::zeros(DType::I16, [2]).unwrap()).is_err());
        let shared = part.clone();
        assert!(file.load_part(name, 0, &mut part).unwrap_err().to_string().contains("shares its memory"));
        drop(shared);
    }
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let dir = Dir::new("parts-refused");
    let (path, t) = (dir.0.join("a.npy"), numbers());
    let mut out = NpyWriter::create(&path, DType::U16, &[61], Existing::Keep).unwrap();
    out.write_part(&t).unwrap();
    assert!(out.write_part(&t).unwrap_err().to_string().contains("a part of 60 u16 does not belong to u16[61]"));
    assert!(out.write_part(&Tensor::zeros(DType::I16, [1]).unwrap()).is_err());
    assert!(out.finish().unwrap_err().to_string().contains("1 elements were not written"));
    assert!(dir.names().is_empty() && NpyWriter::create(&path, DType::BF16, &[1], Existing::Keep).is_err());
    let list = [("x".to_string(), DType::U16, vec![61])];
    let path = dir.0.join("a.safetensors");
    let mut out = SafeTensorsWriter::create(&path, &list, &BTreeMap::new(), Existing::Keep).unwrap();
    assert!(out.write_part("y", &[61], &t).is_err() && out.write_part("x", &[60], &t).is_err());
    out.write_part("x", &[61], &t).unwrap();
    assert!(out.write_part("x", &[61], &t).unwrap_err().to_string().contains("more elements than are left"));
    assert!(out.write("x", &t).is_err() && out.finish().is_err() && dir.names().is_empty());
}

#[test]
fn arrays_of_other_orders_are_swapped_or_refused() {
    let dir = Dir::new("parts-order");
    let path = dir.0.join("a.npy");
    let file = |order: &str, descr: &str, bytes: &[u8]| {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (2, 2), }}");
        let head = [b"\x93NUMPY\x01\0", &(dict.len() as u16).to_le_bytes()[..], dict.as_bytes(), bytes].concat();
        std::fs::write(&path, head).unwrap();
        Npy::open(&path).unwrap()
    };
    let mut two = Tensor::zeros(DType::U16, [2]).unwrap();
    file("False", ">u2", &[0, 1, 0, 2, 0, 3, 0, 4]).load_part(1, &mut two).unwrap();
    assert_eq!(two.to_vec::<u16>().unwrap(), [2, 3]);
    let mut fortran = file("True", "<u2", &[1, 0, 2, 0, 3, 0, 4, 0]);
    assert!(!fortran.has_parts() && fortran.load_part(0, &mut two).is_err());
}
