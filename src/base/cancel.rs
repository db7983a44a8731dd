//! Stopping a run from outside: a token that any thread can pull, and a limit of time.
//!
//! Guarantees: a run that is told to stop returns an error and gives out no result. Does not: stop anything by itself;
//! `launch` asks between kernels and `runtime::driver` between pieces of their work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::base::error::{Error, Result};

/// Stops the runs it was given to. Clones are one token.
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
    /// A token that nobody has pulled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Stops every run that has this token, now and later.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](CancelToken::cancel) has been called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What can stop one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop<'a> {
    token: Option<&'a CancelToken>,
    /// When it has taken too long, and how long that is.
    until: Option<(Instant, Duration)>,
}

impl<'a> Stop<'a> {
    /// `None` if nothing can stop the run. Its time starts now.
    pub(crate) fn new(token: Option<&'a CancelToken>, limit: Option<Duration>) -> Option<Stop<'a>> {
        // A limit beyond the clock's range is none.
        let until = limit.and_then(|l| Some((Instant::now().checked_add(l)?, l)));
        (token.is_some() || until.is_some()).then_some(Stop { token, until })
    }

    /// The error of a run that is to stop.
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
