use super::{CtrlReply, CtrlSubscriber, LookupSubject, Variable, put_query};
use crate::ipa::{self, FrameError, IpaFrame};
use bytes::BytesMut;
use std::collections::{HashMap, VecDeque};

/// The data to query for each subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LookupDetail {
    /// Only the IMSI, if the HLR supports it.
    #[default]
    Imsi,
    /// All data, including the last location.
    Full,
}

/// The answer to a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupAnswer {
    /// The subscriber.
    Found(CtrlSubscriber),
    /// The HLR has no such subscriber.
    Unknown,
    /// The lookup failed, with the HLR's message.
    Failed(String),
    /// No answer within the timeout.
    TimedOut,
}

/// An event for the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The answer to a lookup.
    Answer {
        /// The owner's token.
        token: u64,
        /// The answer.
        answer: LookupAnswer,
    },
    /// The connection is unusable. This is the last event.
    Lost(FrameError),
}

#[derive(Debug)]
struct PendingLookup {
    token: u64,
    subject: LookupSubject,
    variable: Variable,
    sent_at: u64,
}

/// A connection to an HLR's CTRL interface. Any number of lookups may be pending.
///
/// `now` is milliseconds from any fixed point.
#[derive(Debug)]
pub struct CtrlClient {
    detail: LookupDetail,
    /// Timeout for an answer, in milliseconds.
    timeout: u64,
    /// The HLR does not support the query for the IMSI alone.
    imsi_unsupported: bool,
    next_id: u32,
    pending: HashMap<u32, PendingLookup>,
    /// Ids in the order of their lookups, including answered ones.
    order: VecDeque<u32>,
    input: BytesMut,
    output: BytesMut,
    events: VecDeque<Event>,
    lost: bool,
}

impl CtrlClient {
    /// Creates a client for a new connection. `timeout`: timeout for an answer, in milliseconds.
    #[must_use]
    pub fn new(detail: LookupDetail, timeout: u64) -> Self {
        Self {
            detail,
            timeout,
            imsi_unsupported: false,
            next_id: 1,
            pending: HashMap::new(),
            order: VecDeque::new(),
            input: BytesMut::new(),
            output: BytesMut::new(),
            events: VecDeque::new(),
            lost: false,
        }
    }

    /// Looks up a subscriber; `token` is returned with the answer.
    pub fn look_up(&mut self, now: u64, token: u64, subject: impl Into<LookupSubject>) {
        let subject = subject.into();
        let variable = match (self.detail, &subject) {
            (LookupDetail::Imsi, LookupSubject::Number(_)) if !self.imsi_unsupported => Variable::Imsi,
            _ => Variable::Info,
        };
        self.send(PendingLookup { token, subject, variable, sent_at: now });
    }

    fn send(&mut self, lookup: PendingLookup) {
        let id = self.next_id;
        // Zero is not a valid id.
        self.next_id = id.checked_add(1).unwrap_or(1);
        put_query(&mut self.output, id, &lookup.subject, lookup.variable);
        self.order.push_back(id);
        self.pending.insert(id, lookup);
    }

    /// Feeds received octets, split anywhere.
    pub fn receive(&mut self, octets: &[u8]) {
        if self.lost {
            return;
        }
        self.input.extend_from_slice(octets);
        loop {
            match IpaFrame::take(&mut self.input, ipa::MAX_PAYLOAD) {
                Ok(None) => return,
                Ok(Some(IpaFrame::Ctrl(payload))) => self.handle(&payload),
                Ok(Some(_)) => {}
                Err(error) => {
                    self.lost = true;
                    self.events.push_back(Event::Lost(error));
                    return;
                }
            }
        }
    }

    fn handle(&mut self, payload: &[u8]) {
        match CtrlReply::parse(payload) {
            Some(CtrlReply::Value { id, value, .. }) => {
                if let Some(lookup) = self.pending.remove(&id) {
                    let subscriber = match lookup.variable {
                        Variable::Info => CtrlSubscriber::parse(value),
                        Variable::Imsi => value.trim().parse().ok().map(|imsi| CtrlSubscriber {
                            imsi,
                            msisdn: match &lookup.subject {
                                LookupSubject::Number(number) => Some(number.as_str().to_owned()),
                                LookupSubject::Imsi(_) => None,
                            },
                            vlr_number: None,
                        }),
                    };
                    let answer = subscriber.map_or_else(
                        || LookupAnswer::Failed("the answer contains no valid IMSI".to_owned()),
                        LookupAnswer::Found,
                    );
                    self.emit_answer(&lookup, answer);
                }
            }
            Some(CtrlReply::Error { id: Some(id), text }) => {
                if let Some(lookup) = self.pending.remove(&id) {
                    self.handle_error(lookup, text);
                }
            }
            Some(CtrlReply::Error { id: None, .. } | CtrlReply::Trap { .. }) | None => {}
        }
        self.trim_order();
    }

    fn handle_error(&mut self, lookup: PendingLookup, text: &str) {
        let says = |words: &str| text.to_ascii_lowercase().contains(words);
        if says("no such subscriber") {
            self.emit_answer(&lookup, LookupAnswer::Unknown);
        } else if says("command not found") && lookup.variable == Variable::Imsi {
            self.imsi_unsupported = true;
            self.send(PendingLookup { variable: Variable::Info, ..lookup });
        } else {
            self.emit_answer(&lookup, LookupAnswer::Failed(text.to_owned()));
        }
    }

    fn emit_answer(&mut self, lookup: &PendingLookup, answer: LookupAnswer) {
        self.events.push_back(Event::Answer { token: lookup.token, answer });
    }

    fn trim_order(&mut self) {
        while self.order.front().is_some_and(|id| !self.pending.contains_key(id)) {
            self.order.pop_front();
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Octets for the HLR: complete frames. The owner may write them in parts.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Number of pending lookups.
    #[must_use]
    pub fn open(&self) -> usize {
        self.pending.len()
    }

    /// The latest time for the next call of [`CtrlClient::tick`].
    #[must_use]
    pub fn next_tick(&self) -> Option<u64> {
        let oldest = self.pending.get(self.order.front()?)?;
        Some(oldest.sent_at.saturating_add(self.timeout))
    }

    /// Times out old lookups.
    pub fn tick(&mut self, now: u64) {
        while self.next_tick().is_some_and(|due| due <= now) {
            let lookup = self.order.pop_front().and_then(|id| self.pending.remove(&id));
            if let Some(lookup) = lookup {
                self.emit_answer(&lookup, LookupAnswer::TimedOut);
            }
            self.trim_order();
        }
    }

    /// Closes the client. Returns the tokens of all pending lookups, in order.
    pub fn close(&mut self) -> Vec<u64> {
        self.lost = true;
        let pending = &mut self.pending;
        self.order.drain(..).filter_map(|id| pending.remove(&id)).map(|lookup| lookup.token).collect()
    }
}
