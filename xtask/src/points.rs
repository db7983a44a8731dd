//! Points with exact results, in the form of `ulp.jsonl`: reading, the error of a result in ulps, and the bars.
//!
//! A line is `{"f": function, "d": dtype, "x": [operands' bits], "y": the correctly rounded result's bits, "e": the
//! exact result minus y in ulps of y, "c": 1 if the point is ill-conditioned}`. Guarantees: the error is the difference
//! between the result and the exact result, to about 1e-4 ulp. `accuracy` and `conformance` share the bars; there are
//! no others.

use castwise::Op;
use castwise::prelude::*;
use serde_json::Value;

/// The promised maximum error in ulps of a function in f32 and f64; docs/accuracy.md gives the reasons.
///
/// For ill-conditioned points it is in ulps of the larger operand (see [`Points::errors`]).
pub fn bar(function: &str, ill_conditioned: bool) -> Option<f64> {
    match function {
        "logaddexp" | "logaddexp2" if ill_conditioned => Some(1.0),
        "sqrt" => Some(0.5),
        "exp" | "expm1" | "log" | "log1p" | "log2" | "sin" | "cos" | "tan" | "atan" | "asin" | "acos" | "sigmoid"
        | "erf" | "pow" => Some(1.0),
        "exp2" | "log10" | "cbrt" | "acosh" | "atanh" => Some(1.0),
        "rsqrt" | "sinh" | "cosh" | "tanh" => Some(1.0),
        "erfc" | "atan2" | "hypot" => Some(2.0),
        "asinh" | "softplus" | "logaddexp" | "logaddexp2" | "xlogy" => Some(2.0),
        _ => None,
    }
}

/// Whether a file's first line is a point, that is, names a function.
pub fn is_points(text: &str) -> bool {
    let first = text.lines().next().and_then(|l| serde_json::from_str::<Value>(l).ok());
    first.is_some_and(|v| v["f"].is_string())
}

/// The points of one function in one dtype; ill-conditioned points form a separate group.
pub struct Points {
    pub function: String,
    pub dtype: DType,
    pub ill_conditioned: bool,
    /// The bytes of each operand's elements.
    pub operands: Vec<Vec<u8>>,
    /// For each point: the correctly rounded result, and the exact result minus it, in ulps.
    pub wanted: Vec<(Vec<u8>, f64)>,
}

impl Points {
    /// Reads a file's lines; the error names the line.
    pub fn read(text: &str) -> Result<Vec<Points>, String> {
        let mut all: Vec<Points> = Vec::new();
        for (i, line) in text.lines().enumerate() {
            Points::add(&mut all, line).ok_or_else(|| format!("line {}: not a point", i + 1))?;
        }
        Ok(all)
    }

    fn add(all: &mut Vec<Points>, line: &str) -> Option<()> {
        let line: Value = serde_json::from_str(line).ok()?;
        let (function, dtype) = (line["f"].as_str()?.to_string(), line["d"].as_str()?.parse::<DType>().ok()?);
        let (x, ill_conditioned) = (line["x"].as_array()?, line["c"] == 1);
        let same = |p: &Points| p.function == function && p.dtype == dtype && p.ill_conditioned == ill_conditioned;
        let at = all.iter().position(same).unwrap_or_else(|| {
            all.push(Points { function, dtype, ill_conditioned, operands: vec![vec![]; x.len()], wanted: vec![] });
            all.len() - 1
        });
        for (to, bits) in all[at].operands.iter_mut().zip(x) {
            to.extend(unhex(bits.as_str()?)?);
        }
        all[at].wanted.push((unhex(line["y"].as_str()?)?, line["e"].as_f64()?));
        Some(())
    }

    /// The op of the function; `None` if castwise lacks it.
    pub fn op(&self) -> Option<Op> {
        Op::from_name(&self.function)
    }

    /// The operands of all points.
    pub fn tensors(&self) -> castwise::Result<Vec<Tensor>> {
        self.operands.iter().map(|b| Tensor::from_bytes(self.dtype, [self.wanted.len()], b)).collect()
    }

    /// For each point, the error of a result in ulps of the correctly rounded result.
    ///
    /// For an ill-conditioned point, the error is in ulps of the larger operand: the result is the difference of that
    /// operand and a term of nearly its size, which is rounded to its digits, so the promise is absolute.
    pub fn errors(&self, ours: &Tensor) -> Vec<f64> {
        let size = self.dtype.size();
        let ours = ours.as_bytes().filter(|_| ours.dtype() == self.dtype).unwrap_or(&[]);
        let error = |(i, (y, rest)): (usize, &(Vec<u8>, f64))| {
            let Some(o) = ours.get(i * size..(i + 1) * size) else { return f64::INFINITY };
            let (o, y) = (real(o), real(y));
            let error = if o == y && o.is_sign_negative() == y.is_sign_negative() {
                rest.abs()
            } else if o.is_finite() && y.is_finite() && !(o == 0.0 && y == 0.0) {
                ((o - y) / ulp(self.dtype, y) - rest).abs()
            } else {
                f64::INFINITY
            };
            let operand = |b: &Vec<u8>| b.get(i * size..(i + 1) * size).map_or(f64::NAN, real);
            let larger = self.operands.iter().map(operand).fold(f64::NEG_INFINITY, f64::max);
            if self.ill_conditioned { error * ulp(self.dtype, y) / ulp(self.dtype, larger) } else { error }
        };
        self.wanted.iter().enumerate().map(error).collect()
    }
}

fn unhex(s: &str) -> Option<Vec<u8>> {
    (0..s.len()).step_by(2).map(|i| u8::from_str_radix(s.get(i..i + 2)?, 16).ok()).collect()
}

/// The value of the bytes of an f32 or f64; NaN for other lengths.
pub fn real(bytes: &[u8]) -> f64 {
    match (bytes.try_into().map(f32::from_le_bytes), bytes.try_into().map(f64::from_le_bytes)) {
        (Ok(narrow), _) => narrow.into(),
        (_, Ok(wide)) => wide,
        _ => f64::NAN,
    }
}

/// The distance from `y` to the next larger number of bf16, f32, or f64 for every other dtype.
pub fn ulp(d: DType, y: f64) -> f64 {
    let (smallest, digits) = match d {
        DType::BF16 => (-126, 7),
        DType::F32 => (-126, 23),
        _ => (-1022, 52),
    };
    let exponent = (y.abs().to_bits() >> 52) as i32 - 1023;
    f64::from(exponent.max(smallest) - digits).exp2()
}
