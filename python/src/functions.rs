//! Ops, composites, generators and `blocks` as Python functions and methods: `castwise.exp(x)`, `x.softmax(-1)`, `x.uniform(seed=7)`.
//!
//! Guarantees: names, operands and attributes are those of castwise's tables; an attribute is given at most once. Does not: compute.

use castwise::ops::Choice;
use castwise::{Attrs, BlockSize, Composite, Generator, Mode, Op, Operand, Var, apply};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::apply::applied;
use crate::arrays;
use crate::dtypes;
use crate::examples;
use crate::lazy;

/// What is applied to operands, with its attributes.
#[derive(Clone)]
pub enum Applied {
    Op(Op, Attrs),
    Composite(Composite),
    Generator(Generator),
    Blocks(Option<BlockSize>),
}

impl Applied {
    fn named(name: &str) -> Option<Applied> {
        let op = || Op::from_name(name).map(|op| Applied::Op(op, Attrs::default()));
        let composite = || Composite::named(name).map(Applied::Composite);
        let generator = || Generator::named(name).map(Applied::Generator);
        op().or_else(composite).or_else(generator).or_else(|| (name == "blocks").then_some(Applied::Blocks(None)))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Applied::Op(op, _) => op.name(),
            Applied::Composite(c) => c.name(),
            Applied::Generator(g) => g.name(),
            Applied::Blocks(_) => "blocks",
        }
    }

    pub fn doc(&self) -> &'static str {
        match self {
            Applied::Op(op, _) => op.def().doc.trim(),
            Applied::Composite(c) => c.doc(),
            Applied::Generator(g) => g.doc(),
            Applied::Blocks(_) => {
                "Each element of a scale for all elements of a block of `like`: element i is the scale's at i / size, along each dim."
            }
        }
    }

    /// The names of the operands, and how many must be given.
    pub fn operands(&self) -> (&'static [&'static str], usize) {
        match self {
            Applied::Op(op, _) => (op.def().operands, op.def().operands.len()),
            Applied::Composite(c) => c.operands(),
            Applied::Generator(_) => (&["x"], 1),
            Applied::Blocks(_) => (&["scale", "like"], 2),
        }
    }

    /// The attributes that can be given by position, after the operands.
    fn positional(&self) -> SmallVec<[&'static str; 4]> {
        match self {
            Applied::Op(Op::Cast | Op::ViewAs, _) => smallvec!["dtype"],
            // `x.mean(-1)`, `x.topk(3)`, `x.quantile(0.5, -1)`, as in PyTorch and NumPy, which have the correction of a variance
            // behind the dims.
            Applied::Op(op, _) if op.has_dims() => {
                let number = op.def().number.map(|of| of.name).filter(|name| *name != "correction");
                number.into_iter().chain(["dims"]).collect()
            }
            Applied::Op(..) => SmallVec::new(),
            // `x.softmax(-1)`, `normalize(x, 1, -1)`, `take_along_dim(x, index, 0)`, as in PyTorch. Where operands may be left
            // out, what follows is one of them.
            Applied::Composite(c) => {
                let ((names, required), mut parameters) = (c.operands(), c.parameters());
                if names.len() > required || parameters.next() != Some("dims") {
                    return SmallVec::new();
                }
                parameters.filter(|name| *name == "p").chain(["dims"]).collect()
            }
            // `x.normal(5, 2)` has a mean and a deviation elsewhere: seeds are named.
            Applied::Generator(g) => g.numbers().iter().copied().take_while(|name| *name != "seed").collect(),
            Applied::Blocks(_) => smallvec!["size"],
        }
    }

    /// What a call takes: operands and attributes by position and, after `*`, attributes by name. `axis` of ops of two operands
    /// is left out, as it is for Paddle's rules alone.
    pub fn signature(&self) -> String {
        let positional = self.positional();
        let named: Vec<&str> = match self {
            Applied::Op(op, _) => {
                let (number, choice) = (op.def().number.map(|of| of.name), op.def().choice.map(|of| of.name));
                let (keepdim, dtype) = (op.is_reduction().then_some("keepdim"), op.has_dims().then_some("dtype"));
                [number, choice, keepdim, dtype].into_iter().flatten().collect()
            }
            Applied::Composite(c) => c.parameters().collect(),
            Applied::Generator(g) => g.parameters().collect(),
            Applied::Blocks(_) => Vec::new(),
        };
        let named: Vec<&str> = named.into_iter().filter(|name| !positional.contains(name)).collect();
        let star: &[&str] = if named.is_empty() { &[] } else { &["*"] };
        format!("{}({})", self.name(), [self.operands().0, &positional, star, &named].concat().join(", "))
    }

    /// Sets an attribute; false if there is none of this name.
    fn set(&mut self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match self {
            Applied::Op(op, attrs) => set_of_op(*op, attrs, key, value),
            Applied::Composite(c) => {
                let found = c.parameters().any(|p| p == key);
                if found && !value.is_none() {
                    *c = of_composite(c.clone(), key, value)?;
                }
                Ok(found)
            }
            Applied::Generator(g) => {
                let found = g.parameters().any(|p| p == key);
                if found && !value.is_none() {
                    *g = of_generator(*g, key, value)?;
                }
                Ok(found)
            }
            Applied::Blocks(size) => {
                let one = |v: &Bound<'_, PyAny>| v.extract::<usize>();
                if key == "size" {
                    *size = Some(match one(value) {
                        Ok(n) => n.into(),
                        Err(_) => value.try_iter()?.map(|v| one(&v?)).collect::<PyResult<Vec<_>>>()?.into(),
                    });
                }
                Ok(key == "size")
            }
        }
    }

    /// What must be given besides operands, and is not.
    fn lacks(&self, given: &[String]) -> Option<&'static str> {
        let has = |name: &str| given.iter().any(|g| g == name);
        match self {
            // Numbers that are the same in each run of a script are not what a call without a seed means elsewhere.
            Applied::Generator(g) => {
                ["low", "high", "p", "seed"].into_iter().find(|n| g.numbers().contains(n) && !has(n))
            }
            Applied::Blocks(_) => Some("size").filter(|n| !has(n)),
            _ => None,
        }
    }

    /// The result; `None` where a number is the operand of what takes arrays only.
    pub fn to<M: Mode>(&self, operands: &[Operand<M>]) -> Option<Var<M>> {
        match (self, operands) {
            (Applied::Op(op, attrs), _) => Some(apply(*op, operands, attrs.clone())),
            (Applied::Composite(c), [Operand::Var(first), rest @ ..]) => Some(first.composite(c, rest)),
            (Applied::Generator(g), [Operand::Var(like)]) => Some(like.generate(*g)),
            (Applied::Blocks(Some(size)), [Operand::Var(scale), Operand::Var(like)]) => {
                Some(scale.blocks(like, size.clone()))
            }
            _ => None,
        }
    }
}

