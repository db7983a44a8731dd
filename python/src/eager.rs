//! Arrays of `castwise.xp`: tensors with their rules, computed at once.
//!
//! Guarantees: an array does not change: what comes from others and what others get is copied, so that arrays share memory among
//! themselves only. All operands of an op have the same rules. Does not: decide dtypes, or have functions of its own; ops are the tables'.

use castwise::{Category, DType, Eager, Scalar, Settings, Tensor, Var, View, with_location};
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::apply::python_scalar;
use crate::arrays::{self, Argument, Library, Memory};
use crate::dlpack::Owned;
use crate::dtypes;
use crate::errors::exception;
use crate::operators::{Made, Operators};
use crate::place::here;
use crate::rules;

/// An array of `castwise.xp`: operators, methods and functions of it are computed at once, under its rules.
///
/// It does not change: an index can't be assigned to, and `x += y` makes a new array. `numpy.asarray(x)`, `numpy.from_dlpack(x)` and
/// `torch.from_dlpack(x)` copy it. dtypes are castwise's names.
///
/// >>> import castwise
/// >>> x = castwise.xp("torch").asarray([1, 2, 3])
/// >>> x / 2
/// castwise.Array([0.5 1.0 1.5], f32, rules='torch')
/// >>> x.dtype, x.shape, float(x.sum())
/// ('i64', (3,), 6.0)
#[pyclass(frozen, extends = Operators, module = "castwise", name = "Array")]
pub struct PyArray {
    tensor: Tensor,
    settings: Settings,
    weak: bool,
}

impl PyArray {
    fn handle<'py>(py: Python<'py>, tensor: Tensor, settings: Settings, weak: bool) -> Made<'py> {
        let array = PyArray { tensor, settings, weak };
        Ok(Bound::new(py, PyClassInitializer::from(Operators).add_subclass(array))?.into_any())
    }

    /// What an eager computation gave, as an array.
    pub fn made<'py>(py: Python<'py>, settings: Settings, v: &Var<Eager>) -> Made<'py> {
        let tensor = v.result().map_err(|e| exception(py, &e, None))?;
        PyArray::handle(py, tensor, settings, v.is_weak())
    }

    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The eager value.
    pub fn value(&self) -> Var<Eager> {
        let cx = Eager::with_settings(self.settings);
        if self.weak { cx.weak_tensor(&self.tensor) } else { cx.tensor(&self.tensor) }
    }

    /// Views of the elements, one after the other.
    pub fn viewed<'py>(&self, py: Python<'py>, views: impl IntoIterator<Item = View>) -> Made<'py> {
        let made = with_location(here(py), || views.into_iter().fold(self.value(), |v, view| v.view(view)));
        PyArray::made(py, self.settings, &made)
    }

    /// The only element, as a number.
    fn number(&self, py: Python<'_>) -> PyResult<Scalar> {
        if self.tensor.rank() > 0 {
            let n = self.tensor.rank();
            return Err(PyTypeError::new_err(format!("an array of {n} dims is no number: only one without dims is")));
        }
        let cast = |d: DType| self.value().cast(d).result();
        let dtype = self.tensor.dtype();
        let read = || -> castwise::Result<Scalar> {
            Ok(match dtype.category() {
                Category::Bool => Scalar::Bool(self.tensor.item()?),
                Category::Int if dtype.is_unsigned() => Scalar::Int(cast(DType::U64)?.item::<u64>()?.into()),
                Category::Int => Scalar::Int(cast(DType::I64)?.item::<i64>()?.into()),
                Category::Float => Scalar::Float(cast(DType::F64)?.item()?),
                Category::Complex => Scalar::Complex(cast(DType::C128)?.item()?),
            })
        };
        read().map_err(|e| exception(py, &e, None))
    }

    fn python_number<'py>(&self, py: Python<'py>) -> Made<'py> {
        python_scalar(py, self.number(py)?)
    }
}

