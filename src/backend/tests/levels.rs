//! Cranelift's code has the instructions of a level, which are those of its kernels, and no others.

use iced_x86::{Decoder, DecoderOptions};

use super::{each_conversion, each_op};
use crate::backend::code;
use crate::backend::cranelift::emit::emit;
use crate::backend::cranelift::lower;
use crate::kernels::CpuLevel;
use crate::plan::kernel::Kernel;
use crate::plan::schedule::{Class, schedule};

/// How many instructions of all ops and conversions have a VEX and an EVEX prefix, and how many there are.
fn prefixes(level: CpuLevel) -> [usize; 3] {
    let mut counts = [0; 3];
    let mut count = |k: &Kernel, name: &str| {
        let classes = vec![Class::Vector; k.inputs.len()];
        let s = schedule(k, &classes, CpuLevel::get(), &|step| lower::is_lowerable(step)).unwrap();
        let made = code::machine_code(level, s.segments.len(), &|i, b| emit(k, &s.segments[i], b, false)).unwrap();
        for located in made {
            // Constants follow the code, whose last instruction returns or jumps.
            let code = located.locations.iter().map(|(_, end, _)| *end).max().unwrap_or(located.bytes.len());
            for i in &mut Decoder::new(64, &located.bytes[..code], DecoderOptions::NONE) {
                let code = format!("{:?}", i.code());
                assert!(!i.is_invalid(), "{name}: {:02x?}", located.bytes);
                counts[0] += usize::from(code.starts_with("VEX_"));
                counts[1] += usize::from(code.starts_with("EVEX_"));
                counts[2] += 1;
            }
        }
    };
    each_op(&mut count);
    each_conversion(&mut count);
    counts
}

#[test]
fn code_for_the_baseline_has_no_instruction_of_later_machines() {
    let [vex, evex, all] = prefixes(CpuLevel::Baseline);
    assert_eq!((vex, evex), (0, 0));
    assert!(all > 10_000, "{all} instructions");
    let [vex, evex, _] = prefixes(CpuLevel::Avx2);
    assert!(vex > 1_000 && evex == 0, "{vex} and {evex}");
}
