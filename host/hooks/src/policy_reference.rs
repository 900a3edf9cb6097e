//! Policy references: the peers, number pools and tables of the appliance that a policy document names.
//!
//! A plugin reports them by looking each one up while it is configured (`peers`, `numbers` and `tables` of the WIT). An
//! unknown name would make every message of its rule a fault or a refusal, so the activation reports it first.

use serde::Serialize;

/// The kind of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyReferenceKind {
    /// A peer, an account or a network.
    Peer,
    /// A number pool.
    Pool,
    /// A table that the binding grants.
    Table,
}

impl PolicyReferenceKind {
    /// The noun for messages to people.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Pool => "pool",
            Self::Table => "table",
        }
    }
}

/// A reference to one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PolicyReference {
    /// The kind.
    pub kind: PolicyReferenceKind,
    /// The name.
    pub name: String,
}

/// A reference of an active plugin's policy to a name that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownReference {
    /// The plugin.
    pub plugin: String,
    /// The reference.
    #[serde(flatten)]
    pub reference: PolicyReference,
}

/// Maximum number of references stored for one document.
pub(crate) const MAX_REFERENCES: usize = 10_000;

/// `peer "a", pool "b"`: the first few references, and the number of the others.
pub(crate) fn format_references(references: &[PolicyReference]) -> String {
    const SHOWN: usize = 8;
    let names = references.iter().take(SHOWN).map(|one| format!("{} {:?}", one.kind.noun(), one.name));
    let mut text = names.collect::<Vec<_>>().join(", ");
    if references.len() > SHOWN {
        text.push_str(&format!(" and {} more", references.len() - SHOWN));
    }
    text
}

/// Conditions for a change of a hook's plugins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActivationConditions {
    /// The expected serial of the hook's latest change. The change is refused if it differs.
    pub expected: Option<u64>,
    /// Accept a policy that names unknown objects, and a component whose imports are not all granted. A table that does
    /// not exist is empty until it is uploaded.
    pub force: bool,
}

impl From<Option<u64>> for ActivationConditions {
    fn from(expected: Option<u64>) -> Self {
        Self { expected, force: false }
    }
}
