//! Submit attempts of other partitions of a cluster, whose messages come to the links of this one.
//!
//! Each message of such an account is one attempt. Its outcome goes to the account as a DLR does: a message of its own,
//! durable until the other partition has it. So a repetition finds either the message or what is told of it; when both are
//! gone, the other partition knows the outcome and repeats nothing.

use crate::Output;
use crate::engine::Engine;
use crate::sender_numbers::SenderResult;
use crate::slab::{Slot, State};
use model::{
    DlrContent, DlrState, ErrorClass, FinalState, Message, MessageId, MessageKind, Now, Outcome, PeerId,
    PeerMessageId, RemoteAttempt, Text,
};
use rustc_hash::FxHashMap;

/// An attempt: the account of its partition, the message there, and the number of the attempt.
type AttemptKey = (PeerId, MessageId, u16);

/// The attempts of other partitions that live entries belong to.
#[derive(Debug, Default)]
pub(crate) struct RemoteAttempts {
    /// The message of this partition, and the number of live entries: itself and what is told of it.
    messages: FxHashMap<AttemptKey, (MessageId, u32)>,
    entries: FxHashMap<MessageId, AttemptKey>,
}

impl RemoteAttempts {
    fn join(&mut self, key: AttemptKey, entry: MessageId, message: MessageId) {
        if self.entries.insert(entry, key).is_none() {
            self.messages.entry(key).or_insert((message, 0)).1 += 1;
        }
    }

    /// Removes a live entry.
    pub(crate) fn leave(&mut self, entry: MessageId) {
        let Some(key) = self.entries.remove(&entry) else { return };
        if let Some((_, live)) = self.messages.get_mut(&key) {
            *live -= 1;
            if *live == 0 {
                self.messages.remove(&key);
            }
        }
    }
}

/// What the end of a message tells the partition that it came from.
pub(crate) struct AttemptEnd {
    /// Whether a DLR may follow: the peer has accepted the message.
    pub(crate) has_dlr: bool,
    /// The outcome, unless it was told before.
    pub(crate) outcome: Option<Outcome>,
}

impl Engine {
    /// Whether the messages of this account are attempts of another partition.
    pub(crate) fn is_of_partition(&self, account: PeerId) -> bool {
        self.peers.get(account.0 as usize).is_some_and(|peer| peer.settings.of_partition)
    }

    /// Whether another partition has the links to this peer.
    pub(crate) fn is_remote(&self, peer: PeerId) -> bool {
        self.peers.get(peer.0 as usize).is_some_and(|peer| peer.settings.remote)
    }

    fn remote_attempt(&self, message: &Message) -> Option<RemoteAttempt> {
        if self.is_of_partition(message.origin) {
            RemoteAttempt::read(&message.protocol_fields)
        } else {
            None
        }
    }

    /// Segments that the peer has from attempts before this one.
    pub(crate) fn segments_before(&self, message: &Message) -> usize {
        self.remote_attempt(message).map_or(0, |attempt| usize::from(attempt.taken))
    }

    /// Adds a live entry to the index, if it belongs to an attempt of another partition.
    pub(crate) fn join_remote_attempt(&mut self, message: &Message) {
        let Some(attempt) = self.remote_attempt(message) else { return };
        let of = match &message.kind {
            MessageKind::Text => message.id,
            MessageKind::Dlr(dlr) => dlr.of,
        };
        self.remote_attempts.join((message.origin, attempt.id, attempt.attempt), message.id, of);
    }

    /// The message of a repeated attempt. What is known of its outcome is told again: what was told before may not have been
    /// applied.
    pub(crate) fn repeated_attempt(
        &mut self,
        now: Now,
        message: &Message,
        out: &mut Output,
    ) -> Option<MessageId> {
        let attempt = self.remote_attempt(message)?;
        let key = (message.origin, attempt.id, attempt.attempt);
        let (id, _) = *self.remote_attempts.messages.get(&key)?;
        self.totals.repeated += 1;
        let slot = self.ids.get(&self.slab, id);
        let outcome = slot.and_then(|slot| match self.slab[slot].state {
            State::AwaitingDlr => Some(Outcome::Accepted { ids: self.segment_ids(slot) }),
            State::Uncertain => {
                Some(Outcome::Unanswered { taken: self.segment_ids(slot), known: Vec::new() })
            }
            _ => None,
        });
        if let Some(outcome) = outcome {
            self.tell_outcome(now, &Message { id, ..message.clone() }, &outcome, out);
        }
        Some(id)
    }

