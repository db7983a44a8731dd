//! A plan as text.
//!
//! Guarantees: buffers and kernels have a line each, in order. Does not: print what a kernel computes.

use std::fmt;

use super::recompute::Choice;
use super::{Origin, Plan};
use crate::base::error::Name;
use crate::base::shape::dims_text;
use crate::graph::typed::{NodeId, TypedKind};

impl Plan {
    /// The name of a buffer's view and its attributes, as text.
    fn view_text(&self, node: NodeId) -> (&'static str, String) {
        match &self.typed.nodes[node as usize].kind {
            TypedKind::View { view: Some(view), .. } => (view.name(), format!(" {view}")),
            _ => ("view", String::new()),
        }
    }
}

impl Plan {
    /// A line for each value that several kernels of one domain need, which are counted from 0: what it costs to store and to compute
    /// again, and what was decided.
    pub(crate) fn choices_text(&self) -> String {
        let mut text = String::new();
        if !self.choices.is_empty() {
            text += "; values of several kernels: bytes moved for an element if it is stored, or the cost of computing it again\n";
        }
        for c in &self.choices {
            let n = &self.typed.nodes[c.node as usize];
            let name = match n.kind {
                TypedKind::Apply { op, .. } => op.name(),
                TypedKind::Bits { .. } => "bits",
                _ => "cast",
            };
            text += &format!(";   {} {name} at {}: {}\n", n.dtype, n.location, ChoiceText(c));
        }
        text
    }
}

/// What a choice was between, and what it is.
struct ChoiceText<'a>(&'a Choice);

impl fmt::Display for ChoiceText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = self.0;
        match c.again {
            Some(cost) => write!(f, "{} or {cost:.1}:", c.moved)?,
            None => write!(f, "{}, too much to compute again:", c.moved)?,
        }
        let stored = c.anyway || !c.read_in.is_empty();
        let kernels = |what: &str, all: &[u32]| {
            let all: Vec<String> = all.iter().map(|k| format!("kernel {k}")).collect();
            if all.is_empty() { String::new() } else { format!("{what} {}", all.join(" and ")) }
        };
        let said = [
            if stored { "stored".into() } else { String::new() },
            kernels("read by", &c.read_in),
            kernels("computed again by", &c.computed_in),
        ];
        let said: Vec<&str> = said.iter().map(String::as_str).filter(|said| !said.is_empty()).collect();
        write!(f, " {}", said.join(", "))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let typed = &self.typed;
        let dims = |shape: u32| dims_text(&typed.shapes[shape as usize]);
        f.write_str("plan {\n")?;
        for (i, b) in self.buffers.iter().enumerate() {
            write!(f, "  b{i}: {} = ", dims(b.shape))?;
            match &b.origin {
                Origin::Feed(k) => match &typed.nodes[typed.feeds[*k as usize] as usize].kind {
                    TypedKind::Feed(name) => writeln!(f, "feed %{}", Name(name))?,
                    _ => writeln!(f, "feed")?,
                },
                Origin::Constant(t) => writeln!(f, "constant {}", t.dtype())?,
                Origin::Kernel => writeln!(f, "result")?,
                Origin::Extent(shape, axes) => writeln!(f, "extent of dims {axes:?} of {}", dims(*shape))?,
                Origin::Generated(node) => match &typed.nodes[*node as usize].kind {
                    TypedKind::Generate { generator, .. } => writeln!(f, "{} {generator}", generator.name())?,
                    _ => writeln!(f, "generated")?,
                },
                Origin::Blocks(of, node) => match &typed.nodes[*node as usize].kind {
                    TypedKind::Blocks { size, .. } => writeln!(f, "blocks b{of} {{size = {size}}}")?,
                    _ => writeln!(f, "blocks b{of}")?,
                },
                Origin::View(of, node) => {
                    let (name, attributes) = self.view_text(*node);
                    writeln!(f, "{name} b{of}{attributes}")?
                }
            }
        }
        for (i, k) in self.work.iter().enumerate() {
            write!(f, "  kernel {i} over {}", dims(k.shape))?;
            for (n, (b, spread)) in k.inputs.iter().zip(&k.spread).enumerate() {
                write!(f, "{} b{b}{spread}", if n == 0 { ":" } else { "," })?;
            }
            for (n, b) in k.outputs.iter().enumerate() {
                write!(f, "{} b{b}", if n == 0 { " ->" } else { "," })?;
            }
            if let Some((_, how, b)) = self.moved(k) {
                writeln!(f, "; {} -> b{b}", how.name())?;
                continue;
            }
            for (_, b) in &k.folds {
                write!(f, "; dims {:?} -> b{b}", k.reduced.as_deref().unwrap_or_default())?;
            }
            f.write_str("\n")?;
        }
        for b in &self.fetches {
            writeln!(f, "  fetch b{b}")?;
        }
        f.write_str("}\n")
    }
}
