//! The document format; `policies/firewall.toml` is a commented example.

use pace_policy::{BucketEntry, WindowEntry};
use policy_values::{Names, Time};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    /// A rule. Rules are evaluated in order; a rule applies if all its conditions hold.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<RuleEntry>"))]
    pub(crate) rule: Vec<toml::Spanned<RuleEntry>>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RuleEntry {
    /// Its name, for notes and counters; unique in the document.
    #[cfg_attr(test, schemars(length(min = 1, max = 64)))]
    pub(crate) name: String,
    // Conditions on the record of the message.
    /// Condition: the account that submitted the message; `*` matches any characters, `?` one character, `#` one digit.
    #[cfg_attr(test, schemars(extend("x-switchyard" = "account")))]
    pub(crate) accounts: Option<Names>,
    /// Condition: the source address; `*` matches any characters, `?` one character, `#` one digit.
    pub(crate) sources: Option<Names>,
    /// Condition: the kind of the source address.
    pub(crate) source_kind: Option<SourceKindKeyword>,
    /// Condition: the source address is registered in this lookup table for the account. Keys: `ACCOUNT/SENDER` or `*/SENDER`.
    #[cfg_attr(test, schemars(length(min = 1), extend("x-switchyard" = "table")))]
    pub(crate) registered: Option<String>,
    /// Condition: the source address is not registered in this lookup table for the account. Keys: `ACCOUNT/SENDER` or `*/SENDER`.
    #[cfg_attr(test, schemars(length(min = 1), extend("x-switchyard" = "table")))]
    pub(crate) unregistered: Option<String>,
    /// Condition: the first digits of the destination, without a plus sign; "" is every destination.
    #[serde(default)]
    #[cfg_attr(test, schemars(schema_with = "policy_values::schema::prefixes"))]
    pub(crate) destinations: Option<Names>,
    /// Condition: the data coding is one of these.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(crate) data_codings: Option<Vec<u8>>,
    /// Condition: the message has more segments than this.
    pub(crate) segments_over: Option<u16>,
    /// Condition: the message has a user data header (true), or none (false).
    pub(crate) header: Option<bool>,
    // Conditions on its text.
    /// Condition: the text has one of these words or phrases. Of `words`, `contains` and `word-table`, one match is enough.
    pub(crate) words: Option<Names>,
    /// Condition: the text has one of these anywhere, also within words.
    pub(crate) contains: Option<Names>,
    /// Condition: the text has a word in this lookup table. Keys: words in lower case, without accents.
    #[cfg_attr(test, schemars(length(min = 1), extend("x-switchyard" = "table")))]
    pub(crate) word_table: Option<String>,
    /// Condition: the text has a link (true), or none (false).
    pub(crate) links: Option<bool>,
    /// Condition: a link leads to one of these domains, or to a subdomain of one.
    pub(crate) domains: Option<Names>,
    /// Condition: a link leads to a domain in this lookup table. Keys: domains in lower case.
    #[cfg_attr(test, schemars(length(min = 1), extend("x-switchyard" = "table")))]
    pub(crate) domain_table: Option<String>,
    /// Condition: a link leads to a domain that is neither one of these nor a subdomain of one.
    pub(crate) other_domains_than: Option<Names>,
    /// Condition: a link leads to a domain that is not in this lookup table. Keys: domains in lower case.
    #[cfg_attr(test, schemars(length(min = 1), extend("x-switchyard" = "table")))]
    pub(crate) other_domains_than_table: Option<String>,
    /// Condition: the text does not follow its registered DLT template.
    pub(crate) dlt: Option<DltEntry>,
    // Conditions on numbers of messages.
    /// Condition: too many texts in a window that differ only in digits, case, spaces and punctuation.
    pub(crate) near_duplicates: Option<NearDuplicatesEntry>,
    /// Condition: too many messages in a window, or more than the usual number.
    pub(crate) volume: Option<VolumeEntry>,
    // The action.
    /// The action if all conditions hold.
    pub(crate) then: ActionKeyword,
    /// The reason of the refusal, with `then = "reject"`. Default: prohibited.
    pub(crate) reason: Option<ReasonKeyword>,
    /// The state in the DLR, with `then = "drop"`. Default: undeliverable.
    pub(crate) report: Option<ReportKeyword>,
    /// The replacement of the words and links that the rule finds, with `then = "replace"`: at most 160 octets.
    #[cfg_attr(test, schemars(length(max = 160)))]
    pub(crate) with: Option<String>,
    /// The pace bucket that the message uses, with `then = "pace"`.
    pub(crate) bucket: Option<BucketEntry>,
    /// The send window that the message uses, with `then = "pace"`.
    pub(crate) window: Option<WindowEntry>,
    /// Attributes of the message for later plugins, such as `{ spam = "likely" }`; with `then` pass, tag, replace, pace or quarantine.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("propertyNames" = { "pattern": "^[a-z0-9._-]{1,64}$" })))]
    pub(crate) tags: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct DltEntry {
    /// The lookup table of templates. Keys: the id of the template; `ID/2`, `ID/3` and so on for the rest of a long text.
    #[cfg_attr(test, schemars(length(min = 1), extend("x-switchyard" = "table")))]
    pub(crate) templates: String,
    /// The lookup table of the templates' entities. Keys: the id of the template. Default: any entity.
    #[cfg_attr(test, schemars(length(min = 1), extend("x-switchyard" = "table")))]
    pub(crate) entities: Option<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct NearDuplicatesEntry {
    /// Maximum number of such texts in the window.
    pub(crate) over: u32,
    /// The sliding window: 1s to 24h.
    pub(crate) window: Time,
    /// The messages that are counted together. Default: account.
    #[serde(default)]
    pub(crate) per: Scope,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct VolumeEntry {
    /// Maximum number of messages in the window.
    pub(crate) over: u32,
    /// The sliding window: 1s to 24h.
    pub(crate) window: Time,
    /// The messages that are counted together. Default: account.
    #[serde(default)]
    pub(crate) per: Scope,
    /// Number of leading digits of the destination: each value of them counts separately, such as 3 for a country code.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(max = 15)))]
    pub(crate) digits: u8,
    /// The number must also exceed this multiple of the usual number: the average per window in the time `before`.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) times: Option<u32>,
    /// The time for the usual number, with `times`: at least two windows, and at most 24h.
    pub(crate) before: Option<Time>,
}

/// Messages that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scope {
    /// All messages of an account.
    #[default]
    Account,
    /// All messages of one source of an account.
    Source,
    /// All messages.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SourceKindKeyword {
    /// Digits only, after an optional plus sign.
    Numeric,
    /// Has other characters.
    Alphanumeric,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ActionKeyword {
    /// The message passes.
    Pass,
    /// Set the `tags`, and evaluate the next rule.
    Tag,
    /// Replace the words and links that the rule found with `with`, and evaluate the next rule.
    Replace,
    /// Apply the `bucket` and the `window` to the message, and evaluate the next rule.
    Pace,
    /// Refuse the message.
    Reject,
    /// Keep the message until an admin releases or purges it.
    Quarantine,
    /// Accept the message, and do not deliver it.
    Drop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReasonKeyword {
    /// The content is not allowed.
    #[default]
    Prohibited,
    /// The source is not allowed.
    InvalidSource,
    /// The destination is not allowed.
    InvalidDestination,
    /// The account may not send this.
    NotAuthorised,
    /// No route.
    NoRoute,
    /// The message may be submitted again.
    TryLater,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReportKeyword {
    /// The message is delivered.
    Delivered,
    /// The message cannot be delivered.
    #[default]
    Undeliverable,
    /// The message is rejected.
    Rejected,
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Document>("firewall");
    }
}
