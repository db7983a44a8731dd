//! Aggregates: `castwise_agg('sum(a * b)', …)`, an elementwise expression of columns whose last op is a reduction.
//!
//! Guarantees: the result's dtype is what castwise infers for the reduction; the expression and the reduction of a
//! batch are one loop; rows with a null do not count, and no rows give null. Sums of integers, `amin` and `amax` do
//! not depend on how rows are divided into batches and partitions. Does not: fix the last bits of other sums, which
//! are added in f64 in the order in which batches and partial results come.

use std::borrow::Cow;
use std::sync::Arc;

use castwise::{NodeKind, Op, Prepared};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature};

use crate::columns::{Column, array_of, cast_to, result_field};
use crate::compiled::{Compiled, EXECUTOR, First, Form, as_run, compiled, is_aggregate};
use crate::groups::Groups;
use crate::report::plan_error;
use crate::rows::columns_of;
use crate::scalar::as_they_are;
use crate::source::Source;
use crate::state::{Kind, State};
use crate::types::data_type;

/// An aggregate function of this name: an expression or a program whose last op is `sum`, `mean`, `amin`, `amax` or
/// `var` over all rows, and whose other ops are elementwise.
///
/// ```
/// use castwise::Rules;
/// use castwise_datafusion::{Source, castwise_agg};
/// use datafusion::logical_expr::col;
/// let dot = castwise_agg("dot", Source::expression("sum(a * b)", Rules::Torch)?);
/// assert_eq!(dot.call(vec![col("x"), col("y")]).to_string(), "dot(x, y)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn castwise_agg(name: &str, source: Source) -> AggregateUDF {
    AggregateUDF::from(Aggregate { name: name.into(), source, signature: as_they_are(), first: First::new() })
}

/// A source under a name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Aggregate {
    pub(crate) name: String,
    pub(crate) source: Source,
    signature: Signature,
    first: First<Reduction>,
}

/// A reduction for arguments of these dtypes.
struct Reduction {
    compiled: Arc<Compiled>,
    kind: Kind,
    /// What a batch is reduced to: each a value of no dims.
    batch: Prepared,
    /// The values of a batch, where they are added one by one.
    values: Option<Arc<Prepared>>,
}

impl Aggregate {
    fn reduction(&self, fields: &[FieldRef]) -> Result<Arc<Reduction>> {
        let make = |dtypes: &[_]| Reduction::new(compiled(&self.source, Form::Total, dtypes)?).map(Arc::new);
        self.first.or_made(fields, &self.source, make).map(Cow::into_owned)
    }
}

impl Reduction {
    fn new(compiled: Arc<Compiled>) -> Result<Reduction> {
        let text = compiled.source.text();
        let other = |what: &str| {
            let last = "the last op of an aggregate is `sum`, `mean`, `amin`, `amax` or `var` over all rows";
            DataFusionError::Plan(format!("castwise: {last}; {} {what}", compiled.source.shown()))
        };
        let position = compiled.typed.position(&compiled.result).ok_or_else(|| other("has no result"))?;
        let node = compiled.typed.nodes().nth(position).ok_or_else(|| other("has no result"))?;
        let NodeKind::Reduce { op, from, keepdim: false, number, .. } = node.kind else {
            return Err(other("ends with another op"));
        };
        if !is_aggregate(op) || !node.shape.is_empty() || !compiled.used.contains(&true) {
            return Err(other("is none"));
        }
        let of = compiled.typed.nodes().nth(from).map_or(node.dtype, |n| n.dtype);
        if of.is_complex() {
            return Err(DataFusionError::Plan(format!("castwise: aggregates of {of} are not supported")));
        }
        let kind = match op {
            Op::Sum if of.is_integral() => Kind::Integers,
            Op::Sum => Kind::Floats,
            Op::Mean => Kind::Mean,
            Op::Var => Kind::Moments { correction: number.unwrap_or(1.0) },
            extreme => Kind::Extreme(extreme),
        };
        let copied = compiled.typed.rewrite(|node| node.copy_explicit()).map_err(|e| plan_error(&e, text))?;
        let value = copied.vars.get(from).ok_or_else(|| other("has no operand"))?;
        let fetches = kind.fetches(value);
        let batch = EXECUTOR.prepare(&copied.program, &fetches).map_err(|e| plan_error(&e, text))?;
        let wide = kind.wide().map(|dtype| value.cast(dtype));
        let values = wide.map(|wide| EXECUTOR.prepare(&copied.program, [&wide])).transpose();
        let values = values.map_err(|e| plan_error(&e, text))?.map(Arc::new);
        Ok(Reduction { kind, batch, values, compiled: compiled.clone() })
    }
}

