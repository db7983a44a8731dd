//! Development tools for castwise: `cargo run --release -p xtask -- NAME …`.
//!
//! Each tool's file documents its arguments. Does not: contain anything for users; examples are in `examples/`, tests
//! in `tests/`.

use std::process::ExitCode;

mod accuracy;
mod conformance;
mod fuzz;
mod points;
mod stop_time;
mod sweep;

#[path = "../../tests/fuzz_targets/mod.rs"]
mod fuzz_targets;
#[path = "../../src/base/random.rs"]
mod random;
#[path = "../../tests/reference/mod.rs"]
mod reference;

/// The tools' names, with a line about each.
const TOOLS: &str = "\
accuracy     errors of the elementary functions at points with exact results
conformance  recorded answers of the frameworks
fuzz         the fuzz targets on mutations of their corpus
stop_time    how long a run goes on after it was cancelled
sweep        the functions of f32 on all values";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    let done = match name.as_str() {
        "accuracy" => accuracy::main(args),
        "conformance" => return conformance::main(args),
        "fuzz" => return fuzz::main(args),
        "stop_time" => stop_time::main(args).map_err(Into::into),
        "sweep" => sweep::main(args),
        _ => {
            eprintln!("error: no tool `{name}`\nusage: cargo run --release -p xtask -- NAME …\n{TOOLS}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}
