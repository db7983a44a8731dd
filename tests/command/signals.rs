//! Commands that are stopped by signals while they write.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::Dir;

/// For a shell: runs the rest of the line with the default handling of signals, some of which a background shell ignores. A
/// shell can't restore that for its own children.
pub const DEFAULT_SIGNALS: &str =
    if cfg!(target_os = "linux") { "exec env --default-signal=INT,TERM,HUP,QUIT,XFSZ" } else { "exec" };

/// Starts the command by a shell's line that begins with `before`, and waits until it has created its output.
pub fn start(dir: &Dir, before: &str, arguments: &[&str]) -> Child {
    let mut sh = Command::new("sh");
    sh.args(["-c", &format!("{before} \"$0\" \"$@\""), env!("CARGO_BIN_EXE_castwise")]).args(arguments);
    let mut child = sh.current_dir(&dir.0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while !dir.names().iter().any(|n| n.ends_with(".tmp")) {
        if let Some(status) = child.try_wait().unwrap() {
            panic!("it ended: {status}");
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("no output was begun");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

/// Sends a signal, such as `-INT`.
pub fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Waits for a process that was signalled to end.
pub fn ended(mut child: Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
