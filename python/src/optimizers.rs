//! Steps of optimizers on values of programs, and what is done with gradients before them.
//!
//! Guarantees: arithmetic and numbers are those of `castwise::Step`; each node has the line of Python code that made it. Does not: own
//! parameters or states.

use castwise::{DType, Optimizer, Step, Var, with_location};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::dtypes;
use crate::place::here;
use crate::var::PyVar;

/// A step of an optimizer: "sgd", "adam", "adamw", "adagrad", "rmsprop", "lion" or "ema", with the parameters and defaults of torch.optim,
/// on parameters of a float dtype, which is f32 where none is given. A keyword of another optimizer is a TypeError.
///
/// >>> import castwise, numpy as np
/// >>> step = castwise.Optimizer("sgd")
/// >>> p = castwise.Program("torch")
/// >>> w, g = p.data("w", "float32", [2]), p.data("g", "float32", [2])
/// >>> p.fetch(*step.update(w, g, [], [p.data(name, "float32", []) for name in step.numbers]))
/// >>> f = castwise.compile(p)
/// >>> f(np.float32([1, 2]), np.float32([1, 1]), *map(np.float32, step.values(0.5, 1)))
/// array([0.5, 1.5], dtype=float32)
#[pyclass(frozen, module = "castwise", name = "Optimizer")]
pub struct PyOptimizer {
    step: Step,
}

fn var(obj: &Bound<'_, PyAny>) -> PyResult<Var> {
    let var = obj.cast::<PyVar>().map_err(|_| PyTypeError::new_err("an optimizer works on castwise.Vars"))?;
    Ok(var.get().var().clone())
}

fn vars(obj: &Bound<'_, PyAny>) -> PyResult<Vec<Var>> {
    obj.try_iter()?.map(|v| var(&v?)).collect()
}

/// The optimizers, each with the keywords that it takes.
const OPTIMIZERS: [(&str, &[&str]); 7] = [
    ("sgd", &["momentum", "dampening", "nesterov", "weight_decay", "maximize"]),
    ("adam", &["betas", "eps", "amsgrad", "weight_decay", "maximize"]),
    ("adamw", &["betas", "eps", "amsgrad", "weight_decay", "maximize"]),
    ("adagrad", &["eps", "lr_decay", "weight_decay", "maximize"]),
    ("rmsprop", &["alpha", "eps", "centered", "momentum", "weight_decay", "maximize"]),
    ("lion", &["betas", "weight_decay", "maximize"]),
    ("ema", &["decay"]),
];

fn unknown(name: &str) -> PyErr {
    let known = OPTIMIZERS.map(|(known, _)| known).join(", ");
    PyValueError::new_err(format!("no optimizer {name:?}; there are {known}"))
}

/// Refuses keywords that are given and that an optimizer does not take.
fn taken(name: &str, given: &[(&str, bool)]) -> PyResult<()> {
    let (_, takes) = OPTIMIZERS.iter().find(|(known, _)| *known == name).ok_or_else(|| unknown(name))?;
    match given.iter().find(|(keyword, given)| *given && !takes.contains(keyword)) {
        Some((keyword, _)) => Err(PyTypeError::new_err(format!("{name} takes no {keyword}"))),
        None => Ok(()),
    }
}

fn sgd(momentum: f64, dampening: f64, nesterov: bool) -> PyResult<Optimizer> {
    // PyTorch's condition.
    if nesterov && (momentum <= 0.0 || dampening != 0.0) {
        return Err(PyValueError::new_err("nesterov needs a momentum, and no dampening"));
    }
    Ok(Optimizer::Sgd { momentum, dampening, nesterov })
}

/// Values of the program that a value is of.
fn handles<'py>(beside: &Bound<'py, PyAny>, made: Vec<Var>) -> PyResult<Vec<Bound<'py, PyVar>>> {
    made.into_iter().map(|v| handle(beside, v)).collect()
}

/// A value of the program that a value is of.
fn handle<'py>(beside: &Bound<'py, PyAny>, made: Var) -> PyResult<Bound<'py, PyVar>> {
    PyVar::handle(beside.py(), beside.cast::<PyVar>()?.get().program().clone(), made)
}

impl PyOptimizer {
    /// The states and the numbers, of which there must be as many as the step takes.
    fn counted(&self, states: &Bound<'_, PyAny>, numbers: &Bound<'_, PyAny>) -> PyResult<(Vec<Var>, Vec<Var>)> {
        let (states, numbers) = (vars(states)?, vars(numbers)?);
        let (s, n) = (self.step.states(), self.step.numbers());
        if (states.len(), numbers.len()) == (s.len(), n.len()) {
            return Ok((states, numbers));
        }
        Err(PyValueError::new_err(format!("the step takes the states {s:?} and the numbers {n:?}")))
    }
}

