//! Submit attempts of other partitions of a cluster, for peers whose links are here.
//!
//! Each message of such an account is one attempt. Its outcome is reported to the account as a DLR is: by a message of its
//! own, stored until the other partition has confirmed it. A repetition therefore finds the message, its outcome or its DLR.
//! When none of them exists, the other partition has the outcome on disk and does not repeat the attempt.

use crate::engine::Engine;
use crate::sender_numbers::SenderResult;
use crate::slab::{Slot, State};
use crate::{EngineCommand, Output};
use model::{
    DlrContent, DlrState, ErrorClass, FinalState, Imsi, Message, MessageId, MessageKind, Now, Outcome,
    PeerId, PeerMessageId, RemoteAttempt, Text,
};

/// The report to the other partition when the message of its attempt ends.
pub(crate) struct AttemptEnd {
    /// Whether a DLR may follow: the peer has accepted the message.
    pub(crate) has_dlr: bool,
    /// The outcome; `None` if it was reported before.
    pub(crate) outcome: Option<Outcome>,
}

impl Engine {
    /// Whether the messages of this account are attempts of another partition.
    pub(crate) fn is_partition_account(&self, account: PeerId) -> bool {
        self.peers.get(account.0 as usize).is_some_and(|peer| peer.settings.partition_account)
    }

    /// Whether another partition has the links to this peer.
    pub(crate) fn is_remote(&self, peer: PeerId) -> bool {
        self.peers.get(peer.0 as usize).is_some_and(|peer| peer.settings.remote)
    }

    fn remote_attempt(&self, message: &Message) -> Option<RemoteAttempt> {
        if self.is_partition_account(message.origin) {
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
    pub(crate) fn add_remote_attempt(&mut self, message: &Message) {
        let Some(attempt) = self.remote_attempt(message) else { return };
        let of = match &message.kind {
            MessageKind::Text => message.id,
            MessageKind::Dlr(dlr) => dlr.of,
        };
        self.remote_attempts.add((message.origin, attempt.id, attempt.attempt), message.id, of);
    }

    /// The message of a repeated attempt. Its outcome, if known, is reported again: the other partition may not have applied
    /// the earlier report.
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
            self.report_outcome(now, &Message { id, ..message.clone() }, &outcome, out);
        }
        Some(id)
    }

    /// Passes on to other partitions that a subscriber of a core network is reachable again. Not stored: a partition without a
    /// connection retries its messages by their schedule.
    pub(crate) fn alert_partitions(&self, network: PeerId, imsi: &Imsi, out: &mut Output) {
        let accounts = self.peers.iter().filter(|peer| peer.settings.alerts_of == Some(network));
        let links = accounts.flat_map(|account| &account.links);
        let links = links.filter_map(|index| self.links.get(*index as usize)?.as_ref());
        out.commands.extend(
            links.map(|link| EngineCommand::SubscriberReachable { link: link.id, imsi: imsi.clone() }),
        );
    }

    fn segment_ids(&self, slot: Slot) -> Vec<PeerMessageId> {
        let history = self.slab[slot].history.as_ref();
        history.map_or_else(Vec::new, |history| {
            history.segments.iter().map(|segment| segment.id.clone()).collect()
        })
    }

    /// The peer has accepted a message, its remaining segments under these ids.
    pub(crate) fn report_accepted(&mut self, now: Now, slot: Slot, ids: &[PeerMessageId], out: &mut Output) {
        if self.is_partition_account(self.slab[slot].origin) {
            let mut all = self.segment_ids(slot);
            all.extend_from_slice(ids);
            self.report_to_partition(now, slot, &Outcome::Accepted { ids: all }, out);
        }
    }

    /// The peer has refused a message. Returns whether the message has ended with this: an attempt of another partition is
    /// not retried here.
    pub(crate) fn report_refused(
        &mut self,
        now: Now,
        slot: Slot,
        (class, code): (ErrorClass, u32),
        out: &mut Output,
    ) -> bool {
        if !self.is_partition_account(self.slab[slot].origin) {
            return false;
        }
        let taken = self.segment_ids(slot);
        self.report_to_partition(now, slot, &Outcome::Refused { class, code, taken }, out);
        self.end_with(now, slot, FinalState::Failed, code, PeerMessageId::default(), None, out);
        true
    }

    /// A message has become uncertain. Not reported during recovery: the links of this process have ended, so the other
    /// partition repeats the attempt.
    pub(crate) fn report_uncertain(&mut self, now: Now, slot: Slot, out: &mut Output) {
        if self.is_partition_account(self.slab[slot].origin) && !self.recovering {
            let taken = self.segment_ids(slot);
            self.report_to_partition(now, slot, &Outcome::Unanswered { taken, known: Vec::new() }, out);
        }
    }

    /// The report when a message in state `was` ends; `None` if it is not an attempt of another partition.
    pub(crate) fn attempt_end(&self, slot: Slot, (was, state): (State, FinalState)) -> Option<AttemptEnd> {
        let entry = &self.slab[slot];
        if !self.is_partition_account(entry.origin) {
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

    fn report_to_partition(&mut self, now: Now, slot: Slot, outcome: &Outcome, out: &mut Output) {
        if let Some(message) = self.slab[slot].message.clone() {
            self.report_outcome(now, &message, outcome, out);
        }
    }

    /// Queues the outcome of a message for the partition of the attempt.
    pub(crate) fn report_outcome(
        &mut self,
        now: Now,
        message: &Message,
        outcome: &Outcome,
        out: &mut Output,
    ) {
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
