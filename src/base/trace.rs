//! Spans of the `tracing` crate, behind the feature `tracing`.
//!
//! Guarantees: without the feature, a span expands to nothing and its fields are not computed. Does not: install a
//! subscriber.

/// Enters a span that lives until the end of the enclosing block. Fields in braces are recorded at once; fields after
/// `+` are declared empty, for [`record`].
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

/// Records the value of a field that the span declared after `+`.
macro_rules! record {
    ($span:ident, $field:ident: $value:expr) => {
        #[cfg(feature = "tracing")]
        $span.record(stringify!($field), $value as u64);
    };
}

pub(crate) use {record, span};
