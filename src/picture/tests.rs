//! Tests of pictures: every node is there, boxes do not overlap, text is text.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use super::boxes::{Boxes, Shows, boxes};
use super::layout::{Places, places};
use super::options::{Bar, MOST_NODES, Picture};
use super::text::cells;
use crate::base::dtype::DType;
use crate::base::random::Random;
use crate::graph::program::Program;
use crate::graph::typed::TypedProgram;
use crate::graph::var::Var;
use crate::ops::Op;
use crate::promotion::Rules;

/// A program of so many ops, each of two of the last `window` values.
fn random(seed: u64, ops: usize, window: u64) -> TypedProgram {
    let p = Program::new(Rules::Torch);
    let mut r = Random(seed);
    let dtypes = [DType::BF16, DType::F32, DType::U8, DType::F16, DType::I32];
    let mut all: Vec<Var> = (0..3).map(|i| p.data(&format!("x{i}"), dtypes[r.below(5) as usize], [4])).collect();
    for _ in 0..ops {
        let mut pick = || {
            let back = 1 + r.below(window.min(all.len() as u64)) as usize;
            all[all.len() - back].clone()
        };
        let (a, b) = (pick(), pick());
        all.push(if r.below(2) == 0 { &a + &b } else { &a * &b });
    }
    p.infer().unwrap()
}

fn placed(typed: &TypedProgram) -> (Boxes, Places) {
    let boxes = boxes(&Picture::of(typed));
    let places = places(&boxes);
    (boxes, places)
}

/// Boxes of a level are beside each other, lines go down, and each operand has a line.
fn check(typed: &TypedProgram, boxes: &Boxes, places: &Places) {
    let mut by_level: Vec<Vec<(f64, f64)>> = vec![Vec::new(); places.levels.len()];
    for (i, b) in boxes.all.iter().enumerate() {
        by_level[b.level].push((places.x[i] - b.width / 2.0, places.x[i] + b.width / 2.0));
        assert!(places.x[i] >= b.width / 2.0 - 0.01 && places.x[i] + b.width / 2.0 <= places.width + 0.01);
    }
    for level in &mut by_level {
        level.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(level.windows(2).all(|w| w[0].1 + 1.0 < w[1].0), "{level:?}");
    }
    for (from, to) in &boxes.steps {
        assert_eq!(boxes.all[*from as usize].level + 1, boxes.all[*to as usize].level);
    }
    let (mut operands, mut far) = (0, 0);
    for (i, n) in typed.nodes().enumerate().skip(boxes.left) {
        let mut inputs = n.kind.inputs();
        inputs.sort_unstable();
        inputs.dedup();
        operands += inputs.len();
        for from in inputs {
            let joins = |line: &&Vec<u32>| {
                let [first, last] = [line[0], line[line.len() - 1]].map(|i| &boxes.all[i as usize].shows);
                matches!((first, last), (Shows::Node(a), Shows::Node(b)) if (*a, *b) == (from, i))
            };
            let named = boxes.all[i - boxes.left].lines.iter().any(|l| l.starts_with(&format!("↑ %{from} ")));
            assert!(named != boxes.lines.iter().any(|l| joins(&l)), "%{from} of %{i}");
            far += usize::from(named);
        }
    }
    assert_eq!(operands, boxes.lines.len() + far);
}

#[test]
fn random_programs_are_placed_without_overlaps() {
    for seed in 1..60 {
        let typed = random(seed, 1 + seed as usize, [2, 5, 100][seed as usize % 3]);
        let (boxes, places) = placed(&typed);
        check(&typed, &boxes, &places);
        let svg = typed.to_svg();
        assert_eq!(svg, typed.to_svg(), "the same picture each time");
        for i in 0..typed.len() {
            assert_eq!(svg.matches(&format!("data-node=\"{i}\"")).count(), 1);
        }
    }
}

#[test]
fn shapes_of_programs_that_are_hard_to_place() {
    let chain = |n: usize| {
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::F32, [4]);
        (0..n).fold(x.clone(), |y, _| y * &x);
        p.infer().unwrap()
    };
    let star = || {
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::F32, [4]);
        (0..300).for_each(|i| drop(&x + i));
        p.infer().unwrap()
    };
    let apart = || {
        let p = Program::new(Rules::Torch);
        (0..100).for_each(|i| drop(p.data(&format!("x{i}"), DType::F32, [4])));
        p.infer().unwrap()
    };
    // A chain whose ops have a second operand each stays narrow.
    let far = |typed: &TypedProgram| placed(typed).1.width;
    assert!(far(&chain(900)) < 500.0, "{}", far(&chain(900)));
    for typed in [chain(1), chain(2), chain(900), star(), apart(), Program::new(Rules::Torch).infer().unwrap()] {
        let (boxes, places) = placed(&typed);
        check(&typed, &boxes, &places);
        assert!(typed.to_svg().ends_with("</svg>\n"));
    }
}

