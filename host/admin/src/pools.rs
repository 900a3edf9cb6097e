//! The API of number pools.

mod events;
mod transfer;
mod views;
mod watch;

use crate::problem::{Problem, ProblemKind};
use crate::request::{Flag, OptionalJsonBody, PathParams, QueryParams, page_limit};
use crate::service::{Provides, Service, call};
use api::name_schemas::{NumberStateSchema, PoolNameSchema, PoolNumberSchema};
use api::{
    PoolHistoryPage, PoolNumberView, PoolNumbersPage, PoolSettingsRequest, PoolView, PoolsView, ProblemReason,
};
use axum::Json;
use axum::http::StatusCode;
use futures_util::future::BoxFuture;
use model::{
    JournalEntry, NumberState, PoolAnswer, PoolId, PoolName, PoolNumber, PoolOperation, PoolOutcome,
    PoolRefusal, PoolRequest, PoolSettings, PoolSummary,
};
use ports::PoolFeed;
use serde::Deserialize;
use std::time::Duration;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The backend of number pools. Answers contain only durable state.
pub trait Pools: Send + Sync + 'static {
    /// Sends a request to a pool.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn ask_pool(&self, pool: PoolName, request: PoolRequest) -> BoxFuture<'_, Result<PoolAnswer, Problem>>;
    /// Applies operations to a pool as one batch.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn fill_pool(
        &self,
        pool: PoolName,
        operations: Vec<PoolOperation>,
    ) -> BoxFuture<'_, Result<PoolFillResult, Problem>>;
    /// All pools, sorted by name.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn all_pools(&self) -> BoxFuture<'_, Result<Vec<PoolSummary>, Problem>>;
    /// A page of a pool's journal, newest first: entries before the entry `before`, of one number if `number` is set. May
    /// block.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn pool_history(
        &self,
        pool: PoolId,
        before: Option<u64>,
        number: Option<PoolNumber>,
        most: usize,
    ) -> Result<PoolJournalPage, Problem>;
    /// A page of a pool's journal, oldest first, from the entry `from` on. May block.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn pool_journal(&self, pool: PoolId, from: u64, most: usize)
    -> Result<Vec<(u64, JournalEntry)>, Problem>;
    /// The feed that wakes watchers of pools.
    fn pool_feed(&self) -> &PoolFeed;
}

/// The result of a batch of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolFillResult {
    /// The outcome of each operation.
    pub outcomes: Vec<PoolOutcome>,
    /// Number of new numbers in the pool.
    pub added: usize,
}

/// A page of a pool's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolJournalPage {
    /// Entries with their ids, newest first.
    pub entries: Vec<(u64, JournalEntry)>,
    /// The `before` of the next page.
    pub next: Option<u64>,
}

pub(crate) fn routes<S: Provides<dyn Pools>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(list_pools))
        .routes(routes!(get_pool, configure_pool, remove_pool))
        .routes(routes!(list_numbers))
        .routes(routes!(get_number))
        .routes(routes!(events::post_events))
        .routes(routes!(list_history))
        .routes(routes!(watch::watch))
        .routes(routes!(transfer::import))
        .routes(routes!(transfer::export))
}

fn bad_request(what: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::BadRequest, what)
}

fn no_such_pool(pool: &PoolName) -> Problem {
    let what =
        format!("there is no pool {pool}; PUT /v1/pools/{pool}, or adding its first number, creates it");
    Problem::new(ProblemKind::NotFound, what).with_reason(ProblemReason::of("no-pool"))
}

/// The engine's answer does not match the request: a fault of the daemon.
fn unexpected_answer() -> Problem {
    Problem::new(ProblemKind::Internal, "the engine returned an unexpected answer")
}

fn name(pool: &str) -> Result<PoolName, Problem> {
    pool.parse().map_err(|error: model::ParsePoolNameError| bad_request(error.to_string()))
}

fn number_of(text: &str) -> Result<PoolNumber, Problem> {
    text.parse().map_err(|error: model::ParsePoolNumberError| bad_request(error.to_string()))
}

async fn summary(backend: &Service<dyn Pools>, pool: &PoolName) -> Result<PoolSummary, Problem> {
    match backend.ask_pool(pool.clone(), PoolRequest::Show).await? {
        PoolAnswer::Pool(summary) => Ok(*summary),
        PoolAnswer::NoPool => Err(no_such_pool(pool)),
        _ => Err(unexpected_answer()),
    }
}

