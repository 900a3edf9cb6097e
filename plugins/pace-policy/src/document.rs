//! The entries of documents.

use policy_values::Time;
use serde::Deserialize;

/// A pace bucket that a rule names.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BucketEntry {
    /// Its name: 1 to 64 of a-z, 0-9, dot, hyphen and underscore. With `each` or `table`: the first part of the name, at
    /// most 32 characters.
    #[cfg_attr(
        feature = "schema",
        schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9._-]+$"), extend("x-switchyard" = "pace-bucket"))
    )]
    pub(crate) name: String,
    /// Messages or segments in the period. Without `amount` and `table`, the bucket is one of the appliance's configuration.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000_000_000_u64)))]
    pub(crate) amount: Option<u64>,
    /// The time in which the bucket fills evenly: 1ms to 31d. Default: it is full at the beginning of each day.
    pub(crate) per: Option<Time>,
    /// The time zone of the days, such as America/New_York. Default: UTC.
    pub(crate) zone: Option<String>,
    /// Its unit. Default: messages.
    pub(crate) counts: Option<UnitKeyword>,
    /// A separate bucket for each account or each source, with the same amount. Default: one bucket for all messages.
    pub(crate) each: Option<EachKeyword>,
    /// The lookup table of groups and amounts. Keys: source addresses, without a plus sign; values: `GROUP AMOUNT`. The
    /// sources of a group share a bucket. Sources that are not in the table use no bucket.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), extend("x-switchyard" = "table")))]
    pub(crate) table: Option<String>,
}

/// The unit of a pace bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UnitKeyword {
    /// Submit attempts of messages.
    Messages,
    /// The segments of messages on the air.
    Segments,
}

/// The kind of object that each pace bucket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EachKeyword {
    /// Each account.
    Account,
    /// Each source address.
    Source,
}

/// A send window that a rule names.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WindowEntry {
    /// Its name: 1 to 64 of a-z, 0-9, dot, hyphen and underscore. Without further keys, the window is one of the appliance's
    /// configuration.
    #[cfg_attr(
        feature = "schema",
        schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9._-]+$"), extend("x-switchyard" = "send-window"))
    )]
    pub(crate) name: String,
    /// The time zone of its hours, such as America/New_York.
    pub(crate) zone: Option<String>,
    /// The days on which it opens. Default: all.
    #[serde(default)]
    pub(crate) days: Vec<DayKeyword>,
    /// The time at which it opens, such as "08:00".
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9]{2}:[0-9]{2}$")))]
    pub(crate) opens: Option<String>,
    /// The time at which it closes, at most "24:00". If it is before `opens`, the window closes on the next day.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9]{2}:[0-9]{2}$")))]
    pub(crate) closes: Option<String>,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DayKeyword {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}
