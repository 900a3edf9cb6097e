//! The mailbox index: messages by number, and followers of changes.
//!
//! The store finds messages by id, the archive by number. Messages that are not archived yet are found by number
//! through a *mailbox*: the ids of a number's messages, in memory. Mailboxes of configured numbers are opened at the
//! start, others on first use. To open mailboxes costs one scan of the store, which all waiting callers share. Then
//! every commit updates them ([`MailboxIndex::observe`]) and notifies the followers.

use crate::SubscriberNumber;
use model::{Address, AddressBytes, Batch, Message, MessageId, MessageKind};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::{Store, StoreError};
use tokio::sync::mpsc;

/// Number of changes that a follower may lag before some are lost.
const MAX_PENDING_CHANGES: usize = 1024;
/// Maximum number of ids added or removed per lock, so that commits do not wait long.
const MAX_IDS_PER_LOCK: usize = 1000;
/// Time after which an unused mailbox is closed, unless its number is configured.
const UNUSED_TIMEOUT: Duration = Duration::from_secs(3600);

/// All mailboxes and followers.
#[derive(Debug)]
pub struct MailboxIndex {
    store: Arc<Store>,
    /// Whether there is any mailbox or follower; otherwise a commit costs nothing here.
    active: AtomicBool,
    inner: Mutex<Inner>,
    /// Held during a scan: only one runs at a time.
    scan_lock: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct Inner {
    mailboxes: FxHashMap<AddressBytes, Mailbox>,
    /// Numbers of the mailboxes that contain a message.
    numbers_by_id: FxHashMap<MessageId, SmallVec<[AddressBytes; 2]>>,
    /// Followers of all messages.
    followers: Vec<Follower>,
}

#[derive(Debug)]
struct Mailbox {
    ids: BTreeSet<MessageId>,
    /// Whether messages from before the opening are included.
    complete: bool,
    /// Whether the number is configured.
    pinned: bool,
    used: Instant,
    followers: Vec<Follower>,
}

impl Mailbox {
    fn new(pinned: bool) -> Self {
        Self { ids: BTreeSet::new(), complete: false, pinned, used: Instant::now(), followers: Vec::new() }
    }
}

#[derive(Debug)]
struct Follower {
    changed: mpsc::Sender<MessageId>,
    lost: Arc<AtomicU64>,
}

fn notify(followers: &mut Vec<Follower>, id: MessageId) {
    followers.retain(|follower| match follower.changed.try_send(id) {
        Ok(()) => true,
        Err(mpsc::error::TrySendError::Full(_)) => {
            follower.lost.fetch_add(1, Relaxed);
            true
        }
        Err(mpsc::error::TrySendError::Closed(_)) => false,
    });
}

/// Receives ids of new and changed messages.
#[derive(Debug)]
pub(crate) struct ChangeReceiver {
    changed: mpsc::Receiver<MessageId>,
    lost: Arc<AtomicU64>,
}

impl ChangeReceiver {
    /// Waits for the next id; never ends.
    pub(crate) async fn next(&mut self) -> MessageId {
        match self.changed.recv().await {
            Some(id) => id,
            // The index was dropped: nothing changes any more.
            None => std::future::pending().await,
        }
    }

    /// Number of lost changes since the last call.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.swap(0, Relaxed)
    }
}

impl Inner {
    fn add(&mut self, id: MessageId, digits: &[u8]) {
        let Some(mailbox) = self.mailboxes.get_mut(digits) else { return };
        mailbox.ids.insert(id);
        let numbers_by_id = self.numbers_by_id.entry(id).or_default();
        if !numbers_by_id.iter().any(|entry| entry.as_slice() == digits) {
            numbers_by_id.push(AddressBytes::from_slice(digits));
        }
    }

    fn remove(&mut self, id: MessageId) {
        for number in self.numbers_by_id.remove(&id).into_iter().flatten() {
            if let Some(mailbox) = self.mailboxes.get_mut(&number) {
                mailbox.ids.remove(&id);
            }
        }
    }

