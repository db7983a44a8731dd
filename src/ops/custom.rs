//! Custom ops: rows of the op table that are created at run time, with the user's functions as their arithmetic.
//!
//! Guarantees: a registered op has a row like any other, from which promotion, inference, fusion and the text form work
//! without special cases; its handle identifies this registration for the lifetime of the process, so it can be part of
//! a cache key. Does not: call the functions (`kernels` does), remove a row (there is room for [`MAX_CUSTOM_OPS`]), or
//! add functions to a registered op.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::derivative::{self, Gradient, Gradients, Rule};
use super::{Custom, MAX_OPERANDS, Op, OpDef, Promotion};
use crate::base::dtype::DType::*;
use crate::base::dtype::{DType, DTypeSet, Element, for_each_dtype};
use crate::base::error::{CustomOpError, Result};
use crate::base::host::once;
use crate::base::view::View;

/// The maximum number of custom ops that a process can register.
pub const MAX_CUSTOM_OPS: usize = 4096;

/// The maximum length of a name, in bytes.
const MAX_NAME: usize = 64;

/// Words that are reserved in programs or expressions.
const RESERVED: [&str; 16] = [
    "constant", "error", "fetch", "feed", "view", "as", "true", "True", "false", "False", "inf", "nan", "not", "and",
    "or", "if",
];

/// A Rust type that a custom op's function can compute in: `bool`, the integers, `f32`, `f64`, `Complex<f32>` and
/// `Complex<f64>`.
pub trait Math: Element {}

macro_rules! math {
    ($(
        #[doc = $doc:literal]
        $variant:ident ($($rust:tt)+) $category:ident $name:literal $aliases:tt $format:expr $(, via $wide:ident)?;
    )*) => { $(math!(@ ($($wide)?) $($rust)+);)* };
    (@ () $rust:ty) => { impl Math for $rust {} };
    (@ ($wide:ident) $rust:ty) => {};
}
for_each_dtype!(math);

/// A user's function over slices: operands of equal length, and the result.
pub(crate) type SliceFn<T> = Box<dyn Fn(&[&[T]], &mut [T]) + Send + Sync>;

/// The functions of an op: for each dtype, a [`SliceFn`] of its Rust type.
type Functions = Vec<(DType, Box<dyn Any + Send + Sync>)>;

/// The description of a user-defined elementwise op with `N` operands, to be [registered](Registry::register): its
/// name, its operands, how they promote, and what the op computes in each dtype.
///
/// A function takes the operands' elements in the compute dtype that the promotion gives, and returns the result in the
/// same dtype. f16 and bf16 compute with the function for f32 and round once, c32 with the one for `Complex<f32>`. An
/// application whose compute dtype has no function is a mistake that `check` reports.
///
/// A function must give the same result for the same elements: how often, in what order and on which threads it is
/// called depends on how the program is run. NaN results become the canonical NaN. If a function panics, the run
/// returns [`Error::Panicked`](crate::Error::Panicked) with the panic message (if the program is built with unwinding
/// panics); a function that does not return can't be cancelled. If a function forks the process, the child may only
/// call `exec` or exit.
///
/// ```
/// use castwise::{CustomOp, Promotion, Registry, prelude::*};
///
/// let mut ops = Registry::new();
/// let softclip = ops.register(
///     CustomOp::new("softclip", ["x", "limit"], Promotion::IntToFloat)
///         .with(|[x, limit]: [f32; 2]| x / (1.0 + (x / limit).abs()))
///         .with(|[x, limit]: [f64; 2]| x / (1.0 + (x / limit).abs())),
/// )?;
///
/// let p = Program::new(Rules::Torch);
/// let x = p.data("x", DType::I32, ["n"]);
/// let y = x.apply(softclip, &[2.0.into()]) + 1.0;                        // one fused kernel
/// println!("{}", p.infer()?.explain());                                  // i32 -> f32 (category), for softclip
///
/// let t = Tensor::from([-2i32, 0, 6]);
/// let out = Executor::new().run(&p, feeds! { "x" => &t }, [&y])?;
/// assert_eq!(out[0].to_vec::<f32>()?, [0.0, 1.0, 2.5]);
/// let eager = Eager::new(Rules::Torch).tensor(&t).apply(softclip, &[2.0.into()]) + 1.0;
/// assert_eq!(eager.result()?.as_bytes(), out[0].as_bytes());
///
/// assert_eq!(Program::parse_with(&p.to_string(), &ops)?.to_string(), p.to_string());
/// # Ok::<(), castwise::Error>(())
/// ```
pub struct CustomOp<const N: usize> {
    name: String,
    operands: [String; N],
    promotion: Promotion,
    doc: String,
    functions: Functions,
    gradients: Gradients,
}

