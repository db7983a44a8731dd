//! Runs the page in a headless browser, with a script that uses its controls.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Ten times what the longest script takes.
const LONGEST: Duration = Duration::from_secs(300);

const DRIVER: &str = include_str!("drive.js");

/// A browser, if there is one.
pub fn find() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).flat_map(|dir| names.map(|n| dir.join(n))).find(|p| p.is_file());
    if found.is_none() {
        // The output of a test that passes is hidden, but for what is written to the stream itself.
        let why = "== skipped: no Chromium, so no browser has seen the pages (.ci/browser installs it)";
        let _ = writeln!(std::io::stderr(), "{why}");
    }
    found
}

/// What the page shows while the functions of `drive.js` run, as lines of fields.
pub fn seen(browser: &Path, page: &str, name: &str, hash: &str, parts: &str) -> Vec<Vec<String>> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{}-{name}", std::process::id()));
    let (profile, file) = (directory.join("profile"), directory.join("page.html"));
    std::fs::create_dir_all(&directory).unwrap();
    let script = format!("<script>{DRIVER}\nrun([{parts}]);</script>\n</body>");
    std::fs::write(&file, page.replace("</body>", &script)).unwrap();
    let output = |name: &str| std::fs::File::create(directory.join(name)).unwrap();
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}{hash}", file.display()))
        .stdout(output("dom"))
        .stderr(output("errors"))
        .spawn()
        .unwrap();
    wait(&mut child, name);
    let [dom, errors] = ["dom", "errors"].map(|f| std::fs::read(directory.join(f)).unwrap());
    let _ = std::fs::remove_dir_all(directory);
    let dom = String::from_utf8(dom).unwrap();
    let text = dom.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (text, _) = text.unwrap_or_else(|| panic!("{name}: {}", String::from_utf8_lossy(&errors)));
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ").replace("&amp;", "&");
    let lines: Vec<Vec<String>> = text.lines().map(|l| l.split('\t').map(str::to_string).collect()).collect();
    assert!(lines.last().is_some_and(|l| l[0] == "done"), "{name}: the script did not end");
    let failed: Vec<_> = lines.iter().filter(|l| l[0] == "failed").collect();
    assert!(failed.is_empty(), "{name}: {failed:?}");
    lines
}

/// Waits for the browser, which is ended if it takes too long: it does not end if the script leaves the page.
fn wait(child: &mut Child, name: &str) {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LONGEST {
            let _ = (child.kill(), child.wait());
            panic!("{name}: the browser has not ended in {LONGEST:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The lines that begin with a word, without it.
pub fn of<'a>(lines: &'a [Vec<String>], word: &str) -> Vec<Vec<&'a str>> {
    let rest = |l: &'a Vec<String>| l[1..].iter().map(String::as_str).collect();
    lines.iter().filter(|l| l[0] == word).map(rest).collect()
}
