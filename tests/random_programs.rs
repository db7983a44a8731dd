//! Eager mode, compiled programs and a third evaluator (`tests/reference`) agree on random programs that mix ops,
//! dtypes, scalars, shapes and strides. A counterexample is shrunk and printed as a text program with its feeds.
//!
//! `CASTWISE_PROGRAMS` is the number of programs, and `CASTWISE_SEED` the seed; CI runs the defaults. Every CPU level
//! of the machine is tested, levels below the best one with fewer programs. Does not: compare dtypes with the
//! frameworks (`tests/promotion.rs` does) or errors (`tests/eager_static.rs` does).

mod cases;

mod coverage;

use std::sync::Mutex;

use cases::{Case, Leaf, Node, Step, cases, leaves, tries};
use castwise::prelude::*;
use castwise::{CpuLevel, Error, Limit, Limits, Rounding};
use coverage::Total;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::common::{self, levels};
use crate::reference::format;
use crate::reference::program::{Array, Given, Mismatch, Run};

static TOTAL: Mutex<Option<Total>> = Mutex::new(None);

thread_local! {
    // Of chains, few rows are a block.
    static LOOPS: Executor = Executor::builder().threads(1).row_block(700).build();
    static BLOCKS: Executor = Executor::builder().threads(1).jit(false).row_block(500).build();
    /// Executors that split kernels after few ops, without compiled functions and with short ones.
    static CUT: [Executor; 2] = [false, true].map(|jit| {
        let limits = Limits::new().with(Limit::KernelOps, 3).and_then(|l| l.with(Limit::FunctionSteps, 2));
        Executor::builder().threads(1).jit(jit).limits(limits.unwrap()).row_block(400).build()
    });
}

fn run(jit: bool, p: &Program, feeds: &[(String, &Tensor)], fetches: &[&Var]) -> castwise::Result<Vec<Tensor>> {
    let feeds: Vec<(String, Tensor)> = feeds.iter().map(|(n, t)| (n.clone(), (*t).clone())).collect();
    let run = |e: &Executor| e.run(p, feeds, fetches.iter().copied());
    if jit { LOOPS.with(run) } else { BLOCKS.with(run) }
}

/// Like [`run`], with kernels that are split.
fn run_cut(jit: bool, p: &Program, feeds: &[(String, &Tensor)], fetches: &[&Var]) -> castwise::Result<Vec<Tensor>> {
    let feeds: Vec<(String, Tensor)> = feeds.iter().map(|(n, t)| (n.clone(), (*t).clone())).collect();
    CUT.with(|both| both[usize::from(jit)].run(p, feeds, fetches.iter().copied()))
}

fn is_division(e: &Error) -> bool {
    let text = e.to_string();
    let refuses = text.starts_with("integer division by zero") || text.starts_with("negative exponent");
    e.diagnostics().is_empty() && refuses
}

/// A program over leaves. Every eighth leaf is a constant of the program.
struct Written<'a> {
    program: Program,
    vars: Vec<Var>,
    feeds: Vec<(String, &'a Tensor)>,
    constants: Vec<&'a Tensor>,
}

