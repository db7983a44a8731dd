//! A source typed for the dtypes of its arguments: found again by all partitions and queries of the process.
//!
//! Guarantees: a source is typed and compiled once a process for the same dtypes, whatever threads ask at the same
//! time, as long as it is among the [`KEPT`] that were used last; what is accepted computes each row from that row
//! alone. Does not: read columns.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use castwise::shape::SymDim;
use castwise::{DType, Error, Executor, NodeKind, NodeView, Op, Prepared, SourceLocation, TypedProgram, Var};
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{DataFusionError, Result};

use crate::report::{marked_at, shown};
use crate::source::Source;
use crate::types::{dtype_of, dtypes_of};

/// Typed sources that are kept.
const KEPT: usize = 1024;

/// The bytes of dropped results that are kept for new ones: some batches of each partition.
const POOL: usize = 256 << 20;

/// Runs all programs. The threads are the engine's: each partition computes its batch alone.
pub(crate) static EXECUTOR: LazyLock<Executor> =
    LazyLock::new(|| Executor::builder().threads(1).pool(POOL).cache(4 * KEPT).build());

/// What this process has compiled so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Sources that were typed, each for other dtypes of its arguments.
    pub programs: u64,
    /// Loops that were compiled.
    pub loops: u64,
}

static PROGRAMS: AtomicU64 = AtomicU64::new(0);

/// What this process has compiled so far: what a second run of a query does not change.
pub fn stats() -> Stats {
    Stats { programs: PROGRAMS.load(Ordering::Relaxed), loops: EXECUTOR.compiles() }
}

/// What is computed of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// A value for each row.
    Rows,
    /// One value for all rows.
    Total,
}

/// A source for arguments of these dtypes.
pub(crate) struct Compiled {
    pub(crate) source: Source,
    pub(crate) typed: Arc<TypedProgram>,
    pub(crate) result: Var,
    /// The result's dtype.
    pub(crate) dtype: DType,
    pub(crate) dtypes: Vec<DType>,
    /// For each placeholder the argument that it is.
    pub(crate) feeds: Vec<usize>,
    /// Whether placeholders share a symbolic dim, so that scalars must be broadcast to its extent.
    pub(crate) tied: bool,
    /// Which arguments the result depends on.
    pub(crate) used: Vec<bool>,
    /// Whether the result promotes as a scalar does where it is an operand of the same program.
    pub(crate) weak: bool,
    /// The loops; of an aggregate, its accumulator has them.
    pub(crate) prepared: Option<Prepared>,
}

/// A cache of one entry: what a function made for the dtypes of its first call, which mostly are those of all batches. It has no part in the
/// function's equality and hash.
pub(crate) struct First<T>(OnceLock<(Vec<DType>, Arc<T>)>);

impl<T> First<T> {
    pub(crate) fn new() -> First<T> {
        First(OnceLock::new())
    }

    /// What `make` makes for the dtypes of a source's arguments. What is known is borrowed: partitions that count its users together wait for
    /// each other.
    pub(crate) fn or_made(
        &self,
        fields: &[FieldRef],
        source: &Source,
        make: impl FnOnce(&[DType]) -> Result<Arc<T>>,
    ) -> Result<Cow<'_, Arc<T>>> {
        if let Some((of, first)) = self.0.get()
            && of.len() == fields.len()
            && of.iter().zip(fields).all(|(dtype, field)| dtype_of(field).as_ref() == Ok(dtype))
        {
            return Ok(Cow::Borrowed(first));
        }
        let dtypes = dtypes_of(fields, source).map_err(DataFusionError::Plan)?;
        let made = make(&dtypes)?;
        let _ = self.0.set((dtypes, made.clone()));
        Ok(Cow::Owned(made))
    }
}

impl<T> std::fmt::Debug for First<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("First")
    }
}

impl<T> PartialEq for First<T> {
    fn eq(&self, _: &First<T>) -> bool {
        true
    }
}

