//! What a user or a token is given leave to do.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

/// What somebody may do.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    /// What concerns one account, and nothing else.
    Account,
    /// See everything but texts and secrets.
    Viewer,
    /// Keep the traffic going: queues, messages, pools, replays.
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

/// What a new user or token is given.
#[derive(Debug, Args)]
pub(crate) struct Leave {
    /// What is allowed.
    #[arg(long)]
    role: Role,
    /// The account, for the role account.
    #[arg(long)]
    account: Option<String>,
    /// Texts of messages may be read, too.
    #[arg(long)]
    bodies: bool,
}

impl Leave {
    /// What the API is asked for.
    pub(crate) fn wish(self, name: &str) -> Value {
        let mut wish = json!({ "name": name, "role": self.role.name(), "bodies": self.bodies });
        if let Some(account) = self.account {
            wish["account"] = account.into();
        }
        wish
    }
}
