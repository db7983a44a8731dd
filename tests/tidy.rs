//! Rules of the source tree that the compiler does not check.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use imports::{Imports, module_of};

mod imports;
mod lists;

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

/// The folders of `src/` in import order: each may import only from itself and from those before it.
#[rustfmt::skip]
const FOLDERS: &[&str] = &[
    "base", "tensor", "ops", "promotion", "math", "kernels", "ssa", "graph", "analysis", "picture", "gradients",
    "syntax", "plan", "backend", "runtime", "ops_doc", "io", "interop", "cli",
];

/// The files that may import from a later folder. There are none.
const AGAINST_THE_ORDER: &[(&str, &str)] = &[];

/// The cycles of imports that are allowed. There are none.
const CIRCLES: &[&[&str]] = &[];

/// Where there is Rust.
const CODE: &[&str] = &[
    "src",
    "tests",
    "examples",
    "benches",
    "xtask",
    "datafusion/src",
    "datafusion/tests",
    "datafusion/examples",
    "datafusion/benches",
    "datafusion/cluster/src",
    "datafusion/cluster/tests",
];

fn imports() -> Imports {
    let files = sources(&["src"]).into_iter().filter(|(p, _)| p != "src/main.rs").map(|(p, text)| {
        let path = p.trim_start_matches("src/").to_string();
        (module_of(Path::new(&path)), (path, text))
    });
    Imports::read(&files.collect())
}

#[test]
fn folders_import_in_one_order() {
    let rank = |file: &str| {
        let folder = file.split('/').next().unwrap_or(file).trim_end_matches(".rs");
        FOLDERS.iter().position(|f| *f == folder).unwrap_or_else(|| panic!("src/{file} is in no folder of the order"))
    };
    let mut wrong = Vec::new();
    for (file, to) in imports().edges {
        let later = to.iter().filter(|(other, _)| rank(other) > rank(&file));
        let unknown = later.filter(|(other, _)| !AGAINST_THE_ORDER.contains(&(file.as_str(), other.as_str())));
        wrong.extend(unknown.map(|(other, path)| format!("src/{file} imports from src/{other}: {path}")));
    }
    assert!(wrong.is_empty(), "imports from a later folder:\n{}", wrong.join("\n"));
}

/// Imports have no cycles. A `mod.rs` is a file like others: either it defines items that its children import, and only
/// declares and re-exports the children; or it imports from its children, and they import nothing that it defines.
#[test]
fn no_files_import_each_other_in_a_circle() {
    let imports = imports();
    let circles = imports.circles();
    let new = circles.iter().filter(|c| !CIRCLES.iter().any(|known| known == c));
    let shown = |circle: &Vec<String>| {
        let inner = |f: &String| {
            let to = imports.edges[f].iter().filter(|(other, _)| circle.contains(other));
            to.map(|(other, path)| format!("\n  src/{f} imports from src/{other}: {path}")).collect::<String>()
        };
        circle.iter().map(inner).collect::<String>()
    };
    let new: Vec<String> = new.map(shown).collect();
    assert!(new.is_empty(), "circles of imports:{}", new.join("\n"));
}

#[test]
fn imports_are_seen_however_they_are_written() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d; pub use a::One;"),
        ("a/mod.rs", "pub(crate) mod deep; pub struct One; pub(crate) use deep::Two;"),
        ("a/deep.rs", "pub struct Two; #[cfg(test)] mod tests { use crate::d::Four; }"),
        ("b.rs", "use {std::fmt, super::{a::{self, One as Uno}}}; fn f(x: a::deep::Two, y: Uno) {}"),
        ("c/mod.rs", "pub(crate) mod inner { use super::super::b; fn f() { b::f() } } fn g() { crate::a::Two; }"),
        (
            "d.rs",
            "pub struct Four; fn f() { macro_of!(x, { crate::b::f() }); } macro_rules! m { () => { $crate::One } }",
        ),
    ];
    let files = files.map(|(p, text)| (module_of(Path::new(p)), (p.to_string(), text.to_string())));
    let found = Imports::read(&files.into_iter().collect()).edges;
    let of = |f: &str| found[f].keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(of("a/mod.rs"), [""; 0], "re-exports of children are no imports");
    assert_eq!(of("a/deep.rs"), [""; 0], "tests may import anything");
    assert_eq!(of("b.rs"), ["a/deep.rs", "a/mod.rs"]);
    assert_eq!(of("c/mod.rs"), ["a/deep.rs", "b.rs"], "a re-export is the file that defines it");
    assert_eq!(of("d.rs"), ["a/mod.rs", "b.rs"], "macros and their arguments");
}

