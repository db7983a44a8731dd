//! Compiled programs: what a call looks up, and how it runs.
//!
//! Guarantees: a program is typed once for the dtypes and ranks of its arguments, and then found again; calls from many
//! threads are independent. A scalar argument is a constant: each value is another program. Does not: keep arrays.

use std::sync::{Arc, Mutex, PoisonError};

use castwise::shape::{Dim, Dims};
use castwise::{DType, Program, Scalar, Settings, Var};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;

use crate::apply::python_scalar;
use crate::arrays::{self, Argument, Library};
use crate::describe::{self, Described};
use crate::errors::{exception, unknown_name};
use crate::executor::PyExecutor;
use crate::html;
use crate::lazy;
use crate::options::Options;
use crate::place::here;
use crate::torch;
use crate::var::PyVar;
use crate::variant::{Form, Layouts, Like, Seen, Variant, Views};

/// What is compiled.
enum Source {
    Expression(String),
    /// The text of a program, which declares its dtypes.
    Text(String),
    Function(Py<PyAny>),
}

/// Programs of one `Compiled` that are kept: those that were called last. Scalars make as many as they have values.
const MOST: usize = 256;

/// Programs of one `Compiled` that a notebook shows.
const SHOWN: usize = 3;

/// A compiled expression, function or program. Call it with arrays, by position or by name.
///
/// The result is a new array, or one that `out=` gives, which may be an argument; of several results a tuple or a dict, of
/// which `out=` may give some and None for others. Many threads may call it. It pickles as its text.
///
/// >>> import numpy as np, castwise
/// >>> f = castwise.compile("a * 0.5 + b")
/// >>> f(np.float32([1, 2]), b=np.float32([1, 1]))
/// array([1.5, 2. ], dtype=float32)
/// >>> f.names, f.result_type(np.int64, np.float32)
/// (['a', 'b'], 'f64')
#[pyclass(frozen, weakref, module = "castwise")]
pub struct Compiled {
    source: Source,
    names: Vec<String>,
    options: Options,
    /// The latest first.
    variants: Mutex<Vec<Arc<Variant>>>,
    last: Mutex<Option<Arc<Last>>>,
}

/// The variant of the last call, and what its arguments were.
type Last = (Arc<Variant>, Like);

impl Compiled {
    pub fn expression(py: Python<'_>, text: &str, options: Options) -> PyResult<Compiled> {
        let names = castwise::expr::input_names(text).map_err(|e| exception(py, &e, Some(text)))?;
        Ok(Compiled::new(Source::Expression(text.into()), names, options))
    }

    pub fn of_text(py: Python<'_>, text: &str, options: Options) -> PyResult<Compiled> {
        let program = parse(py, text)?;
        let options = options.of_program(&program.settings().named())?;
        Ok(Compiled::new(Source::Text(text.into()), program.feed_names(), options))
    }

    pub fn function(function: &Bound<'_, PyAny>, names: Vec<String>, options: Options) -> PyResult<Compiled> {
        Ok(Compiled::new(Source::Function(function.clone().unbind()), names, options))
    }

