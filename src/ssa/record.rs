//! The recorder: lanes that write down what is computed with them.
//!
//! A [`Rec`] is a value of a text that is being written on a [`Tape`]. It implements what a row's text may say:
//! [`Mask`], [`Int`], `Real` or [`Cplx`], by its kind. Guarantees: the same instruction with the same operands is one
//! value; operands keep the order in which they were written. Does not: hold the rows (`rows`), or the functions of
//! `math` (`lanes`).

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use super::prim::{Parts, Predicate, Prim, Rounding};
use super::text::{Inst, Text, Value};
use crate::base::dtype::DType;
use crate::kernels::num::{Cplx, Int, Mask};

/// The kinds of lanes.
pub(crate) enum Truth {}
pub(crate) enum Whole {}
pub(crate) enum Float {}
pub(crate) enum Complex {}

/// A text that is being written.
pub(crate) struct Tape {
    operands: Box<[DType]>,
    insts: RefCell<Vec<Inst>>,
}

/// A value on a tape.
pub(crate) struct Rec<'t, K> {
    tape: &'t Tape,
    pub(super) at: Value,
    kind: PhantomData<K>,
}

impl<K> Clone for Rec<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Rec<'_, K> {}

impl Tape {
    pub(crate) fn new(operands: impl Into<Box<[DType]>>) -> Tape {
        Tape { operands: operands.into(), insts: RefCell::default() }
    }

    /// An operand.
    pub(crate) fn operand<K>(&self, i: usize) -> Rec<'_, K> {
        self.rec(Value(i as u16))
    }

    pub(super) fn rec<K>(&self, at: Value) -> Rec<'_, K> {
        Rec { tape: self, at, kind: PhantomData }
    }

    fn dtype(&self, v: Value) -> DType {
        match self.operands.get(v.index()) {
            Some(d) => *d,
            None => self.insts.borrow()[v.index() - self.operands.len()].result(),
        }
    }

    /// The instruction that a value is the result of.
    fn inst(&self, v: Value) -> Option<Inst> {
        self.insts.borrow().get(v.index().checked_sub(self.operands.len())?).copied()
    }

    /// Writes an instruction, unless it is there.
    pub(super) fn push(&self, inst: Inst) -> Value {
        let mut insts = self.insts.borrow_mut();
        let known = insts.iter().position(|i| *i == inst);
        let i = known.unwrap_or_else(|| {
            insts.push(inst);
            insts.len() - 1
        });
        Value((self.operands.len() + i) as u16)
    }

    /// The text, without what does not lead to its result.
    pub(crate) fn text(self, result: Value, canonical: bool) -> Text {
        let (operands, insts) = (self.operands, self.insts.into_inner());
        let first = operands.len();
        let mut used = vec![false; first + insts.len()];
        used[result.index()] = true;
        for (i, inst) in insts.iter().enumerate().rev() {
            if used[first + i] {
                inst.args().iter().for_each(|a| used[a.index()] = true);
            }
        }
        let mut now: Vec<Value> = (0..first as u16).map(Value).collect();
        let mut kept = Vec::with_capacity(insts.len());
        for (i, inst) in insts.iter().enumerate() {
            now.push(Value((first + kept.len()) as u16));
            if used[first + i] {
                let args: Vec<Value> = inst.args().iter().map(|a| now[a.index()]).collect();
                kept.push(Inst::new(inst.prim, inst.dtype, &args));
            }
        }
        Text::new(operands, kept.into(), now[result.index()], canonical)
    }
}

impl<'t, K> Rec<'t, K> {
    pub(super) fn dtype(self) -> DType {
        self.tape.dtype(self.at)
    }

    /// An instruction of this value's dtype.
    pub(super) fn make<L>(self, prim: Prim, args: &[Value]) -> Rec<'t, L> {
        self.make_of(prim, self.dtype(), args)
    }

    pub(super) fn make_of<L>(self, prim: Prim, dtype: DType, args: &[Value]) -> Rec<'t, L> {
        self.tape.rec(self.tape.push(Inst::new(prim, dtype, args)))
    }

    /// A constant of this value's dtype.
    pub(super) fn bits_const(self, bits: u64) -> Rec<'t, K> {
        self.make(Prim::Const(bits), &[])
    }

    fn un(self, prim: Prim) -> Rec<'t, K> {
        self.make(prim, &[self.at])
    }

    fn bin(self, prim: Prim, b: Rec<'t, K>) -> Rec<'t, K> {
        self.make(prim, &[self.at, b.at])
    }

    pub(super) fn compare(self, predicate: Predicate, b: Rec<'t, K>) -> Rec<'t, Truth> {
        self.make(Prim::Compare(predicate), &[self.at, b.at])
    }

    /// `self` where the mask is set, else `other`.
    pub(super) fn or(self, mask: Rec<'t, Truth>, other: Rec<'t, K>) -> Rec<'t, K> {
        if self.at == other.at {
            return self;
        }
        self.make(Prim::Select, &[mask.at, self.at, other.at])
    }
}

