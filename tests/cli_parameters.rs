//! Parameter files: the value of each tensor, and files that would need too much memory or time.

use std::process::Stdio;

use castwise::Tensor;
use castwise::io::SafeTensors;

use crate::command::{Dir, half_tensor, of_bytes};

/// A JSON object with these keys, which must not need escapes.
fn object(keys: impl Iterator<Item = String>) -> Vec<u8> {
    let entries: Vec<String> = keys.map(|key| format!("\"{key}\": 2")).collect();
    format!("{{{}}}", entries.join(",\n")).into_bytes()
}

/// A checkpoint of these tensors, each with one element, which is 7.
fn tensors(dir: &Dir, names: &[&str]) {
    dir.file("a.safetensors", &of_bytes(names.iter().map(ToString::to_string)));
}

const OF_A: [&str; 8] = ["eval", "a * w", "-i", "a=a.safetensors", "-p", "w=w.json", "-o", "out.safetensors"];

/// Runs with an address space of 2 GiB. The command must fail; its message is returned.
fn refused(dir: &Dir, more: &[&str]) -> String {
    let before = dir.names();
    let out = dir.bounded(&[&OF_A[..], more].concat(), Stdio::null(), None);
    let said: String = out.stderr.chars().take(3000).collect();
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{said}");
    assert!(out.stderr.len() < 2500, "{} bytes: {said}", out.stderr.len());
    assert_eq!(dir.names(), before);
    out.stderr
}

