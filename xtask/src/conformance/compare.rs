//! Compares castwise's answer with the recorded one.

use castwise::promotion::{OperandType, signature};
use castwise::{DType, DiagnosticKind, Error, Op, Tensor};

use super::case::{Arg, Case, Cmp, Expected};
use super::run::Answer;
use crate::points;

/// The bytes of a tensor's elements, row-major.
pub fn elements(t: &Tensor) -> Vec<Vec<u8>> {
    let all = t.contiguous().ok().and_then(|t| t.as_bytes().map(<[u8]>::to_vec)).unwrap_or_default();
    all.chunks(t.dtype().size()).map(<[u8]>::to_vec).collect()
}

/// A real number's value as f64 (exact except for large 64-bit integers).
pub fn real(d: DType, b: &[u8]) -> f64 {
    let wide = || -> Option<f64> {
        Some(match d {
            DType::Bool | DType::U8 => f64::from(*b.first()?),
            DType::U16 => f64::from(u16::from_le_bytes(b.try_into().ok()?)),
            DType::U32 => f64::from(u32::from_le_bytes(b.try_into().ok()?)),
            DType::U64 => u64::from_le_bytes(b.try_into().ok()?) as f64,
            DType::I8 => f64::from(*b.first()? as i8),
            DType::I16 => f64::from(i16::from_le_bytes(b.try_into().ok()?)),
            DType::I32 => f64::from(i32::from_le_bytes(b.try_into().ok()?)),
            DType::I64 => i64::from_le_bytes(b.try_into().ok()?) as f64,
            DType::F8E4M3FN => castwise::F8E4M3FN::from_bits(*b.first()?).to_f64(),
            DType::F8E5M2 => castwise::F8E5M2::from_bits(*b.first()?).to_f64(),
            DType::F16 => half::f16::from_le_bytes(b.try_into().ok()?).to_f64(),
            DType::BF16 => half::bf16::from_le_bytes(b.try_into().ok()?).to_f64(),
            DType::F32 => f64::from(f32::from_le_bytes(b.try_into().ok()?)),
            DType::F64 => f64::from_le_bytes(b.try_into().ok()?),
            _ => return None,
        })
    };
    wide().unwrap_or(f64::NAN)
}

/// Real and imaginary part; the imaginary part of a real number is 0.
pub fn parts(d: DType, b: &[u8]) -> (f64, f64) {
    if !d.is_complex() {
        return (real(d, b), 0.0);
    }
    let (re, im) = b.split_at(d.size() / 2);
    (real(d.real(), re), real(d.real(), im))
}

/// The distance of two floats of one dtype in ulps: the number of floats between them.
pub fn ulps(d: DType, a: &[u8], b: &[u8]) -> u64 {
    let (x, y) = (real(d, a), real(d, b));
    if x.is_nan() || y.is_nan() {
        return if x.is_nan() && y.is_nan() { 0 } else { u64::MAX };
    }
    let order = |b: &[u8]| -> i128 {
        let mut word = [0u8; 8];
        word[8 - b.len()..].copy_from_slice(b);
        let bits = u64::from_le_bytes(word) >> (64 - 8 * b.len());
        let sign = 1u64 << (8 * b.len() - 1);
        let magnitude = i128::from(bits & (sign - 1));
        if bits & sign == 0 { magnitude } else { -magnitude }
    };
    order(a).abs_diff(order(b)).min(u128::from(u64::MAX)) as u64
}

/// The maximum difference in ulps between castwise's answer and PyTorch's: the bar of castwise's own function plus the
/// error that PyTorch's vector library promises for its function, 1 or 2 each.
fn bar(op: Op, d: DType) -> u64 {
    if matches!(d, DType::F16 | DType::BF16) {
        return 1;
    }
    match op.name() {
        "sqrt" | "abs" => 1,
        name if points::bar(name, false).is_some_and(|b| b <= 1.0) => 2,
        _ => 4,
    }
}

/// The same for complex results, in ulps of the modulus: PyTorch composes them from real functions.
const COMPLEX_BAR: f64 = 16.0;

/// The distance from 1 to the next larger number.
pub fn epsilon(d: DType) -> f64 {
    match d.real() {
        DType::F16 => (-10f64).exp2(),
        DType::BF16 => (-7f64).exp2(),
        DType::F32 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    }
}