impl<const N: usize> fmt::Debug for CustomOp<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions: Vec<DType> = self.functions.iter().map(|(d, _)| *d).collect();
        write!(f, "CustomOp({}({}), {:?}, {functions:?})", self.name, self.operands.join(", "), self.promotion)
    }
}

impl<const N: usize> CustomOp<N> {
    /// An op with this name and no functions, whose operands promote in this way under every rule set. Names consist of
    /// letters, digits and `_`.
    pub fn new(name: &str, operands: [&str; N], promotion: Promotion) -> CustomOp<N> {
        let operands = operands.map(str::to_string);
        let (doc, gradients) = ("A custom op.".into(), derivative::MISSING);
        CustomOp { name: name.into(), operands, promotion, doc, functions: Vec::new(), gradients }
    }

    /// Adds the function for the dtype of `T`, which takes one element of each operand.
    pub fn with<T: Math>(mut self, f: impl Fn([T; N]) -> T + Send + Sync + 'static) -> CustomOp<N> {
        let slices: SliceFn<T> = Box::new(move |operands, out| {
            // Equal lengths let the compiler drop the loop's bounds checks.
            let operands: [&[T]; N] = std::array::from_fn(|k| operands[k].split_at(out.len()).0);
            for (i, to) in out.iter_mut().enumerate() {
                *to = f(std::array::from_fn(|k| operands[k][i]));
            }
        });
        self.functions.push((T::DTYPE, Box::new(slices)));
        self
    }

    /// Sets the rules of the gradients of its operands, which apply ops of the table to the application's cotangent, operands and result. Half dtypes
    /// compute them in f32. Without, a gradient through the op is refused. Of complex numbers a rule multiplies by the conjugate of the
    /// derivative.
    ///
    /// ```
    /// use castwise::{CustomOp, Promotion, Registry, prelude::*};
    /// let cube = CustomOp::new("cube", ["x"], Promotion::Common)
    ///     .with(|[x]: [f64; 1]| x * x * x)
    ///     .gradients([|d| d.g() * (d.x(0).squared() * 3.0).conj()]);
    /// let cube = Registry::new().register(cube)?;
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F64, ());
    /// let g = p.gradients(&[&x.apply(cube, &[])], &[&x], &[])?;
    /// assert_eq!(Executor::new().run(&p, feeds! { "x" => Tensor::scalar(2.0f64) }, &g)?[0].item::<f64>()?, 12.0);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn gradients(mut self, rules: [Rule; N]) -> CustomOp<N> {
        for (to, rule) in self.gradients.iter_mut().zip(rules) {
            *to = Gradient::Wide(rule);
        }
        self
    }

    /// Sets the documentation, [`OpDef::doc`].
    pub fn doc(self, doc: &str) -> CustomOp<N> {
        CustomOp { doc: doc.into(), ..self }
    }

    /// Checks that the op can be registered.
    fn check(&self) -> Result<(), CustomOpError> {
        let op = || self.name.clone();
        for name in std::iter::once(&self.name).chain(&self.operands) {
            if let Some(why) = wrong_name(name) {
                return Err(CustomOpError::Identifier { name: name.clone(), why });
            }
        }
        if Op::from_name(&self.name).is_some() {
            return Err(CustomOpError::NameOfTable { name: op() });
        }
        if !(1..=MAX_OPERANDS).contains(&N) {
            return Err(CustomOpError::Arity { op: op(), got: N, max: MAX_OPERANDS });
        }
        if self.promotion == Promotion::Given {
            return Err(CustomOpError::Promotion { op: op() });
        }
        let math = DType::ALL.into_iter().filter(|d| !d.is_narrow());
        let computes: Vec<DType> = math.filter(|d| is_computed(self.promotion, *d)).collect();
        let list = || computes.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ");
        for (i, (dtype, _)) in self.functions.iter().enumerate() {
            if self.functions[..i].iter().any(|(d, _)| d == dtype) {
                return Err(CustomOpError::TwoFunctions { op: op(), dtype: *dtype });
            }
            if !computes.contains(dtype) {
                return Err(CustomOpError::UselessFunction { op: op(), dtype: *dtype, computes: list() });
            }
        }
        if self.functions.is_empty() {
            return Err(CustomOpError::NoFunction { op: op(), computes: list() });
        }
        Ok(())
    }

    /// The row. Its strings are leaked, so they live as long as the process.
    fn row(self, custom: Custom) -> Row {
        let accepts: Vec<DType> = DType::ALL.into_iter().filter(|d| self.takes(*d)).collect();
        let operands: Vec<&'static str> = self.operands.into_iter().map(leaked).collect();
        let def = OpDef {
            op: Op::Custom(custom),
            name: leaked(self.name),
            operands: operands.leak(),
            promotion: self.promotion,
            accepts: DTypeSet::of(&accepts),
            doc: leaked(self.doc),
            gradients: self.gradients,
            ..OpDef::ROW
        };
        Row { def, functions: self.functions }
    }

    /// Whether operands of this common dtype compute in a dtype that has a function.
    fn takes(&self, common: DType) -> bool {
        let has = |d: DType| self.functions.iter().any(|(f, _)| *f == d);
        match computed(self.promotion, common) {
            Some(d) => has(d),
            // The program's default dtype is one of these.
            None => has(F32) || has(F64),
        }
    }
}

