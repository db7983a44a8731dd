//! Stopping a run from outside: a token that any thread can cancel, and a time limit.
//!
//! Guarantees: a stopped run returns an error and no results. Does not: interrupt anything; `launch` checks between
//! kernels, and `runtime::driver` between the pieces of a kernel's work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::base::error::{Error, Result};

/// Stops the runs that it is passed to. Clones share one state.
///
/// ```
/// use castwise::{CancelToken, Error, prelude::*};
/// let p = Program::new(Rules::Torch);
/// let y = p.data("x", DType::F32, [None]).exp();
/// let (exe, token) = (Executor::new(), CancelToken::new());
/// let x = Tensor::full([1000], 1.0f32)?;
///
/// let elsewhere = token.clone();
/// std::thread::scope(|scope| _ = scope.spawn(|| elsewhere.cancel()));
/// let stopped = exe.run_with(&p, feeds! { "x" => &x }, [&y], &token);
/// assert!(matches!(stopped, Err(Error::Cancelled)));
/// assert!(exe.run(&p, feeds! { "x" => &x }, [&y]).is_ok());
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Stops every run with this token, present and future.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](CancelToken::cancel) has been called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The conditions that stop one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop<'a> {
    token: Option<&'a CancelToken>,
    /// The deadline, and the time limit that it follows from.
    until: Option<(Instant, Duration)>,
}

impl<'a> Stop<'a> {
    /// `None` if nothing can stop the run. The time limit counts from this call.
    pub(crate) fn new(token: Option<&'a CancelToken>, limit: Option<Duration>) -> Option<Stop<'a>> {
        // A deadline beyond the clock's range never comes.
        let until = limit.and_then(|l| Some((Instant::now().checked_add(l)?, l)));
        (token.is_some() || until.is_some()).then_some(Stop { token, until })
    }

    /// An error if the run must stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.token.is_some_and(CancelToken::is_cancelled) {
            return Err(Error::Cancelled);
        }
        match self.until {
            Some((at, limit)) if Instant::now() >= at => Err(Error::TimeLimit { limit }),
            _ => Ok(()),
        }
    }
}