    fn segment_ids(&self, slot: Slot) -> Vec<PeerMessageId> {
        let history = self.slab[slot].history.as_ref();
        history.map_or_else(Vec::new, |history| {
            history.segments.iter().map(|segment| segment.id.clone()).collect()
        })
    }

    /// The peer has accepted a message, its remaining segments under these ids.
    pub(crate) fn tell_accepted(&mut self, now: Now, slot: Slot, ids: &[PeerMessageId], out: &mut Output) {
        if self.is_of_partition(self.slab[slot].origin) {
            let mut all = self.segment_ids(slot);
            all.extend_from_slice(ids);
            self.tell(now, slot, &Outcome::Accepted { ids: all }, out);
        }
    }

    /// The peer has refused a message. Returns whether that is the end of it: the other partition decides what follows.
    pub(crate) fn tell_refused(
        &mut self,
        now: Now,
        slot: Slot,
        (class, code): (ErrorClass, u32),
        out: &mut Output,
    ) -> bool {
        if !self.is_of_partition(self.slab[slot].origin) {
            return false;
        }
        let taken = self.segment_ids(slot);
        self.tell(now, slot, &Outcome::Refused { class, code, taken }, out);
        self.end_with(now, slot, FinalState::Failed, code, PeerMessageId::default(), None, out);
        true
    }

    /// It is not known whether the peer has a message. During recovery nothing can be told; the other partition repeats the
    /// attempt then, since the links of this process ended.
    pub(crate) fn tell_uncertain(&mut self, now: Now, slot: Slot, out: &mut Output) {
        if self.is_of_partition(self.slab[slot].origin) && !self.recovering {
            let taken = self.segment_ids(slot);
            self.tell(now, slot, &Outcome::Unanswered { taken, known: Vec::new() }, out);
        }
    }

    /// What the end of a message that was in this state tells; `None` for one that is no attempt of another partition.
    pub(crate) fn attempt_end(&self, slot: Slot, (was, state): (State, FinalState)) -> Option<AttemptEnd> {
        let entry = &self.slab[slot];
        if !self.is_of_partition(entry.origin) {
            return None;
        }
        let outcome = match was {
            State::AwaitingDlr | State::Submitted | State::Uncertain => None,
            _ if entry.attempts > 0 => {
                Some(Outcome::Unanswered { taken: self.segment_ids(slot), known: Vec::new() })
            }
            _ if state == FinalState::Expired => Some(Outcome::NotSent),
            _ => Some(Outcome::Refused { class: ErrorClass::Permanent, code: 0, taken: Vec::new() }),
        };
        Some(AttemptEnd { has_dlr: was == State::AwaitingDlr, outcome })
    }

    fn tell(&mut self, now: Now, slot: Slot, outcome: &Outcome, out: &mut Output) {
        if let Some(message) = self.slab[slot].message.clone() {
            self.tell_outcome(now, &message, outcome, out);
        }
    }

    /// Queues the outcome of a message for the partition that it came from.
    pub(crate) fn tell_outcome(&mut self, now: Now, message: &Message, outcome: &Outcome, out: &mut Output) {
        let content = DlrContent {
            of: message.id,
            state: DlrState::Enroute,
            intermediate: true,
            error: 0,
            network_error: None,
            submitted_at: message.accepted_at,
            done_at: now.wall,
            segments: (1, 0),
            segment: 0,
            peer_id: PeerMessageId::default(),
        };
        let mut notice = self.dlr_message(now, message, content);
        let mut fields = notice.protocol_fields.to_vec();
        outcome.append_to(&mut fields);
        notice.protocol_fields = fields.into();
        notice.text = Text::default();
        self.admit(now, notice, 0, SenderResult::default(), out);
    }
}
