//! Startup, wiring and shutdown of the daemon.

use crate::api_services::{DaemonParts, DaemonServices};
use crate::archiving::{ArchiveReader, FinishedMessages};
use crate::backup::Backups;
use crate::batch_size::{BATCH_OCTETS, BatchSize, REPLICATED_BATCH_OCTETS};
use crate::cluster_node;
use crate::config::Config;
use crate::config_manager::{ConfigManager, RuntimeComponents, StartupConfig, TunableSettings};
use crate::core_handle::{self, CoreHandle};
use crate::core_loop::{self, BatchObservers, CoreThreads};
use crate::critical_thread;
use crate::data_folder;
use crate::error_causes::ErrorCauses;
use crate::event_sinks::StoredMessages;
use crate::front_ends::{CoreNetworks, FrontEnds};
use crate::hook_workers::HookWorkers;
use crate::housekeeper::Housekeeper;
use crate::leading_node;
use crate::listeners;
use crate::logging::LogControl;
use crate::memory;
use crate::notices::WantedNotices;
use crate::operation::OperationService;
use crate::opt_out::{KeywordFilter, KeywordRules};
use crate::partitions::PartitionMap;
use crate::peer_observer::PeerObserver;
use crate::peer_snapshots::PeerSnapshotPublisher;
use crate::plugin_setup::{host_services, routing, values};
use crate::pools::PoolService;
use crate::recovery::recover;
use crate::routing::{ApplianceRouting, PlanNumbering};
use crate::service_manager::{self, ServiceManagerNotifier};
use crate::shared_state::NodeStores;
use crate::shell_records::EngineShellRecords;
use crate::stop_signals::StopSignals;
use crate::store_setup::{self, ClusterMembership, OpenedStore};
use crate::telemetry::Telemetry;
use crate::text_encryption::TextKeyRetention;
use crate::traffic_flows::TrafficFlows;
use anyhow::{Context as _, Result};
use arc_swap::ArcSwap;
use archive::Archive;
use business::Business;
use capabilities::{CounterWriter, DurableCounterOptions, DurableCounters, RedbKvStore};
use crossbeam_channel::Sender;
use engine::{EngineAnswer, Event};
use events::{EventSinks, MessageDirectory, SinkCursors};
use gsm::GsmNetwork;
use links::{Links, LinksOptions};
use model::{PoolAnswer, PoolRequest, Timestamp};
use plugin_peers::PluginPeers;
use ports::{EventSink, LinkRegistry, LoginLimiter};
use replication::LeaderClient;
use shell::{LiteralNumbers, MailboxIndex, NumberParser, ShellDeps, ShellServer};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::Store;
use tokio::runtime::Runtime;

/// Threads of the admin API: a page and a probe must not wait for each other.
const ADMIN_THREADS: usize = 2;

/// Maximum time for event sinks to answer when the daemon stops.
const SINKS_TIMEOUT: Duration = Duration::from_millis(500);

/// Runs the daemon until it is stopped.
pub(crate) fn serve(mut config: Config, startup: StartupConfig, logging: Arc<LogControl>) -> Result<()> {
    let started = Instant::now();
    memory::keep_unused_memory();
    service_manager::starting();
    let descriptors = ports::raise_descriptor_limit();
    if config.fit_descriptors(descriptors) {
        tracing::warn!(
            limit = descriptors,
            "listener limits reduced: their `connections` exceed the file descriptor limit; raise LimitNOFILE"
        );
    }
    data_folder::prepare(&config.appliance.data)?;
    let access = Arc::new(open_access(&config)?);
    let runtimes = Runtimes::start(&config)?;
    let values = values(&config)?;
    let opened = match config.cluster.clone() {
        None => Some(store_setup::open_local(config, startup)?),
        Some(options) => {
            let (versions, values) = (startup.shared_versions(), values.clone());
            let stores = NodeStores { access: access.clone(), versions, values };
            store_setup::lead_cluster(&options, config, startup, stores, &runtimes.network)?
        }
    };
    match opened {
        Some(opened) => Daemon::start(opened, (access, values), logging, runtimes, started)?.run(),
        None => Ok(()),
    }
}

