//! Programs that are written step by step.
//!
//! Guarantees: each node has the line of Python code that made it. Does not: compute.

use castwise::shape::{Dim, Dims};
use castwise::{Program, Var, with_location};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::apply;
use crate::arrays;
use crate::compiled::parse;
use crate::dtypes;
use crate::errors::exception;
use crate::html;
use crate::place::here;
use crate::rules;
use crate::var::PyVar;

/// A program that is written step by step, under rules such as "torch", "numpy", "paddle", "jax" or "jax,x64".
///
/// >>> import numpy as np, castwise
/// >>> p = castwise.Program("torch")
/// >>> x = p.data("x", "i64", ["n"])
/// >>> p.fetch(half=x * 0.5, total=x.sum())
/// >>> castwise.compile(p)(np.array([1, 2]))
/// {'half': array([0.5, 1. ], dtype=float32), 'total': array(3)}
#[pyclass(frozen, module = "castwise", name = "Program")]
pub struct PyProgram {
    program: Program,
}

impl PyProgram {
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What it is, for headings.
    pub fn heading(&self) -> String {
        self.__repr__()
    }

    fn handle<'py>(&self, py: Python<'py>, var: Var) -> PyResult<Bound<'py, PyVar>> {
        PyVar::handle(py, self.program.clone(), var)
    }
}

/// An extent: a number, `None` for any, or a name for the same one wherever it occurs.
fn dim(obj: &Bound<'_, PyAny>) -> PyResult<Dim> {
    if obj.is_none() {
        return Ok(Dim::Dynamic);
    }
    if let Ok(name) = obj.extract::<String>() {
        return Ok(Dim::Named(name.into()));
    }
    Ok(Dim::Fixed(obj.extract()?))
}

#[pymethods]
impl PyProgram {
    #[new]
    #[pyo3(signature = (rules, *, rounding="exact"))]
    fn new(py: Python<'_>, rules: &str, rounding: &str) -> PyResult<PyProgram> {
        let rounding = rounding.parse().map_err(|e: String| PyValueError::new_err(e))?;
        let settings = rules::settings(rules)?.with_rounding(rounding);
        Ok(PyProgram { program: with_location(here(py), || Program::with_settings(settings)) })
    }

    /// Reads a program's text, as `str(program)` gives it.
    ///
    /// >>> import castwise
    /// >>> p = castwise.Program("torch")
    /// >>> p.fetch(p.data("x", "i64", ["n"]) * 0.5)
    /// >>> castwise.Program.parse(str(p))
    /// <castwise.Program(x) rules="torch">
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<PyProgram> {
        Ok(PyProgram { program: parse(py, text)? })
    }

