//! The document format; `policies/second-chance.toml` is a commented example.

use crate::DlrState;
use policy_values::{Names, Time};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    /// Rules for messages; the first that matches counts.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<RuleEntry>"))]
    pub(crate) rule: Vec<toml::Spanned<RuleEntry>>,
    /// Replacements of states and error codes; the first that matches counts. They are applied before `next-leg` of the
    /// rules.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<RemapEntry>"))]
    pub(crate) remap: Vec<toml::Spanned<RemapEntry>>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RuleEntry {
    /// The first digits of destinations, without a plus sign. Default: every destination.
    #[serde(default)]
    #[cfg_attr(test, schemars(schema_with = "policy_values::schema::prefixes"))]
    pub(crate) prefix: Option<Names>,
    /// Only for submissions to these peers. Default: every peer.
    #[cfg_attr(test, schemars(extend("x-switchyard" = "peer")))]
    pub(crate) peer: Option<Names>,
    /// Only for messages with this attribute. Default: every message.
    pub(crate) attribute: Option<AttributeEntry>,
    /// Time without a delivery after which the next leg is tried. Default: none.
    pub(crate) wait: Option<Time>,
    /// States of a DLR after which the next leg is tried. Default: none.
    #[serde(default)]
    pub(crate) next_leg: Vec<DlrState>,
    /// DLRs that report delivery in less than this time are ignored. Default: none is ignored.
    pub(crate) suspect_below: Option<Time>,
    /// The final state when `wait` has passed on the last leg. Default: the message waits for its DLR until the peer's
    /// `dlr-timeout`.
    pub(crate) last_leg: Option<DlrState>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct AttributeEntry {
    /// The name of the attribute.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(crate) name: String,
    /// The value.
    pub(crate) value: String,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RemapEntry {
    /// Only for DLRs of these peers. Default: every peer.
    #[cfg_attr(test, schemars(extend("x-switchyard" = "peer")))]
    pub(crate) peer: Option<Names>,
    /// Only for DLRs with this state. Default: every final state.
    pub(crate) state: Option<DlrState>,
    /// Only for DLRs with one of these error codes. Default: every error code.
    pub(crate) errors: Option<Vec<u16>>,
    /// The new state. Default: the DLR's.
    pub(crate) to_state: Option<DlrState>,
    /// The new error code. Default: the DLR's.
    pub(crate) to_error: Option<u16>,
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Document>("second-chance");
    }
}
