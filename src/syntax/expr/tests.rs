//! The programs that expressions build, as text, and the byte ranges of mistakes.

use super::*;
use crate::base::dtype::DType;
use crate::base::error::{DiagnosticKind, SourceLocation};
use crate::promotion::Rules;

fn program() -> Program {
    let p = Program::new(Rules::Torch);
    for name in ["a", "b", "c", "red", "nir", "layer.0.weight", "two words"] {
        p.data(name, DType::F32, [2]);
    }
    p
}

/// The lines of the program that an expression builds, joined by `;`.
fn lines(text: &str) -> String {
    let p = program();
    p.expression(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let printed = p.to_string();
    let body = printed.lines().skip_while(|l| !l.ends_with('{')).skip(1).map(str::trim);
    let body: Vec<&str> = body.filter(|l| *l != "}" && !l.starts_with("fetch")).collect();
    body.join("; ")
}

fn fault(text: &str) -> Diagnostic {
    let p = program();
    let before = p.len();
    let error = p.expression(text).expect_err(text);
    assert_eq!(p.len(), before, "{text} left nodes behind");
    let [d] = error.diagnostics() else { panic!("{text}: {error}") };
    d.clone()
}

/// The part of the text that the error of an expression points at.
fn caret(text: &str) -> &str {
    match fault(text).location {
        SourceLocation::Text(r) => &text[r.start as usize..r.end as usize],
        other => panic!("{text}: {other}"),
    }
}

#[test]
fn operators_bind_as_in_python() {
    let table = [
        ("a + b * c", "%0 = mul %b, %c; %1 = add %a, %0"),
        ("a * b + c", "%0 = mul %a, %b; %1 = add %0, %c"),
        ("a - b - c", "%0 = sub %a, %b; %1 = sub %0, %c"),
        ("a - (b - c)", "%0 = sub %b, %c; %1 = sub %a, %0"),
        ("a / b * c", "%0 = div %a, %b; %1 = mul %0, %c"),
        ("a // b % c", "%0 = floor_divide %a, %b; %1 = remainder %0, %c"),
        ("-a ** b", "%0 = pow %a, %b; %1 = neg %0"),
        ("a ** -b", "%0 = neg %b; %1 = pow %a, %0"),
        ("a ** -b ** c", "%0 = pow %b, %c; %1 = neg %0; %2 = pow %a, %1"),
        ("a ** b ** c", "%0 = pow %b, %c; %1 = pow %a, %0"),
        ("a ** -b * c", "%0 = neg %b; %1 = pow %a, %0; %2 = mul %1, %c"),
        ("-a * b", "%0 = neg %a; %1 = mul %0, %b"),
        ("~a & b", "%0 = bitwise_not %a; %1 = bitwise_and %0, %b"),
        ("--a", "%0 = neg %a; %1 = neg %0"),
        ("+a + +b", "%0 = add %a, %b"),
        ("a | b ^ c & a", "%0 = bitwise_and %c, %a; %1 = bitwise_xor %b, %0; %2 = bitwise_or %a, %1"),
        ("a & b == c", "%0 = bitwise_and %a, %b; %1 = eq %0, %c"),
        ("a < b + c", "%0 = add %b, %c; %1 = lt %a, %0"),
        ("(a < b) == (b >= c)", "%0 = lt %a, %b; %1 = ge %b, %c; %2 = eq %0, %1"),
        ("a != b", "%0 = ne %a, %b"),
        ("a*-b+c", "%0 = neg %b; %1 = mul %a, %0; %2 = add %1, %c"),
    ];
    for (text, expected) in table {
        assert_eq!(lines(text), expected, "{text}");
    }
}

#[test]
fn calls_names_and_casts() {
    let table = [
        ("sqrt(a)", "%0 = sqrt %a"),
        ("ln(a)", "%0 = log %a"),
        ("where(a > 0, b, 1.5)", "%0 = gt %a, ~0; %1 = where %0, %b, ~1.5"),
        ("maximum(a + b, -c)", "%0 = add %a, %b; %1 = neg %c; %2 = maximum %0, %1"),
        (
            "cast(a, bf16) + astype(b * c, float64)",
            "%0 = cast %a {dtype = bf16}; %1 = mul %b, %c; %2 = cast %1 {dtype = f64}; %3 = add %0, %2",
        ),
        ("view_as(a, i32) & 7", "%0 = view_as %a {dtype = i32}; %1 = bitwise_and %0, ~7"),
        ("exp ( a )", "%0 = exp %a"),
        ("pow(2, a)", "%0 = pow ~2, %a"),
        ("layer.0.weight * 2", "%0 = mul %layer.0.weight, ~2"),
        ("\"two words\" / \"layer.0.weight\"", "%0 = div %\"two words\", %layer.0.weight"),
        ("sqrt(sqrt(a) + 1)", "%0 = sqrt %a; %1 = add %0, ~1; %2 = sqrt %1"),
    ];
    for (text, expected) in table {
        assert_eq!(lines(text), expected, "{text}");
    }
    assert_eq!(lines("a"), "");
    assert_eq!(lines("((+a))"), "");
    // A named part is one node, even if it is used several times.
    assert_eq!(lines("t = a - b; c + 0.3*t"), "%0 = sub %a, %b; %1 = mul ~0.3, %0; %2 = add %c, %1");
    assert_eq!(lines("t = a*b; u = t + t; u * t"), "%0 = mul %a, %b; %1 = add %0, %0; %2 = mul %1, %0");
    assert_eq!(lines("w = 1/4; v = 1 - w; v*a + w*b"), "%0 = mul ~0.75, %a; %1 = mul ~0.25, %b; %2 = add %0, %1");
    assert_eq!(lines("\"a b\" = a; -\"a b\""), "%0 = neg %a");
    assert_eq!(lines("t = a; t"), "");
}

#[test]
fn constants_keep_their_category_and_fold_as_in_python() {
    let table = [
        ("2", "~2"),
        ("0x1F", "~31"),
        ("2.0", "~2.0"),
        (".5", "~0.5"),
        ("1.", "~1.0"),
        ("1e-3", "~0.001"),
        ("2j", "~(0.0, 2.0)"),
        ("1.5 - 2j", "~(1.5, -2.0)"),
        ("true", "~true"),
        ("-inf", "~-inf"),
        ("nan", "~nan"),
        ("2 * 3", "~6"),
        ("7 / 2", "~3.5"),
        ("4 / 2", "~2.0"),
        ("2 ** 10", "~1024"),
        ("2 ** -1", "~0.5"),
        ("-2 ** 2", "~-4"),
        ("2 ** 0.5", "~1.4142135623730951"),
        ("(1 - 3) * 0.5", "~-1.0"),
        ("-1.5", "~-1.5"),
        ("- 9223372036854775808", "~-9223372036854775808"),
        ("9223372036854775807", "~9223372036854775807"),
        ("(-1) ** 9223372036854775807", "~-1"),
    ];
    for (text, expected) in table {
        assert_eq!(lines(&format!("maximum(a, {text})")), format!("%0 = maximum %a, {expected}"), "{text}");
    }
    assert_eq!(lines("a * 2 * 3"), "%0 = mul %a, ~2; %1 = mul %0, ~3");
    assert_eq!(lines("2 * 3 * a"), "%0 = mul ~6, %a");
}

#[test]
fn mistakes_point_at_the_text_they_are_in() {
    let table = [
        ("", "", "ends where an operand"),
        ("a +", "", "ends where an operand"),
        ("a b", "b", "operator is missing"),
        ("a * / b", "/", "operand is missing"),
        ("(a + b", "(", "never closed"),
        ("sqrt(a", "sqrt", "never closed"),
        ("a + b)", ")", "has no opening one"),
        ("()", "()", "parentheses are empty"),
        ("a, b", ",", "comma"),
        ("(a, b)", ",", "comma"),
        ("sqrt(a, b)", "sqrt(a,", "takes 1 operand"),
        ("sqrt()", "sqrt()", "takes 1 operand"),
        ("maximum(a)", "maximum(a)", "takes 2 operands"),
        ("maximum(a,)", ")", "operand is missing"),
        ("a < b < c", "<", "do not chain"),
        ("a and b", "and", "`and` is not"),
        ("not a", "not", "`not` is not"),
        ("a << 2", "<<", "`<<` is not"),
        ("a = b", "a", "is an input already"),
        ("a == b = c", "=", "`=` is not"),
        ("a + (b = c)", "=", "`=` is not"),
        ("t = a; t = b; t", "t", "is assigned already"),
        ("t = a; b", "t", "assigned and never used"),
        ("t = a", "t", "ends with an assignment"),
        ("t = ; a", ";", "operand is missing"),
        ("t = (a; b", "(", "never closed"),
        ("a; b", "a", "may have no name"),
        ("2 = a; a", "2", "must follow a name"),
        ("inf = a; a", "inf", "is a constant"),
        ("= a", "=", "`=` is not"),
        ("t = t + a; t", "t", "there is no input"),
        ("a ~ b", "~", "before an operand"),
        ("2x + a", "2x", "follows a number"),
        ("1.5e + a", "1.5e", "follows a number"),
        ("0x + a", "0x", "hexadecimal"),
        ("012 + a", "012", "start with 0"),
        ("a + 18446744073709551616", "18446744073709551616", "range of u64"),
        ("a + -9223372036854775809", "-9223372036854775809", "range of i64"),
        ("a + 9223372036854775807 * 3", "9223372036854775807 * 3", "range of i64"),
        ("a + 1e400", "1e400", "range of f64"),
        ("a + 1 / 0", "1 / 0", "division by zero"),
        ("a * (7 // 2)", "7 // 2", "only be combined by `+ - * / **`"),
        ("a * sqrt(2)", "sqrt(2)", "are constants"),
        ("a * -true", "-true", "arithmetic on the constants"),
        ("1 + 2", "1 + 2", "uses no input"),
        ("cast(a)", "cast(a)", "a value and a dtype"),
        ("cast(a, f33)", "f33", "unknown dtype"),
        ("cast(a, 2)", "2", "name of a dtype"),
        ("sum(a, -1)", "sum(a,", "takes 1 operand"),
        ("sum(a, dims=x)", "x", "`dims` takes integers, e.g. `dims=-1` or `dims=(0, 1)`"),
        ("sum(a, axis=1.0)", "1.0", "`axis` takes integers"),
        ("sum(a, dims=(0, b))", "b", "`dims` takes integers"),
        ("sum(a, dims=(0 1))", "1", "expected `,` or `)` in `dims`"),
        ("sum(a, dims=[0, 1)", ")", "expected `,` or `]` in `dims`"),
        ("sum(a, dims=-9223372036854775809)", "-9223372036854775809", "`dims` takes integers"),
        ("sum(a, dims=0 + 1)", "+", "expected `,` or `)` after the value of `dims`"),
        ("sum(a, dims=", "", "`dims` takes integers"),
        ("sum(a, keepdim=1)", "1", "`keepdim` is `true` or `false`"),
        ("sum(a, dtype=f33)", "f33", "unknown dtype"),
        ("sum(a, dtype=3)", "3", "`sum` takes the name of a dtype here"),
        ("sum(a, dims=0, dim=1)", "dim", "`dim` of `sum` is given twice"),
        ("sum(a, keepdim=true, keepdim=true)", "keepdim", "`keepdim` of `sum` is given twice"),
        ("sum(dims=0)", "sum(dims=0)", "takes 1 operand"),
        ("sum(a, dims=0,)", ")", "operand is missing"),
        ("clamp(a, min=0, 1)", "1", "an operand without a name follows one with a name"),
        ("clamp(a, 0, min=1)", "min", "`min` of `clamp` is given twice"),
        ("clamp(a, 0)", "clamp(a, 0)", "takes 3 operands"),
        ("clamp(min=0)", "clamp(min=0)", "takes 3 operands"),
        ("clamp(a, 0, 1, max=2)", "max", "`max` of `clamp` is given twice"),
        ("maximum(a, y = )", ")", "operand is missing"),
        ("maximum(a, -b = c)", "=", "`=` is not"),
        ("maximum(a, y=-b=c)", "=", "`=` is not"),
        ("clamp(a, min=max=1)", "max", "there is no input"),
        ("cast(a, dtype=2)", "2", "name of a dtype"),
        ("cast(a, dtype=None)", "None", "unknown dtype"),
        ("cast(a, dtype=f32, dtype=f64)", "dtype", "given twice"),
        ("add(a, b, axis=a)", "a", "`axis` takes an integer"),
        ("cast(a, f32, b)", ",", "expected `)` after the dtype"),
        ("cast(a, f32", "", "expected `)` after the dtype"),
        ("view_as(a)", "view_as(a)", "`view_as` takes a value and a dtype"),
        ("view_as(a, i32, b)", ",", "expected `)` after the dtype of `view_as`"),
        ("\"a", "\"a", "no closing"),
        ("a + é", "é", "unexpected character"),
        ("a # b", "#", "unexpected character"),
    ];
    for (text, at, message) in table {
        let d = fault(text);
        assert!(d.message.contains(message), "{text}: {}", d.message);
        assert_eq!(caret(text), at, "{text}");
    }
}

#[test]
fn a_typo_is_answered_with_the_likely_name() {
    let table = [
        ("sqr(a)", "did you mean `sqrt`?"),
        ("maxi(a, b)", "did you mean `maximum`?"),
        ("tahn(a)", "did you mean `tanh`?"),
        ("nri + red", "did you mean `nir`?"),
        ("sqrt + a", "it is an op: write `sqrt(x)`"),
        ("rat(a)", ""),
        ("astype + a", "it is an op: write `cast(x, f32)`"),
        ("view_as + a", "it is an op: write `view_as(x, f32)`"),
        ("view_as(a)", "`view_as(x, f32)`"),
        ("nir(2)", "it is an input: write `*` to multiply"),
        ("sum(a, dimz=1)", "did you mean `dims`?"),
        ("mean(a, where=b)", "it takes `x`, `dims`, `keepdim` and `dtype`"),
        ("sqrt(a, dims=1)", "it takes `x`"),
        ("maximum(a, z=b)", "it takes `x`, `y` and `axis`"),
        ("cast(a, to=f32)", "it takes `x` and `dtype`"),
    ];
    for (text, help) in table {
        let d = fault(text);
        assert!(d.kind == DiagnosticKind::Name || text == "view_as(a)", "{text}");
        if !help.is_empty() {
            assert_eq!(d.help.as_deref(), Some(help), "{text}");
        }
    }
}

#[test]
fn a_number_that_stands_for_an_operand_is_shown_with_its_name() {
    let table = [
        ("topk(a, 4)", "`topk(x, k=1)`"),
        ("topk + a", "it is an op: write `topk(x, k=1)`"),
        ("norm(a, 1)", "`norm(x)`; over some dims: `norm(x, p=2, dims=-1, keepdim=true)`"),
        ("quantile(a, 0.5)", "`quantile(x, q=1)`; over some dims: `quantile(x, q=1, dims=-1, keepdim=true)`"),
    ];
    for (text, help) in table {
        assert_eq!(fault(text).help.as_deref(), Some(help), "{text}");
    }
}

#[test]
fn attributes_and_operands_have_names() {
    let table = [
        ("mean(a, dims=-1, keepdim=True)", "%0 = mean %a {dims = [-1], keepdim}"),
        ("sum(a, dims=(0, 1))", "%0 = sum %a {dims = [0, 1]}"),
        ("sum(a, axis=[0, -1,]) * 2", "%0 = sum %a {dims = [0, -1]}; %1 = mul %0, ~2"),
        ("sum(a, dim=0, keepdims=false, dtype=f64)", "%0 = sum %a {dtype = f64, dims = [0]}"),
        ("sum(a, dims=None, dtype=None)", "%0 = sum %a"),
        ("any(a, dims=())", "%0 = any %a {dims = []}"),
        ("-amax(a + b, keepdim = true, dims = 1)", "%0 = add %a, %b; %1 = amax %0 {dims = [1], keepdim}; %2 = neg %1"),
        ("a - sum(exp(a - amax(a, dims=0)), dims=0)", ""),
        ("cast(a, dtype=bf16)", "%0 = cast %a {dtype = bf16}"),
        ("cast(dtype=bf16, x=a)", "%0 = cast %a {dtype = bf16}"),
        ("clamp(a, min=0)", "%0 = clamp_min %a, ~0"),
        ("clip(a, max=b + 1)", "%0 = add %b, ~1; %1 = clamp_max %a, %0"),
        ("clamp(a, max=1, min=-1)", "%0 = clamp %a, ~-1, ~1"),
        ("clamp(a, 0, max=1)", "%0 = clamp %a, ~0, ~1"),
        ("add_scaled(a, b, alpha=2)", "%0 = add_scaled %a, %b, ~2"),
        ("where(y=a, condition=a > 0, x=b)", "%0 = gt %a, ~0; %1 = where %0, %b, %a"),
        ("add(a, b, axis=-1)", "%0 = add %a, %b {axis = -1}"),
    ];
    for (text, expected) in table {
        let built = lines(text);
        assert!(built == expected || expected.is_empty(), "{text}: {built}");
        let p = program();
        p.expression(text).unwrap();
        assert_eq!(Program::parse(&p.to_string()).unwrap().to_string(), p.to_string());
    }
    // A name is a part's outside of calls, and in their operands.
    assert_eq!(lines("dims = a + b; sum(dims, dims=0)"), "%0 = add %a, %b; %1 = sum %0 {dims = [0]}");
}

/// The suggested use of each op is a valid expression, and the program that it builds reads back from its text.
#[test]
fn every_op_is_offered_as_it_is_written() {
    for op in Op::ALL {
        let offered = crate::syntax::expr::mistakes::usage(crate::syntax::expr::callee::Callee::Op(*op));
        let text = offered.trim_matches('`');
        let p = Program::new(Rules::Torch);
        op.def().operands.iter().for_each(|name| drop(p.data(name, DType::I32, [2])));
        p.expression(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let printed = p.to_string();
        let dtype = if matches!(op, Op::Cast | Op::ViewAs) { " {dtype = f32}" } else { "" };
        assert!(
            printed.contains(&format!("%0 = {op} ")) && printed.contains(&format!("{dtype}\n  fetch")),
            "{printed}"
        );
        assert_eq!(Program::parse(&printed).unwrap().to_string(), printed);
        assert_eq!(application(text).map(|(o, _)| o), Some(*op));
    }
}

#[test]
fn what_is_no_op_is_written_out_or_left_alone() {
    for (name, written) in crate::syntax::expr::help::WRITTEN_OUT {
        assert_eq!(
            Op::from_name(name),
            None,
            "`{name}` is an op now: take it out of WRITTEN_OUT (src/syntax/expr/help.rs)"
        );
        let p = Program::new(Rules::Torch);
        ["x", "y"].iter().for_each(|name| drop(p.data(name, DType::F32, [2])));
        p.expression(written).and_then(|_| p.check()).unwrap_or_else(|e| panic!("{written}: {e}"));
    }
    assert_eq!(
        fault("mse_loss(a)").help.as_deref(),
        Some("write it out: `mean(square(x - y))`, over all elements (over a dim: `sum(x, dims=-1, keepdim=true)`)")
    );
    assert_eq!(fault("relu6(a)").help.as_deref(), Some("write it out: `clamp(x, 0, 6)`"));
    // Functions that resemble no op get no suggestion, even if their names are similar to one.
    let others = "conv2d matmul einsum gather stack concat \
                  reshape transpose kron outer trace digamma lgamma erfinv i0 \
                  softshrink hardshrink batch_norm cross_entropy log_sum unique roll diff \
                  histogram one_hot dropout embedding";
    let guessed: Vec<_> =
        others.split_whitespace().filter_map(|n| Some((n, fault(&format!("{n}(a)")).help?))).collect();
    assert!(guessed.is_empty(), "{guessed:?}");
}

#[test]
fn nodes_carry_the_range_they_were_written_at() {
    let text = "(a + b) * sqrt( c ) - -a";
    let p = program();
    p.expression(text).unwrap();
    let state = p.shared.read();
    let written: Vec<&str> = state
        .nodes
        .node_weights()
        .filter_map(|n| match &n.location {
            SourceLocation::Text(r) => Some(&text[r.start as usize..r.end as usize]),
            _ => None,
        })
        .collect();
    assert_eq!(written, ["a + b", "sqrt( c )", "(a + b) * sqrt( c )", "-a", text]);
}

#[test]
fn names_may_stand_for_scalars() {
    let p = program();
    p.expression_with("(1 - w)*a + w*b", |n| (n == "w").then_some(Scalar::Float(0.25))).unwrap();
    assert!(p.to_string().contains("mul ~0.75, %a") && p.to_string().contains("mul ~0.25, %b"), "{p}");
    let taken = p.expression_with("w = a; w", |n| (n == "w").then_some(Scalar::Int(1))).unwrap_err();
    assert!(taken.to_string().contains("`w` is an input already"), "{taken}");
}

#[test]
fn a_part_is_computed_once_in_eager_mode_too() {
    let t = crate::tensor::Tensor::from_slice(&[1.5f32, 4.0], [2]).unwrap();
    let x = crate::runtime::eager::value::Eager::new(Rules::Torch).tensor(&t);
    let y = parse_expression("t = x*x; u = t + 1; t*u - t", |n| (n == "x").then(|| x.clone())).unwrap();
    assert_eq!(y.result().unwrap().to_vec::<f32>().unwrap(), [5.0625, 256.0]);
}

#[test]
fn deep_nesting_and_long_chains_need_no_stack() {
    let read = |text: String| {
        let small = std::thread::Builder::new().stack_size(256 << 10);
        small.spawn(move || program().expression(&text).map(|_| ())).unwrap().join().unwrap()
    };
    let n = 1_000_000;
    assert!(read(format!("{}a{}", "(".repeat(n), ")".repeat(n))).is_ok());
    assert!(read("(".repeat(n)).is_err());
    let n = 200_000;
    assert!(read(format!("{}a", "-".repeat(n))).is_ok());
    assert!(read(format!("a{}", " + a".repeat(n))).is_ok());
    assert!(read(format!("a{}", "**a".repeat(n))).is_ok());
    assert!(read(format!("{}a{}", "sqrt(".repeat(n), ")".repeat(n))).is_ok());
    let n = 20_000;
    let parts: String = (1..n).map(|i| format!("t{i} = t{} + 1;", i - 1)).collect();
    assert!(read(format!("t0 = a; {parts} t{}", n - 1)).is_ok());
    assert!(matches!(read(" ".repeat(MAX_EXPRESSION + 1)), Err(crate::Error::Limit { .. })));
}

#[test]
fn no_text_panics() {
    let parts = [
        "a",
        "b",
        "2",
        "1.5",
        "2j",
        "(",
        ")",
        ",",
        "+",
        "-",
        "*",
        "**",
        "//",
        "<",
        "==",
        "~",
        "cast",
        "f32",
        "sqrt",
        "where",
        "sum",
        "dims",
        "keepdim",
        "x",
        "[",
        "]",
        "\"",
        ";",
        "=",
        "t",
        "\\",
        ".",
        "0x",
        "é",
        " ",
        "true",
        "nan",
        "9223372036854775808",
    ];
    let mut seed = 1u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text += parts[(seed >> 33) as usize % parts.len()];
        }
        let p = program();
        if let Err(e) = p.expression(&text) {
            for d in e.diagnostics() {
                let SourceLocation::Text(r) = &d.location else { panic!("{text}: {e}") };
                assert!(text.get(r.start as usize..r.end as usize).is_some(), "{text}: {e}");
            }
        }
    }
}

