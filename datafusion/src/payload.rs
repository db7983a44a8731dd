//! Functions as bytes, for plans that travel: their text, the settings, and the version of this crate.
//!
//! Guarantees: what is read is a function that was written, or an error that says what is wrong; a plan of another
//! version is refused, because its results may have other bits. Does not: compile.

use castwise::{Program, Settings};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

use crate::aggregate::{Aggregate, castwise_agg};
use crate::scalar::{Call, SqlCall, castwise_udf};
use crate::source::Source;
use crate::sql::{SqlAggregate, sql_aggregate, sql_function};

/// The first line: what the bytes are, and the version that wrote them.
const MAGIC: &str = "castwise-datafusion";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The bytes of a function, if it is one of this crate.
pub(crate) fn encode_scalar(function: &ScalarUDF) -> Option<Vec<u8>> {
    let inner = function.inner();
    if let Some(call) = inner.downcast_ref::<Call>() {
        return Some(with_source(&call.source));
    }
    inner.downcast_ref::<SqlCall>().map(|sql| with_settings("settings", sql.settings, ""))
}

/// The bytes of an aggregate, if it is one of this crate.
pub(crate) fn encode_aggregate(function: &AggregateUDF) -> Option<Vec<u8>> {
    let inner = function.inner();
    if let Some(aggregate) = inner.downcast_ref::<Aggregate>() {
        return Some(with_source(&aggregate.source));
    }
    inner.downcast_ref::<SqlAggregate>().map(|sql| with_settings("settings", sql.settings, ""))
}

/// The function of this name and these bytes; `None` if they are another's.
pub(crate) fn decode_scalar(name: &str, bytes: &[u8]) -> Option<Result<ScalarUDF>> {
    Some(decoded(bytes)?.map(|found| match found {
        Found::Source(source) => castwise_udf(name, source),
        Found::Settings(settings) => sql_function(name, settings),
    }))
}

/// The aggregate of this name and these bytes; `None` if they are another's.
pub(crate) fn decode_aggregate(name: &str, bytes: &[u8]) -> Option<Result<AggregateUDF>> {
    Some(decoded(bytes)?.map(|found| match found {
        Found::Source(source) => castwise_agg(name, source),
        Found::Settings(settings) => sql_aggregate(name, settings),
    }))
}

enum Found {
    Source(Source),
    Settings(Settings),
}

fn with_source(source: &Source) -> Vec<u8> {
    if source.is_program() {
        return format!("{MAGIC} {VERSION}\nprogram\n{}", source.text()).into_bytes();
    }
    with_settings("expression", source.settings(), source.text())
}

/// Settings are written as the text of a program that has nothing else.
fn with_settings(kind: &str, settings: Settings, text: &str) -> Vec<u8> {
    let empty = Program::with_settings(settings).to_string();
    format!("{MAGIC} {VERSION}\n{kind} {}\n{empty}{text}", empty.len()).into_bytes()
}

fn decoded(bytes: &[u8]) -> Option<Result<Found>> {
    let rest = bytes.strip_prefix(MAGIC.as_bytes())?.strip_prefix(b" ")?;
    Some(read(rest))
}

fn read(bytes: &[u8]) -> Result<Found> {
    let broken = || DataFusionError::Plan("castwise: the bytes of a function in this plan are damaged".into());
    let text = std::str::from_utf8(bytes).map_err(|_| broken())?;
    let (version, text) = text.split_once('\n').ok_or_else(broken)?;
    if version != VERSION {
        let both = format!("the plan was made by castwise-datafusion {version}, this process has {VERSION}");
        return Err(DataFusionError::Plan(format!("castwise: {both}: all processes of a cluster need one version")));
    }
    let (kind, text) = text.split_once('\n').ok_or_else(broken)?;
    if kind == "program" {
        return Source::program_text(text).map(Found::Source);
    }
    let (kind, length) = kind.split_once(' ').ok_or_else(broken)?;
    let at: usize = length.parse().map_err(|_| broken())?;
    let (empty, text) = text.split_at_checked(at).ok_or_else(broken)?;
    let settings = Program::parse(empty).map_err(|_| broken())?.settings();
    match kind {
        "expression" => Source::expression(text, settings).map(Found::Source),
        "settings" if text.is_empty() => Ok(Found::Settings(settings)),
        _ => Err(broken()),
    }
}

#[cfg(test)]
mod tests;
