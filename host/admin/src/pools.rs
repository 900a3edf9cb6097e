//! The API of number pools.

mod events;
mod shown;
mod transfer;
mod watch;
mod words;

use crate::api::{Shared, call};
use crate::problem::{Kind, Problem, Reason};
use crate::request::{At, Flag, IfAny, Parameters, limit};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use doors::PoolFeed;
use futures_util::future::BoxFuture;
use model::{
    NumberState, PoolAnswer, PoolEntry, PoolId, PoolName, PoolNumber, PoolOperation, PoolOutcome,
    PoolRefusal, PoolRequest, PoolSettings, PoolSummary, Strategy,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use words::{NameText, NumberText, NumberWord, StrategyWord};

/// What stands behind it. Answers tell only what is durable.
pub trait Pools: Send + Sync + 'static {
    /// Asks something of one pool.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn ask_pool(&self, pool: PoolName, request: PoolRequest) -> BoxFuture<'_, Result<PoolAnswer, Problem>>;
    /// Does operations in one piece, and tells by how many numbers the pool has grown.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn fill_pool(
        &self,
        pool: PoolName,
        operations: Vec<PoolOperation>,
    ) -> BoxFuture<'_, Result<Filled, Problem>>;
    /// All pools, by name.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn all_pools(&self) -> BoxFuture<'_, Result<Vec<PoolSummary>, Problem>>;
    /// A page of a pool's journal, newest first: entries before the one of this number, of one number only if it is named.
    /// May wait.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn pool_history(
        &self,
        pool: PoolId,
        before: Option<u64>,
        number: Option<PoolNumber>,
        most: usize,
    ) -> Result<History, Problem>;
    /// A page of a pool's journal, oldest first, from the entry of this number on. May wait.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn pool_journal(&self, pool: PoolId, from: u64, most: usize) -> Result<Vec<(u64, PoolEntry)>, Problem>;
    /// Tells when there is more in the journal.
    fn pool_feed(&self) -> &PoolFeed;
}

/// What became of a part of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// What became of each operation.
    pub outcomes: Vec<PoolOutcome>,
    /// How many numbers are in the pool that were not before.
    pub grown: usize,
}

/// A page of a pool's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Entries with their numbers, newest first.
    pub entries: Vec<(u64, PoolEntry)>,
    /// Where to go on: `before` of the next page.
    pub next: Option<u64>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(all))
        .routes(routes!(show, configure, remove))
        .routes(routes!(numbers))
        .routes(routes!(number))
        .routes(routes!(events::take))
        .routes(routes!(history))
        .routes(routes!(watch::watch))
        .routes(routes!(transfer::import))
        .routes(routes!(transfer::export))
}

fn bad(what: impl Into<String>) -> Problem {
    Problem::new(Kind::BadRequest, what)
}

fn nowhere(pool: &PoolName) -> Problem {
    let what = format!("there is no pool {pool}; PUT /v1/pools/{pool}, or the first number added, makes it");
    Problem::new(Kind::NotFound, what).because(Reason::of("no-pool"))
}

/// An answer that does not belong to its question: only a fault of ours makes one.
fn strange() -> Problem {
    Problem::new(Kind::Internal, "the engine gave another answer than was asked for")
}

fn name(pool: &str) -> Result<PoolName, Problem> {
    pool.parse().map_err(|error: model::ParsePoolNameError| bad(error.to_string()))
}

fn number_of(text: &str) -> Result<PoolNumber, Problem> {
    text.parse().map_err(|error: model::ParsePoolNumberError| bad(error.to_string()))
}

async fn summary(appliance: &Shared, pool: &PoolName) -> Result<PoolSummary, Problem> {
    match appliance.ask_pool(pool.clone(), PoolRequest::Show).await? {
        PoolAnswer::Pool(summary) => Ok(*summary),
        PoolAnswer::NoPool => Err(nowhere(pool)),
        _ => Err(strange()),
    }
}

/// All number pools.
#[derive(Serialize, ToSchema)]
struct AllPools {
    /// By name.
    pools: Vec<shown::Pool>,
}

