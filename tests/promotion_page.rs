//! Checks that `docs/promotion.html` is the command's output, and what a browser shows of it.

use std::collections::HashSet;
use std::process::Command;
use std::sync::OnceLock;

use castwise::{DType, Op, Rules, Settings};
use expected::Expected;
use regex::Regex;

pub mod browser;
mod expected;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/promotion.html");

fn page() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_castwise"));
        let out = command.args(["table", "all", "--format", "html"]).output().unwrap();
        assert!(out.status.success());
        String::from_utf8(out.stdout).unwrap()
    })
}

#[test]
fn the_page_is_what_the_command_makes() {
    let made = page();
    assert!(made.len() < 700_000, "the page has {} bytes", made.len());
    if std::env::var_os("CASTWISE_BLESS").is_some() {
        std::fs::write(PATH, made).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(PATH).unwrap_or_default();
    let same =
        "docs/promotion.html is old: `CASTWISE_BLESS=1 cargo test --test suite -- promotion_page::` writes it anew";
    assert!(made == kept, "{same}");
}

#[test]
fn the_page_asks_nothing_of_the_network_and_stores_nothing() {
    for word in ["http:", "https:", "src=", "@import", "url(", "fetch(", "XMLHttp", "Storage", "cookie", "indexedDB"] {
        assert!(!page().contains(word), "{word}");
    }
    assert!(page().contains("default-src 'none'"), "the browser holds it to that");
    assert!(page().contains("<noscript>"));
}

#[test]
fn every_word_for_a_reason_is_explained() {
    let word = Regex::new(r"-> \S+ \(([^)]*)\)").unwrap();
    let terms: Vec<&str> = page().split("<dt>").skip(1).map(|t| t.split("</dt>").next().unwrap()).collect();
    let mut words: HashSet<&str> = word.captures_iter(page()).map(|c| c.get(1).unwrap().as_str()).collect();
    // `bool to i64`, where bool can be the title of a row or column.
    words.retain(|w| !w.contains(" to i"));
    assert!(words.len() >= 6, "{words:?}");
    for word in words {
        assert!(terms.contains(&word), "`{word}` is not explained");
    }
}

/// The relative luminance of a colour (WCAG 2).
fn luminance(colour: [u8; 3]) -> f64 {
    let linear = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    let [r, g, b] = colour.map(linear);
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn hex(text: &str) -> [u8; 3] {
    [1, 3, 5].map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
}

#[test]
fn colours_have_the_contrast_of_wcag_aa_in_both_themes() {
    let row = Regex::new(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);").unwrap();
    let colours: Vec<(&str, [[u8; 3]; 2])> = row
        .captures_iter(page())
        .map(|c| (c.get(1).unwrap().as_str(), [hex(c.get(2).unwrap().as_str()), hex(c.get(3).unwrap().as_str())]))
        .collect();
    assert_eq!(colours.len(), 13);
    let of = |name: &str| colours.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no --{name}")).1;
    let classes = ["exact", "rounds", "range", "refused"];
    let text = ["paper", "side", "head"].iter().chain(&classes).map(|back| ("ink", *back, 4.5));
    let text = text.chain(["paper", "side", "head"].map(|back| ("muted", back, 4.5)));
    let rest = [("on-accent", "accent", 4.5), ("edge", "paper", 3.0), ("edge", "side", 3.0), ("accent", "side", 3.0)];
    let outlines = classes.map(|back| ("accent", back, 3.0));
    for (a, b, least) in text.chain(rest).chain(outlines) {
        for (i, theme) in ["light", "dark"].iter().enumerate() {
            let ratio = contrast(of(a)[i], of(b)[i]);
            assert!(ratio >= least, "{a} on {b}, {theme}: {ratio:.2}");
        }
    }
}

/// A row of titles and cells as the browser shows it.
struct Table<'a> {
    op: Op,
    tier: &'a str,
    rows: Vec<&'a str>,
    columns: Vec<&'a str>,
}

impl<'a> Table<'a> {
    fn new(op: &str, tier: &'a str, rows: &'a str, columns: &'a str) -> Table<'a> {
        let split = |text: &'a str| text.split(',').collect();
        Table { op: Op::from_name(op).unwrap(), tier, rows: split(rows), columns: split(columns) }
    }

    fn expected(&self, rules: &str) -> impl Iterator<Item = (String, Expected)> {
        let settings: Settings = rules.parse().unwrap();
        self.rows.iter().flat_map(move |row| {
            self.columns.iter().map(move |column| {
                let name = format!("{} under {rules}, {}: {row} {column}", self.op, self.tier);
                (name, expected::cell(&settings, self.op, self.tier, row, column))
            })
        })
    }
}

/// The names of the tables that the page has to have.
fn every_table() -> HashSet<String> {
    let mut names = HashSet::new();
    for op in Op::ALL {
        let def = op.def();
        let tiers: &[&str] = match def.operands.len() - def.parameters() - usize::from(*op == Op::Where) {
            _ if matches!(op, Op::Cast | Op::ViewAs) => &["from, to"],
            1 => &["tensor", "weak tensor"],
            _ => &[
                "tensor, tensor",
                "tensor, 0-d tensor",
                "tensor, scalar",
                "scalar, tensor",
                "0-d tensor, scalar",
                "tensor, weak tensor",
                "weak tensor, tensor",
            ],
        };
        let sets = Rules::ALL.iter().map(Rules::to_string).chain(["jax,x64".to_string()]);
        names.extend(sets.flat_map(|rules| tiers.iter().map(move |tier| format!("{op}\t{tier}\t{rules}"))));
    }
    names
}

/// Checks one table of the page against `signature`; the number of its cells.
fn check_table(table: &[&str], texts: &[&str]) -> usize {
    let [op, tier, rules, rows, columns, found, legend] = table[..] else { panic!("{table:?}") };
    let table = Table::new(op, tier, rows, columns);
    let dtypes: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
    for (kind, titles) in tier.split(", ").zip([&table.rows, &table.columns]) {
        let single = *titles == ["result"] || !(kind == "tensor" || kind == "0-d tensor");
        assert!(single || *titles == dtypes, "{op} {tier}: {titles:?}");
    }
    let found: Vec<&str> = found.split(' ').collect();
    assert_eq!(found.len(), table.rows.len() * table.columns.len(), "{op} {tier} {rules}");
    let mut counts = [("exact", 0), ("rounds", 0), ("range", 0), ("refused", 0)];
    for ((name, expected), found) in table.expected(rules).zip(&found) {
        let [class, shown, reason] = found.split(':').collect::<Vec<_>>()[..] else { panic!("{name}: {found}") };
        assert_eq!((class, shown), (expected.class, expected.shown.as_str()), "{name}");
        let reason = texts[reason.parse::<usize>().unwrap()];
        assert!(!reason.is_empty(), "{name}");
        for part in &expected.why {
            assert!(reason.contains(part.as_str()), "{name}: `{reason}` without `{part}`");
        }
        counts.iter_mut().filter(|(c, _)| *c == class).for_each(|(_, n)| *n += 1);
    }
    let marks = ["=", "≈", "!", "✕"];
    let expected: String = counts.iter().zip(marks).map(|((name, n), mark)| format!("{mark} {name} {n}")).collect();
    assert_eq!(legend, expected, "{op} {tier} {rules}");
    found.len()
}

/// Every op, rule set and tier: the result, the class and the reason of each cell, and their numbers in the legend.
#[test]
fn a_browser_shows_what_signature_says_in_every_cell() {
    let Some(browser) = browser::find() else { return };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let run = |k: usize| {
            let browser = &browser;
            scope.spawn(move || {
                browser::seen(browser, page(), &format!("cells{k}"), "", &format!("() => everyCell({k}, 2)"))
            })
        };
        let handles = [run(0), run(1)];
        handles.map(|h| h.join().unwrap()).into()
    });
    let mut missing = every_table();
    let mut cells = 0;
    for lines in &parts {
        let texts: Vec<&str> = browser::of(lines, "text").iter().map(|t| t[0]).collect();
        for table in browser::of(lines, "table") {
            assert!(missing.remove(&table[..3].join("\t")), "{table:?}");
            cells += check_table(&table, &texts);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    assert!(cells > 300_000, "{cells}");
}

#[test]
fn the_difference_view_marks_what_differs() {
    let Some(browser) = browser::find() else { return };
    let lines = browser::seen(&browser, page(), "differences", "", "() => differences(11)");
    let (tables, mut kinds) = (browser::of(&lines, "differences"), HashSet::new());
    assert!(tables.len() > 500, "{}", tables.len());
    for table in tables {
        let [op, tier, rules, other, found, count, legend] = table[..] else { panic!("{table:?}") };
        let [rows, columns] = titles(op, tier).map(|t| t.join(","));
        let table = Table::new(op, tier, &rows, &columns);
        let (mut differences, found) = (0, found.split(' ').collect::<Vec<_>>());
        for (((name, a), (_, b)), found) in table.expected(rules).zip(table.expected(other)).zip(&found) {
            let differ = (a.class, &a.shown, a.compute) != (b.class, &b.shown, b.compute);
            differences += usize::from(differ);
            let shown = |e: &Expected| match e.compute {
                Some(compute) if a.shown == b.shown && a.compute != b.compute => format!("in {compute}"),
                _ => e.shown.clone(),
            };
            let half = |e: &Expected| format!("{}:{}", e.class, shown(e)).replace(' ', "_");
            let expected =
                if differ { format!("differs|{}|{}", half(&a), half(&b)) } else { format!("same|{}", a.shown) };
            kinds.insert((a.class, b.class, differ));
            assert_eq!(*found, expected, "{name}, and {other}");
        }
        let [a, b] = [rules, other].map(|rules| table.expected(rules).filter(|(_, e)| e.class == "refused").count());
        assert!(legend.ends_with(&format!("refused {a} / {b}")), "{op} {tier}: {legend}");
        assert!(count.contains(&format!(" differ in {differences} of {} cells.", found.len())), "{op} {tier}: {count}");
    }
    assert!(kinds.len() > 12, "{kinds:?}");
}

/// The titles of rows and columns.
fn titles(op: &str, tier: &str) -> [Vec<&'static str>; 2] {
    let of = |kind: &str| match kind {
        "scalar" => vec!["bool", "int", "float", "complex"],
        "weak tensor" => vec!["i32*", "i64*", "f32*", "f64*", "c64*", "c128*"],
        _ => DType::ALL.iter().map(|d| d.name()).collect(),
    };
    match tier.split_once(", ") {
        Some((row, column)) => [of(row), of(column)],
        None => {
            assert!(Op::from_name(op).is_some());
            [vec!["result"], of(tier)]
        }
    }
}

#[test]
fn the_table_is_usable_by_keyboard_and_pointer() {
    let Some(browser) = browser::find() else { return };
    let parts = "keyboard, stepThroughDifferences, pointer, search";
    let lines = browser::seen(&browser, page(), "keyboard", "", parts);
    let wanted = ["0,1", "1,1", "2,1", "2,0", "2,0", "2,17", "7,17", "0,0", "0,0", "17,17", "17,0", "12,0", "12,0"];
    let dtypes: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
    let keys = browser::of(&lines, "key");
    assert_eq!(keys.len(), wanted.len());
    for (found, wanted) in keys.iter().zip(wanted) {
        let (i, j) = wanted.split_once(',').unwrap();
        let (x, y) = (dtypes[i.parse::<usize>().unwrap()], dtypes[j.parse::<usize>().unwrap()]);
        // The focus, one cell that Tab reaches, which is selected and described by the reason.
        let expected =
            [wanted, "1", "true", "reason", &format!("add(x: {x} tensor, y: {y} tensor)"), &format!("{y},{x}")];
        assert_eq!(found[1..], expected, "{}", found[0]);
    }
    let differences: Vec<Vec<&str>> = browser::of(&lines, "difference");
    assert!(differences.iter().all(|d| d[0] == "differs"), "{differences:?}");
    assert!(differences[0] != differences[1] && differences[0] == differences[2], "{differences:?}");
    assert_eq!(browser::of(&lines, "tap")[0], ["true", "add(x: bool tensor, y: bool tensor)"]);
    assert_eq!(browser::of(&lines, "hover")[0], ["add(x: bool tensor, y: u8 tensor)"]);
    assert_eq!(browser::of(&lines, "leave")[0], ["add(x: bool tensor, y: bool tensor)"]);
    let every = Rules::ALL.iter().map(|rules| (rules.framework().to_string(), Settings::new(*rules)));
    let every =
        every.chain([("JAX x64".to_string(), Settings::new(Rules::Jax).with_x64(true))]).map(|(label, settings)| {
            let e = expected::cell(&settings, Op::Add, "tensor, tensor", "i64", "bool");
            let marks = [("exact", '='), ("rounds", '≈'), ("range", '!'), ("refused", '✕')];
            let mark = marks.iter().find(|m| m.0 == e.class).unwrap().1;
            format!("{label} {} {mark}", if e.compute.is_some() { &e.shown } else { e.class })
        });
    let every = format!("All rules:{}", every.collect::<String>());
    assert_eq!(browser::of(&lines, "every")[0], ["add(x: i64 tensor, y: bool tensor)", &every]);
    let search = &browser::of(&lines, "search")[0];
    assert!(search[0].starts_with("mul") && !search[0].contains("sqrt") && search[1].contains(" of "), "{search:?}");
    assert!(browser::of(&lines, "entered")[0][0].starts_with("mul("));
}

#[test]
fn addresses_have_the_whole_state() {
    let Some(browser) = browser::find() else { return };
    let lines = browser::seen(&browser, page(), "addresses", "#op=sub&rules=numpy&cell=i8,u8", "addresses");
    let states = browser::of(&lines, "state");
    let linked = "#op=div&rules=jax,x64&compare=paddle&operands=tensor,0-d-tensor&cell=i64,f32&theme=dark";
    let expected = [
        "opened|sub|numpy||tensor,tensor|5,1||#op=sub&rules=numpy&cell=i8,u8",
        "chosen|mul|paddle||tensor,tensor|5,1||#op=mul&rules=paddle&cell=i8,u8",
        "back|mul|numpy||tensor,tensor|5,1||#op=mul&rules=numpy&cell=i8,u8",
        &format!("linked|div|jax,x64|paddle|tensor,0-d-tensor|8,13|dark|{linked}"),
        "linked|exp|jax||weak-tensor|0,2||#op=exp&rules=jax&operands=weak-tensor&cell=,f32*",
        "linked|add|torch||tensor,tensor|none||#op=nothing&rules=x&compare=y&operands=9&cell=z&more=1",
    ];
    let states: Vec<String> = states.iter().map(|s| s.join("|")).collect();
    assert_eq!(states, expected);
}

#[test]
fn every_text_has_the_contrast_of_wcag_aa() {
    let Some(browser) = browser::find() else { return };
    let lines = browser::seen(&browser, page(), "colours", "", "everyColour");
    let rgb = |text: &str| {
        let numbers = text.trim_start_matches("rgb(").trim_end_matches(')').split(", ");
        <[u8; 3]>::try_from(numbers.map(|n| n.parse().unwrap_or_else(|_| panic!("{text}"))).collect::<Vec<u8>>())
            .unwrap()
    };
    let colours = browser::of(&lines, "colours");
    assert!(colours.len() > 20, "{}", colours.len());
    for pair in colours {
        let [theme, text, back] = pair[..] else { panic!("{pair:?}") };
        let ratio = contrast(rgb(text), rgb(back));
        assert!(ratio >= 4.5, "{theme}: {text} on {back}: {ratio:.2}");
    }
}
