//! Dtypes as types of Arrow's fields, and back.
//!
//! Guarantees: a dtype's field has the dtype again; what Arrow has no type for is a fixed-size type whose metadata
//! says the dtype, which files keep. Does not: convert values. A type that is no dtype is refused by name.

use std::collections::HashMap;
use std::sync::Arc;

use castwise::DType;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};

use crate::source::Source;

/// The key and the name under which a field says that its type is a dtype that Arrow lacks.
const EXTENSION: (&str, &str) = ("ARROW:extension:name", "castwise");
/// The key whose value is that dtype.
const DTYPE_KEY: &str = "ARROW:extension:metadata";

/// The type that Arrow has for a dtype, or the one whose values have its bytes.
pub(crate) fn data_type(dtype: DType) -> DataType {
    let parts = |of| DataType::FixedSizeList(Arc::new(Field::new("item", of, false)), 2);
    match dtype {
        DType::Bool => DataType::Boolean,
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::U8 => DataType::UInt8,
        DType::U16 => DataType::UInt16,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::F16 => DataType::Float16,
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
        DType::C32 => parts(DataType::Float16),
        DType::C64 => parts(DataType::Float32),
        DType::C128 => parts(DataType::Float64),
        other => DataType::FixedSizeBinary(other.size() as i32),
    }
}

/// Whether Arrow's type alone says the dtype.
fn is_native(dtype: DType) -> bool {
    !matches!(data_type(dtype), DataType::FixedSizeBinary(_) | DataType::FixedSizeList(..))
}

/// The field of a column of this dtype. Columns of bf16, of 8-bit floats and of complex numbers have metadata, which
/// says so: give it to the field of a column that comes from elsewhere.
///
/// ```
/// use castwise::DType;
/// use castwise_datafusion::{dtype_of, field_of};
/// let weights = field_of("weights", DType::BF16, false);
/// assert_eq!(weights.data_type().to_string(), "FixedSizeBinary(2)");
/// assert_eq!(dtype_of(&weights), Ok(DType::BF16));
/// ```
pub fn field_of(name: &str, dtype: DType, nullable: bool) -> Field {
    let field = Field::new(name, data_type(dtype), nullable);
    if is_native(dtype) {
        return field;
    }
    let (key, value) = EXTENSION;
    field.with_metadata(HashMap::from([(key.into(), value.into()), (DTYPE_KEY.into(), dtype.to_string())]))
}

/// The dtype of a column. Error: the sentence that says why it has none.
pub fn dtype_of(field: &Field) -> Result<DType, String> {
    let found = match field.data_type() {
        DataType::Boolean => DType::Bool,
        DataType::Int8 => DType::I8,
        DataType::Int16 => DType::I16,
        DataType::Int32 => DType::I32,
        DataType::Int64 => DType::I64,
        DataType::UInt8 => DType::U8,
        DataType::UInt16 => DType::U16,
        DataType::UInt32 => DType::U32,
        DataType::UInt64 => DType::U64,
        DataType::Float16 => DType::F16,
        DataType::Float32 => DType::F32,
        DataType::Float64 => DType::F64,
        DataType::Dictionary(_, of) if !matches!(**of, DataType::Dictionary(..)) => {
            return dtype_of(&Field::new(field.name(), (**of).clone(), true).with_metadata(field.metadata().clone()));
        }
        DataType::FixedSizeBinary(_) | DataType::FixedSizeList(..) => return by_metadata(field),
        other => return Err(format!("{other} is no dtype; cast the column, e.g. to REAL or DOUBLE")),
    };
    Ok(found)
}

/// The dtype that a field's metadata says, if the field's type is that dtype's.
fn by_metadata(field: &Field) -> Result<DType, String> {
    let of = field.data_type();
    let (key, value) = EXTENSION;
    let said = field.metadata().get(key).filter(|v| *v == value).and_then(|_| field.metadata().get(DTYPE_KEY));
    let Some(said) = said else {
        return Err(format!(
            "{of} has no metadata that says its dtype; `castwise_datafusion::field_of` makes such fields"
        ));
    };
    let dtype: DType = said.parse().map_err(|e| format!("{of} with metadata: {e}"))?;
    let fits = match (of, data_type(dtype)) {
        // What the list calls its elements does not matter.
        (DataType::FixedSizeList(a, 2), DataType::FixedSizeList(b, 2)) => a.data_type() == b.data_type(),
        (a, b) => *a == b,
    };
    if fits { Ok(dtype) } else { Err(format!("{of} with metadata says `{dtype}`, which is {}", data_type(dtype))) }
}

/// Whether a column may have nulls. Complex numbers whose parts may be null, and dictionaries, whose values may, have them also where the
/// field says that it is not nullable.
pub(crate) fn may_be_null(field: &Field) -> bool {
    match field.data_type() {
        DataType::FixedSizeList(parts, _) => field.is_nullable() || parts.is_nullable(),
        DataType::Dictionary(..) => true,
        _ => field.is_nullable(),
    }
}

/// The dtypes of a source's arguments. Error: which argument has none, and why.
pub(crate) fn dtypes_of(fields: &[FieldRef], source: &Source) -> Result<Vec<DType>, String> {
    let one = |(i, field): (usize, &FieldRef)| {
        let refused = |why| {
            let names = source.names_for(fields.len()).unwrap_or_default();
            let name = names.get(i).map_or_else(|| format!("{}", i + 1), |name| format!("`{name}`"));
            format!("castwise: argument {name}: {why}")
        };
        dtype_of(field).map_err(refused)
    };
    fields.iter().enumerate().map(one).collect()
}