/// All number pools, by name.
#[utoipa::path(get, path = "/v1/pools", responses((status = 200, description = "All of them.", body = AllPools)))]
async fn all(State(appliance): State<Shared>) -> Result<Json<AllPools>, Problem> {
    let pools = appliance.all_pools().await?;
    Ok(Json(AllPools { pools: pools.iter().map(shown::pool).collect() }))
}

/// One number pool.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}",
    params(("pool" = inline(NameText), Path, description = "Its name.")),
    responses((status = 200, description = "As it is now.", body = shown::Pool)),
)]
async fn show(State(appliance): State<Shared>, At(pool): At<String>) -> Result<Json<shown::Pool>, Problem> {
    Ok(Json(shown::pool(&summary(&appliance, &name(&pool)?).await?)))
}

/// How numbers of a pool are given: what is left out is as in a new pool.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schema(as = WantedPoolSettings)]
struct Settings {
    /// Which number is taken.
    #[schema(value_type = StrategyWord, inline)]
    strategy: Strategy,
    /// How long a number rests after a call, in milliseconds.
    #[schema(maximum = 315_360_000_000_u64)]
    quarantine_ms: u64,
}

/// Makes a number pool, or gives it other settings: what is left out is as in a new pool.
#[utoipa::path(
    put,
    path = "/v1/pools/{pool}",
    params(("pool" = inline(NameText), Path, description = "Its name.")),
    request_body = Option<Settings>,
    responses(
        (status = 200, description = "As it is now.", body = shown::Pool),
        (status = 409, description = "The appliance has as many pools as it takes."),
    ),
)]
async fn configure(
    State(appliance): State<Shared>,
    At(pool): At<String>,
    IfAny(settings): IfAny<Settings>,
) -> Result<Json<shown::Pool>, Problem> {
    let pool = name(&pool)?;
    let quarantine = Duration::from_millis(settings.quarantine_ms);
    if quarantine > events::LONGEST {
        return Err(bad("quarantine-ms: a number may rest for at most 3650 days"));
    }
    let settings = PoolSettings { strategy: settings.strategy, quarantine };
    match appliance.ask_pool(pool.clone(), PoolRequest::Configure(settings)).await? {
        PoolAnswer::Pool(summary) => {
            tracing::info!(%pool, ?settings, "number pool configured");
            Ok(Json(shown::pool(&summary)))
        }
        PoolAnswer::TooMany => {
            let what = "the appliance has as many pools as it takes";
            Err(Problem::new(Kind::Conflict, what).because(Reason::of("full")))
        }
        _ => Err(strange()),
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[into_params(parameter_in = Query)]
struct Removal {
    /// Also if it has some, whoever holds them.
    #[param(inline)]
    with_numbers: Option<Flag>,
}

/// Takes a number pool away, if it has no numbers.
#[utoipa::path(
    delete,
    path = "/v1/pools/{pool}",
    params(("pool" = inline(NameText), Path, description = "Its name."), Removal),
    responses(
        (status = 204, description = "It is gone."),
        (status = 409, description = "It has numbers."),
    ),
)]
async fn remove(
    State(appliance): State<Shared>,
    At(pool): At<String>,
    Parameters(Removal { with_numbers }): Parameters<Removal>,
) -> Result<StatusCode, Problem> {
    let pool = name(&pool)?;
    let with_numbers = with_numbers.unwrap_or_default().0;
    match appliance.ask_pool(pool.clone(), PoolRequest::Remove { with_numbers }).await? {
        PoolAnswer::Removed => {
            tracing::info!(%pool, with_numbers, "number pool removed");
            Ok(StatusCode::NO_CONTENT)
        }
        PoolAnswer::NotEmpty => {
            let what = "the pool has numbers: delete them first, or say ?with-numbers=true, and whoever has one loses it";
            Err(Problem::new(Kind::Conflict, what).because(Reason::of("not-empty")))
        }
        PoolAnswer::NoPool => Err(nowhere(&pool)),
        _ => Err(strange()),
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct NumbersPage {
    /// Only those in this state; `+` is written `%2B`.
    #[param(value_type = Option<NumberWord>, inline)]
    state: Option<NumberState>,
    /// Only those that begin with this.
    #[param(value_type = Option<NumberText>, inline)]
    prefix: Option<String>,
    /// How many; 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<u32>,
}

/// A page of a pool's numbers.
#[derive(Serialize, ToSchema)]
struct Numbers {
    numbers: Vec<shown::Number>,
    /// Where the next page begins; null: there is none.
    #[schema(required)]
    next: Option<u32>,
}

/// A page of a pool's numbers, in no particular order; each that is there all the while comes once.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}/numbers",
    params(("pool" = inline(NameText), Path, description = "Its name."), NumbersPage),
    responses((status = 200, description = "A page of them.", body = Numbers)),
)]
async fn numbers(
    State(appliance): State<Shared>,
    At(pool): At<String>,
    Parameters(page): Parameters<NumbersPage>,
) -> Result<Json<Numbers>, Problem> {
    let pool = name(&pool)?;
    let prefix = page.prefix.as_deref().map(number_of).transpose()?;
    let limit = limit(page.limit, 1_000)?;
    let mut from = page.cursor.unwrap_or(0);
    let mut found = Vec::new();
    // A part may hold few that fit, and the next one more.
    let next = loop {
        let most = u32::try_from(limit - found.len()).unwrap_or(u32::MAX);
        let request = PoolRequest::Numbers { from, most, state: page.state, prefix };
        match appliance.ask_pool(pool.clone(), request).await? {
            PoolAnswer::Numbers { numbers, next } => {
                found.extend(numbers);
                match next {
                    Some(next) if found.len() < limit => from = next,
                    next => break next,
                }
            }
            PoolAnswer::NoPool => return Err(nowhere(&pool)),
            _ => return Err(strange()),
        }
    };
    Ok(Json(Numbers { numbers: found.iter().map(shown::number).collect(), next }))
}

