//! THE table of ops: one row an op, everything else derives from it.
//!
//! A row of `ops/rows.rs` gives an op its variant, method, names, operands, result kind, the range of its integer results
//! (`ops/ranges.rs`), what it accepts, how it promotes and where rule sets depart from that, one sentence of documentation, and
//! its arithmetic by category. From the rows derive:
//! the enum [`Op`], [`OpDef`] with [`Op::ALL`], the methods of [`Var`](crate::Var), the text names, the block kernels,
//! and the generators of the tests. A row can also be made at run time: a [`CustomOp`] with the user's functions as its
//! arithmetic, an op like the others from then on ([`Op::Custom`]).
//!
//! Guarantees: names and aliases are unique (tested); an op has arithmetic for every dtype that a rule set accepts
//! (tested in `kernels`). Does not: decide dtypes (that is `promotion`, from these columns) or compute (that is
//! `kernels`, from these rows).

use std::fmt;
use std::sync::Arc;

use crate::base::dtype::{DType, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind};

mod columns;
mod custom;
mod ranges;
mod table;
use columns::{ANY, PADDLE, TORCH};
pub use columns::{PaddleColumns, Parameter, Promotion, ScalarRange, TorchColumns, WideScalar};
pub use custom::{CustomOp, MAX_CUSTOM_OPS, Math, Registry};
pub use ranges::IntRange;
pub(crate) use ranges::{Interval, Known, Shows};
pub(crate) use table::for_each_op;

/// The most operands that an op has.
pub const MAX_OPERANDS: usize = 4;

/// What the result's dtype is, once the compute dtype is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The compute dtype.
    Same,
    /// `bool`.
    Bool,
    /// The real dtype of a complex one, else the compute dtype: `abs`.
    Real,
    /// The compute dtype, of fewer elements: the op combines the elements along dims.
    Fold,
}

/// Whether the compute dtype always holds what the op gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// It does not: the result is rounded.
    Rounded,
    /// It does: the result is an operand's value or a part of it, a whole number, or a truth value.
    Exact,
    /// It does if it is real. A complex number that is divided by its magnitude is rounded: `sgn`.
    ExactReal,
    /// It does, as the op works on a number's own bits: moves them, sets a sign, steps to a neighbour. A half dtype then needs
    /// no op math.
    Bits,
    /// As [`Bits`](Exactness::Bits) if it is real. The magnitude of a complex number is rounded: `abs`.
    BitsReal,
}

/// One row of the op table.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpDef {
    /// The op.
    pub op: Op,
    /// Its name in the text form.
    pub name: &'static str,
    /// Other names it goes by: Paddle's, PyTorch's.
    pub aliases: &'static [&'static str],
    /// The names of its operands.
    pub operands: &'static [&'static str],
    /// The result's dtype.
    pub output: Output,
    /// Whether that dtype always holds the result.
    pub exactness: Exactness,
    /// The range of an integer result.
    pub integers: IntRange,
    /// How operands promote, unless a rule set's column says otherwise. No column departs from
    /// [`First`](Promotion::First) and [`Given`](Promotion::Given), which say what kind of op this is.
    pub promotion: Promotion,
    /// The common dtypes (before an int goes to float) that the op takes, unless a rule set's column says otherwise.
    pub accepts: DTypeSet,
    /// What the last operand must be, if it is a parameter.
    pub parameter: Option<Parameter>,
    /// What to do instead with bools, if the op is arithmetic that has none for them.
    pub for_bool: Option<&'static str>,
    /// Where PyTorch's rules depart from the row.
    pub torch: TorchColumns,
    /// Where Paddle's rules depart from the row.
    pub paddle: PaddleColumns,
    /// Where the rule set of the tests departs from the row.
    #[cfg(test)]
    pub(crate) toy: columns::ToyColumns,
    /// What it computes, with NaN and edge cases.
    pub doc: &'static str,
}

