//! Start-up, wiring, shutdown.

use crate::appliance::Switchyard;
use crate::archiving::{Finished, History};
use crate::backup::{self, Backups};
use crate::boards::Boards;
use crate::causes::Causes;
use crate::config::Config;
use crate::config::http::Lock;
use crate::config::plugins::HookSeed;
use crate::configuring::{Booted, Configuring, Live, Tuning};
use crate::core_loop::{self, CoreHandle, Onlookers, wall};
use crate::logging::Logging;
use crate::memory;
use crate::opt_out::{Listening, OptOut};
use crate::pools::PoolDesk;
use crate::questions::Questions;
use crate::reading::Reading;
use crate::replays::Replays;
use crate::routing::{ByPlan, HouseRouting, Inboxes, Parties};
use crate::supervision::{self, Supervision};
use crate::telemetry::Telemetry;
use crate::vital;
use admin::Operator;
use anyhow::{Context as _, Result};
use arc_swap::ArcSwap;
use archive::Archive;
use axum::http::HeaderMap;
use business::Business;
use capabilities::{
    ChainHlr, CounterWriter, Counters, DurableCounters, DurableOptions, Fetcher, FetcherOptions, Hlr,
    KeyValues, LogBudgets, Shelf, ShelfOptions, TableHlr,
};
use doors::{Callers, Certificate, Core, HttpListener, Hub, LoginLimiter};
use engine::{Answer, Engine, Event, Output, Remembered, Settings};
use gsm::Network;
use hooks::{Binding, Board, Conditions, Hooks, HooksOptions, How, Powers};
use links::{Links, LinksOptions};
use model::{DecidedBy, Directory, Hook, Leg, Now, PoolAnswer, PoolRequest, Routed, Timestamp, Verdict};
use parking_lot::Mutex;
use shell::{AsTyped, Numbering, Ports, Shell, Watch};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::{Store, StoreOptions};
use tokio::signal::unix::{SignalKind, signal};

/// Where the appliance image says how its daemon asks for what concerns the machine: a variable of the unit, since what a machine
/// is stands in no configuration that is taken from one to another.
const OPERATE: &str = "SWITCHYARD_OPERATE";

