//! Programs and their handles.
//!
//! Guarantees: operators, methods and functions of a handle are the ops of castwise's table, found by name; each node has
//! the line of Python code that made it. Does not: compute.

use castwise::ops::Choice;
use castwise::shape::{Dim, Dims};
use castwise::{Attrs, Composite, DType, Eager, Op, Operand, Program, Scalar, Var, View, with_location};
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::{self, Argument, Library};
use crate::compiled::parse;
use crate::composites::{Applied, CompositeFunction};
use crate::dtypes;
use crate::errors::exception;
use crate::lazy;
use crate::place::here;
use crate::rules;
use crate::{html, views};

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

/// A scalar as a Python number.
pub fn python_scalar(py: Python<'_>, s: Scalar) -> PyResult<Bound<'_, PyAny>> {
    Ok(match s {
        Scalar::Bool(v) => v.into_pyobject(py)?.to_owned().into_any(),
        Scalar::Int(v) => v.into_pyobject(py)?.into_any(),
        Scalar::Float(v) => v.into_pyobject(py)?.into_any(),
        Scalar::Complex(v) => v.into_pyobject(py)?.into_any(),
    })
}

/// What a composite of a number raises.
fn no_array() -> PyErr {
    PyTypeError::new_err("the first operand is a number, not an array")
}

/// Applies an op or composite to Python objects: to handles, of which at least one is a program's, in the program; to arrays at
/// once.
pub fn applied<'py>(py: Python<'py>, what: &Applied, operands: &[Bound<'py, PyAny>]) -> PyResult<Bound<'py, PyAny>> {
    let Some(first) = operands.iter().find_map(|o| o.cast::<PyVar>().ok()) else {
        return eager(py, what, operands);
    };
    let program = &first.get().program;
    let mut all: SmallVec<[Operand; 4]> = SmallVec::new();
    for (i, obj) in operands.iter().enumerate() {
        all.push(operand(py, program, obj, what.operands().get(i).copied().unwrap_or("x"))?);
    }
    let var = with_location(here(py), || what.to(&all)).ok_or_else(no_array)?;
    Ok(Bound::new(py, PyVar { program: program.clone(), var })?.into_any())
}

fn operand(py: Python<'_>, program: &Program, obj: &Bound<'_, PyAny>, name: &str) -> PyResult<Operand> {
    if let Ok(var) = obj.cast::<PyVar>() {
        return Ok(Operand::Var(var.get().var.clone()));
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

/// Computes an op or composite of arrays, under the rules of their library.
fn eager<'py>(py: Python<'py>, what: &Applied, operands: &[Bound<'py, PyAny>]) -> PyResult<Bound<'py, PyAny>> {
    let mut arguments: SmallVec<[Argument<'py>; 4]> = SmallVec::new();
    for (i, obj) in operands.iter().enumerate() {
        arguments.push(arrays::argument(obj, what.operands().get(i).copied().unwrap_or("x"))?);
    }
    let libraries = || {
        arguments.iter().filter_map(|a| match a {
            Argument::Array(a) => Some(a.library),
            Argument::Scalar(_) => None,
        })
    };
    let settings = rules::Asked::new(None, "exact")?.of(py, libraries())?;
    let library = libraries().next().unwrap_or(Library::NumPy);
    if matches!((what, arguments.first()), (Applied::Composite(_), Some(Argument::Scalar(_)))) {
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
        py.detach(made).unwrap_or_else(|| Err(castwise::Error::Internal("a composite of a number".into())))
    });
    arrays::result(py, result.map_err(|e| exception(py, &e, None))?, library)
}

/// An op as a Python function.
#[pyclass(frozen, module = "castwise", name = "OpFunction")]
pub struct OpFunction {
    op: Op,
    /// The operands that are given already: `x` of the method `x.exp`.
    given: Option<Py<PyAny>>,
}

impl OpFunction {
    fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut operands: SmallVec<[Option<Bound<'py, PyAny>>; 4]> = SmallVec::new();
        operands.extend(self.given.iter().map(|g| Some(g.bind(py).clone())));
        operands.extend(args.iter().map(Some));
        let attrs = attributes(self.op, &mut operands, named)?;
        let names = self.op.def().operands;
        if operands.len() != names.len() || operands.iter().any(Option::is_none) {
            let (n, all) = (operands.iter().flatten().count(), names.join(", "));
            return Err(PyTypeError::new_err(format!("{}({all}) takes {} operands, not {n}", self.op, names.len())));
        }
        let operands: Vec<Bound<'py, PyAny>> = operands.into_iter().flatten().collect();
        applied(py, &Applied::Op(self.op, attrs), &operands)
    }
}

#[pymethods]
impl OpFunction {
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
        self.op.name()
    }

    #[getter]
    fn __doc__(&self) -> &'static str {
        self.op.def().doc.trim()
    }

    /// Other names of the op.
    #[getter]
    fn aliases(&self) -> Vec<&'static str> {
        self.op.def().aliases.to_vec()
    }

    /// The names of the operands.
    #[getter]
    fn operands(&self) -> Vec<&'static str> {
        self.op.def().operands.to_vec()
    }

    fn __repr__(&self) -> String {
        format!("<castwise op {}({})>", self.op, self.op.def().operands.join(", "))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("castwise._core")?.getattr("op")?, (self.op.name(),)))
    }
}