/// The runtimes of the daemon.
struct Runtimes {
    /// For front ends, and for plugins' calls to other systems.
    network: Runtime,
    /// For the API: plugins and links cannot block it.
    admin: Runtime,
}

impl Runtimes {
    fn start(config: &Config) -> Result<Self> {
        let start = |threads, name: &str| {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads).thread_name(name).enable_all().build()
        };
        Ok(Self {
            network: start(config.appliance.link_threads, "link").context("starting the network runtime")?,
            admin: start(ADMIN_THREADS, "admin").context("starting the API runtime")?,
        })
    }
}

/// Background threads that run until the daemon stops.
struct BackgroundThreads {
    housekeeper: (Sender<()>, JoinHandle<()>),
    counters: JoinHandle<()>,
    notifier: Option<ServiceManagerNotifier>,
}

/// The running daemon.
struct Daemon {
    config: Config,
    runtimes: Runtimes,
    core: CoreHandle,
    core_threads: CoreThreads,
    background: BackgroundThreads,
    front_ends: FrontEnds,
    front_end_events: Arc<dyn EventSink>,
    routing: Arc<ApplianceRouting>,
    services: DaemonServices,
    counter_writer: Arc<CounterWriter>,
    components: RuntimeComponents,
    limiter: Arc<LoginLimiter>,
    cluster: Option<ClusterMembership>,
}

