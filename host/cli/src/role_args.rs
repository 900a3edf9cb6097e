//! The role and the permissions of a new user or token.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

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

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// The arguments for the role of a new user or token.
#[derive(Debug, Args)]
pub(crate) struct RoleArgs {
    /// The role.
    #[arg(long)]
    role: Role,
    /// The account, for the role account.
    #[arg(long)]
    account: Option<String>,
    /// Permit to read texts of messages as well.
    #[arg(long)]
    bodies: bool,
}

impl RoleArgs {
    /// The request for the API.
    pub(crate) fn request(self, name: &str) -> Value {
        let mut request = json!({ "name": name, "role": self.role.name(), "bodies": self.bodies });
        if let Some(account) = self.account {
            request["account"] = account.into();
        }
        request
    }
}
