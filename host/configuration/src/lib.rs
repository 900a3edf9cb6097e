//! The configuration as a document: one tree, whether it came as a TOML file or as JSON over the API.
//!
//! The tree is read by one reader ([`Section`]), which remembers every error with its place and lets none stand in the way of
//! the next; it is patched ([`merge`]) and compared ([`diff`]) with lists of named things taken by name; its secrets are
//! hidden before anybody sees it ([`hide`]) and found again when it comes back ([`restore`]). Every version that was ever in
//! force is kept ([`Versions`]).
//!
//! Nothing here knows what a key means to the appliance, and nothing opens a socket.
#![forbid(unsafe_code)]

mod changes;
pub mod document;
mod file;
mod merging;
mod place;
mod problem;
mod secrets;
mod section;
mod versions;

pub use changes::{Change, What, diff};
pub use document::{Document, schema};
pub use file::{FileError, Lines, from_toml, to_toml};
pub use merging::merge;
pub use place::{NAMED_LISTS, pointer};
pub use problem::{Problem, Reading};
pub use secrets::{UNCHANGED, hide, hide_changes, is_secret, restore};
pub use section::{Section, parse_size};
pub use versions::{Draft, Pending, Summary, Version, Versions, VersionsError};
