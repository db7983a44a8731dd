//! A text: instructions in static single assignment form.
//!
//! Guarantees: operands come before their uses; no two instructions are equal, and each is used; [`Text::verify`]
//! checks the dtypes. Does not: compute, or know what records it.

use std::fmt::{self, Write};

use super::prim::{Nan, Parts, Prim, Shows};
use crate::base::dtype::{Category, DType};

/// A value of a text: the operands first, then the results of the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Value(pub(crate) u16);

impl Value {
    pub(crate) const NONE: Value = Value(u16::MAX);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// The most operands of an instruction.
pub(crate) const MOST_ARGS: usize = 3;

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Inst {
    pub(crate) prim: Prim,
    /// The dtype that it computes in, as [`Prim`] says.
    pub(crate) dtype: DType,
    all: [Value; MOST_ARGS],
}

impl Inst {
    /// An instruction of as many operands as its primitive has.
    pub(crate) fn new(prim: Prim, dtype: DType, args: &[Value]) -> Inst {
        let mut all = [Value::NONE; MOST_ARGS];
        all.iter_mut().zip(args).for_each(|(to, v)| *to = *v);
        Inst { prim, dtype, all }
    }

    pub(crate) fn args(&self) -> &[Value] {
        &self.all[..self.prim.arity()]
    }

    /// The dtype of its result.
    pub(crate) fn result(&self) -> DType {
        self.prim.result(self.dtype)
    }
}

/// What an op computes of operands of one compute dtype, lane by lane.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    pub(crate) operands: Box<[DType]>,
    pub(crate) insts: Box<[Inst]>,
    pub(crate) result: Value,
    /// Whether a NaN among the results must be the canonical one. If not, results have the bits that the instructions
    /// give.
    pub(crate) canonical: bool,
    /// Whether the bits of each operand's NaNs can be seen in the result: every lowering of the text asks.
    shows: Box<[Shows]>,
    /// What is known of the result's NaNs if nothing is of the operands': every lowering asks, too.
    result_nan: Nan,
}

impl Text {
    pub(crate) fn new(operands: Box<[DType]>, insts: Box<[Inst]>, result: Value, canonical: bool) -> Text {
        let mut text = Text { operands, insts, result, canonical, shows: Box::default(), result_nan: Nan::Any };
        text.shows = (0..text.operands.len()).map(|i| text.operand_shows(i)).collect();
        text.result_nan = text.nan(&vec![Nan::Any; text.operands.len()]);
        text
    }

    /// The same whose NaNs become the canonical one.
    #[cfg(test)]
    pub(crate) fn with_canonical_nans(self) -> Text {
        Text::new(self.operands, self.insts, self.result, true)
    }

    /// Whether the bits of operand `i`'s NaNs can be seen in the result.
    pub(crate) fn shows(&self, i: usize) -> Shows {
        self.shows[i]
    }

    /// What is known of the NaNs of the result of any operands, before they are made canonical.
    pub(crate) fn result_nan(&self) -> Nan {
        self.result_nan
    }

    /// The dtype of a value.
    pub(crate) fn dtype(&self, v: Value) -> DType {
        match self.operands.get(v.index()) {
            Some(d) => *d,
            None => self.insts[v.index() - self.operands.len()].result(),
        }
    }

    /// The value that instruction `i` gives.
    pub(crate) fn value(&self, i: usize) -> Value {
        Value((self.operands.len() + i) as u16)
    }

    /// The instruction that a value is the result of, if it is no operand.
    pub(crate) fn inst(&self, v: Value) -> Option<&Inst> {
        self.insts.get(v.index().checked_sub(self.operands.len())?)
    }

