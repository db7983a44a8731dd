//! The command: input files, output files, what it prints, and its exit status.

use castwise::io::{SafeTensors, read_npy};
use castwise::{DType, Rules, Tensor};

use crate::command::{Dir, bf16_tensor, eager, half_tensor, noise};

const MERGE: &str = "0.7*a + 0.3*b";

#[test]
fn a_merge_of_bf16_and_f16_checkpoints_has_the_bits_of_eager_mode() {
    let dir = Dir::new("merge");
    let shapes: [(&str, &[usize]); 4] = [("w", &[37, 53]), ("layer.0.bias", &[53]), ("scale", &[]), ("none", &[0, 3])];
    let a: Vec<_> = shapes.iter().enumerate().map(|(i, (n, s))| (*n, bf16_tensor(i as u64, s))).collect();
    let b: Vec<_> = shapes.iter().enumerate().map(|(i, (n, s))| (*n, half_tensor(i as u64 + 9, s))).collect();
    dir.checkpoint("a.safetensors", &a);
    dir.checkpoint("b.safetensors", &b);
    let out = dir.eval(&[MERGE, "-i", "a=a.safetensors", "-i", "b=b.safetensors", "-o", "m.safetensors"]).ok();
    assert_eq!(out.stdout, "");
    assert!(out.stderr.contains("--rules torch") && out.stderr.contains("4 tensors: "), "{}", out.stderr);

    let bytes = std::fs::read(dir.0.join("m.safetensors")).unwrap();
    let merged = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(merged.len(), 4);
    for ((name, a), (_, b)) in a.iter().zip(&b) {
        let expected = eager(Rules::Torch, MERGE, &[("a", a), ("b", b)]);
        let got = merged.tensor(name).unwrap();
        assert_eq!(got.dtype(), safetensors::Dtype::F32, "{name}");
        assert_eq!((got.shape(), Some(got.data())), (expected.shape(), expected.as_bytes()), "{name}");
    }
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(header.metadata().as_ref().and_then(|m| m.get("format")).map(String::as_str), Some("pt"));
    assert_eq!(dir.names(), ["a.safetensors", "b.safetensors", "m.safetensors"]);
}

#[test]
fn band_math_on_u8_arrays_has_the_bits_of_eager_mode() {
    let dir = Dir::new("ndvi");
    let bytes = |seed: u64| noise(seed, 600).into_iter().map(|v| (v * 1000.0) as i32 as u8 | 1).collect::<Vec<u8>>();
    let (nir, red) = (Tensor::from_vec(bytes(1), [20, 30]).unwrap(), Tensor::from_vec(bytes(2), [20, 30]).unwrap());
    dir.npy("nir.npy", &nir);
    dir.npy("red.npy", &red);
    let files = ["-i", "nir=nir.npy", "-i", "red=red.npy"];
    // The example of the help text, which has to work for u8 bands too.
    let helped = "(cast(nir, f32) - red) / (nir + cast(red, f32))";
    let help = dir.castwise(&["eval", "--help"]).ok().stdout;
    assert!(help.contains(&format!("'{helped}' -i nir=nir.npy")), "{help}");
    for (text, output) in [
        ("(nir - red) / (nir + red)", "wraps.npy"),
        ("(cast(nir, f32) - red) / (cast(nir, f32) + red)", "ndvi.npy"),
        (helped, "helped.npy"),
    ] {
        let out = dir.eval(&[&[text], &files[..], &["-o", output]].concat()).ok();
        assert!(out.stderr.contains("1 tensor: "), "{}", out.stderr);
        let (got, expected) =
            (read_npy(dir.0.join(output)).unwrap(), eager(Rules::Torch, text, &[("nir", &nir), ("red", &red)]));
        assert_eq!((got.dtype(), got.shape(), got.as_bytes()), (DType::F32, &[20, 30][..], expected.as_bytes()));
    }
    let index = |name: &str| read_npy(dir.0.join(name)).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(index("helped.npy"), index("ndvi.npy"));
    assert!(index("helped.npy").iter().all(|v| (-1.0..=1.0).contains(v)));
}

