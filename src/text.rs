//! The text form of programs.
//!
//! Guarantees: one node a line, operands before their uses, feeds by name, other nodes numbered in order; a weak
//! scalar prints as `~1.5`, a typed one as `1.5:f16`; comments after `;` carry the reason and loss of each cast.
//! Does not: abbreviate; a program of a million nodes prints a million lines.

use std::fmt;

use crate::error::shown;
use crate::ops::Op;
use crate::program::{Input, Kind, Program, State};
use crate::promotion::{Loss, Reason, Rounding};
use crate::shape::dims_fmt;
use crate::typed::{Arg, NodeId, TypedKind, TypedProgram};

use petgraph::graph::NodeIndex;

/// A feed's name as the text form writes it: bare if it is a plain identifier, else quoted.
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        let plain = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        if plain { f.write_str(self.0) } else { write!(f, "\"{}\"", shown(self.0)) }
    }
}

impl fmt::Display for Program {
    /// The program as written: no dtypes but those of placeholders and constants.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.read();
        write!(f, "program(rules = {}", self.settings().rules)?;
        if self.settings().default_dtype != crate::dtype::DType::F32 {
            write!(f, ", default = {}", self.settings().default_dtype)?;
        }
        if self.settings().rounding != Rounding::Exact {
            write!(f, ", rounding = {}", self.settings().rounding)?;
        }
        f.write_str(") (")?;
        let mut feeds = 0;
        for node in state.nodes.node_weights() {
            if let Kind::Data { name, dtype, dims } = &node.kind {
                write!(f, "{}%{}: {dtype}{dims}", if feeds == 0 { "" } else { ", " }, Name(name))?;
                feeds += 1;
            }
        }
        f.write_str(") {\n")?;
        let names = program_names(&state);
        let mut used = vec![false; names.len()];
        for id in state.nodes.node_indices() {
            for input in state.operands(id).into_iter().flatten() {
                if let Input::Node(n) = input {
                    used[n.index()] = true;
                }
            }
            untyped_line(f, &state, id, &names)?;
        }
        fetch_line(f, (0..names.len()).filter(|i| !used[*i]).map(|i| names[i].as_str()))?;
        f.write_str("}\n")
    }
}

/// `%name` of feeds, `%n` of the rest.
fn program_names(state: &State) -> Vec<String> {
    let mut next = 0;
    state
        .nodes
        .node_weights()
        .map(|n| match &n.kind {
            Kind::Data { name, .. } => format!("%{}", Name(name)),
            _ => {
                next += 1;
                format!("%{}", next - 1)
            }
        })
        .collect()
}

fn untyped_line(f: &mut fmt::Formatter<'_>, state: &State, id: NodeIndex, names: &[String]) -> fmt::Result {
    let Some(node) = state.nodes.node_weight(id) else { return Ok(()) };
    let name = &names[id.index()];
    match &node.kind {
        Kind::Data { .. } => Ok(()),
        Kind::Constant(t) => writeln!(f, "  {name} = constant {t:?}"),
        Kind::Poison(d) => writeln!(f, "  {name} = error ; {}", d.message),
        Kind::Apply { op, attrs, .. } => {
            write!(f, "  {name} = {op}")?;
            let operands = state.operands(id).into_iter().flatten().map(|o| match o {
                Input::Node(n) => names[n.index()].clone(),
                Input::Scalar(s) => format!("~{s}"),
            });
            comma_list(f, operands)?;
            let given = [
                attrs.dtype.map(|d| format!("dtype = {d}")),
                attrs.axis.map(|a| format!("axis = {a}")),
                attrs.dims.as_ref().map(|d| format!("dims = {d:?}")),
                attrs.keepdim.then(|| "keepdim".to_string()),
            ];
            let given: Vec<String> = given.into_iter().flatten().collect();
            if !given.is_empty() {
                write!(f, " {{{}}}", given.join(", "))?;
            }
            f.write_str("\n")
        }
    }
}

