//! DLPack 1.3, https://dmlc.github.io/dlpack/latest/c_api.html: its structs, the capsules of `__dlpack__`, and the table of C
//! functions that a type of tensors may have.
//!
//! Guarantees: a tensor is borrowed from what Python keeps, and its deleter is called by its capsule alone; a result's deleter
//! may be called on any thread, without the interpreter. Does not: ask a library about what DLPack leaves out, such as lazy bits.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use castwise::{DType, Tensor, TensorLayout};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyType};
use smallvec::SmallVec;

use crate::arrays::{Array, Library};

// Extents are `i64` in DLPack and `isize` in NumPy and here.
const _: () = assert!(size_of::<isize>() == size_of::<i64>(), "the package is for machines with addresses of 64 bits");

const CPU: i32 = 1;
const READ_ONLY: u64 = 1;
/// The memory is a copy, which its array does not see.
const IS_COPIED: u64 = 1 << 1;

#[derive(Clone, Copy)]
#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
struct Device {
    kind: i32,
    id: i32,
}

#[derive(Clone, Copy, PartialEq)]
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

/// `DLManagedTensor`, before version 1.
#[repr(C)]
struct Unversioned {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// `DLPackExchangeAPI`.
#[repr(C)]
struct Functions {
    version: Version,
    previous: *const Functions,
    allocate: *const c_void,
    export: *const c_void,
    import: Option<unsafe extern "C" fn(*mut Versioned, *mut *mut c_void) -> c_int>,
    borrow: Option<unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int>,
    stream: *const c_void,
}

const fn data_type(d: DType) -> Option<DataType> {
    let (code, bits) = match d {
        DType::I8 => (0, 8),
        DType::I16 => (0, 16),
        DType::I32 => (0, 32),
        DType::I64 => (0, 64),
        DType::U8 => (1, 8),
        DType::U16 => (1, 16),
        DType::U32 => (1, 32),
        DType::U64 => (1, 64),
        DType::F16 => (2, 16),
        DType::F32 => (2, 32),
        DType::F64 => (2, 64),
        DType::BF16 => (4, 16),
        DType::C32 => (5, 32),
        DType::C64 => (5, 64),
        DType::C128 => (5, 128),
        DType::Bool => (6, 8),
        DType::F8E4M3FN => (10, 8),
        DType::F8E5M2 => (12, 8),
        _ => return None,
    };
    Some(DataType { code, bits, lanes: 1 })
}

fn dtype_of(t: DataType) -> Option<DType> {
    DType::ALL.iter().copied().find(|d| data_type(*d) == Some(t))
}

/// The array of a tensor that `owner` keeps.
///
/// # Safety
///
/// The tensor is valid now, and its elements as long as the owner exists.
unsafe fn array<'py>(
    t: &DlTensor,
    writable: bool,
    library: Library,
    owner: Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Array<'py>> {
    let refused = |what: String| PyTypeError::new_err(format!("the argument `{name}` is {what}"));
    if t.device.kind != CPU {
        let device = format!("on a device of DLPack's kind {}", t.device.kind);
        return Err(refused(format!("{device}: castwise computes on the CPU, copy it there first")));
    }
    let dtype = dtype_of(t.dtype).ok_or_else(|| {
        let DataType { code, bits, lanes } = t.dtype;
        refused(format!(
            "an array of DLPack's code {code} with {bits} bits, {lanes} lanes, a dtype that castwise lacks"
        ))
    })?;
    let rank = usize::try_from(t.ndim).map_err(|_| refused(format!("a tensor with {} dims", t.ndim)))?;
    // SAFETY: a valid tensor has `ndim` extents, and as many strides if it has any; without dims either may be null.
    let numbers = |p: *mut i64| if rank == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(p, rank) } };
    let shape: SmallVec<[usize; 4]> = numbers(t.shape).iter().map(|n| *n as usize).collect();
    let strides: SmallVec<[isize; 4]> = if t.strides.is_null() {
        let mut step = 1isize;
        let mut all: SmallVec<[isize; 4]> = SmallVec::from_elem(0, rank);
        for (s, n) in all.iter_mut().zip(&shape).rev() {
            *s = step;
            step = step.saturating_mul(*n as isize);
        }
        all
    } else {
        numbers(t.strides).iter().map(|n| *n as isize).collect()
    };
    let first = t.data.cast::<u8>().wrapping_add(t.byte_offset as usize);
    Ok(Array { dtype, shape, strides, first, writable, library, weak: false, in_place: true, owner })
}

