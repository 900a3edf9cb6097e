//! Messages in progress on an outgoing connection whose protocol sends a long text as several requests.
//!
//! The segments of a message are sent one after the other, so that nothing is sent after a refused segment.

use engine::Event;
use model::{ErrorClass, LinkId, Message, MessageId, Outcome, PeerMessageId, SubmitTicket};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One message in progress.
#[derive(Debug)]
pub(crate) struct InFlightMessage<S> {
    pub(crate) message: Arc<Message>,
    pub(crate) ticket: SubmitTicket,
    pub(crate) segments: Vec<S>,
    /// Index of the segment that is unanswered or sent next.
    pub(crate) next: usize,
    /// Ids of the segments that were accepted on this connection.
    taken: Vec<PeerMessageId>,
    /// Offset of the unanswered segment in the stream, and the time when the session got it.
    sent: Option<(u64, Instant)>,
    /// Whether the message has an outcome already, and only a late answer can come.
    given_up: bool,
}

impl<S> InFlightMessage<S> {
    /// Whether the current segment is the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.next + 1 == self.segments.len()
    }
}

/// All messages in progress on an outgoing connection, by token.
#[derive(Debug)]
pub(crate) struct MessagesInFlight<S> {
    messages: HashMap<u64, InFlightMessage<S>>,
    /// Tokens of messages with a segment to send, in the engine's order.
    ready: VecDeque<u64>,
    next: u64,
}

/// Maximum number of messages whose late answers are awaited; beyond it, the oldest are dropped.
const MAX_GIVEN_UP: usize = 2048;

impl<S> Default for MessagesInFlight<S> {
    fn default() -> Self {
        Self { messages: HashMap::new(), ready: VecDeque::new(), next: 1 }
    }
}

impl<S> MessagesInFlight<S> {
    /// Whether no message waits for its outcome.
    pub(crate) fn is_idle(&self) -> bool {
        self.messages.values().all(|in_flight| in_flight.given_up)
    }

    /// Enqueues a message, from segment `next` on. There must be such a segment.
    pub(crate) fn enqueue(
        &mut self,
        message: Arc<Message>,
        ticket: SubmitTicket,
        segments: Vec<S>,
        next: usize,
    ) {
        let token = self.next;
        self.next += 1;
        let in_flight = InFlightMessage {
            message,
            ticket,
            segments,
            next,
            taken: Vec::new(),
            sent: None,
            given_up: false,
        };
        self.messages.insert(token, in_flight);
        self.ready.push_back(token);
    }

    /// Takes the next message with a segment to send.
    pub(crate) fn pop_ready(&mut self) -> Option<u64> {
        self.ready.pop_front()
    }

    /// Returns a message that could not be sent to the head of the queue.
    pub(crate) fn put_back(&mut self, token: u64) {
        self.ready.push_front(token);
    }

    /// The message of a token.
    pub(crate) fn get(&self, token: u64) -> Option<&InFlightMessage<S>> {
        self.messages.get(&token)
    }

    /// Records that the current segment begins at this offset of the stream.
    pub(crate) fn sent(&mut self, token: u64, begins: u64, now: Instant) {
        if let Some(in_flight) = self.messages.get_mut(&token) {
            in_flight.sent = Some((begins, now));
        }
    }

    /// Time since the unanswered segment was sent. Call once per answer.
    pub(crate) fn round_trip(&mut self, token: u64, now: Instant) -> Option<Duration> {
        let (_, at) = self.messages.get_mut(&token)?.sent.take()?;
        Some(now.saturating_duration_since(at))
    }

    /// Handles the acceptance of a segment under `id`: its next segment becomes ready, or the message has an outcome.
    pub(crate) fn accepted(&mut self, token: u64, id: PeerMessageId) -> Option<(MessageId, Outcome)> {
        let in_flight = self.messages.get_mut(&token)?;
        in_flight.taken.push(id);
        in_flight.next += 1;
        let more = in_flight.next < in_flight.segments.len();
        if more && !in_flight.given_up {
            self.ready.push_back(token);
            return None;
        }
        let in_flight = self.messages.remove(&token)?;
        // A late answer to one of several segments does not change how the uncertainty was settled.
        (!more).then(|| (in_flight.message.id, Outcome::Accepted { ids: in_flight.taken }))
    }

    /// Handles a refusal: the message has an outcome.
    pub(crate) fn refused(
        &mut self,
        token: u64,
        class: ErrorClass,
        code: u32,
    ) -> Option<(MessageId, Outcome)> {
        let in_flight = self.messages.remove(&token)?;
        Some((in_flight.message.id, Outcome::Refused { class, code, taken: in_flight.taken }))
    }

    /// Handles a request that the session has given up. `known` is the id that the peer may have assigned.
    pub(crate) fn unanswered(
        &mut self,
        token: u64,
        known: Option<PeerMessageId>,
    ) -> Option<(MessageId, Outcome)> {
        let in_flight = self.messages.get_mut(&token)?;
        in_flight.given_up = true;
        let taken = std::mem::take(&mut in_flight.taken);
        let outcome = Outcome::Unanswered { taken, known: known.into_iter().collect() };
        let id = in_flight.message.id;
        if self.messages.len() > MAX_GIVEN_UP {
            let given_up = self.messages.iter().filter(|(_, in_flight)| in_flight.given_up);
            if let Some(oldest) = given_up.map(|(token, _)| *token).min() {
                self.messages.remove(&oldest);
            }
        }
        Some((id, outcome))
    }

    /// After the end of the connection: reports an outcome for each message that has none. `written` octets of the
    /// stream are written; `known` returns the id that the peer may have assigned to an unanswered segment.
    pub(crate) fn close(
        self,
        written: u64,
        known: impl Fn(&InFlightMessage<S>) -> Option<PeerMessageId>,
        link: LinkId,
        events: &mut Vec<Event>,
    ) {
        let mut messages: Vec<_> =
            self.messages.into_iter().filter(|(_, in_flight)| !in_flight.given_up).collect();
        messages.sort_unstable_by_key(|(token, _)| *token);
        for (_, mut in_flight) in messages {
            let known = known(&in_flight);
            let taken = std::mem::take(&mut in_flight.taken);
            let left = in_flight.sent.is_some_and(|(begins, _)| begins < written);
            let outcome = match (left, taken.is_empty()) {
                (true, _) => Outcome::Unanswered { taken, known: known.into_iter().collect() },
                (false, true) => Outcome::NotSent,
                // Some segments were accepted and the rest was not sent: nothing is uncertain, and the peer made no
                // error.
                (false, false) => Outcome::Refused { class: ErrorClass::Temporary, code: 0, taken },
            };
            events.push(Event::Outcome { link, id: in_flight.message.id, outcome });
        }
    }
}
