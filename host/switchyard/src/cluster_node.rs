//! A node of a cluster: it follows until it leads.

use crate::api_backend::Switchyard;
use crate::config::{Config, HttpTlsMode};
use crate::critical_thread;
use crate::http_listeners::{PublicProbes, certificate};
use crate::service_manager;
use admin::metrics::{self, MetricsPage};
use admin::{ClusterFollower, ClusterLeader, Problem, ProblemKind};
use anyhow::{Context as _, Result, bail};
use api::{ClusterRole, ClusterView};
use cluster::{Cluster, ClusterOptions, EtcdJournal, FollowedTail, Suspicion};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use journal::{Journal as _, JournalError, NodeId, Seq, Writer};
use model::Timestamp;
use ports::{HttpListener, LoginLimiter};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Follower, Store};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// How often a node that has all records looks for new ones.
const POLL: Duration = Duration::from_millis(20);
/// Twice in the time between two heartbeats the leader looks whether one is due.
const HEARTBEAT_CHECK: Duration = cluster::HEARTBEAT.checked_div(2).unwrap();
/// How often a node that follows makes its tables durable.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
/// Records are applied in parts of so many octets.
const PART: usize = 4 << 20;
/// Expired messages are removed in parts of so many, one a checkpoint.
const TRIMMED_AT_ONCE: usize = 20_000;
/// A node tries to reach etcd again after this time.
const JOIN_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time for outstanding responses when the lead is handed over.
pub(crate) const HAND_OVER_TIMEOUT: Duration = Duration::from_millis(500);

/// The signals that stop the daemon.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Must be called within a tokio runtime. A signal that arrives before [`recv`](Self::recv) is not lost.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for a signal and returns its name.
    pub(crate) async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// What became of a node.
pub(crate) enum Outcome {
    /// It leads: these are its tables.
    Leads(Arc<Store>, Arc<LeadingNode>),
    /// It was stopped.
    Stopped,
}

/// The node while it leads.
pub(crate) struct LeadingNode {
    cluster: Arc<Cluster>,
    /// Told when the lead is to be handed over.
    hand_over: Notify,
    /// The heartbeats end when it is dropped.
    _heartbeats: Sender<()>,
}

impl LeadingNode {
    /// The cluster, as this node sees it.
    pub(crate) fn view(&self) -> ClusterView {
        self.cluster.status()
    }

    fn begin_hand_over(&self, by: &str) -> Result<(), Problem> {
        let view = self.view();
        if !view.nodes.iter().any(|node| node.alive && node.name != view.node) {
            let what = "no other node is alive, so none could lead; start one, and see GET /v1/cluster";
            return Err(Problem::new(ProblemKind::Conflict, what));
        }
        tracing::info!(by, "handing the lead over");
        self.hand_over.notify_one();
        Ok(())
    }

    fn remove(&self, name: &str, by: &str) -> Result<(), Problem> {
        let view = self.view();
        let Some(node) = view.nodes.iter().find(|node| node.name == name) else {
            let what = format!("the cluster has no node {name:?}; GET /v1/cluster lists them");
            return Err(Problem::new(ProblemKind::NotFound, what));
        };
        if node.alive {
            let what = format!("{name} is alive: stop it first");
            return Err(Problem::new(ProblemKind::Conflict, what));
        }
        let removed = self.cluster.remove_node(name);
        removed.map_err(|error| Problem::new(ProblemKind::Unavailable, error.to_string()))?;
        tracing::info!(by, node = name, "node forgotten");
        Ok(())
    }
}

impl Switchyard {
    fn leading(&self) -> Result<&LeadingNode, Problem> {
        self.cluster.as_deref().ok_or_else(admin::no_cluster)
    }
}

impl ClusterLeader for Switchyard {
    fn cluster(&self) -> Option<ClusterView> {
        self.cluster.as_ref().map(|node| node.view())
    }

    fn hand_over(&self, by: &str) -> Result<(), Problem> {
        self.leading()?.begin_hand_over(by)
    }

    fn remove_node(&self, name: &str, by: &str) -> Result<(), Problem> {
        self.leading()?.remove(name, by)
    }
}

