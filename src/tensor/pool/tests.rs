//! The pool's limit, reuse and closing.

use std::sync::Arc;

use super::*;
use crate::tensor::Storage;

#[test]
fn a_pool_keeps_at_most_its_limit_and_nothing_once_closed() {
    let pool = Arc::new(Pool::new(64 * 10));
    let made: Vec<Storage> = (0..3).map(|_| Storage::pooled(64 * 4, &pool).unwrap()).collect();
    drop(made);
    drop(Storage::pooled(64 * 11, &pool).unwrap());
    assert_eq!(pool.state().bytes, 64 * 4);
    assert_eq!(pool.take(64 * 4).map(|b| b.size()), Some(64 * 4));
    assert!(pool.take(64 * 4).is_none() && pool.take(64 * 11).is_none());
    let last = Storage::pooled(64, &pool).unwrap();
    pool.close();
    drop(last);
    assert_eq!(pool.state().bytes, 0);
}

#[test]
fn a_thread_takes_what_it_returned() {
    let pool = Pool::new(1 << 10);
    let (own, other) = (Memory::zeroed(64).unwrap(), Memory::zeroed(64).unwrap());
    let addresses = [&own, &other].map(|b| b.bytes().as_ptr());
    pool.put(own);
    std::thread::scope(|scope| _ = scope.spawn(|| pool.put(other)));
    // Then what there is.
    let taken = [pool.take(64).unwrap(), pool.take(64).unwrap()];
    assert_eq!(taken.each_ref().map(|b| b.bytes().as_ptr()), addresses);
}
