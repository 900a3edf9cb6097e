use crate::{Core, Deliveries, Delivery, Hub};
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
        let (link, deliveries) = hub.add();
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
        let token = self.next.fetch_add(1, Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().insert(token, sender);
        core.push(vec![event(ReplyTo { link: self.link, token })]);
        match tokio::time::timeout(patience, receiver).await {
            Ok(Ok(answer)) => Ok(answer),
            _ => {
                self.waiting.lock().remove(&token);
                Err(NoAnswer)
            }
        }
    }
}
