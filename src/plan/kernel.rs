//! Kernel IR: one loop over one iteration domain, as a list of steps.
//!
//! Guarantees: a step computes one op or one primitive conversion of its operands, element by element, or corrects a result
//! that would else be rounded twice; operands come before their uses; equal steps are one step; the code of a kernel does not depend on
//! extents, strides or the values of constants, so that one compiled kernel serves every size. Does not: say how a step is
//! computed, in a segment or by a kernel of `kernels`; `schedule` does.

use std::fmt;

use foldhash::HashMap;

use crate::base::dtype::DType;
use crate::base::scalar::{Bits, Scalar};
use crate::kernels::cast::{Prim, convert_by, path_within};
use crate::kernels::rounds_twice;
use crate::ops::{MAX_OPERANDS, Op, Output};
use crate::plan::options::{Pass, Passes};
use crate::promotion::{Rounding, Settings};

/// Index of a value of a kernel.
pub(crate) type ValueId = u32;

/// What a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StepOp {
    /// An op, in the compute dtype of [`Step::dtype`].
    Apply(Op),
    /// A primitive conversion.
    Cast(Prim),
    /// The same bits under this dtype.
    Bits(DType),
    /// Corrects f32 results of an op so that their rounding to f16 is the exact result's; operands are the arguments and the results.
    DoubleRounding(Op),
}

/// One step: `out = op(args)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    pub(crate) op: StepOp,
    /// The dtype an op computes in; the source of a conversion.
    pub(crate) dtype: DType,
    pub(crate) args: [Option<ValueId>; MAX_OPERANDS],
    pub(crate) out: ValueId,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// An operand of the kernel.
    Input(u32),
    /// A constant of the kernel.
    Const(u32),
    /// A step.
    Step(u32),
}

/// A value of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Value {
    pub(crate) dtype: DType,
    pub(crate) source: Source,
}

/// The steps over one iteration domain. Equality and hash leave the constants' values out: code does not depend on
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Kernel {
    pub(crate) inputs: Vec<DType>,
    pub(crate) consts: Vec<DType>,
    pub(crate) values: Vec<Value>,
    pub(crate) steps: Vec<Step>,
    pub(crate) outputs: Vec<ValueId>,
    /// Values that are reduced, and by which op.
    pub(crate) folds: Vec<(Op, ValueId)>,
}

impl Kernel {
    pub(crate) fn value(&self, id: ValueId) -> Value {
        self.values[id as usize]
    }

    /// A step and its result as text: `%3: f32 = mul.f32 %1, %2`.
    pub(crate) fn step_text(&self, step: u32) -> String {
        let step = &self.steps[step as usize];
        format!("%{}: {} = {step}", step.out, self.value(step.out).dtype)
    }

    /// Whether every reduction is a sum of floats that a step computes for it alone: segments can add these sums while they compute
    /// the elements.
    pub(crate) fn adds_up(&self) -> bool {
        let is_computed = |v: Value| v.dtype.is_float() && !v.dtype.is_narrow() && matches!(v.source, Source::Step(_));
        let alone = |v: &ValueId| !self.outputs.contains(v) && self.folds.iter().filter(|(_, u)| u == v).count() == 1;
        let added =
            |(op, v): &(Op, ValueId)| matches!(op, Op::Sum | Op::Mean) && is_computed(self.value(*v)) && alone(v);
        self.folds.iter().all(added)
    }
}

/// Builds a kernel, merging equal steps and computing steps of constants at once.
#[derive(Default)]
pub(crate) struct KernelBuilder {
    pub(crate) kernel: Kernel,
    pub(crate) const_bits: Vec<Bits>,
    /// For each step, which node asked for it first: for errors.
    pub(crate) origins: Vec<u32>,
    known: HashMap<(StepOp, DType, [Option<ValueId>; MAX_OPERANDS]), ValueId>,
    const_ids: HashMap<(DType, Bits), ValueId>,
    origin: u32,
    passes: Passes,
    /// Whether powers of 0.5 and -0.5 are not computed as roots, which differ at -inf and -0: Paddle calls C's `pow`.
    no_roots: bool,
    /// Whether a float beyond the range of a dtype without infinities becomes a NaN.
    beyond_is_nan: bool,
    /// Whether later steps take the results of half dtypes unrounded.
    relaxed: bool,
    /// For each rounded result of a half dtype, the value that was rounded.
    unrounded: HashMap<ValueId, ValueId>,
    /// The rounded result of a value and a half dtype. Casts of the program are not in here: they round for later steps too.
    relaxed_results: HashMap<(ValueId, DType), ValueId>,
}

/// An operand of an application that is lowered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand {
    Value(ValueId),
    Scalar(Scalar, DType),
}

