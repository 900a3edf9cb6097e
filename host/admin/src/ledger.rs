//! The API of the ledger: balances, and what is done to them.

use crate::api::{Asked, Shared, answer, json};
use crate::problem::{Kind, Problem};
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::routing::get;
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::Value;
use std::collections::HashMap;

/// What stands behind it.
pub trait Ledger: Send + Sync + 'static {
    /// All accounts with their balances.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn balances(&self) -> Result<Value, Problem>;
    /// One account.
    ///
    /// # Errors
    /// When there is none of that name.
    fn balance(&self, account: &str) -> Result<Value, Problem>;
    /// A balance operation: `fund` or `credit`, with a reason. Done once, however often it comes with the same `key`.
    ///
    /// # Errors
    /// When it cannot be understood, would go beyond the limit, or its key was used for another one.
    fn change(&self, account: &str, key: &str, request: Value) -> Result<Value, Problem>;
    /// What was done to an account, newest first: limit, before.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn operations(&self, account: &str, query: &HashMap<String, String>) -> Result<Value, Problem>;
}

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/ledger", get(balances))
        .route("/v1/ledger/{account}", get(balance).post(change))
        .route("/v1/ledger/{account}/operations", get(operations))
}

type Answer = Result<Json<Value>, Problem>;

async fn balances(State(appliance): State<Shared>) -> Answer {
    answer(appliance, Ledger::balances).await
}

async fn balance(State(appliance): State<Shared>, Path(account): Path<String>) -> Answer {
    answer(appliance, move |appliance| appliance.balance(&account)).await
}

async fn change(
    State(appliance): State<Shared>,
    Path(account): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let Some(key) = key.filter(|key| (1..=64).contains(&key.len())) else {
        let detail = "send the header `Idempotency-Key` with 1 to 64 octets of your own: with it the request can be \
                      repeated safely";
        return Err(Problem::new(Kind::BadRequest, detail));
    };
    let request = json(&body)?;
    answer(appliance, move |appliance| appliance.change(&account, &key, request)).await
}

async fn operations(
    State(appliance): State<Shared>,
    Path(account): Path<String>,
    Query(query): Asked,
) -> Answer {
    answer(appliance, move |appliance| appliance.operations(&account, &query)).await
}
