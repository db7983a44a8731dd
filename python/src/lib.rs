//! castwise for Python: the module `castwise._core`.
//!
//! Guarantees: arrays are read in place and results own their memory (`arrays`); an error is a Python exception with the
//! caller's line (`errors`, `place`). Does not: have rules of its own; every dtype is castwise's decision.
//!
//! The command is compiled into the module, so that the wheel has it without a second copy of the library: `cli` is the
//! same source as that of the binary, and uses the library's public interface only.

use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, Composite, DType, Generator, Op, compare_settings};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

#[path = "../../src/cli/mod.rs"]
mod cli;
#[path = "../../src/base/random.rs"]
mod random;

mod apply;
mod arrays;
mod compiled;
mod describe;
mod dlpack;
mod dtypes;
mod eager;
mod errors;
mod examples;
mod executor;
mod functions;
mod html;
mod lazy;
mod ndarrays;
mod numbers;
mod operators;
mod optimizers;
mod options;
mod place;
mod program;
mod rules;
mod torch;
mod traced;
mod var;
mod variant;
mod views;

use arrays::Argument;
use cli::fix::Goal;
use cli::fix::library::{Operand, Unfixed, fixed};
use compiled::Compiled;
use executor::PyExecutor;
use functions::Function;
use options::Options;
use program::PyProgram;
use var::PyVar;

/// Compiles an expression.
#[pyfunction]
fn compile_expression(py: Python<'_>, text: &str, options: &Bound<'_, Options>) -> PyResult<Compiled> {
    Compiled::expression(py, text, options.get().clone())
}

/// Compiles a program's text.
#[pyfunction]
fn compile_text(py: Python<'_>, text: &str, options: &Bound<'_, Options>) -> PyResult<Compiled> {
    Compiled::of_text(py, text, options.get().clone())
}

/// Compiles a program.
#[pyfunction]
fn compile_program(program: &Bound<'_, PyProgram>, options: &Bound<'_, Options>) -> PyResult<Compiled> {
    Compiled::program(program.get().program(), None, options.get().clone())
}

/// Compiles a function of Vars. `defaults` has the values of parameters that a call may leave out.
#[pyfunction]
#[pyo3(signature = (function, names, options, defaults=None))]
fn compile_function(
    function: &Bound<'_, PyAny>,
    names: Vec<String>,
    options: &Bound<'_, Options>,
    defaults: Option<Bound<'_, PyDict>>,
) -> PyResult<Compiled> {
    Compiled::function(function, names, options.get().clone(), defaults)
}

/// Runs the command `castwise` with these arguments, of which the first is its name, and returns the exit status.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| cli::status(arguments))
}

/// The command's arguments, of which the first is its name, with those of the file that `--config` names. Raises ValueError with
/// the exit status and the error.
#[pyfunction]
fn command_arguments(arguments: Vec<std::ffi::OsString>) -> PyResult<Vec<std::ffi::OsString>> {
    cli::arguments(arguments).map_err(PyValueError::new_err)
}

/// The op, composite or generator of a name, as a function.
#[pyfunction]
fn op<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    functions::named(py, name, None)?.ok_or_else(|| PyTypeError::new_err(format!("there is no op `{name}`")))
}

/// The names of all ops.
#[pyfunction]
fn op_names() -> Vec<&'static str> {
    Op::ALL.iter().map(|op| op.name()).collect()
}

/// The names of all composites.
#[pyfunction]
fn composite_names() -> Vec<&'static str> {
    Composite::all().map(|c| c.name()).collect()
}

/// The names of all generators.
#[pyfunction]
fn generator_names() -> Vec<&'static str> {
    Generator::all().map(|g| g.name()).collect()
}

