//! What `compile` was asked for, besides the program.

use castwise::Executor;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::cli::findings::Kind;
use crate::executor::{PyExecutor, default};
use crate::rules::Asked;

/// The keyword arguments of `compile`, checked. They pickle with what is compiled.
#[pyclass(frozen, module = "castwise._core")]
pub struct Options {
    pub asked: Asked,
    pub rules: Option<String>,
    pub rounding: String,
    /// Implicit losses of this kind or worse are refused.
    pub(crate) denied: Option<Kind>,
    deny: Option<String>,
    /// `None`: that of the process.
    executor: Option<Py<PyExecutor>>,
}

impl Clone for Options {
    fn clone(&self) -> Options {
        let executor = Python::attach(|py| self.executor.as_ref().map(|e| e.clone_ref(py)));
        let Options { asked, denied, .. } = *self;
        let (rules, rounding, deny) = (self.rules.clone(), self.rounding.clone(), self.deny.clone());
        Options { asked, rules, rounding, denied, deny, executor }
    }
}

impl Options {
    /// The same for a program, which has its rules.
    pub fn of_program(self, rules: &str) -> PyResult<Options> {
        if self.rules.is_some() || self.rounding != "exact" {
            let text = "a program has rules and a rounding of its own: `with_rules` gives it others";
            return Err(PyValueError::new_err(text));
        }
        Ok(Options { asked: Asked::new(Some(rules), "exact")?, ..self })
    }

    /// What runs the program.
    pub fn executor<'a>(&'a self, py: Python<'_>) -> PyResult<&'a Executor> {
        match &self.executor {
            Some(own) => Ok(own.get().executor()),
            None => Ok(default(py)?.get().executor()),
        }
    }

    /// The same as an object of Python's.
    pub fn python_executor(&self, py: Python<'_>) -> PyResult<Py<PyExecutor>> {
        match &self.executor {
            Some(own) => Ok(own.clone_ref(py)),
            None => Ok(default(py)?.clone_ref(py)),
        }
    }
}

#[pymethods]
impl Options {
    #[new]
    #[pyo3(signature = (rules=None, rounding="exact", deny=None, executor=None))]
    fn new(
        rules: Option<&str>,
        rounding: &str,
        deny: Option<&str>,
        executor: Option<Py<PyExecutor>>,
    ) -> PyResult<Options> {
        let wrong = |e: String| PyValueError::new_err(format!("deny: {e}"));
        Ok(Options {
            asked: Asked::new(rules, rounding)?,
            rules: rules.map(str::to_string),
            rounding: rounding.to_string(),
            denied: deny.map(|d| d.parse().map_err(wrong)).transpose()?,
            deny: deny.map(str::to_string),
            executor,
        })
    }

    #[expect(clippy::type_complexity, reason = "the arguments of the constructor")]
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Option<String>, String, Option<String>, Option<Py<PyExecutor>>))> {
        let executor = self.executor.as_ref().map(|e| e.clone_ref(py));
        let class = py.import("castwise._core")?.getattr("Options")?;
        Ok((class, (self.rules.clone(), self.rounding.clone(), self.deny.clone(), executor)))
    }
}
