use std::sync::Arc;

use crate::Scripts;

/// How much one connection may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest request, in octets with its framing.
    pub octets: usize,
    /// The most elements of a request.
    pub elements: usize,
    /// The most requests that wait for their answers, and the most commands of a transaction; at least 1. The requests of a
    /// transaction come in one piece, in spite of what waits already.
    pub pipelined: usize,
    /// Octets waiting to be written, above which nothing more is read.
    pub unsent: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { octets: 1 << 20, elements: 1024, pipelined: 4096, unsent: 1 << 20 }
    }
}

/// What all sessions of a listener have in common.
#[derive(Debug, Clone)]
pub struct Options {
    /// How much a connection may ask for.
    pub limits: Limits,
    /// Whether a connection must say who it is first.
    pub accounts: bool,
    /// Scripts that stand for the pools' state machine.
    pub scripts: Arc<Scripts>,
    /// Whether scripts' changes are answered with integers and states are words such as `idle+up`; otherwise both have the
    /// older system's forms, the texts `1` and `0` and JSON.
    pub plain_replies: bool,
    /// The version that `HELLO` names. Clients choose by it which commands they dare to send.
    pub version: String,
}