    /// A placeholder: an argument of the compiled program. `shape` has numbers, None for extents that a call determines, and
    /// names for extents that are the same wherever they occur; without it the value is 0-d. A weak one promotes as a scalar does
    /// under JAX's rules.
    ///
    /// >>> import castwise
    /// >>> castwise.Program("torch").data("x", "bf16", ["n", 3])
    /// <castwise.Var bf16[?0, 3]>
    #[pyo3(signature = (name, dtype, shape=None, *, weak=false))]
    fn data<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        dtype: &Bound<'py, PyAny>,
        shape: Option<&Bound<'py, PyAny>>,
        weak: bool,
    ) -> PyResult<Bound<'py, PyVar>> {
        let dtype = dtypes::of_object(dtype)?;
        let mut dims = Vec::new();
        for d in shape.map(|s| s.try_iter()).transpose()?.into_iter().flatten() {
            dims.push(dim(&d?)?);
        }
        self.handle(py, apply::placeholder(py, &self.program, name, dtype, Dims(dims), weak))
    }

    /// An array that is part of the program, as a copy. A weak array of JAX promotes as a scalar does.
    ///
    /// >>> import castwise, numpy as np
    /// >>> castwise.Program("torch").constant(np.ones(3, np.float32))
    /// <castwise.Var f32[3]>
    fn constant<'py>(&self, py: Python<'py>, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyVar>> {
        let array = arrays::array(array, "array")?;
        let (weak, t) = (array.weak, array.tensor().map_err(|e| exception(py, &e, None))?);
        let made = || if weak { self.program.weak_constant(t) } else { self.program.constant(t) };
        self.handle(py, with_location(here(py), made))
    }

    /// Adds an expression of placeholders, which it names, and of numbers, given by name. Raises ProgramError if it does not parse.
    ///
    /// >>> import castwise
    /// >>> p = castwise.Program("torch")
    /// >>> x = p.data("x", "i64", ["n"])
    /// >>> p.expression("x * factor", {"factor": 0.5})
    /// <castwise.Var f32[?0]>
    fn expression<'py>(&self, py: Python<'py>, text: &str, names: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyVar>> {
        let fail = |e: castwise::Error| exception(py, &e, Some(text));
        let scalar = |name: &str| names.get_item(name).ok().flatten().and_then(|v| arrays::scalar(&v).ok().flatten());
        self.handle(py, self.program.expression_with(text, scalar).map_err(fail)?)
    }

    /// Declares the results, in order; those given by keyword have names.
    ///
    /// >>> import castwise, numpy as np
    /// >>> p = castwise.Program("numpy")
    /// >>> x = p.data("x", "f64", ["n"])
    /// >>> p.fetch(low=x.amin(), high=x.amax())
    /// >>> castwise.compile(p)(np.array([3.0, 1.0]))
    /// {'low': array(1.), 'high': array(3.)}
    #[pyo3(signature = (*results, **named))]
    fn fetch(&self, py: Python<'_>, results: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let var = |obj: &Bound<'_, PyAny>| -> PyResult<Var> {
            Ok(obj
                .cast::<PyVar>()
                .map_err(|_| PyTypeError::new_err("a result is no castwise.Var"))?
                .get()
                .var()
                .clone())
        };
        let mut all: Vec<(Option<String>, Var)> = Vec::new();
        for r in results.iter() {
            all.push((None, var(&r)?));
        }
        for (name, r) in named.into_iter().flat_map(|n| n.iter()) {
            all.push((Some(name.extract()?), var(&r)?));
        }
        let all = all.iter().map(|(name, v)| (name.as_deref(), v));
        self.program.set_fetches(all).map_err(|e| exception(py, &e, None))
    }

    /// Appends the gradients of losses with respect to values, in the order of `wrt`. A loss that is not 0-d and real needs a cotangent
    /// of its shape; several losses count as their sum.
    ///
    /// >>> import castwise, numpy as np
    /// >>> p = castwise.Program("torch")
    /// >>> x = p.data("x", "float32", [None])
    /// >>> (g,) = p.gradients([(x * x).sum()], [x])
    /// >>> p.fetch(g)
    /// >>> castwise.compile(p)(np.array([1, 2], np.float32))
    /// array([2., 4.], dtype=float32)
    #[pyo3(signature = (losses, wrt, cotangents=None))]
    fn gradients<'py>(
        &self,
        py: Python<'py>,
        losses: &Bound<'py, PyAny>,
        wrt: &Bound<'py, PyAny>,
        cotangents: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyVar>>> {
        let var = |obj: Bound<'_, PyAny>| -> PyResult<Var> {
            let var = obj.cast::<PyVar>().map_err(|_| PyTypeError::new_err("gradients are of castwise.Vars"))?;
            Ok(var.get().var().clone())
        };
        let all = |obj: &Bound<'_, PyAny>| obj.try_iter()?.map(|v| var(v?)).collect::<PyResult<Vec<Var>>>();
        let (losses, wrt) = (all(losses)?, all(wrt)?);
        let mut given: Vec<Option<Var>> = Vec::new();
        for c in cotangents.map(|c| c.try_iter()).transpose()?.into_iter().flatten() {
            let c = c?;
            given.push(if c.is_none() { None } else { Some(var(c)?) });
        }
        let (losses, wrt): (Vec<&Var>, Vec<&Var>) = (losses.iter().collect(), wrt.iter().collect());
        let given: Vec<Option<&Var>> = given.iter().map(Option::as_ref).collect();
        let made = with_location(here(py), || self.program.gradients(&losses, &wrt, &given));
        let made = made.map_err(|e| exception(py, &e, None))?;
        made.into_iter().map(|v| self.handle(py, v)).collect()
    }

    /// A loss that is 0-d and real, and its gradients.
    ///
    /// >>> import castwise, numpy as np
    /// >>> p = castwise.Program("torch")
    /// >>> x = p.data("x", "float32", [2])
    /// >>> p.fetch(*p.value_and_gradients((x * x).sum(), [x]))
    /// >>> castwise.compile(p)(np.float32([1, 2]))
    /// (array(5., dtype=float32), array([2., 4.], dtype=float32))
    fn value_and_gradients<'py>(
        &self,
        py: Python<'py>,
        loss: &Bound<'py, PyAny>,
        wrt: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyVar>>> {
        let losses = PyTuple::new(py, [loss])?;
        let mut all = self.gradients(py, &losses, wrt, None)?;
        let loss = loss.cast::<PyVar>().map_err(|_| PyTypeError::new_err("gradients are of castwise.Vars"))?;
        all.insert(0, self.handle(py, loss.get().var().clone())?);
        Ok(all)
    }

    /// Raises all mistakes of the program as one ProgramError, if there are any.
    ///
    /// >>> import castwise
    /// >>> p = castwise.Program("paddle")
    /// >>> sum = p.data("x", "i64", [3]) + p.data("y", "f32", [3])
    /// >>> try:
    /// ...     p.check()
    /// ... except castwise.ProgramError as e:
    /// ...     print(len(e.diagnostics))
    /// 1
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.program.check().map_err(|e| exception(py, &e, None))
    }

    /// The typed program as text: every dtype and shape, and every cast with its reason. Raises ProgramError.
    ///
    /// >>> import castwise
    /// >>> p = castwise.Program("torch")
    /// >>> p.fetch(p.data("x", "i64", ["n"]) * 0.5)
    /// >>> "cast" in p.infer()
    /// True
    fn infer(&self, py: Python<'_>) -> PyResult<String> {
        self.program.infer().map(|t| t.to_string()).map_err(|e| exception(py, &e, None))
    }

    /// The casts with their reasons, and the typed program. Raises ProgramError.
    ///
    /// >>> import castwise
    /// >>> p = castwise.Program("torch")
    /// >>> p.fetch(p.data("x", "i64", ["n"]) * 0.5)
    /// >>> print(p.explain().splitlines()[1])
    /// 1 cast: 0 exact, 1 that round, 0 that may leave the range
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        self.program.infer().map(|t| t.explain()).map_err(|e| exception(py, &e, None))
    }

    /// The typed program as a picture: an SVG document without scripts, in which a pointer shows rule and line of each cast.
    ///
    /// >>> import castwise
    /// >>> p = castwise.Program("torch")
    /// >>> p.fetch(p.data("x", "i64", ["n"]) * 0.5)
    /// >>> p.to_svg()[:4]
    /// '<svg'
    fn to_svg(&self, py: Python<'_>) -> PyResult<String> {
        self.program.to_svg().map_err(|e| exception(py, &e, None))
    }

    /// The same program under other rules, of which `x64` and `strict` are as they are named. Its rounding stays.
    ///
    /// >>> import castwise
    /// >>> castwise.Program("torch").with_rules("jax,x64")
    /// <castwise.Program() rules="jax,x64">
    fn with_rules(&self, rules: &str) -> PyResult<PyProgram> {
        let settings = self.program.settings().with_rules_of(rules::settings(rules)?);
        Ok(PyProgram { program: self.program.under(settings) })
    }

    /// The names of the placeholders, in order.
    ///
    /// >>> import castwise
    /// >>> p = castwise.Program("torch")
    /// >>> x = p.data("x", "f32", ["n"])
    /// >>> p.names
    /// ['x']
    #[getter]
    fn names(&self) -> Vec<String> {
        self.program.feed_names()
    }

    /// The rules, with those of their settings that are on.
    ///
    /// >>> import castwise
    /// >>> castwise.Program("jax,x64").rules
    /// 'jax,x64'
    #[getter]
    fn rules(&self) -> String {
        self.program.settings().named()
    }

    /// The typed program as a table, for notebooks; the mistakes, if it has any.
    fn _repr_html_(&self, py: Python<'_>) -> String {
        match self.program.infer() {
            Ok(typed) => html::table(&self.__repr__(), &typed),
            Err(e) => format!("<pre>{}</pre>", html::escaped(&exception(py, &e, None).value(py).to_string())),
        }
    }

    fn __str__(&self) -> String {
        self.program.to_string()
    }

    fn __repr__(&self) -> String {
        let names = self.program.feed_names().join(", ");
        format!("<castwise.Program({names}) rules={:?}>", self.program.settings().named())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.import("castwise")?.getattr("Program")?.getattr("parse")?, (self.program.to_string(),)))
    }
}
