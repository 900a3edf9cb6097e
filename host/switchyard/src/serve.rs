//! Startup, wiring and shutdown of the daemon.

use crate::api_backend::Switchyard;
use crate::archiving::{ArchiveReader, FinishedMessages};
use crate::audit_collector::AuditCollector;
use crate::backup::{self, Backups};
use crate::batch_size::{BATCH_OCTETS, BatchSize, REPLICATED_BATCH_OCTETS};
use crate::cluster_node::{self, ClusterNode, Outcome};
use crate::config::Config;
use crate::config_manager::{RuntimeComponents, StartupConfig, TunableSettings};
use crate::conversion_log::ConversionLog;
use crate::core_handle::{self, CoreHandle};
use crate::core_loop::{self, BatchObservers};
use crate::critical_thread;
use crate::error_causes::ErrorCauses;
use crate::event_sinks::StoredMessages;
use crate::hook_workers::HookWorkers;
use crate::housekeeper::Housekeeper;
use crate::http_listeners::{AdminCallers, BusinessCallers, certificate};
use crate::leading_node;
use crate::logging::LogControl;
use crate::memory;
use crate::notices::WantedNotices;
use crate::opt_out::{KeywordFilter, KeywordRules};
use crate::peer_observer::PeerObserver;
use crate::peer_snapshots::PeerSnapshotPublisher;
use crate::plugin_setup::{
    compile_plugins, hooks_bound_event, hooks_options, host_services, routing, values,
};
use crate::pools::PoolService;
use crate::replays::Replays;
use crate::routing::PlanNumbering;
use crate::service_manager::{self, ServiceManagerNotifier};
use crate::shared_state::NodeStores;
use crate::shell_records::EngineShellRecords;
use crate::stop_signals::StopSignals;
use crate::telemetry::Telemetry;
use crate::traffic_flows::TrafficFlows;
use admin::OperateClient;
use anyhow::{Context as _, Result};
use arc_swap::ArcSwap;
use archive::Archive;
use business::Business;
use capabilities::{CounterWriter, DurableCounterOptions, DurableCounters};
use engine::{Engine, EngineAnswer, Event, Output, Settings};
use events::{EventSinks, MessageDirectory, SinkCursors};
use gsm::GsmNetwork;
use hooks::Hooks;
use journal::LeaderLease;
use links::{Links, LinksOptions};
use model::{Now, PoolAnswer, PoolRequest, RecoveredRecord, Timestamp};
use parking_lot::Mutex;
use plugin_peers::PluginPeers;
use ports::{EventSink, HttpListener, HttpListenerLimits, LinkRegistry, LoginLimiter};
use shell::{LiteralNumbers, MailboxIndex, NumberParser, ShellDeps, ShellServer};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::{Store, StoreOptions};
use tokio::signal::unix::{SignalKind, signal};

/// The environment variable with the path of the operator's socket. The systemd unit of the appliance image sets it; it
/// is not a configuration key, because configurations are copied between appliances.
const OPERATE_VARIABLE: &str = "SWITCHYARD_OPERATE";