#[test]
fn a_mistake_in_the_expression_is_shown_with_a_caret_below_it() {
    let dir = Dir::new("caret");
    dir.npy("x.npy", &Tensor::from_slice(&[1.0f32], [1]).unwrap());
    let table = [
        ("x + sqr(x)", "there is no op `sqr`", "    ^^^", Some("did you mean `sqrt`?")),
        ("x + yy", "there is no input `yy`", "    ^^", Some("the inputs are `x`")),
        ("(x + 2", "never closed", "^", None),
        ("x * / 2", "operand is missing", "    ^", None),
        ("1 < x < 2", "do not chain", "      ^", Some("(a < b) & (b < c)")),
        ("-x + (2 // 0)", "only be combined by `+ - * / **`", "      ^^^^^^", None),
    ];
    for (text, message, caret, help) in table {
        let stderr = dir.refused(&[text, "-i", "x=x.npy", "-o", "y.npy"]);
        assert!(stderr.contains(message), "{stderr}");
        assert!(stderr.contains(&format!("1 | {text}\n  | {caret}\n")), "{stderr}");
        assert!(help.is_none_or(|h| stderr.contains(h)), "{stderr}");
    }
}

#[test]
fn a_refused_mix_of_dtypes_is_shown_with_operands_caret_and_help() {
    let dir = Dir::new("mix");
    dir.npy("a.npy", &Tensor::from_slice(&[1i32, 2], [2]).unwrap());
    dir.npy("b.npy", &Tensor::from_slice(&[[0.5f32, 1.5], [2.0, 3.0]].concat(), [2, 2]).unwrap());
    let files = ["-i", "a=a.npy", "-i", "b=b.npy", "-o", "c.npy"];
    let stderr = dir.refused(&[&["2 * (a + b)", "--rules", "paddle"], &files[..]].concat());
    assert!(stderr.contains("1 | 2 * (a + b)\n  |      ^^^^^\n"), "{stderr}");
    assert!(stderr.contains("i32[2]") && stderr.contains("f32[2, 2]") && stderr.contains("help: "), "{stderr}");
    assert!(
        stderr.contains("`--rules torch` and `--rules jax` would give f32") && !stderr.contains("note"),
        "{stderr}"
    );
    let out = dir.eval(&[&["2 * (a + b)", "--rules", "torch"], &files[..]].concat()).ok();
    assert!(!out.stderr.contains("note"), "{}", out.stderr);
}