fn comma_list(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = String>) -> fmt::Result {
    for (i, item) in items.enumerate() {
        write!(f, "{} {item}", if i == 0 { "" } else { "," })?;
    }
    Ok(())
}

fn fetch_line<'a>(f: &mut fmt::Formatter<'_>, sinks: impl Iterator<Item = &'a str>) -> fmt::Result {
    let all: Vec<&str> = sinks.collect();
    if all.is_empty() { Ok(()) } else { writeln!(f, "  fetch {}", all.join(", ")) }
}

impl fmt::Display for TypedProgram {
    /// Every node with dtype and shape; every cast with rule, loss and place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "program(rules = {}", self.settings.rules)?;
        if self.settings.default_dtype != crate::dtype::DType::F32 {
            write!(f, ", default = {}", self.settings.default_dtype)?;
        }
        if self.settings.rounding != Rounding::Exact {
            write!(f, ", rounding = {}", self.settings.rounding)?;
        }
        f.write_str(") (")?;
        let mut feeds = 0;
        for (i, n) in self.nodes.iter().enumerate() {
            if let TypedKind::Feed(name) = &n.kind {
                write!(f, "{}%{}: {}", if feeds == 0 { "" } else { ", " }, Name(name), n.dtype)?;
                dims_fmt(self.shape_of(i as u32), f)?;
                feeds += 1;
            }
        }
        f.write_str(") {\n")?;
        let names = self.names();
        for (i, n) in self.nodes.iter().enumerate() {
            if !matches!(n.kind, TypedKind::Feed(_)) {
                self.line(f, i as u32, &names)?;
            }
        }
        fetch_line(f, self.sinks().into_iter().map(|i| names[i as usize].as_str()))?;
        f.write_str("}\n")
    }
}

impl TypedProgram {
    /// `%name` of feeds, `%n` of the rest.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut next = 0;
        let name = |n: &crate::typed::TypedNode| match &n.kind {
            TypedKind::Feed(name) => format!("%{}", Name(name)),
            _ => {
                next += 1;
                format!("%{}", next - 1)
            }
        };
        self.nodes.iter().map(name).collect()
    }

    fn line(&self, f: &mut fmt::Formatter<'_>, id: NodeId, names: &[String]) -> fmt::Result {
        let n = &self.nodes[id as usize];
        write!(f, "  {}: {}", names[id as usize], n.dtype)?;
        dims_fmt(self.shape_of(id), f)?;
        f.write_str(" = ")?;
        match &n.kind {
            TypedKind::Feed(_) => f.write_str("feed")?,
            TypedKind::Constant(t) => write!(f, "constant {t:?}")?,
            TypedKind::Apply { op, args, .. } => {
                write!(f, "{op}")?;
                comma_list(
                    f,
                    args.iter().flatten().map(|a| match a {
                        Arg::Node(i) => names[*i as usize].clone(),
                        Arg::Scalar(s, d) => format!("{s}:{d}"),
                    }),
                )?;
            }
            TypedKind::Reduce { op, from, axes, keep } => {
                write!(f, "{op} {} {{dims = {axes:?}{}}}", names[*from as usize], if *keep { ", keepdim" } else { "" })?
            }
            TypedKind::Bits { from } => write!(f, "view_as {}", names[*from as usize])?,
            TypedKind::View { from } => write!(f, "view {}", names[*from as usize])?,
            TypedKind::Cast { from, why } => {
                let before = self.nodes[*from as usize].dtype;
                write!(f, "cast {}          ; {before}", names[*from as usize])?;
                if let Some(other) = why.other {
                    write!(f, " x {other}")?;
                }
                write!(f, " -> {} ({})", n.dtype, why.reason)?;
                if why.op != Op::Cast || why.reason != Reason::Requested {
                    write!(f, ", for {}", why.op)?;
                }
                write!(f, " at {}: {}", n.place, Loss::of(before, n.dtype))?;
            }
        }
        f.write_str("\n")
    }
}
