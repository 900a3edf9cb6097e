//! The document format; `policies/prices.toml` is a commented example.

use policy_values::{Millionths, Names};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    pub(crate) default_tariff: Option<toml::Spanned<String>>,
    #[serde(default)]
    pub(crate) account: Vec<toml::Spanned<Account>>,
    #[serde(default)]
    pub(crate) tariff: Vec<toml::Spanned<Tariff>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Account {
    pub(crate) name: Names,
    pub(crate) tariff: Option<String>,
    pub(crate) ledger: Option<String>,
    #[serde(default)]
    pub(crate) free: bool,
    #[serde(default)]
    pub(crate) refuse: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Tariff {
    pub(crate) name: String,
    #[serde(default = "yes")]
    pub(crate) refund_on_failure: bool,
    pub(crate) table: Option<String>,
    #[serde(default)]
    pub(crate) prices: BTreeMap<String, Millionths>,
}

fn yes() -> bool {
    true
}
