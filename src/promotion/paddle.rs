//! Paddle's rules: the two tables of its guide, and the promotion of 0-d tensors.
//!
//! Source: PaddlePaddle's "Introduction to Data Type Promotion". Where that guide contradicts itself, this file follows
//! the behaviour of PaddlePaddle 3.3.

use super::help;
use super::lattice::promote_types;
use super::operand::{OperandType, category_of, named};
use super::rule_set::{self, Call, Composites, Losses, RuleSet};
use super::settings::Rules;
use crate::base::dtype::DType::*;
use crate::base::dtype::{Category, DType, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind, Phrase};
use crate::base::scalar::Scalar;
use crate::ops::{Choice, LossShapes, OpDef, Promotion};

/// PaddlePaddle's rules.
pub(super) struct Paddle;

impl RuleSet for Paddle {
    fn name(&self) -> &'static str {
        "paddle"
    }

    fn framework(&self) -> &'static str {
        "Paddle"
    }

    fn title(&self) -> &'static str {
        "PaddlePaddle"
    }

    fn choice(&self, def: &OpDef) -> Option<Choice> {
        def.paddle.choice.or(def.choice.map(|c| c.default))
    }

    fn column(&self, def: &OpDef) -> (Promotion, DTypeSet) {
        (def.paddle.promotion.unwrap_or(def.promotion), def.paddle.accepts.unwrap_or(def.accepts))
    }

    fn notes(&self, def: &OpDef) -> Vec<&'static str> {
        let p = &def.paddle;
        let notes = [
            (!p.mixes, "equal dtypes only"),
            (!p.scalars, "tensors only"),
            (!p.zero_dim_is_scalar && p.scalars, "a 0-d tensor counts as a tensor"),
        ];
        notes.into_iter().filter_map(|(holds, note)| holds.then_some(note)).collect()
    }

    fn lacks(&self, dtype: DType) -> Option<&'static str> {
        match dtype {
            C32 => Some("use c64"),
            U16 => Some("use i32"),
            U32 | U64 => Some("use i64"),
            _ => None,
        }
    }

    fn common(&self, call: &Call<'_>) -> Result<DType, Diagnostic> {
        common_dtype(call)
    }

    fn float_for(&self, _call: &Call<'_>, _common: DType) -> DType {
        F32
    }

    /// Paddle computes every power by C's `pow`.
    fn takes_roots(&self) -> bool {
        false
    }

    /// Tensors of Paddle have no such operators: Python computes `x = x + y`.
    fn writes_in_place(&self, _rank: usize) -> bool {
        false
    }

    fn composites(&self) -> Composites {
        const NO_BOOL: DTypeSet = DTypeSet::ALL.without(DTypeSet::of(&[Bool]));
        Composites {
            integers: false,
            complex_norms: false,
            one_dtype: false,
            dot: NO_BOOL,
            dot_by_rows: true,
            vecdot: NO_BOOL,
            joint_norms: true,
            isclose_of_y: false,
            isclose_of_float: false,
            nan_to_num: DTypeSet::category(Category::Float),
        }
    }

    fn losses(&self) -> Losses {
        Losses { huber: LossShapes::Equal, poisson_promotes: true }
    }
}

/// Row and column order of [`TENSORS`], which is the guide's.
const ORDER: [DType; 12] = [BF16, F16, F32, F64, Bool, U8, I8, I16, I32, I64, C64, C128];

const NO: Option<DType> = None;
const B: Option<DType> = Some(BF16);
const H: Option<DType> = Some(F16);
const S: Option<DType> = Some(F32);
const D: Option<DType> = Some(F64);
const C: Option<DType> = Some(C64);
const Z: Option<DType> = Some(C128);

/// Two tensors. `NO` is a type error, unless the dtypes are equal, which need no promotion.
///
/// Source: the guide's table. Its row c64 says c64 for f64 and c128 for i64, and its column c64 says the opposite. The
/// guide promises commutativity, and PaddlePaddle computes what the column says.
#[rustfmt::skip]
const TENSORS: [[Option<DType>; 12]; 12] = [
    /*          bf16 f16 f32 f64 bool u8 i8 i16 i32 i64 c64 c128 */
    /* bf16 */ [B,   S,  S,  D,  NO,  NO, NO, NO, NO, NO, C, Z],
    /* f16  */ [S,   H,  S,  D,  NO,  NO, NO, NO, NO, NO, C, Z],
    /* f32  */ [S,   S,  S,  D,  NO,  NO, NO, NO, NO, NO, C, Z],
    /* f64  */ [D,   D,  D,  D,  NO,  NO, NO, NO, NO, NO, Z, Z],
    /* bool */ [NO,  NO, NO, NO, NO,  NO, NO, NO, NO, NO, C, Z],
    /* u8   */ [NO,  NO, NO, NO, NO,  NO, NO, NO, NO, NO, C, Z],
    /* i8   */ [NO,  NO, NO, NO, NO,  NO, NO, NO, NO, NO, C, Z],
    /* i16  */ [NO,  NO, NO, NO, NO,  NO, NO, NO, NO, NO, C, Z],
    /* i32  */ [NO,  NO, NO, NO, NO,  NO, NO, NO, NO, NO, C, Z],
    /* i64  */ [NO,  NO, NO, NO, NO,  NO, NO, NO, NO, NO, C, Z],
    /* c64  */ [C,   C,  C,  Z,  C,   C,  C,  C,  C,  C,  C, Z],
    /* c128 */ [Z,   Z,  Z,  Z,  Z,   Z,  Z,  Z,  Z,  Z,  Z, Z],
];

