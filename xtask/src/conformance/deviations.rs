//! The intentional differences from the frameworks: docs/deviations.md as data.
//!
//! A rule explains a case only if castwise's answer is the one that the rule states. The checks do not use the code
//! under test, except for [`explicit`]: the same op on operands that are already tensors of the dtype that the rule
//! names.

use castwise::prelude::*;
use castwise::{Category, DiagnosticKind, Error, Op, Operand};

use super::case::{Arg, Case, Cmp, Expected};
use super::compare::{close, computed_in, elements, fault, parts, real, same, ulps};
use super::run::Answer;

mod composites;
mod jax;
mod jax_ops;
mod lines;
mod numpy;
mod order;
mod paddle;
mod reductions;
mod torch;
mod wider;

/// One rule.
pub struct Deviation {
    pub name: &'static str,
    /// What castwise does differently, and why.
    pub reason: &'static str,
    /// The rule set that the deviation applies to; `None` for both.
    pub rules: Option<Rules>,
    /// Whether the rule applies to the case and the answer is the one that it states.
    pub explains: fn(&Case, &Answer) -> bool,
}

const PADDLE: Option<Rules> = Some(Rules::Paddle);
const TORCH: Option<Rules> = Some(Rules::Torch);
const NUMPY: Option<Rules> = Some(Rules::NumPy);

