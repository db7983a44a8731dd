//! Arrow's columns as castwise's operands, and castwise's results as Arrow's columns.
//!
//! Guarantees: the buffers of numbers are read where they are, slices and offsets included, and a result's memory
//! becomes the buffer of its column; a scalar, and a dictionary of one value, is one element that broadcasts. Does
//! not: convert dtypes. What is copied: bools, which are bits in Arrow and bytes in castwise, and the values of other
//! dictionaries.

use std::borrow::Cow;
use std::sync::Arc;

use castwise::{DType, Eager, Rules, Tensor, TensorView};
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray,
    PrimitiveArray, new_null_array,
};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use datafusion::arrow::compute::{filter, take};
use datafusion::arrow::datatypes::{
    DataType, Field, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;

use crate::types::data_type;

/// Calls a macro with the dtypes whose values Arrow has as numbers, and Arrow's types.
macro_rules! numbers {
    ($callback:ident) => {
        $callback! {
            I8 Int8Type, I16 Int16Type, I32 Int32Type, I64 Int64Type, U8 UInt8Type, U16 UInt16Type, U32 UInt32Type,
            U64 UInt64Type, F16 Float16Type, F32 Float32Type, F64 Float64Type
        }
    };
}

/// An argument: its values, and where they are.
#[derive(Clone)]
pub(crate) struct Column<'a> {
    array: Cow<'a, ArrayRef>,
    dtype: DType,
    /// Whether it is one value for all rows.
    pub(crate) is_scalar: bool,
    /// Its bools as bytes.
    bools: Vec<bool>,
}

impl<'a> Column<'a> {
    pub(crate) fn new(value: &'a ColumnarValue, dtype: DType) -> Result<Column<'a>> {
        let (array, is_scalar) = match value {
            ColumnarValue::Array(array) => (Cow::Borrowed(array), false),
            ColumnarValue::Scalar(scalar) => (Cow::Owned(scalar.to_array()?), true),
        };
        let (array, broadcast) = plain(array)?;
        Ok(Column::of(array, dtype, is_scalar || broadcast))
    }

    /// A column with an element for each row.
    pub(crate) fn of_rows(array: &'a ArrayRef, dtype: DType) -> Result<Column<'a>> {
        let array = match array.as_any_dictionary_opt() {
            Some(dictionary) => Cow::Owned(take(dictionary.values(), dictionary.keys(), None)?),
            None => Cow::Borrowed(array),
        };
        Ok(Column::of(array, dtype, false))
    }

    fn of(array: Cow<'a, ArrayRef>, dtype: DType, is_scalar: bool) -> Column<'a> {
        let bools = if dtype == DType::Bool { bytes_of(array.as_boolean().values()) } else { Vec::new() };
        Column { array, dtype, is_scalar, bools }
    }

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.array.len()
    }

    /// Where there are values; `None` if everywhere. A complex number of which a part is null is null.
    pub(crate) fn validity(&self) -> Option<NullBuffer> {
        let own = self.array.logical_nulls();
        let Some(list) = self.array.as_fixed_size_list_opt() else { return own };
        match list.values().logical_nulls() {
            Some(parts) if parts.null_count() > 0 => {
                let valid =
                    BooleanBuffer::collect_bool(list.len(), |i| parts.is_valid(2 * i) && parts.is_valid(2 * i + 1));
                NullBuffer::union(own.as_ref(), Some(&NullBuffer::new(valid)))
            }
            _ => own,
        }
    }

    /// The rows that a mask selects.
    pub(crate) fn filtered(&self, mask: &BooleanArray) -> Result<Column<'a>> {
        if self.is_scalar {
            return Ok(self.clone());
        }
        Ok(Column::of(Cow::Owned(filter(&**self.array, mask)?), self.dtype, false))
    }

    /// The values where they are.
    pub(crate) fn view(&self) -> castwise::Result<TensorView<'_>> {
        let shape = [self.array.len()];
        macro_rules! view {
            ($($dtype:ident $of:ty),*) => {
                match self.dtype {
                    $(DType::$dtype => TensorView::from_slice(self.array.as_primitive::<$of>().values(), shape),)*
                    DType::Bool => TensorView::from_slice(&self.bools, shape),
                    dtype if dtype.is_complex() => TensorView::from_bytes(dtype, shape, self.parts()),
                    dtype => TensorView::from_bytes(dtype, shape, self.array.as_fixed_size_binary().value_data()),
                }
            };
        }
        numbers!(view)
    }

    /// The bytes of complex numbers: of their parts, one after the other.
    fn parts(&self) -> &[u8] {
        let parts = self.array.as_fixed_size_list().values();
        match self.dtype {
            DType::C32 => parts.as_primitive::<Float16Type>().values().inner().as_slice(),
            DType::C64 => parts.as_primitive::<Float32Type>().values().inner().as_slice(),
            _ => parts.as_primitive::<Float64Type>().values().inner().as_slice(),
        }
    }
}

