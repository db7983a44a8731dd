//! The command's outputs under external failures: it is killed at any moment, two commands write at once, or the output
//! can't be written. `src/io/tests/faults.rs` tests errors while a file is written.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use castwise::Tensor;

use crate::command::{Dir, bf16_tensor, half_tensor};

/// Two checkpoints with a total of some megabytes.
fn checkpoints(dir: &Dir) {
    let names = ["embed", "0.weight", "1.weight", "2.weight", "head"];
    let make = |t: fn(u64, &[usize]) -> Tensor, seed| -> Vec<(&str, Tensor)> {
        names.iter().enumerate().map(|(i, n)| (*n, t(seed + i as u64, &[300, 500 + i]))).collect()
    };
    dir.checkpoint("a.safetensors", &make(bf16_tensor, 1));
    dir.checkpoint("b.safetensors", &make(half_tensor, 9));
}

fn merge(dir: &Dir, output: &str, more: &[&str]) -> Child {
    let arguments = ["eval", "0.7*a + 0.3*b", "-i", "a=a.safetensors", "-i", "b=b.safetensors", "-o", output];
    let mut command = Command::new(env!("CARGO_BIN_EXE_castwise"));
    command.args(arguments).args(more).current_dir(&dir.0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The contents of a file, if it exists.
type Content = Option<Vec<u8>>;

/// The outputs; the one that is published last is at the end.
fn contents(dir: &Dir, files: &[&str]) -> Vec<Content> {
    files.iter().map(|f| std::fs::read(dir.0.join(f)).ok()).collect()
}

fn temporaries(dir: &Dir) -> usize {
    dir.names().iter().filter(|n| n.ends_with(".tmp")).count()
}

/// Kills merges at moments spread over the duration of one merge; `prepare` sets the outputs up before each. Returns
/// how many were killed before they ended.
fn kill(dir: &Dir, files: &[&str], more: &[&str], runs: u32, prepare: &dyn Fn(), sound: &dyn Fn(&[Content])) -> u32 {
    let output = files.last().unwrap();
    let began = Instant::now();
    assert!(merge(dir, output, more).wait().unwrap().success());
    let whole = began.elapsed();
    let mut killed = 0;
    for i in 0..runs {
        prepare();
        let before = temporaries(dir);
        let mut child = merge(dir, output, more);
        let moment = whole * i / runs;
        if i % 2 == 0 {
            std::thread::sleep(moment);
        } else {
            // Waits until the command writes.
            while temporaries(dir) == before && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_micros(200));
            }
            std::thread::sleep(moment / 4);
        }
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        sound(&contents(dir, files));
    }
    // The files that killed commands left do not disturb a later run.
    prepare();
    assert!(merge(dir, output, more).wait().unwrap().success());
    killed
}

#[test]
fn an_output_is_absent_or_whole_whenever_the_command_is_killed() {
    let dir = Dir::new("killed");
    checkpoints(&dir);
    assert!(merge(&dir, "right.safetensors", &[]).wait().unwrap().success());
    let right = contents(&dir, &["right.safetensors"]).remove(0);
    let remove = || drop(std::fs::remove_file(dir.0.join("m.safetensors")));
    let killed = kill(&dir, &["m.safetensors"], &["--force"], 60, &remove, &|now| {
        assert!(now[0].is_none() || now[0] == right, "half a file");
    });
    // The output replaces an older file: afterwards it is either the old or the new one.
    let old = || dir.file("m.safetensors", b"old");
    let more = kill(&dir, &["m.safetensors"], &["--force"], 30, &old, &|now| {
        assert!(now[0].as_deref() == Some(b"old") || now[0] == right, "half a file");
    });
    assert!(contents(&dir, &["m.safetensors"])[0] == right);
    println!("{killed} of 60 and {more} of 30 killed, {} temporary files left", temporaries(&dir));
    // The first run of each series is killed immediately.
    assert!(killed > 0 && more > 0);
}

#[test]
fn an_index_speaks_of_its_own_shards_whenever_the_command_is_killed() {
    let dir = Dir::new("killed-shards");
    checkpoints(&dir);
    let shards: Vec<String> = (1..=5).map(|i| format!("m-{i:05}-of-00005.safetensors")).collect();
    let files: Vec<&str> = shards.iter().map(String::as_str).chain(["m.safetensors.index.json"]).collect();
    let size = ["--max-shard-size", "700KB", "--force"];
    assert!(merge(&dir, files[5], &size).wait().unwrap().success());
    let right = contents(&dir, &files);
    assert!(right.iter().all(Option::is_some));
    // An older checkpoint with the same file names.
    let old: Vec<Vec<u8>> = right.iter().flatten().map(|f| f.iter().map(|b| b ^ 1).collect()).collect();
    let prepare = || files.iter().zip(&old).for_each(|(f, bytes)| dir.file(f, bytes));
    let killed = kill(&dir, &files, &size, 40, &prepare, &|now| {
        let is_old = now.iter().zip(&old).all(|(now, old)| now.as_ref() == Some(old));
        assert!(now[5].is_none() || is_old || *now == right, "an index without its shards");
        for ((now, old), right) in now.iter().zip(&old).zip(&right).take(5) {
            assert!(now.as_ref() == Some(old) || now == right, "half a shard");
        }
    });
    assert!(contents(&dir, &files) == right);
    println!("{killed} of 40 killed, {} temporary files left", temporaries(&dir));
    assert!(killed > 0);
}

