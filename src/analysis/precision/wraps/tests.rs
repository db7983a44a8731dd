//! Which ops are told of, and which are not.

use super::*;
use crate::graph::program::Program;
use crate::promotion::{Rules, Settings};

/// The ops that are told of, in the program of an expression over u, v of u8, i of i8, w of i16, n of i32, m of i64, c of
/// bool and f of f32, all of dims.
fn told(rules: Rules, text: &str) -> Vec<WrapNote> {
    let p = Program::with_settings(Settings::new(rules));
    for (name, dtype) in [
        ("u", DType::U8),
        ("v", DType::U8),
        ("i", DType::I8),
        ("w", DType::I16),
        ("n", DType::I32),
        ("m", DType::I64),
        ("c", DType::Bool),
        ("f", DType::F32),
    ] {
        p.data(name, dtype, [2, 3]);
    }
    p.expression(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    p.infer().unwrap_or_else(|e| panic!("{text}: {e}")).hidden_wraps()
}

fn ops(text: &str) -> Vec<&'static str> {
    told(Rules::Torch, text).iter().map(|n| n.op.name()).collect()
}

#[test]
fn ops_that_wrap_before_a_wider_dtype_are_told_of() {
    for (text, found) in [
        ("(u - v) / (u + v)", vec!["sub", "add"]),
        ("(u * 2) * 0.5", vec!["mul"]),
        ("-u * f", vec!["neg"]),
        ("abs(i) / 2", vec!["abs"]),
        ("square(u) + w", vec!["square"]),
        ("cast(u - v, i32)", vec!["sub"]),
        ("(u - v) + w", vec!["sub"]),
        ("cast(n + 1, i64)", vec!["add"]),
        ("cast(u + v, c64)", vec!["add"]),
        ("cast(n * n, f16)", vec!["mul"]),
        ("exp(u + v)", vec!["add"]),
        ("sum(u + v)", vec!["add"]),
        ("mean(cast(u + v, f32))", vec!["add"]),
        ("i // -1 * f", vec!["floor_divide"]),
        ("i ** 3 / 2", vec!["pow"]),
        ("bitwise_left_shift(u, 1) / 2", vec!["bitwise_left_shift"]),
        ("add_scaled(u, v, 2) / 2", vec!["add_scaled"]),
        ("addcmul(u, v, v, 1) / 2", vec!["addcmul"]),
        ("gcd(i, i) / 2", vec!["gcd"]),
        ("lcm(u, 3) / 2", vec!["lcm"]),
        // Through what makes another value of it.
        ("maximum(u + v, 3) / 2", vec!["add"]),
        ("amax(u + v) / 2", vec!["add"]),
        ("where(c, u + v, u) / 2", vec!["add"]),
        ("sign(u - v) / 2", vec!["sub"]),
        ("bitwise_right_shift(u + v, 1) / 2", vec!["add"]),
        ("(u - v) % 10 / 2", vec!["sub"]),
        ("((u + v) ^ v) / 2", vec!["add"]),
        ("(u + v) * u / 2", vec!["add", "mul"]),
        ("cast(cast(u + v, i16), f32) + cast(u + v, i32)", vec!["add", "add"]),
        // A mask of low bits behind what moves the lost ones there.
        ("(maximum(u + v, 3) & 15) / 2", vec!["add"]),
        ("(((u + v) & (u * v)) / 2)", vec!["add", "mul"]),
    ] {
        assert_eq!(ops(text), found, "{text}");
    }
}

#[test]
fn ordinary_integer_code_is_not_told_of() {
    for text in [
        // The wrapped value is the result itself, or decides about others.
        "u + v",
        "u * 2 - v",
        "(n * 31 + 7) ^ n",
        "(u + v > 100) * f",
        "where(u - v == 0, f, 0.0)",
        // Nothing can leave the dtype.
        "maximum(u, v) / 2",
        "(u & v) / 2 + (u | v) / 2 + (u ^ v) / 2 + ~u / 2",
        "u / 2 + u // 2 + u % 7 + abs(u) / 2 + +u / 2",
        "bitwise_right_shift(n, 3) * f",
        "relu(i) / 2 + sign(i) / 2 + clamp(n, 0, 9) / 2",
        "i // 2 / 2 + fmod(i, 3) / 2 + w ** 1 / 2 + u * 1 / 2 + u + 0.5",
        // The ranges of operands say so.
        "(minimum(u, 100) + 100) / 2",
        "(clamp(w, -100, 100) * 300) / 2",
        "(cast(c, u8) + cast(c, u8)) / 2",
        "(cast(u, i16) - v) / (cast(u, i16) + v)",
        "((u & 15) * 17) / 2",
        "((n % 1000) * 1000) * f",
        "(bitwise_right_shift(u, 1) + bitwise_right_shift(v, 1)) / 2",
        "cast(clamp(m, 0, 100), u8) * 2 / 2",
        "bitwise_left_shift(cast(c, u8), 7) / 2",
        // 64 bits are as wide as integers are.
        "m * m / 2",
        "(m * 31 + 7) * f",
        "sum(u) * sum(u) * f",
        "prod(n) / 2",
        // What is lost by the cast is the cast's loss.
        "cast(n, u8) / 2",
        "cast(f, u8) / 2",
        // Low bits are right.
        "((n * 31 + 7) & 255) * f",
        "((u * v) % 16) / 2",
        "cast(n * 31, u8) / 2",
        "cast(u - v, i8) / 2",
        "(((u + v) ^ (u * 3)) & 63) / 2",
        "(((u + v) & v) / 2)",
    ] {
        assert!(ops(text).is_empty(), "{text}: {:?}", ops(text));
    }
}

