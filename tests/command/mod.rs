//! Shared code of the command's tests: a directory, files in it, and runs of the command.
#![allow(dead_code, reason = "each test file uses a part of it")]

#[cfg(unix)]
pub mod signals;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use castwise::expr::parse_expression;
use castwise::io::{Existing, SafeTensorsWriter, write_npy};
use castwise::{Eager, Rules, Settings, Tensor};
use half::{bf16, f16};

/// The directory of one test.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new(name: &str) -> Dir {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    pub fn npy(&self, name: &str, t: &Tensor) {
        write_npy(self.0.join(name), t, Existing::Replace).unwrap();
    }

    pub fn checkpoint(&self, name: &str, tensors: &[(&str, Tensor)]) {
        let list: Vec<_> = tensors.iter().map(|(n, t)| (n.to_string(), t.dtype(), t.shape().to_vec())).collect();
        let metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
        let mut file = SafeTensorsWriter::create(self.0.join(name), &list, &metadata, Existing::Replace).unwrap();
        for (name, t) in tensors {
            file.write(name, t).unwrap();
        }
        file.finish().unwrap();
    }

    pub fn file(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    /// The names of the files in the directory, with invalid UTF-8 replaced.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut all: Vec<String> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        all.sort();
        all
    }

    /// Runs `castwise eval` in the directory.
    pub fn eval(&self, arguments: &[&str]) -> Outcome {
        self.castwise(&[&["eval"], arguments].concat())
    }

    /// Runs `castwise` in the directory.
    pub fn castwise(&self, arguments: &[&str]) -> Outcome {
        self.run(arguments, &[], None)
    }

    /// Runs `castwise` in the directory, with these environment variables and this standard input.
    pub fn run(&self, arguments: &[&str], environment: &[(&str, &str)], stdin: Option<&[u8]>) -> Outcome {
        let mut command = Command::new(env!("CARGO_BIN_EXE_castwise"));
        command.args(arguments).envs(environment.iter().copied()).current_dir(&self.0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that does not read may have ended. The input fits in the pipe's buffer.
        let _ = child.stdin.take().unwrap().write_all(stdin.unwrap_or_default());
        let out = child.wait_with_output().unwrap();
        Outcome {
            code: out.status.code(),
            stdout: String::from_utf8(out.stdout).unwrap(),
            stderr: String::from_utf8(out.stderr).unwrap(),
        }
    }

    /// Runs `castwise` in the directory with arguments of any bytes, as another user if one is given. It must end
    /// within a minute, in an address space of 2 GiB.
    #[cfg(unix)]
    pub fn bounded(&self, arguments: &[impl AsRef<OsStr>], stdin: Stdio, user: Option<u32>) -> Outcome {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 2097152; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_castwise")]).args(arguments);
        command.current_dir(&self.0).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let mut child = command.spawn().unwrap();
        let (stdout, stderr) = (gather(child.stdout.take()), gather(child.stderr.take()));
        let (start, shown) = (Instant::now(), || arguments.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > Duration::from_secs(60) {
                child.kill().unwrap();
                panic!("{:?} does not end", shown());
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
        assert!(status.code().is_some(), "{:?}: {status}: {stderr}", shown());
        Outcome { code: status.code(), stdout, stderr }
    }

    /// Runs `castwise eval`, which must fail with exit status 1 and leave the directory unchanged.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let before = self.names();
        let out = self.eval(arguments);
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{arguments:?}: {}", out.stderr);
        assert_eq!(self.names(), before, "{arguments:?}");
        out.stderr
    }
}

/// Reads an output stream on a thread while the command runs.
fn gather(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.unwrap().read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A `.safetensors` file of these tensors, each with one u8 element.
pub fn of_bytes(names: impl Iterator<Item = String>) -> Vec<u8> {
    let entry = |(i, name)| format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#, i + 1);
    let entries: Vec<String> = names.enumerate().map(entry).collect();
    let header = format!("{{{}}}", entries.join(","));
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![7; entries.len()]].concat()
}

/// Converts arguments to `OsString`.
pub fn os(arguments: &[&str]) -> Vec<OsString> {
    arguments.iter().map(OsString::from).collect()
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn ok(self) -> Outcome {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }
}

pub fn noise(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 40) as f32 / (1 << 24) as f32 - 0.5) * 4.0
    };
    std::iter::repeat_with(next).take(n).collect()
}

pub fn half_tensor(seed: u64, shape: &[usize]) -> Tensor {
    let v: Vec<f16> = noise(seed, shape.iter().product()).into_iter().map(f16::from_f32).collect();
    Tensor::from_vec(v, shape).unwrap()
}

pub fn bf16_tensor(seed: u64, shape: &[usize]) -> Tensor {
    let v: Vec<bf16> = noise(seed, shape.iter().product()).into_iter().map(bf16::from_f32).collect();
    Tensor::from_vec(v, shape).unwrap()
}

/// Evaluates the expression in eager mode.
pub fn eager(rules: Rules, text: &str, operands: &[(&str, &Tensor)]) -> Tensor {
    let cx = Eager::with_settings(Settings::new(rules));
    let find = |name: &str| operands.iter().find(|(n, _)| *n == name).map(|(_, t)| cx.tensor(t));
    parse_expression(text, find).unwrap().result().unwrap()
}
