use super::{SgipOptions, after};
use crate::Sequence;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// A command of ours that is unanswered.
#[derive(Debug)]
struct PendingCommand {
    token: u64,
    octets: Bytes,
    sent: u32,
    until: Option<Instant>,
    /// Position in the order in which commands were sent.
    number: u64,
}

/// The action for a command that has timed out.
#[derive(Debug)]
pub(super) enum Due {
    /// Send it again.
    Resend(Bytes),
    /// Give it up: it was sent as often as allowed.
    GivenUp(u64),
}

/// The window: our unanswered commands, and those given up recently.
#[derive(Debug, Default)]
pub(super) struct Window {
    pending: HashMap<Sequence, PendingCommand>,
    /// Sequences and tokens of commands that were given up and may still be answered, oldest first.
    late: VecDeque<(Sequence, u64)>,
    next: u64,
}

/// Maximum number of given-up commands whose late answers are recognized.
const MAX_LATE_COMMANDS: usize = 1024;

impl Window {
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn contains(&self, sequence: Sequence) -> bool {
        self.pending.contains_key(&sequence)
    }

    pub(super) fn add(&mut self, sequence: Sequence, token: u64, octets: Bytes, until: Option<Instant>) {
        // If the owner uses a sequence again, an answer belongs to the new command.
        self.late.retain(|(late, _)| *late != sequence);
        let number = self.next;
        self.next += 1;
        self.pending.insert(sequence, PendingCommand { token, octets, sent: 1, until, number });
    }

    /// Finds the command of an answer: its token, and whether it was given up before.
    pub(super) fn take(&mut self, sequence: Sequence, loose: bool) -> Option<(u64, bool)> {
        if let Some(found) = self.pending.remove(&sequence) {
            return Some((found.token, false));
        }
        if let Some(at) = self.late.iter().position(|(late, _)| *late == sequence) {
            return self.late.remove(at).map(|(_, token)| (token, true));
        }
        if !loose {
            return None;
        }
        let like = |other: &Sequence| other.node == sequence.node && other.counter == sequence.counter;
        let found = self.pending.keys().copied().find(like);
        found.and_then(|other| self.pending.remove(&other)).map(|found| (found.token, false))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pending.values().filter_map(|command| command.until).min()
    }

    pub(super) fn pop_due(&mut self, now: Instant, options: &SgipOptions) -> Option<Due> {
        let due = self.pending.iter().filter(|(_, command)| command.until.is_some_and(|until| until <= now));
        let sequence = due.min_by_key(|(_, command)| command.number).map(|(sequence, _)| *sequence)?;
        let command = self.pending.get_mut(&sequence)?;
        if command.sent < options.tries {
            command.sent += 1;
            command.until = after(now, options.response_timeout);
            return Some(Due::Resend(command.octets.clone()));
        }
        let token = command.token;
        self.pending.remove(&sequence);
        if self.late.len() >= MAX_LATE_COMMANDS {
            self.late.pop_front();
        }
        self.late.push_back((sequence, token));
        Some(Due::GivenUp(token))
    }

    pub(super) fn drain(&mut self) -> Vec<u64> {
        let mut pending: Vec<_> = std::mem::take(&mut self.pending).into_values().collect();
        pending.sort_unstable_by_key(|command| command.number);
        pending.into_iter().map(|command| command.token).collect()
    }
}
