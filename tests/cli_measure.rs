//! `castwise stats` and `diff` against loops over the elements; their pages.

use castwise::{DType, Eager, Rules, Tensor};
use half::{bf16, f16};
use serde_json::Value;

use crate::command::{self, Dir, noise};

/// Noise of many magnitudes with every kind of special value.
fn wild(seed: u64, n: usize) -> Vec<f64> {
    let specials =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e-40, -3e-39, 6e-8, 65520.0, 1e30, 448.0, 460.0];
    let base = noise(seed, n);
    (0..n)
        .map(|i| {
            if i % 7 == 3 {
                specials[i / 7 % specials.len()]
            } else {
                f64::from(base[i]) * 2f64.powi(i as i32 % 40 - 25)
            }
        })
        .collect()
}

/// The tensors of a test by dtype, each with the values that it holds.
fn tensors() -> Vec<(&'static str, Tensor, Vec<f64>, f64)> {
    let n = 5003;
    let v = wild(1, n);
    let f32s: Vec<f32> = v.iter().map(|v| *v as f32).collect();
    let f16s: Vec<f16> = v.iter().map(|v| f16::from_f32(*v as f32)).collect();
    let bf16s: Vec<bf16> = v.iter().map(|v| bf16::from_f32(*v as f32)).collect();
    let i16s: Vec<i16> = (0..n).map(|i| (i as i16).wrapping_mul(12345)).collect();
    let u64s: Vec<u64> = (0..n as u64).map(|i| (i * 7919) % 1000).collect();
    vec![
        ("f64", Tensor::from_slice(&v, [n]).unwrap(), v.clone(), f64::MIN_POSITIVE),
        (
            "f32",
            Tensor::from_slice(&f32s, [n]).unwrap(),
            f32s.iter().map(|v| f64::from(*v)).collect(),
            f64::from(f32::MIN_POSITIVE),
        ),
        ("f16", Tensor::from_slice(&f16s, [n]).unwrap(), f16s.iter().map(|v| v.to_f64()).collect(), 2f64.powi(-14)),
        (
            "bf16",
            Tensor::from_slice(&bf16s, [n]).unwrap(),
            bf16s.iter().map(|v| v.to_f64()).collect(),
            f64::from(f32::MIN_POSITIVE),
        ),
        ("i16", Tensor::from_slice(&i16s, [n]).unwrap(), i16s.iter().map(|v| f64::from(*v)).collect(), 0.0),
        ("u64", Tensor::from_slice(&u64s, [n]).unwrap(), u64s.iter().map(|v| *v as f64).collect(), 0.0),
    ]
}

fn json(dir: &Dir, arguments: &[&str]) -> (Option<i32>, Value) {
    let out = dir.castwise(arguments);
    assert!(out.code.is_some_and(|c| c < 2), "{arguments:?}: {}", out.stderr);
    (out.code, serde_json::from_str(&out.stdout).unwrap())
}

fn of<'v>(all: &'v Value, name: &str) -> &'v Value {
    all["tensors"].as_array().unwrap().iter().find(|t| t["name"] == name).unwrap()
}

fn near(got: &Value, expected: f64, what: &str) {
    let got = got.as_f64().unwrap();
    assert!((got - expected).abs() <= 1e-12 * expected.abs().max(1e-300), "{what}: {got}, expected {expected}");
}

#[test]
fn every_float_dtype_has_numbers_beyond_it() {
    let dir = Dir::new("beyond");
    for d in DType::ALL.into_iter().filter(|d| d.is_float() && *d != DType::F64) {
        let name = format!("{d}.safetensors");
        dir.checkpoint(&name, &[("x", Tensor::from([2.0 * d.float_limits().unwrap()[1], 1.0]))]);
        let (_, stats) = json(&dir, &["stats", &name, "--json", "--target", d.name()]);
        assert_eq!(of(&stats, "x")["outside"]["count"], 1, "{d}");
    }
}

