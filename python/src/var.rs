//! Handles of a program: what functions are traced with.
//!
//! Guarantees: operators, methods and NumPy's functions of a handle are those of castwise's tables, found by name; each node has
//! the line of Python code that made it. Does not: compute.

use castwise::{Attrs, DType, Op, Program, Var, View, with_location};
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::apply::applied;
use crate::errors::exception;
use crate::functions::{self, Applied};
use crate::place::here;
use crate::views;

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
#[pyclass(frozen, module = "castwise", name = "Var")]
pub struct PyVar {
    program: Program,
    var: Var,
}

impl PyVar {
    pub fn new(program: Program, var: Var) -> PyVar {
        PyVar { program, var }
    }

    pub fn var(&self) -> &Var {
        &self.var
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The extents; `None` for those that a call determines.
    fn extents(&self, py: Python<'_>) -> PyResult<Vec<Option<usize>>> {
        let fixed = |d: &castwise::shape::SymDim| match d {
            castwise::shape::SymDim::Fixed(n) => Some(*n),
            _ => None,
        };
        self.typed(py, |t| Some(t.shape(&self.var)?.iter().map(fixed).collect()))
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

/// What an operator or function gives.
type Made<'py> = PyResult<Bound<'py, PyAny>>;

fn binary<'py>(x: &Bound<'py, PyVar>, op: Op, y: &Bound<'py, PyAny>) -> Made<'py> {
    applied(x.py(), &Applied::Op(op, Attrs::default()), &[x.clone().into_any(), y.clone()])
}

fn reversed<'py>(x: &Bound<'py, PyVar>, op: Op, y: &Bound<'py, PyAny>) -> Made<'py> {
    applied(x.py(), &Applied::Op(op, Attrs::default()), &[y.clone(), x.clone().into_any()])
}

/// Views of a value, one after the other.
fn viewed<'py>(x: &Bound<'py, PyVar>, views: impl IntoIterator<Item = View>) -> Made<'py> {
    let (PyVar { program, var }, at) = (x.get(), here(x.py()));
    let var = with_location(at, || views.into_iter().fold(var.clone(), |v, view| v.view(view)));
    Ok(Bound::new(x.py(), PyVar { program: program.clone(), var })?.into_any())
}

fn unary<'py>(x: &Bound<'py, PyVar>, op: Op) -> Made<'py> {
    applied(x.py(), &Applied::Op(op, Attrs::default()), &[x.clone().into_any()])
}

#[pymethods]
impl PyVar {
    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        binary(slf, Op::Add, other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        reversed(slf, Op::Add, other)
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        binary(slf, Op::Sub, other)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        reversed(slf, Op::Sub, other)
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        binary(slf, Op::Mul, other)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        reversed(slf, Op::Mul, other)
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        binary(slf, Op::Div, other)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        reversed(slf, Op::Div, other)
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        binary(slf, Op::FloorDivide, other)
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        reversed(slf, Op::FloorDivide, other)
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        binary(slf, Op::Remainder, other)
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        reversed(slf, Op::Remainder, other)
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        binary(slf, Op::BitwiseAnd, other)
    }

