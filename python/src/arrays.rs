//! Arguments as views of memory that Python owns, and results as arrays that own castwise's memory.
//!
//! Guarantees: an array of NumPy or a CPU tensor of PyTorch is read in place where its strides are multiples of an
//! element and its byte order is the machine's; otherwise a copy is read. A result owns its memory, and is writable.
//! Does not: decide dtypes or rules.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use castwise::{DType, Scalar, Tensor, TensorLayout, TensorView, TensorViewMut};
use numpy::npyffi::{NPY_ARRAY_ALIGNED, NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, PyArrayObject, get_type_object};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};
use smallvec::SmallVec;

use crate::dtypes;
use crate::torch;

/// The library that an array belongs to, which decides the rules of a call and what its results are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    NumPy,
    Torch,
}

/// Memory of an array: what a view is made of.
pub struct Array<'py> {
    pub dtype: DType,
    pub shape: SmallVec<[usize; 6]>,
    /// In elements.
    pub strides: SmallVec<[isize; 6]>,
    pub first: *mut u8,
    pub writable: bool,
    pub library: Library,
    /// Keeps the memory.
    pub owner: Bound<'py, PyAny>,
}

/// An argument of a call.
pub enum Argument<'py> {
    Array(Array<'py>),
    Scalar(Scalar),
}

impl Array<'_> {
    pub fn layout(&self) -> castwise::Result<TensorLayout> {
        TensorLayout::new(self.dtype, &self.shape[..], &self.strides)
    }

    /// The elements as a view, by a layout of this array's shape and strides.
    pub fn view<'a>(&'a self, layout: &TensorLayout) -> castwise::Result<TensorView<'a>> {
        // SAFETY: the array's owner keeps its memory for longer than this borrow of it. Python code that writes to the
        // array from another thread during a call is a data race of that code, as with every function of NumPy that
        // releases the interpreter's lock. Bools are checked when the array is read.
        unsafe { layout.over(self.first) }
    }

    /// The elements as a view for writing.
    pub fn view_mut<'a>(&'a self, layout: &TensorLayout) -> castwise::Result<TensorViewMut<'a>> {
        // SAFETY: as in `view`; the array is writable, which `target` has checked, and Rust has no reference to it.
        unsafe { layout.over_mut(self.first) }
    }

    /// A tensor with a copy of the elements.
    pub fn tensor(&self) -> castwise::Result<Tensor> {
        self.view(&self.layout()?)?.to_tensor()
    }
}

/// A Python number by its exact type: those of NumPy, of which `np.float64` is a `float`, are arrays.
pub fn scalar(obj: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    Ok(Some(if obj.is_exact_instance_of::<PyFloat>() {
        Scalar::Float(obj.extract()?)
    } else if obj.is_exact_instance_of::<PyInt>() {
        let beyond = |_| PyValueError::new_err("an integer is beyond 64 bits");
        let v: i128 = obj.extract::<i128>().map_err(beyond)?;
        Scalar::integer(v).ok_or_else(|| PyValueError::new_err("an integer is beyond 64 bits"))?
    } else if obj.is_exact_instance_of::<PyBool>() {
        Scalar::Bool(obj.extract()?)
    } else if obj.is_exact_instance_of::<PyComplex>() {
        Scalar::Complex(obj.extract()?)
    } else {
        return Ok(None);
    }))
}

/// Reads an argument. `name` is for messages.
pub fn argument<'py>(obj: &Bound<'py, PyAny>, name: &str) -> PyResult<Argument<'py>> {
    match scalar(obj)? {
        Some(s) => Ok(Argument::Scalar(s)),
        None => array(obj, name).map(Argument::Array),
    }
}