macro_rules! operators {
    ($kind:ident: $($trait:ident $method:ident $prim:ident),*) => {$(
        impl $trait for Rec<'_, $kind> {
            type Output = Self;
            fn $method(self, b: Self) -> Self {
                self.bin(Prim::$prim, b)
            }
        }
    )*};
}

operators!(Whole: BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor);
operators!(Float: Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);
operators!(Complex: Add add Add, Sub sub Sub);
operators!(Truth: BitOr bitor Or, BitXor bitxor Xor);

/// `!a & b` is one instruction.
impl BitAnd for Rec<'_, Truth> {
    type Output = Self;
    fn bitand(self, b: Self) -> Self {
        for (this, other) in [(self, b), (b, self)] {
            if let Some(Inst { prim: Prim::Not, .. }) = this.tape.inst(this.at) {
                return (!this).bin(Prim::AndNot, other);
            }
        }
        self.bin(Prim::And, b)
    }
}

/// What is not so is another comparison, where there is one.
impl Not for Rec<'_, Truth> {
    type Output = Self;
    fn not(self) -> Self {
        let Some(inst) = self.tape.inst(self.at) else { return self.un(Prim::Not) };
        let again = |prim| self.make_of(prim, inst.dtype, inst.args());
        match inst.prim {
            Prim::Compare(p) => again(Prim::Compare(p.negated(inst.dtype.is_float()))),
            Prim::ComplexCompare(p, Parts::Both) => again(Prim::ComplexCompare(p.negated(true), Parts::Either)),
            Prim::ComplexCompare(p, Parts::Either) => again(Prim::ComplexCompare(p.negated(true), Parts::Both)),
            Prim::Test => again(Prim::TestNot),
            Prim::TestNot => again(Prim::Test),
            Prim::Const(bits) => self.bits_const(bits ^ 1),
            Prim::Not => self.tape.rec(inst.args()[0]),
            _ => self.un(Prim::Not),
        }
    }
}

impl Not for Rec<'_, Whole> {
    type Output = Self;
    fn not(self) -> Self {
        self.un(Prim::Not)
    }
}

impl Neg for Rec<'_, Float> {
    type Output = Self;
    fn neg(self) -> Self {
        self.un(Prim::Neg)
    }
}

impl Neg for Rec<'_, Complex> {
    type Output = Self;
    fn neg(self) -> Self {
        self.un(Prim::Neg)
    }
}

/// Literals stand left of an operator.
macro_rules! literals {
    ($($trait:ident $method:ident),*) => {$(
        impl<'t> $trait<Rec<'t, Float>> for f64 {
            type Output = Rec<'t, Float>;
            fn $method(self, b: Rec<'t, Float>) -> Rec<'t, Float> {
                b.number(self).$method(b)
            }
        }
    )*};
}
literals!(Add add, Sub sub, Mul mul, Div div);

impl Mask for Rec<'_, Truth> {
    fn c(self, value: bool) -> Self {
        self.bits_const(value.into())
    }
}

/// The lowest bits, as many as an element has.
fn cut(bits: u64, dtype: DType) -> u64 {
    bits & u64::MAX >> (64 - 8 * dtype.real().size())
}

impl<'t> Rec<'t, Whole> {
    /// A constant, of which the bits beyond its size are cut off.
    pub(super) fn whole(self, bits: u64) -> Self {
        self.bits_const(cut(bits, self.dtype()))
    }

    pub(super) fn shift_up(self, places: usize) -> Self {
        self.un(Prim::ShiftUp(places as u8))
    }

    pub(super) fn shift_down(self, places: usize) -> Self {
        self.un(Prim::ShiftDown(places as u8))
    }

    /// The float with these bits.
    pub(super) fn float(self) -> Rec<'t, Float> {
        let d = self.dtype();
        let to = if d.size() == 4 { DType::F32 } else { DType::F64 };
        self.make(Prim::Bits(to), &[self.at])
    }
}

impl<'t> Rec<'t, Float> {
    /// The nearest number; the canonical NaN for NaNs.
    pub(super) fn number(self, value: f64) -> Self {
        let d = self.dtype();
        self.bits_const(if value.is_nan() { d.nan_bits() } else { d.nearest_bits(value) })
    }