/// The reason why a string is not a valid name, if it is not.
fn wrong_name(name: &str) -> Option<&'static str> {
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !starts || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Some("a name consists of letters, digits and `_` and does not begin with a digit");
    }
    if name.len() > MAX_NAME {
        return Some("a name has at most 64 bytes");
    }
    (RESERVED.contains(&name) || View::NAMES.contains(&name))
        .then_some("the word is reserved in programs or expressions")
}

/// The op-math dtype in which operands of a common dtype compute; `None` if the program's default dtype decides.
fn computed(promotion: Promotion, common: DType) -> Option<DType> {
    let integral = common.is_integral();
    Some(match promotion {
        Promotion::IntToFloat if integral => return None,
        Promotion::BoolToInt if common == Bool => I64,
        Promotion::IntToDouble if integral => F64,
        Promotion::ToDouble if common.is_complex() => C128,
        Promotion::ToDouble => F64,
        Promotion::ToLong if integral => I64,
        Promotion::SomeToLong if matches!(common, Bool | I32) => I64,
        Promotion::Truth => Bool,
        Promotion::SingleOrDouble if integral => F32,
        _ => common.op_math(),
    })
}

/// Whether an op with this promotion can compute in a dtype.
fn is_computed(promotion: Promotion, math: DType) -> bool {
    DType::ALL.into_iter().any(|common| match computed(promotion, common) {
        Some(d) => d == math,
        None => math.is_float(),
    })
}

fn leaked(text: String) -> &'static str {
    text.leak()
}

/// A row that was created at run time.
struct Row {
    def: OpDef,
    functions: Functions,
}

impl Row {
    /// The row of an op that was never registered. No handle refers to it.
    fn unregistered(custom: Custom) -> Box<Row> {
        let (op, name, doc) = (Op::Custom(custom), "custom", "A custom op.");
        let def = OpDef { op, name, operands: &["x"], accepts: DTypeSet::EMPTY, doc, ..OpDef::ROW };
        Box::new(Row { def, functions: Vec::new() })
    }
}

/// The rows that were created so far, and the number of places that are taken.
static ROWS: [OnceLock<Box<Row>>; MAX_CUSTOM_OPS] = [const { OnceLock::new() }; MAX_CUSTOM_OPS];
static TAKEN: AtomicUsize = AtomicUsize::new(0);

impl Custom {
    /// Creates the row of an op and returns its handle.
    fn make<const N: usize>(op: CustomOp<N>) -> Result<Custom, CustomOpError> {
        let next = |n: usize| (n < MAX_CUSTOM_OPS).then_some(n + 1);
        let place = TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let place = place.map_err(|_| CustomOpError::TooMany { max: MAX_CUSTOM_OPS })?;
        let custom = Custom(place as u16);
        once(&ROWS[place], || Box::new(op.row(custom)));
        Ok(custom)
    }

    /// The row. It was created before the handle, so the fallback is never used.
    fn row(self) -> &'static Row {
        once(&ROWS[self.0 as usize % MAX_CUSTOM_OPS], || Row::unregistered(self)).as_ref()
    }

    /// The row of the op.
    pub fn def(self) -> &'static OpDef {
        &self.row().def
    }

    /// The dtypes for which the op has functions.
    pub fn functions(self) -> DTypeSet {
        DTypeSet::of(&self.row().functions.iter().map(|(d, _)| *d).collect::<Vec<_>>())
    }

    /// The function for a dtype.
    pub(crate) fn function<T: Math>(self) -> Option<&'static SliceFn<T>> {
        self.row().functions.iter().find(|(d, _)| *d == T::DTYPE)?.1.downcast_ref()
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.def().name)
    }
}

