//! The services behind the HTTP API.

use crate::archiving::ArchiveReader;
use crate::backup::{Backups, METRICS_FOLDER};
use crate::config_manager::{ConfigManager, TunableSettings};
use crate::conversion_log::ConversionLog;
use crate::core_handle::CoreHandle;
use crate::drain::Drain;
use crate::erasures::ErasureService;
use crate::error_causes::ErrorCauses;
use crate::event_sinks::EventSinkService;
use crate::followed_state::FollowedState;
use crate::front_ends::FrontEnds;
use crate::hook_service::HookService;
use crate::leading_node::LeadingNode;
use crate::ledger::LedgerService;
use crate::logging::LogControl;
use crate::message_service::MessageService;
use crate::operation::{ClusterService, OperationService};
use crate::partitions::PartitionMap;
use crate::peer_observer::PeerObserver;
use crate::peer_snapshots::PeerSnapshotPublisher;
use crate::pools::PoolService;
use crate::recent_traffic::TrafficService;
use crate::records::RecordService;
use crate::replays::Replays;
use crate::routing::ApplianceRouting;
use crate::status::StatusService;
use crate::subscribers::SubscriberService;
use crate::tenants::TenantService;
use crate::testing::TestingService;
use crate::traffic_flows::TrafficFlows;
use admin::{ApiServices, OperateClient};
use arc_swap::ArcSwap;
use archive::{Archive, RunningPump};
use capabilities::{DurableCounters, PeerQuality, TableStore};
use events::EventSinks;
use model::{Directory, TenantTree};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::Store;

/// The environment variable with the path of the operator's socket. The systemd unit of the appliance image sets it; it
/// is not a configuration key, because configurations are copied between appliances.
const OPERATE_VARIABLE: &str = "SWITCHYARD_OPERATE";

/// The parts of the daemon that its services use.
pub(crate) struct DaemonParts<'a> {
    pub(crate) name: &'a str,
    pub(crate) started: Instant,
    /// Number of recovered messages, and the duration of the recovery in milliseconds.
    pub(crate) recovered: (u64, u64),
    pub(crate) core: &'a CoreHandle,
    pub(crate) store: &'a Arc<Store>,
    pub(crate) directory: &'a Arc<ArcSwap<Directory>>,
    pub(crate) tenants: &'a Arc<ArcSwap<TenantTree>>,
    pub(crate) routing: &'a Arc<ApplianceRouting>,
    pub(crate) front_ends: &'a FrontEnds,
    pub(crate) causes: &'a ErrorCauses,
    pub(crate) archive: Option<Archive>,
    pub(crate) history: Option<ArchiveReader>,
    pub(crate) pump: Option<RunningPump>,
    pub(crate) event_sinks: Option<EventSinks>,
    pub(crate) tables: Arc<TableStore>,
    pub(crate) counters: Arc<DurableCounters>,
    pub(crate) quality: Arc<PeerQuality>,
    pub(crate) traffic: Arc<TrafficFlows>,
    pub(crate) peer_observer: PeerObserver,
    pub(crate) peer_snapshots: Arc<PeerSnapshotPublisher>,
    pub(crate) config_manager: Arc<ConfigManager>,
    pub(crate) tuning: Arc<TunableSettings>,
    pub(crate) logging: Arc<LogControl>,
    pub(crate) backups: Backups,
    /// Leadership of this node; `None` without a cluster.
    pub(crate) leading: Option<Arc<LeadingNode>>,
    /// Map of the partitions; `None` without a cluster.
    pub(crate) partitions: Option<Arc<PartitionMap>>,
}

/// Services of the daemon itself, and services of the API only.
pub(crate) struct DaemonServices {
    pub(crate) operation: Arc<OperationService>,
    pub(crate) status: Arc<StatusService>,
    pub(crate) config_manager: Arc<ConfigManager>,
    messages: Arc<MessageService>,
    hooks: Arc<HookService>,
    records: Arc<RecordService>,
    pools: Arc<PoolService>,
    event_sinks: Arc<EventSinkService>,
    traffic: Arc<TrafficService>,
    subscribers: Arc<SubscriberService>,
    ledger: Arc<LedgerService>,
    erasures: Arc<ErasureService>,
    testing: Arc<TestingService>,
    cluster: Arc<ClusterService>,
    backups: Arc<Backups>,
    tenants: Arc<TenantService>,
    tuning: Arc<TunableSettings>,
    operate_client: Arc<Option<OperateClient>>,
    core: CoreHandle,
    metrics_folder: PathBuf,
}

