//! Eager mode and compiled programs agree bit for bit, for every row of the op table, every pair of dtypes, tensors
//! with dims, 0-d tensors and scalars, in every layout. They also give the same errors. Cases derive from the table, so
//! new rows are tested automatically. Each test prints how many cases it compared. A failing case prints as a text
//! program.

use std::collections::{BTreeSet, HashMap};

use castwise::ops::Promotion;
use castwise::prelude::*;
use castwise::{Attrs, Op};

mod batch;

use crate::common::operands::{Given, PLACES, Place, Tier, given, solid};
use crate::common::{computes, count, has};
use batch::{Application, Tally, compare};

/// The layouts of an operand of two or three, all of them or few.
fn places(rules: Rules) -> Vec<Place> {
    let few = [Place::Contiguous, Place::Column, Place::Reversed, Place::ZeroDim, Place::Scalar];
    if few_layouts(rules) { few.to_vec() } else { PLACES.to_vec() }
}

/// No rules but PyTorch's see a difference between layouts but those of a tensor with dims, without and of a scalar, and what is
/// computed is then computed under PyTorch's too. `CASTWISE_LAYOUTS=all` takes all of them.
fn few_layouts(rules: Rules) -> bool {
    (rules != Rules::Torch || other_loops()) && !all_layouts()
}

fn all_layouts() -> bool {
    std::env::var_os("CASTWISE_LAYOUTS").is_some()
}

/// The layouts of two operands of these dtypes, by their positions among the [`places`], without two scalars: there is no shape
/// without a tensor, and in eager mode no rule set. Operands of one dtype have every pair of layouts. An operand that is cast is
/// read as one of its dtype is, so each pair of dtypes has those with the first layout, those without dims, and another third of the
/// others. `CASTWISE_LAYOUTS=all` takes all of them.
fn pairs(rules: Rules, a: DType, b: DType) -> Vec<(usize, usize)> {
    let tiers: Vec<Tier> = places(rules).into_iter().map(Place::tier).collect();
    let all = a == b || all_layouts();
    let third = |i: usize, j: usize| (i + 2 * j + a as usize + b as usize).is_multiple_of(3);
    let is_taken = |i: usize, j: usize| match (tiers[i], tiers[j]) {
        (Tier::Scalar, Tier::Scalar) => false,
        (Tier::Dim, _) | (_, Tier::Dim) => all || i == 0 || j == 0 || third(i, j),
        _ => true,
    };
    let indices = 0..tiers.len();
    indices.clone().flat_map(|i| indices.clone().map(move |j| (i, j))).filter(|(i, j)| is_taken(*i, *j)).collect()
}

/// The number of such pairs for all dtypes of a rule set.
fn all_pairs(rules: Rules) -> usize {
    let dtypes = || DType::ALL.into_iter().filter(|d| has(rules, *d));
    dtypes().flat_map(|a| dtypes().map(move |b| (a, b))).map(|(a, b)| pairs(rules, a, b).len()).sum()
}

/// Whether the loops are not those of the machine, which are tested beside these: random programs have every layout at every
/// level, and no loop depends on a rule set.
fn other_loops() -> bool {
    ["CASTWISE_CPU", "CASTWISE_LOOPS"].into_iter().any(|name| std::env::var_os(name).is_some())
}

/// The rule sets that are compared.
fn rule_sets() -> impl Iterator<Item = Rules> {
    Rules::ALL.iter().copied().filter(|rules| *rules == Rules::Torch || !other_loops())
}

/// The number of a row's operands that are data, which excludes parameters and the condition of `where`.
fn data_operands(op: Op) -> usize {
    op.arity() - op.def().parameters() - usize::from(op == Op::Where)
}

/// The rows with `count` data operands. The condition of `where` is the operand after the data.
fn rows(count: usize) -> Vec<Application> {
    let mut all = vec![];
    for op in Op::ALL.iter().copied() {
        let given = op.def().promotion == Promotion::Given;
        if data_operands(op) != count || op.has_dims() || given {
            continue;
        }
        let condition = (op == Op::Where).then_some(count);
        let parameters: &[Option<Scalar>] = match op.def().parameters() {
            0 => &[None],
            // A scalar that every dtype accepts, and one that integer dtypes refuse and f16 and bf16 can't hold.
            _ => &[Some(Scalar::Int(3)), Some(Scalar::Float(0.3))],
        };
        all.extend(parameters.iter().map(|p| Application {
            op,
            operands: condition.into_iter().chain(0..count).collect(),
            parameter: *p,
            attrs: Attrs::default(),
        }));
    }
    all
}

