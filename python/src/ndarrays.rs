//! Arrays of NumPy, by its C structs.
//!
//! Guarantees: NumPy is not imported; an array is read in place where its strides are multiples of an element and its byte order
//! is the machine's; otherwise a copy is read. Does not: look at the bytes of bools.

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering};

use castwise::{DType, TensorLayout};
use numpy::npyffi::{NPY_ARRAY_ALIGNED, NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, PyArrayObject, get_type_object};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{PyObject_TypeCheck, PyTypeObject};
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::arrays::{Array, Library, Memory};
use crate::dlpack::Owned;
use crate::dtypes;

/// NumPy's class of arrays, if NumPy has been imported.
pub fn class(py: Python<'_>) -> Option<*mut PyTypeObject> {
    // Looked up until it is found: an import can't be undone, and a lookup takes longer than reading an array.
    static CLASS: AtomicPtr<PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());
    let known = CLASS.load(Ordering::Relaxed);
    if !known.is_null() {
        return Some(known);
    }
    let loaded = || py.import("sys")?.getattr("modules")?.contains("numpy");
    if !loaded().unwrap_or(false) {
        return None;
    }
    // SAFETY: NumPy is loaded; the type object is its own and lives as long as the interpreter.
    let found = unsafe { get_type_object(py, NpyTypes::PyArray_Type) };
    CLASS.store(found, Ordering::Relaxed);
    Some(found)
}

/// Whether an object is an array of NumPy.
pub fn is_array(obj: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the class is NumPy's, which lives as long as the interpreter.
    class(obj.py()).is_some_and(|class| unsafe { PyObject_TypeCheck(obj.as_ptr(), class) } != 0)
}

/// The address of the first element of an object that is an array of this layout, in the machine's byte order.
pub fn elements(obj: &Bound<'_, PyAny>, layout: &TensorLayout) -> Option<*mut u8> {
    // Of a class derived from it, as that of masked arrays, more may have to be asked.
    if class(obj.py()) != Some(obj.get_type_ptr()) {
        return None;
    }
    let array: *const PyArrayObject = obj.as_ptr().cast();
    // SAFETY: as in `read`.
    let (fields, descr) = unsafe { (&(*array).fields, &(*(*array).fields.descr).fields) };
    let (shape, strides, size) = (layout.shape(), layout.strides(), layout.dtype().size() as isize);
    let is = fields.nd as usize == shape.len()
        && descr.byteorder as u8 != SWAPPED
        && dtypes::of_array(obj.py(), fields.descr).ok()? == Some(layout.dtype());
    if !is {
        return None;
    }
    for (i, (extent, stride)) in shape.iter().zip(strides).enumerate() {
        // SAFETY: an array has `nd` dims and strides, which are as many as the layout's.
        let (n, step) = unsafe { (*fields.dimensions.add(i), *fields.strides.add(i)) };
        if n as usize != *extent || step != stride * size {
            return None;
        }
    }
    Some(fields.data.cast())
}

/// Whether an array of NumPy may be written to.
pub fn is_writable(obj: &Bound<'_, PyAny>) -> bool {
    let array: *const PyArrayObject = obj.as_ptr().cast();
    // SAFETY: as in `read`; the object is an array.
    is_array(obj) && unsafe { (*array).fields.flags } & NPY_ARRAY_WRITEABLE != 0
}

/// Refuses an array of NumPy of which elements and shape are not all that its operators go by: one with a mask, and a matrix.
pub fn check_plain(obj: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
    if class(obj.py()) == Some(obj.get_type_ptr()) {
        return Ok(());
    }
    let is = |module: &str, class: &str| obj.is_instance(&obj.py().import(module)?.getattr(class)?);
    let why = if is("numpy.ma", "MaskedArray")? {
        "a masked array, whose mask would be lost: fill it first, with `.filled(0)`"
    } else if is("numpy", "matrix")? {
        "a numpy.matrix, whose `*` and `**` are products of matrices: pass `numpy.asarray(x)`"
    } else {
        return Ok(());
    };
    Err(PyTypeError::new_err(format!("the argument `{name}` is {why}")))
}

/// The mark of the other byte order than the machine's.
const SWAPPED: u8 = if cfg!(target_endian = "little") { b'>' } else { b'<' };

/// Reads an array of NumPy; what can't be read in place is copied by NumPy first. Bools are not looked at.
pub fn read<'py>(owner: Bound<'py, PyAny>, name: &str) -> PyResult<Array<'py>> {
    if !is_array(&owner) {
        return Err(PyTypeError::new_err("`numpy.asarray` gave no array"));
    }
    let array: *const PyArrayObject = owner.as_ptr().cast();
    // SAFETY: the object is an array of NumPy, whose struct has these fields in all versions of its ABI; nothing changes them
    // until they are copied below: to ask NumPy's own object for a dtype's name runs no code of the user.
    let (fields, descr) = unsafe { (&(*array).fields, &(*(*array).fields.descr).fields) };
    let dtype = dtypes::of_array(owner.py(), fields.descr)?.ok_or_else(|| {
        let dtype = owner.getattr("dtype").and_then(|d| d.str()).map(|s| s.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("the argument `{name}` is an array of {dtype}, a dtype that castwise lacks"))
    })?;
    let (rank, size) = (fields.nd as usize, dtype.size() as isize);
    // SAFETY: an array has `nd` dims and strides; without dims either may be null.
    let dims = |p: *const isize| if rank == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(p, rank) } };
    let (extents, steps) = (dims(fields.dimensions), dims(fields.strides));
    let swapped = descr.byteorder as u8 == SWAPPED;
    // Sizes are powers of two.
    let whole = steps.iter().zip(extents).all(|(s, n)| s & (size - 1) == 0 || *n < 2);
    if swapped || !whole {
        let copy = native(&owner, dtype)?;
        return Ok(Array { in_place: false, ..read(copy, name)? });
    }
    let shift = size.trailing_zeros();
    let (mut shape, mut strides) = (SmallVec::new(), SmallVec::new());
    for (n, step) in extents.iter().zip(steps) {
        shape.push(*n as usize);
        strides.push(step >> shift);
    }
    Ok(Array {
        dtype,
        library: Library::NumPy,
        writable: fields.flags & NPY_ARRAY_WRITEABLE != 0,
        weak: false,
        in_place: true,
        shape,
        strides,
        first: fields.data.cast(),
        owner,
    })
}

/// A row-major copy in the machine's byte order.
fn native<'py>(array: &Bound<'py, PyAny>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let dtype = dtypes::descriptor(py, dtype)?;
    py.import("numpy")?.getattr("array")?.call1((array, dtype))
}

/// A result as an array that owns its memory.
pub fn result<'py>(py: Python<'py>, owned: Owned) -> PyResult<Bound<'py, PyAny>> {
    let t = owned.tensor();
    let (descriptor, size) = (dtypes::descriptor(py, t.dtype())?, t.dtype().size() as isize);
    let mut shape: SmallVec<[isize; 4]> = t.shape().iter().map(|n| *n as isize).collect();
    let mut strides: SmallVec<[isize; 4]> = t.strides().iter().map(|s| s * size).collect();
    let (first, class) = (owned.first(), class(py).ok_or_else(|| PyTypeError::new_err("NumPy is not loaded"))?);
    let memory = Bound::new(py, Memory::new(owned))?;
    // SAFETY: the address is that of the tensor's elements, which the array's base keeps for as long as the array lives
    // and which nothing else refers to; NumPy takes over the reference to the dtype here and that to the base below.
    unsafe {
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
