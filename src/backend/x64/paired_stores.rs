//! Pairs of vectors that are one cache line of 16-bit elements in memory.
//!
//! Two halves of a line that are stored one after the other can't go past the caches: the second may come too late to be
//! written with the first. So the two results of a pair are joined ([`Lines::Halves`]). Where all elements in memory are bf16, a
//! pair is two planes instead ([`Lines::Planes`]), the even elements in one vector of f32, the odd ones in the other: numbers of
//! bf16 are the upper halves of f32, so one instruction makes a plane (a shift, a mask) of a line, where two vectors in a row
//! need two each (widen, shift), and the planes are put together by one. With AVX2 a pair is half a line, in one store.
//! Measured, less time for `(a*b + c)*a - b` of 2^24 elements, one thread and two: bf16 rounded after each op 12 and 25 %, with
//! AVX2 25 and 13; rounded once 10 and 17 to 45, with AVX2 17 and 22; f16 with AVX2 0 to 16. Guarantees: the same bits; a
//! body that neither serves is as it was. Does not: change sums, which have an order.

use super::instructions::{self as f, Form, avx2 as g};
use super::ir::{Body, Def, Inst, NONE, Op, Reg};
use super::isa::Isa;
use crate::base::dtype::DType;
use crate::plan::schedule::SlotId;

/// How many vectors ahead: both of a pair, at once.
pub(super) const BOTH: u8 = u8::MAX;

/// The bits of f32 that bf16 has.
const UPPER: u64 = 0xffff_0000;

/// What the body does with elements in memory.
struct Found {
    /// For each register: the instruction that makes it.
    made: Vec<usize>,
    /// The instructions that widen what is loaded, and the vector of the pair that each belongs to.
    widened: Vec<(usize, Reg, u8)>,
}

/// What two vectors of a body's elements in memory are together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// One after the other.
    Vectors,
    /// Of some results, the halves of a cache line.
    Halves,
    /// All of them, planes of a cache line, which take fewer instructions than one vector after the other.
    Planes,
}

impl Lines {
    /// What they are of a body over one vector of so many elements.
    pub(super) fn of(body: &Body, lanes: usize) -> Lines {
        if found(body).is_some() {
            Lines::Planes
        } else if body.insts.iter().any(|inst| half(body, lanes, inst).is_some()) {
            Lines::Halves
        } else {
            Lines::Vectors
        }
    }

    /// Makes the same body over two vectors in a row read and write whole cache lines, as far as it can.
    pub(super) fn join(self, body: &mut Body, lanes: usize) {
        match self {
            Lines::Vectors => {}
            Lines::Halves => whole(body, lanes),
            Lines::Planes => split(body),
        }
    }
}

/// A store of half a cache line: the slot, what becomes a part of the line, and which half.
type Half<T> = Option<(SlotId, T, u8)>;

fn half(body: &Body, lanes: usize, inst: &Inst) -> Half<Reg> {
    match *inst {
        Inst::Store(slot, dtype, r, NONE, ahead @ (0 | 1)) if 2 * dtype.size() * lanes == body.isa.bytes() => {
            Some((slot, r, ahead))
        }
        _ => None,
    }
}

/// Stores halves as one line each, in the place of the second.
fn whole(body: &mut Body, lanes: usize) {
    let halves = body.insts.iter().map(|inst| half(body, lanes, inst)).collect();
    let (bytes, (form, imm)) = match body.isa {
        Isa::Avx512 => (64, (f::JOIN, 0x44)),
        Isa::Avx2 => (32, (g::JOIN, 0x20)),
    };
    joined(body, halves, |first, second| Op { imm: Some(imm), ..Op::new(form, bytes, [first, second, NONE]) });
}

/// Replaces stores of halves, given for each instruction, by stores of what `join` makes of two.
fn joined<T: Copy>(body: &mut Body, halves: Vec<Half<T>>, join: impl Fn(T, T) -> Op) {
    let first = |slot| halves.iter().flatten().find(|(s, _, half)| *s == slot && *half == 0).map(|(_, part, _)| *part);
    for (inst, half) in std::mem::take(&mut body.insts).into_iter().zip(&halves) {
        match (*half, inst) {
            (Some((slot, second, 1)), Inst::Store(_, dtype, ..)) => {
                if let Some(first) = first(slot) {
                    let line = body.put(join(first, second));
                    body.insts.push(Inst::Store(slot, dtype, line, NONE, BOTH));
                }
            }
            (Some(_), _) => {}
            (None, inst) => body.insts.push(inst),
        }
    }
}