#[test]
fn tensors_that_do_not_fit_are_named_and_nothing_is_written() {
    let dir = Dir::new("shapes");
    dir.checkpoint(
        "a.safetensors",
        &[("ok", half_tensor(1, &[2])), ("bad", half_tensor(1, &[2, 3])), ("b2", half_tensor(1, &[4, 5]))],
    );
    dir.checkpoint(
        "b.safetensors",
        &[("ok", half_tensor(2, &[2])), ("bad", half_tensor(2, &[2])), ("b2", half_tensor(2, &[3]))],
    );
    let files = ["-i", "a=a.safetensors", "-i", "b=b.safetensors", "-o", "c.safetensors"];
    let stderr = dir.refused(&[&["a + b"], &files[..]].concat());
    for part in
        ["f16[2, 3]", "f16[2]", "in the tensor `bad`", "f16[4, 5]", "in the tensor `b2`", "1 | a + b\n  | ^^^^^\n"]
    {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    assert!(!stderr.contains("`ok`"), "{stderr}");
    // A dtype error is reported once, for all shapes.
    let stderr = dir.refused(&[&["~a"], &files[..]].concat());
    assert!(stderr.matches("error").count() == 1 && stderr.contains("in 3 tensors: "), "{stderr}");
}

#[test]
fn a_dtype_that_castwise_lacks_is_refused_by_tensor_name() {
    let dir = Dir::new("lacks");
    let header = r#"{"x":{"dtype":"F8_E8M0","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}"#;
    dir.file("a.safetensors", &[&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[1, 2, 3, 4]].concat());
    let stderr = dir.refused(&["a * 2", "-i", "a=a.safetensors", "-o", "b.safetensors"]);
    assert!(stderr.contains("a.safetensors: the tensor `x` is F8_E8M0"), "{stderr}");
}

#[test]
fn a_fault_in_the_data_names_tensor_and_place_and_leaves_no_file() {
    let dir = Dir::new("fault");
    dir.checkpoint(
        "a.safetensors",
        &[("good", Tensor::full([2], 1i32).unwrap()), ("zero", Tensor::zeros(DType::I32, [2]).unwrap())],
    );
    let stderr = dir.refused(&["a + 7 // a", "-i", "a=a.safetensors", "-o", "b.safetensors"]);
    assert!(stderr.contains("division by zero") && stderr.contains("in the tensor `zero`"), "{stderr}");
    assert!(stderr.contains("1 | a + 7 // a\n  |     ^^^^^^\n"), "{stderr}");
}

#[test]
fn broken_files_are_named_and_leave_no_output() {
    let dir = Dir::new("broken");
    dir.npy("good.npy", &Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap());
    let npy = std::fs::read(dir.0.join("good.npy")).unwrap();
    dir.file("short.npy", &npy[..npy.len() - 1]);
    dir.file("long.npy", &[&npy[..], &[0]].concat());
    dir.file("empty.npy", b"");
    dir.file("magic.npy", b"\x93NUMPX\x01\x00 and more of it");
    dir.file("header.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr': '<f8', 'shape': (65536, 65536)}");
    let file = |header: &str, data: usize| {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; data][..]].concat()
    };
    let x = |at: &str| format!(r#""dtype":"F32","shape":[1],"data_offsets":[{at}]"#);
    dir.file("overlap.safetensors", &file(&format!("{{\"x\":{{{}}},\"y\":{{{}}}}}", x("0,4"), x("2,6")), 6));
    dir.file("twice.safetensors", &file(&format!("{{\"x\":{{{}}},\"x\":{{{}}}}}", x("0,4"), x("0,4")), 4));
    dir.file("header.safetensors", &u64::MAX.to_le_bytes());
    dir.file("json.safetensors", &file("{{{{", 0));
    for bad in dir.names().iter().filter(|n| *n != "good.npy").map(String::as_str).chain(["none.npy"]) {
        let input = format!("x={bad}");
        let stderr = dir.refused(&["x * 2", "-i", &input, "-o", "out.safetensors"]);
        assert!(stderr.contains(&format!("error: {bad}: ")), "{stderr}");
    }
    let stderr = dir.refused(&["x * 2", "-i", "x=good.npy", "-o", "no/such/directory.npy"]);
    assert!(stderr.contains("no/such/directory.npy"), "{stderr}");
}

#[test]
fn an_output_that_exists_is_replaced_by_force_only() {
    let dir = Dir::new("force");
    dir.npy("x.npy", &Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap());
    dir.file("y.npy", b"precious");
    let arguments = ["x * 2", "-i", "x=x.npy", "-o", "y.npy"];
    let stderr = dir.refused(&arguments);
    assert!(stderr.contains("--force"), "{stderr}");
    // If the command fails, the output is not replaced even with --force.
    dir.refused(&["x // 0.0 + cast(x, i32) // 0", "-i", "x=x.npy", "-o", "y.npy", "--force"]);
    assert_eq!(std::fs::read(dir.0.join("y.npy")).unwrap(), b"precious");
    dir.eval(&[&arguments[..], &["--force"]].concat()).ok();
    assert_eq!(read_npy(dir.0.join("y.npy")).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0]);
    let stderr = dir.refused(&["x * 2", "-i", "x=x.npy", "-o", "./x.npy", "--force"]);
    assert!(stderr.contains("also an input"), "{stderr}");
}

#[test]
fn out_dtype_casts_the_result() {
    let dir = Dir::new("out-dtype");
    let x = Tensor::from_slice(&[1.0f32, 2.71875, -3.3], [3]).unwrap();
    dir.npy("x.npy", &x);
    let stderr = dir.refused(&["x * 2", "-i", "x=x.npy", "-o", "y.npy", "--out-dtype", "bf16"]);
    assert!(stderr.contains("NumPy has no bf16") && stderr.contains(".safetensors"), "{stderr}");
    dir.eval(&["x * 2", "-i", "x=x.npy", "-o", "y.safetensors", "--out-dtype", "bf16"]).ok();
    let got = SafeTensors::open(dir.0.join("y.safetensors")).unwrap().load("result").unwrap();
    assert_eq!(got.as_bytes(), eager(Rules::Torch, "cast(x * 2, bf16)", &[("x", &x)]).as_bytes());
    assert_eq!(got.dtype(), DType::BF16);
    dir.eval(&["x", "-i", "x=x.npy", "-o", "z.npy", "--out-dtype", "float16"]).ok();
    assert_eq!(read_npy(dir.0.join("z.npy")).unwrap().dtype(), DType::F16);
}

