//! The plugin host at startup: its services, the plugins of the configuration, and the routing around them.

use crate::config::{Config, FirstBinding};
use crate::front_ends::CoreNetworks;
use crate::lookups::AppliedLookups;
use crate::routing::{ApplianceRouting, InboxRoutes};
use anyhow::{Context as _, Result};
use arc_swap::ArcSwap;
use capabilities::{
    ChainHlr, Counters, DnsClient, DurableCounters, Fetcher, FetcherOptions, Hlr, LogBudgets, RedbKvStore,
    TableHlr, TableStore, TableStoreOptions,
};
use codec::ContentCipher;
use engine::Event;
use hooks::{
    ActivationConditions, Binding, CallObserver, Hooks, HooksOptions, HostServices, PeerSnapshots,
    VersionInfo,
};
use model::{Directory, Hook, Leg, PeerId, PluginVersion, RoutingDecision, Timestamp, Verdict};
use std::path::Path;
use std::sync::Arc;

/// Opens the plugins' key-value store.
pub(crate) fn values(config: &Config) -> Result<Arc<RedbKvStore>> {
    let plugins = config.appliance.data.join("plugins");
    std::fs::create_dir_all(&plugins).with_context(|| format!("creating {}", plugins.display()))?;
    Ok(Arc::new(RedbKvStore::open(&plugins.join("kv.redb"))?))
}

/// Creates the services that the host provides to plugins.
pub(crate) fn host_services(
    config: &Config,
    runtime: &tokio::runtime::Runtime,
    networks: &CoreNetworks,
    values: Arc<RedbKvStore>,
    durable_counters: Arc<DurableCounters>,
) -> Result<HostServices> {
    let tables =
        Arc::new(TableStore::open(&config.appliance.data.join("tables"), TableStoreOptions::default())?);
    // HLRs are queried first; the table serves networks without an HLR. A single HLR is authoritative; with several
    // networks, no HLR knows all subscribers, so none is.
    let registers: Vec<Arc<dyn Hlr>> = networks.all().filter_map(|network| network.hlr()).collect();
    let alone = registers.len() == 1;
    let registers = registers.into_iter().fold(ChainHlr::new(), |chain, register| {
        if alone { chain.authority(register) } else { chain.hint(register) }
    });
    let registers = registers.authority(Arc::new(TableHlr::new(tables.clone())));
    Ok(HostServices {
        peer_snapshots: Arc::new(PeerSnapshots::default()),
        pool_snapshots: Arc::default(),
        quality: Arc::default(),
        account_attributes: Arc::default(),
        peer_secrets: Arc::default(),
        tenant_lines: Arc::default(),
        decode_text: ports::text::characters,
        replace_text: ports::text::replace,
        counters: Arc::new(Counters::default()),
        durable_counters,
        kv_store: values,
        fetch: Arc::new(Fetcher::new(runtime.handle().clone(), &FetcherOptions::default())?),
        hlr: Arc::new(registers),
        dns: Arc::new(DnsClient::new()),
        tables,
        log_budgets: LogBudgets::default(),
    })
}

/// The event that tells the engine which hooks are bound.
pub(crate) fn hooks_bound_event(hooks: &Hooks) -> Event {
    Event::HooksChanged {
        resolver: hooks.is_bound(Hook::Resolver),
        delivery_policy: hooks.is_bound(Hook::DeliveryPolicy),
        receipt: hooks.is_bound(Hook::Receipt),
        biller: hooks.is_bound(Hook::Biller),
    }
}

