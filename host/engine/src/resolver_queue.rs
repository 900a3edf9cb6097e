//! Numbers to resolve, the messages that wait for them, and the cached answers.

use crate::subscriber_cache::{ResolverAnswer, SubscriberCache};
use model::{AddressBytes, Imsi, MessageId, Moment};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Pending numbers and cached answers.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    pub(crate) numbers: HashMap<AddressBytes, PendingNumber>,
    pub(crate) cache: SubscriberCache,
    /// Numbers to query, in order. A number without an answer is here, in `in_flight` or in `retry_times`.
    pub(crate) queue: VecDeque<AddressBytes>,
    /// Numbers with a pending query; they stay until it is answered, even without waiting messages.
    pub(crate) in_flight: HashSet<AddressBytes>,
    /// Deferred numbers and the time of their next query.
    pub(crate) retry_times: BTreeSet<(Moment, AddressBytes)>,
    /// Answered numbers whose messages can move.
    pub(crate) ready: VecDeque<AddressBytes>,
    /// Messages whose content is loading because their number is answered.
    pub(crate) loading: HashSet<MessageId>,
    pub(crate) messages: u64,
    pub(crate) hits: u64,
    pub(crate) questions: u64,
    /// The resolver was unbound since the last run.
    pub(crate) orphaned: bool,
}

/// A number that messages wait for.
#[derive(Debug, Default)]
pub(crate) struct PendingNumber {
    /// The waiting messages, in order. Messages that left in the meantime are skipped.
    pub(crate) waiting: SmallVec<[MessageId; 2]>,
    /// How many of `waiting` are done.
    pub(crate) done: usize,
    pub(crate) answer: Option<Arc<ResolverAnswer>>,
    /// The time of the next query, if the resolver deferred it.
    pub(crate) retry_at: Option<Moment>,
    /// The deferring plugin version and its note.
    pub(crate) deferred_by: Option<Arc<ResolverAnswer>>,
    /// The number is in [`Resolver::ready`].
    pub(crate) ready: bool,
}

impl PendingNumber {
    pub(crate) fn remaining(&self) -> &[MessageId] {
        self.waiting.get(self.done..).unwrap_or_default()
    }
}

/// Counters of the resolver queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResolverStatus {
    /// Numbers that messages wait for.
    pub numbers: u64,
    /// Messages that wait.
    pub messages: u64,
    /// Cached answers.
    pub cached: u64,
    /// Messages that found a cached answer, since the start.
    pub hits: u64,
    /// Queries since the start.
    pub questions: u64,
    /// Pending queries.
    pub in_flight: u64,
}

impl Resolver {
    pub(crate) fn new(seed: u64) -> Self {
        Self { cache: SubscriberCache::new(seed), ..Self::default() }
    }

    /// Whether the cache needs the periodic sweep.
    pub(crate) fn has_cached(&self) -> bool {
        self.cache.len() > 0
    }

    pub(crate) fn forget(&mut self, now: Moment) {
        self.cache.forget(now);
    }

    /// Queues the numbers whose deferral has ended.
    pub(crate) fn requeue_due(&mut self, now: Moment) {
        while self.retry_times.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, number)) = self.retry_times.pop_first()
        {
            if let Some(waiting) = self.numbers.get_mut(&number) {
                waiting.retry_at = None;
            }
            self.queue.push_back(number);
        }
    }

    pub(crate) fn make_ready(&mut self, number: &AddressBytes) {
        if let Some(waiting) = self.numbers.get_mut(number)
            && waiting.answer.is_some()
            && !waiting.ready
        {
            waiting.ready = true;
            self.ready.push_back(number.clone());
        }
    }

    /// Adds a message to the waiting messages of a number.
    pub(crate) fn wait(&mut self, number: AddressBytes, id: MessageId) {
        match self.numbers.get_mut(&number) {
            Some(waiting) => {
                waiting.waiting.push(id);
                self.make_ready(&number);
            }
            None => {
                self.queue.push_back(number.clone());
                let waiting = SmallVec::from_slice(&[id]);
                self.numbers.insert(number, PendingNumber { waiting, ..PendingNumber::default() });
            }
        }
    }

    /// The messages that wait for a number, in order; some may have left in the meantime.
    pub(crate) fn waiting_for(&self, number: &AddressBytes) -> &[MessageId] {
        self.numbers.get(number).map(PendingNumber::remaining).unwrap_or_default()
    }

    /// The cached IMSI of a number.
    pub(crate) fn cached_imsi(&self, number: &AddressBytes, now: Moment) -> Option<Imsi> {
        let answer = self.cache.get(number, now)?;
        answer.subscriber.as_ref().map(|(imsi, _)| imsi.clone())
    }

    /// Drops the cached answer for a number, if it names this subscriber.
    pub(crate) fn invalidate(&mut self, number: &AddressBytes, imsi: &Imsi) {
        self.cache.invalidate(number, imsi);
    }

    /// Drops the cached answer for a number, if it names another subscriber; returns that subscriber.
    pub(crate) fn learn(&mut self, number: &AddressBytes, imsi: &Imsi) -> Option<Imsi> {
        self.cache.learn(number, imsi)
    }

    /// The time of the next query for a number and the deferring answer, if it is deferred.
    pub(crate) fn delay(&self, number: &AddressBytes) -> (Option<Moment>, Option<&ResolverAnswer>) {
        self.numbers
            .get(number)
            .map_or((None, None), |waiting| (waiting.retry_at, waiting.deferred_by.as_deref()))
    }
}
