//! Texts, scalars and types in every floating-point mode of the caller: what is written, read and decided is the same
//! as in the standard mode. (`one_value` tests the results of runs.)

use castwise::expr::{parse_constant, parse_expression};
use castwise::ops::Op;
use castwise::prelude::*;
use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, CastLoss, Complex, NodeKind, NodeOperand, bf16, compare, f16, ops_markdown};

use crate::common::modes::{MODES, in_mode};
use crate::common::{Random, random_tensor};

/// The observed texts and bits, by name.
type Seen = Vec<(String, String)>;

/// Numbers that are computed in the standard mode, since the tests' own arithmetic in another mode would change them.
struct Given {
    tensors: Vec<Tensor>,
    scalars: Vec<Scalar>,
    text: String,
}

const FLOATS: [DType; 7] = [DType::F16, DType::BF16, DType::F32, DType::F64, DType::C32, DType::C64, DType::C128];

/// Subnormal numbers, ties, numbers with many digits, and numbers beyond the range of narrower dtypes.
const NUMBERS: [f64; 14] = [
    0.1,
    -1e-40,
    1e-310,
    5e-324,
    1.5e-7,
    3e-39,
    123456789.12345679,
    0.30000000000000004,
    2049.5,
    1e300,
    -65519.0,
    1e16,
    9007199254740993.0,
    f64::MIN_POSITIVE,
];

impl Given {
    fn new() -> Given {
        let mut r = Random(11);
        let mut tensors = Vec::new();
        for d in FLOATS {
            let numbers = Tensor::from_slice(&NUMBERS, [NUMBERS.len()]).unwrap();
            tensors.push(Eager::new(Rules::Torch).tensor(&numbers).cast(d).result().unwrap());
            tensors.push(random_tensor(d, &[3, 20], &mut r, false));
            let bits = (0..40 * d.size()).map(|_| r.next() as u8).collect::<Vec<_>>();
            tensors.push(Tensor::from_bytes(d, [40], &bits).unwrap());
            // Subnormal parts.
            let small = (0..4 * d.size()).map(|i| if i % d.real().size() < d.real().size() / 2 { 3 } else { 0 });
            tensors.push(Tensor::from_bytes(d, [4], &small.collect::<Vec<_>>()).unwrap());
        }
        let mut scalars: Vec<Scalar> = NUMBERS.map(Scalar::Float).into();
        scalars.extend(NUMBERS.map(|x| Scalar::Complex(Complex::new(x, 0.1))));
        scalars.extend([Scalar::from(i64::MAX), Scalar::Int(9007199254740993), Scalar::Int(300), Scalar::Bool(true)]);
        let text = program(&tensors, &scalars).to_string();
        Given { tensors, scalars, text }
    }
}

/// A program with all these constants and scalars.
fn program(tensors: &[Tensor], scalars: &[Scalar]) -> Program {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    for t in tensors {
        let _ = p.constant(t.clone()) * 0.1;
    }
    for s in scalars {
        let _ = (&x * *s, x.cast(DType::F16) + *s, x.cast(DType::U8) + *s);
    }
    p
}

/// The bits of all constants and scalars of a typed program.
fn bits(p: &Program) -> String {
    let mut all = String::new();
    for n in p.infer().unwrap().nodes() {
        match n.kind {
            NodeKind::Constant(t) => all += &format!("{:?}\n", t.contiguous().unwrap().as_bytes()),
            NodeKind::Apply { operands, .. } => {
                for o in operands {
                    all += &match o {
                        NodeOperand::Scalar(Scalar::Float(v), d) => format!("{:x}:{d} ", v.to_bits()),
                        NodeOperand::Scalar(Scalar::Complex(v), d) => {
                            format!("{:x} {:x}:{d} ", v.re.to_bits(), v.im.to_bits())
                        }
                        o => format!("{o:?} "),
                    };
                }
            }
            _ => {}
        }
    }
    all
}

fn scalar_bits(s: Scalar) -> String {
    match s {
        Scalar::Float(v) => format!("{:x}", v.to_bits()),
        Scalar::Complex(v) => format!("{:x} {:x}", v.re.to_bits(), v.im.to_bits()),
        s => format!("{s:?}"),
    }
}

fn printed(g: &Given) -> Seen {
    let mut all = Seen::new();
    let mut saw = |name: String, text: String| all.push((name, text));
    for (i, s) in g.scalars.iter().enumerate() {
        saw(format!("scalar {i}"), format!("{s} {s:?} {:?}", OperandType::Scalar(*s)));
    }
    for (i, t) in g.tensors.iter().enumerate() {
        saw(format!("tensor {i}"), format!("{t}\n{t:#}\n{t:.3}\n{t:?}"));
        saw(format!("eager {i}"), format!("{:?}", Eager::new(Rules::Torch).tensor(t)));
    }
    saw("program".into(), program(&g.tensors, &g.scalars).to_string());
    saw("ops".into(), ops_markdown());
    all
}

