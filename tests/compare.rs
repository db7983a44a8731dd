//! `compare` and `with_rules`: the differences between two rule sets on one program. Also the help texts of promotion
//! errors: the suggested correction works, and the statement about the other rule set is true.

use castwise::prelude::*;
use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, DiagnosticKind, Difference, Op, Operand, Outcome, SourceLocation, apply, compare};

const TORCH: Rules = Rules::Torch;
const PADDLE: Rules = Rules::Paddle;

/// `op torch paddle` for each difference, with `-` for an error.
fn table(p: &Program) -> Vec<String> {
    let cell = |o: &Outcome| match o {
        Outcome::DType(d) => d.to_string(),
        Outcome::Refused(_) => "-".into(),
    };
    let line = |d: &Difference| format!("{} {} {}", d.op, cell(&d.outcomes[0].1), cell(&d.outcomes[1].1));
    let found = compare(p, TORCH, PADDLE);
    let mut turned = compare(p, PADDLE, TORCH);
    turned.iter_mut().for_each(|d| d.outcomes.reverse());
    assert_eq!(found, turned);
    assert_eq!(compare(p, TORCH, TORCH), []);
    found.iter().map(line).collect()
}

#[test]
fn a_mix_that_one_refuses_is_listed_once_with_its_line() {
    for rules in [TORCH, PADDLE] {
        let p = Program::new(rules);
        let (a, b) = (p.data("a", DType::I64, [3]), p.data("b", DType::F32, [3]));
        let line = line!() + 1;
        let sum = &a + &b;
        let _uses = (&sum * 2.0).exp();
        let _broadcast = &b + p.data("c", DType::F32, [2]);
        let _agree = &b * &b;
        assert_eq!(table(&p), ["add f32 -"]);

        let d = compare(&p, TORCH, PADDLE).remove(0);
        assert_eq!((d.node, p.var(d.node).map(|v| v.index())), (sum.index(), Some(sum.index())));
        assert!(matches!(d.location, SourceLocation::Rust(l) if l.line() == line), "{:?}", d.location);
        let Outcome::Refused(refusal) = &d.outcomes[1].1 else { panic!("{d}") };
        assert_eq!((refusal.kind, &refusal.location), (DiagnosticKind::PromotionRefused, &d.location));
        let text = d.to_string();
        assert!(text.starts_with("`add` at ") && text.contains("compare.rs"), "{text}");
        assert!(text.contains(": torch gives f32; paddle refuses: ") && text.contains("i64[3], f32[3]"), "{text}");
        assert_eq!(text.lines().count(), 1);
    }
}

#[test]
fn integers_to_float() {
    let of = |default_dtype| {
        let p = Program::with_settings(Settings::new(TORCH).with_default_dtype(default_dtype));
        let (a, b) = (p.data("a", DType::I32, [3]), p.data("b", DType::I32, [3]));
        let _ = (&a / &b, a.atan2(&b), a.exp(), &a + &b, a.float_power(&b));
        table(&p)
    };
    assert_eq!(of(DType::F32), ["atan2 f32 f64"]);
    assert_eq!(of(DType::F64), ["div f64 f32", "exp f64 f32"]);
}

#[test]
fn zero_dim_tensors() {
    let p = Program::new(TORCH);
    let zero = |d: DType| p.data(&format!("zero {d}"), d, ());
    let dims = |d: DType| p.data(&format!("dims {d}"), d, [3]);
    let (i32s, i64z) = (dims(DType::I32), zero(DType::I64));
    let (f16s, f64z) = (dims(DType::F16), zero(DType::F64));
    let c = dims(DType::Bool);
    let _agree = (&i32s + &i64z, &i64z * 2, &i32s * &f64z, &f64z + &i64z, f16s.lt(&f64z), c.where_(&f16s, &f16s));
    assert_eq!(table(&p), Vec::<String>::new());
    let _differ = (c.where_(&f16s, &f64z), i32s.maximum(&i64z), &f16s + zero(DType::C64), f16s.logical_and(&i64z));
    assert_eq!(table(&p), ["where f16 f64", "maximum i32 -", "add c32 c64", "logical_and bool -"]);
}

