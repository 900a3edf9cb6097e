//! CDR files: one record for each message that has ended, exactly once.
//!
//! The position in the journal and the length of the file up to there are stored together, after the file is synced. A start cuts
//! off what is behind that length and goes on from that position. So each final record is in one file, whatever the daemon was
//! doing when it was killed. See decision 73.

mod fields;
mod format;
mod options;
mod state;
mod template;
mod thread;
mod writer;

pub use options::{CdrFormat, CdrOptions};
pub(crate) use state::CdrState;
pub(crate) use thread::CdrThread;
pub(crate) use writer::{CdrWriter, first_number};
