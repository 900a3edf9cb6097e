//! Number pools from the outside: clients, protocols and expected replies.

pub mod http;
mod model;
mod pool_server;
mod protocol;
mod stream;
mod table;

pub use model::{JournalEntry, NumberView, PoolModel, PoolView, PredictedReply};
pub use pool_server::{PendingRequest, PoolServer, RequestBatch};
pub use protocol::{PoolProtocol, PoolReply, SCRIPT, legacy_state};
pub use stream::{EventStream, ServerSentEvent, expected_change};
pub use table::{PoolEvent, Transition, transition};

/// A request to a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolRequest {
    /// An event of a number, other than a call.
    Event(PoolEvent, String),
    /// Leases a number, or this number.
    Call {
        /// This number.
        number: Option<String>,
        /// The holder.
        holder: String,
        /// The callee.
        callee: String,
        /// Duration of the lease in milliseconds.
        lease: Option<u64>,
    },
    /// A hangup, if the number is still held with this ticket.
    HangupOf(String, u64),
    /// A new duration of the lease in milliseconds, if the number is still held with this ticket.
    Renew(String, u64, Option<u64>),
}

impl PoolRequest {
    /// A call as the older system's script knows it.
    pub fn call(number: Option<&str>) -> Self {
        Self::Call {
            number: number.map(str::to_owned),
            holder: String::new(),
            callee: String::new(),
            lease: None,
        }
    }
}
