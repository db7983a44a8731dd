//! Pictures of programs as a browser shows them: `explain --html` and `dump --stage svg`.

use std::path::Path;

use castwise::{DType, Program, Rules};
use regex::Regex;

use crate::command::{self, Dir};
use crate::promotion_page::browser;

const SOFT: &str = "d = softmax(a*b - mean(a, dims=-1, keepdim=true), dims=-1); sum(d*cast(i, f16)) + amax(u - 300)*x0";

fn inputs() -> Vec<&'static str> {
    ["a=bf16[4,8]", "b=f32[4,8]", "i=i64[4,1]", "u=u8[4]", "x0=f16[3]"].into_iter().flat_map(|i| ["-i", i]).collect()
}

/// The page of an expression.
fn page(dir: &Dir, text: &str, inputs: &[&str], more: &[&str]) -> String {
    dir.castwise(&[&["explain", text, "--html", "page.html", "-f"], inputs, more].concat()).ok();
    std::fs::read_to_string(dir.0.join("page.html")).unwrap()
}

fn svg(dir: &Dir, text: &str, inputs: &[&str]) -> String {
    dir.castwise(&[&["dump", text, "--stage", "svg"], inputs].concat()).ok().stdout
}

/// Writes for each picture the number of its nodes, the pairs of boxes that overlap, and the texts that leave their box.
const BOXES: &str = "() => document.querySelectorAll('.castwise-picture').forEach((picture) => {
  const boxes = [...picture.querySelectorAll('g.node')];
  const at = boxes.map((g) => g.querySelector('.box').getBoundingClientRect());
  const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
  let overlaps = 0;
  at.forEach((a, i) => at.slice(i + 1).forEach((b) => { overlaps += apart(a, b) ? 0 : 1; }));
  const out = boxes.filter((g, i) => [...g.querySelectorAll('text')].some((t) => {
    const r = t.getBoundingClientRect();
    return r.left < at[i].left || r.right > at[i].right || r.top < at[i].top - 1 || r.bottom > at[i].bottom + 1;
  }));
  const whole = picture.getBoundingClientRect();
  const beyond = at.filter((a) => a.left < whole.left || a.right > whole.right || a.bottom > whole.bottom).length;
  say('picture', picture.querySelectorAll('[data-node]').length, overlaps, out.map((g) => g.textContent).join('|'), beyond);
})";

/// Clicks on each node of the table, which then has the focus in the picture.
const CLICKS: &str = "() => document.querySelectorAll('[data-to]').forEach((button) => {
  button.click();
  say('focus', button.textContent, document.activeElement.dataset.node, document.activeElement.querySelector('title').textContent.split('\\n')[0]);
})";

fn seen(browser: &Path, page: &str, name: &str, parts: &str) -> Vec<Vec<String>> {
    browser::seen(browser, page, name, "", parts)
}

#[test]
fn every_node_is_seen_and_no_text_leaves_its_box() {
    let Some(browser) = browser::find() else { return };
    let dir = Dir::new("pictures");
    let chain = (0..400).fold("a".to_string(), |text, i| format!("({text})*{}.5 + b", i % 7));
    for (k, (text, more)) in [(SOFT, &["--numeric"][..]), (SOFT, &[]), (&chain, &[])].into_iter().enumerate() {
        let inputs = if text == SOFT { inputs() } else { vec!["-i", "a=bf16[4]", "-i", "b=f16[4]"] };
        let page = page(&dir, text, &inputs, more);
        let lines = seen(&browser, &page, &format!("boxes{k}"), &format!("{BOXES}, {CLICKS}"));
        let rows = page.matches("data-to=").count();
        let shown = rows.min(castwise::picture::MOST_NODES);
        assert_eq!(browser::of(&lines, "picture"), [[shown.to_string().as_str(), "0", "", "0"]], "{text}");
        let focus = browser::of(&lines, "focus");
        assert_eq!(focus.len(), rows);
        for f in focus.iter().skip(rows - shown) {
            assert_eq!(f[0], format!("%{}", f[1]));
            assert!(f[2].starts_with(&format!("{}: ", f[0])), "{f:?}");
        }
    }
}

#[test]
fn tensors_of_other_dtypes_have_pictures_of_their_own() {
    let dir = Dir::new("pictures-kinds");
    let [x, y] = [1.0, 2.0].map(|v| castwise::Tensor::from_slice(&[v as f32; 4], [4]).unwrap());
    dir.checkpoint("a.safetensors", &[("x", x), ("y", command::bf16_tensor(1, &[4]))]);
    dir.checkpoint("b.safetensors", &[("x", y.clone()), ("y", y)]);
    let page = page(&dir, "a*0.3 + b", &["-i", "a=a.safetensors", "-i", "b=b.safetensors"], &["--numeric"]);
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(page.contains("2 programs") && page.contains(">picture<"));
    for node in ["0 0", "0 3", "1 0", "1 4"] {
        assert_eq!(page.matches(&format!("data-to=\"{node}\"")).count(), 1, "{node}");
    }
}

