//! The HTTP interface for business systems: submission by JSON or XML-RPC, pushes of MO messages and DLRs to their URLs, and
//! fetching of items that were not pushed. Plugins translate other products' HTTP APIs.
//!
//! * **A call returns message ids after they are durable** and can be repeated with its idempotency key.
//! * **An invalid call is rejected as a whole**, with all errors, before anything is stored.
//! * **Pushes are delivered at least once**, in order per message. A business system that is down delays only its own
//!   items, which wait in its account's queue.
//!
//! This crate holds no queue: an account's pushes and fetches are links of its peer, like an ESME's bind.
#![forbid(unsafe_code)]

mod account_state;
mod accounts;
mod answers;
mod business;
mod calls;
mod dlr_push;
mod dlr_urls;
mod front_end;
mod http_json;
mod inbox;
mod item;
mod openapi;
mod options;
mod problem;
mod push;
mod request;
mod submission;
mod twilio_signature;
mod unique_json;
mod xmlrpc;

pub use business::Business;
pub use openapi::document;
pub use options::{BusinessAccountOptions, BusinessOptions, FrontEndPath, PushFormat, PushOptions};
pub use push::{PushError, SIGNATURE_HEADER, signature};