impl AggregateUDFImpl for Aggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{}: the dtype depends on fields", self.name)))
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        let reduction = self.reduction(fields)?;
        Ok(result_field(&self.name, reduction.compiled.dtype, true))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let reduction = self.reduction(args.expr_fields)?;
        // Which rows are distinct makes no difference to an extreme.
        if args.is_distinct && reduction.kind.wide().is_some() {
            let what = format!("castwise: {} with DISTINCT: select the distinct rows in a subquery", self.name);
            return Err(DataFusionError::NotImplemented(what));
        }
        Ok(Box::new(Partial { state: State::empty(reduction.kind), reduction }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        // Of distinct rows there is no accumulator; `accumulator` says so.
        !args.is_distinct && self.reduction(args.expr_fields).is_ok_and(|r| r.kind.wide().is_some())
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let reduction = self.reduction(args.expr_fields)?;
        let none = || DataFusionError::Internal("castwise: no accumulator of groups".into());
        let values = reduction.values.clone().ok_or_else(none)?;
        Ok(Box::new(Groups { compiled: reduction.compiled.clone(), kind: reduction.kind, values, states: Vec::new() }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let reduction = self.reduction(args.input_fields)?;
        let fields = reduction.kind.state(reduction.compiled.dtype).into_iter();
        Ok(fields.map(|(name, of)| Arc::new(Field::new(format_state_name(args.name, name), of, true))).collect())
    }
}

/// An accumulator.
struct Partial {
    state: State,
    reduction: Arc<Reduction>,
}

impl std::fmt::Debug for Partial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.state.fmt(f)
    }
}

impl Partial {
    /// The result in its dtype, as an array of one row.
    fn row(&self) -> Result<Option<ArrayRef>> {
        let Some(value) = self.state.result() else { return Ok(None) };
        let value = value.reshape([1]).and_then(|value| cast_to(&value, self.reduction.compiled.dtype));
        array_of(value.map_err(|e| DataFusionError::Execution(e.to_string()))?, None).map(Some)
    }
}

impl Accumulator for Partial {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Reduction { compiled, batch, .. } = &*self.reduction;
        let Some((columns, mask)) = columns_of(compiled, values, None)? else { return Ok(()) };
        let rows = mask.map_or(values[0].len(), |mask| mask.true_count()) as u64;
        let failed = |e| as_run(&e, &compiled.source);
        let views = compiled.feeds.iter().map(|i| columns[*i].view()).collect::<castwise::Result<Vec<_>>>();
        let results = views.and_then(|views| batch.run_views(&views)).map_err(failed)?;
        self.state.add(&results, rows).map_err(failed)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let is_extreme = matches!(self.state, State::Extreme { .. });
        for row in 0..states.first().map_or(0, |s| s.len()) {
            if !is_extreme {
                self.state.merge(states, row);
                continue;
            }
            let one = states[0].slice(row, 1);
            if one.null_count() == 0 {
                let column = Column::of_rows(&one, self.reduction.compiled.dtype)?;
                let value = column.view().and_then(|v| v.to_tensor()).and_then(|t| t.reshape([]));
                let added = value.and_then(|value| self.state.add(&[value], 1));
                added.map_err(|e| DataFusionError::Execution(e.to_string()))?;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(match &self.state {
            State::Integers { sum, count } => vec![(*sum).into(), (*count).into()],
            State::Floats { sum, rest, count, .. } => vec![(*sum).into(), (*rest).into(), (*count).into()],
            State::Moments { mean, squares, count, .. } => vec![(*mean).into(), (*squares).into(), (*count).into()],
            State::Extreme { .. } => vec![self.evaluated()?],
        })
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.evaluated()
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

impl Partial {
    fn evaluated(&self) -> Result<ScalarValue> {
        match self.row()? {
            Some(row) => ScalarValue::try_from_array(&row, 0),
            None => ScalarValue::try_from(&data_type(self.reduction.compiled.dtype)),
        }
    }
}

#[cfg(test)]
mod tests;
