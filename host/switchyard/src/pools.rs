//! Number pools as the admin's API sees them.

use crate::appliance::{Switchyard, gone};
use crate::core_loop::CoreHandle;
use admin::metrics::{self, Page};
use admin::{Filled, History, Kind, Problem};
use doors::{Desk, Hub, NoAnswer, PoolFeed};
use engine::{Answer, Event};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use model::{PoolAnswer, PoolEntry, PoolId, PoolName, PoolNumber, PoolOperation, PoolRequest, PoolSummary};
use std::sync::Arc;
use std::time::Duration;
use store::{Store, StoreError};

/// How long an answer may take: it waits for a commit, and a full core.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pools that metrics tell of.
const MEASURED: usize = 1_000;

/// The API's way to number pools: one door for all of its requests.
pub(crate) struct PoolDesk {
    core: CoreHandle,
    store: Arc<Store>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) feed: Arc<PoolFeed>,
    /// Who does what an admin does.
    by: Arc<str>,
}

fn unanswered(_: NoAnswer) -> Problem {
    let what = "no answer in time, or the appliance is shutting down; what was asked may have been done";
    Problem::new(Kind::Unavailable, what)
}

fn unreadable(error: &StoreError) -> Problem {
    tracing::error!(%error, "reading the journal of a number pool failed");
    Problem::new(Kind::Internal, error.to_string())
}

impl PoolDesk {
    /// Must be called inside a tokio runtime.
    pub(crate) fn open(core: CoreHandle, hub: &Hub, store: Arc<Store>) -> Self {
        Self { core, store, desk: Desk::open(hub), feed: Arc::default(), by: "admin".into() }
    }

    async fn ask(&self, pool: PoolName, request: PoolRequest) -> Result<PoolAnswer, Problem> {
        let by = self.by.clone();
        let asked = self.desk.ask(&self.core, PATIENCE, |reply| Event::Pool { pool, request, by, reply });
        match asked.await.map_err(unanswered)? {
            Answer::Pool(answer) => Ok(answer),
            _ => Err(gone()),
        }
    }

    /// The operations between two looks at the pool.
    async fn fill(&self, pool: PoolName, operations: Vec<PoolOperation>) -> Result<Filled, Problem> {
        let asked = self.desk.ask_in_turn(&self.core, PATIENCE, |reply| {
            let event =
                |request, reply| Event::Pool { pool: pool.clone(), request, by: self.by.clone(), reply };
            vec![
                event(PoolRequest::Show, reply()),
                event(PoolRequest::DoAll(operations), reply()),
                event(PoolRequest::Show, reply()),
            ]
        });
        let numbers = |answer: &Answer| match answer {
            Answer::Pool(PoolAnswer::Pool(pool)) => pool.counts.total(),
            _ => 0,
        };
        match &mut asked.await.map_err(unanswered)?[..] {
            [before, Answer::Pool(PoolAnswer::Outcomes(outcomes)), after] => Ok(Filled {
                outcomes: std::mem::take(outcomes),
                grown: numbers(after).saturating_sub(numbers(before)),
            }),
            _ => Err(gone()),
        }
    }

    async fn all(&self) -> Result<Vec<PoolSummary>, Problem> {
        let asked = self.desk.ask(&self.core, PATIENCE, |reply| Event::Pools { reply });
        match asked.await.map_err(unanswered)? {
            Answer::Pools(pools) => Ok(pools),
            _ => Err(gone()),
        }
    }
}

impl admin::Pools for Switchyard {
    fn ask_pool(&self, pool: PoolName, request: PoolRequest) -> BoxFuture<'_, Result<PoolAnswer, Problem>> {
        self.pools.ask(pool, request).boxed()
    }

    fn fill_pool(
        &self,
        pool: PoolName,
        operations: Vec<PoolOperation>,
    ) -> BoxFuture<'_, Result<Filled, Problem>> {
        self.pools.fill(pool, operations).boxed()
    }

    fn all_pools(&self) -> BoxFuture<'_, Result<Vec<PoolSummary>, Problem>> {
        self.pools.all().boxed()
    }

    fn pool_history(
        &self,
        pool: PoolId,
        before: Option<u64>,
        number: Option<PoolNumber>,
        most: usize,
    ) -> Result<History, Problem> {
        let found = self.pools.store.pool_history(pool, before, number, most);
        let found = found.map_err(|error| unreadable(&error))?;
        Ok(History { entries: found.entries, next: found.next })
    }

    fn pool_journal(&self, pool: PoolId, from: u64, most: usize) -> Result<Vec<(u64, PoolEntry)>, Problem> {
        self.pools.store.pool_journal(pool, from, most).map_err(|error| unreadable(&error))
    }

    fn pool_feed(&self) -> &PoolFeed {
        &self.pools.feed
    }
}

impl Switchyard {
    pub(crate) fn write_pool_metrics(&self, page: &mut Page) {
        // On a thread that may wait, as all metrics are.
        let asked = tokio::runtime::Handle::try_current();
        let Some(Ok(pools)) = asked.ok().map(|runtime| runtime.block_on(self.pools.all())) else { return };
        page.put(&metrics::POOLS, &[], pools.len() as f64);
        let measured = &pools[..pools.len().min(MEASURED)];
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
            page.put(&metrics::POOL_CALLS, &[pool.name.as_str(), "given"], pool.given as f64);
            page.put(&metrics::POOL_CALLS, &[pool.name.as_str(), "none"], pool.none as f64);
        }
        for pool in measured {
            page.put(&metrics::POOL_LAPSED, &[pool.name.as_str()], pool.lapsed as f64);
        }
    }
}