    fn __rand__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        reversed(slf, Op::BitwiseAnd, other)
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        binary(slf, Op::BitwiseOr, other)
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        reversed(slf, Op::BitwiseOr, other)
    }

    fn __xor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        binary(slf, Op::BitwiseXor, other)
    }

    fn __rxor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        reversed(slf, Op::BitwiseXor, other)
    }

    fn __lshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        binary(slf, Op::ShiftLeft, other)
    }

    fn __rlshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        reversed(slf, Op::ShiftLeft, other)
    }

    fn __rshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        binary(slf, Op::ShiftRight, other)
    }

    fn __rrshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        reversed(slf, Op::ShiftRight, other)
    }

    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        _modulo: Option<&Bound<'py, PyAny>>,
    ) -> Made<'py> {
        binary(slf, Op::Pow, other)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        _modulo: Option<&Bound<'py, PyAny>>,
    ) -> Made<'py> {
        reversed(slf, Op::Pow, other)
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> Made<'py> {
        unary(slf, Op::Neg)
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> Made<'py> {
        unary(slf, Op::Positive)
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> Made<'py> {
        unary(slf, Op::Abs)
    }

    fn __invert__<'py>(slf: &Bound<'py, Self>) -> Made<'py> {
        unary(slf, Op::BitwiseNot)
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        compare: pyo3::pyclass::CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        use pyo3::pyclass::CompareOp;
        let op = match compare {
            CompareOp::Eq => Op::Eq,
            CompareOp::Ne => Op::Ne,
            CompareOp::Lt => Op::Lt,
            CompareOp::Le => Op::Le,
            CompareOp::Gt => Op::Gt,
            CompareOp::Ge => Op::Ge,
        };
        binary(slf, op, other)
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        slf.as_ptr() as isize
    }

    /// Methods: ops, composites and generators, with this value as the first operand.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let given = Some(slf.clone().into_any().unbind()).filter(|_| !name.starts_with('_'));
        let none = || PyAttributeError::new_err(format!("a Var has no attribute or op `{name}`"));
        functions::named(slf.py(), name, Some(given.ok_or_else(none)?))?.ok_or_else(none)
    }

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
        if method != "__call__" || named.is_some_and(|n| !n.is_empty()) {
            let text = format!("numpy.{name} of a castwise.Var takes operands only: no `out`, no `where`, no {method}");
            return Err(PyTypeError::new_err(text));
        }
        let none = || PyTypeError::new_err(format!("castwise has no op for numpy.{name}"));
        let op = of_ufunc(&name).ok_or_else(none)?;
        applied(slf.py(), &Applied::Op(op, Attrs::default()), &inputs.iter().collect::<Vec<_>>())
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

    /// The elements in row-major order under another shape, in which one extent may be -1.
    #[pyo3(signature = (*shape))]
    fn reshape<'py>(slf: &Bound<'py, Self>, shape: &Bound<'py, PyTuple>) -> Made<'py> {
        viewed(slf, [View::Reshape(views::integers(shape)?.into())])
    }

    /// Two dims swapped, as in PyTorch; `permute` reorders all.
    fn transpose<'py>(slf: &Bound<'py, Self>, a: i64, b: i64) -> Made<'py> {
        viewed(slf, [View::Transpose(a, b)])
    }

    /// The dims in another order.
    #[pyo3(signature = (*dims))]
    fn permute<'py>(slf: &Bound<'py, Self>, dims: &Bound<'py, PyTuple>) -> Made<'py> {
        viewed(slf, [View::Permute(views::integers(dims)?.into())])
    }

    /// The dims in reversed order.
    #[getter(T)]
    fn reversed_dims<'py>(slf: &Bound<'py, Self>) -> Made<'py> {
        let dims: Vec<i64> = (0..slf.get().extents(slf.py())?.len() as i64).rev().collect();
        viewed(slf, [View::Permute(dims.into())])
    }

    /// The last two dims swapped.
    #[getter(mT)]
    fn swapped_matrix<'py>(slf: &Bound<'py, Self>) -> Made<'py> {
        viewed(slf, [View::Transpose(-2, -1)])
    }

    /// A new dim of extent 1 before this one; -1 is behind the last.
    fn unsqueeze<'py>(slf: &Bound<'py, Self>, dim: i64) -> Made<'py> {
        viewed(slf, [View::Unsqueeze(dim)])
    }

    /// Without this dim, if its extent is 1.
    fn squeeze<'py>(slf: &Bound<'py, Self>, dim: i64) -> Made<'py> {
        viewed(slf, [View::Squeeze(dim)])
    }

    /// Dims of extent 1 repeated and leading dims added, to this shape; -1 is an extent that stays.
    #[pyo3(signature = (*shape))]
    fn expand<'py>(slf: &Bound<'py, Self>, shape: &Bound<'py, PyTuple>) -> Made<'py> {
        viewed(slf, [View::Expand(views::integers(shape)?.into())])
    }

    /// These dims reversed.
    #[pyo3(signature = (*dims))]
    fn flip<'py>(slf: &Bound<'py, Self>, dims: &Bound<'py, PyTuple>) -> Made<'py> {
        viewed(slf, [View::Flip(views::integers(dims)?.into())])
    }

    /// Slices, new dims by `None`, `...`, and integers where the extent is known.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> Made<'py> {
        let shape = slf.get().extents(slf.py())?;
        viewed(slf, views::of_index(index, &shape)?)
    }

    /// The dtype of the value, by name.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.typed(py, |t| t.dtype(&self.var)).map(DType::name)
    }

    /// The shape of the value; `None` for extents that a call determines.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.extents(py)?)
    }

    /// The number of dims.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.extents(py)?.len())
    }

    /// Whether the value is weak: under JAX's rules it then promotes as a Python scalar does.
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