impl<T> Eq for First<T> {}

impl<T> std::hash::Hash for First<T> {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

type Slot = Arc<OnceLock<std::result::Result<Arc<Compiled>, String>>>;
type Key = (Source, Form, Vec<DType>);

/// The sources that were used last: each with when it was.
#[derive(Default)]
struct Cache {
    slots: HashMap<Key, (Slot, u64)>,
    clock: u64,
}

static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);

impl Cache {
    fn slot(&mut self, key: Key) -> Slot {
        self.clock += 1;
        if self.slots.len() >= KEPT && !self.slots.contains_key(&key) {
            let oldest = self.slots.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.slots.remove(&key));
        }
        let (slot, used) = self.slots.entry(key).or_default();
        *used = self.clock;
        slot.clone()
    }
}

/// The source for arguments of these dtypes. Errors are those of a plan: mistakes in the expression, with its place.
pub(crate) fn compiled(source: &Source, form: Form, dtypes: &[DType]) -> Result<Arc<Compiled>> {
    let key = (source.clone(), form, dtypes.to_vec());
    let slot = CACHE.lock().unwrap_or_else(PoisonError::into_inner).slot(key);
    // Outside of the lock: others wait for this source alone.
    let made = slot.get_or_init(|| {
        PROGRAMS.fetch_add(1, Ordering::Relaxed);
        Compiled::new(source, form, dtypes).map(Arc::new)
    });
    made.clone().map_err(DataFusionError::Plan)
}

impl Compiled {
    fn new(source: &Source, form: Form, dtypes: &[DType]) -> std::result::Result<Compiled, String> {
        let names = source.names_for(dtypes.len())?;
        let text = source.text();
        let (program, result) = source.build(&names, dtypes).map_err(|e| shown(&e, text))?;
        let typed = Arc::new(program.infer().map_err(|e| shown(&e, text))?);
        let internal = || "castwise: the result has no node".to_string();
        let position = typed.position(&result).ok_or_else(internal)?;
        let nodes: Vec<NodeView<'_>> = typed.nodes().collect();
        let by_name = |name: &str| names.iter().position(|n| *n == name);
        let (mut feeds, mut lengths) = (Vec::new(), Vec::new());
        let mut reached = vec![false; dtypes.len()];
        for node in &nodes {
            if let NodeKind::Feed(name) = &node.kind {
                let argument = by_name(name).ok_or_else(internal)?;
                accepts(name, node, dtypes[argument])?;
                feeds.push(argument);
                lengths.push(node.shape);
            }
        }
        for node in dependencies(&nodes, position) {
            match &nodes[node].kind {
                NodeKind::Feed(name) => reached[by_name(name).ok_or_else(internal)?] = true,
                kind if form == Form::Total && node == position && matches!(kind, NodeKind::Reduce { .. }) => {}
                kind => by_row(kind, form, nodes[node].location, text)?,
            }
        }
        let (dtype, weak) = (nodes[position].dtype, nodes[position].weak);
        let prepared = match form {
            Form::Rows => Some(EXECUTOR.prepare(&program, [&result]).map_err(|e| shown(&e, text))?),
            Form::Total => None,
        };
        let (source, dtypes) = (source.clone(), dtypes.to_vec());
        let tied = (1..lengths.len()).any(|i| lengths[..i].contains(&lengths[i]));
        drop(nodes);
        Ok(Compiled { source, typed, result, dtype, dtypes, feeds, tied, used: reached, weak, prepared })
    }

