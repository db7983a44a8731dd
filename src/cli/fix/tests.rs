//! Tests of `--fix`.