impl Daemon {
    /// Recovers all messages, and starts everything except the listeners.
    fn start(
        opened: OpenedStore,
        (access, values): (Arc<access::Access>, Arc<RedbKvStore>),
        logging: Arc<LogControl>,
        runtimes: Runtimes,
        started: Instant,
    ) -> Result<Self> {
        let OpenedStore { mut config, startup, store, sink_cursors, mut cluster, text_keys } = opened;
        let leading = cluster.as_ref().map(|cluster| cluster.leading.clone());
        let _inside = runtimes.network.enter();
        let directory = Arc::new(ArcSwap::from_pointee(config.assign_peer_ids(&store)?));
        let text_key_retention =
            text_keys.map(|keys| Arc::new(TextKeyRetention::new(keys, store.clone(), &config)));
        let cipher = store.cipher().cloned();
        let (channel, core) = core_handle::channel();
        let networks = core_networks(&config);

        // Plugins, and the host services that they use.
        let counters = DurableCounters::recover(DurableCounterOptions::default(), &values, Timestamp::now())?;
        let counters = Arc::new(counters);
        let counter_writer = Arc::new(CounterWriter::new(counters.clone(), values.clone()));
        let host_services =
            host_services(&config, &runtimes.network, &networks, values.clone(), counters.clone())?;
        let peer_snapshots = Arc::new(PeerSnapshotPublisher {
            core: core.clone(),
            directory: directory.clone(),
            peers: host_services.peer_snapshots.clone(),
            pools: host_services.pool_snapshots.clone(),
        });
        let (tables, quality) = (host_services.tables.clone(), host_services.quality.clone());
        let traffic = Arc::new(TrafficFlows::new(Timestamp::now()));
        let attributes = host_services.account_attributes.clone();
        let peer_observer =
            PeerObserver::start(quality.clone(), traffic.clone(), directory.clone(), attributes)?;
        let telemetry = match &config.telemetry {
            Some(settings) => Some(Telemetry::start(settings, &config.appliance.name, directory.clone())?),
            None => None,
        };
        let call_observer = telemetry.as_ref().map(Telemetry::call_observer);
        let routing = Arc::new(routing(&config, &directory, host_services, cipher.clone(), call_observer)?);

        let newest_record = store.newest_time()?;
        let recovery = recover(&config, &core, (&store, newest_record), &routing.hooks)?;

        // Front ends.
        let keywords = Arc::new(ArcSwap::from_pointee(KeywordRules::new(&config.opt_out)));
        let front_end_events: Arc<dyn EventSink> = Arc::new(KeywordFilter {
            core: core.clone(),
            keywords: keywords.clone(),
            peer_roles: routing.peer_roles.clone(),
        });
        let limiter = Arc::new(LoginLimiter::default());
        let mut front_ends =
            create_front_ends(&config, (&core, &front_end_events), &routing, &store, &limiter, networks)?;
        let registry = front_ends.links.registry();
        let partitions = match (&leading, &config.cluster) {
            (Some(node), Some(options)) => {
                let client = LeaderClient::new(cluster_node::certificate_of(&config, options)?);
                let partitions = PartitionMap::new(node.cluster().clone(), client, &config.elsewhere);
                registry.set_pass_on(partitions.clone());
                Some(partitions)
            }
            _ => None,
        };
        let causes = ErrorCauses {
            networks: config.networks.iter().map(|network| network.links.name.clone()).collect(),
            links: front_ends.links.clone(),
            plugin_peers: front_ends.plugin_peers.clone(),
            directory: directory.clone(),
        };

        // Archive and event sinks.
        let archive = match &config.archive.url {
            Some(url) => {
                let archive = Archive::open(url, config.archive.options)?
                    .with_redaction(config.archive.redact.clone())
                    .with_cipher(cipher);
                archive.set_text_retention(config.text_retention());
                Some(archive)
            }
            None => None,
        };
        let history = archive.clone().map(|archive| ArchiveReader {
            archive,
            runtime: runtimes.network.handle().clone(),
            directory: directory.clone(),
        });
        let event_sinks = {
            let messages: Arc<dyn MessageDirectory> = Arc::new(StoredMessages {
                store: store.clone(),
                directory: directory.clone(),
                peer_roles: routing.peer_roles.clone(),
                history: history.clone(),
            });
            start_event_sinks(sink_cursors, &store, &messages, &config.appliance.name)?
        };
        let pump = match &archive {
            Some(archive) => {
                let source = FinishedMessages {
                    core: core.clone(),
                    registry: registry.clone(),
                    store: store.clone(),
                    directory: directory.clone(),
                    peer_roles: routing.peer_roles.clone(),
                };
                Some(archive.pump(Arc::new(source)).start()?)
            }
            None => None,
        };

        let tenants = config.tenant_tree();
        config.set_tenant_rates(&tenants, registry.accounts());
        let tenants = Arc::new(ArcSwap::from_pointee(tenants));
        let tuning = Arc::new(TunableSettings::of(&config));
        let config_manager = Arc::new(startup.config_manager(config.clone()));
        let backups = backups(&config, &store, (&counter_writer, &values), &access, &config_manager);
        let wanted_notices = WantedNotices::of(&config.event_sinks);
        let mut components = RuntimeComponents {
            store: store.clone(),
            directory: directory.clone(),
            core: core.clone(),
            links: front_ends.links.clone(),
            business: front_ends.business.clone(),
            plugin_peers: front_ends.plugin_peers.clone(),
            peer_secrets: routing.peer_secrets.clone(),
            account_attributes: routing.account_attributes.clone(),
            peer_roles: routing.peer_roles.clone(),
            tenants: tenants.clone(),
            tenant_lines: routing.tenant_lines.clone(),
            keywords,
            tuning: tuning.clone(),
            access,
            wanted_notices,
            logging: logging.clone(),
            redis: front_ends.redis.clone(),
            archive: archive.clone(),
            text_key_retention: text_key_retention.clone(),
            partitions: partitions.clone(),
            shell: None,
            http_limits: None,
            business_limits: None,
            callback_limits: None,
            runtime: runtimes.network.handle().clone(),
        };
        let services = DaemonServices::new(DaemonParts {
            name: &config.appliance.name,
            started,
            recovered: (recovery.messages, recovery.ms),
            core: &core,
            store: &store,
            directory: &directory,
            tenants: &tenants,
            routing: &routing,
            front_ends: &front_ends,
            causes: &causes,
            archive: archive.clone(),
            history: history.clone(),
            pump,
            event_sinks,
            tables,
            counters,
            quality,
            traffic,
            peer_observer: peer_observer.clone(),
            peer_snapshots: peer_snapshots.clone(),
            config_manager: config_manager.clone(),
            tuning: tuning.clone(),
            logging,
            backups,
            leading: leading.clone(),
            partitions,
        });

        // The core and its background threads.
        let hook_workers = HookWorkers::start(&core, &routing, &config.plugins)?;
        let mailbox_index = Arc::new(MailboxIndex::new(store.clone()));
        let batch_octets = if leading.is_some() { REPLICATED_BATCH_OCTETS } else { BATCH_OCTETS };
        let core_threads = core_loop::start(
            channel,
            (recovery.engine, recovery.output, BatchSize::new(batch_octets)),
            store.clone(),
            registry.clone(),
            hook_workers,
            history.clone(),
            BatchObservers {
                mailbox_index: mailbox_index.clone(),
                pools: front_ends.pools.feed.clone(),
                peers: peer_observer,
                telemetry,
            },
        )?;
        let housekeeper = Housekeeper {
            core: core.clone(),
            store: store.clone(),
            peer_snapshots,
            data: config.appliance.data.clone(),
            tuning,
            has_archive: archive.is_some(),
            newest_record,
            wanted_notices,
            config_manager,
            routing: routing.clone(),
            leading,
            text_key_retention,
        };
        let background =
            BackgroundThreads::start(housekeeper, &counter_writer, &core, services.operation.clone())?;
        if let Some(cluster) = &mut cluster {
            cluster.watchdog = None;
        }

        if let Some(listener) = &config.shell {
            let number_parser: Arc<dyn NumberParser> = match config.default_plan() {
                Some(plan) => Arc::new(PlanNumbering(plan.clone())),
                None => Arc::new(LiteralNumbers),
            };
            let deps = ShellDeps {
                core: front_end_events.clone(),
                routing: routing.clone(),
                registry: registry.clone(),
                store: store.clone(),
                mailbox_index,
                records: Arc::new(EngineShellRecords { core: core.clone(), archive_reader: history, causes }),
                number_parser,
            };
            let shell = Arc::new(ShellServer::open(listener.options.clone(), deps)?);
            tracing::info!(path = %shell.path().display(), "local socket open");
            let _ = services.status.shell.set(shell.clone());
            components.shell = Some(shell.clone());
            front_ends.shell = Some(shell);
        }
        configure_pools(&config, &core, &registry);
        drop(_inside);
        Ok(Self {
            config,
            runtimes,
            core,
            core_threads,
            background,
            front_ends,
            front_end_events,
            routing,
            services,
            counter_writer,
            components,
            limiter,
            cluster,
        })
    }

