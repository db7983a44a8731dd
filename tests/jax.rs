//! Compares promotion with JAX cell by cell: `jnp.result_type` of every pair of operands, and the result of every op for
//! every pair, weak flags included.

use std::collections::BTreeMap;

use castwise::prelude::*;
use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, Complex, DiagnosticKind, Error, Op};
use serde_json::Value;

fn golden(name: &str) -> Value {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Cells that are not compared, by reason, and those that differ.
#[derive(Default)]
struct Cells {
    compared: usize,
    left_out: BTreeMap<&'static str, usize>,
    differing: Vec<String>,
}

impl Cells {
    fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    /// Compares a recorded outcome: a dtype, with a star if it is weak, or `E:` and the kind of refusal.
    fn compare(&mut self, settings: &Settings, op: Op, operands: &[OperandType], want: &str, what: &str) {
        self.compared += 1;
        let got = match signature(settings, op, operands, &Attrs::default()) {
            Ok(s) => format!("{}{}", s.result, if s.weak { "*" } else { "" }),
            Err(d) => match d.kind {
                DiagnosticKind::PromotionRefused => "E:no_promotion".into(),
                DiagnosticKind::UnsupportedDType | DiagnosticKind::BoolArithmetic => "E:unsupported_dtype".into(),
                other => format!("E:{other:?}"),
            },
        };
        // JAX looks for complex operands of `clip` before it promotes.
        let both_refuse = op == Op::Clamp && want == "E:unsupported_dtype" && got == "E:no_promotion";
        if got != want && !both_refuse {
            self.differing.push(format!("{what}: {got}, not {want}"));
        }
    }

    /// Fails if a cell differs, or if there were fewer than `least`.
    fn report(&self, least: usize) {
        assert!(self.compared >= least, "only {} cells compared", self.compared);
        println!("{} cells compared; left out: {:?}", self.compared, self.left_out);
        let n = self.differing.len();
        assert!(n == 0, "{n} of {} cells differ:\n{}", self.compared, self.differing.join("\n"));
    }
}

/// An operand in the notation of the tables: `dim:f32`, `weak:int`, `py:float` or `wrapped:float`. `None`: a dtype that
/// castwise does not have.
fn operand(settings: &Settings, notation: &str) -> Option<OperandType> {
    let weak = |narrow: DType, wide: DType| OperandType::weak(if settings.x64 { wide } else { narrow });
    Some(match notation.split_once(':')? {
        ("dim", d) => OperandType::dim(d.parse().ok()?),
        ("weak", "int") => weak(DType::I32, DType::I64),
        ("weak", "float") => weak(DType::F32, DType::F64),
        ("weak", "complex") => weak(DType::C64, DType::C128),
        (_, "bool") => OperandType::Scalar(Scalar::Bool(true)),
        (_, "int") => OperandType::Scalar(Scalar::Int(1)),
        (_, "float") => OperandType::Scalar(Scalar::Float(1.0)),
        (_, "complex") => OperandType::Scalar(Scalar::Complex(Complex::new(0.0, 1.0))),
        other => panic!("{other:?}"),
    })
}

fn is_scalar(o: &OperandType) -> bool {
    matches!(o, OperandType::Scalar(_))
}

/// The settings of a table's name: `x64/standard`, `x32e/strict`.
fn settings(name: &str) -> Settings {
    Settings::new(Rules::Jax).with_x64(name.starts_with("x64")).with_strict(name.ends_with("strict"))
}

#[test]
fn result_types() {
    let tables = golden("jax-result-type.json");
    let mut cells = Cells::default();
    for (name, table) in tables["tables"].as_object().unwrap() {
        let settings = settings(name);
        for (pair, want) in table.as_object().unwrap() {
            let (a, b) = pair.split_once('|').unwrap();
            let (Some(x), Some(y)) = (operand(&settings, a), operand(&settings, b)) else {
                cells.leave_out("a dtype that castwise lacks");
                continue;
            };
            // The dtypes of a sum, and of operands that nothing converts.
            for op in [Op::Add, Op::Maximum] {
                cells.compare(&settings, op, &[x, y], want.as_str().unwrap(), &format!("{name} {op}({a}, {b})"));
            }
        }
    }
    cells.report(6_208);
}

#[test]
fn op_rules() {
    let tables = golden("jax-op-rules.json");
    let mut cells = Cells::default();
    for name in ["x64", "x32"] {
        let (settings, table) = (settings(name), &tables[name]);
        let words = |v: &Value| v.as_str().unwrap().split(' ').map(str::to_string).collect::<Vec<_>>();
        let names =
            |v: &Value| v.as_array().unwrap().iter().map(|s| s.as_str().unwrap().to_string()).collect::<Vec<_>>();
        let notation = |s: &str| if s.contains(':') { s.to_string() } else { format!("dim:{s}") };
        let columns: Vec<String> = names(&table["columns"]).iter().map(|c| notation(c)).collect();
        let mut rows: Vec<(String, Value)> =
            table["binary"].as_object().unwrap().iter().map(|(op, rows)| (op.clone(), rows.clone())).collect();
        rows.push(("where".into(), table["where"].clone()));
        rows.push(("clamp".into(), table["clamp"].clone()));
        for (name_of_op, rows) in &rows {
            let Some(op) = Op::from_name(name_of_op) else {
                cells.leave_out("an op that castwise lacks");
                continue;
            };
            for (a, results) in rows.as_object().unwrap() {
                for (b, want) in columns.iter().zip(words(results)) {
                    let (x, y) = (operand(&settings, &notation(a)), operand(&settings, b));
                    let (Some(x), Some(y)) = (x, y) else {
                        cells.leave_out("a dtype that castwise lacks");
                        continue;
                    };
                    if is_scalar(&x) && is_scalar(&y) {
                        cells.leave_out("an op of scalars alone, which castwise refuses");
                        continue;
                    }
                    let operands = match op {
                        Op::Where => vec![OperandType::dim(DType::Bool), x, y],
                        Op::Clamp => vec![x, y, y],
                        _ => vec![x, y],
                    };
                    cells.compare(&settings, op, &operands, &want, &format!("{name} {op}({a}, {b})"));
                }
            }
        }
        for (name_of_op, results) in table["unary"].as_object().unwrap() {
            let Some(op) = Op::from_name(name_of_op) else {
                cells.leave_out("an op that castwise lacks");
                continue;
            };
            for (a, want) in columns.iter().zip(words(results)) {
                match operand(&settings, a) {
                    None => cells.leave_out("a dtype that castwise lacks"),
                    Some(x) if is_scalar(&x) => cells.leave_out("an op of scalars alone, which castwise refuses"),
                    Some(x) => cells.compare(&settings, op, &[x], &want, &format!("{name} {op}({a})")),
                }
            }
        }
    }
    cells.report(38_336);
}

/// The results of a function of two values, eagerly and as a program: dtype, whether it is weak, and the elements.
fn both_modes(
    settings: Settings,
    (x, weak_x): (&Tensor, bool),
    (y, weak_y): (&Tensor, bool),
    eager: impl Fn(&Var<Eager>, &Var<Eager>) -> Var<Eager>,
    graph: impl Fn(&Var, &Var) -> Var,
) -> Result<(Tensor, bool), Error> {
    let cx = Eager::with_settings(settings);
    let value = |t: &Tensor, weak: bool| if weak { cx.weak_tensor(t) } else { cx.tensor(t) };
    let one = eager(&value(x, weak_x), &value(y, weak_y));

    let p = Program::with_settings(settings);
    let data = |name, t: &Tensor, weak| match weak {
        true => p.weak_data(name, t.dtype(), t.shape()),
        false => p.data(name, t.dtype(), t.shape()),
    };
    let result = graph(&data("x", x, weak_x), &data("y", y, weak_y));
    let typed = p.infer();
    let out = Executor::new().run(&p, feeds! { "x" => x.clone(), "y" => y.clone() }, [&result]);
    match (one.result(), out) {
        (Ok(a), Ok(b)) => {
            assert_eq!((a.dtype(), a.as_bytes()), (b[0].dtype(), b[0].as_bytes()));
            assert_eq!(typed?.is_weak(&result), one.is_weak());
            // The text reads back as the same program.
            let text = p.to_string();
            let back = Program::parse(&text)?;
            assert_eq!((back.to_string(), back.settings()), (text, settings));
            let types = |p: &Program| p.infer().map(|t| t.nodes().map(|n| (n.dtype, n.weak)).collect::<Vec<_>>());
            assert_eq!(types(&back)?, types(&p)?);
            Ok((a, one.is_weak()))
        }
        (Err(a), Err(b)) => {
            let kinds = |e: &Error| e.diagnostics().iter().map(|d| d.kind).collect::<Vec<_>>();
            assert_eq!(kinds(&a), kinds(&b));
            Err(b)
        }
        (a, b) => panic!("{a:?} and {b:?}"),
    }
}

macro_rules! in_both {
    ($settings:expr, $x:expr, $y:expr, |$a:ident, $b:ident| $made:expr) => {
        both_modes($settings, $x, $y, |$a, $b| $made, |$a, $b| $made)
    };
}

#[test]
fn weakness_flows_in_both_modes() -> Result<(), Error> {
    use DType::*;
    let jax = Settings::new(Rules::Jax);
    let wide = jax.with_x64(true);
    let (i, h) = (Tensor::from([1i32, -2, 3]), Tensor::from([0.5, 1.5, -2.0].map(castwise::bf16::from_f32)));
    let (i, h) = ((&i, false), (&h, false));
    let seen = |r: Result<(Tensor, bool), Error>| r.map(|(t, weak)| (t.dtype(), weak));
    assert_eq!(seen(in_both!(jax, i, h, |i, _h| i * 2.5))?, (F32, true));
    assert_eq!(seen(in_both!(wide, i, h, |i, _h| i * 2.5))?, (F64, true));
    assert_eq!(seen(in_both!(wide, i, h, |i, h| (i * 2.5).sqrt() + h))?, (BF16, false));
    assert_eq!(seen(in_both!(wide, i, h, |i, _h| (i * 2.5).cast(F64) + 1))?, (F64, false));
    assert_eq!(seen(in_both!(wide, i, h, |i, h| (i * 2.5).cast(F64) + h))?, (F64, false));
    assert_eq!(seen(in_both!(wide, i, h, |i, h| (i * 2.5).sum() * h))?, (F64, false));
    assert_eq!(seen(in_both!(wide, i, h, |i, h| (i * 2.5).lt(h)))?, (Bool, false));
    assert_eq!(seen(in_both!(jax, i, h, |i, h| i.ne(0).where_(i * 2.5, h)))?, (BF16, false));
    // A condition of any dtype is true where it is not zero.
    assert_eq!(seen(in_both!(jax, i, h, |i, h| i.where_(i, h)))?, (BF16, false));
    // The same tensors, declared weak.
    let (weak_i, weak_f) = (Tensor::from([7i32]), Tensor::from([0.25f32]));
    assert_eq!(seen(in_both!(jax, (&weak_i, true), h, |a, b| a + b))?, (BF16, false));
    assert_eq!(seen(in_both!(jax, (&weak_i, true), (&weak_f, true), |a, b| a + b))?, (F32, true));
    assert_eq!(seen(in_both!(jax, (&weak_f, true), i, |a, b| a * b))?, (F32, true));
    assert_eq!(seen(in_both!(jax, (&weak_f, false), h, |a, b| a * b))?, (F32, false));
    // `relu` and `softplus` are the maximum and the logaddexp with the scalar 0.
    let b = Tensor::from([true, false, true]);
    assert_eq!(seen(in_both!(jax, (&b, false), h, |b, _h| b.relu()))?, (I32, true));
    assert_eq!(seen(in_both!(wide, (&b, false), h, |b, _h| b.softplus()))?, (F64, true));
    Ok(())
}

#[test]
fn integers_wrap_to_the_dtype_that_they_meet() -> Result<(), Error> {
    let jax = Settings::new(Rules::Jax);
    let u = Tensor::from([200u8, 255, 3]);
    let u = (&u, false);
    let bytes = |r: Result<(Tensor, bool), Error>| r.and_then(|(t, _)| t.to_vec::<u8>());
    assert_eq!(bytes(in_both!(jax, u, u, |u, _v| u + 300))?, [244, 43, 47]);
    assert_eq!(bytes(in_both!(jax, u, u, |u, _v| u.clamp(-1, 300)))?, [44, 44, 44]);
    assert_eq!(in_both!(jax, u, u, |u, _v| u.eq(-1))?.0.to_vec::<bool>()?, [false, true, false]);
    // The exponent of an integer power is not converted.
    let powers = |n: i64| in_both!(jax, u, u, |u, _v| u.pow(n)).and_then(|(t, _)| t.to_vec::<u8>());
    for n in [0, 1, 2, 7, 8, 63, 64, 255, 256, 257, 300, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 40) + 1] {
        let want = [200u8, 255, 3].map(|x| {
            (0..41).rev().fold(1u8, |r, bit| {
                let r = r.wrapping_mul(r);
                if n >> bit & 1 == 1 { r.wrapping_mul(x) } else { r }
            })
        });
        assert_eq!(powers(n)?, want, "{n}");
    }
    // An integer beyond the default integer dtype is refused, whatever it meets.
    for x64 in [false, true] {
        let f = Tensor::from([1.0f32]);
        let beyond = in_both!(jax.with_x64(x64), (&f, false), u, |f, _u| f + (1i64 << 31));
        assert_eq!(beyond.is_ok(), x64);
        if let Err(e) = beyond {
            let d = &e.diagnostics()[0];
            assert_eq!(d.kind, DiagnosticKind::ScalarOverflow);
            assert!(d.message.contains("beyond i32, the integer of Rules::Jax"), "{d}");
            assert!(d.help.as_ref().unwrap().contains("turn `x64` on"), "{d}");
        }
    }
    Ok(())
}

