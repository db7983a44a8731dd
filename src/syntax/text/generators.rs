//! Reads generators, blocks and composites: `uniform %0 {seed = 7, stream = 1, dtype = f16}`, `blocks %0, %1 {size = [128]}`.
//!
//! Guarantees: every attribute is there at most once, and no other. Does not: check dims, dtypes and what numbers mean.

use petgraph::graph::NodeIndex;

use super::lex::{Span, Token};
use super::parse::{Parsed, Reader, Stop, expected};
use crate::base::blocks::BlockSize;
use crate::base::composite::Composite;
use crate::base::error::{DiagnosticKind, shown};
use crate::base::generator::Generator;
use crate::graph::program::Kind;

impl<'t> Reader<'t> {
    /// Adds a generator or blocks, if this is the name of one.
    pub(super) fn made(&mut self, word: &str, start: Span) -> Parsed<Option<NodeIndex>> {
        if let Some(composite) = Composite::named(word).filter(|_| !self.has_op(word)) {
            return self.composite(composite, start).map(Some);
        }
        let (kind, inputs) = if word == BlockSize::NAME {
            let (size, scale, like) = self.blocks()?;
            (Kind::Blocks(size), vec![(scale, 0), (like, 1)])
        } else if let Some(generator) = Generator::named(word) {
            let (generator, like) = self.generator(generator)?;
            (Kind::Generate(generator), vec![(like, 0)])
        } else {
            return Ok(None);
        };
        let span = start.to(self.last());
        self.append(kind, span, &inputs).map(Some)
    }

    /// Reads a composite's operands and parameters after its name.
    fn composite(&mut self, mut made: Composite, start: Span) -> Parsed<NodeIndex> {
        let (given, count) = self.inputs()?;
        if self.takes(&Token::Mark(b'{')) {
            self.parameters(&mut made)?;
        }
        let (scalars, inputs) = given.ok_or(Stop::Silent)?;
        let span = start.to(self.last());
        made.counted(count).map_err(|d| d.at(&span.location()))?;
        if inputs.is_empty() {
            let message = format!("`{}` of scalars alone", made.name());
            return Err(span.mistake(DiagnosticKind::BadParameter, message).into());
        }
        self.append(Kind::Composite { composite: made, scalars }, span, &inputs)
    }

    /// Reads a composite's parameters after their `{`.
    fn parameters(&mut self, made: &mut Composite) -> Parsed<()> {
        let mut given: Vec<&str> = Vec::new();
        loop {
            let (key, span) = self.word("a parameter")?;
            if !made.parameters().any(|p| p == key) {
                let all: Vec<&str> = made.parameters().collect();
                let d = span.syntax(format!("unknown attribute `{}` of `{}`", shown(key), made.name()));
                return Err(if all.is_empty() { d } else { d.help(format!("it takes {}", all.join(", "))) }.into());
            }
            if given.contains(&key) {
                return Err(span.syntax(format!("`{key}` is given twice")).into());
            }
            given.push(key);
            if key != "equal_nan" {
                self.mark(b'=')?;
            }
            match key {
                "dims" => made.dims = Some(self.list(|reader| Ok(reader.of::<i64>("a dim")?.0))?.into()),
                "dtype" => made.dtype = Some(self.of("a dtype")?.0),
                "equal_nan" => made.equal_nan = true,
                number => {
                    let (value, _) = self.of::<f64>("a number")?;
                    *made = made.clone().number(number, value).map_err(|what| span.syntax(what))?;
                }
            }
            match self.next()? {
                (Token::Mark(b','), _) => {}
                (Token::Mark(b'}'), _) => return Ok(()),
                (found, span) => return Err(expected("`,` or `}`", &found, span).into()),
            }
        }
    }

    /// Reads `%scale, %like {size = [128]}`.
    fn blocks(&mut self) -> Parsed<(BlockSize, NodeIndex, NodeIndex)> {
        self.mark(b'%')?;
        let scale = self.value();
        self.mark(b',')?;
        self.mark(b'%')?;
        let like = self.value();
        self.mark(b'{')?;
        match self.word("`size`")? {
            ("size", _) => {}
            (key, span) => return Err(span.syntax(format!("unknown attribute `{}` of `blocks`", shown(key))).into()),
        }
        self.mark(b'=')?;
        let sizes = self.list(|reader| Ok(reader.of::<usize>("a size")?.0))?;
        self.mark(b'}')?;
        Ok((sizes.into(), scale?, like?))
    }

    /// Reads what a generator is like, and its attributes, after its name.
    fn generator(&mut self, mut made: Generator) -> Parsed<(Generator, NodeIndex)> {
        let name = made.name();
        self.mark(b'%')?;
        let like = self.value();
        if !self.takes(&Token::Mark(b'{')) {
            return Ok((made, like?));
        }
        let mut given: Vec<&str> = Vec::new();
        loop {
            let (key, span) = self.word("an attribute")?;
            let takes_dtype = made.dtype_mut().is_some();
            let known = made.numbers().contains(&key) || key == "dtype" && takes_dtype;
            if !known {
                let mut all = made.numbers().to_vec();
                all.extend(takes_dtype.then_some("dtype"));
                let d = span.syntax(format!("unknown attribute `{}` of `{name}`", shown(key)));
                return Err(d.help(format!("it takes {}", all.join(", "))).into());
            }
            if given.contains(&key) {
                return Err(span.syntax(format!("`{key}` is given twice")).into());
            }
            given.push(key);
            self.mark(b'=')?;
            if key == "dtype" {
                let dtype = self.of("a dtype")?.0;
                made.dtype_mut().map(|to| to.replace(dtype));
            } else {
                let value = self.scalar()?;
                made.set(key, value).map_err(|what| span.syntax(format!("`{key}` of `{name}` is {what}")))?;
            }
            match self.next()? {
                (Token::Mark(b','), _) => {}
                (Token::Mark(b'}'), _) => return Ok((made, like?)),
                (found, span) => return Err(expected("`,` or `}`", &found, span).into()),
            }
        }
    }
}
