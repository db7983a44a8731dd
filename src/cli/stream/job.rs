//! A tensor that is computed tile by tile: what is read for each tile, and what is kept from tile to tile.
//!
//! Guarantees: partial results are collected in the order of the tiles. Does not: read or write.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use castwise::{DType, Error, Executor, Part, Tensor, TypedProgram};

use super::spare::is_free;
use super::split::Split;
use super::tile::{Made, Tile, residents};

/// The tiles that are read, computed and written at a time.
pub(super) const SLOTS: usize = 3;

/// An input that is read tile by tile in a pass.
pub(super) struct TiledInput {
    /// The position of the input.
    pub(super) input: usize,
    pub(super) node: usize,
    pub(super) dtype: DType,
    /// Elements of a row.
    pub(super) width: usize,
}

/// A job that is streamed.
pub(super) struct Streamed {
    pub(super) job: usize,
    pub(super) split: Split,
    /// The inputs that each pass reads.
    pub(super) passes: Vec<Vec<TiledInput>>,
    /// Rows of a tile.
    pub(super) rows: usize,
    /// Whether it is worth streaming although the whole fits in memory: the inputs are read once, while other tiles are computed, or
    /// ops on lines (sorts and scans) have results of a tile's size instead of the tensor's.
    pub(super) pays: bool,
}

impl Streamed {
    /// The rows of each tile, in order.
    pub(super) fn tiles(&self) -> impl Iterator<Item = Range<usize>> {
        let (all, each) = (self.split.rows, self.rows);
        let mut count = all.div_ceil(each);
        // Two rows are reduced in another order than one.
        if self.split.pairs && count > 1 && all - (count - 1) * each == 1 {
            count -= 1;
        }
        (0..count).map(move |i| i * each..if i + 1 == count { all } else { (i + 1) * each })
    }

    /// The resident inputs: their nodes.
    pub(super) fn residents(&self, typed: &TypedProgram) -> Vec<(usize, String)> {
        let feed = |(i, n): (usize, castwise::NodeView<'_>)| match n.kind {
            castwise::NodeKind::Feed(name) if self.split.needed[i] && !self.split.tiled[i] => {
                Some((i, name.to_string()))
            }
            _ => None,
        };
        typed.nodes().enumerate().filter_map(feed).collect()
    }
}

/// The memory of a tile: what is read, and what is computed.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) read: Vec<Tensor>,
    pub(super) made: Vec<Tensor>,
}

impl Slot {
    /// Makes room to read the operand of this number into.
    pub(super) fn prepare(&mut self, i: usize, dtype: DType, shape: &[usize]) -> Result<(), Error> {
        let elements = shape.iter().product();
        let fits = self.read.get_mut(i).is_some_and(|t| t.shape() == shape && is_free(t, dtype, elements));
        if !fits {
            self.read.truncate(i);
            self.read.push(Tensor::zeros(dtype, shape)?);
        }
        Ok(())
    }
}

/// A streamed job while it runs.
pub(super) struct Running<'a> {
    streamed: &'a Streamed,
    typed: &'a TypedProgram,
    known: HashMap<usize, Tensor>,
    partials: Vec<Vec<u8>>,
    /// What earlier passes have kept: for each node, the tiles in order.
    kept: HashMap<usize, Vec<Tensor>>,
    pass: usize,
    /// The programs of this pass by the rows of their tiles, with the resident values that they are fed.
    programs: HashMap<usize, (Tile, Vec<Tensor>)>,
}

impl<'a> Running<'a> {
    /// Begins with the resident inputs.
    pub(super) fn new(streamed: &'a Streamed, typed: &'a TypedProgram, known: HashMap<usize, Tensor>) -> Running<'a> {
        let partials = streamed.split.folds.iter().map(|_| Vec::new()).collect();
        Running { streamed, typed, known, partials, kept: HashMap::new(), pass: 0, programs: HashMap::new() }
    }

    /// Computes a tile. Returns the positions in `slot.made` of results' rows, with the results' numbers.
    pub(super) fn tile(
        &mut self,
        rows: &Range<usize>,
        slot: &mut Slot,
        run: &Executor,
    ) -> Result<Vec<(usize, usize)>, Error> {
        let Running { streamed, typed, known, kept, pass, .. } = self;
        let (split, at) = (&streamed.split, rows.start / streamed.rows);
        let (tile, values) = match self.programs.entry(rows.len()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let tile = Tile::new(typed, split, *pass, rows.len(), run)?;
                let wanted: Vec<usize> = tile.feeds.iter().copied().filter(|n| !split.tiled[*n]).collect();
                let values = if wanted.is_empty() { Vec::new() } else { residents(typed, known, &wanted, run)? };
                new.insert((tile, values))
            }
        };
        let (mut read, mut values) = (slot.read.iter(), values.iter());
        let fed = tile.feeds.iter().map(|n| match split.tiled[*n] {
            true if split.has_kept(*n, *pass) => kept.get(n)?.get(at),
            true => read.next(),
            false => values.next(),
        });
        let fed: Option<Vec<&Tensor>> = fed.collect();
        let fed = fed.ok_or_else(|| Error::Internal("a tile without an operand".into()))?;
        let part = Part { dims: split.dims.clone(), first: rows.start };
        tile.run(&fed, &mut slot.made, &part)?;
        let mut results = Vec::new();
        for (i, (made, t)) in tile.made.iter().zip(&mut slot.made).enumerate() {
            match made {
                Made::Result(n) => results.push((i, *n)),
                Made::Partial(n) => self.partials[*n].extend(t.as_bytes().unwrap_or_default()),
                // The next tile gets other memory.
                Made::Kept(n) => {
                    kept.entry(*n).or_default().push(std::mem::replace(t, Tensor::zeros(DType::Bool, [0])?))
                }
            }
        }
        Ok(results)
    }

    /// Ends a pass: its reductions are known.
    pub(super) fn end_pass(&mut self, run: &Executor) -> Result<(), Error> {
        let split = &self.streamed.split;
        for (fold, partial) in split.folds.iter().zip(&mut self.partials) {
            if split.passes[fold.from] == self.pass {
                let value = fold.finish(self.typed, split, &std::mem::take(partial), run)?;
                self.known.insert(fold.node, value);
            }
        }
        self.pass += 1;
        self.programs.clear();
        Ok(())
    }

    /// The results that are resident, with their numbers.
    pub(super) fn results(&self, run: &Executor) -> Result<Vec<(usize, Tensor)>, Error> {
        let split = &self.streamed.split;
        let resident = split.results.iter().enumerate().filter(|(_, n)| !split.tiled[**n]);
        let (numbers, nodes): (Vec<usize>, Vec<usize>) = resident.map(|(i, n)| (i, *n)).unzip();
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        Ok(numbers.into_iter().zip(residents(self.typed, &self.known, &nodes, run)?).collect())
    }
}