#[test]
fn sums_and_defaults_follow_x64() -> Result<(), Error> {
    use DType::*;
    let of = |x64: bool, op: Op, d: DType| {
        let settings = Settings::new(Rules::Jax).with_x64(x64);
        signature(&settings, op, &[OperandType::dim(d)], &Attrs::default()).map(|s| s.result).unwrap()
    };
    assert_eq!([I8, I32, Bool].map(|d| of(false, Op::Sum, d)), [I32; 3]);
    assert_eq!([I8, I32, Bool].map(|d| of(true, Op::Sum, d)), [I64; 3]);
    // What has 64 bits keeps them.
    assert_eq!((of(false, Op::Sum, I64), of(false, Op::Sqrt, I64), of(true, Op::Sqrt, I32)), (I64, F64, F32));
    assert_eq!((of(false, Op::Angle, I8), of(true, Op::Angle, I8)), (F32, F64));
    assert_eq!([of(false, Op::Cumsum, Bool), of(true, Op::Cumsum, Bool), of(true, Op::Cumprod, Bool)], [I32, I64, I64]);
    Ok(())
}

#[test]
fn settings_of_jax_belong_to_jax() -> Result<(), Error> {
    let text = "castwise 1\nprogram(rules = jax, x64 = true, strict = true) (%x: i32*[3], %y: f32[]) {\n  \
        %0 = constant f64*[1] [0.5]\n  %1 = mul %0, %y\n  %2 = add %x, %x\n  fetch %1, %2\n}\n";
    let p = Program::parse(text)?;
    assert_eq!(p.settings(), Settings::new(Rules::Jax).with_x64(true).with_strict(true));
    assert_eq!(p.to_string(), text);
    let typed = p.infer()?;
    assert!(typed.to_string().contains("%x: i32*[3]") && typed.to_string().contains(": i32*[3] = add"), "{typed}");

    // Other rules keep them for the way back, and print nothing of them.
    let torch = p.with_rules(Rules::Torch);
    assert!(torch.to_string().contains("program(rules = torch) (%x: i32[3]"), "{torch}");
    assert_eq!(torch.with_rules(Rules::Jax).to_string(), text);

    for (from, to, want) in [
        ("rules = jax", "rules = torch", "the rules `torch` have no setting `x64`, which belongs to `jax`"),
        ("x64 = true", "x64 = yes", "expected `true` or `false`"),
        ("x64 = true", "x64 = true, x64 = false", "`x64` is given twice"),
        ("x64 = true", "x65 = true", "unknown setting `x65`"),
        ("%x: i32*", "%x: bool*", "bool is never weak"),
    ] {
        let e = Program::parse(&text.replace(from, to)).unwrap_err();
        assert!(e.to_string().contains(want), "{e}");
    }
    let weak = "castwise 1\nprogram(rules = torch) (%x: i32*[3]) {\n}\n";
    let e = Program::parse(weak).unwrap_err().to_string();
    assert!(e.contains("the rules `torch` have no weak tensors: write `i32`"), "{e}");

    assert_eq!("jax,strict".parse(), Ok(Settings::new(Rules::Jax).with_strict(true)));
    assert_eq!("paddle".parse(), Ok(Settings::new(Rules::Paddle)));
    assert!("paddle,strict".parse::<Settings>().unwrap_err().contains("have no setting `strict`"));
    assert_eq!(p.settings().named(), "jax,x64,strict");
    Ok(())
}

