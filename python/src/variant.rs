//! A program for arguments of some dtypes and ranks, and its calls.
//!
//! Guarantees: the layouts of arguments and of `out` are kept from call to call; a long call releases the interpreter's lock,
//! and one of the main thread looks for signals; results that are given to `out` are written there, in place where they can be.
//! Does not: read arguments, or choose the program.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use castwise::{
    AsTarget, CancelToken, DType, Prepared, Program, Scalar, Settings, Target, Tensor, TensorLayout, TensorView,
    TensorViewMut,
};
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;

use crate::arrays::{self, Argument, Array, Library, Written};
use crate::torch;

/// What a call returns.
#[derive(Clone, Debug)]
pub enum Form {
    One,
    Tuple,
    Dict(Vec<String>),
}

impl Form {
    /// Results in this form.
    pub fn of<'py>(&self, py: Python<'py>, mut made: SmallVec<[Bound<'py, PyAny>; 2]>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Form::One => made.pop().ok_or_else(|| PyValueError::new_err("a program without results")),
            Form::Tuple => Ok(PyTuple::new(py, made)?.into_any()),
            Form::Dict(names) => {
                let all = PyDict::new(py);
                for (name, value) in names.iter().zip(made) {
                    all.set_item(name, value)?;
                }
                Ok(all.into_any())
            }
        }
    }
}

/// An argument as far as dtypes depend on it.
#[derive(Clone, Copy, PartialEq)]
pub enum Seen {
    Array {
        dtype: DType,
        rank: usize,
        weak: bool,
    },
    /// The bits of a number, and its category.
    Scalar(u128, u8),
    /// A parameter that is left to its default.
    Left,
}

impl Seen {
    pub fn of(argument: Option<&Argument<'_>>) -> Seen {
        let Some(argument) = argument else { return Seen::Left };
        match argument {
            Argument::Array(a) => Seen::Array { dtype: a.dtype, rank: a.shape.len(), weak: a.weak },
            Argument::Scalar(Scalar::Bool(v)) => Seen::Scalar((*v).into(), 0),
            Argument::Scalar(Scalar::Int(v)) => Seen::Scalar(*v as u128, 1),
            Argument::Scalar(Scalar::Float(v)) => Seen::Scalar(v.to_bits().into(), 2),
            Argument::Scalar(Scalar::Complex(v)) => {
                Seen::Scalar(u128::from(v.re.to_bits()) << 64 | u128::from(v.im.to_bits()), 3)
            }
        }
    }
}

/// What arrays of a call were, as far as views of them depend on it.
pub type Like = Arc<[(Library, TensorLayout)]>;

/// The libraries and layouts of the arrays of the last call.
#[derive(Default)]
pub struct Layouts(Mutex<Like>);

impl Layouts {
    /// Those of the last call.
    pub fn last(&self) -> Like {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The layouts of these arrays.
    fn of<'a, 'py: 'a>(&self, arrays: impl ExactSizeIterator<Item = &'a Array<'py>> + Clone) -> castwise::Result<Like> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |((library, l), a): (&(Library, TensorLayout), &Array<'_>)| a.library == *library && a.has(l);
        if last.len() != arrays.len() || !last.iter().zip(arrays.clone()).all(same) {
            *last = arrays.map(|a| Ok((a.library, a.layout()?))).collect::<castwise::Result<_>>()?;
        }
        Ok(last.clone())
    }
}

/// A program for arguments of some dtypes and ranks.
pub struct Variant {
    pub settings: Settings,
    pub seen: Vec<Seen>,
    pub program: Program,
    pub prepared: Prepared,
    pub form: Form,
    /// Which arguments are feeds, in the order of the program's placeholders.
    pub feeds: Vec<usize>,
    pub read: Layouts,
    pub written: Layouts,
}

/// Views of the feeds of a call.
pub type Views<'a> = SmallVec<[TensorView<'a>; 4]>;

/// From this number of elements on, a call releases the interpreter's lock.
const RELEASED: usize = 1 << 14;

/// From this number of elements on, a call of the main thread looks for signals such as Ctrl-C while it runs.
const INTERRUPTED: usize = 1 << 22;

/// What makes an exception of an error.
pub type Fail<'a> = &'a dyn Fn(castwise::Error) -> PyErr;

/// Where results are written to: `None` for one that is to be a new array.
type Elements<'a> = SmallVec<[Option<Written<'a>>; 4]>;

/// The results that are new.
type Made = SmallVec<[Option<Tensor>; 4]>;

/// Where a result goes.
enum Place<'a> {
    New(Option<Tensor>),
    Given(TensorViewMut<'a>),
}

impl AsTarget for Place<'_> {
    fn as_target(&mut self) -> Target<'_> {
        match self {
            Place::New(t) => t.as_target(),
            Place::Given(view) => view.as_target(),
        }
    }
}

