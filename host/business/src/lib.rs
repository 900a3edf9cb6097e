//! The doors of business systems, which speak neither SMPP nor SGIP: submission by XML-RPC and by JSON over HTTP, with
//! the same operations; pushes of replies and status reports to their URLs; fetching of what was not pushed.
//!
//! * **A call returns message ids after they are durable**, and may safely be repeated under its key.
//! * **A call is refused whole**, with every reason, before anything is stored.
//! * **Pushes are at least once**, in order per message; a business system that is down delays only its own, since what
//!   is for it waits in its account's queue as for any peer whose links are down.
//!
//! Nothing here holds a queue: an account's pushes and fetches are links of its peer, as an ESME's bind would be.
#![forbid(unsafe_code)]

mod accounts;
mod door;
mod inbox;
mod item;
mod json;
mod openapi;
mod options;
mod problem;
mod push;
mod request;
mod state;
mod submission;
mod unique;
mod xmlrpc;

pub use door::Business;
pub use openapi::document;
pub use options::{AccountOptions, BusinessOptions, PushFormat, PushOptions};
pub use push::{PushError, SIGNATURE_HEADER, signature};
pub use state::{AccountState, PushState, RequestCounts};
