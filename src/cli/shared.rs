//! The options that `stats` and `diff` share.
//!
//! Does not: measure or print.

use std::path::PathBuf;

use castwise::Executor;
use regex::Regex;

use super::failure::Failure;
use super::inputs::Input;
use super::report;
use super::spec::UNNAMED;
use super::values::regex;

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
}

impl Shared {
    /// An executor that keeps no memory of results.
    pub(super) fn executor(&self) -> Executor {
        let builder = Executor::builder().pool(0);
        self.threads.map_or(builder.clone(), |n| builder.threads(n.into())).build()
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
