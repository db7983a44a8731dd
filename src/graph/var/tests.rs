//! The page of methods has every method of the table.

use crate::ops::for_each_op;

macro_rules! define_names {
    ($(
        #[doc = $doc:literal]
        $variant:ident { method: $method:ident, $($column:tt)* }
        { $($math:tt)* }
    )*) => {
        /// The methods of the rows.
        const METHODS: &[&str] = &[$(stringify!($method)),*];
    };
}
for_each_op!(define_names);

#[test]
fn every_method_has_an_example_on_its_page() {
    let page = include_str!("../../../docs/methods.md");
    // Rows of tests, and those that `cast` and `view_as` apply.
    let hidden = |m: &str| m.starts_with("toy_") || ["cast_to", "view_bits"].contains(&m);
    let missing: Vec<_> = METHODS.iter().filter(|m| !hidden(m) && !page.contains(&format!(".{m}("))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
