//! What events say of a message, remembered from its acceptance to its end.

use codec::ContentCipher;
use model::{
    Address, Direction, FinalRecord, Message, MessageId, MessageKind, PeerId, PoolId, PoolName, PriceState,
    Quote, StepKind, Verdict,
};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// So many messages are remembered. What is forgotten is read from the store or the archive.
const MOST_REMEMBERED: usize = 100_000;

/// Why messages cannot be read.
pub type DirectoryError = Box<dyn std::error::Error + Send + Sync>;

/// Messages and the names of peers. The daemon implements it over directory, store and archive.
pub trait MessageDirectory: Send + Sync {
    /// The name of a peer or account; removed ones keep their names.
    fn name(&self, peer: PeerId) -> Arc<str>;

    /// Whether the peer is an account (a customer of the operator).
    fn is_account(&self, peer: PeerId) -> bool;

    /// The name of a pool; `None` if it is removed.
    ///
    /// # Errors
    /// If the store cannot be read. The caller tries again.
    fn pool_name(&self, pool: PoolId) -> Result<Option<PoolName>, DirectoryError>;

    /// The contents of messages, waiting, finished or archived, in the order of `ids`; `None` for unknown ones.
    ///
    /// # Errors
    /// If store or archive cannot be read. The caller tries again.
    fn messages(&self, ids: &[MessageId]) -> Result<Vec<Option<Message>>, DirectoryError>;

    /// Decrypts contents of messages in the journal. Events have no texts, but the number of their segments.
    fn cipher(&self) -> Option<Arc<dyn ContentCipher>> {
        None
    }
}

/// What events and CDRs say of a message.
#[derive(Debug, Clone)]
pub(crate) struct MessageFacts {
    pub(crate) submission: Option<MessageId>,
    pub(crate) origin: PeerId,
    pub(crate) source: Address,
    pub(crate) destination: Address,
    pub(crate) accepted_at: model::Timestamp,
    pub(crate) segments: u16,
    pub(crate) data_coding: u8,
    pub(crate) priority: u8,
    /// The peers of its legs.
    pub(crate) legs: Box<[PeerId]>,
    pub(crate) quote: Option<Box<Quote>>,
    /// It is a DLR for a submitter: not a message of its own.
    pub(crate) is_dlr: bool,
    /// The DLRs of it that events have told.
    pub(crate) told_dlrs: usize,
}

impl MessageFacts {
    pub(crate) fn of(message: &Message) -> Self {
        let legs = match &message.routed.verdict {
            Verdict::Forward(legs) => legs.iter().map(|leg| leg.peer).collect(),
            Verdict::Hold(_)
            | Verdict::Reject(_)
            | Verdict::Quarantine
            | Verdict::AwaitLookup
            | Verdict::Drop(_) => Box::default(),
        };
        Self {
            submission: message.submission,
            origin: message.origin,
            source: message.source.clone(),
            destination: message.destination.clone(),
            accepted_at: message.accepted_at,
            segments: message.text.segment_count(),
            data_coding: message.text.data_coding,
            priority: message.priority.level(),
            legs,
            quote: message.routed.quote.clone(),
            is_dlr: message.kind != MessageKind::Text,
            told_dlrs: 0,
        }
    }

    /// The direction, and the account: the origin of an MT message, the destination of an MO message.
    pub(crate) fn account(
        &self,
        directory: &dyn MessageDirectory,
        ended: Option<&FinalRecord>,
    ) -> (Direction, Arc<str>) {
        if directory.is_account(self.origin) {
            return (Direction::Mt, directory.name(self.origin));
        }
        let account = match ended {
            Some(ended) => self.other_party(ended),
            None => self.legs.first().copied(),
        };
        (Direction::Mo, account.map_or_else(|| "".into(), |account| directory.name(account)))
    }

    /// Who took the message, or was to take it: as in the archive.
    pub(crate) fn other_party(&self, ended: &FinalRecord) -> Option<PeerId> {
        ended.peer.or_else(|| last_tried(ended)).or_else(|| self.legs.first().copied())
    }

    /// The price with the state of its settlement; `None` if no biller was asked.
    pub(crate) fn price(&self, ended: &FinalRecord) -> Option<(u64, Option<Arc<str>>, PriceState)> {
        let quote = self.quote.as_deref()?;
        let (amount, account) = match &quote.charge {
            Some(charge) => (charge.amount, Some(charge.account.clone())),
            None => (0, None),
        };
        Some((amount, account, PriceState::of(quote, ended)))
    }
}

fn last_tried(ended: &FinalRecord) -> Option<PeerId> {
    ended.steps.iter().rev().find_map(|step| match step.kind {
        StepKind::Submitted { peer, .. } => Some(peer),
        _ => None,
    })
}

/// The number of submit attempts in a trace.
pub(crate) fn attempts(ended: &FinalRecord) -> u16 {
    let attempts = ended.steps.iter().filter_map(|step| match step.kind {
        StepKind::Submitted { attempt, .. } => Some(attempt),
        _ => None,
    });
    attempts.max().unwrap_or(0)
}

/// The messages that were accepted lately and have not ended.
///
/// Later records of the journal name a message by its id. Most messages end soon after their acceptance, so the reader has
/// seen the record with the content.
#[derive(Debug, Default)]
pub(crate) struct MessageWindow {
    facts: FxHashMap<MessageId, MessageFacts>,
    /// In the order in which they came; also some that have ended.
    order: VecDeque<MessageId>,
    pools: FxHashMap<PoolId, Arc<str>>,
}

impl MessageWindow {
    pub(crate) fn get(&self, id: MessageId) -> Option<&MessageFacts> {
        self.facts.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: MessageId) -> Option<&mut MessageFacts> {
        self.facts.get_mut(&id)
    }

    pub(crate) fn pool(&self, id: PoolId) -> Option<&Arc<str>> {
        self.pools.get(&id)
    }

    pub(crate) fn put_pool(&mut self, id: PoolId, name: Arc<str>) {
        self.pools.insert(id, name);
    }

    pub(crate) fn contains(&self, id: MessageId) -> bool {
        self.facts.contains_key(&id)
    }

    /// Remembers a message, or its new content.
    pub(crate) fn put(&mut self, id: MessageId, mut facts: MessageFacts) {
        match self.facts.get_mut(&id) {
            Some(known) => {
                facts.told_dlrs = known.told_dlrs;
                *known = facts;
            }
            None => {
                self.facts.insert(id, facts);
                self.order.push_back(id);
            }
        }
    }

    pub(crate) fn remove(&mut self, id: MessageId) {
        self.facts.remove(&id);
    }

    /// Forgets the oldest messages beyond the limit. Between two passes, which need what they have looked up.
    pub(crate) fn trim(&mut self) {
        while self.facts.len() > MOST_REMEMBERED {
            let Some(oldest) = self.order.pop_front() else { return };
            self.facts.remove(&oldest);
        }
        if self.order.len() > 2 * MOST_REMEMBERED {
            self.order.retain(|id| self.facts.contains_key(id));
        }
    }
}
