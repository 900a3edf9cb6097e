//! Admins' actions on queues (hold, drain, reroute, cancel, purge): their registry, their matching, and their work on many
//! messages in steps.

pub(crate) mod batch;
pub(crate) mod matching;
pub(crate) mod rules;
mod survey;

pub use survey::QueueActionSurvey;
