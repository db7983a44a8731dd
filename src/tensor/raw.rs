//! Memory whose lifetime nothing checks: bytes to read, and elements to write.
//!
//! Guarantees: a reference to such bytes exists only while they are read or written, so that views of the same memory may be
//! made as often as the caller likes; none is made to find out whether two of them are the same memory. Does not: know whether
//! an address is good, which `address` has promised by its callers.

#![allow(unsafe_code, reason = "memory that the caller vouches for; each block has its proof")]

use std::marker::PhantomData;
use std::ops::Range;
use std::slice;

use smallvec::SmallVec;

use super::Tensor;
use super::layout::Layout;
use crate::base::dtype::{DType, Element};

/// Bytes that may be read for `'a`. Not a reference: a run may write to the same bytes when it has read them.
#[derive(Clone, Copy)]
pub(super) struct RawBytes<'a> {
    start: *const u8,
    len: usize,
    borrowed: PhantomData<&'a [u8]>,
}

// SAFETY: a pointer to bytes that may be read for `'a`, which no thread changes while another one reads them.
unsafe impl Send for RawBytes<'_> {}
// SAFETY: as above.
unsafe impl Sync for RawBytes<'_> {}

impl<'a> RawBytes<'a> {
    /// So many bytes at an address.
    ///
    /// # Safety
    ///
    /// They are in one allocation, initialized, and may be read for `'a`; nothing writes to them while [`bytes`](RawBytes::bytes)
    /// is used.
    pub(super) unsafe fn new(start: *const u8, len: usize) -> RawBytes<'a> {
        RawBytes { start, len, borrowed: PhantomData }
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        // SAFETY: the caller of `new` has promised that these bytes are initialized and can be read for `'a`. A run that writes
        // there too does so by `RawBytesMut::scatter`, when what this returned is not used any more, or by a `Place` over this
        // feed, whose `bytes_mut` forbids to call this.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }

    /// The addresses of the bytes.
    pub(super) fn addresses(self) -> Range<*const u8> {
        self.start..self.start.wrapping_add(self.len)
    }
}

/// Memory of which the elements of some layout may be written for `'a`.
pub(super) struct RawBytesMut<'a> {
    /// Where the first element in row-major order is.
    first: *mut u8,
    borrowed: PhantomData<&'a mut [u8]>,
}

// SAFETY: a pointer that is used with no other one to the same elements, by whichever thread owns it.
unsafe impl Send for RawBytesMut<'_> {}
// SAFETY: a shared one gives no access to the memory.
unsafe impl Sync for RawBytesMut<'_> {}

