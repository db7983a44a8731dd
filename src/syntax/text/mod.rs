//! The text form of programs.
//!
//! Guarantees: there is one node per line, and operands precede their uses. Feeds have names, and other nodes are
//! numbered in order. A weak scalar prints as `~1.5`, a typed one as `1.5:f16`; the dtype of a weak tensor as `f32*`. Comments after `;` have the reason and
//! loss of each cast. The text of a [`Program`] has everything but its source locations, and [`Program::parse`]
//! reads it: the program that is read from a text prints as that text. The reader accepts any input, reports several
//! mistakes with their locations, does not recurse, and allocates memory in proportion to the length of the text. Does
//! not: abbreviate (a program of a million nodes prints a million lines), or read the text of a [`TypedProgram`].

use std::fmt;

use crate::base::error::{Name, Quoted};
use crate::base::host::FloatMode;
use crate::base::indexing::Indexing;
use crate::base::scalar::Scalar;
use crate::base::shape::dims_fmt;
use crate::graph::program::{Input, Kind, Program, State};
use crate::graph::typed::{Arg, NodeId, TypedKind, TypedProgram};
use crate::ops::{LossShapes, Op};
use crate::promotion::{CastLoss, Contraction, Reason, Rounding, Rules, Settings, ZeroDivision};
use parse::FORMAT_VERSION;

use petgraph::Direction;
use petgraph::graph::NodeIndex;

mod applied;
mod generators;
mod lex;
mod operands;
pub(crate) mod parse;
mod value;
mod views;

use value::{Constant, Exact};

pub use crate::base::limits::MAX_PROGRAM_TEXT;

/// Writes `program(rules = torch, …) (`.
fn header(f: &mut fmt::Formatter<'_>, settings: Settings) -> fmt::Result {
    write!(f, "program(rules = {}", settings.rules)?;
    if settings.default_dtype != crate::base::dtype::DType::F32 {
        write!(f, ", default = {}", settings.default_dtype)?;
    }
    if settings.rounding != Rounding::Exact {
        write!(f, ", rounding = {}", settings.rounding)?;
    }
    if settings.zero_division != ZeroDivision::Rules {
        write!(f, ", zero_division = {}", settings.zero_division)?;
    }
    if settings.contraction != Contraction::Off {
        write!(f, ", contraction = {}", settings.contraction)?;
    }
    for flag in settings.flags() {
        write!(f, ", {flag} = true")?;
    }
    f.write_str(") (")
}

impl fmt::Display for Program {
    /// Writes the program before inference: only placeholders and constants have dtypes. [`Program::parse`] reads this
    /// text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _standard = FloatMode::standard();
        let state = self.shared.read();
        writeln!(f, "castwise {FORMAT_VERSION}")?;
        header(f, self.settings())?;
        let mut feeds = 0;
        let rules = self.settings().rules;
        for (i, node) in state.nodes.node_weights().enumerate() {
            if let Kind::Data { name, dtype, dims } = &node.kind {
                let star = if state.is_weak(rules, NodeIndex::new(i)) { "*" } else { "" };
                write!(f, "{}%{}: {dtype}{star}{dims}", if feeds == 0 { "" } else { ", " }, Name(name))?;
                feeds += 1;
            }
        }
        f.write_str(") {\n")?;
        let names = program_names(&state);
        for id in state.nodes.node_indices() {
            untyped_line(f, &state, rules, id, &names)?;
        }
        let fetched = state.fetched();
        fetch_line(f, fetched.iter().map(|(name, n)| (name.as_deref(), names[n.index()].as_str())))?;
        f.write_str("}\n")
    }
}

/// The names of the nodes: `%name` for feeds, `%n` for others.
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

