//! bool values in compiled loops: every form of the three operands of a bool `where`, and of its users.
//!
//! In a loop, a bool is a mask with lanes as wide as the compared operands, or bytes from memory, or one broadcast
//! element. Guarantees: all combinations of three of these forms, with data of each width, have eager mode's bits at
//! every CPU level. Does not: check eager mode (`tests/reference` does).

use castwise::prelude::*;

use crate::common::{self, Random, levels, random_tensor};

/// Numbers of elements: whole vectors of each width and a remainder; and no remainder, so that a write beyond the end
/// would be outside the memory.
const SIZES: [usize; 2] = [67, 128];

/// The source of a bool: a comparison of a dtype with 0, a bool tensor, or a bool tensor with one element and this many
/// dims.
#[derive(Clone, Copy, Debug)]
enum Truth {
    Compared(DType),
    Given,
    One(usize),
}

const TRUTHS: [Truth; 7] = [
    Truth::Compared(DType::I8),
    Truth::Compared(DType::I16),
    Truth::Compared(DType::F32),
    Truth::Compared(DType::I64),
    Truth::Given,
    Truth::One(1),
    Truth::One(0),
];

impl Truth {
    fn tensor(self, n: usize, r: &mut Random) -> Tensor {
        match self {
            Truth::Compared(d) => random_tensor(d, &[n], r, false),
            Truth::Given => random_tensor(DType::Bool, &[n], r, false),
            Truth::One(rank) => random_tensor(DType::Bool, &[1][..rank], r, false),
        }
    }

    fn of<M: Mode>(self, v: &Var<M>) -> Var<M> {
        match self {
            Truth::Compared(_) => v.gt(0),
            Truth::Given | Truth::One(_) => v.clone(),
        }
    }
}

/// A `where` of bools whose result selects numbers, is multiplied with numbers, and is compared with its operands.
fn result<M: Mode>(truths: [Truth; 3], feeds: &[Var<M>]) -> Var<M> {
    let [c, a, b] = [0, 1, 2].map(|i| truths[i].of(&feeds[i]));
    let (x, chosen) = (&feeds[3], c.where_(&a, &b));
    chosen.where_(x, -x) + chosen.ne(&a).logical_or(&c) * x
}

fn check(truths: [Truth; 3], d: DType, n: usize, r: &mut Random) {
    let mut tensors: Vec<Tensor> = truths.iter().map(|t| t.tensor(n, r)).collect();
    tensors.push(random_tensor(d, &[n], r, false));
    let eager = Eager::new(Rules::Torch);
    let vars: Vec<Var<Eager>> = tensors.iter().map(|t| eager.tensor(t)).collect();
    let expected = result(truths, &vars).result().unwrap();
    let p = Program::new(Rules::Torch);
    let data = |(i, t): (usize, &Tensor)| p.data(&format!("x{i}"), t.dtype(), t.shape());
    let vars: Vec<Var> = tensors.iter().enumerate().map(data).collect();
    let feeds: Vec<(String, Tensor)> = tensors.into_iter().enumerate().map(|(i, t)| (format!("x{i}"), t)).collect();
    let fetched = common::EXECUTOR.with(|e| e.run(&p, feeds, [&result(truths, &vars)])).unwrap();
    common::assert_same_bits(&fetched[0], &expected, &|| format!("{truths:?}, {d}\n{p}"));
}

#[test]
fn truth_values_of_every_form_meet_in_loops() {
    levels::at_every_level("masks::truth_values_of_every_form_meet_in_loops", || {
        let (mut r, mut round) = (Random(7), 0);
        for c in TRUTHS {
            for a in TRUTHS {
                for b in TRUTHS {
                    round += 1;
                    for (i, d) in [DType::U8, DType::I16, DType::F32, DType::F64].into_iter().enumerate() {
                        check([c, a, b], d, SIZES[(round + i) % 2], &mut r);
                    }
                }
            }
        }
    });
}