/// Operands of a step that has fewer than the most.
fn operands<const N: usize>(given: [ValueId; N]) -> [Option<ValueId>; MAX_OPERANDS] {
    std::array::from_fn(|i| given.get(i).copied())
}

impl KernelBuilder {
    /// A builder under a program's settings and an executor's choice of passes.
    pub(crate) fn new(settings: &Settings, passes: Passes) -> KernelBuilder {
        let relaxed = settings.rounding == Rounding::Relaxed;
        let rules = settings.rules.set();
        let (no_roots, beyond_is_nan) = (!rules.takes_roots(), rules.beyond_is_nan());
        KernelBuilder { relaxed, no_roots, beyond_is_nan, passes, ..KernelBuilder::default() }
    }

    /// The primitive steps from one dtype to another.
    fn path(&self, from: DType, to: DType) -> Vec<Prim> {
        path_within(from, to, self.beyond_is_nan)
    }

    fn push(&mut self, dtype: DType, source: Source) -> ValueId {
        self.kernel.values.push(Value { dtype, source });
        self.kernel.values.len() as u32 - 1
    }

    /// A new operand.
    pub(crate) fn input(&mut self, dtype: DType) -> ValueId {
        self.kernel.inputs.push(dtype);
        self.push(dtype, Source::Input(self.kernel.inputs.len() as u32 - 1))
    }

    /// A constant; equal ones are one value.
    pub(crate) fn constant(&mut self, dtype: DType, bits: Bits) -> ValueId {
        if let Some(id) = self.const_ids.get(&(dtype, bits)) {
            return *id;
        }
        self.kernel.consts.push(dtype);
        self.const_bits.push(bits);
        let id = self.push(dtype, Source::Const(self.kernel.consts.len() as u32 - 1));
        self.const_ids.insert((dtype, bits), id);
        id
    }

    /// Makes the next steps those of a node, for errors.
    pub(crate) fn on_behalf_of(&mut self, node: u32) {
        self.origin = node;
    }

    fn step(&mut self, op: StepOp, dtype: DType, args: [Option<ValueId>; MAX_OPERANDS], to: DType) -> ValueId {
        if let Some(known) = self.known.get(&(op, dtype, args))
            && self.passes.has(Pass::Merging)
        {
            return *known;
        }
        let out = self.new_step(op, dtype, args, to);
        self.known.insert((op, dtype, args), out);
        out
    }

    fn new_step(&mut self, op: StepOp, dtype: DType, args: [Option<ValueId>; MAX_OPERANDS], to: DType) -> ValueId {
        let out = self.push(to, Source::Step(self.kernel.steps.len() as u32));
        self.kernel.steps.push(Step { op, dtype, args, out });
        self.origins.push(self.origin);
        out
    }

    /// The value in another dtype: the primitive steps of the path, or the converted constant.
    pub(crate) fn cast(&mut self, v: ValueId, to: DType) -> ValueId {
        let rounds = to.is_float() && to.is_narrow();
        let v = if rounds { v } else { self.unrounded.get(&v).copied().unwrap_or(v) };
        let Value { dtype, source } = self.kernel.value(v);
        if let Source::Const(i) = source
            && self.passes.has(Pass::Folding)
        {
            let bits = convert_by(self.const_bits[i as usize], self.path(dtype, to));
            return self.constant(to, bits);
        }
        self.path(dtype, to).into_iter().fold(v, |v, p| self.step(StepOp::Cast(p), p.from, operands([v]), p.to))
    }

    /// The same bits under another dtype of the same size.
    pub(crate) fn bits(&mut self, v: ValueId, to: DType) -> ValueId {
        let dtype = self.kernel.value(v).dtype;
        self.step(StepOp::Bits(to), dtype, operands([v]), to)
    }

    fn operand(&mut self, o: Operand) -> ValueId {
        match o {
            Operand::Value(v) => v,
            Operand::Scalar(s, to) if !self.passes.has(Pass::Folding) => {
                let own = self.constant(s.own_dtype(), s.own_bits());
                self.cast(own, to)
            }
            Operand::Scalar(s, to) => {
                let bits = convert_by(s.own_bits(), self.path(s.own_dtype(), to));
                self.constant(to, bits)
            }
        }
    }

    /// An application of an op in a compute dtype: operands to op math, the op, and one rounding of its result.
    pub(crate) fn apply(&mut self, op: Op, compute: DType, args: &[Operand]) -> ValueId {
        if matches!(op, Op::Pow | Op::FloatPower)
            && let [base, Operand::Scalar(e, _)] = args
            && let Some(v) = self.power(*base, *e, compute)
        {
            return v;
        }
        let values: Vec<ValueId> = args.iter().map(|o| self.operand(*o)).collect();
        let math = if op.is_bitwise(compute) { compute } else { compute.op_math() };
        self.apply_in(op, math, compute, &values)
    }

