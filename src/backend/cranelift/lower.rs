//! Lowering of ops: one arm each, for the dtypes that [`is_lowerable`] lists.
//!
//! To compile an op of the table into Cranelift's loops, add its dtypes to [`is_lowerable`] and an arm below it; other ops run as
//! block kernels, with the same bits.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Type, Value as Clif};

use super::emit::{Lanes, Repr, vector};
use super::parts::Parts;
use crate::backend::cranelift::emit::Emit;
use crate::base::dtype::{Category, DType};
use crate::ops::Op;
use crate::plan::kernel::{Step, StepOp};

/// Whether Cranelift lowers a step into a segment.
pub(crate) fn is_lowerable(step: &Step) -> bool {
    use Op::*;
    let d = step.dtype;
    let op = match step.op {
        StepOp::Cast(p) => return super::cast::is_lowerable(p),
        StepOp::Bits(_) | StepOp::DoubleRounding(_) => return false,
        StepOp::Apply(op) => op,
    };
    match (op, d.category()) {
        (Where, _) => true,
        (Neg, _) if d.real().is_half() => true,
        (Abs, _) if d.is_half() => true,
        (Eq | Ne | LogicalAnd | LogicalOr | LogicalXor | LogicalNot | Isnan | Isinf | Isfinite, Category::Complex) => {
            false
        }
        (Add | Sub | Mul | Square | Neg, Category::Complex) => true,
        (_, Category::Complex) => false,
        (Mul | Square, Category::Int) => d.size() > 1,
        (Add | Sub | Mul | Neg | Abs | Square | Maximum | Minimum | Fmax | Fmin | Relu, _) => true,
        (Eq | Ne | Lt | Le | Gt | Ge | LogicalAnd | LogicalOr | LogicalXor | LogicalNot, _) => true,
        (BitwiseAnd | BitwiseOr | BitwiseXor | BitwiseNot, _) => true,
        (Floor | Ceil | Trunc | Round | Isnan | Isinf | Isfinite, _) => true,
        (Div | Sqrt | Rsqrt | Reciprocal | Sign, Category::Float) => true,
        _ => false,
    }
}

/// The comparison of an op, for floats and for integers of either signedness.
fn comparison(op: Op) -> Option<(FloatCC, IntCC, IntCC)> {
    use {FloatCC as F, IntCC as I};
    Some(match op {
        Op::Eq => (F::Equal, I::Equal, I::Equal),
        Op::Ne => (F::NotEqual, I::NotEqual, I::NotEqual),
        Op::Lt => (F::LessThan, I::SignedLessThan, I::UnsignedLessThan),
        Op::Le => (F::LessThanOrEqual, I::SignedLessThanOrEqual, I::UnsignedLessThanOrEqual),
        Op::Gt => (F::GreaterThan, I::SignedGreaterThan, I::UnsignedGreaterThan),
        Op::Ge => (F::GreaterThanOrEqual, I::SignedGreaterThanOrEqual, I::UnsignedGreaterThanOrEqual),
        _ => return None,
    })
}

impl Emit<'_, '_> {
    /// The result of a step that [`is_lowerable`] accepts.
    pub(in crate::backend) fn step(&mut self, step: &Step, args: &[Lanes]) -> Lanes {
        let (op, d) = match step.op {
            StepOp::Cast(p) => return self.convert(p, &args[0]),
            // Unreachable: never lowered.
            StepOp::Bits(_) | StepOp::DoubleRounding(_) => return args[0].clone(),
            StepOp::Apply(op) => (op, step.dtype),
        };
        match (op, d.category()) {
            (Op::Where, _) => self.select(d, args),
            _ if d == DType::Bool => self.bool_op(op, args),
            (Op::Neg | Op::Abs, _) if d.real().is_half() => self.half_sign(op, d, args),
            (_, Category::Int) => self.int(op, d, args),
            (_, Category::Complex) => self.complex(op, d, args),
            _ => self.real(op, d, args),
        }
    }

    /// Applies `f` to each vector of an operand.
    pub(in crate::backend) fn each(&mut self, a: &Lanes, mut f: impl FnMut(&mut Self, Clif) -> Clif) -> Parts {
        a.parts.map(|a| f(self, a))
    }

    /// Applies `f` to the vectors of two operands.
    fn pairs(&mut self, args: &[Lanes], mut f: impl FnMut(&mut Self, Clif, Clif) -> Clif) -> Parts {
        Parts::zip([&args[0].parts, &args[1].parts], |[a, b]| f(self, a, b))
    }