/// The metrics of a leader.
pub(crate) fn write_metrics(cluster: &ClusterView, page: &mut MetricsPage) {
    let flag = |holds: bool| f64::from(u8::from(holds));
    let alive = cluster.nodes.iter().filter(|node| node.alive).count();
    page.put(&metrics::CLUSTER_NODES_ALIVE, &[], alive as f64);
    page.put(&metrics::CLUSTER_TERM, &[], cluster.term as f64);
    page.put(&metrics::CLUSTER_DEGRADED, &[], flag(cluster.degraded));
    for node in &cluster.nodes {
        let behind = cluster.head.saturating_sub(node.durable);
        page.put(&metrics::CLUSTER_RECORDS_BEHIND, &[&node.name], behind as f64);
    }
    for member in &cluster.etcd {
        page.put(&metrics::ETCD_MEMBER_UP, &[&member.endpoint], flag(member.problem.is_none()));
        page.put(&metrics::ETCD_MEMBER_BYTES, &[&member.endpoint], member.octets as f64);
    }
}

/// Waits until the lead is to be handed over; for ever without a cluster.
pub(crate) async fn handed_over(node: Option<&LeadingNode>) {
    match node {
        Some(node) => node.hand_over.notified().await,
        None => std::future::pending().await,
    }
}

/// The node while it follows.
struct FollowingNode(Arc<Cluster>);

impl ClusterFollower for FollowingNode {
    fn cluster(&self) -> ClusterView {
        self.0.status()
    }

    fn leader_address(&self) -> Option<String> {
        self.0.leader().filter(|leader| !leader.resigned).map(|leader| leader.address)
    }
}

/// Joins the cluster, and applies the records of its leader until this node takes its place, or a signal stops it.
pub(crate) fn follow(
    config: &Config,
    options: &ClusterOptions,
    access: &Arc<access::Access>,
    runtime: &Runtime,
    signals: &mut StopSignals,
) -> Result<Outcome> {
    let address = match config.http.tls() {
        HttpTlsMode::Plaintext => format!("http://{}", config.http.listen),
        HttpTlsMode::SelfSigned | HttpTlsMode::Files(_) => format!("https://{}", config.http.listen),
    };
    let join = async {
        loop {
            let handle = runtime.handle().clone();
            match Cluster::join(options.clone(), &address, env!("CARGO_PKG_VERSION"), handle).await {
                Err(cluster::ClusterError::Etcd { endpoint, reason }) => {
                    tracing::warn!(endpoint, reason, "joining the cluster failed, trying again");
                    tokio::time::sleep(JOIN_INTERVAL).await;
                }
                other => return other,
            }
        }
    };
    let Some(cluster) = or_signal(runtime, signals, join) else { return Ok(Outcome::Stopped) };
    let cluster = cluster?;
    let is_empty = runtime.block_on(cluster.read_head())?.is_none();
    let path = config.appliance.data.join("switchyard.redb");
    let mut follower = Follower::open(&path, config.engine.store_cache, cluster.number(), is_empty)?;
    cluster.set_applied(follower.durable());
    // Its own runtime: when it ends, so do the listener and its connections, and the leader's listener can be opened.
    let listening = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("follower")
        .enable_all()
        .build()
        .context("starting the runtime of the follower's listener")?;
    listening.block_on(listen(config, &cluster, access))?;
    tracing::info!(node = cluster.node(), record = follower.applied().0, "following");
    service_manager::following();
    let mut journal = cluster.journal(follower.applied());
    // With an archive, the leader says which messages are in it.
    let retention = config.archive.url.is_none().then_some(config.engine.finished_retention);
    let claimed = follow_log(&cluster, &mut journal, (&mut follower, retention), runtime, signals);
    listening.shutdown_timeout(Duration::from_secs(1));
    let Some(writer) = claimed? else {
        follower.checkpoint()?;
        return Ok(Outcome::Stopped);
    };
    let begun = Instant::now();
    let term = writer.term().0;
    cluster.set_role(ClusterRole::Leader);
    let store = Arc::new(follower.lead(Box::new(journal), writer)?);
    let beating = store.clone();
    let (heartbeats, stopped) = bounded(0);
    critical_thread::spawn("heartbeat", move || beat(&beating, &stopped))?;
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(node = cluster.node(), term, ms, "leading");
    let node = LeadingNode { cluster, hand_over: Notify::new(), _heartbeats: heartbeats };
    Ok(Outcome::Leads(store, Arc::new(node)))
}

/// Waits for this, or for a signal: then it is `None`.
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

/// Opens the listener of a node that follows.
async fn listen(config: &Config, cluster: &Arc<Cluster>, access: &Arc<access::Access>) -> Result<()> {
    let token = admin::RootToken::load_or_create(&config.token_file())?;
    let authenticator = admin::Authenticator::new(access.clone(), token, Arc::new(LoginLimiter::default()))?;
    let router = admin::follower_router(Arc::new(FollowingNode(cluster.clone())), authenticator);
    let listen = config.http.listen;
    let certificate = certificate(config, &config.http.tls(), listen)?;
    let listener = HttpListener::open("http", listen, certificate, config.http.limits(), Arc::default())
        .await
        .with_context(|| format!("[http] listen = \"{listen}\": is another program using it?"))?;
    tokio::spawn(listener.serve(router, Arc::new(PublicProbes)));
    Ok(())
}