#[test]
fn refusals_name_a_cast_that_works() -> Result<(), Error> {
    let strict = Settings::new(Rules::Jax).with_strict(true);
    let p = Program::with_settings(strict);
    let _ = p.data("i", DType::I32, [3]) + p.data("f", DType::F32, [3]);
    let e = p.check().unwrap_err();
    let d = &e.diagnostics()[0];
    assert_eq!(d.kind, DiagnosticKind::PromotionRefused);
    assert!(
        d.message.starts_with("`add` has no implicit promotion for i32 and f32 under Rules::Jax and `strict`"),
        "{d}"
    );
    assert!(d.help.as_ref().unwrap().starts_with("cast the first operand, e.g. `cast(x, f32)`"), "{d}");
    let p = Program::new(Rules::Jax);
    let _ = p.data("x", DType::C32, [3]);
    assert!(p.check().unwrap_err().to_string().contains("the placeholder `x` is c32, which JAX does not have"));
    Ok(())
}

/// `x ** n` of bf16 by JAX 0.10.2. bf16 has no 257, and i32 no 2^31.
#[test]
fn integer_exponents_are_not_converted() -> Result<(), Error> {
    let x = Tensor::from([-1.0, -2.0, 0.5, f32::NEG_INFINITY].map(castwise::bf16::from_f32));
    for (n, want) in [
        (257, [-1.0, f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY]),
        (-257, [-1.0, -0.0, f32::INFINITY, -0.0]),
        (1i64 << 31, [1.0, f32::INFINITY, 0.0, f32::INFINITY]),
    ] {
        let (t, weak) = in_both!(Settings::new(Rules::Jax), (&x, false), (&x, false), |x, _y| x.pow(n))?;
        assert_eq!((t.to_vec::<castwise::bf16>()?, weak), (want.map(castwise::bf16::from_f32).to_vec(), false), "{n}");
    }
    Ok(())
}

