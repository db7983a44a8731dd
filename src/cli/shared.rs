//! The options that `stats` and `diff` share.
//!
//! Does not: measure or print.

use std::path::PathBuf;

use castwise::Executor;
use indicatif::HumanBytes;
use regex::Regex;

use super::failure::Failure;
use super::inputs::Input;
use super::report;
use super::spec::UNNAMED;
use super::stream::{Budget, LARGE};
use super::values::{regex, size};

/// The options that `stats` and `diff` share: which tensors, and the form of the report.
#[derive(clap::Args)]
pub(super) struct Shared {
    /// Only look at tensors whose names match this regular expression anywhere.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    pub(super) select: Option<Regex>,
    /// Do not look at tensors whose names match this regular expression anywhere.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    pub(super) skip: Option<Regex>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Write an HTML page with pictures, which uses no network.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Replace the HTML page if it exists.
    #[arg(short, long, requires = "html")]
    pub(super) force: bool,
    /// Number of threads (default: the number of cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// The memory for the elements of a tensor, or of a pair (default: half of what the system has left). Larger ones are read in
    /// parts, and all from 16 MiB on, with the same results; arrays of .npz files and in Fortran order are read as a whole.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
}

impl Shared {
    /// An executor that keeps no memory of results.
    pub(super) fn executor(&self) -> Executor {
        let builder = Executor::builder().pool(0);
        self.threads.map_or(builder.clone(), |n| builder.threads(n.into())).build()
    }

    /// The memory for parts of tensors.
    pub(super) fn budget(&self) -> Budget {
        Budget::of(self.memory)
    }

    /// Whether tensors of so many bytes are read in parts.
    pub(super) fn in_parts(&self, bytes: u64) -> bool {
        bytes >= self.memory.map_or(LARGE, |_| LARGE.min(self.budget().bytes))
    }

    /// Refuses a tensor that is not read in parts, if it is larger than the memory that was given.
    pub(super) fn refuse(&self, name: &str, bytes: u64, why: &str) -> Result<(), Failure> {
        let Budget { bytes: most, given } = self.budget();
        if !given || bytes <= most {
            return Ok(());
        }
        let (name, bytes, most) = (report::escaped(name), HumanBytes(bytes), HumanBytes(most));
        let text =
            format!("the tensor `{name}` has {bytes}, more than --memory {most}, and is not read in parts: {why}");
        Err(Failure { text: report::error(&text), code: 1 })
    }

    /// The names of an input to look at.
    pub(super) fn selected(&self, input: &Input) -> Result<Vec<String>, Failure> {
        let all = input.names().unwrap_or(vec![UNNAMED]);
        let (select, skip) = (self.select.as_ref(), self.skip.as_ref());
        let wanted = |n: &&&str| select.is_none_or(|r| r.is_match(n)) && !skip.is_some_and(|r| r.is_match(n));
        let names: Vec<String> = all.iter().filter(wanted).map(|n| n.to_string()).collect();
        if names.is_empty() && !all.is_empty() {
            return Err(Failure { text: report::error("--select and --skip select no tensor name"), code: 1 });
        }
        Ok(names)
    }
}
