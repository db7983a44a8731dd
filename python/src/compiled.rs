//! Compiled programs: what a call looks up, and how it runs.
//!
//! Guarantees: a program is typed once for the dtypes and ranks of its arguments, and then found again; calls from many
//! threads are independent. A scalar argument is a constant, so each value is another program, but for placeholders
//! that a program declares. Does not: keep arrays.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use castwise::shape::{Dim, Dims};
use castwise::{DType, Program, Scalar, Settings, Var};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;

use crate::apply::{self, python_scalar};
use crate::arrays::{self, Argument, Array, Library};
use crate::describe::{self, Described};
use crate::errors::{self, exception, unknown_name};
use crate::executor::PyExecutor;
use crate::html;
use crate::lazy;
use crate::numbers;
use crate::options::Options;
use crate::place::here;
use crate::torch;
use crate::traced;
use crate::var::PyVar;
use crate::variant::{Form, Layouts, Like, Seen, Variant, Views};

/// What is compiled.
enum Source {
    Expression(String),
    /// A program, its text if it was given as one, and the dtypes that it declares, once a number needs them.
    Program {
        program: Program,
        text: Option<String>,
        declared: OnceLock<Vec<DType>>,
    },
    /// A function, and the defaults of its parameters.
    Function {
        function: Py<PyAny>,
        defaults: Vec<Option<Py<PyAny>>>,
    },
}

/// Programs of one `Compiled` that are kept: those that were called last. Scalars make as many as they have values.
const MOST: usize = 256;

/// Programs of one `Compiled` that a notebook shows.
const SHOWN: usize = 3;

