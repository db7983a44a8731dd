//! Compiles the segments of a schedule: each becomes one loop over vectors.
//!
//! There are two generators. On machines with AVX2 or AVX-512 it is `x64`. Elsewhere it is Cranelift, which makes 128-bit
//! vectors: `lower`, `cast`, `lanes` and what is here.
//!
//! Guarantees: only (op, dtype) pairs of [`inline`] are lowered, each to instructions that cannot trap on data; loads
//! and stores go only to the addresses of the table, `n` elements each, with `n` (for Cranelift's loops) a multiple of
//! the segment's width; results have the same bits as the block kernels, because both are made of IEEE operations in the
//! same order and a NaN that leaves arithmetic is made canonical. Does not: handle what is left of a run after whole vectors (the
//! driver pads), broadcast (a splat operand is one element), or lower transcendentals and integer division (those are
//! block kernels, and for Cranelift 16-bit floats too).

use cranelift_codegen::ir::{InstBuilder, MemFlagsData as MemFlags, Value as Clif, condcodes::IntCC, types};
use cranelift_frontend::FunctionBuilder;

use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::host::{FloatMode, NoFork, no_fork};
use crate::kernels::CpuLevel;
use crate::plan::kernel::{Kernel, Step, StepOp, ValueId};
use crate::plan::schedule::{Schedule, Segment};

pub(crate) mod abi;
mod code;
mod cranelift;
#[cfg(test)]
mod tests;
mod x64;

pub(crate) use code::{Code, available};
use cranelift::lanes::{Lanes, Parts};
use x64::isa::Isa;

/// Whether a step is lowered into a segment.
pub(crate) fn inline(step: &Step) -> bool {
    inline_at(CpuLevel::get(), step)
}

/// Whether there are instructions for the elements of a dtype. There are none for unsigned integers of more than a byte, nor for
/// floats of one.
fn has_lanes(d: DType) -> bool {
    if d.is_unsigned() { d.size() == 1 } else { d.is_integral() || d.real().size() > 1 }
}

/// As [`inline`], on a machine of another level.
pub(crate) fn inline_at(level: CpuLevel, step: &Step) -> bool {
    let dtypes = match step.op {
        StepOp::Cast(p) => [p.from, p.to],
        StepOp::Bits(to) => [step.dtype, to],
        StepOp::Apply(_) | StepOp::Nudge(_) => [step.dtype; 2],
    };
    match Isa::of(level) {
        _ if !dtypes.into_iter().all(has_lanes) => false,
        Some(isa) => x64::inline(isa, step),
        None => cranelift::lower::inline(step),
    }
}

/// Compiles all segments of a schedule into one block of code.
pub(crate) fn compile(kernel: &Kernel, schedule: &Schedule) -> Result<Code> {
    let _undisturbed = undisturbed();
    if let Some(isa) = Isa::of(CpuLevel::get()) {
        return x64::compile(isa, kernel, schedule);
    }
    code::compile(schedule.segments.len(), &|i, builder| emit(kernel, &schedule.segments[i], builder))
}

/// Code is made in the standard mode, and while no other thread forks: a child could not go on where the libraries behind
/// this make something once.
fn undisturbed() -> (FloatMode, NoFork) {
    (FloatMode::standard(), no_fork())
}

/// Whether a compiled loop of a schedule that walks rows does.
pub(crate) fn walks_rows() -> bool {
    Isa::of(CpuLevel::get()).is_some()
}

/// The text of all segments of a schedule: Cranelift's IR before optimization, or instructions.
pub(crate) fn clif(kernel: &Kernel, schedule: &Schedule) -> Result<String> {
    let _undisturbed = undisturbed();
    if let Some(isa) = Isa::of(CpuLevel::get()) {
        return x64::listing(isa, kernel, schedule);
    }
    code::clif(schedule.segments.len(), &|i, builder| emit(kernel, &schedule.segments[i], builder))
}

/// Elements that one iteration handles: as many as a vector holds of the narrowest dtype in the segment.
fn width(kernel: &Kernel, segment: &Segment) -> usize {
    let loads = segment.loads.iter().filter(|(.., uniform)| !uniform).map(|(v, ..)| *v);
    let memory = loads.chain(segment.stores.iter().map(|(v, _)| *v));
    let inner = segment.steps.iter().map(|s| kernel.steps[*s as usize].out);
    // A bool that never meets memory is a mask as wide as the lanes it came from.
    let sizes = memory
        .map(|v| kernel.value(v).dtype)
        .chain(inner.map(|v| kernel.value(v).dtype).filter(|d| *d != DType::Bool))
        .map(DType::size);
    16 / sizes.min().unwrap_or(4).min(8)
}

/// What is known while the body of a segment is written.
pub(crate) struct Emit<'a, 'b> {
    pub(crate) b: &'a mut FunctionBuilder<'b>,
    pub(crate) kernel: &'a Kernel,
    /// Elements of an iteration.
    pub(crate) width: usize,
    values: std::collections::HashMap<ValueId, Lanes>,
}

