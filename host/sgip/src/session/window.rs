use super::{Options, after};
use crate::Sequence;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// A command of ours that is unanswered.
#[derive(Debug)]
struct Unanswered {
    token: u64,
    octets: Bytes,
    sent: u32,
    until: Option<Instant>,
    /// The order in which commands were sent.
    number: u64,
}

/// What has become due.
#[derive(Debug)]
pub(super) enum Due {
    /// Send it again.
    Again(Bytes),
    /// It was sent often enough.
    GivenUp(u64),
}

/// Commands of ours that are unanswered, and those lately given up.
#[derive(Debug, Default)]
pub(super) struct Window {
    open: HashMap<Sequence, Unanswered>,
    /// Given up; their answers may still come. Oldest first.
    late: VecDeque<(Sequence, u64)>,
    next: u64,
}

/// How many given-up commands are remembered.
const LATE: usize = 1024;

impl Window {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn holds(&self, sequence: Sequence) -> bool {
        self.open.contains_key(&sequence)
    }

    pub(super) fn put(&mut self, sequence: Sequence, token: u64, octets: Bytes, until: Option<Instant>) {
        // Sent once more by the owner: an answer is to the new one.
        self.late.retain(|(late, _)| *late != sequence);
        let number = self.next;
        self.next += 1;
        self.open.insert(sequence, Unanswered { token, octets, sent: 1, until, number });
    }

    /// Finds the command of an answer: its token, and whether it was given up before.
    pub(super) fn take(&mut self, sequence: Sequence, loose: bool) -> Option<(u64, bool)> {
        if let Some(found) = self.open.remove(&sequence) {
            return Some((found.token, false));
        }
        if let Some(at) = self.late.iter().position(|(late, _)| *late == sequence) {
            return self.late.remove(at).map(|(_, token)| (token, true));
        }
        if !loose {
            return None;
        }
        let like = |other: &Sequence| other.node == sequence.node && other.counter == sequence.counter;
        let found = self.open.keys().copied().find(like);
        found.and_then(|other| self.open.remove(&other)).map(|found| (found.token, false))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.values().filter_map(|command| command.until).min()
    }

    pub(super) fn pop_due(&mut self, now: Instant, options: &Options) -> Option<Due> {
        let due = self.open.iter().filter(|(_, command)| command.until.is_some_and(|until| until <= now));
        let sequence = due.min_by_key(|(_, command)| command.number).map(|(sequence, _)| *sequence)?;
        let command = self.open.get_mut(&sequence)?;
        if command.sent < options.tries {
            command.sent += 1;
            command.until = after(now, options.response_timeout);
            return Some(Due::Again(command.octets.clone()));
        }
        let token = command.token;
        self.open.remove(&sequence);
        if self.late.len() >= LATE {
            self.late.pop_front();
        }
        self.late.push_back((sequence, token));
        Some(Due::GivenUp(token))
    }

    pub(super) fn drain(&mut self) -> Vec<u64> {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_unstable_by_key(|command| command.number);
        open.into_iter().map(|command| command.token).collect()
    }
}
