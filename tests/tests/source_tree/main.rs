//! The source tree itself: these tests need no daemon.

mod imports;
mod links;
mod names;