const DEVIATIONS: &[Deviation] = &[
    Deviation {
        name: "cast-saturates",
        reason: "float to integer truncates and saturates, NaN gives 0; the frameworks' value is the platform's",
        rules: None,
        explains: cast_saturates,
    },
    Deviation {
        name: "cast-rounds-once",
        reason: "f64 and integers of 32 and 64 bits to f16, bf16 and the f8 round once; the frameworks round to f32 on the way",
        rules: None,
        explains: cast_rounds_once,
    },
    Deviation {
        name: "u64-rounds-once",
        reason: "u64 to f32 rounds to nearest; PyTorch's vectorized conversion may give the number next to it",
        rules: TORCH,
        explains: torch::u64_rounds_once,
    },
    Deviation {
        name: "f8-is-stored",
        reason: "f8e4m3fn and f8e5m2 are stored and cast; every op refuses them, also the few that the frameworks have",
        rules: None,
        explains: |c, a| {
            let named = |d: DType| d.is_float() && d.size() == 1;
            let given = any_dtype(c, named) || c.attrs.dtype.is_some_and(named);
            c.op != Op::Cast && given && refused_as(a, &[DiagnosticKind::UnsupportedDType])
        },
    },
    Deviation {
        name: "f8-keeps-infinity-and-nan",
        reason: "an infinity is one in f8e5m2 and a NaN of f8e4m3fn is one elsewhere; Paddle gives the largest number",
        rules: PADDLE,
        explains: f8_keeps,
    },
    Deviation {
        name: "zero-ties",
        reason: "+0 is larger than -0 for the maximum and minimum ops; the frameworks give either",
        rules: None,
        explains: zero_ties,
    },
    Deviation {
        name: "c32-pow",
        reason: "`pow` refuses c32; PyTorch refuses it too, but for exponents that need no power",
        rules: TORCH,
        explains: |c, a| {
            c.op == Op::Pow && refused_as(a, &[DiagnosticKind::UnsupportedDType]) && any_dtype(c, |d| d == DType::C32)
        },
    },
    Deviation {
        name: "half-pow-sqrt",
        reason: "x ** 0.5 is sqrt in every dtype; PyTorch's f16 alone calls pow, where -inf gives +inf and -0 gives +0",
        rules: TORCH,
        explains: torch::half_pow_sqrt,
    },
    Deviation {
        name: "gelu-tail",
        reason: "gelu keeps its accuracy far below zero, by erfc; PyTorch's 1 + erf cancels there, down to 0, and its vector code for f16 and bf16 gives NaN at +inf",
        rules: TORCH,
        explains: |c, a| c.op == Op::Gelu && (wider::as_in_f64(c, a) || wider::cancels(c, a)),
    },
    Deviation {
        name: "half-erf",
        reason: "erf of f16 and bf16 keeps its accuracy near zero; PyTorch's erf for them is absolutely accurate only, and 0 there",
        rules: TORCH,
        explains: |c, a| c.op == Op::Erf && any_dtype(c, |d| d.size() == 2) && wider::as_in_f64(c, a),
    },
    Deviation {
        name: "softplus-threshold",
        reason: "softplus is log(1 + exp(x)) everywhere; PyTorch's is x above its threshold of 20, which shows in f64",
        rules: TORCH,
        explains: torch::softplus_threshold,
    },
    Deviation {
        name: "ldexp-promotes-first",
        reason: "ldexp promotes x and the exponent and computes there, or refuses c32; PyTorch takes 2^e in the exponent's own dtype first, for which it may have no kernel",
        rules: TORCH,
        explains: torch::ldexp_promotes_first,
    },
    Deviation {
        name: "gcd-of-min",
        reason: "the gcd with MIN has the magnitude of the true one; PyTorch goes on with a negative |MIN|",
        rules: TORCH,
        explains: torch::gcd_of_min,
    },
    Deviation {
        name: "fmod-of-far",
        reason: "fmod and remainder are exact also where the quotient overflows; PyTorch's vector code gives NaN there",
        rules: TORCH,
        explains: torch::fmod_of_far,
    },
    Deviation {
        name: "output-of-refused",
        reason: "an op that refuses its operands' dtype says so, whatever it would be written to; PyTorch looks at the output first",
        rules: TORCH,
        explains: |c, a| {
            c.output.is_some()
                && refused_as(a, &[DiagnosticKind::UnsupportedDType])
                && any_category(c, Category::Complex)
        },
    },
    Deviation {
        name: "composed-in-f32",
        reason: "poisson_nll_loss of integers and c128 has an exponential in f32 among its steps, where the last bit may differ",
        rules: TORCH,
        explains: torch::composed_in_f32,
    },
    Deviation {
        name: "poisson-promotes-first",
        reason: "the operands of poisson_nll_loss promote before anything is computed; Paddle computes parts in their own dtype, or has no kernel for it",
        rules: PADDLE,
        explains: poisson_promotes_first,
    },
    Deviation {
        name: "kernel-missing",
        reason: "computed where the framework has no CPU kernel; the dtype it promoted to is ours",
        rules: None,
        explains: kernel_missing,
    },
    Deviation {
        name: "kernel-missing-refused",
        reason: "refused where the framework has no kernel because the op has no meaning for the dtype",
        rules: None,
        explains: kernel_missing_refused,
    },
    Deviation {
        name: "complex-ordering",
        reason: "< <= > >= refuse complex numbers, as the guide says; Paddle compares something",
        rules: PADDLE,
        explains: |c, a| {
            let ordering = matches!(c.op, Op::Lt | Op::Le | Op::Gt | Op::Ge);
            ordering && refused_as(a, &[DiagnosticKind::UnsupportedDType]) && any_category(c, Category::Complex)
        },
    },
    Deviation {
        name: "bool-division",
        reason: "bool / bool is an f32 quotient (\"not smaller than float\"); Paddle gives bool, and fails on false",
        rules: PADDLE,
        explains: paddle::bool_division,
    },
    Deviation {
        name: "bitwise-scalar",
        reason: "an int or bool scalar works on either side of a bitwise op and in the function form, as the guide's table says",
        rules: PADDLE,
        explains: |c, a| bitwise(c.op) && error_was(c, "arg_not_tensor") && tensor_scalar(c, a),
    },
    Deviation {
        name: "bitwise-float-scalar",
        reason: "a bitwise op with a float or complex operand is refused for its dtype; Paddle complains of the scalar",
        rules: PADDLE,
        explains: |c, a| {
            let high = any_category(c, Category::Float) || any_category(c, Category::Complex);
            bitwise(c.op)
                && error_was(c, "arg_not_tensor")
                && high
                && refused_as(a, &[DiagnosticKind::UnsupportedDType])
        },
    },
    Deviation {
        name: "scalar-in-functions",
        reason: "the tensor-scalar rule holds for functions as for operators; Paddle's functions refuse or depart",
        rules: PADDLE,
        explains: |c, a| {
            let departs = c.quirk && c.op != Op::Pow || matches!(c.expected, Expected::KernelMissing(_));
            departs && has_scalar(c) && tensor_scalar(c, a)
        },
    },
    Deviation {
        name: "scalar-for-tensor",
        reason: "a scalar promotes as in operators in functions that take tensors alone in PyTorch",
        rules: TORCH,
        explains: torch::scalar_for_tensor,
    },
    Deviation {
        name: "zero-dim-floor-divide",
        reason: "a 0-d operand of the same class follows the other in `floor_divide` too; Paddle's eager mode promotes",
        rules: PADDLE,
        explains: |c, a| c.quirk && c.op == Op::FloorDivide && zero_dim_follows(c, a),
    },
    Deviation {
        name: "integer-fmax",
        reason: "fmax and fmin of integers are exact; Paddle compares them as floats",
        rules: PADDLE,
        explains: paddle::integer_fmax,
    },
    Deviation {
        name: "integer-atan2",
        reason: "atan2 of integers is computed in f64, the dtype of its result; Paddle computes it in f32",
        rules: PADDLE,
        explains: paddle::integer_atan2,
    },
    Deviation {
        name: "complex-zero-divisor",
        reason: "complex division by zero gives infinities or NaN by scaled division; the frameworks' parts vary",
        rules: None,
        explains: complex_zero_divisor,
    },
    Deviation {
        name: "zero-to-complex-power",
        reason: "0 to a complex power with a negative real part is not finite; the frameworks' parts vary",
        rules: None,
        explains: zero_to_complex_power,
    },
    Deviation {
        name: "where-scalar-overflow",
        reason: "`where` refuses an integer that the dtype does not hold, as every other op does; NumPy wraps it",
        rules: NUMPY,
        explains: |c, a| c.op == Op::Where && has_scalar(c) && refused_as(a, &[DiagnosticKind::ScalarOverflow]),
    },
    Deviation {
        name: "lcm-wraps",
        reason: "a least common multiple beyond the dtype is the magnitude of what wraps; NumPy's may be negative",
        rules: NUMPY,
        explains: numpy::lcm_wraps,
    },
    Deviation {
        name: "reduction-cast-saturates",
        reason: "a reduction with an integer `dtype` converts floats as a cast does: truncated and saturated",
        rules: NUMPY,
        explains: numpy::reduction_cast_saturates,
    },
];

