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
        erfc "erfc", tanh "tanh", abs "abs", sgn "sgn", isnan "isnan", logical_not "logical_not", real "real", imag "imag");
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

/// Rules of several rows, or longer than a line.
pub(crate) mod rules {
    use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

    use super::{Application, Value};
    use crate::base::scalar::Scalar;

    /// 1 over the root of 2 pi.
    const DENSITY: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5;

    fn is_zero(s: Scalar) -> bool {
        matches!(s, Scalar::Int(0) | Scalar::Bool(false)) || matches!(s, Scalar::Float(v) if v == 0.0)
    }

    /// e · x^(e - 1), and 0 where e is 0, whatever x is.
    pub(crate) fn power_base(d: Application<'_>) -> Value<'_> {
        let (g, x, e) = (d.g(), d.x(0), d.x(1));
        match e.scalar() {
            Some(s) if is_zero(s) => d.nothing(),
            Some(_) => g * (e * x.pow(e - 1.0)).conj(),
            None => e.eq(0.0).then(0.0, g * (e * x.pow(e - 1.0)).conj()),
        }
    }

    /// y · log x, and 0 where x is 0 and e is not negative.
    pub(crate) fn power_exponent(d: Application<'_>) -> Value<'_> {
        let (x, e) = (d.x(0), d.x(1));
        let counts = if d.is_complex() { e.imag().eq(0.0).and(e.real().ge(0.0)) } else { e.ge(0.0) };
        d.g() * x.eq(0.0).and(counts).then(0.0, (d.y() * x.log()).conj())
    }

    /// Half to each of equal operands; a NaN passes to both.
    pub(crate) fn larger(d: Application<'_>, of: usize) -> Value<'_> {
        let (a, b, g) = (d.x(of), d.x(1 - of), d.g());
        a.eq(b).then(g / 2.0, a.lt(b).then(0.0, g))
    }

    pub(crate) fn smaller(d: Application<'_>, of: usize) -> Value<'_> {
        let (a, b, g) = (d.x(of), d.x(1 - of), d.g());
        a.eq(b).then(g / 2.0, a.gt(b).then(0.0, g))
    }

    /// The first operand's, or the second's, of `fmax`, if `most`, or `fmin`.
    pub(crate) fn ignoring_nans(d: Application<'_>, most: bool, of: usize) -> Value<'_> {
        let (a, b, g) = (d.x(0), d.x(1), d.g());
        let taken = if most { a.ge(b) } else { a.le(b) }.or(b.isnan());
        let rest = if of == 0 { taken.then(g, 0.0) } else { taken.then(0.0, g) };
        a.eq(b).then(g / 2.0, rest)
    }

    /// Of scalar bounds 0 at a bound; of tensors half, as where two operands are equal.
    pub(crate) fn clamped(d: Application<'_>) -> Value<'_> {
        let (x, min, max, g) = (d.x(0), d.x(1), d.x(2), d.g());
        if min.scalar().is_some() && max.scalar().is_some() {
            return x.gt(min).and(x.lt(max)).then(g, 0.0);
        }
        let at_bound = min.lt(max).and(x.eq(min).or(x.eq(max)));
        x.lt(min).or(x.gt(max)).then(0.0, at_bound.then(g / 2.0, g))
    }

    pub(crate) fn clamp_lower(d: Application<'_>) -> Value<'_> {
        let (x, min, max, g) = (d.x(0), d.x(1), d.x(2), d.g());
        x.lt(min).and(min.le(max)).then(g, x.eq(min).and(min.lt(max)).then(g / 2.0, 0.0))
    }

    pub(crate) fn clamp_upper(d: Application<'_>) -> Value<'_> {
        let (x, min, max, g) = (d.x(0), d.x(1), d.x(2), d.g());
        let above = min.gt(max).or(x.gt(max).and(min.le(max)));
        above.then(g, x.eq(max).and(min.lt(max)).then(g / 2.0, 0.0))
    }

    pub(crate) fn clamped_below(d: Application<'_>) -> Value<'_> {
        match d.x(1).scalar() {
            Some(_) => d.x(0).gt(d.x(1)).then(d.g(), 0.0),
            None => larger(d, 0),
        }
    }

    pub(crate) fn clamped_above(d: Application<'_>) -> Value<'_> {
        match d.x(1).scalar() {
            Some(_) => d.x(0).lt(d.x(1)).then(d.g(), 0.0),
            None => smaller(d, 0),
        }
    }

    /// Of a unit number: what of the cotangent is across it.
    pub(crate) fn unit(d: Application<'_>) -> Value<'_> {
        if !d.is_complex() {
            return d.nothing();
        }
        let (z, y, g) = (d.x(0), d.y(), d.g());
        z.eq(0.0).then(0.0, (g - y * y * g.conj()) / (z.abs() * 2.0).convert())
    }

    pub(crate) fn angle(d: Application<'_>) -> Value<'_> {
        if !d.is_complex() {
            return d.nothing();
        }
        let (z, g) = (d.x(0), d.g());
        let r = z.abs().squared();
        z.eq(0.0).then(0.0, d.pair(-(z.imag() * g / r), z.real() * g / r))
    }

    pub(crate) fn acosh(d: Application<'_>) -> Value<'_> {
        let x = d.x(0);
        let root = if d.is_complex() { (x + 1.0).rsqrt() * (x - 1.0).rsqrt() } else { (x.squared() - 1.0).rsqrt() };
        d.g() * root.conj()
    }

    pub(crate) fn silu(d: Application<'_>) -> Value<'_> {
        let (x, s) = (d.x(0), d.x(0).sigmoid());
        // 1 - s has no digits left where s is near 1.
        d.g() * (s * (x * (-x).sigmoid() + 1.0)).conj()
    }

    /// The derivative of erf.
    pub(crate) fn bell(d: Application<'_>) -> Value<'_> {
        (-d.x(0).squared()).exp() * FRAC_2_SQRT_PI * d.g()
    }

    pub(crate) fn gelu(d: Application<'_>) -> Value<'_> {
        let x = d.x(0);
        let below = (x * -FRAC_1_SQRT_2).erfc() * 0.5;
        d.g() * (below + x * ((x.squared() * -0.5).exp() * DENSITY))
    }

    pub(crate) fn gelu_tanh(d: Application<'_>) -> Value<'_> {
        const BETA: f64 = SQRT_2 * FRAC_2_SQRT_PI * 0.5;
        const KAPPA: f64 = 0.044715;
        let x = d.x(0);
        let square = x.squared();
        let t = ((x + square * x * KAPPA) * BETA).tanh();
        let slope = (square * (3.0 * KAPPA) + 1.0) * BETA;
        d.g() * ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t.squared()) * slope).conj()
    }

    /// Of the operand `of` of `atan2`: 0 at the origin.
    pub(crate) fn direction(d: Application<'_>, of: usize) -> Value<'_> {
        let (a, b, g) = (d.x(0), d.x(1), d.g());
        let r = a.squared() + b.squared();
        r.eq(0.0).then(0.0, if of == 0 { g * (b / r).conj() } else { -(g * (a / r).conj()) })
    }

    pub(crate) fn huber(d: Application<'_>) -> Value<'_> {
        let (r, delta, g) = (d.x(0) - d.x(1), d.x(2), d.g());
        r.le(-delta).then(-(delta * g), r.ge(delta).then(delta * g, r * g))
    }

    pub(crate) fn smooth_l1(d: Application<'_>) -> Value<'_> {
        let (r, beta, g) = (d.x(0) - d.x(1), d.x(2), d.g());
        r.le(-beta).then(-g, r.ge(beta).then(g, r * g / beta))
    }

    /// Evenly to the elements that are the extreme.
    pub(crate) fn extreme(d: Application<'_>) -> Value<'_> {
        let found = d.x(0).eq(d.y().keep()).convert();
        d.g().keep() / found.fold("sum") * found
    }

    /// y / x; where one element is 0, it alone: the product of the others.
    pub(crate) fn product(d: Application<'_>) -> Value<'_> {
        let x = d.x(0);
        let zero = x.eq(0.0);
        let zeros = zero.convert().fold("sum");
        let others = zero.then(1.0, x).fold("prod");
        d.g().keep() * zero.then(zeros.eq(1.0).then(others, 0.0), d.y().keep() / x).conj()
    }

    /// 2 (x - mean) / (n - correction).
    pub(crate) fn variance(d: Application<'_>) -> Value<'_> {
        let x = d.x(0);
        let rest = x - x.fold("mean");
        (d.g() * 2.0 / (d.count() - d.parameter())).keep().convert() * rest
    }

    /// As of the variance, over 2 y; 0 where y is 0.
    pub(crate) fn deviation(d: Application<'_>) -> Value<'_> {
        let (x, y) = (d.x(0), d.y());
        let rest = x - x.fold("mean");
        let scale = y.eq(0.0).then(0.0, d.g() / (y * (d.count() - d.parameter())));
        scale.keep().convert() * rest
    }

    pub(crate) fn norm(d: Application<'_>) -> Value<'_> {
        let (x, y, g, p) = (d.x(0), d.y(), d.g(), d.parameter());
        if p == 0.0 {
            return d.nothing();
        }
        if p.is_infinite() {
            let found = x.abs().eq(y.keep());
            // Nothing is found where the norm is NaN.
            let share = found.then(g.keep() / found.convert().real().fold("sum"), 0.0);
            return x.sgn() * share.convert();
        }
        if p == 1.0 {
            return x.sgn() * g.keep().convert();
        }
        if p == 2.0 {
            let scale = y.eq(0.0).then(0.0, g / y);
            return x * scale.keep().convert();
        }
        let modulus = x.abs();
        let scale = y.eq(0.0).then(0.0, g / y.pow(p - 1.0)).keep();
        let power = modulus.eq(0.0).then(0.0, modulus.pow(p - 1.0));
        x.sgn() * (power * scale).convert()
    }

    pub(crate) fn mean_of_numbers(d: Application<'_>) -> Value<'_> {
        let nan = d.x(0).isnan();
        let count = nan.logical_not().convert().fold("sum");
        nan.then(0.0, d.g().keep() / count)
    }
}
