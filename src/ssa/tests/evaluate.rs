//! An evaluator of texts on Rust's numbers, for tests: what kernels and compiled loops are compared with.
//!
//! Guarantees: composites are computed by the numbers' own methods, not by their expansions. Does not: make NaNs
//! canonical, but where it is told to.

use num_complex::Complex;

use crate::base::dtype::{Category, DType};
use crate::kernels::num::{Cplx, Int, Real};
use crate::kernels::tests::results;
use crate::math::lane::Lane;
use crate::ssa::prim::{Parts, Predicate, Prim, Rounding};
use crate::ssa::text::{Inst, Text};

/// The results of a text for elements that are given by their bits.
pub(super) fn evaluate(text: &Text, operands: &[Vec<u128>]) -> Vec<u128> {
    let n = operands.first().map_or(0, Vec::len);
    let mut values: Vec<Vec<u128>> = operands.to_vec();
    for inst in &text.insts {
        let args: Vec<&Vec<u128>> = inst.args().iter().map(|a| &values[a.index()]).collect();
        let result = match inst.prim {
            Prim::SlowPath(op) => {
                let far = results(op, inst.dtype, &[(inst.dtype, args[1].clone())]).remove(0).1;
                (0..n).map(|i| if args[2][i] != 0 { far[i] } else { args[0][i] }).collect()
            }
            _ => (0..n).map(|i| lane(inst, &args.iter().map(|a| a[i]).collect::<Vec<_>>())).collect(),
        };
        values.push(result);
    }
    values.swap_remove(text.result.index())
}

/// The bits of an element with its NaNs, or those of its parts, made canonical.
pub(super) fn canonical(d: DType, bits: u128) -> u128 {
    let part = d.real();
    if !part.is_float() {
        return bits;
    }
    let width = 8 * part.size();
    let one = |at: usize| {
        let bits = (bits >> at) as u64 & u64::MAX >> (64 - width);
        let magnitude = bits & u64::MAX >> (65 - width);
        u128::from(if magnitude > part.infinity_bits() { part.nan_bits() } else { bits }) << at
    };
    if d.is_complex() { one(0) | one(width) } else { one(0) }
}

fn ones(d: DType) -> u128 {
    if d == DType::Bool { 1 } else { u128::MAX >> (128 - 8 * d.size()) }
}

/// The sign bits of an element.
fn signs(d: DType) -> u128 {
    let (width, top) = (8 * d.real().size(), 8 * d.size() - 1);
    if d.is_complex() { 1 << top | 1 << (width - 1) } else { 1 << top }
}

fn lane(inst: &Inst, args: &[u128]) -> u128 {
    use Prim::*;
    let d = inst.dtype;
    let (a, b) = (args.first().copied().unwrap_or(0), args.get(1).copied().unwrap_or(0));
    match inst.prim {
        Const(bits) if d.is_complex() => u128::from(bits) | u128::from(bits) << (8 * d.real().size()),
        Const(bits) => bits.into(),
        Select => args[if a != 0 { 1 } else { 2 }],
        And => a & b,
        Or => a | b,
        Xor => a ^ b,
        AndNot => !a & b,
        Not => !a & ones(d),
        Bits(_) => a,
        Neg if d.category() != Category::Int => a ^ signs(d),
        Abs if d.category() != Category::Int => a & !signs(d),
        CopySign | Signed => a & !signs(d) | b & signs(d),
        RealPart => a & ones(d.real()),
        ImagPart => a >> (8 * d.real().size()),
        Pair => a | b << (8 * d.real().size()),
        Pick { set, clear } => {
            if a >> (d.size() / 8) & 1 != 0 {
                set.into()
            } else {
                clear.into()
            }
        }
        prim => match d {
            DType::U8 => int(prim, a as u8, b as u8).map_or_else(u128::from, u128::from),
            DType::U16 => int(prim, a as u16, b as u16).map_or_else(u128::from, u128::from),
            DType::U32 => int(prim, a as u32, b as u32).map_or_else(u128::from, u128::from),
            DType::U64 => int(prim, a as u64, b as u64).map_or_else(u128::from, u128::from),
            DType::I8 => int(prim, a as i8, b as i8).map_or_else(u128::from, |v| v as u8 as u128),
            DType::I16 => int(prim, a as i16, b as i16).map_or_else(u128::from, |v| v as u16 as u128),
            DType::I32 => int(prim, a as i32, b as i32).map_or_else(u128::from, |v| v as u32 as u128),
            DType::I64 => int(prim, a as i64, b as i64).map_or_else(u128::from, |v| v as u64 as u128),
            DType::F32 => {
                let args: Vec<f32> = args.iter().map(|a| f32::from_bits(*a as u32)).collect();
                float(prim, &args).map_or_else(u128::from, |v| v.to_bits().into())
            }
            DType::F64 => {
                let args: Vec<f64> = args.iter().map(|a| f64::from_bits(*a as u64)).collect();
                let chosen = |table: &'static [f64; 16]| Ok(crate::math::lane::Table::chosen(args[0], table));
                let result = if let Chosen(table) = prim { chosen(table) } else { float(prim, &args) };
                result.map_or_else(u128::from, |v| v.to_bits().into())
            }
            DType::C64 => {
                let number = |a: u128| Complex::new(f32::from_bits(a as u32), f32::from_bits((a >> 32) as u32));
                let bits = |v: Complex<f32>| u128::from(v.re.to_bits()) | u128::from(v.im.to_bits()) << 32;
                complex(prim, number(a), number(b)).map_or_else(u128::from, bits)
            }
            DType::C128 => {
                let number = |a: u128| Complex::new(f64::from_bits(a as u64), f64::from_bits((a >> 64) as u64));
                let bits = |v: Complex<f64>| u128::from(v.re.to_bits()) | u128::from(v.im.to_bits()) << 64;
                complex(prim, number(a), number(b)).map_or_else(u128::from, bits)
            }
            _ => panic!("{inst:?}"),
        },
    }
}