    /// What is computed and in which dtypes, in one line: the ops of a typed program with the casts that it has.
    pub(crate) fn steps(&self) -> String {
        /// What a line of EXPLAIN has room for.
        const SHOWN: usize = 24;
        let Some(position) = self.typed.position(&self.result) else { return String::new() };
        let nodes: Vec<NodeView<'_>> = self.typed.nodes().collect();
        let mut steps = Vec::new();
        for at in dependencies(&nodes, position) {
            let node = &nodes[at];
            match &node.kind {
                NodeKind::Apply { op, compute, .. } => steps.push(format!("{}.{compute}", op.name())),
                NodeKind::Cast { from, .. } => {
                    let of = &nodes[*from];
                    let name = if let NodeKind::Feed(name) = of.kind { format!(" {name}") } else { String::new() };
                    steps.push(format!("cast{name} {}->{}", of.dtype, node.dtype));
                }
                NodeKind::Bits { from } => steps.push(format!("bits {}->{}", nodes[*from].dtype, node.dtype)),
                NodeKind::Reduce { op, .. } => steps.push(format!("{}.{}", op.name(), node.dtype)),
                _ => {}
            }
        }
        let rest = steps.len().saturating_sub(SHOWN);
        steps.truncate(SHOWN);
        let rest = if rest > 0 { format!(", {rest} more") } else { String::new() };
        steps.join(", ") + &rest
    }
}

/// The nodes that one depends on, with it, in program order.
pub(crate) fn dependencies(nodes: &[NodeView<'_>], of: usize) -> Vec<usize> {
    let mut needed = vec![false; nodes.len()];
    needed[of] = true;
    for at in (0..=of).rev().filter(|at| *at < nodes.len()) {
        if needed[at] {
            nodes[at].kind.inputs().into_iter().for_each(|i| needed[i] = true);
        }
    }
    (0..=of).filter(|at| needed[*at]).collect()
}

/// Whether a placeholder is a column of the argument's dtype.
fn accepts(name: &str, node: &NodeView<'_>, dtype: DType) -> std::result::Result<(), String> {
    if node.dtype != dtype {
        return Err(format!("castwise: argument `{name}` is {dtype}, the program declares {}", node.dtype));
    }
    if matches!(node.shape, [SymDim::Sym(_)]) {
        return Ok(());
    }
    Err(format!("castwise: the program declares `{name}` with other dims than one of any length, which a column has"))
}

/// Whether a node computes an element from elements of the same row alone.
fn by_row(kind: &NodeKind<'_>, form: Form, location: &SourceLocation, text: &str) -> std::result::Result<(), String> {
    let found = match kind {
        NodeKind::Feed(_) | NodeKind::Apply { .. } | NodeKind::Cast { .. } | NodeKind::Bits { .. } => return Ok(()),
        NodeKind::View { view: None, .. } => return Ok(()),
        NodeKind::Constant(t) if t.numel() == 1 => return Ok(()),
        NodeKind::Constant(t) => format!("a constant of {} elements", t.numel()),
        NodeKind::Reduce { op, .. } | NodeKind::Line { op, .. } => format!("`{}`", op.name()),
        NodeKind::Extent { .. } => "the number of rows".into(),
        NodeKind::View { .. } => "a view".into(),
        NodeKind::Generate { generator, .. } => format!("`{}`", generator.name()),
        _ => "this op".into(),
    };
    let place = marked_at(location, text);
    let reduces = matches!(kind, NodeKind::Reduce { op, .. } if is_aggregate(*op));
    let help = match form {
        Form::Total => "\n  help: only the last op of an aggregate reduces its rows",
        Form::Rows if reduces => "\n  help: `castwise_agg` reduces columns, with the reduction as the last op",
        Form::Rows => "",
    };
    Err(format!("castwise: {found} needs all rows, and is given a batch of them{place}{help}"))
}

/// Whether partial results of a reduction are merged here.
pub(crate) fn is_aggregate(op: Op) -> bool {
    matches!(op, Op::Sum | Op::Mean | Op::Amin | Op::Amax | Op::Var)
}

/// What a run of a program that was typed gives.
pub(crate) fn as_run(error: &Error, source: &Source) -> DataFusionError {
    crate::report::run_error(error, source.text())
}
