//! Fetching: items are leased to the caller, and removed when they are acknowledged.

use crate::accounts::Account;
use crate::answers::FetchedBatch;
use crate::item::InboxItem;
use crate::problem::{Problem, ProblemKind};
use engine::Event;
use model::{Message, MessageId, Outcome};
use parking_lot::Mutex;
use ports::{EventSink, LinkCommand, LinkHandle, LinkRegistry, Protocol};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Maximum number of items per fetch.
pub(crate) const MAX_ITEMS: usize = 1000;
/// Maximum time that a fetch waits for the first item.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);
/// Maximum number of leases per account.
const MAX_LEASES: usize = 64;
/// Maximum time for the engine to load items from disk.
const LOAD_TIMEOUT: Duration = Duration::from_millis(300);

#[derive(Debug)]
struct Lease {
    account: Arc<Account>,
    /// The link on which the items are in flight. If it is dropped, they return to the queue.
    handle: LinkHandle,
    items: Vec<MessageId>,
}

/// All leases.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    leases: Mutex<HashMap<String, Lease>>,
}

impl Inbox {
    /// Leases up to `most` items; waits up to `wait` for the first one.
    pub(crate) async fn fetch(
        self: &Arc<Self>,
        core: &Arc<dyn EventSink>,
        registry: &Arc<LinkRegistry>,
        account: &Arc<Account>,
        most: usize,
        wait: Duration,
    ) -> Result<FetchedBatch, Problem> {
        let held = self
            .leases
            .lock()
            .values()
            .filter(|lease| lease.account.options.name == account.options.name)
            .count();
        if held >= MAX_LEASES {
            let detail =
                "too many unacknowledged batches; acknowledge them, or wait until their leases expire";
            return Err(Problem::new(ProblemKind::Throttled, detail));
        }
        let most = most.clamp(1, MAX_ITEMS);
        let mut handle = LinkHandle::register(core.clone(), registry.clone(), Protocol::Internal);
        let (link, mut events) = (handle.link(), Vec::new());
        handle.announce(account.options.peer, most, &mut events);
        core.push(std::mem::take(&mut events));
        let mut items: Vec<Arc<Message>> = Vec::new();
        let until = Instant::now() + wait.min(MAX_WAIT).max(LOAD_TIMEOUT);
        while items.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, handle.recv()).await {
                Ok(batch) => items.extend(batch.into_iter().filter_map(sent)),
                Err(_) => break,
            }
        }
        // Stop the flow: items that the engine sent before arrive before its answer.
        handle.pause(&mut events);
        events.push(Event::Flush { link });
        core.push(events);
        let mut is_flushed = false;
        while !is_flushed {
            let Ok(batch) = tokio::time::timeout(Duration::from_secs(10), handle.recv()).await else { break };
            for delivery in batch {
                is_flushed |= matches!(delivery, LinkCommand::Flushed);
                items.extend(sent(delivery));
            }
        }
        let batch = link.0.to_string();
        let term = account.options.lease;
        let shown = items.iter().map(|message| InboxItem::of(message)).collect();
        let ids: Vec<MessageId> = items.iter().map(|message| message.id).collect();
        let lease = Lease { account: account.clone(), handle, items: ids };
        if lease.items.is_empty() {
            end(lease, None).await;
            return Ok(FetchedBatch { batch: String::new(), items: shown, lease: term.as_secs() });
        }
        account.counts.leased.fetch_add(lease.items.len() as u64, Relaxed);
        self.leases.lock().insert(batch.clone(), lease);
        let (inbox, name) = (self.clone(), batch.clone());
        tokio::spawn(async move {
            tokio::time::sleep(term).await;
            let lease = inbox.leases.lock().remove(&name);
            if let Some(lease) = lease {
                tracing::info!(
                    account = lease.account.options.name,
                    items = lease.items.len(),
                    "lease expired"
                );
                end(lease, None).await;
            }
        });
        Ok(FetchedBatch { batch, items: shown, lease: term.as_secs() })
    }

    /// Acknowledges a batch, or some of its items; the others are offered again. Returns the number of acknowledged
    /// items.
    pub(crate) async fn acknowledge(
        &self,
        account: &Account,
        batch: &str,
        only: Option<&[MessageId]>,
    ) -> Result<usize, Problem> {
        let lease = {
            let mut leases = self.leases.lock();
            let is_its =
                leases.get(batch).is_some_and(|lease| lease.account.options.name == account.options.name);
            is_its.then(|| leases.remove(batch)).flatten()
        };
        let Some(lease) = lease else {
            let detail =
                "unknown batch: it was acknowledged, or its lease expired and its items are offered again";
            return Err(Problem::new(ProblemKind::NotFound, detail));
        };
        let acknowledged: Vec<MessageId> = match only {
            None => lease.items.clone(),
            Some(only) => lease.items.iter().copied().filter(|id| only.contains(id)).collect(),
        };
        account.counts.fetched.fetch_add(acknowledged.len() as u64, Relaxed);
        let count = acknowledged.len();
        end(lease, Some(acknowledged)).await;
        Ok(count)
    }

    /// Releases all leases at shutdown.
    pub(crate) async fn close(&self) {
        let leases: Vec<Lease> = self.leases.lock().drain().map(|(_, lease)| lease).collect();
        for lease in leases {
            end(lease, None).await;
        }
    }
}

