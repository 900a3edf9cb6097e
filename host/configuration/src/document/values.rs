//! Values that several sections share.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::borrow::Cow;

/// A string with its own format.
macro_rules! string_value {
    ($(#[doc = $doc:literal])* $name:ident, $schema:tt) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let mut schema = json_schema!($schema);
                let doc = concat!($($doc),*).trim();
                schema.insert("description".to_owned(), doc.into());
                schema
            }
        }
    };
}

string_value! {
    /// A duration: a number with `ms`, `s`, `m`, `h` or `d`.
    DurationConfig, { "type": "string", "pattern": "^\\s*[0-9]+\\s*(ms|s|m|min|h|d)\\s*$", "examples": ["30s", "5m", "2d"] }
}
string_value! {
    /// A size in octets: a number, optionally with `KiB`, `MiB`, `GiB` or `TiB`.
    SizeConfig, { "type": "string", "pattern": "^\\s*[0-9]+\\s*(B|KiB|MiB|GiB|TiB)?\\s*$", "examples": ["64MiB"] }
}
string_value! {
    /// A local address and port.
    ListenAddressConfig, { "type": "string", "examples": ["127.0.0.1:2775", "[::1]:2775"] }
}
string_value! {
    /// A remote host and port.
    HostPortConfig, { "type": "string", "pattern": "^.+:[0-9]+$", "examples": ["smsc.example.net:2775"] }
}
string_value! {
    /// A secret. It is write-only; `(unchanged)` keeps the current one.
    SecretConfig, { "type": "string", "format": "password", "writeOnly": true }
}
string_value! {
    /// An argon2 hash, as printed by `switchyard hash-password`. It is write-only; `(unchanged)` keeps the current one.
    PasswordHashConfig, { "type": "string", "format": "password", "writeOnly": true, "pattern": "^(\\$argon2|\\(unchanged\\)$)" }
}
string_value! {
    /// A file of the appliance. Relative paths are relative to the folder of the configuration file.
    FilePathConfig, { "type": "string" }
}
string_value! {
    /// An IP address or network.
    NetworkConfig, { "type": "string", "examples": ["10.0.0.0/8", "::1"] }
}

/// A rate in messages per second.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct RateConfig(pub f64);

impl JsonSchema for RateConfig {
    fn schema_name() -> Cow<'static, str> {
        "RateConfig".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0, "description": "Messages per second. Default: no limit." })
    }
}

/// A list, or the keyword `any`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ListOrAnyConfig {
    /// The listed values.
    These(Vec<String>),
    /// Any value.
    Any(AnyKeywordConfig),
}

/// A flag for the numbers listed beside it, or a list of other numbers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FlagOrNumbersConfig {
    /// Applies to the numbers listed beside it.
    Flag(bool),
    /// Numbers, or prefixes of numbers followed by `*`.
    Numbers(Vec<String>),
}

/// The keyword `any`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AnyKeywordConfig {
    /// Any value.
    Any,
}

/// The class of an error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClassConfig {
    /// A later attempt may succeed.
    Temporary,
    /// No attempt can succeed.
    Permanent,
    /// The peer throttles.
    Throttled,
    /// The peer's queue is full.
    QueueFull,
    /// The subscriber cannot be reached.
    Absent,
    /// The subscriber's memory is full.
    MemoryFull,
}