impl<'a> RawBytesMut<'a> {
    /// The memory of which the first element is at an address.
    ///
    /// # Safety
    ///
    /// The elements of each layout that it is used with may be written for `'a`, and are in one allocation. If they have no gaps
    /// they are initialized, and nothing else reads or writes them while a [`Place`] of them is used but the feeds that it was
    /// made with; nothing does during [`scatter`](RawBytesMut::scatter).
    pub(super) unsafe fn new(first: *mut u8) -> RawBytesMut<'a> {
        RawBytesMut { first, borrowed: PhantomData }
    }

    /// A slice's elements, of which that of an index is the first. The layout must not leave the slice.
    pub(super) fn borrowed<T: Element>(data: &'a mut [T], first: usize) -> RawBytesMut<'a> {
        RawBytesMut { first: data.as_mut_ptr().wrapping_add(first).cast(), borrowed: PhantomData }
    }

    /// The same for shorter.
    pub(super) fn reborrow(&mut self) -> RawBytesMut<'_> {
        RawBytesMut { first: self.first, borrowed: PhantomData }
    }

    /// The bytes of a layout without gaps, for a run to write: `None` if it has gaps or is not aligned for its dtype, or if one of
    /// the feeds, whose addresses are given, is partly in the same memory.
    pub(super) fn place(
        self,
        dtype: DType,
        layout: &Layout,
        feeds: impl Iterator<Item = Range<*const u8>>,
    ) -> Option<Place<'a>> {
        let (start, len) = (self.first.addr(), layout.elements * dtype.size());
        let aligned = start.is_multiple_of(dtype.real().size().min(align_of::<u64>()));
        if !layout.contiguous || !aligned {
            return None;
        }
        let mut over = SmallVec::new();
        for (i, feed) in feeds.enumerate() {
            let (from, to) = (feed.start.addr(), feed.end.addr());
            let apart = to <= start || start + len <= from;
            if !apart && (from, to) != (start, start + len) {
                return None;
            }
            if !apart {
                over.push(i);
            }
        }
        Some(Place { first: self.first, len, over, borrowed: PhantomData })
    }

    /// Copies a tensor's elements to those of the layout, which has its shape.
    pub(super) fn scatter(&mut self, layout: &Layout, from: &Tensor) {
        debug_assert_eq!(&*layout.shape, from.shape());
        let size = from.dtype().size();
        // A tensor of another shape is a mistake in the library: it must not become a wrong address.
        if *layout.shape != *from.shape() || layout.elements == 0 {
            return;
        }
        let first = self.first;
        let Some(rows) = from.as_bytes() else {
            for (at, element) in offsets(layout, 0).zip(from.elements()) {
                // SAFETY: as in `scatter_rows`, for elements of `size` bytes.
                unsafe { std::ptr::copy_nonoverlapping(element.as_ptr(), step(first, at, size), size) };
            }
            return;
        };
        match size {
            1 => self.scatter_rows::<1>(layout, first, rows),
            2 => self.scatter_rows::<2>(layout, first, rows),
            4 => self.scatter_rows::<4>(layout, first, rows),
            8 => self.scatter_rows::<8>(layout, first, rows),
            _ => self.scatter_rows::<16>(layout, first, rows),
        }
    }

    /// [`scatter`](RawBytesMut::scatter) of elements of `N` bytes that follow each other in `rows`.
    fn scatter_rows<const N: usize>(&mut self, layout: &Layout, first: *mut u8, rows: &[u8]) {
        let last = layout.shape.len().saturating_sub(1);
        let (inner, stride) = (layout.shape.get(last).map_or(1, |n| *n), layout.strides.get(last).map_or(0, |s| *s));
        for (at, row) in offsets(layout, 1).zip(rows.chunks_exact(inner * N)) {
            for (i, element) in row.as_chunks::<N>().0.iter().enumerate() {
                let to = step(first, at.wrapping_add(stride.wrapping_mul(i as isize)), N);
                // SAFETY: `to` is the address of an element of the layout, which has `N` bytes. The caller of
                // `new` lets us write them, or they are borrowed exclusively; nothing refers to them: the run
                // has ended, and with it the use of what `bytes` and `Place` returned. The tensor's memory is its own.
                unsafe { to.cast::<[u8; N]>().write(*element) };
            }
        }
    }
}

/// Memory of a result that a run may write to before it has ended, and the feeds that are exactly there, by their numbers.
pub(super) struct Place<'a> {
    first: *mut u8,
    len: usize,
    over: SmallVec<[usize; 2]>,
    borrowed: PhantomData<&'a mut [u8]>,
}

impl<'a> Place<'a> {
    pub(super) fn over(&self) -> &[usize] {
        &self.over
    }

    /// The bytes. From here on the feeds of [`over`](Place::over) must be read by pointers made from what this returns, and not
    /// as tensors: nothing may ask for their [`bytes`](RawBytes::bytes).
    pub(super) fn bytes_mut(self) -> &'a mut [u8] {
        // SAFETY: a layout without gaps has an element in each of these bytes. They are of a slice that is borrowed exclusively, or
        // the caller of `RawBytesMut::new` has promised that they are initialized and may be written, and that nothing but the
        // feeds uses them: these are elsewhere, or are read through this slice as said above (the runtime's `launch::in_place`
        // decides so before it takes the slice, and is its only user). `self` and the `RawBytesMut` it is made of are consumed,
        // and `reborrow` borrows exclusively what it is made from, so that there is no second such slice.
        unsafe { slice::from_raw_parts_mut(self.first, self.len) }
    }
}

/// The address of the element that is `at` elements behind the first.
fn step(first: *mut u8, at: isize, size: usize) -> *mut u8 {
    first.wrapping_offset(at.wrapping_mul(size as isize))
}

/// The distance of each element from the first, in elements, in row-major order, of all dims but the `inner` last ones.
pub(super) fn offsets(layout: &Layout, inner: usize) -> impl Iterator<Item = isize> {
    let outer = layout.shape.len().saturating_sub(inner);
    let mut index = vec![0usize; outer];
    let mut next = 0isize;
    let count: usize = layout.shape[..outer].iter().product();
    (0..count).map(move |_| {
        let at = next;
        for d in (0..outer).rev() {
            index[d] += 1;
            next = next.wrapping_add(layout.strides[d]);
            if index[d] < layout.shape[d] {
                break;
            }
            next = next.wrapping_sub(layout.strides[d].wrapping_mul(layout.shape[d] as isize));
            index[d] = 0;
        }
        at
    })
}