/// Lists all number pools.
#[utoipa::path(get, path = "/v1/pools", responses((status = 200, description = "All number pools.", body = PoolsView)))]
async fn list_pools(backend: Service<dyn Pools>) -> Result<Json<PoolsView>, Problem> {
    let pools = backend.all_pools().await?;
    Ok(Json(PoolsView { pools: pools.iter().map(views::pool).collect() }))
}

/// Shows one number pool.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}",
    params(("pool" = inline(PoolNameSchema), Path, description = "The pool's name.")),
    responses((status = 200, description = "The pool.", body = PoolView)),
)]
async fn get_pool(
    backend: Service<dyn Pools>,
    PathParams(pool): PathParams<String>,
) -> Result<Json<PoolView>, Problem> {
    Ok(Json(views::pool(&summary(&backend, &name(&pool)?).await?)))
}

/// Creates a number pool, or replaces its settings.
///
/// Omitted settings get their defaults.
#[utoipa::path(
    put,
    path = "/v1/pools/{pool}",
    params(("pool" = inline(PoolNameSchema), Path, description = "The pool's name.")),
    request_body = Option<PoolSettingsRequest>,
    responses(
        (status = 200, description = "The pool.", body = PoolView),
        (status = 409, description = "The maximum number of pools exists."),
    ),
)]
async fn configure_pool(
    backend: Service<dyn Pools>,
    PathParams(pool): PathParams<String>,
    OptionalJsonBody(settings): OptionalJsonBody<PoolSettingsRequest>,
) -> Result<Json<PoolView>, Problem> {
    let pool = name(&pool)?;
    let quarantine = Duration::from_millis(settings.quarantine_ms);
    if quarantine > events::MAX_DURATION {
        return Err(bad_request("quarantine-ms: must be at most 3650 days"));
    }
    let settings = PoolSettings { strategy: settings.strategy, quarantine };
    match backend.ask_pool(pool.clone(), PoolRequest::Configure(settings)).await? {
        PoolAnswer::Pool(summary) => {
            tracing::info!(%pool, ?settings, "number pool configured");
            Ok(Json(views::pool(&summary)))
        }
        PoolAnswer::TooMany => {
            let what = "the maximum number of pools is reached";
            Err(Problem::new(ProblemKind::Conflict, what).with_reason(ProblemReason::of("full")))
        }
        _ => Err(unexpected_answer()),
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[into_params(parameter_in = Query)]
struct RemovePoolQuery {
    /// Also remove the pool if it has numbers, even if they are leased.
    #[param(inline)]
    with_numbers: Option<Flag>,
}

/// Removes a number pool without numbers.
#[utoipa::path(
    delete,
    path = "/v1/pools/{pool}",
    params(("pool" = inline(PoolNameSchema), Path, description = "The pool's name."), RemovePoolQuery),
    responses(
        (status = 204, description = "The pool is removed."),
        (status = 409, description = "The pool has numbers."),
    ),
)]
async fn remove_pool(
    backend: Service<dyn Pools>,
    PathParams(pool): PathParams<String>,
    QueryParams(RemovePoolQuery { with_numbers }): QueryParams<RemovePoolQuery>,
) -> Result<StatusCode, Problem> {
    let pool = name(&pool)?;
    let with_numbers = with_numbers.unwrap_or_default().0;
    match backend.ask_pool(pool.clone(), PoolRequest::Remove { with_numbers }).await? {
        PoolAnswer::Removed => {
            tracing::info!(%pool, with_numbers, "number pool removed");
            Ok(StatusCode::NO_CONTENT)
        }
        PoolAnswer::NotEmpty => {
            let what = "the pool has numbers: delete them first, or repeat the request with ?with-numbers=true; holders then lose their numbers";
            Err(Problem::new(ProblemKind::Conflict, what).with_reason(ProblemReason::of("not-empty")))
        }
        PoolAnswer::NoPool => Err(no_such_pool(&pool)),
        _ => Err(unexpected_answer()),
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct NumbersQuery {
    /// Only numbers in this state. Write `+` as `%2B`.
    #[param(value_type = Option<NumberStateSchema>, inline)]
    state: Option<NumberState>,
    /// Only numbers with this prefix.
    #[param(value_type = Option<PoolNumberSchema>, inline)]
    prefix: Option<String>,
    /// Maximum number of entries; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the previous page.
    cursor: Option<u32>,
}

/// Lists a pool's numbers, in no particular order.
///
/// A number that is in the pool during the whole listing appears exactly once.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}/numbers",
    params(("pool" = inline(PoolNameSchema), Path, description = "The pool's name."), NumbersQuery),
    responses((status = 200, description = "A page of numbers.", body = PoolNumbersPage)),
)]
async fn list_numbers(
    backend: Service<dyn Pools>,
    PathParams(pool): PathParams<String>,
    QueryParams(page): QueryParams<NumbersQuery>,
) -> Result<Json<PoolNumbersPage>, Problem> {
    let pool = name(&pool)?;
    let prefix = page.prefix.as_deref().map(number_of).transpose()?;
    let limit = page_limit(page.limit, 1_000)?;
    let mut from = page.cursor.unwrap_or(0);
    let mut found = Vec::new();
    // One slice of the pool may contain few matches, and the next one more.
    let next = loop {
        let most = u32::try_from(limit - found.len()).unwrap_or(u32::MAX);
        let request = PoolRequest::Numbers { from, most, state: page.state, prefix };
        match backend.ask_pool(pool.clone(), request).await? {
            PoolAnswer::Numbers { numbers, next } => {
                found.extend(numbers);
                match next {
                    Some(next) if found.len() < limit => from = next,
                    next => break next,
                }
            }
            PoolAnswer::NoPool => return Err(no_such_pool(&pool)),
            _ => return Err(unexpected_answer()),
        }
    };
    Ok(Json(PoolNumbersPage { numbers: found.iter().map(views::number).collect(), next }))
}

