//! Executors: what runs programs, with its threads, its limits and what it has compiled.
//!
//! Guarantees: a process has one default executor; a forked child goes on with what its parent had compiled, on threads of
//! its own. An executor pickles as its settings.

use std::time::Duration;

use castwise::Executor;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// What runs compiled programs: how many threads, how much memory, how much time a run may take.
///
/// threads: the most threads of one run; by default the machine's cores. max_bytes: the most bytes that one run may hold in
/// results and between loops; a run that would need more raises LimitError. time_limit: seconds; a longer run raises
/// LimitError. pool: the most bytes of dropped results that are kept for new ones; by default 2**30.
///
/// >>> import numpy as np, castwise
/// >>> small = castwise.Executor(threads=1, max_bytes=1000)
/// >>> double = castwise.compile("x * 2", executor=small)
/// >>> double(np.ones(3))
/// array([2., 2., 2.])
/// >>> double(np.ones(1000))
/// Traceback (most recent call last):
/// castwise._errors.LimitError: the bytes of a run's tensors is 8000, more than the limit of 1000
#[pyclass(frozen, module = "castwise", name = "Executor")]
pub struct PyExecutor {
    executor: Executor,
    max_bytes: Option<usize>,
    time_limit: Option<f64>,
    pool: Option<usize>,
}

impl PyExecutor {
    pub fn executor(&self) -> &Executor {
        &self.executor
    }
}

/// The executor of the process.
pub fn default(py: Python<'_>) -> PyResult<&'static Py<PyExecutor>> {
    static DEFAULT: PyOnceLock<Py<PyExecutor>> = PyOnceLock::new();
    DEFAULT.get_or_try_init(py, || Py::new(py, PyExecutor::new(None, None, None, None)?))
}

/// The executor of all that is compiled without one of its own.
///
/// >>> import castwise
/// >>> castwise.compile("a + b").executor is castwise.default_executor()
/// True
#[pyfunction]
pub fn default_executor(py: Python<'_>) -> PyResult<Py<PyExecutor>> {
    Ok(default(py)?.clone_ref(py))
}

fn threads(n: usize) -> PyResult<usize> {
    match n {
        1..=65536 => Ok(n),
        _ => Err(PyValueError::new_err(format!("{n} threads: from 1 to 65536 are possible"))),
    }
}

#[pymethods]
impl PyExecutor {
    #[new]
    #[pyo3(signature = (threads=None, max_bytes=None, time_limit=None, pool=None))]
    fn new(
        threads: Option<usize>,
        max_bytes: Option<usize>,
        time_limit: Option<f64>,
        pool: Option<usize>,
    ) -> PyResult<PyExecutor> {
        let mut builder = Executor::builder();
        if let Some(n) = threads {
            builder = builder.threads(self::threads(n)?);
        }
        if let Some(bytes) = max_bytes {
            builder = builder.max_bytes(bytes);
        }
        if let Some(seconds) = time_limit {
            let limit = Duration::try_from_secs_f64(seconds);
            let wrong = |_| PyValueError::new_err(format!("the time limit {seconds} is no number of seconds"));
            builder = builder.time_limit(limit.map_err(wrong)?);
        }
        if let Some(bytes) = pool {
            builder = builder.pool(bytes);
        }
        Ok(PyExecutor { executor: builder.build(), max_bytes, time_limit, pool })
    }

    /// The most threads that one run uses. It can be set: runs that begin afterwards use so many.
    ///
    /// >>> import castwise
    /// >>> castwise.Executor(threads=2).threads
    /// 2
    #[getter]
    fn threads(&self) -> usize {
        self.executor.threads()
    }

    #[setter]
    fn set_threads(&self, n: usize) -> PyResult<()> {
        self.executor.set_threads(threads(n)?);
        Ok(())
    }

    /// The most bytes that one run may hold, or None.
    ///
    /// >>> import castwise
    /// >>> castwise.Executor(max_bytes=1000).max_bytes
    /// 1000
    #[getter]
    fn max_bytes(&self) -> Option<usize> {
        self.max_bytes
    }

    /// How many seconds one run may take, or None.
    ///
    /// >>> import castwise
    /// >>> castwise.Executor(time_limit=1.5).time_limit
    /// 1.5
    #[getter]
    fn time_limit(&self) -> Option<f64> {
        self.time_limit
    }

    /// The most bytes of dropped results that are kept, or None for the default.
    ///
    /// >>> import castwise
    /// >>> castwise.Executor(pool=0).pool
    /// 0
    #[getter]
    fn pool(&self) -> Option<usize> {
        self.pool
    }

    /// What the executor has done so far, as a dict: counts, bytes, and seconds spent typing, planning and compiling.
    ///
    /// >>> import castwise
    /// >>> castwise.Executor().stats["runs"]
    /// 0
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (s, all) = (self.executor.stats(), PyDict::new(py));
        let counts = [
            ("runs", s.runs),
            ("bindings", s.bindings),
            ("inferences", s.inferences),
            ("plans", s.plans),
            ("plan_hits", s.plan_hits),
            ("compiles", s.compiles),
            ("kernel_hits", s.kernel_hits),
            ("kernels", s.kernels),
            ("bytes_read", s.bytes_read),
            ("bytes_written", s.bytes_written),
        ];
        for (name, n) in counts {
            all.set_item(name, n)?;
        }
        for (name, time) in [("inferring", s.inferring), ("planning", s.planning), ("compiling", s.compiling)] {
            all.set_item(name, time.as_secs_f64())?;
        }
        Ok(all)
    }

    fn __repr__(&self) -> String {
        let mut text = format!("castwise.Executor(threads={}", self.executor.threads());
        if let Some(bytes) = self.max_bytes {
            text += &format!(", max_bytes={bytes}");
        }
        if let Some(seconds) = self.time_limit {
            text += &format!(", time_limit={seconds:?}");
        }
        if let Some(bytes) = self.pool {
            text += &format!(", pool={bytes}");
        }
        text + ")"
    }

    #[expect(clippy::type_complexity, reason = "the arguments of the constructor")]
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (usize, Option<usize>, Option<f64>, Option<usize>))> {
        let class = py.import("castwise._core")?.getattr("Executor")?;
        Ok((class, (self.executor.threads(), self.max_bytes, self.time_limit, self.pool)))
    }
}
