//! The table of ops: one row per op, from which everything else about the op derives.
//!
//! A row of `ops/table.rs` gives an op's variant, method, names, operands, kind of result, range of integer results
//! (`ops/ranges.rs`), accepted dtypes, promotion, departures of single rule sets, one sentence of documentation, and
//! arithmetic by category. From the rows derive the enum [`Op`], [`OpDef`] with [`Op::ALL`], the methods of
//! [`Var`](crate::Var), the text names, the kernels, and the generators of the tests. A row can also be created at run
//! time: a [`CustomOp`] has the user's functions as its arithmetic and is then an op like the others ([`Op::Custom`]).
//!
//! Guarantees: names and aliases are unique (tested); an op has arithmetic for every dtype that a rule set accepts
//! (tested in `kernels`). Does not: decide dtypes (that is `promotion`, from these columns) or compute (that is
//! `kernels`, from these rows).

use std::fmt;
use std::sync::Arc;

use crate::base::dtype::{DType, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind};
use crate::base::shape::SymDim;

mod columns;
mod custom;
pub(crate) mod departures;
pub(crate) mod derivative;
pub(crate) mod functions;
pub(crate) mod lines;
pub(crate) mod order;
mod ranges;
pub(crate) mod reductions;
mod table;
pub(crate) mod toys;
pub(crate) use columns::Quantiles;
use columns::{ANY, JAX, NUMPY, PADDLE, TORCH};
pub use columns::{
    Choice, ChoiceAttribute, JaxColumns, NumberAttribute, NumpyColumns, PaddleColumns, Parameter, Promotion,
    ScalarRange, TorchColumns, Weakness, WideScalar,
};
pub use custom::{CustomOp, MAX_CUSTOM_OPS, Math, Registry};
pub use derivative::{Application, Gradient, IntoItem, MAX_OPERANDS, Rule, Value};
pub use ranges::IntRange;
pub(crate) use ranges::{Interval, Known, Shows};
pub(crate) use table::for_each_op;

/// The result's dtype, given the compute dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The compute dtype.
    Same,
    /// `bool`.
    Bool,
    /// The dtype of the parts of a complex compute dtype, else the compute dtype: `abs`.
    Real,
    /// The compute dtype, with fewer elements: the op reduces dims.
    Fold,
    /// `i64`, or the rule set's dtype of positions, with fewer elements: the op reduces dims to positions or counts.
    FoldLong,
    /// The dtype of the parts of a complex compute dtype, else the compute dtype, with fewer elements.
    FoldReal,
    /// The compute dtype: the op works on the lines along a dim.
    Line,
    /// `i64`, or the rule set's dtype of positions: the op works on the lines along a dim, and gives positions in them.
    LineLong,
}

/// Whether the compute dtype can always represent the op's result exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// No: the result is rounded.
    Rounded,
    /// Yes: the result is an operand's value or a part of it, an integer, or a boolean.
    Exact,
    /// Yes if the compute dtype is real. A complex number divided by its magnitude is rounded: `sgn`.
    ExactReal,
    /// Yes, because the op works on the bits of a number: it moves them, sets a sign, or steps to an adjacent number.
    /// So a half dtype needs no op math.
    Bits,
    /// Like [`Bits`](Exactness::Bits) if the compute dtype is real. The magnitude of a complex number is rounded:
    /// `abs`.
    BitsReal,
}

/// One row of the op table.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpDef {
    /// The op.
    pub op: Op,
    /// The name in the text form.
    pub name: &'static str,
    /// Other names of the op, such as Paddle's and PyTorch's.
    pub aliases: &'static [&'static str],
    /// The operands' names.
    pub operands: &'static [&'static str],
    /// The result's dtype.
    pub output: Output,
    /// Whether that dtype can always represent the result exactly.
    pub exactness: Exactness,
    /// The range of an integer result.
    pub integers: IntRange,
    /// How operands promote, unless a rule set's column overrides it. No column overrides [`First`](Promotion::First)
    /// and [`Given`](Promotion::Given), which determine the kind of op.
    pub promotion: Promotion,
    /// The common dtypes (before an integer is promoted to float) that the op accepts, unless a rule set's column
    /// overrides them.
    pub accepts: DTypeSet,
    /// The requirements on the last operand, if it is a parameter.
    pub parameter: Option<Parameter>,
    /// The number among the attributes, if the op takes one.
    pub number: Option<NumberAttribute>,
    /// The choice among the attributes, if the op takes one.
    pub choice: Option<ChoiceAttribute>,
    /// The dim of an op on lines, if none is given. `None`: a value of several dims needs one.
    pub default_dim: Option<i64>,
    /// How gradients flow to the operands.
    pub(crate) gradients: derivative::Gradients,
    /// What to use for bools instead, if the op is arithmetic that does not accept them.
    pub for_bool: Option<&'static str>,
    /// The overrides of PyTorch's rules.
    pub torch: TorchColumns,
    /// The overrides of Paddle's rules.
    pub paddle: PaddleColumns,
    /// The overrides of NumPy's rules.
    pub numpy: NumpyColumns,
    /// The overrides of JAX's rules.
    pub jax: JaxColumns,
    /// The overrides of the rule set of the tests.
    #[cfg(test)]
    pub(crate) toy: columns::ToyColumns,
    /// What the op computes, with NaN and edge cases.
    pub doc: &'static str,
}

