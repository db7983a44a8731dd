//! Tables of random columns, and what castwise itself makes of them.

#![allow(dead_code, reason = "each test uses a part")]

use std::sync::Arc;

use castwise::{DType, Tensor};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, PrimitiveArray, RecordBatch};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Schema, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};

/// A generator whose numbers follow from its seed alone.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Small and large numbers, infinities and NaN.
    pub fn float(&mut self) -> f64 {
        match self.below(12) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => -0.0,
            3 => 1e30 * (self.below(9) as f64 - 4.0),
            _ => (self.next() as i64 >> 40) as f64 / 1024.0,
        }
    }
}

pub const DTYPES: [DType; 12] = [
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::F32,
    DType::F64,
];

/// Calls a macro with the dtypes that Arrow has as numbers, their types there and in Rust.
macro_rules! numbers {
    ($callback:ident) => {
        $callback! {
            I8 Int8Type, I16 Int16Type, I32 Int32Type, I64 Int64Type, U8 UInt8Type, U16 UInt16Type, U32 UInt32Type,
            U64 UInt64Type, F16 Float16Type, F32 Float32Type, F64 Float64Type
        }
    };
}

/// A column of a dtype, with values under its nulls.
pub fn column(r: &mut Random, dtype: DType, rows: usize, with_nulls: bool) -> ArrayRef {
    let nulls = with_nulls.then(|| NullBuffer::from((0..rows).map(|_| r.below(5) > 0).collect::<Vec<bool>>()));
    let floats: Vec<f64> = (0..rows).map(|_| r.float()).collect();
    macro_rules! column {
        ($($dtype:ident $of:ty),*) => {
            match dtype {
                $(DType::$dtype => primitive::<$of>(Tensor::from_vec(floats, [rows]).unwrap(), dtype, nulls),)*
                _ => Arc::new(BooleanArray::new(floats.iter().map(|x| *x > 0.0).collect::<Vec<bool>>().into(), nulls)),
            }
        };
    }
    numbers!(column)
}

fn primitive<T: ArrowPrimitiveType>(floats: Tensor, dtype: DType, nulls: Option<NullBuffer>) -> ArrayRef
where
    T::Native: castwise::Element,
{
    let cx = castwise::Eager::new(castwise::Rules::NumPy);
    let cast = cx.tensor(&floats).cast(dtype).result().unwrap();
    Arc::new(PrimitiveArray::<T>::new(cast.to_vec::<T::Native>().unwrap().into(), nulls))
}

/// The values of the rows that a mask selects, as a tensor.
pub fn tensor(array: &ArrayRef, mask: &[bool]) -> Tensor {
    let kept = datafusion::arrow::compute::filter(array, &BooleanArray::from(mask.to_vec())).unwrap();
    let rows = kept.len();
    macro_rules! tensor {
        ($($dtype:ident $of:ty),*) => {
            match kept.data_type() {
                DataType::Boolean => Tensor::from_vec(kept.as_boolean().values().iter().collect::<Vec<bool>>(), [rows]),
                $(t if *t == <$of>::DATA_TYPE => Tensor::from_slice(kept.as_primitive::<$of>().values(), [rows]),)*
                DataType::FixedSizeBinary(2) => {
                    Tensor::from_bytes(DType::BF16, [rows], kept.as_fixed_size_binary().value_data())
                }
                other => panic!("{other}"),
            }
        };
    }
    numbers!(tensor).unwrap()
}

/// A table `t` of these columns, `c0`, `c1` … and the row's number `row`, divided into partitions of batches.
pub fn table(session: &SessionContext, columns: &[ArrayRef], partitions: usize, batch: usize) -> Result<()> {
    let rows = columns[0].len();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    let mut all = vec![("row".to_string(), numbers)];
    all.extend(columns.iter().enumerate().map(|(i, c)| (format!("c{i}"), c.clone())));
    let fields: Vec<Field> =
        all.iter().map(|(name, c)| Field::new(name, c.data_type().clone(), c.null_count() > 0)).collect();
    let schema = Arc::new(Schema::new(fields));
    let whole = RecordBatch::try_new(schema.clone(), all.into_iter().map(|(_, c)| c).collect())?;
    let mut parts = vec![Vec::new(); partitions];
    let mut start = 0;
    while start < rows {
        let n = batch.min(rows - start);
        // Slices: their offsets are no multiples of eight.
        parts[(start / batch) % partitions].push(whole.slice(start, n));
        start += n;
    }
    session.register_table("t", Arc::new(MemTable::try_new(schema, parts)?))?;
    Ok(())
}

pub fn config(partitions: usize, batch: usize) -> SessionConfig {
    SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch)
}

/// The first column of a query's result.
pub async fn values(session: &SessionContext, query: &str) -> Result<ArrayRef> {
    let frame = session.sql(query).await?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await?;
    Ok(datafusion::arrow::compute::concat_batches(&schema, &batches)?.column(0).clone())
}
