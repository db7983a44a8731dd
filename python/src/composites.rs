//! Composites as Python functions and methods: `castwise.softmax(x, dim=-1)`, `x.softmax(-1)`.
//!
//! Guarantees: names, operands and parameters are castwise's. Does not: compute.

use castwise::{Attrs, Composite, Mode, Op, Operand, Var, apply};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::dtypes;
use crate::lazy;
use crate::program::applied;

/// What is applied to operands.
pub enum Applied {
    Op(Op, Attrs),
    Composite(Composite),
}

impl Applied {
    /// The names of the operands.
    pub fn operands(&self) -> &'static [&'static str] {
        match self {
            Applied::Op(op, _) => op.def().operands,
            Applied::Composite(c) => c.operands().0,
        }
    }

    /// The result; `None` for a composite whose first operand is a number.
    pub fn to<M: Mode>(&self, operands: &[Operand<M>]) -> Option<Var<M>> {
        match (self, operands) {
            (Applied::Op(op, attrs), _) => Some(apply(*op, operands, attrs.clone())),
            (Applied::Composite(c), [Operand::Var(first), rest @ ..]) => Some(first.composite(c, rest)),
            (Applied::Composite(_), _) => None,
        }
    }
}

/// A composite as a Python function.
#[pyclass(frozen, module = "castwise", name = "CompositeFunction")]
pub struct CompositeFunction {
    composite: Composite,
    /// The operand that is given already: `x` of the method `x.softmax`.
    given: Option<Py<PyAny>>,
}

impl CompositeFunction {
    pub fn new(composite: Composite, given: Option<Py<PyAny>>) -> CompositeFunction {
        CompositeFunction { composite, given }
    }
}

/// An integer, or several.
fn dims(value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    match value.extract::<i64>() {
        Ok(n) => Ok(vec![n]),
        Err(_) => value.try_iter()?.map(|v| v?.extract()).collect(),
    }
}

/// A composite with a parameter of Python's.
fn with(made: Composite, key: &str, value: &Bound<'_, PyAny>) -> PyResult<Composite> {
    let key = if matches!(key, "dim" | "axis") { "dims" } else { key };
    if !made.parameters().any(|p| p == key) {
        return Err(PyTypeError::new_err(format!("{} has no argument `{key}`", made.name())));
    }
    if value.is_none() {
        return Ok(made);
    }
    Ok(match key {
        "dims" => made.over(dims(value)?),
        "dtype" => made.dtype(dtypes::of_object(value)?),
        "equal_nan" => made.equal_nan(value.is_truthy()?),
        number => made.number(number, value.extract()?).map_err(PyTypeError::new_err)?,
    })
}

impl CompositeFunction {
    fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (names, required) = self.composite.operands();
        let mut made = self.composite.clone();
        let mut operands: Vec<Option<Bound<'py, PyAny>>> =
            self.given.iter().map(|g| Some(g.bind(py).clone())).collect();
        // `x.softmax(-1)`, as in PyTorch.
        let along =
            names.len() == 1 && made.parameters().next() == Some("dims") && !made.parameters().any(|p| p == "p");
        for (i, value) in args.iter().enumerate() {
            if operands.len() < names.len() {
                operands.push(Some(value).filter(|v| !v.is_none()));
            } else if along && i + 1 == args.len() {
                made = with(made, "dims", &value)?;
            } else {
                return Err(PyTypeError::new_err(format!("{} takes at most {} operands", made.name(), names.len())));
            }
        }
        for (key, value) in named.into_iter().flat_map(|d| d.iter()) {
            let key: String = key.extract()?;
            let Some(at) = names.iter().position(|n| *n == key) else {
                made = with(made, &key, &value)?;
                continue;
            };
            if operands.len() <= at {
                operands.resize_with(at + 1, || None);
            }
            let value = Some(value).filter(|v| !v.is_none());
            if std::mem::replace(&mut operands[at], value).is_some() {
                return Err(PyTypeError::new_err(format!("{}: the argument `{key}` is given twice", made.name())));
            }
        }
        while operands.last().is_some_and(Option::is_none) {
            operands.pop();
        }
        if operands.len() < required || operands.iter().take(required).any(Option::is_none) {
            let all = names[..required].join(", ");
            return Err(PyTypeError::new_err(format!("{} takes {all}", made.name())));
        }
        // A weight that is left out before a bias is 1.
        let one = 1.0f64.into_pyobject(py)?.into_any();
        let operands: Vec<Bound<'py, PyAny>> = operands.into_iter().map(|o| o.unwrap_or_else(|| one.clone())).collect();
        applied(py, &Applied::Composite(made), &operands)
    }
}

#[pymethods]
impl CompositeFunction {
    #[pyo3(signature = (*args, **named))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        lazy::or_graph(slf.get().call(slf.py(), args, named), slf, args, named)
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.composite.name()
    }

    #[getter]
    fn __doc__(&self) -> &'static str {
        self.composite.doc()
    }

    /// The names of the operands.
    #[getter]
    fn operands(&self) -> Vec<&'static str> {
        self.composite.operands().0.to_vec()
    }

    fn __repr__(&self) -> String {
        let all: Vec<&str> = self.composite.operands().0.iter().copied().chain(self.composite.parameters()).collect();
        format!("<castwise function {}({})>", self.composite.name(), all.join(", "))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("castwise._core")?.getattr("op")?, (self.composite.name(),)))
    }
}
