//! Parsers of the values of options.
//!
//! Guarantees: an invalid value is a usage error that names the expected form. Does not: open files.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use castwise::shape::{Dim, Dims};
use castwise::{Contraction, DType, Rounding, UnknownDType, ZeroDivision};
use clap::builder::{OsStringValueParser, TypedValueParser};
use regex::Regex;

use super::findings::Kind;
use super::patterns;
use super::spec::{InputSpec, Rename, located};

/// A parser of values that can contain file names, which need not be UTF-8.
pub(super) fn os<T: Clone + Send + Sync + 'static>(
    read: fn(&OsStr) -> Result<T, String>,
) -> impl TypedValueParser<Value = T> {
    OsStringValueParser::new().try_map(move |value| read(&value))
}

/// The parts before and after the first `=`.
#[cfg(unix)]
fn split(text: &OsStr) -> Option<(&OsStr, &OsStr)> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|b| *b == b'=')?;
    Some((OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..])))
}

/// The parts before and after the first `=`, on systems where only UTF-8 text can be split.
#[cfg(not(unix))]
fn split(text: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let (name, value) = text.to_str()?.split_once('=')?;
    Some((name.as_ref(), value.as_ref()))
}

/// Splits `NAME=VALUE` into its name, which must be UTF-8, and its value.
fn named<'t>(text: &'t OsStr, form: &str) -> Result<(String, &'t OsStr), String> {
    let parts = split(text).and_then(|(name, value)| Some((name.to_str()?, value)));
    match parts {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_string(), value)),
        _ => Err(format!("expected {form}")),
    }
}

/// The input that is a file or a folder.
pub(super) fn input_path(path: PathBuf) -> InputSpec {
    located(path)
}

pub(super) fn input(text: &OsStr) -> Result<(String, InputSpec), String> {
    let (name, file) = named(text, "NAME=FILE or NAME=DTYPE[SHAPE]")?;
    let Some(value) = file.to_str().filter(|v| *v != "-" && !Path::new(v).is_dir()) else {
        return Ok((name, located(file.into())));
    };
    let (written, dims) = match value.strip_suffix(']').and_then(|v| v.split_once('[')) {
        Some((dtype, dims)) => (dtype, Some(dims)),
        None => (value, None),
    };
    let dtype: DType = match written.parse() {
        Ok(dtype) => dtype,
        Err(e) => return not_declared(name, value, dims.is_some(), &e),
    };
    let dim = |d: &str| match d {
        "?" => Ok(Dim::Dynamic),
        d if d.bytes().all(|b| b.is_ascii_digit()) && !d.is_empty() => {
            d.parse().map(Dim::Fixed).map_err(|_| format!("the dim {d} is too large"))
        }
        d if d.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !d.is_empty() => Ok(Dim::Named(d.into())),
        _ => Err("a dim is a number, a name, or `?`".to_string()),
    };
    let list = dims.map(str::trim).filter(|d| !d.is_empty());
    let dims = list.map(|d| d.split(',').map(|d| dim(d.trim())).collect()).unwrap_or(Ok(Vec::new()))?;
    Ok((name, InputSpec::Declared(dtype, Dims(dims))))
}

/// Handles a value that does not begin with a dtype: it is a file, unless it can't be the name of a file that castwise
/// reads.
fn not_declared(name: String, value: &str, shaped: bool, e: &UnknownDType) -> Result<(String, InputSpec), String> {
    let path = value.contains(['/', '\\']);
    if !path && (shaped || e.meant().is_some()) {
        return Err(e.to_string());
    }
    if !path && !value.contains('.') {
        return Err(format!("{e}; file names end with .npy, .npz, .safetensors or .index.json"));
    }
    Ok((name, located(value.into())))
}

pub(super) fn feed(text: &OsStr) -> Result<(Option<String>, InputSpec), String> {
    if !text.as_encoded_bytes().contains(&b'=') && !text.is_empty() {
        return Ok((None, located(text.into())));
    }
    let (name, path) = named(text, "NAME=FILE or FILE")?;
    Ok((Some(name), located(path.into())))
}

pub(super) fn rename(text: &str) -> Result<Rename, String> {
    let form = || "expected INPUT:REGEX=TEXT".to_string();
    let (input, rule) = text.split_once(':').filter(|(input, _)| !input.is_empty()).ok_or_else(form)?;
    let (pattern, to) = rule.rsplit_once('=').filter(|(pattern, _)| !pattern.is_empty()).ok_or_else(form)?;
    Ok(Rename { input: input.to_string(), pattern: regex(pattern)?, to: to.to_string() })
}

pub(super) fn sibling(text: &str) -> Result<(String, Rename), String> {
    let form = || "expected NAME=INPUT:REGEX=TEXT".to_string();
    let (name, rule) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(form)?;
    Ok((name.to_string(), rename(rule).map_err(|e| if e.starts_with("expected") { form() } else { e })?))
}

pub(super) fn parameter(text: &OsStr) -> Result<(String, OsString), String> {
    named(text, "NAME=NUMBER or NAME=FILE").map(|(name, value)| (name, value.to_os_string()))
}

/// A parser of a file, a folder or one tensor of a file.
pub(super) fn os_path() -> impl TypedValueParser<Value = InputSpec> {
    os(|text| if text.is_empty() { Err("expected a file or a folder".to_string()) } else { Ok(located(text.into())) })
}

pub(super) fn regex(text: &str) -> Result<Regex, String> {
    patterns::check_length(text)?;
    Regex::new(text).map_err(|e| format!("invalid regular expression: {e}"))
}

pub(super) fn map(text: &str) -> Result<(Regex, String), String> {
    match text.split_once('=') {
        Some((pattern, expression)) if !pattern.is_empty() && !expression.is_empty() => {
            Ok((regex(pattern)?, expression.to_string()))
        }
        _ => Err("expected REGEX=EXPR".to_string()),
    }
}

pub(super) fn deny(text: &str) -> Result<Kind, String> {
    text.parse()
}

pub(super) fn tolerance(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0).ok_or_else(|| "expected a number from 0".to_string())
}

pub(super) fn rounding(text: &str) -> Result<Rounding, String> {
    match text {
        "exact" => Ok(Rounding::Exact),
        "relaxed" => Ok(Rounding::Relaxed),
        _ => Err("expected exact or relaxed".to_string()),
    }
}

pub(super) fn zero_division(text: &str) -> Result<ZeroDivision, String> {
    text.parse().map_err(|_| "expected rules or error".to_string())
}

pub(super) fn contraction(text: &str) -> Result<Contraction, String> {
    text.parse().map_err(|_| "expected off or torch".to_string())
}

pub(super) fn float(text: &str) -> Result<DType, String> {
    let dtype: DType = text.parse().map_err(|e: castwise::UnknownDType| e.to_string())?;
    let is_computed = dtype.is_float() && !dtype.is_byte_float();
    if is_computed { Ok(dtype) } else { Err(format!("{dtype} is none of f16, bf16, f32 and f64")) }
}

/// Parses a number of bytes, with a decimal unit or a binary one (with an `i`).
pub(super) fn size(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: Option<u64> = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kb" => Some(1_000),
        "m" | "mb" => Some(1_000_000),
        "g" | "gb" => Some(1_000_000_000),
        "kib" => Some(1 << 10),
        "mib" => Some(1 << 20),
        "gib" => Some(1 << 30),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f)).filter(|n| *n > 0);
    bytes.ok_or_else(|| "expected a size such as 5GB, 500MB or 4GiB (K, M and G are powers of 1000, KiB, MiB and GiB powers of 1024)".to_string())
}
