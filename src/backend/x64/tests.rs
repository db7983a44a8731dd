//! Segments against the block kernels: bits, remainders, memory outside of the elements, register pressure; and what is emitted.

use std::collections::HashSet;

use iced_x86::{Code, Decoder, DecoderOptions};

use super::asm::tests::{decode, lengths, rows};
use super::asm::{Address, Asm, CacheLevel, Operands, RAX, RegMem};
use super::isa::Isa;
use super::prefetch::{self, Ahead};
use super::segment::{SegmentCode, SlotKinds, lanes};
use super::{is_lowerable, listing};
use crate::backend::listing::Listing;
use crate::base::dtype::DType::{self, *};
use crate::base::host::is_amd;
use crate::base::random::Random;
use crate::base::scalar::Bits;
use crate::kernels::{CpuLevel, cast, hard, kernel as block_kernel};
use crate::ops::{MAX_OPERANDS, Op};
use crate::plan::kernel::{self, Kernel, KernelBuilder, Source, Step, StepOp, Value, ValueId};
use crate::plan::schedule::{Class, schedule};

mod data;
mod overrides;
mod printed;
mod ready;
use data::Data;
use ready::{PAIRINGS, check};

/// A kernel under construction.
#[derive(Default)]
struct Make(Kernel);

impl Make {
    fn value(&mut self, dtype: DType, source: Source) -> ValueId {
        self.0.values.push(Value { dtype, source });
        self.0.values.len() as ValueId - 1
    }

    fn input(&mut self, d: DType) -> ValueId {
        self.0.inputs.push(d);
        self.value(d, Source::Input(self.0.inputs.len() as u32 - 1))
    }

    fn constant(&mut self, d: DType) -> ValueId {
        self.0.consts.push(d);
        self.value(d, Source::Const(self.0.consts.len() as u32 - 1))
    }

    fn step(&mut self, op: StepOp, dtype: DType, args: &[ValueId], to: DType) -> ValueId {
        let out = self.value(to, Source::Step(self.0.steps.len() as u32));
        let mut all = [None; MAX_OPERANDS];
        all.iter_mut().zip(args).for_each(|(to, a)| *to = Some(*a));
        self.0.steps.push(Step { op, dtype, args: all, out });
        out
    }

    fn apply(&mut self, op: Op, d: DType, args: &[ValueId]) -> ValueId {
        self.step(StepOp::Apply(op), d, args, op.result(d))
    }

    fn cast(&mut self, from: DType, to: DType, a: ValueId) -> ValueId {
        self.step(StepOp::Cast(cast::Prim::new(from, to)), from, &[a], to)
    }

    fn output(mut self, v: ValueId) -> Kernel {
        self.0.outputs.push(v);
        self.0
    }
}

/// Every op and dtype that is lowered.
fn ops() -> Vec<(Op, DType)> {
    let all = Op::ALL.iter().flat_map(|op| DType::ALL.map(|d| (*op, d)));
    let args = [None; MAX_OPERANDS];
    all.filter(|(op, d)| {
        let step = Step { op: StepOp::Apply(*op), dtype: *d, args, out: 0 };
        block_kernel(*op, *d, CpuLevel::get()).is_some() && is_lowerable(Isa::Avx512, &step) && !op.has_dims()
    })
    .collect()
}

/// Every primitive conversion.
fn casts() -> Vec<(DType, DType)> {
    let all = DType::ALL.iter().flat_map(|from| DType::ALL.map(|to| (*from, to)));
    all.filter(|(from, to)| cast::kernel(*from, *to, CpuLevel::get()).is_some()).collect()
}

fn op_kernel(op: Op, d: DType) -> Kernel {
    let mut m = Make::default();
    let args: Vec<ValueId> =
        (0..op.arity()).map(|i| m.input(if op == Op::Where && i == 0 { Bool } else { d })).collect();
    let out = m.apply(op, d, &args);
    m.output(out)
}

