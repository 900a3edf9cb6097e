//! CDR files: exactly one record for each message that has reached a final state.
//!
//! The position in the journal and the length of the open file are stored together, after the file is synced. At its
//! start, the daemon cuts off the octets beyond the stored length and continues from the stored position. So each final
//! record is in exactly one file, whenever the daemon was killed. See decision 73.

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
