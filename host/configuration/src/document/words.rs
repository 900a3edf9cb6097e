//! The values that stand at many keys.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::borrow::Cow;

/// A text with a form of its own.
macro_rules! text {
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

text! {
    /// A time: a number and `ms`, `s`, `m`, `h` or `d`.
    Time, { "type": "string", "pattern": "^\\s*[0-9]+\\s*(ms|s|m|min|h|d)\\s*$", "examples": ["30s", "5m", "2d"] }
}
text! {
    /// A size in octets: a number, with `KiB`, `MiB`, `GiB` or `TiB`, or none of them.
    Size, { "type": "string", "pattern": "^\\s*[0-9]+\\s*(B|KiB|MiB|GiB|TiB)?\\s*$", "examples": ["64MiB"] }
}
text! {
    /// Address and port of this machine.
    Listen, { "type": "string", "examples": ["127.0.0.1:2775", "[::1]:2775"] }
}
text! {
    /// Host and port of another machine.
    HostPort, { "type": "string", "pattern": "^.+:[0-9]+$", "examples": ["smsc.example.net:2775"] }
}
text! {
    /// A secret: it is taken and never given back. `(unchanged)` keeps the one that is.
    Secret, { "type": "string", "format": "password", "writeOnly": true }
}
text! {
    /// An argon2 hash, as `switchyard hash-password` prints it. It is never given back; `(unchanged)` keeps the one that is.
    PasswordHash, { "type": "string", "format": "password", "writeOnly": true, "pattern": "^(\\$argon2|\\(unchanged\\)$)" }
}
text! {
    /// A file of the appliance's machine; a relative path begins where the configuration file is.
    File, { "type": "string" }
}
text! {
    /// An address, or a network of them.
    Network, { "type": "string", "examples": ["10.0.0.0/8", "::1"] }
}

/// Messages a second.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Rate(pub f64);

impl JsonSchema for Rate {
    fn schema_name() -> Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0, "description": "Messages a second; left out, there is no limit." })
    }
}

/// A list, or the word for all that there are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OrAny {
    /// These.
    These(Vec<String>),
    /// All.
    Any(Any),
}

/// Yes or no for the numbers that are named beside it, or other ones.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FlagOrNumbers {
    /// For the numbers beside it.
    Flag(bool),
    /// Numbers, and beginnings of numbers with a star behind them.
    Numbers(Vec<String>),
}

/// All that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Any {
    /// All that there are.
    Any,
}

/// What a refusal means for what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// It may go better later.
    Temporary,
    /// It never will.
    Permanent,
    /// We are too fast.
    Throttled,
    /// The peer's queue is full.
    QueueFull,
    /// The subscriber cannot be reached.
    Absent,
    /// The subscriber's memory is full.
    MemoryFull,
}