#[test]
fn what_both_refuse_is_no_difference() {
    let p = Program::new(TORCH);
    let (b, c) = (p.data("b", DType::Bool, [3]), p.data("c", DType::C64, [3]));
    let _ = (&b - &b, -&b, c.lt(&c), c.maximum(&c), &c & &c);
    assert_eq!(table(&p), Vec::<String>::new());
    let text = p.check().unwrap_err().to_string();
    for help in ["logical_xor", "logical_not", "compare `abs(x)` or `real(x)`", "`cast(real(x), i64)`"] {
        assert!(text.contains(help), "{text}");
    }
    // Paddle subtracts a bool tensor from a complex one; PyTorch refuses that.
    let _ = (&c - &b, &b - p.data("i", DType::I64, [3]));
    assert_eq!(table(&p), ["sub - c64"]);
}

#[test]
fn equal_floats_agree_under_every_op() {
    let p = Program::new(TORCH);
    let (c, x) = (p.data("c", DType::Bool, [3]), p.data("x", DType::F32, [3]));
    for op in Op::ALL {
        let def = op.def();
        let parameters = def.operands.len() - def.parameters();
        let operand = |(i, name): (usize, &&str)| match *name {
            "condition" => Operand::Var(c.clone()),
            _ if i >= parameters => Operand::Scalar(Scalar::Float(0.5)),
            _ => Operand::Var(x.clone()),
        };
        let operands: Vec<Operand> = def.operands.iter().enumerate().map(operand).collect();
        apply(*op, &operands, if *op == Op::Cast { Attrs::cast(DType::F16) } else { Attrs::default() });
    }
    assert_eq!(table(&p), Vec::<String>::new());
}

#[test]
fn with_rules_keeps_nodes_names_places_and_mistakes() {
    let p = Program::with_settings(Settings::new(TORCH).with_default_dtype(DType::F64));
    let (a, b) = (p.data("a", DType::I64, ["n"]), p.data("b", DType::F32, ["n"]));
    let k = p.constant(Tensor::from_slice(&[1.5f32, 2.5], [2]).unwrap());
    let y = (&b / &k).where_(&a, 2);
    let z = &k * 2.0 - &b;
    let _twice = p.data("a", DType::F32, ());
    let q = p.with_rules(PADDLE);
    assert_eq!((q.len(), q.feed_names()), (p.len(), p.feed_names()));
    assert_eq!(q.settings(), Settings::new(PADDLE).with_default_dtype(DType::F64));
    assert_eq!(q.to_string(), p.to_string().replace("rules = torch", "rules = paddle"));
    assert_eq!(q.with_rules(TORCH).check().unwrap_err().to_string(), p.check().unwrap_err().to_string());
    assert!(q.var(q.len()).is_none());
    for v in [&a, &b, &k, &y, &z] {
        assert_eq!(q.var(v.index()).unwrap().index(), v.index());
    }
    // The two programs are independent: their handles, and nodes that are added later.
    assert!((q.feed("b").unwrap() + &b).index() > z.index());
    assert!(q.check().unwrap_err().diagnostics().iter().any(|d| d.kind == DiagnosticKind::ForeignVar));
    assert_eq!(q.len(), p.len() + 1);

    let p = Program::new(TORCH);
    let y = p.data("x", DType::F16, [None]) * p.data("w", DType::F32, ());
    let q = p.with_rules(PADDLE);
    let feeds =
        || feeds! { "x" => Tensor::full([2], half::f16::ONE).unwrap(), "w" => Tensor::full([], 0.5f32).unwrap() };
    let exe = Executor::new();
    assert_eq!(exe.run(&p, feeds(), [&y]).unwrap()[0].dtype(), DType::F16);
    assert_eq!(exe.run(&q, feeds(), [&q.var(y.index()).unwrap()]).unwrap()[0].dtype(), DType::F16);
}

