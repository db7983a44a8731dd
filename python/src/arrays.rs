//! Arguments as views of memory that Python owns, and results as arrays that own castwise's memory.
//!
//! Guarantees: an array on the CPU is read in place where its strides are multiples of an element and its byte order is the
//! machine's; otherwise a copy is read. A result owns its memory, and is writable where its library has writable arrays.
//! Does not: decide dtypes or rules, import libraries.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use castwise::{DType, Scalar, Tensor, TensorLayout, TensorView, TensorViewMut};
use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyFloat, PyInt, PyMemoryView, PyType};
use smallvec::SmallVec;

use crate::dlpack::{self, Owned};
use crate::dtypes;
use crate::eager::{self, PyArray};
use crate::lazy;
use crate::ndarrays;
use crate::torch::{self, Tensors};

/// The library that an array belongs to, which decides the rules of a call and what its results are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// Also that of buffers, and of objects whose module makes no arrays from DLPack.
    NumPy,
    Torch,
    Paddle,
    Jax,
    /// A library with a function `from_dlpack`, by its number in `OTHERS`.
    Other(usize),
}

/// Memory of an array: what a view is made of. Extents and strides are copies, since Python code can change an array's.
pub struct Array<'py> {
    pub dtype: DType,
    pub library: Library,
    pub writable: bool,
    /// Whether it promotes as a scalar does, as some arrays of JAX.
    pub weak: bool,
    /// Whether this is the memory of the argument, not a copy.
    pub in_place: bool,
    pub shape: SmallVec<[usize; 4]>,
    /// In elements.
    pub strides: SmallVec<[isize; 4]>,
    pub first: *mut u8,
    /// Keeps the memory.
    pub owner: Bound<'py, PyAny>,
}

/// Elements that a result is written to, by their layout; the array is borrowed.
pub struct Written<'a> {
    first: *mut u8,
    layout: &'a TensorLayout,
}

impl<'a> Written<'a> {
    /// Those of an array that [`writable`] has checked; the layout is the array's.
    pub fn of(array: &'a Array<'_>, layout: &'a TensorLayout) -> Written<'a> {
        Written { first: array.first, layout }
    }

    /// Those of an object that is a writable array of this library and layout; `None` as in [`view_like`].
    pub fn like(
        obj: Borrowed<'a, '_, PyAny>,
        library: Library,
        layout: &'a TensorLayout,
        traced: bool,
    ) -> Option<Written<'a>> {
        let first = first_like(obj, library, layout, traced)?;
        (library != Library::NumPy || ndarrays::is_writable(&obj)).then_some(Written { first, layout })
    }

    /// Those of a writable array that a view is of, if it has this layout.
    pub fn over(view: &TensorView<'a>, layout: &'a TensorLayout) -> Option<Written<'a>> {
        let same =
            view.dtype() == layout.dtype() && view.shape() == layout.shape() && view.strides() == layout.strides();
        same.then_some(Written { first: view.as_ptr().cast_mut(), layout })
    }

    /// The elements as a view.
    pub fn view(self) -> castwise::Result<TensorViewMut<'a>> {
        // SAFETY: as in `Array::view`; the array is writable, and Rust has no reference to it. Of two arrays of one call none
        // whose elements are contiguous shares one with the other, which `check_apart` has checked; the others are written
        // when the run has ended.
        unsafe { self.layout.over_mut(self.first) }
    }

    /// The addresses from the lowest element to the end of the highest.
    fn span(&self) -> (usize, usize) {
        let (start, size) = (self.first.addr(), self.layout.dtype().size() as i128);
        let (mut low, mut high) = (start as i128, start as i128);
        if self.layout.shape().contains(&0) {
            return (start, start);
        }
        for (n, s) in self.layout.shape().iter().zip(self.layout.strides()) {
            let far = (*n as i128 - 1) * *s as i128 * size;
            *if far < 0 { &mut low } else { &mut high } += far;
        }
        (low as usize, (high + size) as usize)
    }

    /// Whether there are no gaps between the elements.
    fn is_whole(&self) -> bool {
        let (low, high) = self.span();
        high - low == self.layout.shape().iter().product::<usize>() * self.layout.dtype().size()
    }
}

/// An argument of a call.
pub enum Argument<'py> {
    Array(Array<'py>),
    Scalar(Scalar),
}

impl<'py> Array<'py> {
    pub fn layout(&self) -> castwise::Result<TensorLayout> {
        TensorLayout::new(self.dtype, &self.shape[..], &self.strides)
    }