#[test]
fn the_default_dtype_is_what_integers_divide_to() {
    let dir = Dir::new("default-dtype");
    dir.npy("x.npy", &Tensor::from_slice(&[1i32, 2], [2]).unwrap());
    dir.eval(&["x / 2", "-i", "x=x.npy", "-o", "y.npy", "--default-dtype", "f64"]).ok();
    assert_eq!(read_npy(dir.0.join("y.npy")).unwrap().to_vec::<f64>().unwrap(), [0.5, 1.0]);
}

#[test]
fn an_array_takes_part_in_every_tensor_name() {
    let dir = Dir::new("array");
    let (u, v, s) = (half_tensor(1, &[2, 3]), half_tensor(2, &[3]), Tensor::scalar(0.5f32));
    dir.checkpoint("a.safetensors", &[("u", u.clone()), ("v", v.clone())]);
    dir.npy("s.npy", &s);
    let out = dir
        .eval(&["a * s", "-i", "s=s.npy", "-i", "a=a.safetensors", "-i", "unused=none.npy", "-o", "b.safetensors"])
        .ok();
    assert!(out.stderr.contains("does not use the input `unused`"), "{}", out.stderr);
    let mut file = SafeTensors::open(dir.0.join("b.safetensors")).unwrap();
    for (name, t) in [("u", &u), ("v", &v)] {
        let expected = eager(Rules::Torch, "a * s", &[("a", t), ("s", &s)]);
        let got = file.load(name).unwrap();
        // A 0-d tensor does not widen a tensor with dims.
        assert_eq!((got.dtype(), got.as_bytes()), (DType::F16, expected.as_bytes()), "{name}");
    }
}

#[test]
fn explain_prints_one_program_for_each_mix_of_dtypes_and_ranks() {
    let dir = Dir::new("explain");
    let t = |s: &[usize]| bf16_tensor(1, s);
    dir.checkpoint("a.safetensors", &[("u", t(&[2, 3])), ("v", t(&[4, 5])), ("w", t(&[7]))]);
    dir.npy("b.npy", &half_tensor(1, &[1]));
    let out = dir.eval(&["a + b", "-i", "a=a.safetensors", "-i", "b=b.npy", "-o", "c.safetensors", "--explain"]).ok();
    assert_eq!(out.stdout.matches("program(rules = torch)").count(), 2, "{}", out.stdout);
    for part in ["`u` and 1 like it:", "`w`:", "result f32[2, 3]", "cast bf16 -> f32", "exact"] {
        assert!(out.stdout.contains(part), "{part}: {}", out.stdout);
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    let dir = Dir::new("usage");
    dir.npy("x.npy", &Tensor::scalar(1.0f32));
    dir.checkpoint("a.safetensors", &[("u", half_tensor(1, &[2])), ("v", half_tensor(1, &[2]))]);
    let cases: [&[&str]; 8] = [
        &[],
        &["x"],
        &["x", "-i", "x.npy", "-o", "y.npy"],
        &["x", "-i", "x=x.npy", "-o", "y.npy", "--rules", "julia"],
        &["x", "-i", "x=x.npy", "-o", "y.npy", "--default-dtype", "i32"],
        &["x", "-i", "x=x.npy", "-i", "x=x.npy", "-o", "y.npy"],
        &["x", "-i", "x=x.npy", "-o", "y.txt"],
        &["a", "-i", "a=a.safetensors", "-o", "y.npy"],
    ];
    for arguments in cases {
        let out = dir.eval(arguments);
        assert_eq!(out.code, Some(2), "{arguments:?}: {}", out.stderr);
        assert!(out.stderr.contains("error"), "{arguments:?}: {}", out.stderr);
    }
    assert_eq!(dir.names(), ["a.safetensors", "x.npy"]);
}
