//! The constants of plans and launches that are a matter of measurement: sizes of tiles and pieces, when results are streamed,
//! when rows are joined, when threads help.
//!
//! Guarantees: no other file of `plan`, `runtime::driver` and `runtime::launch` has such a constant; each one here says its
//! unit, what was measured and when, or that nothing was. A machine that is not named is that of the benchmarks of the day: until
//! 2026-11-23 two cores of a virtual AMD EPYC (Zen 4, AVX-512, 32 KiB of L1 data cache, 32 MiB of last-level cache), from
//! 2026-11-24 on two cores of a virtual Intel Xeon (AVX-512, 480 MiB of shared last-level cache). Does not: decide anything;
//! `geometry`, `strategy` and the driver do.

// Storing values or computing them again.

/// Bytes of elements that simple vector instructions compute in the time in which a byte moves between memory and a core.
/// 2026-11-26, on two busy cores, f32: 0.16 ns for a byte of 128 MiB read and as many written; for a byte of an instruction, of chains of
/// 36 and of 4 multiplications and additions in the L1 cache, 0.004 ns with AVX-512 and 0.015 ns with AVX2. So it would be 40 and 10; less
/// is taken because what is stored may still be in a cache when it is read.
pub(crate) const INSTRUCTIONS_PER_BYTE: f32 = 8.0;

/// What an element of a view costs beside one of a contiguous operand. Not measured; a transposed f32 costs some three times as much by the
/// figures of [`ROW_BLOCK`].
pub(crate) const APART: f32 = 4.0;

// Tiles and pieces.

/// Elements of a tile: what a stage of the body computes in one call. With 512, the operands of a stage stay in the L1 cache; other
/// sizes were not measured. Part of [`PIECE`], so that the bits of long reductions depend on it.
pub(crate) const TILE: usize = 512;

/// Bytes of a tile of elements of the widest dtype, the room that each tile has. Tiles of rows that are reduced fill it. 2026-11-28, one core
/// of a virtual AMD EPYC (Zen 4, AVX-512), ns an element, tiles of 512 elements and filled ones: the maximum of rows of 768 bf16 0.38 and
/// 0.16, of rows of 4,096 bf16 0.18 and 0.14, of squares of f64 0.31 and 0.26.
pub(crate) const TILE_BYTES: usize = 16 * TILE;

/// Tiles of a piece, the part of a long row that becomes one partial result. Not measured. The order in which a reduction
/// combines its elements follows from it, and must not depend on the machine: a change changes the bits of results.
const PIECE_TILES: usize = 16;

/// Elements of a piece.
pub(crate) const PIECE: usize = PIECE_TILES * TILE;

/// Rows that a reduction across rows combines into one partial row. Not measured; a change changes the bits of results.
pub(crate) const FOLDED_ROWS: usize = 64;

/// Tiles that a schedule of one segment computes in a call, where nothing is copied tile by tile. Not measured.
pub(crate) const PLAIN_TILES: usize = 4;

/// Elements times steps that are computed between two checks of what can stop a run. 2026-11-27, two cores of a virtual AMD EPYC
/// (Zen 4): `(x - m) * s * w + b` of f16 in rows of 256 takes 0.17 ns an element on one of them with a check every 85 rows, as in runs
/// that can't be stopped; 60 stops each of elementwise ops over 30 million elements took 1 ms at most (`xtask -- stop_time`).
pub(crate) const STEPS_BETWEEN_CHECKS: usize = 1 << 18;

// Short rows are joined to one inner loop.

/// Elements of an inner loop below which its rows are joined; operands that then have gaps are gathered into tiles. Not measured.
pub(crate) const SHORT_INNER: usize = 64;

/// The same for rows that are reduced, so that a tile holds several: the cost of a row beside that of its elements is then a
/// tenth. 2026-11-23, the maximum of rows of f32, ns an element, one row a call and joined: rows of 64 1.1 and 0.45, rows of
/// 256 0.24 and 0.24.
pub(crate) const SHORT_REDUCED: usize = 257;