    /// Whether this is the array's layout.
    pub fn has(&self, l: &TensorLayout) -> bool {
        l.dtype() == self.dtype && l.shape() == &self.shape[..] && l.strides() == &self.strides[..]
    }

    /// The elements as a view, by a layout of this array's shape and strides.
    pub fn view<'a>(&'a self, layout: &TensorLayout) -> castwise::Result<TensorView<'a>> {
        // SAFETY: the array's owner keeps its memory for longer than this borrow of it. Python code that writes to the
        // array from another thread during a call is a data race of that code, as with every function of NumPy that
        // releases the interpreter's lock. Bools are checked when the array is read.
        unsafe { layout.over(self.first) }
    }

    /// A tensor with a copy of the elements.
    pub fn tensor(&self) -> castwise::Result<Tensor> {
        self.view(&self.layout()?)?.to_tensor()
    }

    /// An array of elements that castwise owns.
    pub fn copied(py: Python<'py>, t: Tensor, library: Library) -> PyResult<Array<'py>> {
        let (dtype, owned) = (t.dtype(), Owned::new(t)?);
        let (shape, strides) = (owned.tensor().shape().into(), owned.tensor().strides().into());
        let first = owned.first();
        let owner = Bound::new(py, Memory::new(owned))?.into_any();
        Ok(Array { dtype, shape, strides, first, writable: true, library, weak: false, in_place: false, owner })
    }

    /// Bytes of bools other than 0 and 1 are true: they are replaced in a copy.
    pub fn with_bools(self) -> PyResult<Array<'py>> {
        if self.dtype != DType::Bool || self.shape.contains(&0) {
            return Ok(self);
        }
        let numbers = TensorLayout::new(DType::U8, &self.shape[..], &self.strides).map_err(value_error)?;
        // SAFETY: as in `view`; a byte of any value is a u8.
        let bytes = unsafe { numbers.over(self.first) }.map_err(value_error)?;
        let whole;
        let bytes = if bytes.is_contiguous() {
            // SAFETY: the layout has elements and is row-major without gaps, so its bytes are these; they are borrowed as
            // long as the array.
            unsafe { std::slice::from_raw_parts(self.first, bytes.numel()) }
        } else {
            whole = bytes.to_tensor().map_err(value_error)?;
            whole.as_slice::<u8>().map_err(value_error)?
        };
        if bytes.iter().fold(0, |all, b| all | b) < 2 {
            return Ok(self);
        }
        let bools: Vec<u8> = bytes.iter().map(|b| u8::from(*b != 0)).collect();
        let t = Tensor::from_bytes(DType::Bool, &self.shape[..], &bools).map_err(value_error)?;
        Array::copied(self.owner.py(), t, self.library)
    }
}

/// The elements of an object that is an array of this library and layout, which is read in place; `None` if it is not, or if
/// only [`argument`] can tell. `traced`: the history of a tensor is the caller's.
pub fn view_like<'a>(
    obj: Borrowed<'a, '_, PyAny>,
    library: Library,
    layout: &TensorLayout,
    traced: bool,
) -> Option<TensorView<'a>> {
    // Bytes of bools are looked at.
    if layout.dtype() == DType::Bool {
        return None;
    }
    let first = first_like(obj, library, layout, traced)?;
    // SAFETY: as in `Array::view`, of which the address is the one that an array of this object would have; the object is borrowed
    // as long as the view.
    unsafe { layout.over(first) }.ok()
}

