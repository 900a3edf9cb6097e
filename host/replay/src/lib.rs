//! Replays archived messages through a candidate, and reports different decisions and prices.
//!
//! A [`Candidate`] decides archived messages. [`ReplayOptions::start`] feeds it all messages of a [`MessageSource`] on
//! many threads. The resulting [`ReplayReport`] lists how its verdicts differ from the archived ones: groups of equal
//! differences with examples, new rejects, new faults and the difference in price.
//!
//! The report depends only on the messages and on the candidate's decision for each, not on the number or the timing of
//! threads. Memory use does not grow with the number of messages.
//!
//! ```text
//! MessageSource ── batches ──▶ threads: decode, decide, compare
//!               ── tallies ──▶ Summary, in batch order ──▶ ReplayReport
//! ```
#![forbid(unsafe_code)]

mod batch_tally;
mod candidate;
mod compare;
mod compared_legs;
mod error;
mod message_source;
mod price_tally;
mod running_replay;
mod summary;
mod throughput;
mod verdict_text;

pub use api::{
    AccountPrice, DifferenceExample, DifferenceGroup, InexactReason, PriceReport, PriceSums, RemainingGroups,
    ReplayOutcome, ReplayProgress, ReplayReport, RequestDifference, Throughput,
};
pub use candidate::{Candidate, CandidateDecision, CandidatePrice, CandidateVerdict, RepeatedCall};
pub use error::ReplayError;
pub use message_source::{ArchiveSource, MessageBatch, MessageSource, MessageSourceError};
pub use running_replay::{ReplayOptions, RunningReplay};