/// The same where no operand is broadcast along the rows, which would have to be gathered: one call reduces many rows.
/// 2026-11-23, sums of rows of 512 f32, ns an element, one row a call and joined: 0.15 and 0.07. The order in which the elements
/// of such rows are combined is the same either way.
pub(crate) const SHORT_READ: usize = 513;

/// The same for sums of computed values over rows that fill all lanes of a reduction: one call of a segment sums many rows, each
/// alone. 2026-11-23, means of squares of f32, ns an element, joined and one call for many rows: rows of 128 0.149 and 0.147, of
/// 256 0.150 and 0.104, of 512 0.142 and 0.084; with a value for each row subtracted before, which is gathered where rows are
/// joined: 0.252 and 0.141, 0.272 and 0.107, 0.158 and 0.085.
pub(crate) const SHORT_ADDED: usize = 128;

/// The minimum number of elements behind the reduced dims for which these elements are the inner loop, and rows are combined
/// element by element. Shorter rows are stacked in one inner loop, so that a tile holds many. 2026-11-23, sums of f32 over the
/// first dim, ns an element, row by row and stacked: rows of 3 elements 0.69 (gathered) and 0.09, of 16 1.26 and 0.07, of 64
/// 0.36 and 0.07, of 256 0.14 and 0.06.
pub(crate) const COLUMNS: usize = 257;

/// Elements of an operand that repeats along the inner loop up to which it is written out, so that a tile can begin anywhere in
/// it. A longer one is gathered. Not measured.
pub(crate) const LONGEST_PERIOD: usize = 4096;

// Many tiles or rows in one call of a segment.

/// Bytes of the patterns, written out copies of operands that repeat along the inner loop, which a segment reads again for each
/// tile: what it reads and writes once passes through the L1 cache beside them. 2026-11-23, RGB pixels normalized by two
/// patterns, on a core with 32 KiB of L1: with 8 KiB each 1.1 ms, with 2 KiB each 0.55 ms.
pub(crate) const PATTERN_BYTES: usize = 4 << 10;

/// Elements that divide the length of a pattern, so that the results of each tile begin at a cache line and whole vectors of
/// every width fill it. Not measured.
pub(crate) const PATTERN_STEP: usize = 64;

/// Rows whose uniform values are computed together before one call of a segment computes the rows. Not measured.
pub(crate) const UNIFORM_ROWS: usize = 64;

/// Rows that one call of a segment sums: the lanes of so many fit the room for those of [`ROW_BLOCK`] rows of the widest dtype,
/// since segments sum elements of eight bytes at most. Not measured.
pub(crate) const SUMMED_ROWS: usize = 2 * ROW_BLOCK;

/// The minimum number of bytes of operands that all rows read, for which a call computes only some columns of its rows: those
/// that the L1 cache then keeps from row to row. Not where a launch reads and writes more than [`SHARED_MOST`] bytes, which
/// come from memory: there rows in order are faster. 2026-11-23, one core, `(x - m) * s * w + b` of f32 in rows of 4,096
/// elements (32 KiB of `w` and `b` a row), whole rows and columns: 2^18 elements 45 µs and 28 µs, 2^20 190 µs and 112 µs, but
/// 2^22 1.5 ms and 1.8 ms; rows of 2,048 about the same both ways. 2026-11-25, a virtual AMD EPYC (Zen 4) with the loops for
/// AVX2: 2^18 elements 47 µs and 38 µs, 2^20 185 µs and 135 µs.
pub(crate) const SHARED_FROM: usize = 24 << 10;

/// Bytes of such operands in the columns that a call computes. Measured together with [`SHARED_FROM`].
pub(crate) const SHARED_BYTES: usize = 8 << 10;

/// Bytes of a launch's other operands and results up to which it is computed in columns. Measured together with [`SHARED_FROM`].
pub(crate) const SHARED_MOST: usize = 18 << 20;

