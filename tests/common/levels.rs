//! A test at every CPU level of the machine.
//!
//! The level of a process is read once (`CpuLevel::get`), so each lower level is a child process: the same test of the
//! same program, alone.

use std::process::Command;

use castwise::CpuLevel;

/// Set in children; and for runs that are to have one level, without children of their own.
const CHILD: &str = "CASTWISE_TEST_LEVEL";

/// Whether this process runs a test for [`at_every_level`] at a lower level than the process that started it.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Whether a run checks accesses to memory only (`tests/long.sh memcheck`). Values are not compared then, because valgrind's
/// emulation of fused multiplication loses the signs of zeros.
pub fn only_memory_counts() -> bool {
    std::env::var_os("CASTWISE_MEMCHECK").is_some()
}

/// Runs `work` in this process and in one of each lower level; `test` is the full name of the calling test.
pub fn at_every_level(test: &str, work: impl FnOnce()) {
    work();
    if is_child() {
        return;
    }
    let lower = [(CpuLevel::Avx2, "avx2"), (CpuLevel::Baseline, "baseline")];
    for (level, name) in lower.into_iter().filter(|(level, _)| *level < CpuLevel::get()) {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .envs([(CHILD, name), ("CASTWISE_CPU", name)])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{level:?}: {text}{}", String::from_utf8_lossy(&child.stderr));
        // A name that no test has is no failure by itself.
        assert!(text.contains("1 passed"), "{test} ran no test: {text}");
        println!("{level:?}: {text}");
    }
}
