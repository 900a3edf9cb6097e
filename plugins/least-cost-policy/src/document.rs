//! The document format; `policies/least-cost.toml` is a commented example.

use crate::NoOfferAction;
use pace_policy::{BucketEntry, WindowEntry};
use policy_values::{AttributeConditions, Millionths, Names, Time};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    /// Maximum number of legs of a message. Default: 255.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) most_legs: Option<u8>,
    /// Minimum quality of an offer: 0 to 100, 100 is best. A destination can override it. Default: 0.
    #[cfg_attr(test, schemars(range(max = 100)))]
    pub(crate) lowest_quality: Option<u8>,
    /// Maximum cost of one segment, in currency units, in quotes. A destination can override it. Default: no limit.
    pub(crate) highest_cost: Option<Millionths>,
    /// Peers with more queued messages are skipped. Default: no limit.
    pub(crate) most_queued: Option<u64>,
    /// Maximum time that a message waits for a leg before the next one is tried. An offer can override it. Default: no limit.
    pub(crate) longest_wait: Option<Time>,
    /// The action for a message without an acceptable offer. Default: pass.
    #[serde(default)]
    pub(crate) otherwise: NoOfferAction,
    /// A lookup table with further offers, which the binding must grant: the key is a prefix, the value `north 0.012 95; south
    /// 0.010 80` (peer, cost, quality).
    #[cfg_attr(test, schemars(extend("x-switchyard" = "table")))]
    pub(crate) table: Option<String>,
    /// The offers for a destination. The longest prefix decides; of several destinations with the same prefix, the first whose
    /// conditions match.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Destination>"))]
    pub(crate) destination: Vec<toml::Spanned<Destination>>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Destination {
    /// The first digits of destinations, without a plus sign; "" is every destination.
    #[cfg_attr(test, schemars(schema_with = "policy_values::schema::prefixes"))]
    pub(crate) prefix: Names,
    /// Condition: attributes that a lookup, a screen or the account sets, such as `{ mcc = "262", mnc = ["01", "06"] }`, with a star as
    /// a wildcard at the end of a value. Default: any.
    #[serde(default)]
    pub(crate) attributes: AttributeConditions,
    /// The peers' offers.
    #[cfg_attr(test, schemars(length(min = 1, max = 64)))]
    pub(crate) offers: Vec<Offer>,
    /// Minimum quality of an offer for this destination: 0 to 100, 100 is best.
    #[cfg_attr(test, schemars(range(max = 100)))]
    pub(crate) lowest_quality: Option<u8>,
    /// Maximum cost of one segment for this destination, in currency units, in quotes.
    pub(crate) highest_cost: Option<Millionths>,
    /// The pace buckets that the message uses.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 8)))]
    pub(crate) pace_buckets: Vec<BucketEntry>,
    /// The send windows that the message uses; it is sent only while all are open.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 4)))]
    pub(crate) send_windows: Vec<WindowEntry>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Offer {
    /// The peer.
    #[cfg_attr(test, schemars(extend("x-switchyard" = "peer")))]
    pub(crate) peer: String,
    /// Cost of one segment, in currency units, in quotes.
    pub(crate) cost: Millionths,
    /// Quality of the offer: 0 to 100, 100 is best. Default: 100.
    #[serde(default = "best")]
    #[cfg_attr(test, schemars(range(max = 100)))]
    pub(crate) quality: u8,
    /// Maximum time that a message waits for this leg before the next one is tried.
    pub(crate) longest_wait: Option<Time>,
}

fn best() -> u8 {
    100
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Document>("least-cost");
    }
}