    fn select(&mut self, d: DType, args: &[Lanes]) -> Lanes {
        if d == DType::Bool {
            let size = self.common_mask(args);
            let masks = [0, 1, 2].map(|i| self.mask(&args[i], size));
            return Lanes::mask(size, Parts::zip(masks.each_ref(), |[c, a, b]| self.b.ins().bitselect(c, a, b)));
        }
        let mask = self.mask(&args[0], d.size());
        let (a, b) = (self.canonicalized(&args[1], d), self.canonicalized(&args[2], d));
        Lanes::data(Parts::zip([&mask, &a.parts, &b.parts], |[c, a, b]| self.select_lanes(c, a, b)))
    }

    /// The narrowest lane width among booleans, which takes the fewest vectors. A splat has every width.
    fn common_mask(&self, args: &[Lanes]) -> usize {
        let sizes = args.iter().filter_map(|a| match (a.repr, &a.parts) {
            (Repr::Mask(size), Parts::Each(_)) => Some(size),
            _ => None,
        });
        sizes.min().unwrap_or(1)
    }

    fn bool_op(&mut self, op: Op, args: &[Lanes]) -> Lanes {
        let size = self.common_mask(args);
        let a = self.mask(&args[0], size);
        let b = args.get(1).map_or_else(|| a.clone(), |b| self.mask(b, size));
        let parts = Parts::zip([&a, &b], |[a, b]| {
            let ty = self.b.func.dfg.value_type(a);
            let ones = self.constant(ty, u64::MAX);
            let zero = self.constant(ty, 0);
            let i = self.b.ins();
            match op {
                Op::Add | Op::Maximum | Op::Fmax | Op::LogicalOr | Op::BitwiseOr => i.bor(a, b),
                Op::Mul | Op::Minimum | Op::Fmin | Op::LogicalAnd | Op::BitwiseAnd => i.band(a, b),
                Op::Ne | Op::LogicalXor | Op::BitwiseXor => i.bxor(a, b),
                Op::Eq => {
                    let differ = i.bxor(a, b);
                    self.b.ins().bxor(differ, ones)
                }
                Op::Lt => i.band_not(b, a),
                Op::Gt => i.band_not(a, b),
                Op::Le => i.bor_not(b, a),
                Op::Ge => i.bor_not(a, b),
                Op::LogicalNot | Op::BitwiseNot => i.bxor(a, ones),
                Op::Isfinite => ones,
                Op::Isnan | Op::Isinf => zero,
                // Ops that are the identity on booleans, such as sign and abs.
                _ => a,
            }
        });
        Lanes::mask(size, parts)
    }

    /// Negation and absolute value of 16-bit floats, on their bits.
    fn half_sign(&mut self, op: Op, d: DType, args: &[Lanes]) -> Lanes {
        let ty = vector(d);
        let a = args[0].clone();
        let parts = if op == Op::Neg {
            let signs = self.constant(ty, 0x8000_8000_8000_8000);
            self.each(&a, |e, a| e.b.ins().bxor(a, signs))
        } else {
            let rest = self.constant(ty, 0x7fff_7fff_7fff_7fff);
            self.each(&a, |e, a| e.b.ins().band(a, rest))
        };
        Lanes::data(parts)
    }