/// Runs the daemon until it is stopped.
pub(crate) fn serve(mut config: Config, mut startup: StartupConfig, logging: Arc<LogControl>) -> Result<()> {
    let started = Instant::now();
    service_manager::starting();
    let descriptors = ports::raise_descriptor_limit();
    if config.fit_descriptors(descriptors) {
        tracing::warn!(
            limit = descriptors,
            "listener limits reduced: their `connections` exceed the file descriptor limit; raise LimitNOFILE"
        );
    }
    std::fs::create_dir_all(&config.appliance.data)
        .with_context(|| format!("creating {}", config.appliance.data.display()))?;
    restrict_permissions(&config.appliance.data)?;
    backup::remove_leftovers(&config.appliance.data)
        .with_context(|| format!("removing leftovers in {}", config.appliance.data.display()))?;
    let access = Arc::new(open_access(&config)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.appliance.link_threads)
        .thread_name("link")
        .enable_all()
        .build()
        .context("starting the network runtime")?;
    // A separate runtime, so that admins get through whatever plugins and links do with their threads.
    let admin_runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(ADMIN_THREADS)
        .thread_name("admin")
        .enable_all()
        .build()
        .context("starting the API runtime")?;
    let values = values(&config)?;
    let sink_cursors = SinkCursors::load(
        &config.appliance.data,
        &config.event_sinks,
        &config.cdrs,
        config.engine.journal_hold,
    )?;
    let (mut signals, mut leading) = (None, None);
    // Ends with the daemon.
    let mut _audit_collector = None;
    let store = match config.cluster.clone() {
        Some(options) => {
            compile_plugins(&config)?;
            let mut early_signals = {
                let _inside = runtime.enter();
                StopSignals::new()?
            };
            let stores = NodeStores {
                access: access.clone(),
                versions: startup.shared_versions(),
                values: values.clone(),
            };
            _audit_collector = match &config.archive.url {
                Some(url) => {
                    let archive = Archive::open(url, config.archive.options)?;
                    let log = cluster_node::audit_log(&config, &options)?;
                    Some(AuditCollector::start(log, access.clone(), archive, runtime.handle().clone())?)
                }
                None => None,
            };
            let node = ClusterNode::join(&config, &options, stores, &runtime, &mut early_signals)?;
            let Some(node) = node else { return Ok(()) };
            loop {
                let hooks_options = hooks_options(&config, None);
                match node.follow((&config, &startup), &hooks_options, &runtime, &mut early_signals)? {
                    Outcome::Leads(store, node) => {
                        node.give_snapshots(store.clone(), config.appliance.data.clone());
                        (signals, leading) = (Some(early_signals), Some(Arc::new(node)));
                        (config, startup) = startup.select_again(config)?;
                        break store;
                    }
                    Outcome::Reconfigured(newer) => {
                        tracing::info!("the cluster has another configuration");
                        config = *newer;
                    }
                    Outcome::Stopped => return Ok(()),
                }
            }
        }
        None => {
            let mut options = StoreOptions { cache: config.engine.store_cache, ..StoreOptions::default() };
            options.journal.keep_for = config.engine.journal_retention;
            options.journal.hold = sink_cursors.hold();
            Arc::new(Store::open(&config.appliance.data.join("switchyard.redb"), options)?)
        }
    };
    let directory = Arc::new(ArcSwap::from_pointee(config.assign_peer_ids(&store)?));
    let (channel, core) = core_handle::channel();
    let networks: Vec<_> = {
        let _inside = runtime.enter();
        config.networks.iter().map(|network| Arc::new(GsmNetwork::new(network.links.clone()))).collect()
    };
    let counters = DurableCounters::recover(DurableCounterOptions::default(), &values, Timestamp::now())?;
    let counters = Arc::new(counters);
    let counter_writer = Arc::new(CounterWriter::new(counters.clone(), values.clone()));
    let host_services = host_services(&config, &runtime, &networks, values.clone(), counters.clone())?;
    let peer_snapshots = Arc::new(PeerSnapshotPublisher {
        core: core.clone(),
        directory: directory.clone(),
        peers: host_services.peer_snapshots.clone(),
        pools: host_services.pool_snapshots.clone(),
    });
    let tables = host_services.tables.clone();
    let quality = host_services.quality.clone();
    let traffic = Arc::new(TrafficFlows::new(Timestamp::now()));
    let attributes = host_services.account_attributes.clone();
    let peer_observer = PeerObserver::start(quality.clone(), traffic.clone(), directory.clone(), attributes)?;
    let routing = Arc::new(routing(&config, &directory, host_services)?);

    let recovering = Instant::now();
    let newest_record = store.newest_time()?;
    let (engine, first, recovered) = recover(&config, &core, (&store, newest_record), &routing.hooks)?;
    let recovery_ms = u64::try_from(recovering.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(messages = recovered, ms = recovery_ms, "recovered");

    let options = LinksOptions {
        system_id: bytes::Bytes::from(config.appliance.name.clone().into_bytes()),
        lease: store.lease(),
        ..LinksOptions::default()
    };
    let keywords = Arc::new(ArcSwap::from_pointee(KeywordRules::new(&config.opt_out)));
    let front_end_events: Arc<dyn EventSink> = Arc::new(KeywordFilter {
        core: core.clone(),
        keywords: keywords.clone(),
        peer_roles: routing.peer_roles.clone(),
    });
    let limiter = Arc::new(LoginLimiter::default());
    let links = Links::new(options, limiter.clone(), front_end_events.clone(), routing.clone())
        .map_err(|error| anyhow::anyhow!("system random numbers unavailable: {error}"))?;
    let links = Arc::new(links);
    let archive = match &config.archive.url {
        Some(url) => Some(Archive::open(url, config.archive.options)?),
        None => None,
    };
    let history = archive.clone().map(|archive| ArchiveReader {
        archive,
        runtime: runtime.handle().clone(),
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
    let business = {
        let _inside = runtime.enter();
        let options = config.business.as_ref().map(|listener| listener.options.clone()).unwrap_or_default();
        Arc::new(Business::new(
            options,
            front_end_events.clone(),
            routing.clone(),
            links.registry(),
            Some(routing.hooks.clone()),
        )?)
    };
    let plugin_peers = {
        let _inside = runtime.enter();
        let plugins = routing.hooks.clone();
        Arc::new(PluginPeers::new(front_end_events.clone(), routing.clone(), links.registry(), plugins))
    };
    let mailbox_index = Arc::new(MailboxIndex::new(store.clone()));
    let pools = {
        let _inside = runtime.enter();
        Arc::new(PoolService::open(core.clone(), &links.registry(), store.clone()))
    };
    let pump = match &archive {
        Some(archive) => {
            let source = FinishedMessages {
                core: core.clone(),
                registry: links.registry(),
                store: store.clone(),
                directory: directory.clone(),
                peer_roles: routing.peer_roles.clone(),
            };
            Some(archive.pump(Arc::new(source)).start()?)
        }
        None => None,
    };
    // Bypasses the keyword filter: Redis clients submit no messages.
    let redis = match &config.redis {
        Some(listener) => {
            let listener = ::pools::RedisServer::new(
                listener.options.clone(),
                Arc::new(core.clone()),
                links.registry(),
            )?;
            Some(Arc::new(listener))
        }
        None => None,
    };
    let tuning = Arc::new(TunableSettings::of(&config));
    let config_manager = Arc::new(startup.config_manager(config.clone()));
    let mut backups = Backups::new(
        config.appliance.data.clone(),
        config.appliance.free_space_watermark,
        config.archive.url.as_deref(),
    );
    let main_store = store.clone();
    backups.databases.push(Box::new(move || Ok(main_store.snapshot()?)));
    let backed_up = counter_writer.clone();
    backups.databases.push(Box::new(move || {
        if let Err(error) = backed_up.flush() {
            tracing::warn!(%error, "flushing durable counters failed, the backup contains older values");
        }
        Ok(values.snapshot()?)
    }));
    let wanted_notices = WantedNotices::of(&config.event_sinks);
    let mut live = RuntimeComponents {
        store: store.clone(),
        directory: directory.clone(),
        core: core.clone(),
        links: links.clone(),
        business: business.clone(),
        plugin_peers: plugin_peers.clone(),
        peer_secrets: routing.peer_secrets.clone(),
        account_attributes: routing.account_attributes.clone(),
        peer_roles: routing.peer_roles.clone(),
        keywords,
        tuning: tuning.clone(),
        access: access.clone(),
        wanted_notices,
        logging: logging.clone(),
        redis: redis.clone(),
        archive: archive.clone(),
        shell: None,
        http_limits: None,
        business_limits: None,
        callback_limits: None,
        runtime: runtime.handle().clone(),
    };
    let users = access.clone();
    backups.databases.push(Box::new(move || Ok(users.snapshot()?)));
    let versions = config_manager.clone();
    backups.databases.push(Box::new(move || Ok(versions.snapshot()?)));
    let causes = ErrorCauses {
        networks: networks.clone(),
        links: links.clone(),
        plugin_peers: plugin_peers.clone(),
        directory: directory.clone(),
    };
    let appliance = Arc::new(Switchyard {
        name: config.appliance.name.clone(),
        http_connections: Arc::default(),
        business_connections: Arc::default(),
        started,
        ready: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        draining: Mutex::new(None),
        logging,
        backups,
        peer_tests: Mutex::default(),
        operate_client: std::env::var_os(OPERATE_VARIABLE)
            .map(|socket| OperateClient::at(Path::new(&socket))),
        core: core.clone(),
        store: store.clone(),
        access,
        links: links.clone(),
        routing: routing.clone(),
        directory: directory.clone(),
        causes: causes.clone(),
        recovered,
        recovery_ms,
        business: business.clone(),
        networks: networks.clone(),
        shell: OnceLock::new(),
        history: history.clone(),
        pump: Mutex::new(pump),
        event_sinks,
        tables,
        counters,
        replays: Replays::new(archive.clone()),
        pools: pools.clone(),
        redis: redis.clone(),
        config_manager: config_manager.clone(),
        tuning: tuning.clone(),
        binding: Mutex::new(()),
        source_readers: Default::default(),
        peer_snapshots: peer_snapshots.clone(),
        quality,
        traffic,
        peer_observer: peer_observer.clone(),
        conversions: ConversionLog::default(),
        cluster: leading.clone(),
    });
    let hook_workers = HookWorkers::start(&core, &routing, &config.plugins)?;
    let telemetry = match &config.telemetry {
        Some(settings) => Some(Telemetry::start(settings, &config.appliance.name, directory.clone())?),
        None => None,
    };
    let batch_size = BatchSize::new(if leading.is_some() { REPLICATED_BATCH_OCTETS } else { BATCH_OCTETS });
    let threads = core_loop::start(
        channel,
        (engine, first, batch_size),
        store.clone(),
        links.registry(),
        hook_workers,
        history.clone(),
        BatchObservers {
            mailbox_index: mailbox_index.clone(),
            pools: pools.feed.clone(),
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
        config_manager: config_manager.clone(),
        routing: routing.clone(),
        leading: leading.clone(),
    };
    let notifier = ServiceManagerNotifier::start(&core, &appliance)?;
    let (stop_housekeeper, stopped) = crossbeam_channel::bounded::<()>(1);
    let housekeeper_thread = critical_thread::spawn("housekeeper", move || housekeeper.run(&stopped))?;
    let writing = counter_writer.clone();
    let counter_thread = critical_thread::spawn("counters", move || writing.run())?;

    let shell = match &config.shell {
        Some(listener) => {
            let _inside = runtime.enter();
            let plan = config.default_plan();
            let number_parser: Arc<dyn NumberParser> = match plan {
                Some(plan) => Arc::new(PlanNumbering(plan.clone())),
                None => Arc::new(LiteralNumbers),
            };
            let deps = ShellDeps {
                core: front_end_events.clone(),
                routing: routing.clone(),
                registry: links.registry(),
                store: store.clone(),
                mailbox_index,
                records: Arc::new(EngineShellRecords { core: core.clone(), archive_reader: history, causes }),
                number_parser,
            };
            let shell = Arc::new(ShellServer::open(listener.options.clone(), deps)?);
            tracing::info!(path = %shell.path().display(), "local socket open");
            let _ = appliance.shell.set(shell.clone());
            live.shell = Some(shell.clone());
            Some(shell)
        }
        None => None,
    };
    configure_pools(&config, &core, &links.registry());
    // Whether the lead is handed over.
    let result: Result<bool> = runtime.block_on(async {
        for network in &networks {
            network.start(front_end_events.clone(), routing.clone(), links.registry()).await?;
        }
        if let (Some(settings), Some(listener)) = (&config.redis, &redis) {
            for address in &settings.listen {
                let address = listener.listen(*address).await?;
                tracing::info!(%address, "Redis listener open");
            }
        }
        // Before the daemon is visible: a client that sees it may stop it, and the stop must be graceful.
        let mut signals = match signals {
            Some(signals) => signals,
            None => StopSignals::new()?,
        };
        let front_ends = (&*links, &*business, &*plugin_peers);
        open(&config, front_ends, &appliance, live, limiter, admin_runtime.handle()).await?;
        Ok(tokio::select! {
            signal = signals.recv() => {
                tracing::info!(signal, "stopping");
                false
            }
            () = leading_node::handed_over(leading.as_deref()) => {
                tracing::info!("stopping, another node will lead");
                true
            }
        })
    });
    appliance.stopping.store(true, Relaxed);
    appliance.ready.store(false, Relaxed);
    appliance.replays.end_all();
    pools.feed.close();
    core.push_drain();
    let mut shutdown_timeout = config_manager.shutdown_timeout();
    if matches!(result, Ok(true)) {
        shutdown_timeout = shutdown_timeout.min(cluster_node::HAND_OVER_TIMEOUT);
    }
    service_manager::stopping(shutdown_timeout);
    let shutdown = runtime.block_on(async {
        let networks = async {
            for network in &networks {
                network.shutdown(shutdown_timeout).await;
            }
        };
        let shell = async {
            if let Some(shell) = &shell {
                shell.shutdown(shutdown_timeout).await;
            }
        };
        let redis = async {
            if let Some(listener) = &redis {
                listener.shutdown(shutdown_timeout).await;
            }
        };
        let links = links.shutdown(shutdown_timeout);
        let plugin_peers = plugin_peers.shutdown(shutdown_timeout);
        let (shutdown, (), (), (), (), ()) =
            tokio::join!(links, business.shutdown(shutdown_timeout), plugin_peers, networks, shell, redis);
        shutdown
    });
    pools.engine_client.close(&links.registry());
    let pump = appliance.pump.lock().take();
    if let Some(pump) = pump {
        pump.stop();
    }
    let waiting = core.query(|engine, _| engine.live());
    if let Some(node) = &leading {
        // The last record of this node makes another one lead.
        if let Err(error) = counter_writer.flush() {
            tracing::warn!(%error, "durable counters not written, the next leader has older ones");
        }
        if let Err(problem) = node.publish() {
            tracing::warn!(problem = problem.0.detail, "the shared state is not written");
        }
    }
    core.stop();
    drop(stop_housekeeper);
    threads.join();
    let _ = housekeeper_thread.join();
    // After the front ends are closed, so that all counts of accepted messages are written.
    counter_writer.end();
    let _ = counter_thread.join();
    if let Some(notifier) = notifier {
        notifier.stop();
    }
    tracing::info!(
        waiting = waiting.unwrap_or(0),
        links_cut = shutdown.links.len(),
        unanswered = shutdown.unanswered,
        unanswered_requests = shutdown.unanswered_in,
        "stopped"
    );
    admin_runtime.shutdown_background();
    runtime.shutdown_background();
    result.map(drop)
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

/// Starts the event sinks, before the first record of this process that has events.
fn start_event_sinks(
    cursors: SinkCursors,
    store: &Store,
    messages: &Arc<dyn MessageDirectory>,
    name: &str,
) -> Result<Option<EventSinks>> {
    match (store.journal_reader(), cursors.hold()) {
        (Some(reader), Some(_)) => Ok(Some(cursors.start(&reader, messages, name)?)),
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

#[cfg(unix)]
pub(crate) fn restrict_permissions(folder: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
        .with_context(|| format!("setting permissions of {}", folder.display()))
}

impl CoreHandle {
    fn push_drain(&self) {
        self.push(vec![Event::Drain]);
    }
}

fn recover(
    config: &Config,
    core: &CoreHandle,
    (store, newest_record): (&Store, Option<Timestamp>),
    hooks: &Hooks,
) -> Result<(Engine, Output, u64)> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed)
        .map_err(|error| anyhow::anyhow!("system random numbers unavailable: {error}"))?;
    // Another node may have led until the claim.
    let previous_leader_sends = config.cluster.as_ref().map_or(Duration::ZERO, |_| LeaderLease::AFTER_CLAIM);
    let settings =
        Settings { seed: u64::from_le_bytes(seed), previous_leader_sends, ..config.engine_settings() };
    let mut engine = Engine::new(settings);
    let mut out = Output::default();
    let now = core.clock.now();
    engine.apply(now, Event::Pace(config.pace_settings()), &mut out);
    let queues = config.accounts.iter().map(|account| &account.queue);
    let queues = queues.chain(config.peers.iter().map(|peer| &peer.queue));
    let queues = queues.chain(config.shell.iter().map(|shell| &shell.queue));
    let queues = queues.chain(config.gateways.iter().map(|gateway| &gateway.queue));
    let queues = queues.chain(config.plugin_peers.iter().map(|peer| &peer.queue));
    for queue in queues.chain(config.networks.iter().map(|network| &network.queue)) {
        engine.apply(now, Event::Peer(queue.clone()), &mut out);
    }
    engine.apply(now, hooks_bound_event(hooks), &mut out);
    // First, because recovering a finished message may settle its charge.
    let for_ages = Now { wall: core.clock.for_ages(newest_record), ..now };
    store.recover_records(|found| {
        let now = if matches!(found, RecoveredRecord::IdempotencyKey(_)) { for_ages } else { now };
        engine.recover_record(now, found);
    })?;
    let recovery = store.recover(|message| engine.recover(now, message, &mut out))?;
    engine.finish_recovery(recovery.next_id, recovery.next_submit_row, &recovery.rows, &mut out);
    Ok((engine, out, recovery.messages))
}

/// Threads of the admin API: a page and a probe must not wait for each other.
const ADMIN_THREADS: usize = 2;

/// Opens the admin listener.
async fn open_admin_listener(
    config: &Config,
    appliance: &Arc<Switchyard>,
    limiter: Arc<LoginLimiter>,
    threads: &tokio::runtime::Handle,
) -> Result<HttpListenerLimits> {
    let token = admin::RootToken::load_or_create(&config.token_file())?;
    token.announce(&config.token_file());
    let authenticator = admin::Authenticator::new(appliance.access.clone(), token, limiter)?;
    let certificate = certificate(config, &config.http.tls(), config.http.listen)?;
    let tls = certificate.is_some();
    if tls {
        authenticator.require_secure_cookies();
    }
    let (counts, listen, http_limits) =
        (appliance.http_connections.clone(), config.http.listen, config.http.limits());
    let router = console::router(admin::router(appliance.clone(), authenticator.clone()));
    // Its sockets belong to the runtime that opens them.
    let opened = threads.spawn(async move {
        let listener = HttpListener::open("http", listen, certificate, http_limits, counts).await?;
        let (address, limits) = (listener.address(), listener.limits().clone());
        tokio::spawn(listener.serve(router, Arc::new(AdminCallers(authenticator))));
        Ok::<_, std::io::Error>((address, limits))
    });
    let (address, limits) = opened.await.context("opening the admin listener")?.with_context(|| {
        format!("[http] listen = \"{}\": is another program using it?", config.http.listen)
    })?;
    service_manager::write_admin_url(tls, address);
    tracing::info!(%address, tls, "admin listener open");
    Ok(limits)
}

/// Opens all listeners, and dials the peers.
async fn open(
    config: &Config,
    (links, business, plugin_peers): (&Links, &Business, &PluginPeers),
    appliance: &Arc<Switchyard>,
    mut live: RuntimeComponents,
    limiter: Arc<LoginLimiter>,
    admin_threads: &tokio::runtime::Handle,
) -> Result<()> {
    let mut hangups = signal(SignalKind::hangup())?;
    live.http_limits = Some(open_admin_listener(config, appliance, limiter, admin_threads).await?);

    for account in &config.accounts {
        links.set_account(account.links.clone())?;
        if let Some(options) = &account.business {
            business.set_account(options.clone())?;
        }
    }
    if let Some(listener) = &config.business {
        let certificate = certificate(config, &listener.tls, listener.listen)?;
        let tls = certificate.is_some();
        let counts = appliance.business_connections.clone();
        let listener =
            HttpListener::open("business", listener.listen, certificate, listener.limits(), counts)
                .await
                .with_context(|| {
                    format!("[business] listen = \"{}\": is another program using it?", listener.listen)
                })?;
        let address = listener.address();
        live.business_limits = Some(listener.limits().clone());
        tokio::spawn(listener.serve(business.router(), Arc::new(BusinessCallers)));
        tracing::info!(%address, tls, "business listener open");
    }
    if let Some(listener) = &config.peer_callbacks {
        let certificate = certificate(config, &listener.tls, listener.listen)?;
        let tls = certificate.is_some();
        let opened = HttpListener::open(
            "peer-callbacks",
            listener.listen,
            certificate,
            listener.limits(),
            Arc::default(),
        );
        let opened = opened.await.with_context(|| {
            format!("[peer-callbacks] listen = \"{}\": is another program using it?", listener.listen)
        })?;
        let address = opened.address();
        live.callback_limits = Some(opened.limits().clone());
        tokio::spawn(opened.serve(plugin_peers.router(), Arc::new(BusinessCallers)));
        tracing::info!(%address, tls, "callback listener open");
    }
    for peer in &config.plugin_peers {
        plugin_peers.set_peer(peer.link.clone())?;
    }
    for gateway in &config.gateways {
        links.set_gateway(gateway.links.clone())?;
    }
    for peer in &config.peers {
        links.set_peer(peer.links.clone())?;
    }
    for listener in &config.listeners {
        let address = links.listen(listener.clone()).await?;
        tracing::info!(listener = listener.name(), %address, "listening");
    }
    // The setup above would undo an earlier change.
    appliance.config_manager.open(live)?;
    appliance.ready.store(true, Relaxed);
    tracing::info!(ms = appliance.started.elapsed().as_millis(), "ready");
    memory::release_free_memory();
    service_manager::ready();
    let config_manager = appliance.config_manager.clone();
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            service_manager::reloading();
            let config_manager = config_manager.clone();
            let _ = tokio::task::spawn_blocking(move || config_manager.reload()).await;
            service_manager::ready();
        }
    });
    Ok(())
}
