//! The programs of a streamed run: of a tile in a pass, of what is resident, and of a reduction's last step.
//!
//! Guarantees: every op has the dtypes that it has in the program of the whole tensors, with its casts written out. Does not:
//! decide what is tiled (`split` does), or read.

use std::collections::HashMap;

use castwise::{
    Attrs, DType, Error, Executor, Feeds, NodeKind, Op, Operand, Part, Prepared, Program, Reason, Tensor, TypedProgram,
    Var, Visit, apply, parts, shape::Dim, shape::Dims, shape::SymDim,
};

use super::split::{Fold, Split};

/// What a tile computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// The rows of the result of this number.
    Result(usize),
    /// Partial results of the reduction of this number.
    Partial(usize),
    /// The rows of this node, for later passes.
    Kept(usize),
}

/// The program of tiles of one size in a pass.
pub(super) struct Tile {
    prepared: Prepared,
    /// The nodes that are fed, in the order of the feeds.
    pub(super) feeds: Vec<usize>,
    pub(super) made: Vec<Made>,
    /// The dtype and the shape of each value in `made`.
    types: Vec<(DType, Vec<usize>)>,
}

fn dims(shape: &[usize]) -> Dims {
    Dims(shape.iter().map(|n| Dim::Fixed(*n)).collect())
}

fn signed(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|n| *n as i64).collect()
}

/// A placeholder for a node, which promotes as the node does.
fn placeholder(n: &Visit<'_>, shape: &[usize]) -> Var {
    let (name, view) = (n.position().to_string(), n.view());
    let new = if view.weak { Program::weak_data } else { Program::data };
    new(n.program(), &name, view.dtype, dims(shape))
}

/// A reduction over one dim, in the dtype that it computes in. A mean's is a sum.
fn reduce(fold: &Fold, v: &Var, dim: i64) -> Var {
    let op = if fold.op == Op::Mean { Op::Sum } else { fold.op };
    apply(op, &[Operand::from(v)], Attrs::dims([dim]).with_dtype(fold.math))
}

impl Fold {
    /// The partial results of a tile of this value, of so many rows of `width` elements.
    fn partials(&self, v: &Var, dtype: DType, rows: usize, width: usize) -> Vec<Var> {
        let (unit, behind, total) = match self.rows {
            Some((unit, width)) => (unit, vec![width], rows),
            None => (parts::elements(), vec![], rows * width),
        };
        let shape = |first: &[usize]| signed(&[first, &behind].concat());
        let flat = v.reshape(shape(&[total]));
        let math = |v: Var| if dtype == self.math { v } else { v.cast(self.math) };
        let (whole, rest) = (total / unit, total % unit);
        let mut all = Vec::new();
        if whole > 0 {
            let units = if rest > 0 { flat.slice(0, 0, (whole * unit) as i64, 1) } else { flat.clone() };
            all.push(reduce(self, &math(units.reshape(shape(&[whole, unit]))), 1));
        }
        if rest > 0 {
            let last = flat.slice(0, (whole * unit) as i64, None, 1);
            all.push(reduce(self, &math(last.reshape(shape(&[1, rest]))), 1));
        }
        all
    }

    /// The reduction's value, of all partial results in order.
    pub(super) fn finish(
        &self,
        typed: &TypedProgram,
        split: &Split,
        partial: &[u8],
        executor: &Executor,
    ) -> Result<Tensor, Error> {
        let program = Program::with_settings(typed.settings());
        let width = self.rows.map(|(_, width)| width);
        let count = partial.len() / self.math.size() / width.unwrap_or(1);
        let shape: Vec<usize> = [count].into_iter().chain(width).collect();
        let given = Tensor::from_bytes(self.math, &shape, partial)?;
        let mut v = reduce(self, &program.data("partial", self.math, dims(&shape)), 0);
        if self.op == Op::Mean {
            v = v / program.scalar(self.count as f64, self.math);
        }
        let dtype = typed.nodes().nth(self.node).map_or(self.math, |n| n.dtype);
        if dtype != self.math {
            v = v.cast(dtype);
        }
        let feeds = Feeds::from(vec![("partial".to_string(), given)]);
        first(executor.run(&program, feeds, [&v])?)?.reshape(&split.shapes[self.node])
    }
}

fn first(mut all: Vec<Tensor>) -> Result<Tensor, Error> {
    all.pop().ok_or_else(|| Error::Internal("a run without results".into()))
}

/// The nodes that a pass computes tile by tile, and those that are fed to it.
struct Reached {
    computed: Vec<bool>,
    fed: Vec<bool>,
}

/// The numbers of the pass's results and reductions, and what it keeps, each with its node.
fn made(split: &Split, pass: usize) -> Vec<(Made, usize)> {
    let of_pass = |n: &usize| split.tiled[*n] && split.passes[*n] == pass;
    let results = split.results.iter().enumerate().filter(|(_, n)| of_pass(n)).map(|(i, n)| (Made::Result(i), *n));
    let folds = split.folds.iter().enumerate().filter(|(_, f)| of_pass(&f.from));
    let kept = split.kept.iter().filter(|n| of_pass(n)).map(|n| (Made::Kept(*n), *n));
    results.chain(folds.map(|(i, f)| (Made::Partial(i), f.from))).chain(kept).collect()
}

