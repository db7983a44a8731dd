//! The settings of a call: those that are asked for, and the rules of the arrays' library where none are.

use castwise::{Rounding, Rules, Settings};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::Library;

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

    /// The settings for arrays of these libraries.
    pub fn of(&self, libraries: impl Iterator<Item = Library>) -> PyResult<Settings> {
        let settings = match self.settings {
            Some(settings) => settings,
            None => Settings::new(shared(libraries)?),
        };
        Ok(settings.with_rounding(self.rounding))
    }
}

/// The rules of a library.
pub fn of_library(library: Library) -> Rules {
    match library {
        Library::NumPy => Rules::NumPy,
        Library::Torch => Rules::Torch,
    }
}

/// The rules of the one library that all arrays belong to.
fn shared(libraries: impl Iterator<Item = Library>) -> PyResult<Rules> {
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
    found.map(of_library).ok_or_else(none)
}
