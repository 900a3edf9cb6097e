use crate::{EventSink, LinkCommand, LinkCommands, LinkRegistry, Protocol};
use engine::{Event, ReplyTo};
use model::{LinkId, Outcome, PeerId};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// Interval at which a link without a valid lease checks the lease.
pub(super) const LEASE_INTERVAL: Duration = Duration::from_millis(20);

/// The knowledge of the engine about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkStage {
    /// The link is only registered, for answers.
    Registered,
    /// The engine sends messages on the link.
    Up,
    /// The engine sends no new messages on the link.
    Paused,
}

/// The registration of a link: it gets the engine's commands until the handle is closed or dropped.
///
/// A handle that is dropped, also by a panic, reports the link as down; messages on it without an outcome become
/// uncertain. [`LinkHandle::close`] loses none.
pub struct LinkHandle {
    core: Arc<dyn EventSink>,
    registry: Arc<LinkRegistry>,
    link: LinkId,
    commands: LinkCommands,
    stage: LinkStage,
    /// Ends while a leader without a lease holds commands back.
    hold: Option<Pin<Box<Sleep>>>,
}

impl fmt::Debug for LinkHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkHandle").field("link", &self.link).field("stage", &self.stage).finish()
    }
}

impl Drop for LinkHandle {
    fn drop(&mut self) {
        self.registry.remove(self.link);
        if self.stage != LinkStage::Registered {
            self.core.push(vec![Event::LinkDown { link: self.link }]);
        }
    }
}

impl LinkHandle {
    /// Registers a link. Its refused submissions count under the protocol.
    #[must_use]
    pub fn register(core: Arc<dyn EventSink>, registry: Arc<LinkRegistry>, protocol: Protocol) -> Self {
        let (link, commands) = registry.add(protocol);
        Self { core, registry, link, commands, stage: LinkStage::Registered, hold: None }
    }

    /// The link's id, which is unique for the life of the process.
    #[must_use]
    pub fn link(&self) -> LinkId {
        self.link
    }

    /// The address of answers to the link; `token` is the link's own token for the request.
    #[must_use]
    pub fn reply(&self, token: u64) -> ReplyTo {
        ReplyTo { link: self.link, token }
    }

    /// Waits for the next commands, as [`poll_recv`](Self::poll_recv). Cancel safe.
    pub async fn recv(&mut self) -> Vec<LinkCommand> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Waits for the next commands, outside of a runtime.
    pub fn blocking_recv(&mut self) -> Vec<LinkCommand> {
        self.commands.blocking_recv().unwrap_or_default()
    }

    /// Returns the next commands if they are there.
    pub fn try_recv(&mut self) -> Option<Vec<LinkCommand>> {
        self.commands.try_recv().ok()
    }