/// `jnp.dot` and `jnp.vecdot` by JAX 0.10.2: bf16 has 4096 for 4097.
#[test]
fn products_are_those_of_promoted_operands() -> Result<(), Error> {
    let (x, y) = (Tensor::from([4097i32, -4096]), Tensor::from([castwise::bf16::ONE; 2]));
    for swapped in [false, true] {
        let (x, y) = if swapped { (&y, &x) } else { (&x, &y) };
        let jax = Settings::new(Rules::Jax);
        let (dot, _) = in_both!(jax, (x, false), (y, false), |x, y| x.dot(y))?;
        let (vecdot, _) = in_both!(jax, (x, false), (y, false), |x, y| x.vecdot(y, [-1]))?;
        assert_eq!([dot.item::<castwise::bf16>()?, vecdot.item()?], [castwise::bf16::ZERO; 2]);
    }
    Ok(())
}

/// `jnp.angle(-0.0)`, `np.angle(-0.0)` and `torch.angle(-0.0)`; `jax.scipy.special.xlogy` of complex numbers.
#[test]
fn signs_of_zero_and_nans_decide_as_in_jax() -> Result<(), Error> {
    let x = Tensor::from([-0.0f32, 0.0, -2.0]);
    let pi = std::f32::consts::PI;
    for (rules, first) in [(Rules::Jax, pi), (Rules::NumPy, pi), (Rules::Torch, 0.0), (Rules::Paddle, 0.0)] {
        let (t, _) = in_both!(Settings::new(rules), (&x, false), (&x, false), |x, _y| x.angle())?;
        assert_eq!(t.to_vec::<f32>()?, [first, 0.0, pi], "{rules}");
    }
    let zero = Tensor::from([Complex::new(0.0f32, 0.0); 2]);
    let y = Tensor::from([Complex::new(0.0f32, f32::NAN), Complex::new(0.0, 0.0)]);
    let (t, _) = in_both!(Settings::new(Rules::Jax), (&zero, false), (&y, false), |x, y| x.xlogy(y))?;
    let found = t.to_vec::<Complex<f32>>()?;
    assert!(found[0].re.is_nan() && found[0].im.is_nan() && found[1] == Complex::new(0.0, 0.0), "{found:?}");
    Ok(())
}

#[test]
fn ldexp_takes_counts() -> Result<(), Error> {
    let jax = Settings::new(Rules::Jax);
    let (h, n) = (Tensor::from([1.0, 3.0].map(castwise::bf16::from_f32)), Tensor::from([-257i32, 301]));
    let (t, weak) = in_both!(jax, (&h, false), (&n, false), |h, n| h.ldexp(n).mul(1))?;
    // The count is exact: bf16 can't hold either.
    assert_eq!((t.dtype(), weak), (DType::BF16, false));
    let x = Tensor::from([2f32.powi(127), 1.0].map(castwise::bf16::from_f32));
    let (t, _) = in_both!(jax, (&x, false), (&n, false), |x, n| x.ldexp(n))?;
    assert_eq!(t.to_vec::<castwise::bf16>()?, [castwise::bf16::from_bits(8), castwise::bf16::INFINITY]);
    let f = Tensor::from([1.0f32, 2.0]);
    assert!(in_both!(jax, (&h, false), (&f, false), |h, f| h.ldexp(f)).is_err());
    Ok(())
}
