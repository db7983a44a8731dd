//! Printing of tensors.
//!
//! Guarantees: `Display` prints the values in nested brackets and aligned columns, as NumPy's `print` does; `Debug`
//! prints the dtype, the shape and the first values on one line. Floats are printed as the shortest decimals that parse
//! back in their dtype, unless a precision is given. The length of the output is bounded for any tensor, except under
//! `{:#}`. Does not: print a form that can be parsed; that is the text form of programs.

use std::fmt;

use super::Tensor;
use crate::base::dtype::{DType, Element, with_dtype};
use crate::base::host::FloatMode;
use crate::base::scalar::{Float, bits_of, shortest};

/// The number of elements that `Debug` shows.
const SHOWN: usize = 8;

/// `Display` summarizes tensors with more elements than this, as NumPy does.
const THRESHOLD: usize = 1000;

/// The number of elements that a summary shows at the start and the end of each dim, in order of preference: the first
/// pair whose summary has at most [`MAX_SUMMARY`] elements is used.
const EDGES: [(usize, usize); 3] = [(3, 3), (1, 1), (1, 0)];

/// The maximum number of elements of a summary; tensors of many dims show fewer elements per dim to stay below it.
const MAX_SUMMARY: usize = 10_000;

/// The maximum line width, in characters; longer rows are broken.
const LINE_WIDTH: usize = 75;

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _standard = FloatMode::standard();
        write!(f, "{}{:?} [", self.dtype, self.shape())?;
        for (i, bytes) in self.elements().take(SHOWN).enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            f.write_str(&with_dtype!(self.dtype, T => element::<T>(bytes).map_or("?".into(), value_text)))?;
        }
        f.write_str(if self.numel() > SHOWN { ", …]" } else { "]" })
    }
}

fn element<T: Element>(bytes: &[u8]) -> Option<T> {
    bytemuck::checked::try_pod_read_unaligned::<T>(bytes).ok()
}

/// One element as text: floats in the shortest form that parses back, complex numbers as `re+imj`.
fn value_text<T: Element>(v: T) -> String {
    let d = T::DTYPE.real();
    match Value::of(T::DTYPE, bytemuck::bytes_of(&v)) {
        Value::Float(v) => Float(shortest(d, v)).to_string(),
        Value::Complex(re, im) => {
            format!("{}{}{}j", Float(shortest(d, re)), plus(im), Float(shortest(d, im)))
        }
        Value::Other => format!("{v:?}"),
    }
}

/// The `+` before an imaginary part that prints no sign itself.
fn plus(im: f64) -> &'static str {
    if im.is_sign_negative() && !im.is_nan() { "" } else { "+" }
}

/// An element's value, as far as the choice of its text form depends on it.
#[derive(Clone, Copy)]
enum Value {
    Float(f64),
    Complex(f64, f64),
    Other,
}

impl Value {
    fn of(d: DType, bytes: &[u8]) -> Value {
        let float = |b: &[u8]| d.real().value_of_bits(bits_of(b));
        match d {
            _ if d.is_float() => Value::Float(float(bytes)),
            _ if d.is_complex() => {
                let (re, im) = bytes.split_at(bytes.len() / 2);
                Value::Complex(float(re), float(im))
            }
            _ => Value::Other,
        }
    }

    /// Whether a decimal without an exponent would be long: the magnitude is at least 1e8 or below 1e-4.
    fn wants_exponent(&self) -> bool {
        let far = |v: f64| v.is_finite() && v != 0.0 && !(1e-4..1e8).contains(&v.abs());
        match *self {
            Value::Float(v) => far(v),
            Value::Complex(re, im) => far(re) || far(im),
            Value::Other => false,
        }
    }
}

