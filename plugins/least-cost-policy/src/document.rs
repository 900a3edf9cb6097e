//! The document format; `policies/least-cost.toml` is a commented example.

use crate::NoOfferAction;
use policy_values::{Millionths, Names, Time};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    pub(crate) most_legs: Option<u8>,
    pub(crate) lowest_quality: Option<u8>,
    pub(crate) highest_cost: Option<Millionths>,
    pub(crate) most_queued: Option<u64>,
    pub(crate) longest_wait: Option<Time>,
    #[serde(default)]
    pub(crate) otherwise: NoOfferAction,
    pub(crate) table: Option<String>,
    #[serde(default)]
    pub(crate) destination: Vec<toml::Spanned<Destination>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Destination {
    pub(crate) prefix: Names,
    pub(crate) offers: Vec<Offer>,
    pub(crate) lowest_quality: Option<u8>,
    pub(crate) highest_cost: Option<Millionths>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Offer {
    pub(crate) peer: String,
    pub(crate) cost: Millionths,
    #[serde(default = "best")]
    pub(crate) quality: u8,
    pub(crate) longest_wait: Option<Time>,
}

fn best() -> u8 {
    100
}