#[test]
fn ranges_places_and_help_are_those_of_the_op() {
    let text = "f * (u - v)";
    let found = told(Rules::Torch, text);
    let WrapNote { dtype, to, needs, has, help, location, .. } = &found[0];
    assert_eq!((*dtype, *to, needs, has), (DType::U8, DType::F32, &(-255..=255), &(0..=255)));
    assert_eq!(found[0].ranges(), "needs -255 to 255, has 0 to 255");
    assert_eq!((help.as_str(), location), ("cast an operand first, e.g. `cast(x, i16)`", &SourceLocation::Text(5..10)));
    let one = |rules, text: &str| told(rules, text)[0].clone();
    assert_eq!(one(Rules::Paddle, "(u - v) / 2").help, "cast the operands first, e.g. `cast(x, i16)`");
    assert_eq!(one(Rules::Torch, "(300 - u) / 2").help, "cast an operand first, e.g. `cast(y, i16)`");
    assert_eq!(one(Rules::Torch, "n * n / 2").help, "cast an operand first, e.g. `cast(x, i64)`");
    let far = one(Rules::Torch, "i ** u / 2");
    assert_eq!(far.ranges(), "needs less than -2^64 to more than 2^64, has -32768 to 32767");
    // The widest dtype, whichever takes it first.
    assert_eq!(one(Rules::Torch, "t = u + v; cast(t, f64) + cast(t, f32)").to, DType::F64);

    // In Rust, in the words of Rust; of a 0-d operand and one with dims the latter is to be cast.
    let p = Program::new(Rules::Torch);
    let _ = (p.data("s", DType::U8, ()) - p.data("u", DType::U8, [3])) / 2.0;
    let text = p.infer().unwrap().explain();
    assert!(text.contains("1 integer op may wrap before a wider dtype takes the value:"), "{text}");
    assert!(
        text.contains("sub in u8 needs -255 to 255, has 0 to 255 at src/analysis/precision/wraps/tests.rs:"),
        "{text}"
    );
    assert!(text.contains("cast an operand first, e.g. `y.cast(DType::I16)`"), "{text}");
}

#[test]
fn constants_and_extents_count() {
    let found = |build: &dyn Fn(&Program) -> crate::graph::var::Var| {
        let p = Program::new(Rules::Paddle);
        drop(build(&p).cast(DType::F64));
        p.infer().unwrap().hidden_wraps().iter().map(|n| n.op).collect::<Vec<_>>()
    };
    let u = |p: &Program, dims: [Option<usize>; 1]| p.data("u", DType::U8, dims);
    let constant = |v: u8| Tensor::from([0, v, 1]);
    // The values of a constant, not all of its dtype.
    assert!(found(&|p| p.constant(constant(200)) + p.constant(constant(55))).is_empty());
    assert_eq!(found(&|p| p.constant(constant(200)) + p.constant(constant(56))), [Op::Add]);
    let large = Tensor::from([1u8]).broadcast_to([1 << 40]).unwrap();
    assert_eq!(found(&|p| p.constant(large.clone()) + 1), [Op::Add]);
    // Paddle sums small integers in their own dtype.
    assert!(found(&|p| u(p, [Some(1)]).sum()).is_empty());
    assert_eq!(found(&|p| u(p, [Some(2)]).sum()), [Op::Sum]);
    assert_eq!(found(&|p| u(p, [None]).sum()), [Op::Sum]);
    assert!(found(&|p| u(p, [Some(3)]).minimum(p.constant(constant(5)).amax()).sum()).is_empty());
    assert!(found(&|p| (u(p, [None]) & 1).prod()).is_empty());
}
