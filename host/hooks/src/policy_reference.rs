//! Policy references: the peers, number pools and tables of the appliance that a policy document names.
//!
//! A plugin reports them by looking each one up while it is configured (`peers`, `numbers` and `tables` of the WIT). An
//! unknown name would make every message of its rule a fault or a refusal, so the activation reports it first.

use api::PolicyReferenceKind;

/// A reference to one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyReference {
    /// The kind.
    pub kind: PolicyReferenceKind,
    /// The name.
    pub name: String,
}

/// Maximum number of references stored for one document.
pub(crate) const MAX_REFERENCES: usize = 10_000;

/// `peer "a", pool "b"`: the first few references, and the number of the others.
pub(crate) fn format_references(references: &[PolicyReference]) -> String {
    const MAX_SHOWN: usize = 8;
    let names = references.iter().take(MAX_SHOWN).map(|one| format!("{} {:?}", one.kind.name(), one.name));
    let mut text = names.collect::<Vec<_>>().join(", ");
    if references.len() > MAX_SHOWN {
        text.push_str(&format!(" and {} more", references.len() - MAX_SHOWN));
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
