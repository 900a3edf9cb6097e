//! A cluster node: it follows the log until it leads.

use crate::cluster_sinks::ClusterSinks;
use crate::config::{Config, HttpTlsMode};
use crate::config_manager::StartupConfig;
use crate::http_listeners::{PublicProbes, certificate};
use crate::leading_node::LeadingNode;
use crate::service_manager::{self, FollowerWatchdog};
use crate::shared_state::{CONFIGURATION, NodeStores, PLUGINS};
use crate::stop_signals::StopSignals;
use crate::unreadable_log::UnreadableLog;
use admin::ClusterFollower;
use anyhow::{Context as _, Result, bail};
use api::{ClusterView, RecordFormats};
use archive::AuditLog;
use cluster::{Cluster, ClusterError, ClusterOptions, EtcdJournal, FollowedTail, SharedScope, Suspicion};
use codec::BatchFormat;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use hooks::HooksOptions;
use journal::{Journal as _, JournalError, NodeId, Seq, Writer};
use model::Timestamp;
use parking_lot::Mutex;
use ports::{HttpListener, LoginLimiter};
use replication::{
    NodeCertificate, NodeClient, NodeListener, Publisher, Replica, ReplicationError, SharedFiles, SharedState,
};
use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Follower, Store, StoreError};
use tokio::runtime::Runtime;

/// Interval at which an up-to-date node checks for new records.
const POLL: Duration = Duration::from_millis(20);
/// Interval at which a follower checks for changes of the shared state.
const SHARED_STATE_POLL: Duration = Duration::from_millis(200);
/// Interval at which a follower makes its tables durable.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
/// Octets of records per step of applying.
const PART: usize = 4 << 20;
/// Maximum number of expired messages removed per checkpoint.
const MAX_TRIMMED: usize = 20_000;
/// Interval between attempts to reach etcd, or to fetch a snapshot.
const JOIN_INTERVAL: Duration = Duration::from_secs(1);
/// The record formats that this version reads and writes.
const FORMATS: RecordFormats =
    RecordFormats { oldest: BatchFormat::OLDEST.number(), newest: BatchFormat::NEWEST.number() };
/// Retry interval of a node that cannot read the log: it may be a member of etcd with damaged data.
const UNREADABLE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time for outstanding responses when the lead is handed over.
pub(crate) const HAND_OVER_TIMEOUT: Duration = Duration::from_millis(500);

/// Result of following.
pub(crate) enum Outcome {
    /// The node leads: its tables, and the event sinks if there are any.
    Leader(Arc<Store>, LeadingNode, Option<Arc<ClusterSinks>>),
    /// The cluster has a new configuration, with which the node continues to follow.
    Reconfigured(Box<Config>),
    /// A signal stopped the node.
    Stopped,
}

/// A node that has joined its cluster.
pub(crate) struct ClusterNode {
    cluster: Arc<Cluster>,
    stores: NodeStores,
    parts: Vec<Arc<dyn SharedState>>,
    replica: Arc<Mutex<Replica>>,
    /// Replica of the state that all partitions share; `None` in partition 0, whose own state it is.
    replica_of_all: Option<Arc<Mutex<Replica>>>,
    client: Arc<NodeClient>,
    listener: Arc<NodeListener>,
    /// `None` without a watchdog.
    watchdog: Option<Arc<FollowerWatchdog>>,
}

/// A node while it follows.
struct FollowingNode(Arc<Cluster>);

impl ClusterFollower for FollowingNode {
    fn cluster(&self) -> ClusterView {
        self.0.status()
    }

    fn leader_address(&self) -> Option<String> {
        self.0.leader().filter(|leader| !leader.resigned).map(|leader| leader.address)
    }
}

