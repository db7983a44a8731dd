//! Operands of test cases: every dtype in every layout, with random elements that include all special values.

use castwise::prelude::*;
use num_complex::Complex;

use super::{Random, element};

/// The layout of an operand in memory, or that it is a scalar. All but [`Place::Empty`] broadcast to [`DOMAIN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Contiguous,
    /// One row, which is broadcast.
    Row,
    /// One column, which is broadcast.
    Column,
    /// One element, with dims.
    One,
    /// One row, repeated by stride 0.
    Expanded,
    Transposed,
    /// Every second row and element.
    Stepped,
    /// Reversed along both dims.
    Reversed,
    ZeroDim,
    Scalar,
    /// Without elements.
    Empty,
}

pub const PLACES: [Place; 11] = [
    Place::Contiguous,
    Place::Row,
    Place::Column,
    Place::One,
    Place::Expanded,
    Place::Transposed,
    Place::Stepped,
    Place::Reversed,
    Place::ZeroDim,
    Place::Scalar,
    Place::Empty,
];

/// The tier of an operand in promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    Dim,
    Zero,
    Scalar,
}

impl Place {
    pub fn tier(self) -> Tier {
        match self {
            Place::Scalar => Tier::Scalar,
            Place::ZeroDim => Tier::Zero,
            _ => Tier::Dim,
        }
    }
}

/// It has more elements than a tile (512), and no extent is a multiple of 16.
pub const DOMAIN: [usize; 2] = [3, 181];

#[derive(Clone, Debug)]
pub enum Given {
    Tensor(Tensor),
    Scalar(Scalar),
}

/// A scalar of each dtype's category: values that `pow` treats specially, and values that f16 and bf16 can't hold.
fn scalar(d: DType, zeros: bool) -> Scalar {
    match d {
        DType::Bool => Scalar::Bool(true),
        DType::U8 => Scalar::Int(3),
        DType::U16 => Scalar::Int(65_535),
        DType::U32 => Scalar::Int(3_000_000_001),
        DType::U64 => Scalar::Int(1 << 63),
        DType::I8 => Scalar::Int(-300),
        DType::I16 => Scalar::Int(2),
        DType::I32 => Scalar::from(!zeros as u8),
        DType::I64 => Scalar::from(i64::MAX),
        DType::F8E4M3FN => Scalar::Float(1000.0),
        DType::F8E5M2 => Scalar::Float(3.0),
        DType::F16 => Scalar::Float(0.3),
        DType::BF16 => Scalar::Float(f64::NAN),
        DType::F32 => Scalar::Float(0.5),
        DType::F64 => Scalar::Float(-0.0),
        DType::C32 => Scalar::Complex(Complex::new(0.3, -2.0)),
        DType::C64 => Scalar::Complex(Complex::new(f64::INFINITY, f64::NAN)),
        DType::C128 => Scalar::Complex(Complex::new(-0.0, 1.0)),
        other => panic!("no scalar stands for {other}"),
    }
}

/// The bits of special values: signed zeros and infinities, quiet and signalling NaNs with payloads, the ends of the
/// subnormal and normal ranges; the extremes of integers, and shift counts near their width.
fn specials(d: DType) -> Vec<u64> {
    let (exponent, fraction) = match d {
        // Every value.
        DType::F8E4M3FN | DType::F8E5M2 => {
            return (0..32).map(|i| i * 8 + i % 8).chain([0x7f, 0xfe, 0x7c, 0x7e]).collect();
        }
        DType::F16 => (5, 10),
        DType::BF16 => (8, 7),
        DType::F32 => (8, 23),
        DType::F64 => (11, 52),
        DType::Bool => return vec![0, 1],
        _ => {
            let bits = 8 * d.size() as u64;
            return vec![0, 1, 2, 3, 7, bits - 1, bits, u64::MAX, u64::MAX - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1];
        }
    };
    let sign = 1u64 << (exponent + fraction);
    let infinity = ((1 << exponent) - 1) << fraction;
    let (quiet, one, normal) = (1 << (fraction - 1), ((1 << (exponent - 1)) - 1) << fraction, 1 << fraction);
    let unsigned = [0, one, infinity, infinity | quiet, infinity | quiet | 0x2b, infinity | 1, infinity | 0x15];
    let edges = [1, normal - 1, normal, infinity - 1];
    unsigned.iter().chain(&edges).flat_map(|v| [*v, v | sign]).collect()
}

