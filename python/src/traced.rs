//! Functions that are called with handles of a program, and compiled objects that such functions call.
//!
//! Guarantees: a compiled object adds what it computes to the program of the handles it is given, if its rules are those of the
//! program. Does not: type; rounding, refusals and executor are those of the whole program.

use castwise::{Operand, Program, Var, with_location};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::apply;
use crate::compiled::Compiled;
use crate::place::here;
use crate::var::PyVar;
use crate::variant::Form;

/// Calls a function, and takes its results apart.
pub fn results(function: &Bound<'_, PyAny>, values: Bound<'_, PyTuple>) -> PyResult<(Vec<Var>, Form)> {
    let result = function.call1(values)?;
    let var = |obj: &Bound<'_, PyAny>| -> PyResult<Var> {
        let found = obj.get_type().fully_qualified_name()?;
        let wrong = || PyTypeError::new_err(format!("the function returned a {found}, not a castwise.Var"));
        Ok(obj.cast::<PyVar>().map_err(|_| wrong())?.get().var().clone())
    };
    if let Ok(all) = result.cast::<PyDict>() {
        let names = all.keys().iter().map(|k| k.extract()).collect::<PyResult<Vec<String>>>()?;
        let vars = all.values().iter().map(|v| var(&v)).collect::<PyResult<Vec<Var>>>()?;
        return Ok((vars, Form::Dict(names)));
    }
    if result.cast::<PyVar>().is_err()
        && let Ok(all) = result.try_iter()
    {
        let vars = all.map(|v| var(&v?)).collect::<PyResult<Vec<Var>>>()?;
        return Ok((vars, Form::Tuple));
    }
    Ok((vec![var(&result)?], Form::One))
}

/// The program of the first handle among arguments.
pub fn program_of(args: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> Option<Program> {
    let of = |obj: Bound<'_, PyAny>| Some(obj.cast::<PyVar>().ok()?.get().program().clone());
    args.iter().find_map(of).or_else(|| named?.values().iter().find_map(of))
}

/// Adds what a compiled object computes of handles, numbers and arrays to a program. An array becomes a constant.
pub fn inlined<'py>(
    compiled: &Compiled,
    py: Python<'py>,
    program: &Program,
    args: &Bound<'py, PyTuple>,
    out: Option<&Bound<'py, PyAny>>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    if out.is_some() {
        return Err(PyTypeError::new_err("a call with a castwise.Var takes no `out`: its results are Vars"));
    }
    compiled.options().asked.check_within(py, program.settings())?;
    let handle = |var| Ok::<_, PyErr>(PyVar::handle(py, program.clone(), var)?.into_any());
    let value = |obj: &Bound<'py, PyAny>, name: &str| match apply::operand(py, program, obj, name)? {
        Operand::Var(var) => handle(var),
        Operand::Scalar(_) => Ok(obj.clone()),
    };
    let values = compiled.read(args, named, value)?;
    let (vars, form) = with_location(here(py), || compiled.added(py, program, values.into_vec()))?;
    form.of(py, vars.into_iter().map(handle).collect::<PyResult<_>>()?)
}
