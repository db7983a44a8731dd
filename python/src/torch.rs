//! Tensors of PyTorch on the CPU.
//!
//! Guarantees: a strided tensor is read in place; lazy conjugation and negation are resolved first; a tensor that needs
//! gradients is refused, because its history would be cut. A result is handed over by DLPack, without a copy. Does not:
//! import PyTorch.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;

use castwise::{DType, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::arrays::{Array, Library, only_0_and_1, owned};
use crate::dtypes;

/// What is asked of PyTorch once.
struct Torch {
    tensor: Py<PyAny>,
    strided: Py<PyAny>,
    from_dlpack: Py<PyAny>,
    /// The dtypes that were met, by the address of PyTorch's object, which lives as long as the interpreter.
    dtypes: Mutex<HashMap<usize, DType>>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

/// PyTorch, if it has been imported.
fn torch(py: Python<'_>) -> PyResult<Option<&Torch>> {
    if let Some(known) = TORCH.get(py) {
        return Ok(Some(known));
    }
    let modules = py.import("sys")?.getattr("modules")?;
    if !modules.contains("torch")? {
        return Ok(None);
    }
    let module = modules.get_item("torch")?;
    // While PyTorch is being imported it has no `Tensor` yet.
    let Ok(tensor) = module.getattr("Tensor") else { return Ok(None) };
    let made = Torch {
        tensor: tensor.unbind(),
        strided: module.getattr("strided")?.unbind(),
        from_dlpack: py.import("torch.utils.dlpack")?.getattr("from_dlpack")?.unbind(),
        dtypes: Mutex::default(),
    };
    Ok(Some(TORCH.get_or_init(py, || made)))
}

/// Whether an object is a tensor of PyTorch.
pub fn is_tensor(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    match torch(obj.py())? {
        Some(torch) => obj.is_instance(torch.tensor.bind(obj.py())),
        None => Ok(false),
    }
}

fn dtype_of(torch: &Torch, obj: &Bound<'_, PyAny>, name: &str) -> PyResult<DType> {
    let dtype = obj.getattr(intern!(obj.py(), "dtype"))?;
    let key = dtype.as_ptr() as usize;
    if let Some(known) = torch.dtypes.lock().ok().and_then(|all| all.get(&key).copied()) {
        return Ok(known);
    }
    let text = dtype.str()?.to_string();
    let found = dtypes::named(&text).ok_or_else(|| {
        PyTypeError::new_err(format!("the argument `{name}` is a tensor of {text}, a dtype that castwise lacks"))
    })?;
    if let Ok(mut all) = torch.dtypes.lock() {
        all.insert(key, found);
    }
    Ok(found)
}

/// Reads a tensor.
pub fn array<'py>(obj: &Bound<'py, PyAny>, name: &str) -> PyResult<Array<'py>> {
    let py = obj.py();
    let torch = torch(py)?.ok_or_else(|| PyTypeError::new_err("torch is not imported"))?;
    let refused = |what: &str| Err(PyTypeError::new_err(format!("the argument `{name}` is {what}")));
    if !obj.getattr(intern!(obj.py(), "layout"))?.is(torch.strided.bind(py)) {
        return refused("a tensor that is not strided: call `.to_dense()`");
    }
    if !obj.getattr(intern!(obj.py(), "is_cpu"))?.is_truthy()? {
        return refused(&format!(
            "on the device {}: castwise computes on the CPU, call `.cpu()`",
            obj.getattr(intern!(obj.py(), "device"))?
        ));
    }
    if obj.getattr(intern!(obj.py(), "requires_grad"))?.is_truthy()? {
        return refused("a tensor that requires gradients: call `.detach()`");
    }
    let dtype = dtype_of(torch, obj, name)?;
    let mut owner = obj.clone();
    for (asks, resolves) in [("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")] {
        if owner.call_method0(asks)?.is_truthy()? {
            owner = owner.call_method0(resolves)?;
        }
    }
    let array = Array {
        dtype,
        shape: owner.getattr(intern!(owner.py(), "shape"))?.extract::<Vec<usize>>()?.into(),
        strides: owner.call_method0(intern!(owner.py(), "stride"))?.extract::<Vec<isize>>()?.into(),
        first: owner.call_method0(intern!(owner.py(), "data_ptr"))?.extract::<usize>()? as *mut u8,
        writable: true,
        library: Library::Torch,
        owner,
    };
    if dtype == DType::Bool && !only_0_and_1(&array)? {
        let uint8 = py.import("torch")?.getattr("uint8")?;
        let normal = array.owner.call_method1("view", (uint8,))?.call_method1("ne", (0,))?;
        return self::array(&normal, name);
    }
    Ok(array)
}

