//! The target `text` of `tests/fuzz_targets`, for libFuzzer.
#![no_main]

#[path = "../../tests/fuzz_targets/mod.rs"]
mod fuzz_targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (_, run) = fuzz_targets::TARGETS.iter().find(|(name, _)| *name == "text").expect("a target of this name");
    run(data);
});
