//! The memory that the tensors of a command may take: `--memory`, or what the system has.
//!
//! Does not: measure what a run takes.

use std::path::Path;

/// The least limit: that of a few tiles.
const LEAST: u64 = 1 << 20;

/// A tensor of so many bytes is read in parts although it fits in memory: reading, computing and writing overlap, and ops on lines
/// (sorts and scans) have results of a tile's size instead of the tensor's.
pub(in crate::cli) const LARGE: u64 = 16 << 20;

/// A limit on the memory for tensors.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Budget {
    pub(in crate::cli) bytes: u64,
    /// Whether the user has given it.
    pub(in crate::cli) given: bool,
}

impl Budget {
    /// The given limit; without one half of the memory that this process can still get, if the system says how much that is.
    pub(in crate::cli) fn of(given: Option<u64>) -> Budget {
        match given {
            Some(bytes) => Budget { bytes: bytes.max(LEAST), given: true },
            None => Budget { bytes: available().map_or(u64::MAX, |n| n / 2), given: false },
        }
    }
}

/// The least of what the machine, the control group and the limit of the address space leave.
fn available() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let machine = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let space = word(&limits, "Max address space").map(|n| n.saturating_sub(kib(&status, "VmSize:").unwrap_or(0)));
    let group = Path::new("/sys/fs/cgroup");
    let number = |name: &str| std::fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let group = number("memory.max").map(|most| most.saturating_sub(number("memory.current").unwrap_or(0)));
    [space, group, kib(&machine, "MemAvailable:")].into_iter().flatten().min()
}

/// The first number behind a label at the beginning of a line.
fn word(text: &str, label: &str) -> Option<u64> {
    text.lines().find_map(|l| l.strip_prefix(label))?.split_whitespace().next()?.parse().ok()
}

fn kib(text: &str, label: &str) -> Option<u64> {
    word(text, label).map(|n| n.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_behind_their_labels() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax address space         512000000  unlimited  bytes\n";
        assert_eq!(word(limits, "Max address space"), Some(512_000_000));
        assert_eq!(word("Max address space  unlimited  unlimited\n", "Max address space"), None);
        assert_eq!(kib("VmPeak: 9 kB\nVmSize:\t  12 kB\n", "VmSize:"), Some(12 << 10));
        assert!(Budget::of(Some(7)).given && !Budget::of(None).given);
    }
}
