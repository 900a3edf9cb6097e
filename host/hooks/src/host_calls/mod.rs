//! Host calls of plugins: one module per WIT interface, with its limits.

mod body;
mod clock;
mod counters;
mod details;
pub(crate) mod dns;
mod fault;
mod hlr;
mod host_interface;
pub(crate) mod http;
mod kv;
pub(crate) mod log;
pub(crate) mod numbers;
pub(crate) mod peers;
pub(crate) mod previous;
pub(crate) mod quality;
mod recorded_answers;
mod secrets;
pub(crate) mod tables;
mod wasi_host;

pub use details::AccountAttributes;
pub(crate) use details::CurrentMessage;
pub(crate) use host_interface::HostCallCounts;
pub use host_interface::HostInterface;
pub use secrets::PeerSecrets;

use crate::HookError;
use crate::host_call_log::HostCallLog;
use crate::memory_limits::MemoryLimits;
use crate::policy_reference::{self, PolicyReference};
use crate::tenant_bindings::plugin_space;
use crate::tenant_lines::TenantLines;
use api::{Binding, PolicyReferenceKind};
use capabilities::{
    CounterSpace, Counters, Dns, DurableCounter, DurableCounters, Fetch, FetchLimits, Hlr, HttpGrant,
    KvStore, LogBudget, LogBudgets, PeerQuality, QualityAccess, TableStore,
};
use model::{SenderRequest, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The services behind the host calls. A test harness supplies its own.
pub struct HostServices {
    /// Snapshots of the peers.
    pub peer_snapshots: Arc<peers::PeerSnapshots>,
    /// The attributes of accounts.
    pub account_attributes: Arc<AccountAttributes>,
    /// The secrets of peers that plugins serve.
    pub peer_secrets: Arc<PeerSecrets>,
    /// The tenants of accounts.
    pub tenant_lines: Arc<TenantLines>,
    /// The characters of a text without its header; `None` for 8-bit data.
    pub decode_text: fn(&model::Text) -> Option<String>,
    /// A text with other characters and the same header. The error is a predicate: "has characters that …".
    pub replace_text: fn(&model::Text, &str) -> Result<model::Text, String>,
    /// Snapshots of the number pools.
    pub pool_snapshots: Arc<numbers::PoolSnapshots>,
    /// Observations of peers.
    pub quality: Arc<PeerQuality>,
    /// Counters over sliding windows.
    pub counters: Arc<Counters>,
    /// Durable counters over calendar periods, as named in bindings.
    pub durable_counters: Arc<DurableCounters>,
    /// The plugins' durable key-value store.
    pub kv_store: Arc<dyn KvStore>,
    /// The HTTP client.
    pub fetch: Arc<dyn Fetch>,
    /// The appliance's tables.
    pub tables: Arc<TableStore>,
    /// The home location register.
    pub hlr: Arc<dyn Hlr>,
    /// The domain name system.
    pub dns: Arc<dyn Dns>,
    /// Log budgets of the plugins.
    pub log_budgets: LogBudgets,
}

/// The purpose of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Serves traffic. Its policy must name existing tables.
    Serve,
    /// Serves traffic without checks: after a restart, a rollback or a forced activation. A missing table is empty for
    /// it.
    ServeUnchecked,
    /// Serves no traffic. Its counters and values are isolated.
    Isolated,
    /// Serves no traffic, and is dropped after a few questions. Its counters and values are isolated, also from the counters
    /// and values of a candidate in shadow.
    DryRun,
}

