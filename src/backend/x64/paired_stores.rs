//! Pairs of vectors whose 16-bit results are stored as one cache line.
//!
//! A vector of results that are half as wide as the widest dtype fills half a cache line. Two such stores cannot be
//! non-temporal: the second may come too late to be combined with the first. So both results of a pair are joined into one store
//! ([`PairedStores::Halves`]). If all elements in memory are bf16, a pair is split into even and odd elements instead
//! ([`PairedStores::EvenOdd`]): bf16 is the upper half of f32, so one instruction makes the even (a shift) or odd elements (an AND)
//! from a line, where consecutive vectors take two each (extend, shift), and one instruction combines them again. In AVX2 loops
//! the same holds with half a line in a pair.
//!
//! Measured, less time for `(a*b + c)*a - b` over 2^24 elements, on one thread and on two: bf16 rounded after each op 12 and
//! 25 %, with AVX2 25 and 13 %; rounded once 10 and 17 to 45 %, with AVX2 17 and 22 %; f16 with AVX2 0 to 16 %.
//!
//! Guarantees: the same bits; a body that neither form serves is unchanged. Does not: change sums, whose order is fixed.

use super::instructions::{self as ins, avx2};
use super::ir::{BOTH, Body, Def, Inst, NONE, Node, Reg, Store};
use super::isa::Isa;
use crate::base::dtype::DType;
use crate::plan::schedule::SlotId;

/// The bits of an f32 that a bf16 has.
const UPPER: u64 = 0xffff_0000;

/// How the two vectors of a pair lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairedStores {
    /// Consecutive, with a store each.
    Separate,
    /// Consecutive; results of half a line are joined into one store.
    Halves,
    /// The even and the odd elements of a line, which takes fewer instructions.
    EvenOdd,
}

impl PairedStores {
    /// The form for a body over one vector of so many elements.
    pub(super) fn of(body: &Body, lanes: usize) -> PairedStores {
        if Bf16Body::of(body).is_some() {
            PairedStores::EvenOdd
        } else if body.nodes.iter().any(|node| half_line(body, lanes, node).is_some()) {
            PairedStores::Halves
        } else {
            PairedStores::Separate
        }
    }

    /// Rewrites the body over two consecutive vectors into this form.
    pub(super) fn apply(self, body: &mut Body, lanes: usize) {
        match self {
            PairedStores::Separate => {}
            PairedStores::Halves => join_halves(body, lanes),
            PairedStores::EvenOdd => split_even_odd(body),
        }
    }
}

/// The store of one vector of a pair: the slot, what the joined store is made of, and which vector.
type Part<T> = Option<(SlotId, T, u8)>;

/// A store of half a line.
fn half_line(body: &Body, lanes: usize, node: &Node) -> Part<Reg> {
    match *node {
        Node::Store(Store { slot, dtype, src, sum: NONE, vector: vector @ (0 | 1), .. })
            if 2 * dtype.size() * lanes == body.isa.bytes() =>
        {
            Some((slot, src, vector))
        }
        _ => None,
    }
}

/// Joins stores of halves.
fn join_halves(body: &mut Body, lanes: usize) {
    let parts = body.nodes.iter().map(|node| half_line(body, lanes, node)).collect();
    let (bytes, instruction, imm) = match body.isa {
        Isa::Avx512 => (64, ins::VSHUFI64X2, 0x44),
        Isa::Avx2 => (32, avx2::VPERM2I128, 0x20),
    };
    join_stores(body, parts, |first, second| Inst {
        imm: Some(imm),
        ..Inst::new(instruction, bytes, [first, second, NONE])
    });
}

/// Replaces the two stores of each pair, given for each node, by one store in the place of the second; `join` makes what is
/// stored.
fn join_stores<T: Copy>(body: &mut Body, parts: Vec<Part<T>>, join: impl Fn(T, T) -> Inst) {
    let first =
        |slot| parts.iter().flatten().find(|(s, _, vector)| *s == slot && *vector == 0).map(|(_, part, _)| *part);
    for (node, part) in std::mem::take(&mut body.nodes).into_iter().zip(&parts) {
        match (*part, node) {
            (Some((slot, second, 1)), Node::Store(store)) => {
                if let Some(first) = first(slot) {
                    body.step = store.step;
                    let src = body.push(join(first, second));
                    body.nodes.push(Node::Store(Store { src, sum: NONE, vector: BOTH, ..store }));
                }
            }
            (Some(_), _) => {}
            (None, node) => body.nodes.push(node),
        }
    }
}

/// A body whose elements in memory are all bf16, and what it does with them.
struct Bf16Body {
    /// For each register, the node that defines it.
    made: Vec<usize>,
    /// The instructions that zero-extend loaded elements: node, result, and which vector of the pair.
    extended: Vec<(usize, Reg, u8)>,
}

