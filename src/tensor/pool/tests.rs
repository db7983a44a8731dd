//! The pool's limit, reuse and closing.

use super::*;
use crate::tensor::Storage;

#[test]
fn a_pool_keeps_at_most_its_limit_and_nothing_once_closed() {
    let pool = Pool::new(64 * 10);
    let heap = pool.heap(64);
    let made: Vec<Storage> = (0..3).map(|_| Storage::pooled(64 * 4, &pool).unwrap()).collect();
    drop(made);
    drop(Storage::pooled(64 * 11, &pool).unwrap());
    assert_eq!(heap.state().bytes, 64 * 4);
    assert_eq!(heap.take(64 * 4).map(|b| b.size()), Some(64 * 4));
    assert!(heap.take(64 * 4).is_none() && heap.take(64 * 11).is_none());
    let last = Storage::pooled(64, &pool).unwrap();
    pool.close();
    drop(last);
    assert_eq!(heap.state().bytes, 0);
}

/// The limits of all heaps together.
fn limits(pool: &Pool) -> (usize, usize) {
    let limit = |heap: &Arc<Heap>| heap.limit.load(Ordering::Relaxed);
    (pool.own.iter().flat_map(PerThread::all).map(limit).sum(), limit(&pool.shared))
}

#[test]
fn the_heaps_of_a_pool_have_its_limit_together() {
    const ALL: usize = SHARES * OWN;
    assert_eq!(limits(&Pool::new(1 << 30)), (ALL, (1 << 30) - ALL));
    assert_eq!(limits(&Pool::new(64 << 20)), (16 << 20, 48 << 20));
    for low in [0, 64, 4 * SHARES * SMALL - 1] {
        assert_eq!(limits(&Pool::new(low)), (0, low));
    }
    assert_eq!(limits(&Pool::new(usize::MAX)), (ALL, usize::MAX - ALL));
}

#[test]
fn a_small_buffer_returns_to_the_thread_that_took_it() {
    let pool = Pool::new(1 << 30);
    let own = Storage::pooled(SMALL, &pool).unwrap();
    let address = own.bytes().as_ptr();
    std::thread::scope(|scope| _ = scope.spawn(|| drop(own)));
    assert_eq!(pool.heap(SMALL).state().bytes, SMALL);
    assert_eq!(Storage::pooled(SMALL, &pool).unwrap().bytes().as_ptr(), address);
    drop(Storage::pooled(SMALL + 64, &pool).unwrap());
    assert_eq!((pool.heap(SMALL).state().bytes, pool.shared.state().bytes), (SMALL, SMALL + 64));
    pool.close();
    assert!(pool.heaps().all(|heap| heap.state().bytes == 0));
}