    fn new(source: Source, names: Vec<String>, options: Options) -> Compiled {
        Compiled { source, names, options, variants: Mutex::default(), last: Mutex::default() }
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What is given by position and by name, each read once, in the order of the names.
    pub fn read<'py, T>(
        &self,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
        read: impl Fn(&Bound<'py, PyAny>, &str) -> PyResult<T>,
    ) -> PyResult<SmallVec<[T; 4]>> {
        if args.len() > self.names.len() {
            let (n, all) = (args.len(), self.names.join(", "));
            return Err(PyTypeError::new_err(format!("{n} arguments for {} names: {all}", self.names.len())));
        }
        let mut found: SmallVec<[T; 4]> = SmallVec::new();
        if args.len() == self.names.len() && named.is_none_or(|d| d.is_empty()) {
            for (obj, name) in args.iter_borrowed().zip(&self.names) {
                found.push(read(&obj, name)?);
            }
            return Ok(found);
        }
        // Where not all are given by position, `pi` and `e` are the constants, unless they are given by name.
        let positional = self.names.iter().filter(|name| self.constant(name).is_none()).take(args.len());
        let positional: SmallVec<[&String; 4]> = positional.collect();
        if positional.len() < args.len() {
            let (n, all) = (args.len(), self.names.join(", "));
            return Err(PyTypeError::new_err(format!("{n} of the arguments {all}: give `pi` and `e` by name")));
        }
        let missing = |name: &String| PyTypeError::new_err(format!("the argument `{name}` is missing"));
        let given = |name: &String| named.and_then(|d| d.get_item(name).transpose()).transpose();
        for (key, _) in named.into_iter().flat_map(|d| d.iter()) {
            let key: String = key.extract()?;
            match self.names.iter().find(|n| **n == key) {
                Some(name) if positional.contains(&name) => {
                    return Err(PyTypeError::new_err(format!("the argument `{key}` is given twice")));
                }
                Some(_) => {}
                None => return Err(unknown_name("argument", &key, &self.names)),
            }
        }
        for name in &self.names {
            let value = match positional.iter().position(|n| *n == name) {
                Some(at) => args.get_item(at)?,
                None => match (given(name)?, self.constant(name)) {
                    (Some(value), _) => value,
                    (None, Some(value)) => value.into_pyobject(args.py())?.into_any(),
                    (None, None) => return Err(missing(name)),
                },
            };
            found.push(read(&value, name)?);
        }
        Ok(found)
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fail = |e: castwise::Error| exception(py, &e, self.shown().as_deref());
        let mut views = Views::new();
        if args.len() == self.names.len()
            && named.is_none_or(|d| d.is_empty())
            && let Some(last) = self.last()
            && let Some(library) = last.0.views_like(&last.1, args.iter_borrowed(), false, &mut views)
        {
            return last.0.call(py, &views, library, out, &fail);
        }
        let arguments = self.read(args, named, arrays::argument)?;
        let variant = self.variant(py, &arguments)?;
        let feeds = variant.feeds(&arguments);
        let library = feeds.first().map_or(Library::NumPy, |a| a.library);
        let views = variant.views(&feeds).map_err(fail)?;
        self.remember(&variant);
        variant.call(py, &views, library, out, &fail)
    }

    /// The value of a name that needs no argument: of a constant of expressions.
    fn constant(&self, name: &str) -> Option<f64> {
        let known = || castwise::expr::CONSTANTS.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
        matches!(self.source, Source::Expression(_)).then(known).flatten()
    }

    fn variant(&self, py: Python<'_>, arguments: &[Argument<'_>]) -> PyResult<Arc<Variant>> {
        let libraries = arguments.iter().filter_map(|a| match a {
            Argument::Array(a) => Some(a.library),
            Argument::Scalar(_) => None,
        });
        let settings = self.options.asked.of(py, libraries)?;
        let fits = |v: &Arc<Variant>| {
            v.settings == settings && v.seen.iter().zip(arguments).all(|(seen, a)| *seen == Seen::of(a))
        };
        let known = |all: &mut Vec<Arc<Variant>>| {
            let at = all.iter().position(fits)?;
            all[..=at].rotate_right(1);
            Some(all[0].clone())
        };
        if let Some(known) = known(&mut self.lock()) {
            return Ok(known);
        }
        let given: Vec<Given> = arguments
            .iter()
            .map(|a| match a {
                Argument::Array(a) => Given::Array { dtype: a.dtype, rank: a.shape.len(), weak: a.weak },
                Argument::Scalar(s) => Given::Scalar(*s),
            })
            .collect();
        let (program, vars, form) = self.build(py, settings, &given)?;
        let (source, executor) = (self.shown(), self.options.executor(py)?);
        if let Some(least) = self.options.denied {
            describe::refuse(py, &program, least, source.as_deref())?;
        }
        let prepared =
            py.detach(|| executor.prepare(&program, &vars)).map_err(|e| exception(py, &e, source.as_deref()))?;
        let feeds = prepared.feed_names().filter_map(|n| self.names.iter().position(|m| m == n)).collect();
        let (seen, read, written) = (arguments.iter().map(Seen::of).collect(), Layouts::default(), Layouts::default());
        let made = Arc::new(Variant { settings, seen, program, prepared, form, feeds, read, written });
        let mut all = self.lock();
        if let Some(first) = known(&mut all) {
            // Another thread was faster.
            return Ok(first);
        }
        all.truncate(MOST - 1);
        all.insert(0, made.clone());
        Ok(made)
    }