pub use jax::takes_for_scalar;

/// Every rule.
pub fn all() -> impl Iterator<Item = &'static Deviation> {
    let more = [
        jax::DEVIATIONS,
        jax_ops::DEVIATIONS,
        reductions::DEVIATIONS,
        lines::DEVIATIONS,
        order::DEVIATIONS,
        composites::DEVIATIONS,
    ];
    DEVIATIONS.iter().chain(more.into_iter().flatten())
}

/// The rule that explains an answer, if any.
pub fn explanation(case: &Case, answer: &Answer) -> Option<&'static Deviation> {
    let speaks = |d: &&Deviation| d.rules.is_none_or(|r| r == case.settings.rules);
    all().filter(speaks).find(|d| (d.explains)(case, answer))
}

fn has_scalar(c: &Case) -> bool {
    c.args.iter().any(|a| a.scalar().is_some())
}

fn any_dtype(c: &Case, is: impl Fn(DType) -> bool) -> bool {
    c.args.iter().filter_map(Arg::tensor).any(|t| is(t.dtype()))
}

fn category(a: &Arg) -> Category {
    match a {
        Arg::Tensor(t, _) => t.dtype().category(),
        Arg::Scalar(s) => s.category(),
    }
}

fn any_category(c: &Case, category_of: Category) -> bool {
    c.args.iter().any(|a| category(a) == category_of)
}

fn bitwise(op: Op) -> bool {
    matches!(op, Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor | Op::ShiftLeft | Op::ShiftRight)
}

fn refused_as(a: &Answer, faults: &[DiagnosticKind]) -> bool {
    fault(a).is_some_and(|f| faults.contains(&f))
}

fn error_was(c: &Case, category: &str) -> bool {
    matches!(&c.expected, Expected::Error(e) if e == category)
}

/// The elements of an operand, broadcast to the result's shape, with their dtype; a scalar's at full precision.
fn operand(c: &Case, i: usize, shape: &[usize]) -> Option<(DType, Vec<Vec<u8>>)> {
    let t = match c.args.get(i)? {
        Arg::Tensor(t, _) => t.clone(),
        Arg::Scalar(s) => scalar_tensor(*s),
    };
    Some((t.dtype(), elements(&t.broadcast_to(shape).ok()?)))
}

