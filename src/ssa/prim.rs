//! The primitives that texts are made of.
//!
//! Guarantees: each one says what it computes of which dtypes. No primitive traps, and none looks at another lane. Does
//! not: say what is known of a result's NaNs (`facts`), nor how composites are made of others (`expand`).

use crate::base::dtype::DType;
use crate::ops::Op;

/// A comparison. Integers have the first six.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Predicate {
    Equal,
    /// Also where one is NaN.
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// Of floats, as the three below: also where one is NaN.
    NotLess,
    NotLessEqual,
    NotGreater,
    NotGreaterEqual,
    /// Whether neither is NaN.
    Ordered,
    /// Whether one is NaN.
    Unordered,
}

impl Predicate {
    /// What holds where this one does not.
    pub(crate) fn negated(self, is_float: bool) -> Predicate {
        use Predicate::*;
        match (self, is_float) {
            (Equal, _) => NotEqual,
            (NotEqual, _) => Equal,
            (Less, true) => NotLess,
            (LessEqual, true) => NotLessEqual,
            (Greater, true) => NotGreater,
            (GreaterEqual, true) => NotGreaterEqual,
            (Less, false) | (NotGreaterEqual, _) => GreaterEqual,
            (LessEqual, false) | (NotGreater, _) => Greater,
            (Greater, false) | (NotLessEqual, _) => LessEqual,
            (GreaterEqual, false) | (NotLess, _) => Less,
            (Ordered, _) => Unordered,
            (Unordered, _) => Ordered,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Predicate::Equal => "eq",
            Predicate::NotEqual => "ne",
            Predicate::Less => "lt",
            Predicate::LessEqual => "le",
            Predicate::Greater => "gt",
            Predicate::GreaterEqual => "ge",
            Predicate::NotLess => "not_lt",
            Predicate::NotLessEqual => "not_le",
            Predicate::NotGreater => "not_gt",
            Predicate::NotGreaterEqual => "not_ge",
            Predicate::Ordered => "ordered",
            Predicate::Unordered => "unordered",
        }
    }
}

/// How a float is rounded to a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the nearest one, halves to even.
    Nearest,
    Down,
    Up,
    /// Towards zero.
    Zero,
}

/// Of which parts of a complex number something must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    Both,
    Either,
}

/// What is known of the NaNs among a value's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Nan {
    /// Nothing.
    Any,
    /// None is signaling.
    Quiet,
    /// All are the canonical one.
    Canonical,
}

/// Whether the bits of an operand's NaNs, its sign included, can be seen in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shows {
    Never,
    /// Where the result's NaNs can be seen: there are none of these bits but in them.
    InNans,
    /// Also in numbers.
    Always,
}

/// What an instruction computes in each lane. "Int", "float", "complex" and "mask" name the dtype of
/// [`Inst`](super::text::Inst), which is the operands' where nothing else is said; a mask has the dtype bool. Float
/// arithmetic rounds to nearest even.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Prim {
    /// These bits, in every lane; of a complex dtype, both parts have them. Of a mask, 0 or 1.
    Const(u64),
    /// `a + b`. Int (wraps), float, complex.
    Add,
    /// `a - b`. Int (wraps), float, complex.
    Sub,
    /// `a · b`. Int (wraps), float.
    Mul,
    /// `a / b`. Float.
    Div,
    /// Int: 0 - a, wraps. Float of any size, complex: the sign bit (of both parts) is turned, of NaN too.
    Neg,
    /// Int, signed: |a|, wraps. Float of any size, complex: the sign bit (of both parts) is cleared, of NaN too.
    Abs,
    /// The square root, correctly rounded. Float.
    Sqrt,
    /// To a whole number. Float.
    Round(Rounding),
    /// `a · b + c`, rounded once. Float.
    Fma,
    /// `a · b - c`, rounded once. Float.
    Fms,
    /// `c - a · b`, rounded once. Float.
    Fnma,
    /// `a` if a < b, else `b`: also if one is NaN. Float. A composite.
    Least,
    /// `a` if a > b, else `b`: also if one is NaN. Float. A composite.
    Most,
    /// The larger one. Int; float as IEEE 754-2019 `maximum`: a NaN wins and becomes the canonical one; -0 < +0. The
    /// latter is a composite.
    Maximum,
    /// The smaller one, alike.
    Minimum,
    /// As `Maximum`, but a number wins over a NaN; of two NaNs one is the result. Float. A composite.
    Fmax,
    /// As `Minimum`, alike.
    Fmin,
    /// The magnitude of `a` with the sign bit of `b`. Float of any size.
    CopySign,
    /// The same, of an `a` whose sign bit is clear if it is not NaN; a NaN has either sign. Float. A composite.
    Signed,
    /// A mask of ints or floats.
    Compare(Predicate),
    /// A mask: whether a comparison holds of both, or of either, of the parts of complex numbers. A composite.
    ComplexCompare(Predicate, Parts),
    /// A mask: whether ints have a bit in common.
    Test,
    /// A mask: whether ints have none.
    TestNot,
    /// `b` where the mask `a` is set, else `c`: their bits as they are. Every dtype.
    Select,
    /// Bitwise. Mask, int, the bits of floats.
    And,
    Or,
    Xor,
    /// `!a & b`.
    AndNot,
    Not,
    /// `a << b`; 0 if b is negative or not less than the width. Int.
    ShiftLeft,
    /// `a >> b`, the sign of signed ints kept; the sign fill if b is negative or not less than the width. Int.
    ShiftRight,
    /// Bits moved up by a number of places that is less than the width. Int.
    ShiftUp(u8),
    /// Bits moved down, zeros behind them. Int.
    ShiftDown(u8),
    /// The same bits as another dtype, int or float, of the same size. The dtype of the instruction is the operand's.
    Bits(DType),
    /// `a · 2^b`, rounded once, for a whole b from -252 to 254 (f64: from -2044 to 2046), which c holds too, as
    /// [`Lane::scaled`](crate::math::lane::Lane::scaled) says. Float. A composite.
    Scaled,
    /// `a`, negated where the whole number that b holds is 2 or 3 in remainders of 4. Float. A composite.
    Turned,
    /// Of a positive finite number, m of `2^k · m` with m from ¾ up to 1½. Elsewhere any number, of NaN a NaN. Float. A
    /// composite.
    Significand,
    /// k of it; `b` is m. A composite.
    Exponent,
    /// `a`, which is the logarithm of b if b is positive and finite; -∞ for a zero b, +∞ for +∞, else NaN. Float. A
    /// composite.
    LogEnds,
    /// One of two floats, by their bits, by a bit of an int of the float's size: of i32 the lowest, of i64 the one
    /// above. The dtype is the float's. A composite.
    Pick {
        set: u64,
        clear: u64,
    },
    /// The number of the table that the four lowest bits of a's bits say. f64.
    Chosen(&'static [f64; 16]),
    /// `a` where the mask c is clear; elsewhere what the op's kernel gives for b. Float.
    SlowPath(Op),
    /// A part of a complex number; the dtype is the complex one.
    RealPart,
    ImagPart,
    /// A complex number of two parts, alike.
    Pair,
    /// The complex conjugate: the sign bit of the imaginary part is turned. A composite.
    Conj,
    /// The product of complex numbers by the plain formula, each operation rounded. A composite.
    ComplexMul,
}

