//! The house rules that a compiler does not check.

use std::fs;
use std::path::{Path, PathBuf};

fn files_under(dir: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.map(|e| e.unwrap().path()) {
        if path.is_dir() {
            files_under(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

fn sources(dirs: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for dir in dirs {
        files_under(&Path::new(env!("CARGO_MANIFEST_DIR")).join(dir), ".rs", &mut found);
    }
    found.sort();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let named = |p: PathBuf| (p.to_string_lossy().replace(root, ""), fs::read_to_string(&p).unwrap());
    found.into_iter().map(named).collect()
}

/// The room of a source file, and the rooms in the order in which they may import: each only from those before it
/// (and from itself).
#[rustfmt::skip]
const ROOMS: &[&str] = &[
    "random", "base", "tensor", "ops", "promotion", "math", "kernels", "graph", "analysis", "syntax", "plan", "backend", "runtime",
    "ops_doc", "io", "interop", "cli", "main",
];

fn room(path: &str) -> &str {
    let inner = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    inner.split('/').next().unwrap_or(inner)
}

#[test]
fn imports_run_one_way() {
    let rank = |r: &str| ROOMS.iter().position(|x| *x == r);
    let mut wrong = Vec::new();
    for (path, text) in sources(&["src"]).iter().filter(|(p, _)| p != "src/lib.rs") {
        let here = room(path);
        let mine = rank(here).unwrap_or_else(|| panic!("{path} is in no room"));
        for line in text.lines().take_while(|l| !l.contains("#[cfg(test)]")) {
            let Some(rest) = line
                .trim_start()
                .strip_prefix("use crate::")
                .or(line.trim_start().strip_prefix("pub(crate) use crate::"))
            else {
                continue;
            };
            let module = rest.split([':', ';', '{']).next().unwrap_or(rest);
            let there = rank(module).unwrap_or_else(|| panic!("{path}: unknown room {module}"));
            if there > mine {
                wrong.push(format!("{path}: {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "imports from a later room:\n{}", wrong.join("\n"));
}

#[test]
fn files_are_at_most_600_lines() {
    for (path, text) in sources(&["src", "tests", "examples", "benches", "xtask"]) {
        assert!(text.lines().count() <= 600, "{path} has {} lines", text.lines().count());
    }
}

#[test]
fn unsafe_lives_in_block_jit_and_host() {
    for (path, text) in sources(&["src"]) {
        let allowed = path.starts_with("src/block") || path.starts_with("src/host") || path == "src/backend/code.rs";
        let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
        assert!(
            allowed || !code.into_iter().any(|l| l.contains("unsafe ") || l.contains("unsafe{")),
            "{path} is unsafe"
        );
    }
}

#[test]
fn sources_have_no_unfinished_marks() {
    let marks = [concat!("todo", "!("), concat!("unimpl", "emented!("), concat!("#[ig", "nore"), concat!("FIX", "ME")];
    for (path, text) in sources(&["src", "tests", "examples", "benches", "xtask"]) {
        for mark in marks {
            assert!(!text.contains(mark), "{path} has {mark}");
        }
        assert!(text.starts_with("//!"), "{path} does not begin by saying what it is");
    }
}

/// The text pages of the root and of `docs/`, by their names.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).collect();
    files_under(&root.join("docs"), ".md", &mut found);
    let pages = found.into_iter().filter(|p| p.extension().is_some_and(|e| e == "md"));
    pages.map(|p| (p.strip_prefix(root).unwrap().to_string_lossy().into(), fs::read_to_string(p).unwrap())).collect()
}

#[test]
fn links_of_pages_lead_to_files() {
    let mut links = 0;
    for (page, text) in pages() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(&page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let file = link.split('#').next().unwrap_or(link);
            if file.contains("://") || file.is_empty() || file.contains(char::is_whitespace) {
                continue;
            }
            links += 1;
            assert!(directory.parent().unwrap().join(file).exists(), "{page} links to {link}");
        }
    }
    assert!(links >= 30, "only {links} links");
}

#[test]
fn pages_with_rust_are_doctests_and_the_readme_links_to_all() {
    let lib = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).unwrap();
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    for (page, text) in pages() {
        let tested = lib.contains(&format!("include_str!(\"../{page}\")"));
        assert!(tested || !text.contains("```rust\n"), "{page} has Rust that no test compiles");
        assert!(page == "README.md" || readme.contains(&format!("]({page})")), "the README does not link to {page}");
    }
    assert!(readme.lines().count() <= 150, "the README has {} lines", readme.lines().count());
}