/// Compares for every dtype of the first operand, with one thread per core.
fn over_dtypes(one: impl Fn(DType) -> Tally + Sync) -> Tally {
    let (next, total) = (std::sync::atomic::AtomicUsize::new(0), std::sync::Mutex::new(Tally::default()));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(d) = DType::ALL.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let tally = one(*d);
                    *total.lock().unwrap() += tally;
                }
            });
        }
    });
    total.into_inner().unwrap()
}

/// The rows that are refused for operands of given dtypes and tiers, in every layout.
type Known = HashMap<Vec<(DType, Tier)>, BTreeSet<usize>>;

/// Compares the rows on operands of these dtypes and layouts. Rows that divide an integer by zero are compared again
/// without zeros. Rows that are refused because of the dtypes are tried in one layout only.
fn compare_rows(rules: Rules, rows: &[Application], operands: &[(DType, Place)], known: &mut Known) -> Tally {
    if operands.iter().any(|(d, p)| !has(rules, *d) && *p != Place::Scalar) {
        return Tally::default(); // The declaration is an error.
    }
    let make = |zeros| -> Vec<Given> {
        operands.iter().enumerate().map(|(i, (d, place))| given(*d, *place, i, zeros)).collect()
    };
    let known = known.entry(operands.iter().map(|(d, place)| (*d, place.tier())).collect()).or_default();
    let open: Vec<usize> = (0..rows.len()).filter(|i| !known.contains(i)).collect();
    let all: Vec<Application> = open.iter().map(|i| rows[*i].clone()).collect();
    let outcome = compare(rules, &make(true), &all);
    let mut tally = Tally { known: known.len(), ..outcome.tally };
    known.extend(outcome.refused.iter().map(|i| open[*i]));
    if !outcome.again.is_empty() {
        let rest = compare(rules, &make(false), &outcome.again);
        assert!(rest.again.is_empty(), "{:?} divide by zero without one", rest.again);
        tally += rest.tally;
    }
    tally
}

/// The minimum number of applications that must give a result: those with operands of one dtype that the row accepts,
/// in every layout of a tensor with elements.
fn least_agreed(rules: Rules, rows: &[Application], operands: u32) -> usize {
    let places =
        if operands == 1 { PLACES.len() - 2 } else { places(rules).len() - 1 - usize::from(!few_layouts(rules)) };
    let accepted = |a: &Application| match rules {
        // An in-place operation keeps the shape of its operand, and a parameter may have another category.
        _ if a.op.def().promotion == Promotion::First || matches!(a.parameter, Some(Scalar::Float(_))) => 0,
        // An integer power with a negative exponent is an error, and few random tensors have none.
        Rules::NumPy if [Op::Pow, Op::PowChecked].contains(&a.op) => 0,
        // Its exponents are integers.
        Rules::NumPy | Rules::Jax if a.op == Op::Ldexp => 0,
        rules => rules.accepts(a.op).iter().filter(|d| computes(rules, *d)).count(),
    };
    rows.iter().map(accepted).sum::<usize>() * places.pow(operands)
}

/// The number of dtypes that a rule set computes in.
fn computing(rules: Rules) -> usize {
    DType::ALL.into_iter().filter(|d| computes(rules, *d)).count()
}

fn done(what: &str, tally: Tally, least: usize) {
    println!("{what}: {} combinations: {tally:?}", tally.all());
    assert!(tally.all() >= least, "{} combinations are fewer than {least}", tally.all());
}

#[test]
fn every_row_of_one_operand() {
    let rows = rows(1);
    let mut total = Tally::default();
    for rules in rule_sets() {
        total += over_dtypes(|d| {
            let mut tally = Tally::default();
            for place in PLACES.into_iter().filter(|p| *p != Place::Scalar) {
                tally += compare_rows(rules, &rows, &[(d, place)], &mut Known::new());
            }
            tally
        });
    }
    done("one operand", total, rows.len() * rule_sets().map(count).sum::<usize>() * (PLACES.len() - 1));
    assert!(total.agreed >= rule_sets().map(|rules| least_agreed(rules, &rows, 1)).sum());
    assert!(rows.len() > 40);
}

fn every_row_of_two_operands(rules: Rules) {
    let rows = rows(2);
    let total = over_dtypes(|a| {
        let mut tally = Tally::default();
        for b in DType::ALL {
            let (mut known, places) = (Known::new(), places(rules));
            for (i, j) in pairs(rules, a, b) {
                let condition = (DType::Bool, PLACES[(i + j) % 9]);
                tally += compare_rows(rules, &rows, &[(a, places[i]), (b, places[j]), condition], &mut known);
            }
        }
        tally
    });
    done(&format!("two operands, {rules}"), total, rows.len() * all_pairs(rules));
    assert!(total.agreed >= least_agreed(rules, &rows, 2) && rows.len() > 45);
}