impl From<Custom> for Op {
    fn from(custom: Custom) -> Op {
        Op::Custom(custom)
    }
}

/// Custom ops by name, for [`Program::parse_with`](crate::Program::parse_with) and
/// [`Program::expression_in`](crate::Program::expression_in), which know only the table otherwise. A clone has the same
/// ops.
///
/// ```
/// use castwise::{CustomOp, Promotion, Registry, prelude::*};
/// let mut ops = Registry::new();
/// ops.register(CustomOp::new("cube", ["x"], Promotion::Common).with(|[x]: [f64; 1]| x * x * x))?;
/// let text = "castwise 1\nprogram(rules = torch) (%x: f64[3]) {\n  %0 = cube %x\n  fetch %0\n}\n";
/// let p = Program::parse_with(text, &ops)?;
/// assert_eq!(p.to_string(), text);
/// let unknown = Program::parse(text).expect_err("`parse` knows the table alone");
/// assert!(unknown.to_string().contains("unknown op `cube`") && unknown.to_string().contains("register"));
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry {
    by_name: BTreeMap<&'static str, Custom>,
}

impl Registry {
    /// A registry without custom ops.
    pub const fn new() -> Registry {
        Registry { by_name: BTreeMap::new() }
    }

    /// Creates an op from its description and registers it under its name. The op lives as long as the process.
    ///
    /// Errors: [`Error::CustomOp`](crate::Error::CustomOp) for a name that is not an identifier or that the table or
    /// this registry already has; for a number of operands that ops can't have; for an op with no function for any
    /// dtype that the promotion computes in, with a function for a dtype that it never computes in, or with two
    /// functions for one dtype.
    pub fn register<const N: usize>(&mut self, op: CustomOp<N>) -> Result<Op> {
        op.check()?;
        if self.by_name.contains_key(&*op.name) {
            return Err(CustomOpError::Duplicate { name: op.name }.into());
        }
        let custom = Custom::make(op)?;
        self.by_name.insert(custom.def().name, custom);
        Ok(Op::Custom(custom))
    }

    /// The op with this name: a custom op, or one of the table.
    pub fn op(&self, name: &str) -> Option<Op> {
        self.by_name.get(name).map(|c| Op::Custom(*c)).or_else(|| Op::from_name(name))
    }

    /// The custom ops, in order of their names.
    pub fn ops(&self) -> impl Iterator<Item = Op> + '_ {
        self.by_name.values().map(|c| Op::Custom(*c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotions_compute_where_signatures_do() -> Result<()> {
        use crate::ops::Attrs;
        use crate::promotion::operand::OperandType;
        use crate::promotion::{Rules, Settings, signature};
        use num_complex::Complex;
        let promotions = [
            Promotion::Common,
            Promotion::IntToFloat,
            Promotion::BoolToInt,
            Promotion::IntToDouble,
            Promotion::ToDouble,
            Promotion::ToLong,
            Promotion::SomeToLong,
            Promotion::Truth,
            Promotion::First,
            Promotion::SingleOrDouble,
        ];
        for (i, promotion) in promotions.into_iter().enumerate() {
            let mut all = CustomOp::new(&format!("all_{i}"), ["x"], promotion);
            macro_rules! each { ($($t:ty),*) => { $(if is_computed(promotion, <$t>::DTYPE) { all = all.with(|[x]: [$t; 1]| x); })* }; }
            each!(bool, u8, u16, u32, u64, i8, i16, i32, i64, f32, f64, Complex<f32>, Complex<f64>);
            all.check()?;
            let custom = Custom::make(all)?;
            let mut met = Vec::new();
            for d in DType::ALL.into_iter().filter(|d| !d.is_byte_float()) {
                for default_dtype in [F32, F64] {
                    let settings = Settings { default_dtype, ..Settings::new(Rules::Torch) };
                    let found = signature(&settings, Op::Custom(custom), &[OperandType::dim(d)], &Attrs::default())?;
                    if let Some(want) = computed(promotion, d) {
                        assert_eq!(found.compute.op_math(), want, "{promotion:?} of {d}");
                    }
                    met.push(found.compute.op_math());
                }
            }
            assert_eq!(custom.functions(), DTypeSet::of(&met), "{promotion:?}");
        }
        Ok(())
    }
}
