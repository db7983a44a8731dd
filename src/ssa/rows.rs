//! The texts of the op table: each row is recorded once for each compute dtype, when it is asked for first.
//!
//! Guarantees: a text computes what the row's kernel computes, of which the tests compare the bits. Does not: hold an
//! op's arithmetic; the row does.

use std::sync::OnceLock;

use super::prim::Prim;
use super::record::{Complex, Float, Rec, Tape, Truth, Whole};
use super::text::{Inst, Text};
use crate::base::dtype::{Category, DType};
use crate::base::host::once;
use crate::kernels::num::{Cplx, Int, Mask, Real};
use crate::ops::{Op, for_each_op};

/// The texts of an op by dtype, as far as they are recorded, and the forms of them that back ends have asked for.
struct Texts([[OnceLock<Option<Box<Text>>>; DType::ALL.len()]; 1 + FORMS]);

/// How many forms of texts are kept besides the recorded one.
const FORMS: usize = 2;

impl Texts {
    const fn new() -> Texts {
        Texts([const { [const { OnceLock::new() }; DType::ALL.len()] }; 1 + FORMS])
    }

    fn of(&'static self, form: usize, d: DType, make: impl FnOnce() -> Option<Text>) -> Option<&'static Text> {
        once(&self.0[form][d as usize], || make().map(Box::new)).as_deref()
    }
}

/// Who has texts with composites expanded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Avx2 = 1,
    Cranelift = 2,
}

/// What an op computes in a compute dtype; none if it is left to a kernel.
pub(crate) fn text(op: Op, dtype: DType) -> Option<&'static Text> {
    row(op, 0, dtype, None)
}

/// The same with the composites expanded that a back end means, always the same ones.
pub(crate) fn text_for(form: Form, op: Op, dtype: DType, is_meant: fn(&Inst) -> bool) -> Option<&'static Text> {
    row(op, form as usize, dtype, Some(is_meant))
}

/// Whether an op has lanes of this category in a compute dtype.
fn computes_in(op: Op, category: Category, d: DType) -> bool {
    d.category() == category && (!d.is_narrow() || op.is_bitwise(d))
}

/// Records a row's function of `N` operands of one dtype.
fn recorded<K, L, const N: usize>(
    d: DType,
    canonical: bool,
    row: impl for<'t> FnOnce([Rec<'t, K>; N]) -> Rec<'t, L>,
) -> Option<Text> {
    let tape = Tape::new([d; N]);
    let result = row(std::array::from_fn(|i| tape.operand(i))).at;
    let text = tape.text(result, canonical);
    debug_assert_eq!(text.verify(), Ok(()));
    Some(text)
}

/// A choice between elements of any dtype, whose bits it moves: the op that has no arithmetic but a text.
fn choice(op: Op, d: DType) -> Option<Text> {
    if op != Op::Where {
        return None;
    }
    let tape = Tape::new([DType::Bool, d, d]);
    let args = [0, 1, 2].map(|i| tape.operand::<Truth>(i).at);
    let result = tape.push(Inst::new(Prim::Select, d, &args));
    Some(tape.text(result, false))
}

macro_rules! kind {
    (bool) => {
        Category::Bool
    };
    (int) => {
        Category::Int
    };
    (int_checked) => {
        Category::Int
    };
    (int_exponent) => {
        Category::Int
    };
    (float) => {
        Category::Float
    };
    (float_guarded) => {
        Category::Float
    };
    (complex) => {
        Category::Complex
    };
    (lane bool) => {
        Truth
    };
    (lane int) => {
        Whole
    };
    (lane float) => {
        Float
    };
    (lane complex) => {
        Complex
    };
}

/// The text of a row in a category, which ends the function that it stands in.
macro_rules! record {
    ($op:ident $d:ident $category:ident [kernel] $($rest:tt)*) => {
        if computes_in($op, kind!($category), $d) {
            return None;
        }
    };
    ($op:ident $d:ident float_guarded [] ($a:ident) $body:expr, $near:expr) => {
        if computes_in($op, Category::Float, $d) {
            return recorded::<Float, _, 1>($d, true, |[$a]| $near.unless_far($a, $op));
        }
    };
    ($op:ident $d:ident $category:ident [$($mark:ident)?] ($($arg:ident),+) $body:expr) => {
        if computes_in($op, kind!($category), $d) {
            return recorded::<kind!(lane $category), _, _>($d, record!(canonical $($mark)?), |[$($arg),+]| $body);
        }
    };
    (canonical) => { true };
    (canonical bits) => { false };
}

macro_rules! record_row {
    ($op:ident $d:ident folds $($rest:tt)*) => {{
        let _ = ($op, $d);
        None
    }};
    ($op:ident $d:ident scans; $($rest:tt)*) => {{
        let _ = ($op, $d);
        None
    }};
    ($op:ident $d:ident moves;) => {
        choice($op, $d)
    };
    ($op:ident $d:ident composed; $($formula:tt)*) => {{
        let _ = ($op, $d);
        None
    }};
    ($op:ident $d:ident $mark:ident;) => {{
        let _ = ($op, $d);
        None
    }};
    ($op:ident $d:ident $($category:ident: $($mark:ident)? |$($arg:ident),+| $body:expr $(, $small:expr, $near:expr)?;)+) => {{
        $(record!($op $d $category [$($mark)?] ($($arg),+) $body $(, $near)?);)+
        None
    }};
}

macro_rules! define_texts {
    ($(
        #[doc = $doc:literal]
        $variant:ident { method: $method:ident, operands: ($($operand:ident),+), output: $output:ident $($column:tt)* }
        { $($math:tt)* }
    )*) => {
        /// The texts of a row, and how one is recorded.
        fn texts(op: Op) -> Option<(&'static Texts, fn(Op, DType) -> Option<Text>)> {
            match op {
                $(Op::$variant => {
                    static TEXTS: Texts = Texts::new();
                    fn record(op: Op, d: DType) -> Option<Text> {
                        record_row!(op d $($math)*)
                    }
                    Some((&TEXTS, record))
                })*
                Op::Custom(_) => None,
            }
        }
    };
}
for_each_op!(define_texts);

/// The text of a row in a form.
fn row(op: Op, form: usize, dtype: DType, is_meant: Option<fn(&Inst) -> bool>) -> Option<&'static Text> {
    let (texts, record) = texts(op)?;
    let text = texts.of(0, dtype, || record(op, dtype))?;
    let Some(is_meant) = is_meant else { return Some(text) };
    texts.of(form, dtype, || Some(text.expanded(is_meant)))
}
