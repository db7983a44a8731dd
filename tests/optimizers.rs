//! Optimizers: five steps each beside those that PyTorch recorded, results in place, and helpers.

use castwise::prelude::*;
use castwise::{Optimizer, Step, all_finite, clip_by_norm};
use serde_json::Value;

fn tensor(v: &Value) -> Tensor {
    let d: DType = v["dtype"].as_str().unwrap().parse().unwrap();
    let shape: Vec<usize> = v["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let mut bytes = Vec::new();
    for text in v["bits"].as_array().unwrap() {
        let text = text.as_str().unwrap();
        bytes.extend((0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()));
    }
    Tensor::from_bytes(d, shape, &bytes).unwrap()
}

fn numbers(t: &Tensor) -> Vec<f64> {
    let cx = Eager::new(Rules::Torch);
    cx.tensor(t).cast(DType::F64).result().unwrap().to_vec::<f64>().unwrap()
}

/// The square of 300 is beyond f16.
#[test]
fn norms_of_half_gradients_are_f32() {
    for rules in Rules::ALL {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let g = Eager::new(*rules).tensor(&Tensor::from([300.0f64, -400.0])).cast(dtype);
            let (clipped, norm) = clip_by_norm(&[g.clone(), g], 1.0).unwrap();
            let (clipped, norm) = (clipped[1].result().unwrap(), norm.result().unwrap());
            assert_eq!((clipped.dtype(), norm.dtype()), (dtype, dtype.op_math()), "{rules}");
            let near =
                |got: f64, want: f64| assert!((got / want - 1.0).abs() < 0.01, "{rules} {dtype}: {got}, not {want}");
            let of_both = 500.0 * 2f64.sqrt();
            assert_eq!(norm.shape(), &[0; 0]);
            near(numbers(&norm)[0], of_both);
            numbers(&clipped).iter().zip([300.0, -400.0]).for_each(|(got, x)| near(*got, x / of_both));
        }
    }
}

#[test]
fn norms_of_other_gradients() {
    let cx = Eager::new(Rules::Torch);
    let norm = |g: &Var<Eager>| clip_by_norm(std::slice::from_ref(g), 1.0).unwrap().1.result().unwrap();
    let [inf, three] = [f32::INFINITY, 3.0].map(|re| cx.tensor(&Tensor::from([Complex::new(re, 4.0)])));
    assert_eq!([norm(&inf), norm(&three)].map(|n| n.item::<f32>().unwrap()), [f32::INFINITY, 5.0]);
    // 0-d, in its own dtype.
    assert_eq!(norm(&cx.scalar(-0.1, DType::F64)).item::<f64>().unwrap(), 0.1);
    // Strict promotion mixes no dtypes; it is JAX's alone.
    let strict = Settings::new(Rules::Jax).with_strict(true);
    let of = |settings: Settings| Eager::with_settings(settings).tensor(&Tensor::from([3.0f64, 4.0])).cast(DType::F16);
    assert_eq!(norm(&of(strict)).dtype(), DType::F16);
    assert_eq!(norm(&of(strict.with_rules(Rules::Torch))).dtype(), DType::F32);
}

/// The recorded step.
fn step(case: &Value) -> Step {
    let a = &case["attrs"];
    let number = |name: &str, default: f64| a[name].as_f64().unwrap_or(default);
    let yes = |name: &str| a[name] == true;
    let betas = |two: f64| match a["betas"].as_array() {
        Some(all) => (all[0].as_f64().unwrap(), all[1].as_f64().unwrap()),
        None => (0.9, two),
    };
    let name = case["opt"].as_str().unwrap();
    let optimizer = match name {
        "sgd" => Optimizer::Sgd {
            momentum: number("momentum", 0.0),
            dampening: number("dampening", 0.0),
            nesterov: yes("nesterov"),
        },
        "adam" | "adamw" => Optimizer::Adam {
            betas: betas(0.999),
            eps: number("eps", 1e-8),
            amsgrad: yes("amsgrad"),
            decoupled: name == "adamw",
        },
        "adagrad" => Optimizer::Adagrad { eps: number("eps", 1e-10), lr_decay: number("lr_decay", 0.0) },
        "rmsprop" => Optimizer::RmsProp {
            alpha: number("alpha", 0.99),
            eps: number("eps", 1e-8),
            centered: yes("centered"),
            momentum: number("momentum", 0.0),
        },
        "lion" => Optimizer::Lion { betas: betas(0.99) },
        "ema" => Optimizer::Ema { decay: number("decay", 0.999) },
        other => panic!("{other}"),
    };
    let decay = number("weight_decay", if name == "adamw" { 0.01 } else { 0.0 });
    Step::new(optimizer, case["dtype"].as_str().unwrap().parse().unwrap()).weight_decay(decay).maximize(yes("maximize"))
}