/// Runs the appliance until it is told to stop.
pub(crate) fn serve(mut config: Config, booted: Booted, logging: Arc<Logging>) -> Result<()> {
    let begun = Instant::now();
    supervision::starting();
    let descriptors = doors::raise_descriptor_limit();
    if config.fit_descriptors(descriptors) {
        tracing::warn!(
            limit = descriptors,
            "the listeners' `connections` are more than there are file descriptors: each listener gets its share; raise LimitNOFILE"
        );
    }
    std::fs::create_dir_all(&config.data).with_context(|| format!("making {}", config.data.display()))?;
    restrict(&config.data)?;
    backup::sweep(&config.data).with_context(|| format!("tidying {}", config.data.display()))?;
    let options = StoreOptions { cache: config.store_cache, ..StoreOptions::default() };
    let store = Arc::new(Store::open(&config.data.join("switchyard.redb"), options)?);
    let directory = Arc::new(ArcSwap::from_pointee(config.number(&store)?));

    let (seed, core) = core_loop::seed();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.link_threads)
        .thread_name("link")
        .enable_all()
        .build()
        .context("starting the network threads")?;
    // Whatever plugins and links do with their threads, admins get through.
    let admin_runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(ADMIN_THREADS)
        .thread_name("admin")
        .enable_all()
        .build()
        .context("starting the threads of the admin's API")?;
    let networks: Vec<_> = {
        let _inside = runtime.enter();
        config.networks.iter().map(|network| Arc::new(Network::new(network.links.clone()))).collect()
    };
    let values = values(&config)?;
    let counters = DurableCounters::recover(DurableOptions::default(), &values, core_loop::wall())?;
    let counters = Arc::new(counters);
    let counter_writer = Arc::new(CounterWriter::new(counters.clone(), values.clone()));
    let powers = powers(&config, &runtime, &networks, values.clone(), counters.clone())?;
    let boards = Arc::new(Boards {
        core: core.clone(),
        directory: directory.clone(),
        peers: powers.board.clone(),
        pools: powers.pools.clone(),
    });
    let shelf = powers.shelf.clone();
    let routing = Arc::new(routing(&config, &directory, powers)?);

    let recovering = Instant::now();
    let newest_record = store.newest_time()?;
    let (engine, first, recovered) = recover(&config, &core, (&store, newest_record), &routing.hooks)?;
    let recovery_ms = u64::try_from(recovering.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(messages = recovered, ms = recovery_ms, "recovered");

    let options = LinksOptions {
        system_id: bytes::Bytes::from(config.name.clone().into_bytes()),
        ..LinksOptions::default()
    };
    let keywords = Arc::new(ArcSwap::from_pointee(OptOut::new(&config.opt_out)));
    let doors_core: Arc<dyn Core> = Arc::new(Listening {
        core: core.clone(),
        keywords: keywords.clone(),
        parties: routing.parties.clone(),
    });
    let limiter = Arc::new(LoginLimiter::default());
    let links = Links::new(options, limiter.clone(), doors_core.clone(), routing.clone())
        .map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    let links = Arc::new(links);
    let archive = match &config.archive.url {
        Some(url) => Some(Archive::open(url, config.archive.options.clone())?),
        None => None,
    };
    let history = archive.clone().map(|archive| History {
        archive,
        runtime: runtime.handle().clone(),
        directory: directory.clone(),
    });
    let business = {
        let _inside = runtime.enter();
        let options = config.business.as_ref().map(|door| door.options.clone()).unwrap_or_default();
        Arc::new(Business::new(options, limiter.clone(), doors_core.clone(), routing.clone(), links.hub())?)
    };
    let watch = Arc::new(Watch::new(store.clone()));
    let pools = {
        let _inside = runtime.enter();
        Arc::new(PoolDesk::open(core.clone(), &links.hub(), store.clone()))
    };
    let pump = match &archive {
        Some(archive) => {
            let source = Finished {
                core: core.clone(),
                hub: links.hub(),
                store: store.clone(),
                directory: directory.clone(),
                parties: routing.parties.clone(),
            };
            Some(archive.pump(Arc::new(source)).start()?)
        }
        None => None,
    };
    // Not by way of the doors' core: it looks for keywords in messages, and there are none here.
    let redis = match &config.redis {
        Some(door) => {
            let door = ::pools::Door::new(
                door.options.clone(),
                limiter.clone(),
                Arc::new(core.clone()),
                links.hub(),
            )?;
            Some(Arc::new(door))
        }
        None => None,
    };
    let tuning = Arc::new(Tuning::of(&config));
    let configuring = Arc::new(booted.configuring(config.clone()));
    let live = Live {
        store: store.clone(),
        directory: directory.clone(),
        core: core.clone(),
        links: links.clone(),
        business: business.clone(),
        parties: routing.parties.clone(),
        keywords,
        tuning: tuning.clone(),
        runtime: runtime.handle().clone(),
    };
    let mut backups = Backups::new(config.data.clone(), config.watermark, config.archive.url.as_deref());
    let kept = store.clone();
    backups.databases.push(Box::new(move || kept.snapshot()));
    let backed_up = counter_writer.clone();
    backups.databases.push(Box::new(move || {
        if let Err(error) = backed_up.flush() {
            tracing::warn!(%error, "the backup has the durable counters as they were last written");
        }
        values.snapshot()
    }));
    let access = access::Access::open(&config.data.join("access.redb"))?.keeping(config.audit_retention);
    if !access.lets_old_lines_go() {
        tracing::warn!(
            "the clock stands more than 30 days after the newest line of the audit log: no line is deleted for its age. \
             Check the clock; if it is right, the next start deletes them"
        );
    }
    let access = Arc::new(access);
    let people = access.clone();
    backups.databases.push(Box::new(move || people.snapshot()));
    let versions = configuring.clone();
    backups.databases.push(Box::new(move || versions.snapshot()));
    let causes = Causes { networks: networks.clone(), links: links.clone(), directory: directory.clone() };
    let appliance = Arc::new(Switchyard {
        name: config.name.clone(),
        http_connections: Arc::default(),
        business_connections: Arc::default(),
        started: begun,
        ready: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        draining: Mutex::new(None),
        logging,
        backups,
        trials: Mutex::default(),
        operator: std::env::var_os(OPERATE).map(|socket| Operator::at(Path::new(&socket))),
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
        shelf,
        counters,
        replays: Replays::new(archive.clone()),
        pools: pools.clone(),
        redis: redis.clone(),
        configuring: configuring.clone(),
        tuning: tuning.clone(),
        binding: Mutex::new(()),
        boards: boards.clone(),
    });
    let questions = Questions::start(&core, &routing, config.plugins.resolver_threads)?;
    let telemetry = match &config.telemetry {
        Some(settings) => Some(Telemetry::start(settings, &config.name, directory.clone())?),
        None => None,
    };
    let threads = core_loop::start(
        seed,
        (engine, first),
        store.clone(),
        links.hub(),
        questions,
        history.clone(),
        Onlookers { watch: watch.clone(), pools: pools.feed.clone(), telemetry },
    )?;
    let keeper = Housekeeper {
        core: core.clone(),
        store: store.clone(),
        boards,
        data: config.data.clone(),
        tuning,
        has_archive: archive.is_some(),
        newest_record,
        configuring: configuring.clone(),
        hooks: routing.hooks.clone(),
    };
    let supervision = Supervision::start(&core, &appliance)?;
    let (stop_keeping, kept) = crossbeam_channel::bounded::<()>(1);
    let keeping = vital::spawn("keeper", move || keeper.run(&kept))?;
    let writing = counter_writer.clone();
    let counting = vital::spawn("counters", move || writing.run())?;

    let shell = match &config.shell {
        Some(door) => {
            let _inside = runtime.enter();
            let plan = config.numbering.as_ref().and_then(|plans| plans.get(plans.default_name()));
            let numbering: Arc<dyn Numbering> = match plan {
                Some(plan) => Arc::new(ByPlan(plan.clone())),
                None => Arc::new(AsTyped),
            };
            let ports = Ports {
                core: doors_core.clone(),
                routing: routing.clone(),
                hub: links.hub(),
                store: store.clone(),
                watch,
                records: Arc::new(Reading { core: core.clone(), history, causes }),
                numbering,
            };
            let shell = Arc::new(Shell::open(door.options.clone(), ports)?);
            tracing::info!(path = %shell.path().display(), "the command line's socket");
            let _ = appliance.shell.set(shell.clone());
            Some(shell)
        }
        None => None,
    };
    set_pools(&config, &core, &links.hub());
    let ran = runtime.block_on(async {
        for network in &networks {
            network.start(doors_core.clone(), routing.clone(), links.hub()).await?;
        }
        if let (Some(settings), Some(door)) = (&config.redis, &redis) {
            for address in &settings.listen {
                let address = door.listen(*address).await?;
                tracing::info!(%address, "Redis clients");
            }
        }
        run(&config, &links, &business, &appliance, live, limiter, admin_runtime.handle()).await
    });
    appliance.stopping.store(true, Relaxed);
    appliance.ready.store(false, Relaxed);
    appliance.replays.end_all();
    pools.feed.close();
    core.push_drain();
    let drain = configuring.drain();
    supervision::stopping(drain);
    let left = runtime.block_on(async {
        let networks = async {
            for network in &networks {
                network.shutdown(drain).await;
            }
        };
        let shell = async {
            if let Some(shell) = &shell {
                shell.shutdown(drain).await;
            }
        };
        let redis = async {
            if let Some(door) = &redis {
                door.shutdown(drain).await;
            }
        };
        let links = links.shutdown(drain);
        let (left, (), (), (), ()) = tokio::join!(links, business.shutdown(drain), networks, shell, redis);
        left
    });
    pools.desk.close(&links.hub());
    let pump = appliance.pump.lock().take();
    if let Some(pump) = pump {
        pump.stop();
    }
    let waiting = core.look(|engine, _| engine.live());
    core.stop();
    drop(stop_keeping);
    threads.join();
    let _ = keeping.join();
    // After the doors are closed: all counts of what was accepted are written.
    counter_writer.end();
    let _ = counting.join();
    if let Some(supervision) = supervision {
        supervision.end();
    }
    tracing::info!(
        waiting = waiting.unwrap_or(0),
        links_cut = left.links.len(),
        unanswered = left.unanswered,
        owed = left.owed,
        "stopped; what waits is on disk"
    );
    admin_runtime.shutdown_background();
    runtime.shutdown_background();
    ran
}

