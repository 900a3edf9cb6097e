//! Which messages are whose, and who wants to hear of them.
//!
//! The store finds messages by id, the archive by number. What is not in the archive yet is found by number through a
//! *box*: the ids of a number's messages, in memory. The boxes of the numbers that the configuration names are opened at the
//! start, others when they are first asked for; opening costs one walk over the store, for all that wait for one together.
//! After that every commit keeps them up to date ([`Watch::observe`]), and the same commits are what followers hear.

use crate::Number;
use engine::Batch;
use model::{Address, AddressBytes, Kind, Message, MessageId};
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

/// Changes that a follower may be behind before it loses some.
const BEHIND: usize = 1024;
/// Ids that are added or removed at a time: a commit waits for no more than these.
const HELD: usize = 1000;
/// A box that nobody has asked for so long is closed, unless the configuration names its number.
const UNUSED: Duration = Duration::from_secs(3600);

/// All boxes, and all followers.
#[derive(Debug)]
pub struct Watch {
    store: Arc<Store>,
    /// Whether there is any box or follower: without, a commit costs nothing here.
    active: AtomicBool,
    inner: Mutex<Inner>,
    /// Held during a walk: there is one at a time.
    walking: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct Inner {
    boxes: FxHashMap<AddressBytes, Mailbox>,
    /// Message → the numbers of the boxes that it is in.
    whose: FxHashMap<MessageId, SmallVec<[AddressBytes; 2]>>,
    /// Those who follow everything.
    followers: Vec<Follower>,
}

#[derive(Debug)]
struct Mailbox {
    ids: BTreeSet<MessageId>,
    /// What was there before the box was opened is in it too.
    complete: bool,
    /// Named by the configuration.
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

fn tell(followers: &mut Vec<Follower>, id: MessageId) {
    followers.retain(|follower| match follower.changed.try_send(id) {
        Ok(()) => true,
        Err(mpsc::error::TrySendError::Full(_)) => {
            follower.lost.fetch_add(1, Relaxed);
            true
        }
        Err(mpsc::error::TrySendError::Closed(_)) => false,
    });
}

/// Ids of messages that are new or have changed, as they do.
#[derive(Debug)]
pub(crate) struct Changes {
    changed: mpsc::Receiver<MessageId>,
    lost: Arc<AtomicU64>,
}

impl Changes {
    /// The next one; never ends by itself.
    pub(crate) async fn next(&mut self) -> MessageId {
        match self.changed.recv().await {
            Some(id) => id,
            // Its box is gone with the watch: nothing changes any more.
            None => std::future::pending().await,
        }
    }

    /// How many were lost since this was asked last.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.swap(0, Relaxed)
    }
}

impl Inner {
    fn add(&mut self, id: MessageId, digits: &[u8]) {
        let Some(mailbox) = self.boxes.get_mut(digits) else { return };
        mailbox.ids.insert(id);
        let whose = self.whose.entry(id).or_default();
        if !whose.iter().any(|one| one.as_slice() == digits) {
            whose.push(AddressBytes::from_slice(digits));
        }
    }

    fn remove(&mut self, id: MessageId) {
        for number in self.whose.remove(&id).into_iter().flatten() {
            if let Some(mailbox) = self.boxes.get_mut(&number) {
                mailbox.ids.remove(&id);
            }
        }
    }

    fn tell(&mut self, id: MessageId) {
        tell(&mut self.followers, id);
        for number in self.whose.get(&id).into_iter().flatten() {
            if let Some(mailbox) = self.boxes.get_mut(number) {
                tell(&mut mailbox.followers, id);
            }
        }
    }

