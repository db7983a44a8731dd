//! THE table of ops: one row an op, everything else derives from it.
//!
//! A row of `ops/rows.rs` gives an op its variant, method, names, operands, result kind, the range of its integer
//! results (`ops/ranges.rs`), what it accepts and how it promotes under each rule set, one sentence of documentation, and
//! its arithmetic by category. From the rows derive:
//! the enum [`Op`], [`OpDef`] with [`Op::ALL`], the methods of [`Var`](crate::Var), the text names, the block kernels,
//! and the generators of the tests. A row can also be made at run time: a [`CustomOp`] with the user's functions as its
//! arithmetic, an op like the others from then on ([`Op::Custom`]).
//!
//! Guarantees: names and aliases are unique (tested); an op has arithmetic for every dtype that a rule set accepts
//! (tested in `block`). Does not: decide dtypes (that is `promotion`, from these columns) or compute (that is
//! `block`, from these rows).

use std::fmt;
use std::sync::Arc;

use crate::dtype::{DType, DTypeSet};
use crate::error::{Diagnostic, Fault};

mod custom;
mod ranges;
mod rows;
pub use custom::{Custom, CustomOp, MAX_CUSTOM_OPS, Math, Registry};
pub use ranges::IntRange;
pub(crate) use ranges::{Interval, Known, Shows};
pub(crate) use rows::for_each_op;

/// The most operands that an op has.
pub const MAX_OPERANDS: usize = 4;

/// How operands become the dtype an op computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promotion {
    /// All operands go to their common dtype.
    Common,
    /// As [`Common`](Promotion::Common), and bool and integers go on to the default float dtype: `div`, `exp`, ….
    IntToFloat,
    /// As [`Common`](Promotion::Common), and bool goes on to `i64`: `square`.
    BoolToInt,
    /// As [`Common`](Promotion::Common), and bool and integers go on to `f64`: Paddle's `atan2`.
    IntToDouble,
    /// `f64`, or `c128` with a complex operand: `float_power`.
    ToDouble,
    /// Bool and integers go to `i64`, in which they are summed up.
    ToLong,
    /// Bool and i32 go to `i64`, other integers stay: Paddle's `sum`.
    SomeToLong,
    /// The truth of the operand: `any`, `all`. Under PyTorch's rules u8 stays u8.
    Truth,
    /// The first operand's dtype, to which the others must be castable; its shape too: `assign`.
    First,
    /// `f64` if an operand has it, else `f32`; complex operands promote as ever: Paddle's `ldexp`.
    SingleOrDouble,
    /// The dtype is given by the `dtype` attribute: `cast`.
    Given,
}

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

/// The operands that PyTorch keeps in op math where it computes in f16 or bf16: scalars, and on the right 0-d tensors of another
/// dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideScalar {
    /// None.
    No,
    /// The one on the right: `div`, `floor_divide`. Of three operands the last: the weight of `lerp`.
    Right,
    /// Either one: `mul`, where a scalar on the left is the same call.
    Either,
}

/// What becomes of integer scalars that the integer dtype they go to can't hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarRange {
    /// They wrap: `u8 tensor + 300` adds 44.
    Wraps,
    /// Those behind the first operand, or the parameter if there is one, are refused: `pow`, `where`, the `alpha` of
    /// `add_scaled`. These dtypes are left out.
    Fits(DTypeSet),
    /// They are bounds: the op is refused where nothing can lie within them, else they bound nothing.
    Bounds,
}

/// The columns of PyTorch's rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TorchColumns {
    /// How operands promote.
    pub promotion: Promotion,
    /// The common dtypes (before an int goes to float) that the op takes.
    pub accepts: DTypeSet,
    /// Which scalars stay in the op-math dtype (`f32` for `f16` and `bf16`) instead of being rounded to the operands'
    /// common dtype first.
    pub wide_scalar: WideScalar,
    /// Whether operands of different dtypes may promote.
    pub mixes: bool,
    /// Whether a bool operand may promote to another dtype.
    pub bools: bool,
    /// Whether the result is cast to the first operand's dtype, which must allow it.
    pub to_first: bool,
    /// How many of the last operands are parameters: scalars in op math that take no part in promotion. The same
    /// under Paddle's rules.
    pub parameters: usize,
    /// Whether parameters are rounded to the half types that the op computes in.
    pub rounds_parameters: bool,
    /// Whether a parameter may be of a higher category than the operands, and is then converted to theirs.
    pub converts: bool,
    /// Whether the third operand may divide the second where both are integral.
    pub integer_quotients: bool,
    /// Which integers scalars may be.
    pub scalars: ScalarRange,
}

