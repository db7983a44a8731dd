//! Tests of the library and the command, as one program: `cargo test --test suite`, or `cargo test --test suite text::` for
//! one file.
//!
//! Not here are files whose tests need a process, an allocator or features of their own: `Cargo.toml` lists them. A file of
//! neither list is found by `tidy`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_inputs;
mod byte_floats;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
mod cli_deny;
#[cfg(feature = "cli")]
mod cli_files;
#[cfg(feature = "cli")]
mod cli_measure;
#[cfg(all(feature = "cli", unix))]
mod cli_models;
#[cfg(feature = "cli")]
mod cli_names;
#[cfg(feature = "cli")]
mod cli_options;
#[cfg(all(feature = "cli", unix))]
mod cli_parameters;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod cli_paths;
#[cfg(feature = "cli")]
mod cli_results;
#[cfg(feature = "cli")]
mod cli_scripts;
#[cfg(feature = "cli")]
mod cli_streams;
#[cfg(feature = "cli")]
mod cli_unchanged;
mod code_stages;
#[cfg(feature = "cli")]
mod command;
mod common;
mod compare;
mod composed_reductions;
mod composites;
mod concurrency;
mod constructors;
mod custom_ops;
mod display;
mod doubles;
mod eager_static;
mod exhaustive;
mod extremes;
#[cfg(all(feature = "cli", unix))]
mod faults;
#[cfg(target_arch = "x86_64")]
mod float_modes;
mod fma;
mod forms;
mod generators;
mod gradient_programs;
mod gradients;
mod gradients_by_rules;
mod jax;
mod layouts;
mod lines;
mod locations;
mod masks;
#[cfg(feature = "cli")]
mod merges;
mod mistakes;
#[cfg(feature = "io")]
mod npy_oracle;
#[cfg(feature = "io")]
mod numpy_files;
mod one_value;
mod ops_doc;
mod optimizers;
mod order;
mod positions;
mod prepared;
#[cfg(feature = "cli")]
mod program_pictures;
mod program_views;
mod promotion;
#[cfg(feature = "cli")]
mod promotion_page;
mod random_programs;
#[cfg(feature = "cli")]
mod recipes;
mod recompute;
#[cfg(feature = "cli")]
mod recorded_programs;
mod reductions;
mod reference;
mod refusals;
mod rounding;
mod row_groups;
mod scalars;
mod scale;
#[cfg(all(feature = "cli", unix))]
mod scaling;
mod sort;
#[cfg(all(feature = "cli", unix))]
mod special_files;
mod statistics;
mod stats;
mod targets;
mod text;
mod tidy;
mod typing;
mod views;
mod wraps;
