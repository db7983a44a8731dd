//! A model of PyTorch's outcome for two operands in every row of `torch-op-rules.txt`, cell by cell: the file has the
//! rule and the number of exceptions, and these functions give the cells. The tests check that the model's outcomes and
//! exceptions are exactly the recorded ones, including the truncated messages.
//!
//! Each function has two variants: PyTorch as recorded, and castwise's documented deviations.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::rules_file::{Cell, Row, Tables, Tier, known, wrapped, zero};

/// A result dtype, or PyTorch's error in the notation of the file.
pub type Outcome = Result<&'static str, String>;

/// The rules that castwise reads differently, with the words of `docs/deviations.md` about them.
pub const READINGS: [(&str, &str); 6] = [
    ("bf16-complex", "**bf16 with a complex operand of a lower tier**"),
    ("c32-pow", "**`c32-pow`.**"),
    ("c32-division", "**`c32-division`.**"),
    ("ldexp-promotes", "**`ldexp-promotes`.**"),
    ("clamp-bool-scalar", "**`clamp-bool-scalar`.**"),
    ("complex-value", "**`complex-value`.**"),
];

/// The variant of the model.
pub struct World<'a> {
    pub tables: &'a Tables,
    /// Whether the outcomes are PyTorch's as recorded; otherwise they are those that castwise documents.
    pub recorded: bool,
    /// How often each reading determined an outcome.
    pub readings: RefCell<BTreeMap<&'static str, usize>>,
}

fn category(name: &str) -> usize {
    match name {
        "bool" => 0,
        "int" => 1,
        "float" | "bf16" => 2,
        "complex" | "bcomplex32" => 3,
        n if n.starts_with(['u', 'i']) => 1,
        n if n.starts_with('f') => 2,
        _ => 3,
    }
}

const UNSUPPORTED: &str = "E:unsupported";
const CLAMP_COMPLEX: &str = "E:NotImplementedError: clamp is not supported for complex types";

/// PyTorch's message, truncated as in the file.
fn said(message: String) -> String {
    format!("E:RuntimeError: {message}").chars().take(68).collect()
}

fn unsupported() -> String {
    UNSUPPORTED.to_string()
}

fn can_cast(from: &str, to: &str) -> bool {
    category(from) <= category(to) || category(from) == 1 && category(to) == 1
}

/// `c10::toString` of a dtype.
fn scalar_type(name: &str) -> &'static str {
    match name {
        "bool" => "Bool",
        "u8" => "Byte",
        "i8" => "Char",
        "i16" => "Short",
        "i32" => "Int",
        "i64" => "Long",
        "f16" => "Half",
        "bf16" => "BFloat16",
        "f32" => "Float",
        "f64" => "Double",
        "c32" => "ComplexHalf",
        "c64" => "ComplexFloat",
        _ => "ComplexDouble",
    }
}

/// The C++ type of a dtype, as messages about dtypes name it.
fn type_meta(name: &str) -> &'static str {
    match name {
        "bool" => "bool",
        "u8" => "unsigned char",
        "i8" => "signed char",
        "i16" => "short int",
        "i32" => "int",
        "i64" => "long int",
        "f16" => "c10::Half",
        "bf16" => "c10::BFloat16",
        "f32" => "float",
        "f64" => "double",
        "c32" => "c10::complex<c10::Half>",
        "c64" => "c10::complex<float>",
        _ => "c10::complex<double>",
    }
}

/// The C++ type of a dtype, as messages about scalars name it.
fn value_type(name: &str) -> &'static str {
    match name {
        "u8" => "uint8_t",
        "i8" => "int8_t",
        "i16" => "int16_t",
        "i32" => "int",
        "i64" => "int64_t",
        "f16" => "at::Half",
        "bf16" => "at::BFloat16",
        "f32" => "float",
        _ => "double",
    }
}

