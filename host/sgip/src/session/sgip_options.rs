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
    /// Maximum number of unanswered commands of ours (SGIP 1.2 §3.1: 32).
    pub window_out: usize,
    /// Maximum number of unanswered commands of the peer; further ones are not read.
    pub window_in: usize,
    /// Maximum time for an answer, after which the command is sent again.
    pub response_timeout: Duration,
    /// Maximum number of times that a command is sent.
    pub tries: u32,
    /// Maximum time for the login and its answer.
    pub bind_timeout: Duration,
    /// Idle time without unanswered commands after which the connection is closed.
    pub idle: Duration,
    /// Maximum time for the rest of a PDU after its first octet.
    pub partial_timeout: Duration,
    /// Maximum time for the answer to our Unbind.
    pub unbind_timeout: Duration,
    /// Maximum length of a received PDU, in octets. We send at most [`crate::MAX_PDU`]; peers may send more, since a
    /// Submit to a hundred users is longer.
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