    fn accepted(&mut self, message: &Message) {
        if message.kind != Kind::Text {
            return;
        }
        for address in [&message.source, &message.destination] {
            if let Some(digits) = Number::digits_of(address) {
                self.add(message.id, digits);
            }
        }
        self.tell(message.id);
    }
}

impl Watch {
    /// No boxes yet.
    #[must_use]
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, active: AtomicBool::new(false), inner: Mutex::default(), walking: Arc::default() }
    }

    /// Takes notice of what a commit has written. Must be called after it is durable and before anybody is told of it, so that
    /// whoever is told finds it here; in the order of the commits.
    pub fn observe(&self, batch: &Batch) {
        if !self.active.load(Relaxed) {
            return;
        }
        let mut inner = self.inner.lock();
        for message in &batch.accepted {
            inner.accepted(message);
        }
        let changed = batch.progress.iter().map(|(id, _)| *id);
        let changed = changed.chain(batch.replaced.iter().map(|message| message.id));
        for id in changed.chain(batch.finished.iter().map(|(id, _)| *id)) {
            inner.tell(id);
        }
        for id in batch.archived.iter().chain(&batch.dropped) {
            inner.remove(*id);
        }
    }

    /// Opens the boxes of the numbers that the configuration names.
    pub(crate) async fn open_named(self: &Arc<Self>, numbers: &BTreeSet<Number>) -> Result<(), StoreError> {
        {
            let mut inner = self.inner.lock();
            for number in numbers {
                inner.boxes.insert(number.digits().into(), Mailbox::new(true));
            }
            self.active.store(true, Relaxed);
        }
        self.walk().await
    }

    /// Opens a number's box, unless it is open.
    pub(crate) async fn open(self: &Arc<Self>, number: &Number) -> Result<(), StoreError> {
        {
            let mut inner = self.inner.lock();
            let mailbox = inner.boxes.entry(number.digits().into()).or_insert_with(|| Mailbox::new(false));
            mailbox.used = Instant::now();
            if mailbox.complete {
                return Ok(());
            }
            self.active.store(true, Relaxed);
        }
        self.walk().await
    }

    /// Fills all boxes that are not complete, when the walk before has ended. The walk goes on to its end also when nobody
    /// waits for it any more.
    async fn walk(self: &Arc<Self>) -> Result<(), StoreError> {
        let alone = self.walking.clone().lock_owned().await;
        let watch = self.clone();
        let walked = tokio::task::spawn_blocking(move || {
            let result = watch.walk_here();
            drop(alone);
            result
        });
        // A walk that panicked leaves its boxes incomplete, and the next question walks again.
        walked.await.unwrap_or(Ok(()))
    }

    fn walk_here(&self) -> Result<(), StoreError> {
        let wanted: FxHashSet<AddressBytes> = {
            let inner = self.inner.lock();
            let open = inner.boxes.iter().filter(|(_, mailbox)| !mailbox.complete);
            open.map(|(number, _)| number.clone()).collect()
        };
        if wanted.is_empty() {
            return Ok(());
        }
        let mut found = Vec::new();
        // Commits that are not in what is read here are observed, for the boxes are open already.
        self.store.parties(|id, source: &Address, destination: &Address| {
            for address in [source, destination] {
                if let Some(digits) = Number::digits_of(address)
                    && wanted.contains(digits)
                {
                    found.push((id, AddressBytes::from_slice(digits)));
                }
            }
        })?;
        for some in found.chunks(HELD) {
            let mut inner = self.inner.lock();
            for (id, number) in some {
                inner.add(*id, number);
            }
        }
        let mut inner = self.inner.lock();
        for number in &wanted {
            if let Some(mailbox) = inner.boxes.get_mut(number) {
                mailbox.complete = true;
            }
        }
        Ok(())
    }

    /// Ids of a number's messages below `before`, by falling id, at most `most`.
    pub(crate) fn older(&self, number: &Number, before: MessageId, most: usize) -> Vec<MessageId> {
        let inner = self.inner.lock();
        let Some(mailbox) = inner.boxes.get(number.digits()) else { return Vec::new() };
        mailbox.ids.range(..before).rev().take(most).copied().collect()
    }

    /// Ids of a number's messages around one of them, at most `most` on either side of it; not its own.
    pub(crate) fn around(&self, number: &Number, id: MessageId, most: usize) -> Vec<MessageId> {
        let inner = self.inner.lock();
        let Some(mailbox) = inner.boxes.get(number.digits()) else { return Vec::new() };
        let older = mailbox.ids.range(..id).rev().take(most);
        let newer = mailbox.ids.range((Excluded(id), Unbounded)).take(most);
        older.chain(newer).copied().collect()
    }

    /// Follows one number, whose box must be open, or everything.
    pub(crate) fn follow(&self, number: Option<&Number>) -> Changes {
        let (changed, changes) = mpsc::channel(BEHIND);
        let lost = Arc::new(AtomicU64::new(0));
        let follower = Follower { changed, lost: lost.clone() };
        let mut inner = self.inner.lock();
        match number {
            None => inner.followers.push(follower),
            Some(number) => {
                let mailbox =
                    inner.boxes.entry(number.digits().into()).or_insert_with(|| Mailbox::new(false));
                mailbox.followers.push(follower);
            }
        }
        self.active.store(true, Relaxed);
        Changes { changed: changes, lost }
    }

    /// Forgets what has left the store without a commit of the engine's, as finished messages do where there is no archive,
    /// and closes boxes that nobody uses.
    pub(crate) fn tidy(&self, now: Instant) -> Result<(), StoreError> {
        // Without any message in the store, one may just be coming in: the next turn will do.
        let oldest = self.store.oldest()?.unwrap_or(MessageId(0));
        let gone = self.close_unused(now, oldest);
        for some in gone.chunks(HELD) {
            let mut inner = self.inner.lock();
            for id in some {
                // Meanwhile a box may have been opened again.
                if *id < oldest || inner.whose.get(id).is_some_and(SmallVec::is_empty) {
                    inner.remove(*id);
                }
            }
        }
        Ok(())
    }

    /// Closes boxes that nobody uses, and tells which ids are in none any more or older than all there is.
    fn close_unused(&self, now: Instant, oldest: MessageId) -> Vec<MessageId> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        inner.followers.retain(|follower| !follower.changed.is_closed());
        for mailbox in inner.boxes.values_mut() {
            mailbox.followers.retain(|follower| !follower.changed.is_closed());
        }
        let closed: Vec<AddressBytes> = inner
            .boxes
            .iter()
            .filter(|(_, mailbox)| {
                let unused = now.saturating_duration_since(mailbox.used) >= UNUSED;
                !mailbox.pinned && mailbox.followers.is_empty() && unused
            })
            .map(|(number, _)| number.clone())
            .collect();
        let mut gone: Vec<MessageId> = Vec::new();
        for number in closed {
            for id in inner.boxes.remove(&number).into_iter().flat_map(|mailbox| mailbox.ids) {
                if let Some(whose) = inner.whose.get_mut(&id) {
                    whose.retain(|one| *one != number);
                    if whose.is_empty() {
                        gone.push(id);
                    }
                }
            }
        }
        for mailbox in inner.boxes.values_mut() {
            gone.extend(mailbox.ids.range(..oldest));
        }
        self.active.store(!(inner.boxes.is_empty() && inner.followers.is_empty()), Relaxed);
        gone
    }
}
