//! An optimizer rule: a tree of castwise's functions becomes one program, so that what is between them is not stored.
//!
//! Guarantees: the result has the bits, the dtype, the nulls and the name that the tree has; DataFusion's own `+ - *`,
//! and `/` of floats, join where both operands are of one dtype and castwise's op gives that dtype, which has the same
//! rounding and wraps as it does. Does not: keep the bits of a NaN that DataFusion's own arithmetic makes, which
//! becomes castwise's one NaN; join programs under other settings, or with [`Rounding::Relaxed`] or
//! [`Contraction`], whose bits depend on what is joined; reorder anything. What raises in a row that is null in the
//! end does not raise any more.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use castwise::{Contraction, DType, NodeKind, Program, Rounding, Settings, Var};
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::compiled::{Compiled, Form, compiled};
use crate::scalar::{Call, SqlCall};
use crate::source::Source;
use crate::types::dtype_of;

/// The rule. [`register`](crate::register) adds it to a session.
///
/// ```
/// use castwise_datafusion::CastwiseFusion;
/// use datafusion::prelude::SessionContext;
/// let session = SessionContext::new();
/// session.add_optimizer_rule(std::sync::Arc::new(CastwiseFusion::new()));
/// ```
#[derive(Debug, Default)]
pub struct CastwiseFusion(());

impl CastwiseFusion {
    /// The rule.
    pub fn new() -> CastwiseFusion {
        CastwiseFusion(())
    }
}

impl OptimizerRule for CastwiseFusion {
    fn name(&self) -> &str {
        "castwise_fusion"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let schema: DFSchemaRef =
            if plan.inputs().is_empty() { plan.schema().clone() } else { Arc::new(merge_schema(&plan.inputs())) };
        let place = Place { schema: &schema, is_join: matches!(plan, LogicalPlan::Join(_)) };
        let names = NamePreserver::new(&plan);
        let mut rewrite = |expr: Expr| {
            if !expr.exists(|e| Ok(is_call(e)))? {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            let fused = expr.transform_down(|e| fused(e, &place))?;
            Ok(fused.update_data(|e| name.restore(e)))
        };
        plan.map_expressions(|expr| match &expr {
            // Each member has a name; an alias of the whole set is no grouping set to DataFusion.
            Expr::GroupingSet(_) => expr.map_children(&mut rewrite),
            _ => rewrite(expr),
        })
    }
}

/// Where an expression is.
struct Place<'a> {
    /// The columns that it reads.
    schema: &'a DFSchema,
    /// Whether it may be a join key. DataFusion projects join keys under their display names, so different functions need different names.
    is_join: bool,
}

/// What an expression is to the rule.
enum Tree {
    /// An argument of the program.
    Leaf(Expr),
    /// A castwise function.
    Call(Source, Vec<Tree>),
    /// DataFusion's arithmetic on two values of one dtype.
    Arithmetic(Operator, Box<(Tree, Tree)>, FieldRef),
}

/// An expression with the tree of castwise's functions at its root, if it has one, as one program.
fn fused(expr: Expr, place: &Place<'_>) -> Result<Transformed<Expr>> {
    let mut calls = Vec::new();
    let Some(tree) = tree(&expr, place.schema, &mut calls) else { return Ok(Transformed::no(expr)) };
    let settings = match &calls[..] {
        [] => return Ok(Transformed::no(expr)),
        [first, ..] => first.settings(),
    };
    let is_one = matches!(&tree, Tree::Call(..)) && calls.len() == 1;
    let made = if is_one { alone(&expr, tree, place)? } else { together(tree, place, settings)? };
    match made {
        // As it is already.
        Some(made) if made == expr => Ok(Transformed::no(expr)),
        Some(made) => Ok(Transformed::yes(made)),
        None => Ok(Transformed::no(expr)),
    }
}

fn is_call(expr: &Expr) -> bool {
    let Expr::ScalarFunction(f) = expr else { return false };
    f.func.inner().is::<Call>() || f.func.inner().is::<SqlCall>()
}

