//! The treatment of results by `eval`: requested dtypes, and results that are refused because of their values.

use castwise::io::{Npz, SafeTensors, read_npy};
use castwise::{Complex, DType, Tensor};

use crate::command::{Dir, half_tensor, noise};

const MERGE: &str = "0.7*a + 0.3*b";
const FILES: [&str; 6] = ["-i", "a=a.safetensors", "-i", "b=b.safetensors", "-o", "c.safetensors"];

fn ids(n: i64) -> Tensor {
    Tensor::from_vec((0..n).collect::<Vec<i64>>(), [n as usize]).unwrap()
}

fn result(dir: &Dir, name: &str) -> Tensor {
    SafeTensors::open(dir.0.join("c.safetensors")).unwrap().load(name).unwrap()
}

fn same(a: &Tensor, b: &Tensor) -> bool {
    (a.dtype(), a.shape(), a.as_bytes()) == (b.dtype(), b.shape(), b.as_bytes())
}

/// Two checkpoints of the same tensors.
fn twins(dir: &Dir, tensors: &[(&str, Tensor)]) {
    dir.checkpoint("a.safetensors", tensors);
    dir.checkpoint("b.safetensors", tensors);
}

#[test]
fn a_float_dtype_converts_floats_and_leaves_integers_and_bools() {
    let dir = Dir::new("out-floats");
    let mask = Tensor::from([true, false, true]);
    twins(&dir, &[("w", half_tensor(1, &[4])), ("position_ids", ids(4096)), ("mask", mask.clone())]);
    let out = dir.eval(&[&[MERGE, "--out-dtype", "bf16"], &FILES[..]].concat()).ok();
    assert!(
        out.stderr
            .contains("--out-dtype bf16 does not convert 2 tensors: `position_ids`, `mask`, which were computed from"),
        "{}",
        out.stderr
    );
    assert_eq!(result(&dir, "w").dtype(), DType::BF16);
    assert!(same(&result(&dir, "position_ids"), &ids(4096)) && same(&result(&dir, "mask"), &mask));

    let files = [&FILES[..], &["--force"]].concat();
    // An integer result is written as computed, and an explicit cast determines the dtype.
    dir.eval(&[&["a - b + 7", "--out-dtype", "bf16", "--skip", "mask"], &files[..]].concat()).ok();
    assert_eq!(result(&dir, "position_ids").to_vec::<i64>().unwrap(), [7; 4096]);
    let map = ["--map", "position_ids=cast(0.7*a + 0.3*b, f32)"];
    dir.eval(&[&[MERGE, "--out-dtype", "bf16"], &map[..], &files[..]].concat()).ok();
    assert_eq!((result(&dir, "position_ids").dtype(), result(&dir, "w").dtype()), (DType::F32, DType::BF16));
    // --out-dtype-all converts every result, and so does --out-dtype with a dtype that is not a float.
    for (dtype, flag) in [("bf16", &["--out-dtype-all"][..]), ("i32", &[])] {
        dir.eval(&[&[MERGE, "--out-dtype", dtype], flag, &files[..]].concat()).ok();
        for name in ["w", "position_ids", "mask"] {
            assert_eq!(result(&dir, name).dtype().name(), dtype, "{name}");
        }
    }
    let out = dir.eval(&[&[MERGE, "--out-dtype-all"], &files[..]].concat());
    assert!(out.code == Some(2) && out.stderr.contains("--out-dtype <DTYPE>"), "{}", out.stderr);
    // A weight does not make a result floating, even if it is a 0-d array; an array with dims does.
    dir.npy("s.npy", &Tensor::scalar(0.5f32));
    dir.npy("v.npy", &Tensor::from([0.5f32]));
    for (weight, expected) in [("s=s.npy", DType::I64), ("s=v.npy", DType::BF16)] {
        let only = ["-i", weight, "--select", "ids", "--out-dtype", "bf16"];
        dir.eval(&[&["s*a + (1 - s)*b"], &only[..], &files[..]].concat()).ok();
        assert_eq!(result(&dir, "position_ids").dtype(), expected, "{weight}");
    }
    // Without --out-dtype, nothing is converted or cast back.
    dir.eval(&[&[MERGE], &files[..]].concat()).ok();
    assert_eq!(result(&dir, "position_ids").dtype(), DType::F32);
}

