//! Which shapes of a typed program are one iteration domain, for feeds whose dynamic dims are known.
//!
//! Two placeholders `[None]` have two symbols, and their sum a third; yet mostly all three have the same extent, and one loop
//! serves. So a plan does not depend on the extents but on which dynamic dims are broadcast: dims of extent 1 that meet a larger
//! one. All other dims that meet have equal extents, or the feeds would have been refused.
//!
//! Guarantees: shapes of one domain have equal extents under every assignment with the same [`Pattern`]; a new batch
//! size has the pattern of the old one. Does not: check feeds; `executor` has done that.

use foldhash::{HashMap, HashMapExt};

use crate::base::shape::SymDim;
use crate::graph::typed::TypedProgram;
use crate::plan::geometry::BroadcastKind;

/// For each dynamic dim, whether it is 1 and is broadcast against something that is not.
pub(crate) type Pattern = Vec<bool>;

/// The pattern of an assignment of the dynamic dims.
pub(crate) fn pattern(typed: &TypedProgram, values: &[usize]) -> Pattern {
    let mut broadcast = vec![false; values.len()];
    for c in &typed.checks {
        let (a, b) = &c.dims;
        for (this, other) in [(a, b), (b, a)] {
            let larger = other.extent(values).is_some_and(|n| n != 1);
            for s in symbols(this) {
                broadcast[*s as usize] |= larger && values[*s as usize] == 1;
            }
        }
    }
    broadcast
}

fn symbols(d: &SymDim) -> &[u32] {
    match d {
        SymDim::Fixed(_) => &[],
        SymDim::Sym(set) => set,
    }
}

/// A dim, the same for all dims that are equal: a number, or the smallest of their symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resolved {
    Fixed(usize),
    Symbol(u32),
}

/// The domains of a typed program under a pattern.
pub(crate) struct Domains {
    /// For each shape, the first shape that is the same domain.
    pub(crate) of_shape: Vec<u32>,
    /// The dims of each shape.
    resolved: Vec<Vec<Resolved>>,
}

impl Domains {
    /// The dims of a shape.
    pub(crate) fn dims(&self, shape: u32) -> &[Resolved] {
        &self.resolved[shape as usize]
    }

    /// How an operand of one shape is broadcast to a domain, as far as that does not depend on extents.
    pub(crate) fn spread(&self, shape: u32, domain: u32) -> BroadcastKind {
        let (s, d) = (&self.resolved[shape as usize], &self.resolved[domain as usize]);
        if s.iter().all(|d| *d == Resolved::Fixed(1)) {
            BroadcastKind::All
        } else if s.last() == d.last() {
            BroadcastKind::Varies
        } else {
            BroadcastKind::Inner
        }
    }
}

/// Finds the domains: shapes that are equal under a pattern are one.
pub(crate) fn domains(typed: &TypedProgram, pattern: &Pattern) -> Domains {
    let mut equal = Classes::new(pattern.len());
    for c in &typed.checks {
        let (a, b) = &c.dims;
        let mut all = symbols(a).iter().chain(symbols(b)).copied().filter(|s| !pattern[*s as usize]);
        if let Some(first) = all.next() {
            all.for_each(|s| equal.join(first, s));
            for d in [a, b] {
                if let SymDim::Fixed(n) = d
                    && *n != 1
                {
                    equal.fix(first, *n);
                }
            }
        }
    }
    let mut first_of: HashMap<Vec<Resolved>, u32> = HashMap::new();
    let (mut of_shape, mut all) = (Vec::new(), Vec::new());
    for (i, shape) in typed.shapes.iter().enumerate() {
        let resolved: Vec<Resolved> = shape.iter().map(|d| equal.resolve(d, pattern)).collect();
        all.push(resolved.clone());
        of_shape.push(*first_of.entry(resolved).or_insert(i as u32));
    }
    Domains { of_shape, resolved: all }
}

/// Symbols that are equal (union-find), and the number that they stand for if it is known.
struct Classes {
    parent: Vec<u32>,
    fixed: Vec<Option<usize>>,
}

impl Classes {
    fn new(n: usize) -> Classes {
        Classes { parent: (0..n as u32).collect(), fixed: vec![None; n] }
    }

    fn root(&mut self, mut s: u32) -> u32 {
        while self.parent[s as usize] != s {
            self.parent[s as usize] = self.parent[self.parent[s as usize] as usize];
            s = self.parent[s as usize];
        }
        s
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        let (low, high) = (a.min(b), a.max(b));
        self.parent[high as usize] = low;
        self.fixed[low as usize] = self.fixed[low as usize].or(self.fixed[high as usize]);
    }

    fn fix(&mut self, s: u32, n: usize) {
        let root = self.root(s);
        self.fixed[root as usize] = Some(n);
    }

    fn resolve(&mut self, d: &SymDim, pattern: &Pattern) -> Resolved {
        match d {
            SymDim::Fixed(n) => Resolved::Fixed(*n),
            SymDim::Sym(set) => match set.iter().find(|s| !pattern[**s as usize]) {
                None => Resolved::Fixed(1),
                Some(s) => {
                    let root = self.root(*s);
                    self.fixed[root as usize].map_or(Resolved::Symbol(root), Resolved::Fixed)
                }
            },
        }
    }
}

#[cfg(test)]
mod tests;
