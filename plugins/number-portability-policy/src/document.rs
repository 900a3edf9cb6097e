//! The document; `policies/number-portability.toml` is a commented example.

use policy_values::Time;
use resolver_policy::Numbers;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    /// How long a result from a table or over HTTP is cached. ENUM records have their own time. Default: 1h.
    pub(crate) valid: Option<Time>,
    /// How long the result for an unknown number is cached. Default: 10m.
    pub(crate) unknown_valid: Option<Time>,
    /// The prefixes of the numbers that are looked up, in international form. Other numbers are unknown. Default: all
    /// numbers.
    #[cfg_attr(test, schemars(length(min = 1), inner(regex(pattern = "^[0-9]{1,30}$"))))]
    pub(crate) only: Option<Vec<String>>,
    /// Conversion of numbers that are not international.
    #[serde(default)]
    pub(crate) numbers: Numbers,
    /// The sources, in the order of lookups. The first source that knows a number answers.
    #[cfg_attr(test, schemars(with = "Vec<Source>", length(min = 1, max = 8)))]
    pub(crate) source: Vec<toml::Spanned<Source>>,
    /// The networks to which rows, routing numbers and providers refer.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Network>"))]
    pub(crate) network: Vec<toml::Spanned<Network>>,
}

/// A source of facts about numbers: exactly one of `table`, `enum` and `http`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Source {
    /// A lookup table, which the binding must grant. The key is a number or a prefix in international form; the value is the
    /// name of a network or MCC-MNC, optionally followed by `ported` or `not-ported` and by a line type, separated by
    /// commas: `262-03,ported,mobile`.
    #[cfg_attr(test, schemars(extend("x-switchyard" = "table")))]
    pub(crate) table: Option<String>,
    /// Whether the numbers of the table are ported, for rows that do not say it. Default: not known.
    pub(crate) ported: Option<bool>,
    /// The line type of the numbers of the table, if neither the row nor its network has one.
    pub(crate) line_type: Option<String>,
    /// The apex of an ENUM tree, such as e164.arpa, which the binding must grant as a zone.
    #[serde(rename = "enum")]
    #[cfg_attr(test, schemars(extend("x-switchyard-grant" = "dns")))]
    pub(crate) apex: Option<String>,
    /// The URL of a service, which the binding must grant; {number} is replaced by the number.
    #[cfg_attr(test, schemars(regex(pattern = "^https?://"), extend("x-switchyard-grant" = "http")))]
    pub(crate) http: Option<String>,
    /// Headers of the HTTP request.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// The fields of the JSON response that become attributes: the name of the attribute, and the JSON pointer of the field.
    #[serde(default)]
    pub(crate) fields: BTreeMap<String, String>,
    /// The JSON pointer of a field with the name of a network.
    pub(crate) network: Option<String>,
    /// HTTP statuses that mean that the number is unknown. Default: 404.
    #[cfg_attr(test, schemars(inner(range(min = 200, max = 599))))]
    pub(crate) unknown_status: Option<Vec<u16>>,
}

/// A network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Network {
    /// Its name in tables and responses.
    pub(crate) name: String,
    /// Its mobile country code.
    #[cfg_attr(test, schemars(regex(pattern = "^[0-9]{3}$")))]
    pub(crate) mcc: Option<String>,
    /// Its mobile network code.
    #[cfg_attr(test, schemars(regex(pattern = "^[0-9]{2,3}$")))]
    pub(crate) mnc: Option<String>,
    /// The line type of its numbers.
    pub(crate) line_type: Option<String>,
    /// The prefixes of its routing numbers, without a plus sign.
    #[serde(default)]
    pub(crate) rn: Vec<String>,
    /// Its names as a service provider.
    #[serde(default)]
    pub(crate) spn: Vec<String>,
}
