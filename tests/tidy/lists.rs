//! Lists of an enum's variants: the constants `ALL` of `src/`.
//!
//! Guarantees: a variant that its list lacks is found, as the compiler does not. Does not: look into macros, which make a list and
//! its enum of one text.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Expr, ImplItemConst, ItemEnum, ItemImpl, Type};

/// Enums, and what the lists in the files name.
#[derive(Default)]
struct Lists {
    enums: BTreeMap<String, BTreeSet<String>>,
    lists: BTreeMap<String, BTreeSet<String>>,
    /// The type whose `impl` is visited.
    of: String,
}

impl<'ast> Visit<'ast> for Lists {
    fn visit_item_enum(&mut self, e: &'ast ItemEnum) {
        self.enums.insert(e.ident.to_string(), e.variants.iter().map(|v| v.ident.to_string()).collect());
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        if let Type::Path(path) = &*block.self_ty {
            self.of = path.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        }
        visit::visit_item_impl(self, block);
    }

    fn visit_impl_item_const(&mut self, c: &'ast ImplItemConst) {
        let value = if let Expr::Reference(to) = &c.expr { &*to.expr } else { &c.expr };
        let (true, Expr::Array(list)) = (c.ident == "ALL", value) else { return };
        let named = |e: &Expr| match e {
            Expr::Path(path) => path.path.segments.last().map(|s| s.ident.to_string()),
            _ => None,
        };
        self.lists.insert(self.of.clone(), list.elems.iter().filter_map(named).collect());
    }
}

/// The lists of the files: the enum, the variants that its list lacks.
pub fn lacking(files: &[(String, String)]) -> Vec<(String, Vec<String>)> {
    let mut all = Lists::default();
    for (file, text) in files {
        all.visit_file(&syn::parse_file(text).unwrap_or_else(|e| panic!("{file}: {e}")));
    }
    let Lists { enums, lists, .. } = all;
    let of = |(name, list): (String, BTreeSet<String>)| {
        let variants = enums.get(&name)?;
        Some((name, variants.difference(&list).cloned().collect()))
    };
    lists.into_iter().filter_map(of).collect()
}
