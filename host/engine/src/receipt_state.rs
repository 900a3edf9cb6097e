//! Pending decisions of the receipt policy, the waits that it has set, and the ids of earlier legs.

use crate::{EngineAnswer, EngineCommand, Output, ReplyTo};
use model::{Dlr, Message, MessageId, Moment, PeerId, PeerMessageId};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// The source of a DLR: its request is answered, or its orphan row removed, once its consequences are in the batch.
#[derive(Debug, Default)]
pub(crate) struct DlrSource {
    /// The peer's request, which is still unanswered.
    pub(crate) reply: Option<ReplyTo>,
    /// Its number in the table of orphan DLRs.
    pub(crate) orphan: Option<u64>,
}

impl DlrSource {
    pub(crate) fn answered_to(reply: ReplyTo) -> Self {
        Self { reply: Some(reply), orphan: None }
    }

    pub(crate) fn done(self, out: &mut Output) {
        out.batch.orphan_dlrs_done.extend(self.orphan);
        if let Some(to) = self.reply {
            out.commands.push(EngineCommand::Answer { to, answer: EngineAnswer::DlrRecorded });
        }
    }
}

/// The subject of a call of the policy.
#[derive(Debug)]
pub(crate) enum ReceiptSubject {
    /// The peer has accepted the message. `recovered`: before the daemon started.
    Accepted { recovered: bool },
    /// A DLR.
    Dlr(Dlr, DlrSource),
    /// The wait is over.
    Timeout,
}

/// A call without an answer, and the DLRs that came since.
#[derive(Debug)]
pub(crate) struct PendingReceipt {
    pub(crate) question: u64,
    /// The content, which may be evicted before the answer comes.
    pub(crate) message: Arc<Message>,
    pub(crate) subject: ReceiptSubject,
    pub(crate) behind: VecDeque<(Dlr, DlrSource)>,
}

/// A DLR of an earlier leg that came while the message is on a link of another leg.
#[derive(Debug)]
pub(crate) struct LateDlr {
    pub(crate) id: MessageId,
    pub(crate) peer: PeerId,
    pub(crate) dlr: Dlr,
    pub(crate) source: DlrSource,
}

/// The engine's side of the receipt hook. Empty while no receipt policy is bound, except for earlier legs.
#[derive(Debug, Default)]
pub(crate) struct ReceiptState {
    pub(crate) pending: BTreeMap<MessageId, PendingReceipt>,
    last_question: u64,
    /// Messages with a wait, and the ends of their peers' DLR timeouts.
    pub(crate) waits: HashMap<MessageId, Moment>,
    /// Calls that need the content of their message, which is being loaded.
    pub(crate) without_content: HashMap<MessageId, ReceiptSubject>,
    /// Recovered messages whose peer had accepted them, and for which no wait is recorded.
    pub(crate) recovered: VecDeque<MessageId>,
    pub(crate) late: Vec<LateDlr>,
    /// Message and peer of an earlier leg, by peer group and peer's message id.
    earlier: HashMap<(u32, PeerMessageId), (MessageId, PeerId)>,
}

impl ReceiptState {
    pub(crate) fn next_question(&mut self) -> u64 {
        self.last_question += 1;
        self.last_question
    }

    /// Removes and returns the call with this number, if its answer is still pending.
    pub(crate) fn take(&mut self, id: MessageId, question: u64) -> Option<PendingReceipt> {
        let is_asked = self.pending.get(&id).is_some_and(|pending| pending.question == question);
        if is_asked { self.pending.remove(&id) } else { None }
    }

    /// Whether the receipt policy is called about a message before its DLR timeout counts.
    pub(crate) fn precedes_dlr_timeout(&self, id: MessageId) -> bool {
        self.waits.contains_key(&id) || self.pending.contains_key(&id)
    }

    pub(crate) fn end_wait(&mut self, id: MessageId) {
        self.waits.remove(&id);
        self.without_content.remove(&id);
    }

    pub(crate) fn earlier_leg(&self, group: u32, id: &PeerMessageId) -> Option<(MessageId, PeerId)> {
        self.earlier.get(&(group, id.clone())).copied()
    }

    pub(crate) fn add_earlier(&mut self, group: u32, peer_id: &PeerMessageId, id: MessageId, peer: PeerId) {
        if !peer_id.0.is_empty() {
            self.earlier.insert((group, peer_id.clone()), (id, peer));
        }
    }

    /// Removes an id of an earlier leg, unless the peer has given it to another message since.
    pub(crate) fn remove_earlier(&mut self, group: u32, peer_id: &PeerMessageId, id: MessageId) {
        let key = (group, peer_id.clone());
        if self.earlier.get(&key).is_some_and(|(of, _)| *of == id) {
            self.earlier.remove(&key);
        }
    }

    /// Moves the ids of a peer to another group.
    pub(crate) fn regroup(&mut self, peer: PeerId, group: u32) {
        let mine: Vec<_> =
            self.earlier.iter().filter(|(_, (_, of))| *of == peer).map(|(key, _)| key.clone()).collect();
        for key in mine {
            if let Some(leg) = self.earlier.remove(&key) {
                self.earlier.insert((group, key.1), leg);
            }
        }
    }
}