macro_rules! is_composed {
    (composed; $($formula:tt)*) => {
        true
    };
    ($($other:tt)*) => {
        false
    };
}

macro_rules! is_search {
    (searches;) => {
        true
    };
    ($($other:tt)*) => {
        false
    };
}

macro_rules! define_ops {
    ($(
        #[doc = $doc:literal]
        $variant:ident {
            method: $method:ident, operands: ($($operand:ident),+), output: $output:ident, $($column:ident: $value:expr),*
        }
        { $($math:tt)* }
    )*) => {
        /// An op of the table, or one created at run time.
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
            /// A user-defined op: see [`CustomOp`].
            Custom(Custom),
        }

        impl Op {
            /// Every op of the table, in table order. Custom ops are not included.
            pub const ALL: &'static [Op] = &[$(Op::$variant),*];

            /// Whether the op is a formula of other rows, which a plan has in its place.
            pub(crate) fn is_composed(self) -> bool {
                match self {
                    $(Op::$variant => is_composed!($($math)*),)*
                    Op::Custom(_) => false,
                }
            }

            /// Whether the op is a reduction to an element or a position that is found in a buffer, by a kernel of its own.
            pub(crate) fn is_search(self) -> bool {
                match self {
                    $(Op::$variant => is_search!($($math)*),)*
                    Op::Custom(_) => false,
                }
            }

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
            use std::f64::consts::{LN_2, LN_10};
            use {DType::{F16, F64, I8}, Exactness::*, Promotion::*, columns::*, derivative::*};
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
    /// The default row: the values of the fields that a row does not set.
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
        number: None,
        choice: None,
        default_dim: None,
        gradients: derivative::MISSING,
        for_bool: None,
        torch: TORCH,
        paddle: PADDLE,
        numpy: NUMPY,
        jax: JAX,
        #[cfg(test)]
        toy: columns::ToyColumns { fits: true },
        doc: "",
    };

    /// The number of trailing operands that are parameters: scalars in op math that take no part in promotion.
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

    /// The op of the table with this name or alias. A [`Registry`] finds custom ops too.
    pub fn from_name(name: &str) -> Option<Op> {
        TABLE.iter().find(|d| d.name == name || d.aliases.contains(&name)).map(|d| d.op)
    }

    /// Whether the op is a reduction over dims.
    pub fn is_reduction(self) -> bool {
        matches!(self.def().output, Output::Fold | Output::FoldLong | Output::FoldReal)
    }

    /// Whether the op works on the lines along one dim, and its result has the operand's dims.
    pub fn is_line(self) -> bool {
        matches!(self.def().output, Output::Line | Output::LineLong)
    }

    /// The dims of the result of an op on lines with this number: the operand's, but along the dim so many elements as the number
    /// counts.
    pub(crate) fn line_shape(self, dims: &[SymDim], axis: usize, number: Option<Number>) -> Vec<SymDim> {
        let mut dims = dims.to_vec();
        let counted = number.filter(|_| self.def().number.is_some_and(|of| of.counts));
        if let (Some(n), Some(dim)) = (counted, dims.get_mut(axis)) {
            *dim = SymDim::Fixed(n.get() as usize);
        }
        dims
    }

    /// Whether the op is a scan of integers in a wider dtype, to which it converts them itself.
    pub(crate) fn scans_integers(self) -> bool {
        matches!(self, Op::Cumsum | Op::Cumprod)
    }

    /// Whether attributes give the dims that the op works along, and the dtype to which its operand is converted first.
    pub fn has_dims(self) -> bool {
        self.is_reduction() || self.is_line()
    }

    /// Whether the result is a position or count, whose dtype does not follow from the compute dtype.
    pub(crate) fn gives_long(self) -> bool {
        matches!(self.def().output, Output::FoldLong | Output::LineLong)
    }

    /// Whether the op is a reduction to the position of an element.
    pub(crate) fn is_position(self) -> bool {
        self.is_search() && self.def().output == Output::FoldLong
    }

    /// Whether the op is a reduction that has no result for no elements.
    pub(crate) fn needs_elements(self) -> bool {
        self.is_search() || matches!(self, Op::Amax | Op::Amin)
    }

    /// The name of the number among its attributes: for `amax` and `amin` what no elements give, which is only ever the infinity
    /// that changes no result.
    pub(crate) fn number_name(self) -> &'static str {
        self.def().number.map_or("initial", |of| of.name)
    }

    /// The number that an `amax` or `amin` of floats may be given, so that no elements give it instead of an error.
    pub(crate) fn initial(self) -> Option<f64> {
        match self {
            Op::Amax => Some(f64::NEG_INFINITY),
            Op::Amin => Some(f64::INFINITY),
            _ => None,
        }
    }

    /// Whether an attribute gives the result's dtype: `cast(x, f32)`.
    pub(crate) fn takes_dtype(self) -> bool {
        self.def().promotion == Promotion::Given
    }

    /// The result's dtype for a compute dtype.
    pub(crate) fn result(self, compute: DType) -> DType {
        match self.def().output {
            Output::Same | Output::Fold | Output::Line => compute,
            Output::Bool => DType::Bool,
            Output::FoldLong | Output::LineLong => DType::I64,
            Output::Real | Output::FoldReal => compute.real(),
        }
    }

    /// The diagnostic for an application with the wrong number of operands.
    pub(crate) fn wrong_count(self, operands: usize) -> Option<Diagnostic> {
        let takes = self.arity();
        (takes != operands).then(|| {
            let s = if takes == 1 { "" } else { "s" };
            let message = format!("`{self}` takes {takes} operand{s}, not {operands}");
            Diagnostic::new(DiagnosticKind::BadParameter, message)
        })
    }

    /// Whether the op never rounds in this compute dtype.
    pub(crate) fn is_exact(self, compute: DType) -> bool {
        match self.def().exactness {
            Exactness::Rounded => false,
            Exactness::Exact | Exactness::Bits => true,
            Exactness::ExactReal | Exactness::BitsReal => !compute.is_complex(),
        }
    }

    /// Whether the op works on the bits of this compute dtype, and so needs no op math.
    pub(crate) fn is_bitwise(self, compute: DType) -> bool {
        match self.def().exactness {
            Exactness::Rounded | Exactness::Exact | Exactness::ExactReal => false,
            // Floats of a byte have few kernels of their own.
            Exactness::Bits | Exactness::BitsReal if compute.is_byte_float() => {
                matches!(self, Op::Where | Op::Nextafter)
            }
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

/// The attributes of an op's application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Attrs {
    /// The target dtype of `cast`; the dtype to which a reduction converts its operand first.
    pub dtype: Option<DType>,
    /// Whether a cast is to the dtype of an output, and so must not be to a lower category ([`DType::can_cast`]).
    pub output: bool,
    /// The position of the operand of lower rank along the other one's dims (Paddle's `axis`): its first dim is aligned
    /// with this dim. `None` and -1 align the last dims.
    pub axis: Option<i64>,
    /// The dims of a reduction, negative ones counted from the last; `None` reduces all. Of an op on lines, its one dim.
    pub dims: Option<Arc<[i64]>>,
    /// Whether a reduction keeps the reduced dims with extent 1.
    pub keepdim: bool,
    /// The number of an op that takes one: the correction of `var`, the order of `norm`; -inf for `amax` and inf for `amin` of floats
    /// that give it for no elements.
    pub number: Option<Number>,
    /// The choice of an op that takes one: the interpolation of `quantile`.
    pub choice: Option<Choice>,
    /// For a binary op inside a loss: the operands are broadcast before they promote, so that a 0-d tensor next to a
    /// tensor with dims promotes like a tensor with dims (PyTorch), or they must have equal shapes.
    pub loss: Option<LossShapes>,
}

/// A number among the attributes of an op. It equals one of the same bits.
///
/// ```
/// use castwise::ops::Number;
/// assert_eq!(Number::from(0.5).get(), 0.5);
/// assert_ne!(Number::from(0.0), Number::from(-0.0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number(u64);

impl Number {
    /// The number.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl From<f64> for Number {
    fn from(v: f64) -> Number {
        Number(v.to_bits())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.get())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

/// How the shapes of a loss's operands are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossShapes {
    /// The shapes are broadcast.
    Broadcast,
    /// The shapes must be equal.
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

    /// Sets the dtype to which a reduction converts its operand first.
    pub fn with_dtype(self, dtype: DType) -> Attrs {
        Attrs { dtype: Some(dtype), ..self }
    }

    /// Sets the number of an op that takes one: the correction of `var`, the order of `norm`.
    pub fn with_number(self, number: f64) -> Attrs {
        Attrs { number: Some(number.into()), ..self }
    }

    /// Sets the choice of an op that takes one: the interpolation of `quantile`.
    pub fn with_choice(self, choice: Choice) -> Attrs {
        Attrs { choice: Some(choice), ..self }
    }

    /// Sets whether a reduction keeps the reduced dims with extent 1.
    pub fn with_keepdim(self, keepdim: bool) -> Attrs {
        Attrs { keepdim, ..self }
    }
}

/// The handle of a registered custom op. It equals only itself, even if another op has the same name and functions.
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
        }
    }
}
