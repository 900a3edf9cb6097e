//! Lookup tables.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a table is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// By the exact key.
    Exact,
    /// By the longest key that is a prefix of the number.
    Prefix,
}

impl TableKind {
    /// Its name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Prefix => "prefix",
        }
    }
}

/// The result of filling a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct TableFillResult {
    /// The match of keys: exact or longest prefix.
    pub kind: TableKind,
    /// Number of keys.
    pub rows: u64,
    /// Memory in octets.
    pub octets: u64,
}

/// A lookup table.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Table)]
pub struct TableView {
    /// Its name.
    pub name: String,
    /// The match of keys: exact or longest prefix.
    pub kind: TableKind,
    /// Number of keys.
    pub rows: u64,
    /// Memory in octets.
    pub octets: u64,
}

/// The result of a lookup.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TableLookUp)]
pub struct TableLookUpView {
    /// The value of the exact key; null if there is none.
    #[schema(required)]
    pub exact: Option<String>,
    /// The longest key that is a prefix of the requested one; null if there is none.
    #[schema(required)]
    pub longest: Option<LongestKeyView>,
}

/// The longest key that is a prefix of another.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = LongestKey)]
pub struct LongestKeyView {
    /// Its length.
    pub length: u64,
    /// Its value.
    pub value: String,
}
