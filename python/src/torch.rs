//! Tensors of PyTorch and Paddle on the CPU.
//!
//! Guarantees: a dense tensor is read in place, by the table of DLPack where the library has one; lazy conjugation and negation
//! are resolved first; a tensor that needs gradients is refused, because its history would be cut. A result is handed over
//! without a copy. Does not: import the libraries.

use castwise::{DType, TensorLayout};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::arrays::{self, Array, Library, Memory};
use crate::dlpack::{self, Owned, Table};

/// How tensors of a type are read, and results made.
#[derive(Clone, Copy)]
pub struct Tensors {
    library: Library,
    /// `None` in PyTorch before 2.10 and Paddle before 3.3.
    table: Option<Table>,
}

/// The class of tensors of a library, if it is loaded.
pub fn class(py: Python<'_>, library: Library) -> PyResult<Option<Bound<'_, PyType>>> {
    let name = if library == Library::Torch { "torch" } else { "paddle" };
    let modules = py.import("sys")?.getattr("modules")?;
    if !modules.contains(name)? {
        return Ok(None);
    }
    // While a library is being imported it has no `Tensor` yet.
    Ok(modules.get_item(name)?.getattr("Tensor").ok().and_then(|t| t.cast_into().ok()))
}

/// A tensor of this dtype without lazy conjugation and negation, if it has either. Only complex elements are conjugated.
fn resolved<'py>(obj: &Bound<'py, PyAny>, dtype: DType) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (py, mut resolved) = (obj.py(), None);
    if dtype.is_complex() && obj.call_method0(intern!(py, "is_conj"))?.is_truthy()? {
        resolved = Some(obj.call_method0(intern!(py, "resolve_conj"))?);
    }
    let now = resolved.as_ref().unwrap_or(obj);
    if now.call_method0(intern!(py, "is_neg"))?.is_truthy()? {
        resolved = Some(now.call_method0(intern!(py, "resolve_neg"))?);
    }
    Ok(resolved)
}

/// Reads a tensor of PyTorch in a graph that PyTorch differentiates itself.
pub fn traced<'py>(obj: &Bound<'py, PyAny>, name: &str) -> PyResult<Array<'py>> {
    match arrays::tensors(obj)? {
        Some(tensors) if tensors.library == Library::Torch => tensors.read_values(obj, name),
        _ => Err(PyTypeError::new_err(format!("the argument `{name}` is no tensor of PyTorch"))),
    }
}

impl Tensors {
    /// How tensors of this class or a subclass are read.
    pub fn new(library: Library, class: &Bound<'_, PyType>) -> Tensors {
        Tensors { library, table: Table::of(class) }
    }

    /// Whether a tensor requires gradients.
    fn has_history(self, obj: &Bound<'_, PyAny>) -> PyResult<bool> {
        match self.library {
            Library::Torch => obj.getattr(intern!(obj.py(), "requires_grad"))?.is_truthy(),
            _ => Ok(!obj.getattr(intern!(obj.py(), "stop_gradient"))?.is_truthy()?),
        }
    }

    /// The address of the first element of a tensor of this library and layout, if it can be read as it is. Its elements are real.
    pub fn elements(
        self,
        obj: &Bound<'_, PyAny>,
        library: Library,
        layout: &TensorLayout,
        traced: bool,
    ) -> Option<*mut u8> {
        if self.library != library || !traced && self.has_history(obj).ok()? {
            return None;
        }
        let first = self.table?.elements(obj, layout)?;
        let is_lazy = || obj.call_method0(intern!(obj.py(), "is_neg")).and_then(|b| b.is_truthy());
        (library != Library::Torch || !is_lazy().ok()?).then_some(first)
    }

    /// Reads a tensor.
    pub fn read<'py>(self, obj: &Bound<'py, PyAny>, name: &str) -> PyResult<Array<'py>> {
        // DLPack's table does not ask for this.
        if self.has_history(obj)? {
            let text = format!("the argument `{name}` is a tensor that requires gradients: call `.detach()`");
            return Err(PyTypeError::new_err(text));
        }
        self.read_values(obj, name)
    }

    /// Reads a tensor whose history is the caller's.
    fn read_values<'py>(self, obj: &Bound<'py, PyAny>, name: &str) -> PyResult<Array<'py>> {
        let read = |obj: &Bound<'py, PyAny>| {
            let read = match self.table {
                Some(table) => table.read(obj, self.library, name),
                None => dlpack::read(obj, self.library, name),
            };
            read.map_err(|e| self.refused(obj, name).ok().flatten().unwrap_or(e))
        };
        if self.library != Library::Torch {
            return read(obj);
        }
        // DLPack's table tells nothing of lazy conjugation and negation; without it PyTorch refuses tensors that have it.
        let as_is = self.table.map(|_| read(obj)).transpose()?;
        match (resolved(obj, as_is.as_ref().map_or(DType::C128, |a| a.dtype))?, as_is) {
            (Some(resolved), _) => Ok(Array { in_place: false, ..read(&resolved)? }),
            (None, Some(array)) => Ok(array),
            (None, None) => read(obj),
        }
    }

    /// Why the library gives no memory of a tensor, if it is for one of the known reasons.
    #[cold]
    fn refused(self, obj: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<PyErr>> {
        let error = |what: String| Some(PyTypeError::new_err(format!("the argument `{name}` is {what}")));
        let asks = |method: &str| obj.call_method0(method).and_then(|b| b.is_truthy());
        let (dense, device, meta) = match self.library {
            Library::Torch => {
                let strided = obj.py().import("torch")?.getattr("strided")?;
                let device = obj.getattr("device")?.str()?.to_string();
                (obj.getattr("layout")?.is(&strided), device, obj.getattr("is_meta")?.is_truthy()?)
            }
            _ => (asks("is_dense")?, obj.getattr("place")?.str()?.to_string(), false),
        };
        Ok(if meta {
            error("a tensor on the device meta, which has no elements".into())
        } else if !dense {
            error("a tensor that is sparse: call `.to_dense()`".into())
        } else if !matches!(&*device, "cpu" | "Place(cpu)") {
            error(format!("on the device {device}: castwise computes on the CPU, call `.cpu()`"))
        } else if obj.getattr("is_quantized").is_ok_and(|q| q.is_truthy().unwrap_or(false)) {
            error("a quantized tensor: call `.dequantize()`".into())
        } else {
            let dtype = obj.getattr("dtype")?.str()?.to_string();
            let lacks = crate::dtypes::named(&dtype).is_none();
            if lacks { error(format!("a tensor of {dtype}, a dtype that castwise lacks")) } else { None }
        })
    }

    /// A result as a tensor of the library that owns its memory.
    pub fn result<'py>(self, py: Python<'py>, owned: Owned) -> PyResult<Bound<'py, PyAny>> {
        if let Some(table) = self.table {
            return table.result(py, owned);
        }
        let module = if self.library == Library::Torch { "torch.utils.dlpack" } else { "paddle.utils.dlpack" };
        let capsule = Memory::new(owned).capsule(py, false)?;
        py.import(module)?.getattr("from_dlpack")?.call1((capsule,))
    }
}
