//! Alignment, length and contents of new buffers.

use super::*;

#[test]
fn buffers_are_aligned_zeroed_and_as_long_as_asked() {
    for bytes in [0, 1, 63, 64, 65, 4096, LARGE - 1, LARGE, LARGE + 1] {
        let mut s = Storage::zeroed(bytes).unwrap();
        assert_eq!((s.bytes().len(), s.bytes().as_ptr().addr() % 64), (bytes, 0));
        assert!(s.bytes().iter().all(|b| *b == 0));
        s.bytes_mut().fill(7);
    }
    assert!(matches!(Storage::zeroed(usize::MAX), Err(Error::OutOfMemory { .. })));
    assert!(matches!(Storage::zeroed(isize::MAX as usize), Err(Error::OutOfMemory { .. })));
}
