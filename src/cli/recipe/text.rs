//! The text of a recipe: its declarations and statements.
//!
//! Guarantees: an error names the file and the line. Does not: read expressions (`expand` writes them, the library reads
//! them).

use std::path::PathBuf;

use castwise::DType;

use super::super::failure::Failure;
use super::super::report;
use super::super::spec::Rename;
use super::super::values;
use super::setting::{Number, Setting};
use super::shipped;

/// The most parentheses in each other.
const NESTING: i32 = 64;

/// A recipe.
#[derive(Debug, Default)]
pub(in crate::cli) struct Recipe {
    /// The name after `@`.
    pub(in crate::cli) name: String,
    /// The whole text, with what it includes.
    pub(in crate::cli) text: String,
    /// Where it is from, unless castwise has it.
    pub(super) file: Option<PathBuf>,
    /// The first comment.
    pub(in crate::cli) summary: String,
    pub(super) roles: Vec<Role>,
    pub(super) models: Option<Models>,
    pub(in crate::cli) parameters: Vec<Parameter>,
    pub(super) numbers: Vec<Indexed>,
    pub(super) requires: Vec<Require>,
    pub(super) statements: Vec<Indexed>,
    pub(super) result: String,
    /// Inputs that are siblings of others' tensors, where there are any.
    pub(in crate::cli) siblings: Vec<(String, Rename)>,
    /// T, if no other dtype is given.
    pub(super) dtype: Option<DType>,
    /// Whether inputs may be 8-bit floats, whose values are used as they are.
    pub(super) takes_f8: bool,
}

/// An input that a recipe names.
#[derive(Debug)]
pub(super) struct Role {
    pub(super) name: String,
    /// Whether there is one for each model: `NAME.MODEL`.
    pub(super) each: bool,
    pub(super) optional: bool,
    /// What it is, and where it is used.
    pub(super) doc: String,
}

/// The inputs that are models: all others.
#[derive(Debug)]
pub(super) struct Models {
    /// The name of a model's tensor.
    pub(super) name: String,
    pub(super) least: usize,
    pub(super) most: usize,
}

/// A parameter.
#[derive(Debug)]
pub(in crate::cli) struct Parameter {
    pub(in crate::cli) name: String,
    /// Whether each model has its own.
    pub(in crate::cli) each: bool,
    pub(in crate::cli) default: Default_,
    /// What it means.
    pub(in crate::cli) doc: String,
}

impl Parameter {
    /// A setting as this parameter takes it: one that is true or false by default takes no other number.
    pub(in crate::cli) fn takes(&self, setting: Setting) -> Result<Setting, String> {
        match self.default {
            Default_::Where(Number::Bool(_)) | Default_::Unless(Number::Bool(_)) => setting.truth(),
            _ => setting.number(),
        }
    }
}

/// The value of a parameter that is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::cli) enum Default_ {
    /// It must be given.
    None,
    /// Where no value applies to a tensor.
    Where(Number),
    /// If it is not given at all.
    Unless(Number),
}

/// A name, its index if it has one, and what it is.
#[derive(Debug)]
pub(super) struct Indexed {
    pub(super) name: String,
    pub(super) index: Index,
    pub(super) text: String,
    /// Whether an input of this name replaces it.
    pub(super) unless_given: bool,
}

/// Which statements a name with an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    None,
    /// `[i]`: one for each model.
    Each,
    /// `[0]`: before the first.
    Zero,
}

/// A condition on parameters.
#[derive(Debug)]
pub(super) struct Require {
    pub(super) condition: String,
    pub(super) each: bool,
    pub(super) message: String,
}

/// The error for a line of a recipe.
pub(super) fn fault(path: &str, line: usize, message: &str) -> Failure {
    Failure { text: report::error(&format!("{}:{line}: {message}", report::escape_controls(path))), code: 1 }
}

