//! The service of messages: search, traces, actions, quarantine, queue actions, explanations. Each has a file of its
//! own.

use crate::archiving::ArchiveReader;
use crate::core_handle::CoreHandle;
use crate::drain::Drain;
use crate::error_causes::ErrorCauses;
use crate::routing::ApplianceRouting;
use arc_swap::ArcSwap;
use links::Links;
use model::{Directory, PeerId};
use std::sync::Arc;
use store::Store;

/// Messages in memory, store and archive.
pub(crate) struct MessageService {
    pub(crate) core: CoreHandle,
    pub(crate) store: Arc<Store>,
    /// The archive; `None` if there is none.
    pub(crate) history: Option<ArchiveReader>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) causes: ErrorCauses,
    pub(crate) links: Arc<Links>,
    pub(crate) networks: Vec<Arc<gsm::GsmNetwork>>,
    pub(crate) routing: Arc<ApplianceRouting>,
    pub(crate) drain: Arc<Drain>,
}

impl MessageService {
    pub(crate) fn name_of(&self, peer: PeerId) -> String {
        self.directory.load().name(peer).to_string()
    }
}
