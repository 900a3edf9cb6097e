//! The keys that encrypt the texts of messages: one for each account and period, for example a day.
//!
//! [`TextKeys`] is the [`codec::ContentCipher`] of the daemon. The keys are in a file of their own, encrypted with the
//! root key; neither backups nor the journal contain that file. A key is durable before the first record that needs it.
//! Destroying a key makes all copies of the texts that it encrypted unreadable.
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
