//! The configuration document: one JSON tree, read from a TOML file or received over the API.
//!
//! A key is declared once, as a field of a struct with [`Keys`]: type, default, limits, description, secrecy, and the effect
//! of a change. The declaration parses the key, collects all problems ([`Section`]), and is the source of the JSON Schema,
//! the reference page, the console's forms and the effects of changes ([`effect_of`]).
//!
//! [`merge`] patches a document, [`diff`] compares it; both address items of named lists by name. [`hide`] replaces
//! secrets before a document is shown, [`restore`] puts them back. [`VersionStore`] keeps every version that was active.
//!
//! This crate does not know what a key means to the daemon, and it opens no sockets.
#![forbid(unsafe_code)]

extern crate self as configuration;

mod change;
mod diagnostics;
mod diff;
pub mod files;
mod format;
mod key;
mod key_upgrade;
mod merge_patch;
mod named_list;
mod pointer;
mod secrets;
mod section;
mod toml_file;
mod version_store;

pub use change::{ChangeKind, ConfigChange};
pub use configuration_derive::{Keys, Word};
pub use diagnostics::{ConfigProblem, Diagnostics};
pub use diff::diff;
pub use format::{
    Ascii, ExistingFile, HostPort, Integer, KeyFormat, KeyItem, KeyValue, MAX_INTEGER, Natural, Size, Word,
    Words, list_or_word,
};
pub use key::{Effect, Key, Keys, Shape, effect_of, find, schema};
pub use key_upgrade::{RENAMED_VALUES, upgrade_keys};
pub use merge_patch::merge;
pub use pointer::pointer;
pub use secrets::{UNCHANGED, hide, hide_changes, restore};
pub use section::{Section, parse_size};
pub use toml_file::{FileError, SourceLines, from_toml, to_toml};
pub use version_store::{
    ConfigVersion, ConfigVersionSummary, PendingVersion, VersionDraft, VersionStore, VersionStoreError,
};
