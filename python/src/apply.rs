//! Ops, composites and generators applied to Python objects.
//!
//! Guarantees: of handles the result is one of their program; of arrays it is computed at once, under the rules of their
//! library. Does not: read attributes.

use castwise::shape::Dims;
use castwise::{DType, Eager, Operand, Program, Scalar, Settings, Var, with_location};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::arrays::{self, Argument, Library};
use crate::eager::{self, PyArray};
use crate::errors::exception;
use crate::functions::Applied;
use crate::place::here;
use crate::rules;
use crate::var::PyVar;

/// What a function of a number raises that takes an array.
fn no_array() -> PyErr {
    PyTypeError::new_err("the first operand is a number, not an array")
}

/// Applies a function to Python objects: to handles, of which at least one is a program's, in the program; to arrays at
/// once.
pub fn applied<'py>(py: Python<'py>, what: &Applied, operands: &[Bound<'py, PyAny>]) -> PyResult<Bound<'py, PyAny>> {
    let Some(first) = operands.iter().find_map(|o| o.cast::<PyVar>().ok()) else {
        return match operands.iter().find_map(|o| o.cast::<PyArray>().ok()) {
            Some(first) => of_arrays(py, what, operands, first.get().settings()),
            None => of_libraries(py, what, operands),
        };
    };
    let program = first.get().program();
    let mut all: SmallVec<[Operand; 4]> = SmallVec::new();
    for (i, obj) in operands.iter().enumerate() {
        all.push(operand(py, program, obj, what.operands().0.get(i).copied().unwrap_or("x"))?);
    }
    let var = with_location(here(py), || what.to(&all)).ok_or_else(no_array)?;
    Ok(PyVar::handle(py, program.clone(), var)?.into_any())
}

/// Computes a function of arrays of `castwise.xp`, under their rules.
fn of_arrays<'py>(
    py: Python<'py>,
    what: &Applied,
    operands: &[Bound<'py, PyAny>],
    settings: Settings,
) -> PyResult<Bound<'py, PyAny>> {
    let name = |i: usize| what.operands().0.get(i).copied().unwrap_or("x");
    let all = operands.iter().enumerate().map(|(i, obj)| eager::operand(obj, name(i), settings));
    let all = all.collect::<PyResult<SmallVec<[Operand<Eager>; 4]>>>()?;
    let made = with_location(here(py), || py.detach(|| what.to(&all))).ok_or_else(no_array)?;
    PyArray::made(py, settings, &made)
}

/// A placeholder of a program, at the caller's line of Python.
pub fn placeholder(py: Python<'_>, program: &Program, name: &str, dtype: DType, dims: Dims, weak: bool) -> Var {
    with_location(here(py), || match weak {
        true => program.weak_data(name, dtype, dims),
        false => program.data(name, dtype, dims),
    })
}

/// A handle or a number as an operand in a program, or an array as a constant of it.
pub fn operand(py: Python<'_>, program: &Program, obj: &Bound<'_, PyAny>, name: &str) -> PyResult<Operand> {
    if let Ok(var) = obj.cast::<PyVar>() {
        return Ok(Operand::Var(var.get().var().clone()));
    }
    Ok(match arrays::argument(obj, name)? {
        Argument::Scalar(s) => Operand::Scalar(s),
        Argument::Array(a) => {
            let t = a.tensor().map_err(|e| exception(py, &e, None))?;
            let made = || if a.weak { program.weak_constant(t) } else { program.constant(t) };
            Operand::Var(with_location(here(py), made))
        }
    })
}

/// Computes a function of arrays, under the rules of their library.
fn of_libraries<'py>(py: Python<'py>, what: &Applied, operands: &[Bound<'py, PyAny>]) -> PyResult<Bound<'py, PyAny>> {
    let mut arguments: SmallVec<[Argument<'py>; 4]> = SmallVec::new();
    for (i, obj) in operands.iter().enumerate() {
        arguments.push(arrays::argument(obj, what.operands().0.get(i).copied().unwrap_or("x"))?);
    }
    let libraries = || {
        arguments.iter().filter_map(|a| match a {
            Argument::Array(a) => Some(a.library),
            Argument::Scalar(_) => None,
        })
    };
    let settings = rules::Asked::new(None, "exact")?.of(py, libraries())?;
    let library = libraries().next().unwrap_or(Library::NumPy);
    if !matches!(what, Applied::Op(..)) && matches!(arguments.first(), Some(Argument::Scalar(_))) {
        return Err(no_array());
    }
    let result = with_location(here(py), || -> castwise::Result<castwise::Tensor> {
        let cx = Eager::with_settings(settings);
        let operands = arguments.iter().map(|a| match a {
            Argument::Scalar(s) => Ok(Operand::Scalar(*s)),
            Argument::Array(a) => {
                let t = a.tensor()?;
                Ok(Operand::Var(if a.weak { cx.weak_tensor(&t) } else { cx.tensor(&t) }))
            }
        });
        let operands = operands.collect::<castwise::Result<Vec<_>>>()?;
        let made = || what.to(&operands).map(|v| v.result());
        py.detach(made).unwrap_or_else(|| Err(castwise::Error::Internal("a function of a number".into())))
    });
    arrays::result(py, result.map_err(|e| exception(py, &e, None))?, library)
}

/// A scalar as a Python number.
pub fn python_scalar(py: Python<'_>, s: Scalar) -> PyResult<Bound<'_, PyAny>> {
    Ok(match s {
        Scalar::Bool(v) => v.into_pyobject(py)?.to_owned().into_any(),
        Scalar::Int(v) => v.into_pyobject(py)?.into_any(),
        Scalar::Float(v) => v.into_pyobject(py)?.into_any(),
        Scalar::Complex(v) => v.into_pyobject(py)?.into_any(),
    })
}