/// The columns of Paddle's rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PaddleColumns {
    /// How operands promote.
    pub promotion: Promotion,
    /// The common dtypes that the op takes.
    pub accepts: DTypeSet,
    /// Whether tensors of different dtypes may promote; the bitwise ops want equal dtypes.
    pub mixes: bool,
    /// Whether a scalar may stand for an operand.
    pub scalars: bool,
    /// Whether a 0-d tensor counts like a scalar (arithmetic and comparisons) or like any tensor.
    pub zero_dim_is_scalar: bool,
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
    /// PyTorch's rules.
    pub torch: TorchColumns,
    /// Paddle's rules.
    pub paddle: PaddleColumns,
    /// What it computes, with NaN and edge cases.
    pub doc: &'static str,
}

/// Shorthands for the columns of the rows.
pub(crate) mod columns {
    use super::DType::*;
    use super::{DTypeSet, PaddleColumns, Promotion, ScalarRange, TorchColumns, WideScalar};
    use crate::dtype::Category;

    const BOOL: DTypeSet = DTypeSet::category(Category::Bool);
    /// The integers.
    pub(crate) const INTS: DTypeSet = DTypeSet::category(Category::Int);
    /// bool and integers.
    pub(crate) const BITS: DTypeSet = BOOL.union(INTS);
    /// f16 and bf16.
    pub(crate) const HALVES: DTypeSet = DTypeSet::of(&[F16, BF16]);
    /// f32.
    pub(crate) const SINGLE: DTypeSet = DTypeSet::of(&[F32]);
    /// The floats.
    pub(crate) const FLOATS: DTypeSet = DTypeSet::category(Category::Float);
    /// The complex dtypes.
    pub(crate) const COMPLEX: DTypeSet = DTypeSet::category(Category::Complex);
    /// Floats and the complex dtypes but `c32`.
    pub(crate) const FLOATS_C: DTypeSet = FLOATS.union(COMPLEX).without(DTypeSet::of(&[C32]));
    /// Integers and floats.
    pub(crate) const NUMBERS: DTypeSet = INTS.union(FLOATS);
    /// Everything but complex.
    pub(crate) const REALS: DTypeSet = BOOL.union(NUMBERS);
    /// Every dtype.
    pub(crate) const ANY: DTypeSet = DTypeSet::ALL;
    /// Every dtype but `c32`, for which PyTorch has almost no kernels.
    pub(crate) const NO_C32: DTypeSet = ANY.without(DTypeSet::of(&[C32]));
    /// Everything but bool.
    pub(crate) const NO_BOOL: DTypeSet = ANY.without(BOOL);
    /// Everything but bool and `c32`.
    pub(crate) const POW: DTypeSet = NO_C32.without(BOOL);

    /// PyTorch's columns without any exception.
    pub(crate) const fn torch(promotion: Promotion, accepts: DTypeSet) -> TorchColumns {
        TorchColumns {
            promotion,
            accepts,
            wide_scalar: WideScalar::No,
            mixes: true,
            bools: true,
            to_first: false,
            parameters: 0,
            rounds_parameters: false,
            converts: false,
            integer_quotients: true,
            scalars: ScalarRange::Wraps,
        }
    }

    /// PyTorch: operands promote to their common dtype.
    pub(crate) const fn common(accepts: DTypeSet) -> TorchColumns {
        torch(Promotion::Common, accepts)
    }

    /// PyTorch: as `common`, integers then go to float.
    pub(crate) const fn float(accepts: DTypeSet) -> TorchColumns {
        torch(Promotion::IntToFloat, accepts)
    }

    /// PyTorch: as `common`, bool then goes to i64.
    pub(crate) const fn bool_to_int(accepts: DTypeSet) -> TorchColumns {
        torch(Promotion::BoolToInt, accepts)
    }

    /// The first operand's dtype.
    pub(crate) const fn first(accepts: DTypeSet) -> TorchColumns {
        torch(Promotion::First, accepts)
    }

    /// Bool and integers go to i64.
    pub(crate) const fn to_long(accepts: DTypeSet) -> TorchColumns {
        torch(Promotion::ToLong, accepts)
    }

    /// As `to_long`, but for integers that are not i32.
    pub(crate) const fn some_to_long(accepts: DTypeSet) -> TorchColumns {
        torch(Promotion::SomeToLong, accepts)
    }

    /// The operand's truth.
    pub(crate) const fn truth(accepts: DTypeSet) -> TorchColumns {
        torch(Promotion::Truth, accepts)
    }

    /// As `common`, integers then go to f64.
    pub(crate) const fn int_to_double(accepts: DTypeSet) -> TorchColumns {
        torch(Promotion::IntToDouble, accepts)
    }

    /// f32, or f64 beside f64, whatever the operands are.
    pub(crate) const fn single_or_double(accepts: DTypeSet) -> TorchColumns {
        torch(Promotion::SingleOrDouble, accepts)
    }

