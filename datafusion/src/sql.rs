//! What a session needs to use castwise in SQL: the functions, the planner of aggregates, the optimizer rule.
//!
//! Guarantees: what it registers has castwise's name, so that it replaces nothing else. Does not: change the session's
//! settings.

use std::sync::Arc;

use castwise::{Rules, Settings};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ScalarUDF, Signature};
use datafusion::prelude::SessionContext;

use crate::aggregate::castwise_agg;
use crate::fusion::CastwiseFusion;
use crate::scalar::{SqlCall, as_they_are, text_of};
use crate::source::Source;

/// Registers with a session: `castwise('expression', …)` and `castwise_agg('expression', …)` under the given rules or
/// settings, both also as `castwise_torch`, `castwise_agg_torch` and so on under each rule set's defaults, and
/// [`CastwiseFusion`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use castwise::Rules;
/// use datafusion::prelude::SessionContext;
/// let mut session = SessionContext::new();
/// castwise_datafusion::register(&mut session, Rules::Torch)?;
/// let query = "SELECT castwise('a / 2', n) AS half FROM (VALUES (1), (2)) AS t(n)";
/// let batches = session.sql(query).await?.collect().await?;
/// assert_eq!(batches[0].schema().field(0).data_type().to_string(), "Float32");
/// # Ok(())
/// # }
/// ```
pub fn register(session: &mut SessionContext, settings: impl Into<Settings>) -> Result<()> {
    register_functions(session, settings)?;
    session.add_optimizer_rule(Arc::new(CastwiseFusion::new()));
    Ok(())
}

/// Registers the functions alone: with a session's state, or with the registry of a process that runs others' plans.
pub fn register_functions(registry: &mut dyn FunctionRegistry, settings: impl Into<Settings>) -> Result<()> {
    for (suffix, settings) in named_settings(settings.into()) {
        registry.register_udf(Arc::new(sql_function(&format!("castwise{suffix}"), settings)))?;
        registry.register_udaf(Arc::new(sql_aggregate(&format!("castwise_agg{suffix}"), settings)))?;
    }
    registry.register_expr_planner(Arc::new(AggregatePlanner))
}

fn named_settings(own: Settings) -> Vec<(String, Settings)> {
    let rules = Rules::ALL.iter().map(|rules| (format!("_{rules}"), Settings::new(*rules)));
    std::iter::once((String::new(), own)).chain(rules).collect()
}

/// `castwise('expression', …)` under another name.
pub(crate) fn sql_function(name: &str, settings: Settings) -> ScalarUDF {
    ScalarUDF::from(SqlCall::new(name, settings))
}

pub(crate) fn sql_aggregate(name: &str, settings: Settings) -> AggregateUDF {
    AggregateUDF::from(SqlAggregate { name: name.into(), settings, signature: as_they_are() })
}

/// `castwise_agg('expression', …)`, which the planner replaces by the expression's aggregate: DataFusion types
/// aggregates by their arguments' fields alone, and these do not have the expression.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct SqlAggregate {
    pub(crate) name: String,
    pub(crate) settings: Settings,
    signature: Signature,
}

impl SqlAggregate {
    fn unplanned<T>(&self) -> Result<T> {
        let name = &self.name;
        let help = "outside of SQL, call `castwise_datafusion::castwise_agg`";
        let what = format!("{name} has no OVER, and needs the planner that `register` adds");
        Err(DataFusionError::Plan(format!("castwise: {what}; {help}")))
    }
}

impl AggregateUDFImpl for SqlAggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        self.unplanned()
    }

    fn return_field(&self, _: &[FieldRef]) -> Result<FieldRef> {
        self.unplanned()
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.unplanned()
    }
}

/// Plans `castwise_agg('expression', …)`.
#[derive(Debug)]
struct AggregatePlanner;

impl ExprPlanner for AggregatePlanner {
    fn plan_aggregate(&self, expr: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        let Some(sql) = expr.func.inner().downcast_ref::<SqlAggregate>() else {
            return Ok(PlannerResult::Original(expr));
        };
        let text = match expr.args.first() {
            Some(Expr::Literal(literal, _)) => text_of(literal),
            _ => None,
        };
        let Some(text) = text else {
            let what = format!("castwise: the first argument of {} is an expression in quotes", sql.name);
            return Err(DataFusionError::Plan(what));
        };
        let function = castwise_agg(&format!("{}['{text}']", sql.name), Source::expression(text, sql.settings)?);
        let RawAggregateExpr { args, distinct, filter, order_by, null_treatment, .. } = expr;
        let args = args.into_iter().skip(1).collect();
        let planned = AggregateFunction::new_udf(Arc::new(function), args, distinct, filter, order_by, null_treatment);
        Ok(PlannerResult::Planned(Expr::AggregateFunction(planned)))
    }
}