// DLPack, https://dmlc.github.io/dlpack/latest/c_api.html: the unversioned structs, which every PyTorch takes.

#[repr(C)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: Device,
    ndim: c_int,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// What a managed tensor keeps.
struct Kept {
    _tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
    managed: Option<Managed>,
}

const NAME: &CStr = c"dltensor";

fn data_type(d: DType) -> Option<DataType> {
    let code = match d {
        DType::Bool => 6,
        DType::BF16 => 4,
        DType::F8E4M3FN => 10,
        DType::F8E5M2 => 12,
        d if d.is_complex() => 5,
        d if d.is_float() => 2,
        d if d.is_unsigned() => 1,
        _ => 0,
    };
    Some(DataType { code, bits: u8::try_from(8 * d.size()).ok()?, lanes: 1 })
}

/// Frees what a managed tensor keeps.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: the context is the box that `result` leaked, and a managed tensor is deleted once.
    drop(unsafe { Box::from_raw((*managed).context.cast::<Kept>()) });
}

/// Frees a managed tensor that nobody took: a taker renames the capsule.
unsafe extern "C" fn untaken(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: Python calls this once, with a capsule that `result` made; with the first name its pointer is a managed
    // tensor that still exists.
    unsafe {
        if pyo3::ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) != 0 {
            delete(pyo3::ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        }
    }
}

/// A result as a tensor of PyTorch that owns its memory.
pub fn result<'py>(py: Python<'py>, t: Tensor) -> PyResult<Bound<'py, PyAny>> {
    let torch = torch(py)?.ok_or_else(|| PyTypeError::new_err("torch is not imported"))?;
    let dtype = data_type(t.dtype()).ok_or_else(|| PyTypeError::new_err(format!("DLPack has no {}", t.dtype())))?;
    let mut t = owned(t)?;
    let Some(data) = t.as_mut_ptr() else { return Err(PyValueError::new_err("a result's memory is shared")) };
    let shape: Vec<i64> = t.shape().iter().map(|n| *n as i64).collect();
    let strides: Vec<i64> = t.strides().iter().map(|n| *n as i64).collect();
    let kept = Box::into_raw(Box::new(Kept { _tensor: t, shape, strides, managed: None }));
    // SAFETY: the box was leaked just now and nothing else refers to it. The managed tensor, its shape and its strides lie in
    // it and in what it owns, so they live until `delete` drops it: called by whoever takes the capsule, or by `untaken`.
    let capsule = unsafe {
        let tensor = DlTensor {
            data: data.cast(),
            device: Device { kind: 1, id: 0 },
            ndim: (*kept).shape.len() as c_int,
            dtype,
            shape: (*kept).shape.as_mut_ptr(),
            strides: (*kept).strides.as_mut_ptr(),
            byte_offset: 0,
        };
        let managed: *mut Managed =
            (*kept).managed.insert(Managed { tensor, context: kept.cast(), deleter: Some(delete) });
        let name: *const c_char = NAME.as_ptr();
        let made = pyo3::ffi::PyCapsule_New(managed.cast(), name, Some(untaken));
        if made.is_null() {
            delete(managed);
        }
        Bound::from_owned_ptr_or_err(py, made)?
    };
    torch.from_dlpack.bind(py).call1((capsule,))
}