#[test]
fn steps_are_those_that_pytorch_recorded() {
    let text = std::fs::read_to_string("tests/golden/optim.jsonl").unwrap();
    let mut beyond = Vec::new();
    for (line, case) in text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()).enumerate() {
        let step = step(&case);
        let (p, d) = (Program::new(Rules::Torch), step.dtype);
        let math = d.op_math();
        let mut old = vec![tensor(&case["param"])];
        let shape = old[0].shape().to_vec();
        let x = p.data("x", d, &shape[..]);
        let g = p.data("g", d, &shape[..]);
        let start = case["attrs"]["initial_accumulator_value"].as_f64().unwrap_or(0.0);
        let mut states = Vec::new();
        for name in step.states() {
            states.push(p.data(name, d, &shape[..]));
            let cx = Eager::new(Rules::Torch);
            old.push(cx.tensor(&old[0]).full_like(start, None).result().unwrap());
        }
        let fed: Vec<Var> = step.numbers().iter().map(|n| p.data(&format!("{n} now"), math, ())).collect();
        let new = step.update(&x, &g, &states, &fed);
        let executor = Executor::new();
        for (t, (given, wanted)) in
            case["grads"].as_array().unwrap().iter().zip(case["steps"].as_array().unwrap()).enumerate()
        {
            let mut feeds = vec![("x".to_string(), old[0].clone()), ("g".to_string(), tensor(given))];
            feeds.extend(step.states().iter().map(|n| n.to_string()).zip(old[1..].iter().cloned()));
            let lr = case["attrs"]["lr"].as_f64().unwrap_or(0.0);
            for (n, v) in step.numbers().iter().zip(step.values(lr, t as u32 + 1)) {
                let v = if math == DType::F64 { Tensor::scalar(v) } else { Tensor::scalar(v as f32) };
                feeds.push((format!("{n} now"), v));
            }
            let named: Vec<(&str, Tensor)> = feeds.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
            old = executor.run(&p, Feeds::from(named), &new).unwrap();
            // From the recorded states on, so that one difference is counted once.
            let mut compare = |name: &str, got: &mut Tensor, want: &Value| {
                let want = tensor(want);
                assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()));
                let tol = &case["tol"];
                let (rtol, atol) = (tol["rtol"].as_f64().unwrap(), tol["atol"].as_f64().unwrap());
                for (g, w) in numbers(got).into_iter().zip(numbers(&want)) {
                    if (g - w).abs() > atol + rtol * w.abs() {
                        beyond.push(format!(
                            "line {}, step {}, {name}: {g}, not {w}: {}",
                            line + 1,
                            t + 1,
                            case["attrs"]
                        ));
                    }
                }
                *got = want;
            };
            compare("param", &mut old[0], &wanted["param"]);
            for (k, name) in step.states().iter().enumerate() {
                if wanted["state"][name].is_object() {
                    compare(name, &mut old[k + 1], &wanted["state"][name]);
                }
            }
        }
    }
    assert!(beyond.is_empty(), "{} values:\n{}", beyond.len(), beyond.join("\n"));
}

/// A step writes over its parameter and states.
#[test]
fn results_go_into_the_feeds() {
    let step =
        Step::new(Optimizer::Adam { betas: (0.9, 0.999), eps: 1e-8, amsgrad: false, decoupled: true }, DType::F32);
    let p = Program::new(Rules::Torch);
    let [x, g, m, v] = ["x", "g", "m", "v"].map(|n| p.data(n, DType::F32, ["n"]));
    let fed: Vec<Var> = step.numbers().iter().map(|n| p.data(n, DType::F32, ())).collect();
    let new = step.update(&x, &g, &[m, v], &fed);
    let executor = Executor::new();
    let prepared = executor.prepare(&p, &new).unwrap();
    let [mut x, mut m, mut v] = [1.0f32, 0.0, 0.0].map(|v| vec![v; 100]);
    let g = vec![0.5f32; 100];
    for t in 1..=3 {
        let values: Vec<f32> = step.values(0.01, t).into_iter().map(|v| v as f32).collect();
        let numbers: Vec<TensorView<'_>> =
            values.iter().map(|v| TensorView::from_slice(std::slice::from_ref(v), []).unwrap()).collect();
        let (x2, m2, v2) = (x.clone(), m.clone(), v.clone());
        let mut feeds = Vec::new();
        for all in [&x2, &g, &m2, &v2] {
            feeds.push(TensorView::from_slice(all, [100]).unwrap());
        }
        feeds.extend(numbers);
        let mut into: Vec<TensorViewMut<'_>> =
            [&mut x, &mut m, &mut v].into_iter().map(|t| TensorViewMut::from_slice(t, [100]).unwrap()).collect();
        prepared.run_views_into(&feeds, &mut into).unwrap();
    }
    assert!((x[0] - 0.97).abs() < 1e-5 && (m[0] - 0.1355).abs() < 1e-5, "{} {}", x[0], m[0]);
}

#[test]
fn steps_with_infinite_gradients_are_skipped() {
    let cx = Eager::new(Rules::Torch);
    let w = cx.tensor(&Tensor::from([1.0f32, 2.0]));
    for (g, want) in [([0.5f32, 1.0], [0.5f32, 1.0]), ([f32::INFINITY, 1.0], [1.0, 2.0]), ([f32::NAN, 1.0], [1.0, 2.0])]
    {
        let g = cx.tensor(&Tensor::from(g));
        let fine = all_finite(std::slice::from_ref(&g)).unwrap();
        assert_eq!(fine.where_(&w - &g, &w).result().unwrap().to_vec::<f32>().unwrap(), want);
    }
}

#[test]
fn bf16_rounded_at_random_stays_beside_the_number() {
    let all = [0.0f32, -0.0, 1.0, -1.0, f32::INFINITY, f32::NAN, 3.0e38, 1.0039, -1.0039, 1e-40];
    let x = Eager::new(Rules::Torch).tensor(&Tensor::from(all));
    for key in 0..50u64 {
        let got = x.stochastic_bf16(key).result().unwrap().to_vec::<bf16>().unwrap();
        for (x, y) in all.iter().zip(got) {
            let (x, y) = (f64::from(*x), y.to_f64());
            let near = x.is_nan() && y.is_nan() || x == y || (x - y).abs() <= (x.abs() / 128.0).max(1e-40);
            assert!(near, "{x} {y}");
        }
    }
}
