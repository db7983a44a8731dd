//! The two programs that several benches share, built op by op, as users build them.

use castwise::prelude::*;

/// `((a*b + c)*0.5 - d)*(a + 1.25) + (b - c)*(d*0.125)`: ten operations.
pub fn chain(v: &[Var]) -> Var {
    let [a, b, c, d] = [&v[0], &v[1], &v[2], &v[3]];
    ((a * b + c) * 0.5 - d) * (a + 1.25) + (b - c) * (d * 0.125)
}

/// A program with four f32 placeholders of `n` elements, for [`chain`] and [`line`].
pub fn four(n: usize) -> (Program, Vec<Var>) {
    let p = Program::new(Rules::Torch);
    let vars = ["a", "b", "c", "d"].map(|name| p.data(name, DType::F32, [n])).to_vec();
    (p, vars)
}

/// The constant of operation `i` in the line with this seed.
pub fn line_constant(seed: usize, i: usize) -> f64 {
    0.9 + (seed * 1000 + i) as f64 * 1e-7
}

/// A linear chain of `ops` operations. Its constants depend on `seed`, so no two lines are equal.
pub fn line(v: &[Var], ops: usize, seed: usize) -> Var {
    let mut t = &v[0] * &v[1];
    for i in 1..ops {
        t = match i % 4 {
            0 => t * &v[1],
            1 => t + &v[2],
            2 => t * line_constant(seed, i),
            _ => t - &v[3],
        };
    }
    t
}
