//! Our unanswered requests, and recently given up ones.

use super::{SessionOptions, after};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::Instant;

/// A request of ours without an answer.
#[derive(Debug)]
struct PendingRequest {
    token: u64,
    octets: Bytes,
    sent: u32,
    /// Position in the order in which requests were sent.
    number: u64,
}

/// The action for a request that has timed out.
#[derive(Debug)]
pub(super) enum Due {
    /// Send it again, with the same octets.
    Resend(Bytes),
    /// Give it up: it was sent as often as allowed.
    GivenUp(u64),
}

/// The window of our requests.
#[derive(Debug, Default)]
pub(super) struct Window {
    pending: FxHashMap<u32, PendingRequest>,
    /// Times at which requests time out. All timeouts are equally long, so the earliest is in front. A request that is
    /// answered or sent again leaves its old entry here.
    due: VecDeque<(Instant, u32, u64, u32)>,
    /// Sequence ids and tokens of requests that were given up and may still be answered, oldest first.
    late: VecDeque<(u32, u64)>,
    next: u64,
}

/// The number of requests given up whose answers are still recognized.
const MAX_LATE_REQUESTS: usize = 1024;

impl Window {
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn contains(&self, sequence: u32) -> bool {
        self.pending.contains_key(&sequence)
    }

    pub(super) fn add(
        &mut self,
        sequence: u32,
        token: u64,
        octets: Bytes,
        now: Instant,
        options: &SessionOptions,
    ) {
        // After 2^32 requests a sequence id comes again; an answer then belongs to the new request.
        self.late.retain(|(late, _)| *late != sequence);
        let number = self.next;
        self.next += 1;
        if let Some(at) = after(now, options.response_timeout) {
            self.due.push_back((at, sequence, number, 1));
        }
        self.pending.insert(sequence, PendingRequest { token, octets, sent: 1, number });
    }

    /// Finds the request of an answer: its token, and whether it was given up before.
    pub(super) fn take(&mut self, sequence: u32) -> Option<(u64, bool)> {
        if let Some(found) = self.pending.remove(&sequence) {
            self.forget_settled();
            return Some((found.token, false));
        }
        let at = self.late.iter().position(|(late, _)| *late == sequence)?;
        self.late.remove(at).map(|(_, token)| (token, true))
    }

    fn is_current(&self, sequence: u32, number: u64, sent: u32) -> bool {
        self.pending.get(&sequence).is_some_and(|request| request.number == number && request.sent == sent)
    }

    fn forget_settled(&mut self) {
        while let Some((_, sequence, number, sent)) = self.due.front()
            && !self.is_current(*sequence, *number, *sent)
        {
            self.due.pop_front();
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due.front().map(|(at, ..)| *at)
    }

    pub(super) fn pop_due(&mut self, now: Instant, options: &SessionOptions) -> Option<Due> {
        loop {
            let (at, sequence, number, sent) = *self.due.front()?;
            if at > now {
                return None;
            }
            self.due.pop_front();
            if !self.is_current(sequence, number, sent) {
                continue;
            }
            let Some(request) = self.pending.get_mut(&sequence) else { continue };
            if sent < options.tries {
                request.sent += 1;
                let octets = request.octets.clone();
                if let Some(at) = after(now, options.response_timeout) {
                    self.due.push_back((at, sequence, number, sent + 1));
                }
                return Some(Due::Resend(octets));
            }
            let token = request.token;
            self.pending.remove(&sequence);
            if self.late.len() >= MAX_LATE_REQUESTS {
                self.late.pop_front();
            }
            self.late.push_back((sequence, token));
            return Some(Due::GivenUp(token));
        }
    }

    pub(super) fn drain(&mut self) -> Vec<u64> {
        self.due.clear();
        let mut pending: Vec<_> = std::mem::take(&mut self.pending).into_values().collect();
        pending.sort_unstable_by_key(|request| request.number);
        pending.into_iter().map(|request| request.token).collect()
    }
}
