use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// The role of a user or token. Each role except [`Role::Account`] includes all permissions of the roles before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Access to one account's own data only.
    Account,
    /// Reads everything except message texts and secrets; changes nothing.
    Viewer,
    /// Also operates traffic: queues, messages, pools, replays.
    Operator,
    /// All permissions except `read-bodies`.
    Admin,
}

/// A permission that an operation requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// Data of the caller's own account. The handler restricts the answer to that account.
    Own,
    /// State, counts, traces without message texts, the configuration without secrets.
    Read,
    /// Message texts. No role includes it; it is granted to a user or token.
    ReadBodies,
    /// Operating messages, queues, pools, opt-outs, replays.
    Operate,
    /// Changing the configuration, tables, log level, drain mode.
    Configure,
    /// Uploading and activating plugins.
    ManagePlugins,
    /// Changing balances of the ledger.
    ManageMoney,
    /// Users, tokens, the audit log.
    ManageUsers,
    /// Backups. They contain everything, including message texts and secrets.
    ManageBackups,
    /// The appliance image: updates, support bundle, factory reset.
    ManageAppliance,
}

impl Permission {
    /// All permissions.
    pub const ALL: [Self; 10] = [
        Self::Own,
        Self::Read,
        Self::ReadBodies,
        Self::Operate,
        Self::Configure,
        Self::ManagePlugins,
        Self::ManageMoney,
        Self::ManageUsers,
        Self::ManageBackups,
        Self::ManageAppliance,
    ];
}

impl Role {
    /// Whether the role includes a permission.
    #[must_use]
    pub fn has(self, permission: Permission) -> bool {
        match permission {
            Permission::Own => true,
            Permission::ReadBodies => false,
            Permission::Read => self >= Self::Viewer,
            Permission::Operate => self >= Self::Operator,
            Permission::Configure
            | Permission::ManagePlugins
            | Permission::ManageMoney
            | Permission::ManageUsers
            | Permission::ManageBackups
            | Permission::ManageAppliance => self == Self::Admin,
        }
    }
}

/// The caller of a request. The authorization layer adds it to the extensions of every authorized request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Name of the user or token, for the audit log and for `by` fields.
    pub name: Arc<str>,
    /// The role.
    pub role: Role,
    /// The account of a caller with [`Role::Account`].
    pub account: Option<Arc<str>>,
    /// Whether the caller may read message texts.
    pub bodies: bool,
}

impl Caller {
    /// The caller with the root token of the data directory: all permissions, including message texts.
    #[must_use]
    pub fn root() -> Self {
        Self { name: "token".into(), role: Role::Admin, account: None, bodies: true }
    }

    /// Whether the caller has a permission.
    #[must_use]
    pub fn has(&self, permission: Permission) -> bool {
        if permission == Permission::ReadBodies { self.bodies } else { self.role.has(permission) }
    }
}
