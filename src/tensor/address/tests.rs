//! Layouts at addresses: what is refused, and where elements are.

use super::*;

fn refused(made: Result<impl fmt::Debug>) -> String {
    match made.unwrap_err() {
        Error::Shape(text) => text,
        other => panic!("{other}"),
    }
}

#[test]
fn layouts_that_no_memory_has_are_refused() {
    let new = |shape: &[usize], strides: &[isize]| refused(TensorLayout::new(DType::F64, shape, strides));
    assert_eq!(new(&[2, 3], &[3]), "1 strides for the shape [2, 3], which has 2 dims");
    assert!(new(&[2], &[isize::MAX]).ends_with(&format!("span {} bytes", (isize::MAX as i128 + 1) * 8)));
    assert!(new(&[2, 2], &[isize::MIN, isize::MIN]).contains("span"));
    assert!(new(&[3], &[isize::MAX / 8]).contains("span"));
    assert!(TensorLayout::new(DType::F64, [usize::MAX], &[0]).is_err());
    // The strides of dims of one element do not matter, nor do those of no elements.
    for (shape, strides) in [(&[1, 1][..], &[isize::MAX, isize::MIN][..]), (&[0, 5], &[isize::MAX, 1]), (&[], &[])] {
        let layout = TensorLayout::new(DType::F64, shape, strides).unwrap();
        assert!(layout.distinct && layout.before == 0 && layout.bytes <= 8, "{layout:?}");
    }
}

#[test]
fn null_pointers_have_no_elements() {
    let (some, none) = (TensorLayout::contiguous(DType::I32, [3]), TensorLayout::new(DType::I32, [0, 3], &[7, 7]));
    let (some, none) = (some.unwrap(), none.unwrap());
    let text = "a null pointer for i32[3], which has 3 elements";
    // SAFETY: null pointers are refused, or there are no elements.
    unsafe {
        assert_eq!(refused(some.over(std::ptr::null())), text);
        assert_eq!(refused(some.over_mut(std::ptr::null_mut())), text);
        assert_eq!(none.over(std::ptr::null()).unwrap().to_tensor().unwrap().shape(), [0, 3]);
        assert_eq!(none.over_mut(std::ptr::null_mut()).unwrap().shape(), [0, 3]);
    }
}

/// All layouts of few small dims and strides: one that is called distinct has no two elements at one address, and those of
/// slices and permutations of arrays are.
#[test]
fn elements_of_distinct_layouts_do_not_overlap() {
    let mut found = [0; 2];
    for shape in [[2usize, 3], [3, 2], [1, 4], [4, 1], [3, 3]] {
        for strides in (-7..=7).flat_map(|a| (-7..=7).map(move |b| [a, b])) {
            let layout = TensorLayout::new(DType::U8, shape, &strides).unwrap();
            let mut at: Vec<isize> = crate::tensor::raw::offsets(&layout.layout, 0).collect();
            assert_eq!(at.iter().min(), Some(&-(layout.before as isize)));
            assert_eq!((at.iter().max().unwrap() - at.iter().min().unwrap() + 1) as usize, layout.bytes);
            at.sort_unstable();
            at.dedup();
            assert!(!layout.distinct || at.len() == layout.layout.elements, "{shape:?} {strides:?}");
            found[usize::from(layout.distinct)] += 1;
        }
    }
    assert!(found.iter().all(|n| *n > 100), "{found:?}");
    for (shape, strides) in [([2, 3], [1, 2]), ([2, 3], [-9, 3]), ([3, 2], [4, -2]), ([2, 2], [1, 100])] {
        assert!(TensorLayout::new(DType::U8, shape, &strides).unwrap().distinct, "{shape:?} {strides:?}");
    }
    let repeated = TensorLayout::new(DType::U8, [2, 3], &[0, 1]).unwrap();
    let mut memory = [0u8; 3];
    // SAFETY: the layout is refused.
    let made = unsafe { repeated.over_mut(memory.as_mut_ptr()) };
    assert_eq!(refused(made), "elements of u8[2, 3] with strides [0, 1] may overlap");
}