/// An operand of `result_type`: an array, a number, or what names a dtype.
fn operand(obj: &Bound<'_, PyAny>) -> PyResult<OperandType> {
    if let Some(s) = arrays::scalar(obj)? {
        return Ok(OperandType::Scalar(s));
    }
    match arrays::argument(obj, "operand") {
        Ok(Argument::Array(a)) if a.weak => Ok(OperandType::weak(a.dtype)),
        Ok(Argument::Array(a)) if a.shape.is_empty() => Ok(OperandType::zero(a.dtype)),
        Ok(Argument::Array(a)) => Ok(OperandType::dim(a.dtype)),
        _ => dtypes::of_object(obj).map(OperandType::dim),
    }
}

/// The result's dtype of an op of these operands.
#[pyfunction]
#[pyo3(signature = (*operands, rules, op="add"))]
fn result_type(py: Python<'_>, operands: &Bound<'_, PyTuple>, rules: &str, op: &str) -> PyResult<&'static str> {
    let none = || PyTypeError::new_err(format!("there is no op `{op}`"));
    let op = Op::from_name(op).ok_or_else(none)?;
    let operands = operands.iter().map(|o| operand(&o)).collect::<PyResult<Vec<_>>>()?;
    let found = signature(&rules::settings(rules)?, op, &operands, &Attrs::default());
    found.map(|s| s.result.name()).map_err(|d| errors::exception(py, &castwise::Error::Invalid(vec![d]), None))
}

/// The dtype that two dtypes promote to in PyTorch's lattice; `None` for dtypes that do not promote.
#[pyfunction]
#[pyo3(signature = (a, b, rules))]
fn promote_types(py: Python<'_>, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>, rules: &str) -> PyResult<&'static str> {
    let operands = [OperandType::dim(dtypes::of_object(a)?), OperandType::dim(dtypes::of_object(b)?)];
    let found = signature(&rules::settings(rules)?, Op::Maximum, &operands, &Attrs::default());
    found.map(|s| s.compute.name()).map_err(|d| errors::exception(py, &castwise::Error::Invalid(vec![d]), None))
}

/// Whether a value of one dtype can be written to an array of another one without losing its category.
#[pyfunction]
fn can_cast(from: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(dtypes::of_object(from)?.can_cast(dtypes::of_object(to)?))
}

/// An op, its place, and the dtype that each rule set gives; `None` where it refuses.
type Differing = (String, String, Vec<(String, Option<String>)>);

/// Where the rule sets differ for a program: the op, the line, and what each rule set gives.
#[pyfunction]
#[pyo3(signature = (program, rules))]
fn compare_program(program: &Bound<'_, PyProgram>, rules: Vec<String>) -> PyResult<Vec<Differing>> {
    let program = program.get().program();
    let settings = |name: String| {
        let asked = rules::settings(&name)?;
        Ok::<_, PyErr>((name, program.settings().with_rules_of(asked)))
    };
    let all = rules.into_iter().map(settings).collect::<PyResult<Vec<_>>>()?;
    let one = |d: castwise::Difference<String>| {
        let outcome = |(name, o): (String, castwise::Outcome)| match o {
            castwise::Outcome::DType(d) => (name, Some(d.name().to_string())),
            castwise::Outcome::Refused(_) => (name, None),
        };
        (d.op.to_string(), d.location.to_string(), d.outcomes.into_iter().map(outcome).collect())
    };
    Ok(compare_settings(program, &all).into_iter().map(one).collect())
}

/// The expression with casts after which its error is within a tolerance, or nothing is left that `deny` refuses.
#[pyfunction]
#[pyo3(signature = (text, rules, deny, tolerance, names, values))]
fn fix(
    py: Python<'_>,
    text: String,
    rules: &str,
    deny: &str,
    tolerance: Option<f64>,
    names: Vec<String>,
    values: &Bound<'_, PyTuple>,
) -> PyResult<String> {
    let kind = deny.parse().map_err(PyValueError::new_err)?;
    let goal = tolerance.map_or(Goal::Findings(kind), Goal::Tolerance);
    let settings = rules::settings(rules)?;
    let mut operands = Vec::new();
    for (name, value) in names.into_iter().zip(values.iter()) {
        let operand = match value.extract::<String>() {
            Ok(declared) => Operand::Declared(declared),
            Err(_) => match arrays::argument(&value, &name)? {
                Argument::Scalar(s) => Operand::Number(s.to_string()),
                Argument::Array(a) => {
                    let t = a.with_bools()?.tensor();
                    Operand::Given(t.map_err(|e| errors::exception(py, &e, Some(&text)))?)
                }
            },
        };
        operands.push((name, operand));
    }
    let fixed = py.detach(|| fixed(settings, &text, operands, goal));
    fixed.map_err(|why| match why {
        Unfixed::Name(why) => PyTypeError::new_err(why),
        Unfixed::Refused(why) => errors::named(py, "ProgramError", &why),
    })
}

/// The names of the dtypes.
#[pyfunction]
fn dtype_names() -> Vec<&'static str> {
    DType::ALL.iter().map(|d| d.name()).collect()
}

