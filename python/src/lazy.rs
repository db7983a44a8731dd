//! Arrays of Dask: a call with them is left to `castwise.dask`, which makes a graph.
//!
//! Guarantees: nothing is computed, and calls without such arrays cost nothing. Does not: make the graph.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

/// Whether a type is that of Dask's arrays.
pub fn is_lazy(class: &Bound<'_, PyType>) -> PyResult<bool> {
    Ok(class.getattr("__module__")?.extract::<String>().is_ok_and(|m| m.starts_with("dask.array")))
}

/// What reading such an array gives.
pub fn refused(name: &str) -> PyErr {
    PyTypeError::new_err(format!("the argument `{name}` is an array of Dask: call `castwise.dask.apply`"))
}

/// What a call gave, or, if it failed and an argument is an array of Dask, what `castwise.dask` makes of it.
pub fn or_graph<'py>(
    made: PyResult<Bound<'py, PyAny>>,
    f: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Err(failed) = made else { return made };
    let given = args.iter().chain(named.into_iter().flat_map(|d| d.values()));
    for argument in given {
        if is_lazy(&argument.get_type())? {
            return f.py().import("castwise.dask")?.getattr("_called")?.call1((f, args, named));
        }
    }
    Err(failed)
}
