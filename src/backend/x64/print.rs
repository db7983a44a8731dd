//! Bodies as text, before and after register allocation: Intel's mnemonics and order of operands.
//!
//! A virtual register is `v3`, or `k3` for a mask; a mnemonic has its vector length behind it. Slots are `slot0`, addressed by the
//! element `i`. Loads, stores and spills name whole registers, whatever they transfer. Guarantees: the text depends on the body alone. Does not: show the loops around bodies; the disassembly does.

use std::fmt;

use super::alloc::{Allocated, Machine};
use super::instructions::{self as ins, Encoding, Instruction, Shape, mnemonic};
use super::ir::{BOTH, Body, Constant, Def, Inst, NONE, Node, Reg, Store};
use super::isa::Isa;
use crate::backend::listing::{Line, Purpose};
use crate::kernels::vector_call::FUNCTIONS;
use crate::plan::schedule::SlotId;

/// Bits of the vector lengths.
const BITS: [u32; 3] = [128, 256, 512];

/// The elements of a slot that an iteration's vector has.
fn elements(slot: SlotId, vector: u8) -> String {
    match vector {
        0 => format!("[slot{slot} + i]"),
        BOTH => format!("[slot{slot} + i, both vectors]"),
        n => format!("[slot{slot} + i, vector {n}]"),
    }
}

/// The name of an instruction; of the slow path, with its function.
fn name(inst: &Inst) -> String {
    if inst.instruction == ins::SLOW_PATH {
        let (op, dtype, _) = FUNCTIONS[usize::from(inst.imm.unwrap_or_default()) % FUNCTIONS.len()];
        return format!("slow_path.{op}.{dtype}");
    }
    mnemonic(inst.instruction).to_lowercase()
}

/// What follows the registers: the immediate, and rounding towards zero.
fn suffix(inst: &Inst) -> String {
    let imm = inst.imm.filter(|_| inst.instruction != ins::SLOW_PATH);
    let imm = imm.map_or(String::new(), |imm| format!(", {imm:#04x}"));
    if inst.truncate { imm + ", {rz-sae}" } else { imm }
}

fn constant(c: &Constant) -> String {
    if c.iter().all(|q| *q == c[0]) {
        return format!("{:#018x} in every quadword", c[0]);
    }
    c.map(|q| format!("{q:#018x}")).join(", ")
}

impl Body {
    fn register(&self, r: Reg) -> String {
        format!("{}{r}", if self.is_mask[r as usize] { "k" } else { "v" })
    }

    /// The operands and constants that nodes read.
    pub(super) fn definitions(&self) -> impl Iterator<Item = String> {
        let mut used = vec![false; self.defs.len()];
        self.nodes.iter().flat_map(Node::sources).for_each(|r| used[r as usize] = true);
        let all = self.defs.iter().zip(used).enumerate();
        all.filter_map(|(r, (def, used))| {
            let text = match *def {
                _ if !used => return None,
                Def::Inst => return None,
                Def::Load(slot, dtype, vector) => format!("load {dtype} {}", elements(slot, vector)),
                Def::Splat(slot, dtype) => format!("splat {dtype} [slot{slot}]"),
                Def::Const(i) => format!("const {}", constant(&self.constants[i as usize])),
            };
            Some(format!("{} = {text}", self.register(r as Reg)))
        })
    }

