//! An application has the same result in every form: operator, method, infix text, call by each name. Commutative rows
//! give the same bits in either order of two operands; every other row is shown not to.

use std::collections::BTreeMap;

use castwise::expr::parse_expression;
use castwise::prelude::*;
use castwise::{Attrs, Complex, DiagnosticKind, Error, Op, Operand};

use crate::common::operands::{Given, Place, given};
use crate::common::{self, assert_same_bits};

fn tensor(d: DType, place: Place, index: usize) -> Tensor {
    match given(d, place, index, true) {
        Given::Tensor(t) => t,
        Given::Scalar(s) => panic!("{s} where a tensor is"),
    }
}

/// Whether the rule set has the dtypes.
fn declared(rules: Rules, dtypes: &[DType]) -> bool {
    dtypes.iter().all(|d| common::has(rules, *d))
}

fn fault(e: &Error) -> Option<DiagnosticKind> {
    e.diagnostics().first().map(|d| d.kind)
}

/// Compares a result or an error with that of another form.
fn assert_same(one: &castwise::Result<Tensor>, other: &castwise::Result<Tensor>, case: &dyn Fn() -> String) {
    match (one, other) {
        (Ok(one), Ok(other)) => assert_same_bits(one, other, case),
        (Err(one), Err(other)) => {
            let first = |e: &Error| e.to_string().lines().next().unwrap_or_default().to_string();
            assert_eq!((fault(one), first(one)), (fault(other), first(other)), "{}", case());
        }
        _ => panic!("{one:?}\n{other:?}\n{}", case()),
    }
}

/// The rows that give the same bits in either order of their (first two) operands, under the rules of PyTorch and
/// Paddle. (Of two complex numbers with NaNs the maximum is the first, where a rule set has it.) `squared_difference` is not among them,
/// because complex results differ in the sign of a zero, and neither is `huber`, whose result has the dtype of x.
const COMMUTATIVE: [Op; 24] = {
    use Op::*;
    [
        Add, Mul, Maximum, Minimum, Fmax, Fmin, ClampMin, ClampMax, Eq, Ne, LogicalAnd, LogicalOr, LogicalXor,
        BitwiseAnd, BitwiseOr, BitwiseXor, Hypot, Logaddexp, Logaddexp2, Gcd, Lcm, SmoothL1, EqMixed, NeMixed,
    ]
};

/// Compares the results of both orders of the operands. The error is the difference.
fn orders(rules: Rules, op: Op, x: &Tensor, y: &Tensor) -> Result<(), String> {
    let cx = Eager::new(rules);
    let apply = |a: &Tensor, b: &Tensor| {
        let mut operands: Vec<Operand<Eager>> = vec![(&cx.tensor(a)).into(), (&cx.tensor(b)).into()];
        operands.extend((op.def().parameters() > 0).then_some(Operand::Scalar(Scalar::Int(3))));
        castwise::apply::<Eager>(op, &operands, Attrs::default()).result()
    };
    let (one, other) = (apply(x, y), apply(y, x));
    let what = || format!("{rules}: {op} of {} and {}", x.dtype(), y.dtype());
    match (one, other) {
        (Ok(p), Ok(q)) if (p.dtype(), p.as_bytes()) != (q.dtype(), q.as_bytes()) => {
            let (size, p, q) = (p.dtype().size(), p.as_bytes().unwrap(), q.as_bytes().unwrap());
            let at = p.chunks(size).zip(q.chunks(size)).position(|(a, b)| a != b);
            Err(format!("{}: element {at:?} differs, or the dtype", what()))
        }
        (Ok(_), Ok(_)) => Ok(()),
        (Err(p), Err(q)) if fault(&p) == fault(&q) => Ok(()),
        (p, q) => Err(format!("{}: {p:?} and {q:?}", what())),
    }
}