/// Pools get the settings that the file says of them; what was changed by other ways since then is changed back.
fn set_pools(config: &Config, core: &CoreHandle, hub: &Hub) {
    if config.pools.is_empty() {
        return;
    }
    let Some(Answer::Pools(known)) = core_loop::ask(core, hub, |reply| Event::Pools { reply }) else {
        return;
    };
    for pool in &config.pools {
        if known.iter().any(|summary| summary.name == pool.name && summary.settings == pool.settings) {
            continue;
        }
        let (name, request) = (pool.name.clone(), PoolRequest::Configure(pool.settings));
        let configure = |reply| Event::Pool { pool: name, request, by: "configuration".into(), reply };
        match core_loop::ask(core, hub, configure) {
            Some(Answer::Pool(PoolAnswer::Pool(_))) => tracing::info!(pool = %pool.name, "pool set up"),
            answer => tracing::error!(pool = %pool.name, ?answer, "pool not set up"),
        }
    }
}

#[cfg(unix)]
pub(crate) fn restrict(folder: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
        .with_context(|| format!("keeping {} to ourselves", folder.display()))
}

impl CoreHandle {
    fn push_drain(&self) {
        self.push(vec![Event::Drain]);
    }
}

/// What plugins keep.
fn values(config: &Config) -> Result<Arc<KeyValues>> {
    let plugins = config.data.join("plugins");
    std::fs::create_dir_all(&plugins).with_context(|| format!("making {}", plugins.display()))?;
    Ok(Arc::new(KeyValues::open(&plugins.join("kv.redb"))?))
}