/// Rows with three operands (bounds, ends, factors): every pair of dtypes and of layouts for the first two; the third
/// has the dtype of the first one (some rows require equal dtypes) or one from a rotation of all dtypes.
fn every_row_of_three_operands(rules: Rules) {
    let rows = rows(3);
    let total = over_dtypes(|a| {
        let mut tally = Tally::default();
        for b in DType::ALL {
            let (mut known, places) = (Known::new(), places(rules));
            for (i, j) in pairs(rules, a, b) {
                let round = DType::ALL[(a as usize + b as usize + i + j) % DType::ALL.len()];
                for (c, z) in [(a, PLACES[(i + j) % 10]), (round, PLACES[(i + 2 * j) % 11])] {
                    tally += compare_rows(rules, &rows, &[(a, places[i]), (b, places[j]), (c, z)], &mut known);
                }
            }
        }
        tally
    });
    // The third operand of the rotation may have a dtype that the rules lack.
    done(&format!("three operands, {rules}"), total, rows.len() * all_pairs(rules));
    // Operands of one dtype, once for each pair of layouts.
    assert!(total.agreed >= least_agreed(rules, &rows, 2) && rows.len() >= 4);
}

/// Tests of one rule set each, which run at the same time.
macro_rules! of_rules {
    ($($rules:ident: $two:ident $three:ident),*) => {
        $(
            #[test]
            fn $two() {
                every_row_of_two_operands(Rules::$rules);
            }

            #[test]
            fn $three() {
                every_row_of_three_operands(Rules::$rules);
            }
        )*

        #[test]
        fn every_rule_set_has_its_tests() {
            assert_eq!(Rules::ALL, [$(Rules::$rules),*]);
        }
    };
}
of_rules!(
    Torch: every_row_of_two_operands_torch every_row_of_three_operands_torch,
    Paddle: every_row_of_two_operands_paddle every_row_of_three_operands_paddle,
    NumPy: every_row_of_two_operands_numpy every_row_of_three_operands_numpy,
    Jax: every_row_of_two_operands_jax every_row_of_three_operands_jax
);

#[test]
fn every_cast_and_view_of_bits() {
    let total = over_dtypes(|from| {
        let mut tally = Tally::default();
        let to = |op| DType::ALL.map(|d| Application { op, operands: vec![0], parameter: None, attrs: Attrs::cast(d) });
        let output = |d| Application { op: Op::Cast, operands: vec![0], parameter: None, attrs: Attrs::output(d) };
        let outputs = DType::ALL.map(output);
        let all: Vec<Application> = to(Op::Cast).into_iter().chain(to(Op::ViewAs)).chain(outputs).collect();
        for rules in rule_sets() {
            for place in PLACES.into_iter().filter(|p| *p != Place::Scalar) {
                tally += compare_rows(rules, &all, &[(from, place)], &mut Known::new());
            }
        }
        tally
    });
    done("casts", total, 3 * DType::ALL.len() * rule_sets().map(count).sum::<usize>() * (PLACES.len() - 1));
}

/// The layouts of a reduction's operand, which has dims: few under other rules than PyTorch's, and no elements, which some refuse.
fn of_reductions(rules: Rules) -> impl Iterator<Item = Place> {
    let all = rules == Rules::Torch || all_layouts();
    PLACES.into_iter().filter(move |place| match place {
        Place::Contiguous | Place::Column | Place::Reversed | Place::Empty => true,
        Place::ZeroDim | Place::Scalar => false,
        _ => all,
    })
}

/// Every reduction and every op on lines over every set of axes of a tensor, with and without `keepdim`, and with every dtype that
/// can be requested.
#[test]
fn every_reduction_over_every_set_of_axes() {
    let axes: Vec<Option<Vec<i64>>> = std::iter::once(None)
        .chain((0..8u8).map(|set| Some((0..3).filter(|axis| set >> axis & 1 == 1).collect())))
        .collect();
    let of_dtypes = |op: Op| Some(if op.is_line() { vec![1] } else { vec![0, 2] });
    let mut all = vec![];
    for op in Op::ALL.iter().copied().filter(|op| op.has_dims()) {
        for (dims, keepdim) in axes.iter().flat_map(|dims| [(dims, false), (dims, true)]) {
            let given = std::iter::once(None).chain(DType::ALL.into_iter().map(Some));
            // A requested dtype is a cast before the reduction, so it is tested with one set of axes only.
            for dtype in given.filter(|d| d.is_none() || *dims == of_dtypes(op) && !keepdim) {
                let mut attrs = dims.clone().map_or(Attrs::default(), Attrs::dims).with_keepdim(keepdim);
                attrs.dtype = dtype;
                if let Some(of) = op.def().number.filter(|of| of.default.is_none()) {
                    attrs = attrs.with_number(if of.counts { 1.0 } else { 0.7 });
                }
                all.push(Application { op, operands: vec![0], parameter: None, attrs });
            }
        }
    }
    assert!(all.len() >= 7 * (2 * 9 + DType::ALL.len()), "{} reductions", all.len());
    let total = over_dtypes(|d| {
        let mut tally = Tally::default();
        for rules in rule_sets().filter(|r| computes(*r, d)) {
            for place in of_reductions(rules) {
                let t = solid(d, place).expect("it has dims");
                tally += compare(rules, &[Given::Tensor(t)], &all).tally;
            }
        }
        tally
    });
    let tensors: usize = rule_sets().map(|rules| computing(rules) * of_reductions(rules).count()).sum();
    done("reductions", total, all.len() * tensors);
}

