//! The loop of a segment: its blocks, loads and stores, and the state while its body is emitted.
//!
//! Does not: lower steps (`lower`, `cast`).

use super::parts::{Parts, int_vector};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::ops::MAX_OPERANDS;
use crate::plan::kernel::{Kernel, ValueId};
use crate::plan::schedule::Segment;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData as MemFlags, SourceLoc, Type, Value as Clif, types};
use cranelift_frontend::FunctionBuilder;

/// Elements of an iteration: as many as a vector holds of the narrowest dtype in the segment.
pub(super) fn width(kernel: &Kernel, segment: &Segment) -> usize {
    let loads = segment.loads.iter().filter(|(.., uniform)| !uniform).map(|(v, ..)| *v);
    let memory = loads.chain(segment.stores.iter().map(|(v, _)| *v));
    let inner = segment.steps.iter().map(|s| kernel.steps[*s as usize].out);
    // A bool that is never in memory is a mask as wide as the lanes it came from.
    let sizes = memory
        .map(|v| kernel.value(v).dtype)
        .chain(inner.map(|v| kernel.value(v).dtype).filter(|d| *d != DType::Bool))
        .map(DType::size);
    16 / sizes.min().unwrap_or(4).min(8)
}

/// The state while a segment's body is emitted.
pub(crate) struct Emit<'a, 'b> {
    pub(crate) b: &'a mut FunctionBuilder<'b>,
    pub(crate) kernel: &'a Kernel,
    /// Elements of an iteration.
    pub(crate) width: usize,
    pub(super) values: foldhash::HashMap<ValueId, Lanes>,
    /// Whether instructions get source locations.
    located: bool,
    /// A primitive or an op that was to be lowered though nothing lowers it.
    pub(super) refused: Option<&'static str>,
}

/// The source location of the code around the steps; that of step `s` is `s + 1`.
pub(super) const FRAME: u32 = 0;

/// Emits the function `(table, n)` of a segment. `located` gives each instruction a source location, for dumps: it
/// changes no code, but takes time.
pub(crate) fn emit(kernel: &Kernel, segment: &Segment, b: &mut FunctionBuilder<'_>, located: bool) -> Result<()> {
    let width = width(kernel, segment);
    if located {
        b.set_srcloc(SourceLoc::new(FRAME));
    }
    let (entry, head, body, exit) = (b.create_block(), b.create_block(), b.create_block(), b.create_block());
    b.append_block_params_for_function_params(entry);
    let index = b.append_block_param(head, types::I64);
    b.switch_to_block(entry);
    let (table, n) = (b.block_params(entry)[0], b.block_params(entry)[1]);
    let trusted = MemFlags::new().with_notrap();
    let pointer = |b: &mut FunctionBuilder<'_>, slot: u32| b.ins().load(types::I64, trusted, table, slot as i32 * 8);
    let mut e = Emit { b, kernel, width, values: Default::default(), located, refused: None };
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
    e.refused.map_or(Ok(()), |what| Err(Error::Internal(format!("code generation: nothing lowers `{what}`"))))
}

impl Emit<'_, '_> {
    pub(super) fn body(
        &mut self,
        segment: &Segment,
        moving: &[(ValueId, Clif, DType)],
        stores: &[(ValueId, Clif)],
        index: Clif,
    ) {
        for s in &segment.steps {
            let step = self.kernel.steps[*s as usize];
            if self.located {
                self.b.set_srcloc(SourceLoc::new(*s + 1));
            }
            // Operands are loaded at their first use, to keep register pressure low.
            for a in step.args.iter().flatten() {
                if !self.values.contains_key(a)
                    && let Some((v, base, dtype)) = moving.iter().find(|(v, ..)| v == a)
                {
                    let lanes = self.load(*base, index, *dtype);
                    self.values.insert(*v, lanes);
                }
            }
            let args: Args = step.args.iter().flatten().filter_map(|a| self.values.get(a).cloned()).collect();
            let result = self.step(&step, &args);
            if let Some((_, base)) = stores.iter().find(|(v, _)| *v == step.out) {
                self.store(*base, index, self.kernel.value(step.out).dtype, &result);
            }
            self.values.insert(step.out, result);
        }
        if self.located {
            self.b.set_srcloc(SourceLoc::new(FRAME));
        }
    }