/// One kernel for each op, conversion and reinterpretation.
fn single_kernels() -> Vec<(String, Kernel)> {
    let mut all: Vec<(String, Kernel)> =
        ops().into_iter().map(|(op, d)| (format!("{op} of {d}"), op_kernel(op, d))).collect();
    for (from, to) in casts() {
        let mut m = Make::default();
        let x = m.input(from);
        let y = m.cast(from, to, x);
        all.push((format!("{from} to {to}"), m.output(y)));
    }
    for op in Op::ALL.iter().filter(|op| hard(**op).is_some()) {
        let mut m = Make::default();
        let (x, y) = (m.input(F32), m.input(F32));
        let z = m.step(StepOp::DoubleRounding(*op), F32, &[x, y], F32);
        all.push((format!("double rounding of {op}"), m.output(z)));
        // Together with the op in one loop, if that is lowered.
        let mut b = KernelBuilder::default();
        let x = b.input(F16);
        let y = b.apply(*op, F16, &[kernel::Operand::Value(x)]);
        b.kernel.outputs.push(y);
        let lowered = b.kernel.steps.iter().all(|s| is_lowerable(Isa::Avx512, s));
        all.extend(lowered.then_some((format!("{op} of f16"), b.kernel)));
    }
    for from in DType::ALL {
        for to in DType::ALL.into_iter().filter(|to| to.size() == from.size() && *to != from) {
            let mut m = Make::default();
            let x = m.input(from);
            let y = m.step(StepOp::Bits(to), from, &[x], to);
            all.push((format!("bits of {from} as {to}"), m.output(y)));
        }
    }
    all
}

fn data_of(k: &Kernel, n: usize, seed: u64) -> Vec<Data> {
    let mut random = Random(seed);
    k.inputs.iter().enumerate().map(|(i, d)| Data::new(*d, n, i, &mut random)).collect()
}

#[test]
fn every_op_and_conversion_has_the_bits_of_its_block_kernel() {
    let all = single_kernels();
    assert!(all.len() > 500, "{}", all.len());
    for (name, k) in &all {
        let data = data_of(k, 9001, 1);
        check(name, k, &[], &data, &vec![false; k.inputs.len()], [9001]);
    }
}

#[test]
fn any_number_of_elements_is_taken_and_nothing_beside_them_is_touched() {
    for (name, k) in &single_kernels() {
        let classes = vec![Class::Vector; k.inputs.len()];
        let planned = schedule(k, &classes, CpuLevel::get(), &|s| is_lowerable(Isa::Avx512, s)).unwrap();
        let v = lanes(Isa::Avx512, k, &planned.segments[0]);
        let data = data_of(k, 5 * v + 2, 2);
        let lengths = (1..=2 * v + 3).chain([3 * v, 3 * v + 1, 4 * v - 1, 4 * v, 4 * v + 1, 5 * v + 2]);
        check(name, k, &[], &data, &vec![false; k.inputs.len()], lengths);
        // With one operand uniform.
        if k.inputs.len() > 1 {
            for which in 0..k.inputs.len() {
                let splat: Vec<bool> = (0..k.inputs.len()).map(|i| i == which).collect();
                check(name, k, &[], &data, &splat, [v + 1]);
            }
        }
    }
}

#[test]
fn nans_are_canonical_wherever_their_bits_are_demanded() {
    for (op, d) in ops().into_iter().filter(|(op, d)| matches!(op.result(*d), F32 | F64 | C64 | C128)) {
        let made = op.result(d);
        for seen in [Op::Neg, Op::Abs, Op::Where, Op::Copysign, Op::Fmax, Op::RealPart] {
            if block_kernel(seen, made, CpuLevel::get()).is_none() {
                continue;
            }
            let mut m = Make::default();
            let args: Vec<ValueId> =
                (0..op.arity()).map(|i| m.input(if op == Op::Where && i == 0 { Bool } else { d })).collect();
            let (c, other) = (m.input(Bool), m.input(made));
            let first = m.apply(op, d, &args);
            let second = match seen {
                Op::Where => m.apply(seen, made, &[c, first, other]),
                Op::Copysign | Op::Fmax => m.apply(seen, made, &[other, first]),
                _ => m.apply(seen, made, &[first]),
            };
            let k = m.output(second);
            let data = data_of(&k, 700, 3);
            check(&format!("{op} then {seen} of {d}"), &k, &[], &data, &vec![false; k.inputs.len()], [700]);
        }
        for to in DType::ALL.into_iter().filter(|to| cast::kernel(made, *to, CpuLevel::get()).is_some()) {
            let mut m = Make::default();
            let args: Vec<ValueId> =
                (0..op.arity()).map(|i| m.input(if op == Op::Where && i == 0 { Bool } else { d })).collect();
            let first = m.apply(op, d, &args);
            let mut last = m.cast(made, to, first);
            // And back, so that the bits of the value between are not demanded.
            if cast::kernel(to, made, CpuLevel::get()).is_some() {
                last = m.cast(to, made, last);
            }
            let k = m.output(last);
            let data = data_of(&k, 700, 4);
            check(&format!("{op} of {d}, then to {to}"), &k, &[], &data, &vec![false; k.inputs.len()], [700]);
        }
    }
}