#[test]
fn paddle_has_no_c32() {
    let p = Program::new(TORCH);
    let x = p.data("x", DType::C32, [3]);
    let (_, line) = (&x + &x, line!());
    assert_eq!(table(&p), ["add c32 -"]);
    let error = p.with_rules(PADDLE).check().unwrap_err();
    let [d] = error.diagnostics() else { panic!("{error}") };
    assert!(d.message.contains("the placeholder `x` is c32"), "{d}");
    assert!(matches!(d.location, SourceLocation::Rust(l) if l.line() == line - 1), "{d}");
}

/// What a help text says of a rule set, if anything: `would give f32`, `refuses it too`.
fn said_of(help: &str, rules: Rules) -> Option<&str> {
    let name = format!("Rules::{rules:?}");
    let clause = help.split("; ").find(|c| c.starts_with("Rules::") && c.contains(&name))?;
    // After the list of rule sets that it is said of.
    let verb = clause.find(" would ").or(clause.find(" refuse"))?;
    Some(clause[verb + 1..].trim_start())
}

/// The help text without what it says of other rule sets.
fn own_part(help: &str) -> &str {
    help.split("; Rules::").next().unwrap()
}

/// The operands as the help text suggests.
fn mended(op: Op, operands: &[OperandType], d: &castwise::Diagnostic) -> Vec<OperandType> {
    let help = own_part(d.help.as_deref().unwrap());
    let dtype_in = |text: &str, after: &str, before: &str| -> Option<DType> {
        text.split(after).nth(1)?.split(before).next()?.rsplit([' ', ',']).next()?.parse().ok()
    };
    let dtype = |after: &str, before: &str| dtype_in(help, after, before);
    if let (Some(lacked), Some(other)) = (dtype_in(&d.message, "has no ", " "), dtype("use ", " ")) {
        let mend = |o: &OperandType| match *o {
            OperandType::Tensor { dtype, zero_dim, .. } if dtype == lacked && zero_dim => OperandType::zero(other),
            OperandType::Tensor { dtype, .. } if dtype == lacked => OperandType::dim(other),
            o => o,
        };
        return operands.iter().map(mend).collect();
    }
    let cast = dtype("`cast(", ")`").or(dtype("cast the tensor to ", ";"));
    let constant = dtype("0-d ", " constant");
    let which = |i: usize| help.contains("cast the ") && help.contains(["first", "second", "third"][i]);
    let all = !(0..3).any(which);
    let parts = help.contains("`real(x)`");
    let known = ["logical_", "write "].iter().any(|h| help.contains(h));
    assert!(cast.is_some() || constant.is_some() || parts || known, "{d}");
    let mend = |(i, o): (usize, &OperandType)| match *o {
        OperandType::Tensor { zero_dim, .. } if op.def().operands[i] != "condition" && (all || which(i)) => {
            let OperandType::Tensor { dtype, .. } = *o else { unreachable!() };
            let dtype = cast.unwrap_or(if parts { dtype.real() } else { dtype });
            if zero_dim { OperandType::zero(dtype) } else { OperandType::dim(dtype) }
        }
        OperandType::Scalar(_) if i >= op.def().operands.len() - op.def().parameters() => *o,
        OperandType::Scalar(_) if constant.is_some() => OperandType::zero(constant.unwrap()),
        OperandType::Scalar(_) if help.contains("an integer scalar") => OperandType::Scalar(Scalar::Int(2)),
        OperandType::Scalar(_) if help.contains("a real scalar") => OperandType::Scalar(Scalar::Float(2.5)),
        OperandType::Scalar(_) if help.contains("the scalar as a number") => OperandType::Scalar(Scalar::Int(2)),
        o => o,
    };
    operands.iter().enumerate().map(mend).collect()
}

