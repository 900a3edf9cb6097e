use crate::pointer::pointer;
use serde_json::Value;

/// One difference.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigChange {
    /// The keys from the root down; an item of a named list is addressed by its name.
    pub path: Vec<String>,
    /// The old value.
    pub before: Option<Value>,
    /// The new value.
    pub after: Option<Value>,
}

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The value is new.
    Added,
    /// The value has changed.
    Changed,
    /// The value was removed.
    Removed,
}

impl ChangeKind {
    /// The name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

impl ConfigChange {
    /// The path as a JSON pointer. Items of named lists are addressed by name, as in a patch: `/peer/upstream/rate`.
    #[must_use]
    pub fn pointer(&self) -> String {
        pointer(&self.path)
    }

    /// The kind of the difference.
    #[must_use]
    pub fn kind(&self) -> ChangeKind {
        match (&self.before, &self.after) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Changed,
        }
    }
}
