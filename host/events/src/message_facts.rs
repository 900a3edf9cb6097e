//! Facts of messages that events need, remembered from acceptance to end.

use codec::ContentCipher;
use model::{
    Address, Direction, FinalRecord, Message, MessageId, MessageKind, PeerId, PoolId, PoolName, PriceState,
    Quote, StepKind, Verdict,
};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of remembered messages. Forgotten ones are read from the store or the archive.
const MAX_REMEMBERED: usize = 100_000;

/// An error of a [`MessageDirectory`].
pub type DirectoryError = Box<dyn std::error::Error + Send + Sync>;

/// Lookup of messages and of the names of peers. The daemon implements it over directory, store and archive.
pub trait MessageDirectory: Send + Sync {
    /// Name of a peer or account, also of a removed one.
    fn name(&self, peer: PeerId) -> Arc<str>;

    /// Whether the peer is an account (a customer of the operator).
    fn is_account(&self, peer: PeerId) -> bool;

    /// Name of a pool; `None` if it is removed.
    ///
    /// # Errors
    /// The store cannot be read. The caller tries again.
    fn pool_name(&self, pool: PoolId) -> Result<Option<PoolName>, DirectoryError>;

    /// Messages by id, in the order of `ids`, whether waiting, finished or archived; `None` for unknown ids.
    ///
    /// # Errors
    /// Store or archive cannot be read. The caller tries again.
    fn messages(&self, ids: &[MessageId]) -> Result<Vec<Option<Message>>, DirectoryError>;

    /// Cipher for message contents in the journal. Events have no texts, but they have the number of segments.
    fn cipher(&self) -> Option<Arc<dyn ContentCipher>> {
        None
    }
}

/// Facts of a message for events and CDRs.
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
    /// Whether it is a DLR for a submitter, and not a message.
    pub(crate) is_dlr: bool,
    /// Number of DLRs for which events exist already.
    pub(crate) published_dlrs: usize,
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
            published_dlrs: 0,
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

    /// The peer that took the message or should have taken it; the archive uses the same rule.
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

/// Number of submit attempts in a trace.
pub(crate) fn attempts(ended: &FinalRecord) -> u16 {
    let attempts = ended.steps.iter().filter_map(|step| match step.kind {
        StepKind::Submitted { attempt, .. } => Some(attempt),
        _ => None,
    });
    attempts.max().unwrap_or(0)
}

/// Recently accepted messages that have not ended.
///
/// Later journal records name a message by its id only. Most messages end soon after their acceptance, so the reader
/// has usually seen the record with the content.
#[derive(Debug, Default)]
pub(crate) struct MessageWindow {
    facts: FxHashMap<MessageId, MessageFacts>,
    /// Ids in the order of arrival; some of these messages have ended.
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

    /// Remembers a message, or replaces its content.
    pub(crate) fn put(&mut self, id: MessageId, mut facts: MessageFacts) {
        match self.facts.get_mut(&id) {
            Some(known) => {
                facts.published_dlrs = known.published_dlrs;
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

    /// Forgets the oldest messages beyond the limit. Call it between two passes only: a pass needs the messages that it
    /// looked up.
    pub(crate) fn trim(&mut self) {
        while self.facts.len() > MAX_REMEMBERED {
            let Some(oldest) = self.order.pop_front() else { return };
            self.facts.remove(&oldest);
        }
        if self.order.len() > 2 * MAX_REMEMBERED {
            self.order.retain(|id| self.facts.contains_key(id));
        }
    }
}