/// A column without a dictionary, and whether it is one value for all rows.
fn plain(array: Cow<'_, ArrayRef>) -> Result<(Cow<'_, ArrayRef>, bool)> {
    let Some(dictionary) = array.as_any_dictionary_opt() else { return Ok((array, false)) };
    let values = dictionary.values();
    if values.len() == 1 && dictionary.keys().null_count() == 0 && !dictionary.is_empty() {
        return Ok((Cow::Owned(values.clone()), true));
    }
    Ok((Cow::Owned(take(values, dictionary.keys(), None)?), false))
}

/// A result as a column. Its memory goes back to castwise's pool when the last user of the buffer drops it.
pub(crate) fn array_of(tensor: Tensor, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let (dtype, rows) = (tensor.dtype(), tensor.numel());
    let bytes = buffer_of(tensor)?;
    macro_rules! array {
        ($($dtype:ident $of:ty),*) => {
            match dtype {
                $(DType::$dtype => Arc::new(primitive::<$of>(bytes, rows, nulls)?) as ArrayRef,)*
                DType::Bool => Arc::new(BooleanArray::new(bits_of(&bytes), nulls)),
                DType::C32 => complex(dtype, primitive::<Float16Type>(bytes, 2 * rows, None)?, nulls)?,
                DType::C64 => complex(dtype, primitive::<Float32Type>(bytes, 2 * rows, None)?, nulls)?,
                DType::C128 => complex(dtype, primitive::<Float64Type>(bytes, 2 * rows, None)?, nulls)?,
                other => Arc::new(FixedSizeBinaryArray::try_new(other.size() as i32, bytes, nulls)?),
            }
        };
    }
    Ok(numbers!(array))
}

fn primitive<T: ArrowPrimitiveType>(bytes: Buffer, n: usize, nulls: Option<NullBuffer>) -> Result<PrimitiveArray<T>> {
    let values = if n == 0 { ScalarBuffer::from(Vec::new()) } else { ScalarBuffer::new(bytes, 0, n) };
    Ok(PrimitiveArray::try_new(values, nulls)?)
}

fn complex<T: ArrowPrimitiveType>(
    dtype: DType,
    parts: PrimitiveArray<T>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let DataType::FixedSizeList(item, width) = data_type(dtype) else {
        return Err(DataFusionError::Internal(format!("castwise: {dtype} is no list")));
    };
    Ok(Arc::new(FixedSizeListArray::try_new(item, width, Arc::new(parts), nulls)?))
}

/// A result that owns what a buffer shows.
struct Owner(Tensor);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes().unwrap_or_default()
    }
}

fn buffer_of(tensor: Tensor) -> Result<Buffer> {
    let contiguous = if tensor.is_contiguous() { Ok(tensor) } else { tensor.contiguous() };
    let tensor = contiguous.map_err(|e| DataFusionError::Execution(e.to_string()))?;
    Ok(Buffer::from(bytes::Bytes::from_owner(Owner(tensor))))
}

/// The elements in another dtype, each rounded once.
pub(crate) fn cast_to(tensor: &Tensor, dtype: DType) -> castwise::Result<Tensor> {
    Eager::new(Rules::NumPy).tensor(tensor).cast(dtype).result()
}

/// Rows of nulls.
pub(crate) fn nulls(dtype: DType, rows: usize) -> ArrayRef {
    new_null_array(&data_type(dtype), rows)
}

/// The array with its rows at the valid ones of `valid`, and nulls at the others.
pub(crate) fn spread(array: &ArrayRef, valid: &NullBuffer) -> Result<ArrayRef> {
    let mut next = 0u32;
    let places: PrimitiveArray<UInt32Type> = valid
        .iter()
        .map(|is_valid| {
            next += u32::from(is_valid);
            is_valid.then(|| next - 1)
        })
        .collect();
    Ok(take(array, &places, None)?)
}

/// For each byte of bits, its bits as bytes.
static BYTES: [[bool; 8]; 256] = {
    let mut all = [[false; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            all[byte][bit] = byte >> bit & 1 == 1;
            bit += 1;
        }
        byte += 1;
    }
    all
};

/// Bits as bytes.
fn bytes_of(bits: &BooleanBuffer) -> Vec<bool> {
    let mut bytes = Vec::with_capacity(bits.len() + 64);
    for word in bits.bit_chunks().iter_padded() {
        word.to_le_bytes().iter().for_each(|byte| bytes.extend_from_slice(&BYTES[*byte as usize]));
    }
    bytes.truncate(bits.len());
    bytes
}

/// Bytes of 0 or 1 as bits.
fn bits_of(bytes: &[u8]) -> BooleanBuffer {
    // Moves the lowest bit of byte i to bit 56 + i.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let byte = |eight: &[u8; 8]| (u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56) as u8;
    let (eights, rest) = bytes.as_chunks();
    let mut bits: Vec<u8> = eights.iter().map(byte).collect();
    if !rest.is_empty() {
        let mut all = [0; 8];
        all[..rest.len()].copy_from_slice(rest);
        bits.push(byte(&all));
    }
    BooleanBuffer::new(Buffer::from_vec(bits), 0, bytes.len())
}

/// The field that an array of a dtype has.
pub(crate) fn result_field(name: &str, dtype: DType, nullable: bool) -> Arc<Field> {
    Arc::new(crate::types::field_of(name, dtype, nullable))
}

#[cfg(test)]
mod tests;