#[pymethods]
impl PyOptimizer {
    #[new]
    #[pyo3(signature = (name, dtype=None, *, momentum=None, dampening=None, nesterov=None, betas=None, eps=None,
        amsgrad=None, lr_decay=None, alpha=None, centered=None, decay=None, weight_decay=None, maximize=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn new(
        name: &str,
        dtype: Option<&Bound<'_, PyAny>>,
        momentum: Option<f64>,
        dampening: Option<f64>,
        nesterov: Option<bool>,
        betas: Option<(f64, f64)>,
        eps: Option<f64>,
        amsgrad: Option<bool>,
        lr_decay: Option<f64>,
        alpha: Option<f64>,
        centered: Option<bool>,
        decay: Option<f64>,
        weight_decay: Option<f64>,
        maximize: Option<bool>,
    ) -> PyResult<PyOptimizer> {
        let given = [
            ("momentum", momentum.is_some()),
            ("dampening", dampening.is_some()),
            ("nesterov", nesterov.is_some()),
            ("betas", betas.is_some()),
            ("eps", eps.is_some()),
            ("amsgrad", amsgrad.is_some()),
            ("lr_decay", lr_decay.is_some()),
            ("alpha", alpha.is_some()),
            ("centered", centered.is_some()),
            ("decay", decay.is_some()),
            ("weight_decay", weight_decay.is_some()),
            ("maximize", maximize.is_some()),
        ];
        taken(name, &given)?;
        let momentum = momentum.unwrap_or(0.0);
        let eps = |default: f64| eps.unwrap_or(default);
        let optimizer = match name {
            "sgd" => sgd(momentum, dampening.unwrap_or(0.0), nesterov.unwrap_or(false))?,
            "adam" | "adamw" => Optimizer::Adam {
                betas: betas.unwrap_or((0.9, 0.999)),
                eps: eps(1e-8),
                amsgrad: amsgrad.unwrap_or(false),
                decoupled: name == "adamw",
            },
            "adagrad" => Optimizer::Adagrad { eps: eps(1e-10), lr_decay: lr_decay.unwrap_or(0.0) },
            "rmsprop" => Optimizer::RmsProp {
                alpha: alpha.unwrap_or(0.99),
                eps: eps(1e-8),
                centered: centered.unwrap_or(false),
                momentum,
            },
            "lion" => Optimizer::Lion { betas: betas.unwrap_or((0.9, 0.99)) },
            "ema" => Optimizer::Ema { decay: decay.unwrap_or(0.999) },
            other => return Err(unknown(other)),
        };
        let dtype = dtype.map_or(Ok(DType::F32), dtypes::of_object)?;
        if !dtype.is_float() {
            return Err(PyTypeError::new_err(format!("parameters are floats, not {dtype}")));
        }
        let weight_decay = weight_decay.unwrap_or(if name == "adamw" { 0.01 } else { 0.0 });
        let step = Step::new(optimizer, dtype).weight_decay(weight_decay).maximize(maximize.unwrap_or(false));
        Ok(PyOptimizer { step })
    }