    pub(super) fn node_text(&self, node: &Node) -> String {
        match node {
            Node::Store(Store { slot, dtype, src, sum, vector, .. }) => {
                let at = elements(*slot, *vector);
                let sum = if *sum == NONE { "" } else { &format!(", or the sum {}", self.register(*sum)) };
                format!("store {dtype} {at}, {}{sum}", self.register(*src))
            }
            Node::Inst(inst) => {
                let mut sources: Vec<String> =
                    inst.src.iter().filter(|r| **r != NONE).map(|r| self.register(*r)).collect();
                let mut dst = self.register(inst.dst);
                if inst.mask != NONE && inst.instruction == ins::SLOW_PATH {
                    // The last source is there for the allocator.
                    sources.truncate(2);
                    sources.push(format!("if any {}", self.register(inst.mask)));
                } else if inst.mask != NONE && inst.instruction.code.vex {
                    sources.push(self.register(inst.mask));
                } else if inst.mask != NONE {
                    let zeroing = if inst.zeroing { "{z}" } else { "" };
                    dst += &format!("{{{}}}{zeroing}", self.register(inst.mask));
                }
                let bits = BITS[usize::from(inst.instruction.fixed_length.unwrap_or(inst.length)) % 3];
                format!("{dst} = {}.{bits} {}{}", name(inst), sources.join(", "), suffix(inst))
            }
        }
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes.iter().map(|n| self.node_text(n));
        self.definitions().chain(nodes).try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// A register as wide as an operand of this shape.
fn register(shape: Shape, length: u8, r: u8) -> String {
    match shape {
        Shape::Mask => format!("k{r}"),
        shape => format!("{}{r}", ["xmm", "ymm", "zmm"][usize::from(length.saturating_sub(shape.halvings())) % 3]),
    }
}

/// The operands of an instruction on machine registers.
fn operands(inst: &Inst, dst: u8, src: [u8; 2], mask: u8, memory: Option<u32>) -> String {
    let Instruction { code, dst: to, src: from, fixed_length, .. } = inst.instruction;
    let length = fixed_length.unwrap_or(inst.length);
    let mut all = vec![register(to, length, dst)];
    if inst.mask != NONE && !code.vex && inst.instruction != ins::SLOW_PATH {
        all[0] += &format!("{{k{mask}}}{}", if inst.zeroing { "{z}" } else { "" });
    }
    all.push(register(from, length, src[0]));
    if inst.src[1] != NONE && inst.instruction != ins::SLOW_PATH {
        all.push(register(from, length, src[1]));
    }
    if let Some(index) = memory {
        let last = all.len() - 1;
        all[last] = format!("[const{index}]");
    }
    if code.encoding == Encoding::RvmMask {
        all.push(register(from, length, mask));
    }
    all.join(", ")
}

impl Allocated {
    fn machine_text(&self, m: &Machine) -> String {
        let vector = |r: u8| format!("{}{r}", if self.isa == Isa::Avx512 { "zmm" } else { "ymm" });
        let either = |mask: bool, r: u8| if mask { format!("k{r}") } else { vector(r) };
        match *m {
            Machine::Inst { inst, dst, src, mask, .. } if inst.instruction == ins::SLOW_PATH => {
                let mask = either(self.isa == Isa::Avx512, mask);
                format!("{} {}, if any {mask}", name(&inst), operands(&inst, dst, src, 0, None))
            }
            Machine::Inst { inst, dst, src, mask, constant } => {
                format!("{} {}{}", name(&inst), operands(&inst, dst, src, mask, constant), suffix(&inst))
            }
            Machine::Copy { dst, src } => format!("copy {}, {}", vector(dst), vector(src)),
            Machine::Load { slot, dtype, dst, vector: v } => {
                format!("load {dtype} {}, {}", vector(dst), elements(slot, v))
            }
            Machine::Splat { slot, dtype, dst } => format!("splat {dtype} {}, [slot{slot}]", vector(dst)),
            Machine::Const { index, dst } => format!("const {}, [const{index}]", vector(dst)),
            Machine::Store { store, src, sum } => {
                let sum = sum.map_or(String::new(), |sum| format!(", or the sum {}", vector(sum)));
                format!("store {} {}, {}{sum}", store.dtype, elements(store.slot, store.vector), vector(src))
            }
            Machine::Spill { mask, src, at } => format!("spill [stack{at}], {}", either(mask, src)),
            Machine::Fill { mask, dst, at } => format!("fill {}, [stack{at}]", either(mask, dst)),
        }
    }

    /// The loads before the loop, which get the purpose `hoisted`, and the instructions of the body.
    pub(super) fn lines(&self, hoisted: &'static str) -> Vec<Line> {
        let before = self.hoisted.iter().map(|m| Line::new(Purpose::Frame(hoisted), self.machine_text(m)));
        let body = self.body.iter().zip(self.steps());
        before.chain(body.map(|(m, step)| Line::new(Purpose::Step(step), self.machine_text(m)))).collect()
    }
}

impl fmt::Display for Allocated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hoisted.iter().try_for_each(|m| writeln!(f, "before the loop: {}", self.machine_text(m)))?;
        self.body.iter().try_for_each(|m| writeln!(f, "{}", self.machine_text(m)))
    }
}