/// The shared context of all instances of one generation.
pub(crate) struct GenerationContext {
    pub(crate) plugin: Arc<str>,
    pub(crate) version: Arc<str>,
    /// The name of its counters, values and requests: see [`plugin_space`].
    pub(crate) space: Arc<str>,
    /// The peers that a tenant's binding may use; `None`: all.
    peers: Option<BTreeSet<String>>,
    /// The counters of the plugin; a candidate in shadow has its own.
    pub(crate) counter_space: Arc<CounterSpace>,
    /// The durable counters of the binding; on trial, with an overlay that discards increments.
    pub(crate) durable_counters: Vec<Arc<DurableCounter>>,
    /// The observations of peers that the binding may see.
    pub(crate) quality: QualityAccess,
    pub(crate) grants: crate::Grants,
    /// The HTTP grants.
    pub(crate) http_grants: capabilities::HttpGrants,
    /// The key-value store of the plugin; on trial, with an overlay.
    pub(crate) kv_store: Arc<dyn KvStore>,
    pub(crate) log_budget: Arc<LogBudget>,
    /// The generation has served before with these tables, so a missing table is not an error.
    pub(crate) allow_missing_tables: bool,
}

/// The counter space of a plugin on trial.
pub(crate) fn shadow_counter_space(plugin: &str) -> String {
    format!("{plugin}#shadow")
}

impl GenerationContext {
    pub(crate) fn new(
        binding: &Binding,
        purpose: Purpose,
        services: &HostServices,
    ) -> Result<Self, HookError> {
        let is_isolated = matches!(purpose, Purpose::Isolated | Purpose::DryRun);
        let grants = &binding.grants;
        let http_grants = grants
            .http
            .iter()
            .map(|prefix| HttpGrant::parse(prefix).map_err(|error| HookError::BadGrant(error.to_string())))
            .collect::<Result<Vec<_>, _>>()?;
        let limits = FetchLimits {
            timeout: Duration::from_millis(grants.http_timeout_ms),
            response: grants.http_answer,
            ..FetchLimits::default()
        };
        let space = plugin_space(binding);
        let bad_counter = |error: capabilities::Error| HookError::BadCounter(error.to_string());
        capabilities::check_counter_grants(&grants.counters).map_err(bad_counter)?;
        let durable_counters = grants.counters.iter().map(|grant| {
            let counter = services.durable_counters.counter(&space, grant)?;
            Ok(if is_isolated { counter.overlay() } else { counter })
        });
        let durable_counters = durable_counters.collect::<Result<Vec<_>, _>>().map_err(bad_counter)?;
        if let Some(grant) = &grants.dns {
            capabilities::check_dns_grant(grant).map_err(|error| HookError::BadGrant(error.to_string()))?;
        }
        if let Some(grant) = &grants.quality {
            capabilities::check_quality_grant(grant)
                .map_err(|error| HookError::BadQuality(error.to_string()))?;
        }
        let counter_space = match purpose {
            Purpose::DryRun => services.counters.private_space(),
            Purpose::Isolated => services.counters.space(&shadow_counter_space(&space)),
            Purpose::Serve | Purpose::ServeUnchecked => services.counters.space(&space),
        };
        let kv_store: Arc<dyn KvStore> = if is_isolated {
            Arc::new(kv::KvOverlay::new(services.kv_store.clone()))
        } else {
            services.kv_store.clone()
        };
        let log_budget = services.log_budgets.of(&space);
        Ok(Self {
            plugin: binding.plugin.as_str().into(),
            version: binding.version.as_str().into(),
            space: space.into(),
            peers: binding.tenant.as_ref().map(|_| binding.peers.iter().cloned().collect()),
            counter_space,
            durable_counters,
            quality: services.quality.access(grants.quality.as_ref()),
            grants: grants.clone(),
            http_grants: capabilities::HttpGrants { prefixes: http_grants, limits },
            kv_store,
            log_budget,
            allow_missing_tables: purpose == Purpose::ServeUnchecked,
        })
    }

    /// Whether the binding serves one tenant.
    pub(crate) fn serves_one_tenant(&self) -> bool {
        self.peers.is_some()
    }

    /// Whether the plugin may forward to a peer, and query its state. A tenant's plugin may use the peers of its binding.
    pub(crate) fn may_use_peer(&self, peer: &str) -> bool {
        self.peers.as_ref().is_none_or(|peers| peers.contains(peer))
    }