    fn notify(&mut self, id: MessageId) {
        notify(&mut self.followers, id);
        for number in self.numbers_by_id.get(&id).into_iter().flatten() {
            if let Some(mailbox) = self.mailboxes.get_mut(number) {
                notify(&mut mailbox.followers, id);
            }
        }
    }

    fn add_message(&mut self, message: &Message) {
        if message.kind != MessageKind::Text {
            return;
        }
        for address in [&message.source, &message.destination] {
            if let Some(digits) = SubscriberNumber::digits_of(address) {
                self.add(message.id, digits);
            }
        }
        self.notify(message.id);
    }
}

impl MailboxIndex {
    /// Creates an index without mailboxes.
    #[must_use]
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, active: AtomicBool::new(false), inner: Mutex::default(), scan_lock: Arc::default() }
    }

    /// Applies a commit. Call it after the commit is durable and before anyone is notified of it, in the order of the
    /// commits.
    pub fn observe(&self, batch: &Batch) {
        if !self.active.load(Relaxed) {
            return;
        }
        let mut inner = self.inner.lock();
        for message in &batch.accepted {
            inner.add_message(message);
        }
        let changed = batch.progress.iter().map(|(id, _)| *id);
        let changed = changed.chain(batch.replaced.iter().map(|message| message.id));
        for id in changed.chain(batch.finished.iter().map(|(id, _)| *id)) {
            inner.notify(id);
        }
        for id in batch.archived.iter().chain(&batch.dropped) {
            inner.remove(*id);
        }
    }

    /// Opens the mailboxes of configured numbers.
    pub(crate) async fn open_configured(
        self: &Arc<Self>,
        numbers: &BTreeSet<SubscriberNumber>,
    ) -> Result<(), StoreError> {
        {
            let mut inner = self.inner.lock();
            for number in numbers {
                inner.mailboxes.insert(number.digits().into(), Mailbox::new(true));
            }
            self.active.store(true, Relaxed);
        }
        self.scan().await
    }

    /// Opens the mailbox of a number, unless it is open.
    pub(crate) async fn open(self: &Arc<Self>, number: &SubscriberNumber) -> Result<(), StoreError> {
        {
            let mut inner = self.inner.lock();
            let mailbox =
                inner.mailboxes.entry(number.digits().into()).or_insert_with(|| Mailbox::new(false));
            mailbox.used = Instant::now();
            if mailbox.complete {
                return Ok(());
            }
            self.active.store(true, Relaxed);
        }
        self.scan().await
    }

    /// Fills all incomplete mailboxes after the current scan. The scan continues even if no caller waits any more.
    async fn scan(self: &Arc<Self>) -> Result<(), StoreError> {
        let scan_guard = self.scan_lock.clone().lock_owned().await;
        let index = self.clone();
        let scanned = tokio::task::spawn_blocking(move || {
            let result = index.scan_store();
            drop(scan_guard);
            result
        });
        // A scan that panicked leaves its mailboxes incomplete, and the next query scans again.
        scanned.await.unwrap_or(Ok(()))
    }

    fn scan_store(&self) -> Result<(), StoreError> {
        let unscanned: FxHashSet<AddressBytes> = {
            let inner = self.inner.lock();
            let open = inner.mailboxes.iter().filter(|(_, mailbox)| !mailbox.complete);
            open.map(|(number, _)| number.clone()).collect()
        };
        if unscanned.is_empty() {
            return Ok(());
        }
        let mut found = Vec::new();
        // Later commits are observed, since the mailboxes are open already.
        self.store.parties(|id, source: &Address, destination: &Address| {
            for address in [source, destination] {
                if let Some(digits) = SubscriberNumber::digits_of(address)
                    && unscanned.contains(digits)
                {
                    found.push((id, AddressBytes::from_slice(digits)));
                }
            }
        })?;
        for chunk in found.chunks(MAX_IDS_PER_LOCK) {
            let mut inner = self.inner.lock();
            for (id, number) in chunk {
                inner.add(*id, number);
            }
        }
        let mut inner = self.inner.lock();
        for number in &unscanned {
            if let Some(mailbox) = inner.mailboxes.get_mut(number) {
                mailbox.complete = true;
            }
        }
        Ok(())
    }

    /// Ids of a number's messages below `before`, descending, at most `limit`.
    pub(crate) fn older(&self, number: &SubscriberNumber, before: MessageId, limit: usize) -> Vec<MessageId> {
        let inner = self.inner.lock();
        let Some(mailbox) = inner.mailboxes.get(number.digits()) else { return Vec::new() };
        mailbox.ids.range(..before).rev().take(limit).copied().collect()
    }

    /// Ids of a number's messages around `id`, at most `limit` on each side, without `id`.
    pub(crate) fn around(&self, number: &SubscriberNumber, id: MessageId, limit: usize) -> Vec<MessageId> {
        let inner = self.inner.lock();
        let Some(mailbox) = inner.mailboxes.get(number.digits()) else { return Vec::new() };
        let older = mailbox.ids.range(..id).rev().take(limit);
        let newer = mailbox.ids.range((Excluded(id), Unbounded)).take(limit);
        older.chain(newer).copied().collect()
    }

    /// Follows one number, whose mailbox must be open, or all messages.
    pub(crate) fn follow(&self, number: Option<&SubscriberNumber>) -> ChangeReceiver {
        let (changed, changes) = mpsc::channel(MAX_PENDING_CHANGES);
        let lost = Arc::new(AtomicU64::new(0));
        let follower = Follower { changed, lost: lost.clone() };
        let mut inner = self.inner.lock();
        match number {
            None => inner.followers.push(follower),
            Some(number) => {
                let mailbox =
                    inner.mailboxes.entry(number.digits().into()).or_insert_with(|| Mailbox::new(false));
                mailbox.followers.push(follower);
            }
        }
        self.active.store(true, Relaxed);
        ChangeReceiver { changed: changes, lost }
    }

    /// Removes messages that left the store without a commit (finished ones without an archive), and closes unused
    /// mailboxes.
    pub(crate) fn remove_stale(&self, now: Instant) -> Result<(), StoreError> {
        // If the store is empty, a message may just be arriving; the next run removes the rest.
        let oldest = self.store.oldest()?.unwrap_or(MessageId(0));
        let removed = self.close_unused(now, oldest);
        for chunk in removed.chunks(MAX_IDS_PER_LOCK) {
            let mut inner = self.inner.lock();
            for id in chunk {
                // Meanwhile a mailbox may have been reopened.
                if *id < oldest || inner.numbers_by_id.get(id).is_some_and(SmallVec::is_empty) {
                    inner.remove(*id);
                }
            }
        }
        Ok(())
    }

    /// Closes unused mailboxes. Returns ids that are in no mailbox any more or older than the oldest stored message.
    fn close_unused(&self, now: Instant, oldest: MessageId) -> Vec<MessageId> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        inner.followers.retain(|follower| !follower.changed.is_closed());
        for mailbox in inner.mailboxes.values_mut() {
            mailbox.followers.retain(|follower| !follower.changed.is_closed());
        }
        let closed: Vec<AddressBytes> = inner
            .mailboxes
            .iter()
            .filter(|(_, mailbox)| {
                let unused = now.saturating_duration_since(mailbox.used) >= UNUSED_TIMEOUT;
                !mailbox.pinned && mailbox.followers.is_empty() && unused
            })
            .map(|(number, _)| number.clone())
            .collect();
        let mut removed: Vec<MessageId> = Vec::new();
        for number in closed {
            for id in inner.mailboxes.remove(&number).into_iter().flat_map(|mailbox| mailbox.ids) {
                if let Some(numbers_by_id) = inner.numbers_by_id.get_mut(&id) {
                    numbers_by_id.retain(|entry| *entry != number);
                    if numbers_by_id.is_empty() {
                        removed.push(id);
                    }
                }
            }
        }
        for mailbox in inner.mailboxes.values_mut() {
            removed.extend(mailbox.ids.range(..oldest));
        }
        self.active.store(!(inner.mailboxes.is_empty() && inner.followers.is_empty()), Relaxed);
        removed
    }
}
