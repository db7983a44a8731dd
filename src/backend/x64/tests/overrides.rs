//! Composites that an instruction set has instructions for, as machine code, against their expansions on Rust's numbers.

use super::Make;
use super::data::Data;
use super::ready::{PAIRINGS, Ready, before, isas};
use crate::backend::x64::isa::Isa;
use crate::backend::x64::texts::{GIVEN, lowers};
use crate::base::dtype::DType;
use crate::ops::Op;
use crate::plan::kernel::{StepOp, ValueId};
use crate::ssa::tests::Composite;

/// What machine code gives for a composite.
fn run(isa: Isa, composite: &Composite, pairing: usize) -> Vec<u128> {
    let text = &composite.alone;
    let (n, result) = (composite.operands[0].len(), text.dtype(text.result));
    // The op says how many operands there are, and no more.
    let op = [Op::Positive, Op::Add, Op::Where][text.operands.len() - 1];
    let mut m = Make::default();
    let args: Vec<ValueId> = text.operands.iter().map(|d| m.input(*d)).collect();
    let out = m.step(StepOp::Apply(op), text.insts[0].dtype, &args, result);
    let k = m.output(out);
    let data: Vec<Data> = text.operands.iter().zip(&composite.operands).map(|(d, bits)| of_bits(*d, bits)).collect();
    GIVEN.set(Some(Box::leak(Box::new(text.clone()))));
    let made = Ready::new(&k, &vec![false; args.len()], Some((isa, &PAIRINGS[pairing]))).run(&[], &data, n);
    GIVEN.set(None);
    let elements = made[0][before(n, result.size())..].chunks_exact(result.size()).take(n);
    let bits = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, b| all << 8 | u128::from(*b));
    elements.map(bits).collect()
}

fn of_bits(dtype: DType, bits: &[u128]) -> Data {
    let mut data = Data { words: vec![0; bits.len() * dtype.size() / 16 + 1], dtype };
    for (to, bits) in data.last_mut(bits.len()).chunks_exact_mut(dtype.size()).zip(bits) {
        to.copy_from_slice(&bits.to_le_bytes()[..dtype.size()]);
    }
    data
}

#[test]
fn overrides_have_the_bits_of_their_expansions() {
    let mut seen = [0; 2];
    for composite in Composite::all() {
        let inst = &composite.alone.insts[0];
        for isa in isas().filter(|isa| lowers(*isa, inst)) {
            for pairing in 0..PAIRINGS.len() {
                let mine = run(isa, &composite, pairing);
                composite.check(&format!("{isa:?}: {:?} of {}", inst.prim, inst.dtype), &mine);
            }
            seen[isa as usize] += 1;
        }
    }
    for isa in isas() {
        assert!(seen[isa as usize] > 60, "{isa:?}: only {}", seen[isa as usize]);
    }
}