/// A number, or the truth value of a comparison.
type Outcome<T> = Result<T, bool>;

fn int<T: Int<Mask = bool>>(prim: Prim, a: T, b: T) -> Outcome<T> {
    // Places as a number of the type: 64 and more are beyond every width.
    let places = |n: u8| a.c(n as i8);
    Ok(match prim {
        Prim::Add => a.wrapping_add(b),
        Prim::Sub => a.wrapping_sub(b),
        Prim::Mul => a.wrapping_mul(b),
        Prim::Neg => a.wrapping_neg(),
        Prim::Abs => T::absolute(a),
        Prim::Maximum => T::maximum(a, b),
        Prim::Minimum => T::minimum(a, b),
        Prim::ShiftLeft => T::shift_left(a, b),
        Prim::ShiftRight => T::shift_right(a, b),
        Prim::ShiftUp(n) => T::shift_left(a, places(n)),
        Prim::ShiftDown(0) => a,
        // The sign's copies are cleared.
        Prim::ShiftDown(n) => {
            let width = (0..=64).take_while(|w| T::truth(T::shift_left(a.c(1), a.c(*w)))).count() as u8;
            T::shift_right(a, places(n)) & !T::shift_left(!a.c(0), places(width - n))
        }
        Prim::Compare(p) => return Err(holds(p, [T::eq(a, b), T::lt(a, b), T::gt(a, b)])),
        Prim::Test => return Err(T::truth(a & b)),
        Prim::TestNot => return Err(!T::truth(a & b)),
        _ => panic!("{prim:?} of integers"),
    })
}

/// A comparison of numbers of which the first is equal to, less or greater than the second; none of them if one is a NaN.
fn holds(p: Predicate, [equal, less, greater]: [bool; 3]) -> bool {
    match p {
        Predicate::Equal => equal,
        Predicate::NotEqual => !equal,
        Predicate::Less => less,
        Predicate::LessEqual => less || equal,
        Predicate::Greater => greater,
        Predicate::GreaterEqual => greater || equal,
        Predicate::NotLess => !less,
        Predicate::NotLessEqual => !(less || equal),
        Predicate::NotGreater => !greater,
        Predicate::NotGreaterEqual => !(greater || equal),
        Predicate::Ordered => equal || less || greater,
        Predicate::Unordered => !(equal || less || greater),
    }
}

fn compare<T: Real<Mask = bool>>(p: Predicate, a: T, b: T) -> bool {
    holds(p, [T::eq(a, b), T::lt(a, b), T::gt(a, b)])
}

fn float<T: Real<Mask = bool> + Lane<Num = T, Mask = bool>>(prim: Prim, args: &[T]) -> Outcome<T> {
    let a = args[0];
    let b = args.get(1).copied().unwrap_or(a);
    let c = args.get(2).copied().unwrap_or(a);
    Ok(match prim {
        Prim::Add => a + b,
        Prim::Sub => a - b,
        Prim::Mul => a * b,
        Prim::Div => a / b,
        Prim::Sqrt => Real::sqrt(a),
        // Instructions make a NaN quiet; functions of a library may not.
        Prim::Round(_) if T::is_nan(a) => a + a,
        Prim::Round(Rounding::Nearest) => T::round(a),
        Prim::Round(Rounding::Down) => T::floor(a),
        Prim::Round(Rounding::Up) => T::ceil(a),
        Prim::Round(Rounding::Zero) => T::trunc(a),
        Prim::Fma => a.fma(b, c),
        Prim::Fms => a.fms(b, c),
        Prim::Fnma => a.fnma(b, c),
        Prim::Least => b.at_most(a),
        Prim::Most => b.at_least(a),
        Prim::Maximum => T::maximum(a, b),
        Prim::Minimum => T::minimum(a, b),
        Prim::Fmax => T::fmax(a, b),
        Prim::Fmin => T::fmin(a, b),
        Prim::Compare(p) => return Err(compare(p, a, b)),
        Prim::Scaled => a.scaled(b, c),
        Prim::Turned => a.turned(b),
        Prim::Significand => a.split().1,
        Prim::Exponent => a.split().0,
        Prim::LogEnds => a.log_ends(b),
        _ => panic!("{prim:?} of floats"),
    })
}

fn complex<P: Real<Mask = bool>, T: Cplx<Part = P, Mask = bool>>(prim: Prim, a: T, b: T) -> Outcome<T> {
    let held = |p| [compare(p, T::re(a), T::re(b)), compare(p, T::im(a), T::im(b))];
    Ok(match prim {
        Prim::Add => a + b,
        Prim::Sub => a - b,
        Prim::Conj => T::conj(a),
        Prim::ComplexMul => T::mul(a, b),
        Prim::ComplexCompare(p, Parts::Both) => return Err(held(p) == [true; 2]),
        Prim::ComplexCompare(p, Parts::Either) => return Err(held(p) != [false; 2]),
        _ => panic!("{prim:?} of complex numbers"),
    })
}