    fn int(&mut self, op: Op, d: DType, args: &[Lanes]) -> Lanes {
        let (ty, signed) = (vector(d), !d.is_unsigned());
        if let Some((_, s, u)) = comparison(op) {
            let cc = if signed { s } else { u };
            let parts = self.pairs(args, |e, a, b| e.b.ins().icmp(cc, a, b));
            return Lanes::mask(d.size(), parts);
        }
        let zero = self.constant(ty, 0);
        let a = args[0].clone();
        let max = |e: &mut Self, a, b| if signed { e.b.ins().smax(a, b) } else { e.b.ins().umax(a, b) };
        let min = |e: &mut Self, a, b| if signed { e.b.ins().smin(a, b) } else { e.b.ins().umin(a, b) };
        let nonzero = |e: &mut Self, a| e.b.ins().icmp(IntCC::NotEqual, a, zero);
        let logical = |e: &mut Self, f: fn(&mut Self, Clif, Clif) -> Clif| {
            let parts = e.pairs(args, |e, a, b| {
                let (a, b) = (nonzero(e, a), nonzero(e, b));
                f(e, a, b)
            });
            Lanes::mask(d.size(), parts)
        };
        Lanes::data(match op {
            Op::Add => self.pairs(args, |e, a, b| e.b.ins().iadd(a, b)),
            Op::Sub => self.pairs(args, |e, a, b| e.b.ins().isub(a, b)),
            Op::Mul => self.pairs(args, |e, a, b| e.b.ins().imul(a, b)),
            Op::Square => self.each(&a, |e, a| e.b.ins().imul(a, a)),
            Op::Neg => self.each(&a, |e, a| e.b.ins().isub(zero, a)),
            Op::Abs if signed => self.each(&a, |e, a| {
                let negative = e.b.ins().isub(zero, a);
                e.b.ins().smax(a, negative)
            }),
            Op::Maximum | Op::Fmax => self.pairs(args, max),
            Op::Minimum | Op::Fmin => self.pairs(args, min),
            Op::Relu => self.each(&a, |e, a| max(e, a, zero)),
            Op::BitwiseAnd => self.pairs(args, |e, a, b| e.b.ins().band(a, b)),
            Op::BitwiseOr => self.pairs(args, |e, a, b| e.b.ins().bor(a, b)),
            Op::BitwiseXor => self.pairs(args, |e, a, b| e.b.ins().bxor(a, b)),
            Op::BitwiseNot => {
                let ones = self.constant(ty, u64::MAX);
                self.each(&a, |e, a| e.b.ins().bxor(a, ones))
            }
            Op::LogicalAnd => return logical(self, |e, a, b| e.b.ins().band(a, b)),
            Op::LogicalOr => return logical(self, |e, a, b| e.b.ins().bor(a, b)),
            Op::LogicalXor => return logical(self, |e, a, b| e.b.ins().bxor(a, b)),
            Op::LogicalNot => {
                let parts = self.each(&a, |e, a| e.b.ins().icmp(IntCC::Equal, a, zero));
                return Lanes::mask(d.size(), parts);
            }
            Op::Isnan | Op::Isinf | Op::Isfinite => {
                let bits = if op == Op::Isfinite { u64::MAX } else { 0 };
                let same = self.constant(ty, bits);
                let parts = self.each(&a, |_, _| same);
                return Lanes::mask(d.size(), parts);
            }
            // Ops that are the identity on integers, such as rounding and the absolute value of unsigned.
            _ => a.parts,
        })
    }

    fn complex(&mut self, op: Op, d: DType, args: &[Lanes]) -> Lanes {
        match op {
            Op::Add | Op::Sub | Op::Neg => self.real(op, d, args),
            _ => {
                let (a, b) = (&args[0], args.get(1).unwrap_or(&args[0]));
                Lanes::arithmetic(Parts::zip([&a.parts, &b.parts], |[a, b]| self.complex_mul(d, a, b)))
            }
        }
    }

    /// `(ar*br - ai*bi, ar*bi + ai*br)` on interleaved parts.
    fn complex_mul(&mut self, d: DType, a: Clif, b: Clif) -> Clif {
        let ty = vector(d);
        let lane = d.size() / 2;
        // Shuffles: the real part, the imaginary part, or the other part in each lane.
        let picks =
            |f: fn(usize) -> usize| -> [u8; 16] { std::array::from_fn(|i| (f(i / lane) * lane + i % lane) as u8) };
        let (re, im) = (self.shuffle(a, a, picks(|l| l & !1)), self.shuffle(a, a, picks(|l| l | 1)));
        let swapped = self.shuffle(b, b, picks(|l| l ^ 1));
        let (re, im, swapped) = (self.bits(re, ty), self.bits(im, ty), self.bits(swapped, ty));
        let straight = self.b.ins().fmul(re, b);
        let crossed = self.b.ins().fmul(im, swapped);
        // The sign bit of the real lanes: a - b is a + (-b).
        let signs = if lane == 4 { 0x8000_0000u64.into() } else { u128::from(1u64 << 63) };
        let bytes: [u8; 16] = if lane == 4 { (signs | signs << 64).to_le_bytes() } else { signs.to_le_bytes() };
        let handle = self.b.func.dfg.constants.insert(bytes[..].into());
        let signs = self.b.ins().vconst(ty, handle);
        let signed = self.b.ins().bxor(crossed, signs);
        self.b.ins().fadd(straight, signed)
    }