#[test]
fn every_half_converts_both_ways() {
    for half in [F16, BF16] {
        for chained in [false, true] {
            let mut m = Make::default();
            let x = m.input(half);
            let wide = m.cast(half, F32, x);
            let k = if chained {
                let sum = m.apply(Op::Add, F32, &[wide, wide]);
                let near = m.cast(F32, half, sum);
                let back = m.cast(half, F32, near);
                let narrow = m.cast(F32, half, back);
                m.output(narrow)
            } else {
                m.output(wide)
            };
            let mut data = data_of(&k, 1 << 16, 5);
            for (i, to) in data[0].last_mut(1 << 16).chunks_exact_mut(2).enumerate() {
                to.copy_from_slice(&(i as u16).to_le_bytes());
            }
            check(&format!("{half}"), &k, &[], &data, &[false], [1 << 16]);
        }
        // Around every value, and around the midpoint to the next.
        for from in [F32, F64] {
            let mut m = Make::default();
            let x = m.input(from);
            let near = m.cast(from, half, x);
            let k = m.output(near);
            let n = 10 << 16;
            let mut values = Vec::with_capacity(n);
            for i in 0..=u16::MAX {
                let wide =
                    if half == F16 { half::f16::from_bits(i).to_f32() } else { half::bf16::from_bits(i).to_f32() };
                let step = if half == F16 { 0x1000 } else { 0x8000 };
                for offset in [-1i32, 0, 1] {
                    for halfway in [0, step] {
                        let bits = wide.to_bits().wrapping_add(halfway).wrapping_add_signed(offset);
                        values.push(f64::from(f32::from_bits(bits)));
                    }
                }
                // Closer to the midpoint than an f32 can be.
                let tie = f64::from(f32::from_bits(wide.to_bits().wrapping_add(step)));
                values.extend([f64::from_bits(tie.to_bits() + 1), f64::from_bits(tie.to_bits() - 1), tie * 1.5, -tie]);
            }
            let mut data = Data { words: vec![0u128; n / 2], dtype: from };
            for (to, v) in data.last_mut(n).chunks_exact_mut(from.size()).zip(&values) {
                if from == F32 {
                    to.copy_from_slice(&(*v as f32).to_le_bytes());
                } else {
                    to.copy_from_slice(&v.to_le_bytes());
                }
            }
            check(&format!("{from} to {half}"), &k, &[], &[data], &[false], [n]);
        }
    }
}

