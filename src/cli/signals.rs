//! The handling of signals that end the command: Ctrl-C (SIGINT), Ctrl-\ (SIGQUIT), `kill` (SIGTERM), a closed terminal
//! (SIGHUP), and a file beyond the size limit of the process (SIGXFSZ).
//!
//! Guarantees: no temporary file remains, and no output appears afterwards. The process ends by that signal, as its
//! parent expects. A file beyond the size limit is a write error instead, as on a full disk. A signal that is ignored
//! when the process starts (`nohup`, a background job) stays ignored. Does not: handle signals on systems other than
//! Unix, where a temporary file may remain.

/// Starts a thread that waits for these signals.
#[cfg(unix)]
pub(super) fn watch() {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
    use signal_hook::flag;
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let ignored = ignored();
    let heard = |s: &i32| ignored >> (s - 1) & 1 == 0;
    if heard(&SIGXFSZ) {
        // With a handler, the write fails with an error, and the temporary file is removed as after any error.
        let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
    let wanted: Vec<i32> = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(heard).collect();
    // If the thread can't be started, the command works without it.
    let Ok(mut signals) = Signals::new(wanted) else { return };
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            castwise::io::remove_temporaries();
            let _ = emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
    };
    let _ = std::thread::Builder::new().name("signals".into()).spawn(wait);
}

/// The ignored signals as a bit mask; 0 if the system does not report them.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(not(unix))]
pub(super) fn watch() {}