#[test]
fn commutative_rows_give_the_same_bits_in_either_order() {
    let (mut differing, mut count): (BTreeMap<Op, Vec<String>>, usize) = (BTreeMap::new(), 0);
    let binary = |op: &Op| op.arity() - op.def().parameters() == 2;
    let ops: Vec<Op> = Op::ALL.iter().copied().filter(binary).collect();
    for rules in Rules::ALL.iter().copied() {
        for (a, b) in DType::ALL.into_iter().flat_map(|a| DType::ALL.map(|b| (a, b))) {
            if !declared(rules, &[a, b]) {
                continue;
            }
            for (p, q) in [(Place::Contiguous, Place::Contiguous), (Place::Contiguous, Place::ZeroDim)] {
                let (x, y) = (tensor(a, p, 0), tensor(b, q, 1));
                for op in &ops {
                    count += 1;
                    // Of two complex numbers with NaNs NumPy's maximum is the first.
                    let is_bound =
                        [Op::Maximum, Op::Minimum, Op::Fmax, Op::Fmin, Op::ClampMin, Op::ClampMax].contains(op);
                    if is_bound && (a.is_complex() || b.is_complex()) {
                        continue;
                    }
                    if let Err(why) = orders(rules, *op, &x, &y) {
                        differing.entry(*op).or_default().push(why);
                    }
                }
            }
        }
    }
    println!("{count} pairs of orders");
    assert!(count >= ops.len() * 2 * common::over_rules(|r| common::count(r).pow(2)));
    for op in ops {
        match differing.get(&op) {
            Some(why) if COMMUTATIVE.contains(&op) => panic!("{} cases differ, first {}", why.len(), why[0]),
            None if !COMMUTATIVE.contains(&op) => panic!("`{op}` commutes: it belongs into the list"),
            _ => {}
        }
    }
}

