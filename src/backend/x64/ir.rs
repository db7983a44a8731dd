//! The body of a loop in virtual registers: straight-line code, each value defined once.
//!
//! Guarantees: a value is a vector or a mask, and its definition comes before its uses. What AVX2 has no instruction for
//! is written as several (`avx2`). Does not: know machine registers; `alloc` does.

use std::collections::HashMap;

use super::instructions::{self as f, Form, Shape, length};
use super::isa::Isa;
use crate::base::dtype::DType;
use crate::kernels::vector_call::FUNCTIONS;
use crate::ops;
use crate::plan::schedule::SlotId;

/// A virtual register.
pub(super) type Reg = u32;

/// No register.
pub(super) const NONE: Reg = u32::MAX;

/// Where a virtual register's value comes from. All but `Made` can be had again at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Def {
    /// An instruction.
    Made,
    /// Elements of a slot, so many vectors ahead.
    Load(SlotId, DType, u8),
    /// The one element of a slot, in every lane.
    Splat(SlotId, DType),
    /// A constant, by its index.
    Const(u32),
}

/// A constant: eight quadwords, all the same for most.
pub(super) type Constant = [u64; 8];

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) form: Form,
    /// The vector length of the instruction: 0 for 128 bits, 1 for 256, 2 for 512.
    pub(super) length: u8,
    pub(super) dst: Reg,
    /// Up to three; of three, one gives its register to the result.
    pub(super) src: [Reg; 3],
    /// Lanes that are written; the others become zero, or (in a blend) are those of the first source.
    pub(super) mask: Reg,
    pub(super) zeroing: bool,
    pub(super) imm: Option<u8>,
    /// Rounds towards zero instead of to nearest; 512-bit forms only.
    pub(super) truncate: bool,
    /// Of an addition to a sum, which one, and how many vectors ahead its lanes are.
    pub(super) sum: u32,
    pub(super) ahead: u8,
}

impl Op {
    pub(super) fn new(form: Form, bytes: usize, src: [Reg; 3]) -> Op {
        let length = length(bytes);
        Op { form, length, dst: NONE, src, mask: NONE, zeroing: false, imm: None, truncate: false, sum: 0, ahead: 0 }
    }
}

/// An instruction, or a store of all lanes: of the first register, or where the loop adds up, of the second.
#[derive(Clone, Copy, Debug)]
pub(super) enum Inst {
    Op(Op),
    Store(SlotId, DType, Reg, Reg, u8),
}

/// The body.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) isa: Isa,
    pub(super) insts: Vec<Inst>,
    pub(super) defs: Vec<Def>,
    /// Whether the register is a mask.
    pub(super) is_mask: Vec<bool>,
    pub(super) constants: Vec<Constant>,
    known: HashMap<Constant, Reg>,
    wide: HashMap<Reg, Reg>,
    /// Of AVX2's loops, the truth values, which no instruction defines, and those for lanes of other sizes.
    pub(super) truths: HashMap<Reg, Truth>,
    pub(super) resized: HashMap<(Reg, usize), Reg>,
    /// A form that AVX2 has nothing for: a mistake of this generator's.
    pub(super) missing: Option<Form>,
}

impl Body {
    pub(super) fn new(isa: Isa) -> Body {
        Body {
            isa,
            insts: Vec::new(),
            defs: Vec::new(),
            is_mask: Vec::new(),
            constants: Vec::new(),
            known: HashMap::new(),
            wide: HashMap::new(),
            truths: HashMap::new(),
            resized: HashMap::new(),
            missing: None,
        }
    }

    pub(super) fn define(&mut self, def: Def, is_mask: bool) -> Reg {
        self.defs.push(def);
        self.is_mask.push(is_mask);
        self.defs.len() as Reg - 1
    }

    /// The elements of a slot, or its one element in every lane.
    pub(super) fn load(&mut self, slot: SlotId, dtype: DType, uniform: bool) -> Reg {
        self.define(if uniform { Def::Splat(slot, dtype) } else { Def::Load(slot, dtype, 0) }, false)
    }

    /// A constant vector.
    pub(super) fn vector(&mut self, c: Constant) -> Reg {
        if let Some(known) = self.known.get(&c) {
            return *known;
        }
        self.constants.push(c);
        let r = self.define(Def::Const(self.constants.len() as u32 - 1), false);
        self.known.insert(c, r);
        r
    }

