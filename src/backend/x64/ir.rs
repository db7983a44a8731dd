//! The body of a loop on virtual registers: straight-line code in SSA form.
//!
//! Guarantees: a value is a vector or a mask, and its definition comes before its uses; an instruction carries the
//! kernel's step that it was emitted for. An instruction that AVX2 lacks is expanded (`avx2`). Does not: know machine
//! registers; `alloc` assigns them.

use foldhash::{HashMap, HashMapExt};

use super::instructions::{self as ins, Instruction, Shape, length};
use super::isa::Isa;
use crate::base::dtype::DType;
use crate::kernels::vector_call::FUNCTIONS;
use crate::ops::Op;
use crate::plan::schedule::SlotId;

/// A virtual register.
pub(super) type Reg = u32;

/// No register.
pub(super) const NONE: Reg = u32::MAX;

/// Which of the vectors of an iteration over two vectors: both, in one register or one access.
pub(super) const BOTH: u8 = u8::MAX;

/// What defines a virtual register. All but [`Def::Inst`] can be rematerialized anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Def {
    /// An instruction.
    Inst,
    /// The elements of a slot: the first vector of the iteration, the second, or [`BOTH`].
    Load(SlotId, DType, u8),
    /// The one element of a slot, in every lane.
    Splat(SlotId, DType),
    /// A constant, by its index.
    Const(u32),
}

/// A constant: eight quadwords, in most all equal.
pub(super) type Constant = [u64; 8];

/// An instruction on virtual registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inst {
    pub(super) instruction: Instruction,
    /// The vector length: 0 for 128 bits, 1 for 256, 2 for 512.
    pub(super) length: u8,
    pub(super) dst: Reg,
    /// Up to three sources. If there are three, the result overwrites the register of one of them.
    pub(super) src: [Reg; 3],
    /// The lanes that are written. Other lanes become zero if `zeroing` is set; in a blend they are those of the first
    /// source.
    pub(super) mask: Reg,
    pub(super) zeroing: bool,
    pub(super) imm: Option<u8>,
    /// Whether to round towards zero instead of to nearest; only with 512 bits.
    pub(super) truncate: bool,
    /// For [`ins::ACCUMULATE`]: which partial sum, and which vector of the iteration its lanes belong to.
    pub(super) sum: u32,
    pub(super) vector: u8,
    /// The step of the kernel.
    pub(super) step: u32,
}

impl Inst {
    pub(super) fn new(instruction: Instruction, bytes: usize, src: [Reg; 3]) -> Inst {
        Inst {
            instruction,
            length: length(bytes),
            dst: NONE,
            src,
            mask: NONE,
            zeroing: false,
            imm: None,
            truncate: false,
            sum: 0,
            vector: 0,
            step: 0,
        }
    }
}

/// A store of all lanes to a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    pub(super) slot: SlotId,
    pub(super) dtype: DType,
    /// What is stored.
    pub(super) src: Reg,
    /// If the slot is a partial sum, the accumulated lanes: loops that accumulate store these instead.
    pub(super) sum: Reg,
    /// Which vector of the iteration, or [`BOTH`].
    pub(super) vector: u8,
    /// The step of the kernel.
    pub(super) step: u32,
}

/// A node of the body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    Inst(Inst),
    Store(Store),
}

impl Node {
    /// The registers that the node reads.
    pub(super) fn sources(&self) -> impl Iterator<Item = Reg> + use<> {
        let all = match self {
            Node::Inst(inst) => [inst.src[0], inst.src[1], inst.src[2], inst.mask],
            Node::Store(store) => [store.src, store.sum, NONE, NONE],
        };
        all.into_iter().filter(|r| *r != NONE)
    }

    /// The step of the kernel that the node was emitted for.
    pub(super) fn step(&self) -> u32 {
        match self {
            Node::Inst(inst) => inst.step,
            Node::Store(store) => store.step,
        }
    }
}

/// The body.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) isa: Isa,
    pub(super) nodes: Vec<Node>,
    pub(super) defs: Vec<Def>,
    /// Whether the register is a mask register.
    pub(super) is_mask: Vec<bool>,
    pub(super) constants: Vec<Constant>,
    /// The step that the next nodes belong to.
    pub(super) step: u32,
    constant_regs: HashMap<Constant, Reg>,
    /// For vectors of bf16 that were rounded here, the vectors of f32 whose upper halves they are.
    unrounded: HashMap<Reg, Reg>,
    /// In AVX2 loops: the vectors that stand for mask registers, and their copies with lanes of other sizes.
    pub(super) vector_masks: HashMap<Reg, VectorMask>,
    pub(super) resized_masks: HashMap<(Reg, usize), Reg>,
    /// An instruction for which there is no AVX2 expansion: an error of the lowering.
    pub(super) missing: Option<Instruction>,
    /// A primitive or an inst that was lowered though nothing lowers it: another one.
    pub(super) refused: Option<&'static str>,
}

