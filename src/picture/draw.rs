//! Drawing: from a typed program to a document.
//!
//! Guarantees: any typed program has a picture. Does not: lay out or write (`layout`, `svg`).

use crate::base::error::Result;
use crate::graph::program::Program;
use crate::graph::typed::TypedProgram;

use super::boxes::boxes;
use super::layout::places;
use super::options::Picture;
use super::svg::document;

impl Picture<'_> {
    /// The picture as an SVG document, which has a light and a dark form.
    pub fn svg(&self) -> String {
        let boxes = boxes(self);
        let places = places(&boxes);
        document(self, &boxes, &places)
    }
}

impl TypedProgram {
    /// The program as a picture: an SVG document. See [`Picture`].
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let _ = p.data("i", DType::I64, [3]) * p.data("f", DType::F32, [3]);
    /// assert!(p.infer()?.to_svg().contains("cast %0 to f32"));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn to_svg(&self) -> String {
        Picture::of(self).svg()
    }
}

impl Program {
    /// The typed program as a picture: an SVG document. Errors: those of [`infer`](Program::infer).
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let _ = p.data("x", DType::F32, [3]).exp();
    /// assert!(p.to_svg()?.starts_with("<svg"));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn to_svg(&self) -> Result<String> {
        Ok(self.infer()?.to_svg())
    }
}
