//! With databases, an HLR, and the programs that the manual uses.

mod archive;
mod events;
mod guide;
mod metrics;
mod traces;
