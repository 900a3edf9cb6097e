//! Number pools in the admin API.

use crate::core_handle::CoreHandle;
use crate::problems::shutting_down_problem;
use admin::metrics::{self, MetricsPage};
use admin::{PoolFillResult, PoolJournalPage, Problem, ProblemKind};
use engine::{EngineAnswer, Event};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use model::{
    JournalEntry, PoolAnswer, PoolId, PoolName, PoolNumber, PoolOperation, PoolRequest, PoolSummary,
};
use ports::{EngineClient, EngineTimeout, LinkRegistry, PoolFeed};
use std::sync::Arc;
use std::time::Duration;
use store::{Store, StoreError};

/// Maximum duration of a request. It includes a commit of a busy core.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of pools with their own metrics.
const MAX_MEASURED_POOLS: usize = 1_000;

/// Requests of the admin API to number pools, over one engine link.
pub(crate) struct PoolService {
    core: CoreHandle,
    store: Arc<Store>,
    pub(crate) engine_client: EngineClient,
    pub(crate) feed: Arc<PoolFeed>,
    /// The actor of the API's operations.
    by: Arc<str>,
}

fn timeout_problem(_: EngineTimeout) -> Problem {
    let what = "no answer in time, or the appliance is shutting down; the operation may have been executed";
    Problem::new(ProblemKind::Unavailable, what)
}

fn journal_problem(error: &StoreError) -> Problem {
    tracing::error!(%error, "reading pool journal failed");
    Problem::new(ProblemKind::Internal, error.to_string())
}

impl PoolService {
    /// Must be called within a tokio runtime.
    pub(crate) fn open(core: CoreHandle, registry: &Arc<LinkRegistry>, store: Arc<Store>) -> Self {
        Self {
            core,
            store,
            engine_client: EngineClient::open(registry),
            feed: Arc::default(),
            by: "admin".into(),
        }
    }

    async fn ask(&self, pool: PoolName, request: PoolRequest) -> Result<PoolAnswer, Problem> {
        let by = self.by.clone();
        let answer = self.engine_client.request(&self.core, REQUEST_TIMEOUT, |reply| Event::Pool {
            pool,
            request,
            by,
            reply,
        });
        match answer.await.map_err(timeout_problem)? {
            EngineAnswer::Pool(answer) => Ok(answer),
            _ => Err(shutting_down_problem()),
        }
    }

    /// Applies operations and returns their outcomes, with the number of added numbers.
    async fn fill(&self, pool: PoolName, operations: Vec<PoolOperation>) -> Result<PoolFillResult, Problem> {
        let answer = self.engine_client.request_all(&self.core, REQUEST_TIMEOUT, |reply| {
            let event =
                |request, reply| Event::Pool { pool: pool.clone(), request, by: self.by.clone(), reply };
            vec![
                event(PoolRequest::Show, reply()),
                event(PoolRequest::Operations(operations), reply()),
                event(PoolRequest::Show, reply()),
            ]
        });
        let numbers = |answer: &EngineAnswer| match answer {
            EngineAnswer::Pool(PoolAnswer::Pool(pool)) => pool.counts.total(),
            _ => 0,
        };
        match &mut answer.await.map_err(timeout_problem)?[..] {
            [before, EngineAnswer::Pool(PoolAnswer::Outcomes(outcomes)), after] => Ok(PoolFillResult {
                outcomes: std::mem::take(outcomes),
                added: numbers(after).saturating_sub(numbers(before)),
            }),
            _ => Err(shutting_down_problem()),
        }
    }

    async fn all(&self) -> Result<Vec<PoolSummary>, Problem> {
        let answer = self.engine_client.request(&self.core, REQUEST_TIMEOUT, |reply| Event::Pools { reply });
        match answer.await.map_err(timeout_problem)? {
            EngineAnswer::Pools(pools) => Ok(pools),
            _ => Err(shutting_down_problem()),
        }
    }
}

impl admin::Pools for PoolService {
    fn ask_pool(&self, pool: PoolName, request: PoolRequest) -> BoxFuture<'_, Result<PoolAnswer, Problem>> {
        self.ask(pool, request).boxed()
    }

    fn fill_pool(
        &self,
        pool: PoolName,
        operations: Vec<PoolOperation>,
    ) -> BoxFuture<'_, Result<PoolFillResult, Problem>> {
        self.fill(pool, operations).boxed()
    }

    fn all_pools(&self) -> BoxFuture<'_, Result<Vec<PoolSummary>, Problem>> {
        self.all().boxed()
    }

    fn pool_history(
        &self,
        pool: PoolId,
        before: Option<u64>,
        number: Option<PoolNumber>,
        most: usize,
    ) -> Result<PoolJournalPage, Problem> {
        let found = self.store.pool_history(pool, before, number, most);
        let found = found.map_err(|error| journal_problem(&error))?;
        Ok(PoolJournalPage { entries: found.entries, next: found.next })
    }

    fn pool_journal(
        &self,
        pool: PoolId,
        from: u64,
        most: usize,
    ) -> Result<Vec<(u64, JournalEntry)>, Problem> {
        self.store.pool_journal(pool, from, most).map_err(|error| journal_problem(&error))
    }

    fn pool_feed(&self) -> &PoolFeed {
        &self.feed
    }
}

impl PoolService {
    pub(crate) fn write_pool_metrics(&self, page: &mut MetricsPage) {
        // Metrics are collected on a blocking thread.
        let answer = tokio::runtime::Handle::try_current();
        let Some(Ok(pools)) = answer.ok().map(|runtime| runtime.block_on(self.all())) else { return };
        page.put(&metrics::POOLS, &[], pools.len() as f64);
        let measured = &pools[..pools.len().min(MAX_MEASURED_POOLS)];
        for pool in measured {
            for (state, count) in [
                ("idle+up", pool.counts.idle_up),
                ("idle+down", pool.counts.idle_down),
                ("busy+up", pool.counts.busy_up),
                ("busy+down", pool.counts.busy_down),
            ] {
                page.put(&metrics::POOL_NUMBERS, &[pool.name.as_str(), state], count as f64);
            }
        }
        for pool in measured {
            page.put(&metrics::POOL_READY, &[pool.name.as_str()], pool.ready as f64);
        }
        for pool in measured {
            page.put(&metrics::POOL_CALLS, &[pool.name.as_str(), "acquired"], pool.acquired as f64);
            page.put(&metrics::POOL_CALLS, &[pool.name.as_str(), "none"], pool.none as f64);
        }
        for pool in measured {
            page.put(&metrics::POOL_LAPSED, &[pool.name.as_str()], pool.lapsed as f64);
        }
    }
}
