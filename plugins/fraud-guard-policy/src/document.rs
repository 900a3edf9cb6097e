//! The document format; `policies/fraud.toml` is a commented example.

use policy_values::Time;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    #[serde(default)]
    pub(crate) allow: Vec<toml::Spanned<Allow>>,
    #[serde(default)]
    pub(crate) velocity: Vec<toml::Spanned<Velocity>>,
    #[serde(default)]
    pub(crate) neighbours: Vec<toml::Spanned<Neighbours>>,
    #[serde(default)]
    pub(crate) block: Vec<toml::Spanned<Block>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Allow {
    #[serde(default)]
    pub(crate) accounts: Vec<String>,
    #[serde(default)]
    pub(crate) sources: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Velocity {
    pub(crate) name: String,
    pub(crate) messages: u32,
    pub(crate) window: Time,
    #[serde(default)]
    pub(crate) then: ActionKeyword,
    pub(crate) hold: Option<Time>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Neighbours {
    pub(crate) name: String,
    pub(crate) numbers: u32,
    pub(crate) window: Time,
    #[serde(default)]
    pub(crate) then: ActionKeyword,
    pub(crate) hold: Option<Time>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Block {
    pub(crate) name: String,
    pub(crate) size: u32,
    pub(crate) numbers: u32,
    pub(crate) window: Time,
    #[serde(default)]
    pub(crate) then: ActionKeyword,
    pub(crate) hold: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ActionKeyword {
    #[default]
    Reject,
    Hold,
}
