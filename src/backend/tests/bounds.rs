//! No memory outside of operands and results is accessed: every op, conversion and reduction runs on memory that ends at an
//! inaccessible page, then on memory that begins right after one, in every layout the driver knows; complex operands also from
//! addresses where only their parts are aligned, as those of borrowed ones may be. `CASTWISE_CPU` chooses the loops, as everywhere.

#![cfg(unix)]

use std::collections::HashMap;

use super::{each_conversion, each_op};
use crate::backend::{Code, available, compile, is_lowerable};
use crate::base::dtype::DType;
use crate::base::shape::contiguous_strides;
use crate::kernels::reduce::Part;
use crate::kernels::tests::pages::Guarded;
use crate::kernels::{CpuLevel, fold_kernel, kernel as block_kernel};
use crate::ops::Op;
use crate::plan::geometry::{BroadcastKind, Geometry, Reduction};
use crate::plan::kernel::{Kernel, KernelBuilder, Operand};
use crate::plan::schedule::{Class, Schedule, schedule};
use crate::runtime::driver::job::{Buffer, FoldKernels, Folded, Launch, Output, strategy};
use crate::runtime::driver::run;

/// Bytes next to the result that a run must not change.
const CANARY: [u8; 64] = [0xa5; 64];

/// Room for the largest buffer of a case.
const ROOM: usize = 256 << 10;

/// A domain, and the strides of the first operand and of the others.
struct Shape {
    extents: Vec<usize>,
    first: Vec<isize>,
    others: Vec<isize>,
    reduced: Option<Vec<usize>>,
}

/// Domains of about `n` elements a row.
fn shapes(n: usize) -> Vec<Shape> {
    let plain = |extents: &[usize], first: &[isize]| {
        let others = contiguous_strides(extents).into_vec();
        Shape { extents: extents.to_vec(), first: first.to_vec(), others, reduced: None }
    };
    let turned = |s: Shape| Shape { first: s.others, others: s.first, ..s };
    vec![
        plain(&[n], &[1]),
        plain(&[n], &[0]),
        turned(plain(&[n], &[0])),
        plain(&[n], &[-1]),
        plain(&[n], &[2]),
        plain(&[3, n], &[0, 1]),
        plain(&[3, n], &[1, 0]),
        plain(&[n, 3], &[1, 0]),
        plain(&[3, n], &[1, 3]),
        turned(plain(&[18, n / 8 + 1], &[1, 18])),
        plain(&[2, n, 2], &[-1, 4, 2]),
    ]
}

/// Domains that are reduced: whole rows, short rows, columns, everything.
fn reduced_shapes(n: usize) -> Vec<Shape> {
    let of = |extents: &[usize], reduced: &[usize], first: Option<&[isize]>| {
        let others = contiguous_strides(extents).into_vec();
        let first = first.map_or_else(|| others.clone(), <[isize]>::to_vec);
        Shape { extents: extents.to_vec(), first, others, reduced: Some(reduced.to_vec()) }
    };
    vec![
        of(&[n], &[0], None),
        of(&[n], &[0], Some(&[-2])),
        of(&[3, n], &[1], None),
        of(&[3, n], &[1], Some(&[1, 3])),
        of(&[n, 5], &[1], None),
        of(&[n, 5], &[1], Some(&[1, 0])),
        of(&[n, 17], &[0], None),
        of(&[n, 17], &[0], Some(&[1, 0])),
        of(&[2, n, 3], &[1], None),
    ]
}

/// Lengths around every width of a vector and around a tile; fewer of them without optimization.
fn lengths() -> impl Iterator<Item = usize> {
    let step = if cfg!(debug_assertions) { 9 } else { 1 };
    (1..=70).chain(511..=530).step_by(step)
}

/// The most that an operand's type could say of how it broadcasts.
fn spread(strides: &[isize]) -> BroadcastKind {
    match strides.last() {
        _ if strides.iter().all(|s| *s == 0) => BroadcastKind::All,
        Some(0) => BroadcastKind::Inner,
        _ => BroadcastKind::Varies,
    }
}

/// Random elements of a dtype that no op refuses: ordinary numbers, no zero divisor, no negative exponent, bools of 0
/// and 1.
fn elements(d: DType) -> Vec<u8> {
    let mut state = d as u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 33
    };
    let mut all = Vec::with_capacity(ROOM);
    while all.len() < ROOM {
        let x = next();
        let number = (x % 4001) as f64 / 200.0 - 10.0;
        match d.real() {
            DType::Bool => all.push((x & 1) as u8),
            DType::F32 => all.extend((number as f32).to_le_bytes()),
            DType::F64 => all.extend(number.to_le_bytes()),
            real => all.extend(x.to_le_bytes()[..real.size()].iter().map(|b| b & 0x7f | 1)),
        }
    }
    all
}

/// Schedules and code of a kernel, by the classes of its operands.
type Ready = HashMap<Vec<Class>, (Schedule, Option<Code>)>;

/// Where operands and results are, relative to an inaccessible page.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Position {
    /// Right before it.
    Before,
    /// Right after it.
    After,
    /// After it, with operands at an offset: one element, or one part of a complex element.
    Offset,
}

struct Buffers {
    operands: Vec<Guarded>,
    result: Guarded,
    data: HashMap<DType, Vec<u8>>,
    runs: usize,
}

impl Buffers {
    fn new() -> Buffers {
        let operands = (0..4).map(|_| Guarded::new(ROOM)).collect();
        Buffers { operands, result: Guarded::new(ROOM), data: DType::ALL.map(|d| (d, elements(d))).into(), runs: 0 }
    }