/// Whether two numbers are the same: equal bits, or both NaN; with `zeros`, also two zeros of different signs.
fn same_real(d: DType, a: &[u8], b: &[u8], zeros: bool) -> bool {
    let (x, y) = (real(d, a), real(d, b));
    a == b || d.is_float() && (x.is_nan() && y.is_nan() || zeros && x == 0.0 && y == 0.0)
}

/// [`same_real`] for both parts.
pub fn same(d: DType, a: &[u8], b: &[u8], zeros: bool) -> bool {
    if !d.is_complex() {
        return same_real(d, a, b, zeros);
    }
    let half = d.size() / 2;
    same_real(d.real(), &a[..half], &b[..half], zeros) && same_real(d.real(), &a[half..], &b[half..], zeros)
}

/// Whether a result of an inexact function is close enough.
pub fn close(op: Op, d: DType, got: &[u8], want: &[u8], tolerance: Option<(f64, f64)>) -> bool {
    // Composed results may differ in the sign of zero; the sign of a real function's zero is defined.
    if same(d, got, want, d.is_complex() || tolerance.is_some()) {
        return true;
    }
    let ((gr, gi), (wr, wi)) = (parts(d, got), parts(d, want));
    if [gr, gi, wr, wi].iter().any(|p| !p.is_finite()) {
        // Non-finite parts must be equal, and finite ones close.
        let part = |g: f64, w: f64| {
            let tolerance = tolerance.map_or(COMPLEX_BAR * epsilon(d), |(r, _)| r);
            g == w || g.is_nan() && w.is_nan() || (g - w).abs() <= tolerance * w.abs()
        };
        return d.is_complex() && part(gr, wr) && part(gi, wi);
    }
    let (distance, size) = ((gr - wr).hypot(gi - wi), wr.hypot(wi));
    match tolerance {
        Some((rtol, atol)) => distance <= atol + rtol * size,
        None if d.is_complex() => distance <= COMPLEX_BAR * epsilon(d) * size,
        // Two zeros must have the same sign.
        None if gr == 0.0 && wr == 0.0 => false,
        None => ulps(d, got, want) <= bar(op, d),
    }
}

/// Compares dtype, shape and elements; the error describes the first difference.
pub fn compare(case: &Case, answer: &Answer) -> Result<(), String> {
    match (&case.expected, answer) {
        (Expected::Value(want), Ok(got)) => values(case, want, got),
        (Expected::Value(_), Err(e)) => Err(format!("refused: {}", first_line(e))),
        (Expected::Error(category), Err(e)) if matches(category, e) => Ok(()),
        (Expected::Error(category), Err(e)) => Err(format!("refused, but not as {category}: {}", first_line(e))),
        (Expected::Error(category), Ok(_)) => Err(format!("not refused ({category})")),
        (Expected::KernelMissing(_), _) => Err("no kernel to compare with".into()),
    }
}

fn first_line(e: &Error) -> String {
    e.to_string().lines().next().unwrap_or_default().to_string()
}

fn values(case: &Case, want: &Tensor, got: &Tensor) -> Result<(), String> {
    if want.dtype() != got.dtype() {
        return Err(format!("dtype {}, not {}", got.dtype(), want.dtype()));
    }
    if want.shape() != got.shape() {
        return Err(format!("shape {:?}, not {:?}", got.shape(), want.shape()));
    }
    let d = want.dtype();
    if case.cmp == Cmp::AnyEqual {
        return any_equal(case, want, got);
    }
    for (i, (g, w)) in elements(got).iter().zip(elements(want)).enumerate() {
        let ok = match case.cmp {
            Cmp::Exact => same(d, g, &w, false),
            Cmp::ZeroSignFree => same(d, g, &w, true),
            Cmp::Approx(tolerance) => close(case.op, d, g, &w, tolerance),
            Cmp::AnyEqual | Cmp::Informative => same(d, g, &w, false),
        };
        if !ok {
            let far = if d.is_float() { format!(", {} ulp", ulps(d, g, &w)) } else { String::new() };
            return Err(format!("value, element {i}: {:?}, not {:?}{far}", parts(d, g), parts(d, &w)));
        }
    }
    Ok(())
}

