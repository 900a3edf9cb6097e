//! Start-up, wiring, shutdown.

use crate::appliance::Switchyard;
use crate::archiving::{Finished, History};
use crate::config::Config;
use crate::config::plugins::HookSeed;
use crate::core_loop::{self, CoreHandle, Onlookers, wall};
use crate::opt_out::{Listening, OptOut};
use crate::pools::PoolDesk;
use crate::questions::Questions;
use crate::reading::Reading;
use crate::replays::Replays;
use crate::routing::{ByPlan, HouseRouting, Inboxes};
use anyhow::{Context as _, Result};
use arc_swap::ArcSwap;
use archive::Archive;
use business::Business;
use capabilities::{
    ChainHlr, Counters, Fetcher, FetcherOptions, Hlr, KeyValues, LogBudgets, Shelf, ShelfOptions, TableHlr,
};
use doors::{Core, Hub};
use engine::{Answer, Engine, Event, Output, Settings};
use gsm::Network;
use hooks::{Binding, Board, Hooks, HooksOptions, How, PeerState, PoolBoard, PoolState, Powers};
use links::{Links, LinksOptions};
use model::{DecidedBy, Directory, Hook, Leg, PoolAnswer, PoolRequest, Routed, Timestamp, Verdict};
use parking_lot::Mutex;
use shell::{AsTyped, Numbering, Ports, Shell, Watch};
use std::future::IntoFuture as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::{Store, StoreOptions};

