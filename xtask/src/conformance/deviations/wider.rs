//! Answers that differ from less accurate ones: they are those of the op in the widest dtype, rounded, or differ by what a
//! formula that cancels loses.

use castwise::Operand;
use castwise::prelude::*;

use super::{Difference, differences, operand, scalar_tensor};
use crate::conformance::case::{Arg, Case, Expected};
use crate::conformance::compare::{elements, epsilon, parts, ulps};
use crate::conformance::run::Answer;

/// Whether the answer is that of the op in f64 or c128, rounded: within two ulps, for floats of 8 and 16 bits within one,
/// for complex numbers within two epsilons of the modulus. Answers of f64 and c128 have no wider dtype.
pub fn as_in_f64(c: &Case, a: &Answer) -> bool {
    let (Ok(got), Expected::Value(want)) = (a, &c.expected) else { return false };
    let d = got.dtype();
    if (want.dtype(), want.shape()) != (d, got.shape()) {
        return false;
    }
    let wide = match d {
        d if d.is_integral() || d.real() == DType::F64 => return false,
        d if d.is_complex() => DType::C128,
        _ => DType::F64,
    };
    let cx = Eager::with_settings(c.settings);
    let operand = |a: &Arg| -> Operand<Eager> {
        match a {
            Arg::Tensor(t, _) => cx.tensor(t).cast(wide).into(),
            Arg::Scalar(s) => cx.tensor(&scalar_tensor(*s)).cast(wide).into(),
        }
    };
    let operands: Vec<Operand<Eager>> = c.args.iter().map(operand).collect();
    let Ok(exact) = castwise::apply(c.op, &operands, c.attrs.clone()).cast(d).result() else { return false };
    let near = |(g, e): (&Vec<u8>, &Vec<u8>)| {
        if !d.is_complex() {
            return ulps(d, g, e) <= if d.size() <= 2 { 1 } else { 2 };
        }
        let ((gr, gi), (er, ei)) = (parts(d, g), parts(d, e));
        g == e || (gr - er).hypot(gi - ei) <= 2.0 * epsilon(d) * er.hypot(ei)
    };
    elements(got).iter().zip(&elements(&exact)).all(near)
}

/// Whether the answer differs by at most an epsilon of x, or the smallest f64: the framework multiplies x by 1 plus a number near -1, which for
/// an infinite x is 0.
pub fn cancels(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let Some((from, x)) = operand(c, 0, got.shape()) else { return false };
    let d = got.dtype();
    let near = |e: &Difference| {
        let (got, want, x) = (parts(d, &e.got).0, parts(d, &e.want).0, parts(from, &x[e.at]).0);
        (got - want).abs() <= (epsilon(d) * x.abs()).max(f64::from_bits(1)) || x.is_infinite() && want.is_nan()
    };
    d.is_float() && all.iter().all(near)
}
