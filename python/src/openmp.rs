//! OpenMP's threads, which PyTorch computes with: castwise takes them instead of its own, so that the two do not spin on the
//! same cores, and `torch.set_num_threads` holds for both.
//!
//! Guarantees: without the functions that GCC's and LLVM's OpenMP have, castwise has its own threads; a panic does not unwind
//! into OpenMP. Does not: find the functions, which `castwise._openmp` does.

use std::ffi::{c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use castwise::{ForeignThreads, use_threads_of};
use pyo3::prelude::*;

/// `GOMP_parallel`: calls a function on a team of threads, the caller's among them, and waits for all.
type Parallel = unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void, c_uint, c_uint);

/// The functions of an OpenMP library. It is never unloaded, as PyTorch is not.
struct OpenMp {
    parallel: Parallel,
    most: unsafe extern "C" fn() -> c_int,
}

static OPENMP: OnceLock<OpenMp> = OnceLock::new();

/// What a thread of the team calls. A panic ends the thread's work; castwise catches those of its parts itself.
unsafe extern "C" fn enter(body: *mut c_void) {
    // SAFETY: `call` gives the address of a borrow that lives until every thread of the team has returned.
    let body = unsafe { *body.cast::<&(dyn Fn() + Sync)>() };
    drop(catch_unwind(AssertUnwindSafe(body)));
}

fn call(threads: usize, mut body: &(dyn Fn() + Sync)) {
    if let Some(openmp) = OPENMP.get() {
        let threads = c_uint::try_from(threads).unwrap_or(c_uint::MAX);
        // SAFETY: this is the function of the present OpenMP library, which returns when all threads have left `enter`.
        unsafe { (openmp.parallel)(enter, (&raw mut body).cast(), threads, 0) }
    }
}

fn most() -> usize {
    // SAFETY: the function has no arguments and no conditions.
    OPENMP.get().map_or(1, |openmp| usize::try_from(unsafe { (openmp.most)() }).unwrap_or(1))
}

/// Has runs of this process take OpenMP's threads: `GOMP_parallel` and `omp_get_max_threads` are at these addresses. For
/// `castwise._openmp` alone, which looks them up.
#[pyfunction]
pub fn _use_openmp(parallel: usize, most: usize) -> bool {
    if parallel == 0 || most == 0 {
        return false;
    }
    let (parallel, most) = (std::ptr::with_exposed_provenance(parallel), std::ptr::with_exposed_provenance(most));
    // SAFETY: `castwise._openmp` gives the addresses of these functions, which have these types.
    let functions = unsafe {
        OpenMp {
            parallel: std::mem::transmute::<*const c_void, Parallel>(parallel),
            most: std::mem::transmute::<*const c_void, unsafe extern "C" fn() -> c_int>(most),
        }
    };
    OPENMP.set(functions).is_ok() && use_threads_of(ForeignThreads { most: self::most, call })
}
