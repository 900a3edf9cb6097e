//! The policy document of `retry-ladder`: the step after a failed attempt, by the class of the failure.

mod decision;
mod document;
mod retry_schedule;

pub use decision::{Attempt, Decision, Step};
pub use retry_schedule::{Advice, FinalAction, RetrySchedule};

use document::Document;
use policy_values::{line, read};
use serde::Deserialize;
use std::collections::HashMap;
use std::time::Duration;

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// A later attempt may succeed.
    Temporary,
    /// This leg will not succeed.
    Permanent,
    /// The subscriber is not reachable now.
    Absent,
    /// The handset's memory is full.
    MemoryFull,
    /// The peer throttles: the peer, not the message, has to wait.
    Throttled,
}

impl FailureClass {
    /// All classes.
    pub const ALL: [Self; 5] =
        [Self::Temporary, Self::Permanent, Self::Absent, Self::MemoryFull, Self::Throttled];

    /// The name in the document and in notes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Temporary => "temporary",
            Self::Permanent => "permanent",
            Self::Absent => "absent",
            Self::MemoryFull => "memory-full",
            Self::Throttled => "throttled",
        }
    }
}

/// The retry schedule of each class, in the order of [`FailureClass::ALL`].
type RetrySchedules = [RetrySchedule; 5];

/// The checked document.
#[derive(Debug, Clone)]
pub struct Policy {
    overall: Option<Duration>,
    schedules: RetrySchedules,
    /// Schedules by peer: its own for some classes, the common ones for the others.
    peers: HashMap<String, RetrySchedules>,
}

impl Policy {
    /// Parses and checks a document.
    ///
    /// # Errors
    /// The line, the mistake, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut document: Document = read(text)?;
        let entry = document.schedules();
        let overall = document.overall_limit.map(|limit| limit.0);
        if overall.is_some_and(|limit| limit.is_zero()) {
            return Err("`overall-limit` is zero: no message would be tried twice; leave it out for the message's own \
                        validity"
                .to_owned());
        }
        let missing: Vec<_> = FailureClass::ALL
            .into_iter()
            .filter(|class| !entry.has(*class))
            .map(FailureClass::name)
            .collect();
        if !missing.is_empty() {
            return Err(format!(
                "the document says nothing of {}: each class of failure needs its section, such as [temporary] with \
                 `waits` or [permanent] with `then = \"next-leg\"`",
                missing.join(", ")
            ));
        }
        let schedules = entry.read(text, None)?;
        let mut peers = HashMap::new();
        let mut lines: HashMap<String, usize> = HashMap::new();
        for peer in document.peer {
            let at = line(text, peer.span());
            let mut peer = peer.into_inner();
            let own = peer.schedules();
            if FailureClass::ALL.into_iter().all(|class| !own.has(class)) {
                return Err(format!(
                    "line {at}: this [[peer]] changes nothing; give it a class, such as [peer.temporary]"
                ));
            }
            let own = own.read(text, Some(&schedules))?;
            for name in peer.name.0 {
                if name.is_empty() {
                    return Err(format!("line {at}: a peer's name is empty"));
                }
                if let Some(first) = lines.insert(name.clone(), at) {
                    return Err(format!(
                        "line {at}: peer {name:?} has its [[peer]] at line {first} already; keep one"
                    ));
                }
                peers.insert(name, own.clone());
            }
        }
        Ok(Self { overall, schedules, peers })
    }

    fn schedule(&self, peer: &str, class: FailureClass) -> &RetrySchedule {
        let [temporary, permanent, absent, memory_full, throttled] =
            self.peers.get(peer).unwrap_or(&self.schedules);
        match class {
            FailureClass::Temporary => temporary,
            FailureClass::Permanent => permanent,
            FailureClass::Absent => absent,
            FailureClass::MemoryFull => memory_full,
            FailureClass::Throttled => throttled,
        }
    }
}

#[cfg(test)]
mod tests;