    /// A constant of `size` bytes in every lane.
    pub(super) fn lanes(&mut self, size: usize, bits: u64) -> Reg {
        let mut quad = bits & (u64::MAX >> (64 - 8 * size.min(8)));
        for shift in [8, 16, 32] {
            if 8 * size <= shift {
                quad |= quad << shift;
            }
        }
        self.vector([quad; 8])
    }

    pub(super) fn store(&mut self, slot: SlotId, dtype: DType, r: Reg, sum: Reg) {
        self.insts.push(Inst::Store(slot, dtype, r, sum, 0));
    }

    /// The lanes of a sum with `a` added; only in a loop that adds up.
    pub(super) fn added(&mut self, sum: u32, bytes: usize, a: Reg) -> Reg {
        self.made(Op { sum, ..Op::new(f::ADDED, bytes, [a, NONE, NONE]) }, bytes)
    }

    /// Writes what computes the same as an instruction over a vector of so many bytes.
    fn made(&mut self, op: Op, bytes: usize) -> Reg {
        match self.isa {
            Isa::Avx512 => self.put(op),
            Isa::Avx2 => self.translated(op, bytes),
        }
    }

    /// Writes an instruction.
    pub(super) fn put(&mut self, op: Op) -> Reg {
        let dst = self.define(Def::Made, op.form.dst == Shape::Mask);
        self.insts.push(Inst::Op(Op { dst, ..op }));
        dst
    }

    /// An instruction with one source over a vector of this many bytes (of the wider of its two sides).
    pub(super) fn un(&mut self, form: Form, bytes: usize, a: Reg) -> Reg {
        self.made(Op::new(form, bytes, [a, NONE, NONE]), bytes)
    }

    pub(super) fn un_imm(&mut self, form: Form, bytes: usize, a: Reg, imm: u8) -> Reg {
        self.made(Op { imm: Some(imm), ..Op::new(form, bytes, [a, NONE, NONE]) }, bytes)
    }

    /// A conversion that rounds towards zero; only for AVX-512.
    pub(super) fn truncated(&mut self, form: Form, a: Reg) -> Reg {
        // Rounding control exists for 512 bits only. Lanes beyond the vector are whatever they are.
        self.made(Op { truncate: true, ..Op::new(form, 64, [a, NONE, NONE]) }, 64)
    }

    pub(super) fn bin(&mut self, form: Form, bytes: usize, a: Reg, b: Reg) -> Reg {
        self.made(Op::new(form, bytes, [a, b, NONE]), bytes)
    }

    /// `a·b + c`, `a·b - c` or `c - a·b`, by the form that overwrites the addend; or another instruction of three sources.
    pub(super) fn fused(&mut self, form: Form, bytes: usize, a: Reg, b: Reg, c: Reg) -> Reg {
        self.made(Op::new(form, bytes, [a, b, c]), bytes)
    }

    /// An instruction whose first source gives its register to the result.
    pub(super) fn tern_imm(&mut self, form: Form, bytes: usize, src: [Reg; 3], imm: u8) -> Reg {
        self.made(Op { imm: Some(imm), ..Op::new(form, bytes, src) }, bytes)
    }

    pub(super) fn bin_imm(&mut self, form: Form, bytes: usize, a: Reg, b: Reg, imm: u8) -> Reg {
        self.made(Op { imm: Some(imm), ..Op::new(form, bytes, [a, b, NONE]) }, bytes)
    }

    /// A comparison, and whether it holds in the lanes of the mask; not in the others.
    pub(super) fn compare_where(&mut self, form: Form, bytes: usize, mask: Reg, [a, b]: [Reg; 2], imm: u8) -> Reg {
        self.made(Op { mask, imm: Some(imm), ..Op::new(form, bytes, [a, b, NONE]) }, bytes)
    }

    /// `mask ? a : b` in lanes of `size` bytes.
    pub(super) fn choose(&mut self, size: usize, bytes: usize, mask: Reg, a: Reg, b: Reg) -> Reg {
        let form = [f::BLENDB, f::BLENDW, f::BLENDD, f::BLENDQ][size.trailing_zeros() as usize % 4];
        self.made(Op { mask, ..Op::new(form, bytes, [b, a, NONE]) }, bytes)
    }

