//! AVX2: the elements of a remainder between memory and a register, by subroutines behind the function.
//!
//! There are no masks for elements of one and two bytes, so the elements pass as pieces whose sizes are powers of two. That takes 12 to
//! 34 instructions, which a function has once for each size of elements and direction; in the body there are three. Elements and saved
//! registers are in the red zone, the 128 bytes below the stack pointer that System V leaves to a function. Guarantees: exactly
//! the elements are read and written; but for [`POINTER`] and the flags, no register changes. Does not: say which elements those are.

use super::asm::{Address, Condition, RSP, Sub};
use super::emit::{COUNT, INDEX, POINTER, RemainderMove, Writer};
use super::isa::Isa;
use crate::backend::listing::Purpose;

/// Offsets in the subroutine's red zone: the index, the elements of a vector, a vector register. The caller's stack pointer is
/// [`RETURN_ADDRESS`] higher.
const SAVED_INDEX: i64 = -8;
const ELEMENTS: i64 = -48;
const SAVED_VECTOR: i64 = -80;
const RETURN_ADDRESS: i64 = 8;

/// The vector register that the pieces pass through.
const THROUGH: u8 = 0;

impl Writer<'_> {
    /// Loads the `COUNT` elements of a remainder, and zeros for the lanes behind them, or stores them.
    pub(super) fn elements_moved(&mut self, of: RemainderMove, register: u8, at: Address) {
        let elements = Address::at(RSP, ELEMENTS - RETURN_ADDRESS);
        let (_, load) = of;
        if !load {
            self.bytes_moved(Isa::Avx2.bytes(), register, elements, false);
        }
        self.asm.lea(POINTER, at);
        let end = self.asm.call_ahead();
        match self.remainder_moves.iter_mut().find(|(made, _)| *made == of) {
            Some((_, ends)) => ends.push(end),
            None => self.remainder_moves.push((of, vec![end])),
        }
        if load {
            self.bytes_moved(Isa::Avx2.bytes(), register, elements, true);
        }
    }

    /// Writes the subroutines that are called.
    pub(super) fn remainder_subroutines(&mut self) {
        for (of, ends) in std::mem::take(&mut self.remainder_moves) {
            self.mark(Purpose::Frame("elements of the remainder"));
            ends.into_iter().for_each(|end| self.asm.land(end));
            self.remainder_subroutine(of);
        }
    }

    /// Moves `COUNT` elements between [`POINTER`] and the red zone, from the last pieces to the first.
    fn remainder_subroutine(&mut self, (size, load): RemainderMove) {
        let (whole, red_zone) = (Isa::Avx2.bytes(), |at: i64| Address::at(RSP, at));
        self.asm.store(red_zone(SAVED_INDEX), INDEX);
        self.bytes_moved(whole, THROUGH, red_zone(SAVED_VECTOR), false);
        if load {
            self.zero(THROUGH);
            self.bytes_moved(whole, THROUGH, red_zone(ELEMENTS), false);
        }
        self.asm.load(INDEX, COUNT);
        self.asm.shift_left(INDEX, size.trailing_zeros() as u8);
        for piece in [1, 2, 4, 8, 16].into_iter().filter(|p| *p >= size) {
            self.asm.test_bits(piece as u8);
            let none = self.asm.jump(Condition::Equal);
            self.asm.alu(Sub, INDEX, piece as i32);
            let (there, here) = (Address::at(POINTER, 0).indexed(INDEX, 1), red_zone(ELEMENTS).indexed(INDEX, 1));
            let (from, to) = if load { (there, here) } else { (here, there) };
            self.bytes_moved(piece, THROUGH, from, true);
            self.bytes_moved(piece, THROUGH, to, false);
            self.asm.land(none);
        }
        self.asm.load(INDEX, red_zone(SAVED_INDEX));
        self.bytes_moved(whole, THROUGH, red_zone(SAVED_VECTOR), true);
        self.asm.ret();
    }
}
