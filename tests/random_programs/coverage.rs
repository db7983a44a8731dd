//! The coverage of random programs: ops, dtypes, and how operands broadcast.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use castwise::prelude::*;
use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, Op};

use super::cases::LOOPED;
use crate::common;
use crate::reference::program::{Broadcast, Role, Seen, Single, Tally};

/// The totals of all programs.
#[derive(Default)]
pub struct Total {
    pub programs: u64,
    /// The number of programs in which no step was refused or divided by zero.
    pub whole: u64,
    /// The numbers of steps that were accepted as they are, that were accepted after a change, and that were never
    /// accepted.
    pub taken: u64,
    pub changed: u64,
    pub refused: u64,
    pub divided: u64,
    pub tally: Tally,
    pub seen: HashSet<(Rules, Seen)>,
    /// The roles of operands with one element, in all programs and in those for compiled loops.
    pub roles: HashSet<Role>,
    pub fused_roles: HashSet<Role>,
}

impl Total {
    pub fn add(&mut self, other: Total) {
        self.programs += other.programs;
        self.whole += other.whole;
        self.taken += other.taken;
        self.changed += other.changed;
        self.refused += other.refused;
        self.divided += other.divided;
        self.tally.exact += other.tally.exact;
        self.tally.bounded += other.tally.bounded;
        self.tally.open += other.tally.open;
        self.seen.extend(other.seen);
        self.roles.extend(other.roles);
        self.fused_roles.extend(other.fused_roles);
    }

    /// Prints the coverage, and asserts that it is sufficient.
    pub fn report(&self, programs: u64) {
        report(self, programs);
        self.report_roles(programs);
    }

    /// Every operand of every op must have had one element, with dims and without, beside an operand with more.
    fn report_roles(&self, programs: u64) {
        let wanted = |op: &Op| {
            let operands = op.arity() - op.def().parameters();
            // The first operand of `assign` keeps its shape, so it has one element only if the other operand has.
            let first = usize::from(*op == Op::Assign);
            let kinds = [Single::OneElement, Single::ZeroDim];
            let each = (first..operands).flat_map(|i| kinds.map(|kind| (i, kind)));
            if operands > 1 { each.map(|(i, kind)| (*op, i, kind)).collect() } else { vec![] }
        };
        let kinds = [("any", Op::ALL, &self.roles, 100_000), ("looped", &LOOPED[..], &self.fused_roles, 20_000)];
        for (name, ops, met, enough) in kinds {
            let all: BTreeSet<Role> = ops.iter().flat_map(wanted).collect();
            let missing: Vec<&Role> = all.iter().filter(|r| !met.contains(r)).collect();
            let met = all.len() - missing.len();
            println!("{met} of {} roles of one element in {name} ops, missing: {:?}", all.len(), few(&missing));
            assert!(missing.is_empty() || programs < enough, "missing: {missing:?}");
        }
    }
}

/// The part of a list that is printed.
fn few<T>(all: &[T]) -> &[T] {
    &all[..all.len().min(12)]
}

/// The ways in which operands of an op can broadcast.
fn kinds(op: Op) -> &'static [Broadcast] {
    let all = &[Broadcast::Equal, Broadcast::Shapes, Broadcast::ZeroDim, Broadcast::Scalar];
    match op.arity() - op.def().parameters() {
        1 if op.is_reduction() => &all[..2],
        1 => &all[..1],
        _ => all,
    }
}

fn report(all: &Total, programs: u64) {
    let share = |part: u64, of: u64| 100.0 * part as f64 / of as f64;
    let steps = all.taken + all.changed + all.refused;
    println!("{} programs, {:.1} % of them without a refused step", all.programs, share(all.whole, all.programs));
    println!(
        "{steps} steps: {:.1} % as they are, {:.1} % after a change, {:.1} % refused; {} divisions by zero",
        share(all.taken, steps),
        share(all.changed, steps),
        share(all.refused, steps),
        all.divided
    );
    let t = all.tally;
    let elements = t.exact + t.bounded + t.open;
    println!(
        "{elements} elements: {:.2} % bit for bit, {:.2} % within bounds, {:.2} % not checked by the reference",
        share(t.exact, elements),
        share(t.bounded, elements),
        share(t.open, elements)
    );
    let mut missing = vec![];
    let (mut wanted, mut combinations, mut met) = (0, 0, 0);
    let mut by_broadcast: BTreeMap<Broadcast, usize> = BTreeMap::new();
    for (_, seen) in &all.seen {
        *by_broadcast.entry(seen.broadcast).or_default() += 1;
    }
    let mut unmet = vec![];
    for rules in Rules::ALL.iter().copied() {
        for op in Op::ALL {
            let seen = |row: Op, d: Option<DType>| {
                all.seen.iter().any(|(r, s)| *r == rules && s.op == row && d.is_none_or(|d| s.dtype == d))
            };
            let common = rules.promotion(*op) == castwise::ops::Promotion::Common;
            let rows: Vec<(DType, Op)> =
                rules.accepts(*op).iter().filter_map(|d| Some((d, row(rules, *op, d)?))).collect();
            if !seen(*op, None) && !rows.iter().any(|(_, row)| seen(*row, None)) {
                missing.push(format!("{op} under {rules}"));
            }
            // Ops with other promotions compute in fewer dtypes than they accept.
            for (d, row) in rows.into_iter().filter(|_| common) {
                wanted += 1;
                if !seen(row, Some(d)) {
                    missing.push(format!("{op} of {d} under {rules}"));
                }
                for broadcast in kinds(*op) {
                    combinations += 1;
                    if all.seen.contains(&(rules, Seen { op: row, dtype: d, broadcast: *broadcast })) {
                        met += 1;
                    } else {
                        unmet.push(format!("{op} of {d}, {broadcast:?}, {rules}"));
                    }
                }
            }
        }
    }
    println!("{} of op x dtype x broadcast x rules, by broadcast: {by_broadcast:?}", all.seen.len());
    println!("{wanted} of op x accepted dtype x rules wanted, missing: {:?}", few(&missing));
    println!("{met} of {combinations} of these x broadcast met; not, among others: {:?}", few(&unmet));
    if programs >= 200_000 {
        assert!(missing.is_empty(), "missing: {missing:?}");
        assert!(share(met, combinations) >= 95.0, "too few broadcasts are met");
    }
    assert!(share(all.whole, all.programs) >= 95.0, "too few programs are valid");
    assert!(share(t.open, elements) < 3.0, "too much is not checked");
}

/// The row of the table that computes an op of operands of one dtype, if it computes in this dtype.
fn row(rules: Rules, op: Op, d: DType) -> Option<Op> {
    let def = op.def();
    let mut operands = vec![OperandType::dim(d); def.operands.len()];
    operands[def.operands.len() - def.parameters()..].fill(OperandType::Scalar(Scalar::Int(1)));
    if op == Op::Where {
        operands[0] = OperandType::dim(DType::Bool);
    }
    if op == Op::Ldexp && matches!(rules, Rules::NumPy | Rules::Jax) {
        operands[1] = OperandType::dim(DType::I64);
    }
    let found = signature(&Settings::new(rules), op, &operands, &Attrs::default()).ok()?;
    (found.compute == d && common::computes(rules, d)).then_some(found.op)
}
