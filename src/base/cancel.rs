//! Stopping a run from outside: a token that any thread can cancel, or that asks whether to stop, and a time limit.
//!
//! Guarantees: a stopped run returns an error and no results. Does not: interrupt anything; `launch` checks between
//! kernels, and `runtime::driver` between the pieces of a kernel's work.

use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
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
pub struct CancelToken(Arc<State>);

#[derive(Debug, Default)]
struct State {
    cancelled: AtomicBool,
    question: Option<Question>,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// A token that also asks whether to stop: about once in the given time, on the thread that made it, while that thread works for
    /// a run with this token. For what only one thread can tell, such as an interpreter's signals.
    ///
    /// ```
    /// use castwise::{CancelToken, Error, prelude::*};
    /// use std::time::Duration;
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [None]).exp();
    /// let (exe, x) = (Executor::new(), Tensor::full([1000], 1.0f32)?);
    /// let token = CancelToken::asking(Duration::ZERO, || true);
    /// assert!(matches!(exe.run_with(&p, feeds! { "x" => &x }, [&y], &token), Err(Error::Cancelled)));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn asking(every: Duration, whether: impl Fn() -> bool + Send + Sync + 'static) -> CancelToken {
        let question = Question {
            every,
            thread: thread::current().id(),
            last: Mutex::new(Instant::now()),
            whether: Box::new(whether),
        };
        CancelToken(Arc::new(State { cancelled: AtomicBool::new(false), question: Some(question) }))
    }

    /// Stops every run with this token, present and future.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](CancelToken::cancel) has been called, or a run has been told to stop when it asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// Asks, if it is time to, and gives whether a run must stop.
    fn stops(&self) -> bool {
        if !self.is_cancelled() && self.0.question.as_ref().is_some_and(Question::says_stop) {
            self.cancel();
        }
        self.is_cancelled()
    }
}

/// Something to ask from time to time on one thread.
struct Question {
    every: Duration,
    thread: ThreadId,
    last: Mutex<Instant>,
    whether: Box<dyn Fn() -> bool + Send + Sync>,
}

/// A question that panics leaves the token as it was.
impl RefUnwindSafe for Question {}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("every", &self.every).field("thread", &self.thread).finish_non_exhaustive()
    }
}

impl Question {
    fn says_stop(&self) -> bool {
        if thread::current().id() != self.thread {
            return false;
        }
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            if now.duration_since(*last) < self.every {
                return false;
            }
            *last = now;
        }
        (self.whether)()
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
        if self.token.is_some_and(CancelToken::stops) {
            return Err(Error::Cancelled);
        }
        match self.until {
            Some((at, limit)) if Instant::now() >= at => Err(Error::TimeLimit { limit }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CancelToken;
    use std::time::Duration;

    #[test]
    fn a_token_asks_on_its_own_thread_when_it_is_time() {
        let (now, later) = (CancelToken::asking(Duration::ZERO, || true), CancelToken::asking(Duration::MAX, || true));
        let elsewhere = std::thread::scope(|s| s.spawn(|| now.stops()).join());
        assert!(elsewhere.is_ok_and(|stops| !stops) && !now.is_cancelled());
        assert!(now.stops() && now.is_cancelled() && !later.stops());
    }
}