/// Opens the plugin host with the bound plugins, and the routing rules around it.
pub(crate) fn routing(
    config: &Config,
    directory: &Arc<ArcSwap<Directory>>,
    host_services: HostServices,
    cipher: Option<Arc<dyn ContentCipher>>,
    call_observer: Option<Arc<dyn CallObserver>>,
) -> Result<ApplianceRouting> {
    let names = directory.load();
    // By default, a single core network is the home network.
    let home = match (&config.home.peer, &config.networks[..]) {
        (Some(peer), _) => names.id(peer),
        (None, [network]) => Some(network.links.peer),
        (None, _) => None,
    };
    let account_attributes = host_services.account_attributes.clone();
    account_attributes.publish(config.account_attributes());
    let peer_secrets = host_services.peer_secrets.clone();
    peer_secrets.publish(config.peer_secrets());
    let tenant_lines = host_services.tenant_lines.clone();
    tenant_lines.publish(&config.tenant_tree(), |account| names.id(account));
    let options = HooksOptions { cipher, call_observer, ..hooks_options(config, home) };
    let folder = config.appliance.data.join("plugins");
    let hooks = Hooks::open(&folder, options, directory.clone(), host_services)?;
    for hook in Hook::ALL {
        let configured: Vec<&FirstBinding> =
            config.first_bindings.iter().filter(|first_binding| first_binding.hook == hook).collect();
        if hooks.history(hook).is_empty() {
            activate_configured(hook, &configured, &hooks)?;
        }
    }
    let static_route = config.router.static_peer.as_deref().and_then(|peer| names.id(peer)).map(|peer| {
        let by = Arc::new(PluginVersion { plugin: "native".to_owned(), version: String::new() });
        RoutingDecision::new(Verdict::Forward(vec![Leg::to(peer)]), by)
    });
    if static_route.is_none() && !hooks.is_bound(Hook::Router) {
        tracing::warn!("no router bound, all submissions are refused");
    }
    let shell = config.shell.as_ref().map(|shell| &shell.options);
    let peer_roles = Arc::new(ArcSwap::from_pointee(config.peer_roles(&names)));
    let plan = config.default_plan().cloned();
    let directory = directory.clone();
    let inboxes = shell.map(InboxRoutes::new);
    let lookups = AppliedLookups::new(config.lookup.cache(), config.lookup.on_failure);
    Ok(ApplianceRouting {
        hooks,
        lookups,
        static_route,
        peer_roles,
        account_attributes,
        peer_secrets,
        tenant_lines,
        plan,
        home,
        directory,
        inboxes,
    })
}

/// Options of the plugin host. `home`: the peer of the home network.
pub(crate) fn hooks_options(config: &Config, home: Option<PeerId>) -> HooksOptions {
    let plugins = &config.plugins;
    HooksOptions {
        memory: plugins.memory,
        instances: plugins.instances,
        hold_for: config.router.hold,
        home,
        trust: plugins.trust(),
        // Without an archive, nothing can be replayed.
        record: config.archive.url.is_some(),
        profiler: None,
        call_observer: None,
        cipher: None,
    }
}

/// Compiles the plugins that this node would bind, so that a take-over, during which messages wait, is fast.
pub(crate) fn compile_plugins(config: &Config) -> Result<()> {
    let configured =
        config.first_bindings.iter().filter_map(|first_binding| first_binding.component.as_deref());
    let components = configured.map(read_component).collect::<Result<Vec<_>>>()?;
    Hooks::compile_ahead(&config.appliance.data.join("plugins"), &hooks_options(config, None), &components)?;
    Ok(())
}

fn read_component(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("reading {}", path.display()))
}

/// Uploads the component of an initial binding.
fn upload_configured(first_binding: &FirstBinding, hooks: &Hooks) -> Result<Option<VersionInfo>> {
    let Some(component) = &first_binding.component else { return Ok(None) };
    let octets = read_component(component)?;
    let signature = std::fs::read_to_string(component.with_extension("wasm.sig")).ok();
    Ok(Some(hooks.upload(&first_binding.binding.plugin, &octets, signature.as_deref())?))
}

/// Activates the initial bindings of a hook at the first start. Later bindings are set over the API.
fn activate_configured(hook: Hook, configured: &[&FirstBinding], hooks: &Hooks) -> Result<()> {
    let mut bindings = Vec::new();
    for first_binding in configured {
        let Some(info) = upload_configured(first_binding, hooks)? else { continue };
        let policy = match &first_binding.policy {
            Some(path) => {
                std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?
            }
            None => String::new(),
        };
        bindings.push(Binding { version: info.version, policy, ..first_binding.binding.clone() });
    }
    if bindings.is_empty() {
        return Ok(());
    }
    // At the first start, peers and tables may be missing. This is logged, and shown until they exist.
    let now = Timestamp::now();
    if let Err(error) = hooks.activate(hook, now, bindings.clone(), None) {
        hooks.activate(hook, now, bindings.clone(), ActivationConditions { expected: None, force: true })?;
        tracing::warn!(hook = hook.name(), %error, "plugin bound with missing peers or tables");
    }
    for binding in bindings {
        tracing::info!(
            hook = hook.name(),
            plugin = binding.plugin,
            version = binding.version,
            "plugin bound"
        );
    }
    Ok(())
}