#[test]
fn every_file_of_tests_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [suite, manifest] = ["tests/main.rs", "Cargo.toml"].map(|f| fs::read_to_string(root.join(f)).unwrap());
    let mut count = 0;
    for path in fs::read_dir(root.join("tests")).unwrap().map(|e| e.unwrap().path()) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|e| e != "rs") || name == "main" {
            continue;
        }
        count += 1;
        let listed = suite.contains(&format!("\nmod {name};"));
        let alone = manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
        assert!(listed != alone, "tests/{name}.rs is in one of tests/main.rs and Cargo.toml");
    }
    assert!(count > 70, "{count}");
}

#[test]
fn files_are_at_most_600_lines() {
    for (path, text) in sources(CODE) {
        assert!(text.lines().count() <= 600, "{path} has {} lines", text.lines().count());
    }
}

#[test]
fn lists_of_variants_have_each_one() {
    let lists = lists::lacking(&sources(&["src"]));
    assert!(lists.iter().any(|(name, _)| name == "Rules") && lists.len() >= 5, "{lists:?}");
    assert!(lists.iter().all(|(_, lacking)| lacking.is_empty()), "{lists:?}");
    let file = ("x.rs".to_string(), "enum E { A, B } impl E { const ALL: &[E] = &[E::A]; }".to_string());
    assert_eq!(lists::lacking(&[file]), [("E".to_string(), vec!["B".to_string()])]);
}

#[test]
fn unsafe_lives_in_the_places_for_it() {
    for (path, text) in sources(&["src", "datafusion/src", "datafusion/cluster/src"]) {
        // `abi.rs` has no unsafe block. It defines the calling convention of the functions that `code.rs` returns.
        let places = [
            "src/base/host/",
            "src/tensor/address",
            "src/tensor/raw.rs",
            "src/kernels/",
            "src/runtime/driver/",
            "src/runtime/thread_pool.rs",
            "src/backend/code.rs",
            "src/backend/abi.rs",
        ];
        let allowed = places.iter().any(|p| path.starts_with(p));
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
    for (path, text) in sources(CODE) {
        for mark in marks {
            assert!(!text.contains(mark), "{path} has {mark}");
        }
        assert!(text.starts_with("//!"), "{path} does not begin by saying what it is");
    }
}

/// Each dependency of a manifest: its name, version and features.
fn dependencies(manifest: &str) -> Vec<(String, String, String)> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest)).unwrap();
    let mut found = Vec::new();
    for table in text.split("\n[").filter(|table| table.split(']').next().unwrap().ends_with("dependencies")) {
        for line in table.lines().skip(1) {
            let Some((name, value)) = line.split_once(" = ").filter(|(name, _)| !name.contains(['.', '#'])) else {
                continue;
            };
            let after = |key: &str| {
                value.split_once(key).and_then(|(_, v)| v.split_once(['"', ']'])).map(|(v, _)| v.to_string())
            };
            let version =
                after("version = \"").or_else(|| value.strip_prefix('"').map(|v| v.trim_end_matches('"').into()));
            let features = value.split_once("features = [").map_or("", |(_, v)| v.split(']').next().unwrap());
            found.extend(version.map(|v| (name.to_string(), v, features.to_string())));
        }
    }
    found
}

#[test]
fn the_python_package_has_the_versions_of_the_command() {
    // A workspace of its own, which can't inherit them.
    let root = dependencies("Cargo.toml");
    let of = |name: &str| root.iter().find(|(known, ..)| known == name);
    let mut shared = 0;
    for (name, version, features) in dependencies("python/Cargo.toml") {
        let Some((_, wanted, all)) = of(&name) else { continue };
        assert_eq!(&version, wanted, "{name} in python/Cargo.toml");
        // What the library needs besides is its own.
        assert!(&features == all || name == "num-complex", "the features of {name} in python/Cargo.toml");
        shared += 1;
    }
    assert!(shared > 10, "{shared}");
    // And those of its lock file, so that both are built with the same crates.
    let (command, package) = (locked("Cargo.lock"), locked("python/Cargo.lock"));
    let names: BTreeSet<&String> = command.iter().map(|(name, _)| name).collect();
    let others: Vec<_> = package.difference(&command).filter(|(name, _)| names.contains(name)).collect();
    assert!(others.is_empty() && package.len() > 100, "{others:?}");
}

/// The names and versions in a lock file.
fn locked(file: &str) -> BTreeSet<(String, String)> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let value = |of: &str, key: &str| of.lines().find_map(|l| l.strip_prefix(key)).unwrap_or_default().to_string();
    text.split("[[package]]").skip(1).map(|p| (value(p, "name = "), value(p, "version = "))).collect()
}