impl<'a> Written<'a> {
    fn new(case: &Case, tensors: &'a [Tensor], rounding: Rounding) -> Written<'a> {
        let program = Program::with_settings(Settings::new(case.rules).with_rounding(rounding));
        let (mut vars, mut feeds, mut constants) = (vec![], vec![], vec![]);
        for (i, t) in tensors.iter().enumerate() {
            if case.leaves.get(i).is_some_and(|l| l.layout / 2 == 7) {
                vars.push(program.constant(t.clone()));
                constants.push(t);
                continue;
            }
            let dims: Vec<Option<usize>> = t.shape().iter().map(|n| (!case.dynamic).then_some(*n)).collect();
            let x = program.data(&format!("x{i}"), t.dtype(), dims);
            feeds.push((format!("x{i}"), t));
            match case.leaves.get(i).and_then(|l| l.generator(i, t.dtype())) {
                // The placeholder has the elements too: only its shape is used.
                Some(generator) => {
                    vars.push(x.generate(generator));
                    constants.push(t);
                }
                None => vars.push(x),
            }
        }
        Written { program, vars, feeds, constants }
    }

    fn append(&mut self, nodes: &[Node]) {
        for node in nodes {
            let next = node.apply(&self.vars);
            self.vars.push(next);
        }
    }

    fn reference(&self, nodes: &[Node], results: &[Tensor]) -> Result<Run<'a>, Mismatch> {
        let text = self.program.infer().map_err(|e| Mismatch::Wrong(e.to_string()))?.to_string();
        let given = nodes.iter().zip(results).map(|(n, result)| Given { op: n.op, result });
        let mut run = Run::new(&self.feeds, self.constants.clone());
        run.check(&text, &given.collect::<Vec<_>>())?;
        Ok(run)
    }

    /// The program and all elements of its leaves, also as bits.
    fn describe(&self) -> String {
        let mut text = format!("{}", self.program);
        let named = self.feeds.iter().map(|(name, t)| (format!("%{name}"), t));
        for (name, t) in named.chain(self.constants.iter().map(|t| ("constant".into(), t))) {
            text += &format!("{name}: {}{:?}, strides {:?}:", t.dtype(), t.shape(), t.strides());
            for bits in Array::of(t).bits.iter().take(50) {
                text += &format!(" {:?} {bits:#x}", format::decode(t.dtype(), *bits));
            }
            text += "\n";
        }
        text
    }
}

/// Runs the case in eager mode, as compiled programs and by the reference.
fn check(case: &Case, total: &mut Total) -> Result<(), TestCaseError> {
    let tensors = leaves(case);
    let cx = Eager::new(case.rules);
    let mut eager: Vec<Var<Eager>> = tensors.iter().map(|t| cx.tensor(t)).collect();
    let mut values = tensors.clone();
    let mut nodes: Vec<Node> = vec![];
    let mut whole = true;
    for step in &case.steps {
        let types: Vec<DType> = values.iter().map(Tensor::dtype).collect();
        let mut taken = None;
        for (i, attempt) in tries(case, step, &types).into_iter().enumerate() {
            let (before, mut failed) = (eager.len(), None);
            for node in &attempt {
                let one = node.apply(&eager);
                match one.result() {
                    Ok(t) => values.push(t),
                    Err(e) => {
                        failed = Some(e);
                        break;
                    }
                }
                eager.push(one);
            }
            let Some(e) = failed else {
                nodes.extend(attempt);
                taken = Some(i);
                break;
            };
            if is_division(&e) {
                total.divided += 1;
                divides_by_zero(case, &values, tensors.len(), &[&nodes[..], &attempt].concat())?;
            }
            eager.truncate(before);
            values.truncate(before);
        }
        match taken {
            Some(0) => total.taken += 1,
            Some(_) => total.changed += 1,
            None => total.refused += 1,
        }
        whole &= taken.is_some();
    }
    total.programs += 1;
    total.whole += u64::from(whole);
    let mut written = Written::new(case, &tensors, Rounding::Exact);
    written.append(&nodes);
    let fail = |what: String| TestCaseError::fail(format!("{what}\n{}", written.describe()));
    let fetches: Vec<&Var> = written.vars[tensors.len()..].iter().collect();
    let results = &values[tensors.len()..];
    // A fused program is compiled only once, below.
    let jit = case.jit && !case.fused;
    let fused = run(jit, &written.program, &written.feeds, &fetches).map_err(|e| fail(e.to_string()))?;
    for (i, (e, f)) in results.iter().zip(&fused).enumerate() {
        same_bits(e, f).map_err(|m| fail(format!("result {i}, eager against static: {m}")))?;
    }
    if case.partly || case.fused {
        // Fetching fewer results changes which values are stored, and which loops are fused or split.
        let some: Vec<usize> = (0..results.len()).filter(|i| case.asks_again_for(&nodes, tensors.len(), *i)).collect();
        let fetches: Vec<&Var> = some.iter().map(|i| fetches[*i]).collect();
        let run = if case.fused || case.seed >> 63 == 0 { run } else { run_cut };
        let jit = case.jit || case.fused;
        let fused = run(jit, &written.program, &written.feeds, &fetches).map_err(|e| fail(e.to_string()))?;
        for (i, f) in some.iter().zip(&fused) {
            same_bits(&results[*i], f).map_err(|m| fail(format!("result {i} beside {some:?}: {m}")))?;
        }
    }
    if case.seed.is_multiple_of(4) {
        copied(&written, results).map_err(fail)?;
    }
    if case.relaxed {
        relaxed(case, &tensors, &nodes, results)?;
    }
    if levels::only_memory_counts() {
        return Ok(());
    }
    let run = written.reference(&nodes, results).map_err(|m| match m {
        Mismatch::Wrong(m) => fail(format!("against the reference: {m}")),
        Mismatch::DividedByZero => fail("the reference divides an integer by zero".into()),
    })?;
    total.tally.exact += run.tally.exact;
    total.tally.bounded += run.tally.bounded;
    total.tally.open += run.tally.open;
    total.seen.extend(run.seen.into_iter().map(|s| (case.rules, s)));
    if case.fused {
        total.fused_roles.extend(&run.roles);
    }
    total.roles.extend(run.roles);
    Ok(())
}