/// Whether the elements at two lists of positions along a dim are equal.
fn any_equal(case: &Case, want: &Tensor, got: &Tensor) -> Result<(), String> {
    let positions = |t: &Tensor| t.to_vec::<i64>().map_err(|e| e.to_string());
    let x = case.args.first().and_then(Arg::tensor).ok_or("no operand")?;
    let (all, shape, d) = (elements(x), x.shape(), x.dtype());
    let dim =
        case.attrs.dims.as_deref().and_then(|d| d.first()).map(|d| d.rem_euclid(shape.len().max(1) as i64) as usize);
    let (length, inner) = match dim {
        Some(dim) if !shape.is_empty() => (shape[dim], shape[dim + 1..].iter().product::<usize>()),
        _ => (all.len(), 1),
    };
    let along = if shape.is_empty() { 1 } else { want.numel() * length / all.len().max(1) };
    for (i, (g, w)) in positions(got)?.into_iter().zip(positions(want)?).enumerate() {
        let (outer, column) = (i / (along * inner).max(1), i % inner.max(1));
        let element = |at: i64| all.get((outer * length + at as usize) * inner + column);
        let (Some(one), Some(two)) = (element(g), element(w)) else { return Err(format!("position {g}, element {i}")) };
        if !same(d, one, two, true) {
            return Err(format!("position, element {i}: {g}, not {w}"));
        }
    }
    Ok(())
}

/// Whether castwise's error is of a recorded category.
pub fn matches(category: &str, e: &Error) -> bool {
    let zero = |e: &Error| match e {
        Error::DivisionByZero { .. } => true,
        Error::Earlier(e) => matches!(**e, Error::DivisionByZero { .. }),
        _ => false,
    };
    let empty = |e: &Error| matches!(e, Error::EmptyReduction { .. });
    if empty(e) || matches!(e, Error::Earlier(e) if empty(e)) {
        return category == "empty";
    }
    if zero(e) {
        return matches!(category, "zero_division" | "div_zero");
    }
    let exponent = |e: &Error| matches!(e, Error::NegativeExponent { .. });
    if exponent(e) || matches!(e, Error::Earlier(e) if exponent(e)) {
        return category == "negative_integer_power";
    }
    let Some(d) = e.diagnostics().first() else { return false };
    let expected: &[&str] = match d.kind {
        DiagnosticKind::UnsupportedDType => &["unsupported_dtype", "mean_dtype"],
        DiagnosticKind::Cast => &["cast"],
        DiagnosticKind::PromotionRefused => &["promotion_refused", "no_promotion"],
        DiagnosticKind::DTypeMismatch => &["dtype_mismatch"],
        DiagnosticKind::ArgNotTensor => &["arg_not_tensor"],
        DiagnosticKind::Broadcast => &["broadcast", "shape", "shape_mismatch"],
        DiagnosticKind::Axis => &["axis", "dim"],
        DiagnosticKind::ConditionDType => &["condition_dtype"],
        DiagnosticKind::BoolArithmetic => &["bool_sub", "bool_neg", "unsupported_dtype"],
        DiagnosticKind::NegativeIntegerPower => &["negative_integer_power"],
        DiagnosticKind::ScalarOverflow => &["scalar_overflow"],
        DiagnosticKind::BadParameter => &["bad_parameter", "invalid_attr", "alpha_kind", "empty", "scalar_overflow"],
        _ => &[],
    };
    expected.contains(&category)
}

/// The kind of an error's first diagnostic.
pub fn fault(answer: &Answer) -> Option<DiagnosticKind> {
    answer.as_ref().err()?.diagnostics().first().map(|d| d.kind)
}

/// The dtype that castwise computes the case in.
pub fn computed_in(case: &Case) -> Option<DType> {
    let seen: Vec<OperandType> = case
        .args
        .iter()
        .map(|a| match a {
            Arg::Tensor(t, true) => OperandType::weak(t.dtype()),
            Arg::Tensor(t, _) if t.shape().is_empty() => OperandType::zero(t.dtype()),
            Arg::Tensor(t, _) => OperandType::dim(t.dtype()),
            Arg::Scalar(s) => OperandType::Scalar(*s),
        })
        .collect();
    signature(&case.settings, case.op, &seen, &case.attrs).ok().map(|s| s.compute)
}
