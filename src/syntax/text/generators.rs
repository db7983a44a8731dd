//! Reads generators and blocks: `uniform %0 {seed = 7, stream = 1, dtype = f16}`, `blocks %0, %1 {size = [128]}`.
//!
//! Guarantees: every attribute is there at most once, and no other. Does not: check dims, dtypes and what numbers mean.

use petgraph::graph::NodeIndex;

use super::lex::{Span, Token};
use super::parse::{Parsed, Reader, expected};
use crate::base::blocks::BlockSize;
use crate::base::error::shown;
use crate::base::generator::Generator;
use crate::graph::program::Kind;

impl<'t> Reader<'t> {
    /// Adds a generator or blocks, if this is the name of one.
    pub(super) fn made(&mut self, word: &str, start: Span) -> Parsed<Option<NodeIndex>> {
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