/// Rows that are computed tile by tile together where an operand is transposed: each cache line of it then serves all of its
/// elements, 16 of four bytes. 2026-11-25, two cores of a virtual AMD EPYC (Zen 4), one of them, a transposed operand and another
/// one added, rows in blocks and one by one: 1,024 rows and columns of u8 0.65 and 1.4 ms, of f32 0.69 and 3.1 ms, of f64 0.86
/// and 2.9 ms; 256 of f32 47 and 102 µs.
pub(crate) const ROW_BLOCK: usize = 16;

/// Bytes of a block of rows that passes through several kernels: what these read and write for it, so that the L2 cache still has what
/// one kernel left when the next one reads it. Not measured; the bench `micro -- tuning/softmax` runs several sizes.
pub(crate) const ROW_GROUP_BYTES: usize = 512 << 10;

/// Elements of a transposed operand from which its full reduction copies rows together. Not measured; the bench `micro -- tuning/sum` has
/// operands on both sides of it.
pub(crate) const IN_ORDER_FROM: usize = if cfg!(test) { 2 * PIECE } else { 8 * PIECE };

/// Bytes of [`ROW_BLOCK`] rows of such an operand, at most. Not measured.
pub(crate) const IN_ORDER_BYTES: usize = 4 << 20;

// Prefetching and streaming.

/// Bytes at the start of an operand whose pages are prefetched, by a line each, before a launch. 2026-12-01, one core of a virtual AMD EPYC
/// (Zen 4, AVX-512), `a + b` of f32 in a loop by rustc, ms for 10^7 elements, in arrays of so many elements, on pages of 4 KiB and of 2 MiB:
///
/// | elements of an array | without | prefetched | without, 2 MiB | prefetched, 2 MiB |
/// | --- | --- | --- | --- | --- |
/// | 8,192, in memory | 4.0 | 3.2 | 3.7 | 3.6 |
/// | 65,536, in memory | 4.1 | 2.9 | 2.9 | 2.7 |
/// | 8,192, in the second-level cache | 1.06 | 1.06 | | |
/// | 8,192, in the last-level cache | 1.25 | 1.26 | | |
///
/// With the pages of each 256 KiB prefetched as they come, longer arrays on small pages gained too (2^20: 3.9 and 2.7), but the mean of squared
/// differences of 2^24, which is on huge pages and prefetches line by line, took 1.04 times as long, and a Huber loss 1.08 times.
pub(crate) const PREFETCHED: usize = 256 << 10;

/// Elements of a call of a segment from which those before the first cache line of its results are a call of their own. Large arrays of
/// NumPy begin 16 bytes behind a page. 2026-11-27, one core of a virtual AMD EPYC (Zen 4), a step of AdamW on 2^24 f32 in such arrays:
/// 13.5 ms without, 11.4 with. The limit itself was not measured.
pub(crate) const LED: usize = if cfg!(test) { 1 << 8 } else { 1 << 12 };

/// The minimum number of bytes of a row for which segments prefetch operands whose next row is not contiguous with it: longer
/// rows amortize the useless prefetches behind their ends. 2026-11-24, sums and products over every sixteenth row, rows of 4 KiB:
/// prefetching behind them takes twice as long. The limit itself was not measured.
pub(crate) const LONG_ROW: usize = 128 << 10;