#[pymethods]
impl PyArray {
    /// The name of the dtype.
    ///
    /// >>> import castwise
    /// >>> castwise.xp("jax").asarray([1, 2]).dtype
    /// 'i32'
    #[getter]
    fn dtype(&self) -> &'static str {
        self.tensor.dtype().name()
    }

    /// The extents.
    ///
    /// >>> import castwise
    /// >>> castwise.xp("numpy").ones((2, 3)).shape
    /// (2, 3)
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor.shape())
    }

    /// The number of dims.
    ///
    /// >>> import castwise
    /// >>> castwise.xp("numpy").ones((2, 3)).ndim
    /// 2
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor.rank()
    }

    /// The number of elements.
    ///
    /// >>> import castwise
    /// >>> castwise.xp("numpy").ones((2, 3)).size
    /// 6
    #[getter]
    fn size(&self) -> usize {
        self.tensor.numel()
    }

    /// The device: `"cpu"`.
    ///
    /// >>> import castwise
    /// >>> castwise.xp("numpy").ones(2).device
    /// 'cpu'
    #[getter]
    fn device(&self) -> &'static str {
        "cpu"
    }

    /// The rules, with those of their settings that are on.
    ///
    /// >>> import castwise
    /// >>> castwise.xp("jax,x64").ones(2).rules
    /// 'jax,x64'
    #[getter]
    fn rules(&self) -> String {
        self.settings.named()
    }

    /// Whether the array promotes as a Python number does, as some do under JAX's rules.
    ///
    /// >>> import castwise
    /// >>> x = castwise.xp("jax").ones(2)
    /// >>> x.weak
    /// False
    #[getter]
    fn weak(&self) -> bool {
        self.weak
    }

    /// The array itself, on the device `"cpu"`; no other is known.
    ///
    /// >>> import castwise
    /// >>> castwise.xp("numpy").ones(2).to_device("cpu")
    /// castwise.Array([1.0 1.0], f64, rules='numpy')
    #[pyo3(signature = (device, /, *, stream=None))]
    fn to_device<'py>(
        slf: &Bound<'py, Self>,
        device: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let known = device.extract::<String>().is_ok_and(|d| d == "cpu");
        if !known || stream.is_some() {
            return Err(PyValueError::new_err("arrays are on the device \"cpu\", which has no streams"));
        }
        Ok(slf.clone())
    }

    /// The namespace of the array: `castwise.xp` of its rules.
    #[pyo3(signature = (*, api_version=None))]
    fn __array_namespace__<'py>(&self, py: Python<'py>, api_version: Option<&str>) -> Made<'py> {
        let version = PyDict::new(py);
        version.set_item("api_version", api_version)?;
        py.import("castwise._xp")?.getattr("of_array")?.call((self.settings.named(),), Some(&version))
    }

    /// NumPy's operators leave such an array to its own.
    #[classattr]
    fn __array_ufunc__() -> Option<u8> {
        None
    }

    /// A copy as an array of NumPy.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(&self, py: Python<'py>, dtype: Option<&Bound<'py, PyAny>>, copy: Option<bool>) -> Made<'py> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("an array of castwise.xp does not change: others get a copy"));
        }
        py.import("numpy")?;
        let made = arrays::result(py, self.tensor.clone(), Library::NumPy)?;
        match dtype {
            Some(dtype) => made.call_method1("astype", (dtype,)),
            None => Ok(made),
        }
    }

    /// A copy for libraries that take DLPack.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Py<PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> Made<'py> {
        if stream.is_some() || dl_device.is_some_and(|(kind, _)| kind != 1) {
            return Err(PyBufferError::new_err("arrays are on the CPU, which has no streams"));
        }
        if copy == Some(false) {
            return Err(PyBufferError::new_err("an array of castwise.xp does not change: others get a copy"));
        }
        Memory::new(Owned::new(self.tensor.clone())?).capsule(py, max_version.is_some_and(|(major, _)| major >= 1))
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.python_number(py)?.is_truthy()
    }

    fn __int__<'py>(&self, py: Python<'py>) -> Made<'py> {
        py.import("builtins")?.getattr("int")?.call1((self.python_number(py)?,))
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        match self.number(py)? {
            Scalar::Bool(v) => Ok(f64::from(u8::from(v))),
            Scalar::Int(v) => Ok(v as f64),
            Scalar::Float(v) => Ok(v),
            Scalar::Complex(_) => Err(PyTypeError::new_err("a complex number is no float: use `real` or `imag`")),
        }
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> Made<'py> {
        py.import("builtins")?.getattr("complex")?.call1((self.python_number(py)?,))
    }

    fn __index__<'py>(&self, py: Python<'py>) -> Made<'py> {
        match self.number(py)? {
            s @ Scalar::Int(_) => python_scalar(py, s),
            _ => Err(PyTypeError::new_err(format!("an array of {} is no index", self.tensor.dtype()))),
        }
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.tensor.shape().first().copied();
        first.ok_or_else(|| PyTypeError::new_err("an array without dims has no length"))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Made<'py> {
        let all = PyList::empty(py);
        for i in 0..self.__len__()? {
            let i = i as i64;
            let first = castwise::Slice { start: Some(i), end: Some(i + 1), step: 1 };
            all.append(self.viewed(py, [View::Slice(0, first), View::Squeeze(0)])?)?;
        }
        Ok(all.try_iter()?.into_any())
    }

    fn __setitem__(&self, _index: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        let text = "an array of castwise.xp does not change: make a new one, as with `xp.where(mask, value, x)`";
        Err(PyTypeError::new_err(text))
    }

    fn __repr__(&self) -> String {
        let (shown, dtype) = (self.tensor.to_string(), self.tensor.dtype());
        let shown = shown.replace('\n', "\n               ");
        format!("castwise.Array({shown}, {dtype}, rules='{}')", self.settings.named())
    }

    /// An array pickles as its elements, its dtype and its rules.
    #[expect(clippy::type_complexity, reason = "the arguments of `_core._array_of_bytes`")]
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Vec<usize>, &'static str, std::borrow::Cow<'static, [u8]>, String, bool))> {
        let whole = self.tensor.contiguous().map_err(|e| exception(py, &e, None))?;
        let bytes = std::borrow::Cow::Owned(whole.as_bytes().unwrap_or_default().to_vec());
        let arguments = (self.tensor.shape().to_vec(), self.dtype(), bytes, self.rules(), self.weak);
        Ok((py.import("castwise._core")?.getattr("_array_of_bytes")?, arguments))
    }
}

