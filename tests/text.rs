//! Programs as text: everything that a program can contain reads back, mistakes are reported with their locations, and
//! no text makes the reader panic.

use castwise::prelude::*;
use castwise::shape::Dim;
use castwise::{
    Attrs, DiagnosticKind, Error, MAX_MISTAKES, MAX_PROGRAM_TEXT, Op, PoissonNll, Reduction, Rounding, SourceLocation,
    apply, bf16,
};

use crate::common::{Random, assert_same_bits, random_tensor};

/// Checks that the text of a program reads back as a program with the same text, and returns that program.
fn round_trip(p: &Program) -> Program {
    let text = p.to_string();
    let again = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again.to_string(), text);
    assert_eq!(again.settings(), p.settings());
    again
}

const HOSTILE: [&str; 12] = [
    "0",
    "",
    "a b",
    "it's",
    "\"q\"",
    "back\\slash",
    "line\nbreak\r\t",
    "\u{1b}[2J",
    "\u{202e}x",
    "ä%{}",
    "%x",
    "e\u{301}",
];

#[test]
fn names_of_any_kind_read_back() {
    let p = Program::new(Rules::Torch);
    for (i, name) in HOSTILE.iter().enumerate() {
        let dims = vec![Dim::Named((*name).into()), Dim::Fixed(i), Dim::Dynamic];
        p.data(name, DType::ALL[i], dims);
    }
    let x = p.feed("0").unwrap();
    p.set_fetches(HOSTILE.iter().map(|n| (Some(*n), &x)).chain([(None, &x)])).unwrap();
    let again = round_trip(&p);
    assert_eq!(again.feed_names(), HOSTILE);
    let names: Vec<Option<String>> = again.fetches().into_iter().map(|f| f.name).collect();
    assert_eq!(names.iter().flatten().collect::<Vec<_>>(), HOSTILE);
    assert!(again.to_string().lines().all(|l| l.chars().all(|c| !c.is_control())));
}