fn same_bits(a: &Tensor, b: &Tensor) -> Result<(), String> {
    let types = (a.dtype(), a.shape()) == (b.dtype(), b.shape());
    let (x, y) = (Array::of(a).bits, Array::of(b).bits);
    match x.iter().zip(&y).position(|(x, y)| x != y) {
        None if types => Ok(()),
        Some(_) if types && levels::only_memory_counts() => Ok(()),
        None => Err(format!("{}{:?} is not {}{:?}", a.dtype(), a.shape(), b.dtype(), b.shape())),
        Some(i) => Err(format!("element {i}: {:#x} is not {:#x}", x[i], y[i])),
    }
}

/// A copy of a typed program is the same program, and a copy with every cast written out has its dtypes and bits.
fn copied(written: &Written<'_>, results: &[Tensor]) -> Result<(), String> {
    let (p, wrong) = (&written.program, |e: Error| e.to_string());
    let typed = p.infer().map_err(wrong)?;
    // Typed after each node, it has the types of one that is typed at once.
    let copy = typed.rewrite(|n| n.program().check().and_then(|_| n.copy())).map_err(wrong)?.program;
    let text = copy.infer().map_err(wrong)?.to_string();
    if (copy.to_string(), &text) != (p.to_string(), &typed.to_string()) {
        return Err(format!("the copy is another program:\n{text}"));
    }
    let explicit = typed.rewrite(|n| n.copy_explicit()).map_err(wrong)?;
    let again = explicit.program.infer().map_err(wrong)?;
    let other = typed.nodes().zip(&explicit.vars).find(|(n, v)| again.dtype(v) != Some(n.dtype));
    if let Some((n, v)) = other {
        return Err(format!("a copy is {:?}: {n:?}", again.dtype(v)));
    }
    let steps = &written.vars[written.vars.len() - results.len()..];
    let fetches: Vec<&Var> = steps.iter().filter_map(|v| explicit.vars.get(typed.position(v)?)).collect();
    let values = run(false, &explicit.program, &written.feeds, &fetches).map_err(wrong)?;
    let differs = results.iter().zip(&values).enumerate().find_map(|(i, (a, b))| Some((i, same_bits(a, b).err()?)));
    differs.map_or(Ok(()), |(i, m)| Err(format!("result {i} of a copy with explicit casts: {m}\n{again}")))
}