/// The names of the rule sets.
#[pyfunction]
fn rule_names() -> Vec<&'static str> {
    castwise::Rules::ALL.iter().map(|r| r.name()).collect()
}

/// Whether NumPy's functions were found: for tests.
#[pyfunction]
fn _has_numpy(py: Python<'_>) -> bool {
    dtypes::has_numpy(py)
}

#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<Compiled>()?;
    m.add_class::<PyProgram>()?;
    m.add_class::<operators::Operators>()?;
    m.add_class::<PyVar>()?;
    m.add_class::<optimizers::PyOptimizer>()?;
    m.add_function(wrap_pyfunction!(optimizers::clip_by_norm, m)?)?;
    m.add_function(wrap_pyfunction!(optimizers::clip_by_value, m)?)?;
    m.add_function(wrap_pyfunction!(optimizers::all_finite, m)?)?;
    m.add_class::<eager::PyArray>()?;
    m.add_class::<Function>()?;
    m.add_class::<PyExecutor>()?;
    m.add_class::<Options>()?;
    m.add_class::<arrays::Memory>()?;
    m.add_function(wrap_pyfunction!(command, m)?)?;
    m.add_function(wrap_pyfunction!(command_arguments, m)?)?;
    m.add_function(wrap_pyfunction!(executor::default_executor, m)?)?;
    m.add_function(wrap_pyfunction!(compile_expression, m)?)?;
    m.add_function(wrap_pyfunction!(compile_text, m)?)?;
    m.add_function(wrap_pyfunction!(compile_program, m)?)?;
    m.add_function(wrap_pyfunction!(compile_function, m)?)?;
    m.add_function(wrap_pyfunction!(eager::_array_of_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(eager::array, m)?)?;
    m.add_function(wrap_pyfunction!(eager::full, m)?)?;
    m.add_function(wrap_pyfunction!(eager::arange, m)?)?;
    m.add_function(wrap_pyfunction!(eager::join, m)?)?;
    m.add_function(wrap_pyfunction!(eager::dtype_info, m)?)?;
    m.add_function(wrap_pyfunction!(operators::assigned, m)?)?;
    m.add_function(wrap_pyfunction!(op, m)?)?;
    m.add_function(wrap_pyfunction!(op_names, m)?)?;
    m.add_function(wrap_pyfunction!(composite_names, m)?)?;
    m.add_function(wrap_pyfunction!(generator_names, m)?)?;
    m.add_function(wrap_pyfunction!(result_type, m)?)?;
    m.add_function(wrap_pyfunction!(promote_types, m)?)?;
    m.add_function(wrap_pyfunction!(can_cast, m)?)?;
    m.add_function(wrap_pyfunction!(compare_program, m)?)?;
    m.add_function(wrap_pyfunction!(fix, m)?)?;
    m.add_function(wrap_pyfunction!(html::measured, m)?)?;
    m.add_function(wrap_pyfunction!(dtype_names, m)?)?;
    m.add_function(wrap_pyfunction!(rule_names, m)?)?;
    m.add_function(wrap_pyfunction!(_has_numpy, m)?)
}
