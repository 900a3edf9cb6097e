//! Requests of the peer that wait for our answer, and earlier answers for repeated requests.

use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::VecDeque;
use std::hash::Hasher as _;

/// Maximum number of answers that are kept for repeated requests.
const MAX_ANSWERS: usize = 1024;

/// A request that waits for our answer.
#[derive(Debug)]
struct WaitingRequest {
    command: u32,
    digest: u64,
    /// Number of times that it has arrived; each one is answered.
    copies: u32,
}

/// The requests of the peer, by sequence id.
#[derive(Debug, Default)]
pub(super) struct Answers {
    waiting: FxHashMap<u32, WaitingRequest>,
    given: FxHashMap<u32, (u64, Bytes)>,
    /// The sequence ids of the answers given, oldest first.
    order: VecDeque<u32>,
}

/// Relation of a request to earlier ones.
pub(super) enum Arrival {
    /// A new request.
    New,
    /// A repetition of a request that waits; the answer will be sent again for it.
    Waiting,
    /// The repetition of a request that was answered with these octets.
    Answered(Bytes),
    /// Another request with a sequence id that is in use.
    Conflict,
}

/// Digest of a request's command and body. A collision can only harm the peer that causes it.
fn digest(command: u32, body: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(command);
    hasher.write(body);
    hasher.finish()
}

impl Answers {
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn arrive(&mut self, command: u32, sequence: u32, body: &[u8]) -> Arrival {
        let digest = digest(command, body);
        if let Some(request) = self.waiting.get_mut(&sequence) {
            if request.digest != digest {
                return Arrival::Conflict;
            }
            request.copies += 1;
            return Arrival::Waiting;
        }
        if let Some((known, octets)) = self.given.get(&sequence) {
            return if *known == digest { Arrival::Answered(octets.clone()) } else { Arrival::Conflict };
        }
        self.waiting.insert(sequence, WaitingRequest { command, digest, copies: 1 });
        Arrival::New
    }

    /// The command of a request that waits.
    pub(super) fn command(&self, sequence: u32) -> Option<u32> {
        self.waiting.get(&sequence).map(|request| request.command)
    }

    /// Records an answer. Returns how many times to send it. If it is not remembered, the peer can repeat the request
    /// with the same sequence id.
    pub(super) fn answered(&mut self, sequence: u32, octets: &Bytes, remember: bool) -> u32 {
        let Some(request) = self.waiting.remove(&sequence) else { return 0 };
        if remember {
            if self.order.len() >= MAX_ANSWERS
                && let Some(oldest) = self.order.pop_front()
            {
                self.given.remove(&oldest);
            }
            self.order.push_back(sequence);
            self.given.insert(sequence, (request.digest, octets.clone()));
        }
        request.copies
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