    /// The constant that a value is.
    pub(crate) fn constant(&self, v: Value) -> Option<u64> {
        match self.inst(v)?.prim {
            Prim::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// The first instruction whose operands are not before it or not of the dtypes that its primitive takes.
    pub(crate) fn verify(&self) -> Result<(), String> {
        let wrong = |i: usize| {
            let inst = &self.insts[i];
            let before = inst.args().iter().all(|a| *a < self.value(i));
            let args: Vec<DType> = if before { inst.args().iter().map(|a| self.dtype(*a)).collect() } else { vec![] };
            !before || !takes(inst, &args)
        };
        match (0..self.insts.len()).find(|i| wrong(*i)) {
            Some(i) => Err(format!("{} in\n{self}", self.value(i))),
            None if self.result.index() < self.operands.len() + self.insts.len() => Ok(()),
            None => Err(format!("the result of\n{self}")),
        }
    }
}

/// Whether an instruction may have operands of these dtypes.
fn takes(inst: &Inst, args: &[DType]) -> bool {
    use Prim::*;
    let d = inst.dtype;
    let (int, float) = (d.category() == Category::Int, d.is_float() && !d.is_narrow());
    let all = |of: DType| args.iter().all(|a| *a == of);
    let words = if d.size() == 4 { DType::I32 } else { DType::I64 };
    let ordered = |p: super::prim::Predicate| p as u8 <= super::prim::Predicate::GreaterEqual as u8;
    match inst.prim {
        Const(bits) => d.size() >= 8 || d.is_complex() || bits < 1 << (8 * d.size()),
        Add | Sub => all(d) && (int || float || d.is_complex() && !d.is_narrow()),
        Mul => all(d) && (int || float),
        Maximum | Minimum => all(d) && (int || float),
        Neg => all(d) && d != DType::Bool,
        Abs => all(d) && d != DType::Bool && !d.is_unsigned(),
        Div | Sqrt | Round(_) | Fma | Fms | Fnma | Least | Most | Fmax | Fmin | Signed => all(d) && float,
        Scaled | Turned | Significand | Exponent | LogEnds => all(d) && float,
        CopySign => all(d) && d.is_float(),
        Compare(p) => all(d) && (float || int && ordered(p)),
        ComplexCompare(..) | Conj | ComplexMul => all(d) && d.is_complex() && !d.is_narrow(),
        Test | TestNot | ShiftLeft | ShiftRight => all(d) && int,
        ShiftUp(n) | ShiftDown(n) => all(d) && int && usize::from(n) < 8 * d.size(),
        Select => args[0] == DType::Bool && args[1..] == [d, d],
        And | Or | Xor | AndNot | Not => all(d) && !d.is_complex(),
        Bits(to) => all(d) && to.size() == d.size() && !to.is_complex() && !d.is_complex(),
        Pick { .. } => float && all(words),
        Chosen(_) => all(d) && d == DType::F64,
        SlowPath(_) => float && args == [d, d, DType::Bool],
        RealPart | ImagPart => all(d) && d.is_complex(),
        Pair => d.is_complex() && all(d.real()),
    }
}

/// A constant as a reader wants it: a number, or the bits of what is none.
fn constant(dtype: DType, bits: u64) -> String {
    match dtype.real() {
        DType::Bool => (bits != 0).to_string(),
        DType::F32 => format!("{:?}", f32::from_bits(bits as u32)),
        DType::F64 => format!("{:?}", f64::from_bits(bits)),
        d if d.category() == Category::Int && !d.is_unsigned() => {
            let unused = 64 - 8 * d.size() as u32;
            let value = ((bits << unused) as i64) >> unused;
            if value.unsigned_abs() < 1 << 16 { value.to_string() } else { format!("{bits:#x}") }
        }
        d if d.is_float() => format!("{bits:#x}"),
        _ => bits.to_string(),
    }
}

impl fmt::Display for Text {
    /// One instruction a line: `%3 = mul.f32 %1, %2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, inst) in self.insts.iter().enumerate() {
            write!(f, "  {} = {}.{}", self.value(i), inst.prim.name(), inst.dtype)?;
            for (n, a) in inst.args().iter().enumerate() {
                write!(f, "{} {a}", if n == 0 { "" } else { "," })?;
            }
            match inst.prim {
                Prim::Const(bits) => write!(f, " {}", constant(inst.dtype, bits))?,
                Prim::ComplexCompare(_, Parts::Both) => f.write_str(", both")?,
                Prim::ComplexCompare(_, Parts::Either) => f.write_str(", either")?,
                Prim::ShiftUp(n) | Prim::ShiftDown(n) => write!(f, ", {n}")?,
                Prim::Bits(to) => write!(f, " as {to}")?,
                Prim::Pick { set, clear } => {
                    write!(f, ", {}, {}", constant(inst.dtype, set), constant(inst.dtype, clear))?;
                }
                Prim::Chosen(table) => write!(f, ", [{:?}, {:?}, ..]", table[0], table[1])?,
                Prim::SlowPath(op) => write!(f, ", {op}")?,
                _ => {}
            }
            f.write_char('\n')?;
        }
        let canonical = if self.canonical && !self.dtype(self.result).is_integral() { "canonical " } else { "" };
        writeln!(f, "  return {canonical}{}", self.result)
    }
}