/// Reads keyword arguments: operands by name into their places, and the attributes.
fn attributes<'py>(
    op: Op,
    operands: &mut SmallVec<[Option<Bound<'py, PyAny>>; 4]>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Attrs> {
    let (mut attrs, def) = (Attrs::default(), op.def());
    if matches!(op, Op::Cast | Op::ViewAs) && operands.len() == 2 {
        attrs.dtype = operands.pop().flatten().map(|d| dtypes::of_object(&d)).transpose()?;
    }
    for (key, value) in named.into_iter().flat_map(|d| d.iter()) {
        let key: String = key.extract()?;
        match &key[..] {
            "dim" | "dims" | "axis" if op.has_dims() => {
                let one = |v: &Bound<'_, PyAny>| v.extract::<i64>();
                attrs.dims = match one(&value) {
                    _ if value.is_none() => None,
                    Ok(n) => Some([n].into()),
                    Err(_) => Some(value.try_iter()?.map(|v| one(&v?)).collect::<PyResult<Vec<_>>>()?.into()),
                };
            }
            "keepdim" | "keepdims" if op.is_reduction() => attrs.keepdim = value.is_truthy()?,
            name if def.number.is_some_and(|of| of.name == name) => attrs.number = Some(value.extract::<f64>()?.into()),
            name if def.choice.is_some_and(|of| of.name == name) => {
                let word: String = match value.extract::<bool>() {
                    Ok(yes) => yes.to_string(),
                    Err(_) => value.extract()?,
                };
                let unknown = || PyValueError::new_err(format!("{op} has no {name} {word:?}"));
                attrs.choice = Some(Choice::from_word(&word).ok_or_else(unknown)?);
            }
            "axis" if def.operands.len() == 2 => attrs.axis = Some(value.extract()?),
            "dtype" if op.has_dims() || matches!(op, Op::Cast | Op::ViewAs) => {
                attrs.dtype = if value.is_none() { None } else { Some(dtypes::of_object(&value)?) };
            }
            name => {
                let Some(at) = def.operands.iter().position(|o| *o == name) else {
                    return Err(PyTypeError::new_err(format!("{op} has no argument `{name}`")));
                };
                if operands.len() <= at {
                    operands.resize_with(at + 1, || None);
                }
                if operands[at].replace(value).is_some() {
                    return Err(PyTypeError::new_err(format!("{op}: the argument `{name}` is given twice")));
                }
            }
        }
    }
    Ok(attrs)
}

/// The op or composite of a name as a function of the operands that are not given.
pub fn function<'py>(py: Python<'py>, name: &str, given: Option<Py<PyAny>>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(op) = op_named(name) {
        return Ok(Some(Bound::new(py, OpFunction { op, given })?.into_any()));
    }
    let Some(composite) = Composite::named(name) else { return Ok(None) };
    Ok(Some(Bound::new(py, CompositeFunction::new(composite, given))?.into_any()))
}

/// The op of a name.
pub fn op_named(name: &str) -> Option<Op> {
    Op::from_name(name)
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

    /// Methods: the ops of the table and the composites, with this value as the first operand.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let given = Some(slf.clone().into_any().unbind()).filter(|_| !name.starts_with('_'));
        let none = || PyAttributeError::new_err(format!("a Var has no attribute or op `{name}`"));
        function(slf.py(), name, given.ok_or_else(none)?.into())?.ok_or_else(none)
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

    /// Reads a program's text.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<PyProgram> {
        Ok(PyProgram { program: parse(py, text)? })
    }

    /// A placeholder: an argument of the compiled program.
    #[pyo3(signature = (name, dtype, shape=None))]
    fn data(
        &self,
        py: Python<'_>,
        name: &str,
        dtype: &Bound<'_, PyAny>,
        shape: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyVar> {
        let dtype = dtypes::of_object(dtype)?;
        let mut dims = Vec::new();
        for d in shape.map(|s| s.try_iter()).transpose()?.into_iter().flatten() {
            dims.push(dim(&d?)?);
        }
        let var = with_location(here(py), || self.program.data(name, dtype, Dims(dims)));
        Ok(PyVar::new(self.program.clone(), var))
    }

    /// An array that is part of the program.
    fn constant(&self, py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<PyVar> {
        let t = arrays::array(array, "array")?.tensor().map_err(|e| exception(py, &e, None))?;
        Ok(PyVar::new(self.program.clone(), with_location(here(py), || self.program.constant(t))))
    }

    /// Adds an expression of Vars and numbers, given by name.
    fn expression(&self, py: Python<'_>, text: &str, names: &Bound<'_, PyDict>) -> PyResult<PyVar> {
        let fail = |e: castwise::Error| exception(py, &e, Some(text));
        let scalar = |name: &str| names.get_item(name).ok().flatten().and_then(|v| arrays::scalar(&v).ok().flatten());
        let var = self.program.expression_with(text, scalar).map_err(fail)?;
        Ok(PyVar::new(self.program.clone(), var))
    }

    /// Declares the results, in order; those given by keyword have names.
    #[pyo3(signature = (*results, **named))]
    fn fetch(&self, py: Python<'_>, results: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let var = |obj: &Bound<'_, PyAny>| -> PyResult<Var> {
            Ok(obj.cast::<PyVar>().map_err(|_| PyTypeError::new_err("a result is no castwise.Var"))?.get().var.clone())
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

    /// Raises all mistakes of the program, if there are any.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.program.check().map_err(|e| exception(py, &e, None))
    }

    /// The typed program as text: every dtype and shape, and every cast with its reason.
    fn infer(&self, py: Python<'_>) -> PyResult<String> {
        self.program.infer().map(|t| t.to_string()).map_err(|e| exception(py, &e, None))
    }

    /// The casts with their reasons, and the typed program.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        self.program.infer().map(|t| t.explain()).map_err(|e| exception(py, &e, None))
    }

    /// The same program under other rules.
    fn with_rules(&self, rules: &str) -> PyResult<PyProgram> {
        let settings = rules::settings(rules)?;
        Ok(PyProgram { program: self.program.with_rules(settings.rules) })
    }

    /// The rules, with those of their settings that are on.
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
