//! Which values of a program are computed tile by tile, which as a whole, and in which pass over the inputs.
//!
//! A tile is a range of the rows that the first dims of the largest input make up. A value is *tiled* if its first dims are these, and
//! *resident* if it has none of them. A reduction over these dims makes a resident value that the next pass can use. What a pass needs of
//! an earlier one is computed again, but what depends on lines (sorts and scans) is *kept*, if there is room for it.
//!
//! Guarantees: the results have the bits of a run on whole tensors: elements of tiled values depend on elements of the same row
//! alone, and reductions are cut only where the library cuts them (`castwise::parts`). What is not known to keep the bits is
//! refused, with the reason. Does not: run anything.

use castwise::{DType, NodeKind, NodeOperand, Op, Reason, Rounding, TypedProgram, parts, shape::SymDim};

/// A reduction over the rows.
pub(super) struct Fold {
    pub(super) node: usize,
    pub(super) from: usize,
    pub(super) op: Op,
    /// The dtype that it computes in.
    pub(super) math: DType,
    /// The number of elements that become one.
    pub(super) count: usize,
    /// Rows of a unit, and elements of a row, where rows are combined element by element; without, all elements are combined.
    pub(super) rows: Option<(usize, usize)>,
}

/// A program divided into tiled and resident values.
pub(super) struct Split {
    /// The number of the first dims that make up the rows.
    pub(super) lead: usize,
    pub(super) rows: usize,
    /// The first dims.
    pub(super) dims: Vec<usize>,
    /// The shape of each node.
    pub(super) shapes: Vec<Vec<usize>>,
    /// Whether the results depend on the node.
    pub(super) needed: Vec<bool>,
    pub(super) tiled: Vec<bool>,
    /// The pass in which a tiled node is computed, or after which a resident one is known.
    pub(super) passes: Vec<usize>,
    pub(super) folds: Vec<Fold>,
    /// Whether a tiled value depends on ops on lines, which are dear, and whose results are large.
    lined: Vec<bool>,
    /// The tiled values that are kept for later passes.
    pub(super) kept: Vec<usize>,
    /// The nodes of the results.
    pub(super) results: Vec<usize>,
    /// What divides the rows of a tile, but the last one's.
    pub(super) unit: usize,
    /// Whether rows are reduced one by one: two rows at least, as single ones are reduced in another order.
    pub(super) pairs: bool,
}

/// Divides a program by the largest number of first dims for which that is possible. Errors: the reason why it is not.
pub(super) fn split(typed: &TypedProgram, results: Vec<usize>) -> Result<Split, String> {
    let nodes: Vec<NodeKind<'_>> = typed.nodes().map(|n| n.kind).collect();
    let fixed = |d: &SymDim| if let SymDim::Fixed(n) = d { Some(*n) } else { None };
    let shapes: Option<Vec<Vec<usize>>> = typed.nodes().map(|n| n.shape.iter().map(fixed).collect()).collect();
    let shapes = shapes.ok_or("a dim is not known")?;
    let needed = needed(&nodes, &results);
    let is_feed = |i: &usize| needed[*i] && matches!(nodes[*i], NodeKind::Feed(_));
    let largest = (0..nodes.len()).filter(is_feed).max_by_key(|i| shapes[*i].iter().product::<usize>());
    let main = largest.map(|i| shapes[i].clone()).ok_or("it has no inputs")?;
    let mut why = "its inputs have no dims".to_string();
    for lead in (1..=main.len()).rev() {
        let rows: usize = main[..lead].iter().product();
        if rows < 2 {
            why = "its first dims have less than two elements".to_string();
            continue;
        }
        let (shapes, needed, results) = (shapes.clone(), needed.clone(), results.clone());
        let (tiled, passes) = (vec![false; nodes.len()], vec![0; nodes.len()]);
        let (folds, lined, kept) = (Vec::new(), vec![false; nodes.len()], Vec::new());
        let dims = main[..lead].to_vec();
        let (unit, pairs) = (1, false);
        let mut split =
            Split { lead, rows, dims, shapes, needed, tiled, passes, folds, lined, kept, results, unit, pairs };
        match split.classify(typed, &nodes, &main) {
            Ok(()) => return Ok(split),
            Err(reason) => why = reason,
        }
    }
    Err(why)
}

