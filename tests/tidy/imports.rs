//! The imports of a crate's sources as a graph of files: `use` items and paths in code, outside of tests.
//!
//! An import is attributed to the file that defines the name, so re-exports are followed. Declarations and re-exports
//! of a parent's own children (`pub use child::Item`) are not imports unless the parent's code uses the name. Tokens
//! inside macros are searched for paths that begin with `crate`, `$crate`, `self`, `super` or an imported name. Does
//! not: find methods, fields and associated items (their type is imported), or names that macros generate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, Visibility};

/// A module's path from the root of the crate.
type Name = Vec<String>;

#[derive(Default)]
struct Module {
    file: String,
    defined: BTreeSet<String>,
    /// The names that its imports bind, with their absolute paths.
    bound: BTreeMap<String, Name>,
    globs: Vec<Name>,
    /// The paths in `use` items and in code, with their first names resolved.
    paths: Vec<Name>,
}

/// The modules of a crate and their imports.
pub struct Imports {
    modules: BTreeMap<Name, Module>,
    /// For each file, the files whose items it names, each with one such path.
    pub edges: BTreeMap<String, BTreeMap<String, String>>,
}

fn is_test(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|a| {
        a.path().is_ident("test")
            || a.path().is_ident("cfg") && a.parse_args::<syn::Path>().is_ok_and(|p| p.is_ident("test"))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(x) => &x.attrs,
        Item::Enum(x) => &x.attrs,
        Item::Fn(x) => &x.attrs,
        Item::Impl(x) => &x.attrs,
        Item::Macro(x) => &x.attrs,
        Item::Mod(x) => &x.attrs,
        Item::Static(x) => &x.attrs,
        Item::Struct(x) => &x.attrs,
        Item::Trait(x) => &x.attrs,
        Item::Type(x) => &x.attrs,
        Item::Use(x) => &x.attrs,
        _ => &[],
    }
}

fn defines(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(x) => &x.ident,
        Item::Enum(x) => &x.ident,
        Item::Fn(x) => &x.sig.ident,
        Item::Macro(x) => x.ident.as_ref()?,
        Item::Static(x) => &x.ident,
        Item::Struct(x) => &x.ident,
        Item::Trait(x) => &x.ident,
        Item::Type(x) => &x.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The leaves of a use tree: the path, and the name that it is bound to (`None` for a glob).
fn leaves(tree: &UseTree, prefix: &[String], found: &mut Vec<(Name, Option<String>)>) {
    let with = |s: String| prefix.iter().cloned().chain([s]).collect::<Name>();
    match tree {
        UseTree::Path(p) => leaves(&p.tree, &with(p.ident.to_string()), found),
        UseTree::Name(n) if n.ident == "self" => found.push((prefix.to_vec(), prefix.last().cloned())),
        UseTree::Name(n) => found.push((with(n.ident.to_string()), Some(n.ident.to_string()))),
        UseTree::Rename(r) if r.ident == "self" => found.push((prefix.to_vec(), Some(r.rename.to_string()))),
        UseTree::Rename(r) => found.push((with(r.ident.to_string()), Some(r.rename.to_string()))),
        UseTree::Glob(_) => found.push((prefix.to_vec(), None)),
        UseTree::Group(g) => g.items.iter().for_each(|t| leaves(t, prefix, found)),
    }
}

/// Reads one file, or one inline module in it.
struct Reader<'a> {
    modules: &'a mut BTreeMap<Name, Module>,
    /// The modules that are files.
    files: &'a BTreeMap<Name, String>,
    tests: &'a mut BTreeSet<Name>,
    here: Name,
}

