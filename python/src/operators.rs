//! What handles of programs and eager arrays have in common: operators, ops as methods, views and indices.
//!
//! Guarantees: each is an op or a view of castwise, found by name. Does not: compute, or decide dtypes and shapes.

use castwise::{Attrs, Op, Rules, View};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::apply::applied;
use crate::eager::PyArray;
use crate::functions::{self, Applied};
use crate::var::PyVar;
use crate::views;

/// The class from which `Var` and `Array` inherit their operators, and the methods that both have.
///
/// >>> import castwise
/// >>> castwise.xp("torch").asarray([1, 2]) * 0.5
/// castwise.Array([0.5 1.0], f32, rules='torch')
#[pyclass(frozen, subclass, module = "castwise._core")]
pub struct Operators;

/// What an operator or function gives.
pub type Made<'py> = PyResult<Bound<'py, PyAny>>;

fn binary<'py>(x: &Bound<'py, Operators>, op: Op, y: &Bound<'py, PyAny>) -> Made<'py> {
    applied(x.py(), &Applied::Op(op, Attrs::default()), &[x.clone().into_any(), y.clone()])
}

fn reversed<'py>(x: &Bound<'py, Operators>, op: Op, y: &Bound<'py, PyAny>) -> Made<'py> {
    applied(x.py(), &Applied::Op(op, Attrs::default()), &[y.clone(), x.clone().into_any()])
}

/// `base ** exponent`; with a modulus, as `pow` of Python's integers takes one, it is refused.
fn power<'py>(
    base: &Bound<'py, PyAny>,
    exponent: &Bound<'py, PyAny>,
    modulus: Option<&Bound<'py, PyAny>>,
) -> Made<'py> {
    if modulus.is_some() {
        return Err(PyTypeError::new_err("`pow` takes no modulus"));
    }
    applied(base.py(), &Applied::Op(Op::Pow, Attrs::default()), &[base.clone(), exponent.clone()])
}

/// What `x` is after `x += other` and the like, of which `made` is the op's result: under rules whose arrays keep their dtype
/// and shape there, the result in those.
#[pyfunction]
pub fn assigned<'py>(x: &Bound<'py, Operators>, made: Bound<'py, PyAny>) -> Made<'py> {
    // The mistakes of a program are raised together, when it is typed.
    let rank = extents(x).map_or(0, |all| all.len());
    if !rules(x)?.writes_in_place(rank) || alike(x, &made) {
        return Ok(made);
    }
    applied(x.py(), &Applied::Op(Op::Assign, Attrs::default()), &[x.clone().into_any(), made])
}

fn unary<'py>(x: &Bound<'py, Operators>, op: Op) -> Made<'py> {
    applied(x.py(), &Applied::Op(op, Attrs::default()), &[x.clone().into_any()])
}

/// What the operators are inherited by, which no other class does.
fn neither() -> PyErr {
    PyTypeError::new_err("an object that is neither a castwise.Var nor a castwise.Array")
}

/// Views of a value, one after the other.
fn viewed<'py>(x: &Bound<'py, Operators>, views: impl IntoIterator<Item = View>) -> Made<'py> {
    if let Ok(var) = x.cast::<PyVar>() {
        return var.get().viewed(x.py(), views);
    }
    x.cast::<PyArray>().map_err(|_| neither())?.get().viewed(x.py(), views)
}

/// The rules under which ops of a value are computed.
fn rules(x: &Bound<'_, Operators>) -> PyResult<Rules> {
    if let Ok(var) = x.cast::<PyVar>() {
        return Ok(var.get().program().settings().rules);
    }
    Ok(x.cast::<PyArray>().map_err(|_| neither())?.get().settings().rules)
}

/// Whether two values have one dtype and one shape, so that an assignment changes neither.
fn alike(x: &Bound<'_, Operators>, y: &Bound<'_, PyAny>) -> bool {
    if let (Ok(x), Ok(y)) = (x.cast::<PyVar>(), y.cast::<PyVar>()) {
        return x.get().is_like(x.py(), y.get());
    }
    let (Ok(x), Ok(y)) = (x.cast::<PyArray>(), y.cast::<PyArray>()) else { return false };
    let (x, y) = (x.get().tensor(), y.get().tensor());
    x.dtype() == y.dtype() && x.shape() == y.shape()
}

/// The extents; `None` for those that a call determines.
fn extents(x: &Bound<'_, Operators>) -> PyResult<Vec<Option<usize>>> {
    if let Ok(var) = x.cast::<PyVar>() {
        return var.get().extents(x.py());
    }
    let array = x.cast::<PyArray>().map_err(|_| neither())?;
    Ok(array.get().tensor().shape().iter().copied().map(Some).collect())
}

