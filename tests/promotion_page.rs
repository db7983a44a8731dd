//! Checks that `docs/promotion.html` is the command's output, and that a browser shows the library's results.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test that can't run says so")]

use std::path::{Path, PathBuf};
use std::process::Command;

use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, DType, Op, Rules, Settings};
use regex::Regex;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/promotion.html");

fn page() -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_castwise"));
    let out = command.args(["table", "all", "--format", "html"]).output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_page_is_what_the_command_makes() {
    let made = page();
    assert!(made.len() < 1_000_000, "the page has {} bytes", made.len());
    if std::env::var_os("CASTWISE_BLESS").is_some() {
        std::fs::write(PATH, made).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(PATH).unwrap_or_default();
    let same = "docs/promotion.html is old: `CASTWISE_BLESS=1 cargo test --test promotion_page` writes it anew";
    assert!(made == kept, "{same}");
}

#[test]
fn the_page_asks_nothing_of_the_network() {
    let made = page();
    for word in ["http:", "https:", "src=", "@import", "url(", "fetch("] {
        assert!(!made.contains(word), "{word}");
    }
}

/// A browser, if there is one.
fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).flat_map(|dir| names.map(|n| dir.join(n))).find(|p| p.is_file())
}

/// The page's DOM in a state, after the browser has run its script.
fn shown(browser: &Path, page: &str, state: &str) -> String {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{}", std::process::id()));
    let (profile, file) = (directory.join("profile"), directory.join("page.html"));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(&file, page).unwrap();
    let out = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}#{state}", file.display()))
        .output()
        .unwrap();
    let _ = std::fs::remove_dir_all(directory);
    let dom = String::from_utf8(out.stdout).unwrap();
    assert!(dom.contains("</html>"), "{}", String::from_utf8_lossy(&out.stderr));
    dom
}

/// The keys and texts of the cells of the visible table.
fn cells(dom: &str) -> Vec<(String, String)> {
    let cell = Regex::new(r#"<td data-key="([^"]*)"(?: [a-z-]+="[^"]*")*>([^<]*)</td>"#).unwrap();
    cell.captures_iter(dom).map(|c| (c[1].to_string(), c[2].to_string())).collect()
}

#[test]
fn a_browser_shows_what_the_library_says() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no chromium is installed");
        return;
    };
    let page = page();
    for (op, rules) in [(Op::Add, Rules::Paddle), (Op::Div, Rules::Torch)] {
        let dom = shown(&browser, &page, &format!("op={op}&rules={rules}&tier=0&cell=i64,f32"));
        let cells = cells(&dom);
        assert_eq!(cells.len(), 169, "{op}");
        for (key, text) in &cells {
            let (x, y) = key.split_once(',').unwrap();
            let operands = [x, y].map(|d| OperandType::dim(d.parse::<DType>().unwrap()));
            let expected = signature(&Settings::new(rules), op, &operands, &Attrs::default());
            assert_eq!(*text, expected.map_or("-".to_string(), |s| s.result.to_string()), "{op} {key} {rules}");
        }
        let why = dom.split("id=\"why\"").nth(1).unwrap();
        let reason = if rules == Rules::Paddle { "no implicit promotion for i64 and f32" } else { "(category)" };
        assert!(why.contains("i64, f32: ") && why.split("</p>").next().unwrap().contains(reason), "{why}");
    }
    // The search matches names, aliases and descriptions. A scalar tier has the four categories.
    let dom = shown(&browser, &page, "op=mul&rules=torch&tier=2&q=multiply");
    assert_eq!(cells(&dom).len(), DType::ALL.len() * 4);
    let list = dom.split("id=\"ops\"").nth(1).unwrap().split("</ul>").next().unwrap();
    assert!(list.contains(">mul<") && !list.contains(">sqrt<"), "{list}");
    let unknown = shown(&browser, &page, "op=nothing&tier=9&rules=x");
    assert_eq!(cells(&unknown).len(), DType::ALL.len() * 4, "what is unknown falls back to what there is");
}