    /// Whether the log budget admits another line of this plugin.
    pub(crate) fn may_log(&self) -> bool {
        self.log_budget.take(Timestamp::now()).is_some()
    }
}

/// The host's state for one instance.
pub(crate) struct InstanceState {
    pub(crate) limits: MemoryLimits,
    /// Host calls since the generation last added them to its counts.
    pub(crate) host_calls: HostCallCounts,
    pub(crate) context: Arc<GenerationContext>,
    pub(crate) services: Arc<HostServices>,
    /// The time at which the call started.
    pub(crate) now: Timestamp,
    /// The destination of the current message, as digits.
    pub(crate) destination: tables::Digits,
    /// The current message.
    pub(crate) message: CurrentMessage,
    /// The last fault report of the call.
    pub(crate) report: Option<String>,
    /// The sender that the call requested for the message.
    pub(crate) sender: Option<Box<SenderRequest>>,
    pub(crate) tables: Arc<tables::PluginTables>,
    /// `configure` is running: tables may be filled and opened.
    pub(crate) configuring: bool,
    /// The references of the policy document that `configure` has looked up so far.
    pub(crate) references: BTreeSet<PolicyReference>,
    /// The state of the deadline check, once the first deadline has passed.
    pub(crate) last_check: Option<crate::deadline::DeadlineCheck>,
    /// Log lines that this call may still write.
    pub(crate) log_lines_left: u32,
    /// HTTP requests that this call may still make.
    pub(crate) fetches_left: u32,
    /// An HTTP request of the call may have reached another system.
    pub(crate) has_sent_request: bool,
    /// An HTTP request of the call may have reached another system, and its response did not arrive.
    pub(crate) has_unanswered_request: bool,
    /// The peer that the call is about, by its name.
    pub(crate) peer: Option<Box<str>>,
    /// DNS queries that this call may still make.
    pub(crate) dns_queries_left: u32,
    /// The call is on a hook worker: it may block on HTTP requests.
    pub(crate) may_fetch: bool,
    pub(crate) call_log: HostCallLog,
    /// The time that the call has waited in host functions, and the part of it for the disk.
    pub(crate) host_time: Duration,
    pub(crate) disk_wait: Duration,
    /// The overlay of the key-value store during a preview.
    pub(crate) kv_overlay: Option<Arc<dyn KvStore>>,
    /// State of the fixed random sequence, for guests without a grant for random numbers.
    pub(crate) random_sequence: model::Random,
}

impl InstanceState {
    pub(crate) fn new(
        limits: MemoryLimits,
        context: Arc<GenerationContext>,
        services: Arc<HostServices>,
        tables: Arc<tables::PluginTables>,
    ) -> Self {
        Self {
            limits,
            host_calls: HostCallCounts::default(),
            context,
            services,
            now: Timestamp(0),
            destination: tables::Digits::NONE,
            message: CurrentMessage::default(),
            report: None,
            sender: None,
            tables,
            configuring: true,
            references: BTreeSet::new(),
            last_check: None,
            log_lines_left: log::LINES,
            fetches_left: 0,
            has_sent_request: false,
            has_unanswered_request: false,
            peer: None,
            dns_queries_left: 0,
            may_fetch: false,
            // Nothing is counted until the plugin is configured.
            call_log: HostCallLog::Discard,
            host_time: Duration::ZERO,
            disk_wait: Duration::ZERO,
            kv_overlay: None,
            random_sequence: model::Random::new(0),
        }
    }
}

impl InstanceState {
    /// Records a name that the plugin looks up while it is configured.
    fn add_reference(&mut self, kind: PolicyReferenceKind, name: &str) {
        if self.configuring && self.references.len() < policy_reference::MAX_REFERENCES {
            self.references.insert(PolicyReference { kind, name: name.to_owned() });
        }
    }
}

impl crate::bindings::host::switchyard::hooks::types::Host for InstanceState {}