impl Variant {
    /// The feeds among the arguments of a call.
    pub fn feeds<'a, 'py>(&self, arguments: &'a [Option<Argument<'py>>]) -> SmallVec<[&'a Array<'py>; 4]> {
        let array = |at: &usize| match &arguments[*at] {
            Some(Argument::Array(a)) => Some(a),
            _ => None,
        };
        self.feeds.iter().filter_map(array).collect()
    }

    /// Puts the views of arguments into `views` and gives the library of the first, if all are like those of an earlier call. Then
    /// nothing else about them is asked, which is most of what a small call takes. `traced` as in [`arrays::view_like`].
    pub fn views_like<'a, 'py>(
        &self,
        like: &Like,
        arguments: impl Iterator<Item = Borrowed<'a, 'py, PyAny>>,
        traced: bool,
        views: &mut Views<'a>,
    ) -> Option<Library> {
        let mut known = like.iter();
        for (at, (obj, seen)) in arguments.zip(&self.seen).enumerate() {
            match seen {
                Seen::Array { .. } if self.feeds.get(views.len()) == Some(&at) => {
                    let (library, layout) = known.next()?;
                    views.push(arrays::view_like(obj, *library, layout, traced)?);
                }
                // An argument that the program does not read, or one that was left out.
                Seen::Array { .. } | Seen::Left => return None,
                Seen::Scalar(..) => {
                    let given = Argument::Scalar(arrays::scalar(&obj).ok()??);
                    (Seen::of(Some(&given)) == *seen).then_some(())?;
                }
            }
        }
        like.first().map(|(library, _)| *library)
    }

    /// Calls with these feeds; the results are what `out` gives, or new arrays of a library.
    pub fn call<'py>(
        &self,
        py: Python<'py>,
        views: &[TensorView<'_>],
        library: Library,
        out: Option<&Bound<'py, PyAny>>,
        fail: Fail<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(out) = out else {
            let mut made = self.run(py, views, fail)?;
            if matches!(self.form, Form::One)
                && let Some(t) = made.pop()
            {
                return arrays::result(py, t, library);
            }
            let made = made.into_iter().map(|t| arrays::result(py, t, library));
            return self.form.of(py, made.collect::<PyResult<SmallVec<_>>>()?);
        };
        let objects = self.objects(out)?;
        let made = self.run_into(py, views, &objects, false, &[], fail)?;
        if !objects.iter().any(|o| o.is_none()) {
            return Ok(out.clone());
        }
        let result = |(object, made): (Bound<'py, PyAny>, Option<Tensor>)| match made {
            Some(t) => arrays::result(py, t, library),
            None => Ok(object),
        };
        self.form.of(py, objects.into_iter().zip(made).map(result).collect::<PyResult<SmallVec<_>>>()?)
    }

    /// Calls with tensors of PyTorch; `out` has a tensor or `None` for each result. Returns the results that are new. `fed` has the
    /// arguments if the views are of their own memory, not of copies; else it is empty.
    pub fn call_tensors<'py>(
        &self,
        py: Python<'py>,
        fed: &[Bound<'py, PyAny>],
        views: &[TensorView<'_>],
        out: &[Bound<'py, PyAny>],
        fail: Fail<'_>,
    ) -> PyResult<Bound<'py, PyList>> {
        let result = |t: Tensor| arrays::result(py, t, Library::Torch);
        let made = if out.iter().all(|o| o.is_none()) {
            self.run(py, views, fail)?.into_iter().map(result).collect::<PyResult<SmallVec<[_; 2]>>>()?
        } else {
            let made = self.run_into(py, views, out, true, fed, fail)?;
            made.into_iter().flatten().map(result).collect::<PyResult<SmallVec<[_; 2]>>>()?
        };
        PyList::new(py, made)
    }

    /// Views of feeds.
    pub fn views<'a>(&self, feeds: &'a [&Array<'_>]) -> castwise::Result<Views<'a>> {
        let layouts = self.read.of(feeds.iter().copied())?;
        feeds.iter().zip(&layouts[..]).map(|(a, (_, l))| a.view(l)).collect()
    }

    /// What `out` gives for each result.
    fn objects<'py>(&self, out: &Bound<'py, PyAny>) -> PyResult<SmallVec<[Bound<'py, PyAny>; 2]>> {
        match &self.form {
            Form::One => Ok(SmallVec::from_iter([out.clone()])),
            Form::Tuple => out.try_iter()?.collect(),
            Form::Dict(names) => names.iter().map(|n| out.get_item(n)).collect(),
        }
    }

    fn run(&self, py: Python<'_>, views: &[TensorView<'_>], fail: Fail<'_>) -> PyResult<Vec<Tensor>> {
        let elements = views.iter().map(TensorView::numel).max().unwrap_or(0);
        if elements < RELEASED {
            return self.prepared.run_views(views).map_err(fail);
        }
        if elements < INTERRUPTED {
            return py.detach(|| self.prepared.run_views(views)).map_err(fail);
        }
        interruptible(py, |token| self.prepared.run_views_with(views, token))?.map_err(fail)
    }

    /// Runs with results in those of these objects that are arrays; gives the results for those that are `None`. `traced` as in
    /// [`arrays::view_like`]; `fed` as in `call_tensors`.
    fn run_into<'py>(
        &self,
        py: Python<'py>,
        views: &[TensorView<'_>],
        objects: &[Bound<'py, PyAny>],
        traced: bool,
        fed: &[Bound<'py, PyAny>],
        fail: Fail<'_>,
    ) -> PyResult<Made> {
        let like = self.written.last();
        let is_fed = |at: &usize, o: &Bound<'_, PyAny>| fed.get(*at).is_some_and(|t| t.is(o));
        let fed = |o: &Bound<'_, PyAny>| views.get(self.feeds.iter().position(|at| is_fed(at, o))?);
        if let Some(known) = written_like(objects, &like, traced, &fed) {
            return self.run_written(py, views, known, fail);
        }
        let read = |o: &Bound<'py, PyAny>| {
            if traced { arrays::writable(torch::traced(o, "out")?) } else { arrays::target(o) }
        };
        let given = objects.iter().filter(|o| !o.is_none());
        let arrays = given.map(read).collect::<PyResult<SmallVec<[_; 4]>>>()?;
        let like = self.written.of(arrays.iter()).map_err(fail)?;
        let mut known = arrays.iter().zip(&like[..]).map(|(a, (_, l))| Written::of(a, l));
        let written = objects.iter().map(|o| if o.is_none() { None } else { known.next() }).collect();
        self.run_written(py, views, written, fail)
    }

    /// Runs with results in these elements; gives the results that have none.
    fn run_written(
        &self,
        py: Python<'_>,
        views: &[TensorView<'_>],
        written: Elements<'_>,
        fail: Fail<'_>,
    ) -> PyResult<Made> {
        arrays::check_apart(written.iter().flatten())?;
        let mut into = SmallVec::<[Place<'_>; 4]>::new();
        for elements in written {
            into.push(match elements {
                Some(e) => Place::Given(e.view().map_err(fail)?),
                None => Place::New(None),
            });
        }
        let elements = views.iter().map(TensorView::numel).max().unwrap_or(0);
        if elements < RELEASED {
            self.prepared.run_views_into(views, &mut into).map_err(fail)?;
        } else if elements < INTERRUPTED {
            py.detach(|| self.prepared.run_views_into(views, &mut into)).map_err(fail)?;
        } else {
            interruptible(py, |token| self.prepared.run_views_into_with(views, &mut into, token))?.map_err(fail)?;
        }
        let made = |place| match place {
            Place::New(t) => t,
            Place::Given(_) => None,
        };
        Ok(into.into_iter().map(made).collect())
    }
}

/// Where results are written to, if the arrays among these objects are like those of an earlier call; nothing else about them is
/// asked. `traced` as in [`arrays::view_like`]; `fed` gives the view of an object that is a feed and may be written to.
fn written_like<'a>(
    objects: &'a [Bound<'_, PyAny>],
    like: &'a Like,
    traced: bool,
    fed: &dyn Fn(&Bound<'_, PyAny>) -> Option<&'a TensorView<'a>>,
) -> Option<Elements<'a>> {
    let mut known = like.iter();
    let mut written = Elements::new();
    for o in objects {
        written.push(if o.is_none() {
            None
        } else {
            let (library, layout) = known.next()?;
            let over = fed(o).and_then(|view| Written::over(view, layout));
            Some(over.or_else(|| Written::like(o.as_borrowed(), *library, layout, traced))?)
        });
    }
    known.next().is_none().then_some(written)
}

/// Runs while looking for signals every 50 ms, on the main thread, and stops the run if a handler raises.
fn interruptible<T: Send>(
    py: Python<'_>,
    run: impl FnOnce(&CancelToken) -> castwise::Result<T> + Send,
) -> PyResult<castwise::Result<T>> {
    let raised = Arc::new(Mutex::new(None));
    let by_handler = raised.clone();
    let token = CancelToken::asking(Duration::from_millis(50), move || {
        let found = Python::attach(|py| py.check_signals()).err();
        let stops = found.is_some();
        *by_handler.lock().unwrap_or_else(PoisonError::into_inner) = found;
        stops
    });
    let made = py.detach(|| run(&token));
    let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.map_or(Ok(made), Err)
}
