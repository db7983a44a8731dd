//! Runs a test at every CPU level of the machine.
//!
//! The level of a process is read once (`CpuLevel::get`), so each lower level has its own child process, which runs the
//! same test only.

use std::process::Command;

use castwise::CpuLevel;

/// The variable is set in children. It can also be set for a run at one level, which then starts no children.
const CHILD: &str = "CASTWISE_TEST_LEVEL";

/// Whether this process runs a test for [`at_every_level`] at a lower level than its parent.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Whether a run checks accesses to memory only (`tests/long.sh memcheck`). Values are not compared then, because valgrind's
/// emulation of fused multiplication loses the signs of zeros.
pub fn only_memory_counts() -> bool {
    std::env::var_os("CASTWISE_MEMCHECK").is_some()
}

/// Runs `work` in this process and in one process for each lower level. `test` is the full name of the calling test.
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
        // The test harness does not fail if no test has this name.
        assert!(text.contains("1 passed"), "{test} ran no test: {text}");
        println!("{level:?}: {text}");
    }
}