impl Body {
    pub(super) fn new(isa: Isa) -> Body {
        Body {
            isa,
            nodes: Vec::new(),
            defs: Vec::new(),
            is_mask: Vec::new(),
            constants: Vec::new(),
            step: 0,
            constant_regs: HashMap::new(),
            unrounded: HashMap::new(),
            vector_masks: HashMap::new(),
            resized_masks: HashMap::new(),
            missing: None,
            refused: None,
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
    pub(super) fn constant(&mut self, c: Constant) -> Reg {
        if let Some(known) = self.constant_regs.get(&c) {
            return *known;
        }
        self.constants.push(c);
        let r = self.define(Def::Const(self.constants.len() as u32 - 1), false);
        self.constant_regs.insert(c, r);
        r
    }

    /// A constant of `size` bytes in every lane.
    pub(super) fn splat(&mut self, size: usize, bits: u64) -> Reg {
        let mut quad = bits & (u64::MAX >> (64 - 8 * size.min(8)));
        for shift in [8, 16, 32] {
            if 8 * size <= shift {
                quad |= quad << shift;
            }
        }
        self.constant([quad; 8])
    }

    pub(super) fn store(&mut self, slot: SlotId, dtype: DType, src: Reg, sum: Reg) {
        self.nodes.push(Node::Store(Store { slot, dtype, src, sum, vector: 0, step: self.step }));
    }

    /// The lanes of a partial sum plus `a`; used only in loops that accumulate.
    pub(super) fn accumulate(&mut self, sum: u32, bytes: usize, a: Reg) -> Reg {
        self.emit(Inst { sum, ..Inst::new(ins::ACCUMULATE, bytes, [a, NONE, NONE]) }, bytes)
    }

    /// Appends an AVX-512 instruction over a vector of this many bytes, or its expansion for AVX2.
    fn emit(&mut self, inst: Inst, bytes: usize) -> Reg {
        match self.isa {
            Isa::Avx512 => self.push(inst),
            Isa::Avx2 => self.emit_avx2(inst, bytes),
        }
    }

    /// Appends an instruction that the instruction set has.
    pub(super) fn push(&mut self, inst: Inst) -> Reg {
        let dst = self.define(Def::Inst, inst.instruction.dst == Shape::Mask);
        self.nodes.push(Node::Inst(Inst { dst, step: self.step, ..inst }));
        dst
    }

    /// An instruction with one source. `bytes` is the size of the wider of source and result.
    pub(super) fn un(&mut self, instruction: Instruction, bytes: usize, a: Reg) -> Reg {
        self.emit(Inst::new(instruction, bytes, [a, NONE, NONE]), bytes)
    }

    pub(super) fn un_imm(&mut self, instruction: Instruction, bytes: usize, a: Reg, imm: u8) -> Reg {
        self.emit(Inst { imm: Some(imm), ..Inst::new(instruction, bytes, [a, NONE, NONE]) }, bytes)
    }

    /// A conversion that rounds towards zero; AVX-512 only.
    pub(super) fn truncated(&mut self, instruction: Instruction, a: Reg) -> Reg {
        // Rounding control requires 512 bits; lanes beyond the elements are unspecified.
        self.emit(Inst { truncate: true, ..Inst::new(instruction, 64, [a, NONE, NONE]) }, 64)
    }

    pub(super) fn bin(&mut self, instruction: Instruction, bytes: usize, a: Reg, b: Reg) -> Reg {
        self.emit(Inst::new(instruction, bytes, [a, b, NONE]), bytes)
    }

    pub(super) fn bin_imm(&mut self, instruction: Instruction, bytes: usize, a: Reg, b: Reg, imm: u8) -> Reg {
        self.emit(Inst { imm: Some(imm), ..Inst::new(instruction, bytes, [a, b, NONE]) }, bytes)
    }

    /// `a·b + c`, `a·b - c` or `c - a·b`, given as the variant that overwrites the addend (`231`); or another
    /// instruction of three sources.
    pub(super) fn fused(&mut self, instruction: Instruction, bytes: usize, a: Reg, b: Reg, c: Reg) -> Reg {
        self.emit(Inst::new(instruction, bytes, [a, b, c]), bytes)
    }

    /// An instruction of three sources and an immediate, whose result overwrites the first source.
    pub(super) fn tern_imm(&mut self, instruction: Instruction, bytes: usize, src: [Reg; 3], imm: u8) -> Reg {
        self.emit(Inst { imm: Some(imm), ..Inst::new(instruction, bytes, src) }, bytes)
    }

    /// A comparison in the lanes of the mask; false in the others.
    pub(super) fn compare_masked(
        &mut self,
        instruction: Instruction,
        bytes: usize,
        mask: Reg,
        [a, b]: [Reg; 2],
        imm: u8,
    ) -> Reg {
        self.emit(Inst { mask, imm: Some(imm), ..Inst::new(instruction, bytes, [a, b, NONE]) }, bytes)
    }

    /// `mask ? a : b` in lanes of `size` bytes.
    pub(super) fn select(&mut self, size: usize, bytes: usize, mask: Reg, a: Reg, b: Reg) -> Reg {
        let blends = [ins::VPBLENDMB, ins::VPBLENDMW, ins::VPBLENDMD, ins::VPBLENDMQ];
        let instruction = blends[size.trailing_zeros() as usize % 4];
        self.emit(Inst { mask, ..Inst::new(instruction, bytes, [b, a, NONE]) }, bytes)
    }

    /// `mask ? a : 0` in lanes of `size` bytes.
    pub(super) fn select_or_zero(&mut self, size: usize, bytes: usize, mask: Reg, a: Reg) -> Reg {
        let moves = [ins::VMOVDQU8, ins::VMOVDQU16, ins::VMOVDQU32, ins::VMOVDQU64];
        let instruction = moves[size.trailing_zeros() as usize % 4];
        self.emit(Inst { mask, zeroing: true, ..Inst::new(instruction, bytes, [a, NONE, NONE]) }, bytes)
    }

    /// `fast`, unless a lane of the mask is set: then what the kernel of the op computes of `x`. Lanes have `size`
    /// bytes.
    pub(super) fn slow_path(&mut self, size: usize, bytes: usize, mask: Reg, [fast, x]: [Reg; 2], op: Op) -> Reg {
        let index = FUNCTIONS.iter().position(|(of, dtype, _)| *of == op && dtype.size() == size);
        let imm = Some(index.unwrap_or_default() as u8);
        self.emit(Inst { mask, imm, ..Inst::new(ins::SLOW_PATH, bytes, [fast, x, x]) }, bytes)
    }

    /// Records that the lanes of `bf16` are the upper halves of the lanes of `f32`.
    pub(super) fn record_unrounded(&mut self, bf16: Reg, f32: Reg) {
        self.unrounded.insert(bf16, f32);
    }

    /// A register of f32 lanes whose upper halves are the lanes of `bf16`, if there is one.
    pub(super) fn unrounded(&self, bf16: Reg) -> Option<Reg> {
        self.unrounded.get(&bf16).copied()
    }

    /// `a | bits` in the lanes of the mask, else `a`; lanes of `size` bytes.
    pub(super) fn or_masked(&mut self, size: usize, bytes: usize, mask: Reg, a: Reg, bits: Reg) -> Reg {
        let more = self.select_or_zero(size, bytes, mask, bits);
        self.bin(ins::VPORD, bytes, a, more)
    }

    /// Removes instructions whose results are not used.
    pub(super) fn remove_dead(&mut self) {
        let mut used = vec![false; self.defs.len()];
        let mut live = vec![true; self.nodes.len()];
        for (i, node) in self.nodes.iter().enumerate().rev() {
            match node {
                Node::Inst(inst) if !used[inst.dst as usize] => live[i] = false,
                _ => node.sources().for_each(|r| used[r as usize] = true),
            }
        }
        let mut at = 0;
        self.nodes.retain(|_| {
            at += 1;
            live[at - 1]
        });
    }

    /// The body over several consecutive vectors, interleaved instruction by instruction.
    pub(super) fn interleaved(&self, vectors: u8) -> Body {
        let times = usize::from(vectors);
        let mut all = Body {
            constants: self.constants.clone(),
            nodes: Vec::with_capacity(times * self.nodes.len()),
            defs: Vec::with_capacity(times * self.defs.len()),
            is_mask: Vec::with_capacity(times * self.defs.len()),
            ..Body::new(self.isa)
        };
        // For each vector, its copies of the registers.
        let mut copies: Vec<Vec<Reg>> = Vec::new();
        for more in 0..vectors {
            let copy = self.defs.iter().enumerate().map(|(r, def)| match *def {
                Def::Splat(..) | Def::Const(_) if more > 0 => copies[0][r],
                Def::Load(slot, dtype, vector) => all.define(Def::Load(slot, dtype, vector + more), false),
                def => all.define(def, self.is_mask[r]),
            });
            let copy = copy.collect();
            copies.push(copy);
        }
        for node in &self.nodes {
            for (more, copy) in (0..).zip(&copies) {
                let of = |r: Reg| if r == NONE { NONE } else { copy[r as usize] };
                all.nodes.push(match *node {
                    Node::Inst(i) => {
                        Node::Inst(Inst { dst: of(i.dst), src: i.src.map(of), mask: of(i.mask), vector: more, ..i })
                    }
                    Node::Store(s) => {
                        Node::Store(Store { src: of(s.src), sum: of(s.sum), vector: s.vector + more, ..s })
                    }
                });
            }
        }
        all
    }
}

/// A mask as AVX2 has it: a vector of lanes of `size` bytes, `bytes` in all, each all ones or all zeros.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorMask {
    pub(super) lanes: Reg,
    pub(super) size: usize,
    pub(super) bytes: usize,
    /// Whether the mask is set where the lanes are zero.
    pub(super) inverted: bool,
}
