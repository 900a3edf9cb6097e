//! What plugins are given: one module per WIT interface, with its limits.

mod body;
mod clock;
pub(crate) mod log;
pub(crate) mod peers;
pub(crate) mod tables;

use bytes::Bytes;
use model::Timestamp;
use std::sync::Arc;
use wasmtime::StoreLimits;

/// What the host keeps for one instance.
pub(crate) struct State {
    pub(crate) limits: StoreLimits,
    /// For the log.
    pub(crate) plugin: Arc<str>,
    /// When the call began.
    pub(crate) now: Timestamp,
    /// The destination of the message that is being routed, as digits.
    pub(crate) destination: tables::Digits,
    /// The text of the message that is being routed.
    pub(crate) body: Bytes,
    pub(crate) board: Arc<peers::Board>,
    pub(crate) tables: Arc<tables::Tables>,
    /// `configure` is running: tables may be filled.
    pub(crate) configuring: bool,
    /// Set when a deadline is first looked at: what the thread had run by then.
    pub(crate) looked: Option<crate::patience::Look>,
    /// Log lines that this call may still write.
    pub(crate) log_lines: u32,
}

impl crate::bindings::switchyard::hooks::types::Host for State {}