#[pymethods]
impl Operators {
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
        modulus: Option<&Bound<'py, PyAny>>,
    ) -> Made<'py> {
        power(slf, other, modulus)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulus: Option<&Bound<'py, PyAny>>,
    ) -> Made<'py> {
        power(other, slf, modulus)
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
        let none = || PyAttributeError::new_err(format!("there is no attribute or op `{name}`"));
        functions::named(slf.py(), name, Some(given.ok_or_else(none)?))?.ok_or_else(none)
    }

    /// The elements in row-major order under another shape, in which one extent may be -1.
    ///
    /// >>> import castwise
    /// >>> x = castwise.xp("numpy").asarray([[1, 2], [3, 4]])
    /// >>> x.reshape(4, -1).shape
    /// (4, 1)
    #[pyo3(signature = (*shape))]
    fn reshape<'py>(slf: &Bound<'py, Self>, shape: &Bound<'py, PyTuple>) -> Made<'py> {
        viewed(slf, [View::Reshape(views::integers(shape)?.into())])
    }

    /// Two dims swapped, as in PyTorch; `permute` reorders all.
    ///
    /// >>> import castwise
    /// >>> x = castwise.xp("numpy").asarray([[1, 2], [3, 4]])
    /// >>> x.unsqueeze(-1).transpose(0, 1).shape
    /// (2, 2, 1)
    fn transpose<'py>(slf: &Bound<'py, Self>, a: i64, b: i64) -> Made<'py> {
        viewed(slf, [View::Transpose(a, b)])
    }

    /// The dims in another order.
    ///
    /// >>> import castwise
    /// >>> x = castwise.xp("numpy").asarray([[1, 2], [3, 4]])
    /// >>> x.unsqueeze(0).permute(2, 0, 1).shape
    /// (2, 1, 2)
    #[pyo3(signature = (*dims))]
    fn permute<'py>(slf: &Bound<'py, Self>, dims: &Bound<'py, PyTuple>) -> Made<'py> {
        viewed(slf, [View::Permute(views::integers(dims)?.into())])
    }

    /// The dims in reversed order.
    ///
    /// >>> import castwise
    /// >>> x = castwise.xp("numpy").asarray([[1, 2], [3, 4]])
    /// >>> x.T
    /// castwise.Array([[1 3]
    ///                 [2 4]], i64, rules='numpy')
    #[getter(T)]
    fn reversed_dims<'py>(slf: &Bound<'py, Self>) -> Made<'py> {
        let dims: Vec<i64> = (0..extents(slf)?.len() as i64).rev().collect();
        viewed(slf, [View::Permute(dims.into())])
    }

    /// The last two dims swapped.
    ///
    /// >>> import castwise
    /// >>> x = castwise.xp("numpy").asarray([[1, 2], [3, 4]])
    /// >>> x.mT[0]
    /// castwise.Array([1 3], i64, rules='numpy')
    #[getter(mT)]
    fn swapped_matrix<'py>(slf: &Bound<'py, Self>) -> Made<'py> {
        viewed(slf, [View::Transpose(-2, -1)])
    }

    /// A new dim of extent 1 before this one; -1 is behind the last.
    ///
    /// >>> import castwise
    /// >>> x = castwise.xp("numpy").asarray([[1, 2], [3, 4]])
    /// >>> x.unsqueeze(0).shape
    /// (1, 2, 2)
    fn unsqueeze<'py>(slf: &Bound<'py, Self>, dim: i64) -> Made<'py> {
        viewed(slf, [View::Unsqueeze(dim)])
    }

    /// Without this dim, if its extent is 1.
    ///
    /// >>> import castwise
    /// >>> x = castwise.xp("numpy").asarray([[1, 2], [3, 4]])
    /// >>> x[:1].squeeze(0).shape
    /// (2,)
    fn squeeze<'py>(slf: &Bound<'py, Self>, dim: i64) -> Made<'py> {
        viewed(slf, [View::Squeeze(dim)])
    }

    /// Dims of extent 1 repeated and leading dims added, to this shape; -1 is an extent that stays.
    ///
    /// >>> import castwise
    /// >>> x = castwise.xp("numpy").asarray([[1, 2], [3, 4]])
    /// >>> x.expand(3, -1, -1).shape
    /// (3, 2, 2)
    #[pyo3(signature = (*shape))]
    fn expand<'py>(slf: &Bound<'py, Self>, shape: &Bound<'py, PyTuple>) -> Made<'py> {
        viewed(slf, [View::Expand(views::integers(shape)?.into())])
    }

    /// These dims reversed.
    ///
    /// >>> import castwise
    /// >>> x = castwise.xp("numpy").asarray([[1, 2], [3, 4]])
    /// >>> x.flip(0)[0]
    /// castwise.Array([3 4], i64, rules='numpy')
    #[pyo3(signature = (*dims))]
    fn flip<'py>(slf: &Bound<'py, Self>, dims: &Bound<'py, PyTuple>) -> Made<'py> {
        viewed(slf, [View::Flip(views::integers(dims)?.into())])
    }

    /// Slices, new dims by `None`, `...`, and integers where the extent is known.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> Made<'py> {
        let shape = extents(slf)?;
        viewed(slf, views::of_index(index, &shape)?)
    }
}
