//! `Serialize` and `Deserialize`: dtypes, rules and roundings as their names; settings and tensor metadata as maps;
//! programs as their text form.
//!
//! Guarantees: a serialized value deserializes to an equal value; deserialized values have passed the checks of the
//! text form and of shapes. Does not: serialize a tensor's data; the file formats do.

use std::fmt::Display;
use std::str::FromStr;

use ::serde::de::Error as _;
use ::serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::base::dtype::DType;
use crate::base::shape::check;
use crate::graph::program::Program;
use crate::promotion::{Contraction, Rounding, Rules, Settings, ZeroDivision, no_default_dtype};
use crate::tensor::TensorMeta;

fn parsed<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

macro_rules! as_text {
    ($($t:ty),*) => {$(
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$t, D::Error> {
                parsed(from)
            }
        }
    )*};
}

as_text!(DType, Rules, Rounding, ZeroDivision, Contraction, Program);

/// The serialized form of settings: omitted fields have their defaults.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Settings", deny_unknown_fields)]
struct SettingsForm {
    rules: Rules,
    #[serde(default = "default_dtype")]
    default_dtype: DType,
    #[serde(default)]
    rounding: Rounding,
    #[serde(default, skip_serializing_if = "is_default")]
    zero_division: ZeroDivision,
    #[serde(default, skip_serializing_if = "is_default")]
    contraction: Contraction,
    #[serde(default, skip_serializing_if = "is_default")]
    x64: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    strict: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_dtype() -> DType {
    DType::F32
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Settings { rules, default_dtype, rounding, zero_division, contraction, x64, strict } = *self;
        SettingsForm { rules, default_dtype, rounding, zero_division, contraction, x64, strict }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Settings, D::Error> {
        let SettingsForm { rules, default_dtype, rounding, zero_division, contraction, x64, strict } =
            SettingsForm::deserialize(from)?;
        if let Some(why) = no_default_dtype(default_dtype) {
            return Err(D::Error::custom(why));
        }
        Ok(Settings { rules, default_dtype, rounding, zero_division, contraction, x64, strict })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "TensorMeta", deny_unknown_fields)]
struct MetaForm {
    dtype: DType,
    shape: Vec<usize>,
}

impl Serialize for TensorMeta {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        MetaForm { dtype: self.dtype, shape: self.shape.clone() }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for TensorMeta {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<TensorMeta, D::Error> {
        let MetaForm { dtype, shape } = MetaForm::deserialize(from)?;
        check(&shape).map_err(D::Error::custom)?;
        Ok(TensorMeta { dtype, shape })
    }
}
