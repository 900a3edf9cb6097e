//! The service of hooks: plugins, bindings, trials, replays, policy tries, plugin sources. Each has a file of its own.

use crate::config_manager::TunableSettings;
use crate::core_handle::CoreHandle;
use crate::peer_observer::PeerObserver;
use crate::peer_snapshots::PeerSnapshotPublisher;
use crate::replays::Replays;
use crate::routing::ApplianceRouting;
use crate::source_readers::SourceReaders;
use arc_swap::ArcSwap;
use capabilities::{DurableCounters, PeerQuality, TableStore};
use engine::Event;
use hooks::Binding;
use model::{Directory, Hook};
use parking_lot::Mutex;
use ports::EventSink as _;
use std::sync::Arc;

/// Plugins and hooks.
pub(crate) struct HookService {
    pub(crate) core: CoreHandle,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) routing: Arc<ApplianceRouting>,
    pub(crate) tables: Arc<TableStore>,
    /// Durable counters of plugins.
    pub(crate) counters: Arc<DurableCounters>,
    pub(crate) replays: Replays,
    /// Publishes peers and pools to plugins.
    pub(crate) peer_snapshots: Arc<PeerSnapshotPublisher>,
    /// Quality figures of peers.
    pub(crate) quality: Arc<PeerQuality>,
    pub(crate) peer_observer: PeerObserver,
    pub(crate) tuning: Arc<TunableSettings>,
    /// Running reads of plugin sources.
    pub(crate) source_readers: SourceReaders,
    /// Serialises the reports of bindings to the engine.
    pub(crate) binding: Mutex<()>,
}

impl HookService {
    /// Reports to the engine which hooks are bound.
    pub(crate) fn notify_engine(&self, hook: Hook) {
        // Of two concurrent changes, the later one reports last.
        let _turn = self.binding.lock();
        let mut events = vec![crate::plugin_setup::hooks_bound_event(&self.routing.hooks)];
        if hook == Hook::Resolver {
            events.push(Event::ResolverReplaced);
        }
        if hook == Hook::Lookup {
            self.routing.lookups.cache.clear();
        }
        self.core.push(events);
    }

    /// Applies changes that the leader of partition 0 has made to tables and bindings.
    pub(crate) fn take_over(&self, bindings: bool, tables: bool) -> Result<(), String> {
        if tables {
            self.tables.refresh().map_err(|error| error.to_string())?;
        }
        if !bindings {
            return Ok(());
        }
        let refreshed = self.routing.hooks.refresh();
        for hook in [Hook::Resolver, Hook::Lookup] {
            self.notify_engine(hook);
        }
        refreshed.map_err(|error| error.to_string())
    }

    /// The live chain of a hook.
    pub(crate) fn live_chain(&self, hook: Hook) -> Vec<Binding> {
        self.routing.hooks.status(hook).live.chain
    }
}
