//! Handles of a program: what functions are traced with.
//!
//! Guarantees: NumPy's functions of a handle are those of castwise's tables, found by name; each node has the line of Python code
//! that made it. Does not: compute.

use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, Category, DType, Op, Program, Var, View, with_location};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::apply::applied;
use crate::dtypes;
use crate::errors::exception;
use crate::functions::Applied;
use crate::operators::{Made, Operators};
use crate::place::here;

/// A value of a program: what functions are traced with.
///
/// Operators, ops as methods, NumPy's functions and indices add to the program. It has a dtype and a shape, in which None is
/// an extent that a call determines, and no elements.
///
/// >>> import castwise
/// >>> x = castwise.Program("torch").data("x", "bf16", ["n", 3])
/// >>> y = (x * 2).sum(dim=-1) + x[:, 0]
/// >>> y.dtype, y.shape
/// ('bf16', (None,))
#[pyclass(frozen, extends = Operators, module = "castwise", name = "Var")]
pub struct PyVar {
    program: Program,
    var: Var,
}

impl PyVar {
    /// A handle as an object of Python's.
    pub fn handle<'py>(py: Python<'py>, program: Program, var: Var) -> PyResult<Bound<'py, PyVar>> {
        Bound::new(py, PyClassInitializer::from(Operators).add_subclass(PyVar { program, var }))
    }

    /// Views of the value, one after the other.
    pub fn viewed<'py>(&self, py: Python<'py>, views: impl IntoIterator<Item = View>) -> Made<'py> {
        let var = with_location(here(py), || views.into_iter().fold(self.var.clone(), |v, view| v.view(view)));
        Ok(PyVar::handle(py, self.program.clone(), var)?.into_any())
    }

    pub fn var(&self) -> &Var {
        &self.var
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The extents; `None` for those that a call determines.
    pub fn extents(&self, py: Python<'_>) -> PyResult<Vec<Option<usize>>> {
        let fixed = |d: &castwise::shape::SymDim| match d {
            castwise::shape::SymDim::Fixed(n) => Some(*n),
            _ => None,
        };
        self.typed(py, |t| Some(t.shape(&self.var)?.iter().map(fixed).collect()))
    }

    /// Whether the other value has the same dtype, and the same shape whatever a call determines.
    pub fn is_like(&self, py: Python<'_>, other: &PyVar) -> bool {
        let one = |t: &castwise::TypedProgram, v: &Var| Some((t.dtype(v)?, t.shape(v)?.to_vec()));
        self.typed(py, |t| Some(one(t, &self.var)? == one(t, &other.var)?)).unwrap_or(false)
    }

    /// The operand of `rint`, which is a function of floats: an integer in the float that such functions give it under the program's
    /// rules. What they refuse stays.
    fn in_float<'py>(slf: &Bound<'py, PyVar>) -> Made<'py> {
        let (var, any) = (slf.get(), slf.clone().into_any());
        let Ok(d) = var.typed(slf.py(), |t| t.dtype(&var.var)) else { return Ok(any) };
        let found = signature(&var.program.settings(), Op::Exp, &[OperandType::dim(d)], &Attrs::default());
        match found {
            Ok(s) if d.category() < Category::Float => {
                applied(slf.py(), &Applied::Op(Op::Cast, Attrs::cast(s.result)), &[any])
            }
            _ => Ok(any),
        }
    }

    fn typed<T>(&self, py: Python<'_>, of: impl Fn(&castwise::TypedProgram) -> Option<T>) -> PyResult<T> {
        let typed = self.program.infer().map_err(|e| exception(py, &e, None))?;
        of(&typed).ok_or_else(|| PyValueError::new_err("the value is not typed"))
    }
}

/// The op of a ufunc of NumPy.
fn of_ufunc(name: &str) -> Option<Op> {
    Some(match name {
        "invert" => Op::BitwiseNot,
        "left_shift" => Op::ShiftLeft,
        "right_shift" => Op::ShiftRight,
        "rint" => Op::Round,
        "conjugate" => Op::Conj,
        "power" => Op::Pow,
        name => Op::from_name(name)?,
    })
}