/// The Markdown pages of the root and of `docs/`, with their names.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).collect();
    files_under(&root.join("docs"), ".md", &mut found);
    let pages = found.into_iter().filter(|p| p.extension().is_some_and(|e| e == "md"));
    pages.map(|p| (p.strip_prefix(root).unwrap().to_string_lossy().into(), fs::read_to_string(p).unwrap())).collect()
}

/// The text without code, which has neither links nor headings.
fn prose(text: &str) -> String {
    let mut code = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !fence && !code
    });
    lines.map(|line| line.to_string() + "\n").collect()
}

/// The links of a page.
fn links(text: &str) -> Vec<String> {
    let text: String = prose(text).split('`').step_by(2).collect();
    let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    links.map(|(link, _)| link.to_string()).filter(|l| !l.contains("://") && !l.contains(char::is_whitespace)).collect()
}

/// The names of a page's headings in links, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let named = |heading: &str| {
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    prose(text)
        .lines()
        .filter_map(|l| l.trim_start_matches('#').strip_prefix(' ').filter(|_| l.starts_with('#')))
        .map(named)
        .collect()
}

/// The file that a link leads to, from the folder of its page: `docs/from/../ops.md` is `docs/ops.md`.
fn target(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn links_of_pages_lead_to_files_and_headings() {
    let pages = pages();
    let mut count = 0;
    for (page, text) in &pages {
        for link in links(text) {
            let (file, heading) =
                link.split_once('#').map_or((&link[..], None), |(file, heading)| (file, Some(heading)));
            let path = if file.is_empty() { page.clone() } else { target(page, file) };
            count += 1;
            assert!(
                page != "ARCHITECTURE.md",
                "{page} links to {link}: a page in another folder of the book includes it"
            );
            assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(&path).exists(), "{page} links to {link}");
            let to = pages.iter().find(|(name, _)| *name == path);
            if let (Some(heading), Some((_, to))) = (heading, to) {
                assert!(
                    anchors(to).iter().any(|a| a == heading),
                    "{page} links to {link}, but {path} has no such heading"
                );
            }
            // The book has nothing but `docs/`.
            assert!(!page.starts_with("docs/") || path.starts_with("docs/"), "{page} links to {link}, out of the book");
        }
    }
    assert!(count >= 100, "only {count} links");
}

/// The paths of sources that a text names: `src/…`, and that of another crate, `xtask/src/…`.
fn source_paths(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-./".contains(c));
    let paths = words.map(|word| word.trim_end_matches('.'));
    paths.filter(|p| p.starts_with("src/") || p.contains("/src/") && !p.starts_with('/')).collect()
}

#[test]
fn sources_that_pages_name_exist() {
    assert_eq!(
        source_paths("`src/a.rs`, (xtask/src/b). See src/c_d/. https://docs.rs/x/src/y.rs"),
        ["src/a.rs", "xtask/src/b", "src/c_d/"]
    );
    let mut count = 0;
    for (page, text) in pages() {
        for path in source_paths(&text) {
            count += 1;
            assert!(
                Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists(),
                "{page} names {path}, which there is not"
            );
        }
    }
    assert!(count >= 50, "only {count} paths");
}

#[test]
fn the_book_has_every_page_once() {
    let pages = pages();
    let (_, summary) = pages.iter().find(|(name, _)| name == "docs/SUMMARY.md").unwrap();
    let mut listed: Vec<String> = links(summary).iter().map(|link| target("docs/SUMMARY.md", link)).collect();
    listed.push("docs/SUMMARY.md".into());
    listed.sort();
    let mut there: Vec<&String> = pages.iter().map(|(name, _)| name).filter(|name| name.starts_with("docs/")).collect();
    there.sort();
    assert!(listed.iter().eq(there.iter().copied()), "docs/SUMMARY.md has {listed:#?}, docs/ has {there:#?}");
}

#[test]
fn pages_with_rust_are_doctests_and_the_readme_links_to_the_book() {
    // A page of DataFusion is tested by its crate.
    let lib = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).unwrap()
        + &fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/datafusion/src/lib.rs")).unwrap();
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    for (page, text) in pages() {
        let tested = lib.contains(&format!("../{page}\")"));
        assert!(tested || !text.contains("```rust\n"), "{page} has Rust that no test compiles");
        let top = page.contains('/') && page != "docs/SUMMARY.md" || page == "README.md";
        assert!(top || readme.contains(&format!("]({page})")), "the README does not link to {page}");
    }
    assert!(readme.lines().count() <= 150, "the README has {} lines", readme.lines().count());
}