fn read(g: &Given) -> Seen {
    let mut all = Seen::new();
    let mut saw = |name: &str, text: String| all.push((name.to_string(), text));
    let p = Program::parse(&g.text).unwrap();
    saw("text", p.to_string());
    saw("bits of the text", bits(&p));
    for d in FLOATS.into_iter().filter(|d| d.is_float()) {
        let decimals = ["0.1", "1e-7", "3.0000001", "6.1e-5", "2049.5", "65519.99", "1.2345678901234567e-5"].join(", ");
        let text = format!("castwise 1\nprogram(rules = torch) () {{\n  %0 = constant {d}[7] [{decimals}]\n}}\n");
        saw("decimals", bits(&text.parse().unwrap()));
    }
    for text in ["0.1", "1/3", "1e-310", "0.1 * 1e-200 * 1e-120", "2 ** 0.5", "9007199254740993 + 0.5", "1e23", "0.3j"]
    {
        saw(text, scalar_bits(parse_constant(text).unwrap()));
    }
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F64, [3]);
    parse_expression("x * (1 / 3) + 1e-310 * 0.5 - 0.1", |_| Some(x.clone())).unwrap();
    p.expression("x ** 1e-310 + 8e-324").unwrap();
    saw("expressions", format!("{p}{}", bits(&p)));
    #[cfg(feature = "serde")]
    {
        let json = serde_json::to_string(&p).unwrap();
        let again: Program = serde_json::from_str(&json).unwrap();
        saw("serde", json + &bits(&again));
    }
    all
}

fn decided(g: &Given) -> Seen {
    let mut all = Seen::new();
    let mut saw = |name: &str, text: String| all.push((name.to_string(), text));
    let p = program(&g.tensors, &g.scalars);
    let typed = p.infer().unwrap();
    saw("typed", typed.to_string());
    saw("explained", typed.explain());
    saw("nodes", format!("{:?}", typed.nodes().collect::<Vec<_>>()));
    saw("roundings", format!("{:?}", typed.hidden_roundings()));
    let changed = typed.changed_scalars();
    saw("changed", format!("{changed:?}"));
    saw("lost", format!("{}", changed.iter().filter(|c| c.loss == CastLoss::Range).count()));
    saw("compared", compare(&p, Rules::Torch, Rules::Paddle).iter().map(|d| format!("{d}\n")).collect());
    for s in &g.scalars {
        let q = Program::new(Rules::Torch);
        let x = q.data("x", DType::F16, [3]);
        let bounds = [Op::Clamp, Op::ClampMin, Op::ClampMax].map(|op| {
            let bounds: &[_] = if op == Op::Clamp { &[(*s).into(), (*s).into()] } else { &[(*s).into()] };
            x.apply(op, bounds)
        });
        let _ = (bounds, x.pow(*s), q.data("y", DType::U8, [3]).apply(Op::Add, &[(*s).into()]));
        saw("checked", format!("{:?}", q.check().map_err(|e| e.to_string())));
        for op in [Op::Huber, Op::SmoothL1, Op::Pow, Op::ClampMax, Op::AddScaled] {
            for d in [DType::F16, DType::F32, DType::I32] {
                let mut operands = vec![OperandType::dim(d); op.arity() - 1];
                operands.push(OperandType::Scalar(*s));
                let found = signature(&Settings::new(Rules::Torch), op, &operands, &Attrs::default());
                saw("signature", format!("{found:?}"));
            }
        }
    }
    for exe in [Executor::new(), Executor::builder().jit(false).build()] {
        saw("kernels", exe.kernels(&p, &p.fetches().into_iter().map(|f| f.var).collect::<Vec<_>>()).unwrap());
        saw("code", exe.dump(&p, [&p.fetches()[0].var]).unwrap());
    }
    all
}

/// Scalars converted to narrow float dtypes, and tensors converted to other dtypes.
fn converted(g: &Given) -> Seen {
    let mut all = Seen::new();
    let mut saw = |name: String, text: String| all.push((name, text));
    for t in &g.tensors {
        let of = |s: Vec<Scalar>| s.into_iter().map(scalar_bits).collect::<Vec<_>>().join(" ");
        let scalars = match t.dtype() {
            DType::F16 => of(t.to_vec::<f16>().unwrap().into_iter().map(Scalar::from).collect()),
            DType::BF16 => of(t.to_vec::<bf16>().unwrap().into_iter().map(Scalar::from).collect()),
            DType::F32 => of(t.to_vec::<f32>().unwrap().into_iter().map(Scalar::from).collect()),
            DType::F64 => of(t.to_vec::<f64>().unwrap().into_iter().map(Scalar::from).collect()),
            DType::C64 => of(t.to_vec::<Complex<f32>>().unwrap().into_iter().map(Scalar::from).collect()),
            _ => continue,
        };
        saw(format!("scalars of {}", t.dtype()), scalars);
    }
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F64, [None]);
    let numbers = Tensor::from_slice(&NUMBERS, [NUMBERS.len()]).unwrap();
    for d in FLOATS {
        let mut out = [Tensor::zeros(d, [NUMBERS.len()]).unwrap()];
        Executor::new().run_into(&p, feeds! { "x" => &numbers }, [&x], &mut out).unwrap();
        saw(format!("into {d}"), format!("{:?}", out[0].as_bytes()));
    }
    all
}

/// Compares the observations in every mode with those in the standard mode.
fn same_in_every_mode(see: fn(&Given) -> Seen) {
    let given = Given::new();
    let right = see(&given);
    assert!(right.len() > 10);
    for mode in MODES {
        let seen = in_mode(mode, || see(&given));
        for ((name, right), (other, seen)) in right.iter().zip(&seen) {
            let line = right.lines().zip(seen.lines()).find(|(r, s)| r != s);
            assert!(name == other && right == seen, "{name} in mode {mode:#x}: {line:?}");
        }
        assert_eq!(right.len(), seen.len());
    }
}

#[test]
fn what_is_printed_does_not_depend_on_the_callers_mode() {
    same_in_every_mode(printed);
}

#[test]
fn what_is_read_does_not_depend_on_the_callers_mode() {
    same_in_every_mode(read);
}

#[test]
fn what_is_decided_does_not_depend_on_the_callers_mode() {
    same_in_every_mode(decided);
}

#[test]
fn what_is_converted_does_not_depend_on_the_callers_mode() {
    same_in_every_mode(converted);
}
