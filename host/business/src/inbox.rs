//! Fetching: what waits for an account, handed out under a lease and gone once it is acknowledged.

use crate::accounts::Account;
use crate::item;
use crate::problem::{Kind, Problem};
use doors::{Core, Deliveries, Delivery, Hub, take_leave};
use engine::{Event, ReplyTo};
use model::{LinkId, Message, MessageId, Outcome};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What was fetched.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// Names the lease.
    pub(crate) batch: String,
    pub(crate) items: Vec<Value>,
}

/// The most items of one fetch.
pub(crate) const MOST: usize = 1000;
/// The longest that a fetch waits for the first item.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Leases of one account at a time.
const LEASES: usize = 64;
/// How long what the engine has to read back from disk may take.
const READ_BACK: Duration = Duration::from_millis(300);

/// The marks of the questions that only show how far the engine has come.
const FIRST_LOOK: u64 = 1;
const LAST_LOOK: u64 = 2;
const LEAVE: u64 = 3;

#[derive(Debug)]
struct Lease {
    account: Arc<Account>,
    link: LinkId,
    deliveries: Deliveries,
    items: Vec<MessageId>,
}

/// All leases.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    leases: Mutex<HashMap<String, Lease>>,
}

impl Inbox {
    /// Takes up to `most` items, waiting for the first one as long as the caller likes.
    pub(crate) async fn fetch(
        self: &Arc<Self>,
        core: &Arc<dyn Core>,
        hub: &Arc<Hub>,
        account: &Arc<Account>,
        most: usize,
        wait: Duration,
    ) -> Result<Fetched, Problem> {
        let held = self
            .leases
            .lock()
            .values()
            .filter(|lease| lease.account.options.name == account.options.name)
            .count();
        if held >= LEASES {
            let detail =
                "too many batches are not acknowledged; acknowledge them, or wait until their leases end";
            return Err(Problem::new(Kind::Throttled, detail));
        }
        let most = most.clamp(1, MOST);
        let (link, mut deliveries) = hub.add();
        // Should the caller go away meanwhile, this still takes the link down.
        let guard = Unfetched { core: core.clone(), hub: hub.clone(), link, done: false };
        let window = u32::try_from(most).unwrap_or(u32::MAX);
        let look = |token| Event::Settle { id: MessageId(0), again: false, reply: ReplyTo { link, token } };
        core.push(vec![Event::LinkUp { link, peer: account.options.peer, window }, look(FIRST_LOOK)]);
        let mut items: Vec<Arc<Message>> = Vec::new();
        let until = Instant::now() + wait.min(LONGEST_WAIT).max(READ_BACK);
        while items.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, deliveries.recv()).await {
                Ok(Some(batch)) => items.extend(batch.into_iter().filter_map(sent)),
                _ => break,
            }
        }
        // Nothing more: what the engine sent before it knew comes before its answer.
        core.push(vec![Event::LinkPaused { link }, look(LAST_LOOK)]);
        let mut through = false;
        while !through {
            let Ok(Some(batch)) = tokio::time::timeout(Duration::from_secs(10), deliveries.recv()).await
            else {
                break;
            };
            for delivery in batch {
                through |= matches!(delivery, Delivery::Answer { token: LAST_LOOK, .. });
                items.extend(sent(delivery));
            }
        }
        let batch = link.0.to_string();
        let shown = items.iter().map(|message| item::show(message)).collect();
        let ids: Vec<MessageId> = items.iter().map(|message| message.id).collect();
        guard.keep();
        let lease = Lease { account: account.clone(), link, deliveries, items: ids };
        if lease.items.is_empty() {
            end(core, hub, lease, None).await;
            return Ok(Fetched { batch: String::new(), items: shown });
        }
        account.counts.leased.fetch_add(lease.items.len() as u64, Relaxed);
        self.leases.lock().insert(batch.clone(), lease);
        let (inbox, core, hub, name) = (self.clone(), core.clone(), hub.clone(), batch.clone());
        let term = account.options.lease;
        tokio::spawn(async move {
            tokio::time::sleep(term).await;
            let lease = inbox.leases.lock().remove(&name);
            if let Some(lease) = lease {
                tracing::info!(
                    account = lease.account.options.name,
                    items = lease.items.len(),
                    "a lease has ended"
                );
                end(&core, &hub, lease, None).await;
            }
        });
        Ok(Fetched { batch, items: shown })
    }

    /// Acknowledges a batch: all of it, or only some items, and the others are offered again. How many went.
    pub(crate) async fn acknowledge(
        &self,
        core: &Arc<dyn Core>,
        hub: &Arc<Hub>,
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
            let detail = "no such batch: it was acknowledged before, or its lease has ended and its items are offered again";
            return Err(Problem::new(Kind::NotFound, detail));
        };
        let taken: Vec<MessageId> = match only {
            None => lease.items.clone(),
            Some(only) => lease.items.iter().copied().filter(|id| only.contains(id)).collect(),
        };
        account.counts.fetched.fetch_add(taken.len() as u64, Relaxed);
        let count = taken.len();
        end(core, hub, lease, Some(&taken)).await;
        Ok(count)
    }

    /// Gives everything back: we are shutting down.
    pub(crate) async fn close(&self, core: &Arc<dyn Core>, hub: &Arc<Hub>) {
        let leases: Vec<Lease> = self.leases.lock().drain().map(|(_, lease)| lease).collect();
        for lease in leases {
            end(core, hub, lease, None).await;
        }
    }
}