#[pymethods]
impl PyVar {
    /// NumPy's functions of a value are ops of its program.
    #[pyo3(signature = (ufunc, method, *inputs, **named))]
    fn __array_ufunc__<'py>(
        slf: &Bound<'py, Self>,
        ufunc: &Bound<'py, PyAny>,
        method: &str,
        inputs: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let name: String = ufunc.getattr("__name__")?.extract()?;
        if method != "__call__" {
            let text = format!("numpy.{name}.{method} of a castwise.Var: castwise has no methods of functions");
            return Err(PyTypeError::new_err(text));
        }
        if let Some(given) = named.and_then(|n| n.keys().iter().next()) {
            let text = format!("numpy.{name} of a castwise.Var takes operands only, no `{given}`");
            return Err(PyTypeError::new_err(text));
        }
        let none = || PyTypeError::new_err(format!("castwise has no op for numpy.{name}"));
        let op = of_ufunc(&name).ok_or_else(none)?;
        let operands = if name == "rint" { vec![PyVar::in_float(slf)?] } else { inputs.iter().collect() };
        applied(slf.py(), &Applied::Op(op, Attrs::default()), &operands)
    }

    /// NumPy's functions of a value: those that have a meaning in a program are `castwise/_array_function.py`'s.
    fn __array_function__<'py>(
        slf: &Bound<'py, Self>,
        func: &Bound<'py, PyAny>,
        _types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyAny>,
        kwargs: &Bound<'py, PyAny>,
    ) -> Made<'py> {
        slf.py().import("castwise._array_function")?.getattr("apply")?.call1((func, args, kwargs))
    }

    /// The dtype of the value, by name.
    ///
    /// >>> import castwise
    /// >>> x = castwise.Program("jax").data("x", "bf16", ["n", 3])
    /// >>> (x * 2).dtype
    /// 'bf16'
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.typed(py, |t| t.dtype(&self.var)).map(DType::name)
    }

    /// The shape of the value; `None` for extents that a call determines.
    ///
    /// >>> import castwise
    /// >>> x = castwise.Program("jax").data("x", "bf16", ["n", 3])
    /// >>> x.sum(dim=0).shape
    /// (3,)
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.extents(py)?)
    }

    /// The value in another dtype, as PyTorch names a cast.
    ///
    /// >>> import castwise
    /// >>> x = castwise.Program("torch").data("x", "bf16", ["n", 3])
    /// >>> x.to("f32").dtype
    /// 'f32'
    fn to<'py>(slf: &Bound<'py, Self>, dtype: &Bound<'py, PyAny>) -> Made<'py> {
        let attrs = Attrs::cast(dtypes::of_object(dtype)?);
        applied(slf.py(), &Applied::Op(Op::Cast, attrs), &[slf.clone().into_any()])
    }

    /// The number of dims.
    ///
    /// >>> import castwise
    /// >>> x = castwise.Program("jax").data("x", "bf16", ["n", 3])
    /// >>> x.ndim
    /// 2
    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.extents(py)?.len())
    }

    /// Whether the value is weak: under JAX's rules it then promotes as a Python scalar does.
    ///
    /// >>> import castwise
    /// >>> x = castwise.Program("jax").data("x", "bf16", ["n", 3])
    /// >>> x.weak
    /// False
    #[getter]
    fn weak(&self, py: Python<'_>) -> PyResult<bool> {
        self.typed(py, |t| Some(t.is_weak(&self.var)))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let typed = self.typed(py, |t| Some((t.dtype(&self.var)?, t.shape(&self.var)?.to_vec())));
        match typed {
            Ok((dtype, shape)) => {
                let dims: Vec<String> = shape.iter().map(ToString::to_string).collect();
                format!("<castwise.Var {dtype}[{}]>", dims.join(", "))
            }
            Err(_) => "<castwise.Var of a program with mistakes>".to_string(),
        }
    }

    fn __bool__(&self) -> PyResult<bool> {
        let text = "a castwise.Var has no value while a function is traced: use castwise.where(condition, a, b), \
                    and `&`, `|` and `~` instead of `and`, `or` and `not`";
        Err(PyValueError::new_err(text))
    }

    #[pyo3(signature = (*_args, **_named))]
    fn __array__(&self, _args: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        Err(PyTypeError::new_err("a castwise.Var has no elements while a function is traced"))
    }

    fn __int__(&self) -> PyResult<Py<PyAny>> {
        Err(no_value("an int"))
    }

    fn __float__(&self) -> PyResult<Py<PyAny>> {
        Err(no_value("a float"))
    }

    fn __complex__(&self) -> PyResult<Py<PyAny>> {
        Err(no_value("a complex number"))
    }

    fn __index__(&self) -> PyResult<Py<PyAny>> {
        Err(no_value("an index"))
    }

    fn __len__(&self) -> PyResult<usize> {
        Err(PyTypeError::new_err("a castwise.Var has no length while a function is traced"))
    }

    fn __contains__(&self, _item: &Bound<'_, PyAny>) -> PyResult<bool> {
        Err(PyTypeError::new_err("a castwise.Var has no elements to look for while a function is traced"))
    }

    #[pyo3(signature = (*_args, **_named))]
    fn __dlpack__(&self, _args: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        Err(PyTypeError::new_err("a castwise.Var has no elements while a function is traced"))
    }

    fn __iter__(&self) -> PyResult<Py<PyAny>> {
        Err(PyTypeError::new_err("a castwise.Var can't be iterated over while a function is traced"))
    }
}

/// What a conversion to a number raises, as the array API standard says.
fn no_value(what: &str) -> PyErr {
    PyValueError::new_err(format!("a castwise.Var has no value while a function is traced, so it can't be {what}"))
}
