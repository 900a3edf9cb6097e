use std::sync::Arc;

use crate::Scripts;

/// Limits per connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RespLimits {
    /// Maximum length of a request in octets, including framing.
    pub octets: usize,
    /// Maximum number of elements in a request.
    pub elements: usize,
    /// Maximum number of requests that wait for replies, and of commands in a transaction; at least 1. The requests of
    /// a transaction are emitted at once, even if others are pending.
    pub pipelined: usize,
    /// Octets waiting to be written, above which nothing is read.
    pub output_buffer: usize,
}

impl Default for RespLimits {
    fn default() -> Self {
        Self { octets: 1 << 20, elements: 1024, pipelined: 4096, output_buffer: 1 << 20 }
    }
}

/// Options shared by all sessions of a listener.
#[derive(Debug, Clone)]
pub struct RespOptions {
    /// Limits per connection.
    pub limits: RespLimits,
    /// Whether clients must log in.
    pub accounts: bool,
    /// The scripts that implement the pool state machine.
    pub scripts: Arc<Scripts>,
    /// Whether script changes return integers, and states are words such as `idle+up`; otherwise both have the legacy
    /// format: the texts `1` and `0`, and JSON.
    pub plain_replies: bool,
    /// The version reported by `HELLO`; clients select their commands by it.
    pub version: String,
}