macro_rules! define_ops {
    ($(
        #[doc = $doc:literal]
        $variant:ident {
            method: $method:ident, operands: ($($operand:ident),+), output: $output:ident, $($column:ident: $value:expr),*
        }
        { $($math:tt)* }
    )*) => {
        /// An op of the table, or a row made at run time.
        ///
        /// ```
        /// use castwise::prelude::*;
        /// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([-1.5f32, 2.5]));
        /// let op = Op::from_name("absolute").unwrap_or(Op::Abs);
        /// let y = castwise::apply(op, &[(&x).into()], Default::default());
        /// assert_eq!(y.result()?.to_vec::<f32>()?, [1.5, 2.5]);
        /// println!("{op}: {}", op.def().doc);
        /// # Ok::<(), castwise::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Op {
            $(#[doc = $doc] $variant,)*
            /// An op of the user's own: see [`CustomOp`].
            Custom(Custom),
        }

        impl Op {
            /// Every op of the table, in its order. Custom ops are not among them.
            pub const ALL: &'static [Op] = &[$(Op::$variant),*];

            /// The row of the op.
            pub fn def(self) -> &'static OpDef {
                /// Positions in the table.
                enum At { $($variant),* }
                match self {
                    $(Op::$variant => &TABLE[At::$variant as usize],)*
                    Op::Custom(custom) => custom.def(),
                }
            }
        }

        static TABLE: &[OpDef] = {
            use {Exactness::*, Promotion::*, columns::*};
            &[$(OpDef {
                op: Op::$variant,
                operands: &[$(stringify!($operand)),+],
                output: Output::$output,
                doc: $doc,
                $($column: $value,)*
                ..OpDef::ROW
            }),*]
        };
    };
}
for_each_op!(define_ops);

impl OpDef {
    /// A row that says nothing: what a row has where it names no other value.
    const ROW: OpDef = OpDef {
        op: Op::Add,
        name: "",
        aliases: &[],
        operands: &[],
        output: Output::Same,
        exactness: Exactness::Rounded,
        integers: IntRange::Whole,
        promotion: Promotion::Common,
        accepts: ANY,
        parameter: None,
        for_bool: None,
        torch: TORCH,
        paddle: PADDLE,
        #[cfg(test)]
        toy: columns::ToyColumns { fits: true },
        doc: "",
    };

    /// How many of the last operands are parameters: scalars in op math that take no part in promotion.
    pub const fn parameters(&self) -> usize {
        self.parameter.is_some() as usize
    }
}