    /// The result of a half op's op math in its dtype.
    fn rounded(&mut self, wide: ValueId, to: DType) -> ValueId {
        let Value { dtype, source } = self.kernel.value(wide);
        let relaxed = self.relaxed && to.is_float() && to.is_narrow();
        if !relaxed || dtype == to || matches!(source, Source::Const(_)) {
            return self.cast(wide, to);
        }
        if let Some(known) = self.relaxed_results.get(&(wide, to)) {
            return *known;
        }
        let narrow = self
            .path(dtype, to)
            .into_iter()
            .fold(wide, |v, p| self.new_step(StepOp::Cast(p), p.from, operands([v]), p.to));
        self.unrounded.insert(narrow, wide);
        self.relaxed_results.insert((wide, to), narrow);
        narrow
    }

    /// The op in its op math `math`, rounded once to what `compute` gives.
    fn apply_in(&mut self, op: Op, math: DType, compute: DType, values: &[ValueId]) -> ValueId {
        let mut args = [None; MAX_OPERANDS];
        for (i, v) in values.iter().enumerate().take(MAX_OPERANDS) {
            let to = if op == Op::Where && i == 0 { DType::Bool } else { math };
            args[i] = Some(self.cast(*v, to));
        }
        let mut wide = self.step(StepOp::Apply(op), math, args, op.result(math));
        // Relaxed results are rounded later, if at all.
        if !self.relaxed && rounds_twice(op, compute) {
            wide = self.step(StepOp::DoubleRounding(op), math, [args[0], Some(wide), None, None], math);
        }
        match op.def().output {
            Output::Bool | Output::FoldLong | Output::LineLong => wide,
            Output::Same | Output::Fold | Output::Line => self.rounded(wide, compute),
            Output::Real | Output::FoldReal => self.rounded(wide, compute.real()),
        }
    }

