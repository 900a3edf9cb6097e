use crate::{Core, Deliveries, Delivery, Hub, Protocol};
use engine::{Answer, Event, ReplyTo};
use model::LinkId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::oneshot;

/// The engine has not answered in time: what was asked may have been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no answer in time; ask again with the same key to learn what became of it")]
pub struct NoAnswer;

/// Brings calls' questions to the engine, and its answers back to the calls.
#[derive(Debug)]
pub struct Desk {
    link: LinkId,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
}

impl Desk {
    /// Opens the desk; its answers are handed out until the hub forgets it. Must be called inside a tokio runtime.
    #[must_use]
    pub fn open(hub: &Hub) -> Arc<Self> {
        Self::open_for(hub, Protocol::Internal)
    }

    /// The same for submissions of this protocol.
    #[must_use]
    pub fn open_for(hub: &Hub, protocol: Protocol) -> Arc<Self> {
        let (link, deliveries) = hub.add_for(protocol);
        let desk = Arc::new(Self { link, next: AtomicU64::new(1), waiting: Mutex::default() });
        tokio::spawn(desk.clone().hand_out(deliveries));
        desk
    }

    async fn hand_out(self: Arc<Self>, mut deliveries: Deliveries) {
        while let Some(batch) = deliveries.recv().await {
            for delivery in batch {
                if let Delivery::Answer { token, answer } = delivery
                    && let Some(waits) = self.waiting.lock().remove(&token)
                {
                    // The caller may have gone; what was done stays done.
                    let _ = waits.send(answer);
                }
            }
        }
        // Nobody will answer those that still wait.
        self.waiting.lock().clear();
    }

    /// Closes it; those that still wait get no answer.
    pub fn close(&self, hub: &Hub) {
        hub.remove(self.link);
    }

    /// Asks, and waits for the answer, which comes when what it tells is durable.
    ///
    /// # Errors
    /// When it does not come within `patience`, or the desk is closed.
    pub async fn ask(
        &self,
        core: &dyn Core,
        patience: Duration,
        event: impl FnOnce(ReplyTo) -> Event,
    ) -> Result<Answer, NoAnswer> {
        let mut answers = self.ask_in_turn(core, patience, |reply| vec![event(reply())]).await?;
        answers.pop().ok_or(NoAnswer)
    }

    /// Asks several things in one piece: nothing that others want is done in between. `events` calls what it is given once
    /// for each event. The answers come in the events' order.
    ///
    /// # Errors
    /// When not all of them come within `patience`, or the desk is closed.
    pub async fn ask_in_turn(
        &self,
        core: &dyn Core,
        patience: Duration,
        events: impl FnOnce(&mut dyn FnMut() -> ReplyTo) -> Vec<Event>,
    ) -> Result<Vec<Answer>, NoAnswer> {
        let mut asked = Vec::new();
        let events = events(&mut || {
            let token = self.next.fetch_add(1, Relaxed);
            let (sender, receiver) = oneshot::channel();
            self.waiting.lock().insert(token, sender);
            asked.push((token, receiver));
            ReplyTo { link: self.link, token }
        });
        core.push(events);
        let (tokens, receivers): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        let answered = tokio::time::timeout(patience, async {
            let mut answers = Vec::with_capacity(receivers.len());
            for receiver in receivers {
                answers.push(receiver.await.map_err(|_| NoAnswer)?);
            }
            Ok::<_, NoAnswer>(answers)
        });
        match answered.await {
            Ok(Ok(answers)) => Ok(answers),
            _ => {
                let mut waiting = self.waiting.lock();
                for token in tokens {
                    waiting.remove(&token);
                }
                Err(NoAnswer)
            }
        }
    }
}
