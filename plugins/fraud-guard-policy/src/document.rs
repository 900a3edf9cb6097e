//! The document format; `policies/fraud.toml` is a commented example.

use policy_values::Time;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    /// Accounts and source addresses that are exempt from all rules.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Allow>"))]
    pub(crate) allow: Vec<toml::Spanned<Allow>>,
    /// Limits the messages of one source of one account.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Velocity>"))]
    pub(crate) velocity: Vec<toml::Spanned<Velocity>>,
    /// Limits the consecutive numbers to which one source of one account sends.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Neighbours>"))]
    pub(crate) neighbours: Vec<toml::Spanned<Neighbours>>,
    /// Limits the different numbers of one block to which one source of one account sends.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Block>"))]
    pub(crate) block: Vec<toml::Spanned<Block>>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Allow {
    /// The accounts. Default: any.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("x-switchyard" = "account")))]
    pub(crate) accounts: Vec<String>,
    /// The source addresses, with a star as a wildcard at the end. Default: any.
    #[serde(default)]
    pub(crate) sources: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Velocity {
    /// Its name, for notes and counters; unique in the document.
    #[cfg_attr(test, schemars(length(min = 1, max = 64)))]
    pub(crate) name: String,
    /// Maximum number of messages in the window.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) messages: u32,
    /// The window: 1s to 24h.
    pub(crate) window: Time,
    /// The action for messages above the limit. Default: reject.
    #[serde(default)]
    pub(crate) then: ActionKeyword,
    /// The hold time, with `then = "hold"`; at least the window.
    pub(crate) hold: Option<Time>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Neighbours {
    /// Its name, for notes and counters; unique in the document.
    #[cfg_attr(test, schemars(length(min = 1, max = 64)))]
    pub(crate) name: String,
    /// Maximum number of messages in the window to a number whose neighbour, the number one above or below, got one too.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) numbers: u32,
    /// The window: 1s to 24h.
    pub(crate) window: Time,
    /// The action for messages above the limit. Default: reject.
    #[serde(default)]
    pub(crate) then: ActionKeyword,
    /// The hold time, with `then = "hold"`; at least the window.
    pub(crate) hold: Option<Time>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Block {
    /// Its name, for notes and counters; unique in the document.
    #[cfg_attr(test, schemars(length(min = 1, max = 64)))]
    pub(crate) name: String,
    /// Numbers of a block: 10, 100, 1000 or 10000, which differ only in their last digits.
    #[cfg_attr(test, schemars(extend("enum" = [10, 100, 1_000, 10_000])))]
    pub(crate) size: u32,
    /// Maximum number of different numbers of the block in the window.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) numbers: u32,
    /// The window: 1s to 24h.
    pub(crate) window: Time,
    /// The action for messages above the limit. Default: reject.
    #[serde(default)]
    pub(crate) then: ActionKeyword,
    /// The hold time, with `then = "hold"`; at least the window.
    pub(crate) hold: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ActionKeyword {
    #[default]
    /// Refuse the message.
    Reject,
    /// Hold the message, and then route it again.
    Hold,
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Document>("fraud-guard");
    }
}