impl Op {
    /// The name in the text form.
    pub fn name(self) -> &'static str {
        self.def().name
    }

    /// The number of operands.
    pub fn arity(self) -> usize {
        self.def().operands.len()
    }

    /// The op of the table that has this name or alias. A [`Registry`] has custom ops too.
    pub fn from_name(name: &str) -> Option<Op> {
        TABLE.iter().find(|d| d.name == name || d.aliases.contains(&name)).map(|d| d.op)
    }

    /// Whether the op combines elements along dims.
    pub fn is_reduction(self) -> bool {
        self.def().output == Output::Fold
    }

    /// Whether an attribute gives the result's dtype: `cast(x, f32)`.
    pub(crate) fn takes_dtype(self) -> bool {
        self.def().promotion == Promotion::Given
    }

    /// The result's dtype for a compute dtype.
    pub(crate) fn result(self, compute: DType) -> DType {
        match self.def().output {
            Output::Same | Output::Fold => compute,
            Output::Bool => DType::Bool,
            Output::Real => compute.real(),
        }
    }

    /// What is wrong with an application to so many operands, if its op takes another number.
    pub(crate) fn wrong_count(self, operands: usize) -> Option<Diagnostic> {
        let (takes, s) = (self.arity(), if self.arity() == 1 { "" } else { "s" });
        let message = || format!("`{self}` takes {takes} operand{s}, not {operands}");
        (takes != operands).then(|| Diagnostic::new(DiagnosticKind::BadParameter, message()))
    }

    /// Whether the op rounds nothing in this compute dtype.
    pub(crate) fn is_exact(self, compute: DType) -> bool {
        match self.def().exactness {
            Exactness::Rounded => false,
            Exactness::Exact | Exactness::Bits => true,
            Exactness::ExactReal | Exactness::BitsReal => !compute.is_complex(),
        }
    }

    /// Whether the op works on the bits of this compute dtype, which then needs no op math.
    pub(crate) fn is_bitwise(self, compute: DType) -> bool {
        match self.def().exactness {
            Exactness::Rounded | Exactness::Exact | Exactness::ExactReal => false,
            Exactness::Bits => true,
            Exactness::BitsReal => !compute.is_complex(),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What an op is told besides its operands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Attrs {
    /// The target of `cast`; the dtype that a reduction converts its operand to first.
    pub dtype: Option<DType>,
    /// Whether a cast must be one that an output allows: never to a lower category ([`DType::can_cast`]).
    pub output: bool,
    /// Where the operand of lower rank is placed along the other one's dims (Paddle's `axis`): its first dim lies at
    /// this one. `None` and -1 align the last dims.
    pub axis: Option<i64>,
    /// The dims that a reduction combines, negative ones counted from the last; `None` combines all.
    pub dims: Option<Arc<[i64]>>,
    /// Whether a reduction leaves its dims as dims of extent 1.
    pub keepdim: bool,
    /// For a binary op inside a loss: operands are broadcast before they promote, so that a 0-d tensor beside one with
    /// dims counts as one with dims (PyTorch), or must have equal shapes.
    pub loss: Option<LossShapes>,
}

/// How the operands of a loss meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossShapes {
    /// They broadcast.
    Broadcast,
    /// They must be equal.
    Equal,
}

impl Attrs {
    /// The attributes of a cast.
    pub fn cast(dtype: DType) -> Attrs {
        Attrs { dtype: Some(dtype), ..Attrs::default() }
    }

    /// The attributes of a cast to the dtype of an output.
    pub fn output(dtype: DType) -> Attrs {
        Attrs { dtype: Some(dtype), output: true, ..Attrs::default() }
    }

    /// The attributes of a binary op with Paddle's `axis`.
    pub fn axis(axis: i64) -> Attrs {
        Attrs { axis: Some(axis), ..Attrs::default() }
    }

    /// The attributes of a reduction over these dims.
    pub fn dims(dims: impl Into<Arc<[i64]>>) -> Attrs {
        Attrs { dims: Some(dims.into()), ..Attrs::default() }
    }

    /// The same with the dtype that a reduction converts its operand to first.
    pub fn with_dtype(self, dtype: DType) -> Attrs {
        Attrs { dtype: Some(dtype), ..self }
    }

    /// The same, and a reduction leaves its dims as dims of extent 1, or not.
    pub fn with_keepdim(self, keepdim: bool) -> Attrs {
        Attrs { keepdim, ..self }
    }
}

/// The handle of a registered custom op: equal to itself alone, also if another op has the same name and functions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Custom(u16);

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_table_is_sound() {
        let mut names = HashSet::new();
        for (i, op) in Op::ALL.iter().enumerate() {
            let def = op.def();
            assert_eq!((def.op, def.name), (*op, TABLE[i].name));
            for name in std::iter::once(&def.name).chain(def.aliases) {
                assert!(names.insert(*name), "{name} is twice in the table");
                assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
                assert_eq!(Op::from_name(name), Some(*op));
            }
            assert!((1..=MAX_OPERANDS).contains(&def.operands.len()) && def.doc.ends_with('.'), "{op}");
            let structural = |p: Promotion| matches!(p, Promotion::First | Promotion::Given);
            for departs in [def.torch.promotion, def.paddle.promotion].into_iter().flatten() {
                assert!(!structural(departs) && !structural(def.promotion), "{op} is another op under other rules");
            }
        }
    }
}
