//! dtypes by name: parsing, and the error of a name that is no dtype's.
//!
//! Guarantees: names and aliases are those of the table in `dtype`; a name of a framework is understood or, if it is near one,
//! suggested. Does not: know the names in files, which are those of each format.

use std::str::FromStr;

use super::dtype::{DType, names};

/// The error of parsing a string that names no dtype.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dtype `{text}`; {}known: {}", self.question(), names(DType::ALL.into_iter()))]
pub struct UnknownDType {
    text: String,
    meant: Option<DType>,
}

impl UnknownDType {
    /// The dtype that was probably meant: bf16 for `torch.bfloat16` and for `BF16`.
    ///
    /// ```
    /// use castwise::DType;
    /// let e = "torch.bfloat16".parse::<DType>().expect_err("it has another name here");
    /// assert_eq!(e.meant(), Some(DType::BF16));
    /// ```
    pub fn meant(&self) -> Option<DType> {
        self.meant
    }

    fn question(&self) -> String {
        self.meant.map_or(String::new(), |d| format!("did you mean `{d}`? "))
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    /// Parses the short names and the names that PyTorch, Paddle and NumPy use: `float16`, `half`, `bfloat16`, `float`,
    /// `double`, `long`, `complex64`, … (`float` is f32 and `double` f64, as in PyTorch).
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        named(s).ok_or_else(|| {
            // Drop the module, lower the case, and read `fp16` as `f16`.
            let name = s.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().replace("fp", "f");
            UnknownDType { text: s.chars().take(40).flat_map(char::escape_debug).collect(), meant: named(&name) }
        })
    }
}

/// The dtype with this name or alias.
fn named(s: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|d| d.name() == s || d.aliases().contains(&s))
}