impl Recipe {
    /// Reads a recipe. `path` is for errors.
    pub(super) fn read(name: &str, path: &str, text: &str) -> Result<Recipe, Failure> {
        let mut recipe = Recipe { name: name.to_string(), ..Recipe::default() };
        recipe.lines(path, text)?;
        if recipe.result.is_empty() {
            return Err(fault(path, text.lines().count(), "a recipe ends with an expression, its result"));
        }
        Ok(recipe)
    }

    fn lines(&mut self, path: &str, text: &str) -> Result<(), Failure> {
        let mut lines = text.lines().enumerate().peekable();
        while let Some((at, line)) = lines.next() {
            if let Some(comment) = line.strip_prefix('#') {
                if self.summary.is_empty() {
                    self.summary = comment.trim().to_string();
                }
                self.keep(line);
                continue;
            }
            if let Some(other) = line.strip_prefix("include ") {
                let shared = shipped::shared(other.trim());
                let shared = shared.ok_or_else(|| fault(path, at + 1, "there is nothing of this name to include"))?;
                self.lines(path, shared)?;
                continue;
            }
            self.keep(line);
            let (code, doc) = line.split_once('#').unwrap_or((line, ""));
            let mut code = code.trim_end().to_string();
            while let Some((_, next)) = lines.next_if(|(_, l)| l.starts_with([' ', '\t'])) {
                self.keep(next);
                code = code + " " + next.split('#').next().unwrap_or_default().trim();
            }
            if !code.trim().is_empty() {
                self.line(code.trim(), doc.trim()).map_err(|why| fault(path, at + 1, &why))?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// Reads a declaration or a statement.
    fn line(&mut self, code: &str, doc: &str) -> Result<(), String> {
        if !self.result.is_empty() {
            return Err("the result of a recipe is its last line".into());
        }
        let mut depth = 0i32;
        if code.chars().any(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth > NESTING
        }) {
            return Err(format!("more than {NESTING} parentheses in each other"));
        }
        let (word, rest) = code.split_once(' ').unwrap_or((code, ""));
        match word {
            "input" => self.role(rest.trim(), doc),
            "sibling" => self.sibling(rest),
            "dtype" => {
                self.dtype = Some(rest.trim().parse().map_err(|e: castwise::UnknownDType| e.to_string())?);
                Ok(())
            }
            "models" => self.model(rest),
            "parameter" => self.parameter(rest, doc),
            "accepts" if rest.trim() == "f8" => {
                self.takes_f8 = true;
                Ok(())
            }
            "let" => {
                let number = assignment(rest)?.filter(|n| n.index != Index::Zero && !n.unless_given);
                let number = number.ok_or("expected `let NAME = …` or `let NAME[i] = …`")?;
                // What a number is made of comes before it, so that none is made of itself.
                if let Some(name) = words(&number.text).find(|w| *w == number.name) {
                    return Err(format!("`{name}` is made of itself"));
                }
                if let Some(n) = self.numbers.iter().find(|n| words(&n.text).any(|w| w == number.name)) {
                    return Err(format!("`{}` uses `{}` before this line", n.name, number.name));
                }
                self.numbers.push(number);
                Ok(())
            }
            "require" => {
                let (condition, message) = rest.rsplit_once(':').ok_or("expected `require CONDITION : message`")?;
                let (condition, message) = (condition.trim().to_string(), message.trim().to_string());
                self.requires.push(Require { each: condition.contains("[i]"), condition, message });
                Ok(())
            }
            _ => {
                match assignment(code)? {
                    Some(statement) => self.statements.push(statement),
                    None => self.result = code.to_string(),
                }
                Ok(())
            }
        }
    }

    fn role(&mut self, text: &str, doc: &str) -> Result<(), String> {
        let (text, optional) = text.strip_suffix('?').map_or((text, false), |t| (t, true));
        let (name, index) = indexed(text).ok_or("expected `input NAME`, `input NAME?` or `input NAME[i]?`")?;
        if index == Index::Each && !optional {
            return Err("an input for each model is optional: `input NAME[i]?`".into());
        }
        self.roles.push(Role { name, each: index == Index::Each, optional, doc: doc.to_string() });
        Ok(())
    }

    fn sibling(&mut self, text: &str) -> Result<(), String> {
        let (name, rule) = text.split_once('=').ok_or("expected `sibling NAME = INPUT:REGEX=TEXT`")?;
        let (name, _) = indexed(name.trim()).filter(|(_, i)| *i == Index::None).ok_or("expected a name")?;
        self.roles.push(Role { name: name.clone(), each: false, optional: true, doc: String::new() });
        self.siblings.push((name, values::rename(rule.trim())?));
        Ok(())
    }

    fn model(&mut self, text: &str) -> Result<(), String> {
        let form = || "expected `models NAME LEAST` or `models NAME LEAST MOST`".to_string();
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |w: &str| w.parse::<usize>().ok().filter(|n| (1..=super::MODELS).contains(n)).ok_or_else(form);
        let (name, least, most) = match words[..] {
            [name, least] => (name, number(least)?, super::MODELS),
            [name, least, most] => (name, number(least)?, number(most)?),
            _ => return Err(form()),
        };
        let (name, _) = indexed(name).filter(|(_, i)| *i == Index::None && self.models.is_none()).ok_or_else(form)?;
        self.models = Some(Models { name, least, most });
        Ok(())
    }

    fn parameter(&mut self, text: &str, doc: &str) -> Result<(), String> {
        let (left, default) = match (text.split_once("?="), text.split_once('=')) {
            (Some((left, value)), _) => (left, Default_::Unless(number(value)?)),
            (None, Some((left, value))) => (left, Default_::Where(number(value)?)),
            (None, None) => (text, Default_::None),
        };
        let named = indexed(left.trim()).filter(|(_, i)| *i != Index::Zero);
        let (name, index) = named.ok_or("expected `parameter NAME = NUMBER` or `parameter NAME[i] = NUMBER`")?;
        if self.parameters.iter().any(|p| p.name == name) || ["dtype", "seed"].contains(&name.as_str()) {
            return Err(format!("there is a parameter `{name}` already"));
        }
        self.parameters.push(Parameter { name, each: index == Index::Each, default, doc: doc.to_string() });
        Ok(())
    }

    /// Whether the text names a dtype of this letter.
    pub(super) fn uses_dtype(&self, letter: &str) -> bool {
        let all = self.statements.iter().map(|s| s.text.as_str()).chain([self.result.as_str()]);
        all.into_iter().any(|text| words(text).any(|word| word == letter))
    }
}

/// The words of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.')
}

fn number(text: &str) -> Result<Number, String> {
    match Setting::read(text.trim())? {
        Setting::One(n) => Ok(n),
        _ => Err("a default is a number".into()),
    }
}

/// A name, with `[i]` or `[0]` behind it.
fn indexed(text: &str) -> Option<(String, Index)> {
    let (name, index) = match text.split_once('[') {
        None => (text, Index::None),
        Some((name, "i]")) => (name, Index::Each),
        Some((name, "0]")) => (name, Index::Zero),
        Some(_) => return None,
    };
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    valid.then(|| (name.to_string(), index))
}

/// `NAME = …` or `NAME ?= …`; none if the text is no assignment.
fn assignment(text: &str) -> Result<Option<Indexed>, String> {
    let Some(at) = text.find('=') else { return Ok(None) };
    let (left, right) = (&text[..at], &text[at + 1..]);
    let unless_given = left.ends_with('?');
    let left = left.trim_end_matches('?').trim();
    // `a == b`, or a keyword in a call.
    let Some((name, index)) = indexed(left).filter(|_| !right.starts_with('=')) else { return Ok(None) };
    if right.trim().is_empty() {
        return Err(format!("`{name}` is nothing"));
    }
    Ok(Some(Indexed { name, index, text: right.trim().to_string(), unless_given }))
}