/// What plugins are given by the house.
fn powers(
    config: &Config,
    runtime: &tokio::runtime::Runtime,
    networks: &[Arc<Network>],
    values: Arc<KeyValues>,
    durable_counters: Arc<DurableCounters>,
) -> Result<Powers> {
    let shelf = Arc::new(Shelf::open(&config.data.join("tables"), ShelfOptions::default())?);
    // Who really knows comes first; the table is for networks without an HLR that could be asked. Of several networks none
    // knows all subscribers.
    let registers: Vec<Arc<dyn Hlr>> = networks.iter().filter_map(|network| network.hlr()).collect();
    let alone = registers.len() == 1;
    let registers = registers.into_iter().fold(ChainHlr::new(), |chain, register| {
        if alone { chain.authority(register) } else { chain.hint(register) }
    });
    let registers = registers.authority(Arc::new(TableHlr::new(shelf.clone())));
    Ok(Powers {
        board: Arc::new(Board::default()),
        pools: Arc::default(),
        counters: Arc::new(Counters::default()),
        durable_counters,
        values,
        fetch: Arc::new(Fetcher::new(runtime.handle().clone(), &FetcherOptions::default())?),
        hlr: Arc::new(registers),
        shelf,
        lines: LogBudgets::default(),
    })
}

/// Which plugins there are, as the engine is told.
pub(crate) fn bound(hooks: &Hooks) -> Event {
    Event::Hooks {
        resolver: hooks.is_bound(Hook::Resolver),
        delivery_policy: hooks.is_bound(Hook::DeliveryPolicy),
        biller: hooks.is_bound(Hook::Biller),
    }
}