#[test]
fn a_name_that_is_not_selected_is_no_pattern() {
    let dir = Dir::new("parameters-select");
    tensors(&dir, &["l", "l.1", "l.1.up", "l2"]);
    // `l.1` matches `l.1.up`, but it is the name of another tensor, so its value applies to that one only.
    dir.file("w.json", br#"{"l.1": 3, "up": 5, "l": 1, "2$": 0}"#);
    let value = |name: &str| {
        let out = dir.castwise(&[&OF_A[..], &["-f", "--select", &format!("^{name}$")]].concat()).ok();
        let t = SafeTensors::open(dir.0.join("out.safetensors")).unwrap().load(name).unwrap();
        (t.to_vec::<u8>().unwrap()[0], out.stderr)
    };
    for (name, factor, idle) in [
        ("l", 1, "the keys `up`, `2$` match no tensor's name"),
        (r"l.1", 3, "the keys `up`, `2$` match"),
        ("l.1.up", 5, "the key `2$` matches no tensor's name"),
        ("l2", 0, "the key `up` matches no tensor's name"),
    ] {
        let (got, said) = value(name);
        assert_eq!(got, 7 * factor, "{name}");
        assert!(said.contains(idle), "{name}: {said}");
    }
}

#[test]
fn the_first_pattern_in_the_file_counts() {
    let dir = Dir::new("parameters-order");
    let names: Vec<String> = (0..50).map(|i| format!("layers.{i}.w")).collect();
    dir.file("a.safetensors", &of_bytes(names.iter().cloned()));
    // The first of several matching keys in the order of the file, not in alphabetical order.
    dir.file("w.json", br#"{"s\\.4\\d": 1, "\\.[1-4]\\d?\\.": 2, "w$": 3, "s\\.7": 4, "layers.9.w": 5, ".*": 6}"#);
    dir.castwise(&OF_A).ok();
    let mut file = SafeTensors::open(dir.0.join("out.safetensors")).unwrap();
    for (i, name) in names.iter().enumerate() {
        let factor = match i {
            40..50 => 1,
            1..5 | 10..40 => 2,
            9 => 5,
            _ => 3,
        };
        assert_eq!(file.load(name).unwrap().to_vec::<u8>().unwrap(), [7 * factor], "{name}");
    }
}

#[test]
fn patterns_take_bounded_memory_together() {
    let dir = Dir::new("parameters-large");
    tensors(&dir, &["x", "y"]);
    let words = |i: usize, n: usize| format!("{i}{}", r"\\w".repeat(n));
    for (keys, why) in [
        // Each would compile to hundreds of megabytes of states.
        ((0..400).map(|i| words(i, 4500)).collect::<Vec<_>>(), "are too large when compiled: the limit is 10 MiB"),
        (vec!["(a{1000}){1000}".to_string()], "are too large when compiled"),
        ((0..20_000).map(|i| format!(r"layers\\.{i}\\.mlp")).collect(), "are too large when compiled"),
        // The expression is too long to be parsed.
        (vec![words(0, 32 << 10)], "the regular expression has 65537 bytes: the limit is 16384"),
        (vec!["(".repeat(10_000)], "nor a usable regular expression"),
        (
            vec!["x".to_string(), "[".to_string()],
            "the key `[` is neither a tensor's name nor a usable regular expression",
        ),
    ] {
        dir.file("w.json", &object(keys.into_iter()));
        let said = refused(&dir, &[]);
        assert!(said.contains(why) && said.contains("w.json: the key `"), "{said}");
    }
    // A key that is a tensor's name is never parsed as a pattern. Keys without operators are not limited in number.
    let odd = ["(".repeat(20_000), "[".to_string()];
    dir.file("a.safetensors", &of_bytes(odd.iter().cloned()));
    dir.file("w.json", &object(odd.into_iter().chain((0..50_000).map(|i| format!("layers.{i}.mlp.down_proj.weight")))));
    dir.castwise(&OF_A).ok();
    // Regular expressions on the command line have the same limit.
    let long = "x".repeat(20_000);
    for option in [["--select", &long], ["--skip", &long], ["--map", &format!("{long}=a")]] {
        let out = dir.castwise(&[&OF_A[..], &option].concat());
        assert!(out.code == Some(2) && out.stderr.contains("bytes: the limit is"), "{}", out.stderr);
    }
}

#[test]
fn files_are_small_objects_of_numbers() {
    let dir = Dir::new("parameters-files");
    tensors(&dir, &["x"]);
    let long = "y".repeat(1 << 20);
    for (text, why) in [
        (format!("\"{long}\""), "not a JSON object of names and numbers: invalid type: string"),
        (format!("{{\"x\": \"{long}\"}}"), "expected a number, found the string \"yyy"),
        (format!("{{\"x\": [\"{long}\"]}}"), "expected a number, found an array"),
        ("{\"x\": {}}".to_string(), "found an object"),
        ("{\"x\": null}".to_string(), "found null"),
        (format!("{{\"{long}\": 1, \"{long}\": 2}}"), "occurs twice"),
        (format!("{{\"x\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000)), "recursion limit"),
    ] {
        dir.file("w.json", text.as_bytes());
        let said = refused(&dir, &[]);
        assert!(said.contains(why) && said.contains("w.json: "), "{said}");
    }
    dir.file("w.json", b"{\"x\": 1}\xff");
    assert!(refused(&dir, &[]).contains("not text: byte 8 is not UTF-8"));
    // A sparse file with one byte more than the limit.
    std::fs::File::create(dir.0.join("w.json")).unwrap().set_len((16 << 20) + 1).unwrap();
    assert!(refused(&dir, &[]).contains("w.json: the file has 16777217 bytes, more than the maximum of 16777216"));
    let longest = format!("{{\"x\": 1{}}}", " ".repeat((16 << 20) - 8));
    assert_eq!(longest.len(), 16 << 20);
    dir.file("w.json", longest.as_bytes());
    dir.castwise(&OF_A).ok();
}

#[test]
fn no_output_replaces_what_is_read() {
    let dir = Dir::new("parameters-outputs");
    dir.checkpoint("a.safetensors", &[("x", half_tensor(1, &[8])), ("y", half_tensor(2, &[8]))]);
    dir.npy("b.npy", &Tensor::scalar(1.0f32));
    let json = br#"{".": 2}"#;
    let files = ["w.npz", "w.index.json", "m-00002-of-00002.safetensors"];
    files.iter().for_each(|f| dir.file(f, json));
    std::os::unix::fs::symlink("w.npz", dir.0.join("link.npz")).unwrap();
    for (parameter, output) in [
        (files[0], files[0]),
        (files[0], "./w.npz"),
        (files[0], "link.npz"),
        ("link.npz", files[0]),
        (files[1], files[1]),
        // The parameter file is a shard of the output.
        (files[2], "m.index.json"),
    ] {
        let parameter = format!("w={parameter}");
        for dry in [&[][..], &["--dry-run"]] {
            let of = ["a*w", "-i", "a=a.safetensors", "-p", &parameter, "-o", output, "-f", "--max-shard-size", "16"];
            let size = if output.ends_with("npz") { 2 } else { 0 };
            let said = dir.refused(&[&of[..of.len() - size], dry].concat());
            assert!(said.contains("the output is also an input"), "{said}");
        }
    }
    // The parameter file is an input that the expression does not use.
    dir.checkpoint("n-00001-of-00002.safetensors", &[("x", half_tensor(1, &[8]))]);
    let unused = ["-i", "b=n-00001-of-00002.safetensors", "-o", "n.index.json", "--max-shard-size", "16B", "-f"];
    let said = dir.refused(&[&["a", "-i", "a=a.safetensors"], &unused[..]].concat());
    assert!(said.contains("n-00001-of-00002.safetensors: the output is also an input"), "{said}");
    for f in files {
        assert_eq!(std::fs::read(dir.0.join(f)).unwrap(), json);
    }
}
