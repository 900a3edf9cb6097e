use crate::SgipCommand;
use std::time::Duration;

/// Our side of the connection. The side that connects sends the commands (SGIP 1.2 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SgipRole {
    /// We connected.
    Connector,
    /// The peer connected.
    Acceptor,
}

/// Options of a session. A time of zero means never.
#[derive(Clone, Debug)]
pub struct SgipOptions {
    /// Commands of ours that may be unanswered (SGIP 1.2 §3.1: 32).
    pub window_out: usize,
    /// Commands of the peer that the owner may leave unanswered; more are not read.
    pub window_in: usize,
    /// The time for an answer, before the command is repeated.
    pub response_timeout: Duration,
    /// How often a command is sent in all.
    pub tries: u32,
    /// The time for the login and its answer.
    pub bind_timeout: Duration,
    /// The idle time, with no command unanswered, after which the connection ends.
    pub idle: Duration,
    /// The time for the rest of a PDU after its first octet.
    pub partial_timeout: Duration,
    /// The time for the answer to our Unbind.
    pub unbind_timeout: Duration,
    /// The longest PDU accepted. We send at most [`crate::MAX_PDU`], but a Submit to a hundred users is longer.
    pub limit: u32,
    /// Whether answers match by node and counter alone if no whole sequence matches: some peers rebuild the time.
    pub loose_match: bool,
    /// The commands that the owner handles; others are answered with an error.
    pub accepts: Vec<SgipCommand>,
}

impl Default for SgipOptions {
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
