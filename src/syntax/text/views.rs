//! Reads views: `slice %0 {dim = 0, start = 1, end = -1, step = 2}`.
//!
//! Guarantees: every attribute of the view is there once, and no other. Does not: check dims and bounds.

use std::sync::Arc;

use petgraph::graph::NodeIndex;

use super::lex::{Span, Token};
use super::parse::{Parsed, Reader, expected};
use crate::base::error::shown;
use crate::base::view::{Slice, View};

/// The attributes that were read.
#[derive(Default)]
struct Given {
    dim: Option<i64>,
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
    list: Option<Arc<[i64]>>,
}

/// The attributes of a view of this name: those that must be there, and others.
fn attributes(name: &str) -> (&'static str, &'static [&'static str]) {
    match name {
        "transpose" | "permute" | "flip" => ("dims", &[]),
        "expand" | "reshape" => ("shape", &[]),
        "slice" => ("dim", &["start", "end", "step"]),
        _ => ("dim", &[]),
    }
}

impl<'t> Reader<'t> {
    /// Reads a view's operand and attributes after its name.
    pub(super) fn view(&mut self, name: &str, at: Span) -> Parsed<(View, NodeIndex)> {
        self.mark(b'%')?;
        let from = self.value();
        let given = self.given(name)?;
        let wanted = attributes(name).0;
        let missing = || at.to(self.last()).syntax(format!("`{name}` has no `{wanted}`"));
        let Given { dim, start, end, step, list } = given;
        let view = match (name, dim, list) {
            ("unsqueeze", Some(dim), _) => View::Unsqueeze(dim),
            ("squeeze", Some(dim), _) => View::Squeeze(dim),
            ("slice", Some(dim), _) => View::Slice(dim, Slice { start, end, step: step.unwrap_or(1) }),
            ("permute", _, Some(dims)) => View::Permute(dims),
            ("flip", _, Some(dims)) => View::Flip(dims),
            ("expand", _, Some(shape)) => View::Expand(shape),
            ("reshape", _, Some(shape)) => View::Reshape(shape),
            ("transpose", _, Some(dims)) => match *dims {
                [a, b] => View::Transpose(a, b),
                _ => return Err(at.to(self.last()).syntax("`transpose` swaps two dims").into()),
            },
            _ => return Err(missing().into()),
        };
        Ok((view, from?))
    }

    fn given(&mut self, name: &str) -> Parsed<Given> {
        let (wanted, others) = attributes(name);
        let mut given = Given::default();
        self.mark(b'{')?;
        loop {
            let (key, span) = self.word("an attribute")?;
            if key != wanted && !others.contains(&key) {
                let all: Vec<&str> = std::iter::once(&wanted).chain(others).copied().collect();
                let d = span.syntax(format!("unknown attribute `{}` of `{name}`", shown(key)));
                return Err(d.help(format!("it takes {}", all.join(", "))).into());
            }
            self.mark(b'=')?;
            let twice = match key {
                "dims" | "shape" => {
                    let list = self.list(|reader| Ok(reader.of::<i64>("a number")?.0))?;
                    given.list.replace(list.into()).is_some()
                }
                _ => {
                    let number = self.of("a number")?.0;
                    let slot = match key {
                        "start" => &mut given.start,
                        "end" => &mut given.end,
                        "step" => &mut given.step,
                        _ => &mut given.dim,
                    };
                    slot.replace(number).is_some()
                }
            };
            if twice {
                return Err(span.syntax(format!("`{key}` is given twice")).into());
            }
            match self.next()? {
                (Token::Mark(b','), _) => {}
                (Token::Mark(b'}'), _) => return Ok(given),
                (found, span) => return Err(expected("`,` or `}`", &found, span).into()),
            }
        }
    }
}
