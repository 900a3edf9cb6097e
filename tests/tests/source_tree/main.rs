//! The source tree itself: these tests need no daemon.

mod binaries;
mod imports;
mod links;
mod names;
mod top_level;