#[test]
fn a_document_is_xml_whatever_names_are_in_it() {
    let Some(browser) = browser::find() else { return };
    let dir = Dir::new("pictures-xml");
    let p = Program::new(Rules::Torch);
    let hostile = "</title></svg><script>document.title='ran'</script>\u{1b}\u{202e}\u{0}\u{ffff}]]>&\"'";
    let y = p.data(hostile, DType::BF16, ["<n>"]) * 0.3 + p.data("b", DType::F32, ());
    p.set_fetches([(Some(hostile), &y)]).unwrap();
    for (k, text) in [p.to_svg().unwrap(), svg(&dir, SOFT, &inputs())].into_iter().enumerate() {
        let text = serde_json::Value::from(text).to_string().replace("</", "<\\/");
        let part = format!(
            "() => {{ const read = new DOMParser().parseFromString({text}, 'image/svg+xml');
               say('xml', read.documentElement.nodeName, read.querySelectorAll('parsererror, script, image, use, a').length,
                   read.querySelectorAll('[data-node]').length, document.title); }}"
        );
        let page = "<!doctype html><html><head><title>page</title></head><body></body></html>";
        let lines = seen(&browser, page, &format!("xml{k}"), &part);
        let found = &browser::of(&lines, "xml")[0];
        assert_eq!((found[0], found[1], found[3]), ("svg", "0", "page"), "{found:?}");
        assert!(found[2].parse::<usize>().unwrap() > 3);
    }
}

#[test]
fn pages_use_no_network_and_run_nothing_from_names() {
    let dir = Dir::new("pictures-page");
    let name = "</td><script>alert(1)</script>";
    let tensor = castwise::Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    dir.checkpoint("a.safetensors", &[(name, tensor)]);
    let page = page(&dir, "a * 0.5", &["-i", "a=a.safetensors"], &["--numeric"]);
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("default-src 'none'") && page.contains("&lt;script&gt;"));
    for word in ["https:", "src=", "@import", "url(", "fetch(", "XMLHttp", "Storage", "cookie", "<image", "href"] {
        assert!(!page.contains(word), "{word}");
    }
    // The only address is the name of the namespace.
    assert_eq!(page.matches("http:").count(), page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
}

/// The relative luminance of a colour (WCAG 2).
fn luminance(colour: &str) -> f64 {
    let part = |i: usize| {
        let c = f64::from(u8::from_str_radix(&colour[i..i + 2], 16).unwrap()) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

#[test]
fn text_and_lines_have_the_contrast_of_wcag_aa_in_light_and_dark() {
    let svg = svg(&Dir::new("pictures-colours"), SOFT, &inputs());
    let colour = Regex::new(r"--([a-z]+): (#[0-9a-f]{6});").unwrap();
    let found: Vec<(&str, &str)> =
        colour.captures_iter(&svg).map(|c| (c.get(1).unwrap().as_str(), c.get(2).unwrap().as_str())).collect();
    assert_eq!(found.len(), 22);
    let (light, dark) = found.split_at(11);
    let fills = ["paper", "input", "op", "exact", "rounds", "range"];
    let text = fills.map(|fill| ("ink", fill, 4.5));
    let rest = [("edge", "paper", 3.0), ("accent", "paper", 3.0), ("muted", "paper", 4.5)];
    for (theme, colours) in [("light", light), ("dark", dark)] {
        let of = |name: &str| luminance(colours.iter().find(|(n, _)| *n == name).unwrap().1);
        for (a, b, least) in text.into_iter().chain(rest) {
            let (x, y) = (of(a), of(b));
            let ratio = (x.max(y) + 0.05) / (x.min(y) + 0.05);
            assert!(ratio >= least, "{a} on {b}, {theme}: {ratio:.2}");
        }
    }
}

#[test]
fn classes_are_those_of_the_promotion_page() {
    let svg = svg(&Dir::new("pictures-classes"), "a + b", &["-i", "a=f16[2]", "-i", "b=f32[2]"]);
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/page.html")).unwrap();
    for class in ["exact", "rounds", "range"] {
        let both = Regex::new(&format!(r"--{class}: light-dark\((#[0-9a-f]{{6}}), (#[0-9a-f]{{6}})\)")).unwrap();
        let both = both.captures(&page).unwrap();
        for i in [1, 2] {
            assert!(svg.contains(&format!("--{class}: {};", &both[i])), "{class}");
        }
    }
}