#[test]
fn statistics_are_those_of_a_loop() {
    let dir = Dir::new("statistics");
    let all = tensors();
    dir.checkpoint("x.safetensors", &all.iter().map(|(n, t, ..)| (*n, t.clone())).collect::<Vec<_>>());
    for (target, low, high) in
        [("f16", -65520.0, 65520.0), ("i8", -129.0, 128.0), ("f8e4m3fn", -464.0, 464.0), ("f8e5m2", -61440.0, 61440.0)]
    {
        let (_, stats) = json(&dir, &["stats", "x.safetensors", "--json", "--target", target]);
        for (name, _, v, tiny) in &all {
            let got = of(&stats, name);
            let finite: Vec<f64> = v.iter().copied().filter(|v| v.is_finite()).collect();
            let count = |is: &dyn Fn(&f64) -> bool| Value::from(v.iter().filter(|v| is(v)).count());
            assert_eq!(got["nan"], count(&|v| v.is_nan()), "{name}");
            assert_eq!(got["inf"], count(&|v| v.is_infinite()), "{name}");
            assert_eq!(got["zeros"], count(&|v| *v == 0.0), "{name}");
            assert_eq!(got["subnormals"], count(&|v| *v != 0.0 && v.abs() < *tiny), "{name}");
            // A tie between the largest value and what follows is rounded to even, which is beyond.
            let beyond =
                |v: &f64| v.is_finite() && (*v <= low || *v >= high) && (target != "f8e4m3fn" || v.abs() > 464.0);
            assert_eq!(got["outside"]["count"], count(&beyond), "{name} to {target}");
            let n = finite.len() as f64;
            let mean = finite.iter().sum::<f64>() / n;
            let deviation = (finite.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
            near(&got["mean"], mean, name);
            near(&got["std"], deviation, name);
            let (least, most) = finite.iter().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
            // Printed as the shortest text of the dtype.
            let text = |v: &Value| v.to_string().parse::<f64>().unwrap();
            let rounded = |v: f64| match *name {
                "f32" => f64::from(v as f32),
                "f16" => f16::from_f32(v as f32).to_f64(),
                "bf16" => bf16::from_f32(v as f32).to_f64(),
                _ => v,
            };
            assert_eq!((rounded(text(&got["min"])), rounded(text(&got["max"]))), (least, most), "{name}");
        }
    }
}

/// The least normal numbers are those of the formats' definitions: OCP 8-bit floats, IEEE 754 binary32.
#[test]
fn subnormals_are_below_the_least_normal_number_of_their_dtype() {
    let dir = Dir::new("subnormals");
    let floats = |dtype, least: i32| {
        let (least, below) = (2f64.powi(least), 2f64.powi(least - 1));
        let values = Tensor::from([least, -least, below, -below, below * 1.5, 0.0, -0.0, 1.0, f64::NAN]);
        Eager::new(Rules::Torch).tensor(&values).cast(dtype).result().unwrap()
    };
    let all = [
        ("e4", floats(DType::F8E4M3FN, -6)),
        ("e5", floats(DType::F8E5M2, -14)),
        ("c64", floats(DType::C64, -126)),
        ("i", Tensor::from([1i32, 0, -1])),
    ];
    dir.checkpoint("x.safetensors", &all);
    let (_, stats) = json(&dir, &["stats", "x.safetensors", "--json"]);
    for (name, count) in [("e4", 3), ("e5", 3), ("c64", 3), ("i", 0)] {
        assert_eq!(of(&stats, name)["subnormals"], count, "{name}");
    }
}

#[test]
fn hashes_are_those_of_the_standard() {
    let dir = Dir::new("hashes");
    dir.npy("abc.npy", &Tensor::from(*b"abc"));
    let (_, stats) = json(&dir, &["stats", "abc.npy", "--json"]);
    let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(of(&stats, "result")["sha256"], known);
}

/// The name of two tensors, their values, and the positions of these in the order of their dtype.
type Pair<'n> = (&'n str, Vec<f64>, Vec<f64>, Vec<[i64; 2]>);

/// The position of a float in the order of its dtype, from its bits as a number.
fn ordered(bits: i64, width: u32) -> i64 {
    let sign = 1i64 << (width - 1);
    if bits & sign == 0 { bits } else { -(bits & !sign) }
}