fn sent(delivery: Delivery) -> Option<Arc<Message>> {
    match delivery {
        Delivery::Send { message, .. } => Some(message),
        _ => None,
    }
}

/// Ends a lease: what was taken is done with, the rest goes back to its place. In a task of its own: the caller may hang up
/// meanwhile, and a link that was half taken down would stay for ever.
async fn end(core: &Arc<dyn Core>, hub: &Arc<Hub>, lease: Lease, taken: Option<&[MessageId]>) {
    let (core, hub, taken) = (core.clone(), hub.clone(), taken.map(<[MessageId]>::to_vec));
    let ending = tokio::spawn(async move { end_here(&core, &hub, lease, taken.as_deref()).await });
    let _ = ending.await;
}

async fn end_here(core: &Arc<dyn Core>, hub: &Arc<Hub>, lease: Lease, taken: Option<&[MessageId]>) {
    let Lease { account, link, deliveries, items } = lease;
    if !items.is_empty() {
        account.counts.leased.fetch_sub(items.len() as u64, Relaxed);
    }
    let events = items
        .into_iter()
        .map(|id| {
            let is_taken = taken.is_some_and(|taken| taken.contains(&id));
            let outcome = if is_taken { Outcome::Accepted { ids: Vec::new() } } else { Outcome::NotSent };
            Event::Outcome { link, id, outcome }
        })
        .collect();
    take_leave(&**core, hub, link, LEAVE, deliveries, events, Duration::from_secs(5)).await;
}

/// Takes a link down if its fetch ends before it has a lease.
struct Unfetched {
    core: Arc<dyn Core>,
    hub: Arc<Hub>,
    link: LinkId,
    done: bool,
}

impl Unfetched {
    fn keep(mut self) {
        self.done = true;
    }
}

impl Drop for Unfetched {
    fn drop(&mut self) {
        if !self.done {
            self.hub.remove(self.link);
            self.core.push(vec![Event::LinkDown { link: self.link }]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Accounts;
    use crate::options::AccountOptions;
    use doors::AccountRates;
    use engine::{Answer, Command};
    use model::PeerId;

    /// Notes what it is asked, and answers when it is told to.
    #[derive(Default)]
    struct Slow(Mutex<Vec<ReplyTo>>);

    impl Core for Slow {
        fn push(&self, events: Vec<Event>) {
            self.0.lock().extend(events.into_iter().filter_map(|event| match event {
                Event::Settle { reply, .. } => Some(reply),
                _ => None,
            }));
        }
    }

    #[tokio::test]
    async fn a_link_goes_although_the_caller_has_gone_first() {
        let (slow, hub) = (Arc::new(Slow::default()), Arc::new(Hub::new()));
        let core: Arc<dyn Core> = slow.clone();
        let account =
            Accounts::default().set(AccountOptions::new("shop", PeerId(1), ""), &AccountRates::default());
        let (link, deliveries) = hub.add();
        let lease = Lease { account, link, deliveries, items: Vec::new() };
        let left = tokio::time::timeout(Duration::ZERO, end(&core, &hub, lease, None)).await;
        assert!(left.is_err(), "the core has not answered");
        let asked = async {
            loop {
                let asked = slow.0.lock().pop();
                match asked {
                    Some(to) => break to,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        let to = tokio::time::timeout(Duration::from_secs(20), asked).await.unwrap();
        let answer = Answer::Refused(model::Refusal::UnknownMessage);
        hub.dispatch(vec![Command::Answer { to, answer }]);
        let gone = async {
            while !hub.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    }
}