impl ClusterNode {
    /// Joins the cluster, and opens the listener for the other nodes; `None` after a signal.
    pub(crate) fn join(
        config: &Config,
        options: &ClusterOptions,
        stores: NodeStores,
        runtime: &Runtime,
        signals: &mut StopSignals,
    ) -> Result<Option<Self>> {
        let address = match config.http.tls() {
            HttpTlsMode::Plaintext => format!("http://{}", config.http.listen),
            HttpTlsMode::SelfSigned | HttpTlsMode::Files(_) => format!("https://{}", config.http.listen),
        };
        let join = async {
            loop {
                let handle = runtime.handle().clone();
                let version = (env!("CARGO_PKG_VERSION"), FORMATS);
                match Cluster::join(options.clone(), &address, version, handle).await {
                    Err(ClusterError::Etcd { endpoint, reason }) => {
                        tracing::warn!(endpoint, reason, "joining the cluster failed, trying again");
                        tokio::time::sleep(JOIN_INTERVAL).await;
                    }
                    other => return other,
                }
            }
        };
        let Some(cluster) = or_signal(runtime, signals, join) else { return Ok(None) };
        let cluster = cluster?;
        // Until the log was read once, it is not known whether the tables are complete.
        cluster.set_joining(true);
        let data = &config.appliance.data;
        let files = Arc::new(SharedFiles::open(&data.join("fetched"))?);
        let certificate = certificate_of(config, options)?;
        let public = options.address.as_deref().unwrap_or(&address);
        let (listen, host) = (options.listen, host_of(public));
        let open = NodeListener::open(listen, host, &certificate, &cluster, files.clone());
        let listener = runtime.block_on(open)?;
        let client = Arc::new(NodeClient::new(cluster.clone(), certificate, runtime.handle().clone()));
        let (mut parts, parts_of_all) = (stores.own_parts(), stores.parts_of_all(data, &files));
        let replica = |scope, parts: &[Arc<dyn SharedState>]| {
            let replica = Replica::new(cluster.clone(), scope, parts.to_vec(), files.clone(), client.clone());
            Arc::new(Mutex::new(replica))
        };
        let replica_of_all = if options.partition == 0 {
            parts.extend(parts_of_all);
            None
        } else {
            Some(replica(SharedScope::Cluster, &parts_of_all))
        };
        let replica = replica(SharedScope::Partition, &parts);
        let watchdog = FollowerWatchdog::start().context("starting the watchdog thread")?.map(Arc::new);
        Ok(Some(Self { cluster, stores, parts, replica, replica_of_all, client, listener, watchdog }))
    }

    /// The replicas of this node; the last one contains the configuration.
    fn replicas(&self) -> Vec<Arc<Mutex<Replica>>> {
        std::iter::once(&self.replica).chain(&self.replica_of_all).cloned().collect()
    }

    /// Publishes why this node cannot use the configuration of the cluster; `None` if it can.
    fn set_unusable(&self, reason: Option<String>) {
        self.replica_of_all.as_ref().unwrap_or(&self.replica).lock().set_unusable(reason);
    }

    /// Applies the records of the leader until this node takes over, the cluster has a new configuration, or a signal
    /// stops the node.
    pub(crate) fn follow(
        &self,
        (config, startup): (&Config, &StartupConfig),
        hooks: &HooksOptions,
        runtime: &Runtime,
        signals: &mut StopSignals,
    ) -> Result<Outcome> {
        let cluster = &self.cluster;
        let is_empty = runtime.block_on(cluster.read_head())?.is_none();
        let path = config.appliance.data.join("switchyard.redb");
        let mut tables = FollowedTables {
            follower: Follower::open(&path, config.engine.store_cache, cluster.number(), is_empty)?,
            path,
            cache: config.engine.store_cache,
            watermark: config.appliance.free_space_watermark,
            // With an archive, the leader decides which messages may be removed.
            retention: config.archive.url.is_none().then_some(config.engine.finished_retention),
        };
        cluster.set_applied(tables.follower.durable());
        // A runtime of its own: when it ends, its listener and connections are closed, and the leader's listener can
        // be opened.
        let listening = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("follower")
            .enable_all()
            .build()
            .context("starting the runtime of the follower's listener")?;
        listening.block_on(listen(config, cluster, &self.stores.access))?;
        tracing::info!(node = cluster.node(), record = tables.follower.applied().0, "following");
        service_manager::following();
        let mut journal = cluster.journal(tables.follower.applied());
        let sinks = ClusterSinks::of(config, cluster)?.map(Arc::new);
        let sink_watch = match &sinks {
            Some(sinks) => {
                journal.set_copy(Some(sinks.open_copy(tables.follower.applied())?));
                Some(sinks.watch()?)
            }
            None => None,
        };
        let watch = SharedStateWatch::start(self.replicas(), config.appliance.data.join("plugins"), hooks)?;
        let sides = (&watch, startup, sinks.as_deref());
        let ended = self.follow_log(&mut journal, &mut tables, sides, runtime, signals);
        // The take-over follows, or the next configuration.
        self.begin_long_step();
        drop((watch, sink_watch));
        listening.shutdown_timeout(Duration::from_secs(1));
        match ended? {
            FollowEnd::Claimed(writer) => self.lead(tables.follower, (journal, writer), sinks),
            FollowEnd::Reconfigured(config) => {
                tables.follower.checkpoint()?;
                Ok(Outcome::Reconfigured(config))
            }
            FollowEnd::Stopped => {
                tables.follower.checkpoint()?;
                Ok(Outcome::Stopped)
            }
        }
    }

