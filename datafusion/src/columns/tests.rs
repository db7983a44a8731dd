//! Bits and bytes, slices and offsets.

use super::*;

#[test]
fn bits_become_bytes_and_bits_again() {
    for len in [0, 1, 7, 8, 9, 63, 64, 65, 200] {
        let of = |i: usize| i.is_multiple_of(3) || i % 7 == 2;
        let all = BooleanBuffer::collect_bool(len + 5, of);
        for offset in 0..5 {
            let part = all.slice(offset, len);
            let bytes = bytes_of(&part);
            assert_eq!(bytes, (0..len).map(|i| of(i + offset)).collect::<Vec<_>>());
            let again: Vec<u8> = bytes.iter().map(|b| u8::from(*b)).collect();
            assert_eq!(bits_of(&again), part);
        }
    }
}

#[test]
fn numbers_are_read_and_given_where_they_are() {
    let all = PrimitiveArray::<Float32Type>::from_iter_values((0..100).map(|i| i as f32));
    let part = ColumnarValue::Array(Arc::new(all.slice(3, 50)));
    let column = Column::new(&part, DType::F32).unwrap();
    let seen = column.view().unwrap().to_tensor().unwrap();
    assert_eq!(seen.as_slice::<f32>().unwrap(), &all.values()[3..53]);

    let first = seen.as_slice::<f32>().unwrap().as_ptr();
    let array = array_of(seen.clone(), None).unwrap();
    drop(seen);
    assert_eq!(array.as_primitive::<Float32Type>().values().as_ptr(), first);
    assert_eq!(array.as_primitive::<Float32Type>().value(49), 52.0);
}

#[test]
fn a_dictionary_of_one_value_is_a_scalar() {
    use datafusion::arrow::array::DictionaryArray;
    use datafusion::arrow::datatypes::Int32Type;
    let values: ArrayRef = Arc::new(PrimitiveArray::<Float64Type>::from(vec![2.5]));
    let keys = PrimitiveArray::<Int32Type>::from(vec![0; 9]);
    let one = ColumnarValue::Array(Arc::new(DictionaryArray::new(keys, values.clone())));
    let column = Column::new(&one, DType::F64).unwrap();
    assert!(column.is_scalar && column.view().unwrap().shape() == [1]);

    let keys = PrimitiveArray::<Int32Type>::from(vec![Some(0), None, Some(0)]);
    let with_null = ColumnarValue::Array(Arc::new(DictionaryArray::new(keys, values)));
    let column = Column::new(&with_null, DType::F64).unwrap();
    assert!(!column.is_scalar && column.validity().unwrap().null_count() == 1);
}
