//! What a row says of its gradients: for each operand a rule, in the ops of the table.
//!
//! A rule gives the gradient of an operand before it is summed to the operand's shape: the cotangent of the result times the derivative, of complex
//! numbers times its conjugate. It does not compute: it applies ops to values, which whoever runs it writes into a program.
//!
//! Guarantees: what a rule combines has one dtype, so that no rule set promotes it; a rule marked [`wide`] computes in op math and is
//! rounded once. Does not: broadcast back, accumulate, or know programs; `gradients` does.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::base::scalar::Scalar;
use crate::ops::columns::Choice;

pub(crate) mod ordered;
pub(crate) mod rules;

/// The maximum number of operands of an op.
pub const MAX_OPERANDS: usize = 4;

/// An op of the table, by its name.
type Name = &'static str;

/// The gradient of one operand, from an application and the cotangent of its result.
pub type Rule = for<'a> fn(Application<'a>) -> Value<'a>;

/// How a gradient flows to an operand.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Gradient {
    /// The row says nothing: a gradient that is needed is refused.
    Missing,
    /// It is refused, for this reason.
    Refused(&'static str),
    /// It is zero wherever it exists, and adds nothing.
    Zero,
    /// A rule that rounds at most once, which computes in the compute dtype.
    Once(Rule),
    /// A rule that half dtypes compute in f32: the cotangent and what it needs are converted, and its value is converted back.
    Wide(Rule),
}

impl fmt::Debug for Gradient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gradient::Missing => "Missing",
            Gradient::Refused(_) => "Refused",
            Gradient::Zero => "Zero",
            Gradient::Once(_) => "Once",
            Gradient::Wide(_) => "Wide",
        })
    }
}

/// The gradients of a row's operands.
pub(crate) type Gradients = [Gradient; MAX_OPERANDS];

/// Those of a row that says nothing.
pub(crate) const MISSING: Gradients = [Gradient::Missing; MAX_OPERANDS];

/// Those of an op that is constant but for steps.
pub(crate) const STEPS: Gradients = [Gradient::Zero; MAX_OPERANDS];

pub(crate) const ZERO: Gradient = Gradient::Zero;

/// A rule that rounds at most once.
pub(crate) const fn once(rule: Rule) -> Gradient {
    Gradient::Once(rule)
}

/// A rule that half dtypes compute in f32.
pub(crate) const fn wide(rule: Rule) -> Gradient {
    Gradient::Wide(rule)
}

/// The gradients of these operands. Parameters behind them are scalars, which have none.
pub(crate) const fn by<const N: usize>(rules: [Gradient; N]) -> Gradients {
    let (mut all, mut i) = (STEPS, 0);
    while i < N {
        all[i] = rules[i];
        i += 1;
    }
    all
}

/// A value as who runs a rule knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    /// A value of the program, by a number of the builder.
    Node(usize),
    /// Minus such a value. Where it is added to another, it is subtracted instead.
    Minus(usize),
    /// A number without a dtype.
    Number(Scalar),
    /// No gradient: it adds nothing.
    Nothing,
}

/// What a rule can ask for.
pub(crate) trait Build {
    /// The cotangent of the result.
    fn cotangent(&self) -> Item;
    /// An operand.
    fn operand(&self, at: usize) -> Item;
    /// The result.
    fn result(&self) -> Item;
    /// The number among the attributes.
    fn number(&self) -> f64;
    /// Whether the application computes in a complex dtype.
    fn is_complex(&self) -> bool;
    /// An op of values.
    fn apply(&self, op: Name, operands: &[Item]) -> Item;
    /// A value in the compute dtype.
    fn convert(&self, v: Item) -> Item;
    /// The complex number of two real values, in the compute dtype.
    fn complex(&self, re: Item, im: Item) -> Item;
    /// A reduction over the application's dims, which stay with extent 1.
    fn fold(&self, op: Name, v: Item) -> Item;
    /// What has the shape of the application's result, with the dims that it reduced.
    fn keep(&self, v: Item) -> Item;
    /// What has such dims, in the operand's shape.
    fn expand(&self, v: Item) -> Item;
    /// The number of elements that the application combines into one.
    fn count(&self) -> Item;
    /// An op on the application's lines; from their ends if `reversed`.
    fn line(&self, op: Name, v: Item, reversed: bool) -> Item;
    /// The choice among the attributes.
    fn choice(&self) -> Option<Choice>;
    /// Whether a reduction was written without dims.
    fn is_whole(&self) -> bool;
    /// An op of positions of the operand, with the application's attributes; its dims stay.
    fn positions(&self, op: Name) -> Item;
    /// The position of each element among those that one result is made of, in row-major order.
    fn index(&self) -> Item;
    /// The rank of each element among those, from 0: f64.
    fn ranks(&self) -> Item;
    /// The rank, in f64, of `q` among elements of which the last one has the rank `last`.
    fn rank_of(&self, q: f64, last: Item) -> Item;
    /// Zeros like the operand, to which a value of the application's lines is added at an index.
    fn scatter(&self, v: Item, index: Item) -> Item;
    /// A value in f64.
    fn double(&self, v: Item) -> Item;
}