#[test]
fn scalars_read_back_with_their_bits() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::C128, ());
    let floats = [
        0.1,
        -0.0,
        1e300,
        5e-324,
        1e16,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7ff0_0000_0000_0001),
        f64::from_bits(0xfff8_0000_dead_beef),
        2.0,
    ];
    let mut scalars: Vec<Scalar> = floats.iter().map(|v| Scalar::Float(*v)).collect();
    scalars.extend(floats.iter().zip(&floats[1..]).map(|(re, im)| Scalar::Complex(castwise::Complex::new(*re, *im))));
    scalars.extend([
        Scalar::Bool(true),
        Scalar::Bool(false),
        Scalar::from(i64::MIN),
        Scalar::from(i64::MAX),
        Scalar::from(u64::MAX),
        Scalar::Int(0),
    ]);
    scalars.iter().for_each(|s| drop(&x + *s));
    let text = round_trip(&p).to_string();
    for part in
        ["~0.1\n", "~-0.0\n", "~2.0\n", "~nan\n", "~nan:0x7ff0000000000001\n", "~-inf\n", "~(1e16, inf)\n", "~true\n"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn constants_read_back_with_their_bits() {
    let mut r = Random(7);
    let p = Program::new(Rules::Torch);
    let mut tensors = Vec::new();
    for d in DType::ALL {
        for shape in [&[][..], &[5], &[0, 3], &[2, 1, 3], &[9, 23]] {
            tensors.push(random_tensor(d, shape, &mut r, false));
        }
        tensors.push(random_tensor(d, &[30, 5], &mut r, false).transpose(0, 1).unwrap().slice(0, 1, 4, 2).unwrap());
        tensors.push(random_tensor(d, &[3, 1], &mut r, false).flip(0).unwrap().broadcast_to([4, 3, 1 << 40]).unwrap());
    }
    for t in &tensors {
        p.constant(t.clone());
    }
    let again = round_trip(&p);
    for (i, t) in tensors.iter().enumerate().filter(|(_, t)| t.numel() < 1 << 20) {
        let v = again.var(i).unwrap();
        let read = Executor::builder().threads(1).build().run(&again, feeds! {}, [&v]).unwrap();
        assert_same_bits(&read[0], t, &|| format!("constant {i}"));
    }
}

#[test]
fn ops_attributes_losses_and_mistakes_read_back() {
    for rules in Rules::ALL.iter().copied() {
        let settings = Settings::new(rules).with_default_dtype(DType::F64).with_rounding(Rounding::Relaxed);
        let p = Program::with_settings(settings);
        let (x, y) = (p.data("x", DType::F32, [None, Some(3)]), p.data("y", DType::F32, ["n"]));
        x.at_axis(-1).add(&y);
        x.cast(DType::BF16).cast_output(DType::C64);
        x.view_as(DType::I32).over([0, -1]).keepdim().dtype(DType::F64).sum();
        x.over([]).amax();
        x.huber_loss(&x, 0.5, Reduction::Mean);
        x.smooth_l1_loss(&x, 0.25, Reduction::Sum);
        x.poisson_nll_loss(&x, PoissonNll { full: true, ..PoissonNll::default() });
        let mut all = Attrs::output(DType::U8);
        (all.axis, all.loss) = (Some(i64::MIN), Some(castwise::ops::LossShapes::Broadcast));
        apply(Op::Where, &[(&x).into(), 1.into(), 2.5.into()], all);
        // Mistakes: a duplicate name, a handle of another program, a wrong number of operands.
        p.data("x", DType::U8, ());
        drop(&x + Program::new(rules).data("z", DType::F32, ()));
        apply(Op::Add, &[(&x).into()], Attrs::default());
        let again = round_trip(&p);
        let faults = |p: &Program| -> Vec<(DiagnosticKind, String)> {
            p.check().unwrap_err().diagnostics().iter().map(|d| (d.kind, d.message.clone())).collect()
        };
        assert_eq!(faults(&p), faults(&again));
        assert!(faults(&p).len() >= 4);
    }
}

#[test]
fn every_op_with_every_attribute_reads_back() {
    let mut loss = Attrs::cast(DType::I8);
    loss.loss = Some(castwise::ops::LossShapes::Equal);
    let given = [
        Attrs::cast(DType::BF16),
        Attrs::output(DType::C64),
        Attrs::axis(-1),
        Attrs::dims([0, -1]).with_keepdim(true),
        Attrs::dims([]),
        loss,
    ];
    for op in Op::ALL {
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::F32, [2, 3]);
        for attrs in &given {
            apply(*op, &vec![(&x).into(); op.arity()], attrs.clone());
        }
        let text = p.to_string();
        assert_eq!(Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")).to_string(), text);
        for word in ["{dtype = bf16}", "output", "axis = -1", "dims = [0, -1], keepdim", "dims = []", "loss = equal"] {
            assert!(text.contains(word), "`{word}` is lost\n{text}");
        }
    }
}

#[test]
fn fetches_are_those_declared_or_what_nothing_uses() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [2]);
    let y = &x + 1.0;
    p.data("unused", DType::F32, ());
    let z = y.exp();
    let shown = |p: &Program| p.fetches().iter().map(|f| (f.name.clone(), f.var.index())).collect::<Vec<_>>();
    assert_eq!(shown(&p), [(None, 2), (None, 3)]);
    assert!(p.to_string().contains("  fetch %unused, %1\n"), "{p}");
    p.set_fetches([("loss", &z), ("y", &y)]).unwrap();
    assert!(p.to_string().ends_with("  fetch %1 as \"loss\", %0 as \"y\"\n}\n"), "{p}");
    assert!(p.infer().unwrap().to_string().ends_with("  fetch %1 as \"loss\", %0 as \"y\"\n}\n"));
    assert!(p.infer().unwrap().explain().starts_with("result loss: f32[2]\nresult y: f32[2]\n"));
    assert_eq!(shown(&round_trip(&p))[0].0.as_deref(), Some("loss"));
    assert_eq!(shown(&p.with_rules(Rules::Paddle)), shown(&p));
    assert!(p.set_fetches([("a", &z), ("a", &y)]).is_err());
    assert!(p.set_fetches([("a", &Program::new(Rules::Torch).data("q", DType::F32, ()))]).is_err());
    assert_eq!(shown(&p)[0].0.as_deref(), Some("loss"));
}