/// Reads an array.
pub fn array<'py>(obj: &Bound<'py, PyAny>, name: &str) -> PyResult<Array<'py>> {
    if is_numpy(obj) {
        return numpy_array(obj.clone(), name);
    }
    if torch::is_tensor(obj)? {
        return torch::array(obj, name);
    }
    let py = obj.py();
    if obj.hasattr("__array__")? || obj.hasattr("__array_interface__")? || obj.hasattr("__buffer__")? {
        return numpy_array(py.import("numpy")?.getattr("asarray")?.call1((obj,))?, name);
    }
    let found = obj.get_type().fully_qualified_name()?;
    Err(PyTypeError::new_err(format!("the argument `{name}` is a {found}, not an array or a number")))
}

/// Whether an object is an array of NumPy. NumPy is not imported for it.
fn is_numpy(obj: &Bound<'_, PyAny>) -> bool {
    // Looked up until it is found: an import can't be undone, and a lookup takes longer than reading an array.
    static LOADED: AtomicBool = AtomicBool::new(false);
    let loaded = || {
        let modules = || obj.py().import("sys")?.getattr("modules")?.contains("numpy");
        LOADED.load(Ordering::Relaxed)
            || modules().inspect(|found| LOADED.store(*found, Ordering::Relaxed)).unwrap_or(false)
    };
    let own = |o: &Bound<'_, PyAny>| {
        // SAFETY: NumPy is loaded; the type object is its own and lives as long as the interpreter.
        unsafe {
            let array = get_type_object(o.py(), NpyTypes::PyArray_Type);
            pyo3::ffi::PyObject_TypeCheck(o.as_ptr(), array) != 0
        }
    };
    loaded() && own(obj)
}

/// Reads an array of NumPy; what can't be read in place is copied by NumPy first.
fn numpy_array<'py>(owner: Bound<'py, PyAny>, name: &str) -> PyResult<Array<'py>> {
    let found = read(&owner)?;
    let dtype = dtypes::of_array(found.number, &owner)?.ok_or_else(|| {
        let dtype = owner.getattr("dtype").and_then(|d| d.str()).map(|s| s.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("the argument `{name}` is an array of {dtype}, a dtype that castwise lacks"))
    })?;
    let size = dtype.size() as isize;
    let whole = found.strides.iter().zip(&found.shape).all(|(s, n)| s % size == 0 || *n < 2);
    if found.swapped || !whole {
        return numpy_array(native(&owner, dtype)?, name);
    }
    let strides = found.strides.iter().map(|s| s / size).collect();
    let Read { shape, first, writable, .. } = found;
    let array = Array { dtype, shape, strides, first, writable, library: Library::NumPy, owner };
    if dtype == DType::Bool && !only_0_and_1(&array)? {
        let py = array.owner.py();
        let bytes = array.owner.call_method1("view", ("uint8",))?;
        return numpy_array(bytes.call_method1("__ne__", (0u8.into_pyobject(py)?,))?, name);
    }
    Ok(array)
}

/// A row-major copy in the machine's byte order.
fn native<'py>(array: &Bound<'py, PyAny>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let dtype = dtypes::descriptor(py, dtype)?;
    py.import("numpy")?.getattr("array")?.call1((array, dtype))
}

/// What NumPy's struct says of an array.
struct Read {
    number: c_int,
    swapped: bool,
    shape: SmallVec<[usize; 6]>,
    /// In bytes.
    strides: SmallVec<[isize; 6]>,
    first: *mut u8,
    writable: bool,
}

fn read(owner: &Bound<'_, PyAny>) -> PyResult<Read> {
    if !is_numpy(owner) {
        return Err(PyTypeError::new_err("`numpy.asarray` gave no array"));
    }
    let array: *const PyArrayObject = owner.as_ptr().cast();
    // SAFETY: the object is an array of NumPy, whose struct has these fields in all versions of its ABI; its dims and
    // strides have `nd` numbers.
    unsafe {
        let fields = &(*array).fields;
        let (nd, descr) = (fields.nd as usize, &(*fields.descr).fields);
        let dims = |p: *const isize| if nd == 0 { &[][..] } else { std::slice::from_raw_parts(p, nd) };
        Ok(Read {
            number: descr.type_num,
            swapped: descr.byteorder as u8 == if cfg!(target_endian = "little") { b'>' } else { b'<' },
            shape: dims(fields.dimensions).iter().map(|n| *n as usize).collect(),
            strides: dims(fields.strides).into(),
            first: fields.data.cast(),
            writable: fields.flags & NPY_ARRAY_WRITEABLE != 0,
        })
    }
}