fn scalar_tensor(s: Scalar) -> Tensor {
    match s {
        Scalar::Bool(v) => Tensor::scalar(v),
        Scalar::Int(v) => i64::try_from(v).map_or_else(|_| Tensor::scalar(v as u64), Tensor::scalar),
        Scalar::Float(v) => Tensor::scalar(v),
        Scalar::Complex(v) => Tensor::scalar(v),
    }
}

/// An element in which the answer and the record differ.
struct Difference {
    at: usize,
    got: Vec<u8>,
    want: Vec<u8>,
}

/// The answer, and the elements that differ from the record, if dtype and shape are the same.
fn differences<'a>(c: &Case, a: &'a Answer) -> Option<(&'a Tensor, Vec<Difference>)> {
    let (Expected::Value(want), Ok(got)) = (&c.expected, a) else { return None };
    let d = want.dtype();
    if d != got.dtype() || want.shape() != got.shape() {
        return None;
    }
    let pairs = elements(got).into_iter().zip(elements(want)).enumerate();
    let all = pairs.filter(|(_, (g, w))| !same(d, g, w, false)).map(|(at, (got, want))| Difference { at, got, want });
    Some((got, all.collect()))
}

/// The op on tensors of one dtype, which is what an implicit promotion to that dtype must give. `where` keeps its
/// condition.
fn explicit(c: &Case, d: DType) -> Option<Tensor> {
    let cx = Eager::with_settings(c.settings);
    let keep = usize::from(c.op == Op::Where);
    let mut operands: Vec<Operand<Eager>> = Vec::new();
    for (i, a) in c.args.iter().enumerate() {
        let t = match a {
            Arg::Tensor(t, _) => t.clone(),
            Arg::Scalar(s) => scalar_tensor(*s),
        };
        let v = cx.tensor(&t);
        operands.push(if i < keep { v } else { v.cast(d) }.into());
    }
    castwise::apply(c.op, &operands, c.attrs.clone()).result().ok()
}

fn identical(a: &Answer, expected: Option<Tensor>) -> bool {
    match (a, expected) {
        (Ok(got), Some(want)) => {
            (got.dtype(), got.shape()) == (want.dtype(), want.shape()) && elements(got) == elements(&want)
        }
        _ => false,
    }
}

/// The guide's table for a tensor and a scalar.
fn with_scalar(tensor: DType, scalar: Category) -> DType {
    match (tensor.category(), scalar) {
        (own, s) if s <= own => tensor,
        (Category::Bool, Category::Int) => DType::I64,
        (_, Category::Complex) if tensor == DType::F64 => DType::C128,
        (_, Category::Complex) => DType::C64,
        _ => DType::F32,
    }
}

/// Whether the answer is that of the tensor-scalar rule.
fn tensor_scalar(c: &Case, a: &Answer) -> bool {
    let keep = usize::from(c.op == Op::Where);
    let tensors: Vec<DType> = c.args.iter().skip(keep).filter_map(Arg::tensor).map(Tensor::dtype).collect();
    let scalars: Vec<Scalar> = c.args.iter().filter_map(Arg::scalar).collect();
    let ([tensor], [scalar]) = (tensors.as_slice(), scalars.as_slice()) else { return false };
    let mut d = with_scalar(*tensor, scalar.category());
    if c.op == Op::Div && d.is_integral() {
        d = DType::F32;
    }
    identical(a, explicit(c, d))
}

/// Whether both operands are of one category, one of them is 0-d, and the answer has the other's dtype.
fn zero_dim_follows(c: &Case, a: &Answer) -> bool {
    let [Arg::Tensor(x, _), Arg::Tensor(y, _)] = c.args.as_slice() else { return false };
    let d = match (x.rank(), y.rank()) {
        (0, 1..) => y.dtype(),
        (1.., 0) => x.dtype(),
        _ => return false,
    };
    x.dtype().category() == y.dtype().category() && identical(a, explicit(c, d))
}

