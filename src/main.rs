//! The command `castwise`: see `cli`.

mod cli;
#[path = "base/random.rs"]
mod random;

fn main() -> std::process::ExitCode {
    cli::main()
}