#[test]
fn integers_that_do_not_come_out_exactly_are_refused_by_name() {
    let dir = Dir::new("out-refused");
    let t = |v: [i64; 3]| Tensor::from(v);
    dir.checkpoint("a.safetensors", &[("w", half_tensor(1, &[4])), ("ids", t([1, 2, 3])), ("step", t([5, 0, 0]))]);
    dir.checkpoint("b.safetensors", &[("w", half_tensor(2, &[4])), ("ids", t([1, 3, 9])), ("step", t([6, 0, 0]))]);
    let stderr = dir.refused(&[&["0.5*a + 0.5*b", "--out-dtype", "bf16"], &FILES[..]].concat());
    for part in [
        "the tensor `ids` was computed from i64 only, so --out-dtype bf16 does not convert it, and 1 of 3 elements in f32 are \
         not exactly i64",
        "the tensor `step` was computed from i64 only",
        "`--map 'ids=a'`",
        "`cast(round(...), i64)`",
        "--out-dtype-all",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    let maps = ["--map", "ids=a", "--map", "step=cast(round(0.5*a + 0.5*b), i64)"];
    dir.eval(&[&["0.5*a + 0.5*b", "--out-dtype", "bf16"], &maps[..], &FILES[..]].concat()).ok();
    assert!(same(&result(&dir, "ids"), &t([1, 2, 3])) && same(&result(&dir, "step"), &t([6, 0, 0])));
    // The result of one array has no name.
    dir.npy("u.npy", &Tensor::from([1u8, 2, 200]));
    let stderr = dir.refused(&["u / 2", "-i", "u=u.npy", "-o", "v.npy", "--out-dtype", "f16"]);
    assert!(stderr.contains("the result was computed from u8 only") && !stderr.contains("--map"), "{stderr}");
    dir.eval(&["cast(u / 2, f16)", "-i", "u=u.npy", "-o", "v.npy", "--out-dtype", "f16"]).ok();
    assert_eq!(read_npy(dir.0.join("v.npy")).unwrap().dtype(), DType::F16);
    dir.eval(&["u / 1", "-i", "u=u.npy", "-o", "w.npy", "--out-dtype", "f16"]).ok();
    assert_eq!(read_npy(dir.0.join("w.npy")).unwrap().to_vec::<u8>().unwrap(), [1, 2, 200]);
}

/// The average of two equal tensors of integers or bools is that tensor or an error, for all values and compute dtypes.
#[test]
fn an_average_of_equal_integers_is_that_integer_or_refused() {
    let dir = Dir::new("out-average");
    let mut all: Vec<(String, Tensor)> = Vec::new();
    macro_rules! add {
        ($($t:ty: $($v:expr),+;)+) => {
            $($(all.push((format!("{}_{}", stringify!($t), all.len()), Tensor::from([$v as $t])));)+)+
        };
    }
    add! {
        bool: false, true;
        u8: 0, 3, 129, 255;
        i8: -128, -3, 127;
        i16: -32768, 257, 2049, 32767;
        i32: i32::MIN, 100, 65505, 1 << 22, (1 << 23) + 1, (1 << 24) - 1, (1 << 24) + 1, 1_000_000_007, i32::MAX;
        i64: i64::MIN, -7, 3, (1 << 24) + 3, (1i64 << 32) + 1, (1i64 << 38) - 1, (1i64 << 50) + 1, (1i64 << 52) + 1,
            (1i64 << 53) + 1, i64::MAX - 1, i64::MAX;
    }
    twins(&dir, &all.iter().map(|(n, t)| (n.as_str(), t.clone())).collect::<Vec<_>>());
    let averages = [MERGE, "(a + b) / 2", "a + 0.3*(b - a)"];
    let (mut exact, mut refused) = (0, 0);
    for (text, default, rules) in [
        (averages[0], "f32", "torch"),
        (averages[0], "f64", "torch"),
        (averages[0], "bf16", "torch"),
        (averages[1], "f16", "torch"),
        (averages[1], "f32", "paddle"),
        (averages[2], "f32", "torch"),
        (averages[2], "f64", "torch"),
    ] {
        for (name, t) in all.iter().filter(|(_, t)| t.dtype() != DType::Bool || text == MERGE) {
            let only = format!("^{name}$");
            let options =
                ["--select", &only, "--default-dtype", default, "--rules", rules, "--out-dtype", "f16", "--force"];
            let out = dir.eval(&[&[text], &options[..], &FILES[..]].concat());
            if out.code == Some(0) {
                let got = result(&dir, name);
                assert!(same(&got, t), "{text} in {default}: {t:?} became {got:?}");
                exact += 1;
            } else {
                assert!(
                    out.code == Some(1) && out.stderr.contains(&format!("the tensor `{name}` was computed from")),
                    "{out:?}"
                );
                refused += 1;
            }
        }
    }
    // Both outcomes occur often.
    assert!(exact > 90 && refused > 40, "{exact} exact, {refused} refused");
}

#[test]
fn a_complex_result_keeps_both_parts() {
    let dir = Dir::new("out-complex");
    let z = Tensor::from([Complex::new(1.0f32, -2.0), Complex::new(0.5, 0.25)]);
    dir.npy("z.npy", &z);
    for (dtype, expected) in [("f32", DType::C64), ("f64", DType::C128), ("c128", DType::C128)] {
        dir.eval(&["z * 1", "-i", "z=z.npy", "-o", "y.npy", "--out-dtype", dtype, "--force"]).ok();
        let got = read_npy(dir.0.join("y.npy")).unwrap();
        assert_eq!(got.dtype(), expected, "{dtype}");
        let wide = Tensor::from([Complex::new(1.0f64, -2.0), Complex::new(0.5, 0.25)]);
        assert!(same(&got, if expected == DType::C64 { &z } else { &wide }));
    }
    let arguments = ["z * 1", "-i", "z=z.npy", "-o", "x.safetensors", "--out-dtype", "bf16"];
    let stderr = dir.refused(&arguments);
    assert!(stderr.contains("no complex dtype with parts of bf16") && stderr.contains("--out-dtype c64"), "{stderr}");
    dir.eval(&[&arguments[..], &["--out-dtype-all"]].concat()).ok();
    dir.eval(&["abs(z)", "-i", "z=z.npy", "-o", "abs.npy", "--out-dtype", "f16"]).ok();
    assert_eq!(read_npy(dir.0.join("abs.npy")).unwrap().dtype(), DType::F16);
}

#[test]
fn values_that_are_not_finite_and_new_are_refused() {
    let dir = Dir::new("finite");
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    dir.checkpoint(
        "a.safetensors",
        &[
            ("large", Tensor::from([1.0f32, 1e5, -1e5, nan])),
            ("mask", Tensor::from([0.0f32, -inf, -inf])),
            ("plain", Tensor::from([1.0f32, 2.0])),
            ("whole", Tensor::from([1i64, 2])),
        ],
    );
    let run = |text: &str, more: &[&str]| {
        dir.eval(&[&[text, "--check", "finite", "-i", "a=a.safetensors", "-o", "c.safetensors"], more].concat())
    };
    for (text, more, told) in [
        ("a", &["--out-dtype", "f16"][..], &["`large`: 0 NaN and 2 infinite of 4 elements"][..]),
        ("a*1e38", &[], &["`large`: 0 NaN and 2 infinite of 4 elements"]),
        // The infinities are not reported, but the NaN of their difference is.
        ("a + 0.5*(a - a)", &[], &["`mask`: 2 NaN and 0 infinite of 3 elements"]),
        (
            "log(a - 1)",
            &[],
            &["`large`: 1 NaN and 1 infinite of 4", "`mask`: 3 NaN", "`plain`: 0 NaN and 1", "`whole`"],
        ),
        ("a - mean(a*1e38*10)", &["--select", "plain"], &["`plain`: 0 NaN and 2 infinite of 2 elements"]),
        ("a*1j/0", &["--select", "plain"], &["`plain`: 2 NaN"]),
    ] {
        let before = dir.names();
        let out = run(text, more);
        assert_eq!((out.code, out.stdout.as_str()), (Some(3), ""), "{text}: {}", out.stderr);
        assert!(told.iter().all(|t| out.stderr.contains(t)), "{text}: {}", out.stderr);
        assert_eq!(out.stderr.matches(" elements").count(), told.len(), "{text}: {}", out.stderr);
        assert_eq!(dir.names(), before);
    }
    for (text, more) in [
        ("a", &[][..]),
        ("a*0.5 - 1", &[]),
        ("a - mean(a)", &["--select", "large"]),
        ("where(isfinite(a), a, 0)", &["--out-dtype", "bf16"]),
        ("a/0", &["--dry-run"]),
    ] {
        run(text, &[more, &["--force"]].concat()).ok();
    }
}

/// All formats, with and without an existing output.
#[test]
fn a_check_that_fails_leaves_what_was_there() {
    let dir = Dir::new("finite-outputs");
    dir.checkpoint("a.safetensors", &[("x", half_tensor(1, &[64])), ("y", Tensor::from([0.0f32; 64]))]);
    dir.npy("y.npy", &Tensor::from([0.0f32; 64]));
    for (input, output) in [
        ("a=a.safetensors", "b.safetensors"),
        ("a=a.safetensors", "b.npz"),
        ("a=a.safetensors", "b.index.json"),
        ("a=y.npy", "b.npy"),
    ] {
        let before = dir.names();
        let arguments = ["1/a", "-i", input, "-o", output, "--check", "finite"];
        let out = dir.eval(&arguments);
        assert!(out.code == Some(3) && out.stderr.contains("no output was written"), "{output}: {}", out.stderr);
        assert_eq!(dir.names(), before, "{output}");
        dir.file(output, b"precious");
        assert_eq!(dir.eval(&[&arguments[..], &["--force"]].concat()).code, Some(3));
        assert_eq!(std::fs::read(dir.0.join(output)).unwrap(), b"precious");
        std::fs::remove_file(dir.0.join(output)).unwrap();
    }
}

#[test]
fn what_goes_back_to_integers_goes_into_archives_too() {
    let dir = Dir::new("out-npz");
    twins(&dir, &[("w", half_tensor(1, &[4])), ("ids", ids(5))]);
    let files = ["-i", "a=a.safetensors", "-i", "b=b.safetensors", "-o", "c.npz"];
    dir.eval(&[&[MERGE, "--out-dtype", "f16"], &files[..]].concat()).ok();
    let mut file = Npz::open(dir.0.join("c.npz")).unwrap();
    assert!(same(&file.load("ids").unwrap(), &ids(5)));
    assert_eq!(file.load("w").unwrap().dtype(), DType::F16);
}

/// `-` as input and output: bytes from standard input, and those of the `.npy` file to standard output.
#[test]
fn an_array_goes_through_pipes() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let dir = Dir::new("pipes");
    let t = Tensor::from_slice(&noise(1, 15), [3, 5]).unwrap();
    dir.npy("x.npy", &t);
    dir.eval(&["x * 2", "-i", "x=x.npy", "-o", "y.npy", "--rules", "torch"]).ok();
    let run = |input: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_castwise"));
        command.args(["eval", "x * 2", "-i", "x=-", "-o", "-", "--rules", "torch"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    };
    let bytes = std::fs::read(dir.0.join("x.npy")).unwrap();
    let out = run(&bytes);
    assert!(out.status.success() && out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(out.stdout == std::fs::read(dir.0.join("y.npy")).unwrap());
    for wrong in [&bytes[..bytes.len() - 1], &[&bytes[..], b"x"].concat(), b"", b"\x93NUMPY"] {
        let out = run(wrong);
        assert!(out.status.code() == Some(1) && out.stdout.is_empty());
        assert!(String::from_utf8_lossy(&out.stderr).starts_with("error: stdin: "));
    }
}