fn real(name: &'static str) -> &'static str {
    match name {
        "c32" => "f16",
        "c64" => "f32",
        "c128" => "f64",
        other => other,
    }
}

fn refused_cast(from: &str, to: &str) -> String {
    said(format!("result type {} can't be cast to the desired output type {}", scalar_type(from), scalar_type(to)))
}

/// An intermediate value of a composed op.
type Value = Result<Cell, String>;

impl World<'_> {
    /// Whether castwise's reading applies here.
    fn reads(&self, reading: &'static str) -> bool {
        assert!(READINGS.iter().any(|(name, _)| *name == reading), "{reading} is not listed");
        if !self.recorded {
            *self.readings.borrow_mut().entry(reading).or_default() += 1;
        }
        !self.recorded
    }

    /// The common dtype. PyTorch 2.15 introduces `bcomplex32`; castwise gives the dtype that 2.2 gives.
    pub fn common(&self, a: Cell, b: Cell) -> &'static str {
        match self.tables.common(a, b) {
            "bcomplex32" if self.reads("bf16-complex") => "c64",
            common => common,
        }
    }

    fn binary(&self, a: Cell, b: Cell, refuses: &[&str]) -> Value {
        let common = self.common(a, b);
        if refuses.contains(&common) {
            return Err(unsupported());
        }
        let dims = a.tier == Tier::Dim || b.tier == Tier::Dim;
        Ok(Cell { tier: if dims { Tier::Dim } else { Tier::Zero }, name: common })
    }

    fn product(&self, a: Cell, b: Cell) -> Value {
        self.binary(a, b, &["bcomplex32"])
    }

    fn difference(&self, a: Cell, b: Cell) -> Value {
        if a.name == "bool" || b.name == "bool" {
            return Err("E:bool_sub".into());
        }
        self.binary(a, b, &["bcomplex32"])
    }

    /// A function of one operand that does not support c32 and promotes integers to f32.
    fn function(&self, a: Cell) -> Value {
        match a.name {
            "c32" | "bcomplex32" => Err(unsupported()),
            name if category(name) < 2 => Ok(Cell { name: "f32", ..a }),
            _ => Ok(a),
        }
    }

    /// An op whose outcome depends on the common dtype only.
    fn stated(&self, row: &Row, a: Cell, b: Cell) -> Outcome {
        let common = self.common(a, b);
        match row.outcomes[common].as_str() {
            "=common" => Ok(common),
            refusal if refusal.starts_with("E:") => Err(refusal.to_string()),
            dtype => Ok(known(dtype)),
        }
    }

    /// `pow` with a scalar of 1, which was the recorded scalar, copies or fills and needs no kernel.
    fn pow(&self, row: &Row, a: Cell, b: Cell) -> Outcome {
        let trivial = [a, b].iter().any(|o| o.tier == Tier::Wrapped && o.name != "complex");
        match self.common(a, b) {
            common @ ("bool" | "c32") if trivial && !self.reads("c32-pow") => Ok(common),
            _ => self.stated(row, a, b),
        }
    }

    fn heaviside(&self, a: Cell, b: Cell) -> Outcome {
        if category(a.name).max(category(b.name)) == 3 {
            return Err("E:NotImplementedError: heaviside is not yet implemented for complex ".into());
        }
        match self.common(a, b) {
            common if a.name == b.name => Ok(common),
            _ => Err("E:RuntimeError: heaviside is not yet implemented for tensors with di".into()),
        }
    }

    /// x times a power of two, which is computed in x's dtype for f16, bf16, f64 and complex numbers, else in f32.
    /// Integer exponents of floats have their own kernel, bool exponents do not.
    fn ldexp(&self, x: Cell, exponent: Cell) -> Outcome {
        if self.reads("ldexp-promotes") {
            let common = self.common(x, exponent);
            return match common {
                "c32" => Err(unsupported()),
                common if category(common) < 2 => Ok("f32"),
                common => Ok(common),
            };
        }
        if category(x.name) == 2 && category(exponent.name) < 2 {
            return if exponent.name == "bool" { Err(unsupported()) } else { Ok(x.name) };
        }
        let two = if category(x.name) < 2 || x.name == "f32" { wrapped("float") } else { zero(x.name) };
        let power = self.binary(two, exponent, &["c32", "bcomplex32"])?;
        Ok(self.product(x, power)?.name)
    }

    fn huber(&self, x: Cell, y: Cell) -> Outcome {
        let common = self.tables.broadcast(x, y);
        if !can_cast(common, x.name) {
            return Err(refused_cast(common, x.name));
        }
        if category(common) == 2 { Ok(x.name) } else { Err(unsupported()) }
    }

    /// `mse_loss` and `smooth_l1_loss`.
    fn of_floats(&self, x: Cell, y: Cell) -> Outcome {
        let common = self.tables.broadcast(x, y);
        if category(common) == 2 { Ok(common) } else { Err(unsupported()) }
    }

    fn l1(&self, x: Cell, y: Cell, reduction: &str) -> Outcome {
        if x.name == "bool" || y.name == "bool" {
            return Err("E:bool_sub".into());
        }
        let common = real(self.tables.broadcast(x, y));
        match reduction {
            "mean" if category(common) < 2 => {
                Err("E:NotImplementedError: mean(): could not infer output dtype. Input d".into())
            }
            "sum" if category(common) < 2 => Ok("i64"),
            _ => Ok(common),
        }
    }

    fn poisson(&self, x: Cell, y: Cell, form: &str) -> Outcome {
        let mut loss = if form == "none_nolog" {
            let rate = self.function(self.product(x, wrapped("float"))?)?;
            self.difference(x, self.product(y, rate)?)?
        } else {
            self.difference(self.function(x)?, self.product(y, x)?)?
        };
        if form == "none_full" {
            let leading = self.difference(self.product(y, self.function(y)?)?, y)?;
            let stirling = self.product(leading, self.function(self.product(wrapped("float"), y)?)?)?;
            if category(y.name) == 3 {
                return Err(unsupported()); // The loss compares y with 1.
            }
            // The sum is computed in place.
            let sum = self.product(loss, stirling)?;
            if !can_cast(sum.name, loss.name) {
                return Err(refused_cast(sum.name, loss.name));
            }
            loss = Cell { name: loss.name, ..sum };
        }
        match loss.name {
            "c32" | "bcomplex32" if form == "mean" => Err(unsupported()),
            name => Ok(name),
        }
    }

    fn clamp(&self, x: Cell, bound: Cell, no_bool: bool) -> Outcome {
        let complex_scalar = bound == wrapped("complex");
        if category(x.name) == 3 || complex_scalar && category(x.name) < 2 {
            return Err(CLAMP_COMPLEX.into());
        }
        if complex_scalar {
            return Err("E:RuntimeError: value cannot be converted to type double without ove".into());
        }
        match self.common(x, bound) {
            common if category(common) == 3 => Err(unsupported()),
            "bool" if no_bool => Err(unsupported()),
            "bool" if bound.tier == Tier::Wrapped && !self.reads("clamp-bool-scalar") => Err(unsupported()),
            common => Ok(common),
        }
    }

    fn lerp(&self, x: Cell, other: Cell, name: &str) -> Outcome {
        if other.tier != Tier::Wrapped && x.name != other.name {
            let (want, got) = (type_meta(x.name), type_meta(other.name));
            return Err(said(format!("expected dtype {want} for `{name}` but got dtype {got}")));
        }
        let complex_weight = other == wrapped("complex") && category(x.name) == 2;
        if category(x.name) < 2 || x.name == "c32" || complex_weight { Err(unsupported()) } else { Ok(x.name) }
    }

    fn addcmul(&self, x: Cell, b: Cell) -> Outcome {
        match self.common(x, b) {
            "bool" | "bcomplex32" => Err(unsupported()),
            common => Ok(common),
        }
    }

    /// The recorded complex tensors have no imaginary part, but the recorded complex scalar has one.
    fn addcmul_value(&self, x: Cell, value: Cell) -> Outcome {
        if x.name == "bool" {
            return Err(unsupported());
        }
        let complex = category(value.name) == 3 && category(x.name) < 3;
        if complex && (value.tier == Tier::Wrapped || self.reads("complex-value")) {
            return Err(said(format!("value cannot be converted to type {} without overflow", value_type(x.name))));
        }
        Ok(x.name)
    }

    fn addcdiv(&self, x: Cell, b: Cell) -> Outcome {
        if category(b.name) < 2 {
            return Err("E:RuntimeError: Integer division with addcdiv is no longer supported".into());
        }
        match self.common(x, b) {
            "c32" | "bcomplex32" => Err(unsupported()),
            common => Ok(common),
        }
    }

    fn alpha(&self, x: Cell, alpha: Cell, sub: bool) -> Outcome {
        let (of_x, of_alpha) = (category(x.name), category(alpha.name));
        if sub && of_x == 0 {
            return Err("E:bool_sub".into());
        }
        if of_alpha == 0 && of_x != 0 {
            return Err(said("Boolean alpha only supported for Boolean results.".into()));
        }
        if of_alpha >= 2 && of_x < 2 {
            let message = "For integral input tensors, argument alpha must not be a floating point number.";
            return Err(said(message.into()));
        }
        if of_alpha == 3 && of_x < 3 {
            let message = "For non-complex input tensors, argument alpha must not be a complex number.";
            return Err(said(message.into()));
        }
        Ok(x.name)
    }

    /// The outcome of a row's cell.
    pub fn outcome(&self, row: &Row, a: Cell, b: Cell) -> Outcome {
        match row.name.as_str() {
            "sub" => self.difference(a, b).map(|v| v.name),
            "pow" => self.pow(row, a, b),
            "heaviside" => self.heaviside(a, b),
            "ldexp" => self.ldexp(a, b),
            "huber_loss/mean" | "huber_loss/none" | "huber_loss/sum" => self.huber(a, b),
            "mse_loss/mean" | "mse_loss/none" | "mse_loss/sum" => self.of_floats(a, b),
            "smooth_l1_loss/mean" | "smooth_l1_loss/none" | "smooth_l1_loss/sum" => self.of_floats(a, b),
            "l1_loss/mean" | "l1_loss/none" | "l1_loss/sum" => self.l1(a, b, &row.name["l1_loss/".len()..]),
            name if name.starts_with("poisson_nll_loss/") => self.poisson(a, b, &name["poisson_nll_loss/".len()..]),
            "clamp_min(tensor)" | "clamp_max(tensor)" => self.clamp(a, b, false),
            "clamp(x,min=b,max=b)" => self.clamp(a, b, true),
            "lerp(x,end,0.5)" => self.lerp(a, b, "end"),
            "lerp(x,x,weight=b)" => self.lerp(a, b, "weight"),
            "addcmul(x,b,b)" | "addcmul(x,x,b)" => self.addcmul(a, b),
            "addcmul(x,x,x,value=b)" => self.addcmul_value(a, b),
            "addcdiv(x,b,b)" => self.addcdiv(a, b),
            "add(alpha=b)" => self.alpha(a, b, false),
            "sub(alpha=b)" => self.alpha(a, b, true),
            _ => self.stated(row, a, b),
        }
    }
}
