//! The configuration document: one JSON tree, read from a TOML file or received over the API.
//!
//! [`Section`] reads the tree key by key and collects all problems. [`merge`] patches it, [`diff`] compares it; both
//! address items of named lists by name. [`hide`] replaces secrets before a document is shown, [`restore`] puts them
//! back. [`VersionStore`] keeps every version that was active.
//!
//! This crate does not know what a key means to the daemon, and it opens no sockets.
#![forbid(unsafe_code)]

mod diagnostics;
mod diff;
pub mod document;
mod key_upgrade;
mod merge_patch;
mod path;
mod secrets;
mod section;
mod toml_file;
mod version_store;

pub use diagnostics::{ConfigProblem, Diagnostics};
pub use diff::{ChangeKind, ConfigChange, diff};
pub use document::{ConfigDocument, schema};
pub use key_upgrade::upgrade_keys;
pub use merge_patch::merge;
pub use path::{NAMED_LISTS, pointer};
pub use secrets::{UNCHANGED, hide, hide_changes, is_secret, restore};
pub use section::{Section, parse_size};
pub use toml_file::{FileError, SourceLines, from_toml, to_toml};
pub use version_store::{
    ConfigVersion, ConfigVersionSummary, PendingVersion, VersionDraft, VersionStore, VersionStoreError,
};