/// The address of the first element of an object that is an array of this library and layout.
fn first_like(obj: Borrowed<'_, '_, PyAny>, library: Library, layout: &TensorLayout, traced: bool) -> Option<*mut u8> {
    // Lazy conjugation is resolved.
    if layout.dtype().is_complex() {
        return None;
    }
    match library {
        Library::NumPy => ndarrays::elements(&obj, layout),
        Library::Torch | Library::Paddle => match kind(&obj).ok()? {
            Kind::Tensors(tensors) => tensors.elements(&obj, library, layout, traced),
            _ => None,
        },
        Library::Jax | Library::Other(_) => None,
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

/// How objects of a type are read.
#[derive(Clone, Copy)]
enum Kind {
    Tensors(Tensors),
    Jax,
    DlPack(Library),
    /// What `numpy.asarray` takes.
    ToNumPy,
    Buffer,
    /// Of Dask.
    Lazy,
    /// Of `castwise.xp`.
    Own,
    /// None of these.
    Unknown,
}

/// A type, by its address, with its kind.
struct Known {
    address: usize,
    /// Keeps the address from being another type's.
    _class: Py<PyType>,
    kind: Kind,
}

/// The kinds of the types that were met first, in order; a place that is filled stays so, and is read without a lock. Types beyond
/// these are asked each time.
static KINDS: [OnceLock<Known>; 64] = [const { OnceLock::new() }; 64];

/// Modules of other libraries, and their functions `from_dlpack`.
static OTHERS: Mutex<Vec<(String, Py<PyAny>)>> = Mutex::new(Vec::new());

fn kind(obj: &Bound<'_, PyAny>) -> PyResult<Kind> {
    let class = obj.get_type();
    let address = class.as_ptr() as usize;
    if let Some(known) = KINDS.iter().map_while(OnceLock::get).find(|known| known.address == address) {
        return Ok(known.kind);
    }
    let kind = kind_of(obj, &class)?;
    // A released buffer has no kind, but other buffers of its type do.
    if matches!(kind, Kind::Unknown) {
        return Ok(kind);
    }
    let mut known = Known { address, _class: class.unbind(), kind };
    for place in &KINDS {
        match place.set(known) {
            Ok(()) => break,
            // Another thread was faster, or the place has another type.
            Err(_) if place.get().is_some_and(|first| first.address == address) => break,
            Err(back) => known = back,
        }
    }
    Ok(kind)
}

/// How tensors of an object's type are read, if it is of PyTorch or Paddle.
pub fn tensors(obj: &Bound<'_, PyAny>) -> PyResult<Option<Tensors>> {
    match kind(obj)? {
        Kind::Tensors(tensors) => Ok(Some(tensors)),
        _ => Ok(None),
    }
}

fn kind_of(obj: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> PyResult<Kind> {
    let py = obj.py();
    if obj.cast::<PyArray>().is_ok() {
        return Ok(Kind::Own);
    }
    for library in [Library::Torch, Library::Paddle] {
        if let Some(tensor) = torch::class(py, library)?
            && class.is_subclass(&tensor)?
        {
            return Ok(Kind::Tensors(Tensors::new(library, class)));
        }
    }
    let modules = py.import("sys")?.getattr("modules")?;
    if let Ok(jax) = modules.get_item("jax")
        && jax.getattr("Array").is_ok_and(|array| obj.is_instance(&array).unwrap_or(false))
    {
        return Ok(Kind::Jax);
    }
    if class.hasattr("__dlpack__")? && class.hasattr("__dlpack_device__")? {
        return Ok(Kind::DlPack(other(class)?.unwrap_or(Library::NumPy)));
    }
    if lazy::is_lazy(class)? {
        return Ok(Kind::Lazy);
    }
    let numpy_makes = class.hasattr("__array__")? || class.hasattr("__array_interface__")?;
    Ok(if numpy_makes {
        Kind::ToNumPy
    } else if PyMemoryView::from(obj).is_ok() {
        Kind::Buffer
    } else {
        Kind::Unknown
    })
}

/// The library of a type whose module, or that above, has a function `from_dlpack`.
fn other(class: &Bound<'_, PyType>) -> PyResult<Option<Library>> {
    let module: String = class.getattr("__module__")?.extract()?;
    let name = module.split('.').next().unwrap_or_default();
    let module = class.py().import("sys")?.getattr("modules")?.get_item(name);
    let Ok(function) = module.and_then(|m| m.getattr("from_dlpack")) else { return Ok(None) };
    let mut all = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.iter().position(|(known, _)| known == name).unwrap_or(all.len());
    if at == all.len() {
        all.push((name.to_string(), function.unbind()));
    }
    Ok(Some(Library::Other(at)))
}

/// Reads an array.
pub fn array<'py>(obj: &Bound<'py, PyAny>, name: &str) -> PyResult<Array<'py>> {
    array_as_is(obj, name)?.with_bools()
}

/// Reads an array whose bools may be any bytes.
fn array_as_is<'py>(obj: &Bound<'py, PyAny>, name: &str) -> PyResult<Array<'py>> {
    if ndarrays::is_array(obj) {
        ndarrays::check_plain(obj, name)?;
        return ndarrays::read(obj.clone(), name);
    }
    let copy_of = |obj: &Bound<'py, PyAny>| {
        let made = obj.py().import("numpy")?.getattr("asarray")?.call1((obj,))?;
        ndarrays::read(made, name)
    };
    match kind(obj)? {
        Kind::Tensors(tensors) => tensors.read(obj, name),
        Kind::Jax => jax_array(obj, name),
        Kind::DlPack(library) => dlpack::read(obj, library, name),
        Kind::ToNumPy => copy_of(obj),
        // Bytes are an array of characters to NumPy; a view of them is one of numbers.
        Kind::Buffer if ndarrays::class(obj.py()).is_some() => copy_of(&PyMemoryView::from(obj)?.into_any()),
        Kind::Buffer => buffer(obj, name),
        Kind::Lazy => Err(lazy::refused(name)),
        Kind::Own => Err(eager::refused(name)),
        Kind::Unknown => {
            let found = obj.get_type().fully_qualified_name()?;
            Err(PyTypeError::new_err(format!("the argument `{name}` is a {found}, not an array or a number")))
        }
    }
}

