//! The last stage of reading an expression: its steps become nodes of a program, or eager values.
//!
//! Guarantees: a text with a mistake builds nothing. Steps are built in the order in which they were read. An eager
//! value is dropped after its last use. Does not: read tokens.

use super::lex::Span;
use super::{Applied, Attrs, Operand, Parsed, Parser, Term, Value, shown};
use crate::base::scalar::Scalar;
use crate::graph::var::{Mode, Var};

impl<M: Mode> Parser<'_, '_, M> {
    /// The value of a text that consists of one constant.
    pub(super) fn constant(mut self) -> Parsed<Scalar> {
        let end = self.read()?;
        self.closed()?;
        match (self.values.pop(), &self.target) {
            (Some((Value::Constant(s), _)), None) if self.locals.is_empty() => Ok(s),
            (value, _) => Err(value.map_or(end, |(_, at)| at).syntax("this is not a constant")),
        }
    }

    /// Checks that all parentheses are closed, and builds the steps in order.
    pub(super) fn finish(mut self, span: Span) -> Parsed<Var<M>> {
        self.closed()?;
        if let Some((name, at)) = self.target {
            let d = at.syntax("the expression ends with an assignment: it has no result");
            return Err(d.help(format!("append the result: `; {}`", shown(&name))));
        }
        self.used()?;
        let root = self.root(span)?;
        self.build(&[root], span)?.pop().ok_or_else(|| span.syntax("the expression is empty"))
    }

    /// Like [`finish`](Parser::finish). If the text ends with an assignment, the results are the names that are assigned
    /// and not used, in their order.
    pub(super) fn finish_named(mut self, span: Span) -> Parsed<Vec<(Option<String>, Var<M>)>> {
        if self.target.is_none() {
            return Ok(vec![(None, self.finish(span)?)]);
        }
        self.assign()?;
        let mut results: Vec<_> = self.locals.iter().filter(|(_, l)| !l.used).collect();
        results.sort_by_key(|(_, l)| l.at.start);
        let (mut names, mut roots) = (Vec::with_capacity(results.len()), Vec::with_capacity(results.len()));
        for (name, local) in results {
            let Value::Term(root) = local.value else {
                return Err(local.at.syntax(format!("the result `{}` is a constant: it uses no input", shown(name))));
            };
            names.push(Some(name.clone()));
            roots.push(root);
        }
        Ok(names.into_iter().zip(self.build(&roots, span)?).collect())
    }

    /// Refuses a name that is assigned and not used.
    fn used(&self) -> Parsed<()> {
        match self.locals.iter().filter(|(_, l)| !l.used).min_by_key(|(_, l)| l.at.start) {
            Some((name, local)) => Err(local.at.syntax(format!("`{}` is assigned and never used", shown(name)))),
            None => Ok(()),
        }
    }

    /// The value of the whole text.
    fn root(&mut self, span: Span) -> Parsed<Term> {
        match self.values.pop() {
            Some((Value::Term(t), _)) => Ok(t),
            Some((Value::Constant(s), at)) => {
                Err(at.syntax(format!("the expression is the constant {s}: it uses no input")))
            }
            None => Err(span.syntax("the expression is empty")),
        }
    }

    /// Builds the steps in order. Returns the values of `roots`.
    fn build(self, roots: &[Term], span: Span) -> Parsed<Vec<Var<M>>> {
        if self.handles.is_empty() {
            return Err(span.syntax("the expression casts constants alone: it uses no input"));
        }
        // The number of uses of each step. An eager value is dropped after its last use.
        let mut uses = vec![0u32; self.steps.len()];
        for term in self.steps.iter().flat_map(|s| s.operands.iter().flatten()).chain(roots) {
            if let Term::Step(i) = term {
                uses[*i as usize] += 1;
            }
        }
        let mut built: Vec<Option<Var<M>>> = Vec::with_capacity(self.steps.len());
        let mut take = |built: &mut Vec<Option<Var<M>>>, i: u32| {
            let left = uses.get_mut(i as usize)?;
            *left -= 1;
            let value = built.get_mut(i as usize)?;
            if *left == 0 { value.take() } else { value.clone() }
        };
        for step in &self.steps {
            let mut operands = Vec::with_capacity(3);
            for term in step.operands.iter().flatten() {
                operands.extend(match *term {
                    Term::Handle(i) => self.handles.get(i as usize).map(|v| Operand::Var(v.clone())),
                    Term::Step(i) => take(&mut built, i).map(Operand::Var),
                    Term::Constant(i) => self.constants.get(i as usize).map(|s| Operand::Scalar(*s)),
                });
            }
            let location = self.known.place.clone().unwrap_or_else(|| step.span.location());
            built.push(match (&step.what, &operands[..], self.handles.first()) {
                (Applied::Generator(generator), [Operand::Var(like)], _) => {
                    Some(M::generate(&like.0, *generator, location))
                }
                (Applied::Blocks(size), [Operand::Var(scale), Operand::Var(like)], _) => {
                    Some(M::blocks(&scale.0, &like.0, size.clone(), location))
                }
                (Applied::Composite(composite), [Operand::Var(first), ..], _) => {
                    Some(M::composite(&first.0, composite, &operands, location))
                }
                (Applied::Generator(_) | Applied::Blocks(_) | Applied::Composite(_), ..) => None,
                (Applied::Op(_, Attrs { dtype: Some(dtype), .. }), [Operand::Scalar(s)], Some(beside)) => {
                    Some(M::scalar(&beside.0, *s, *dtype, location))
                }
                (Applied::Op(op, attrs), ..) => Some(M::apply(*op, &operands, attrs.clone(), location)),
            });
        }
        let value = |root: &Term| match *root {
            Term::Step(i) => take(&mut built, i),
            Term::Handle(i) => self.handles.get(i as usize).cloned(),
            Term::Constant(_) => None,
        };
        let values: Option<Vec<Var<M>>> = roots.iter().map(value).collect();
        values.ok_or_else(|| span.syntax("the expression is empty"))
    }
}
