use crate::pdu::CommandId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Answers that are still looked for after their requests were given up.
const LATE_LIMIT: usize = 10_000;

/// A request of ours.
#[derive(Clone, Copy, Debug)]
struct Sent {
    token: u64,
    command: CommandId,
}

impl Sent {
    fn is_answered_by(self, command: CommandId) -> bool {
        command == CommandId::GENERIC_NACK || command == self.command.response()
    }
}

/// Whose answer it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answered {
    /// Of the request with this token.
    InTime(u64),
    /// Of a request that was given up before.
    Late(u64),
    /// The number is that of a request, but this is no answer to it.
    WrongCommand,
    /// Nobody's.
    Nobody,
}

/// Requests of ours that are unanswered, and those that were given up.
#[derive(Debug, Default)]
pub(super) struct Window {
    pending: FxHashMap<u32, Sent>,
    /// In the order in which they were sent. Answered ones are passed over.
    order: VecDeque<(Instant, u32)>,
    late: FxHashMap<u32, Sent>,
    late_order: VecDeque<u32>,
}

impl Window {
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn contains(&self, sequence: u32) -> bool {
        self.pending.contains_key(&sequence)
    }

    pub(super) fn add(&mut self, now: Instant, sequence: u32, token: u64, command: CommandId) {
        self.pending.insert(sequence, Sent { token, command });
        self.order.push_back((now, sequence));
    }

    pub(super) fn answered(&mut self, sequence: u32, command: CommandId) -> Answered {
        if let Some(sent) = self.pending.get(&sequence) {
            if !sent.is_answered_by(command) {
                return Answered::WrongCommand;
            }
            let token = sent.token;
            self.pending.remove(&sequence);
            self.pass_over_answered();
            return Answered::InTime(token);
        }
        match self.late.get(&sequence) {
            Some(sent) if sent.is_answered_by(command) => {
                let token = sent.token;
                self.late.remove(&sequence);
                Answered::Late(token)
            }
            Some(_) => Answered::WrongCommand,
            None => Answered::Nobody,
        }
    }

    fn pass_over_answered(&mut self) {
        while let Some((_, sequence)) = self.order.front()
            && !self.pending.contains_key(sequence)
        {
            self.order.pop_front();
        }
        // One that is never answered must not keep the places of all that were sent and answered after it.
        if self.order.len() > 64 + 2 * self.pending.len() {
            self.order.retain(|(_, sequence)| self.pending.contains_key(sequence));
        }
    }

    /// When the oldest unanswered request was sent.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.order.front().map(|(at, _)| *at)
    }

    /// Gives up the oldest request if it has waited for `patience`: its token.
    pub(super) fn give_up(&mut self, now: Instant, patience: Duration) -> Option<u64> {
        let (at, sequence) = *self.order.front()?;
        if now.saturating_duration_since(at) < patience {
            return None;
        }
        self.order.pop_front();
        let sent = self.pending.remove(&sequence);
        self.pass_over_answered();
        let sent = sent?;
        self.late.insert(sequence, sent);
        self.late_order.push_back(sequence);
        if self.late_order.len() > LATE_LIMIT
            && let Some(oldest) = self.late_order.pop_front()
        {
            self.late.remove(&oldest);
        }
        Some(sent.token)
    }

    /// Takes out everything: the tokens of what is unanswered, in the order in which it was sent.
    pub(super) fn drain(&mut self) -> Vec<u64> {
        let pending = std::mem::take(&mut self.pending);
        let order = std::mem::take(&mut self.order);
        order.into_iter().filter_map(|(_, sequence)| pending.get(&sequence)).map(|sent| sent.token).collect()
    }
}