fn recover(
    config: &Config,
    core: &CoreHandle,
    (store, newest_record): (&Store, Option<Timestamp>),
    hooks: &Hooks,
) -> Result<(Engine, Output, u64)> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    let settings = Settings { seed: u64::from_le_bytes(seed), ..config.settings.clone() };
    let mut engine = Engine::new(settings);
    let mut out = Output::default();
    let now = core.clock.now();
    let queues = config.accounts.iter().map(|account| &account.queue);
    let queues = queues.chain(config.peers.iter().map(|peer| &peer.queue));
    let queues = queues.chain(config.shell.iter().map(|shell| &shell.queue));
    let queues = queues.chain(config.gateways.iter().map(|gateway| &gateway.queue));
    for queue in queues.chain(config.networks.iter().map(|network| &network.queue)) {
        engine.apply(now, Event::Peer(queue.clone()), &mut out);
    }
    engine.apply(now, bound(hooks), &mut out);
    // First: a message that ends while it is recovered settles its charge.
    let for_ages = Now { wall: core.clock.for_ages(newest_record), ..now };
    store.recover_remembered(|found| {
        let now = if matches!(found, Remembered::Key(_)) { for_ages } else { now };
        engine.recover_remembered(now, found);
    })?;
    let recovery = store.recover(|message| engine.recover(now, message, &mut out))?;
    engine.recovered(recovery.next_id, recovery.next_handed_seq, &recovery.rows, &mut out);
    Ok((engine, out, recovery.messages))
}

fn routing(config: &Config, directory: &Arc<ArcSwap<Directory>>, powers: Powers) -> Result<HouseRouting> {
    let names = directory.load();
    let plugins = &config.plugins;
    // Without a word on it, the only core network there is serves our own subscribers.
    let home = match (&plugins.home, &config.networks[..]) {
        (Some(peer), _) => names.id(peer),
        (None, [network]) => Some(network.links.peer),
        (None, _) => None,
    };
    let options = HooksOptions {
        memory: plugins.memory,
        instances: plugins.instances,
        hold_for: plugins.hold,
        home,
        trust: plugins.trust.clone(),
        // What nobody keeps nobody can replay.
        record: config.archive.url.is_some(),
    };
    let hooks = Hooks::open(&config.data.join("plugins"), options, directory.clone(), powers)?;
    for seed in &plugins.seeds {
        if hooks.history(seed.hook).is_empty() {
            bind_first(seed, &hooks)?;
        }
    }
    let constant = plugins.native.as_deref().and_then(|peer| names.id(peer)).map(|peer| {
        let by = Arc::new(DecidedBy { plugin: "native".to_owned(), version: String::new() });
        Routed::new(Verdict::Forward(vec![Leg::to(peer)]), by)
    });
    if constant.is_none() && !hooks.is_bound(Hook::Router) {
        tracing::warn!("no router is bound: every submission is refused until one is activated");
    }
    let shell = config.shell.as_ref().map(|shell| &shell.options);
    let parties = Arc::new(ArcSwap::from_pointee(Parties::of(config, &names)));
    let plan = config.numbering.as_ref().and_then(|plans| plans.get(plans.default_name())).cloned();
    let directory = directory.clone();
    let inboxes = shell.map(Inboxes::new);
    Ok(HouseRouting { hooks, constant, parties, plan, home, directory, inboxes })
}

/// The first start: what the file says of a hook becomes its first binding. Later ones come by HTTP.
fn bind_first(seed: &HookSeed, hooks: &Hooks) -> Result<()> {
    let Some(component) = &seed.component else { return Ok(()) };
    let octets = std::fs::read(component).with_context(|| format!("reading {}", component.display()))?;
    let signature = std::fs::read_to_string(component.with_extension("wasm.sig")).ok();
    let info = hooks.upload(&seed.binding.plugin, &octets, signature.as_deref())?;
    let policy = match &seed.policy {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?,
        None => String::new(),
    };
    let binding = Binding { version: info.version.clone(), policy, ..seed.binding.clone() };
    let (now, bindings) = (wall(), vec![binding]);
    // At the first start peers and tables may come later, over the API; what is missing is told, and shown as long as it is.
    if let Err(error) = hooks.activate(seed.hook, now, bindings.clone(), None) {
        hooks.activate(seed.hook, now, bindings, Conditions { expected: None, force: true })?;
        tracing::warn!(hook = seed.hook.name(), %error, "plugin bound although something is missing");
    }
    tracing::info!(hook = seed.hook.name(), plugin = info.plugin, version = info.version, "plugin bound");
    Ok(())
}