/// An application whose gradient is asked for.
#[derive(Clone, Copy)]
pub struct Application<'a> {
    build: &'a dyn Build,
}

impl fmt::Debug for Application<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Application")
    }
}

/// A value of a rule: operators and methods apply ops to it.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    build: &'a dyn Build,
    pub(crate) item: Item,
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({:?})", self.item)
    }
}

impl<'a> Application<'a> {
    pub(crate) fn new(build: &'a dyn Build) -> Application<'a> {
        Application { build }
    }

    fn value(self, item: Item) -> Value<'a> {
        Value { build: self.build, item }
    }

    /// The cotangent of the result.
    pub fn g(self) -> Value<'a> {
        self.value(self.build.cotangent())
    }

    /// The operand at a position.
    pub fn x(self, at: usize) -> Value<'a> {
        self.value(self.build.operand(at))
    }

    /// The result.
    pub fn y(self) -> Value<'a> {
        self.value(self.build.result())
    }

    /// A number.
    pub fn number(self, v: impl Into<Scalar>) -> Value<'a> {
        self.value(Item::Number(v.into()))
    }

    /// No gradient.
    pub fn nothing(self) -> Value<'a> {
        self.value(Item::Nothing)
    }

    /// The number among the attributes: the correction of `var`, the order of `norm`.
    pub(crate) fn parameter(self) -> f64 {
        self.build.number()
    }

    /// Whether it computes in a complex dtype.
    pub fn is_complex(self) -> bool {
        self.build.is_complex()
    }

    /// The choice among the attributes.
    pub(crate) fn choice(self) -> Option<Choice> {
        self.build.choice()
    }

    /// Whether a reduction was written without dims.
    pub(crate) fn is_whole(self) -> bool {
        self.build.is_whole()
    }

    /// An op of positions of the operand, with the application's attributes; its dims stay.
    pub(crate) fn positions(self, op: Name) -> Value<'a> {
        self.value(self.build.positions(op))
    }

    /// The position of each element among those that one result is made of, in row-major order.
    pub(crate) fn index(self) -> Value<'a> {
        self.value(self.build.index())
    }

    /// The rank of each element among those, from 0, in f64.
    pub(crate) fn ranks(self) -> Value<'a> {
        self.value(self.build.ranks())
    }

    /// The number of elements that a reduction combines into one.
    pub(crate) fn count(self) -> Value<'a> {
        self.value(self.build.count())
    }

    /// The complex number of two real values.
    pub(crate) fn pair(self, re: Value<'a>, im: Value<'a>) -> Value<'a> {
        self.value(self.build.complex(re.item, im.item))
    }
}

macro_rules! functions {
    ($($name:ident $op:literal),*) => {$(
        #[doc = concat!("The op `", stringify!($name), "`.")]
        pub fn $name(self) -> Value<'a> { self.apply($op, &[]) }
    )*};
}