fn untyped_line(
    f: &mut fmt::Formatter<'_>,
    state: &State,
    rules: Rules,
    id: NodeIndex,
    names: &[String],
) -> fmt::Result {
    let Some(node) = state.nodes.node_weight(id) else { return Ok(()) };
    let name = &names[id.index()];
    match &node.kind {
        Kind::Data { .. } => Ok(()),
        Kind::Constant(t) => writeln!(f, "  {name} = constant {}", Constant(t, state.is_weak(rules, id))),
        Kind::Poison(d) => {
            write!(f, "  {name} = error {:?} {}", d.kind, Quoted(&d.message))?;
            if let Some(help) = &d.help {
                write!(f, " help {}", Quoted(help))?;
            }
            f.write_str("\n")
        }
        Kind::View(view) => {
            write!(f, "  {name} = {}", view.name())?;
            let operand = state.nodes.neighbors_directed(id, Direction::Incoming).map(|n| names[n.index()].clone());
            comma_list(f, operand)?;
            writeln!(f, " {view}")
        }
        Kind::Blocks(size) => {
            write!(f, "  {name} = blocks")?;
            let operands = state.operands(id).into_iter().flatten().map(|o| match o {
                Input::Node(n) => names[n.index()].clone(),
                Input::Scalar(s) => weak(s),
            });
            comma_list(f, operands)?;
            writeln!(f, " {{size = {size}}}")
        }
        Kind::Generate(generator) => {
            write!(f, "  {name} = {}", generator.name())?;
            let operand = state.nodes.neighbors_directed(id, Direction::Incoming).map(|n| names[n.index()].clone());
            comma_list(f, operand)?;
            let attributes = generator.to_string();
            writeln!(f, "{}{attributes}", if attributes.is_empty() { "" } else { " " })
        }
        Kind::Composite { composite, .. } => {
            write!(f, "  {name} = {}", composite.name())?;
            let operands = state.operands(id).into_iter().flatten().map(|o| match o {
                Input::Node(n) => names[n.index()].clone(),
                Input::Scalar(s) => weak(s),
            });
            comma_list(f, operands)?;
            let attributes = composite.to_string();
            writeln!(f, "{}{attributes}", if attributes.is_empty() { "" } else { " " })
        }
        Kind::Apply { op, attrs, .. } => {
            write!(f, "  {name} = {op}")?;
            let operands = state.operands(id).into_iter().flatten().map(|o| match o {
                Input::Node(n) => names[n.index()].clone(),
                Input::Scalar(s) => weak(s),
            });
            comma_list(f, operands)?;
            let given = [
                attrs.dtype.map(|d| format!("dtype = {d}")),
                attrs.output.then(|| "output".to_string()),
                attrs.axis.map(|a| format!("axis = {a}")),
                attrs.dims.as_ref().map(|d| format!("dims = {d:?}")),
                attrs.keepdim.then(|| "keepdim".to_string()),
                attrs.number.map(|n| format!("{} = {n:?}", op.number_name())),
                attrs.choice.map(|c| format!("{} = {c}", op.def().choice.map_or("choice", |of| of.name))),
                attrs.loss.map(|l| format!("loss = {}", if l == LossShapes::Equal { "equal" } else { "broadcast" })),
            ];
            let given: Vec<String> = given.into_iter().flatten().collect();
            if !given.is_empty() {
                write!(f, " {{{}}}", given.join(", "))?;
            }
            f.write_str("\n")
        }
    }
}

/// A weak scalar. The text preserves every bit.
fn weak(s: Scalar) -> String {
    match s {
        Scalar::Bool(v) => format!("~{v}"),
        Scalar::Int(v) => format!("~{v}"),
        Scalar::Float(v) => format!("~{}", Exact::from(v)),
        Scalar::Complex(v) => format!("~({}, {})", Exact::from(v.re), Exact::from(v.im)),
    }
}

fn comma_list(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = String>) -> fmt::Result {
    for (i, item) in items.enumerate() {
        write!(f, "{} {item}", if i == 0 { "" } else { "," })?;
    }
    Ok(())
}

fn fetch_line<'a>(f: &mut fmt::Formatter<'_>, all: impl Iterator<Item = (Option<&'a str>, &'a str)>) -> fmt::Result {
    let mut any = false;
    for (name, value) in all {
        write!(f, "{} {value}", if any { "," } else { "  fetch" })?;
        if let Some(name) = name {
            write!(f, " as {}", Quoted(name))?;
        }
        any = true;
    }
    if any { f.write_str("\n") } else { Ok(()) }
}

