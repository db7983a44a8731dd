//! dtypes of NumPy, ml_dtypes and PyTorch, by type number or by name.
//!
//! Guarantees: a type number of NumPy's own has one dtype; those that packages register are asked for by name, once.

use std::collections::HashMap;
use std::ffi::{c_int, c_long};
use std::sync::Mutex;

use castwise::DType;
use numpy::npyffi::{NPY_TYPES, NpyTypes, PyArray_Descr, get_type_object};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyComplex, PyFloat, PyInt};

const LONG: DType = if size_of::<c_long>() == 8 { DType::I64 } else { DType::I32 };
const ULONG: DType = if size_of::<c_long>() == 8 { DType::U64 } else { DType::U32 };

/// The dtype of a type number of NumPy's own. C has two names for one integer, so some dtypes have two numbers.
pub fn of_number(n: c_int) -> Option<DType> {
    use NPY_TYPES::*;
    const ALL: [(NPY_TYPES, DType); 16] = [
        (NPY_FLOAT, DType::F32),
        (NPY_DOUBLE, DType::F64),
        (NPY_BOOL, DType::Bool),
        (NPY_BYTE, DType::I8),
        (NPY_UBYTE, DType::U8),
        (NPY_SHORT, DType::I16),
        (NPY_USHORT, DType::U16),
        (NPY_INT, DType::I32),
        (NPY_UINT, DType::U32),
        (NPY_LONG, LONG),
        (NPY_ULONG, ULONG),
        (NPY_LONGLONG, DType::I64),
        (NPY_ULONGLONG, DType::U64),
        (NPY_HALF, DType::F16),
        (NPY_CFLOAT, DType::C64),
        (NPY_CDOUBLE, DType::C128),
    ];
    ALL.iter().find(|(number, _)| *number as c_int == n).map(|(_, d)| *d)
}

/// The name of a dtype in NumPy, and whether ml_dtypes has it instead; `None` for a dtype that neither has.
pub fn numpy_name(d: DType) -> Option<(&'static str, bool)> {
    Some(match d {
        DType::Bool => ("bool", false),
        DType::U8 => ("uint8", false),
        DType::U16 => ("uint16", false),
        DType::U32 => ("uint32", false),
        DType::U64 => ("uint64", false),
        DType::I8 => ("int8", false),
        DType::I16 => ("int16", false),
        DType::I32 => ("int32", false),
        DType::I64 => ("int64", false),
        DType::F16 => ("float16", false),
        DType::F32 => ("float32", false),
        DType::F64 => ("float64", false),
        DType::C64 => ("complex64", false),
        DType::C128 => ("complex128", false),
        DType::BF16 => ("bfloat16", true),
        DType::F8E4M3FN => ("float8_e4m3fn", true),
        DType::F8E5M2 => ("float8_e5m2", true),
        _ => return None,
    })
}

/// The dtype of a name of any of the libraries: `float32`, `torch.float32`, `f32`.
pub fn named(name: &str) -> Option<DType> {
    let name = name.strip_prefix("torch.").or(name.strip_prefix("paddle.")).unwrap_or(name);
    name.parse().ok()
}

/// The dtype of Python's own number types, whose names are those of narrower dtypes in PyTorch.
fn of_number_type(obj: &Bound<'_, PyAny>) -> Option<DType> {
    let py = obj.py();
    let all = [
        (py.get_type::<PyFloat>(), DType::F64),
        (py.get_type::<PyInt>(), DType::I64),
        (py.get_type::<PyComplex>(), DType::C128),
    ];
    all.iter().find(|(class, _)| obj.is(class)).map(|(_, d)| *d)
}

/// The dtype of an object that names one: a string, a dtype of NumPy or PyTorch, a scalar type such as `np.float32`, or `float`,
/// `int` and `complex`, which have 64 bits a part under every rule set.
pub fn of_object(obj: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Some(d) = of_number_type(obj) {
        return Ok(d);
    }
    let name = match obj.extract::<String>() {
        Ok(name) => name,
        Err(_) => match obj.getattr("__name__") {
            Ok(name) => name.extract()?,
            Err(_) => obj.str()?.extract()?,
        },
    };
    // NumPy's `>f4` is named float32.
    let other = || named(obj.getattr("name").ok()?.extract::<&str>().ok()?);
    named(&name).or_else(other).ok_or_else(|| PyTypeError::new_err(format!("castwise has no dtype `{name}`")))
}

