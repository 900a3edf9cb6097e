//! The document format; `policies/prices.toml` is a commented example.

use policy_values::{Millionths, Names};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    /// The tariff of accounts that have no entry. Without it, their messages are refused.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) default_tariff: Option<toml::Spanned<String>>,
    /// An account with another tariff, a free account, or an account whose messages are refused.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Account>"))]
    pub(crate) account: Vec<toml::Spanned<Account>>,
    /// A price list.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Tariff>"))]
    pub(crate) tariff: Vec<toml::Spanned<Tariff>>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Account {
    /// The account, or a list of accounts.
    #[cfg_attr(test, schemars(extend("x-switchyard" = "account")))]
    pub(crate) name: Names,
    /// The name of its tariff. Default: `default-tariff`.
    pub(crate) tariff: Option<String>,
    /// The ledger account that is charged. Default: the account's own.
    #[cfg_attr(test, schemars(length(min = 1, max = 64), extend("x-switchyard" = "ledger-account")))]
    pub(crate) ledger: Option<String>,
    /// Its messages are free of charge.
    #[serde(default)]
    pub(crate) free: bool,
    /// Its messages are refused.
    #[serde(default)]
    pub(crate) refuse: bool,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Tariff {
    /// Its name, to which accounts refer.
    pub(crate) name: String,
    /// Whether failed messages are free. With false, a message is charged once it was submitted to a peer. Default: true.
    #[serde(default = "yes")]
    pub(crate) refund_on_failure: bool,
    /// A lookup table with further prices, which the binding must grant: the key is a prefix, the value a price such as 0.035.
    #[cfg_attr(test, schemars(extend("x-switchyard" = "table")))]
    pub(crate) table: Option<String>,
    /// Prices of one segment by the destination's prefix, in currency units, in quotes. The longest prefix decides; "" is every
    /// destination.
    #[serde(default)]
    pub(crate) prices: BTreeMap<String, Millionths>,
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Document>("prepaid");
    }
}
