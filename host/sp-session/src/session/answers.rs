//! The peer's requests: those that wait for our answer, and the answers of those before, for repetitions.

use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::VecDeque;
use std::hash::Hasher as _;

/// The number of answers that are kept for repeated requests.
const MAX_ANSWERS: usize = 1024;

/// A request that waits for our answer.
#[derive(Debug)]
struct WaitingRequest {
    command: u32,
    digest: u64,
    /// How often it has come; each is answered.
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

/// What a request is to those before it.
pub(super) enum Arrival {
    /// A new request.
    New,
    /// The repetition of a request that waits; the answer will be given twice.
    Waiting,
    /// The repetition of a request that was answered with these octets.
    Answered(Bytes),
    /// Another request with a sequence id that is in use.
    Conflict,
}

/// A digest of a request's command and body. A collision can only harm the peer that makes it.
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

    /// Notes an answer. Returns how often it is to be written. One that is not remembered lets the peer try again with
    /// the same sequence id.
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