impl Reader<'_> {
    fn module(&mut self) -> &mut Module {
        self.modules.entry(self.here.clone()).or_default()
    }

    /// A path in a macro, which may expand in a nested module.
    fn path_in_macro(&mut self, mut path: Name) {
        if path.first().is_some_and(|s| s == "super")
            && let Some(whole) = self.absolute(&path)
            && !self.files.keys().any(|m| !m.is_empty() && whole.starts_with(m))
        {
            path.remove(0);
        }
        self.path(path);
    }

    /// The absolute form of a path that begins with `crate`, `self`, `super` or a child of this module.
    fn absolute(&self, path: &[String]) -> Option<Name> {
        let first = path.first()?.as_str();
        let supers = path.iter().take_while(|s| *s == "super").count();
        if first == "crate" {
            return Some(path[1..].to_vec());
        }
        if first == "self" || supers > 0 {
            let kept = self.here.len().checked_sub(supers)?;
            return Some(self.here[..kept].iter().chain(&path[supers.max(1)..]).cloned().collect());
        }
        let child: Name = self.here.iter().chain(path).cloned().collect();
        self.files.contains_key(&child[..=self.here.len()]).then_some(child)
    }

    fn path(&mut self, path: Name) {
        let path = self.absolute(&path).unwrap_or_else(|| {
            // This may be a name of this module, whose imports are not known until the whole file has been read.
            self.here.iter().cloned().chain(["?".to_string()]).chain(path).collect()
        });
        self.module().paths.push(path);
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Name = Vec::new();
        let mut colons = 0;
        for t in tokens {
            match t {
                TokenTree::Ident(i) if colons == 2 || path.is_empty() => {
                    path.push(i.to_string());
                    colons = 0;
                }
                TokenTree::Punct(p) if p.as_char() == ':' && !path.is_empty() && colons < 2 => colons += 1,
                other => {
                    if !path.is_empty() {
                        self.path_in_macro(std::mem::take(&mut path));
                    }
                    colons = 0;
                    match other {
                        TokenTree::Ident(i) => path.push(i.to_string()),
                        TokenTree::Group(g) => self.tokens(g.stream()),
                        _ => {}
                    }
                }
            }
        }
        if !path.is_empty() {
            self.path_in_macro(path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            if let Item::Mod(m) = item {
                self.tests.insert(self.here.iter().cloned().chain([m.ident.to_string()]).collect());
            }
            return;
        }
        if let Some(name) = defines(item) {
            self.module().defined.insert(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        if !is_test(&f.attrs) {
            visit::visit_impl_item_fn(self, f);
        }
    }

    fn visit_item_mod(&mut self, m: &'ast ItemMod) {
        self.here.push(m.ident.to_string());
        if m.content.is_some() {
            self.module();
        }
        visit::visit_item_mod(self, m);
        self.here.pop();
    }

    fn visit_item_use(&mut self, u: &'ast ItemUse) {
        let mut found = Vec::new();
        leaves(&u.tree, &[], &mut found);
        for (path, name) in found {
            let Some(path) = self.absolute(&path) else { continue };
            let of_child = !matches!(u.vis, Visibility::Inherited) && path.starts_with(&self.here);
            let named = match name {
                Some(name) => {
                    self.module().bound.insert(name, path.clone());
                    path
                }
                None => {
                    self.module().globs.push(path.clone());
                    path.into_iter().chain(["*".to_string()]).collect()
                }
            };
            if !of_child {
                self.module().paths.push(named);
            }
        }
    }

    fn visit_path(&mut self, p: &'ast syn::Path) {
        self.path(p.segments.iter().map(|s| s.ident.to_string()).collect());
        visit::visit_path(self, p);
    }

    // The path of a visibility is not an import.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        self.path(m.path.segments.iter().map(|s| s.ident.to_string()).collect());
        self.tokens(m.tokens.clone());
    }
}

impl Imports {
    /// Reads the sources of a crate: the module of each file, and its text.
    pub fn read(files: &BTreeMap<Name, (String, String)>) -> Imports {
        let names = files.iter().map(|(m, (f, _))| (m.clone(), f.clone())).collect();
        let (mut modules, mut tests) = (BTreeMap::new(), BTreeSet::new());
        for (module, (file, text)) in files {
            let parsed = syn::parse_file(text).unwrap_or_else(|e| panic!("{file}: {e}"));
            let mut reader = Reader { modules: &mut modules, files: &names, tests: &mut tests, here: module.clone() };
            reader.module();
            reader.visit_file(&parsed);
        }
        modules.retain(|m: &Name, _| !(1..=m.len()).any(|n| tests.contains(&m[..n])));
        for (name, module) in &mut modules {
            // An inline module belongs to the file of its nearest parent that is a file.
            module.file = (0..=name.len()).rev().find_map(|n| names.get(&name[..n])).cloned().unwrap_or_default();
        }
        let mut found = Imports { modules, edges: BTreeMap::new() };
        // The root only names public items.
        let root = names.get(&[][..]).cloned().unwrap_or_default();
        let all: Vec<Name> = found.modules.iter().filter(|(_, m)| m.file != root).map(|(n, _)| n.clone()).collect();
        for name in &all {
            let from = found.modules[name].file.clone();
            let mut to = BTreeMap::new();
            for path in &found.modules[name].paths {
                if let Some(owner) = found.owner(&found.bound(name, path), 0)
                    && owner != from
                {
                    to.entry(owner).or_insert_with(|| path.join("::"));
                }
            }
            found.edges.entry(from).or_default().extend(to);
        }
        found
    }

    /// Resolves a path that begins with a name of its own module by the import of that name.
    fn bound(&self, here: &Name, path: &Name) -> Name {
        let n = here.len();
        if path.get(n).is_none_or(|s| s != "?") {
            return path.clone();
        }
        let Some(b) = path.get(n + 1).and_then(|first| self.modules[here].bound.get(first)) else {
            return here.clone();
        };
        b.iter().chain(&path[n + 2..]).cloned().collect()
    }

    /// The file that defines what a path names.
    fn owner(&self, path: &[String], depth: usize) -> Option<String> {
        if depth > 8 {
            return None;
        }
        let n = (0..=path.len()).rev().find(|n| self.modules.contains_key(&path[..*n]))?;
        let module = &self.modules[&path[..n]];
        if let Some(next) = path.get(n)
            && !module.defined.contains(next)
        {
            if let Some(b) = module.bound.get(next) {
                let whole: Name = b.iter().chain(&path[n + 1..]).cloned().collect();
                return self.owner(&whole, depth + 1);
            }
            for g in &module.globs {
                if self.modules.get(g).is_some_and(|m| m.defined.contains(next)) {
                    return self.owner(g, depth + 1);
                }
            }
        }
        // Only items count as imports of a file. An item of a module is found by its own path.
        (n > 0 && n < path.len()).then(|| module.file.clone())
    }

    /// Groups of files that import each other, directly or indirectly.
    pub fn circles(&self) -> Vec<Vec<String>> {
        let reach = |from: &String| {
            let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
            while let Some(f) = todo.pop() {
                for to in self.edges.get(f).into_iter().flat_map(|e| e.keys()) {
                    if seen.insert(to.clone()) {
                        todo.push(to);
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&String, BTreeSet<String>> = self.edges.keys().map(|f| (f, reach(f))).collect();
        let mut found: Vec<Vec<String>> = Vec::new();
        for (f, seen) in &reached {
            if !seen.contains(*f) || found.iter().any(|c| c.contains(f)) {
                continue;
            }
            found.push(seen.iter().filter(|g| reached.get(g).is_some_and(|r| r.contains(*f))).cloned().collect());
        }
        found
    }
}

/// The module name of a file, by its path in `src/`.
pub fn module_of(path: &Path) -> Name {
    let path = path.with_extension("");
    let mut name: Name = path.iter().map(|s| s.to_string_lossy().into_owned()).collect();
    if name.last().is_some_and(|s| s == "mod" || s == "lib") {
        name.pop();
    }
    name
}
