//! What happens when the command is told to end: by Ctrl-C (SIGINT), by Ctrl-\ (SIGQUIT), by `kill` (SIGTERM), by a
//! terminal that is closed (SIGHUP); and when a file would pass the limit of the process (SIGXFSZ).
//!
//! Guarantees: no temporary file is left; no output appears afterwards; the process ends by that signal, as its
//! parent expects. A file that would grow too large is an error of the write instead, as on a full disk. A signal that
//! the process was started to ignore (`nohup`, a background job) stays ignored.
//! Does not: act on other systems than Unix, where a temporary file may be left.

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
        // Once something handles it, the write goes on to fail with what it is, and the file is removed on the way out.
        let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
    let wanted: Vec<i32> = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(heard).collect();
    // Without the thread the command works all the same.
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

/// The signals that are ignored, as a set of bits, where the system tells.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(not(unix))]
pub(super) fn watch() {}
