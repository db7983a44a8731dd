//! The command `castwise`: see `cli`.

mod cli;
mod random;

fn main() -> std::process::ExitCode {
    cli::main()
}