/// What `Array.__reduce__` names.
#[pyfunction]
pub fn _array_of_bytes<'py>(
    py: Python<'py>,
    shape: Vec<usize>,
    dtype: &Bound<'py, PyAny>,
    bytes: &[u8],
    rules: &str,
    weak: bool,
) -> Made<'py> {
    let made = Tensor::from_bytes(dtypes::of_object(dtype)?, shape, bytes).map_err(|e| exception(py, &e, None))?;
    PyArray::handle(py, made, rules::settings(rules)?, weak)
}

/// An array with the elements of another one, of any library, in a dtype if one is given.
#[pyfunction]
#[pyo3(signature = (obj, rules, dtype=None))]
pub fn array<'py>(
    py: Python<'py>,
    obj: &Bound<'py, PyAny>,
    rules: &str,
    dtype: Option<&Bound<'py, PyAny>>,
) -> Made<'py> {
    let settings = rules::settings(rules)?;
    let cx = Eager::with_settings(settings);
    let fail = |e| exception(py, &e, None);
    let value = match obj.cast::<PyArray>() {
        Ok(own) if own.get().settings == settings => own.get().value(),
        Ok(own) => cx.tensor(&own.get().tensor),
        Err(_) => match arrays::argument(obj, "obj")? {
            Argument::Array(a) => {
                let t = a.tensor().map_err(fail)?;
                if a.weak { cx.weak_tensor(&t) } else { cx.tensor(&t) }
            }
            Argument::Scalar(_) => return Err(PyTypeError::new_err("a number has no dtype: `full` takes both")),
        },
    };
    let dtype = dtype.map(dtypes::of_object).transpose()?;
    let value = with_location(here(py), || match dtype {
        Some(dtype) => value.cast(dtype),
        None => value,
    });
    PyArray::made(py, settings, &value)
}

/// An array of one number, in a dtype.
#[pyfunction]
pub fn full<'py>(
    py: Python<'py>,
    shape: Vec<i64>,
    value: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    rules: &str,
) -> Made<'py> {
    if shape.iter().any(|n| *n < 0) {
        return Err(PyValueError::new_err("an extent is negative"));
    }
    let settings = rules::settings(rules)?;
    let none = || PyTypeError::new_err("the value is no Python number");
    let (value, dtype) = (arrays::scalar(value)?.ok_or_else(none)?, dtypes::of_object(dtype)?);
    let made = with_location(here(py), || Eager::with_settings(settings).scalar(value, dtype).expand(shape));
    PyArray::made(py, settings, &made)
}

/// The numbers from `start` on and before `stop`, `step` apart.
#[pyfunction]
pub fn arange<'py>(
    py: Python<'py>,
    start: &Bound<'py, PyAny>,
    stop: &Bound<'py, PyAny>,
    step: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    rules: &str,
) -> Made<'py> {
    let none = || PyTypeError::new_err("a bound of a range is no Python number");
    let number = |v| arrays::scalar(v)?.ok_or_else(none);
    let (start, stop, step, dtype) = (number(start)?, number(stop)?, number(step)?, dtypes::of_object(dtype)?);
    let made = with_location(here(py), || Tensor::arange(dtype, start, stop, step));
    PyArray::handle(py, made.map_err(|e| exception(py, &e, None))?, rules::settings(rules)?, false)
}