impl DaemonServices {
    pub(crate) fn new(parts: DaemonParts<'_>) -> Self {
        let (core, store, directory, routing) =
            (parts.core.clone(), parts.store.clone(), parts.directory.clone(), parts.routing.clone());
        let FrontEnds { links, business, networks, pools, redis, .. } = parts.front_ends;
        let registry = links.registry();
        let drain = Arc::new(Drain::new(core.clone(), links.clone()));
        let operation =
            Arc::new(OperationService::new(core.clone(), store.clone(), drain.clone(), parts.logging));
        let messages = Arc::new(MessageService {
            core: core.clone(),
            store: store.clone(),
            history: parts.history.clone(),
            directory: directory.clone(),
            causes: parts.causes.clone(),
            links: links.clone(),
            networks: networks.here.clone(),
            routing: routing.clone(),
            drain: drain.clone(),
        });
        let hooks = Arc::new(HookService {
            core: core.clone(),
            directory: directory.clone(),
            routing: routing.clone(),
            tables: parts.tables,
            counters: parts.counters,
            replays: Replays::new(parts.archive),
            peer_snapshots: parts.peer_snapshots,
            quality: parts.quality.clone(),
            peer_observer: parts.peer_observer.clone(),
            tuning: parts.tuning.clone(),
            source_readers: Default::default(),
            binding: Mutex::new(()),
        });
        let event_sinks = Arc::new(EventSinkService(parts.event_sinks));
        let erasures = Arc::new(ErasureService {
            core: core.clone(),
            registry: registry.clone(),
            store: store.clone(),
            history: parts.history.clone(),
            event_sinks: event_sinks.clone(),
            directory: directory.clone(),
        });
        let records = Arc::new(RecordService {
            core: core.clone(),
            store: store.clone(),
            history: parts.history,
            pump: Mutex::new(parts.pump),
            directory: directory.clone(),
            links: links.clone(),
            quality: parts.quality,
            peer_observer: parts.peer_observer,
            conversions: ConversionLog::default(),
        });
        let status = Arc::new(StatusService {
            name: parts.name.to_owned(),
            started: parts.started,
            recovered: parts.recovered.0,
            recovery_ms: parts.recovered.1,
            core: core.clone(),
            store: store.clone(),
            links: links.clone(),
            causes: parts.causes.clone(),
            business: business.clone(),
            networks: networks.here.clone(),
            shell: OnceLock::new(),
            redis: redis.clone(),
            http_connections: Arc::default(),
            business_connections: Arc::default(),
            cluster: parts.leading.clone(),
            messages: messages.clone(),
            hooks: hooks.clone(),
            records: records.clone(),
            pools: pools.clone(),
            event_sinks: event_sinks.clone(),
        });
        let socket = std::env::var_os(OPERATE_VARIABLE);
        Self {
            operation,
            status,
            config_manager: parts.config_manager,
            messages,
            hooks,
            records,
            erasures,
            pools: pools.clone(),
            event_sinks,
            traffic: Arc::new(TrafficService {
                core: core.clone(),
                flows: parts.traffic,
                directory,
                peer_roles: routing.peer_roles.clone(),
            }),
            subscribers: Arc::new(SubscriberService {
                core: core.clone(),
                registry: registry.clone(),
                networks: networks.all().cloned().collect(),
                drain: drain.clone(),
            }),
            ledger: Arc::new(LedgerService { core: core.clone(), registry, store }),
            testing: Arc::new(TestingService::new(
                core.clone(),
                links.clone(),
                networks.here.clone(),
                routing,
                drain,
            )),
            cluster: Arc::new(ClusterService { leading: parts.leading, partitions: parts.partitions }),
            metrics_folder: parts.backups.data.join(METRICS_FOLDER),
            backups: Arc::new(parts.backups),
            tenants: Arc::new(TenantService {
                tree: parts.tenants.clone(),
                core: parts.core.clone(),
                hooks: parts.routing.hooks.clone(),
            }),
            tuning: parts.tuning,
            operate_client: Arc::new(socket.map(|socket| OperateClient::at(Path::new(&socket)))),
            core,
        }
    }

    /// The services in the form that the API takes.
    pub(crate) fn api(&self) -> ApiServices {
        ApiServices {
            appliance_image: self.operate_client.clone(),
            attention_limits: self.tuning.clone(),
            backup: self.backups.clone(),
            cluster: self.cluster.clone(),
            configuration: self.config_manager.clone(),
            erasures: self.erasures.clone(),
            event_sinks: self.event_sinks.clone(),
            subscribers: self.subscribers.clone(),
            ledger: self.ledger.clone(),
            records: self.records.clone(),
            messages: self.messages.clone(),
            operation: self.operation.clone(),
            overview: self.status.clone(),
            pace_buckets: Arc::new(self.core.clone()),
            plugin_sources: self.hooks.clone(),
            plugins: self.hooks.clone(),
            pools: self.pools.clone(),
            quarantine: self.messages.clone(),
            queue_actions: self.messages.clone(),
            tenants: self.tenants.clone(),
            traffic: self.traffic.clone(),
            testing: self.testing.clone(),
            traces: self.messages.clone(),
            metrics_folder: self.metrics_folder.clone(),
        }
    }

    /// The receiver of changes to the state that all partitions share.
    pub(crate) fn followed_state(&self) -> FollowedState {
        FollowedState { hooks: self.hooks.clone(), config_manager: self.config_manager.clone() }
    }

    /// Ends requests and tasks that would outlive a shutdown.
    pub(crate) fn begin_shutdown(&self) {
        self.operation.set_stopping();
        self.hooks.replays.end_all();
        self.pools.feed.close();
    }

    /// Stops the archive pump, if there is one.
    pub(crate) fn stop_pump(&self) {
        let pump = self.records.pump.lock().take();
        if let Some(pump) = pump {
            pump.stop();
        }
    }

    /// Stops the event sinks. Sinks that are sending get `within` to finish.
    pub(crate) fn stop_event_sinks(&self, within: Duration) {
        if let Some(sinks) = &self.event_sinks.0 {
            sinks.stop(within);
        }
    }
}