    fn last(&self) -> Option<Arc<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps what the arguments of a call were, after their views were made.
    fn remember(&self, variant: &Arc<Variant>) {
        let last = Arc::new((variant.clone(), variant.read.last()));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Variant>>> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The expression that byte ranges of mistakes refer to.
    pub fn shown(&self) -> Option<String> {
        match &self.source {
            Source::Expression(text) | Source::Text(text) => Some(text.clone()),
            Source::Function(_) => None,
        }
    }

    /// The program for arguments of these dtypes and ranks, its results, and what a call returns.
    pub fn build(&self, py: Python<'_>, settings: Settings, given: &[Given]) -> PyResult<(Program, Vec<Var>, Form)> {
        let fail = |e: castwise::Error| exception(py, &e, self.shown().as_deref());
        if let Source::Text(text) = &self.source {
            let program = parse(py, text)?;
            let (vars, names): (Vec<Var>, Vec<_>) = program.fetches().into_iter().map(|f| (f.var, f.name)).unzip();
            return Ok((program, vars, form_of(names)));
        }
        let program = castwise::with_location(here(py), || Program::with_settings(settings));
        let mut placeholders = Vec::new();
        for (name, g) in self.names.iter().zip(given) {
            if let Given::Array { dtype, rank, weak } = g {
                let dims = Dims(vec![Dim::Dynamic; *rank]);
                let data =
                    || if *weak { program.weak_data(name, *dtype, dims) } else { program.data(name, *dtype, dims) };
                placeholders.push((name, castwise::with_location(here(py), data)));
            }
        }
        let scalar = |name: &str| match given[self.names.iter().position(|n| n == name)?] {
            Given::Scalar(s) => Some(s),
            Given::Array { .. } => None,
        };
        match &self.source {
            Source::Function(function) => {
                let values = self.names.iter().map(|name| match scalar(name) {
                    Some(s) => python_scalar(py, s),
                    None => {
                        let var = placeholders.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
                        let var = var.ok_or_else(|| PyKeyError::new_err(name.clone()))?;
                        Ok(PyVar::handle(py, program.clone(), var)?.into_any())
                    }
                });
                let values = values.collect::<PyResult<Vec<_>>>()?;
                let (vars, form) = traced(function.bind(py), PyTuple::new(py, values)?)?;
                Ok((program, vars, form))
            }
            Source::Expression(text) | Source::Text(text) => {
                let var = program.expression_with(text, scalar).map_err(fail)?;
                Ok((program, vec![var], Form::One))
            }
        }
    }
}

/// What is known of an argument before a call.
#[derive(Clone, Copy)]
pub enum Given {
    Array { dtype: DType, rank: usize, weak: bool },
    Scalar(Scalar),
}

/// Calls a Python function with handles of a program, and takes its results apart.
fn traced(function: &Bound<'_, PyAny>, values: Bound<'_, PyTuple>) -> PyResult<(Vec<Var>, Form)> {
    let result = function.call1(values)?;
    let var = |obj: &Bound<'_, PyAny>| -> PyResult<Var> {
        let found = obj.get_type().fully_qualified_name()?;
        let wrong = || PyTypeError::new_err(format!("the function returned a {found}, not a castwise.Var"));
        Ok(obj.cast::<PyVar>().map_err(|_| wrong())?.get().var().clone())
    };
    if let Ok(all) = result.cast::<PyDict>() {
        let names = all.keys().iter().map(|k| k.extract()).collect::<PyResult<Vec<String>>>()?;
        let vars = all.values().iter().map(|v| var(&v)).collect::<PyResult<Vec<Var>>>()?;
        return Ok((vars, Form::Dict(names)));
    }
    if result.cast::<PyVar>().is_err()
        && let Ok(all) = result.try_iter()
    {
        let vars = all.map(|v| var(&v?)).collect::<PyResult<Vec<Var>>>()?;
        return Ok((vars, Form::Tuple));
    }
    Ok((vec![var(&result)?], Form::One))
}

