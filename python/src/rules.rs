//! The settings of a call: those that are asked for, and the rules of the arrays' library where none are.

use castwise::{Rounding, Rules, Settings};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::Library;
use crate::dtypes::jax_x64;
use crate::errors;

/// What was asked for when a program was compiled.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// `None`: the rules of the arrays' library.
    settings: Option<Settings>,
    rounding: Rounding,
}

/// Reads `rules`: a name and the settings that are on, such as `"torch"` or `"jax,x64"`.
pub fn settings(rules: &str) -> PyResult<Settings> {
    rules.parse().map_err(|e: String| PyValueError::new_err(e))
}

impl Asked {
    pub fn new(rules: Option<&str>, rounding: &str) -> PyResult<Asked> {
        let rounding = rounding.parse().map_err(|e: String| PyValueError::new_err(e))?;
        Ok(Asked { settings: rules.map(settings).transpose()?, rounding })
    }

    /// Refuses a program whose rules are not those that were asked for.
    pub fn check_within(&self, py: Python<'_>, program: Settings) -> PyResult<()> {
        let (Some(own), all) = (self.settings.map(|s| s.named()), program.named()) else { return Ok(()) };
        if own == all {
            return Ok(());
        }
        let text = format!(
            "a call with a castwise.Var adds to its program, whose rules are \"{all}\", and this was compiled with \
             rules=\"{own}\": compile both with the same rules"
        );
        Err(errors::named(py, "ProgramError", &text))
    }

    /// The settings for arrays of these libraries.
    pub fn of(&self, py: Python<'_>, libraries: impl Iterator<Item = Library>) -> PyResult<Settings> {
        let settings = match self.settings {
            Some(settings) => settings,
            None => of_library(py, shared(libraries)?)?,
        };
        Ok(settings.with_rounding(self.rounding))
    }
}

/// The rules of a library, with JAX's setting of 64 bits as it is now.
pub fn of_library(py: Python<'_>, library: Library) -> PyResult<Settings> {
    Ok(match library {
        Library::NumPy => Settings::new(Rules::NumPy),
        Library::Torch => Settings::new(Rules::Torch),
        Library::Paddle => Settings::new(Rules::Paddle),
        Library::Jax => Settings::new(Rules::Jax).with_x64(jax_x64(py)?),
        Library::Other(_) => {
            let text = "the arguments' library has no rules of its own here: say whose apply, as in `rules=\"numpy\"`";
            return Err(PyValueError::new_err(text));
        }
    })
}

/// The rules of the one library that all arrays belong to.
fn shared(libraries: impl Iterator<Item = Library>) -> PyResult<Library> {
    let mut found: Option<Library> = None;
    for library in libraries {
        match found {
            Some(first) if first != library => {
                let text = "the arguments belong to several libraries: say whose rules apply, as in `rules=\"torch\"`";
                return Err(PyValueError::new_err(text));
            }
            _ => found = Some(library),
        }
    }
    let none = || PyTypeError::new_err("no argument is an array, so there are no rules: pass `rules=\"numpy\"`");
    found.ok_or_else(none)
}