#[test]
fn differences_are_those_of_a_loop() {
    let dir = Dir::new("differences");
    let n = 4001;
    let a = wild(5, n);
    let b: Vec<f64> = a
        .iter()
        .enumerate()
        .map(|(i, v)| if i % 3 == 0 { v * (1.0 + 2f64.powi(-7 - i as i32 % 9)) } else { *v })
        .collect();
    let half = |v: &[f64]| v.iter().map(|v| f16::from_f32(*v as f32)).collect::<Vec<f16>>();
    let single = |v: &[f64]| v.iter().map(|v| *v as f32).collect::<Vec<f32>>();
    let (ha, hb, sa, sb) = (half(&a), half(&b), single(&a), single(&b));
    let both = |f: &[f32], h: &[f16]| {
        [("f32", Tensor::from_slice(f, [n]).unwrap()), ("f16", Tensor::from_slice(h, [n]).unwrap())]
    };
    dir.checkpoint("a.safetensors", &both(&sa, &ha));
    dir.checkpoint("b.safetensors", &both(&sb, &hb));
    let wide = |h: &[f16]| h.iter().map(|v| v.to_f64()).collect::<Vec<f64>>();
    let widened = |f: &[f32]| f.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
    let bits: [Pair<'_>; 2] = [
        (
            "f32",
            widened(&sa),
            widened(&sb),
            sa.iter().zip(&sb).map(|(a, b)| [a, b].map(|v| ordered(v.to_bits().into(), 32))).collect(),
        ),
        (
            "f16",
            wide(&ha),
            wide(&hb),
            ha.iter().zip(&hb).map(|(a, b)| [a, b].map(|v| ordered(v.to_bits().into(), 16))).collect(),
        ),
    ];
    for (absolute, relative) in [(0.0, 0.0), (1e-3, 0.0), (0.0, 1e-3), (1e-4, 1e-2)] {
        let (atol, rtol) = (absolute.to_string(), relative.to_string());
        let (code, diff) =
            json(&dir, &["diff", "a.safetensors", "b.safetensors", "--json", "--atol", &atol, "--rtol", &rtol]);
        let beyond = |t: &Value| t["beyond_tolerance"].as_u64() > Some(0);
        assert_eq!(code, Some(i32::from(diff["tensors"].as_array().unwrap().iter().any(beyond))));
        for (name, a, b, positions) in &bits {
            let got = of(&diff, name);
            let pairs: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
            let differs = |(a, b): &(f64, f64)| !(a == b || a.is_nan() && b.is_nan());
            assert_eq!(got["differ"], Value::from(pairs.iter().filter(|p| differs(p)).count()), "{name}");
            let error = |(a, b): &(f64, f64)| if a == b || a.is_nan() || b.is_nan() { 0.0 } else { (a - b).abs() };
            let most = pairs.iter().map(error).fold(0.0, f64::max);
            let relatively = |(a, b): &(f64, f64)| match error(&(*a, *b)) {
                0.0 => 0.0,
                e if e.is_infinite() => e,
                e => e / a.abs(),
            };
            let most_relative = pairs.iter().map(relatively).fold(0.0, f64::max);
            for (key, expected) in [("max_error", most), ("max_relative_error", most_relative)] {
                match got[key].as_f64() {
                    Some(got) => assert_eq!(got, expected, "{name} {key}"),
                    None => assert!(got[key] == "inf" && expected.is_infinite(), "{name} {key}: {}", got[key]),
                }
            }
            let ok = |p: &(f64, f64)| {
                !differs(p)
                    || error(p).is_finite()
                        && !p.0.is_nan()
                        && !p.1.is_nan()
                        && error(p) <= p.0.abs() * relative + absolute
            };
            assert_eq!(
                got["beyond_tolerance"],
                Value::from(pairs.iter().filter(|p| !ok(p)).count()),
                "{name} {absolute} {relative}"
            );
            let steps = positions.iter().zip(&pairs).filter(|(_, (a, b))| !a.is_nan() && !b.is_nan());
            assert_eq!(got["ulps"], Value::from(steps.map(|([a, b], _)| (a - b).abs()).max().unwrap()), "{name}");
            let finite: Vec<_> = pairs.iter().filter(|(a, b)| a.is_finite() && b.is_finite()).collect();
            let sum = |f: &dyn Fn(&(f64, f64)) -> f64| finite.iter().map(|p| f(p)).sum::<f64>();
            let cosine = sum(&|(a, b)| a * b) / (sum(&|(a, _)| a * a) * sum(&|(_, b)| b * b)).sqrt();
            if cosine.is_finite() {
                near(&got["cosine"], cosine, name);
            }
        }
    }
}

/// In f64, 2^53 + 1 is 2^53.
#[test]
fn integers_are_compared_exactly_across_dtypes() {
    let dir = Dir::new("integers");
    let (far, large) = (1u64 << 53, 1i64 << 60);
    dir.checkpoint(
        "a.safetensors",
        &[
            ("wide", Tensor::from([far as i64 + 1, 5, large])),
            ("signs", Tensor::from([-1i64, i64::MIN, 7])),
            ("small", Tensor::from([true, false, true])),
            ("large", Tensor::from([large, large + 3, 0])),
        ],
    );
    dir.checkpoint(
        "b.safetensors",
        &[
            ("wide", Tensor::from([far, 5, large as u64])),
            ("signs", Tensor::from([u64::MAX, 1 << 63, 7])),
            ("small", Tensor::from([1u64, 0, 2])),
            ("large", Tensor::from([large, large, 0])),
        ],
    );
    for (atol, beyond) in [("0", [1, 2, 1, 1]), ("2", [0, 2, 0, 1]), ("3", [0, 2, 0, 0])] {
        let arguments = ["diff", "a.safetensors", "b.safetensors", "--any-dtype", "--json", "--all", "--atol", atol];
        let (code, diff) = json(&dir, &arguments);
        assert_eq!(code, Some(1));
        let most = [1.0, 2f64.powi(64), 1.0, 3.0];
        for (i, (name, differ)) in [("wide", 1), ("signs", 2), ("small", 1), ("large", 1)].into_iter().enumerate() {
            let got = of(&diff, name);
            assert_eq!(
                (&got["differ"], &got["beyond_tolerance"]),
                (&differ.into(), &beyond[i].into()),
                "{name} {atol}"
            );
            assert_eq!(got["max_error"].as_f64(), Some(most[i]), "{name}");
        }
    }
}