/// The function of an expression, if it is castwise's, and its arguments.
pub(crate) fn call_of(expr: &Expr) -> Option<(Source, &[Expr])> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
    let function = func.inner();
    if let Some(call) = function.downcast_ref::<Call>() {
        return Some((call.source.clone(), args));
    }
    let sql = function.downcast_ref::<SqlCall>()?;
    let Some(Expr::Literal(text, _)) = args.first() else { return None };
    let call = sql.of(Some(text)).ok()?;
    Some((call.source, &args[1..]))
}

/// Whether bits under these settings do not depend on what is joined.
fn joins(settings: Settings) -> bool {
    settings.rounding == Rounding::Exact && settings.contraction == Contraction::Off
}

/// The tree at an expression; `None` if the expression is neither a call nor arithmetic. The calls of the tree are
/// appended.
fn tree(expr: &Expr, schema: &DFSchema, calls: &mut Vec<Source>) -> Option<Tree> {
    if let Some((source, args)) = call_of(expr) {
        let allowed = calls.first().is_none_or(|first| first.settings() == source.settings());
        if !allowed {
            return None;
        }
        calls.push(source.clone());
        let inner = joins(source.settings());
        let args = args.iter().map(|arg| {
            let below = if inner { tree(arg, schema, calls) } else { None };
            below.unwrap_or_else(|| Tree::Leaf(arg.clone()))
        });
        let args = args.collect();
        return Some(Tree::Call(source, args));
    }
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    let field = expr.to_field(schema).ok()?.1;
    let dtype = dtype_of(&field).ok()?;
    let floats = matches!(dtype, DType::F32 | DType::F64);
    let fits = match op {
        Operator::Plus | Operator::Minus | Operator::Multiply => floats || dtype.is_integral() && dtype != DType::Bool,
        Operator::Divide => floats,
        _ => false,
    };
    let same = |e: &Expr| e.to_field(schema).is_ok_and(|(_, f)| f.data_type() == field.data_type());
    if !fits || !same(left) || !same(right) {
        return None;
    }
    let before = calls.len();
    let mut side = |e: &Expr| tree(e, schema, calls).unwrap_or_else(|| Tree::Leaf(e.clone()));
    let both = (side(left), side(right));
    (calls.len() > before).then(|| Tree::Arithmetic(*op, Box::new(both), field))
}

/// A call on its own: the same source under a name that shows its casts.
fn alone(expr: &Expr, tree: Tree, place: &Place<'_>) -> Result<Option<Expr>> {
    let Tree::Call(source, args) = tree else { return Ok(None) };
    let leaves = args.into_iter().map(|arg| if let Tree::Leaf(e) = arg { Some(e) } else { None });
    let Some(args) = leaves.collect::<Option<Vec<Expr>>>() else { return Ok(None) };
    let Some(dtypes) = args.iter().map(|a| dtype(a, place.schema)).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let made = compiled(&source, Form::Rows, &dtypes)?;
    let name = if let Expr::ScalarFunction(f) = expr { f.func.name() } else { JOINED };
    Ok(Some(named(name, &made, place).call(args)))
}

/// What a function is called that was made of several.
const JOINED: &str = "castwise";

/// A function whose name shows what it computes, and in which dtypes.
fn named(name: &str, made: &Compiled, place: &Place<'_>) -> ScalarUDF {
    let first = name.split('[').next().unwrap_or(JOINED);
    let mut steps = made.steps();
    if place.is_join {
        let mut hasher = DefaultHasher::new();
        made.source.hash(&mut hasher);
        steps += &format!(" #{:x}", hasher.finish());
    }
    crate::scalar::castwise_udf(&format!("{first}[{steps}]"), made.source.clone())
}

fn dtype(expr: &Expr, schema: &DFSchema) -> Option<DType> {
    dtype_of(&expr.to_field(schema).ok()?.1).ok()
}