fn sent(delivery: LinkCommand) -> Option<Arc<Message>> {
    match delivery {
        LinkCommand::Send { message, .. } => Some(message),
        _ => None,
    }
}

/// Ends a lease: acknowledged items are done, the others return to the queue. Runs in its own task, because the caller
/// may be dropped, and a half-closed link would never end.
async fn end(lease: Lease, acknowledged: Option<Vec<MessageId>>) {
    let ending = tokio::spawn(async move { release_lease(lease, acknowledged.as_deref()).await });
    let _ = ending.await;
}

async fn release_lease(lease: Lease, acknowledged: Option<&[MessageId]>) {
    let Lease { account, handle, items } = lease;
    if !items.is_empty() {
        account.counts.leased.fetch_sub(items.len() as u64, Relaxed);
    }
    let link = handle.link();
    let events = items
        .into_iter()
        .map(|id| {
            let is_taken = acknowledged.is_some_and(|acknowledged| acknowledged.contains(&id));
            let outcome = if is_taken { Outcome::Accepted { ids: Vec::new() } } else { Outcome::NotSent };
            Event::Outcome { link, id, outcome }
        })
        .collect();
    handle.close(events, Duration::from_secs(5)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Accounts;
    use crate::options::BusinessAccountOptions;
    use engine::EngineCommand;
    use model::{LinkId, PeerId};
    use ports::AccountRegistry;

    /// Records flushes, which the test answers.
    #[derive(Default)]
    struct SlowCore(Mutex<Vec<LinkId>>);

    impl EventSink for SlowCore {
        fn push(&self, events: Vec<Event>) {
            self.0.lock().extend(events.into_iter().filter_map(|event| match event {
                Event::Flush { link } => Some(link),
                _ => None,
            }));
        }
    }

    #[tokio::test]
    async fn a_link_is_closed_although_the_caller_hung_up() {
        let (slow, registry) = (Arc::new(SlowCore::default()), Arc::new(LinkRegistry::new()));
        let core: Arc<dyn EventSink> = slow.clone();
        let account = Accounts::default()
            .set(BusinessAccountOptions::new("shop", PeerId(1), ""), &AccountRegistry::default());
        let mut handle = LinkHandle::register(core.clone(), registry.clone(), Protocol::Internal);
        handle.announce(PeerId(1), 1, &mut Vec::new());
        let lease = Lease { account, handle, items: Vec::new() };
        let left = tokio::time::timeout(Duration::ZERO, end(lease, None)).await;
        assert!(left.is_err(), "the core has not answered");
        let request = async {
            loop {
                let request = slow.0.lock().pop();
                match request {
                    Some(link) => break link,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        let link = tokio::time::timeout(Duration::from_secs(20), request).await.unwrap();
        registry.dispatch(vec![EngineCommand::Flushed { link }]);
        let gone = async {
            while !registry.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    }
}
