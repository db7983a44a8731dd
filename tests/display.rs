//! Tensors print in the layout of NumPy's `print`, with Rust's notation of values.

use castwise::prelude::*;
use castwise::{Complex, bf16, f16};

fn shows(t: &Tensor, expected: &[&str]) {
    assert_eq!(t.to_string().lines().collect::<Vec<_>>(), expected);
}

fn counted(shape: &[usize]) -> Tensor {
    Tensor::from_vec((0..shape.iter().product::<usize>() as i64).collect(), shape).unwrap()
}

#[test]
fn rows_are_aligned_and_blocks_apart() {
    shows(&counted(&[3]), &["[0 1 2]"]);
    shows(&counted(&[4, 3]), &["[[ 0  1  2]", " [ 3  4  5]", " [ 6  7  8]", " [ 9 10 11]]"]);
    let blocks = ["[[[0 1]", "  [2 3]]", "", " [[4 5]", "  [6 7]]]"];
    shows(&counted(&[2, 2, 2]), &blocks);
    shows(&counted(&[2, 1, 1, 2]), &["[[[[0 1]]]", "", "", " [[[2 3]]]]"]);
    shows(&Tensor::from_slice(&[-100i8, 5], [2]).unwrap(), &["[-100    5]"]);
}

#[test]
fn values_are_written_as_rust_writes_them() {
    shows(&Tensor::scalar(1.0f32), &["1.0"]);
    shows(&Tensor::scalar(-3i32), &["-3"]);
    shows(&Tensor::scalar(f16::from_f32(0.1)), &["0.1"]);
    shows(&Tensor::from_slice(&[true, false], [2]).unwrap(), &["[ true false]"]);
    shows(&Tensor::from_slice(&[0.1f32, 1e7, -2.5], [3]).unwrap(), &["[       0.1 10000000.0       -2.5]"]);
    let floats = [1.5f64, f64::NAN, f64::NEG_INFINITY, -0.0, 0.30000000000000004];
    shows(
        &Tensor::from_slice(&floats, [5]).unwrap(),
        &[
            "[ 1.5                                  nan                 -inf",
            " -0.0                  0.30000000000000004]",
        ],
    );
    shows(&Tensor::from_slice(&[1e8f32, 1.5], [2]).unwrap(), &["[  1e8 1.5e0]"]);
    shows(&Tensor::from_slice(&[bf16::from_f32(1e-5), bf16::ZERO], [2]).unwrap(), &["[1e-5  0e0]"]);
    let complex = [Complex::new(1.0f32, 2.0), Complex::new(-0.5, -0.0), Complex::new(f32::INFINITY, f32::NAN)];
    shows(&Tensor::from_slice(&complex, [3]).unwrap(), &["[    1+2j  -0.5-0j inf+nanj]"]);
    let half = [Complex::new(f16::from_f32(0.1), f16::ONE)];
    shows(&Tensor::from_slice(&half, [1]).unwrap(), &["[0.1+1j]"]);
}

#[test]
fn a_precision_is_taken_as_in_rust() {
    let t = Tensor::from_slice(&[1.0f32, 0.1, -2.34567], [3]).unwrap();
    assert_eq!(format!("{t:.3}"), "[ 1.000  0.100 -2.346]");
    assert_eq!(format!("{t:.0}"), "[ 1  0 -2]");
    assert_eq!(format!("{:.10}", Tensor::scalar(0.1f32)), "0.1000000015");
    assert_eq!(format!("{:.2}", Tensor::scalar(Complex::new(1.0, -2.0))), "1.00-2.00j");
    assert_eq!(format!("{:.1}", Tensor::scalar(123456789.0)), "1.2e8");
    assert_eq!(format!("{:.3}", Tensor::scalar(7u8)), "7");
}

#[test]
fn views_show_their_elements() {
    let t = counted(&[2, 3]);
    shows(&t.transpose(0, 1).unwrap(), &["[[0 3]", " [1 4]", " [2 5]]"]);
    shows(&t.flip(1).unwrap().slice(1, 0, 3, 2).unwrap(), &["[[2 0]", " [5 3]]"]);
    shows(&Tensor::scalar(7u8).broadcast_to([2, 2]).unwrap(), &["[[7 7]", " [7 7]]"]);
}

#[test]
fn tensors_without_elements_show_their_shape() {
    shows(&Tensor::zeros(DType::F32, [0]).unwrap(), &["[], shape [0]"]);
    shows(&Tensor::zeros(DType::F32, [3, 0, 2]).unwrap(), &["[], shape [3, 0, 2]"]);
}

#[test]
fn large_tensors_are_summarized() {
    assert_eq!(counted(&[1000]).to_string().matches("...").count(), 0);
    shows(&counted(&[1001]), &["[   0    1    2 ...  998  999 1000]"]);
    let square = [
        "[[   0    1    2 ...   47   48   49]",
        " [  50   51   52 ...   97   98   99]",
        " [ 100  101  102 ...  147  148  149]",
        " ...",
        " [2350 2351 2352 ... 2397 2398 2399]",
        " [2400 2401 2402 ... 2447 2448 2449]",
        " [2450 2451 2452 ... 2497 2498 2499]]",
    ];
    shows(&counted(&[50, 50]), &square);
    let blocks = [
        "[[[   0    1]",
        "  [   2    3]]",
        "",
        " [[   4    5]",
        "  [   6    7]]",
        "",
        " [[   8    9]",
        "  [  10   11]]",
        "",
        " ...",
        "",
        " [[1188 1189]",
        "  [1190 1191]]",
        "",
        " [[1192 1193]",
        "  [1194 1195]]",
        "",
        " [[1196 1197]",
        "  [1198 1199]]]",
    ];
    shows(&counted(&[300, 2, 2]), &blocks);
    // The alternate form prints all elements.
    let all = format!("{:#}", counted(&[1001]));
    assert_eq!(all.split_whitespace().filter(|w| *w != "[").count(), 1001);
    // With many dims, fewer elements are printed at each edge, so that the output is bounded.
    let wide = Tensor::scalar(1u8).broadcast_to([2; 40]).unwrap().to_string();
    assert_eq!((wide.matches('1').count(), wide.matches("...").count()), (1, 40));
    assert!(wide.starts_with(&"[".repeat(40)) && wide.ends_with(']'));
    let wide = Tensor::scalar(1u8).broadcast_to([4; 13]).unwrap().to_string();
    assert_eq!(wide.matches('1').count(), 1 << 13);
    assert_eq!(wide.matches('[').count(), wide.matches(']').count());
}

#[test]
fn long_rows_are_broken() {
    let rows = ["[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23", " 24 25 26 27 28 29]"];
    shows(&counted(&[30]), &rows);
    let wide = counted(&[2, 300]).to_string();
    assert!(wide.lines().all(|l| l.len() <= 75), "{wide}");
    assert!(wide.lines().skip(1).all(|l| l.starts_with("  ") || l.starts_with(" [")), "{wide}");
}