#[test]
fn names_are_those_of_inputs() {
    let of = |text: &str| input_names(text).map_err(|e| e.to_string());
    assert_eq!(of("b + a * b").unwrap(), ["b", "a"]);
    assert_eq!(of("t = a - b; u = t * c; t + u").unwrap(), ["a", "b", "c"]);
    assert_eq!(of(r#""a part" = a + pi; clamp("a part", min=min)"#).unwrap(), ["a", "pi", "min"]);
    assert_eq!(of("pi = a + 1; pi * 2").unwrap(), ["a"]);
    for (text, mistake) in [("u = t; t = a; t + u", "no input `t`"), ("t = a", "t"), ("a +", "ends where an operand")] {
        assert!(of(text).unwrap_err().contains(mistake), "{text}");
    }
    assert!(input_names(&"a".repeat(MAX_EXPRESSION + 1)).is_err());
}

#[test]
fn carets_are_below_the_part_of_a_range_in_its_first_line() {
    assert_eq!(marked("é + sqr(b)", 5..8), "\n    é + sqr(b)\n        ^^^");
    assert_eq!(marked("a;\r\n  b + c", 6..99), "\n      b + c\n      ^^^^^");
    assert_eq!(marked("a\nb", 1..2), "\n    a\n     ^");
    assert_eq!(marked("", 0..0), "\n    \n    ^");
    for outside in [1..1, 3..4] {
        assert_eq!(marked("é", outside), "");
    }
}