    /// The bits as an integer of the same size.
    pub(super) fn bits(self) -> Rec<'t, Whole> {
        let to = if self.dtype().size() == 4 { DType::I32 } else { DType::I64 };
        self.make(Prim::Bits(to), &[self.at])
    }

    pub(super) fn rounded(self, mode: Rounding) -> Self {
        self.un(Prim::Round(mode))
    }

    pub(super) fn apply(self, prim: Prim, others: &[Rec<'t, Float>]) -> Self {
        let args: Vec<Value> = [self.at].into_iter().chain(others.iter().map(|o| o.at)).collect();
        self.make(prim, &args)
    }
}

impl<'t> Int for Rec<'t, Whole> {
    type Mask = Rec<'t, Truth>;

    fn c(self, value: i8) -> Self {
        self.whole(i64::from(value) as u64)
    }

    fn mask(self, value: bool) -> Rec<'t, Truth> {
        self.make_of(Prim::Const(value.into()), DType::Bool, &[])
    }

    fn is_signed(self) -> bool {
        !self.dtype().is_unsigned()
    }

    fn wrapping_add(self, b: Self) -> Self {
        self.bin(Prim::Add, b)
    }

    fn wrapping_sub(self, b: Self) -> Self {
        self.bin(Prim::Sub, b)
    }

    fn wrapping_mul(self, b: Self) -> Self {
        self.bin(Prim::Mul, b)
    }

    fn wrapping_neg(self) -> Self {
        self.un(Prim::Neg)
    }

    fn absolute(a: Self) -> Self {
        if a.is_signed() { a.un(Prim::Abs) } else { a }
    }

    fn maximum(a: Self, b: Self) -> Self {
        a.bin(Prim::Maximum, b)
    }

    fn minimum(a: Self, b: Self) -> Self {
        a.bin(Prim::Minimum, b)
    }

    fn shift_left(a: Self, b: Self) -> Self {
        a.bin(Prim::ShiftLeft, b)
    }

    fn shift_right(a: Self, b: Self) -> Self {
        a.bin(Prim::ShiftRight, b)
    }

    fn eq(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::Equal, b)
    }

    fn ne(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::NotEqual, b)
    }

    fn lt(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::Less, b)
    }

    fn le(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::LessEqual, b)
    }

    fn gt(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::Greater, b)
    }

    fn ge(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::GreaterEqual, b)
    }

    fn truth(a: Self) -> Rec<'t, Truth> {
        a.make(Prim::Test, &[a.at, a.at])
    }

    fn select(mask: Rec<'t, Truth>, a: Self, b: Self) -> Self {
        a.or(mask, b)
    }
}

impl<'t> Rec<'t, Complex> {
    fn parts_compare(self, predicate: Predicate, parts: Parts, b: Self) -> Rec<'t, Truth> {
        self.make(Prim::ComplexCompare(predicate, parts), &[self.at, b.at])
    }

    fn magnitudes_compare(self, predicate: Predicate, parts: Parts) -> Rec<'t, Truth> {
        let infinity = self.bits_const(self.dtype().real().infinity_bits());
        self.un(Prim::Abs).parts_compare(predicate, parts, infinity)
    }
}

impl<'t> Cplx for Rec<'t, Complex> {
    type Mask = Rec<'t, Truth>;
    type Part = Rec<'t, Float>;

    fn pair(re: Rec<'t, Float>, im: Rec<'t, Float>) -> Self {
        re.make_of(Prim::Pair, re.dtype().to_complex(), &[re.at, im.at])
    }

    fn re(a: Self) -> Rec<'t, Float> {
        a.make(Prim::RealPart, &[a.at])
    }

    fn im(a: Self) -> Rec<'t, Float> {
        a.make(Prim::ImagPart, &[a.at])
    }

    fn conj(a: Self) -> Self {
        a.un(Prim::Conj)
    }

    fn mul(a: Self, b: Self) -> Self {
        a.bin(Prim::ComplexMul, b)
    }

    fn eq(a: Self, b: Self) -> Rec<'t, Truth> {
        a.parts_compare(Predicate::Equal, Parts::Both, b)
    }

    fn ne(a: Self, b: Self) -> Rec<'t, Truth> {
        a.parts_compare(Predicate::NotEqual, Parts::Either, b)
    }

    fn truth(a: Self) -> Rec<'t, Truth> {
        Self::ne(a, a.bits_const(0))
    }

    fn is_nan(a: Self) -> Rec<'t, Truth> {
        a.parts_compare(Predicate::Unordered, Parts::Either, a)
    }

    fn is_inf(a: Self) -> Rec<'t, Truth> {
        a.magnitudes_compare(Predicate::Equal, Parts::Either)
    }

    fn is_finite(a: Self) -> Rec<'t, Truth> {
        a.magnitudes_compare(Predicate::Less, Parts::Both)
    }
}