    /// Polls for the next commands. There are none while a leader of a cluster has no lease: another node may have taken
    /// over, and may submit the same messages.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Vec<LinkCommand>> {
        while !self.registry.lease().holds() {
            let hold = self.hold.get_or_insert_with(|| Box::pin(tokio::time::sleep(LEASE_INTERVAL)));
            std::task::ready!(hold.as_mut().poll(cx));
            self.hold = None;
        }
        // The registry keeps the sender until the handle is gone.
        self.commands.poll_recv(cx).map(Option::unwrap_or_default)
    }

    /// Announces that the link takes messages for `peer`: at most `window` that are unanswered, and at least one.
    pub fn announce(&mut self, peer: PeerId, window: usize, events: &mut Vec<Event>) {
        self.stage = LinkStage::Up;
        let window = u32::try_from(window).unwrap_or(u32::MAX).max(1);
        events.push(Event::LinkUp { link: self.link, peer, window });
    }

    /// Announces, once, that the link takes no more messages.
    pub fn pause(&mut self, events: &mut Vec<Event>) {
        if self.stage == LinkStage::Up {
            self.stage = LinkStage::Paused;
            events.push(Event::LinkPaused { link: self.link });
        }
    }

    /// Takes the link down without losing messages that the engine still sends to it: they are reported as not sent.
    /// The engine first learns that the link takes no more messages; when it answers the flush, all its messages have
    /// arrived. `events` are the link's last events. Returns whether the engine answered within `timeout`; the link
    /// is down in any case.
    pub async fn close(mut self, mut events: Vec<Event>, timeout: Duration) -> bool {
        let link = self.link;
        if self.stage == LinkStage::Registered {
            if !events.is_empty() {
                self.core.push(events);
            }
            return true;
        }
        self.pause(&mut events);
        events.push(Event::Flush { link });
        self.core.push(events);
        let mut unsent = Vec::new();
        let answered = tokio::time::timeout(timeout, self.flushed(&mut unsent)).await.is_ok();
        self.registry.remove(link);
        unsent.push(Event::LinkDown { link });
        self.core.push(unsent);
        self.stage = LinkStage::Registered;
        if !answered {
            tracing::warn!(link = link.0, "no answer of the engine in time; link taken down");
        }
        answered
    }

    /// Waits until all commands have arrived. Reports the messages among them as not sent.
    async fn flushed(&mut self, unsent: &mut Vec<Event>) {
        loop {
            let mut flushed = false;
            // Without a lease too: nothing of it leaves.
            for command in self.commands.recv().await.unwrap_or_default() {
                match command {
                    LinkCommand::Send { message, .. } => {
                        let (link, id, outcome) = (self.link, message.id, Outcome::NotSent);
                        unsent.push(Event::Outcome { link, id, outcome });
                    }
                    LinkCommand::Flushed => flushed = true,
                    LinkCommand::Answer { .. }
                    | LinkCommand::QueryPeer { .. }
                    | LinkCommand::SubscriberReachable { .. } => {}
                }
            }
            if flushed {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::{BootTime, LeaderLease};
    use parking_lot::Mutex;

    #[derive(Default)]
    struct RecordedEvents(Mutex<Vec<String>>);

    impl EventSink for RecordedEvents {
        fn push(&self, events: Vec<Event>) {
            let names = events.iter().map(|event| {
                let text = format!("{event:?}");
                text.split([' ', '{']).next().unwrap_or_default().to_owned()
            });
            self.0.lock().extend(names);
        }
    }

    #[test]
    fn a_dropped_handle_reports_the_link_as_down() {
        let (core, registry) = (Arc::new(RecordedEvents::default()), Arc::new(LinkRegistry::new()));
        let mut handle = LinkHandle::register(core.clone(), registry.clone(), Protocol::Smpp);
        drop(LinkHandle::register(core.clone(), registry.clone(), Protocol::Smpp));
        assert!(core.0.lock().is_empty(), "the engine does not know of a link that was not announced");
        handle.announce(PeerId(1), 10, &mut Vec::new());
        drop(handle);
        assert_eq!(*core.0.lock(), ["LinkDown"]);
        assert!(registry.is_empty());
    }

    #[tokio::test]
    async fn closing_waits_for_the_flush_and_then_reports_the_link_as_down() {
        let (core, registry) = (Arc::new(RecordedEvents::default()), Arc::new(LinkRegistry::new()));
        let mut handle = LinkHandle::register(core.clone(), registry.clone(), Protocol::Smpp);
        let link = handle.link();
        handle.announce(PeerId(1), 10, &mut Vec::new());
        let mut closing = Box::pin(handle.close(Vec::new(), Duration::from_secs(20)));
        assert!(tokio::time::timeout(Duration::ZERO, &mut closing).await.is_err());
        assert_eq!(*core.0.lock(), ["LinkPaused", "Flush"]);
        registry.dispatch(vec![engine::EngineCommand::Flushed { link }]);
        assert!(closing.await);
        assert_eq!(*core.0.lock(), ["LinkPaused", "Flush", "LinkDown"]);
        assert!(registry.is_empty());
    }

    #[tokio::test]
    async fn a_leader_without_a_lease_holds_commands_back() {
        let lease = Arc::new(LeaderLease::ended());
        let registry = Arc::new(LinkRegistry::with_limiter(Arc::default(), lease.clone()));
        let core = Arc::new(RecordedEvents::default());
        let mut handle = LinkHandle::register(core, registry.clone(), Protocol::Smpp);
        registry.dispatch(vec![engine::EngineCommand::Flushed { link: handle.link() }]);
        assert!(poll_fn(|cx| Poll::Ready(handle.poll_recv(cx))).await.is_pending());
        // On a busy machine the lease may end before the timer does.
        let held_back = poll_fn(|cx| {
            lease.extend(BootTime::now());
            handle.poll_recv(cx)
        });
        assert!(matches!(held_back.await[..], [LinkCommand::Flushed]));
    }
}
