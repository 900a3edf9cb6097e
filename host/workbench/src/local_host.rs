//! The local plugin host: the appliance's own host, with the services of a case in place of the appliance's services.

use crate::WorkbenchError;
use crate::build::debug_info_path;
use crate::case_conversion::CaseConversion;
use crate::case_lookup::FixedDns;
use crate::case_peer::CaseSubmission;
use crate::case_quality;
use crate::plugin_host::{
    CaseAnswer, CasePoolState, CaseQuestion, CaseSetup, CaseSubscriber, HttpExchange, HttpFailure, PLUGIN,
    PluginHost,
};
use api::InstanceUse;
use arc_swap::ArcSwap;
use capabilities::{
    Counters, DurableCounters, Fetch, FetchFailure, Hlr, HlrFailure, HlrSubscriber, QualityAccess,
};
use capabilities::{
    FetchRequest, FetchResponse, KvStore as _, LogBudgets, MemoryKvStore, TableStore, TableStoreOptions,
};
use hooks::{
    AccountAttributes, Binding, DryRun, HookError, Hooks, HooksOptions, HostServices, PeerSnapshots,
    PoolSnapshots, Profile, Profiler,
};
use model::{Directory, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The name of the peer that serves the operator's own subscribers; routers cannot use it.
pub(crate) const HOME_PEER: &str = "(home)";

/// A component in the local host.
pub(crate) struct LocalHost {
    folder: TempDir,
    version: String,
    hook: model::Hook,
    debug_info: Option<Arc<Vec<u8>>>,
    profiler: Option<Arc<Profiler>>,
}

/// A started plugin with the setup of a case, in its own host. Its instances, counters and values keep their state from one
/// question to the next.
pub(crate) struct Session {
    directory: Directory,
    now: Timestamp,
    dry_run: DryRun,
    attributes: Arc<AccountAttributes>,
    debug_info: Option<Arc<Vec<u8>>>,
    /// Keeps the host's clock for deadlines running.
    _hooks: Arc<Hooks>,
    _tables: TempDir,
}

impl Session {
    /// Asks a question. Its peers must be among the names with which the session was started.
    pub(crate) fn ask(&self, question: &CaseQuestion) -> CaseAnswer {
        let (CaseQuestion::Screen(message)
        | CaseQuestion::Submit(CaseSubmission { message, .. })
        | CaseQuestion::Route(message)
        | CaseQuestion::Next(message, _)
        | CaseQuestion::Receipt(message, ..)
        | CaseQuestion::Price(message, _)) = question
        else {
            return self.ask_as_is(question);
        };
        let origin = self.directory.id(&message.origin);
        self.attributes
            .publish(origin.map(|origin| (origin, message.attributes.clone())).into_iter().collect());
        self.ask_as_is(question)
    }

    fn ask_as_is(&self, question: &CaseQuestion) -> CaseAnswer {
        let debug_info = self.debug_info.as_deref().map(Vec::as_slice);
        let conversion = CaseConversion { directory: &self.directory, now: self.now, debug_info };
        conversion.ask_or_fault(&self.dry_run, question)
    }
}

impl LocalHost {
    /// Loads a component, with the same checks as an upload.
    pub(crate) fn new(component: &[u8]) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (hooks, ..) = open(
            folder.path(),
            &folder.path().join("tables"),
            &CaseSetup::default(),
            &[],
            Arc::default(),
            None,
        )?;
        let info = hooks.upload(PLUGIN, component, None).map_err(|error| error.to_string())?;
        Ok(Self { folder, version: info.version, hook: info.hook, debug_info: None, profiler: None })
    }

    /// Loads a component's file, with the debug information in the same folder if it belongs to the component.
    pub(crate) fn read(path: &Path) -> Result<Self, WorkbenchError> {
        let octets = std::fs::read(path).map_err(WorkbenchError::file(path))?;
        let host =
            Self::new(&octets).map_err(|why| WorkbenchError::Rejected { path: path.to_owned(), why })?;
        let debug_info = std::fs::read(debug_info_path(path)).ok();
        let is_own = |debug_info: &Vec<u8>| hooks::strip_debug_info(debug_info).as_deref() == Some(&octets);
        Ok(Self { debug_info: debug_info.filter(is_own).map(Arc::new), ..host })
    }

    /// Samples the calls of all sessions.
    pub(crate) fn with_profiler(self, profiler: Arc<Profiler>) -> Self {
        Self { profiler: Some(profiler), ..self }
    }

    /// The profile so far.
    pub(crate) fn profile(&self) -> Option<Profile> {
        let debug_info = self.debug_info.as_deref().map(Vec::as_slice);
        self.profiler.as_ref().map(|profiler| profiler.profile(debug_info))
    }

    /// The hook that the component serves.
    pub(crate) fn hook(&self) -> model::Hook {
        self.hook
    }

    /// Starts the component with a setup; `names` are the accounts and peers that questions may name in addition to the
    /// setup's peers. The inner error is the plugin's answer to its policy document: a refusal or a fault.
    pub(crate) fn start(
        &self,
        setup: &CaseSetup,
        names: &[&str],
        instance: InstanceUse,
    ) -> Result<Result<Session, CaseAnswer>, String> {
        // Each session has its own tables.
        let tables = tempfile::tempdir_in(self.folder.path()).map_err(|error| error.to_string())?;
        let attributes = Arc::<AccountAttributes>::default();
        let (hooks, directory, _observed) =
            open(self.folder.path(), tables.path(), setup, names, attributes.clone(), self.profiler.clone())?;
        let mut binding = Binding::new(PLUGIN, &self.version, &setup.policy);
        binding.instance = instance;
        if self.hook == model::Hook::Peer {
            // It serves every peer of the case.
            let served = names.iter().copied().chain(setup.peers.keys().map(String::as_str));
            let served: BTreeSet<&str> = served.chain([HOME_PEER]).collect();
            binding.peers = served.into_iter().map(str::to_owned).collect();
        }
        binding.grants = hooks::Grants {
            http: setup.grants.http.clone(),
            kv: setup.grants.kv,
            tables: setup.grants.tables.clone(),
            hlr: setup.grants.hlr,
            dns: setup.grants.dns.clone(),
            random: setup.grants.random,
            counters: setup.grants.counters.clone(),
            quality: setup.grants.quality.clone(),
            ..hooks::Grants::default()
        };
        binding.memory = setup.memory.unwrap_or(binding.memory);
        binding.deadline = setup.deadline_ms.map_or(binding.deadline, Duration::from_millis);
        match hooks.dry_run(self.hook, &[binding]) {
            Ok(dry_run) => {
                let now = Timestamp(setup.now);
                let debug_info = self.debug_info.clone();
                Ok(Ok(Session {
                    directory,
                    now,
                    dry_run,
                    attributes,
                    debug_info,
                    _hooks: hooks,
                    _tables: tables,
                }))
            }
            Err(HookError::Refused { why, .. }) => Ok(Err(CaseAnswer::Refused(why))),
            Err(error @ HookError::Faulty { .. }) => Ok(Err(CaseAnswer::Fault(error.to_string()))),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Opens the host with the setup of a case and the names in its questions.
fn open(
    folder: &Path,
    tables: &Path,
    setup: &CaseSetup,
    names: &[&str],
    attributes: Arc<AccountAttributes>,
    profiler: Option<Arc<Profiler>>,
) -> Result<(Arc<Hooks>, Directory, QualityAccess), String> {
    let mut directory = Directory::new();
    let peers = setup.peers.keys().map(String::as_str);
    for name in std::iter::once(HOME_PEER).chain(peers).chain(names.iter().copied()) {
        directory.intern(name).map_err(|error| error.to_string())?;
    }
    let options =
        HooksOptions { instances: 8, home: directory.id(HOME_PEER), profiler, ..HooksOptions::default() };
    let services = services(tables, setup, attributes)?;
    let secrets = names.iter().map(|name| ((*name).to_owned(), setup.secrets.clone()));
    services.peer_secrets.publish(secrets.collect());
    let observed = case_quality::observe(&services.quality, setup)?;
    let shared = Arc::new(ArcSwap::from_pointee(directory.clone()));
    let hooks = Hooks::open(&folder.join("plugins"), options, shared, services);
    Ok((hooks.map_err(|error| error.to_string())?, directory, observed))
}

/// Accounts and peers of a question; on an appliance the configuration has them.
pub(crate) fn peer_names(question: &CaseQuestion) -> Vec<&str> {
    match question {
        CaseQuestion::Configure
        | CaseQuestion::LookUp(_)
        | CaseQuestion::Resolve(_)
        | CaseQuestion::Settle(_)
        | CaseQuestion::Read(_)
        | CaseQuestion::Reply(_) => Vec::new(),
        CaseQuestion::Screen(message) | CaseQuestion::Route(message) | CaseQuestion::Price(message, None) => {
            vec![&message.origin]
        }
        CaseQuestion::Price(message, Some(leg)) => vec![&message.origin, &leg.peer],
        CaseQuestion::Next(message, attempt) => vec![&message.origin, &attempt.peer],
        CaseQuestion::Submit(submission) => vec![&submission.message.origin, &submission.peer],
        CaseQuestion::Callback(callback) => vec![&callback.peer],
        CaseQuestion::Receipt(message, submission, _) => vec![&message.origin, &submission.peer],
    }
}

fn services(
    tables: &Path,
    setup: &CaseSetup,
    attributes: Arc<AccountAttributes>,
) -> Result<HostServices, String> {
    let tables = TableStore::open(tables, TableStoreOptions::default()).map_err(|error| error.to_string())?;
    for (name, table) in &setup.tables {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let rows = table.rows.iter().map(|(key, value)| format!("{},{}\n", quoted(key), quoted(value)));
        let csv: String = rows.collect();
        tables.put(name, table.kind, csv.as_bytes()).map_err(|error| format!("table {name:?}: {error}"))?;
    }
    let peer_snapshots = PeerSnapshots::default();
    let states = setup
        .peers
        .iter()
        .map(|(name, peer)| (name.clone(), hooks::PeerState { links: peer.links, queued: peer.queued }));
    peer_snapshots.publish(states.collect());
    let pool_snapshots = PoolSnapshots::default();
    let states = setup.pools.iter().map(|(name, pool)| {
        let CasePoolState { ready, busy, down, total } = *pool;
        (name.clone(), hooks::PoolState { ready, busy, down, total })
    });
    pool_snapshots.publish(states.collect());
    let counters = Counters::default();
    // A dry run has its own counters, in this space.
    let space = counters.space(&format!("{PLUGIN}#shadow"));
    let durable_counters = DurableCounters::default();
    for preset in &setup.counters {
        if let Some(grant) = setup.grants.counters.iter().find(|grant| grant.name == preset.name) {
            let counter = durable_counters.counter(PLUGIN, grant).map_err(|error| error.to_string())?;
            counter.add(&preset.key, preset.amount, Timestamp(setup.now));
            continue;
        }
        let window = Duration::from_millis(preset.window_ms);
        space.add(&preset.name, &preset.key, preset.amount, window, Timestamp(setup.now));
    }
    let kv_store = MemoryKvStore::default();
    for (key, value) in &setup.kv {
        kv_store
            .set(PLUGIN, key, value.as_bytes(), u64::MAX)
            .map_err(|error| format!("kv {key:?}: {error}"))?;
    }
    Ok(HostServices {
        peer_snapshots: Arc::new(peer_snapshots),
        pool_snapshots: Arc::new(pool_snapshots),
        quality: Arc::default(),
        account_attributes: attributes,
        peer_secrets: Arc::default(),
        tenant_lines: Arc::default(),
        decode_text: ports::text::characters,
        replace_text: ports::text::replace,
        counters: Arc::new(counters),
        durable_counters: Arc::new(durable_counters),
        kv_store: Arc::new(kv_store),
        fetch: Arc::new(FixedHttp(setup.http.clone())),
        tables: Arc::new(tables),
        dns: Arc::new(FixedDns(setup.dns.clone())),
        hlr: Arc::new(FixedHlr(setup.hlr.clone())),
        log_budgets: LogBudgets::default(),
    })
}

/// HTTP exchanges of a case.
struct FixedHttp(Vec<HttpExchange>);

impl Fetch for FixedHttp {
    fn fetch(
        &self,
        _plugin: &str,
        grants: &capabilities::HttpGrants,
        request: FetchRequest,
    ) -> Result<FetchResponse, FetchFailure> {
        grants.check(&request)?;
        let has = |name: &str, value: &str| {
            request.headers.iter().any(|(own, held)| own.eq_ignore_ascii_case(name) && held == value)
        };
        let found = self.0.iter().find(|one| {
            one.method == request.method
                && one.url == request.url
                && one.request_body.as_ref().is_none_or(|body| body.as_bytes() == request.body)
                && one.request_headers.iter().all(|(name, value)| has(name, value))
        });
        let Some(found) = found else {
            let (method, url) = (request.method, request.url);
            let body = String::from_utf8_lossy(&request.body);
            let what = format!("no [[given.http]] answers {method} {url} with {body:?}");
            return Err(FetchFailure::NotConnected(what));
        };
        match found.failure {
            Some(HttpFailure::TimedOut) => Err(FetchFailure::TimedOut),
            Some(HttpFailure::TooLarge) => Err(FetchFailure::TooLarge),
            Some(HttpFailure::Unreachable) => Err(FetchFailure::Unreachable("no connection".to_owned())),
            Some(HttpFailure::NotConnected) => Err(FetchFailure::NotConnected("no connection".to_owned())),
            None if found.body.len() > grants.limits.response => Err(FetchFailure::TooLarge),
            None => Ok(FetchResponse {
                status: found.status,
                headers: found.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
                body: found.body.clone().into_bytes(),
            }),
        }
    }
}

/// The home location register of a case.
struct FixedHlr(BTreeMap<String, CaseSubscriber>);

impl Hlr for FixedHlr {
    fn look_up(&self, msisdn: &str) -> Result<HlrSubscriber, HlrFailure> {
        let found = self.0.get(msisdn.strip_prefix('+').unwrap_or(msisdn)).ok_or(HlrFailure::Unknown)?;
        Ok(HlrSubscriber { imsi: found.imsi.clone(), serving: found.serving.clone() })
    }
}

impl PluginHost for LocalHost {
    fn ask(&self, setup: &CaseSetup, questions: &[CaseQuestion]) -> Result<CaseAnswer, String> {
        let names: Vec<&str> = questions.iter().flat_map(peer_names).collect();
        let session = match self.start(setup, &names, InstanceUse::Warm)? {
            Ok(session) => session,
            Err(answer) => return Ok(answer),
        };
        let mut answer = CaseAnswer::Configured;
        for question in questions {
            answer = session.ask(question);
        }
        Ok(answer)
    }
}