fn cast_saturates(c: &Case, a: &Answer) -> bool {
    let Ok(got) = a else { return false };
    let Some((from, source)) = operand(c, 0, got.shape()) else { return false };
    let to = got.dtype();
    let (low, high) = match to {
        to if to.category() != Category::Int => return false,
        to if to.is_unsigned() => (0, (1i128 << (8 * to.size())) - 1),
        to => (-(1i128 << (8 * to.size() - 1)), (1i128 << (8 * to.size() - 1)) - 1),
    };
    let integer = |b: &[u8]| -> i128 {
        let mut word = [if !to.is_unsigned() && b.last().is_some_and(|b| *b > 127) { 0xff } else { 0 }; 16];
        word[..b.len()].copy_from_slice(b);
        i128::from_le_bytes(word)
    };
    // `as` truncates, saturates and converts NaN to 0.
    let rule = |b: &[u8]| (parts(from, b).0 as i128).clamp(low, high);
    let outside = |b: &[u8]| {
        let x = parts(from, b).0.trunc();
        x.is_nan() || (x as i128) < low || x as i128 > high
    };
    c.op == Op::Cast
        && Some(to) == c.attrs.dtype
        && (from.is_float() || from.is_complex())
        && differences(c, a).is_some_and(|(_, all)| all.iter().all(|e| outside(&source[e.at])))
        && elements(got).iter().zip(&source).all(|(g, s)| integer(g) == rule(s))
}

fn cast_rounds_once(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let Some((from, source)) = operand(c, 0, got.shape()) else { return false };
    let to = got.dtype();
    let half = matches!(to, DType::F16 | DType::BF16 | DType::C32) || to.is_float() && to.size() == 1;
    // The framework's answer must be adjacent and not closer to the source than ours.
    let nearest = |d: &Difference| {
        let x = parts(from, &source[d.at]);
        let error = |b: &[u8]| {
            let y = parts(to, b);
            ((x.0 - y.0).abs(), (x.1 - y.1).abs())
        };
        let (ours, theirs) = (error(&d.got), error(&d.want));
        let half = d.got.len() / if to.is_complex() { 2 } else { 1 };
        // A second rounding causes an error of one ulp.
        let neighbours = d.got.chunks(half).zip(d.want.chunks(half)).all(|(g, w)| ulps(to.real(), g, w) <= 1);
        neighbours && ours.0 <= theirs.0 && ours.1 <= theirs.1
    };
    let wide = matches!(from, DType::F64 | DType::C128) || from.is_integral() && from.size() >= 4;
    c.op == Op::Cast && half && wide && all.iter().all(nearest)
}

fn zero_ties(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let maximum = match c.op {
        Op::Maximum | Op::Fmax => true,
        Op::Minimum | Op::Fmin => false,
        Op::Relu => return relu_of_zero(c, got, &all),
        _ => return false,
    };
    let (Some((dx, x)), Some((dy, y))) = (operand(c, 0, got.shape()), operand(c, 1, got.shape())) else { return false };
    let zero = |d: DType, b: &[u8]| real(d, b) == 0.0;
    let rule = |at: usize| {
        let positive = |d: DType, b: &[u8]| real(d, b).is_sign_positive();
        let (p, q) = (positive(dx, &x[at]), positive(dy, &y[at]));
        if maximum { p || q } else { p && q }
    };
    all.iter().all(|e| {
        zero(dx, &x[e.at])
            && zero(dy, &y[e.at])
            && zero(got.dtype(), &e.want)
            && zero(got.dtype(), &e.got)
            && real(got.dtype(), &e.got).is_sign_positive() == rule(e.at)
    })
}

/// `relu` is the maximum with +0.
fn relu_of_zero(c: &Case, got: &Tensor, all: &[Difference]) -> bool {
    let Some((from, x)) = operand(c, 0, got.shape()) else { return false };
    all.iter().all(|e| real(from, &x[e.at]) == 0.0 && e.got.iter().all(|b| *b == 0))
}

/// Whether the answer is that of operands cast to their common dtype explicitly; integers have none and are refused.
fn poisson_promotes_first(c: &Case, a: &Answer) -> bool {
    let (Op::PromoteWith, [Arg::Tensor(x, _), Arg::Tensor(y, _)], Some(loss)) = (c.op, c.args.as_slice(), &c.composed)
    else {
        return false;
    };
    if a.is_err() {
        let integral = x.dtype().is_integral() || y.dtype().is_integral();
        return integral
            && refused_as(
                a,
                &[DiagnosticKind::PromotionRefused, DiagnosticKind::UnsupportedDType, DiagnosticKind::BoolArithmetic],
            );
    }
    let Some(common) = computed_in(c) else { return false };
    let cx = Eager::with_settings(c.settings);
    let operands = [x, y].map(|t| Operand::Var(cx.tensor(t).cast(common)));
    identical(a, loss.apply(&operands).and_then(|l| l.result().ok()))
}