    /// Opens the listeners, and serves until the daemon is stopped or hands the lead over; then shuts down.
    fn run(self) -> Result<()> {
        let Self { config, runtimes, core, front_ends, services, cluster, .. } = self;
        // The audit collector runs until the end.
        let (node, signals, _audit_collector) = match cluster {
            Some(ClusterMembership { leading, signals, audit_collector, .. }) => {
                (Some(leading), Some(signals), audit_collector)
            }
            None => (None, None, None),
        };
        // The result is true if the lead is handed over.
        let result: Result<bool> = runtimes.network.block_on(async {
            for network in &front_ends.networks.here {
                let (events, routing) = (self.front_end_events.clone(), self.routing.clone());
                network.start(events, routing, front_ends.links.registry()).await?;
            }
            if let (Some(settings), Some(listener)) = (&config.redis, &front_ends.redis) {
                for address in &settings.listen {
                    let address = listener.listen(*address).await?;
                    tracing::info!(%address, "Redis listener open");
                }
            }
            // Before the daemon is visible: a client that sees it may stop it, and that stop must be graceful.
            let mut signals = match signals {
                Some(signals) => signals,
                None => StopSignals::new()?,
            };
            let admin_threads = runtimes.admin.handle();
            self.routing.hooks.begin_traffic();
            let api = listeners::open(
                &config,
                &front_ends,
                &services,
                self.components,
                self.limiter,
                admin_threads,
            )
            .await?;
            // Until the end of the traffic.
            let _followed_state = match &node {
                Some(node) => {
                    listeners::serve_passed(node, &front_ends, api);
                    services.followed_state().start(node)?
                }
                None => None,
            };
            Ok(tokio::select! {
                signal = signals.recv() => {
                    tracing::info!(signal, "stopping");
                    false
                }
                () = leading_node::handed_over(node.as_deref()) => {
                    tracing::info!("stopping, another node will lead");
                    true
                }
            })
        });
        services.begin_shutdown();
        core.push(vec![Event::Drain]);
        let mut shutdown_timeout = services.config_manager.shutdown_timeout();
        if matches!(result, Ok(true)) {
            shutdown_timeout = shutdown_timeout.min(cluster_node::HAND_OVER_TIMEOUT);
        }
        service_manager::stopping(shutdown_timeout);
        let leftover = runtimes.network.block_on(front_ends.shutdown(shutdown_timeout));
        services.stop_pump();
        // Before the lead ends: afterwards, the positions cannot be stored.
        services.stop_event_sinks(shutdown_timeout.min(SINKS_TIMEOUT));
        let waiting = core.query(|engine, _| engine.live());
        if let Some(node) = &node {
            // After this node's last record, another node leads.
            if let Err(error) = self.counter_writer.flush() {
                tracing::warn!(%error, "durable counters not written, the next leader has older ones");
            }
            if let Err(problem) = node.publish() {
                tracing::warn!(problem = problem.0.detail, "writing the shared state failed");
            }
        }
        core.stop();
        self.background.stop(self.core_threads, &self.counter_writer);
        tracing::info!(
            waiting = waiting.unwrap_or(0),
            links_cut = leftover.links.len(),
            unanswered = leftover.unanswered,
            unanswered_requests = leftover.unanswered_in,
            "stopped"
        );
        runtimes.admin.shutdown_background();
        runtimes.network.shutdown_background();
        result.map(drop)
    }
}

