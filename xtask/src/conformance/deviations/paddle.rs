//! The checks of the deviations from Paddle: whether an answer is the one that the rule of `deviations.rs` states.

use castwise::prelude::*;
use castwise::{Category, Op};

use super::{category, operand};
use crate::conformance::case::Case;
use crate::conformance::compare::{elements, real, same, ulps};
use crate::conformance::run::Answer;

pub fn bool_division(c: &Case, a: &Answer) -> bool {
    let Ok(got) = a else { return false };
    let bools = c.args.iter().all(|a| category(a) == Category::Bool);
    let (Some((_, x)), Some((_, y))) = (operand(c, 0, got.shape()), operand(c, 1, got.shape())) else { return false };
    let rule = |((x, y), g): ((&Vec<u8>, &Vec<u8>), &Vec<u8>)| {
        same(DType::F32, g, &(f32::from(x[0]) / f32::from(y[0])).to_le_bytes(), false)
    };
    c.op == Op::Div && bools && got.dtype() == DType::F32 && x.iter().zip(&y).zip(&elements(got)).all(rule)
}

pub fn integer_fmax(c: &Case, a: &Answer) -> bool {
    let Ok(got) = a else { return false };
    let (Some((dx, x)), Some((dy, y))) = (operand(c, 0, got.shape()), operand(c, 1, got.shape())) else { return false };
    let narrow = |d: DType| matches!(d, DType::U8 | DType::I8 | DType::I16 | DType::I32);
    let rule = |((x, y), g): ((&Vec<u8>, &Vec<u8>), &Vec<u8>)| {
        let (x, y) = (real(dx, x), real(dy, y));
        real(dx, g) == if c.op == Op::Fmax { x.max(y) } else { x.min(y) }
    };
    matches!(c.op, Op::Fmax | Op::Fmin)
        && c.quirk
        && narrow(dx)
        && dx == dy
        && got.dtype() == dx
        && x.iter().zip(&y).zip(&elements(got)).all(rule)
}

pub fn integer_atan2(c: &Case, a: &Answer) -> bool {
    let Ok(got) = a else { return false };
    let (Some((dx, x)), Some((dy, y))) = (operand(c, 0, got.shape()), operand(c, 1, got.shape())) else { return false };
    let rule = |((x, y), g): ((&Vec<u8>, &Vec<u8>), &Vec<u8>)| {
        ulps(DType::F64, g, &real(dx, x).atan2(real(dy, y)).to_le_bytes()) <= 2
    };
    let integers = c.args.iter().all(|a| category(a) == Category::Int);
    c.op.name() == "atan2"
        && c.quirk
        && integers
        && got.dtype() == DType::F64
        && x.iter().zip(&y).zip(&elements(got)).all(rule)
}
