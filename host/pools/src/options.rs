use doors::Network;
use resp::{Limits, Node, Sum};
use std::time::Duration;

/// What an account may do with the pools that it may see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights {
    /// Look at them.
    pub read: bool,
    /// Take numbers, keep them, give them back.
    pub call: bool,
    /// Make and remove pools, put numbers in and out, up and down.
    pub manage: bool,
}

impl Rights {
    /// All of them.
    pub const ALL: Self = Self { read: true, call: true, manage: true };
}

/// Somebody who may come in.
#[derive(Debug, Clone)]
pub struct AccountOptions {
    /// The name; `default` is the account of those who give a password only.
    pub name: String,
    /// Of the password, argon2 in PHC form.
    pub password_hash: String,
    /// Patterns of the pools that it may see, `*` standing for anything.
    pub pools: Vec<String>,
    /// What it may do with them.
    pub rights: Rights,
    /// Where it may come from; empty: anywhere.
    pub networks: Vec<Network>,
}

/// How the door behaves.
#[derive(Debug, Clone)]
pub struct DoorOptions {
    /// Sums of the scripts that stand for the pools' state machine.
    pub scripts: Vec<Sum>,
    /// Any script that a client loads stands for it, too.
    pub any_script: bool,
    /// Scripts' changes are answered with integers, and states are words such as `idle+up`.
    pub plain_replies: bool,
    /// Where cluster clients are told to find us; `None`: where they are connected already.
    pub announce: Option<Node>,
    /// Who may come in. With none, everybody may do everything.
    pub accounts: Vec<AccountOptions>,
    /// The most connections in all.
    pub connections: usize,
    /// The most connections from one address.
    pub connections_per_address: usize,
    /// Connections that have not logged in, where there are accounts: one more displaces the oldest of them.
    pub unauthenticated_connections: usize,
    /// How long a connection may take to say who it is, where there are accounts.
    pub login_timeout: Duration,
    /// How long a client may take no octet of its answers before it is cut off.
    pub stall_timeout: Duration,
    /// How much one connection may ask for at once.
    pub limits: Limits,
    /// Passwords that are verified at a time.
    pub verifications: usize,
}

impl Default for DoorOptions {
    fn default() -> Self {
        Self {
            scripts: Vec::new(),
            any_script: false,
            plain_replies: false,
            announce: None,
            accounts: Vec::new(),
            connections: 10_000,
            connections_per_address: 1_000,
            unauthenticated_connections: 2_500,
            login_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(60),
            // Clients send a whole pipeline before they read its first answer: these must have room meanwhile.
            limits: Limits { unsent: 32 << 20, ..Limits::default() },
            verifications: 2,
        }
    }
}
