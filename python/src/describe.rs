//! What a compiled program is for some arguments: its typed program, casts, kernels and dtypes, without running it.
//!
//! Guarantees: an argument can also be a dtype, with a rank if it is text such as `bf16[3, n]`, else of rank 1; nothing is
//! remembered. Does not: decide what is lost; the command's findings are the same.

use castwise::{DType, Program, TypedProgram, Var};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::arrays::{self, Argument, Library};
use crate::cli::findings::{Kind, findings};
use crate::compiled::{Compiled, Given};
use crate::dtypes;
use crate::errors::{self, exception};
use crate::variant::Form;

/// A program for some arguments.
pub struct Described {
    program: Program,
    vars: Vec<Var>,
    form: Form,
    source: Option<String>,
}

/// An array, a number, or what names a dtype; and the library that it belongs to.
fn given(obj: &Bound<'_, PyAny>, name: &str) -> PyResult<(Given, Option<Library>)> {
    if let Ok(text) = obj.cast::<PyString>() {
        let text = text.to_string();
        let (dtype, dims) = text.split_once('[').map_or((&text[..], None), |(d, dims)| (d, Some(dims)));
        let rank = match dims.map(|d| d.trim_end_matches(']').trim()) {
            None => 1,
            Some("") => 0,
            Some(dims) => dims.split(',').count(),
        };
        let dtype = dtypes::of_object(&PyString::new(obj.py(), dtype.trim()))?;
        return Ok((Given::Array { dtype, rank, weak: false }, None));
    }
    let class = obj.get_type().fully_qualified_name()?.to_string();
    if class == "torch.dtype" {
        return Ok((Given::Array { dtype: dtypes::of_object(obj)?, rank: 1, weak: false }, Some(Library::Torch)));
    }
    if class.starts_with("numpy.dtype") || obj.is_instance_of::<PyType>() {
        return Ok((Given::Array { dtype: dtypes::of_object(obj)?, rank: 1, weak: false }, Some(Library::NumPy)));
    }
    Ok(match arrays::argument(obj, name)? {
        Argument::Array(a) => (Given::Array { dtype: a.dtype, rank: a.shape.len(), weak: a.weak }, Some(a.library)),
        Argument::Scalar(s) => (Given::Scalar(s), None),
    })
}

impl Described {
    /// The program of a compiled object for arguments, by position or by name.
    pub fn new<'py>(
        compiled: &Compiled,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Described> {
        let read = compiled.read(args, named, given)?;
        let all = read.into_iter().map(|given| given.unwrap_or((Given::Left, None)));
        let (all, libraries): (Vec<Given>, Vec<Option<Library>>) = all.unzip();
        let settings = compiled.options().asked.of(py, libraries.into_iter().flatten())?;
        let (program, vars, form) = compiled.build(py, settings, &all)?;
        Ok(Described { program, vars, form, source: compiled.shown() })
    }

    /// The typed program, whose results are those of the call.
    pub fn typed(&self, py: Python<'_>) -> PyResult<TypedProgram> {
        let fail = |e: castwise::Error| exception(py, &e, self.source.as_deref());
        let name = |i: usize| match &self.form {
            Form::Dict(names) => names.get(i).map(String::as_str),
            _ => None,
        };
        let results = self.vars.iter().enumerate().map(|(i, v)| (name(i), v));
        self.program.set_fetches(results).map_err(fail)?;
        self.program.infer().map_err(fail)
    }

    /// The kernels, as text.
    pub fn kernels(&self, py: Python<'_>, executor: &castwise::Executor) -> PyResult<String> {
        executor.kernels(&self.program, &self.vars).map_err(|e| exception(py, &e, self.source.as_deref()))
    }

    /// The dtypes of the results: one, a tuple or a dict, as a call returns them.
    pub fn result_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let typed = self.typed(py)?;
        let dtypes = self.vars.iter().filter_map(|v| typed.dtype(v).map(DType::name));
        self.form.of(py, dtypes.map(|d| PyString::new(py, d).into_any()).collect())
    }
}

/// Raises the implicit losses of a program that are as bad as `least` or worse, if there are any.
pub fn refuse(py: Python<'_>, program: &Program, least: Kind, source: Option<&str>) -> PyResult<()> {
    let typed = program.infer().map_err(|e| exception(py, &e, source))?;
    let mut found = findings(&typed, source.unwrap_or_default());
    found.retain(|f| !f.requested && f.kind >= least);
    if found.is_empty() { Ok(()) } else { Err(errors::denied(py, &found, source)) }
}