/// Whether infinities and NaNs are kept wherever the framework gives the largest number.
fn f8_keeps(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let from = c.args.first().and_then(Arg::tensor).map(Tensor::dtype);
    let keeps = |d: &Difference| {
        let [ours, theirs] = [&d.got, &d.want].map(|b| parts(got.dtype(), b).0);
        ours.is_infinite() && theirs.abs() == 57344.0 && got.dtype() == DType::F8E5M2
            || ours.is_nan() && theirs.abs() == 448.0 && from == Some(DType::F8E4M3FN)
    };
    c.op == Op::Cast && all.iter().all(keeps)
}

fn kernel_missing(c: &Case, a: &Answer) -> bool {
    let Expected::KernelMissing(promoted) = &c.expected else { return false };
    let computed = match a {
        Ok(_) => true,
        // Errors of the data or the shapes come after promotion.
        Err(Error::DivisionByZero { .. }) => true,
        Err(Error::Earlier(e)) if matches!(**e, Error::DivisionByZero { .. }) => true,
        Err(_) => refused_as(a, &[DiagnosticKind::Broadcast]),
    };
    let ours = computed_in(c);
    let same = match promoted {
        // Ops that promote integers to a float dtype.
        Some(p) if p.is_integral() && matches!(c.op.name(), "div" | "logaddexp") => ours == Some(DType::F32),
        Some(p) if p.is_integral() && c.op.name() == "atan2" => ours == Some(DType::F64),
        Some(p) => ours == Some(*p),
        None => true,
    };
    computed && same
}

fn kernel_missing_refused(c: &Case, a: &Answer) -> bool {
    let Expected::KernelMissing(promoted) = &c.expected else { return false };
    let complex = any_category(c, Category::Complex);
    let common = promoted.unwrap_or(DType::F32);
    let meaningless = match c.op.name() {
        _ if bitwise(c.op) => complex || any_category(c, Category::Float),
        "pow" | "sub" | "squared_difference" => common == DType::Bool,
        "huber" => !common.is_float(),
        "floor_divide" => complex || common == DType::Bool,
        "remainder" => common == DType::Bool,
        "maximum" | "minimum" | "fmax" | "fmin" | "atan2" | "logaddexp" | "argmax" | "argmin" => complex,
        "nextafter" => !common.is_float(),
        "var" | "std" => !any_category(c, Category::Float),
        "norm" => !complex && !any_category(c, Category::Float),
        "logsumexp" => complex,
        "median" | "nanmedian" | "kthvalue" | "quantile" | "sort" | "argsort" | "topk" | "median_indices"
        | "nanmedian_indices" | "kthvalue_indices" | "topk_indices" => complex || any_category(c, Category::Bool),
        _ => false,
    };
    meaningless
        && refused_as(
            a,
            &[DiagnosticKind::UnsupportedDType, DiagnosticKind::BoolArithmetic, DiagnosticKind::DTypeMismatch],
        )
}

fn complex_zero_divisor(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let Some((dy, y)) = operand(c, 1, got.shape()) else { return false };
    let rule = |e: &Difference| {
        let (re, im) = parts(got.dtype(), &e.got);
        parts(dy, &y[e.at]) == (0.0, 0.0) && !re.is_finite() && !im.is_finite() || near(c, got.dtype(), e)
    };
    c.op == Op::Div && got.dtype().is_complex() && all.iter().all(rule)
}

fn zero_to_complex_power(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let (Some((dx, x)), Some((dy, y))) = (operand(c, 0, got.shape()), operand(c, 1, got.shape())) else { return false };
    let rule = |e: &Difference| {
        let (re, im) = parts(got.dtype(), &e.got);
        let singular = parts(dx, &x[e.at]) == (0.0, 0.0) && parts(dy, &y[e.at]).0 < 0.0;
        singular && !re.is_finite() && !im.is_finite() || !singular && near(c, got.dtype(), e)
    };
    c.op == Op::Pow && got.dtype().is_complex() && all.iter().all(rule)
}

/// Whether a difference is within the case's own tolerance.
fn near(c: &Case, d: DType, e: &Difference) -> bool {
    match c.cmp {
        Cmp::Approx(tolerance) => close(c.op, d, &e.got, &e.want, tolerance),
        _ => false,
    }
}