    /// f64 or c128, whatever the operands are.
    pub(crate) const fn to_double(accepts: DTypeSet) -> TorchColumns {
        torch(Promotion::ToDouble, accepts)
    }

    impl TorchColumns {
        /// A right-hand scalar stays in op math.
        pub(crate) const fn wide(self) -> TorchColumns {
            TorchColumns { wide_scalar: WideScalar::Right, ..self }
        }

        /// A scalar on either side stays in op math.
        pub(crate) const fn wide_both(self) -> TorchColumns {
            TorchColumns { wide_scalar: WideScalar::Either, ..self }
        }

        /// Scalars must fit.
        pub(crate) const fn fits(self) -> TorchColumns {
            self.fits_but(DTypeSet::of(&[]))
        }

        /// Scalars must fit, but may become infinite in these dtypes.
        pub(crate) const fn fits_but(self, unchecked: DTypeSet) -> TorchColumns {
            TorchColumns { scalars: ScalarRange::Fits(unchecked), ..self }
        }

        /// Scalars behind the first operand are bounds.
        pub(crate) const fn bounds(self) -> TorchColumns {
            TorchColumns { scalars: ScalarRange::Bounds, ..self }
        }

        /// A bool operand is refused, whatever the other one is.
        pub(crate) const fn no_bool(self) -> TorchColumns {
            TorchColumns { bools: false, ..self }
        }

        /// The result has the first operand's dtype.
        pub(crate) const fn to_first(self) -> TorchColumns {
            TorchColumns { to_first: true, ..self }
        }

        /// The last operand is a parameter.
        pub(crate) const fn parameter(self) -> TorchColumns {
            TorchColumns { parameters: 1, ..self }
        }

        /// The last operand is a parameter in the compute dtype.
        pub(crate) const fn rounded_parameter(self) -> TorchColumns {
            TorchColumns { parameters: 1, rounds_parameters: true, ..self }
        }

        /// The last operand is a parameter that is converted to the operands' category.
        pub(crate) const fn converted_parameter(self) -> TorchColumns {
            TorchColumns { parameters: 1, converts: true, ..self }
        }

        /// The second operand and the third, which divides it, must not both be integral.
        pub(crate) const fn no_integer_quotient(self) -> TorchColumns {
            TorchColumns { integer_quotients: false, ..self }
        }

        /// Operands must have one dtype.
        pub(crate) const fn same(self) -> TorchColumns {
            TorchColumns { mixes: false, ..self }
        }

        /// Paddle's columns with the same promotion and dtypes: scalars allowed, 0-d tensors like scalars.
        pub(crate) const fn paddle(self) -> PaddleColumns {
            PaddleColumns {
                promotion: self.promotion,
                accepts: self.accepts,
                mixes: true,
                scalars: true,
                zero_dim_is_scalar: true,
            }
        }
    }

    impl PaddleColumns {
        /// A 0-d tensor is a tensor like any other.
        pub(crate) const fn zero_dim_tensor(self) -> PaddleColumns {
            PaddleColumns { zero_dim_is_scalar: false, ..self }
        }

        /// Both operands must be tensors.
        pub(crate) const fn no_scalar(self) -> PaddleColumns {
            PaddleColumns { scalars: false, zero_dim_is_scalar: false, ..self }
        }

        /// Both operands must be tensors, but a 0-d one counts like a scalar.
        pub(crate) const fn no_scalar_like_zero_dim(self) -> PaddleColumns {
            PaddleColumns { scalars: false, ..self }
        }

        /// Tensors must have one dtype.
        pub(crate) const fn same(self) -> PaddleColumns {
            PaddleColumns { mixes: false, ..self }
        }
    }

    /// Both rule sets' columns of `cast`.
    pub(crate) const GIVEN: TorchColumns = torch(Promotion::Given, ANY);
}

macro_rules! define_ops {
    ($(
        #[doc = $doc:literal]
        $variant:ident $method:ident $name:literal $aliases:tt ($($operand:ident),+) $output:ident $exactness:ident $integers:ident
        torch $torch:expr, paddle $paddle:expr, { $($math:tt)* }
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
            use columns::*;
            &[$(OpDef {
                op: Op::$variant,
                name: $name,
                aliases: &$aliases,
                operands: &[$(stringify!($operand)),+],
                output: Output::$output,
                exactness: Exactness::$exactness,
                integers: IntRange::$integers,
                torch: $torch,
                paddle: $paddle,
                doc: $doc,
            }),*]
        };
    };
}
for_each_op!(define_ops);

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
        self.def().torch.promotion == Promotion::Given
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
        (takes != operands).then(|| Diagnostic::new(Fault::BadParameter, message()))
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