/// The text of a program reads back as a program with the same text, types and results.
fn check_text(case: &Case) {
    let tensors = leaves(case);
    let program = Program::new(case.rules);
    let (mut all, mut feeds): (Vec<Var>, _) = (Vec::new(), Vec::new());
    for (i, t) in tensors.iter().enumerate() {
        // Every second leaf is a constant that keeps its layout.
        if i % 2 == 1 {
            all.push(program.constant(t.clone()));
            continue;
        }
        let dims: Vec<Option<usize>> = t.shape().iter().map(|n| (!case.dynamic).then_some(*n)).collect();
        all.push(program.data(&format!("x {i}"), t.dtype(), dims));
        feeds.push((format!("x {i}"), t.clone()));
    }
    // Steps with errors are kept, since an invalid program prints and reads back too.
    let cx = Eager::new(case.rules);
    let mut eager: Vec<Var<Eager>> = tensors.iter().map(|t| cx.tensor(t)).collect();
    for step in &case.steps {
        let types: Vec<DType> = eager.iter().map(|v| v.result().map_or(DType::F32, |t| t.dtype())).collect();
        for node in &tries(case, step, &types)[0] {
            all.push(node.apply(&all));
            eager.push(node.apply(&eager));
        }
    }
    let text = program.to_string();
    let again = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again.to_string(), text);
    let (typed, typed_again) = match (program.infer(), again.infer()) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(a), Err(b)) => {
            let messages = |e: &castwise::Error| -> Vec<String> {
                e.diagnostics().iter().map(|d| format!("{:?} {} {:?}", d.kind, d.message, d.help)).collect()
            };
            return assert_eq!(messages(&a), messages(&b), "{text}");
        }
        (a, b) => panic!("{a:?}\n{b:?}\n{text}"),
    };
    let without_places = |typed: &castwise::TypedProgram| -> String {
        typed.to_string().lines().map(|l| l.split(" at ").next().unwrap().to_string() + "\n").collect()
    };
    assert_eq!(without_places(&typed), without_places(&typed_again));
    let run = |p: &Program| {
        let fetches = p.fetches();
        common::EXECUTOR.with(|e| e.run(p, feeds.clone(), fetches.iter().map(|f| &f.var)))
    };
    match (run(&program), run(&again)) {
        (Ok(a), Ok(b)) => a.iter().zip(&b).for_each(|(a, b)| common::assert_same_bits(a, b, &|| text.clone())),
        (a, b) => assert_eq!(a.is_err(), b.is_err(), "{text}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts_of_random_programs_read_back(mut case in cases()) {
        check_text(&case);
        // With so few steps, most programs have no mistake.
        case.steps.truncate(2);
        check_text(&case);
    }
}

/// Under relaxed rounding, compiled loops and block kernels agree. Without floats of 8 or 16 bits, relaxed rounding
/// changes nothing.
fn relaxed(case: &Case, tensors: &[Tensor], nodes: &[Node], results: &[Tensor]) -> Result<(), TestCaseError> {
    let mut written = Written::new(case, tensors, Rounding::Relaxed);
    written.append(nodes);
    let fail = |what: String| TestCaseError::fail(format!("{what}\n{}", written.describe()));
    let fetches: Vec<&Var> = written.vars[tensors.len()..].iter().collect();
    let mut dtypes = tensors.iter().chain(results).map(Tensor::dtype).chain(nodes.iter().filter_map(|n| n.attrs.dtype));
    let halves = dtypes.any(|d| d.is_float() && d.size() <= 2);
    let run = |jit| run(jit, &written.program, &written.feeds, &fetches);
    // Without rounding, values of f16 and bf16 may divide by zero where rounded ones do not. Then both runs must fail.
    let (blocks, other) = match (run(false), if halves { run(case.jit) } else { Ok(results.to_vec()) }) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(a), Err(b)) if a.to_string() == b.to_string() => return Ok(()),
        (a, b) => return Err(fail(format!("{:?} is not {:?}", a.err(), b.err()))),
    };
    for (i, (a, b)) in blocks.iter().zip(&other).enumerate() {
        same_bits(a, b).map_err(|m| fail(format!("result {i}, relaxed: {m}")))?;
    }
    Ok(())
}