/// Runs the appliance until it is told to stop.
pub(crate) fn serve(mut config: Config) -> Result<()> {
    let begun = Instant::now();
    std::fs::create_dir_all(&config.data).with_context(|| format!("making {}", config.data.display()))?;
    restrict(&config.data)?;
    let options = StoreOptions { cache: config.store_cache, ..StoreOptions::default() };
    let store = Arc::new(Store::open(&config.data.join("switchyard.redb"), options)?);
    let directory = store.directory(&config.names())?;
    config.number(&directory);
    let directory = Arc::new(ArcSwap::from_pointee(directory));

    let (seed, core) = core_loop::seed();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.link_threads)
        .thread_name("link")
        .enable_all()
        .build()
        .context("starting the network threads")?;
    let networks: Vec<_> = {
        let _inside = runtime.enter();
        config.networks.iter().map(|network| Arc::new(Network::new(network.links.clone()))).collect()
    };
    let powers = powers(&config, &runtime, &networks)?;
    let (board, pool_board) = (powers.board.clone(), powers.pools.clone());
    let shelf = powers.shelf.clone();
    let routing = Arc::new(routing(&config, &directory, powers)?);

    let recovering = Instant::now();
    let (engine, first, recovered) = recover(&config, &core, &store, &routing.hooks)?;
    let recovery_ms = u64::try_from(recovering.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(messages = recovered, ms = recovery_ms, "recovered");

    let options = LinksOptions {
        system_id: bytes::Bytes::from(config.name.clone().into_bytes()),
        ..LinksOptions::default()
    };
    let accounts = routing.accounts.clone();
    // The shell's users are subscribers: their STOP counts.
    let mut submitters = accounts.clone();
    submitters.retain(|peer| config.shell.as_ref().is_none_or(|shell| shell.options.peer != *peer));
    let doors_core: Arc<dyn Core> = Arc::new(Listening {
        core: core.clone(),
        opt_out: OptOut::new(&config.opt_out),
        accounts: submitters,
    });
    let links = Links::new(options, doors_core.clone(), routing.clone())
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
        Arc::new(Business::new(options, doors_core.clone(), routing.clone(), links.hub())?)
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
                accounts,
            };
            Some(archive.pump(Arc::new(source)).start()?)
        }
        None => None,
    };
    let appliance = Arc::new(Switchyard {
        name: config.name.clone(),
        started: begun,
        ready: AtomicBool::new(false),
        core: core.clone(),
        store: store.clone(),
        links: links.clone(),
        routing: routing.clone(),
        directory: directory.clone(),
        recovered,
        recovery_ms,
        business: business.clone(),
        networks: networks.clone(),
        shell: OnceLock::new(),
        history: history.clone(),
        pump: Mutex::new(pump),
        shelf,
        replays: Replays::new(archive.clone()),
        pools: pools.clone(),
        binding: Mutex::new(()),
    });
    let questions = Questions::start(&core, &routing, config.plugins.resolver_threads)?;
    let threads = core_loop::start(
        seed,
        (engine, first),
        store.clone(),
        links.hub(),
        questions,
        history.clone(),
        Onlookers { watch: watch.clone(), pools: pools.feed.clone() },
    )?;
    let keeper = Housekeeper {
        core: core.clone(),
        store: store.clone(),
        board,
        pool_board,
        directory: directory.clone(),
        data: config.data.clone(),
        watermark: config.watermark,
        retention: archive.is_none().then_some(config.retention),
        hooks: routing.hooks.clone(),
    };
    let (stop_keeping, kept) = crossbeam_channel::bounded::<()>(1);
    let keeping = std::thread::Builder::new().name("keeper".to_owned()).spawn(move || keeper.run(&kept))?;

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
                records: Arc::new(Reading { core: core.clone(), history }),
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
    // Not by way of the doors' core: it looks for keywords in messages, and there are none here.
    let redis = match &config.redis {
        Some(door) => Some(pools::Door::new(door.options.clone(), Arc::new(core.clone()), links.hub())?),
        None => None,
    };
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
        run(&config, &links, &business, &appliance).await
    });
    appliance.ready.store(false, Relaxed);
    appliance.replays.end_all();
    pools.feed.close();
    core.push_drain();
    let left = runtime.block_on(async {
        let networks = async {
            for network in &networks {
                network.shutdown(config.drain).await;
            }
        };
        let shell = async {
            if let Some(shell) = &shell {
                shell.shutdown(config.drain).await;
            }
        };
        let redis = async {
            if let Some(door) = &redis {
                door.shutdown(config.drain).await;
            }
        };
        let links = links.shutdown(config.drain);
        let (left, (), (), (), ()) =
            tokio::join!(links, business.shutdown(config.drain), networks, shell, redis);
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
    tracing::info!(
        waiting = waiting.unwrap_or(0),
        links_cut = left.links.len(),
        unanswered = left.unanswered,
        owed = left.owed,
        "stopped; what waits is on disk"
    );
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
fn restrict(folder: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
        .with_context(|| format!("keeping {} to ourselves", folder.display()))
}

impl CoreHandle {
    fn push_drain(&self) {
        self.push(vec![Event::Drain]);
    }
}

/// What plugins are given by the house.
fn powers(config: &Config, runtime: &tokio::runtime::Runtime, networks: &[Arc<Network>]) -> Result<Powers> {
    let plugins = config.data.join("plugins");
    std::fs::create_dir_all(&plugins).with_context(|| format!("making {}", plugins.display()))?;
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
        values: Arc::new(KeyValues::open(&plugins.join("kv.redb"))?),
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
    store: &Store,
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
    store.recover_remembered(|found| engine.recover_remembered(now, found))?;
    let recovery = store.recover(|message| engine.recover(now, message, &mut out))?;
    engine.recovered(recovery.next_id, recovery.next_handed_seq, &recovery.rows, &mut out);
    Ok((engine, out, recovery.messages))
}

fn routing(config: &Config, directory: &Arc<ArcSwap<Directory>>, powers: Powers) -> Result<HouseRouting> {
    let names = directory.load();
    let peers = config.peers.iter().map(|peer| (peer.links.peer, &peer.default_account));
    let gateways = config.gateways.iter().map(|gateway| (gateway.links.peer, &gateway.default_account));
    let networks = config.networks.iter().map(|network| (network.links.peer, &network.default_account));
    let defaults = peers
        .chain(gateways)
        .chain(networks)
        .filter_map(|(peer, account)| Some((peer, names.id(account.as_deref()?)?)))
        .collect();
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
    let accounts = config.accounts.iter().map(|account| account.links.peer);
    let accounts = accounts.chain(shell.map(|shell| shell.peer)).collect();
    let plan = config.numbering.as_ref().and_then(|plans| plans.get(plans.default_name())).cloned();
    let directory = directory.clone();
    let inboxes = shell.map(Inboxes::new);
    Ok(HouseRouting { hooks, constant, defaults, plan, home, directory, inboxes, accounts })
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
    hooks.activate(seed.hook, wall(), vec![binding], None)?;
    tracing::info!(hook = seed.hook.name(), plugin = info.plugin, version = info.version, "plugin bound");
    Ok(())
}

async fn run(config: &Config, links: &Links, business: &Business, appliance: &Arc<Switchyard>) -> Result<()> {
    let token = admin::Token::load_or_make(&config.token_file)?;
    let http = tokio::net::TcpListener::bind(config.http)
        .await
        .with_context(|| format!("[http] listen = \"{}\": is another program using it?", config.http))?;
    let address = http.local_addr()?;
    let served = axum::serve(http, admin::router(appliance.clone(), token)).into_future();
    tokio::spawn(served);
    tracing::info!(%address, "http");

    for account in &config.accounts {
        links.set_account(account.links.clone())?;
        if let Some(options) = &account.business {
            business.set_account(options.clone())?;
        }
    }
    if let Some(door) = &config.business {
        let socket = tokio::net::TcpListener::bind(door.listen).await.with_context(|| {
            format!("[business] listen = \"{}\": is another program using it?", door.listen)
        })?;
        let address = socket.local_addr()?;
        let calls = business.router().into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(axum::serve(socket, calls).into_future());
        tracing::info!(%address, "business systems");
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
    appliance.ready.store(true, Relaxed);
    tracing::info!(ms = appliance.started.elapsed().as_millis(), "ready");
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => tracing::info!(signal = "SIGTERM", "stopping"),
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            tracing::info!(signal = "SIGINT", "stopping");
        }
    }
    Ok(())
}

/// What is looked at every second: the disk, the boards of peers and pools, the resolver, finished messages that are old enough.
struct Housekeeper {
    core: CoreHandle,
    store: Arc<Store>,
    board: Arc<Board>,
    pool_board: Arc<PoolBoard>,
    directory: Arc<ArcSwap<Directory>>,
    data: std::path::PathBuf,
    watermark: u64,
    /// `None`: the archive takes what has ended.
    retention: Option<Duration>,
    hooks: Arc<Hooks>,
}

impl Housekeeper {
    fn run(self, stop: &crossbeam_channel::Receiver<()>) {
        self.watch_disk();
        self.publish();
        let mut turn = 0_u64;
        let mut resolver = self.hooks.state(Hook::Resolver).live.serial;
        while stop.recv_timeout(Duration::from_secs(1)) == Err(crossbeam_channel::RecvTimeoutError::Timeout) {
            turn += 1;
            self.watch_disk();
            self.publish();
            self.watch_resolver(&mut resolver);
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
                let low = free < self.watermark;
                if counts.disk_low.swap(low, Relaxed) != low {
                    tracing::warn!(free, watermark = self.watermark, low, "free disk space");
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

    fn publish(&self) {
        let Some((peers, pools)) = self.core.look(|engine, _| (engine.peers(), engine.pool_counts())) else {
            return;
        };
        let names = self.directory.load();
        let states = peers.into_iter().map(|peer| {
            let links = u32::try_from(peer.links.len()).unwrap_or(u32::MAX);
            (names.name(peer.peer).to_string(), PeerState { links, queued: peer.queued })
        });
        self.board.publish(states.collect());
        let pools = pools.into_iter().map(|(name, ready, counts)| {
            let state = PoolState {
                ready: ready as u64,
                busy: (counts.busy_up + counts.busy_down) as u64,
                down: (counts.idle_down + counts.busy_down) as u64,
                total: counts.total() as u64,
            };
            (name.to_string(), state)
        });
        self.pool_board.publish(pools.collect());
    }

    fn trim(&self) {
        let Some(retention) = self.retention else { return };
        let keep = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
        let before = Timestamp(wall().0.saturating_sub(keep));
        // In steps, so that no commit of the core waits long for ours.
        while let Ok(count) = self.store.trim_finished(before, 2_000) {
            if count < 2_000 {
                return;
            }
        }
    }
}