/// Arrays of one dtype joined along a dim.
#[pyfunction]
pub fn join<'py>(py: Python<'py>, arrays: Vec<Bound<'py, PyArray>>, axis: usize) -> Made<'py> {
    let Some(first) = arrays.first().map(Bound::get) else {
        return Err(PyValueError::new_err("there are no arrays to join"));
    };
    let (mut shape, dtype) = (first.tensor.shape().to_vec(), first.tensor.dtype());
    if axis >= shape.len() {
        return Err(PyValueError::new_err(format!("axis {axis} of arrays of {} dims", shape.len())));
    }
    let outer: usize = shape[..axis].iter().product();
    shape[axis] = 0;
    let (mut parts, mut total, mut along) = (Vec::new(), 0usize, 0usize);
    for array in arrays.iter().map(Bound::get) {
        let mut other = array.tensor.shape().to_vec();
        let extent = other.get_mut(axis).map(std::mem::take);
        if array.tensor.dtype() != dtype || array.settings != first.settings || other != shape {
            let (a, b) = (first.tensor.meta(), array.tensor.meta());
            let text =
                format!("arrays that are joined have one dtype, one shape but for axis {axis}, and the same rules");
            return Err(PyValueError::new_err(format!("{text}: {a} and {b}")));
        }
        let whole = array.tensor.contiguous().map_err(|e| exception(py, &e, None))?;
        along = along.saturating_add(extent.unwrap_or(0));
        total = total.saturating_add(whole.numel().saturating_mul(dtype.size()));
        parts.push(whole);
    }
    shape[axis] = along;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(total).map_err(|e| PyMemoryError::new_err(e.to_string()))?;
    for i in 0..outer {
        for part in &parts {
            let all = part.as_bytes().unwrap_or_default();
            let run = all.len() / outer;
            bytes.extend_from_slice(&all[i * run..(i + 1) * run]);
        }
    }
    let made = Tensor::from_bytes(dtype, shape, &bytes).map_err(|e| exception(py, &e, None))?;
    PyArray::handle(py, made, first.settings, false)
}

type DTypeInfo = (&'static str, &'static str, usize, Option<[f64; 3]>, Option<(i128, i128)>);

/// What a dtype is: its name, its kind, the bits of an element, of floats and parts of complex numbers the distance from 1 to
/// the next one, the largest and the smallest normal one, and of integers the least and the largest one.
#[pyfunction]
pub fn dtype_info(dtype: &Bound<'_, PyAny>) -> PyResult<DTypeInfo> {
    let d = dtypes::of_object(dtype)?;
    let kind = match d.category() {
        Category::Bool => "bool",
        Category::Int if d.is_unsigned() => "unsigned integer",
        Category::Int => "signed integer",
        Category::Float => "real floating",
        Category::Complex => "complex floating",
    };
    Ok((d.name(), kind, 8 * d.size(), d.float_limits(), d.int_range()))
}

/// The operand of an op on arrays of `castwise.xp`: such an array, or a number.
pub fn operand(obj: &Bound<'_, PyAny>, name: &str, settings: Settings) -> PyResult<castwise::Operand<Eager>> {
    if let Ok(array) = obj.cast::<PyArray>() {
        let (own, all) = (array.get().settings, settings);
        if own != all {
            let (own, all) = (own.named(), all.named());
            let text = format!("the operand `{name}` has the rules {own:?}, another one {all:?}");
            return Err(PyTypeError::new_err(format!("{text}: `xp.asarray` gives it those of a namespace")));
        }
        return Ok(castwise::Operand::Var(array.get().value()));
    }
    let found = obj.get_type().fully_qualified_name()?;
    let refused = || {
        PyTypeError::new_err(format!(
            "the operand `{name}` is a {found}: beside an array of castwise.xp it must be one too, as `xp.asarray` makes it, or a Python number"
        ))
    };
    arrays::scalar(obj)?.map(castwise::Operand::Scalar).ok_or_else(refused)
}

/// The refusal of an array of `castwise.xp` where arrays of libraries are read.
pub fn refused(name: &str) -> PyErr {
    let text = "is an array of castwise.xp, which has rules of its own: pass `numpy.asarray(x)`, or apply functions to it directly";
    PyTypeError::new_err(format!("the argument `{name}` {text}"))
}
