//! The source tree itself: these tests need no daemon.

mod links;
mod names;
