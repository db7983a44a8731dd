//! Composites made of simpler primitives, for machines that have no instruction for them.
//!
//! Guarantees: an expansion has the bits of its composite, up to those of NaNs where the composite's arithmetic gives
//! NaN. Does not: decide which composites a machine has.

use super::lanes::Format;
use super::prim::{Parts, Predicate, Prim};
use super::record::{Complex, Float, Rec, Tape, Truth, Whole};
use super::text::{Inst, Text, Value};
use crate::base::dtype::DType;
use crate::kernels::num::{Int, Real, complex, real};

impl Prim {
    /// What a composite is made of; none if the primitive is none.
    #[cfg(test)]
    pub(crate) fn expansion(self, dtype: DType) -> Option<Text> {
        let operand = if matches!(self, Prim::Pick { .. }) { words(dtype) } else { dtype };
        let tape = Tape::new(vec![operand; self.arity()]);
        let args: Vec<Value> = (0..self.arity() as u16).map(Value).collect();
        let result = self.expand(dtype, &tape, &args)?;
        Some(tape.text(result, false))
    }

    /// Writes what a composite is made of; an arm makes a primitive a composite.
    fn expand(self, dtype: DType, tape: &Tape, args: &[Value]) -> Option<Value> {
        let float = |i: usize| tape.rec::<Float>(args[i]);
        let pair = |i: usize| tape.rec::<Complex>(args[i]);
        Some(match self {
            // Of integers they are no composites.
            Prim::Maximum if dtype.is_float() => real::maximum(float(0), float(1)).at,
            Prim::Minimum if dtype.is_float() => real::minimum(float(0), float(1)).at,
            Prim::Fmax => real::fmax(float(0), float(1)).at,
            Prim::Fmin => real::fmin(float(0), float(1)).at,
            Prim::Least => Real::select(Real::lt(float(0), float(1)), float(0), float(1)).at,
            Prim::Most => Real::select(Real::gt(float(0), float(1)), float(0), float(1)).at,
            Prim::Signed => float(0).copysign(float(1)).at,
            Prim::Conj => complex::conj(pair(0)).at,
            Prim::ComplexMul => complex::mul(pair(0), pair(1)).at,
            Prim::ComplexCompare(p, Parts::Both) => complex::both(pair(0), pair(1), |a, b| a.compare(p, b)).at,
            Prim::ComplexCompare(p, Parts::Either) => complex::either(pair(0), pair(1), |a, b| a.compare(p, b)).at,
            Prim::Pick { set, clear } => picked(tape.rec(args[0]), dtype, set, clear).at,
            Prim::Test | Prim::TestNot => {
                let (a, b) = (tape.rec::<Whole>(args[0]), tape.rec::<Whole>(args[1]));
                let zero = a.c(0);
                let both = if a.at == b.at { a } else { a & b };
                both.compare(if self == Prim::Test { Predicate::NotEqual } else { Predicate::Equal }, zero).at
            }
            Prim::Scaled | Prim::Turned | Prim::Significand | Prim::Exponent | Prim::LogEnds => {
                let floats: Vec<Rec<'_, Float>> = (0..args.len()).map(float).collect();
                if dtype == DType::F32 { of_format::<f32>(self, &floats)? } else { of_format::<f64>(self, &floats)? }.at
            }
            _ => return None,
        })
    }
}

impl Text {
    /// The text with the composites expanded that are meant, and those of their expansions.
    pub(crate) fn expanded(&self, is_meant: impl Fn(&Inst) -> bool) -> Text {
        let mut text = self.clone();
        while let Some(simpler) = text.expanded_once(&is_meant) {
            text = simpler;
        }
        text
    }

    /// None if nothing is expanded.
    fn expanded_once(&self, is_meant: impl Fn(&Inst) -> bool) -> Option<Text> {
        if !self.insts.iter().any(&is_meant) {
            return None;
        }
        let mut is_expanded = false;
        let tape = Tape::new(self.operands.clone());
        let mut now: Vec<Value> = (0..self.operands.len() as u16).map(Value).collect();
        for inst in &self.insts {
            let args: Vec<Value> = inst.args().iter().map(|a| now[a.index()]).collect();
            let simpler = if is_meant(inst) { inst.prim.expand(inst.dtype, &tape, &args) } else { None };
            is_expanded |= simpler.is_some();
            now.push(simpler.unwrap_or_else(|| tape.push(Inst::new(inst.prim, inst.dtype, &args))));
        }
        is_expanded.then(|| tape.text(now[self.result.index()], self.canonical))
    }
}

