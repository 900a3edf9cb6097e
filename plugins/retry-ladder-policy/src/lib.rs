//! The policy document of `retry-ladder`: what follows a failed attempt, by the class of the failure.

mod decision;
mod document;
mod ladder;

pub use decision::{Attempt, Decision, Step};
pub use ladder::{Advice, Ladder, Then};

use document::Document;
use policy_words::{line, read};
use serde::Deserialize;
use std::collections::HashMap;
use std::time::Duration;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// May work later.
    Temporary,
    /// Will not work on this leg.
    Permanent,
    /// The subscriber is not reachable now.
    Absent,
    /// The handset's memory is full.
    MemoryFull,
    /// Too fast: the peer, not the message, is to wait.
    Throttled,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 5] =
        [Self::Temporary, Self::Permanent, Self::Absent, Self::MemoryFull, Self::Throttled];

    /// The word used in the document and in notes.
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

/// A ladder for each class, in the order of [`Class::ALL`].
type Ladders = [Ladder; 5];

/// The document, checked.
#[derive(Debug, Clone)]
pub struct Policy {
    overall: Option<Duration>,
    ladders: Ladders,
    /// By peer: the ladders of classes that it has of its own, the others as for everyone.
    peers: HashMap<String, Ladders>,
}

impl Policy {
    /// Reads and checks a document.
    ///
    /// # Errors
    /// The line, what is wrong there, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut document: Document = read(text)?;
        let written = document.ladders();
        let overall = document.overall_limit.map(|limit| limit.0);
        if overall.is_some_and(|limit| limit.is_zero()) {
            return Err("`overall-limit` is zero: no message would be tried twice; leave it out for the message's own \
                        validity"
                .to_owned());
        }
        let missing: Vec<_> =
            Class::ALL.into_iter().filter(|class| !written.has(*class)).map(Class::name).collect();
        if !missing.is_empty() {
            return Err(format!(
                "the document says nothing of {}: each class of failure needs its section, such as [temporary] with \
                 `waits` or [permanent] with `then = \"next-leg\"`",
                missing.join(", ")
            ));
        }
        let ladders = written.read(text, None)?;
        let mut peers = HashMap::new();
        let mut lines: HashMap<String, usize> = HashMap::new();
        for peer in document.peer {
            let at = line(text, peer.span());
            let mut peer = peer.into_inner();
            let own = peer.ladders();
            if Class::ALL.into_iter().all(|class| !own.has(class)) {
                return Err(format!(
                    "line {at}: this [[peer]] changes nothing; give it a class, such as [peer.temporary]"
                ));
            }
            let own = own.read(text, Some(&ladders))?;
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
        Ok(Self { overall, ladders, peers })
    }

    fn ladder(&self, peer: &str, class: Class) -> &Ladder {
        let [temporary, permanent, absent, memory_full, throttled] =
            self.peers.get(peer).unwrap_or(&self.ladders);
        match class {
            Class::Temporary => temporary,
            Class::Permanent => permanent,
            Class::Absent => absent,
            Class::MemoryFull => memory_full,
            Class::Throttled => throttled,
        }
    }
}

#[cfg(test)]
mod tests;
