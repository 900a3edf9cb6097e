use crate::attention::AttentionLimits;
use crate::backup::Backup;
use crate::configuration::Configuration;
use crate::guard;
use crate::known::{Known, only_known};
use crate::ledger::Ledger;
use crate::machine::Machine;
use crate::messages::Messages;
use crate::operation::Operation;
use crate::orders::Orders;
use crate::plugins::Plugins;
use crate::pools::Pools;
use crate::porter::Porter;
use crate::problem::{Kind, Problem};
use crate::pulse::Pulse;
use crate::subscribers::Subscribers;
use crate::testing::Testing;
use crate::view;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::{Extension, Json, Router};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;

/// What stands behind the API. Its methods may wait; they are called off the network's threads.
pub trait Appliance:
    Plugins
    + Ledger
    + Pools
    + Orders
    + Messages
    + Subscribers
    + Operation
    + Backup
    + Machine
    + Testing
    + Configuration
{
    /// The appliance as a whole.
    ///
    /// # Errors
    /// When the store cannot be read, or the appliance is shutting down.
    fn status(&self) -> Result<view::Status, Problem>;
    /// All queues.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn queues(&self) -> Result<Vec<view::Queue>, Problem>;
    /// All links.
    fn links(&self) -> Vec<view::Link>;
    /// One message's trace, with its text if `body`.
    ///
    /// # Errors
    /// When there is no such message.
    fn message(&self, id: &str, body: bool) -> Result<view::Trace, Problem>;
    /// What would become of a message.
    ///
    /// # Errors
    /// When its origin is not known.
    fn explain(&self, message: view::Hypothetical) -> Result<view::Explanation, Problem>;
    /// A page of finished messages: number, account, peer, state, direction, from, until, limit, cursor, body, trace.
    ///
    /// # Errors
    /// When the query is wrong, or the archive cannot be read.
    fn history(&self, query: &HashMap<String, String>) -> Result<serde_json::Value, Problem>;
    /// The same messages, all of them, as a file.
    ///
    /// # Errors
    /// As [`Appliance::history`].
    fn export(&self, query: &HashMap<String, String>) -> Result<Export, Problem>;
    /// Counts by hour or day, account and gateway: by, east, from, until, account, peer.
    ///
    /// # Errors
    /// As [`Appliance::history`].
    fn statistics(&self, query: &HashMap<String, String>) -> Result<serde_json::Value, Problem>;
    /// How the data pump fares.
    ///
    /// # Errors
    /// When there is no archive.
    fn archive(&self) -> Result<serde_json::Value, Problem>;
    /// Reports that match no message yet.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn parked(&self) -> Result<serde_json::Value, Problem>;
    /// Makes the reports of a time range once more: the body of the request as it came.
    ///
    /// # Errors
    /// When it cannot be understood, or a queue is full.
    fn report_again(&self, request: serde_json::Value) -> Result<serde_json::Value, Problem>;
    /// Refused submissions: account, code, since, limit.
    ///
    /// # Errors
    /// When the query is wrong, or there is no such account.
    fn refusals(&self, query: &HashMap<String, String>) -> Result<view::Refusals, Problem>;
    /// Who has told whom to stop.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn opt_outs(&self) -> Result<serde_json::Value, Problem>;
    /// Stops a sender for a subscriber, or lets it go on: the body of the request as it came.
    ///
    /// # Errors
    /// When it cannot be understood.
    fn set_opt_out(&self, request: serde_json::Value) -> Result<(), Problem>;
    /// Business systems: their calls and pushes.
    fn business(&self) -> serde_json::Value;
    /// Core networks: connections, MTs, MOs, what the HLR was asked.
    fn gsm(&self) -> serde_json::Value;
    /// Limits beyond which something needs attention.
    fn attention_limits(&self) -> AttentionLimits;
    /// All metrics.
    fn metrics(&self) -> String;
}

/// A file in the making, in pieces.
#[derive(Debug)]
pub struct Export {
    /// What it is.
    pub media_type: &'static str,
    /// Its pieces; an error ends it, and the connection with it.
    pub chunks: tokio::sync::mpsc::Receiver<Result<Vec<u8>, String>>,
}

pub(crate) type Shared = Arc<dyn Appliance>;

/// The largest request, where an operation says nothing else.
const REQUEST_LIMIT: usize = 16 << 20;

/// Operations that are for everyone, before anybody has said who he is.
pub(crate) fn open() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(crate::health::routes())
        .merge(crate::ready::routes())
        .merge(crate::people::open())
}

/// Operations that need a right; [`crate::rights`] says which.
pub(crate) fn guarded() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(crate::overview::routes())
        .merge(crate::attention::routes())
        .merge(crate::pulse::routes())
        .merge(crate::trace::routes())
        .merge(crate::messages::routes())
        .merge(crate::subscribers::routes())
        .merge(crate::orders::routes())
        .merge(crate::records::routes())
        .merge(crate::plugins::routes())
        .merge(crate::tables::routes())
        .merge(crate::ledger::routes())
        .merge(crate::pools::routes())
        .merge(crate::configuration::routes())
        .merge(crate::operation::routes())
        .merge(crate::backup::routes())
        .merge(crate::machine::routes())
        .merge(crate::testing::routes())
        .merge(crate::people::routes())
}

/// These operations, with no other parameters than those they describe.
fn strict(operations: OpenApiRouter<Shared>) -> OpenApiRouter<Shared> {
    let known = Known::of(operations.get_openapi());
    operations.route_layer(middleware::from_fn_with_state(known, only_known))
}

/// The whole API. All but health, readiness, the API's own description and logging in pass the guard.
pub fn router(appliance: Shared, porter: Arc<Porter>) -> Router {
    let guarded = strict(guarded()).route_layer(middleware::from_fn_with_state(porter.clone(), guard::guard));
    Router::from(strict(open()).merge(guarded))
        .fallback(|| async {
            Problem::new(Kind::NotFound, "no such path; GET /v1/openapi.json lists all of them")
        })
        .method_not_allowed_fallback(|| async {
            let what = "this path does not take this method; the header Allow lists those it takes";
            Problem::new(Kind::NoSuchMethod, what)
        })
        .layer(DefaultBodyLimit::max(REQUEST_LIMIT))
        .layer(Extension(porter))
        .layer(Extension(Pulse::begin(&appliance)))
        .layer(middleware::map_response(guard::secure))
        .with_state(appliance)
}

/// Calls the appliance off the network's threads.
pub(crate) async fn call<T: Send + 'static>(
    appliance: Shared,
    ask: impl FnOnce(&dyn Appliance) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let asked = tokio::task::spawn_blocking(move || ask(&*appliance)).await;
    asked
        .unwrap_or_else(|_| Err(Problem::new(Kind::Internal, "the request failed inside; the log says more")))
}

pub(crate) async fn answer<T: Serialize + Send + 'static>(
    appliance: Shared,
    ask: impl FnOnce(&dyn Appliance) -> Result<T, Problem> + Send + 'static,
) -> Result<Json<T>, Problem> {
    call(appliance, ask).await.map(Json)
}