#[test]
fn integer_division_by_zero_is_an_error_in_both() {
    let raising = || Rules::ALL.iter().copied().filter(|r| *r != Rules::NumPy);
    let integers = || DType::ALL.into_iter().filter(|d| d.category() == castwise::Category::Int);
    let mut count = 0;
    for d in integers() {
        let x = given(d, Place::Contiguous, 0, false);
        for zero in [Given::Tensor(Tensor::zeros(d, [181]).unwrap()), Given::Scalar(Scalar::Int(0))] {
            for rules in raising().filter(|r| has(*r, d)) {
                // The condition of `where`.
                let condition = given(DType::Bool, Place::Contiguous, 2, true);
                let outcome = compare(rules, &[x.clone(), zero.clone(), condition], &rows(2));
                let ops: Vec<Op> = outcome.again.iter().map(|a| a.op).collect();
                assert_eq!(ops, [Op::FloorDivide, Op::Remainder, Op::Fmod, Op::DivTrunc]);
                count += outcome.tally.failed;
            }
        }
    }
    let dtypes: usize = raising().map(|r| integers().filter(|d| has(r, *d)).count()).sum();
    assert_eq!(count, dtypes * 2 * 4);
}

/// NumPy's rules give 0 for integers divided by zero, or the error that is asked for; a negative exponent is an error.
#[test]
fn numpys_integers_divide_by_zero() -> Result<(), castwise::Error> {
    let (x, zero) = (Tensor::from([7i32, -7, i32::MIN]), Tensor::from([0i32, 2, -1]));
    let ops = [Op::FloorDivide, Op::Remainder, Op::Fmod, Op::DivTrunc];
    let wanted = [[0, -4, i32::MIN], [0, 1, 0], [0, -1, 0], [0, -3, i32::MIN]];
    let both = |settings: Settings, op, x: &Tensor, y: &Tensor| {
        let cx = Eager::with_settings(settings);
        let eager = castwise::apply(op, &[cx.tensor(x).into(), cx.tensor(y).into()], Attrs::default()).result();
        let p = Program::with_settings(settings);
        let operands = [p.data("x", x.dtype(), x.shape()).into(), p.data("y", y.dtype(), y.shape()).into()];
        let result = castwise::apply(op, &operands, Attrs::default());
        let compiled = Executor::new().run(&p, feeds! { "x" => x.clone(), "y" => y.clone() }, [&result]);
        (eager, compiled.map(|mut all| all.remove(0)))
    };
    for (op, want) in ops.into_iter().zip(wanted) {
        let (eager, compiled) = both(Settings::new(Rules::NumPy), op, &x, &zero);
        assert_eq!((eager?.to_vec::<i32>()?, compiled?.to_vec::<i32>()?), (want.to_vec(), want.to_vec()), "{op}");
        let strict = Settings::new(Rules::NumPy).with_zero_division(castwise::ZeroDivision::Error);
        let (eager, compiled) = both(strict, op, &x, &zero);
        for e in [eager.unwrap_err(), compiled.unwrap_err()] {
            assert!(e.to_string().starts_with(&format!("integer division by zero in `{op}`")), "{e}");
        }
    }
    let exponents = Tensor::from([2i32, 0, 3]);
    let (eager, compiled) = both(Settings::new(Rules::NumPy), Op::Pow, &x, &exponents);
    let want = vec![49, 1, 0];
    assert_eq!((eager?.to_vec::<i32>()?, compiled?.to_vec::<i32>()?), (want.clone(), want));
    let (eager, compiled) = both(Settings::new(Rules::NumPy), Op::Pow, &x, &zero);
    for e in [eager.unwrap_err(), compiled.unwrap_err()] {
        assert!(e.to_string().starts_with("negative exponent in `pow` of integers"), "{e}");
    }
    Ok(())
}