    /// Tells the watchdog that the next step may take long.
    fn begin_long_step(&self) {
        if let Some(watchdog) = &self.watchdog {
            watchdog.begin_long_step();
        }
    }

    /// The watchdog; it is needed until the core of this leader has one. `None` without a service manager.
    pub(crate) fn watchdog(&self) -> Option<Arc<FollowerWatchdog>> {
        self.watchdog.clone()
    }

    fn lead(
        &self,
        follower: Follower,
        (journal, writer): (EtcdJournal, Writer),
        sinks: Option<Arc<ClusterSinks>>,
    ) -> Result<Outcome> {
        let (cluster, begun) = (self.cluster.clone(), Instant::now());
        let term = writer.term().0;
        let store = Arc::new(follower.lead(Box::new(journal), writer)?);
        let replica = self.replica.lock();
        let publisher = Publisher::new(cluster.clone(), self.parts.clone(), replica.known().clone());
        let is_founded = replica.is_founded();
        drop(replica);
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(node = cluster.node(), term, ms, "leading");
        let node = LeadingNode::begin(
            cluster,
            &store,
            &self.stores.values,
            (publisher, is_founded),
            self.listener.clone(),
            self.replica_of_all.clone(),
        )?;
        Ok(Outcome::Leader(store, node, sinks))
    }

    /// Applies the shared state that was written before this node's claim; there are no later writes. Returns the
    /// missing part.
    fn complete_shared_state(&self) -> Option<String> {
        self.replicas().iter().find_map(|replica| {
            let mut replica = replica.lock();
            match replica.poll() {
                Ok(_) => replica.lacks().map(str::to_owned),
                Err(error) => Some(error.to_string()),
            }
        })
    }