/// Follows the log until this node has claimed it; `None` after a signal.
fn follow_log(
    cluster: &Cluster,
    journal: &mut EtcdJournal,
    (follower, retention): (&mut Follower, Option<Duration>),
    runtime: &Runtime,
    signals: &mut StopSignals,
) -> Result<Option<Writer>> {
    let mut suspicion = Suspicion::default();
    let mut leader_time = 0;
    let mut next_checkpoint = Instant::now() + CHECKPOINT_INTERVAL;
    loop {
        let mut has_more = false;
        match journal.follow(follower.applied().next(), PART) {
            Ok(tail) => {
                follower.apply(&tail.records)?;
                if let Some(head) = tail.head.filter(|head| head.seq < follower.applied()) {
                    bail!(
                        "the log in etcd ends at record {}, and the tables of this node have record {}: etcd has lost records, such as by \
                         a restored backup. Stop all nodes, name a new prefix in [cluster], and start the node with the most records \
                         first",
                        head.seq,
                        follower.applied()
                    );
                }
                leader_time = tail.records.last().map_or(leader_time, |record| record.at);
                suspicion.observe(Instant::now(), tail.head);
                has_more = tail.head.is_some_and(|head| head.seq > follower.applied());
                if !has_more && let Some(reason) = reason_to_claim(&tail, &suspicion) {
                    tracing::info!(reason, "claiming the log");
                    match journal.claim(NodeId(node_number(cluster.node()))) {
                        Ok(writer) => return Ok(Some(writer)),
                        Err(JournalError::Fenced { by }) => {
                            tracing::info!(term = by.0, "another node leads, going on to follow");
                        }
                        Err(
                            error @ (JournalError::Unknown
                            | JournalError::Unavailable { .. }
                            | JournalError::Refused { .. }),
                        ) => tracing::warn!(%error, "the claim failed, going on to follow"),
                        Err(error) => return Err(error.into()),
                    }
                    suspicion.forget();
                }
            }
            Err(JournalError::Unavailable { reason }) => {
                tracing::debug!(reason, "etcd does not answer");
                suspicion.forget();
            }
            Err(JournalError::Behind { oldest }) => bail!(
                "this node has the records up to {}, and etcd begins at {oldest}: stop it, write a backup of the leader with \
                 `switchyard backup`, restore it here with `switchyard restore --join`, and start the node again",
                follower.applied()
            ),
            Err(error) => return Err(error.into()),
        }
        if Instant::now() >= next_checkpoint {
            if let Some(retention) = retention {
                let age = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
                follower.trim_finished(Timestamp(leader_time.saturating_sub(age)), TRIMMED_AT_ONCE)?;
            }
            cluster.set_applied(follower.checkpoint()?);
            next_checkpoint = Instant::now() + CHECKPOINT_INTERVAL;
        }
        let pause = if has_more { Duration::ZERO } else { POLL };
        if or_signal(runtime, signals, async { tokio::time::sleep(pause).await }).is_none() {
            return Ok(None);
        }
    }
}

/// Why this node may try to lead.
fn reason_to_claim(tail: &FollowedTail, suspicion: &Suspicion) -> Option<&'static str> {
    if tail.head.is_none() {
        return Some("the log is new");
    }
    if tail.leader.as_ref().is_some_and(|leader| leader.resigned) {
        return Some("the leader has ended in order");
    }
    suspicion.is_dead(Instant::now()).then_some("the log stands still")
}

/// A number for the claims of a node, for people who read the log.
fn node_number(name: &str) -> u64 {
    name.bytes().fold(0, |number, octet| (number << 8) | u64::from(octet))
}

/// Appends an empty record when nothing else was appended for a while, so that the others see that this node lives. It
/// begins before the messages are recovered.
fn beat(store: &Store, stopped: &Receiver<()>) {
    let mut last = Seq(0);
    while !store.is_closed() {
        let appended = store.last_appended();
        if appended == last
            && let Err(error) = store.heartbeat()
        {
            if store.is_closed() {
                return;
            }
            critical_thread::fail_stop(&error);
        }
        last = store.last_appended();
        if stopped.recv_timeout(HEARTBEAT_CHECK) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}