impl fmt::Display for Tensor {
    /// Prints the values as NumPy's `print` does: nested brackets, one row per line, columns aligned at the point, long
    /// rows broken at 75 characters. In a tensor with more than 1000 elements each dim shows its first and last three,
    /// with `...` between; `{:#}` shows all. Floats are printed as the shortest decimals that parse back, or with the
    /// given number of decimals (`{:.3}`); if the magnitude of one is at least 1e8 or below 1e-4, all have exponents.
    /// Unlike in NumPy, values are written as in Rust: `true`, `1.0`. A 0-d tensor prints as its value; a tensor
    /// without elements as `[]` and its shape.
    ///
    /// ```
    /// use castwise::Tensor;
    /// let t = Tensor::from_slice(&[1.0f32, -0.25, 0.1, 20.0, f32::NAN, 3.5], [2, 3])?;
    /// let rows = ["[[ 1.0  -0.25  0.1 ]",
    ///             " [20.0    nan  3.5 ]]"];
    /// assert_eq!(t.to_string(), rows.join("\n"));
    /// assert_eq!(format!("{:.1}", t.slice(0, 0, 1, 1)?), "[[ 1.0 -0.2  0.1]]");
    /// assert_eq!(Tensor::scalar(true).to_string(), "true");
    /// assert_eq!(Tensor::full([2000], 7u8)?.to_string(), "[7 7 7 ... 7 7 7]");
    /// # Ok::<(), castwise::Error>(())
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _standard = FloatMode::standard();
        if self.numel() == 0 {
            return write!(f, "[], shape {:?}", self.shape());
        }
        let edges = if self.numel() <= THRESHOLD || f.alternate() { None } else { Some(edges(self.shape())) };
        let shown: Vec<Vec<usize>> = self.shape().iter().map(|n| positions(*n, edges)).collect();
        let words = self.words(&shown, f.precision());
        if self.rank() == 0 {
            return words.iter().try_for_each(|w| f.write_str(w.trim()));
        }
        Words { shape: self.shape(), shown: &shown }.block(f, 0, &words)
    }
}

/// The number of elements that a summary shows at the start and the end of each dim.
fn edges(shape: &[usize]) -> (usize, usize) {
    let elements = |(first, last): (usize, usize)| {
        shape.iter().fold(1usize, |n, extent| n.saturating_mul((*extent).min(first + last)))
    };
    EDGES.into_iter().find(|e| elements(*e) <= MAX_SUMMARY).unwrap_or(EDGES[2])
}

/// The positions of a dim that a summary shows.
fn positions(extent: usize, edges: Option<(usize, usize)>) -> Vec<usize> {
    match edges {
        Some((first, last)) if extent > first + last => (0..first).chain(extent - last..extent).collect(),
        _ => (0..extent).collect(),
    }
}

impl Tensor {
    /// The bytes of the element at an index.
    fn at(&self, index: impl Iterator<Item = usize>) -> &[u8] {
        let at = index.zip(self.strides()).fold(self.offset as isize, |at, (i, s)| at + i as isize * s);
        let size = self.dtype.size();
        self.storage.bytes().get(at as usize * size..).and_then(|b| b.get(..size)).unwrap_or(&[])
    }

    /// The shown elements in row-major order, as words of equal width.
    fn words(&self, shown: &[Vec<usize>], precision: Option<usize>) -> Vec<String> {
        let count = shown.iter().map(Vec::len).product();
        let mut index = vec![0usize; shown.len()];
        let mut elements: Vec<&[u8]> = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(self.at(index.iter().zip(shown).map(|(i, all)| all[*i])));
            for (i, all) in index.iter_mut().zip(shown).rev() {
                *i += 1;
                if *i < all.len() {
                    break;
                }
                *i = 0;
            }
        }
        let values: Vec<Value> = elements.iter().map(|b| Value::of(self.dtype, b)).collect();
        let exponent = values.iter().any(Value::wants_exponent);
        let form = Form { dtype: self.dtype.real(), exponent, precision };
        let words = elements.iter().zip(&values).map(|(bytes, v)| match *v {
            Value::Float(v) => form.float(v, true),
            Value::Complex(re, im) => {
                format!("{}{}{}j", form.float(re, false), plus(im), form.float(im, false))
            }
            Value::Other => with_dtype!(self.dtype, T => element::<T>(bytes).map_or("?".into(), |v| format!("{v:?}"))),
        });
        aligned(words.collect(), self.dtype.is_float() && !form.exponent)
    }
}