    /// Follows the log.
    fn follow_log(
        &self,
        journal: &mut EtcdJournal,
        tables: &mut FollowedTables,
        (watch, startup, sinks): (&SharedStateWatch, &StartupConfig, Option<&ClusterSinks>),
        runtime: &Runtime,
        signals: &mut StopSignals,
    ) -> Result<FollowEnd> {
        let cluster = &self.cluster;
        let mut suspicion = Suspicion::default();
        let mut unreadable = UnreadableLog::new(cluster.clone());
        let mut leader_time = 0;
        let mut logged = None;
        let mut next_checkpoint = Instant::now() + CHECKPOINT_INTERVAL;
        loop {
            if let Some(watchdog) = &self.watchdog {
                watchdog.report_progress();
            }
            let mut has_more = false;
            let follower = &mut tables.follower;
            let applied = follower.applied();
            // After a crash, the copy of the log may lack records that the tables have.
            let reached = journal.copied().map_or(applied, |copied| copied.min(applied));
            match journal.follow(reached.next(), PART) {
                Ok(tail) => {
                    cluster.set_joining(false);
                    let known = tail.records.partition_point(|record| record.seq <= applied);
                    match follower.apply(tail.records.get(known..).unwrap_or_default()) {
                        Ok(()) => unreadable.clear(),
                        Err(StoreError::JournalRecord { seq, source }) => unreadable.stop_at(seq, &source),
                        Err(error) => return Err(error.into()),
                    }
                    let last =
                        journal.copied().map_or(follower.applied(), |last| last.max(follower.applied()));
                    if let Some(head) = tail.head.filter(|head| head.seq < last) {
                        bail!(
                            "the log in etcd ends at record {}, and this node has record {last}: etcd has lost records, \
                             such as by a restored backup. Stop all nodes, name a new prefix in [cluster], and start the node \
                             with the most records first",
                            head.seq
                        );
                    }
                    leader_time = tail.records.last().map_or(leader_time, |record| record.at);
                    suspicion.observe(Instant::now(), tail.head);
                    let reached = tail.records.last().map_or(reached, |last| last.seq);
                    has_more = tail.head.is_some_and(|head| head.seq > reached);
                    if !has_more && let Some(reason) = reason_to_claim(&tail, &suspicion) {
                        if let Some(writer) = self.claim(journal, reason, &mut logged)? {
                            return Ok(FollowEnd::Claimed(writer));
                        }
                        suspicion.forget();
                    }
                }
                Err(JournalError::Unavailable { reason }) => {
                    tracing::debug!(reason, "etcd does not answer");
                    suspicion.forget();
                }
                Err(error @ (JournalError::Behind { .. } | JournalError::Damaged { .. }))
                    if reached < applied =>
                {
                    tracing::warn!(
                        %error,
                        record = applied.0,
                        "etcd does not have the records that the copy of the log lacks, so the copy starts again; sinks that \
                         are further behind lose events if this node leads"
                    );
                    // The folder can have one copy at a time.
                    journal.set_copy(None);
                    journal.set_copy(sinks.map(|sinks| sinks.replace_copy(applied)).transpose()?);
                }
                Err(JournalError::UnknownContent { what, .. }) => {
                    unreadable.stop_at(reached.next(), &what);
                    suspicion.forget();
                }
                Err(JournalError::Behind { .. }) if unreadable.has_newer_tables() => suspicion.forget(),
                Err(JournalError::Behind { oldest }) => {
                    tracing::info!(
                        record = follower.applied().0,
                        oldest = oldest.0,
                        "etcd has newer records only"
                    );
                    cluster.set_joining(true);
                    self.begin_long_step();
                    let replaced = tables.replace(&self.client, cluster.number());
                    cluster.set_applied(tables.follower.durable());
                    match replaced {
                        Ok(()) => {
                            unreadable.clear();
                            let applied = tables.follower.applied();
                            *journal = cluster.journal(applied);
                            // Keep the records that etcd still has: the leader's readers may be a little behind.
                            let kept = journal.capacity().unwrap_or(0) / 2;
                            let after = Seq(applied.0.saturating_sub(kept));
                            journal.set_copy(sinks.map(|sinks| sinks.replace_copy(after)).transpose()?);
                        }
                        Err(error) => {
                            unreadable.check_tables(&error);
                            tracing::warn!(
                                error = format!("{error:#}"),
                                "no snapshot of the leader's tables, trying again"
                            );
                            let wait = async { tokio::time::sleep(JOIN_INTERVAL).await };
                            if or_signal(runtime, signals, wait).is_none() {
                                return Ok(FollowEnd::Stopped);
                            }
                        }
                    }
                    suspicion.forget();
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            if Instant::now() >= next_checkpoint {
                cluster.set_applied(tables.checkpoint(leader_time)?);
                let free = tables.path.parent().map(store::free_space).transpose()?;
                cluster.set_disk_low(free.is_some_and(|free| free < tables.watermark));
                next_checkpoint = Instant::now() + CHECKPOINT_INTERVAL;
            }
            if watch.configuration.try_iter().count() > 0 {
                match startup.read_newest() {
                    Ok(Some(config)) => {
                        self.set_unusable(None);
                        return Ok(FollowEnd::Reconfigured(Box::new(config)));
                    }
                    Ok(None) => {}
                    Err(error) => self.set_unusable(Some(format!("{error:#}"))),
                }
            }
            let pause = if unreadable.is_unreadable() {
                UNREADABLE_INTERVAL
            } else if has_more {
                Duration::ZERO
            } else {
                POLL
            };
            if or_signal(runtime, signals, async { tokio::time::sleep(pause).await }).is_none() {
                return Ok(FollowEnd::Stopped);
            }
        }
    }

    /// Claims the log, unless this node lacks something that a leader needs. `logged` is the last logged missing part.
    fn claim(
        &self,
        journal: &mut EtcdJournal,
        reason: &str,
        logged: &mut Option<String>,
    ) -> Result<Option<Writer>> {
        let cluster = &self.cluster;
        let lacks = cluster.lacks();
        if let Some(lacks) = lacks.as_ref().filter(|_| *logged != lacks) {
            tracing::warn!(reason, lacks, "not claiming the log: this node is not complete");
        }
        *logged = lacks;
        if logged.is_some() {
            return Ok(None);
        }
        tracing::info!(reason, "claiming the log");
        self.begin_long_step();
        match journal.claim(NodeId(node_number(cluster.node()))) {
            Ok(writer) => match self.complete_shared_state() {
                None => return Ok(Some(writer)),
                Some(lacks) => {
                    tracing::warn!(lacks, "resigning: this node is not complete");
                    journal.resign(&writer)?;
                }
            },
            Err(JournalError::Fenced { by }) => {
                tracing::info!(term = by.0, "another node leads, continuing to follow");
            }
            Err(
                error @ (JournalError::Unknown
                | JournalError::Unavailable { .. }
                | JournalError::Refused { .. }),
            ) => tracing::warn!(%error, "the claim failed, continuing to follow"),
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }
}

/// Reason why a node stops following.
enum FollowEnd {
    Claimed(Writer),
    Reconfigured(Box<Config>),
    Stopped,
}

/// The tables of a follower.
struct FollowedTables {
    follower: Follower,
    path: PathBuf,
    cache: usize,
    /// Free disk space in octets below which submissions would be refused.
    watermark: u64,
    /// Retention of finished messages; `None` if the archive decides.
    retention: Option<Duration>,
}

impl FollowedTables {
    /// Makes the tables durable, and removes expired messages.
    fn checkpoint(&mut self, leader_time: u64) -> Result<Seq> {
        if let Some(retention) = self.retention {
            let age = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
            self.follower.trim_finished(Timestamp(leader_time.saturating_sub(age)), MAX_TRIMMED)?;
        }
        Ok(self.follower.checkpoint()?)
    }

    /// Replaces the tables by a snapshot of the leader.
    fn replace(&mut self, client: &NodeClient, cluster: u64) -> Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let fetched = client.fetch_snapshot(folder)?;
        let octets = fetched.as_file().metadata().map_or(0, |metadata| metadata.len());
        // Opened under a temporary name first: a file that is no snapshot of this cluster replaces nothing.
        let checked = Follower::open(fetched.path(), self.cache, cluster, false)?;
        anyhow::ensure!(
            checked.applied() > self.follower.applied(),
            "the snapshot has records up to {} only",
            checked.applied()
        );
        drop(checked);
        fetched.persist(&self.path).with_context(|| format!("replacing {}", self.path.display()))?;
        std::fs::File::open(folder)?.sync_all()?;
        self.follower = Follower::open(&self.path, self.cache, cluster, false)?;
        tracing::info!(
            octets,
            record = self.follower.applied().0,
            "tables replaced by a snapshot of the leader"
        );
        Ok(())
    }
}

/// Thread that applies changes of the shared state, separate from the log: a large file must not delay the records.
struct SharedStateWatch {
    /// Signals that the configuration has changed.
    configuration: Receiver<()>,
    /// The thread ends when this sender is dropped.
    _stop: Sender<()>,
}

impl SharedStateWatch {
    fn start(replicas: Vec<Arc<Mutex<Replica>>>, plugins: PathBuf, hooks: &HooksOptions) -> Result<Self> {
        let (notify, configuration) = unbounded();
        let (stop, stopped) = bounded::<()>(0);
        let hooks = hooks.clone();
        let run = move || {
            let mut has_failed = false;
            loop {
                let mut changed = BTreeSet::new();
                let polled = replicas.iter().try_for_each(|replica| {
                    changed.append(&mut replica.lock().poll()?);
                    Ok::<_, ReplicationError>(())
                });
                match polled {
                    Ok(()) => {
                        has_failed = false;
                        if changed.contains(PLUGINS) {
                            compile(&plugins, &hooks);
                        }
                        if changed.contains(CONFIGURATION) {
                            let _ = notify.send(());
                        }
                    }
                    Err(error) => {
                        if !has_failed {
                            tracing::warn!(%error, "reading the shared state of the cluster failed, trying again");
                        }
                        has_failed = true;
                    }
                }
                if stopped.recv_timeout(SHARED_STATE_POLL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        crate::critical_thread::spawn("shared-state", run)?;
        Ok(Self { configuration, _stop: stop })
    }
}

/// Compiles the plugins that came from the leader, so that a take-over need not wait for it.
fn compile(plugins: &Path, hooks: &HooksOptions) {
    match hooks::Hooks::compile_ahead(plugins, hooks, &[]) {
        Ok(plugins) => tracing::debug!(plugins, "plugins compiled"),
        Err(error) => tracing::warn!(%error, "compiling the plugins of the cluster failed"),
    }
}

/// The host of a URL.
fn host_of(url: &str) -> &str {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|c| c.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Certificate of this node for the other nodes; it is stored on this node's disk only.
pub(crate) fn certificate_of(config: &Config, options: &ClusterOptions) -> Result<NodeCertificate> {
    Ok(NodeCertificate::open(&config.appliance.data.join("node"), options.listen.ip())?)
}

/// Audit log of this node in the archive.
pub(crate) fn audit_log(config: &Config, options: &ClusterOptions) -> Result<AuditLog> {
    let certificate = certificate_of(config, options)?;
    let log = certificate.sha256().get(..16).unwrap_or_default().to_owned();
    Ok(AuditLog { node: options.node.clone(), log })
}

/// Waits for `wait` or for a signal; `None` after a signal.
fn or_signal<T>(runtime: &Runtime, signals: &mut StopSignals, wait: impl Future<Output = T>) -> Option<T> {
    runtime.block_on(async {
        tokio::select! {
            done = wait => Some(done),
            signal = signals.recv() => {
                tracing::info!(signal, "stopping");
                None
            }
        }
    })
}

/// Opens the listener of a follower.
async fn listen(config: &Config, cluster: &Arc<Cluster>, access: &Arc<access::Access>) -> Result<()> {
    let token = admin::RootToken::load_or_create(&config.token_file())?;
    let authenticator = admin::Authenticator::new(access.clone(), token, Arc::new(LoginLimiter::default()))?;
    let router = admin::follower_router(Arc::new(FollowingNode(cluster.clone())), authenticator);
    let listen = config.http.listen;
    let certificate = certificate(config, &config.http.tls(), listen)?;
    let tls = certificate.is_some();
    let listener = HttpListener::open("http", listen, certificate, config.http.limits(), Arc::default())
        .await
        .with_context(|| format!("[http] listen = \"{listen}\": is another program using it?"))?;
    service_manager::write_admin_url(tls, listener.address());
    tokio::spawn(listener.serve(router, Arc::new(PublicProbes)));
    Ok(())
}

/// The reason why this node may claim the log; `None` if it may not.
fn reason_to_claim(tail: &FollowedTail, suspicion: &Suspicion) -> Option<&'static str> {
    if tail.head.is_none() {
        return Some("the log is new");
    }
    if tail.leader.as_ref().is_some_and(|leader| leader.resigned) {
        return Some("the leader has ended in order");
    }
    suspicion.is_dead(Instant::now()).then_some("the log stands still")
}

/// Number of a node in its claims, for people who read the log.
fn node_number(name: &str) -> u64 {
    name.bytes().fold(0, |number, octet| (number << 8) | u64::from(octet))
}