    /// The names of the states, all of the parameter's shape, which begin with 0.
    ///
    /// >>> castwise.Optimizer("adam").states
    /// ['exp_avg', 'exp_avg_sq']
    #[getter]
    fn states(&self) -> Vec<&'static str> {
        self.step.states()
    }

    /// The names of the numbers that change from step to step: 0-d values in float32, of a float64 parameter in float64.
    ///
    /// >>> castwise.Optimizer("sgd").numbers
    /// ['lr', 'share']
    #[getter]
    fn numbers(&self) -> Vec<&'static str> {
        self.step.numbers().to_vec()
    }

    /// These numbers at a step, counted from 1.
    ///
    /// >>> castwise.Optimizer("sgd").values(0.5, 1)
    /// [0.5, 1.0]
    fn values(&self, lr: f64, step: u32) -> Vec<f64> {
        self.step.values(lr, step)
    }

    /// The new parameter and the new states, of a parameter, its gradient, the states and the numbers.
    ///
    /// >>> p, step = castwise.Program("torch"), castwise.Optimizer("sgd", momentum=0.5)
    /// >>> x, g, buffer = (p.data(name, "float32", [1]) for name in ("x", "g", "buffer"))
    /// >>> p.fetch(*step.update(x, g, [buffer], [p.data(name, "float32", []) for name in step.numbers]))
    /// >>> ones = np.ones(1, np.float32)
    /// >>> castwise.compile(p)(ones, ones, 2 * ones, *map(np.float32, step.values(0.25, 2)))
    /// (array([0.5], dtype=float32), array([2.], dtype=float32))
    fn update<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        g: &Bound<'_, PyAny>,
        states: &Bound<'_, PyAny>,
        numbers: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyVar>>> {
        let (states, numbers) = self.counted(states, numbers)?;
        let (old, g) = (var(x)?, var(g)?);
        handles(x, with_location(here(py), || self.step.update(&old, &g, &states, &numbers)))
    }

    /// The new parameter in its narrower dtype, its new copy in the step's dtype, and the new states: `update` of a parameter
    /// of which a wider copy, its master, is kept.
    ///
    /// >>> p, step = castwise.Program("torch"), castwise.Optimizer("sgd")
    /// >>> x, g, master = p.data("x", "float16", [1]), p.data("g", "float16", [1]), p.data("master", "float32", [1])
    /// >>> p.fetch(*step.update_master(x, master, g, [], [p.data(name, "float32", []) for name in step.numbers]))
    /// >>> half, ones = np.ones(1, np.float16), np.ones(1, np.float32)
    /// >>> castwise.compile(p)(half, half, ones, *map(np.float32, step.values(0.25, 1)))
    /// (array([0.75], dtype=float16), array([0.75], dtype=float32))
    fn update_master<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        master: &Bound<'_, PyAny>,
        g: &Bound<'_, PyAny>,
        states: &Bound<'_, PyAny>,
        numbers: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyVar>>> {
        let (states, numbers) = self.counted(states, numbers)?;
        let (old, master, g) = (var(x)?, var(master)?, var(g)?);
        handles(x, with_location(here(py), || self.step.update_master(&old, &master, &g, &states, &numbers)))
    }
}

/// What is raised where there are no gradients.
fn none() -> PyErr {
    PyValueError::new_err("there are no gradients")
}

/// The gradients, of which there is one at least, and the first one's handle. An iterable is read once: it may be a generator.
fn read<'py>(gradients: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Vec<Var>)> {
    let all = gradients.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let vars = all.iter().map(var).collect::<PyResult<_>>()?;
    Ok((all.into_iter().next().ok_or_else(none)?, vars))
}

/// Gradients with their global norm limited, and that norm.
///
/// >>> p = castwise.Program("torch")
/// >>> clipped, norm = castwise.clip_by_norm([p.data("g", "float32", [2])], 1.0)
/// >>> p.fetch(*clipped, norm)
/// >>> castwise.compile(p)(np.float32([3, 4]))[1]
/// array(5., dtype=float32)
#[pyfunction]
pub fn clip_by_norm<'py>(
    py: Python<'py>,
    gradients: &Bound<'py, PyAny>,
    most: f64,
) -> PyResult<(Vec<Bound<'py, PyVar>>, Bound<'py, PyVar>)> {
    let (beside, all) = read(gradients)?;
    let (clipped, norm) = with_location(here(py), || castwise::clip_by_norm(&all, most)).ok_or_else(none)?;
    Ok((handles(&beside, clipped)?, handle(&beside, norm)?))
}

/// Gradients with each element limited to -most to most.
///
/// >>> p = castwise.Program("torch")
/// >>> p.fetch(*castwise.clip_by_value([p.data("g", "float32", [2])], 3.5))
/// >>> castwise.compile(p)(np.float32([3, 4]))
/// array([3. , 3.5], dtype=float32)
#[pyfunction]
pub fn clip_by_value<'py>(
    py: Python<'py>,
    gradients: &Bound<'py, PyAny>,
    most: f64,
) -> PyResult<Vec<Bound<'py, PyVar>>> {
    let (beside, all) = read(gradients)?;
    handles(&beside, with_location(here(py), || castwise::clip_by_value(&all, most)))
}

/// Whether all elements of all gradients are finite: 0-d.
///
/// >>> p = castwise.Program("torch")
/// >>> p.fetch(castwise.all_finite([p.data("g", "float32", [2])]))
/// >>> castwise.compile(p)(np.float32([3, np.inf])).item()
/// False
#[pyfunction]
pub fn all_finite<'py>(py: Python<'py>, gradients: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyVar>> {
    let (beside, all) = read(gradients)?;
    handle(&beside, with_location(here(py), || castwise::all_finite(&all)).ok_or_else(none)?)
}