#[test]
fn a_program_of_too_many_nodes_is_shown_from_its_end() {
    let typed = random(7, 4000, 6);
    let (boxes, places) = placed(&typed);
    check(&typed, &boxes, &places);
    let svg = typed.to_svg();
    assert_eq!(svg.matches("data-node=").count(), MOST_NODES);
    assert!(svg.contains(&format!("Only the last {MOST_NODES} of {} nodes are shown.", typed.len())));
    assert!(svg.contains("Marked nodes among those that are not shown: "));
    let few = Picture::of(&typed).most(10).svg();
    assert_eq!(few.matches("data-node=").count(), 10);
    assert!(few.contains("↑ %"));
}

#[test]
fn what_loses_something_is_marked() {
    let p = Program::new(Rules::Torch);
    let (u, v) = (p.data("u", DType::U8, [4]), p.data("v", DType::U8, [4]));
    let (a, b) = (p.data("a", DType::BF16, [4]), p.data("i", DType::I64, [4]));
    let _ = (&u - &v) / (&u + 300) + a * 0.7 + b * p.data("f", DType::F32, [4]);
    let typed = p.infer().unwrap();
    let svg = typed.to_svg();
    for badge in ["! may wrap in u8", "≈ rounds to bf16", "≈ rounds"] {
        assert!(svg.contains("class=\"badge\"") && svg.contains(badge), "{badge}: {svg}");
    }
    // A node that loses something in two ways has both of them for the pointer.
    assert!(svg.contains("300 is 44 in u8"));
    // Each class, and the rule of a cast.
    for class in ["node input", "node op", "node exact", "node rounds marked", "node range marked"] {
        assert!(svg.contains(&format!("class=\"{class}")), "{class}");
    }
    assert!(svg.contains("rule: ") && svg.contains("needs -255 to 255"));
}

#[test]
fn errors_are_bars() {
    let p = Program::new(Rules::Torch);
    let _ = p.data("x", DType::BF16, [4]) * 0.7;
    let typed = p.infer().unwrap();
    let bar = |part| Some(Bar { part, text: "1.2e-3".into(), hint: "median <1>".into() });
    let svg = Picture::of(&typed).bars(vec![None, bar(0.5)], "The scale.").svg();
    assert_eq!(svg.matches("class=\"bar\"").count(), 1);
    assert!(svg.contains("error 1.2e-3") && svg.contains("median &lt;1&gt;") && svg.contains("The scale."));
    // Too few bars, or parts that are none, are drawn too.
    assert!(!Picture::of(&typed).bars(vec![bar(f64::NAN); 1], "").svg().contains("NaN"));
}

#[test]
fn names_from_outside_are_text() {
    let hostile = "</text><script>alert('x')</script>\u{1b}[2J\u{202e}\u{0}\u{ffff}\u{fffe}\"&]]>\n漢字".repeat(3);
    let p = Program::new(Rules::Torch);
    let x = p.data(&hostile, DType::F32, ["<n>"]) * 2.0;
    p.set_fetches([(Some(hostile.as_str()), &x)]).unwrap();
    let typed = p.infer().unwrap();
    let svg = Picture::of(&typed).source(&hostile).svg();
    assert!(!svg.contains("<script"));
    let legal =
        |c: char| matches!(c, '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..) && !c.is_control();
    assert!(svg.chars().all(|c| legal(c) || c == '\n'), "{svg}");
    assert!(!svg.contains('\u{202e}'));
    // Long names are cut in the box, and whole for the pointer.
    assert_eq!(svg.matches("漢字").count() % 3, 0);
    let op = Op::Mul;
    assert!(svg.contains(op.name()));
}

#[test]
fn text_is_cut_to_its_cells() {
    for (text, most) in [("abc", 3), ("abcd", 3), ("漢字漢字", 5), ("\u{1b}\u{1b}\u{1b}", 4), ("", 1)] {
        let cut = super::text::cut(text, most);
        assert!(cells(&cut) <= most, "{cut}");
    }
    assert_eq!(super::text::cut("abc", 3), "abc");
}