macro_rules! functions_of_two {
    ($($name:ident $op:literal),*) => {$(
        #[doc = concat!("The op `", stringify!($name), "`.")]
        pub fn $name(self, other: impl IntoItem<'a>) -> Value<'a> { self.apply($op, &[other.item()]) }
    )*};
}

impl<'a> Value<'a> {
    fn with(self, item: Item) -> Value<'a> {
        Value { build: self.build, item }
    }

    fn apply(self, op: Name, rest: &[Item]) -> Value<'a> {
        let mut all = [self.item; MAX_OPERANDS];
        all[1..=rest.len()].copy_from_slice(rest);
        self.with(self.build.apply(op, &all[..=rest.len()]))
    }

    functions!(exp "exp", exp2 "exp2", log "log", sqrt "sqrt", rsqrt "rsqrt", sin "sin", cos "cos", sinh "sinh", cosh "cosh", sigmoid "sigmoid",
        erfc "erfc", floor "floor", ceil "ceil", round "round", tanh "tanh", abs "abs", sgn "sgn", isnan "isnan", logical_not "logical_not", real "real", imag "imag");
    functions_of_two!(eq "eq", ne "ne", lt "lt", le "le", gt "gt", ge "ge", and "logical_and", or "logical_or", pow "pow", xlogy "xlogy",
        floor_divide "floor_divide", div_trunc "div_trunc");

    /// The conjugate; of real numbers the value itself.
    pub fn conj(self) -> Value<'a> {
        if self.build.is_complex() { self.apply("conj", &[]) } else { self }
    }

    /// Where this condition holds, one value, else another.
    pub fn then(self, yes: impl IntoItem<'a>, no: impl IntoItem<'a>) -> Value<'a> {
        self.apply("where", &[yes.item(), no.item()])
    }

    /// The square.
    pub fn squared(self) -> Value<'a> {
        self * self
    }

    /// The value in the compute dtype, which may be the complex one of a real value's.
    pub fn convert(self) -> Value<'a> {
        self.with(self.build.convert(self.item))
    }

    /// The scalar that the operand was written as, if it was.
    pub fn scalar(self) -> Option<Scalar> {
        match self.item {
            Item::Number(s) => Some(s),
            _ => None,
        }
    }

    /// A reduction over the dims of the application, which stay.
    pub(crate) fn fold(self, op: Name) -> Value<'a> {
        self.with(self.build.fold(op, self.item))
    }

    /// A value in the shape of the reduced result, with the dims that were reduced.
    pub(crate) fn keep(self) -> Value<'a> {
        self.with(self.build.keep(self.item))
    }

    /// A value with such dims in the operand's shape.
    pub(crate) fn expand(self) -> Value<'a> {
        self.with(self.build.expand(self.item))
    }

    /// A value of the application's lines added to zeros like the operand, at an index.
    pub(crate) fn scatter(self, index: Value<'a>) -> Value<'a> {
        self.with(self.build.scatter(self.item, index.item))
    }

    /// The rank of `q` if this is the last one.
    pub(crate) fn rank_of(self, q: f64) -> Value<'a> {
        self.with(self.build.rank_of(q, self.item))
    }

    /// The value in f64; a number stays one.
    pub(crate) fn double(self) -> Value<'a> {
        match self.item {
            Item::Number(_) => self,
            item => self.with(self.build.double(item)),
        }
    }

    /// An op on the application's lines.
    pub(crate) fn along(self, op: Name) -> Value<'a> {
        self.with(self.build.line(op, self.item, false))
    }

    /// An op on the application's lines, from their ends.
    pub(crate) fn reversed(self, op: Name) -> Value<'a> {
        self.with(self.build.line(op, self.item, true))
    }
}

/// A value or a number.
pub trait IntoItem<'a> {
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "only this crate looks into items")]
    fn item(self) -> Item;
}

impl<'a> IntoItem<'a> for Value<'a> {
    #[allow(private_interfaces, reason = "only this crate looks into items")]
    fn item(self) -> Item {
        self.item
    }
}

impl IntoItem<'_> for f64 {
    #[allow(private_interfaces, reason = "only this crate looks into items")]
    fn item(self) -> Item {
        Item::Number(Scalar::Float(self))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:literal),*) => {$(
        impl<'a, T: IntoItem<'a>> $trait<T> for Value<'a> {
            type Output = Value<'a>;
            fn $method(self, other: T) -> Value<'a> { self.apply($op, &[other.item()]) }
        }
        impl<'a> $trait<Value<'a>> for f64 {
            type Output = Value<'a>;
            fn $method(self, other: Value<'a>) -> Value<'a> {
                other.with(Item::Number(Scalar::Float(self))).apply($op, &[other.item])
            }
        }
    )*};
}
operators!(Add add "add", Sub sub "sub", Mul mul "mul", Div div "div");

impl<'a> Neg for Value<'a> {
    type Output = Value<'a>;
    fn neg(self) -> Value<'a> {
        self.apply("neg", &[])
    }
}