#[test]
fn of_two_commands_with_one_output_one_has_it() {
    let dir = Dir::new("two");
    checkpoints(&dir);
    assert!(merge(&dir, "right.safetensors", &[]).wait().unwrap().success());
    let right = contents(&dir, &["right.safetensors"]);
    for _ in 0..5 {
        let mut both = [merge(&dir, "m.safetensors", &[]), merge(&dir, "m.safetensors", &[])];
        let mut codes = both.each_mut().map(|c| c.wait().unwrap().code());
        codes.sort_unstable();
        assert_eq!(codes, [Some(0), Some(1)]);
        assert!(contents(&dir, &["m.safetensors"]) == right);
        std::fs::remove_file(dir.0.join("m.safetensors")).unwrap();
    }
    assert_eq!(temporaries(&dir), 0);
}

#[test]
fn where_nothing_can_be_written_the_output_is_named() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = Dir::new("nowhere");
    checkpoints(&dir);
    dir.file("file", b"");
    std::fs::create_dir(dir.0.join("taken.safetensors")).unwrap();
    symlink("absent/absent", dir.0.join("dangling")).unwrap();
    symlink("loop", dir.0.join("loop")).unwrap();
    std::fs::create_dir(dir.0.join("closed")).unwrap();
    std::fs::set_permissions(dir.0.join("closed"), std::fs::Permissions::from_mode(0o555)).unwrap();
    let mut outputs = vec!["absent/m.safetensors", "file/m.npz", "dangling/m.safetensors", "loop/m.safetensors"];
    outputs.push("taken.safetensors");
    // The superuser may write to any directory on a disk, but not to a directory of the kernel.
    if std::fs::write(dir.0.join("closed/probe"), b"").is_err() {
        outputs.extend(["closed/m.safetensors", "closed/m.npz", "closed/m.index.json"]);
    } else {
        std::fs::remove_file(dir.0.join("closed/probe")).unwrap();
    }
    if cfg!(target_os = "linux") {
        outputs.extend(["/proc/m.safetensors", "/proc/m.npz", "/proc/m.index.json"]);
    }
    let inputs = ["-i", "a=a.safetensors", "-i", "b=b.safetensors"];
    for output in outputs {
        let stderr = dir.refused(&[&["a + b"], &inputs[..], &["--force", "-o", output]].concat());
        assert!(stderr.contains(&format!("error: {output}")), "{stderr}");
        assert_eq!(dir.names().len(), 7, "{output}");
    }
    assert!(std::fs::read_dir(dir.0.join("closed")).unwrap().next().is_none());
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_stdout_is_an_error() {
    for arguments in [&["table", "add"][..], &["man"], &["completions", "bash"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let out = Command::new(env!("CARGO_BIN_EXE_castwise")).args(arguments).stdout(full).output().unwrap();
        let stderr = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.contains("stdout: No space left"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn names_of_files_do_nothing_to_a_terminal() {
    let dir = Dir::new("names");
    let name = "a\u{1b}[2J\u{202e}.safetensors";
    dir.file(name, b"broken");
    for arguments in [
        &["a", "-i", &format!("a={name}"), "-o", "b.safetensors"][..],
        &["a", "-i", &format!("a=none{name}"), "-o", "b.safetensors"],
        &["a", "-i", &format!("a={name}"), "-o", name],
        &["a", "-i", "a=\u{1b}[2J.txt", "-o", "b.safetensors"],
    ] {
        let out = dir.eval(arguments);
        assert!(out.code == Some(1) || out.code == Some(2), "{arguments:?}");
        assert!(!out.stderr.contains(['\u{1b}', '\u{202e}']) && out.stderr.contains("\\u{1b}[2J"), "{}", out.stderr);
    }
}

#[test]
fn a_program_that_is_no_text_is_refused() {
    let dir = Dir::new("not-text");
    dir.file("p.cw", b"castwise 1 program(rules = torch) (%\xff: f32[]) { }");
    dir.file("empty.cw", b"");
    for name in ["p.cw", "empty.cw"] {
        for command in ["fmt", "explain", "run"] {
            let out = dir.castwise(&[command, name]);
            assert!(matches!(out.code, Some(1 | 2)), "{command} {name}: {:?} {}", out.code, out.stderr);
            assert!(out.stderr.contains("error") && out.stdout.is_empty(), "{command} {name}: {}", out.stderr);
        }
    }
}
