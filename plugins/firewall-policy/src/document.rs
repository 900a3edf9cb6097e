//! The document format; `policies/firewall.toml` is a commented example.

use policy_values::{Names, Time};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    #[serde(default)]
    pub(crate) rule: Vec<toml::Spanned<RuleEntry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RuleEntry {
    pub(crate) name: String,
    // Conditions on the record of the message.
    pub(crate) accounts: Option<Names>,
    pub(crate) sources: Option<Names>,
    pub(crate) source_kind: Option<SourceKindKeyword>,
    pub(crate) registered: Option<String>,
    pub(crate) unregistered: Option<String>,
    pub(crate) destinations: Option<Names>,
    pub(crate) data_codings: Option<Vec<u8>>,
    pub(crate) segments_over: Option<u16>,
    pub(crate) header: Option<bool>,
    // Conditions on its text.
    pub(crate) words: Option<Names>,
    pub(crate) contains: Option<Names>,
    pub(crate) word_table: Option<String>,
    pub(crate) links: Option<bool>,
    pub(crate) domains: Option<Names>,
    pub(crate) domain_table: Option<String>,
    pub(crate) other_domains_than: Option<Names>,
    pub(crate) other_domains_than_table: Option<String>,
    pub(crate) dlt: Option<DltEntry>,
    // Conditions on numbers of messages.
    pub(crate) near_duplicates: Option<NearDuplicatesEntry>,
    pub(crate) volume: Option<VolumeEntry>,
    // The action.
    pub(crate) then: ActionKeyword,
    pub(crate) reason: Option<ReasonKeyword>,
    pub(crate) report: Option<ReportKeyword>,
    pub(crate) with: Option<String>,
    #[serde(default)]
    pub(crate) tags: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct DltEntry {
    pub(crate) templates: String,
    pub(crate) entities: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct NearDuplicatesEntry {
    pub(crate) over: u32,
    pub(crate) window: Time,
    #[serde(default)]
    pub(crate) per: Scope,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct VolumeEntry {
    pub(crate) over: u32,
    pub(crate) window: Time,
    #[serde(default)]
    pub(crate) per: Scope,
    #[serde(default)]
    pub(crate) digits: u8,
    pub(crate) times: Option<u32>,
    pub(crate) before: Option<Time>,
}

/// Messages that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scope {
    /// All of an account.
    #[default]
    Account,
    /// All of one source of an account.
    Source,
    /// All.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SourceKindKeyword {
    Numeric,
    Alphanumeric,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ActionKeyword {
    Pass,
    Tag,
    Replace,
    Reject,
    Quarantine,
    Drop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReasonKeyword {
    #[default]
    Prohibited,
    InvalidSource,
    InvalidDestination,
    NotAuthorised,
    NoRoute,
    TryLater,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReportKeyword {
    Delivered,
    #[default]
    Undeliverable,
    Rejected,
}