/// The handles of a case, by name: `x` and `z` have one dtype, `y` another, and `c` is a condition.
type Handles<M> = [(&'static str, Var<M>); 4];

/// A way to write an application.
type Form<M> = Box<dyn Fn(&Handles<M>) -> Var<M>>;

/// One application, written in several ways.
struct Case<M: Mode> {
    name: String,
    forms: Vec<Form<M>>,
}

fn operand<M: Mode>(all: &Handles<M>, name: &str) -> Operand<M> {
    let named = all.iter().find(|(n, _)| *n == name);
    named.map_or(Operand::Scalar(Scalar::Int(3)), |(_, v)| v.into())
}

/// The names of a row's operands. A parameter is the scalar 3.
fn operands(op: Op) -> Vec<&'static str> {
    let mut names = match op.arity() - op.def().parameters() {
        1 => vec!["x"],
        2 => vec!["x", "y"],
        _ if op == Op::Where => vec!["c", "x", "y"],
        _ => vec!["x", "y", "z"],
    };
    names.extend((op.def().parameters() > 0).then_some("3"));
    names
}

fn row<M: Mode>(op: Op, names: Vec<&'static str>) -> Form<M> {
    Box::new(move |all| {
        let operands: Vec<Operand<M>> = names.iter().map(|name| operand(all, name)).collect();
        castwise::apply(op, &operands, Attrs::default())
    })
}

fn text<M: Mode>(text: String) -> Form<M> {
    Box::new(move |all| {
        let known = |name: &str| all.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        parse_expression(&text, known).unwrap()
    })
}

/// Every row, called by its name and each alias. `cast` and `view_as` are excluded, because in text they take the name
/// of a dtype.
fn calls<M: Mode>() -> Vec<Case<M>> {
    let ops = Op::ALL.iter().copied().filter(|op| !matches!(op, Op::Cast | Op::ViewAs));
    let one = |op: Op| {
        let names = std::iter::once(op.name()).chain(op.def().aliases.iter().copied());
        let call = |name: &str| text(format!("{name}({})", operands(op).join(", ")));
        let forms = std::iter::once(row(op, operands(op))).chain(names.map(call)).collect();
        Case { name: op.name().to_string(), forms }
    };
    ops.map(one).collect()
}

/// The rows that have an operator: as an application of the row, by Rust's operator if there is one, as a method, and
/// as infix text.
fn operators<M: Mode>() -> Vec<Case<M>> {
    macro_rules! cases {
        ($($op:ident [$($name:literal),+] $infix:literal $(, |$($v:ident),+| $form:expr)+;)*) => {
            vec![$(Case {
                name: $infix.to_string(),
                forms: vec![
                    row(Op::$op, vec![$($name),+]),
                    text($infix.to_string()),
                    $(Box::new(|all: &Handles<M>| { let [_, $((_, $v)),+, ..] = all; $form }),)+
                ],
            }),*]
        };
    }
    let mut all = cases! {
        Add ["x", "y"] "x + y", |x, y| x + y, |x, y| x.add(y);
        Sub ["x", "y"] "x - y", |x, y| x - y, |x, y| x.sub(y);
        Mul ["x", "y"] "x * y", |x, y| x * y, |x, y| x.mul(y);
        Div ["x", "y"] "x / y", |x, y| x / y, |x, y| x.div(y);
        Remainder ["x", "y"] "x % y", |x, y| x % y, |x, y| x.remainder(y);
        FloorDivide ["x", "y"] "x // y", |x, y| x.floor_divide(y);
        Pow ["x", "y"] "x ** y", |x, y| x.pow(y);
        BitwiseAnd ["x", "y"] "x & y", |x, y| x & y, |x, y| x.bitwise_and(y);
        BitwiseOr ["x", "y"] "x | y", |x, y| x | y, |x, y| x.bitwise_or(y);
        BitwiseXor ["x", "y"] "x ^ y", |x, y| x ^ y, |x, y| x.bitwise_xor(y);
        Eq ["x", "y"] "x == y", |x, y| x.eq(y);
        Ne ["x", "y"] "x != y", |x, y| x.ne(y);
        Lt ["x", "y"] "x < y", |x, y| x.lt(y);
        Le ["x", "y"] "x <= y", |x, y| x.le(y);
        Gt ["x", "y"] "x > y", |x, y| x.gt(y);
        Ge ["x", "y"] "x >= y", |x, y| x.ge(y);
        Neg ["x"] "-x", |x| -x, |x| x.neg();
        BitwiseNot ["x"] "~x", |x| !x, |x| x.bitwise_not();
        // A scalar on either side. "3" is not the name of a handle.
        Add ["x", "3"] "x + 3", |x| x + 3, |x| x.add(3);
        Sub ["3", "x"] "3 - x", |x| 3 - x;
        Mul ["3", "x"] "3 * x", |x| 3 * x;
        Div ["3", "x"] "3 / x", |x| 3 / x;
        Remainder ["x", "3"] "x % 3", |x| x % 3, |x| x.remainder(3);
        BitwiseAnd ["3", "x"] "3 & x", |x| 3 & x;
        BitwiseOr ["x", "3"] "x | 3", |x| x | 3, |x| x.bitwise_or(3);
        BitwiseXor ["3", "x"] "3 ^ x", |x| 3 ^ x;
        Pow ["x", "3"] "x ** 3", |x| x.pow(3);
    };
    let scalars =
        [("true", Scalar::Bool(true)), ("0.3", Scalar::Float(0.3)), ("2j", Scalar::from(Complex::new(0.0, 2.0)))];
    for (written, scalar) in scalars {
        let forms: Vec<Form<M>> = vec![
            Box::new(move |all| castwise::apply(Op::Mul, &[operand(all, "x"), scalar.into()], Attrs::default())),
            text(format!("x * {written}")),
            Box::new(move |all| &all[1].1 * scalar),
            Box::new(move |all| all[1].1.mul(scalar)),
        ];
        all.push(Case { name: format!("x * {written}"), forms });
    }
    all
}

/// Compares the forms of each case in eager mode, including errors, and those without an error as a program.
fn compare(rules: Rules, (a, b): (DType, DType), eager: &[Case<Eager>], graph: &[Case<castwise::Graph>]) -> usize {
    let tensors = [("c", DType::Bool, 2), ("x", a, 0), ("y", b, 1), ("z", a, 4)]
        .map(|(name, d, index)| (name, tensor(d, Place::Contiguous, index)));
    let (cx, p) = (Eager::new(rules), Program::new(rules));
    let handles = tensors.clone().map(|(name, t)| (name, cx.tensor(&t)));
    let vars = tensors.clone().map(|(name, t)| (name, p.data(name, t.dtype(), t.shape())));
    let (mut count, mut fetches, mut wanted) = (0, vec![], vec![]);
    for (case, same) in eager.iter().zip(graph) {
        let first = case.forms[0](&handles).result();
        let what = || format!("{rules}: {} of {a} and {b}", case.name);
        for form in &case.forms[1..] {
            assert_same(&first, &form(&handles).result(), &what);
            count += 1;
        }
        if let Ok(first) = first {
            fetches.extend(same.forms.iter().map(|form| form(&vars)));
            wanted.extend(same.forms.iter().map(|_| (first.clone(), what())));
        }
    }
    let found = common::EXECUTOR.with(|e| e.run(&p, Vec::from(tensors), &fetches)).unwrap();
    for ((want, what), got) in wanted.iter().zip(&found) {
        assert_same_bits(want, got, &|| what.clone());
        count += 1;
    }
    count
}

/// Over all pairs of dtypes and both rule sets.
fn compare_all(eager: &[Case<Eager>], graph: &[Case<castwise::Graph>]) {
    let mut count = 0;
    for (rules, a) in Rules::ALL.iter().flat_map(|r| DType::ALL.map(|a| (*r, a))) {
        for b in DType::ALL.into_iter().filter(|b| declared(rules, &[a, *b])) {
            count += compare(rules, (a, b), eager, graph);
        }
    }
    println!("{count} forms");
    assert!(
        count
            >= eager.iter().map(|case| case.forms.len() - 1).sum::<usize>()
                * common::over_rules(|r| common::count(r).pow(2))
    );
}

#[test]
fn every_name_in_text_is_the_row() {
    compare_all(&calls(), &calls());
}

#[test]
fn operator_method_and_text_are_one() {
    compare_all(&operators(), &operators());
}