impl fmt::Display for TypedProgram {
    /// Writes every node with its dtype and shape, and every cast with its reason, loss and source location.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _standard = FloatMode::standard();
        header(f, self.settings)?;
        let mut feeds = 0;
        for (i, n) in self.nodes.iter().enumerate() {
            if let TypedKind::Feed(name) = &n.kind {
                let star = if n.weak { "*" } else { "" };
                write!(f, "{}%{}: {}{star}", if feeds == 0 { "" } else { ", " }, Name(name), n.dtype)?;
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
        fetch_line(f, self.fetches().iter().map(|(name, i)| (name.as_deref(), names[*i as usize].as_str())))?;
        f.write_str("}\n")
    }
}

impl TypedProgram {
    /// The names of the nodes: `%name` for feeds, `%n` for others.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut next = 0;
        let name = |n: &crate::graph::typed::TypedNode| match &n.kind {
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
        write!(f, "  {}: {}{}", names[id as usize], n.dtype, if n.weak { "*" } else { "" })?;
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
            TypedKind::Reduce { op, from, axes, keep, number, choice } => {
                let keep = if *keep { ", keepdim" } else { "" };
                write!(f, "{op} {} {{dims = {axes:?}{keep}", names[*from as usize])?;
                if let Some(n) = number {
                    write!(f, ", {} = {n:?}", op.number_name())?;
                }
                if let (Some(of), Some(c)) = (op.def().choice, choice) {
                    write!(f, ", {} = {c}", of.name)?;
                }
                f.write_str("}")?
            }
            TypedKind::Line { op, from, axis, number, choice } => {
                write!(f, "{op} {} {{dims = [{axis}]", names[*from as usize])?;
                if let (Some(of), Some(n)) = (op.def().number, number) {
                    write!(f, ", {} = {n:?}", of.name)?;
                }
                if let (Some(of), Some(c)) = (op.def().choice, choice) {
                    write!(f, ", {} = {c}", of.name)?;
                }
                f.write_str("}")?
            }
            TypedKind::Extent { axes, .. } => write!(f, "extent {axes:?}")?,
            TypedKind::Bits { from } => write!(f, "view_as {}", names[*from as usize])?,
            TypedKind::Indexed { how, from, index, like, axis } => {
                write!(f, "{}", how.name())?;
                let like = (*how != Indexing::Take).then_some(*like);
                let all = std::iter::once(*from).chain(*index).chain(like);
                comma_list(f, all.map(|i| names[i as usize].clone()))?;
                write!(f, " {{dims = [{axis}]{how}}}")?;
            }
            TypedKind::Blocks { from, like, size } => {
                write!(f, "blocks {}, {} {{size = {size}}}", names[*from as usize], names[*like as usize])?;
            }
            TypedKind::Generate { like, generator } => {
                write!(f, "{} {}", generator.name(), names[*like as usize])?;
                let attributes = generator.to_string();
                write!(f, "{}{attributes}", if attributes.is_empty() { "" } else { " " })?;
            }
            TypedKind::View { from, view: None } => write!(f, "view {}", names[*from as usize])?,
            TypedKind::View { from, view: Some(view) } => {
                write!(f, "{} {} {view}", view.name(), names[*from as usize])?
            }
            TypedKind::Cast { from, why } => {
                let before = self.nodes[*from as usize].dtype;
                write!(f, "cast {}          ; {before}", names[*from as usize])?;
                if let Some(other) = why.other {
                    write!(f, " x {other}")?;
                }
                write!(f, " -> {} ({})", n.dtype, why.reason.words(n.dtype))?;
                if why.op != Op::Cast || why.reason != Reason::Requested {
                    write!(f, ", for {}", why.op)?;
                }
                write!(f, " at {}: {}", n.location, CastLoss::of(before, n.dtype))?;
            }
        }
        f.write_str("\n")
    }
}