/// Threads for the admin's API: a page and a probe at a time never wait for each other.
const ADMIN_THREADS: usize = 2;

/// Opens the admin's door: the API, with or without TLS.
async fn admin_door(
    config: &Config,
    appliance: &Arc<Switchyard>,
    limiter: Arc<LoginLimiter>,
    threads: &tokio::runtime::Handle,
) -> Result<()> {
    let token = admin::Token::load_or_make(&config.token_file)?;
    token.announce(&config.token_file);
    let porter = admin::Porter::new(appliance.access.clone(), token, limiter)?;
    let certificate = certificate(config, &config.http_lock, config.http)?;
    let tls = certificate.is_some();
    if tls {
        porter.insist_on_tls();
    }
    let (counts, listen, limits) = (appliance.http_connections.clone(), config.http, config.http_limits);
    let router = console::router(admin::router(appliance.clone(), porter.clone()));
    // Its sockets belong to the threads that open them.
    let opened = threads.spawn(async move {
        let listener = HttpListener::open("http", listen, certificate, limits, counts).await?;
        let address = listener.address();
        tokio::spawn(listener.serve(router, Arc::new(AdminCallers(porter))));
        Ok::<_, std::io::Error>(address)
    });
    let address = opened
        .await
        .context("opening the admin's API")?
        .with_context(|| format!("[http] listen = \"{}\": is another program using it?", config.http))?;
    supervision::reached_at(tls, address);
    tracing::info!(%address, tls, "http");
    Ok(())
}

/// Who makes requests of the admin's API. Readiness is told to everybody, however full the listener is.
struct AdminCallers(Arc<admin::Porter>);

impl Callers for AdminCallers {
    fn knows(&self, headers: &HeaderMap) -> bool {
        self.0.knows(headers)
    }

    fn is_always_answered(&self, path: &str) -> bool {
        matches!(path, "/v1/ready" | "/v1/health")
    }
}

/// Business systems: who calls is known only when a password was verified, and the handler says so.
struct BusinessCallers;

impl Callers for BusinessCallers {
    fn knows(&self, _: &HeaderMap) -> bool {
        false
    }

    fn is_always_answered(&self, _: &str) -> bool {
        false
    }
}

/// The certificate of a listener for HTTP, which is read again when its files change. To be called inside a tokio runtime.
fn certificate(config: &Config, lock: &Lock, listen: SocketAddr) -> Result<Option<Arc<Certificate>>> {
    let files = match lock {
        Lock::Open => return Ok(None),
        Lock::Own => doors::own_certificate(&config.data.join("tls"), listen.ip())?,
        Lock::Files(files) => files.clone(),
    };
    let certificate = Certificate::read(files)?;
    let watched = certificate.clone();
    tokio::spawn(async move {
        if let Err(error) = watched.watch().await {
            tracing::warn!(%error, "the certificate of an HTTP listener is not read again when it changes");
        }
    });
    Ok(Some(certificate))
}