/// A kernel with many live values: inputs, constants, masks, results.
fn crowded(random: &mut Random, d: DType, inputs: usize, consts: usize, steps: usize, outputs: usize) -> Kernel {
    let mut m = Make::default();
    let mut values: Vec<ValueId> = (0..inputs).map(|_| m.input(d)).collect();
    let mut masks = vec![m.input(Bool)];
    values.extend((0..consts).map(|_| m.constant(d)));
    for _ in 0..steps {
        let (a, b) = (random.pick(&values), random.pick(&values));
        match random.index(8) {
            0 => masks.push(m.apply(random.pick(&[Op::Lt, Op::Eq, Op::Ge]), d, &[a, b])),
            1 => {
                let (x, y) = (random.pick(&masks), random.pick(&masks));
                masks.push(m.apply(random.pick(&[Op::LogicalAnd, Op::LogicalXor]), Bool, &[x, y]));
            }
            2 => {
                let c = random.pick(&masks);
                values.push(m.apply(Op::Where, d, &[c, a, b]));
            }
            3 if d.is_float() => values.push(m.apply(Op::Maximum, d, &[a, b])),
            // Random data are often outside of a function's inlined range, so that slow paths run.
            4 if d.is_float() => values.push(m.apply(random.pick(&[Op::Neg, Op::Sin, Op::Cos]), d, &[a])),
            4 => values.push(m.apply(Op::Neg, d, &[a])),
            _ => values.push(m.apply(random.pick(&[Op::Add, Op::Sub, Op::Mul, Op::Minimum]), d, &[a, b])),
        }
    }
    // Every value is used once more, in order of definition, so that all are live in the middle.
    let mut sum = values[0];
    for v in values.clone() {
        sum = m.apply(Op::Add, d, &[sum, v]);
    }
    for c in masks {
        sum = m.apply(Op::Where, d, &[c, sum, values[1]]);
    }
    let mut made: Vec<ValueId> =
        m.0.steps.iter().rev().map(|s| s.out).filter(|v| m.0.values[*v as usize].dtype == d).take(outputs).collect();
    made.push(sum);
    made.sort_unstable();
    made.dedup();
    m.0.outputs = made;
    m.0
}

#[test]
fn crowded_registers_lose_nothing() {
    let mut random = Random(6);
    for (d, inputs, consts, steps, outputs) in
        [(F32, 30, 40, 60, 20), (F64, 3, 40, 120, 2), (I32, 30, 1, 90, 20), (F32, 2, 0, 150, 1), (I8, 12, 12, 90, 12)]
    {
        for _ in 0..4 {
            let k = crowded(&mut random, d, inputs, consts, steps, outputs);
            let consts: Vec<Bits> =
                k.consts.iter().map(|d| Bits::of(&random.next().to_le_bytes()[..d.size()])).collect();
            let data = data_of(&k, 100, random.next());
            let splat: Vec<bool> = (0..k.inputs.len()).map(|i| i % 5 == 4).collect();
            for n in [1, 15, 16, 17, 100] {
                check("crowded", &k, &consts, &data, &splat, [n]);
            }
        }
    }
}

/// The instructions around a body: frame, pointers, loop control, calls, prefetches.
#[rustfmt::skip]
const FRAME: &[Code] = &[
    Code::Push_r64, Code::Pop_r64, Code::Mov_r64_rm64, Code::Mov_rm64_r64, Code::Mov_r64_imm64, Code::Mov_rm64_imm32,
    Code::Lea_r64_m, Code::Xor_r32_rm32, Code::Shl_rm64_imm8, Code::Btr_rm64_imm8, Code::Setb_rm8,
    Code::Sub_rm64_imm32, Code::Sub_rm64_imm8, Code::Sub_r64_rm64, Code::Add_rm64_imm8, Code::Add_rm64_imm32,
    Code::Add_rm64_r64, Code::And_rm64_imm8, Code::And_rm64_imm32, Code::Sbb_rm64_r64, Code::Cmp_r64_rm64, Code::Cmp_rm64_imm8,
    Code::Test_rm64_r64, Code::Test_rm8_r8, Code::Test_rm8_imm8, Code::Prefetcht0_m8, Code::Prefetcht1_m8,
    Code::Jb_rel32_64, Code::Jbe_rel32_64, Code::Je_rel32_64, Code::Jne_rel32_64, Code::Jl_rel32_64, Code::Jg_rel32_64,
    Code::Jae_rel32_64, Code::Jmp_rel32_64, Code::Call_rel32_64, Code::Call_rm64, Code::Retnq,
    Code::VEX_Bzhi_r64_rm64_r64, Code::VEX_Vzeroupper,
];