/// Writes the function `(table, n)` of a segment.
fn emit(kernel: &Kernel, segment: &Segment, b: &mut FunctionBuilder<'_>) {
    let width = width(kernel, segment);
    let (entry, head, body, exit) = (b.create_block(), b.create_block(), b.create_block(), b.create_block());
    b.append_block_params_for_function_params(entry);
    let index = b.append_block_param(head, types::I64);
    b.switch_to_block(entry);
    let (table, n) = (b.block_params(entry)[0], b.block_params(entry)[1]);
    let trusted = MemFlags::new().with_notrap();
    let pointer = |b: &mut FunctionBuilder<'_>, slot: u32| b.ins().load(types::I64, trusted, table, slot as i32 * 8);
    let mut e = Emit { b, kernel, width, values: Default::default() };
    let mut moving = Vec::new();
    for (v, slot, uniform) in &segment.loads {
        let address = pointer(e.b, *slot);
        let dtype = kernel.value(*v).dtype;
        if *uniform {
            let lanes = e.load_splat(address, dtype);
            e.values.insert(*v, lanes);
        } else {
            moving.push((*v, address, dtype));
        }
    }
    let stores: Vec<(ValueId, Clif)> = segment.stores.iter().map(|(v, slot)| (*v, pointer(e.b, *slot))).collect();
    let zero = e.b.ins().iconst(types::I64, 0);
    e.b.ins().jump(head, &[zero.into()]);
    e.b.switch_to_block(head);
    let more = e.b.ins().icmp(IntCC::UnsignedLessThan, index, n);
    e.b.ins().brif(more, body, &[], exit, &[]);
    e.b.switch_to_block(body);
    e.body(segment, &moving, &stores, index);
    let next = e.b.ins().iadd_imm_u(index, width as i64);
    e.b.ins().jump(head, &[next.into()]);
    e.b.switch_to_block(exit);
    e.b.ins().return_(&[]);
    e.b.seal_all_blocks();
}

impl Emit<'_, '_> {
    fn body(&mut self, segment: &Segment, moving: &[(ValueId, Clif, DType)], stores: &[(ValueId, Clif)], index: Clif) {
        for s in &segment.steps {
            let step = self.kernel.steps[*s as usize];
            // Operands are loaded at their first use, so that they hold registers no longer than needed.
            for a in step.args.iter().flatten() {
                if !self.values.contains_key(a)
                    && let Some((v, base, dtype)) = moving.iter().find(|(v, ..)| v == a)
                {
                    let lanes = self.load(*base, index, *dtype);
                    self.values.insert(*v, lanes);
                }
            }
            let args: Vec<Lanes> = step.args.iter().flatten().filter_map(|a| self.values.get(a).cloned()).collect();
            let result = self.step(&step, &args);
            if let Some((_, base)) = stores.iter().find(|(v, _)| *v == step.out) {
                self.store(*base, index, self.kernel.value(step.out).dtype, &result);
            }
            self.values.insert(step.out, result);
        }
    }

    /// The address of element `index`.
    fn address(&mut self, base: Clif, index: Clif, dtype: DType) -> Clif {
        let offset = match dtype.size().trailing_zeros() {
            0 => index,
            shift => self.b.ins().ishl_imm_u(index, i64::from(shift)),
        };
        self.b.ins().iadd(base, offset)
    }

    /// Vectors that an iteration's elements of a dtype fill.
    fn vectors(&self, dtype: DType) -> usize {
        self.width * dtype.size() / 16
    }

    fn load(&mut self, base: Clif, index: Clif, dtype: DType) -> Lanes {
        let address = self.address(base, index, dtype);
        let ty = cranelift::lanes::vector(dtype);
        let count = self.vectors(dtype);
        let load = |i| self.b.ins().load(ty, MemFlags::new().with_notrap(), address, i as i32 * 16);
        let parts = Parts::Each((0..count).map(load).collect());
        self.loaded(parts, dtype)
    }

    /// One element, repeated.
    fn load_splat(&mut self, address: Clif, dtype: DType) -> Lanes {
        let flags = MemFlags::new().with_notrap();
        let ty = cranelift::lanes::vector(dtype);
        let one = match dtype {
            DType::C128 => self.b.ins().load(ty, flags, address, 0),
            DType::C64 => {
                let pair = self.b.ins().load(types::I64, flags, address, 0);
                let both = self.b.ins().splat(types::I64X2, pair);
                self.bits(both, ty)
            }
            _ => {
                let scalar = self.b.ins().load(ty.lane_type(), flags, address, 0);
                self.b.ins().splat(ty, scalar)
            }
        };
        self.loaded(Parts::Splat(one), dtype)
    }

    fn loaded(&mut self, parts: Parts, dtype: DType) -> Lanes {
        if dtype != DType::Bool {
            return Lanes::data(parts);
        }
        let zero = self.constant(types::I8X16, 0);
        Lanes::mask(1, parts.map(|p| self.b.ins().icmp(IntCC::NotEqual, p, zero)))
    }

    fn store(&mut self, base: Clif, index: Clif, dtype: DType, value: &Lanes) {
        let settled = self.settled(value, dtype);
        let parts = if dtype == DType::Bool {
            let one = self.constant(types::I8X16, 0x0101_0101_0101_0101);
            self.mask(&settled, 1).map(|m| self.b.ins().band(m, one))
        } else {
            settled.parts
        };
        let address = self.address(base, index, dtype);
        for i in 0..self.vectors(dtype) {
            self.b.ins().store(MemFlags::new().with_notrap(), parts.at(i), address, i as i32 * 16);
        }
    }
}