const SMALL: &str = "castwise 1
program(rules = torch, default = f64) (%x: f32[?, n, 3], %\"a b\": bf16[]) {
  %0 = constant u8[2, 3] [1, 2, 3, 4, 5, 6] ; a comment
  %bias = constant f32[1] [nan:0x7fc00001] to [3]

  %1 = mul %x, ~(0.5, -1.0) {axis = -1}
  %2 = sum %1 {dims = [0, -1], keepdim}
  %3 = error Broadcast \"it failed\" help \"mend it\"
  fetch %2 as \"loss\", %\"a b\"
}
";

#[test]
fn mistakes_are_reported_together_with_their_places() {
    let text = "castwise 1
program(rules = torch) (%x: f32[3], %x: f32[], %y: f32[9223372036854775807, 9]) {
  %0 = ad %x, ~1
  %1 = add %0, %y
  %2 = add %x
  %3 = add %x, %nope
  %2 = neg %x
  %4 = constant u8[2] [1, 300]
  %5 = constant u8[2] [1]
  %6 = constant f16[1] [1e6]
  %7 = sum %x {dims = [x]}
  %8 = add ~1, ~2
  %9 = neg %x %x
  7 = neg %x
  %10 = constant bool[2] hex \"0003\"
  %11 = constant f32[1] [nan:0x7f800000]
  %12 = add %x, ~99999999999999999999
  %13 = constant i8[2] hex \"0\"
  %14 = where %x, %x, %x, %x, %x
  %15 = cast %x {dtype = f8}
  fetch %2 as a, %x as a
  %16 = neg \"
}
";
    let Err(e) = Program::parse(text) else { panic!("{text}") };
    let found: Vec<(&str, &str)> = e
        .diagnostics()
        .iter()
        .map(|d| {
            let SourceLocation::Text(range) = &d.location else { panic!("{d}") };
            (&text[range.start as usize..range.end as usize], d.message.as_str())
        })
        .collect();
    let expected = [
        ("x", "line 2: the placeholder `x` is declared twice"),
        (
            "%y: f32[9223372036854775807, 9])",
            "line 2: the placeholder `y` is too large: the number of elements is 18446744073709551615, more than the limit of 576460752303423487",
        ),
        ("ad", "line 3: unknown op `ad`"),
        ("nope", "line 6: no value `%nope` above this line"),
        ("2", "line 7: a value with this name exists already"),
        ("300", "line 8: expected a u8, found `300`: number too large to fit in target type"),
        ("u8[2] [1]", "line 9: 1 values for a constant of 2 elements"),
        ("1e6", "line 10: `1e6` is not a number within the range of f16"),
        ("x", "line 11: expected a dim, found `x`: invalid digit found in string"),
        ("%8 = add ~1, ~2", "line 12: `add` of scalars alone"),
        ("%", "line 13: expected the end of the line, found `%`"),
        ("7", "line 14: expected `%`, `fetch` or `}`, found `7`"),
        ("bool[2] hex \"0003\"", "line 15: byte 1 of a bool tensor is 3, neither 0 nor 1"),
        ("0x7f800000", "line 16: not the bits of a f32 NaN"),
        ("99999999999999999999", "line 17: the integer is beyond the range of i64 and of u64"),
        ("\"0\"", "line 18: a byte is not two hexadecimal digits"),
        ("%", "line 19: more than 4 operands"),
        (
            "f8",
            "line 20: expected a dtype, found `f8`: unknown dtype `f8`; known: bool u8 u16 u32 u64 i8 i16 i32 i64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c32 c64 c128",
        ),
        ("a", "line 21: two results have the name `a`"),
        ("\"", "line 22: the string that starts here has no closing `\"`"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn heads_are_checked() {
    let message = |text: &str| match Program::parse(text) {
        Err(Error::Invalid(all)) => all[0].message.clone(),
        other => panic!("{text}: {other:?}"),
    };
    for (text, expected) in [
        ("", "line 1: expected `castwise 1`, found the end of the text"),
        ("; a comment\n\n", "line 3: expected `castwise 1`, found the end of the text"),
        ("program(rules = torch) () {\n}\n", "line 1: expected `castwise 1`, found `program`"),
        ("castwise 2\nwhatever", "line 1: the text has format version 2; this castwise reads version 1"),
        ("castwise x", "line 1: expected the version of the format, found `x`: invalid digit found in string"),
        (
            "castwise 1\nprogram() () {\n}\n",
            "line 2: expected `rules`, `default`, `rounding`, `zero_division` or `contraction`, found `)`",
        ),
        ("castwise 1 program(default = f32) () {\n}\n", "line 1: the program has no `rules` setting"),
        (
            "castwise 1 program(rules = julia) () {\n}\n",
            "line 1: expected rules, found `julia`: unknown rules `julia`: `torch`, `paddle`, `numpy` or `jax`",
        ),
        ("castwise 1 program(rules = torch, rules = torch) () {\n}\n", "line 1: `rules` is given twice"),
        (
            "castwise 1 program(rules = torch, default = i8) () {\n}\n",
            "line 1: the default dtype is i8, not a float dtype",
        ),
        (
            "castwise 1 program(rules = torch) (%0: f32[]) {\n}\n",
            "line 1: a placeholder must have a name; write a name of digits in quotes",
        ),
        ("castwise 1 program(rules = torch) (%x: f32[-1]) {\n}\n", "line 1: `-1` is not an extent"),
        ("castwise 1 program(rules = torch) () {\n", "line 2: expected `}`, found the end of the text"),
        ("castwise 1 program(rules = torch) () {\n} }", "line 2: expected the end of the text, found `}`"),
        ("castwise 1\0", "line 1: unexpected character `\\0`"),
    ] {
        assert_eq!(message(text), expected);
    }
    // Line ends and a byte order mark of other systems.
    let p = Program::parse(&format!("\u{feff}{}", SMALL.replace('\n', "\r\n"))).unwrap();
    assert_eq!(p.to_string(), Program::parse(SMALL).unwrap().to_string());
    let rank = format!("castwise 1 program(rules = torch) (%x: f32[{}]) {{\n}}\n", "1, ".repeat(64) + "1");
    assert_eq!(message(&rank), "line 1: the placeholder `x` has 65 dims, more than 64");
}

#[test]
fn limits_are_named() {
    let long = " ".repeat(MAX_PROGRAM_TEXT + 1);
    let e = Program::parse(&long).unwrap_err();
    assert!(matches!(e, Error::Limit { which: "the length of the program text", .. }), "{e}");
    drop(long);
    let wrong = SMALL.replace("fetch", &"x\n".repeat(2 * MAX_MISTAKES));
    assert_eq!(Program::parse(&wrong).unwrap_err().diagnostics().len(), MAX_MISTAKES);
    let twice = format!("castwise 1 program(rules = torch) ({}%x: f32[]) {{\n}}\n", "%x: f32[], ".repeat(10_000));
    assert_eq!(Program::parse(&twice).unwrap_err().diagnostics().len(), MAX_MISTAKES);
}

/// A text that is read has a canonical text that reads back to itself. Any other text gives mistakes with ranges inside
/// the text.
fn judge(text: &str) -> bool {
    match Program::parse(text) {
        Ok(p) => {
            let printed = p.to_string();
            let again = Program::parse(&printed).unwrap_or_else(|e| panic!("{e}\n{text}\n{printed}"));
            assert_eq!(again.to_string(), printed, "{text}");
            let _ = p.infer();
            true
        }
        Err(e) => {
            assert!(!e.diagnostics().is_empty(), "{text}: {e}");
            for d in e.diagnostics() {
                let SourceLocation::Text(range) = &d.location else { panic!("{d} in {text}") };
                assert!(
                    range.start <= range.end && text.get(range.start as usize..range.end as usize).is_some(),
                    "{d}"
                );
            }
            false
        }
    }
}

#[test]
fn no_text_panics() {
    assert!(judge(SMALL));
    for cut in (0..SMALL.len()).filter(|i| SMALL.is_char_boundary(*i)) {
        assert!(!judge(&SMALL[..cut]) || cut >= SMALL.len() - 1, "cut at {cut}");
    }
    for i in 0..SMALL.len() {
        for bit in 0..7 {
            let mut bytes = SMALL.as_bytes().to_vec();
            bytes[i] ^= 1 << bit;
            judge(&String::from_utf8_lossy(&bytes));
        }
    }
    let tokens = [
        "%",
        "~",
        "0",
        "x",
        "constant",
        "f32",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ",",
        ":",
        "=",
        "?",
        "\n",
        "\"",
        "\\",
        "nan",
        "hex",
        "to",
        "error",
        "fetch",
        "as",
        "add",
        "-",
        "1e999",
        "9999999999999999999999",
        "ä",
        ";",
        "-inf",
        "loss",
        "u{",
    ];
    let mut r = Random(3);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut text = SMALL.to_string();
        for _ in 0..=r.below(3) {
            let mut at = r.below(text.len() as u64) as usize;
            let mut end = at + r.below(6) as usize;
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            while end < text.len() && !text.is_char_boundary(end) {
                end += 1;
            }
            text.replace_range(
                at..end.min(text.len()),
                if r.below(4) == 0 { "" } else { tokens[r.below(tokens.len() as u64) as usize] },
            );
        }
        if judge(&text) { read += 1 } else { refused += 1 }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}

#[test]
fn a_million_lines_need_no_recursion() {
    let work = || {
        let mut text = String::from("castwise 1\nprogram(rules = torch) (%x: f32[?]) {\n  %0 = neg %x\n");
        for i in 1..1_000_000 {
            text += &format!("  %{i} = add %{}, ~0.5\n", i - 1);
        }
        text += "  fetch %999999\n}\n";
        let p = Program::parse(&text).unwrap();
        assert_eq!(p.len(), 1_000_001);
        assert!(p.to_string() == text);
        // The deepest possible text: brackets that are never closed.
        let open = format!("castwise 1\nprogram(rules = torch) (%x: f32{}", "[(".repeat(1_000_000));
        assert!(Program::parse(&open).is_err());
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn a_parsed_program_runs() {
    let p: Program = "castwise 1\nprogram(rules = torch) (%x: bf16[?]) {\n  %y = mul %x, ~2.0\n  fetch %y as \"y\"\n}"
        .parse()
        .unwrap();
    let t = Tensor::full([3], bf16::from_f32(1.5)).unwrap();
    let out = Executor::new().run(&p, feeds! { "x" => t }, p.fetches().iter().map(|f| &f.var)).unwrap();
    assert_eq!(out[0].to_vec::<bf16>().unwrap(), [bf16::from_f32(3.0); 3]);
    // A mistake of the program has the location of its line.
    let wrong = SMALL
        .replace("  %3 = error Broadcast \"it failed\" help \"mend it\"\n", "  %3 = neg %q\n")
        .replace("bf16[]", "bool[], %q: bool[]");
    let e = Program::parse(&wrong).unwrap().check().unwrap_err();
    let SourceLocation::Text(range) = &e.diagnostics().last().unwrap().location else { panic!("{e}") };
    assert_eq!(&wrong[range.start as usize..range.end as usize], "%3 = neg %q");
}
