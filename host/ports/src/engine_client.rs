use crate::{EventSink, LinkCommand, LinkCommands, LinkRegistry, Protocol};
use engine::{EngineAnswer, Event, ReplyTo};
use model::LinkId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::oneshot;

/// The engine has not answered in time. The request may have been executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no answer in time; repeat the request with the same idempotency key to learn its result")]
pub struct EngineTimeout;

/// Requests that wait for their answers, by token.
type WaitingRequests = Mutex<HashMap<u64, oneshot::Sender<EngineAnswer>>>;

/// Sends requests to the engine and returns its answers.
#[derive(Debug)]
pub struct EngineClient {
    registry: Arc<LinkRegistry>,
    link: LinkId,
    next: AtomicU64,
    waiting: Arc<WaitingRequests>,
}

impl Drop for EngineClient {
    fn drop(&mut self) {
        self.close();
    }
}

impl EngineClient {
    /// Opens a client. It receives answers until it is closed. Must be called inside a tokio runtime.
    #[must_use]
    pub fn open(registry: &Arc<LinkRegistry>) -> Self {
        Self::open_for(registry, Protocol::Internal)
    }

    /// Opens a client for submissions of this protocol.
    #[must_use]
    pub fn open_for(registry: &Arc<LinkRegistry>, protocol: Protocol) -> Self {
        let (link, commands) = registry.add(protocol);
        let waiting = Arc::<WaitingRequests>::default();
        tokio::spawn(distribute(commands, waiting.clone()));
        Self { registry: registry.clone(), link, next: AtomicU64::new(1), waiting }
    }

    /// Closes the client, as dropping it does; requests that still wait get no answer.
    pub fn close(&self) {
        self.registry.remove(self.link);
    }

    /// Sends a request and waits for the answer. The answer comes when its effect is durable.
    ///
    /// # Errors
    /// If the answer does not come within `timeout`, or the client is closed.
    pub async fn request(
        &self,
        core: &dyn EventSink,
        timeout: Duration,
        event: impl FnOnce(ReplyTo) -> Event,
    ) -> Result<EngineAnswer, EngineTimeout> {
        let mut answers = self.request_all(core, timeout, |reply| vec![event(reply())]).await?;
        answers.pop().ok_or(EngineTimeout)
    }

    /// Sends several requests as one unit: the engine handles no other event in between. `events` calls its argument
    /// once for each event. The answers come in the order of the events.
    ///
    /// # Errors
    /// If not all answers come within `timeout`, or the client is closed.
    pub async fn request_all(
        &self,
        core: &dyn EventSink,
        timeout: Duration,
        events: impl FnOnce(&mut dyn FnMut() -> ReplyTo) -> Vec<Event>,
    ) -> Result<Vec<EngineAnswer>, EngineTimeout> {
        let mut pending = Vec::new();
        let events = events(&mut || {
            let token = self.next.fetch_add(1, Relaxed);
            let (sender, receiver) = oneshot::channel();
            self.waiting.lock().insert(token, sender);
            pending.push((token, receiver));
            ReplyTo { link: self.link, token }
        });
        core.push(events);
        let (tokens, receivers): (Vec<_>, Vec<_>) = pending.into_iter().unzip();
        let answered = tokio::time::timeout(timeout, async {
            let mut answers = Vec::with_capacity(receivers.len());
            for receiver in receivers {
                answers.push(receiver.await.map_err(|_| EngineTimeout)?);
            }
            Ok::<_, EngineTimeout>(answers)
        });
        match answered.await {
            Ok(Ok(answers)) => Ok(answers),
            _ => {
                let mut waiting = self.waiting.lock();
                for token in tokens {
                    waiting.remove(&token);
                }
                Err(EngineTimeout)
            }
        }
    }
}

/// Gives the answers to the requests that wait for them, until the client is closed.
async fn distribute(mut commands: LinkCommands, waiting: Arc<WaitingRequests>) {
    while let Some(batch) = commands.recv().await {
        for command in batch {
            if let LinkCommand::Answer { token, answer } = command
                && let Some(waits) = waiting.lock().remove(&token)
            {
                // The caller may have given up; the request is executed nevertheless.
                let _ = waits.send(answer);
            }
        }
    }
    // The requests that still wait get no answer any more.
    waiting.lock().clear();
}
