//! Archived messages through a candidate: what would be decided otherwise, and what it would cost.
//!
//! A [`Candidate`] judges messages that have ended; [`Replay::start`] gives it all of a [`Source`], on many threads, and
//! makes a [`Report`] of how its verdicts differ from those that were made: grouped by from and to, with examples, new
//! rejects, new faults and the difference in price.
//!
//! The report is a function of the messages and of what the candidate says of each: neither the number of threads nor
//! their luck is seen in it. It takes the same memory for a thousand messages and for a thousand million.
//!
//! ```text
//!  Source ── batches ──▶ threads: decode, judge, compare ── tallies ──▶ Summary, in the order of the batches ──▶ Report
//! ```
#![forbid(unsafe_code)]

mod candidate;
mod compare;
mod error;
mod legs;
mod pace;
mod prices;
mod report;
mod running;
mod source;
mod summary;
mod tally;
mod words;

pub use candidate::{Candidate, Judged, JudgedLeg, Judgement, PriceVerdict};
pub use error::ReplayError;
pub use pace::Pace;
pub use report::{AccountPrice, Ended, Example, Group, Inexact, Other, PriceReport, Report, Sums};
pub use running::{Progress, Replay, Running};
pub use source::{Batch, BoxError, FromArchive, Source};
