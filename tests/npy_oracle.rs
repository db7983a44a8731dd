//! Compares `.npy` files with npyz's reader and writer. castwise parses headers by npyz too, so these tests check the
//! data: their order, byte order and elements. `tests/numpy_files.rs` is independent of both.

use std::fs;
use std::path::PathBuf;

use castwise::io::{Existing, read_npy, write_npy};
use castwise::{DType, Element, Tensor};
use npyz::{AutoSerialize, Deserialize, NpyFile, Order, Serialize, WriteOptions, WriterBuilder};
use num_complex::Complex;

use crate::common::{Random, random_tensor};

/// 0-d, an empty dim in each position, one element, 1-d, and more dims. The last ones fill several buffers.
const SHAPES: &[&[usize]] =
    &[&[], &[0], &[1], &[7], &[0, 3], &[3, 0], &[2, 0, 4], &[1, 1], &[5, 3], &[2, 3, 4], &[3, 1, 2, 2], &[33, 7, 130]];

/// The file of one test, which is removed when the test ends.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str) -> TestFile {
        TestFile(std::env::temp_dir().join(format!("castwise-npyz-{}-{name}.npy", std::process::id())))
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The traits that both libraries need for a NumPy dtype.
trait Both: Element + AutoSerialize + Serialize + Deserialize {}
impl<T: Element + AutoSerialize + Serialize + Deserialize> Both for T {}

/// Calls a generic function with each dtype that NumPy has, and its type string without the byte order.
macro_rules! for_numpy_dtypes {
    ($f:ident) => {
        $f::<bool>("b1");
        $f::<u8>("u1");
        $f::<u16>("u2");
        $f::<u32>("u4");
        $f::<u64>("u8");
        $f::<i8>("i1");
        $f::<i16>("i2");
        $f::<i32>("i4");
        $f::<i64>("i8");
        $f::<half::f16>("f2");
        $f::<f32>("f4");
        $f::<f64>("f8");
        $f::<Complex<f32>>("c8");
        $f::<Complex<f64>>("c16");
    };
}

fn dims(shape: &[usize]) -> Vec<u64> {
    shape.iter().map(|n| *n as u64).collect()
}

/// Random elements, which include infinities, NaNs with payloads and zeros of both signs.
fn sample<T: Both>(shape: &[usize]) -> Tensor {
    random_tensor(T::DTYPE, shape, &mut Random(T::DTYPE as u64 + 100 * shape.len() as u64), false)
}

/// Reverses all dims.
fn reversed(t: &Tensor) -> Tensor {
    t.permute(&(0..t.rank()).rev().collect::<Vec<_>>()).unwrap()
}

#[track_caller]
fn assert_same(got: &Tensor, want: &Tensor, what: &str) {
    assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()), "{what}");
    let (got, want) = (got.contiguous().unwrap(), want.contiguous().unwrap());
    assert!(got.as_bytes() == want.as_bytes(), "{what}: other elements");
}

/// Writes a tensor with castwise and reads it with npyz.
fn out<T: Both>(t: &Tensor, kind: &str, file: &TestFile) {
    let what = format!("{}{:?}", T::DTYPE, t.shape());
    write_npy(&file.0, t, Existing::Replace).unwrap();
    let bytes = fs::read(&file.0).unwrap();
    let theirs = NpyFile::new(&bytes[..]).unwrap_or_else(|e| panic!("{what}: {e}"));
    let order = if T::DTYPE.size() == 1 { '|' } else { '<' };
    assert_eq!(theirs.dtype(), npyz::DType::Plain(format!("{order}{kind}").parse().unwrap()), "{what}");
    assert_eq!((theirs.shape(), theirs.order()), (&dims(t.shape())[..], Order::C), "{what}");
    // NumPy can map the data of a file into memory, so they must be aligned.
    assert_eq!((bytes.len() - t.numel() * T::DTYPE.size()) % 64, 0, "{what}");
    let read = Tensor::from_vec(theirs.into_vec::<T>().unwrap(), t.shape()).unwrap();
    assert_same(&read, t, &what);
}

#[test]
fn npyz_reads_what_castwise_writes() {
    fn check<T: Both>(kind: &str) {
        let file = TestFile::new(&format!("out-{kind}"));
        for shape in SHAPES {
            out::<T>(&sample::<T>(shape), kind, &file);
        }
        // Views that are not contiguous.
        let t = sample::<T>(&[4, 3, 5]);
        out::<T>(&reversed(&t), kind, &file);
        out::<T>(&t.slice(2, 1, 5, 2).unwrap().flip(0).unwrap(), kind, &file);
        out::<T>(&sample::<T>(&[3, 1]).broadcast_to([2, 3, 2]).unwrap(), kind, &file);
    }
    for_numpy_dtypes!(check);
}

#[test]
fn castwise_reads_what_npyz_writes() {
    fn check<T: Both>(kind: &str) {
        let file = TestFile::new(&format!("in-{kind}"));
        let orders: &[char] = if T::DTYPE.size() == 1 { &['|', '<', '>'] } else { &['<', '>'] };
        for shape in SHAPES {
            let t = sample::<T>(shape);
            for order in [Order::C, Order::Fortran] {
                let elements = match order {
                    Order::C => t.to_vec::<T>().unwrap(),
                    Order::Fortran => reversed(&t).to_vec::<T>().unwrap(),
                };
                for byte_order in orders {
                    let descr = format!("{byte_order}{kind}");
                    let mut bytes = Vec::new();
                    let options = WriteOptions::new().dtype(npyz::DType::Plain(descr.parse().unwrap()));
                    let mut writer = options.shape(&dims(shape)).order(order).writer(&mut bytes).begin_nd().unwrap();
                    writer.extend(elements.iter().copied()).unwrap();
                    writer.finish().unwrap();
                    fs::write(&file.0, &bytes).unwrap();
                    let what = format!("{descr} {shape:?} {order:?}");
                    let read = read_npy(&file.0).unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_same(&read, &t, &what);
                }
            }
        }
        // Other variants that npyz writes: a dtype of its own choice, and a length that is filled in at the end.
        let t = sample::<T>(&[12]);
        let mut bytes = std::io::Cursor::new(Vec::new());
        let mut writer = WriteOptions::new().default_dtype().writer(&mut bytes).begin_1d().unwrap();
        writer.extend(t.to_vec::<T>().unwrap()).unwrap();
        writer.finish().unwrap();
        fs::write(&file.0, bytes.get_ref()).unwrap();
        assert_same(&read_npy(&file.0).unwrap(), &t, kind);
        let mut bytes = std::io::Cursor::new(Vec::new());
        let options = WriteOptions::new().default_dtype().order(Order::Fortran);
        let mut writer = options.writer(&mut bytes).begin_2d(4).unwrap();
        writer.extend(t.to_vec::<T>().unwrap()).unwrap();
        writer.finish().unwrap();
        fs::write(&file.0, bytes.get_ref()).unwrap();
        assert_same(&read_npy(&file.0).unwrap(), &t.reshape([3, 4]).unwrap().transpose(0, 1).unwrap(), kind);
    }
    for_numpy_dtypes!(check);
}

#[test]
fn dtypes_that_numpy_lacks_are_refused() {
    let file = TestFile::new("refused");
    for d in [DType::BF16, DType::C32] {
        let t = Tensor::zeros(d, [2]).unwrap();
        assert!(write_npy(&file.0, &t, Existing::Replace).is_err() && !file.0.exists(), "{d}");
    }
}