/// A compiled expression, function or program. Call it with arrays, by position or by name.
///
/// The result is a new array, or one that `out=` gives, which may be an argument; of several results a tuple or a dict, of
/// which `out=` may give some and None for others. Many threads may call it. It pickles as its text, a
/// function by its name. A call with ``Var``s adds to their program.
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
        Compiled::program(&parse(py, text)?, Some(text.into()), options)
    }

    /// A program as it is now; `text` is what it was read from.
    pub fn program(program: &Program, text: Option<String>, options: Options) -> PyResult<Compiled> {
        let program = program.under(program.settings());
        let (names, options) = (program.feed_names(), options.of_program(&program.settings().named())?);
        Ok(Compiled::new(Source::Program { program, text, declared: OnceLock::new() }, names, options))
    }

    /// A function of these parameters, of which those in `defaults` may be left out.
    pub fn function(
        function: &Bound<'_, PyAny>,
        names: Vec<String>,
        options: Options,
        defaults: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Compiled> {
        let of = |name: &String| -> PyResult<Option<Py<PyAny>>> {
            let Some(all) = &defaults else { return Ok(None) };
            Ok(all.get_item(name)?.map(Bound::unbind))
        };
        let defaults = names.iter().map(of).collect::<PyResult<_>>()?;
        Ok(Compiled::new(Source::Function { function: function.clone().unbind(), defaults }, names, options))
    }

    fn new(source: Source, names: Vec<String>, options: Options) -> Compiled {
        Compiled { source, names, options, variants: Mutex::default(), last: Mutex::default() }
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What is given by position and by name, each read once, in the order of the names; `None` for a parameter that is left to its
    /// default.
    pub fn read<'py, T>(
        &self,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
        read: impl Fn(&Bound<'py, PyAny>, &str) -> PyResult<T>,
    ) -> PyResult<SmallVec<[Option<T>; 4]>> {
        if args.len() > self.names.len() {
            let (n, all) = (args.len(), self.names.join(", "));
            return Err(PyTypeError::new_err(format!("{n} arguments for {} names: {all}", self.names.len())));
        }
        let mut found = SmallVec::new();
        if args.len() == self.names.len() && named.is_none_or(|d| d.is_empty()) {
            for (obj, name) in args.iter_borrowed().zip(&self.names) {
                found.push(Some(read(&obj, name)?));
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
        for (i, name) in self.names.iter().enumerate() {
            let value = match positional.iter().position(|n| *n == name) {
                Some(at) => Some(args.get_item(at)?),
                None => match (given(name)?, self.constant(name)) {
                    (Some(value), _) => Some(value),
                    (None, Some(value)) => Some(value.into_pyobject(args.py())?.into_any()),
                    (None, None) if self.default(i).is_some() => None,
                    (None, None) => return Err(missing(name)),
                },
            };
            found.push(value.map(|v| read(&v, name)).transpose()?);
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
        if let Some(program) = traced::program_of(args, named) {
            return traced::inlined(self, py, &program, args, out, named);
        }
        let mut arguments = self.read(args, named, arrays::argument)?;
        self.declare(py, &mut arguments)?;
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

    /// The value of a parameter that a call leaves out.
    fn default(&self, i: usize) -> Option<&Py<PyAny>> {
        match &self.source {
            Source::Function { defaults, .. } => defaults.get(i)?.as_ref(),
            _ => None,
        }
    }

    /// Gives numbers for a program's placeholders the dtypes that it declares.
    fn declare<'py>(&self, py: Python<'py>, arguments: &mut [Option<Argument<'py>>]) -> PyResult<()> {
        let Source::Program { program, text, declared } = &self.source else { return Ok(()) };
        if !arguments.iter().any(|a| matches!(a, Some(Argument::Scalar(_)))) {
            return Ok(());
        }
        let fail = |e: castwise::Error| exception(py, &e, text.as_deref());
        let declared = match declared.get() {
            Some(known) => known,
            None => {
                let typed = program.infer().map_err(fail)?;
                let dtypes = self.names.iter().filter_map(|name| typed.dtype(&program.feed(name)?));
                declared.get_or_init(|| dtypes.collect())
            }
        };
        let library = libraries(arguments).next().unwrap_or(Library::NumPy);
        for ((name, dtype), argument) in self.names.iter().zip(declared).zip(arguments) {
            if let Some(Argument::Scalar(s)) = argument {
                let t = numbers::fed(name, *s, *dtype).map_err(fail)?;
                *argument = Some(Argument::Array(Array::copied(py, t, library)?));
            }
        }
        Ok(())
    }

    fn variant(&self, py: Python<'_>, arguments: &[Option<Argument<'_>>]) -> PyResult<Arc<Variant>> {
        let settings = self.options.asked.of(py, libraries(arguments))?;
        let fits = |v: &Arc<Variant>| {
            v.settings == settings && v.seen.iter().zip(arguments).all(|(seen, a)| *seen == Seen::of(a.as_ref()))
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
                Some(Argument::Array(a)) => Given::Array { dtype: a.dtype, rank: a.shape.len(), weak: a.weak },
                Some(Argument::Scalar(s)) => Given::Scalar(*s),
                None => Given::Left,
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
        let (seen, read, written) =
            (arguments.iter().map(|a| Seen::of(a.as_ref())).collect(), Layouts::default(), Layouts::default());
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
            Source::Expression(text) => Some(text.clone()),
            Source::Program { text, .. } => text.clone(),
            Source::Function { .. } => None,
        }
    }

    /// The program for arguments of these dtypes and ranks, its results, and what a call returns.
    pub fn build(&self, py: Python<'_>, settings: Settings, given: &[Given]) -> PyResult<(Program, Vec<Var>, Form)> {
        if let Source::Program { program, .. } = &self.source {
            // A copy, since a description declares results of its own.
            let program = program.under(program.settings());
            let (vars, names): (Vec<Var>, Vec<_>) = program.fetches().into_iter().map(|f| (f.var, f.name)).unzip();
            return Ok((program, vars, form_of(names)));
        }
        let program = castwise::with_location(here(py), || Program::with_settings(settings));
        let mut values = Vec::new();
        for (name, g) in self.names.iter().zip(given) {
            values.push(match g {
                Given::Array { dtype, rank, weak } => {
                    let dims = Dims(vec![Dim::Dynamic; *rank]);
                    let var = apply::placeholder(py, &program, name, *dtype, dims, *weak);
                    Some(PyVar::handle(py, program.clone(), var)?.into_any())
                }
                Given::Scalar(s) => Some(python_scalar(py, *s)?),
                Given::Left => None,
            });
        }
        let (vars, form) = self.added(py, &program, values)?;
        Ok((program, vars, form))
    }

    /// Adds what is computed of these handles and numbers to a program: the results, and what a call returns.
    pub fn added<'py>(
        &self,
        py: Python<'py>,
        program: &Program,
        values: Vec<Option<Bound<'py, PyAny>>>,
    ) -> PyResult<(Vec<Var>, Form)> {
        match &self.source {
            Source::Function { function, .. } => {
                let value = |(i, (given, name)): (usize, (Option<Bound<'py, PyAny>>, &String))| {
                    let value = given.or_else(|| Some(self.default(i)?.bind(py).clone()));
                    value.ok_or_else(|| PyKeyError::new_err(name.clone()))
                };
                let all = values.into_iter().zip(&self.names).enumerate().map(value);
                traced::results(function.bind(py), PyTuple::new(py, all.collect::<PyResult<Vec<_>>>()?)?)
            }
            Source::Expression(text) => {
                let value = |name: &str| values.get(self.names.iter().position(|n| n == name)?)?.as_ref();
                let operand = |name: &str| apply::operand(py, program, value(name)?, name).ok();
                let var = program.expression_of(text, operand);
                Ok((vec![var.map_err(|e| exception(py, &e, Some(text)))?], Form::One))
            }
            Source::Program { .. } => {
                let text = "a compiled program takes arrays, not a castwise.Var: compile a function or an expression, which \
                            a function that is traced may call";
                Err(errors::named(py, "ProgramError", text))
            }
        }
    }
}

/// What is known of an argument before a call.
#[derive(Clone, Copy)]
pub enum Given {
    Array {
        dtype: DType,
        rank: usize,
        weak: bool,
    },
    Scalar(Scalar),
    /// The function's default.
    Left,
}

/// The libraries of the arrays among arguments.
fn libraries(arguments: &[Option<Argument<'_>>]) -> impl Iterator<Item = Library> {
    arguments.iter().filter_map(|a| match a {
        Some(Argument::Array(a)) => Some(a.library),
        _ => None,
    })
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
        let read =
            |t: &Bound<'py, PyAny>| torch::traced(t, "of a graph")?.with_bools().map(|a| Some(Argument::Array(a)));
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
            Source::Program { program, .. } => vec![program.clone()],
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
            Source::Program { .. } => "program".to_string(),
            Source::Function { .. } => "function".to_string(),
        };
        let rules = self.options.rules.as_ref().map(|r| format!(", rules={r:?}")).unwrap_or_default();
        format!("castwise.compile({what}{rules})({})", self.names.join(", "))
    }

    /// The kind of what is compiled, that itself, and the options.
    fn _parts<'py>(&self, py: Python<'py>) -> PyResult<(&'static str, Bound<'py, PyAny>, Options)> {
        let (kind, source) = match &self.source {
            Source::Expression(text) => ("expression", text.into_pyobject(py)?.into_any()),
            Source::Program { text: Some(text), .. } => ("text", text.into_pyobject(py)?.into_any()),
            Source::Program { program, .. } => ("text", program.to_string().into_pyobject(py)?.into_any()),
            Source::Function { function, .. } => ("function", function.bind(py).clone()),
        };
        Ok((kind, source, self.options.clone()))
    }

    /// The defaults of a function's parameters.
    #[getter]
    fn _defaults<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (i, name) in self.names.iter().enumerate() {
            if let Some(value) = self.default(i) {
                all.set_item(name, value)?;
            }
        }
        Ok(all)
    }

    /// A compiled expression or program pickles as its text; a function as the name of this object, if it decorates one of that
    /// name, else as the function itself.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("castwise._pickle")?.getattr("reduced")?.call1((slf, slf.get()._parts(slf.py())?))
    }
}