#[test]
fn every_refusal_has_help_that_works_and_says_what_the_other_rules_do() {
    let mut all: Vec<OperandType> =
        DType::ALL.iter().flat_map(|d| [OperandType::dim(*d), OperandType::zero(*d)]).collect();
    let complex = castwise::Complex::new(0.0, 2.0);
    all.extend(
        [Scalar::Bool(true), Scalar::Int(2), Scalar::Float(2.5), Scalar::Complex(complex)].map(OperandType::Scalar),
    );
    let mut counts = [0; 4];
    for op in Op::ALL.iter().copied().filter(|op| *op != Op::Cast) {
        for a in &all {
            for b in &all {
                let names = op.def().operands;
                let condition = (names[0] == "condition").then_some(OperandType::dim(DType::Bool));
                let parameters = names.len() - op.def().parameters();
                let mut operands: Vec<OperandType> = condition.into_iter().chain([*a, *b, *b]).collect();
                operands.truncate(parameters);
                operands.resize(names.len(), OperandType::Scalar(Scalar::Int(2)));
                let tensors =
                    operands.iter().skip(condition.iter().len()).any(|o| matches!(o, OperandType::Tensor { .. }));
                if !tensors || names.len() == 1 && a != b {
                    continue;
                }
                for rules in Rules::ALL.iter().copied() {
                    let decide = |rules, o: &[OperandType]| signature(&Settings::new(rules), op, o, &Attrs::default());
                    let Err(d) = decide(rules, &operands) else { continue };
                    let help = d.help.clone().unwrap_or_else(|| panic!("no help: {d}"));
                    counts[0] += 1;
                    // The suggested operands are accepted, possibly after more suggestions: one for each of two dtypes
                    // that the framework lacks, then for their mix. (If the operands are unchanged, the help suggests
                    // another op.)
                    let (mut now, mut refusal) = (operands.clone(), Some(d.clone()));
                    for _ in 0..4 {
                        let Some(d) = &refusal else { break };
                        let next = mended(op, &now, d);
                        let other_op = d.help.as_deref().is_some_and(|h| h.contains("logical_"));
                        assert!(next != now || other_op, "{rules}: {d}");
                        refusal = if next == now { None } else { decide(rules, &next).err() };
                        now = next;
                        counts[1] += 1;
                    }
                    assert!(refusal.is_none(), "{rules}: {d}\n{now:?}: {}", refusal.unwrap());
                    for other in Rules::ALL.iter().copied().filter(|r| *r != rules) {
                        let said = said_of(&help, other);
                        match decide(other, &operands) {
                            Ok(s) if s.result == DType::Bool => {
                                assert_eq!(said, Some(format!("would compute in {}", s.compute).as_str()), "{d}");
                            }
                            Ok(s) => {
                                assert_eq!(said, Some(format!("would give {}", s.result).as_str()), "{d}");
                                counts[2] += 1;
                            }
                            Err(_) => {
                                assert!(said.is_none_or(|s| matches!(s, "refuses it too" | "refuse it too")), "{d}");
                                counts[3] += usize::from(said.is_some());
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(counts.iter().all(|n| *n > 100), "{counts:?}");
}

/// The texts of errors, one of each kind: the names in them, the operand to cast, and its dtype.
#[test]
fn what_refusals_say() {
    use DType::*;
    let dim = OperandType::dim;
    let (int, real) = (OperandType::Scalar(Scalar::Int(2)), OperandType::Scalar(Scalar::Float(2.5)));
    let truth = OperandType::Scalar(Scalar::Bool(true));
    let too = "; Rules::Paddle refuses it too";
    for (rules, op, operands, message, help) in [
        (
            TORCH,
            Op::Sub,
            vec![dim(Bool), dim(F32)],
            "does not take bool in a mix; it is given bool and f32",
            format!("cast the first operand, e.g. `cast(x, f32)`{too}"),
        ),
        (
            TORCH,
            Op::Sub,
            vec![dim(Bool), int],
            "does not take bool in a mix; it is given bool and scalar 2",
            "cast the first operand, e.g. `cast(x, i64)`; Rules::Paddle would give i64".into(),
        ),
        (
            TORCH,
            Op::Sub,
            vec![dim(Bool), real],
            "does not take bool in a mix; it is given bool and scalar 2.5",
            "cast the first operand, e.g. `cast(x, f32)`; Rules::Paddle would give f32".into(),
        ),
        (
            TORCH,
            Op::Sub,
            vec![dim(F32), truth],
            "does not take bool in a mix; it is given f32 and scalar true",
            "write the scalar as a number; Rules::Paddle would give f32".into(),
        ),
        (
            TORCH,
            Op::Sub,
            vec![dim(Bool), dim(Bool)],
            "does not take bool",
            "for bool write `logical_xor`, or cast to an integer dtype".into(),
        ),
        (TORCH, Op::Neg, vec![dim(Bool)], "does not take bool", "for bool write `logical_not`".into()),
        (TORCH, Op::Lt, vec![dim(C64), dim(C64)], "does not take c64", "compare `abs(x)` or `real(x)`".into()),
        (
            TORCH,
            Op::Lt,
            vec![dim(C64), dim(F32)],
            "does not take c64; c64 and f32 promote to it",
            format!("compare `abs(x)` or `real(x)`{too}"),
        ),
        (
            TORCH,
            Op::Maximum,
            vec![dim(C64), dim(C64)],
            "does not take c64",
            "apply it to `abs(x)`, or to `real(x)` and `imag(x)`".into(),
        ),
        (
            TORCH,
            Op::BitwiseAnd,
            vec![dim(F32), int],
            "does not take f32; f32 and scalar 2 promote to it",
            "cast to an integer dtype, e.g. `cast(x, i64)`".into(),
        ),
        (
            TORCH,
            Op::Lerp,
            vec![dim(F32), dim(F64), dim(F32)],
            "wants equal dtypes, not f32 and f64 and f32",
            format!("cast the first and third operands, e.g. `cast(x, f64)`{too}"),
        ),
        (
            TORCH,
            Op::Lerp,
            vec![dim(I64), dim(I32), dim(I32)],
            "wants equal dtypes, not i64 and i32 and i32",
            format!("cast the operands, e.g. `cast(x, f32)`{too}"),
        ),
        (
            PADDLE,
            Op::Add,
            vec![dim(I64), dim(F32)],
            "has no implicit promotion for i64 and f32 under Rules::Paddle",
            "cast the first operand, e.g. `cast(x, f32)`; Rules::Torch would give f32".into(),
        ),
        (
            PADDLE,
            Op::Lt,
            vec![dim(I64), dim(F32)],
            "has no implicit promotion for i64 and f32 under Rules::Paddle",
            "cast the first operand, e.g. `cast(x, f32)`; Rules::Torch would compute in f32".into(),
        ),
        (
            PADDLE,
            Op::Maximum,
            vec![dim(I64), real],
            "takes two tensors under Rules::Paddle, not i64 and scalar 2.5",
            "pass the scalar as a 0-d f32 constant and cast the tensor to f32; Rules::Torch would give f32".into(),
        ),
        (
            PADDLE,
            Op::Maximum,
            vec![dim(F32), int],
            "takes two tensors under Rules::Paddle, not f32 and scalar 2",
            "pass the scalar as a 0-d f32 constant; Rules::Torch would give f32".into(),
        ),
    ] {
        let d = signature(&Settings::new(rules), op, &operands, &Attrs::default()).unwrap_err();
        let said = d.help.as_deref().unwrap();
        assert_eq!((d.message.as_str(), own_part(said)), (format!("`{op}` {message}").as_str(), own_part(&help)));
        let other = if rules == TORCH { PADDLE } else { TORCH };
        let plural = |text: &str| text.replace("refuse ", "refuses ");
        assert_eq!(said_of(said, other).map(plural), said_of(&help, other).map(plural), "{said}");
    }
    // One operand is not a mix, even if its category is higher than that of the dtype that it is converted to first.
    let to_int = Attrs::default().with_dtype(I64);
    let d = signature(&Settings::new(TORCH), Op::Mean, &[dim(F32)], &to_int).unwrap_err();
    let help = "cast to a float dtype, e.g. `cast(x, f32)`";
    assert_eq!((d.message.as_str(), d.help.as_deref().map(own_part)), ("`mean` does not take i64", Some(help)));
}
