//! Operations on 128-bit vectors that several ops need: constants, shuffles, selects, masks of another lane width.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{
    ConstantData, Endianness, InstBuilder, MemFlagsData as MemFlags, Opcode, Type, Value as Clif, types,
};

use super::emit::{Lanes, Repr, vector};
use super::parts::{Parts, int_vector};
use crate::backend::cranelift::emit::Emit;
use crate::base::dtype::DType;

impl Emit<'_, '_> {
    /// The same 128 bits as another vector type.
    pub(crate) fn bits(&mut self, v: Clif, ty: Type) -> Clif {
        if self.b.func.dfg.value_type(v) == ty {
            return v;
        }
        self.b.ins().bitcast(ty, MemFlags::new().with_endianness(Endianness::Little), v)
    }

    /// A vector with these bits in both halves.
    pub(crate) fn constant(&mut self, ty: Type, half: u64) -> Clif {
        let bytes = [half.to_le_bytes(), half.to_le_bytes()].concat();
        let handle = self.b.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
        self.b.ins().vconst(ty, handle)
    }

    /// A float constant in every lane.
    pub(crate) fn float(&mut self, ty: Type, value: f64) -> Clif {
        if ty == types::F32X4 {
            let bits = u64::from((value as f32).to_bits());
            self.constant(ty, bits << 32 | bits)
        } else {
            self.constant(ty, value.to_bits())
        }
    }

    /// A shuffle of the bytes of two vectors: 0..16 are the first's, 16..32 the second's.
    pub(crate) fn shuffle(&mut self, a: Clif, b: Clif, bytes: [u8; 16]) -> Clif {
        let (a, b) = (self.bits(a, types::I8X16), self.bits(b, types::I8X16));
        let mask = self.b.func.dfg.immediates.push(ConstantData::from(&bytes[..]));
        self.b.ins().shuffle(a, b, mask)
    }

    /// `cond ? a : b` by lanes; those of `cond` are all ones or all zeros.
    pub(crate) fn select_lanes(&mut self, cond: Clif, a: Clif, b: Clif) -> Clif {
        // A negated condition chooses the other operand, without an instruction for the negation.
        if let Some(positive) = self.negated(cond) {
            return self.select_lanes(positive, b, a);
        }
        let ty = self.b.func.dfg.value_type(a);
        let int = self.b.func.dfg.value_type(cond);
        let (x, y) = (self.bits(a, int), self.bits(b, int));
        let chosen = self.b.ins().bitselect(cond, x, y);
        self.bits(chosen, ty)
    }

    /// What a value is the complement of, if `bnot` made it.
    fn negated(&self, v: Clif) -> Option<Clif> {
        let dfg = &self.b.func.dfg;
        let made = dfg.value_def(v).inst()?;
        (dfg.insts[made].opcode() == Opcode::Bnot).then(|| dfg.inst_args(made)[0])
    }

    /// The value with canonical NaNs in the place of those from arithmetic.
    pub(crate) fn canonicalized(&mut self, v: &Lanes, dtype: DType) -> Lanes {
        if !v.raw_nan {
            return v.clone();
        }
        let ty = vector(dtype);
        let nan = self.float(ty, f64::NAN);
        let parts = v.parts.map(|p| {
            let is_nan = self.b.ins().fcmp(FloatCC::Unordered, p, p);
            self.select_lanes(is_nan, nan, p)
        });
        Lanes { repr: v.repr, parts, raw_nan: false }
    }

    /// A boolean as masks with lanes of `size` bytes.
    pub(crate) fn mask(&mut self, v: &Lanes, size: usize) -> Parts {
        let Repr::Mask(mut now) = v.repr else { return v.parts.clone() };
        // All bits of a splat mask are equal, so it is valid at every lane width.
        if let Parts::Splat(p) = v.parts {
            return Parts::Splat(self.bits(p, int_vector(size)));
        }
        let mut parts = v.parts.clone();
        while now < size {
            parts = parts.widened(|p| self.widen_mask(p, now));
            now *= 2;
        }
        while now > size {
            parts = parts.narrowed(|a, b| self.narrow(a, b, now));
            now /= 2;
        }
        parts
    }

    fn widen_mask(&mut self, p: Clif, size: usize) -> [Clif; 2] {
        if size == 8 {
            let low = self.shuffle(p, p, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]);
            let high = self.shuffle(p, p, [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15]);
            return [self.bits(low, types::I64X2), self.bits(high, types::I64X2)];
        }
        [self.b.ins().swiden_low(p), self.b.ins().swiden_high(p)]
    }

    /// The low halves of the lanes of two vectors, as one vector: masks stay masks, integers wrap.
    pub(crate) fn narrow(&mut self, a: Clif, b: Clif, size: usize) -> Clif {
        let half = size / 2;
        let mut bytes = [0u8; 16];
        for (i, to) in bytes.iter_mut().enumerate() {
            let (lane, byte) = (i / half, i % half);
            *to = (lane * size + byte) as u8;
        }
        let picked = self.shuffle(a, b, bytes);
        self.bits(picked, int_vector(half))
    }
}