const UNVERSIONED: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// Reads an object by its method `__dlpack__`. The capsule is kept, and frees the tensor when it is dropped.
pub fn read<'py>(obj: &Bound<'py, PyAny>, library: Library, name: &str) -> PyResult<Array<'py>> {
    let py = obj.py();
    let device = obj.call_method0(intern!(py, "__dlpack_device__"))?;
    let kind: i32 = device.get_item(0)?.extract()?;
    if kind != CPU {
        let text = format!("the argument `{name}` is on the device {device}: castwise computes on the CPU");
        return Err(PyTypeError::new_err(format!("{text}, copy it there first")));
    }
    let newest = PyDict::new(py);
    newest.set_item(intern!(py, "max_version"), (1, 3))?;
    let method = obj.getattr(intern!(py, "__dlpack__"))?;
    let capsule = match method.call((), Some(&newest)) {
        // Libraries from before version 1 do not know the keyword.
        Err(e) if e.is_instance_of::<PyTypeError>(py) => method.call0()?,
        made => made?,
    };
    let pointer = |wanted: &CStr| {
        // SAFETY: the functions take any object; the pointer is asked for only if the capsule has this name.
        unsafe {
            let is = pyo3::ffi::PyCapsule_IsValid(capsule.as_ptr(), wanted.as_ptr()) != 0;
            if is { pyo3::ffi::PyCapsule_GetPointer(capsule.as_ptr(), wanted.as_ptr()) } else { std::ptr::null_mut() }
        }
    };
    let (versioned, unversioned) = (pointer(VERSIONED), pointer(UNVERSIONED));
    if !versioned.is_null() {
        // SAFETY: a capsule of this name has this struct, whose first fields are those of all versions.
        let managed = unsafe { &*versioned.cast::<Versioned>() };
        if managed.version.major != 1 {
            let text = format!("the argument `{name}` is a tensor of DLPack {}", managed.version.major);
            return Err(PyTypeError::new_err(format!("{text}, castwise knows 1")));
        }
        // SAFETY: the capsule has not been taken, so the tensor lives as long as it.
        let array = unsafe { array(&managed.tensor, managed.flags & READ_ONLY == 0, library, capsule.clone(), name)? };
        return Ok(Array { in_place: managed.flags & IS_COPIED == 0, ..array });
    }
    if unversioned.is_null() {
        return Err(PyTypeError::new_err(format!("the argument `{name}` has a `__dlpack__` that gives no tensor")));
    }
    // SAFETY: as above; the capsule keeps the tensor.
    unsafe { array(&(*unversioned.cast::<Unversioned>()).tensor, true, library, capsule.clone(), name) }
}