static REGISTERED: Mutex<Option<HashMap<c_int, Option<DType>>>> = Mutex::new(None);

/// The dtype of a type number that a package has registered, by the name of its scalar type.
fn registered(n: c_int, name: impl FnOnce() -> PyResult<String>) -> PyResult<Option<DType>> {
    let known = REGISTERED.lock().ok().and_then(|k| k.as_ref()?.get(&n).copied());
    if let Some(known) = known {
        return Ok(known);
    }
    let found = named(&name()?);
    if let Ok(mut all) = REGISTERED.lock() {
        all.get_or_insert_default().insert(n, found);
    }
    Ok(found)
}

/// The dtype of an array of NumPy, from its descriptor, which must be valid.
pub fn of_array(py: Python<'_>, descriptor: *mut PyArray_Descr) -> PyResult<Option<DType>> {
    // SAFETY: an array's descriptor has a type number in all versions of NumPy's ABI.
    let number = unsafe { (*descriptor).fields.type_num };
    if number < NPY_TYPES::NPY_USERDEF as c_int {
        return Ok(of_number(number));
    }
    // SAFETY: a descriptor is an object of Python, which its array keeps.
    let object = unsafe { Bound::from_borrowed_ptr(py, descriptor.cast()) };
    registered(number, || object.getattr("name")?.extract())
}

/// NumPy's dtype objects that were asked for, by the dtype's number.
static DESCRIPTORS: [PyOnceLock<Py<PyAny>>; DType::ALL.len()] = [const { PyOnceLock::new() }; DType::ALL.len()];

/// NumPy's dtype object of a dtype. Errors: a dtype that neither NumPy nor ml_dtypes has; ml_dtypes is missing.
pub fn descriptor<'py>(py: Python<'py>, d: DType) -> PyResult<Bound<'py, PyAny>> {
    let place = &DESCRIPTORS[d as usize % DType::ALL.len()];
    if let Some(known) = place.get(py) {
        return Ok(known.bind(py).clone());
    }
    let (name, foreign) =
        numpy_name(d).ok_or_else(|| PyTypeError::new_err(format!("NumPy has no {d}: cast the result")))?;
    let made = if foreign {
        let module = py.import("ml_dtypes").map_err(|e| {
            let message = format!("a result is {d}, which NumPy has only with the package ml_dtypes");
            let error = PyTypeError::new_err(message);
            error.set_cause(py, Some(e));
            error
        })?;
        py.import("numpy")?.getattr("dtype")?.call1((module.getattr(name)?,))?
    } else {
        py.import("numpy")?.getattr("dtype")?.call1((name,))?
    };
    Ok(place.get_or_init(py, || made.unbind()).bind(py).clone())
}

/// Whether JAX has dtypes of 64 bits, as its setting says for this thread now.
pub fn jax_x64(py: Python<'_>) -> PyResult<bool> {
    static CONFIG: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let config = CONFIG.get_or_try_init(py, || Ok::<_, PyErr>(py.import("jax")?.getattr("config")?.unbind()))?;
    config.bind(py).getattr(pyo3::intern!(py, "jax_enable_x64"))?.is_truthy()
}

/// A new reference to the C struct of a dtype object.
pub fn owned_descriptor(descriptor: Bound<'_, PyAny>) -> *mut PyArray_Descr {
    descriptor.into_ptr().cast()
}

/// Whether NumPy's C functions are there, so that its structs may be read.
pub fn has_numpy(py: Python<'_>) -> bool {
    // SAFETY: the function only imports NumPy's table of functions.
    !unsafe { get_type_object(py, NpyTypes::PyArray_Type) }.is_null()
}
