//! A lazy static-graph compiler for elementwise tensor programs.
//!
//! A [`Program`] is built with ordinary operators and computes nothing. One inference pass gives every node a dtype and
//! a broadcast shape by the rules of PyTorch, PaddlePaddle, NumPy or JAX ([`Rules`]), and inserts a `cast` node with its
//! reason for every implicit conversion. An [`Executor`] fuses the graph into loops, compiles them, and runs them. [`Eager`] mode
//! computes one op at a time, with the same dtypes and the same bits.
//!
//! ```
//! use castwise::prelude::*;
//!
//! let p = Program::new(Rules::Paddle);
//! let a = p.data("a", DType::F16, [3, 3]);
//! let b = p.data("b", DType::F32, [None, Some(3)]);      // a dynamic dim
//! let c = &a + &b * 2.0;                                 // the scalar stays weak: f32 * 2.0 is f32
//!
//! println!("{}", p.infer()?.explain());                  // the typed graph, each cast with its reason
//!
//! let ta = Tensor::full([3, 3], half::f16::from_f32(1.5))?;
//! let tb = Tensor::full([1, 3], 0.25f32)?;               // broadcasts
//! let out = Executor::new().run(&p, feeds! { "a" => ta, "b" => tb }, [&c])?;
//! assert_eq!(out[0].dtype(), DType::F32);
//! assert_eq!(out[0].to_vec::<f32>()?, [2.0; 9]);
//! # Ok::<(), castwise::Error>(())
//! ```
//!
//! Each module begins with its guarantees. ARCHITECTURE.md has the folders and the tests of the invariants.

#![warn(unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod analysis;
mod backend;
mod base;
mod gradients;
mod graph;
#[cfg(any(feature = "ndarray", feature = "serde"))]
mod interop;
#[cfg(feature = "io")]
pub mod io;
mod kernels;
mod math;
pub mod ops;
mod ops_doc;
#[cfg(feature = "svg")]
pub mod picture;
mod plan;
pub mod promotion;
mod runtime;
mod ssa;
mod syntax;
mod tensor;

pub use analysis::compare::{Difference, Outcome, compare, compare_all, compare_settings};
pub use analysis::infer::infer;
pub use analysis::precision::{RoundingNote, ScalarNote, WrapNote};
pub use backend::dump::CodeStage;
pub use base::blocks::BlockSize;
pub use base::cancel::CancelToken;
pub use base::composite::Composite;
pub use base::dtype::{Category, DType, DTypeSet, Element};
pub use base::dtype_names::UnknownDType;
pub use base::error::{CustomOpError, Diagnostic, DiagnosticKind, Error, Result};
pub use base::generator::{Generator, Key, Part};
pub use base::indexing::Indexing;
pub use base::limits::{Limit, Limits};
pub use base::location::{SourceLine, SourceLocation, with_location};
pub use base::scalar::Scalar;
pub use base::shape;
pub use base::view::{Slice, View};
pub use graph::composites::{Finite, Tolerance};
pub use graph::losses::{PoissonNll, Reduction};
pub use graph::optimizers::{LossScale, Optimizer, Step, all_finite, clip_by_norm, clip_by_value};
pub use graph::program::{Fetch, MAX_NODES, NodeRef, Program};
pub use graph::rewrite::{Rewritten, Visit};
pub use graph::typed::{CastNote, TypedProgram, WeakNote};
pub use graph::var::{AtAxis, Graph, Mode, Operand, Over, Var, apply};
pub use graph::view::{NodeKind, NodeOperand, NodeView};
pub use kernels::CpuLevel;
pub use ops::{Attrs, CustomOp, MAX_CUSTOM_OPS, Op, Promotion, Registry};
#[doc(hidden)]
pub use ops_doc::ops_markdown;
pub use plan::options::Pass;
pub use plan::partials as parts;
pub use promotion::{CastLoss, Contraction, Reason, Rounding, Rules, Settings, ZeroDivision, promote_types};
pub use runtime::eager::value::{Eager, EagerValue};
pub use runtime::executor::builder::ExecutorBuilder;
pub use runtime::executor::{AsFeed, Executor, Feed, Feeds, KernelTime, MAX_FETCHES, Prepared, Stats};
pub use syntax::expr;
pub use syntax::text::MAX_PROGRAM_TEXT;
pub use syntax::text::parse::{FORMAT_VERSION, MAX_MISTAKES};
pub use tensor::{AsTarget, Target, Tensor, TensorLayout, TensorMeta, TensorView, TensorViewMut};

pub use base::f8::{F8E4M3FN, F8E5M2};
pub use half::{bf16, f16};
pub use num_complex::Complex;

/// The items that most programs need: `use castwise::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Complex, DType, Eager, Executor, Feeds, Mode, Op, Program, Reduction, Rounding, Rules, Scalar, Settings,
        Tensor, TensorView, TensorViewMut, Var, bf16, f16, feeds,
    };
}

/// The Rust blocks of the README and of the book, which are documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../docs/guide-custom-ops.md")]
    pub struct CustomOps;
    #[doc = include_str!("../docs/guide-feeds.md")]
    pub struct Feeds;
    #[doc = include_str!("../docs/guide-gradients.md")]
    pub struct Gradients;
    #[doc = include_str!("../docs/internals/life-of-a-sum.md")]
    pub struct LifeOfASum;
    #[doc = include_str!("../docs/methods.md")]
    pub struct Methods;
    #[doc = include_str!("../docs/guide-programs.md")]
    pub struct Programs;
    #[doc = include_str!("../docs/promotion-tables.md")]
    pub struct Promotion;
    #[doc = include_str!("../README.md")]
    pub struct Readme;
    #[doc = include_str!("../docs/guide-rules.md")]
    pub struct Rules;
    #[doc = include_str!("../docs/guide-text.md")]
    pub struct Text;
    #[doc = include_str!("../docs/tutorial/rust.md")]
    pub struct Tutorial;
}
