//! Views of a value: the same elements under other dims.
//!
//! Guarantees: names, negative dims and bounds are PyTorch's; an index is a view of castwise's or is refused. Does not:
//! decide shapes; the library does.

use castwise::{Slice, View};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};

/// Integers that are given one by one or as one sequence.
pub fn integers(args: &Bound<'_, PyTuple>) -> PyResult<Vec<i64>> {
    if args.len() == 1
        && let Ok(all) = args.get_item(0)?.extract::<Vec<i64>>()
    {
        return Ok(all);
    }
    args.iter().map(|a| a.extract()).collect()
}

/// The views that an index makes, of a value of this shape, in order.
pub fn of_index(index: &Bound<'_, PyAny>, shape: &[Option<usize>]) -> PyResult<Vec<View>> {
    let items: Vec<Bound<'_, PyAny>> = match index.cast::<PyTuple>() {
        Ok(all) => all.iter().collect(),
        Err(_) => vec![index.clone()],
    };
    let is_rest = |i: &Bound<'_, PyAny>| i.is_instance_of::<PyEllipsis>();
    let taken = items.iter().filter(|i| !i.is_none() && !is_rest(i)).count();
    let rests = items.iter().filter(|i| is_rest(i)).count();
    if taken > shape.len() || rests > 1 {
        let text = format!("an index of {taken} dims with {rests} ellipses for a value of {} dims", shape.len());
        return Err(PyIndexError::new_err(text));
    }
    // `at` is the dim of the view so far, `of` that of the value.
    let (mut views, mut at, mut of) = (Vec::new(), 0i64, 0);
    for item in &items {
        if item.is_none() {
            views.push(View::Unsqueeze(at));
            at += 1;
        } else if is_rest(item) {
            at += (shape.len() - taken) as i64;
            of += shape.len() - taken;
        } else if let Ok(slice) = item.cast::<PySlice>() {
            views.extend(sliced(slice, at, shape[of])?);
            (at, of) = (at + 1, of + 1);
        } else if let Some(n) = integer(item) {
            let (Some(extent), dim) = (shape[of], of) else {
                let text = format!(
                    "the extent of dim {of} is known only when a call comes: use a slice, as in `x[{n}:{n} + 1]`"
                );
                return Err(PyTypeError::new_err(text));
            };
            if n >= extent as i64 || n < -(extent as i64) {
                return Err(PyIndexError::new_err(format!(
                    "the index {n} is outside of dim {dim}, whose extent is {extent}"
                )));
            }
            let first = if n < 0 { n + extent as i64 } else { n };
            views.push(View::Slice(at, Slice { start: Some(first), end: Some(first + 1), step: 1 }));
            views.push(View::Squeeze(at));
            of += 1;
        } else {
            let found = item.get_type().fully_qualified_name()?;
            return Err(PyTypeError::new_err(format!("an index is of integers, slices, None and ..., not a {found}")));
        }
    }
    Ok(views)
}

/// An integer of an index. (A bool is one to Python, but a mask to array libraries.)
fn integer(item: &Bound<'_, PyAny>) -> Option<i64> {
    if item.is_instance_of::<PyBool>() { None } else { item.extract().ok() }
}

/// The views of a slice of one dim, of this extent if it is known.
fn sliced(slice: &Bound<'_, PySlice>, dim: i64, extent: Option<usize>) -> PyResult<Vec<View>> {
    let bound = |name: &str| slice.getattr(name)?.extract::<Option<i64>>();
    let (start, end, step) = (bound("start")?, bound("stop")?, bound("step")?.unwrap_or(1));
    match step {
        1.. => Ok(vec![View::Slice(dim, Slice { start, end, step })]),
        -1 if start.is_none() && end.is_none() => Ok(vec![View::Flip([dim].into())]),
        0 => Err(PyValueError::new_err("a slice of step 0")),
        _ => {
            let unknown = || {
                format!(
                    "a slice of step {step}: where an extent is known only when a call comes, only `[::-1]` goes backwards"
                )
            };
            let extent = extent.ok_or_else(|| PyValueError::new_err(unknown()))?;
            let at = slice.indices(extent as isize)?;
            // The same elements forwards, from the last one that is taken.
            let last = at.start as i64 + (at.slicelength as i64 - 1) * at.step as i64;
            let forwards = match at.slicelength {
                0 => Slice { start: Some(0), end: Some(0), step: 1 },
                _ => Slice { start: Some(last), end: Some(at.start as i64 + 1), step: -(at.step as i64) },
            };
            Ok(vec![View::Slice(dim, forwards), View::Flip([dim].into())])
        }
    }
}
