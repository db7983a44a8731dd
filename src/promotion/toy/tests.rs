//! Programs under a rule set that is defined by its file and its column alone.

use std::borrow::Cow;

use crate::analysis::compare::compare;
use crate::prelude::*;
use crate::promotion::operand::OperandType;
use crate::promotion::signature;
use crate::{Attrs, Diagnostic, DiagnosticKind, Difference, Error, Outcome, compare_all, ops_markdown};

/// A program whose promotions differ between the rule sets, and its feeds.
fn program() -> (Program, Vec<Var>, Vec<(&'static str, Tensor)>) {
    let p = Program::new(Rules::Toy);
    let (i, l) = (p.data("i", DType::I8, [3]), p.data("l", DType::I64, [3]));
    let (b, f) = (p.data("b", DType::Bool, [3]), p.data("f", DType::F16, [3]));
    let results = vec![
        &i + &l,
        &l + &i,
        &i / &l,
        b.square(),
        &f * 2.5 + &l,
        i.where_(&f, &l),
        b.sum(),
        (&i * 1.5).sqrt(),
        l.cast(DType::F32).maximum(&f),
    ];
    let feeds = vec![
        ("i", Tensor::from([100i8, -3, 0])),
        ("l", Tensor::from([300i64, 7, -1])),
        ("b", Tensor::from([true, false, true])),
        ("f", Tensor::from([0.1, -2.0, f32::INFINITY].map(f16::from_f32))),
    ];
    (p, results, feeds)
}

#[test]
fn both_modes_agree_under_it() -> Result<(), Error> {
    use DType::*;
    let (p, results, feeds) = program();
    let typed = p.infer()?;
    let dtypes: Vec<_> = results.iter().map(|v| typed.dtype(v)).collect();
    assert_eq!(dtypes, [I8, I64, F64, I8, F16, F16, I64, F64, F32].map(Some));

    let given = Feeds::new(feeds.iter().map(|(name, t)| (Cow::from(*name), t.clone())).collect());
    let compiled = Executor::new().run(&p, given, &results)?;
    let cx = Eager::new(Rules::Toy);
    let of = |name: &str| feeds.iter().find(|(n, _)| *n == name).map(|(_, t)| cx.tensor(t)).unwrap();
    let (i, l, b, f) = (of("i"), of("l"), of("b"), of("f"));
    let eager = [
        &i + &l,
        &l + &i,
        &i / &l,
        b.square(),
        &f * 2.5 + &l,
        i.where_(&f, &l),
        b.sum(),
        (&i * 1.5).sqrt(),
        l.cast(DType::F32).maximum(&f),
    ];
    for (n, (a, b)) in compiled.iter().zip(&eager).enumerate() {
        let b = b.result()?;
        assert_eq!((a.dtype(), a.as_bytes()), (b.dtype(), b.as_bytes()), "result {n}");
    }
    assert_eq!(compiled[0].to_vec::<i8>()?, [(100 + 300i64) as i8, 4, -1]);
    assert_eq!(compiled[5].to_vec::<f16>()?, [f16::from_f32(0.1), f16::from_f32(-2.0), f16::from_f32(-1.0)]);
    Ok(())
}

#[test]
fn it_prints_and_reads_back() -> Result<(), Error> {
    let (p, ..) = program();
    let text = p.to_string();
    assert!(text.contains("program(rules = toy)"), "{text}");
    let back = Program::parse(&text)?;
    assert_eq!((back.settings().rules, back.to_string()), (Rules::Toy, text));
    let explained = p.infer()?.explain().to_string();
    assert!(explained.contains("toy") && explained.contains("bool -> i8 (bool to i8)"), "{explained}");
    let unknown = "toi".parse::<Rules>().unwrap_err();
    assert!(unknown.starts_with("unknown rules `toi`: `torch`, `paddle`, ") && unknown.ends_with(" or `toy`"));
    Ok(())
}

#[test]
fn it_is_compared_with_all_others() {
    let (p, ..) = program();
    let sum = |found: &[Difference]| found.iter().find(|d| d.op == Op::Add).unwrap().to_string();
    let found = compare_all(&p, Rules::ALL);
    let text = sum(&found);
    assert!(text.contains(": torch gives i64; paddle refuses: ") && text.ends_with("; toy gives i8"), "{text}");
    let two = compare(&p, Rules::Torch, Rules::Toy);
    assert!(two.iter().all(|d| d.outcomes.len() == 2) && sum(&two).ends_with(": torch gives i64; toy gives i8"));
    // An op that all rule sets but one give the same dtype.
    let root = found.iter().find(|d| d.op == Op::Square).unwrap();
    let square =
        |r: &Rules| signature(&Settings::new(*r), Op::Square, &[OperandType::dim(DType::Bool)], &Attrs::default());
    let all: Vec<_> = Rules::ALL.iter().map(|r| (*r, square(r).ok().map(|s| s.result))).collect();
    let dtype = |o: &Outcome| if let Outcome::DType(d) = o { Some(*d) } else { None };
    assert_eq!(root.outcomes.iter().map(|(r, o)| (*r, dtype(o))).collect::<Vec<_>>(), all);
    assert!(all.contains(&(Rules::Torch, Some(DType::I64))) && all.contains(&(Rules::Toy, Some(DType::I8))));
}

#[test]
fn refusals_say_what_each_other_rule_set_does() {
    let refusal = |rules, op, operands: &[OperandType]| {
        signature(&Settings::new(rules), op, operands, &Attrs::default()).unwrap_err()
    };
    let mixed = [OperandType::dim(DType::I64), OperandType::dim(DType::F32)];
    let d = refusal(Rules::Paddle, Op::Add, &mixed);
    assert!(d.message.ends_with("under Rules::Paddle"), "{d}");
    let says = |d: &Diagnostic, what: &str, rules: [&str; 2]| {
        let help = d.help.as_deref().unwrap();
        help.split("; ").any(|part| part.ends_with(what) && rules.iter().all(|r| part.contains(r)))
    };
    assert!(says(&d, " would give f32", ["Rules::Torch", " and Rules::Toy"]), "{d}");
    let worded = d.worded(|setting, value| format!("<{setting}={value}>"));
    assert!(worded.message.ends_with("under <rules=paddle>"), "{worded}");
    assert!(says(&worded, " would give f32", ["<rules=torch>", " and <rules=toy>"]), "{worded}");
    assert_eq!(worded.worded(|_, _| unreachable!()), worded);

    let turned = [OperandType::dim(DType::F32), OperandType::dim(DType::I64)];
    let d = refusal(Rules::Paddle, Op::BitwiseAnd, &turned);
    assert!(says(&d, " refuse it too", ["Rules::Torch", " and Rules::Toy"]), "{d}");

    let halves = [OperandType::dim(DType::BF16), OperandType::dim(DType::F16)];
    let d = refusal(Rules::Toy, Op::Lt, &halves);
    assert_eq!(d.message, "`lt`: Toy has no bf16");
    assert!(d.help.as_ref().unwrap().starts_with("use f32; "), "{d}");
    assert!(says(&d, " would compute in f32", ["Rules::Torch", "Rules::Paddle"]), "{d}");

    let fits = [OperandType::dim(DType::U8), OperandType::Scalar(Scalar::Int(300))];
    assert!(refusal(Rules::Toy, Op::Add, &fits).message.contains("under Rules::Toy, which u8 can't hold"));
}

#[test]
fn what_it_lacks_is_refused_where_it_is_declared() {
    let p = Program::new(Rules::Toy);
    let _ = p.data("half", DType::BF16, [2]);
    let e = p.check().unwrap_err();
    assert_eq!(e.diagnostics()[0].message, "the placeholder `half` is bf16, which Toy does not have");
    assert_eq!(e.diagnostics()[0].kind, DiagnosticKind::UnsupportedDType);
    let q = Program::new(Rules::Torch);
    let _ = q.data("half", DType::BF16, [2]);
    assert!(q.check().is_ok() && q.with_rules(Rules::Toy).check().is_err());
}

#[test]
fn outputs_follow_its_rule() {
    let operands = [OperandType::dim(DType::I32)];
    let output = |rules| signature(&Settings::new(rules), Op::Cast, &operands, &Attrs::output(DType::F32));
    assert!(output(Rules::Torch).is_ok() && output(Rules::Toy).unwrap_err().kind == DiagnosticKind::Cast);
    let p = Program::new(Rules::Toy);
    let x = p.data("x", DType::I32, [2]);
    let (from, to) = (Tensor::from([1i32, 2]), Tensor::zeros(DType::I64, [2]).unwrap());
    let prepared = Executor::new().prepare(&p, [&(&x + 1)]).unwrap();
    assert!(matches!(prepared.run_into(&[&from], &mut [to]), Err(Error::DType { .. })));
}

#[test]
fn the_document_has_it_in_every_table() {
    let text = ops_markdown();
    assert_eq!(text.matches("\n| toy | ").count(), Op::ALL.len());
    assert!(text.contains("| toy | int to float | bool int f16 f32 f64 c64 c128 | f64 for bool int, else the same |"));
}

#[test]
fn what_scalars_made_promotes_as_a_scalar_in_both_modes() -> Result<(), Error> {
    use DType::*;
    let (i, f) = (Tensor::from([1i32, 2, 3]), Tensor::from([0.5, 1.5, -2.0].map(f16::from_f32)));
    let p = Program::new(Rules::Toy);
    let (x, y) = (p.data("x", I32, [3]), p.data("y", F16, [3]));
    let cx = Eager::new(Rules::Toy);
    let (a, b) = (cx.tensor(&i), cx.tensor(&f));

    // A weak result is f64 by itself. Beside a strong tensor of its category it does not affect the dtype. A cast
    // makes it strong.
    let (weak, u) = (&x * 1.5, &a * 1.5);
    let (root, r) = (weak.sqrt(), u.sqrt());
    let results =
        [weak.clone(), root.clone(), &weak + &y, &root - &y, weak.cast(F64) + &y, weak.sum() * &y, weak.lt(&y)];
    let eager = [u.clone(), r.clone(), &u + &b, &r - &b, u.cast(F64) + &b, u.sum() * &b, u.lt(&b)];
    let typed = p.infer()?;
    assert_eq!(results.each_ref().map(|v| typed.dtype(v).unwrap()), [F64, F64, F16, F16, F64, F16, Bool]);
    assert_eq!(results.each_ref().map(|v| typed.is_weak(v)), [true, true, false, false, false, false, false]);
    let text = typed.to_string();
    assert!(
        text.contains(": f64*[3] = mul %0, ")
            && text.contains("-> f16 (weak follows strong), for add")
            && text.contains(": f64*[] = sum "),
        "{text}"
    );
    assert!(!Program::new(Rules::Torch).infer()?.to_string().contains('*'));

    let feeds = Feeds::new(vec![("x".into(), i), ("y".into(), f)]);
    let compiled = Executor::new().run(&p, feeds, &results)?;
    for (n, (a, b)) in compiled.iter().zip(&eager).enumerate() {
        let b = b.result()?;
        assert_eq!((a.dtype(), a.as_bytes()), (b.dtype(), b.as_bytes()), "result {n}");
    }
    // Eager mode caches plans. A plan for a weak operand is not used for a strong one.
    for (v, want) in [(u.clone(), F16), (u.cast(F64), F64), (u, F16)] {
        assert_eq!((v + &b).result()?.dtype(), want);
    }
    Ok(())
}
