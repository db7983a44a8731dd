//! Two models trained wholly in castwise: a logistic regression by SGD with momentum, and a curve fit by AdamW. One program computes the loss, its
//! gradients and the step, whose results are the next step's feeds. The losses are those that PyTorch 2.15.0 gave for the same, to 0.1 %.

use castwise::{Optimizer, Step, prelude::*};

/// Steps after which the losses are known.
type Recorded = [(u32, f32)];

/// Trains 0-d parameters, which begin with these values, and prints some losses.
fn train(
    title: &str,
    step: Step,
    lr: f64,
    start: &[f32],
    data: &[(&str, Vec<f32>)],
    loss: impl Fn(&[Var], &[Var]) -> Var,
    recorded: &Recorded,
) -> castwise::Result<Vec<f32>> {
    let p = Program::new(Rules::Torch);
    let inputs: Vec<Var> = data.iter().map(|(name, _)| p.data(name, DType::F32, ["n"])).collect();
    let weights: Vec<Var> = (0..start.len()).map(|i| p.data(&format!("w{i}"), DType::F32, ())).collect();
    let numbers: Vec<Var> = step.numbers().iter().map(|name| p.data(name, DType::F32, ())).collect();

    let loss = loss(&inputs, &weights);
    let gradients = p.gradients(&[&loss], &weights.iter().collect::<Vec<_>>(), &[])?;
    let mut results = vec![loss];
    let mut names: Vec<String> = Vec::new();
    for (i, (w, g)) in weights.iter().zip(&gradients).enumerate() {
        names.push(format!("w{i}"));
        let state = |name: &&str| format!("{name} of w{i}");
        let states: Vec<Var> = step.states().iter().map(|n| p.data(&state(n), DType::F32, ())).collect();
        names.extend(step.states().iter().map(state));
        results.extend(step.update(w, g, &states, &numbers));
    }

    println!("{title}");
    let executor = Executor::new();
    let mut now: Vec<Tensor> = Vec::new();
    for w in start {
        now.push(Tensor::scalar(*w));
        now.extend(step.states().iter().map(|_| Tensor::scalar(0.0f32)));
    }
    let last = recorded.iter().map(|(t, _)| *t).max().unwrap_or(0);
    for t in 1..=last {
        let mut feeds: Vec<(&str, Tensor)> = Vec::new();
        for (name, values) in data {
            feeds.push((name, Tensor::from_slice(values, [values.len()])?));
        }
        feeds.extend(names.iter().map(String::as_str).zip(now.iter().cloned()));
        let values = step.values(lr, t).into_iter().map(|v| Tensor::scalar(v as f32));
        feeds.extend(step.numbers().iter().copied().zip(values));
        let mut out = executor.run(&p, Feeds::from(feeds), &results)?;
        now = out.split_off(1);
        if let Some((_, want)) = recorded.iter().find(|(at, _)| *at == t) {
            let loss = out[0].item::<f32>()?;
            println!("  step {t:3}: loss {loss:.6}, PyTorch {want:.6}");
            assert!((loss - want).abs() <= 1e-3 * want, "{title}, step {t}: {loss}, not {want}");
        }
    }
    now.iter().step_by(1 + step.states().len()).map(Tensor::item).collect()
}

fn main() -> castwise::Result<()> {
    let at = |i: u32, factor: u32, plus: u32| ((i * factor + plus) % 64) as f32 / 32.0 - 1.0;
    let (x0, x1): (Vec<f32>, Vec<f32>) = (0..64).map(|i| (at(i, 37, 0), at(i, 11, 5))).unzip();
    let y = x0.iter().zip(&x1).map(|(a, b)| f32::from(a + 0.5 * b > 0.1)).collect();
    let sgd = Optimizer::Sgd { momentum: 0.9, dampening: 0.0, nesterov: false };
    let weights = train(
        "logistic regression",
        Step::new(sgd, DType::F32),
        0.5,
        &[0.0, 0.0, 0.0],
        &[("x0", x0), ("x1", x1), ("y", y)],
        |x, w| {
            let z = &w[0] * &x[0] + &w[1] * &x[1] + &w[2];
            (z.softplus() - &x[2] * z).mean()
        },
        &[(2, 0.662947), (10, 0.260555), (50, 0.091898), (100, 0.076252)],
    )?;
    println!("  weights {weights:?}");

    let xs: Vec<f32> = (0..64u8).map(|i| f32::from(i) / 16.0 - 2.0).collect();
    let ys = xs.iter().map(|x| 1.5 * (1.2 * x + 0.3).sin()).collect();
    let adam = Optimizer::Adam { betas: (0.9, 0.999), eps: 1e-8, amsgrad: false, decoupled: true };
    let fit = train(
        "a sin(k x + c)",
        Step::new(adam, DType::F32),
        0.05,
        &[1.0, 1.0, 0.0],
        &[("xs", xs), ("ys", ys)],
        |x, w| (&w[0] * (&w[1] * &x[0] + &w[2]).sin()).huber_loss(&x[1], 1.0, Reduction::Mean),
        &[(1, 0.103951), (2, 0.079366), (10, 0.0051127)],
    )?;
    println!("  a, k, c {fit:?}");
    Ok(())
}
