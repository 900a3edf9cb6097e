use api::{Permission, Role};
use model::NumberDisplay;
use std::sync::Arc;

/// The caller of a request. The authorization layer adds it to the extensions of every authorized request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Name of the user or token, for the audit log and for `by` fields.
    pub name: Arc<str>,
    /// The role.
    pub role: Role,
    /// The account of a caller with [`Role::Account`].
    pub account: Option<Arc<str>>,
    /// The tenant to whose branch the caller is restricted; `None`: no restriction.
    pub tenant: Option<Arc<str>>,
    /// Whether the caller may read message texts.
    pub bodies: bool,
}

impl Caller {
    /// The caller with the root token of the data directory: all permissions, including message texts.
    #[must_use]
    pub fn root() -> Self {
        Self { name: "token".into(), role: Role::Admin, account: None, tenant: None, bodies: true }
    }

    /// Whether the caller has a permission.
    #[must_use]
    pub fn has(&self, permission: Permission) -> bool {
        if permission == Permission::ReadBodies { self.bodies } else { self.role.has(permission) }
    }

    /// The display of subscribers' numbers to the caller, in all answers: unmasked numbers if the caller may read message
    /// texts, otherwise masked.
    #[must_use]
    pub fn number_display(&self) -> NumberDisplay {
        if self.has(Permission::ReadBodies) { NumberDisplay::Whole } else { NumberDisplay::Masked }
    }
}