/// How one number of a pool stands.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}/numbers/{number}",
    params(
        ("pool" = inline(NameText), Path, description = "The pool's name."),
        ("number" = inline(NumberText), Path, description = "The number."),
    ),
    responses((status = 200, description = "As it is now.", body = shown::Number)),
)]
async fn number(
    State(appliance): State<Shared>,
    At((pool, number)): At<(String, String)>,
) -> Result<Json<shown::Number>, Problem> {
    let (pool, number) = (name(&pool)?, number_of(&number)?);
    match appliance.ask_pool(pool.clone(), PoolRequest::Number(number)).await? {
        PoolAnswer::Number(Some(standing)) => Ok(Json(shown::number(&standing))),
        PoolAnswer::Number(None) => {
            summary(&appliance, &pool).await?;
            let refusal = PoolRefusal::NotInPool;
            Err(Problem::new(Kind::NotFound, refusal.to_string()).because(events::reason(&refusal)))
        }
        _ => Err(strange()),
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct HistoryPage {
    /// Only what happened to this number.
    #[param(value_type = Option<NumberText>, inline)]
    number: Option<String>,
    /// The `next` of the page before.
    before: Option<u64>,
    /// How many; 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// A page of a pool's journal.
#[derive(Serialize, ToSchema)]
struct Entries {
    entries: Vec<shown::Entry>,
    /// Where the next page begins; null: there is none.
    #[schema(required)]
    next: Option<u64>,
}

/// What has happened to a pool's numbers, newest first.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}/history",
    params(("pool" = inline(NameText), Path, description = "Its name."), HistoryPage),
    responses((status = 200, description = "A page of it.", body = Entries)),
)]
async fn history(
    State(appliance): State<Shared>,
    At(pool): At<String>,
    Parameters(page): Parameters<HistoryPage>,
) -> Result<Json<Entries>, Problem> {
    let pool = name(&pool)?;
    let number = page.number.as_deref().map(number_of).transpose()?;
    let limit = limit(page.limit, 1_000)?;
    let id = summary(&appliance, &pool).await?.id;
    let read = move |appliance: &dyn crate::Appliance| appliance.pool_history(id, page.before, number, limit);
    let found = call(appliance, read).await?;
    let entries = found.entries.iter().map(|(id, entry)| shown::entry(*id, entry)).collect();
    Ok(Json(Entries { entries, next: found.next }))
}
