//! The keys that encrypt the texts of messages: one for each account and period, such as a day.
//!
//! [`TextKeys`] is the [`codec::ContentCipher`] of the daemon. Its keys are in a file of their own, encrypted with the root key,
//! which no backup and no journal has. A key is durable before the first record that needs it, and destroying it makes
//! unreadable what it encrypted, wherever that was copied to.
#![forbid(unsafe_code)]

mod cipher;
mod error;
mod key_file;
mod retirement;
mod root_key;
mod text_keys;

pub use error::TextKeyError;
pub use root_key::RootKey;
pub use text_keys::{KeyDescription, NO_ACCOUNT, TextKeys};
