use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// What somebody is at the appliance; each role but [`Role::Account`] may do all that the one before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// An account's own people: what concerns that account, and nothing else.
    Account,
    /// Sees everything but texts and secrets, and changes nothing.
    Viewer,
    /// Keeps the traffic going: queues, messages, pools, replays.
    Operator,
    /// Everything.
    Admin,
}

/// What a request may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// What concerns the caller's own account; the handler sees to it that it is no other's.
    Own,
    /// State, counts, traces without texts, the configuration without secrets.
    Read,
    /// Texts of messages: granted to a person, by no role.
    ReadBodies,
    /// Messages, queues, pools, opt-outs, replays.
    Operate,
    /// The configuration, tables, log level, drain mode.
    Configure,
    /// Plugin versions and what is live.
    ManagePlugins,
    /// Balances of the ledger.
    ManageMoney,
    /// Users, tokens, the audit log.
    ManageUsers,
    /// Backups: they hold everything, texts and secrets included.
    ManageBackups,
    /// The machine below, where it is the appliance image: its system, its journal, resets.
    ManageMachine,
}

impl Right {
    /// All rights.
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
        Self::ManageMachine,
    ];
}

impl Role {
    /// Whether the role has a right.
    #[must_use]
    pub fn may(self, right: Right) -> bool {
        match right {
            Right::Own => true,
            Right::ReadBodies => false,
            Right::Read => self >= Self::Viewer,
            Right::Operate => self >= Self::Operator,
            Right::Configure
            | Right::ManagePlugins
            | Right::ManageMoney
            | Right::ManageUsers
            | Right::ManageBackups
            | Right::ManageMachine => self == Self::Admin,
        }
    }
}

/// Who makes a request, as handlers are told: an extension of every request that has passed the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The user's or the token's name, for the audit log and for "who changed this".
    pub name: Arc<str>,
    /// What the caller is.
    pub role: Role,
    /// The account that a [`Role::Account`] belongs to.
    pub account: Option<Arc<str>>,
    /// Whether texts of messages may be read.
    pub bodies: bool,
}

impl Caller {
    /// Whoever has the token of the data directory: everything, texts included.
    #[must_use]
    pub fn house() -> Self {
        Self { name: "token".into(), role: Role::Admin, account: None, bodies: true }
    }

    /// Whether the caller has a right.
    #[must_use]
    pub fn may(&self, right: Right) -> bool {
        if right == Right::ReadBodies { self.bodies } else { self.role.may(right) }
    }
}