/// The instructions of the table.
fn listed() -> HashSet<Code> {
    let mut all = HashSet::new();
    for (instruction, _) in rows() {
        for length in lengths(instruction) {
            for place in [RegMem::Register(0), Address::at(RAX, 0).into()] {
                let mut asm = Asm::default();
                asm.vector(instruction, length, &Operands { imm: Some(0), ..Operands::new(1, 0, place) });
                all.extend(decode(&asm.bytes).map(|i| i.code()));
            }
        }
    }
    all
}

#[test]
fn only_listed_instructions_are_emitted() {
    let mut allowed = listed();
    allowed.extend(FRAME);
    let mut random = Random(7);
    let crowd = (0..3).map(|_| ("crowded".to_string(), crowded(&mut random, F64, 30, 40, 90, 20)));
    for (name, k) in single_kernels().into_iter().chain(crowd) {
        let classes: Vec<Class> =
            (0..k.inputs.len()).map(|i| if i % 2 == 0 { Class::Vector } else { Class::Splat }).collect();
        for isa in [Isa::Avx2, Isa::Avx512] {
            let planned = schedule(&k, &classes, CpuLevel::get(), &|s| is_lowerable(isa, s)).unwrap();
            for s in &planned.segments {
                let slots = SlotKinds::of(&k, &planned);
                let made = SegmentCode::new(isa, &k, s, &slots, &PAIRINGS[1]).unwrap().function(false);
                for i in &mut Decoder::new(64, &made.bytes[..made.code], DecoderOptions::NONE) {
                    let old = isa == Isa::Avx512 || !format!("{:?}", i.code()).starts_with("EVEX");
                    assert!(allowed.contains(&i.code()) && old, "{isa:?}: {name} emits {:?}", i.code());
                }
            }
        }
    }
}

/// Listings without their purposes.
fn text(listings: Vec<Listing>) -> String {
    let lines = |l: Listing| {
        let lines: Vec<String> = l.lines.into_iter().map(|l| l.text).collect();
        format!("{} elements\n{}\n", l.elements, lines.join("\n"))
    };
    listings.into_iter().map(lines).collect()
}

#[test]
fn the_listing_shows_steps_and_instructions() {
    let k = op_kernel(Op::Add, F32);
    for (isa, elements) in [(Isa::Avx2, "8 elements"), (Isa::Avx512, "16 elements")] {
        let planned = schedule(&k, &[Class::Vector; 2], CpuLevel::get(), &|s| is_lowerable(isa, s)).unwrap();
        let text = text(listing::machine_code(isa, &k, &planned).unwrap());
        assert!(text.contains(elements) && text.contains("vaddps"), "{text}");
    }
}

/// The listing of a kernel with two operands.
fn listed_pair(isa: Isa, op: Op, d: DType, classes: [Class; 2]) -> String {
    let mut m = Make::default();
    let (x, y) = (m.input(d), m.input(d));
    let r = if d == BF16 || d == F16 {
        let (x, y) = (m.cast(d, F32, x), m.cast(d, F32, y));
        let r = m.apply(op, F32, &[x, y]);
        m.cast(F32, d, r)
    } else {
        m.apply(op, d, &[x, y])
    };
    let k = m.output(r);
    let planned = schedule(&k, &classes, CpuLevel::get(), &|s| is_lowerable(isa, s)).unwrap();
    text(listing::machine_code(isa, &k, &planned).unwrap())
}

#[test]
fn results_of_16_bits_are_stored_in_whole_vectors() {
    // The instructions that join two halves, narrow one vector, and combine even and odd elements.
    let all = [
        (Isa::Avx512, "zmm", "vshufi64x2", "vpmovdw", "vpternlogd"),
        (Isa::Avx2, "ymm", "vperm2i128", "vpackusdw", "vpblendw"),
    ];
    for (isa, whole, joins, narrows, combines) in all {
        for d in [F16, BF16] {
            let text = listed_pair(isa, Op::Add, d, [Class::Vector; 2]);
            // Non-temporal stores are of both halves; the halves of f16 are joined for these alone.
            assert!(text.contains("vmovntdq [") && text.contains(&format!("],{whole}")), "{isa:?} {d}: {text}");
            assert_eq!(text.matches(joins).count(), usize::from(d == F16), "{isa:?} {d}: {text}");
        }
        let text = listed_pair(isa, Op::Mul, BF16, [Class::Vector; 2]);
        // Only the loop over single vectors and the remainder narrow.
        assert_eq!(text.matches(narrows).count(), 2, "{isa:?}: {text}");
        assert_eq!(text.matches(combines).count(), 2, "{isa:?}: {text}");
    }
}

