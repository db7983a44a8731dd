//! `castwise grad`: the gradients of an expression or a program, as a program.
//!
//! Guarantees: what is printed is a program that `castwise run` runs; a result that is not 0-d and real gets a placeholder for its cotangent. Does
//! not: compute.

use std::collections::HashSet;

use castwise::shape::{Dim, Dims, SymDim};
use castwise::{Program, Var};

use super::args::Grad;
use super::failure::{Failure, print};
use super::plan::prepare;
use super::report;
use super::source::{self, Asked, Source};

pub(super) fn run(arguments: &Grad) -> Result<(), Failure> {
    let expression = match source::asked(&arguments.expression)? {
        Asked::Program(file) => {
            let source = Source::of(&arguments.common, file)?;
            let program = source.program()?;
            source.typed(&program)?;
            let results = source::results(&program);
            return print(&gradients(arguments, &program, &results, &|e| source.failure(e))?);
        }
        Asked::Expression(text) => text,
    };
    let work = prepare(&arguments.common, &[], Some(expression))?;
    work.tell(false);
    let mut text = String::new();
    for kind in work.kinds()? {
        let Some(first) = kind.first() else { continue };
        let (plan, e) = work.of(first);
        let heading = work.heading(&kind);
        if !heading.is_empty() {
            text += &format!("; {heading}");
        }
        let vars = plan.named_vars();
        let alone = vars.len() == 1;
        let name = |i: usize| if alone { "out".to_string() } else { format!("out{i}") };
        let named = vars.into_iter().enumerate();
        let results: Vec<(String, Var)> = named.map(|(i, (own, v))| (own.unwrap_or_else(|| name(i)), v)).collect();
        let failure =
            |error: &castwise::Error| Failure { text: report::of_expression(&e.text, &e.path, error, &[]), code: 1 };
        text += &gradients(arguments, &plan.program, &results, &failure)?;
    }
    print(&text)
}

/// Takes a name that is not taken yet: this one, or the first that is free when `other` is applied to it again and again.
fn free(mut name: String, taken: &mut HashSet<String>, other: impl Fn(&str) -> String) -> String {
    while !taken.insert(name.clone()) {
        name = other(&name);
    }
    name
}

/// The program with the gradients of its results.
fn gradients(
    arguments: &Grad,
    program: &Program,
    results: &[(String, Var)],
    failure: &dyn Fn(&castwise::Error) -> Failure,
) -> Result<String, Failure> {
    let typed = program.infer().map_err(|e| failure(&e))?;
    let of = |name: &String| {
        let found = program.feed(name).map(|v| (name.clone(), v));
        found.ok_or_else(|| Failure::usage(format!("--wrt: no input has the name `{}`", report::escaped(name))))
    };
    let mut known = HashSet::new();
    if let Some(twice) = arguments.wrt.iter().find(|name| !known.insert(*name)) {
        return Err(Failure::usage(format!("--wrt: `{}` is given twice", report::escaped(twice))));
    }
    let wrt: Vec<(String, Var)> = match arguments.wrt.is_empty() {
        false => arguments.wrt.iter().map(of).collect::<Result<_, _>>()?,
        true => {
            let all = program.feed_names().into_iter().filter_map(|n| program.feed(&n).map(|v| (n, v)));
            all.filter(|(_, v)| typed.dtype(v).is_some_and(|d| !d.is_integral())).collect()
        }
    };
    if wrt.is_empty() {
        return Err(Failure::usage("no input is a float or complex number"));
    }
    let mut cotangents = Vec::new();
    let mut inputs: HashSet<String> = program.feed_names().into_iter().collect();
    for (i, (_, v)) in results.iter().enumerate() {
        let (shape, dtype) = (typed.shape(v).unwrap_or_default(), typed.dtype(v));
        cotangents.push(match dtype {
            Some(d) if !d.is_integral() && (!shape.is_empty() || d.is_complex()) => {
                let dim = |d: &SymDim| if let SymDim::Fixed(n) = d { Dim::Fixed(*n) } else { Dim::Dynamic };
                let name = if results.len() == 1 { "cotangent".to_string() } else { format!("cotangent{i}") };
                let name = free(name, &mut inputs, |taken| format!("{taken}_"));
                Some(program.data(&name, d, Dims(shape.iter().map(dim).collect())))
            }
            _ => None,
        });
    }
    let losses: Vec<&Var> = results.iter().map(|(_, v)| v).collect();
    let of: Vec<&Var> = wrt.iter().map(|(_, v)| v).collect();
    let given: Vec<Option<&Var>> = cotangents.iter().map(Option::as_ref).collect();
    let made = program.gradients(&losses, &of, &given).map_err(|e| failure(&e))?;
    let mut taken: HashSet<String> = results.iter().map(|(n, _)| n.clone()).collect();
    let name = |(n, _): &(String, Var)| free(format!("grad {n}"), &mut taken, |taken| format!("grad {taken}"));
    let names: Vec<String> = wrt.iter().map(name).collect();
    let named = results.iter().map(|(n, v)| (n.as_str(), v)).chain(names.iter().map(String::as_str).zip(&made));
    program.set_fetches(named).map_err(|e| failure(&e))?;
    if !arguments.explain {
        return Ok(program.to_string());
    }
    let typed = program.infer().map_err(|e| failure(&e))?;
    Ok(typed.explain())
}