/// Whether results of `written` bytes are streamed, that is, stored past the caches; `moved` is the bytes of results and operands
/// together.
///
/// A streamed store does not first read its cache line from memory, and leaves the operands in the last-level cache. But that
/// cache takes stores faster than memory does, and has the results for whoever reads them next. So the threshold grows with the
/// fraction that is written, and with the number of threads. 2026-11-23 and 2026-11-24, on an EPYC server whose last-level
/// cache has 32 MiB and whose memory takes 26 GB/s, and on a Xeon that shares one of 480 MiB with others; µs, cached and
/// streamed:
///
/// | operands + results, MiB | EPYC, one thread | two | Xeon, one thread | two |
/// |---|---|---|---|---|
/// | 0 + 24 | 672, 926 | 315, 994 | 910, 1,089 | 443, 547 |
/// | 0 + 48 | 2,039, 1,928 | 1,866, 1,932 | 1,948, 2,201 | 901, 1,093 |
/// | 12 + 12 | 586, 521 | 360, 482 | 863, 877 | 434, 442 |
/// | 20 + 20 | 1,067, 1,028 | 693, 800 | 1,473, 1,484 | 716, 735 |
/// | 24 + 24 | 1,445, 1,114 | 963, 961 | 1,779, 1,776 | 890, 881 |
/// | 64 + 64 | | | 8,286, 4,787 | 3,368, 2,413 |
/// | 16 + 8 | 639, 433 | 283, 312 | 848, 860 | 432, 433 |
/// | 24 + 12 | 946, 727 | 725, 553 | 1,293, 1,286 | 646, 649 |
/// | 32 + 16 | 1,462, 1,117 | 1,057, 764 | 1,766, 1,761 | 860, 863 |
/// | 32 + 8 | 1,412, 991 | 855, 640 | 1,470, 1,454 | 717, 718 |
/// | 128 + 64 | | | 12,211, 7,430 | 5,635, 3,554 |
///
/// Unit tests stream small results too.
pub(crate) fn streams(written: usize, moved: usize, threads: usize) -> bool {
    if moved < LEAST_STREAMED {
        return false;
    }
    let mib = match (threads, 10 * written / moved) {
        (_, 9..) => 64,
        (0 | 1, _) => 24,
        (_, 0..4) => 32,
        _ => 48,
    };
    cfg!(test) || moved >= mib << 20
}

/// Bytes below which nothing is streamed: the least threshold of [`streams`].
const LEAST_STREAMED: usize = if cfg!(test) { 1 << 8 } else { 24 << 20 };

// Threads.

/// The minimum of elements times steps of a kernel for which other threads take part: below, waking one costs more than it saves.
/// Not measured.
pub(crate) const PARALLEL_WORK: usize = 1 << 18;

/// Elements of a part of a line that threads sort together, at least. Not measured; the bench
/// `micro -- tuning/sort` runs three lengths of lines.
pub(crate) const SORTED_PART: usize = if cfg!(test) { 1 << 6 } else { 1 << 13 };

/// Elements of a line that are sorted at once, at most: a run that is stopped goes on for as long as one thread takes for so many.
pub(crate) const SORTED_AT_ONCE: usize = if cfg!(test) { 1 << 12 } else { 1 << 22 };

/// Parts into which the work of each thread is cut, at most: a thread that starts late takes fewer. Not measured.
pub(crate) const PARTS_PER_THREAD: usize = 8;

/// Elements times steps of a part of a launch that is one loop, at least; some 4 µs. The smaller the parts, the more data moves
/// between the caches of the cores. 2026-11-22, 2^16 elements on two cores: 6.3 µs in 2 parts, 6.6 µs in 4, 7.8 µs in 16.
pub(crate) const LEAST_PART: usize = 1 << 18;

/// The minimum number of bytes of operands for which a launch that only reduces is a sweep: every other launch goes through the
/// parts backwards, and so begins with what the one before it left in the last-level cache. 2026-11-22, a server with 32 MiB of
/// that cache, one thread, 128 MiB read: the mean of squared differences 4.93 ms forwards and 4.48 ms swept, a Huber loss 5.52
/// and 5.04 ms. Unit tests sweep small operands too.
pub(crate) const SWEPT_FROM: usize = if cfg!(test) { 1 << 10 } else { 8 << 20 };

/// Bytes of operands in a part of a sweep. Not measured.
pub(crate) const SWEPT_PART: usize = 2 << 20;

/// Parts of a sweep for each thread, at most. Not measured.
pub(crate) const MOST_SWEPT: usize = 256;
