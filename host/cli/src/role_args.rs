//! The role and the permissions of a new user or token.

use clap::{Args, ValueEnum};

/// The role of a user or a token.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    /// Read and send messages of one account.
    Account,
    /// Read everything except texts of messages and secrets.
    Viewer,
    /// Operate traffic: queues, messages, pools, replays.
    Operator,
    /// Everything.
    Admin,
}

impl From<Role> for api::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Account => Self::Account,
            Role::Viewer => Self::Viewer,
            Role::Operator => Self::Operator,
            Role::Admin => Self::Admin,
        }
    }
}

/// The arguments for the role of a new user or token.
#[derive(Debug, Args)]
pub(crate) struct RoleArgs {
    /// The role.
    #[arg(long)]
    pub(crate) role: Role,
    /// The account, for the role account.
    #[arg(long)]
    pub(crate) account: Option<String>,
    /// The tenant; the name then ends with "@" and the tenant's name. Default: your own, if you have one.
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// Also permit reading texts of messages.
    #[arg(long)]
    pub(crate) bodies: bool,
}
