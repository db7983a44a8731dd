//! Tests of how a program is divided into tiles.

use castwise::shape::{Dim, Dims};
use castwise::{DType, Program, Rules};

use super::budget::Budget;
use super::decide::{Sources, divided};

/// A row has 128 KiB of an operand and as many of a result, so that three tiles of a row have 768 KiB. 16 rows have 512 KiB to keep.
#[test]
fn what_is_kept_and_the_tiles_fit_in_the_memory_together() {
    let program = Program::new(Rules::Torch);
    let x = program.data("x", DType::F32, Dims(vec![Dim::Fixed(16), Dim::Fixed(1 << 15)]));
    let result = x.over([1]).cumsum().gt(0.0).where_(&x, x.amax());
    let typed = program.infer().unwrap();
    let node = typed.position(&result).unwrap();
    let sources = Sources { find: &|_| Some(0), has_parts: &|_| true, parts_written: true };
    let in_memory = |bytes: u64| divided(&typed, vec![node], &sources, Budget { bytes, given: true });
    let kept = |kib: u64| in_memory(kib << 10).unwrap().split.kept.len();
    assert_eq!((kept(768 + 512), kept(768 + 511), kept(1024), kept(768)), (1, 0, 0, 0));
    let why = in_memory(767 << 10).err().unwrap();
    assert_eq!(why, "3 parts of it would need 768.00 KiB");
}

/// A row has 8 bytes of an operand and a result, so that 4 MiB are 2^19 rows.
#[test]
fn tiles_are_equal_where_that_is_possible() {
    let rows_of = |n: usize| {
        let program = Program::new(Rules::Torch);
        let result = program.data("x", DType::F32, Dims(vec![Dim::Fixed(n)])) + 1.0;
        let typed = program.infer().unwrap();
        let node = typed.position(&result).unwrap();
        let sources = Sources { find: &|_| Some(0), has_parts: &|_| true, parts_written: true };
        divided(&typed, vec![node], &sources, Budget { bytes: 1 << 30, given: true }).unwrap().rows
    };
    // Six tiles are needed, eight are equal; three are, and are equal; a prime number of rows.
    assert_eq!((rows_of(11 << 18), rows_of(3 << 19), rows_of(2_883_593)), (11 << 15, 1 << 19, 1 << 19));
}