impl Bf16Body {
    /// `None` if the body does anything else with elements in memory than to convert them from and to bf16.
    fn of(body: &Body) -> Option<Bf16Body> {
        let (extend, shift) = (ins::VPMOVZXWD.on(body.isa), ins::VPSLLD.on(body.isa));
        let mut made = vec![usize::MAX; body.defs.len()];
        for (i, node) in body.nodes.iter().enumerate() {
            if let Node::Inst(inst) = node {
                made[inst.dst as usize] = i;
            }
        }
        let loaded = |r: Reg| (r != NONE).then(|| body.defs[r as usize]).filter(|d| matches!(d, Def::Load(..)));
        let mut extended = Vec::new();
        let mut stores = 0;
        for (i, node) in body.nodes.iter().enumerate() {
            match node {
                Node::Inst(inst) if inst.instruction == ins::ACCUMULATE => return None,
                Node::Inst(inst) => {
                    if let Some(Def::Load(_, dtype, vector)) = loaded(inst.src[0]) {
                        (dtype == DType::BF16 && inst.instruction == extend).then_some(())?;
                        extended.push((i, inst.dst, vector));
                    } else if inst.src[1..].iter().any(|r| loaded(*r).is_some()) {
                        return None;
                    }
                }
                Node::Store(Store { dtype, src, sum, .. }) => {
                    (*dtype == DType::BF16 && *sum == NONE && rounded(body, &made, *src).is_some()).then_some(())?;
                    stores += 1;
                }
            }
        }
        // Extended elements are only shifted.
        let is_extended = |r: &Reg| extended.iter().any(|(_, e, _)| e == r);
        let others = body.nodes.iter().any(|node| {
            let shifts = matches!(node, Node::Inst(inst) if inst.instruction == shift && inst.imm == Some(16));
            !shifts && node.sources().any(|r| is_extended(&r))
        });
        (stores > 0 && !others).then_some(Bf16Body { made, extended })
    }
}

/// For a vector of bf16 that was rounded in this body: the f32 lanes before and after their upper halves were shifted down.
fn rounded(body: &Body, made: &[usize], r: Reg) -> Option<(Reg, Reg)> {
    let inst = |r: Reg| match body.nodes.get(*made.get(r as usize)?)? {
        Node::Inst(inst) => Some(*inst),
        Node::Store(_) => None,
    };
    let narrowed = inst(r).filter(|o| match body.isa {
        Isa::Avx512 => o.instruction == ins::VPMOVDW,
        // Packs both halves of one vector.
        Isa::Avx2 => {
            o.instruction == avx2::VPACKUSDW
                && inst(o.src[1]).is_some_and(|u| u.instruction == avx2::VEXTRACTI128 && u.src[0] == o.src[0])
        }
    })?;
    let shift = ins::VPSRLD.on(body.isa);
    let shifted = inst(narrowed.src[0]).filter(|o| o.instruction == shift && o.imm == Some(16))?;
    Some((shifted.src[0], shifted.dst))
}

/// Splits the pairs of a body over two vectors into even and odd elements.
fn split_even_odd(body: &mut Body) {
    let Some(Bf16Body { made, extended }) = Bf16Body::of(body) else { return };
    let upper = constant(body, UPPER);
    split_loads(body, &extended, upper);
    combine_stores(body, &made, upper);
    body.remove_dead();
}

/// A constant of four bytes. A body that rounds to bf16 may have it already.
fn constant(body: &mut Body, bits: u64) -> Reg {
    let wanted = [bits | bits << 32; 8];
    let same = |d: &Def| matches!(d, Def::Const(i) if body.constants[*i as usize] == wanted);
    match body.defs.iter().position(same) {
        Some(r) => r as Reg,
        None => body.splat(4, bits),
    }
}

/// Makes f32 of the even and odd elements of a line: the lower halves shifted up, the upper halves alone.
fn split_loads(body: &mut Body, extended: &[(usize, Reg, u8)], upper: Reg) {
    let (and, bytes) = (ins::VPANDD.on(body.isa), body.isa.bytes());
    let mut lines: Vec<(Def, Reg)> = Vec::new();
    for (i, e, vector) in extended {
        let Node::Inst(Inst { src: [from, ..], .. }) = body.nodes[*i] else { continue };
        let Def::Load(slot, dtype, _) = body.defs[from as usize] else { continue };
        let line = Def::Load(slot, dtype, BOTH);
        let known = lines.iter().find(|(d, _)| *d == line).map(|(_, r)| *r);
        let line = known.unwrap_or_else(|| {
            lines.push((line, body.define(line, false)));
            lines[lines.len() - 1].1
        });
        for node in &mut body.nodes {
            match node {
                Node::Inst(inst) if inst.src[0] == *e && *vector == 0 => inst.src[0] = line,
                Node::Inst(inst) if inst.src[0] == *e => {
                    let (dst, step) = (inst.dst, inst.step);
                    *inst = Inst { dst, step, ..Inst::new(and, bytes, [line, upper, NONE]) };
                }
                _ => {}
            }
        }
    }
}

/// Stores even and odd elements at once, in the place of the second store.
fn combine_stores(body: &mut Body, made: &[usize], upper: Reg) {
    let part = |node: &Node| match *node {
        Node::Store(store) => rounded(body, made, store.src).map(|lanes| (store.slot, lanes, store.vector)),
        Node::Inst(_) => None,
    };
    let parts = body.nodes.iter().map(part).collect();
    let isa = body.isa;
    join_stores(body, parts, |(_, even), (odd, _)| match isa {
        // even | odd & upper
        Isa::Avx512 => Inst { imm: Some(0xf8), ..Inst::new(ins::VPTERNLOGD, 64, [even, odd, upper]) },
        // The odd words of the second source.
        Isa::Avx2 => Inst { imm: Some(0xaa), ..Inst::new(avx2::VPBLENDW, 32, [even, odd, NONE]) },
    });
}