    fn real(&mut self, op: Op, d: DType, args: &[Lanes]) -> Lanes {
        if let Some((cc, ..)) = comparison(op) {
            let parts = self.pairs(args, |e, a, b| e.b.ins().fcmp(cc, a, b));
            return Lanes::mask(d.size(), parts);
        }
        let ty = vector(d);
        let a = args[0].clone();
        let parts = match op {
            Op::Add => self.pairs(args, |e, a, b| e.b.ins().fadd(a, b)),
            Op::Sub => self.pairs(args, |e, a, b| e.b.ins().fsub(a, b)),
            Op::Mul => self.pairs(args, |e, a, b| e.b.ins().fmul(a, b)),
            Op::Div => self.pairs(args, |e, a, b| e.b.ins().fdiv(a, b)),
            Op::Square => self.each(&a, |e, a| e.b.ins().fmul(a, a)),
            Op::Sqrt => self.each(&a, |e, a| e.b.ins().sqrt(a)),
            Op::Reciprocal | Op::Rsqrt => {
                let one = self.float(ty, 1.0);
                self.each(&a, |e, a| {
                    let below = if op == Op::Rsqrt { e.b.ins().sqrt(a) } else { a };
                    e.b.ins().fdiv(one, below)
                })
            }
            Op::Floor => self.each(&a, |e, a| e.b.ins().floor(a)),
            Op::Ceil => self.each(&a, |e, a| e.b.ins().ceil(a)),
            Op::Trunc => self.each(&a, |e, a| e.b.ins().trunc(a)),
            Op::Round => self.each(&a, |e, a| e.b.ins().nearest(a)),
            Op::Fmax | Op::Fmin => self.pairs(args, |e, a, b| {
                let better = e.extreme(op == Op::Fmax, a, b);
                let missing = e.b.ins().fcmp(FloatCC::Unordered, b, b);
                e.select_lanes(missing, a, better)
            }),
            _ => return self.real_exact(op, ty, d, args),
        };
        Lanes::arithmetic(parts)
    }

    /// Ops whose results have no NaN from arithmetic.
    fn real_exact(&mut self, op: Op, ty: Type, d: DType, args: &[Lanes]) -> Lanes {
        let zero = self.float(ty, 0.0);
        let nan = self.float(ty, f64::NAN);
        let a = args[0].clone();
        let nonzero = |e: &mut Self, a| e.b.ins().fcmp(FloatCC::NotEqual, a, zero);
        let mask = |parts| Lanes::mask(d.size(), parts);
        match op {
            Op::Neg => {
                let a = self.canonicalized(&a, d);
                Lanes::data(self.each(&a, |e, a| e.b.ins().fneg(a)))
            }
            Op::Abs => {
                let a = self.canonicalized(&a, d);
                Lanes::data(self.each(&a, |e, a| e.b.ins().fabs(a)))
            }
            Op::Maximum | Op::Minimum => Lanes::data(self.pairs(args, |e, a, b| {
                let better = e.extreme(op == Op::Maximum, a, b);
                let unordered = e.b.ins().fcmp(FloatCC::Unordered, a, b);
                e.select_lanes(unordered, nan, better)
            })),
            Op::Relu => Lanes::data(self.each(&a, |e, a| {
                let positive = e.b.ins().fcmp(FloatCC::GreaterThan, a, zero);
                let kept = e.select_lanes(positive, a, zero);
                let is_nan = e.b.ins().fcmp(FloatCC::Unordered, a, a);
                e.select_lanes(is_nan, nan, kept)
            })),
            Op::Sign => {
                let (one, minus) = (self.float(ty, 1.0), self.float(ty, -1.0));
                Lanes::data(self.each(&a, |e, a| {
                    let positive = e.b.ins().fcmp(FloatCC::GreaterThan, a, zero);
                    let negative = e.b.ins().fcmp(FloatCC::LessThan, a, zero);
                    let up = e.select_lanes(positive, one, zero);
                    e.select_lanes(negative, minus, up)
                }))
            }
            Op::LogicalNot => mask(self.each(&a, |e, a| e.b.ins().fcmp(FloatCC::Equal, a, zero))),
            Op::Isnan => mask(self.each(&a, |e, a| e.b.ins().fcmp(FloatCC::Unordered, a, a))),
            Op::Isinf | Op::Isfinite => {
                let infinity = self.float(ty, f64::INFINITY);
                let cc = if op == Op::Isinf { FloatCC::Equal } else { FloatCC::LessThan };
                mask(self.each(&a, |e, a| {
                    let magnitude = e.b.ins().fabs(a);
                    e.b.ins().fcmp(cc, magnitude, infinity)
                }))
            }
            _ => mask(self.pairs(args, |e, a, b| {
                let (a, b) = (nonzero(e, a), nonzero(e, b));
                match op {
                    Op::LogicalAnd => e.b.ins().band(a, b),
                    Op::LogicalOr => e.b.ins().bor(a, b),
                    _ => e.b.ins().bxor(a, b),
                }
            })),
        }
    }

    /// The maximum or minimum, with -0 below +0; `b` if one operand is NaN.
    fn extreme(&mut self, larger: bool, a: Clif, b: Clif) -> Clif {
        let cc = if larger { FloatCC::GreaterThan } else { FloatCC::LessThan };
        let tie = if larger { self.b.ins().band(a, b) } else { self.b.ins().bor(a, b) };
        let equal = self.b.ins().fcmp(FloatCC::Equal, a, b);
        let first = self.b.ins().fcmp(cc, a, b);
        let rest = self.select_lanes(equal, tie, b);
        self.select_lanes(first, a, rest)
    }
}