/// An integer, or several. An array or handle is none: by position it is an operand too many, such as of `amax(a, b)` for `maximum(a, b)`.
fn dims(value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let one = |v: &Bound<'_, PyAny>| match v.extract::<i64>() {
        Ok(n) if !v.is_instance_of::<PyBool>() => Ok(n),
        Err(e) if e.is_instance_of::<PyOverflowError>(v.py()) => Err(e),
        _ => Err(PyTypeError::new_err(format!("dims are integers, not a {}", v.get_type().fully_qualified_name()?))),
    };
    let single = one(value);
    match value.try_iter() {
        Ok(all) if single.is_err() && !value.hasattr("dtype")? => all.map(|v| one(&v?)).collect(),
        _ => Ok(vec![single?]),
    }
}

/// Sets an attribute of an op; false if it has none of this name.
fn set_of_op(op: Op, attrs: &mut Attrs, key: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let def = op.def();
    match key {
        "dims" if op.has_dims() => {
            attrs.dims = if value.is_none() { None } else { Some(dims(value)?.into()) };
        }
        "keepdim" if op.is_reduction() => attrs.keepdim = value.is_truthy()?,
        name if def.number.is_some_and(|of| of.name == name) => attrs.number = Some(value.extract::<f64>()?.into()),
        name if def.choice.is_some_and(|of| of.name == name) => {
            let word: String = match value.extract::<bool>() {
                Ok(yes) => yes.to_string(),
                Err(_) => value.extract()?,
            };
            let unknown = || PyValueError::new_err(format!("{op} has no {name} {word:?}"));
            attrs.choice = Some(Choice::from_word(&word).ok_or_else(unknown)?);
        }
        "axis" if def.operands.len() == 2 => attrs.axis = Some(value.extract()?),
        "dtype" if op.has_dims() || matches!(op, Op::Cast | Op::ViewAs) => {
            attrs.dtype = if value.is_none() { None } else { Some(dtypes::of_object(value)?) };
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A composite with a parameter that it has.
fn of_composite(made: Composite, key: &str, value: &Bound<'_, PyAny>) -> PyResult<Composite> {
    Ok(match key {
        "dims" => made.over(dims(value)?),
        "dtype" => made.dtype(dtypes::of_object(value)?),
        "equal_nan" => made.equal_nan(value.is_truthy()?),
        number => made.number(number, value.extract()?).map_err(PyTypeError::new_err)?,
    })
}

/// A generator with a parameter that it has.
fn of_generator(made: Generator, key: &str, value: &Bound<'_, PyAny>) -> PyResult<Generator> {
    if key == "dtype" {
        return Ok(made.dtype(dtypes::of_object(value)?));
    }
    let none = || PyTypeError::new_err(format!("`{key}` of `{}` is a number", made.name()));
    made.number(key, arrays::scalar(value)?.ok_or_else(none)?).map_err(PyValueError::new_err)
}

// An op, composite or generator as a Python function. (A text of the class would hide that of each function.)
#[pyclass(frozen, module = "castwise", name = "Function")]
pub struct Function {
    what: Applied,
    /// The operand that is given already: `x` of the method `x.exp`.
    given: Option<Py<PyAny>>,
}

/// The op, composite or generator of a name as a function of the operands that are not given.
pub fn named<'py>(py: Python<'py>, name: &str, given: Option<Py<PyAny>>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(what) = Applied::named(name) else { return Ok(None) };
    Ok(Some(Bound::new(py, Function { what, given })?.into_any()))
}

/// What a call was given: what is applied, with its attributes, and the operands.
struct Read<'py> {
    what: Applied,
    operands: SmallVec<[Option<Bound<'py, PyAny>>; 4]>,
    /// Attributes that were given.
    set: Vec<String>,
}

impl<'py> Read<'py> {
    fn attribute(&mut self, key: &str, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let name = self.what.name();
        let key = match key {
            "dim" if !matches!(self.what, Applied::Generator(_)) => "dims",
            // An attribute of its own in ops of two operands.
            "axis" if !matches!(&self.what, Applied::Op(op, _) if op.def().operands.len() == 2) => "dims",
            "keepdims" => "keepdim",
            key => key,
        };
        if !self.what.set(key, value)? {
            return Err(PyTypeError::new_err(format!("{name} has no argument `{key}`")));
        }
        if self.set.iter().any(|k| k == key) {
            return Err(PyTypeError::new_err(format!("{name}: the argument `{key}` is given twice")));
        }
        self.set.push(key.to_string());
        Ok(())
    }

    /// Of `clamp` with one bound makes the op that has only this one.
    fn one_bound(&mut self) {
        let Applied::Op(Op::Clamp, attrs) = &self.what else { return };
        let mut all = self.operands.iter().map(|o| o.clone().filter(|o| !o.is_none()));
        let (op, bound) = match (all.next().flatten(), all.next().flatten(), all.next().flatten()) {
            (Some(x), Some(min), None) => (Op::ClampMin, [x, min]),
            (Some(x), None, Some(max)) => (Op::ClampMax, [x, max]),
            _ => return,
        };
        self.what = Applied::Op(op, attrs.clone());
        self.operands = bound.map(Some).into_iter().collect();
    }

    /// The operands, with those left out in the middle.
    fn finish(mut self, py: Python<'py>) -> PyResult<(Applied, Vec<Bound<'py, PyAny>>)> {
        self.one_bound();
        let (name, (names, required)) = (self.what.name(), self.what.operands());
        let is_none = |o: &Option<Bound<'_, PyAny>>| o.as_ref().is_none_or(|o| o.is_none());
        while self.operands.len() > required && self.operands.last().is_some_and(is_none) {
            self.operands.pop();
        }
        let given = self.operands.iter().flatten().count();
        if self.operands.len() < required || self.operands.iter().take(required).any(Option::is_none) {
            let all = names[..required].join(", ");
            return Err(PyTypeError::new_err(format!("{name}({all}) takes {required} operands, not {given}")));
        }
        if let Some(lacking) = self.what.lacks(&self.set) {
            return Err(PyTypeError::new_err(format!("{name} needs `{lacking}=`")));
        }
        // A weight that is left out before a bias is 1.
        let one = 1.0f64.into_pyobject(py)?.into_any();
        let filled = |(i, o): (usize, Option<Bound<'py, PyAny>>)| match o {
            Some(o) if i < required || !o.is_none() => o,
            _ => one.clone(),
        };
        Ok((self.what, self.operands.into_iter().enumerate().map(filled).collect()))
    }
}

impl Function {
    fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (names, positional) = (self.what.operands().0, self.what.positional());
        let operands = self.given.iter().map(|g| Some(g.bind(py).clone())).collect();
        let mut read = Read { what: self.what.clone(), operands, set: Vec::new() };
        let mut more = positional.iter();
        for value in args {
            if read.operands.len() < names.len() {
                read.operands.push(Some(value));
            } else if let Some(key) = more.next() {
                read.attribute(key, &value)?;
            } else {
                let (most, all) = (names.len() + positional.len(), [names, &positional].concat().join(", "));
                return Err(PyTypeError::new_err(format!("{}({all}) takes at most {most}", self.what.name())));
            }
        }
        for (key, value) in named.into_iter().flat_map(|d| d.iter()) {
            let key: String = key.extract()?;
            let Some(at) = names.iter().position(|n| *n == key) else {
                read.attribute(&key, &value)?;
                continue;
            };
            if read.operands.len() <= at {
                read.operands.resize_with(at + 1, || None);
            }
            if read.operands[at].replace(value).is_some() {
                let name = self.what.name();
                return Err(PyTypeError::new_err(format!("{name}: the argument `{key}` is given twice")));
            }
        }
        let (what, operands) = read.finish(py)?;
        applied(py, &what, &operands)
    }
}

#[pymethods]
impl Function {
    #[pyo3(signature = (*args, **named))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        lazy::or_graph(slf.get().call(slf.py(), args, named), slf, args, named)
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.what.name()
    }

    #[getter]
    fn __doc__(&self) -> String {
        examples::text(&self.what)
    }

    /// Other names.
    ///
    /// >>> import castwise
    /// >>> castwise.atan2.aliases
    /// ['arctan2']
    #[getter]
    fn aliases(&self) -> Vec<&'static str> {
        match &self.what {
            Applied::Op(op, _) => op.def().aliases.to_vec(),
            _ => Vec::new(),
        }
    }

    /// The names of the operands.
    ///
    /// >>> import castwise
    /// >>> castwise.where.operands
    /// ['condition', 'x', 'y']
    #[getter]
    fn operands(&self) -> Vec<&'static str> {
        self.what.operands().0.to_vec()
    }

    fn __repr__(&self) -> String {
        let kind = if matches!(self.what, Applied::Op(..)) { "op" } else { "function" };
        format!("<castwise {kind} {}>", self.what.signature())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        if self.given.is_some() {
            return Err(PyTypeError::new_err("a method of a castwise.Var can't be pickled"));
        }
        Ok((py.import("castwise._core")?.getattr("op")?, (self.what.name(),)))
    }
}
