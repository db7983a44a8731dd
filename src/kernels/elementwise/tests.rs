//! The table has kernels for what rule sets accept.

use super::*;
use crate::base::scalar::Scalar;
use crate::ops::{Attrs, Promotion};
use crate::promotion::operand::OperandType;
use crate::promotion::{Rules, Settings, signature};

#[test]
fn every_accepted_dtype_has_a_kernel() {
    // Those of order have kernels of every dtype: `order_kernel` and `sort_kernel` can't fail.
    let sorts = |op: Op| matches!(op, Op::Sort | Op::Argsort | Op::Topk | Op::TopkIndices);
    let of_order = |op: Op| sorts(op) || op.is_search() && !matches!(op, Op::Argmax | Op::Argmin);
    let own = |op: &&Op| op.def().promotion != Promotion::Given && !op.is_composed() && !of_order(**op);
    for op in Op::ALL.iter().filter(own) {
        let (def, level) = (op.def(), CpuLevel::Baseline);
        for (rules, d) in Rules::ALL.iter().flat_map(|r| DType::ALL.map(|d| (*r, d))) {
            let mut operands = vec![OperandType::dim(d); def.operands.len() - def.parameters()];
            if *op == Op::Where {
                operands[0] = OperandType::dim(DType::Bool);
            }
            operands.resize(def.operands.len(), OperandType::Scalar(Scalar::Int(1)));
            let Ok(s) = signature(&Settings::new(rules), *op, &operands, &Attrs::default()) else { continue };
            let index = |d| super::super::index::index_kernels(s.op, d, level).map(|found| found.line);
            let scan = |d| scan_kernels(s.op, d, level).map(|found| found.lines);
            let found =
                |d| kernel(s.op, d, level).or(fold_kernel(s.op, d, Part::Whole, level)).or(index(d)).or(scan(d));
            // A step on bits is not widened to op math.
            let wide = if s.op.is_bitwise(s.compute) { s.compute } else { s.compute.op_math() };
            let found = found(s.compute).or(found(wide));
            assert!(found.is_some(), "{op} of {d} under {rules} has no kernel for {}", s.compute);
        }
    }
}
