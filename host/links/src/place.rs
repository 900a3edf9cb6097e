use crate::reply::{Asked, pack};
use crate::shared::Shared;
use crate::state::{LinkRecord, LinkRole};
use doors::{Deliveries, Protocol, take_leave};
use engine::Event;
use model::{LinkId, PeerId};
use std::sync::Arc;

/// A link's place in the hub and in the engine's knowledge, from its bind to its end. Should its task die by a fault of
/// ours, the place still sees to it that the engine hears of the end.
pub(crate) struct Place {
    shared: Arc<Shared>,
    record: Arc<LinkRecord>,
    link: LinkId,
    /// The engine was told that the link takes messages.
    up: bool,
    /// The engine was told that it takes none any more.
    paused: bool,
    left: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.record.role == LinkRole::Server {
            self.shared.records.remove(&self.record);
        }
        if !self.left {
            self.shared.hub.remove(self.link);
            if self.up {
                self.shared.core.push(vec![Event::LinkDown { link: self.link }]);
            }
        }
    }
}

impl Place {
    /// Takes a place in the hub, and among the records that the admin sees.
    pub(crate) fn take(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        protocol: Protocol,
    ) -> (Self, Deliveries) {
        let (link, deliveries) = shared.hub.add_for(protocol);
        if record.role == LinkRole::Server {
            shared.records.add(record.clone());
        }
        (Self { shared, record, link, up: false, paused: false, left: false }, deliveries)
    }

    /// The link's id.
    pub(crate) fn link(&self) -> LinkId {
        self.link
    }

    /// Tells the engine that the link takes messages.
    pub(crate) fn up(&mut self, peer: PeerId, window: usize, events: &mut Vec<Event>) {
        self.up = true;
        let window = u32::try_from(window).unwrap_or(u32::MAX).max(1);
        events.push(Event::LinkUp { link: self.link, peer, window });
    }

    /// Tells the engine, once, that the link takes nothing more.
    pub(crate) fn pause(&mut self, events: &mut Vec<Event>) {
        if self.up && !self.paused {
            self.paused = true;
            events.push(Event::LinkPaused { link: self.link });
        }
    }

    /// Leaves without losing what is still on its way here; see [`take_leave`]. `events` are the link's last.
    pub(crate) async fn leave(mut self, deliveries: Deliveries, mut events: Vec<Event>) {
        let link = self.link;
        let (shared, record) = (self.shared.clone(), self.record.clone());
        if !self.up {
            self.left = true;
            shared.hub.remove(link);
            if !events.is_empty() {
                shared.core.push(events);
            }
            return;
        }
        self.pause(&mut events);
        let barrier = pack(Asked::Barrier, 0, 0);
        let patience = shared.options.leave_timeout;
        self.left = true;
        if !take_leave(&*shared.core, &shared.hub, link, barrier, deliveries, events, patience).await {
            tracing::warn!(
                peer = %record.name,
                link = link.0,
                "the engine has not answered in time; the link is taken down all the same"
            );
        }
    }
}
