//! What accumulators share.

use castwise::Rules;

use super::*;

#[test]
fn accumulators_of_the_same_dtypes_share_a_reduction() {
    let source = Source::expression("amax(a * 2)", Rules::Torch).unwrap();
    let aggregate = Aggregate { name: "most".into(), source, signature: as_they_are(), first: First::new() };
    let of = |dtype| [Arc::new(Field::new("a", dtype, true))];
    let floats = aggregate.reduction(&of(DataType::Float32)).unwrap();
    assert!(Arc::ptr_eq(&floats, &aggregate.reduction(&of(DataType::Float32)).unwrap()));
    let integers = aggregate.reduction(&of(DataType::Int64)).unwrap();
    assert_ne!(integers.compiled.dtype, floats.compiled.dtype);
    assert!(Arc::ptr_eq(&floats, &aggregate.reduction(&of(DataType::Float32)).unwrap()));
}
