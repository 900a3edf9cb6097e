//! Opens the store: at once, or in a cluster when this node leads.

use crate::audit_collector::AuditCollector;
use crate::cluster_node::{self, ClusterNode, Outcome};
use crate::config::Config;
use crate::config_manager::StartupConfig;
use crate::leading_node::LeadingNode;
use crate::plugin_setup::{compile_plugins, hooks_options};
use crate::service_manager::FollowerWatchdog;
use crate::shared_state::NodeStores;
use crate::stop_signals::StopSignals;
use crate::text_encryption;
use anyhow::Result;
use archive::Archive;
use cluster::ClusterOptions;
use codec::ContentCipher;
use events::{SinkCursors, SinkStorage};
use journal::{JournalHold, Seq};
use std::sync::Arc;
use store::{Store, StoreOptions};
use text_keys::TextKeys;
use tokio::runtime::Runtime;

/// An open store, and the components that were set up for it.
pub(crate) struct OpenedStore {
    /// The configuration. In a cluster, it is the shared one.
    pub(crate) config: Config,
    pub(crate) startup: StartupConfig,
    pub(crate) store: Arc<Store>,
    /// Positions of the event sinks and CDR files; `None` if a cluster has none.
    pub(crate) sink_cursors: Option<SinkCursors>,
    pub(crate) cluster: Option<ClusterMembership>,
    /// Keys of texts; `None` if texts are not encrypted.
    pub(crate) text_keys: Option<Arc<TextKeys>>,
}

/// Cluster membership of a node that leads.
pub(crate) struct ClusterMembership {
    pub(crate) leading: Arc<LeadingNode>,
    /// The signals; they are watched since before the node led.
    pub(crate) signals: StopSignals,
    /// Runs until it is dropped; `None` without an archive.
    pub(crate) audit_collector: Option<AuditCollector>,
    /// Dropped when the core has a watchdog; `None` without a service manager.
    pub(crate) watchdog: Option<Arc<FollowerWatchdog>>,
}

/// Opens the store of this machine.
pub(crate) fn open_local(config: Config, startup: StartupConfig) -> Result<OpenedStore> {
    let hold = Arc::new(JournalHold::new(Seq(0), config.engine.journal_hold));
    let storage = SinkStorage::local(&config.appliance.data);
    let cursors = SinkCursors::load(&storage, &config.event_sinks, &config.cdrs, hold)?;
    let mut options = StoreOptions { cache: config.engine.store_cache, ..StoreOptions::default() };
    options.journal.keep_for = config.engine.journal_retention;
    options.journal.hold = cursors.hold();
    let text_keys = text_encryption::open_keys(&config)?;
    options.cipher = text_keys.clone().map(|keys| -> Arc<dyn ContentCipher> { keys });
    let store = Arc::new(Store::open(&config.appliance.data.join("switchyard.redb"), options)?);
    text_encryption::check_keys(&store, text_keys.as_deref(), &config.appliance.data)?;
    Ok(OpenedStore { config, startup, store, sink_cursors: Some(cursors), cluster: None, text_keys })
}

/// Follows the cluster's leader until this node leads. Returns `None` if a signal stops the daemon.
pub(crate) fn lead_cluster(
    options: &ClusterOptions,
    mut config: Config,
    startup: StartupConfig,
    stores: NodeStores,
    runtime: &Runtime,
) -> Result<Option<OpenedStore>> {
    compile_plugins(&config)?;
    let mut signals = {
        let _inside = runtime.enter();
        StopSignals::new()?
    };
    let audit_collector = match &config.archive.url {
        Some(url) => {
            let archive = Archive::open(url, config.archive.options)?;
            let log = cluster_node::audit_log(&config, options)?;
            Some(AuditCollector::start(log, stores.access.clone(), archive, runtime.handle().clone())?)
        }
        None => None,
    };
    let Some(node) = ClusterNode::join(&config, options, stores, runtime, &mut signals)? else {
        return Ok(None);
    };
    loop {
        let hooks_options = hooks_options(&config, None);
        match node.follow((&config, &startup), &hooks_options, runtime, &mut signals)? {
            Outcome::Leader(store, leading, sinks) => {
                leading.serve_snapshots(store.clone(), config.appliance.data.clone());
                let (config, startup) = startup.select_again(config)?;
                let cluster = ClusterMembership {
                    leading: Arc::new(leading),
                    signals,
                    audit_collector,
                    watchdog: node.watchdog(),
                };
                let sink_cursors = sinks.map(|sinks| sinks.load(&config)).transpose()?;
                return Ok(Some(OpenedStore {
                    config,
                    startup,
                    store,
                    sink_cursors,
                    cluster: Some(cluster),
                    text_keys: None,
                }));
            }
            Outcome::Reconfigured(newer) => {
                tracing::info!("the cluster has another configuration, using it");
                config = *newer;
            }
            Outcome::Stopped => return Ok(None),
        }
    }
}