/// A tensor and a scalar. The columns are bool, int, float and complex scalars. Source: the guide's second table.
#[rustfmt::skip]
const SCALARS: [[DType; 4]; 12] = [
    /* bf16 */ [BF16, BF16, BF16, C64],
    /* f16  */ [F16,  F16,  F16,  C64],
    /* f32  */ [F32,  F32,  F32,  C64],
    /* f64  */ [F64,  F64,  F64,  C128],
    /* bool */ [Bool, I64,  F32,  C64],
    /* u8   */ [U8,   U8,   F32,  C64],
    /* i8   */ [I8,   I8,   F32,  C64],
    /* i16  */ [I16,  I16,  F32,  C64],
    /* i32  */ [I32,  I32,  F32,  C64],
    /* i64  */ [I64,  I64,  F32,  C64],
    /* c64  */ [C64,  C64,  C64,  C64],
    /* c128 */ [C128, C128, C128, C128],
];

fn index(d: DType) -> Option<usize> {
    ORDER.iter().position(|o| *o == d)
}

/// The guide's entry for two tensors with dims. Equal dtypes give that dtype.
fn tensor_table(a: DType, b: DType) -> Option<DType> {
    let (i, j) = (index(a)?, index(b)?);
    if a == b { Some(a) } else { TENSORS[i][j] }
}

/// The guide's entry for a tensor and a scalar.
fn scalar_table(tensor: DType, scalar: Category) -> Option<DType> {
    Some(SCALARS[index(tensor)?][scalar as usize])
}

/// The common dtype of an op's operands, or the error.
fn common_dtype(call: &Call<'_>) -> Result<DType, Diagnostic> {
    let operands = call.promoted;
    // Tensors are promoted first, in pairs. Then each scalar is promoted with their common dtype.
    let mut common: Option<(DType, bool)> = None;
    for o in operands {
        if let OperandType::Tensor { dtype, zero_dim, .. } = *o {
            common = Some(match common {
                None => (dtype, zero_dim),
                Some(c) => (two_tensors(call, c, (dtype, zero_dim))?, c.1 && zero_dim),
            });
        }
    }
    let Some((mut dtype, _)) = common else {
        // `where` with two scalars: the lattice promotes their default dtypes.
        return promoted(call, &operands.iter().map(own_dtype).collect::<Vec<_>>());
    };
    for o in operands {
        if let OperandType::Scalar(s) = *o {
            dtype = with_scalar(call, dtype, s)?;
        }
    }
    Ok(dtype)
}

fn two_tensors(call: &Call<'_>, (a, zero_a): (DType, bool), (b, zero_b): (DType, bool)) -> Result<DType, Diagnostic> {
    let columns = &call.def.paddle;
    if a == b {
        return Ok(a);
    }
    if !columns.mixes {
        let message = under(format!("`{}` wants equal dtypes", call.op), call.promoted);
        return Err(Diagnostic::new(DiagnosticKind::DTypeMismatch, message).help(mix(call, a, b)));
    }
    if columns.zero_dim_is_scalar && (zero_a || zero_b) {
        let same_class = a.category() == b.category();
        return Ok(match (zero_a, zero_b) {
            (false, true) if same_class => a,
            (true, false) if same_class => b,
            _ => without_c32(promoted(call, &[a, b])?),
        });
    }
    tensor_table(a, b).ok_or_else(|| help::no_promotion(call, Rules::Paddle, &met(call.promoted, a, b)))
}

/// What the lattice promotes dtypes to.
fn promoted(call: &Call<'_>, dtypes: &[DType]) -> Result<DType, Diagnostic> {
    let common = dtypes.iter().copied().map(Some).reduce(|a, b| promote_types(a?, b?)).flatten();
    common.ok_or_else(|| help::no_promotion(call, Rules::Paddle, dtypes))
}

/// Appends `under Rules::Paddle, not i64 and f32` to a message.
fn under(wants: String, operands: &[OperandType]) -> Phrase {
    Phrase::from(wants + " under ").and(Rules::Paddle.mention()).and(format!(", not {}", named(operands)))
}

/// The help text: which of the operands to cast, and to which dtype.
fn mix(call: &Call<'_>, a: DType, b: DType) -> String {
    help::mix(call.op, call.accepts, call.promoted, &met(call.promoted, a, b))
}

/// Replaces c32, which Paddle lacks, by c64. The lattice gives c32 for f16 and a complex operand.
fn without_c32(d: DType) -> DType {
    if d == C32 { C64 } else { d }
}

fn with_scalar(call: &Call<'_>, tensor: DType, s: Scalar) -> Result<DType, Diagnostic> {
    let common = scalar_table(tensor, s.category());
    if !call.def.paddle.scalars {
        let message = under(format!("`{}` takes two tensors", call.op), call.promoted);
        let help = help::scalar(call.accepts, tensor, common);
        return Err(Diagnostic::new(DiagnosticKind::ArgNotTensor, message).help(help));
    }
    common.ok_or_else(|| {
        Diagnostic::new(DiagnosticKind::UnsupportedDType, format!("`{}`: Paddle has no {tensor}", call.op))
    })
}

/// The dtype of an operand by itself: an int scalar has i64, a float f32, a bool bool, and a complex scalar c64.
fn own_dtype(o: &OperandType) -> DType {
    match o {
        OperandType::Tensor { dtype, .. } => *dtype,
        OperandType::Scalar(_) => match category_of(o) {
            Category::Bool => Bool,
            Category::Int => I64,
            Category::Float => F32,
            Category::Complex => C64,
        },
    }
}

/// The dtypes that do not promote: those of all operands if all are tensors, else `a` and `b`.
fn met(operands: &[OperandType], a: DType, b: DType) -> Vec<DType> {
    operands.iter().map(rule_set::dtype_of).collect::<Option<Vec<_>>>().unwrap_or_else(|| vec![a, b])
}
