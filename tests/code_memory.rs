//! The memory of compiled code: code that the cache evicts is freed, and no page is writable and executable at once.
//!
//! `CASTWISE_CYCLES=100000 cargo test --release --test code_memory` is the long run.

#![cfg(target_os = "linux")]

use std::process::Command;

use castwise::prelude::*;

/// The lines of a file under `/proc/self`.
fn lines(name: &str) -> Vec<String> {
    std::fs::read_to_string(format!("/proc/self/{name}")).unwrap().lines().map(str::to_string).collect()
}

/// Resident memory in KiB.
fn resident() -> usize {
    let all = lines("status");
    let line = all.iter().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The `i`-th of many different kernels, whose ops are the digits of `i`.
fn program(mut i: usize) -> (Program, Var) {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [64]);
    let mut y = &x + 1.0;
    while i > 0 {
        y = match i % 6 {
            0 => &y + &x,
            1 => &y - &x,
            2 => &y * &x,
            3 => y.maximum(&x),
            4 => -&y,
            _ => y.abs(),
        };
        i /= 6;
    }
    (p, y)
}

#[test]
fn forgotten_code_is_freed_and_no_page_is_writable_and_executable() {
    if std::env::var_os("CASTWISE_TEST_CHILD").is_none() {
        // Each code generator has its own process, without the memory of other tests.
        for level in ["baseline", "avx2", "avx512"] {
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--nocapture", "--test-threads=1"])
                .envs([("CASTWISE_TEST_CHILD", "1"), ("CASTWISE_CPU", level)])
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
            assert!(child.status.success() && text.contains("cycles"), "{level}: {text}");
            text.lines().filter(|l| l.contains("cycles")).for_each(|l| println!("{level}: {l}"));
        }
        return;
    }
    let few = if cfg!(debug_assertions) { 1500 } else { 10_000 };
    let cycles = std::env::var("CASTWISE_CYCLES").map_or(few, |n| n.parse().unwrap());
    let exe = Executor::builder().cache(16).threads(1).build();
    let x = Tensor::full([64], 2.0f32).unwrap();
    let (mut early, mut regions) = (0, 0);
    for i in 0..cycles {
        let (p, y) = program(i);
        exe.run(&p, feeds! { "x" => &x }, [&y]).unwrap();
        if i % 500 == 499 {
            let maps = lines("maps");
            assert!(!maps.iter().any(|l| l.contains("rwx")), "{maps:#?}");
            if i == 999 {
                (early, regions) = (resident(), maps.len());
                assert!(maps.iter().any(|l| l.contains("r-xp") && l.ends_with(" 0 ")), "no compiled code: {maps:#?}");
            }
        }
    }
    let (late, now) = (resident(), lines("maps").len());
    println!("{cycles} cycles: {early} KiB after 1000, {late} KiB at the end; {regions} and {now} regions");
    // Not every program is compiled, since some digits give equal kernels.
    assert!(exe.compiles() as usize > cycles / 2, "{} of {cycles} compiled", exe.compiles());
    assert!(late < early + 8 * 1024 && now < regions + 64, "{early} KiB, {late} KiB; {regions}, {now} regions");
}