    /// The address of element `index`.
    pub(super) fn address(&mut self, base: Clif, index: Clif, dtype: DType) -> Clif {
        let offset = match dtype.size().trailing_zeros() {
            0 => index,
            shift => self.b.ins().ishl_imm_u(index, i64::from(shift)),
        };
        self.b.ins().iadd(base, offset)
    }

    /// The number of vectors for an iteration's elements of a dtype.
    pub(super) fn vectors(&self, dtype: DType) -> usize {
        self.width * dtype.size() / 16
    }

    pub(super) fn load(&mut self, base: Clif, index: Clif, dtype: DType) -> Lanes {
        let address = self.address(base, index, dtype);
        let ty = vector(dtype);
        let count = self.vectors(dtype);
        let parts = Parts::Each((0..count).map(|i| self.load_vector(ty, address, i as i32 * 16)).collect());
        self.loaded(parts, dtype)
    }

    /// As bytes: without AVX, Cranelift makes a load of floats the operand of `cmpps`, which traps if it is not aligned.
    fn load_vector(&mut self, ty: Type, address: Clif, offset: i32) -> Clif {
        let bytes = self.b.ins().load(types::I8X16, MemFlags::new().with_notrap(), address, offset);
        if ty == types::I8X16 { bytes } else { self.bits(bytes, ty) }
    }

    /// One element in every lane.
    fn load_splat(&mut self, address: Clif, dtype: DType) -> Lanes {
        let flags = MemFlags::new().with_notrap();
        let ty = vector(dtype);
        let one = match dtype {
            DType::C128 => self.load_vector(ty, address, 0),
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

    pub(super) fn loaded(&mut self, parts: Parts, dtype: DType) -> Lanes {
        if dtype != DType::Bool {
            return Lanes::data(parts);
        }
        let zero = self.constant(types::I8X16, 0);
        Lanes::mask(1, parts.map(|p| self.b.ins().icmp(IntCC::NotEqual, p, zero)))
    }

    pub(super) fn store(&mut self, base: Clif, index: Clif, dtype: DType, value: &Lanes) {
        let settled = self.canonicalized(value, dtype);
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

/// How a value's vectors represent its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repr {
    /// Elements as in memory.
    Data,
    /// Booleans: lanes of this many bytes (16: a pair of 8-byte lanes), all ones or all zeros.
    Mask(usize),
}

/// The operands of a step or of an instruction.
pub(super) type Args = smallvec::SmallVec<[Lanes; MAX_OPERANDS]>;

/// One value in one iteration.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    pub(crate) repr: Repr,
    pub(crate) parts: Parts,
    /// Whether its NaNs come from arithmetic and may have any payload.
    pub(crate) raw_nan: bool,
}

impl Lanes {
    pub(crate) fn data(parts: Parts) -> Lanes {
        Lanes { repr: Repr::Data, parts, raw_nan: false }
    }

    pub(crate) fn arithmetic(parts: Parts) -> Lanes {
        Lanes { repr: Repr::Data, parts, raw_nan: true }
    }

    pub(crate) fn mask(size: usize, parts: Parts) -> Lanes {
        Lanes { repr: Repr::Mask(size), parts, raw_nan: false }
    }
}

/// The vector type that holds a dtype: complex as interleaved parts, half types as their bits.
pub(crate) fn vector(d: DType) -> Type {
    match d.real() {
        DType::F32 => types::F32X4,
        DType::F64 => types::F64X2,
        _ => int_vector(d.size()),
    }
}
