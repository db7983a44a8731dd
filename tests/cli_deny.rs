//! `--deny`: what it refuses and what it accepts, also with parameters that differ by tensor.

use castwise::Tensor;

use crate::command::{Dir, bf16_tensor};

/// Runs a command that must be refused with exit status 3. Returns its message.
fn denied(dir: &Dir, arguments: &[&str]) -> String {
    let before = dir.names();
    let out = dir.eval(arguments);
    assert_eq!((out.code, out.stdout.as_str()), (Some(3), ""), "{arguments:?}: {}", out.stderr);
    assert_eq!(dir.names(), before);
    out.stderr
}

/// Two i64 tensors, with a parameter that is an integer for the first and a float for the second.
fn steps(dir: &Dir) {
    let t = |v: i64| Tensor::from_slice(&[v, 2, 3], [3]).unwrap();
    dir.checkpoint("x.safetensors", &[("a", t(1)), ("b", t(16_777_217))]);
    dir.file("w.json", br#"{"a": 1, ".*": 0.5}"#);
}

#[test]
fn parameters_of_other_categories_are_looked_at_apart() {
    let dir = Dir::new("deny-kinds");
    steps(&dir);
    let files = ["-p", "w=w.json", "-i", "x=x.safetensors", "-o", "o.safetensors"];
    let text = denied(&dir, &[&["x * w", "--deny", "lossy"], &files[..]].concat());
    assert!(text.contains("i64 -> f32 rounds") && text.contains("in the tensor `b`"), "{text}");
    assert!(!text.contains("`a`"), "{text}");

    let out = dir.eval(&[&["x * w", "--explain", "--dry-run"], &files[..]].concat()).ok().stdout;
    let (first, second) = (out.find("`a`:\nresult i64[3]"), out.find("`b`:\nresult f32[3]"));
    assert!(first.is_some() && second > first, "{out}");
    let out = dir.castwise(&["explain", "x * w", "-p", "w=w.json", "-i", "x=x.safetensors", "--numeric"]).ok().stdout;
    let measured: Vec<&str> = out.split("measured on").collect();
    assert_eq!(measured.len(), 3, "{out}");
    assert!(measured[1].contains("result i64") && measured[2].contains("result f32"), "{out}");
}

#[test]
fn values_of_one_category_are_looked_at_apart_where_a_dtype_changes_them() {
    let dir = Dir::new("deny-values");
    let t = Tensor::from([1u8, 2]);
    dir.checkpoint("x.safetensors", &[("a", t.clone()), ("b", t.clone()), ("c", t)]);
    dir.file("w.json", br#"{"b": 300, ".*": 5}"#);
    let files = ["-p", "w=w.json", "-i", "x=x.safetensors", "-o", "o.safetensors"];
    let text = denied(&dir, &[&["x + w", "--deny", "range"], &files[..]].concat());
    assert!(text.contains("300 is 44 in u8 for operand y of add") && text.contains("in the tensor `b`"), "{text}");
}

#[test]
fn scalars_that_do_not_fit_are_refused() {
    let dir = Dir::new("deny-scalars");
    dir.npy("u.npy", &Tensor::from([1u8, 200]));
    dir.npy("x.npy", &Tensor::from([1.0f32, 2.0]));
    let run = |text: &str, level: &str| {
        dir.eval(&[text, "-i", "u=u.npy", "-i", "x=x.npy", "-o", "o.npy", "--deny", level, "--dry-run"])
    };
    for (text, told) in [
        ("u + 300", "300 is 44 in u8"),
        ("u < 300", "300 is 44 in u8"),
        ("where(u > 3, u, -1)", "-1 is 255 in u8"),
        ("x * 1e39", "1e39 is inf in f32"),
    ] {
        for level in ["range", "lossy"] {
            let out = run(text, level);
            assert!(out.code == Some(3) && out.stderr.contains(told), "{text}: {}", out.stderr);
        }
    }
    let out = run("x == 16777217", "lossy");
    assert!(out.code == Some(3) && out.stderr.contains("16777217 is 16777216.0 in f32"), "{}", out.stderr);
    run("x == 16777217", "range").ok();
    for text in ["x * 0.3 + 1e-3", "u + 255", "u * 0.5", "x / 3"] {
        run(text, "lossy").ok();
    }
}

#[test]
fn integers_that_wrap_where_it_does_not_show_are_refused() {
    let dir = Dir::new("deny-wraps");
    dir.npy("u.npy", &Tensor::from([1u8, 200]));
    dir.npy("n.npy", &Tensor::from([1i32, -7]));
    dir.npy("x.npy", &Tensor::from([1.0f32, 2.0]));
    let files = ["-i", "u=u.npy", "-i", "n=n.npy", "-i", "x=x.npy", "-o", "o.npy", "--rules", "torch", "--dry-run"];
    let run = |text: &str, level: &str| dir.eval(&[&[text, "--deny", level], &files[..]].concat());
    for (text, told) in [
        ("(u - 2*u) / (u + 1)", "`sub` may wrap in u8 (needs -255 to 255, has 0 to 255) before f32 takes the value"),
        ("cast(u - 1, f32)", "help: cast an operand first, e.g. `cast(u, i16)`"),
        ("cast((n + 1) * 3, i64)", "help: cast an operand first, e.g. `cast((n + 1), i64)`"),
    ] {
        for level in ["wrap", "range", "lossy"] {
            let out = run(text, level);
            assert!(out.code == Some(3) && out.stderr.contains(told), "{text}: {}", out.stderr);
            assert!(out.stderr.contains("error: integers may wrap in "), "{text}: {}", out.stderr);
        }
    }
    for text in
        ["u * 2", "maximum(u, 3) / 2", "(u * 2 & 15) / 2", "(n * 31) % 64 * 0.5", "cast(u, i16) * 2 / 3", "n * x"]
    {
        run(text, "wrap").ok();
    }
    let out = run("n * x", "lossy");
    assert!(out.code == Some(3) && out.stderr.contains("precision may be lost in 1 place"), "{}", out.stderr);
}

#[test]
fn of_many_places_the_first_are_shown() {
    let dir = Dir::new("deny-many");
    let text = format!("({})/2", vec!["u"; 20_000].join("+"));
    let out = dir.eval(&[&text, "-i", "u=u8[4]", "-o", "o.npy", "--rules", "torch", "--dry-run", "--deny", "wrap"]);
    assert_eq!(out.code, Some(3), "{}", out.stderr);
    assert!(out.stderr.starts_with("error: integers may wrap in 19999 places"), "{}", out.stderr);
    assert!(out.stderr.contains("(and 19899 more)") && out.stderr.len() < 100_000, "{}", out.stderr.len());
}

#[test]
fn reductions_round_and_exact_ops_do_not() {
    let dir = Dir::new("deny-exact");
    dir.npy("b.npy", &Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap());
    dir.checkpoint("a.safetensors", &[("x", bf16_tensor(1, &[2]))]);
    let run = |text: &str| {
        let files = ["-i", "a=a.safetensors", "-i", "b=b.npy", "-o", "o.safetensors"];
        dir.eval(&[&[text, "--deny", "lossy", "--dry-run"], &files[..]].concat())
    };
    for (text, told) in [("mean(a) * b", "`mean` rounds to bf16"), ("abs(a*0.7) + b", "`mul` rounds to bf16")] {
        let out = run(text);
        assert!(out.code == Some(3) && out.stderr.contains(told), "{text}: {}", out.stderr);
        assert!(!out.stderr.contains("`abs`"), "{}", out.stderr);
    }
    // A reduction rounds its result under exact and under relaxed rounding.
    let files = ["-i", "a=a.safetensors", "-i", "b=b.npy", "-o", "o.safetensors", "--rounding", "relaxed"];
    let text = denied(&dir, &[&["mean(a) * b", "--deny", "lossy"], &files[..]].concat());
    assert!(text.contains("`mean` rounds to bf16"), "{text}");
    for text in ["-a + b", "abs(a) + b", "amax(a) * b", "where(b > 1, a, 0.0) + b"] {
        run(text).ok();
    }
}

#[test]
fn a_value_of_no_tensor_refuses_nothing() {
    let dir = Dir::new("deny-none");
    let t = Tensor::from([1.0f32, 2.0]);
    dir.checkpoint("x.safetensors", &[("a", t.clone()), ("b", t)]);
    let run = |text: &str, json: &str| {
        dir.file("w.json", json.as_bytes());
        dir.eval(&[text, "-p", "w=w.json", "-i", "x=x.safetensors", "-o", "o.safetensors", "--dry-run"])
    };
    run("(1/w)*x", r#"{"none": 0, ".*": 0.5}"#).ok();
    // An op that requires a scalar as its last operand.
    run("huber(x, x, w)", r#"{"none": 0, ".*": 0.5}"#).ok();
    let out = run("(1/w)*x", r#"{"b": 0, ".*": 0.5}"#);
    assert_eq!(out.code, Some(1), "{}", out.stderr);
    for part in ["division by zero in a constant", "in the tensor `b`; `w` is 0"] {
        assert!(out.stderr.contains(part), "{}", out.stderr);
    }
    let out = run("(1/w)*x +", r#"{"none": 0, ".*": 0.5}"#);
    assert!(out.code == Some(1) && out.stderr.contains("the expression ends where"), "{}", out.stderr);
}

#[test]
fn a_parameter_is_read_as_a_constant_of_an_expression() {
    let dir = Dir::new("parameters");
    dir.npy("x.npy", &Tensor::from([3.0f32, 6.0]));
    let run = |value: &str| {
        let parameter = format!("w={value}");
        dir.eval(&["x * w", "-p", &parameter, "-i", "x=x.npy", "-o", "o.npy", "--force", "-q"])
    };
    for (value, expected) in
        [("1/3", [1.0f32, 2.0]), ("0x10", [48.0, 96.0]), ("-2", [-6.0, -12.0]), ("1e1", [30.0, 60.0])]
    {
        run(value).ok();
        let got = castwise::io::read_npy(dir.0.join("o.npy")).unwrap();
        assert_eq!(got.to_vec::<f32>().unwrap(), expected, "{value}");
    }
    for (value, told) in [
        ("18446744073709551616", "the integer is beyond the range of u64"),
        ("1/0", "division by zero"),
        ("what", "`what` is neither a number nor a file"),
    ] {
        let out = run(value);
        assert_eq!(out.code, Some(1), "{value}: {}", out.stderr);
        assert!(out.stderr.contains(told) && out.stderr.contains("neither a number"), "{value}: {}", out.stderr);
    }
    dir.file("large.json", br#"{".*": 9223372036854775808}"#);
    let out = run("large.json");
    assert!(out.code == Some(1) && out.stderr.contains("beyond the integers of PyTorch"), "{}", out.stderr);
}
