//! `config.json` of a model, adapted to the tensors that are written.
//!
//! Guarantees: only the values that name a dtype change, and a description of FP8 weights is removed if none are written;
//! the rest of the text stays as it is, byte for byte. Does not: add values.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::path::Path;

use castwise::io::{StoredDType, read_text};
use castwise::{DType, Error};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::Failure;
use super::outputs::List;
use super::report;

/// The maximum size of `config.json` in bytes.
const MAX: u64 = 16 << 20;

/// The fields of an object, in the order of the text.
struct Fields<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Fields<'de>, D::Error> {
        struct OfMap;
        impl<'de> Visitor<'de> for OfMap {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let (mut all, mut seen) = (Vec::new(), HashSet::new());
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    if !seen.insert(key.clone()) {
                        return Err(A::Error::custom(format!("duplicate key `{}`", report::escaped(&key))));
                    }
                    all.push((key, value));
                }
                Ok(Fields(all))
            }
        }
        d.deserialize_map(OfMap)
    }
}

/// The text of `config.json` for these tensors, and notes about what changed.
pub(super) fn adapted(path: &Path, list: &List) -> Result<(String, Vec<String>), Failure> {
    let text = read_text(path, MAX)?;
    let dtype = main_dtype(list).and_then(framework_name);
    let has_bytes = list.iter().any(|(_, d, _)| match d {
        StoredDType::Known(d) => d.is_byte_float(),
        StoredDType::Foreign(_) => true,
    });
    let mut edits = Vec::new();
    let refuse = |e: serde_json::Error| Error::Format {
        path: path.display().to_string(),
        message: format!("not a JSON object ({e}); --no-copy-rest does not copy it"),
    };
    edit(&text, 0, dtype, !has_bytes, &mut edits).map_err(refuse)?;
    let mut notes = Vec::new();
    let mut made = text.clone();
    edits.sort_by_key(|e| std::cmp::Reverse(e.range.start));
    for Edit { range, to, what } in edits {
        let old = text.get(range.clone()).unwrap_or_default();
        if old != to {
            made.replace_range(range, &to);
            notes.push(what);
        }
    }
    notes.reverse();
    notes.dedup();
    Ok((made, notes))
}

/// A change of the text.
struct Edit {
    range: Range<usize>,
    to: String,
    what: String,
}

/// Finds the changes in the object that begins at an offset of the text, and in the objects `..._config` in it.
fn edit(
    text: &str,
    offset: usize,
    dtype: Option<&str>,
    no_bytes: bool,
    edits: &mut Vec<Edit>,
) -> Result<(), serde_json::Error> {
    let mut level = vec![(text, offset)];
    let mut top = true;
    while let Some((object, at)) = level.pop() {
        let Fields(fields) = serde_json::from_str(object)?;
        let mut before: Option<usize> = None;
        for (key, value) in fields {
            let value = value.get();
            let start = value.as_ptr() as usize - object.as_ptr() as usize;
            let range = at + start..at + start + value.len();
            let to = dtype.filter(|_| value.starts_with('"')).map(|d| format!("\"{d}\""));
            match (key.as_str(), to) {
                ("torch_dtype" | "dtype", Some(to)) => {
                    let what = format!("{key} {} -> {to}", report::cut(value, 40));
                    edits.push(Edit { range: range.clone(), to, what });
                }
                // Its dtypes are not those of the tensors.
                ("quantization_config", _) => {
                    if let Some(method) = fp8_method(value).filter(|_| top && no_bytes) {
                        let range = removal(object, before, start + value.len());
                        let range = at + range.start..at + range.end;
                        edits.push(Edit { range, to: String::new(), what: format!("{key} of {method} removed") });
                        continue;
                    }
                }
                (key, _) if top && key.ends_with("_config") && value.starts_with('{') => {
                    level.push((value, at + start))
                }
                _ => {}
            }
            before = Some(start + value.len());
        }
        top = false;
    }
    Ok(())
}

/// The range of a field with the comma before or after it. `before` is the end of the field before it, `end` its own.
fn removal(object: &str, before: Option<usize>, end: usize) -> Range<usize> {
    if let Some(before) = before {
        return before..end;
    }
    let start = object.find('{').map_or(0, |at| at + 1);
    let rest = object.get(end..).unwrap_or_default();
    let comma = rest.len() - rest.trim_start().len();
    if rest[comma..].starts_with(',') { start..end + comma + 1 } else { start..end }
}

/// The method of a quantization whose weights are all in FP8.
fn fp8_method(value: &str) -> Option<&'static str> {
    let config: Value = serde_json::from_str(value).ok()?;
    let is_fp8 = |group: &Value| group["weights"]["type"] == "float" && group["weights"]["num_bits"] == 8;
    let of_groups = || config["config_groups"].as_object().is_some_and(|g| !g.is_empty() && g.values().all(is_fp8));
    match config["quant_method"].as_str()? {
        "fp8" => Some("fp8"),
        "fbgemm_fp8" => Some("fbgemm_fp8"),
        "compressed-tensors" if of_groups() => Some("compressed-tensors"),
        _ => None,
    }
}

/// The float dtype that most elements have.
fn main_dtype(list: &List) -> Option<DType> {
    let mut elements: BTreeMap<&'static str, (u128, DType)> = BTreeMap::new();
    for (_, dtype, shape) in list {
        if let StoredDType::Known(d) = dtype
            && d.is_float()
        {
            elements.entry(d.name()).or_insert((0, *d)).0 += shape.iter().map(|n| *n as u128).product::<u128>();
        }
    }
    elements.into_values().max_by_key(|(n, _)| *n).map(|(_, d)| d)
}

/// The name that PyTorch and the Hugging Face libraries have for a float dtype.
fn framework_name(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::BF16 => "bfloat16",
        DType::F16 => "float16",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::F8E4M3FN => "float8_e4m3fn",
        DType::F8E5M2 => "float8_e5m2",
        _ => return None,
    })
}
