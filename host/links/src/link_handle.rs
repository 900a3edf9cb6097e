use crate::link_record::{LinkRecord, LinkRole};
use crate::request_token::{RequestKind, pack};
use crate::shared::Shared;
use engine::Event;
use model::{LinkId, PeerId};
use ports::{LinkCommands, Protocol, close_link};
use std::sync::Arc;

/// A link's registration in the link registry and in the engine, from its bind to its end. If the link's task panics,
/// dropping the handle still tells the engine that the link is down.
pub(crate) struct LinkHandle {
    shared: Arc<Shared>,
    record: Arc<LinkRecord>,
    link: LinkId,
    /// The engine was told that the link takes messages.
    announced: bool,
    /// The engine was told that the link takes no more messages.
    paused: bool,
    closed: bool,
}

impl Drop for LinkHandle {
    fn drop(&mut self) {
        if self.record.role == LinkRole::Server {
            self.shared.records.remove(&self.record);
        }
        if !self.closed {
            self.shared.registry.remove(self.link);
            if self.announced {
                self.shared.core.push(vec![Event::LinkDown { link: self.link }]);
            }
        }
    }
}

impl LinkHandle {
    /// Registers a link in the link registry and in the link records.
    pub(crate) fn register(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        protocol: Protocol,
    ) -> (Self, LinkCommands) {
        let (link, commands) = shared.registry.add_for(protocol);
        if record.role == LinkRole::Server {
            shared.records.add(record.clone());
        }
        (Self { shared, record, link, announced: false, paused: false, closed: false }, commands)
    }

    /// The link's id.
    pub(crate) fn link(&self) -> LinkId {
        self.link
    }

    /// Tells the engine that the link takes messages.
    pub(crate) fn announce(&mut self, peer: PeerId, window: usize, events: &mut Vec<Event>) {
        self.announced = true;
        let window = u32::try_from(window).unwrap_or(u32::MAX).max(1);
        events.push(Event::LinkUp { link: self.link, peer, window });
    }

    /// Tells the engine, once, that the link takes no more messages.
    pub(crate) fn pause(&mut self, events: &mut Vec<Event>) {
        if self.announced && !self.paused {
            self.paused = true;
            events.push(Event::LinkPaused { link: self.link });
        }
    }

    /// Closes the link without losing messages that the engine still sends to it; see [`close_link`]. `events` are
    /// the link's last events.
    pub(crate) async fn close(mut self, commands: LinkCommands, mut events: Vec<Event>) {
        let link = self.link;
        let (shared, record) = (self.shared.clone(), self.record.clone());
        if !self.announced {
            self.closed = true;
            shared.registry.remove(link);
            if !events.is_empty() {
                shared.core.push(events);
            }
            return;
        }
        self.pause(&mut events);
        let barrier = pack(RequestKind::Barrier, 0, 0);
        let timeout = shared.options.close_timeout;
        self.closed = true;
        if !close_link(&*shared.core, &shared.registry, link, barrier, commands, events, timeout).await {
            tracing::warn!(
                peer = %record.name,
                link = link.0,
                "no answer of the engine in time; link taken down"
            );
        }
    }
}
