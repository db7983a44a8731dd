//! The command `castwise`, which the module `cli` implements.

mod cli;
#[path = "base/random.rs"]
mod random;

fn main() -> std::process::ExitCode {
    cli::status(std::env::args_os()).into()
}