    /// Powers with an exponent for which PyTorch multiplies, divides or takes a root. In op math, rounded once.
    fn power(&mut self, base: Operand, e: Scalar, compute: DType) -> Option<ValueId> {
        let e = match e {
            Scalar::Int(e) => e as f64,
            Scalar::Float(e) => e,
            _ => return None,
        };
        let math = compute.op_math();
        if !math.is_float() || self.no_roots && e.abs() == 0.5 {
            return None;
        }
        let base = self.operand(base);
        let x = self.cast(base, math);
        let mut op = |op, args: &[ValueId]| self.apply_in(op, math, math, args);
        let wide = match e {
            2.0 => op(Op::Mul, &[x, x]),
            3.0 => {
                let square = op(Op::Mul, &[x, x]);
                op(Op::Mul, &[square, x])
            }
            -1.0 => op(Op::Reciprocal, &[x]),
            -2.0 => {
                let square = op(Op::Mul, &[x, x]);
                op(Op::Reciprocal, &[square])
            }
            0.5 => op(Op::Sqrt, &[x]),
            -0.5 => op(Op::Rsqrt, &[x]),
            _ => return None,
        };
        Some(self.rounded(wide, compute))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            StepOp::Apply(op) => write!(f, "{op}.{}", self.dtype)?,
            StepOp::Bits(_) => write!(f, "bits.{}", self.dtype)?,
            StepOp::Cast(p) => write!(f, "cast.{}", p.from)?,
            StepOp::DoubleRounding(op) => write!(f, "double_rounding.{op}")?,
        }
        for (n, a) in self.args.iter().flatten().enumerate() {
            write!(f, "{} %{a}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("kernel {\n")?;
        for (i, v) in self.values.iter().enumerate() {
            match v.source {
                Source::Input(k) => writeln!(f, "  %{i}: {} = load in{k}", v.dtype)?,
                Source::Const(k) => writeln!(f, "  %{i}: {} = const c{k}", v.dtype)?,
                Source::Step(k) => writeln!(f, "  {}", self.step_text(k))?,
            }
        }
        for (k, o) in self.outputs.iter().enumerate() {
            writeln!(f, "  store out{k}, %{o}")?;
        }
        for (op, v) in &self.folds {
            writeln!(f, "  fold {op}, %{v}")?;
        }
        f.write_str("}\n")
    }
}

impl KernelBuilder {
    /// A kernel that casts one operand as a program of these settings does.
    pub(crate) fn cast_of(from: DType, to: DType, settings: &Settings) -> KernelBuilder {
        let mut b = KernelBuilder::new(settings, Passes::default());
        let x = b.input(from);
        let y = b.cast(x, to);
        b.kernel.outputs.push(y);
        b
    }

    /// A kernel that reduces one operand and computes nothing else.
    pub(crate) fn fold_of(op: Op, dtype: DType) -> KernelBuilder {
        let mut b = KernelBuilder::default();
        let x = b.input(dtype);
        b.kernel.folds.push((op, x));
        b
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promotion::Rules;

    #[test]
    fn half_ops_widen_compute_and_round_once_and_equal_steps_merge() {
        let mut b = KernelBuilder::default();
        let (x, y) = (b.input(DType::F16), b.input(DType::F16));
        let args = [Operand::Value(x), Operand::Value(y)];
        let (s, t) = (b.apply(Op::Add, DType::F16, &args), b.apply(Op::Add, DType::F16, &args));
        assert_eq!((s, b.kernel.steps.len()), (t, 4));
        let n = b.apply(Op::Neg, DType::F16, &[Operand::Value(s)]);
        assert_eq!((b.kernel.value(n).dtype, b.kernel.steps.len()), (DType::F16, 5));
    }

    #[test]
    fn functions_of_f16_are_corrected_before_they_are_rounded() {
        let steps = |rounding, compute| {
            let settings = Settings { rounding, ..Settings::new(Rules::Torch) };
            let mut b = KernelBuilder::new(&settings, Passes::default());
            let x = b.input(compute);
            b.apply(Op::Exp, compute, &[Operand::Value(x)]);
            b.kernel.steps
        };
        let made = steps(Rounding::Exact, DType::F16);
        assert_eq!((made.len(), made[2].op), (4, StepOp::DoubleRounding(Op::Exp)));
        assert_eq!(made[2].args, operands([made[0].out, made[1].out]));
        assert_eq!(steps(Rounding::Exact, DType::BF16).len(), 3);
        assert_eq!(steps(Rounding::Relaxed, DType::F16).len(), 3);
    }

    #[test]
    fn scalars_become_constants_of_their_dtype() {
        let mut b = KernelBuilder::default();
        let x = b.input(DType::F32);
        b.apply(Op::Mul, DType::F32, &[Operand::Value(x), Operand::Scalar(Scalar::Float(0.1), DType::F32)]);
        assert_eq!(b.const_bits, [Bits::of(&0.1f32.to_ne_bytes())]);
        assert_eq!(b.kernel.steps.len(), 1);
    }

    #[test]
    fn without_folding_scalars_are_converted_by_steps() {
        let apart = Passes::default().without(Pass::Folding);
        let mut b = KernelBuilder::new(&Settings::new(Rules::Torch), apart);
        let x = b.input(DType::F32);
        b.apply(Op::Mul, DType::F32, &[Operand::Value(x), Operand::Scalar(Scalar::Float(0.1), DType::F32)]);
        assert_eq!((b.kernel.consts.as_slice(), b.kernel.steps.len()), (&[DType::F64][..], 2));
    }

    #[test]
    fn powers_of_some_exponents_are_multiplications_divisions_and_roots() {
        use Scalar::{Bool, Float, Int};
        let ops = |e: Scalar, dtype: DType| {
            let mut b = KernelBuilder::default();
            let x = b.input(dtype);
            b.apply(Op::Pow, dtype, &[Operand::Value(x), Operand::Scalar(e, dtype)]);
            let name = |s: &Step| if let StepOp::Apply(op) = s.op { op.name().to_string() } else { "cast".into() };
            b.kernel.steps.iter().map(name).collect::<Vec<_>>().join(" ")
        };
        for (e, way) in [
            (Float(2.0), "mul"),
            (Int(2), "mul"),
            (Int(3), "mul mul"),
            (Int(-1), "reciprocal"),
            (Float(-2.0), "mul reciprocal"),
            (Float(0.5), "sqrt"),
            (Float(-0.5), "rsqrt"),
            (Int(4), "pow"),
            (Float(1.5), "pow"),
            (Bool(true), "pow"),
        ] {
            assert_eq!(ops(e, DType::F32), way, "{e}");
        }
        assert_eq!(ops(Int(3), DType::BF16), "cast mul mul cast");
        assert_eq!([ops(Int(2), DType::I32), ops(Int(2), DType::C64)], ["pow", "pow"]);
    }

    #[test]
    fn other_bits_are_a_step() {
        let mut b = KernelBuilder::default();
        let (_, x) = (b.input(DType::F32), b.input(DType::F32));
        let y = b.bits(x, DType::I32);
        assert_eq!(b.kernel.value(y), Value { dtype: DType::I32, source: Source::Step(0) });
        assert_eq!(b.kernel.steps[0].args, operands([x]));
    }
}