#[test]
fn operands_from_memory_are_prefetched() {
    for isa in [Isa::Avx2, Isa::Avx512] {
        // Results of one byte fill no cache line in any loop, and a short body gains nothing from prefetches alone.
        for (op, d, most) in [(Op::Add, F32, 2), (Op::Add, F16, 2), (Op::Mul, BF16, 2), (Op::Lt, F32, 0)] {
            // In one loop, and not of a uniform operand.
            for (class, count) in [(Class::Vector, most), (Class::Splat, most / 2)] {
                let text = listed_pair(isa, op, d, [Class::Vector, class]);
                assert_eq!(text.matches("prefetcht").count(), count, "{isa:?} {op} {d}: {text}");
                let second = if isa == Isa::Avx512 && is_amd() { count } else { 0 };
                assert_eq!(text.matches("prefetcht1").count(), second, "{isa:?} {op} {d}: {text}");
                assert_eq!(text.contains("sbb r15,r15"), count > 0, "{isa:?} {op} {d}: {text}");
            }
        }
    }
    let ahead = |isa, step, is_amd| [1, 4, 5, 32].map(|operands| prefetch::ahead(isa, operands, 4, step, is_amd));
    let of = |into, bytes: [usize; 4]| bytes.map(|bytes| Ahead { into, elements: bytes / 4 });
    let first = of(CacheLevel::First, [3072, 3072, 2432, 384]);
    assert_eq!(ahead(Isa::Avx512, 16, true), of(CacheLevel::Second, [2048, 2048, 1600, 256]), "2 KiB, 8 in all");
    assert_eq!(ahead(Isa::Avx512, 16, false), first, "3 KiB, 12 in all");
    assert_eq!(ahead(Isa::Avx512, 8, true), first, "half lines");
    assert_eq!(ahead(Isa::Avx2, 16, true), first);
}

/// A NaN with bits below those of a bf16 must not be rounded by addition: with all bits set it would become -0, with only the
/// lowest infinity. Sums of bf16 have no such NaNs, so their rounding omits the check.
#[test]
fn rounding_to_bf16_keeps_nans_of_either_kind() {
    for dtype in [F32, BF16] {
        let mut m = Make::default();
        let (x, y) = (m.input(BF16), m.input(dtype));
        let a = m.cast(BF16, F32, x);
        let b = if dtype == BF16 { m.cast(BF16, F32, y) } else { y };
        let mut last = a;
        for op in [Op::Add, Op::Mul, Op::Sub, Op::Div] {
            let sum = m.apply(op, F32, &[last, b]);
            let near = m.cast(F32, BF16, sum);
            last = m.cast(BF16, F32, near);
        }
        let root = m.apply(Op::Sqrt, F32, &[last]);
        let k = m.cast(F32, BF16, root);
        let k = m.output(k);
        let n = 1 << 12;
        let mut data = data_of(&k, n, 6);
        let nans = [0x7fff_ffffu32, 0xffff_ffff, 0x7f80_0001, 0xff80_0001, 0x7fff_8000, 0x7fbf_ffff];
        for (i, to) in data[1].last_mut(n).chunks_exact_mut(dtype.size()).enumerate().step_by(3) {
            // Of bf16, the upper half; 1 keeps it from being infinity.
            let bits = nans[i / 3 % nans.len()] | if dtype == BF16 { 1 << 16 } else { 0 };
            to.copy_from_slice(&bits.to_le_bytes()[4 - dtype.size()..]);
        }
        check(&format!("bf16 with {dtype}"), &k, &[], &data, &[false; 2], [n]);
    }
}