/// A tree as one program, if it has the same dtype.
fn together(tree: Tree, place: &Place<'_>, settings: Settings) -> Result<Option<Expr>> {
    if !joins(settings) {
        return Ok(None);
    }
    let (program, schema) = (Program::with_settings(settings), place.schema);
    let mut join = Join { program, leaves: Vec::new(), checks: Vec::new(), schema };
    let Some((result, dtype)) = join.lower(tree)? else { return Ok(None) };
    let fetched = join.program.set_fetches([(None::<&str>, &result)]);
    let (Ok(()), Ok(typed)) = (fetched, join.program.infer()) else { return Ok(None) };
    let holds = |(v, dtype): &(Var, DType)| typed.dtype(v) == Some(*dtype) && !typed.is_weak(v);
    if !join.checks.iter().all(holds) || typed.dtype(&result) != Some(dtype) {
        return Ok(None);
    }
    let source = Source::program(&join.program)?;
    let dtypes: Vec<DType> = join.leaves.iter().map(|(_, dtype, _)| *dtype).collect();
    let made = compiled(&source, Form::Rows, &dtypes)?;
    Ok(Some(named(JOINED, &made, place).call(join.leaves.into_iter().map(|(e, ..)| e).collect())))
}

/// A program that is made of a tree.
struct Join<'a> {
    program: Program,
    /// The program's arguments, each with its placeholder.
    leaves: Vec<(Expr, DType, Var)>,
    /// What DataFusion computes, with the dtype that it has there.
    checks: Vec<(Var, DType)>,
    schema: &'a DFSchema,
}

impl Join<'_> {
    /// The value of a tree in the program; `None` if it would not be what the tree computes.
    fn lower(&mut self, tree: Tree) -> Result<Option<(Var, DType)>> {
        match tree {
            Tree::Leaf(expr) => Ok(self.leaf(expr)),
            Tree::Call(source, args) => {
                let mut values = Vec::new();
                for arg in args {
                    let Some(value) = self.lower(arg)? else { return Ok(None) };
                    values.push(value);
                }
                self.inline(&source, &values)
            }
            Tree::Arithmetic(op, sides, field) => {
                let (left, right) = *sides;
                let Some((l, _)) = self.lower(left)? else { return Ok(None) };
                let Some((r, _)) = self.lower(right)? else { return Ok(None) };
                let Ok(dtype) = dtype_of(&field) else { return Ok(None) };
                let value = match op {
                    Operator::Plus => l + r,
                    Operator::Minus => l - r,
                    Operator::Multiply => l * r,
                    _ => l / r,
                };
                self.checks.push((value.clone(), dtype));
                Ok(Some((value, dtype)))
            }
        }
    }

    fn leaf(&mut self, expr: Expr) -> Option<(Var, DType)> {
        let known = self.leaves.iter().find(|(e, ..)| *e == expr && !e.is_volatile());
        if let Some((_, dtype, v)) = known {
            return Some((v.clone(), *dtype));
        }
        let dtype = dtype(&expr, self.schema)?;
        let placeholder = self.program.data(&format!("a{}", self.leaves.len()), dtype, [None]);
        self.leaves.push((expr, dtype, placeholder.clone()));
        Some((placeholder, dtype))
    }

    /// A call's program in this one, with every conversion written out.
    fn inline(&mut self, source: &Source, values: &[(Var, DType)]) -> Result<Option<(Var, DType)>> {
        let dtypes: Vec<DType> = values.iter().map(|(_, dtype)| *dtype).collect();
        let made = compiled(source, Form::Rows, &dtypes)?;
        let Some(position) = made.typed.position(&made.result) else { return Ok(None) };
        // Of a call it is a column, which no scalar is.
        if made.weak || !made.used.contains(&true) {
            return Ok(None);
        }
        let mut next = made.feeds.iter();
        let copied = made.typed.rewrite_into(&self.program, |node| match node.view().kind {
            NodeKind::Feed(_) => match next.next() {
                Some(argument) => Ok(values[*argument].0.clone()),
                None => node.copy(),
            },
            _ => node.copy_explicit(),
        });
        Ok(copied.ok().and_then(|vars| vars.get(position).cloned()).map(|v| (v, made.dtype)))
    }
}
