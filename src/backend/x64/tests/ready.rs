//! Kernels, compiled in each way or run step by step, over the same elements.

use super::data::Data;
use crate::backend::code::Code;
use crate::backend::x64::isa::Isa;
use crate::backend::x64::segment::Pairing;
use crate::backend::x64::{compile_paired, is_lowerable};
use crate::base::dtype::DType;
use crate::base::scalar::Bits;
use crate::kernels::CpuLevel;
use crate::plan::geometry::{BroadcastKind, Geometry};
use crate::plan::kernel::{Kernel, Step};
use crate::plan::schedule::{Schedule, schedule};
use crate::runtime::driver::job::{Buffer, Launch, Output, strategy};
use crate::runtime::driver::run;

/// The instruction sets that this machine has.
pub(super) fn isas() -> impl Iterator<Item = Isa> {
    [CpuLevel::Avx2, CpuLevel::Avx512].into_iter().filter(|l| *l <= CpuLevel::get()).filter_map(Isa::of)
}

/// Without loops over pairs of vectors, with them for bodies of any size, and with those for paired stores alone.
pub(super) const PAIRINGS: [Pairing; 3] = {
    let never = usize::MAX;
    [
        Pairing { least: never, least_with_stores: never, most: never },
        Pairing { least: 0, least_with_stores: 0, most: never },
        Pairing { least: never, least_with_stores: 0, most: never },
    ]
};

/// How a kernel is compiled, if it is: for which instruction set, and which bodies are paired.
type How<'a> = Option<(Isa, &'a Pairing)>;

/// Bytes before `n` results of so many bytes each. Results begin at a cache line, so that they can be streamed, unless `n` is a
/// multiple of three.
pub(super) fn before(n: usize, size: usize) -> usize {
    64 + if n.is_multiple_of(3) { size } else { 0 }
}

/// How `n` elements of operands are read, some of which are uniform.
fn geometry(splat: &[bool], n: usize) -> Geometry {
    let strides: Vec<Vec<isize>> = splat.iter().map(|s| vec![isize::from(!*s)]).collect();
    let spread = |s: &bool| if *s { BroadcastKind::All } else { BroadcastKind::Varies };
    Geometry::new(&[n], &strides, &splat.iter().map(spread).collect::<Vec<_>>(), None)
}

/// A kernel that is compiled or runs step by step, for any number of elements.
pub(super) struct Ready<'a> {
    kernel: &'a Kernel,
    splat: &'a [bool],
    schedule: Schedule,
    code: Option<Code>,
}

impl<'a> Ready<'a> {
    pub(super) fn new(kernel: &'a Kernel, splat: &'a [bool], how: How<'_>) -> Ready<'a> {
        let lowerable = |step: &Step| how.is_some_and(|(isa, _)| is_lowerable(isa, step));
        let schedule = schedule(kernel, &geometry(splat, 1).classes(), CpuLevel::get(), &lowerable).unwrap();
        let code = how.filter(|_| !schedule.segments.is_empty());
        let code = code.map(|(isa, pairing)| compile_paired(isa, kernel, &schedule, pairing).unwrap());
        Ready { kernel, splat, schedule, code }
    }

    /// The results for `n` elements, with the memory around them.
    pub(super) fn run(&self, consts: &[Bits], data: &[Data], n: usize) -> Vec<Vec<u8>> {
        let geometry = geometry(self.splat, n);
        let inputs: Vec<Buffer<'_>> = data.iter().map(|d| Buffer::new(d.last(n), d.dtype, 0)).collect();
        let dtypes: Vec<DType> = self.kernel.outputs.iter().map(|v| self.kernel.value(*v).dtype).collect();
        let mut memory: Vec<Vec<u128>> = dtypes.iter().map(|d| vec![u128::MAX / 3; n * d.size() / 16 + 14]).collect();
        let around = |bytes: &[u8]| bytes.as_ptr().align_offset(64);
        let mut outputs: Vec<Output<'_>> = memory
            .iter_mut()
            .zip(&dtypes)
            .map(|(m, d)| {
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(m);
                let first = around(bytes) + before(n, d.size());
                Output::new(&mut bytes[first..][..n * d.size()], *d)
            })
            .collect();
        let segments = self.code.as_ref().map_or(&[][..], |c| c.functions());
        let launch = Launch {
            schedule: &self.schedule,
            segments,
            geometry: &geometry,
            strategy: &strategy(&self.schedule, segments, &geometry),
            consts,
            inputs: &inputs,
            stop: None,
            stream: None,
        };
        assert!(run(&launch, &mut outputs, &mut [], 1).unwrap().is_ok());
        let with_surroundings = |m: Vec<u128>| {
            let bytes: &[u8] = bytemuck::cast_slice(&m);
            bytes[around(bytes)..][..(m.len() - 4) * 16].to_vec()
        };
        memory.into_iter().map(with_surroundings).collect()
    }
}

/// Checks a kernel, which is compiled once in each way, for numbers of elements.
pub(super) fn check(
    name: &str,
    k: &Kernel,
    consts: &[Bits],
    data: &[Data],
    splat: &[bool],
    lengths: impl IntoIterator<Item = usize>,
) {
    let theirs = Ready::new(k, splat, None);
    let all = isas().flat_map(|isa| PAIRINGS.iter().map(move |pairing| (isa, pairing)));
    let ours: Vec<_> =
        all.map(|how| (format!("{:?}, {:?}: {name}", how.0, how.1), Ready::new(k, splat, Some(how)))).collect();
    for n in lengths {
        let wanted = theirs.run(consts, data, n);
        for (name, ready) in &ours {
            same(name, k, data, splat, n, &ready.run(consts, data, n), &wanted);
        }
    }
}

/// Checks that results are the same.
fn same(name: &str, k: &Kernel, data: &[Data], splat: &[bool], n: usize, ours: &[Vec<u8>], theirs: &[Vec<u8>]) {
    for (o, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        if ours != theirs {
            let size = k.value(k.outputs[o]).dtype.size();
            let at = ours.iter().zip(theirs).position(|(a, b)| a != b).unwrap_or(0);
            let i = (at as isize - before(n, size) as isize).div_euclid(size as isize);
            let from = at / size * size;
            let operands: Vec<&[u8]> = data
                .iter()
                .zip(splat)
                .filter(|_| i >= 0 && (i as usize) < n)
                .map(|(d, s)| &d.last(n)[if *s { 0 } else { i as usize } * d.dtype.size()..][..d.dtype.size()])
                .collect();
            panic!(
                "{name}, {n} elements: result {o} differs at {i} of {operands:02x?}: {:02x?} and not {:02x?}\n{k}",
                &ours[from..from + size],
                &theirs[from..from + size]
            );
        }
    }
}