fn found(body: &Body) -> Option<Found> {
    let (widens, shifts_up) = (native(body.isa, f::ZXWD), native(body.isa, f::PSLLD));
    let mut made = vec![usize::MAX; body.defs.len()];
    for (i, inst) in body.insts.iter().enumerate() {
        if let Inst::Op(op) = inst {
            made[op.dst as usize] = i;
        }
    }
    let loaded = |r: Reg| (r != NONE).then(|| body.defs[r as usize]).filter(|d| matches!(d, Def::Load(..)));
    let mut widened = Vec::new();
    let mut stores = 0;
    for (i, inst) in body.insts.iter().enumerate() {
        match inst {
            Inst::Op(op) if op.form == f::ADDED => return None,
            Inst::Op(op) => {
                // An operand in memory is widened, and nothing else.
                if let Some(Def::Load(_, dtype, ahead)) = loaded(op.src[0]) {
                    (dtype == DType::BF16 && op.form == widens).then_some(())?;
                    widened.push((i, op.dst, ahead));
                } else if op.src[1..].iter().any(|r| loaded(*r).is_some()) {
                    return None;
                }
            }
            Inst::Store(_, dtype, r, sum, _) => {
                (*dtype == DType::BF16 && *sum == NONE && rounded(body, &made, *r).is_some()).then_some(())?;
                stores += 1;
            }
        }
    }
    // What was widened is shifted, and nothing else.
    let is_widened = |r: &Reg| widened.iter().any(|(_, w, _)| w == r);
    let others = body.insts.iter().any(|inst| {
        let shifts = matches!(inst, Inst::Op(op) if op.form == shifts_up && op.imm == Some(16));
        !shifts && inst.sources().any(|r| is_widened(&r))
    });
    (stores > 0 && !others).then_some(Found { made, widened })
}

/// An instruction of AVX-512 that AVX2 has too, as it is there.
fn native(isa: Isa, form: Form) -> Form {
    match isa {
        Isa::Avx512 => form,
        Isa::Avx2 => f::vex(form).unwrap_or(form),
    }
}

/// The vectors of f32 that a vector of bf16 was made of: before and after its upper halves were shifted down.
fn rounded(body: &Body, made: &[usize], r: Reg) -> Option<(Reg, Reg)> {
    let op = |r: Reg| match body.insts.get(*made.get(r as usize)?)? {
        Inst::Op(op) => Some(*op),
        Inst::Store(..) => None,
    };
    let narrowed = op(r).filter(|o| match body.isa {
        Isa::Avx512 => o.form == f::CUTDW,
        // With what the upper half of the same vector gives.
        Isa::Avx2 => o.form == g::PACKUSDW && op(o.src[1]).is_some_and(|u| u.form == g::UPPER && u.src[0] == o.src[0]),
    })?;
    let shifted = op(narrowed.src[0]).filter(|o| o.form == native(body.isa, f::PSRLD) && o.imm == Some(16))?;
    Some((shifted.src[0], shifted.dst))
}

/// Splits a body over two vectors; one that does not fit stays.
fn split(body: &mut Body) {
    let Some(Found { made, widened }) = found(body) else { return };
    let upper = constant(body, UPPER);
    load(body, &widened, upper);
    store(body, &made, upper);
    body.prune();
}

/// A constant of four bytes, which the body has already if it rounds to bf16.
fn constant(body: &mut Body, bits: u64) -> Reg {
    let wanted = [bits | bits << 32; 8];
    let same = |d: &Def| matches!(d, Def::Const(i) if body.constants[*i as usize] == wanted);
    match body.defs.iter().position(same) {
        Some(r) => r as Reg,
        None => body.lanes(4, bits),
    }
}

/// Planes of the elements in memory: the lower halves shifted up, the upper ones alone.
fn load(body: &mut Body, widened: &[(usize, Reg, u8)], upper: Reg) {
    let (and, bytes) = (native(body.isa, f::AND), body.isa.bytes());
    let mut lines: Vec<(Def, Reg)> = Vec::new();
    for (i, w, ahead) in widened {
        let Inst::Op(Op { src: [from, ..], .. }) = body.insts[*i] else { continue };
        let Def::Load(slot, dtype, _) = body.defs[from as usize] else { continue };
        let line = Def::Load(slot, dtype, BOTH);
        let known = lines.iter().find(|(d, _)| *d == line).map(|(_, r)| *r);
        let line = known.unwrap_or_else(|| {
            lines.push((line, body.define(line, false)));
            lines[lines.len() - 1].1
        });
        for inst in &mut body.insts {
            match inst {
                Inst::Op(op) if op.src[0] == *w && *ahead == 0 => op.src[0] = line,
                Inst::Op(op) if op.src[0] == *w => *op = Op { dst: op.dst, ..Op::new(and, bytes, [line, upper, NONE]) },
                _ => {}
            }
        }
    }
}

/// One store of both planes, where the second vector was stored.
fn store(body: &mut Body, made: &[usize], upper: Reg) {
    let planes = |inst: &Inst| match *inst {
        Inst::Store(slot, _, r, _, ahead) => rounded(body, made, r).map(|planes| (slot, planes, ahead)),
        Inst::Op(_) => None,
    };
    let planes = body.insts.iter().map(planes).collect();
    let isa = body.isa;
    let join = |(_, even), (odd, _)| match isa {
        // even | odd & upper
        Isa::Avx512 => Op { imm: Some(0xf8), ..Op::new(f::LOGICD, 64, [even, odd, upper]) },
        // Every second word.
        Isa::Avx2 => Op { imm: Some(0xaa), ..Op::new(g::PBLENDW, 32, [even, odd, NONE]) },
    };
    joined(body, planes, join);
}
