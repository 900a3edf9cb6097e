//! Number pools from the outside: who asks, in which language, and what the answers must be.

pub mod http;
mod language;
mod model;
mod office;
mod stream;
mod table;

pub use language::{Language, SCRIPT, Told, older_state};
pub use model::{Entry, Model, Predicted, Seen, View};
pub use office::{Letter, Office, Request};
pub use stream::{ServerSent, Stream, entry};
pub use table::{Cell, Event, look_up};

/// What is asked of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// An event of a number, other than a call.
    Event(Event, String),
    /// A number, this one if one is named.
    Call {
        /// This one.
        number: Option<String>,
        /// Who takes it.
        holder: String,
        /// For whom.
        callee: String,
        /// For how many milliseconds.
        lease: Option<u64>,
    },
    /// A hangup, if the number is still held under this ticket.
    HangupOf(String, u64),
    /// A new end of a lease in milliseconds, if the number is still held under this ticket.
    Renew(String, u64, Option<u64>),
}

impl Wish {
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