impl BackgroundThreads {
    fn start(
        housekeeper: Housekeeper,
        counter_writer: &Arc<CounterWriter>,
        core: &CoreHandle,
        operation: Arc<OperationService>,
    ) -> Result<Self> {
        let notifier = ServiceManagerNotifier::start(core, operation)?;
        let (stop, stopped) = crossbeam_channel::bounded(1);
        let housekeeper = critical_thread::spawn("housekeeper", move || housekeeper.run(&stopped))?;
        let writing = counter_writer.clone();
        let counters = critical_thread::spawn("counters", move || writing.run())?;
        Ok(Self { housekeeper: (stop, housekeeper), counters, notifier })
    }

    /// Ends all threads. The front ends are closed already, so all counts of accepted messages are written.
    fn stop(self, core: CoreThreads, counter_writer: &CounterWriter) {
        let (stop, housekeeper) = self.housekeeper;
        drop(stop);
        core.join();
        let _ = housekeeper.join();
        counter_writer.end();
        let _ = self.counters.join();
        if let Some(notifier) = self.notifier {
            notifier.stop();
        }
    }
}

/// Creates the core networks; they are connected later. Must be called within the network runtime.
fn core_networks(config: &Config) -> CoreNetworks {
    let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
    for network in &config.networks {
        let created = || Arc::new(GsmNetwork::new(network.links.clone()));
        if !network.queue.remote {
            here.push(created());
        } else if network.links.ctrl.is_some() {
            elsewhere.push(created());
        }
    }
    CoreNetworks { here, elsewhere }
}

