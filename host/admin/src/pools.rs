//! The API of number pools.

mod events;
mod shown;
mod transfer;
mod watch;

use crate::api::{Asked, Shared, call, json};
use crate::problem::{Kind, Problem, Reason};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use doors::PoolFeed;
use futures_util::future::BoxFuture;
use model::{
    NumberState, PoolAnswer, PoolEntry, PoolId, PoolName, PoolNumber, PoolOperation, PoolOutcome,
    PoolRefusal, PoolRequest, PoolSettings, PoolSummary, Strategy,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;

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

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/pools", get(all))
        .route("/v1/pools/{pool}", get(show).put(configure).delete(remove))
        .route("/v1/pools/{pool}/numbers", get(numbers))
        .route("/v1/pools/{pool}/numbers/{number}", get(number))
        .route("/v1/pools/{pool}/events", post(events::take))
        .route("/v1/pools/{pool}/history", get(history))
        .route("/v1/pools/{pool}/watch", get(watch::watch))
        .route("/v1/pools/{pool}/import", post(transfer::import))
        .route("/v1/pools/{pool}/export", get(transfer::export))
}

type Answer = Result<Json<Value>, Problem>;

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

/// The parameters after the question mark, of which each must be known.
struct Parameters(HashMap<String, String>);

impl Parameters {
    fn of(query: HashMap<String, String>, known: &[&str]) -> Result<Self, Problem> {
        match query.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) if known.is_empty() => Err(bad(format!("{unknown}: is unknown; there are none"))),
            Some(unknown) => Err(bad(format!("{unknown}: is unknown; there are {}", known.join(", ")))),
            None => Ok(Self(query)),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    fn get<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong = |_| bad(format!("{name}: is {text:?}, and must be {expected}"));
        text.parse().map(Some).map_err(wrong)
    }

    fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name) {
            Some("1" | "true") => Ok(true),
            None | Some("0" | "false") => Ok(false),
            Some(text) => Err(bad(format!("{name}: is {text:?}, and must be true or false"))),
        }
    }

    /// How many, of at most `most`.
    fn limit(&self, most: usize) -> Result<usize, Problem> {
        let limit = self.get("limit", "a number")?.unwrap_or(100);
        if (1..=most).contains(&limit) {
            return Ok(limit);
        }
        Err(bad(format!("limit: is {limit}, and must be 1 to {most}")))
    }
}

async fn summary(appliance: &Shared, pool: &PoolName) -> Result<PoolSummary, Problem> {
    match appliance.ask_pool(pool.clone(), PoolRequest::Show).await? {
        PoolAnswer::Pool(summary) => Ok(*summary),
        PoolAnswer::NoPool => Err(nowhere(pool)),
        _ => Err(strange()),
    }
}

async fn all(State(appliance): State<Shared>, Query(query): Asked) -> Answer {
    Parameters::of(query, &[])?;
    let pools = appliance.all_pools().await?;
    Ok(Json(json!({ "pools": pools.iter().map(shown::pool).collect::<Vec<_>>() })))
}

async fn show(State(appliance): State<Shared>, Path(pool): Path<String>) -> Answer {
    Ok(Json(shown::pool(&summary(&appliance, &name(&pool)?).await?)))
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Settings {
    strategy: Strategy,
    quarantine_ms: u64,
}

async fn configure(State(appliance): State<Shared>, Path(pool): Path<String>, body: Bytes) -> Answer {
    let pool = name(&pool)?;
    let settings: Settings = if body.is_empty() { Settings::default() } else { json(&body)? };
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

async fn remove(
    State(appliance): State<Shared>,
    Path(pool): Path<String>,
    Query(query): Asked,
) -> Result<StatusCode, Problem> {
    let pool = name(&pool)?;
    let with_numbers = Parameters::of(query, &["with-numbers"])?.flag("with-numbers")?;
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

async fn numbers(State(appliance): State<Shared>, Path(pool): Path<String>, Query(query): Asked) -> Answer {
    let pool = name(&pool)?;
    let query = Parameters::of(query, &["state", "prefix", "limit", "cursor"])?;
    let state = query.get::<NumberState>("state", "idle+up, idle+down, busy+up or busy+down (+ is %2B)")?;
    let prefix = query.text("prefix").map(number_of).transpose()?;
    let limit = query.limit(1_000)?;
    let mut from = query.get("cursor", "the `next` of the page before")?.unwrap_or(0_u32);
    let mut found = Vec::new();
    // A part may hold few that fit, and the next one more.
    let next = loop {
        let most = u32::try_from(limit - found.len()).unwrap_or(u32::MAX);
        let request = PoolRequest::Numbers { from, most, state, prefix };
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
    let numbers: Vec<_> = found.iter().map(shown::number).collect();
    Ok(Json(json!({ "numbers": numbers, "next": next })))
}

async fn number(State(appliance): State<Shared>, Path((pool, number)): Path<(String, String)>) -> Answer {
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

async fn history(State(appliance): State<Shared>, Path(pool): Path<String>, Query(query): Asked) -> Answer {
    let pool = name(&pool)?;
    let query = Parameters::of(query, &["number", "before", "limit"])?;
    let number = query.text("number").map(number_of).transpose()?;
    let before = query.get("before", "the `next` of the page before")?;
    let limit = query.limit(1_000)?;
    let id = summary(&appliance, &pool).await?.id;
    let found = call(appliance, move |appliance| appliance.pool_history(id, before, number, limit)).await?;
    let entries: Vec<_> = found.entries.iter().map(|(id, entry)| shown::entry(*id, entry)).collect();
    Ok(Json(json!({ "entries": entries, "next": found.next })))
}