/// The table of functions of a type of tensors.
#[derive(Clone, Copy)]
pub struct Table(&'static Functions);

// SAFETY: a table is a constant of its library, which is never unloaded; its functions are called with the interpreter held.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// The table of a type, if it has one of version 1.
    pub fn of(class: &Bound<'_, PyType>) -> Option<Table> {
        let attribute = class.getattr(intern!(class.py(), "__dlpack_c_exchange_api__")).ok()?;
        let capsule = attribute.cast::<PyCapsule>().ok()?;
        let pointer = capsule.pointer_checked(Some(c"dlpack_exchange_api")).ok()?;
        let mut table: *const Functions = pointer.as_ptr().cast_const().cast();
        // SAFETY: the capsule's pointer is a table that lives as long as the process; each names an older one, or none.
        while let Some(functions) = unsafe { table.as_ref() } {
            if functions.version.major == 1 {
                return (functions.borrow.is_some() && functions.import.is_some()).then_some(Table(functions));
            }
            table = functions.previous;
        }
        None
    }

    /// Reads a tensor, which must be of the table's type. The error is the library's.
    pub fn read<'py>(self, obj: &Bound<'py, PyAny>, library: Library, name: &str) -> PyResult<Array<'py>> {
        let mut tensor = std::mem::MaybeUninit::<DlTensor>::uninit();
        let Some(borrow) = self.0.borrow else { return Err(PyTypeError::new_err("a table without a function")) };
        // SAFETY: the object is of the table's type; on success the function has filled in the struct, whose extents, strides and
        // elements are the object's, which is kept.
        unsafe {
            if borrow(obj.as_ptr().cast(), tensor.as_mut_ptr()) != 0 {
                return Err(PyErr::fetch(obj.py()));
            }
            array(tensor.assume_init_ref(), true, library, obj.clone(), name)
        }
    }

    /// The address of the first element of a tensor of the table's type, if it is on the CPU and of this layout.
    pub fn elements(self, obj: &Bound<'_, PyAny>, layout: &TensorLayout) -> Option<*mut u8> {
        let mut tensor = std::mem::MaybeUninit::<DlTensor>::uninit();
        // SAFETY: as in `read`.
        let t = unsafe {
            if self.0.borrow?(obj.as_ptr().cast(), tensor.as_mut_ptr()) != 0 {
                drop(PyErr::take(obj.py()));
                return None;
            }
            tensor.assume_init_ref()
        };
        let (shape, strides) = (layout.shape(), layout.strides());
        let is = t.device.kind == CPU
            && data_type(layout.dtype()) == Some(t.dtype)
            && usize::try_from(t.ndim) == Ok(shape.len())
            && (shape.is_empty() || !t.strides.is_null());
        if !is {
            return None;
        }
        for (i, (extent, stride)) in shape.iter().zip(strides).enumerate() {
            // SAFETY: a valid tensor has `ndim` extents and strides, which are as many as the layout's.
            let (n, step) = unsafe { (*t.shape.add(i), *t.strides.add(i)) };
            if n != *extent as i64 || step != *stride as i64 {
                return None;
            }
        }
        Some(t.data.cast::<u8>().wrapping_add(t.byte_offset as usize))
    }

    /// A result as a tensor of the library that owns its memory.
    pub fn result<'py>(self, py: Python<'py>, owned: Owned) -> PyResult<Bound<'py, PyAny>> {
        let Some(import) = self.0.import else { return Err(PyTypeError::new_err("a table without a function")) };
        let managed = Box::into_raw(Arc::new(owned).managed()?);
        let mut made = std::ptr::null_mut();
        // SAFETY: the managed tensor is valid, and the library takes it over; on success it gives a new reference.
        unsafe {
            if import(&raw mut (*managed).versioned, &mut made) != 0 {
                return Err(PyErr::fetch(py));
            }
            Bound::from_owned_ptr_or_err(py, made.cast())
        }
    }
}

/// A result with the address by which others may write to it.
pub struct Owned {
    tensor: Tensor,
    first: *mut u8,
}

// SAFETY: the address is that of the tensor's own memory; nothing is read or written by it here.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

/// A managed tensor and what it refers to.
#[repr(C)]
struct Managed {
    versioned: Versioned,
    _owned: Arc<Owned>,
}

/// Frees a managed tensor.
unsafe extern "C" fn delete(managed: *mut Versioned) {
    // SAFETY: it is the first field of the box that was leaked where it was handed out, and a managed tensor is deleted once.
    drop(unsafe { Box::from_raw(managed.cast::<Managed>()) });
}

