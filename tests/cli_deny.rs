//! What `--deny` refuses and what it lets pass.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod command;

use castwise::Tensor;
use command::{Dir, bf16_tensor};

/// Runs what must be refused with exit code 3, and gives what is said.
fn denied(dir: &Dir, arguments: &[&str]) -> String {
    let before = dir.names();
    let out = dir.eval(arguments);
    assert_eq!((out.code, out.stdout.as_str()), (Some(3), ""), "{arguments:?}: {}", out.stderr);
    assert_eq!(dir.names(), before);
    out.stderr
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
    // A reduction rounds what it gives under either kind of rounding.
    let files = ["-i", "a=a.safetensors", "-i", "b=b.npy", "-o", "o.safetensors", "--rounding", "relaxed"];
    let text = denied(&dir, &[&["mean(a) * b", "--deny", "lossy"], &files[..]].concat());
    assert!(text.contains("`mean` rounds to bf16"), "{text}");
    for text in ["-a + b", "abs(a) + b", "amax(a) * b", "where(b > 1, a, 0.0) + b"] {
        run(text).ok();
    }
}