fn reached(typed: &TypedProgram, split: &Split, pass: usize) -> Reached {
    let kinds: Vec<NodeKind<'_>> = typed.nodes().map(|n| n.kind).collect();
    let mut reached = Reached { computed: vec![false; kinds.len()], fed: vec![false; kinds.len()] };
    let mut next: Vec<usize> = made(split, pass).into_iter().map(|(_, n)| n).collect();
    while let Some(i) = next.pop() {
        let mut from = kinds[i].inputs();
        if let NodeKind::Generate { like, .. } = &kinds[i] {
            from.push(*like);
        }
        if split.has_kept(i, pass) {
            reached.fed[i] = true;
            continue;
        }
        if split.tiled[i] && !matches!(kinds[i], NodeKind::Feed(_)) {
            if !std::mem::replace(&mut reached.computed[i], true) {
                next.extend(from);
            }
            continue;
        }
        match &kinds[i] {
            // The op that uses it places it itself.
            NodeKind::View { from, view: None } => next.push(*from),
            NodeKind::Constant(_) => {}
            // Some ops take the operand as it was before its conversion.
            NodeKind::Cast { from, note } if note.reason != Reason::Requested && !reached.fed[i] => {
                reached.fed[i] = true;
                next.push(*from);
            }
            _ => reached.fed[i] = true,
        }
    }
    reached
}

/// The nodes that a pass is fed with, in order.
pub(super) fn feeds(typed: &TypedProgram, split: &Split, pass: usize) -> Vec<usize> {
    let fed = reached(typed, split, pass).fed;
    (0..fed.len()).filter(|i| fed[*i]).collect()
}

impl Tile {
    /// The program of tiles of so many rows.
    pub(super) fn new(
        typed: &TypedProgram,
        split: &Split,
        pass: usize,
        rows: usize,
        executor: &Executor,
    ) -> Result<Tile, Error> {
        let program = Program::with_settings(typed.settings());
        let Reached { computed, fed } = reached(typed, split, pass);
        let mut none = None;
        let vars = typed.rewrite_into(&program, |n| {
            let i = n.position();
            match n.view().kind {
                _ if fed[i] && split.tiled[i] => Ok(placeholder(n, &split.tile(i, rows))),
                _ if fed[i] => Ok(placeholder(n, &split.shapes[i])),
                _ if computed[i] => n.copy_explicit(),
                NodeKind::Constant(_) => n.copy_explicit(),
                NodeKind::View { from, view: None } => n.var(from).cloned(),
                _ => Ok(none.get_or_insert_with(|| program.constant(Tensor::scalar(false))).clone()),
            }
        })?;
        let (mut fetches, mut all) = (Vec::new(), Vec::new());
        for (one, node) in made(split, pass) {
            let v = &vars[node];
            let several = match one {
                Made::Result(_) | Made::Kept(_) => vec![v.clone()],
                Made::Partial(i) => {
                    let dtype = typed.nodes().nth(node).map_or(DType::F32, |n| n.dtype);
                    split.folds[i].partials(v, dtype, rows, split.width(node))
                }
            };
            all.extend(several.iter().map(|_| one));
            fetches.extend(several);
        }
        let inferred = program.infer()?;
        let of = |v: &Var| {
            let fixed = |d: &SymDim| if let SymDim::Fixed(n) = d { Some(*n) } else { None };
            let shape: Option<Vec<usize>> = inferred.shape(v)?.iter().map(fixed).collect();
            Some((inferred.dtype(v)?, shape?))
        };
        let types = fetches.iter().map(of).collect::<Option<_>>();
        let types = types.ok_or_else(|| Error::Internal("a tile without a type".into()))?;
        let prepared = executor.prepare(&program, &fetches)?;
        let feeds = (0..fed.len()).filter(|i| fed[*i]).collect();
        Ok(Tile { prepared, feeds, made: all, types })
    }

    /// Computes a tile, which is this part of the whole, into these tensors, which get the right dtypes and shapes.
    pub(super) fn run(&self, feeds: &[&Tensor], into: &mut Vec<Tensor>, part: &Part) -> Result<(), Error> {
        into.truncate(self.types.len());
        for (i, (dtype, shape)) in self.types.iter().enumerate() {
            match into.get_mut(i) {
                Some(t) if t.dtype() == *dtype && t.shape() == shape => {}
                Some(t) => *t = Tensor::zeros(*dtype, shape)?,
                None => into.push(Tensor::zeros(*dtype, shape)?),
            }
        }
        self.prepared.run_part_into(feeds, into, part)
    }
}

/// Computes resident nodes. `known` has the values of inputs and of reductions so far.
pub(super) fn residents(
    typed: &TypedProgram,
    known: &HashMap<usize, Tensor>,
    wanted: &[usize],
    executor: &Executor,
) -> Result<Vec<Tensor>, Error> {
    let kinds: Vec<NodeKind<'_>> = typed.nodes().map(|n| n.kind).collect();
    let (mut used, mut next) = (vec![false; kinds.len()], wanted.to_vec());
    while let Some(i) = next.pop() {
        if std::mem::replace(&mut used[i], true) || known.contains_key(&i) {
            continue;
        }
        next.extend(kinds[i].inputs());
        if let NodeKind::Generate { like, .. } | NodeKind::Blocks { like, .. } | NodeKind::Indexed { like, .. } =
            &kinds[i]
        {
            next.push(*like);
        }
    }
    let program = Program::with_settings(typed.settings());
    let (mut feeds, mut none) = (Vec::new(), None);
    let vars = typed.rewrite_into(&program, |n| match known.get(&n.position()) {
        _ if !used[n.position()] => Ok(none.get_or_insert_with(|| program.constant(Tensor::scalar(false))).clone()),
        Some(t) => {
            feeds.push((n.position().to_string(), t.clone()));
            Ok(placeholder(n, t.shape()))
        }
        None => n.copy_explicit(),
    })?;
    let fetches: Vec<Var> = wanted.iter().map(|i| vars[*i].clone()).collect();
    executor.run(&program, Feeds::from(feeds), &fetches)
}
