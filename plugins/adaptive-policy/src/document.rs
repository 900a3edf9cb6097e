//! The document format; `policies/adaptive.toml` is a commented example.

use crate::{NoCandidateAction, SuccessMeasure};
use policy_values::{Millionths, Names, Time};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    /// The measure of success. Default: dlr.
    #[serde(default)]
    pub(crate) success: SuccessMeasure,
    /// Number of leading digits of the destination: success rates cover messages with the same digits. The binding must
    /// grant it. Not together with `attribute`. Default: all messages of the peer count.
    #[cfg_attr(test, schemars(range(min = 1, max = 8)))]
    pub(crate) digits: Option<u8>,
    /// Name of an attribute: success rates cover messages with the same value. The binding must grant it. Not together with
    /// `digits`. Default: all messages of the peer count.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(crate) attribute: Option<String>,
    /// Minimum number of outcomes of a success rate. A candidate with fewer outcomes has the rate `assumed`.
    #[serde(default = "samples")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) samples: u32,
    /// Success rate of a candidate with too few outcomes, in percent.
    #[serde(default = "assumed")]
    #[cfg_attr(test, schemars(range(max = 100)))]
    pub(crate) assumed: u32,
    /// Switching margin, in percentage points. The peer with most of the messages keeps them until its success rate is
    /// further than this below the best one.
    #[serde(default = "leave_margin")]
    #[cfg_attr(test, schemars(range(max = 100)))]
    pub(crate) leave_margin: u32,
    /// Margin for cheaper peers, in percentage points, at most `leave-margin`. A cheaper peer gets the messages when its
    /// success rate is at most this far below the best one.
    #[serde(default = "return_margin")]
    #[cfg_attr(test, schemars(range(max = 100)))]
    pub(crate) return_margin: u32,
    /// Share of the messages that explores each of the other candidates, in percent; at most 50 for all together.
    #[serde(default = "exploration")]
    #[cfg_attr(test, schemars(range(max = 100)))]
    pub(crate) exploration: u32,
    /// Maximum cost of one segment, in currency units, in quotes. A destination can override it. Default: no limit.
    pub(crate) highest_cost: Option<Millionths>,
    /// Maximum cost above the cheapest candidate of the destination, in percent. A destination can override it. Default: no limit.
    pub(crate) highest_markup: Option<u32>,
    /// Maximum time that a message waits for a leg before the next one is tried. Default: no limit.
    pub(crate) longest_wait: Option<Time>,
    /// The action for a message without a candidate. Default: pass.
    #[serde(default)]
    pub(crate) otherwise: NoCandidateAction,
    /// The candidates for a destination.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<DestinationEntry>"))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct DestinationEntry {
    /// The first digits of destinations, without a plus sign; "" is every destination.
    #[cfg_attr(test, schemars(schema_with = "policy_values::schema::prefixes"))]
    pub(crate) prefix: Names,
    /// The peers that can take the messages.
    #[cfg_attr(test, schemars(length(min = 1, max = 8)))]
    pub(crate) candidates: Vec<CandidateEntry>,
    /// Maximum cost of one segment for this destination, in currency units, in quotes.
    pub(crate) highest_cost: Option<Millionths>,
    /// Maximum cost above the cheapest candidate of this destination, in percent.
    pub(crate) highest_markup: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct CandidateEntry {
    /// The peer.
    #[cfg_attr(test, schemars(length(min = 1), extend("x-switchyard" = "peer")))]
    pub(crate) peer: String,
    /// Cost of one segment, in currency units, in quotes.
    pub(crate) cost: Millionths,
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Document>("adaptive");
    }
}
