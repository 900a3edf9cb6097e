//! Operation of the daemon: readiness, drain, log level, the cluster.

use crate::core_handle::CoreHandle;
use crate::drain::Drain;
use crate::leading_node::LeadingNode;
use crate::logging::LogControl;
use crate::partitions::PartitionMap;
use admin::{ClusterLeader, Operation, Problem, ProblemKind, SharedStateOwner};
use api::{
    ClusterView, DrainOptions, DrainStateView, FieldProblem, LogLevelRequest, LogLevelView, NotReady,
    Readiness,
};
use ports::PassOn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use store::Store;

/// A commit that takes longer than this is reported as stalled.
const STALLED: Duration = Duration::from_secs(5);

/// A core that does not respond within this time is reported as stalled.
const CORE_ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// State of the daemon itself.
pub(crate) struct OperationService {
    core: CoreHandle,
    store: Arc<Store>,
    drain: Arc<Drain>,
    logging: Arc<LogControl>,
    ready: AtomicBool,
    stopping: AtomicBool,
}

impl OperationService {
    /// The service of a starting daemon.
    pub(crate) fn new(
        core: CoreHandle,
        store: Arc<Store>,
        drain: Arc<Drain>,
        logging: Arc<LogControl>,
    ) -> Self {
        let (ready, stopping) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { core, store, drain, logging, ready, stopping }
    }

    /// Marks the daemon as accepting messages.
    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Relaxed);
    }

    /// Marks the daemon as shutting down.
    pub(crate) fn set_stopping(&self) {
        self.stopping.store(true, Relaxed);
        self.ready.store(false, Relaxed);
    }
}

impl Operation for OperationService {
    fn readiness(&self) -> Readiness {
        let stopping = self.stopping.load(Relaxed);
        let ready = self.ready.load(Relaxed);
        let status_line = [
            (NotReady::Starting, !stopping && !ready),
            (NotReady::Stopping, stopping),
            (NotReady::Draining, self.drain.by().is_some()),
            (NotReady::DiskLow, self.core.counts.disk_low.load(Relaxed)),
            (NotReady::StoreStalled, self.core.commit_duration().is_some_and(|time| time > STALLED)),
            // A load balancer switches to the other node as soon as that node leads.
            (NotReady::NoMajority, ready && !self.store.lease().holds()),
            // A starting core is still recovering; during a shutdown, the core may have ended.
            (NotReady::CoreStalled, ready && !stopping && !self.core.responds_within(CORE_ANSWERS_WITHIN)),
        ];
        Readiness::of(
            status_line.into_iter().filter_map(|(reason, stands)| stands.then_some(reason)).collect(),
        )
    }

    fn drain_state(&self) -> Result<DrainStateView, Problem> {
        self.drain.state()
    }

    fn begin_drain(&self, how: DrainOptions, by: Arc<str>) -> Result<DrainStateView, Problem> {
        self.drain.begin(how, &by)
    }

    fn end_drain(&self, by: &str) -> Result<DrainStateView, Problem> {
        self.drain.end(by)
    }

    fn log_level(&self) -> LogLevelView {
        LogLevelView { level: self.logging.level() }
    }

    fn set_log_level(&self, request: LogLevelRequest, by: &str) -> Result<LogLevelView, Problem> {
        if let Err(what) = self.logging.set(&request.level) {
            let mut problem = Problem::new(ProblemKind::Unprocessable, format!("level: {what}"));
            let allowed = Some("info, or for example info,links=debug".to_owned());
            problem.problems.push(FieldProblem { pointer: "/level".to_owned(), what, allowed });
            return Err(problem);
        }
        tracing::info!(by, level = request.level, "log level changed");
        Ok(self.log_level())
    }
}

/// The cluster that this node leads; without a cluster, nothing.
pub(crate) struct ClusterService {
    pub(crate) leading: Option<Arc<LeadingNode>>,
    pub(crate) partitions: Option<Arc<PartitionMap>>,
}

impl ClusterService {
    fn leading(&self) -> Result<&LeadingNode, Problem> {
        self.leading.as_deref().ok_or_else(admin::no_cluster)
    }
}

impl ClusterLeader for ClusterService {
    fn cluster(&self) -> Option<ClusterView> {
        self.leading.as_ref().map(|node| node.view())
    }

    fn hand_over(&self, by: &str) -> Result<(), Problem> {
        self.leading()?.begin_hand_over(by)
    }

    fn remove_node(&self, name: &str, by: &str) -> Result<(), Problem> {
        self.leading()?.remove(name, by)
    }

    fn shared_state_owner(&self) -> SharedStateOwner {
        self.leading.as_ref().map_or(SharedStateOwner::ThisNode, |node| node.shared_state_owner())
    }

    fn pass_on(&self) -> Option<Arc<dyn PassOn>> {
        self.partitions.clone().map(|partitions| -> Arc<dyn PassOn> { partitions })
    }

    fn publish_shared_state(&self) -> Result<(), Problem> {
        self.leading.as_ref().map_or(Ok(()), |node| node.publish())
    }
}