    /// Runs a kernel in one position; returns the bytes of its result.
    fn run(&mut self, k: &Kernel, ready: &mut Ready, shape: &Shape, position: Position, name: &str) -> Vec<u8> {
        let before = position == Position::Before;
        let of = |i: usize| if i == 0 { &shape.first } else { &shape.others };
        let strides: Vec<Vec<isize>> = (0..k.inputs.len()).map(|i| of(i).clone()).collect();
        let spread: Vec<BroadcastKind> = strides.iter().map(|s| spread(s)).collect();
        let reduced = shape.reduced.as_deref().map(|dims| Reduction { dims, adds: k.adds_up() });
        let geometry = Geometry::new(&shape.extents, &strides, &spread, reduced);
        let (schedule, code) = ready.entry(geometry.classes()).or_insert_with_key(|classes| {
            let s = schedule(k, classes, CpuLevel::get(), &|step| available() && is_lowerable(step)).unwrap();
            let code = (!s.segments.is_empty()).then(|| compile(k, &s).unwrap());
            (s, code)
        });
        let mut inputs = Vec::new();
        for ((memory, d), strides) in self.operands.iter_mut().zip(&k.inputs).zip(&strides) {
            // Computed here, because the geometry's own result is what this checks.
            let far = |sign: isize| {
                let steps = shape.extents.iter().zip(strides).filter(|(_, s)| **s * sign > 0);
                steps.map(|(n, s)| (n - 1) * s.unsigned_abs()).sum::<usize>()
            };
            let bytes = (far(1) + far(-1) + 1) * d.size();
            let shift = if position == Position::Offset { d.real().size() } else { 0 };
            let own = if before { memory.end(bytes).1 } else { &mut memory.start(bytes + shift).0[shift..] };
            own.copy_from_slice(&self.data[d][..bytes]);
            inputs.push(Buffer::new(own, *d, far(-1)));
        }
        let segments = code.as_ref().map_or(&[][..], Code::functions);
        let strategy = strategy(schedule, segments, &geometry);
        let (geometry, strategy) = (&geometry, &strategy);
        let launch =
            Launch { schedule, segments, geometry, strategy, consts: &[], inputs: &inputs, stop: None, stream: None };
        let total: usize = shape.extents.iter().product();
        let value = k.outputs.first().copied().or(k.folds.first().map(|f| f.1)).unwrap();
        let dtype = k.value(value).dtype;
        let bytes = if k.folds.is_empty() { total } else { strategy.partials } * dtype.size();
        let result = &mut self.result;
        let (own, canary) = if before {
            let (before, own) = result.end(bytes);
            (own, before.last_chunk_mut().unwrap())
        } else {
            let (own, behind) = result.start(bytes);
            (own, behind.first_chunk_mut().unwrap())
        };
        *canary = CANARY;
        let made = match k.folds.first() {
            None => run(&launch, &mut [Output::new(own, dtype)], &mut [], 1),
            Some((op, _)) => {
                let kernel = |part| fold_kernel(*op, dtype, part, CpuLevel::get());
                let kernels = FoldKernels::new(geometry, kernel).unwrap();
                run(&launch, &mut [], &mut [Folded { bytes: own, dtype, kernels }], 1)
            }
        };
        assert!(made.unwrap().is_ok(), "{name} refused its data");
        assert_eq!(*canary, CANARY, "{name} over {:?} wrote beside its result", shape.extents);
        self.runs += 1;
        own.to_vec()
    }

    /// Runs a kernel over all lengths and shapes, in all positions: the results must not depend on the memory around.
    fn check(&mut self, k: &Kernel, shapes: impl Fn(usize) -> Vec<Shape>, name: &str) {
        let mut ready = Ready::new();
        for shape in lengths().flat_map(shapes) {
            let before = self.run(k, &mut ready, &shape, Position::Before, name);
            let aside = k.inputs.iter().any(|d| d.is_complex()).then_some(Position::Offset);
            for position in [Position::After].into_iter().chain(aside) {
                let other = self.run(k, &mut ready, &shape, position, name);
                assert!(before == other, "{name} over {:?} depends on its memory: {position:?}", shape.extents);
            }
        }
    }
}

#[test]
fn every_op_stays_in_its_memory() {
    let (mut memory, mut kernels) = (Buffers::new(), 0);
    each_op(|kernel, name| {
        memory.check(kernel, shapes, name);
        kernels += 1;
    });
    assert!(kernels > 800 && memory.runs >= kernels * lengths().count() * 20, "{kernels}, {}", memory.runs);
}

#[test]
fn every_conversion_stays_in_its_memory() {
    let mut memory = Buffers::new();
    each_conversion(|kernel, name| memory.check(kernel, shapes, name));
    assert!(memory.runs >= 12 * 13 * lengths().count() * 20, "{} runs", memory.runs);
}

#[test]
fn every_reduction_stays_in_its_memory() {
    let mut memory = Buffers::new();
    let mut kernels = 0;
    for d in DType::ALL {
        for op in Op::ALL.iter().copied().filter(|op| op.is_reduction()) {
            let math = d.op_math();
            if fold_kernel(op, math, Part::Whole, CpuLevel::get()).is_none() {
                continue;
            }
            // Of an operand, and of a value that is computed.
            for computed in [false, true] {
                let mut b = KernelBuilder::default();
                let x = b.input(d);
                let mut value = b.cast(x, math);
                if computed && block_kernel(Op::Neg, math, CpuLevel::get()).is_some() {
                    value = b.apply(Op::Neg, math, &[Operand::Value(value)]);
                }
                b.kernel.folds.push((op, value));
                memory.check(&b.kernel, reduced_shapes, &format!("{op} of {d}"));
                kernels += 1;
            }
        }
    }
    assert!(kernels > 100, "{kernels} kernels, {} runs", memory.runs);
}