/// Whether all bytes of an array of bools are 0 or 1: `uint8.view(bool)` can have others.
pub fn only_0_and_1(array: &Array<'_>) -> PyResult<bool> {
    // The address of an array without elements may be null.
    if array.shape.contains(&0) {
        return Ok(true);
    }
    let numbers = TensorLayout::new(DType::U8, &array.shape[..], &array.strides).map_err(value_error)?;
    // SAFETY: as in `Array::view`; a byte of any value is a u8.
    let bytes = unsafe { numbers.over(array.first) }.map_err(value_error)?;
    let whole;
    let bytes = if bytes.is_contiguous() {
        // SAFETY: the layout has elements and is row-major without gaps, so its bytes are these; they are borrowed as
        // long as the array.
        unsafe { std::slice::from_raw_parts(array.first, bytes.numel()) }
    } else {
        whole = bytes.to_tensor().map_err(value_error)?;
        whole.as_slice::<u8>().map_err(value_error)?
    };
    Ok(bytes.iter().fold(0, |all, b| all | b) < 2)
}

fn value_error(e: castwise::Error) -> PyErr {
    PyValueError::new_err(e.to_string())
}

/// An array for a result. Errors: it is read-only, or not an array that can be written in place.
pub fn target<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    let array = array(obj, "out")?;
    if array.owner.as_ptr() != obj.as_ptr() {
        return Err(PyValueError::new_err(
            "`out` has foreign byte order or strides that are not multiples of its elements",
        ));
    }
    if !array.writable {
        return Err(PyValueError::new_err("`out` is read-only"));
    }
    Ok(array)
}

/// The memory of a result, which an array of another library refers to.
#[pyclass(frozen, module = "castwise._core")]
pub struct Memory {
    _tensor: Tensor,
}

/// A result as an array of a library.
pub fn result<'py>(py: Python<'py>, t: Tensor, library: Library) -> PyResult<Bound<'py, PyAny>> {
    match library {
        Library::NumPy => numpy_result(py, t),
        Library::Torch => torch::result(py, t),
    }
}

fn numpy_result<'py>(py: Python<'py>, t: Tensor) -> PyResult<Bound<'py, PyAny>> {
    let descriptor = dtypes::descriptor(py, t.dtype())?;
    let (mut t, mut shape) = (owned(t)?, SmallVec::<[isize; 6]>::new());
    shape.extend(t.shape().iter().map(|n| *n as isize));
    let mut strides: SmallVec<[isize; 6]> = SmallVec::new();
    strides.extend(t.strides().iter().map(|s| s * t.dtype().size() as isize));
    let Some(first) = t.as_mut_ptr() else {
        return Err(PyValueError::new_err("a result's memory is shared"));
    };
    let memory = Bound::new(py, Memory { _tensor: t })?;
    // SAFETY: the address is that of the tensor's elements, which the array's base keeps for as long as the array lives
    // and which nothing else refers to; NumPy takes over the reference to the dtype here and that to the base below.
    unsafe {
        let class = get_type_object(py, NpyTypes::PyArray_Type);
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            class,
            dtypes::owned_descriptor(descriptor),
            shape.len() as c_int,
            shape.as_mut_ptr(),
            strides.as_mut_ptr(),
            first.cast(),
            NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), memory.into_ptr()) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array)
    }
}

/// A tensor that shares its memory with no other: a result that is an argument itself is copied.
pub fn owned(mut t: Tensor) -> PyResult<Tensor> {
    if t.as_mut_ptr().is_some() {
        return Ok(t);
    }
    let whole = t.contiguous().map_err(value_error)?;
    let bytes = whole.as_bytes().unwrap_or_default();
    Tensor::from_bytes(t.dtype(), t.shape(), bytes).map_err(value_error)
}