impl Prim {
    /// The number of operands.
    pub(crate) fn arity(self) -> usize {
        use Prim::*;
        match self {
            Const(_) => 0,
            Neg
            | Abs
            | Sqrt
            | Round(_)
            | Not
            | ShiftUp(_)
            | ShiftDown(_)
            | Bits(_)
            | Significand
            | Pick { .. }
            | Chosen(_)
            | RealPart
            | ImagPart
            | Conj => 1,
            Add | Sub | Mul | Div | Least | Most | Maximum | Minimum | Fmax | Fmin | CopySign | Signed | Compare(_)
            | ComplexCompare(..) | Test | TestNot | And | Or | Xor | AndNot | ShiftLeft | ShiftRight | Turned
            | Exponent | LogEnds | Pair | ComplexMul => 2,
            Fma | Fms | Fnma | Select | Scaled | SlowPath(_) => 3,
        }
    }

    /// The dtype of the result of an instruction of that dtype.
    pub(crate) fn result(self, dtype: DType) -> DType {
        match self {
            Prim::Compare(_) | Prim::ComplexCompare(..) | Prim::Test | Prim::TestNot => DType::Bool,
            Prim::RealPart | Prim::ImagPart => dtype.real(),
            Prim::Bits(to) => to,
            _ => dtype,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Prim::Const(_) => "const",
            Prim::Add => "add",
            Prim::Sub => "sub",
            Prim::Mul => "mul",
            Prim::Div => "div",
            Prim::Neg => "neg",
            Prim::Abs => "abs",
            Prim::Sqrt => "sqrt",
            Prim::Round(Rounding::Nearest) => "round",
            Prim::Round(Rounding::Down) => "floor",
            Prim::Round(Rounding::Up) => "ceil",
            Prim::Round(Rounding::Zero) => "trunc",
            Prim::Fma => "fma",
            Prim::Fms => "fms",
            Prim::Fnma => "fnma",
            Prim::Least => "least",
            Prim::Most => "most",
            Prim::Maximum => "maximum",
            Prim::Minimum => "minimum",
            Prim::Fmax => "fmax",
            Prim::Fmin => "fmin",
            Prim::CopySign => "copysign",
            Prim::Signed => "signed",
            Prim::Compare(p) | Prim::ComplexCompare(p, _) => p.name(),
            Prim::Test => "test",
            Prim::TestNot => "test_not",
            Prim::Select => "select",
            Prim::And => "and",
            Prim::Or => "or",
            Prim::Xor => "xor",
            Prim::AndNot => "and_not",
            Prim::Not => "not",
            Prim::ShiftLeft => "shift_left",
            Prim::ShiftRight => "shift_right",
            Prim::ShiftUp(_) => "shift_up",
            Prim::ShiftDown(_) => "shift_down",
            Prim::Bits(_) => "bits",
            Prim::Scaled => "scaled",
            Prim::Turned => "turned",
            Prim::Significand => "significand",
            Prim::Exponent => "exponent",
            Prim::LogEnds => "log_ends",
            Prim::Pick { .. } => "pick",
            Prim::Chosen(_) => "chosen",
            Prim::SlowPath(_) => "slow_path",
            Prim::RealPart => "real",
            Prim::ImagPart => "imag",
            Prim::Pair => "pair",
            Prim::Conj => "conj",
            Prim::ComplexMul => "complex_mul",
        }
    }
}