#[test]
fn pages_need_nothing_else_and_run_nothing_from_names() {
    let dir = Dir::new("pages");
    let x = Tensor::from_slice(&noise(1, 64), [64]).unwrap();
    let y = Tensor::from_slice(&noise(2, 64), [64]).unwrap();
    let name = "layers.0.</td><script>alert('{{ROWS}}')</script>\"&";
    dir.checkpoint("a.safetensors", &[(name, x.clone()), ("layers.1.w", x)]);
    dir.checkpoint("b.safetensors", &[(name, y.clone()), ("layers.1.w", y)]);
    dir.castwise(&["stats", "a.safetensors", "--html", "stats.html"]).ok();
    assert_eq!(dir.castwise(&["diff", "a.safetensors", "b.safetensors", "--html", "diff.html"]).code, Some(1));
    for page in ["stats.html", "diff.html"] {
        let text = std::fs::read_to_string(dir.0.join(page)).unwrap();
        assert_eq!(text.matches("<script").count(), 1, "{page}");
        assert!(text.contains("layers.0.&lt;/td&gt;&lt;script&gt;alert(\\&#39;{{ROWS}}\\&#39;)"), "{page}");
        assert!(text.contains("default-src 'none'") && !text.contains("://") && !text.contains("src="), "{page}");
        assert!(text.contains("<svg") && text.contains("data-sort=") && text.matches("<tr>").count() == 3, "{page}");
        // Pictures have no order to sort by.
        assert!(text.contains("<th scope=\"col\"><button>") && !text.contains("<button>exponents"), "{page}");
    }
}

/// A click on the head of a column sorts the rows, a second one the other way. Without a browser nothing is tested.
#[test]
fn a_click_sorts_the_rows() {
    let Some(browser) = browser() else { return };
    let dir = Dir::new("sorted");
    let of = |v: f32| Tensor::from_slice(&[v], [1]).unwrap();
    let tensors = |by: [f32; 4]| ["l.1.w", "l.10.w", "l.2.w", "l.3.w"].into_iter().zip(by.map(of)).collect::<Vec<_>>();
    dir.checkpoint("a.safetensors", &tensors([1.0; 4]));
    dir.checkpoint("b.safetensors", &[&tensors([3.0, f32::INFINITY, 1.5, 1.0])[..], &[("new", of(1.0))]].concat());
    assert_eq!(dir.castwise(&["diff", "a.safetensors", "b.safetensors", "--html", "diff.html"]).code, Some(1));
    let page = std::fs::read_to_string(dir.0.join("diff.html")).unwrap();
    let script = "<script>
const names = () => [...document.querySelectorAll('tbody tr')].map((r) => r.cells[0].textContent).join(' ');
const seen = [];
for (const column of [4, 4, 0, 0]) {
  document.querySelectorAll('th')[column].querySelector('button').click();
  seen.push(names());
}
document.title = seen.join('|');
</script></body>";
    std::fs::write(dir.0.join("driven.html"), page.replace("</body>", script)).unwrap();
    let out = std::process::Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", dir.0.join("profile").display()))
        .arg(format!("file://{}", dir.0.join("driven.html").display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&out.stdout);
    let title = dom.split("<title>").nth(1).and_then(|t| t.split("</title>").next()).unwrap();
    let by_error = ["l.10.w l.1.w l.2.w l.3.w new", "l.3.w l.2.w l.1.w l.10.w new"];
    let by_name = ["l.1.w l.2.w l.3.w l.10.w new", "new l.10.w l.3.w l.2.w l.1.w"];
    assert_eq!(title.split('|').collect::<Vec<_>>(), [by_error, by_name].concat());
}

/// A browser, if there is one.
fn browser() -> Option<std::path::PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).flat_map(|dir| names.map(|n| dir.join(n))).find(|p| p.is_file())
}

#[test]
fn thousands_of_tensors_make_a_page_of_bounded_size() {
    let dir = Dir::new("many-measured");
    dir.file("m.safetensors", &command::of_bytes((0..20_000).map(|i| format!("layers.{i}.w"))));
    dir.castwise(&["stats", "m.safetensors", "--html", "stats.html"]).ok();
    assert_eq!(dir.castwise(&["diff", "m.safetensors", "m.safetensors", "--html", "diff.html"]).code, Some(0));
    for page in ["stats.html", "diff.html"] {
        let text = std::fs::read_to_string(dir.0.join(page)).unwrap();
        assert!(text.contains("15000 more tensors are not shown") && text.len() < 20_000_000, "{page}: {}", text.len());
    }
}