/// Shows one number of a pool.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}/numbers/{number}",
    params(
        ("pool" = inline(PoolNameSchema), Path, description = "The pool's name."),
        ("number" = inline(PoolNumberSchema), Path, description = "The number."),
    ),
    responses((status = 200, description = "The number.", body = PoolNumberView)),
)]
async fn get_number(
    backend: Service<dyn Pools>,
    PathParams((pool, number)): PathParams<(String, String)>,
) -> Result<Json<PoolNumberView>, Problem> {
    let (pool, number) = (name(&pool)?, number_of(&number)?);
    match backend.ask_pool(pool.clone(), PoolRequest::Number(number)).await? {
        PoolAnswer::Number(Some(status)) => Ok(Json(views::number(&status))),
        PoolAnswer::Number(None) => {
            summary(&backend, &pool).await?;
            let refusal = PoolRefusal::NotInPool;
            Err(Problem::new(ProblemKind::NotFound, refusal.to_string())
                .with_reason(events::refusal_reason(&refusal)))
        }
        _ => Err(unexpected_answer()),
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PoolHistoryQuery {
    /// Only entries of this number.
    #[param(value_type = Option<PoolNumberSchema>, inline)]
    number: Option<String>,
    /// The `next` of the previous page.
    before: Option<u64>,
    /// Maximum number of entries; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Lists a pool's journal, newest first.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}/history",
    params(("pool" = inline(PoolNameSchema), Path, description = "The pool's name."), PoolHistoryQuery),
    responses((status = 200, description = "A page of entries.", body = PoolHistoryPage)),
)]
async fn list_history(
    backend: Service<dyn Pools>,
    PathParams(pool): PathParams<String>,
    QueryParams(page): QueryParams<PoolHistoryQuery>,
) -> Result<Json<PoolHistoryPage>, Problem> {
    let pool = name(&pool)?;
    let number = page.number.as_deref().map(number_of).transpose()?;
    let limit = page_limit(page.limit, 1_000)?;
    let id = summary(&backend, &pool).await?.id;
    let read = move |backend: &dyn Pools| backend.pool_history(id, page.before, number, limit);
    let found = call(backend, read).await?;
    let entries = found.entries.iter().map(|(id, entry)| views::entry(*id, entry)).collect();
    Ok(Json(PoolHistoryPage { entries, next: found.next }))
}