/// Creates the front ends; the local socket is opened later. Must be called within the network runtime.
fn create_front_ends(
    config: &Config,
    (core, events): (&CoreHandle, &Arc<dyn EventSink>),
    routing: &Arc<ApplianceRouting>,
    store: &Arc<Store>,
    limiter: &Arc<LoginLimiter>,
    networks: CoreNetworks,
) -> Result<FrontEnds> {
    let options = LinksOptions {
        system_id: bytes::Bytes::from(config.appliance.name.clone().into_bytes()),
        lease: store.lease(),
        ..LinksOptions::default()
    };
    let links = Links::new(options, limiter.clone(), events.clone(), routing.clone())
        .map_err(|error| anyhow::anyhow!("system random numbers unavailable: {error}"))?;
    let registry = links.registry();
    let business_options =
        config.business.as_ref().map(|listener| listener.options.clone()).unwrap_or_default();
    let hooks = routing.hooks.clone();
    let business = Business::new(
        business_options,
        events.clone(),
        routing.clone(),
        registry.clone(),
        Some(hooks.clone()),
    )?;
    let plugin_peers = PluginPeers::new(events.clone(), routing.clone(), registry.clone(), hooks);
    let pools = PoolService::open(core.clone(), &registry, store.clone());
    let redis = match &config.redis {
        // Bypasses the keyword filter: Redis clients submit no messages.
        Some(listener) => {
            let core = Arc::new(core.clone());
            Some(Arc::new(::pools::RedisServer::new(listener.options.clone(), core, registry)?))
        }
        None => None,
    };
    Ok(FrontEnds {
        links: Arc::new(links),
        business: Arc::new(business),
        plugin_peers: Arc::new(plugin_peers),
        networks,
        pools: Arc::new(pools),
        redis,
        shell: None,
    })
}

/// The contents of a backup.
fn backups(
    config: &Config,
    store: &Arc<Store>,
    (counter_writer, values): (&Arc<CounterWriter>, &Arc<RedbKvStore>),
    access: &Arc<access::Access>,
    config_manager: &Arc<ConfigManager>,
) -> Backups {
    let mut backups = Backups::new(
        &config.appliance.name,
        config.appliance.data.clone(),
        config.appliance.free_space_watermark,
        config.archive.url.as_deref(),
    );
    backups.root_key.clone_from(&config.privacy.root_key_file);
    let store = store.clone();
    backups.databases.push(Box::new(move || Ok(store.snapshot()?)));
    let (counter_writer, values) = (counter_writer.clone(), values.clone());
    backups.databases.push(Box::new(move || {
        if let Err(error) = counter_writer.flush() {
            tracing::warn!(%error, "flushing durable counters failed, the backup contains older values");
        }
        Ok(values.snapshot()?)
    }));
    let users = access.clone();
    backups.databases.push(Box::new(move || Ok(users.snapshot()?)));
    let versions = config_manager.clone();
    backups.databases.push(Box::new(move || Ok(versions.snapshot()?)));
    backups
}

/// Opens the users, tokens and the audit log.
fn open_access(config: &Config) -> Result<access::Access> {
    let access = access::Access::open(&config.appliance.data.join("access.redb"))?;
    access.set_audit_retention(config.http.audit_retention);
    if !access.trims_audit_log() {
        tracing::warn!(
            "clock more than 30 days ahead of the audit log, expired audit entries are not deleted; check the clock: if it is \
             right, the next start deletes them"
        );
    }
    Ok(access)
}

/// Starts the event sinks, before this process appends the first record that has events.
fn start_event_sinks(
    cursors: Option<SinkCursors>,
    store: &Store,
    messages: &Arc<dyn MessageDirectory>,
    name: &str,
) -> Result<Option<EventSinks>> {
    match (store.journal_reader(), cursors) {
        (Some(reader), Some(cursors)) if cursors.hold().is_some() => {
            Ok(Some(cursors.start(&reader, messages, name)?))
        }
        _ => Ok(None),
    }
}

/// Resets pools to their configured settings.
fn configure_pools(config: &Config, core: &CoreHandle, registry: &Arc<LinkRegistry>) {
    if config.pools_configured.is_empty() {
        return;
    }
    let Some(EngineAnswer::Pools(known)) =
        core_handle::request(core, registry, |reply| Event::Pools { reply })
    else {
        return;
    };
    for pool in &config.pools_configured {
        if known.iter().any(|summary| summary.name == pool.name && summary.settings == pool.settings) {
            continue;
        }
        let (name, request) = (pool.name.clone(), PoolRequest::Configure(pool.settings));
        let configure = |reply| Event::Pool { pool: name, request, by: "configuration".into(), reply };
        match core_handle::request(core, registry, configure) {
            Some(EngineAnswer::Pool(PoolAnswer::Pool(_))) => {
                tracing::info!(pool = %pool.name, "pool configured");
            }
            answer => tracing::error!(pool = %pool.name, ?answer, "pool configuration failed"),
        }
    }
}