/// Whether the results depend on each node.
fn needed(nodes: &[NodeKind<'_>], results: &[usize]) -> Vec<bool> {
    let mut needed = vec![false; nodes.len()];
    results.iter().for_each(|i| needed[*i] = true);
    let mut next = results.to_vec();
    while let Some(i) = next.pop() {
        let like = match &nodes[i] {
            NodeKind::Generate { like, .. } | NodeKind::Blocks { like, .. } | NodeKind::Indexed { like, .. } => {
                Some(*like)
            }
            _ => None,
        };
        for from in nodes[i].inputs().into_iter().chain(like) {
            if !std::mem::replace(&mut needed[from], true) {
                next.push(from);
            }
        }
    }
    needed
}

fn whole(name: &str) -> String {
    format!("`{name}` needs the whole tensor")
}

impl Split {
    /// The elements of a node in one row.
    pub(super) fn width(&self, node: usize) -> usize {
        self.shapes[node][self.lead..].iter().product()
    }

    /// The shape of a tiled node in a tile of so many rows.
    pub(super) fn tile(&self, node: usize, rows: usize) -> Vec<usize> {
        let mut shape = self.shapes[node].clone();
        shape[..self.lead].fill(1);
        shape[self.lead - 1] = rows;
        shape
    }

    /// The number of passes over the inputs.
    pub(super) fn count(&self) -> usize {
        let tiled = (0..self.tiled.len()).filter(|i| self.tiled[*i] && self.needed[*i]);
        tiled.map(|i| self.passes[i] + 1).max().unwrap_or(0)
    }

    /// Whether ops on lines make tiled values.
    pub(super) fn has_lines(&self) -> bool {
        self.lined.contains(&true)
    }

    /// Whether a tiled value is not computed in a pass, since an earlier one has kept it.
    pub(super) fn has_kept(&self, node: usize, pass: usize) -> bool {
        self.passes[node] < pass && self.kept.contains(&node)
    }

    /// Bytes of what is kept. `dtypes` are those of the nodes.
    pub(super) fn kept_bytes(&self, dtypes: &[DType]) -> u64 {
        let of = |n: &usize| (self.rows as u64).saturating_mul((self.width(*n) * dtypes[*n].size()) as u64);
        self.kept.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Finds the values that are kept: those that depend on lines and that a later pass needs. An implicit cast is computed again.
    fn keep(&mut self, nodes: &[NodeKind<'_>]) {
        let mut kept = vec![false; nodes.len()];
        for (i, node) in nodes.iter().enumerate().filter(|(i, _)| self.needed[*i] && self.tiled[*i]) {
            for mut from in node.inputs().into_iter().filter(|n| self.lined[*n] && self.passes[*n] < self.passes[i]) {
                while let NodeKind::Cast { from: before, note } = &nodes[from]
                    && note.reason != Reason::Requested
                {
                    from = *before;
                }
                kept[from] = true;
            }
        }
        self.kept = (0..nodes.len()).filter(|n| kept[*n]).collect();
    }

    /// Whether a node has the rows as its first dims.
    fn has_rows(&self, node: usize, main: &[usize]) -> bool {
        self.shapes[node].get(..self.lead) == Some(&main[..self.lead])
    }

    /// Whether a node, broadcast to this rank, has the same elements in each row.
    fn repeats(&self, node: usize, rank: usize) -> bool {
        let shape = &self.shapes[node];
        let first = self.lead.saturating_sub(rank.saturating_sub(shape.len()));
        shape.iter().take(first).all(|n| *n == 1)
    }

    fn classify(&mut self, typed: &TypedProgram, nodes: &[NodeKind<'_>], main: &[usize]) -> Result<(), String> {
        for (i, node) in typed.nodes().enumerate() {
            if !self.needed[i] {
                continue;
            }
            let inputs = nodes[i].inputs();
            let is_tiled = inputs.iter().any(|n| self.tiled[*n]);
            self.passes[i] = inputs.iter().map(|n| self.passes[*n]).max().unwrap_or(0);
            match &nodes[i] {
                NodeKind::Feed(_) => self.feed(i, main)?,
                NodeKind::Apply { operands, .. } if is_tiled => self.apply(i, operands, main)?,
                NodeKind::Cast { .. } | NodeKind::Bits { .. } | NodeKind::View { view: None, .. } if is_tiled => {
                    let from = inputs.first().copied().unwrap_or_default();
                    if !self.has_rows(i, main) || self.shapes[i].len() != self.shapes[from].len() {
                        return Err("a tensor of fewer dims is broadcast along rows".into());
                    }
                    self.tiled[i] = true;
                }
                NodeKind::Reduce { op, from, dims, .. } if is_tiled => self.reduce(i, *op, *from, dims, node.dtype)?,
                NodeKind::Line { op, dim, .. } if is_tiled && (*dim < self.lead || !self.has_rows(i, main)) => {
                    return Err(whole(op.name()));
                }
                NodeKind::Line { .. } if is_tiled => (self.tiled[i], self.lined[i]) = (true, true),
                NodeKind::Indexed { how, like, .. } if is_tiled || self.tiled[*like] => return Err(whole(how.name())),
                NodeKind::Indexed { like, .. } => self.passes[i] = self.passes[i].max(self.passes[*like]),
                NodeKind::View { .. } if is_tiled => return Err("a view needs the whole tensor".into()),
                NodeKind::Generate { like, .. } => {
                    (self.tiled[i], self.passes[i]) = (self.tiled[*like], self.passes[*like]);
                }
                NodeKind::Blocks { like, .. } if is_tiled || self.tiled[*like] => return Err(whole("blocks")),
                NodeKind::Blocks { like, .. } => self.passes[i] = self.passes[i].max(self.passes[*like]),
                _ if is_tiled => return Err("an op needs the whole tensor".into()),
                _ => {}
            }
            self.lined[i] = self.tiled[i] && (self.lined[i] || inputs.iter().any(|n| self.lined[*n]));
        }
        self.keep(nodes);
        let narrow = |d: DType| d.is_float() && d.size() < 4;
        let rounds = typed.settings().rounding == Rounding::Relaxed && typed.nodes().any(|n| narrow(n.dtype));
        let stays = |k: &NodeKind<'_>| matches!(k, NodeKind::Feed(_) | NodeKind::Constant(_) | NodeKind::View { .. });
        let resident = (0..nodes.len()).any(|i| self.needed[i] && !self.tiled[i] && !stays(&nodes[i]));
        if rounds && resident {
            return Err("with --rounding relaxed, what is stored between the passes would be rounded".into());
        }
        Ok(())
    }

    fn feed(&mut self, i: usize, main: &[usize]) -> Result<(), String> {
        self.tiled[i] = self.has_rows(i, main) && self.shapes[i].len() == main.len();
        if self.tiled[i] || self.repeats(i, main.len()) {
            return Ok(());
        }
        Err("an input has some of the first dims of the largest one, but not all".into())
    }

    fn apply(&mut self, i: usize, operands: &[NodeOperand], main: &[usize]) -> Result<(), String> {
        let rank = self.shapes[i].len();
        let fits = |o: &NodeOperand| match o {
            NodeOperand::Node(n) if self.tiled[*n] => self.shapes[*n].len() == rank,
            NodeOperand::Node(n) => self.repeats(*n, rank),
            NodeOperand::Scalar(..) => true,
        };
        if !self.has_rows(i, main) || !operands.iter().all(fits) {
            return Err("an operand is not broadcast as the rows are".into());
        }
        self.tiled[i] = true;
        Ok(())
    }

    fn reduce(&mut self, node: usize, op: Op, from: usize, dims: &[usize], dtype: DType) -> Result<(), String> {
        let (rank, lead) = (self.shapes[from].len(), self.lead);
        if dims.iter().all(|d| *d >= lead) {
            self.tiled[node] = true;
            self.pairs = true;
            return Ok(());
        }
        let (first, rest) = (dims.iter().filter(|d| **d < lead).count(), self.width(from));
        let all = dims.len() == rank || dims.len() == lead && rest == 1;
        if first < lead || !(all || dims.len() == lead) {
            return Err(format!("`{}` combines some of the first dims, but not all", op.name()));
        }
        let plain = matches!(op, Op::Sum | Op::Prod | Op::Amax | Op::Amin | Op::Any | Op::All);
        // The parts of a complex sum are divided one by one, which no division of complex numbers does.
        if !(plain || op == Op::Mean && !dtype.is_complex()) {
            return Err(whole(op.name()));
        }
        let count = self.rows * if all { rest } else { 1 };
        let rows = match all {
            true => None,
            false => Some(parts::rows(self.rows, rest).ok_or_else(|| whole(op.name()))?),
        };
        let unit = rows.unwrap_or_else(|| parts::elements() / common(parts::elements(), rest));
        let least = (self.unit / common(self.unit, unit)).checked_mul(unit);
        self.unit = least.ok_or_else(|| whole(op.name()))?;
        self.passes[node] = self.passes[from] + 1;
        self.folds.push(Fold { node, from, op, math: dtype.op_math(), count, rows: rows.map(|unit| (unit, rest)) });
        Ok(())
    }
}

/// The greatest common divisor.
fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}