/// Frees a managed tensor that nobody took: a taker renames the capsule.
unsafe extern "C" fn untaken(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: Python calls this once, with a capsule that `capsule` made; with the first name its pointer is a managed tensor
    // that still exists.
    unsafe {
        if pyo3::ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete(pyo3::ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn delete_unversioned(managed: *mut Unversioned) {
    // SAFETY: as in `delete`, for the box that `capsule` leaked.
    drop(unsafe { Box::from_raw(managed.cast::<Old>()) });
}

unsafe extern "C" fn untaken_unversioned(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: as in `untaken`.
    unsafe {
        if pyo3::ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) != 0 {
            delete_unversioned(pyo3::ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast());
        }
    }
}

/// An unversioned managed tensor and what it refers to.
#[repr(C)]
struct Old {
    unversioned: Unversioned,
    _owned: Arc<Owned>,
}

impl Owned {
    /// Takes a result. One whose memory is shared, as that of an argument, is copied.
    pub fn new(mut t: Tensor) -> PyResult<Owned> {
        if t.as_mut_ptr().is_none() {
            let failed = |e: castwise::Error| PyValueError::new_err(e.to_string());
            let whole = t.contiguous().map_err(failed)?;
            t = Tensor::from_bytes(t.dtype(), t.shape(), whole.as_bytes().unwrap_or_default()).map_err(failed)?;
        }
        let first = t.as_mut_ptr().ok_or_else(|| PyValueError::new_err("a result's memory is shared"))?;
        Ok(Owned { tensor: t, first })
    }

    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    pub fn first(&self) -> *mut u8 {
        self.first
    }

    fn dl_tensor(&self) -> PyResult<DlTensor> {
        let t = &self.tensor;
        let lacks = || PyTypeError::new_err(format!("DLPack has no {}", t.dtype()));
        Ok(DlTensor {
            data: self.first.cast(),
            device: Device { kind: CPU, id: 0 },
            ndim: t.rank() as c_int,
            dtype: data_type(t.dtype()).ok_or_else(lacks)?,
            // Who takes a tensor reads these, and does not write to them.
            shape: t.shape().as_ptr().cast_mut().cast(),
            strides: t.strides().as_ptr().cast_mut().cast(),
            byte_offset: 0,
        })
    }

    fn managed(self: Arc<Owned>) -> PyResult<Box<Managed>> {
        let version = Version { major: 1, minor: 3 };
        // Paddle calls no deleter of a tensor without a context.
        let context = std::ptr::from_ref(&*self).cast_mut().cast();
        let versioned = Versioned { version, context, deleter: Some(delete), flags: 0, tensor: self.dl_tensor()? };
        Ok(Box::new(Managed { versioned, _owned: self }))
    }

    /// A capsule as `__dlpack__` gives it.
    pub fn capsule<'py>(self: &Arc<Owned>, py: Python<'py>, versioned: bool) -> PyResult<Bound<'py, PyAny>> {
        use pyo3::ffi::PyCapsule_New;
        // SAFETY: the boxes are leaked here, and freed by whoever takes the capsule, by the capsule, or here if there is none.
        unsafe {
            if versioned {
                let managed: *mut Versioned = Box::into_raw(self.clone().managed()?).cast();
                let made = PyCapsule_New(managed.cast(), VERSIONED.as_ptr(), Some(untaken));
                if made.is_null() {
                    delete(managed);
                }
                return Bound::from_owned_ptr_or_err(py, made);
            }
            let context = std::ptr::from_ref(&**self).cast_mut().cast();
            let deleter = Some(delete_unversioned as unsafe extern "C" fn(*mut Unversioned));
            let unversioned = Unversioned { tensor: self.dl_tensor()?, context, deleter };
            let managed: *mut Unversioned = Box::into_raw(Box::new(Old { unversioned, _owned: self.clone() })).cast();
            let made = PyCapsule_New(managed.cast(), UNVERSIONED.as_ptr(), Some(untaken_unversioned));
            if made.is_null() {
                delete_unversioned(managed);
            }
            Bound::from_owned_ptr_or_err(py, made)
        }
    }
}