/// Reads an array of JAX: NumPy's view of its memory.
fn jax_array<'py>(obj: &Bound<'py, PyAny>, name: &str) -> PyResult<Array<'py>> {
    let py = obj.py();
    let refused = |what: String| Err(PyTypeError::new_err(format!("the argument `{name}` is {what}")));
    if obj.is_instance(&py.import("jax")?.getattr("core")?.getattr("Tracer")?)? {
        return refused("traced by JAX and has no elements: call castwise outside of `jax.jit` and `jax.grad`".into());
    }
    let device = obj.getattr(intern!(py, "device"))?;
    // Of an array on several devices this is a sharding, which has no platform.
    if let Ok(platform) = device.getattr(intern!(py, "platform"))
        && platform.extract::<String>()? != "cpu"
    {
        return refused(format!("on the device {device}: castwise computes on the CPU, call `jax.device_put`"));
    }
    let weak = obj.getattr(intern!(py, "weak_type"))?.is_truthy()?;
    let view = py.import("numpy")?.getattr("asarray")?.call1((obj,))?;
    Ok(Array { weak, writable: false, library: Library::Jax, ..ndarrays::read(view, name)? })
}

/// Reads a copy of a buffer, where NumPy is not loaded: the stable interface of Python 3.10 gives no addresses.
fn buffer<'py>(obj: &Bound<'py, PyAny>, name: &str) -> PyResult<Array<'py>> {
    let view = PyMemoryView::from(obj)?;
    let (format, size): (String, usize) = (view.getattr("format")?.extract()?, view.getattr("itemsize")?.extract()?);
    let shape: Vec<usize> = view.getattr("shape")?.extract()?;
    let code = format.strip_prefix(['@', '=', '<']).unwrap_or(&format);
    let found = match (code, size) {
        ("?", 1) => "bool",
        ("e", 2) => "f16",
        ("f", 4) => "f32",
        ("d", 8) => "f64",
        ("Zf", 8) => "c64",
        ("Zd", 16) => "c128",
        ("b" | "h" | "i" | "l" | "q" | "n", 1 | 2 | 4 | 8) => ["i8", "i16", "i32", "i64"][size.ilog2() as usize],
        ("c" | "B" | "H" | "I" | "L" | "Q" | "N", 1 | 2 | 4 | 8) => ["u8", "u16", "u32", "u64"][size.ilog2() as usize],
        _ => "",
    };
    let dtype = dtypes::named(found).ok_or_else(|| {
        let text = format!("the argument `{name}` is a buffer of format {format:?}, which castwise lacks");
        PyTypeError::new_err(text)
    })?;
    let bytes = view.call_method0("tobytes")?;
    let mut bytes = bytes.cast::<PyBytes>()?.as_bytes().to_vec();
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    let t = Tensor::from_bytes(dtype, &shape, &bytes).map_err(value_error)?;
    Array::copied(obj.py(), t, Library::NumPy)
}

fn value_error(e: castwise::Error) -> PyErr {
    PyValueError::new_err(e.to_string())
}

/// An array for a result. Errors: it is read-only, or not an array that can be written in place.
pub fn target<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    // What it has is written over.
    let array = array_as_is(obj, "out")?;
    let in_place = array.in_place && !gives_copies(obj, &array)?;
    writable(Array { in_place, ..array })
}

/// Whether `numpy.asarray` copies an object: two calls give different memory.
fn gives_copies(obj: &Bound<'_, PyAny>, array: &Array<'_>) -> PyResult<bool> {
    if ndarrays::is_array(obj) || !matches!(kind(obj)?, Kind::ToNumPy) {
        return Ok(false);
    }
    Ok(array_as_is(obj, "out")?.first != array.first)
}