/// The format of a tensor's floats.
struct Form {
    dtype: DType,
    exponent: bool,
    precision: Option<usize>,
}

impl Form {
    /// Formats a float. With `point`, an integral value gets a point as well.
    fn float(&self, v: f64, point: bool) -> String {
        let v = if self.precision.is_none() { shortest(self.dtype, v) } else { v };
        match (self.exponent, self.precision) {
            _ if v.is_nan() => "nan".into(),
            _ if v.is_infinite() => format!("{v}"),
            (true, Some(n)) => format!("{v:.n$e}"),
            (true, None) => format!("{v:e}"),
            (false, Some(n)) => format!("{v:.n$}"),
            (false, None) if point && v.fract() == 0.0 => format!("{v:.1}"),
            (false, None) => format!("{v}"),
        }
    }
}

/// Pads words to equal width: right-aligned, or aligned at the point.
fn aligned(mut words: Vec<String>, at_point: bool) -> Vec<String> {
    // The length from the point on. Words without a point (nan, inf) end where the longest fraction ends.
    let fraction = |w: &str| w.find('.').map_or(0, |at| w.len() - at);
    let longest = if at_point { words.iter().map(|w| fraction(w)).max().unwrap_or(0) } else { 0 };
    for w in &mut words {
        if at_point && w.contains('.') {
            *w += &" ".repeat(longest - fraction(w));
        }
    }
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.iter().map(|w| format!("{w:>width$}")).collect()
}

/// The positions of a tensor that its words are for.
struct Words<'a> {
    shape: &'a [usize],
    shown: &'a [Vec<usize>],
}

impl Words<'_> {
    /// The index into a dim's shown positions before which elements are omitted.
    fn gap(&self, axis: usize) -> Option<usize> {
        let shown = &self.shown[axis];
        let jump = shown.iter().enumerate().position(|(i, at)| i != *at).unwrap_or(shown.len());
        (shown.len() < self.shape[axis]).then_some(jump)
    }

    /// Writes the words of the dims from `axis` on. The recursion has one level per dim, so it is bounded by the
    /// maximum rank.
    fn block(&self, f: &mut fmt::Formatter<'_>, axis: usize, words: &[String]) -> fmt::Result {
        let (rank, gap) = (self.shown.len(), self.gap(axis));
        if axis + 1 == rank {
            return row(f, words, gap, rank);
        }
        let between = "\n".repeat(rank - axis - 1) + &" ".repeat(axis + 1);
        f.write_str("[")?;
        for (i, part) in words.chunks(words.len() / self.shown[axis].len()).enumerate() {
            if i > 0 {
                f.write_str(&between)?;
            }
            if gap == Some(i) {
                write!(f, "...{between}")?;
            }
            self.block(f, axis + 1, part)?;
        }
        if gap == Some(self.shown[axis].len()) {
            write!(f, "{between}...")?;
        }
        f.write_str("]")
    }
}

/// Writes the words of one row, on as many lines as they need.
fn row(f: &mut fmt::Formatter<'_>, words: &[String], gap: Option<usize>, rank: usize) -> fmt::Result {
    f.write_str("[")?;
    let mut all: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(at) = gap {
        all.insert(at, "...");
    }
    let mut column = rank;
    for (i, word) in all.iter().enumerate() {
        if i > 0 && column + word.len() > LINE_WIDTH - rank.min(LINE_WIDTH / 2) {
            write!(f, "\n{}", " ".repeat(rank))?;
            column = rank;
        } else if i > 0 {
            f.write_str(" ")?;
        }
        f.write_str(word)?;
        column += word.len() + 1;
    }
    f.write_str("]")
}