fn form_of(names: Vec<Option<String>>) -> Form {
    match names.len() {
        1 => Form::One,
        _ if !names.is_empty() && names.iter().all(Option::is_some) => {
            Form::Dict(names.into_iter().flatten().collect())
        }
        _ => Form::Tuple,
    }
}

/// Reads the text of a program.
pub fn parse(py: Python<'_>, text: &str) -> PyResult<Program> {
    text.parse().map_err(|e| exception(py, &e, Some(text)))
}

#[pymethods]
impl Compiled {
    /// Computes the results for these arrays, by position or by name; of arrays of Dask, as `castwise.dask.apply` does.
    #[pyo3(signature = (*args, out=None, **named))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = slf.get().call(slf.py(), args, out, named);
        if out.is_some() { made } else { lazy::or_graph(made, slf, args, named) }
    }

    /// What graphs call it: tools take a name apart at its dashes.
    #[getter]
    fn __name__(&self) -> &'static str {
        "castwise"
    }

    /// For the backend of torch.compile: computes the results for tensors by position, whose history is the caller's, so that
    /// they may require gradients. `out` has a tensor or None for each result. Returns the results that are in no tensor of `out`.
    fn _run<'py>(
        &self,
        py: Python<'py>,
        tensors: &Bound<'py, PyList>,
        out: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyList>> {
        let fail = |e: castwise::Error| exception(py, &e, self.shown().as_deref());
        let out: SmallVec<[Bound<'py, PyAny>; 4]> = out.iter().collect();
        // Kept here, since other threads may change the list.
        let tensors: SmallVec<[Bound<'py, PyAny>; 8]> = tensors.iter().collect();
        if tensors.len() != self.names.len() {
            return Err(PyTypeError::new_err(format!("{} tensors for {} names", tensors.len(), self.names.len())));
        }
        let mut views = Views::new();
        if let Some(last) = self.last()
            && last.0.views_like(&last.1, tensors.iter().map(Bound::as_borrowed), true, &mut views).is_some()
        {
            return last.0.call_tensors(py, &tensors, &views, &out, &fail);
        }
        let read = |t: &Bound<'py, PyAny>| torch::traced(t, "of a graph")?.with_bools().map(Argument::Array);
        let arguments = tensors.iter().map(read).collect::<PyResult<SmallVec<[_; 4]>>>()?;
        let variant = self.variant(py, &arguments)?;
        let feeds = variant.feeds(&arguments);
        let views = variant.views(&feeds).map_err(fail)?;
        self.remember(&variant);
        variant.call_tensors(py, &[], &views, &out, &fail)
    }

    /// The names of the arguments, in order.
    ///
    /// >>> import castwise
    /// >>> castwise.compile("a * 0.5 + b").names
    /// ['a', 'b']
    #[getter]
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// The text of the program for these arrays or dtypes, with every cast: see `explain`.
    ///
    /// >>> import castwise
    /// >>> f = castwise.compile("a * 0.5 + b", rules="torch")
    /// >>> print(f.text("i64", "f32").splitlines()[0])
    /// program(rules = torch) (%a: i64[?0], %b: f32[?1]) {
    #[pyo3(signature = (*args, **named))]
    fn text<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<String> {
        Ok(Described::new(self, py, args, named)?.typed(py)?.to_string())
    }

    /// The casts of the program for these arrays or dtypes, with their reasons, and the typed program.
    ///
    /// >>> import castwise
    /// >>> f = castwise.compile("a * 0.5 + b", rules="torch")
    /// >>> print(f.explain("i64", "f32").splitlines()[1])
    /// 1 cast: 0 exact, 1 that round, 0 that may leave the range
    #[pyo3(signature = (*args, **named))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<String> {
        Ok(Described::new(self, py, args, named)?.typed(py)?.explain())
    }

    /// The loops that compute the program for these arrays or dtypes, as text.
    ///
    /// >>> import castwise
    /// >>> f = castwise.compile("a * 0.5 + b", rules="torch")
    /// >>> "mul.f32" in f.kernels("f32", "f32")
    /// True
    #[pyo3(signature = (*args, **named))]
    fn kernels<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<String> {
        Described::new(self, py, args, named)?.kernels(py, self.options.executor(py)?)
    }

    /// The dtype of the result for these arrays or dtypes; of several results a tuple or a dict.
    ///
    /// >>> import castwise
    /// >>> f = castwise.compile("a * 0.5 + b", rules="torch")
    /// >>> f.result_type("i64", "f16")
    /// 'f32'
    #[pyo3(signature = (*args, **named))]
    fn result_type<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Described::new(self, py, args, named)?.result_type(py)
    }

    /// The executor, which others share unless `compile` was given one.
    ///
    /// >>> import castwise
    /// >>> castwise.compile("a + 1").executor is castwise.default_executor()
    /// True
    #[getter]
    fn executor(&self, py: Python<'_>) -> PyResult<Py<PyExecutor>> {
        self.options.python_executor(py)
    }

    /// What this object's executor has done so far, and under `programs` for how many dtypes and ranks this object is typed.
    ///
    /// >>> import castwise
    /// >>> castwise.compile("a + 1").stats["programs"]
    /// 0
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = self.options.python_executor(py)?.into_bound(py).getattr("stats")?;
        all.set_item("programs", self.lock().len())?;
        Ok(all)
    }

    /// The typed programs of calls so far, for notebooks.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let programs: Vec<Program> = match &self.source {
            Source::Text(text) => vec![parse(py, text)?],
            _ => self.lock().iter().take(SHOWN).map(|v| v.program.clone()).collect(),
        };
        let heading = self.__repr__();
        if programs.is_empty() {
            return Ok(format!("<code>{}</code>", html::escaped(&heading)));
        }
        let one = |p: &Program| {
            let typed = p.infer().map_err(|e| exception(py, &e, self.shown().as_deref()))?;
            Ok(html::table(&heading, &typed))
        };
        programs.iter().map(one).collect()
    }

    fn __repr__(&self) -> String {
        let what = match &self.source {
            Source::Expression(text) => format!("{text:?}"),
            Source::Text(_) => "program".to_string(),
            Source::Function(_) => "function".to_string(),
        };
        let rules = self.options.rules.as_ref().map(|r| format!(", rules={r:?}")).unwrap_or_default();
        format!("castwise.compile({what}{rules})({})", self.names.join(", "))
    }

    /// A compiled expression or program pickles as its text; a function as the function itself.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let rebuild = py.import("castwise._core")?.getattr("_rebuild")?;
        let (kind, source) = match &self.source {
            Source::Expression(text) => ("expression", text.into_pyobject(py)?.into_any()),
            Source::Text(text) => ("text", text.into_pyobject(py)?.into_any()),
            Source::Function(f) => ("function", f.bind(py).clone()),
        };
        let arguments = (kind, source, self.names.clone(), self.options.clone());
        Ok((rebuild, arguments.into_pyobject(py)?))
    }
}

/// What `Compiled.__reduce__` names.
#[pyfunction]
pub fn _rebuild(
    py: Python<'_>,
    kind: &str,
    source: &Bound<'_, PyAny>,
    names: Vec<String>,
    options: &Bound<'_, Options>,
) -> PyResult<Compiled> {
    let options = options.get().clone();
    match kind {
        "expression" => Compiled::expression(py, &source.extract::<String>()?, options),
        "text" => Compiled::of_text(py, &source.extract::<String>()?, options),
        _ => Compiled::function(source, names, options),
    }
}
