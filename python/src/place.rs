//! The line of Python code that calls.

use castwise::{SourceLine, SourceLocation};
use pyo3::prelude::*;

/// The line of the innermost frame outside of the package; none if Python has none.
pub fn here(py: Python<'_>) -> SourceLocation {
    found(py).unwrap_or_default()
}

fn found(py: Python<'_>) -> PyResult<SourceLocation> {
    let own: String = own_folder(py)?;
    let mut frame = py.import("sys")?.getattr("_getframe")?.call0()?;
    loop {
        let file: String = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
        if own.is_empty() || !file.starts_with(&own) {
            let line: u32 = frame.getattr("f_lineno")?.extract()?;
            return Ok(SourceLine::new(file, line).into());
        }
        frame = frame.getattr("f_back")?;
    }
}

/// The folder of the package.
fn own_folder(py: Python<'_>) -> PyResult<String> {
    use pyo3::sync::PyOnceLock;
    static FOLDER: PyOnceLock<String> = PyOnceLock::new();
    let ask = || -> PyResult<String> {
        let file: String = py.import("castwise")?.getattr("__file__")?.extract()?;
        Ok(file.trim_end_matches("__init__.py").to_string())
    };
    FOLDER.get_or_try_init(py, ask).cloned()
}