/// If eager mode found a zero divisor in the last of the nodes, the reference must find it too. The whole program is written,
/// because a value that became a feed would promote otherwise if it is weak.
fn divides_by_zero(case: &Case, values: &[Tensor], feeds: usize, nodes: &[Node]) -> Result<(), TestCaseError> {
    let mut written = Written::new(case, &values[..feeds], Rounding::Exact);
    written.append(nodes);
    match written.reference(nodes, &values[feeds..]) {
        _ if levels::only_memory_counts() => Ok(()),
        Err(Mismatch::DividedByZero) => Ok(()),
        other => {
            let what = format!("a division by zero that the reference does not find: {:?}", other.err());
            Err(TestCaseError::fail(format!("{what}\n{}", written.describe())))
        }
    }
}

/// Reads a number from an environment variable.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().unwrap_or_else(|_| panic!("{name}={v} is no number")))
}

/// `1e-310 / (-4.3e-225 + 3.6e-215i)`: the dividend's terms are subnormal and lose digits, in every engine including
/// PyTorch and NumPy. The reference must not require these digits.
#[test]
fn a_complex_quotient_of_a_subnormal_number_has_fewer_digits() {
    let leaf = |dtype, shape, layout| Leaf { dtype, shape, layout };
    let case = Case {
        rules: Rules::Torch,
        leaves: vec![leaf(9, 0, 3), leaf(12, 5, 0)],
        steps: vec![Step { op: 3, operands: [37044, 26731, 0, 0], dtype: 0 }],
        seed: 16_158_046_071_031_306_056,
        dynamic: false,
        long: false,
        jit: false,
        partly: false,
        relaxed: false,
        fused: false,
    };
    check(&case, &mut Total::default()).unwrap();
}

#[test]
fn eager_static_and_the_reference_agree_on_random_programs() {
    // Without optimization the evaluators are slow.
    let programs = setting("CASTWISE_PROGRAMS", if cfg!(debug_assertions) { 4_000 } else { 50_000 });
    let programs = if levels::is_child() { programs / 5 } else { programs };
    levels::at_every_level("random_programs::eager_static_and_the_reference_agree_on_random_programs", || {
        agree_on(programs)
    });
}

fn agree_on(programs: u64) {
    let seed = setting("CASTWISE_SEED", 1);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    std::thread::scope(|scope| {
        let one = |thread: u64| {
            let config = ProptestConfig {
                cases: programs.div_ceil(threads) as u32,
                failure_persistence: None,
                max_shrink_iters: 2_000,
                ..ProptestConfig::default()
            };
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&seed.to_le_bytes());
            bytes[8..16].copy_from_slice(&thread.to_le_bytes());
            // Each CPU level has different programs.
            bytes[16] = CpuLevel::get() as u8;
            let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
            let total = std::cell::RefCell::new(Total::default());
            let result =
                TestRunner::new_with_rng(config, rng).run(&cases(), |case| check(&case, &mut total.borrow_mut()));
            match result {
                Err(TestError::Fail(why, case)) => panic!("{why}\n{case:?}"),
                other => other.unwrap(),
            }
            TOTAL.lock().unwrap().get_or_insert_default().add(total.into_inner());
        };
        for thread in 0..threads {
            scope.spawn(move || one(thread));
        }
    });
    let total = TOTAL.lock().unwrap().take().unwrap();
    if !levels::only_memory_counts() {
        total.report(programs);
    }
}