    /// `mask ? a : 0` in lanes of `size` bytes.
    pub(super) fn keep(&mut self, size: usize, bytes: usize, mask: Reg, a: Reg) -> Reg {
        let form = [f::MOVB, f::MOVW, f::MOVD, f::MOVQ][size.trailing_zeros() as usize % 4];
        self.made(Op { mask, zeroing: true, ..Op::new(form, bytes, [a, NONE, NONE]) }, bytes)
    }

    /// The first register, or where a lane of the mask is set, what the block kernel of the op computes of the second; in
    /// lanes of `size` bytes.
    pub(super) fn rescued(&mut self, size: usize, bytes: usize, mask: Reg, [near, x]: [Reg; 2], op: ops::Op) -> Reg {
        let index = FUNCTIONS.iter().position(|(of, dtype, _)| *of == op && dtype.size() == size);
        let imm = Some(index.unwrap_or_default() as u8);
        self.made(Op { mask, imm, ..Op::new(f::RESCUE, bytes, [near, x, x]) }, bytes)
    }

    /// Notes that the upper halves of the lanes of `wide` are the lanes of `narrow`.
    pub(super) fn remember_wide(&mut self, narrow: Reg, wide: Reg) {
        self.wide.insert(narrow, wide);
    }

    /// A register whose lanes have those of `narrow` as their upper halves.
    pub(super) fn wide(&self, narrow: Reg) -> Option<Reg> {
        self.wide.get(&narrow).copied()
    }

    /// `a` with more bits set in the lanes of the mask, which have `size` bytes.
    pub(super) fn or_where(&mut self, size: usize, bytes: usize, mask: Reg, a: Reg, bits: Reg) -> Reg {
        let more = self.keep(size, bytes, mask, bits);
        self.bin(f::OR, bytes, a, more)
    }

    /// Drops instructions whose results nothing uses.
    pub(super) fn prune(&mut self) {
        let mut used = vec![false; self.defs.len()];
        let mut keep = vec![true; self.insts.len()];
        for (i, inst) in self.insts.iter().enumerate().rev() {
            match inst {
                Inst::Op(op) if !used[op.dst as usize] => keep[i] = false,
                _ => inst.sources().for_each(|r| used[r as usize] = true),
            }
        }
        let mut at = 0;
        self.insts.retain(|_| {
            at += 1;
            keep[at - 1]
        });
    }
}

impl Body {
    /// The body over so many vectors in a row, instruction by instruction.
    pub(super) fn side_by_side(&self, vectors: u8) -> Body {
        let mut all = Body { constants: self.constants.clone(), ..Body::new(self.isa) };
        // The registers of each vector's copy.
        let mut copies: Vec<Vec<Reg>> = Vec::new();
        for more in 0..vectors {
            let copy = self.defs.iter().enumerate().map(|(r, def)| match *def {
                Def::Splat(..) | Def::Const(_) if more > 0 => copies[0][r],
                Def::Load(slot, dtype, ahead) => all.define(Def::Load(slot, dtype, ahead + more), false),
                def => all.define(def, self.is_mask[r]),
            });
            let copy = copy.collect();
            copies.push(copy);
        }
        for inst in &self.insts {
            for (more, copy) in (0..).zip(&copies) {
                let of = |r: Reg| if r == NONE { NONE } else { copy[r as usize] };
                all.insts.push(match *inst {
                    Inst::Op(op) => {
                        Inst::Op(Op { dst: of(op.dst), src: op.src.map(of), mask: of(op.mask), ahead: more, ..op })
                    }
                    Inst::Store(slot, dtype, r, sum, ahead) => Inst::Store(slot, dtype, of(r), of(sum), ahead + more),
                });
            }
        }
        all
    }
}

impl Inst {
    /// The registers that an instruction reads.
    pub(super) fn sources(&self) -> impl Iterator<Item = Reg> + use<> {
        let all = match self {
            Inst::Op(op) => [op.src[0], op.src[1], op.src[2], op.mask],
            Inst::Store(_, _, r, sum, _) => [*r, *sum, NONE, NONE],
        };
        all.into_iter().filter(|r| *r != NONE)
    }
}

/// A truth value: a vector of lanes of `size` bytes, as many as there are in `bytes`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truth {
    pub(super) lanes: Reg,
    pub(super) size: usize,
    pub(super) bytes: usize,
    /// Whether it holds where the lanes are zero.
    pub(super) not: bool,
}
