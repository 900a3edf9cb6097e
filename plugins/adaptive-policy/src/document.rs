//! The document format; `policies/adaptive.toml` is a commented example.

use crate::{NoCandidateAction, SuccessMeasure};
use policy_values::{Millionths, Names, Time};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    #[serde(default)]
    pub(crate) success: SuccessMeasure,
    pub(crate) digits: Option<u8>,
    pub(crate) attribute: Option<String>,
    #[serde(default = "samples")]
    pub(crate) samples: u32,
    #[serde(default = "assumed")]
    pub(crate) assumed: u32,
    #[serde(default = "leave_margin")]
    pub(crate) leave_margin: u32,
    #[serde(default = "return_margin")]
    pub(crate) return_margin: u32,
    #[serde(default = "exploration")]
    pub(crate) exploration: u32,
    pub(crate) highest_cost: Option<Millionths>,
    pub(crate) highest_markup: Option<u32>,
    pub(crate) longest_wait: Option<Time>,
    #[serde(default)]
    pub(crate) otherwise: NoCandidateAction,
    #[serde(default)]
    pub(crate) destination: Vec<toml::Spanned<DestinationEntry>>,
}

fn samples() -> u32 {
    20
}

fn assumed() -> u32 {
    80
}

fn leave_margin() -> u32 {
    10
}

fn return_margin() -> u32 {
    5
}

fn exploration() -> u32 {
    2
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct DestinationEntry {
    pub(crate) prefix: Names,
    pub(crate) candidates: Vec<CandidateEntry>,
    pub(crate) highest_cost: Option<Millionths>,
    pub(crate) highest_markup: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct CandidateEntry {
    pub(crate) peer: String,
    pub(crate) cost: Millionths,
}
