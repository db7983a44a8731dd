//! Gradients under rule sets in which ops take other dtypes, or are other ops, than under PyTorch's.

use castwise::prelude::*;

use crate::gradients::run;

/// Parts of real values, and complex values of which the sign is only a step of another rule.
#[test]
fn parts_and_signs_under_every_rule_set() {
    let z = Tensor::from([Complex::new(0.3f64, -1.2), Complex::new(-2.0, 0.5)]);
    let second = |rules: Rules| {
        let p = Program::new(rules);
        let v = p.data("z", DType::C128, [2]);
        let g = p.gradients(&[&v.abs().sum()], &[&v], &[]).unwrap().remove(0);
        let h = p.gradients(&[&(g.real() * g.real().linspace(0.5, 1.5, -1)).sum()], &[&v], &[]).unwrap();
        run(&p, &[("z", z.clone())], &[&h[0]])[0].to_vec::<Complex<f64>>().unwrap()
    };
    // (c - y² conj(c)) / (2 |z|) for y = z / |z|.
    let of = |z: Complex<f64>, c: f64| (c - (z / z.norm()).powi(2) * c) / (2.0 * z.norm());
    let z = z.to_vec::<Complex<f64>>().unwrap();
    let want = [of(z[0], 0.5), of(z[1], 1.5)];
    for rules in Rules::ALL {
        let got = second(*rules);
        assert!(got.iter().zip(want).all(|(g, w)| (g - w).norm() < 1e-12), "{rules}: {got:?}, not {want:?}");
    }
    for rules in [Rules::NumPy, Rules::Jax] {
        let p = Program::new(rules);
        let x = p.data("x", DType::F32, [2]);
        let g = p.gradients(&[&(x.exp().imag() + &x).sum()], &[&x], &[]).unwrap();
        let got = run(&p, &[("x", Tensor::from([1.0f32, 2.0]))], &[&g[0]]).remove(0);
        assert_eq!((got.dtype(), got.to_vec::<f32>().unwrap()), (DType::F32, vec![1.0; 2]), "{rules}");
    }
}

/// The gradient of a real part has the derivatives along both axes as its parts.
#[test]
fn complex_gradients_agree_with_finite_differences() {
    type Function = fn(&Var, &Var) -> Var;
    let all: [(&str, Rules, Function); 4] = [
        ("xlogy", Rules::Jax, |x, y| x.xlogy(y)),
        ("logaddexp2", Rules::Jax, |x, y| x.logaddexp2(y)),
        ("logaddexp", Rules::Jax, |x, y| x.logaddexp(y)),
        // The quotient's integer is 2 + 2i.
        ("remainder", Rules::Paddle, |x, y| (x * 5).remainder(y)),
    ];
    let at = [Complex::new(0.7f64, 0.4), Complex::new(1.3, -0.6)];
    for (name, rules, f) in all {
        let p = Program::with_settings(Settings::new(rules).with_x64(rules == Rules::Jax));
        let [x, y] = ["x", "y"].map(|n| p.data(n, DType::C128, [1]));
        let loss = f(&x, &y).real().sum();
        let g = p.gradients(&[&loss], &[&x, &y], &[]).unwrap();
        let run_at = |at: [Complex<f64>; 2], of: &Var| {
            run(&p, &[("x", Tensor::from([at[0]])), ("y", Tensor::from([at[1]]))], &[of]).remove(0)
        };
        for k in 0..2 {
            let along = |by: Complex<f64>| {
                let [mut up, mut down] = [at; 2];
                (up[k], down[k]) = (at[k] + by, at[k] - by);
                let [up, down] = [up, down].map(|at| run_at(at, &loss).item::<f64>().unwrap());
                (up - down) / (2.0 * by.norm())
            };
            let want = Complex::new(along(Complex::new(1e-6, 0.0)), along(Complex::new(0.0, 1e-6)));
            let got = run_at(at, &g[k]).to_vec::<Complex<f64>>().unwrap()[0];
            assert!((got - want).norm() < 1e-7, "{name}, operand {k}: {got}, not {want}");
        }
    }
}

#[test]
fn strict_promotion_takes_gradients_of_orders() {
    let p = Program::with_settings(Settings::new(Rules::Jax).with_strict(true));
    let x = p.data("x", DType::F32, [4]);
    let g = p.gradients(&[&x.over([0]).k(2).kthvalue()], &[&x], &[]).unwrap();
    let got = run(&p, &[("x", Tensor::from([3.0f32, 1.0, 2.0, 4.0]))], &[&g[0]]);
    assert_eq!(got[0].to_vec::<f32>().unwrap(), [0.0, 0.0, 1.0, 0.0]);
}
