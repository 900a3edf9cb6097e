//! What a policy document names of the appliance's: peers, number pools and tables.
//!
//! A plugin tells it by asking for each while it is configured (`peers`, `numbers` and `tables` of the WIT). A name that
//! nobody knows would make every message of its rule a fault or a refusal, so whoever activates the plugin is told first.

use serde::Serialize;

/// What kind of thing is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReferenceKind {
    /// A peer, an account or a network.
    Peer,
    /// A number pool.
    Pool,
    /// A table that the binding grants.
    Table,
}

impl ReferenceKind {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Pool => "pool",
            Self::Table => "table",
        }
    }
}

/// One name of a policy document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Reference {
    /// What it is to be.
    pub kind: ReferenceKind,
    /// Its name.
    pub name: String,
}

/// A name that the policy of a plugin at work has and the appliance does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownReference {
    /// The plugin.
    pub plugin: String,
    /// What it names.
    #[serde(flatten)]
    pub reference: Reference,
}

/// Names kept of one document: a longer list tells nobody more.
pub(crate) const MOST: usize = 10_000;

/// `peer "a", pool "b"`: the first few, and how many more.
pub(crate) fn listed(references: &[Reference]) -> String {
    const SHOWN: usize = 8;
    let names = references.iter().take(SHOWN).map(|one| format!("{} {:?}", one.kind.word(), one.name));
    let mut text = names.collect::<Vec<_>>().join(", ");
    if references.len() > SHOWN {
        text.push_str(&format!(" and {} more", references.len() - SHOWN));
    }
    text
}

/// What must hold for a change of a hook's plugins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Only while the newest change of the hook has this serial.
    pub expected: Option<u64>,
    /// Also where a policy names what does not exist, or a component imports what its binding does not grant. A table that
    /// does not exist is empty until it is uploaded.
    pub force: bool,
}

impl From<Option<u64>> for Conditions {
    fn from(expected: Option<u64>) -> Self {
        Self { expected, force: false }
    }
}
