use crate::Command;
use std::time::Duration;

/// Which end of the connection we are; whoever connects is the one who sends commands (SGIP 1.2 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// We connected.
    Connector,
    /// The peer did.
    Acceptor,
}

/// Settings of a session. A time of zero is never.
#[derive(Clone, Debug)]
pub struct Options {
    /// Commands of ours that may be unanswered (SGIP 1.2 §3.1: 32).
    pub window_out: usize,
    /// Commands of the peer's that may be unanswered by our owner; more are not read.
    pub window_in: usize,
    /// How long an answer may take before the command is sent again.
    pub response_timeout: Duration,
    /// How often a command is sent in all before it is given up.
    pub tries: u32,
    /// How long the login and its answer may take.
    pub bind_timeout: Duration,
    /// Silence, with nothing unanswered, after which the connection ends.
    pub idle: Duration,
    /// How long the rest of a PDU may take once its first octet is there.
    pub partial_timeout: Duration,
    /// How long the answer to our Unbind may take.
    pub unbind_timeout: Duration,
    /// The longest PDU that is taken. [`crate::MAX_PDU`] is what may be sent, but a hundred users with a text are more.
    pub limit: u32,
    /// Match answers by node and counter alone where no whole sequence fits: some peers take the time apart and put it
    /// together again.
    pub loose_match: bool,
    /// The commands that the owner handles; others are answered with an error.
    pub accepts: Vec<Command>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window_out: 32,
            window_in: 100,
            response_timeout: Duration::from_secs(30),
            tries: 3,
            bind_timeout: Duration::from_secs(30),
            idle: Duration::ZERO,
            partial_timeout: Duration::from_secs(30),
            unbind_timeout: Duration::from_secs(5),
            limit: 4096,
            loose_match: false,
            accepts: Vec::new(),
        }
    }
}
