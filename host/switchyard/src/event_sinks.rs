//! Event sinks in the daemon: their access to messages, the admin API and the metrics.

use crate::archived_message::archived_message;
use crate::archiving::ArchiveReader;
use crate::peer_roles::PeerRoles;
use admin::metrics::{self, MetricsPage};
use api::{EventSinkView, PumpState};
use arc_swap::ArcSwap;
use codec::ContentCipher;
use events::{DirectoryError, MessageDirectory};
use model::{Charge, Directory, Message, MessageId, PeerId, PoolId, PoolName, Quote};
use std::sync::Arc;
use store::Store;

/// Access to messages in store and archive, and to the names of peers.
pub(crate) struct StoredMessages {
    pub(crate) store: Arc<Store>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) peer_roles: Arc<ArcSwap<PeerRoles>>,
    pub(crate) history: Option<ArchiveReader>,
}

impl MessageDirectory for StoredMessages {
    fn name(&self, peer: PeerId) -> Arc<str> {
        self.directory.load().name(peer)
    }

    fn is_account(&self, peer: PeerId) -> bool {
        self.peer_roles.load().is_account(peer)
    }

    fn pool_name(&self, pool: PoolId) -> Result<Option<PoolName>, DirectoryError> {
        Ok(self.store.pool_name(pool)?)
    }

    fn messages(&self, ids: &[MessageId]) -> Result<Vec<Option<Message>>, DirectoryError> {
        let mut found = self.store.contents(ids)?;
        if let Some(history) = &self.history {
            for (id, message) in ids.iter().zip(&mut found).filter(|(_, message)| message.is_none()) {
                if let Some(record) = history.get(*id)? {
                    *message = Some(self.archived(&record));
                }
            }
        }
        Ok(found)
    }

    fn cipher(&self) -> Option<Arc<dyn ContentCipher>> {
        self.store.cipher().cloned()
    }
}

impl StoredMessages {
    /// An archived message, with the fields that events need.
    fn archived(&self, record: &archive::Record) -> Message {
        let directory = self.directory.load();
        let origin = match record.direction {
            model::Direction::Mt => directory.id(&record.account),
            model::Direction::Mo => directory.id(&record.peer),
        };
        let (mut message, _) = archived_message(record, origin.unwrap_or(PeerId(u32::MAX)));
        message.routed.quote = record.price.as_ref().map(|price| {
            let charge = price.account.as_deref().map(|account| Charge {
                account: account.into(),
                amount: price.amount,
                keep_on_failure: false,
                settle: false,
                tenants: Vec::new(),
            });
            Box::new(Quote { charge, by: message.routed.by.clone(), note: None })
        });
        message
    }
}

/// The running event sinks and CDR files; `None` if none are configured.
pub(crate) struct EventSinkService(pub(crate) Option<events::EventSinks>);

impl admin::EventSinkStates for EventSinkService {
    fn event_sinks(&self) -> Vec<EventSinkView> {
        self.0.as_ref().map(events::EventSinks::status).unwrap_or_default()
    }
}

impl EventSinkService {
    pub(crate) fn write_event_metrics(&self, page: &mut MetricsPage) {
        for sink in admin::EventSinkStates::event_sinks(self) {
            let name = sink.name.as_str();
            page.put(&metrics::EVENTS_SENT, &[name], sink.sent as f64);
            page.put(&metrics::EVENTS_FAILED, &[name], sink.failed as f64);
            page.put(&metrics::EVENT_SINK_UP, &[name], f64::from(u8::from(sink.state == PumpState::Up)));
            page.put(&metrics::EVENTS_LAG_SECONDS, &[name], sink.lag.millis() as f64 / 1e3);
            page.put(&metrics::EVENTS_LAG_RECORDS, &[name], sink.lag_records as f64);
            page.put(&metrics::EVENTS_LOST_RECORDS, &[name], sink.lost_records as f64);
        }
    }
}
