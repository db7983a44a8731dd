//! Scalar functions: a source under a name, and `castwise('expression', …)`, whose source is its first argument.
//!
//! Guarantees: the result's dtype is what castwise infers for the dtypes of the arguments, which DataFusion does not
//! coerce, and is known when a query is planned; a row is null where an argument is null that the result depends on,
//! and values under nulls raise nothing. Does not: decide dtypes, read buffers.

use std::borrow::Cow;
use std::sync::Arc;

use castwise::{Error, Settings, Tensor};
use datafusion::arrow::array::{Array, BooleanArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::columns::{Column, array_of, nulls, result_field, spread};
use crate::compiled::{Compiled, First, Form, as_run, compiled};
use crate::source::Source;
use crate::types::may_be_null;

/// A scalar function of this name: an expression or a program, whose arguments are columns by position.
///
/// ```
/// use castwise::Rules;
/// use castwise_datafusion::{Source, castwise_udf};
/// use datafusion::logical_expr::col;
/// let half = castwise_udf("half", Source::expression("x / 2", Rules::Torch)?);
/// assert_eq!(half.call(vec![col("n")]).to_string(), "half(n)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn castwise_udf(name: &str, source: Source) -> ScalarUDF {
    ScalarUDF::from(Call::new(name, source))
}

/// A source under a name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) source: Source,
    signature: Signature,
    first: First<Compiled>,
}

/// Any number of arguments of any types, which are given as they are.
pub(crate) fn as_they_are() -> Signature {
    Signature::one_of(vec![TypeSignature::VariadicAny, TypeSignature::Nullary], Volatility::Immutable)
}

impl Call {
    pub(crate) fn new(name: &str, source: Source) -> Call {
        Call { name: name.into(), source, signature: as_they_are(), first: First::new() }
    }

    /// The program for the dtypes of these fields.
    pub(crate) fn compiled(&self, fields: &[FieldRef]) -> Result<Cow<'_, Arc<Compiled>>> {
        self.first.or_made(fields, &self.source, |dtypes| compiled(&self.source, Form::Rows, dtypes))
    }
}

impl ScalarUDFImpl for Call {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{}: the dtype depends on fields", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let made = self.compiled(args.arg_fields)?;
        Ok(made.field(&self.name, args.arg_fields))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.compiled(&args.arg_fields)?.call(&args.args, args.number_rows)
    }
}

impl Compiled {
    /// The result's field: nullable where an argument is that it depends on.
    pub(crate) fn field(&self, name: &str, arguments: &[FieldRef]) -> FieldRef {
        let nullable = arguments.iter().zip(&self.used).any(|(field, used)| *used && may_be_null(field));
        result_field(name, self.dtype, nullable)
    }

    /// Computes a batch.
    pub(crate) fn call(&self, values: &[ColumnarValue], rows: usize) -> Result<ColumnarValue> {
        let mut columns = Vec::with_capacity(values.len());
        for (value, dtype) in values.iter().zip(&self.dtypes) {
            columns.push(Column::new(value, *dtype)?);
        }
        let is_scalar = values.iter().all(|v| matches!(v, ColumnarValue::Scalar(_)));
        let (mut valid, mut all_null) = (None, false);
        for (column, _) in columns.iter().zip(&self.used).filter(|(_, used)| **used) {
            let own = column.validity();
            match own {
                Some(own) if column.is_scalar => all_null |= own.null_count() > 0,
                own => valid = NullBuffer::union(valid.as_ref(), own.as_ref()),
            }
        }
        let null_rows = valid.as_ref().map_or(0, NullBuffer::null_count);
        if all_null || (null_rows > 0 && null_rows == rows) {
            let array = nulls(self.dtype, if is_scalar { 1 } else { rows });
            return if is_scalar { scalar_of(&array) } else { Ok(ColumnarValue::Array(array)) };
        }
        let array = match (self.run(&columns), valid) {
            (Ok(tensor), valid) => array_of(tensor, valid.filter(|v| v.null_count() > 0))?,
            // Perhaps of a value under a null, which is no value: the other rows alone say whether it is an error.
            (Err(_), Some(valid)) if null_rows > 0 => {
                let mask = BooleanArray::new(valid.inner().clone(), None);
                let kept: Vec<Column<'_>> = columns.iter().map(|c| c.filtered(&mask)).collect::<Result<_>>()?;
                let tensor = self.run(&kept).map_err(|e| as_run(&e, &self.source))?;
                spread(&array_of(tensor, None)?, &valid)?
            }
            (Err(e), _) => return Err(as_run(&e, &self.source)),
        };
        // Also where the columns that there are have no influence on it.
        if is_scalar || (array.len() == 1 && rows != 1) { scalar_of(&array) } else { Ok(ColumnarValue::Array(array)) }
    }

    fn run(&self, columns: &[Column<'_>]) -> std::result::Result<Tensor, Error> {
        let Some(prepared) = &self.prepared else { return Err(Error::Shape("castwise: no loop".into())) };
        let rows = columns.iter().find(|c| !c.is_scalar).map_or(1, Column::len);
        let mut views = Vec::with_capacity(self.feeds.len());
        for column in self.feeds.iter().map(|i| &columns[*i]) {
            let view = column.view()?;
            views.push(if self.tied && column.is_scalar { view.broadcast_to([rows])? } else { view });
        }
        let mut results = prepared.run_views(&views)?;
        results.pop().ok_or_else(|| Error::Shape("castwise: no result".into()))
    }
}

fn scalar_of(array: &dyn Array) -> Result<ColumnarValue> {
    Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(array, 0)?))
}

/// `castwise('expression', a, b, …)`: the expression is a literal, and the dtypes are known when the query is planned.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct SqlCall {
    pub(crate) name: String,
    pub(crate) settings: Settings,
    signature: Signature,
}

impl SqlCall {
    pub(crate) fn new(name: &str, settings: Settings) -> SqlCall {
        SqlCall { name: name.into(), settings, signature: as_they_are() }
    }

    /// The function of the expression that a literal has.
    pub(crate) fn of(&self, literal: Option<&ScalarValue>) -> Result<Call> {
        let text = literal.and_then(text_of).ok_or_else(|| {
            DataFusionError::Plan(format!("castwise: the first argument of {} is an expression in quotes", self.name))
        })?;
        Ok(Call::new(&self.name, Source::expression(text, self.settings)?))
    }
}

/// The text of a literal.
pub(crate) fn text_of(literal: &ScalarValue) -> Option<&str> {
    match literal {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => text.as_deref(),
        _ => None,
    }
}

impl ScalarUDFImpl for SqlCall {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{}: the dtype depends on the expression", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let call = self.of(args.scalar_arguments.first().copied().flatten())?;
        let fields = args.arg_fields.get(1..).unwrap_or_default();
        Ok(call.compiled(fields)?.field(&self.name, fields))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let literal = match args.args.first() {
            Some(ColumnarValue::Scalar(literal)) => Some(literal),
            _ => None,
        };
        let call = self.of(literal)?;
        let fields = args.arg_fields.get(1..).unwrap_or_default();
        call.compiled(fields)?.call(args.args.get(1..).unwrap_or_default(), args.number_rows)
    }
}