async fn run(
    config: &Config,
    links: &Links,
    business: &Business,
    appliance: &Arc<Switchyard>,
    live: Live,
    limiter: Arc<LoginLimiter>,
    admin_threads: &tokio::runtime::Handle,
) -> Result<()> {
    // Before anybody can see that it runs: who sees that may also end it, and that is never a sudden death.
    let mut hangups = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    admin_door(config, appliance, limiter, admin_threads).await?;

    for account in &config.accounts {
        links.set_account(account.links.clone())?;
        if let Some(options) = &account.business {
            business.set_account(options.clone())?;
        }
    }
    if let Some(door) = &config.business {
        let certificate = certificate(config, &door.lock, door.listen)?;
        let tls = certificate.is_some();
        let counts = appliance.business_connections.clone();
        let listener = HttpListener::open("business", door.listen, certificate, door.limits, counts)
            .await
            .with_context(|| {
                format!("[business] listen = \"{}\": is another program using it?", door.listen)
            })?;
        let address = listener.address();
        tokio::spawn(listener.serve(business.router(), Arc::new(BusinessCallers)));
        tracing::info!(%address, tls, "business systems");
    }
    for gateway in &config.gateways {
        links.set_gateway(gateway.links.clone())?;
    }
    for peer in &config.peers {
        links.set_peer(peer.links.clone())?;
    }
    for listener in &config.listeners {
        let address = links.listen(listener.clone()).await?;
        tracing::info!(listener = listener.name, %address, "listening");
    }
    for listener in &config.sgip_listeners {
        let address = links.listen_sgip(listener.clone()).await?;
        tracing::info!(listener = listener.name, %address, "listening");
    }
    // Not before: what is set up here would undo a change.
    appliance.configuring.open(live)?;
    appliance.ready.store(true, Relaxed);
    tracing::info!(ms = appliance.started.elapsed().as_millis(), "ready");
    memory::give_back();
    supervision::ready();
    let configuring = appliance.configuring.clone();
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            supervision::reloading();
            let configuring = configuring.clone();
            let _ = tokio::task::spawn_blocking(move || configuring.reload()).await;
            supervision::ready();
        }
    });
    tokio::select! {
        _ = terminate.recv() => tracing::info!(signal = "SIGTERM", "stopping"),
        _ = interrupt.recv() => tracing::info!(signal = "SIGINT", "stopping"),
    }
    Ok(())
}

/// What is looked at every second: the disk, the boards of peers and pools, the resolver, finished messages that are old enough.
struct Housekeeper {
    core: CoreHandle,
    store: Arc<Store>,
    boards: Arc<Boards>,
    data: std::path::PathBuf,
    tuning: Arc<Tuning>,
    /// It takes what has ended; without one, that is kept for a while.
    has_archive: bool,
    /// The time of the newest record at the start.
    newest_record: Option<Timestamp>,
    configuring: Arc<Configuring>,
    hooks: Arc<Hooks>,
}

impl Housekeeper {
    fn run(self, stop: &crossbeam_channel::Receiver<()>) {
        self.watch_disk();
        self.boards.publish();
        let mut turn = 0_u64;
        let mut resolver = self.hooks.state(Hook::Resolver).live.serial;
        while stop.recv_timeout(Duration::from_secs(1)) == Err(crossbeam_channel::RecvTimeoutError::Timeout) {
            turn += 1;
            self.watch_disk();
            self.boards.publish();
            self.watch_resolver(&mut resolver);
            self.configuring.tick();
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
                let watermark = self.tuning.watermark();
                let low = free < watermark;
                if counts.disk_low.swap(low, Relaxed) != low {
                    tracing::warn!(free, watermark, low, "free disk space");
                    self.core.push(vec![Event::Disk { low }]);
                }
            }
            Err(error) => tracing::warn!(%error, "disk not watched"),
        }
    }

    /// A resolver that was taken back by itself: the one in its place is asked what the faulty one put off. What admins
    /// change they tell the engine at once.
    fn watch_resolver(&self, known: &mut u64) {
        let live = self.hooks.state(Hook::Resolver).live;
        if std::mem::replace(known, live.serial) != live.serial && live.how == How::RolledBackByItself {
            self.core.push(vec![bound(&self.hooks), Event::ResolverExchanged]);
        }
    }

    fn trim(&self) {
        if self.has_archive {
            return;
        }
        let keep = u64::try_from(self.tuning.retention().as_millis()).unwrap_or(u64::MAX);
        let before = Timestamp(self.core.clock.for_ages(self.newest_record).0.saturating_sub(keep));
        // In steps, so that no commit of the core waits long for ours.
        while let Ok(count) = self.store.trim_finished(before, 2_000) {
            if count < 2_000 {
                return;
            }
        }
    }
}