/// An array for a result, or the error of one that can't be written.
pub fn writable(array: Array<'_>) -> PyResult<Array<'_>> {
    if array.library == Library::Jax {
        return Err(PyValueError::new_err("`out` is an array of JAX, which can't be written to"));
    }
    if !array.in_place {
        let text = "`out` can't be written in place: it has foreign byte order, strides that are not multiples of its \
                    elements, lazy conjugation, gives NumPy a copy, exports one by DLPack, or is a buffer while NumPy is not imported";
        return Err(PyValueError::new_err(text));
    }
    if !array.writable {
        return Err(PyValueError::new_err("`out` is read-only"));
    }
    Ok(array)
}

/// Refuses arrays for results of which some share elements. (Of two with gaps it is not known, and they are written in turn.)
pub fn check_apart<'a>(written: impl Iterator<Item = &'a Written<'a>>) -> PyResult<()> {
    // Sorted, since an optimizer that is compiled as a whole has hundreds.
    let spans = written.map(|a| (a.span(), a.is_whole())).filter(|((from, to), _)| from < to);
    let mut spans: SmallVec<[((usize, usize), bool); 8]> = spans.collect();
    spans.sort_unstable();
    // The ends of those that begin before, of all and of those without gaps.
    let (mut all, mut whole) = (0, 0);
    for ((from, to), is_whole) in spans {
        if from < whole || is_whole && from < all {
            return Err(PyValueError::new_err("two arrays of `out` share elements"));
        }
        all = all.max(to);
        whole = if is_whole { whole.max(to) } else { whole };
    }
    Ok(())
}

/// A result, where no library for it is loaded. Other libraries take it by DLPack, without a copy.
#[pyclass(frozen, module = "castwise._core")]
pub struct Memory(Arc<Owned>);

impl Memory {
    pub fn new(owned: Owned) -> Memory {
        Memory(Arc::new(owned))
    }

    pub fn capsule<'py>(&self, py: Python<'py>, versioned: bool) -> PyResult<Bound<'py, PyAny>> {
        self.0.capsule(py, versioned)
    }
}

#[pymethods]
impl Memory {
    /// A capsule for libraries that take DLPack.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Py<PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        if dl_device.is_some_and(|(kind, _)| kind != 1) || copy == Some(true) {
            return Err(pyo3::exceptions::PyBufferError::new_err("a result is on the CPU, and is not copied"));
        }
        self.capsule(py, max_version.is_some_and(|(major, _)| major >= 1))
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    /// The extents.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, self.0.tensor().shape())
    }

    /// The name of the dtype.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.tensor().dtype().name()
    }

    fn __repr__(&self) -> String {
        format!("<castwise result {}>", self.0.tensor().meta())
    }
}

/// A result as an array of a library.
pub fn result<'py>(py: Python<'py>, t: Tensor, library: Library) -> PyResult<Bound<'py, PyAny>> {
    let dtype = t.dtype();
    let owned = Owned::new(t)?;
    let given = |owned| Ok::<_, PyErr>(Bound::new(py, Memory::new(owned))?.into_any());
    match library {
        Library::NumPy if ndarrays::class(py).is_some() => ndarrays::result(py, owned),
        Library::NumPy => given(owned),
        Library::Torch | Library::Paddle => {
            let unloaded = || PyTypeError::new_err("the library of an argument is not loaded");
            static TENSORS: [OnceLock<Tensors>; 2] = [const { OnceLock::new() }; 2];
            let place = &TENSORS[usize::from(library == Library::Paddle)];
            let tensors = match place.get() {
                Some(known) => *known,
                None => {
                    let class = torch::class(py, library)?.ok_or_else(unloaded)?;
                    // Asked outside of the lock, because it runs Python code.
                    let made = Tensors::new(library, &class);
                    *place.get_or_init(|| made)
                }
            };
            tensors.result(py, owned)
        }
        Library::Jax => {
            let wide = matches!(dtype, DType::I64 | DType::U64 | DType::F64 | DType::C128);
            if wide && !dtypes::jax_x64(py)? {
                let text = format!("a result is {dtype}, which JAX has only with `jax_enable_x64`: cast the result");
                return Err(PyTypeError::new_err(text));
            }
            py.import("jax.dlpack")?.getattr("from_dlpack")?.call1((given(owned)?,))
        }
        Library::Other(at) => {
            let function = OTHERS.lock().unwrap_or_else(PoisonError::into_inner)[at].1.clone_ref(py);
            function.bind(py).call1((given(owned)?,))
        }
    }
}