/// The integer dtype of a float's size.
#[cfg(test)]
fn words(float: DType) -> DType {
    if float.size() == 4 { DType::I32 } else { DType::I64 }
}

fn picked<'t>(bit: Rec<'t, Whole>, dtype: DType, set: u64, clear: u64) -> Rec<'t, Float> {
    let place = bit.whole(dtype.size() as u64 / 4);
    let is_set: Rec<'t, Truth> = bit.make(Prim::Test, &[bit.at, place.at]);
    let number = |bits| bit.make_of::<Float>(Prim::Const(bits), dtype, &[]);
    number(set).or(is_set, number(clear))
}

/// The composites that work on a float's format.
fn of_format<'t, F: Format>(prim: Prim, args: &[Rec<'t, Float>]) -> Option<Rec<'t, Float>> {
    let a = args[0];
    Some(match prim {
        Prim::Scaled => scaled::<F>(a, args[2]),
        Prim::Turned => turned::<F>(a, args[1]),
        Prim::Significand => taken_apart::<F>(a).1,
        Prim::Exponent => taken_apart::<F>(a).0,
        Prim::LogEnds => log_ends(a, args[1]),
        _ => return None,
    })
}

/// By two factors, neither of which over- or underflows: the product with the second alone rounds, and only where the
/// result is subnormal. `t` is the exponent and the number with whole ones in its lowest places.
fn scaled<'t, F: Format>(a: Rec<'t, Float>, t: Rec<'t, Float>) -> Rec<'t, Float> {
    let twice = (1u64 << (F::WIDTH - F::SHIFT - 1)) - 2;
    let round = 1.5 * (1u64 << F::SHIFT) as f64;
    let bits = t.bits();
    let biased = bits.wrapping_add(bits.whole(twice.wrapping_sub(t.dtype().nearest_bits(round))));
    let low = biased.shift_down(1);
    let power = |n: Rec<'t, Whole>| n.shift_up(F::SHIFT).float();
    a * power(low) * power(biased.wrapping_sub(low))
}

fn turned<'t, F: Format>(a: Rec<'t, Float>, t: Rec<'t, Float>) -> Rec<'t, Float> {
    let (bits, up) = (a.bits(), t.bits().shift_up(F::WIDTH - 2));
    (bits ^ (up & up.whole(1 << (F::WIDTH - 1)))).float()
}

/// A positive finite number as `(k, m)`, on its bits, as `math::log` does it.
fn taken_apart<'t, F: Format>(a: Rec<'t, Float>) -> (Rec<'t, Float>, Rec<'t, Float>) {
    let bias = (1u64 << (F::WIDTH - F::SHIFT - 2)) - 1;
    let (one, lowest) = (bias << F::SHIFT, a.dtype().nearest_bits(0.75));
    // The exponent becomes a float by its place in one.
    let place = (1u64 << F::SHIFT) as f64;
    // Subnormal numbers are scaled first.
    let small = Real::lt(a, a.bits_const(1 << F::SHIFT));
    let normal = (a * a.c(place)).or(small, a);
    let offset = bias as f64 + place;
    let offset = a.c(offset + F::SHIFT as f64).or(small, a.c(offset));
    let bits = normal.bits();
    let u = bits.wrapping_add(bits.whole(one - lowest));
    let m = (u & u.whole((1 << F::SHIFT) - 1)).wrapping_add(u.whole(lowest)).float();
    let k = (u.shift_down(F::SHIFT) | a.c(place).bits()).float();
    (k - offset, m)
}

fn log_ends<'t>(a: Rec<'t, Float>, x: Rec<'t, Float>) -> Rec<'t, Float> {
    let beyond = a.c(f64::NEG_INFINITY).or(Real::eq(x, x.c(0.0)), a.nan());
    let r = a.or(Real::gt(x, x.c(0.0)), beyond);
    a.c(f64::INFINITY).or(Real::eq(x, x.c(f64::INFINITY)), r)
}
