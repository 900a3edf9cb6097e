//! Periodic tasks of the daemon.

use crate::config_manager::{ConfigManager, TunableSettings};
use crate::core_handle::CoreHandle;
use crate::leading_node::LeadingNode;
use crate::notices::{HookNotices, WantedNotices};
use crate::peer_snapshots::PeerSnapshotPublisher;
use crate::plugin_setup::hooks_bound_event;
use crate::routing::ApplianceRouting;
use crate::text_encryption::TextKeyRetention;
use engine::Event;
use hooks::BindingChange;
use model::{Hook, Timestamp};
use ports::EventSink as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use store::Store;

/// Runs every second: checks the disk, publishes peer snapshots, watches the resolver, deletes old finished messages.
pub(crate) struct Housekeeper {
    pub(crate) core: CoreHandle,
    pub(crate) store: Arc<Store>,
    pub(crate) peer_snapshots: Arc<PeerSnapshotPublisher>,
    pub(crate) data: PathBuf,
    pub(crate) tuning: Arc<TunableSettings>,
    /// Whether there is an archive. Without one, finished messages are deleted after their retention.
    pub(crate) has_archive: bool,
    /// The time of the newest record at startup.
    pub(crate) newest_record: Option<Timestamp>,
    pub(crate) config_manager: Arc<ConfigManager>,
    pub(crate) routing: Arc<ApplianceRouting>,
    pub(crate) wanted_notices: WantedNotices,
    /// Leadership of this node; `None` without a cluster.
    pub(crate) leading: Option<Arc<LeadingNode>>,
    /// Retention of text keys; `None` if texts are not encrypted.
    pub(crate) text_key_retention: Option<Arc<TextKeyRetention>>,
}

impl Housekeeper {
    /// Runs until `stop` is closed.
    pub(crate) fn run(self, stop: &crossbeam_channel::Receiver<()>) {
        self.watch_disk();
        self.peer_snapshots.publish();
        let mut turn = 0_u64;
        let mut notices = HookNotices::new(self.wanted_notices, Timestamp::now());
        let mut resolver = self.routing.hooks.status(Hook::Resolver).live.serial;
        let mut lookup = self.routing.hooks.status(Hook::Lookup).live.serial;
        while stop.recv_timeout(Duration::from_secs(1)) == Err(crossbeam_channel::RecvTimeoutError::Timeout) {
            turn += 1;
            self.watch_disk();
            self.peer_snapshots.publish();
            self.watch_resolver(&mut resolver);
            self.watch_lookup(&mut lookup);
            self.config_manager.tick();
            let notices = notices.take(&self.routing.hooks);
            if !notices.is_empty() {
                self.core.push(notices.into_iter().map(Event::Notice).collect());
            }
            if turn.is_multiple_of(5)
                && let Some(retention) = &self.text_key_retention
            {
                retention.run(self.core.clock.record_age_time(self.newest_record));
                self.core.counts.text_keys_failing.store(retention.is_failing(), Relaxed);
            }
            if turn.is_multiple_of(10) {
                self.trim();
            }
        }
    }

    fn watch_disk(&self) {
        let counts = &self.core.counts;
        match store::free_space(&self.data) {
            Ok(free) => {
                counts.disk_free.store(free, Relaxed);
                let watermark = self.tuning.free_space_watermark();
                let low = free < watermark;
                if counts.disk_low.swap(low, Relaxed) != low {
                    tracing::warn!(free, watermark, low, "disk space state changed");
                    self.core.push(vec![Event::DiskSpace { low }]);
                }
                if let Some(node) = &self.leading {
                    node.report_disk_space(low);
                }
            }
            Err(error) => tracing::warn!(%error, "reading free disk space failed"),
        }
    }

    /// After an automatic rollback of the resolver, lets the restored version resolve the numbers that the faulty one
    /// deferred. Changes by admins are reported to the engine at once.
    fn watch_resolver(&self, known: &mut u64) {
        let live = self.routing.hooks.status(Hook::Resolver).live;
        if std::mem::replace(known, live.serial) != live.serial
            && live.change == BindingChange::RolledBackAutomatically
        {
            self.core.push(vec![hooks_bound_event(&self.routing.hooks), Event::ResolverReplaced]);
        }
    }

    /// After an automatic rollback of the lookups, drops the cached answers of the faulty version.
    fn watch_lookup(&self, known: &mut u64) {
        let live = self.routing.hooks.status(Hook::Lookup).live;
        if std::mem::replace(known, live.serial) != live.serial
            && live.change == BindingChange::RolledBackAutomatically
        {
            self.routing.lookups.cache.clear();
        }
    }

    fn trim(&self) {
        if self.has_archive {
            return;
        }
        let keep = u64::try_from(self.tuning.retention().as_millis()).unwrap_or(u64::MAX);
        let before = Timestamp(self.core.clock.record_age_time(self.newest_record).0.saturating_sub(keep));
        // In steps, so that commits need not wait long.
        while let Ok(count) = self.store.trim_finished(before, 2_000) {
            if count < 2_000 {
                return;
            }
        }
    }
}
