//! Spans of the crate `tracing`, if the feature of that name is on.
//!
//! Guarantees: without the feature, a span is nothing: its fields are not computed. Does not: say who listens.

/// A span of this name, entered until the end of the block: the fields it starts with, then those that
/// [`record`](crate::base::trace::record) adds.
macro_rules! span {
    ($level:ident, $span:ident = $name:literal { $($field:ident: $value:expr),* } $(+ $later:ident)*) => {
        #[cfg(feature = "tracing")]
        let $span = tracing::span!(
            target: "castwise", tracing::Level::$level, $name
            $(, $field = $value as u64)* $(, $later = tracing::field::Empty)*
        )
        .entered();
    };
}

/// Adds a field to a span.
macro_rules! record {
    ($span:ident, $field:ident: $value:expr) => {
        #[cfg(feature = "tracing")]
        $span.record(stringify!($field), $value as u64);
    };
}

pub(crate) use {record, span};