/// Random elements after special ones, which are arranged so that every special value of one operand meets every
/// special value of the next.
fn elements(d: DType, shape: &[usize], index: usize, zeros: bool, r: &mut Random) -> Tensor {
    let (part, size) = (d.real(), d.real().size());
    let special = specials(part);
    let (n, k) = (shape.iter().product::<usize>(), special.len());
    let mut bytes = vec![];
    for j in 0..n {
        for imaginary in 0..d.size() / size {
            let pick = if (index + imaginary).is_multiple_of(2) { j / k } else { j };
            if j < k * k {
                bytes.extend_from_slice(&special[(pick + index / 2) % k].to_le_bytes()[..size]);
            } else {
                bytes.extend(element(part, r, !zeros));
            }
        }
    }
    if !zeros && !d.is_complex() && !d.is_float() {
        bytes.chunks_mut(size).filter(|e| e.iter().all(|b| *b == 0)).for_each(|e| e[0] = 1);
    }
    Tensor::from_bytes(d, shape, &bytes).unwrap()
}

/// The `index`-th operand of a case. Without `zeros`, no integer element is 0.
pub fn given(d: DType, place: Place, index: usize, zeros: bool) -> Given {
    let mut r = Random(place as u64 * 1000 + index as u64 * 17 + d as u64);
    let [m, n] = DOMAIN;
    let mut of = |shape: &[usize]| elements(d, shape, index, zeros, &mut r);
    Given::Tensor(match place {
        Place::Contiguous => of(&[m, n]),
        Place::Row => of(&[n]),
        Place::Column => of(&[m, 1]),
        Place::One => of(&[1, 1]),
        Place::Expanded => of(&[1, n]).broadcast_to([m, n]).unwrap(),
        Place::Transposed => of(&[n, m]).transpose(0, 1).unwrap(),
        Place::Stepped => of(&[2 * m, 2 * n]).slice(0, 1, 2 * m, 2).unwrap().slice(1, 0, 2 * n, 2).unwrap(),
        Place::Reversed => of(&[m, n]).flip(0).unwrap().flip(1).unwrap(),
        Place::ZeroDim => of(&[]),
        Place::Empty => of(&[0, n]),
        Place::Scalar => return Given::Scalar(scalar(d, zeros)),
    })
}

/// A tensor with three dims for reductions.
pub fn solid(d: DType, place: Place) -> Option<Tensor> {
    let mut r = Random(place as u64 * 1000 + 7 + d as u64);
    let mut of = |shape: &[usize]| elements(d, shape, 0, true, &mut r);
    Some(match place {
        Place::Contiguous => of(&[3, 5, 37]),
        // More than a tile along one dim.
        Place::Row => of(&[2, 3, 523]),
        Place::Column => of(&[523, 3, 1]),
        Place::One => of(&[1, 1, 1]),
        Place::Expanded => of(&[3, 1, 37]).broadcast_to([3, 5, 37]).unwrap(),
        Place::Transposed => of(&[37, 5, 3]).permute(&[2, 0, 1]).unwrap(),
        Place::Stepped => of(&[3, 10, 74]).slice(1, 1, 10, 2).unwrap().slice(2, 0, 74, 2).unwrap(),
        Place::Reversed => of(&[3, 5, 37]).flip(0).unwrap().flip(2).unwrap(),
        Place::Empty => of(&[3, 0, 37]),
        Place::ZeroDim | Place::Scalar => return None,
    })
}
