//! The policy documents of `http-peer`: conversion of messages to requests, of responses to outcomes, and of callbacks to
//! receipts and messages. `policies/http-peer.toml` is a commented example.

mod answer;
mod callback;
mod condition;
mod document;
mod pattern;
mod request;
mod template;

pub use answer::no_answer;
pub use document::Policy;
pub use request::{PreparedRequest, Submission};

/// Looks up a secret of the peer by its name.
pub type Secrets<'a> = &'a dyn Fn(&str) -> Option<String>;

#[cfg(test)]
mod tests;
