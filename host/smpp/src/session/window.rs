use crate::pdu::CommandId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The number of expired requests whose late answers are still recognized.
const MAX_LATE_REQUESTS: usize = 10_000;

/// A request that we have sent.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    token: u64,
    command: CommandId,
}

impl PendingRequest {
    fn is_answered_by(self, command: CommandId) -> bool {
        command == CommandId::GENERIC_NACK || command == self.command.response()
    }
}

/// The relation of a response to our requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WindowMatch {
    /// A pending request with this token.
    InTime(u64),
    /// An expired request with this token.
    Late(u64),
    /// The sequence number is that of a request, but the command does not match.
    WrongCommand,
    /// The sequence number is not that of a request.
    Unknown,
}

/// The window: our unanswered requests, and the expired ones.
#[derive(Debug, Default)]
pub(super) struct Window {
    pending: FxHashMap<u32, PendingRequest>,
    /// Send time and sequence number of the requests, oldest first; answered requests may still be in it.
    order: VecDeque<(Instant, u32)>,
    late: FxHashMap<u32, PendingRequest>,
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
        self.pending.insert(sequence, PendingRequest { token, command });
        self.order.push_back((now, sequence));
    }

    pub(super) fn answered(&mut self, sequence: u32, command: CommandId) -> WindowMatch {
        if let Some(request) = self.pending.get(&sequence) {
            if !request.is_answered_by(command) {
                return WindowMatch::WrongCommand;
            }
            let token = request.token;
            self.pending.remove(&sequence);
            self.drop_answered();
            return WindowMatch::InTime(token);
        }
        match self.late.get(&sequence) {
            Some(request) if request.is_answered_by(command) => {
                let token = request.token;
                self.late.remove(&sequence);
                WindowMatch::Late(token)
            }
            Some(_) => WindowMatch::WrongCommand,
            None => WindowMatch::Unknown,
        }
    }

    fn drop_answered(&mut self) {
        while let Some((_, sequence)) = self.order.front()
            && !self.pending.contains_key(sequence)
        {
            self.order.pop_front();
        }
        // An unanswered request at the front would keep the entries of all later requests, although these are answered.
        if self.order.len() > 64 + 2 * self.pending.len() {
            self.order.retain(|(_, sequence)| self.pending.contains_key(sequence));
        }
    }

    /// The time when the oldest unanswered request was sent.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.order.front().map(|(at, _)| *at)
    }

    /// Expires the oldest request if it has waited for `timeout`. Returns its token.
    pub(super) fn expire_oldest(&mut self, now: Instant, timeout: Duration) -> Option<u64> {
        let (at, sequence) = *self.order.front()?;
        if now.saturating_duration_since(at) < timeout {
            return None;
        }
        self.order.pop_front();
        let request = self.pending.remove(&sequence);
        self.drop_answered();
        let request = request?;
        self.late.insert(sequence, request);
        self.late_order.push_back(sequence);
        if self.late_order.len() > MAX_LATE_REQUESTS
            && let Some(oldest) = self.late_order.pop_front()
        {
            self.late.remove(&oldest);
        }
        Some(request.token)
    }

    /// Removes all requests. Returns the tokens of the unanswered ones, in the order in which they were sent.
    pub(super) fn drain(&mut self) -> Vec<u64> {
        let pending = std::mem::take(&mut self.pending);
        let order = std::mem::take(&mut self.order);
        order
            .into_iter()
            .filter_map(|(_, sequence)| pending.get(&sequence))
            .map(|request| request.token)
            .collect()
    }
}
