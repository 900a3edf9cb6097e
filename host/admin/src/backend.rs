use crate::appliance_image::ApplianceImage;
use crate::attention::AttentionLimits;
use crate::authenticator::Authenticator;
use crate::authz;
use crate::backup::Backup;
use crate::cluster::ClusterLeader;
use crate::configuration::Configuration;
use crate::known_parameters::{KnownParameters, reject_unknown_parameters};
use crate::ledger::Ledger;
use crate::messages::Messages;
use crate::operation::Operation;
use crate::pace_buckets::PaceBuckets;
use crate::plugin_sources::PluginSources;
use crate::plugins::Plugins;
use crate::pools::Pools;
use crate::problem::{Problem, ProblemKind};
use crate::quarantine::Quarantine;
use crate::queue_actions::QueueActions;
use crate::recent_metrics::MetricsSampler;
use crate::security_headers::add_security_headers;
use crate::subscribers::GsmSubscribers;
use crate::testing::Testing;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json, Router};
use model::NumberDisplay;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;

/// The backend of the HTTP API. Its methods may block; the API calls them on blocking threads.
pub trait ApiBackend:
    Plugins
    + PluginSources
    + Ledger
    + Pools
    + Quarantine
    + PaceBuckets
    + QueueActions
    + Messages
    + GsmSubscribers
    + Operation
    + Backup
    + ApplianceImage
    + ClusterLeader
    + Testing
    + Configuration
{
    /// The appliance as a whole.
    ///
    /// # Errors
    /// If the store cannot be read, or the daemon is shutting down.
    fn status(&self) -> Result<api::StatusView, Problem>;
    /// All queues.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn queues(&self) -> Result<Vec<api::QueueView>, Problem>;
    /// All links.
    fn links(&self) -> Vec<api::LinkView>;
    /// The trace of a message, with its text if `body`. `numbers`: how numbers are shown, here and below.
    ///
    /// # Errors
    /// If there is no such message.
    fn message(&self, id: &str, body: bool, numbers: NumberDisplay) -> Result<api::TraceView, Problem>;
    /// Explains how a message would be routed.
    ///
    /// # Errors
    /// If its origin is unknown.
    fn explain(&self, message: api::ExplainRequest) -> Result<api::ExplanationView, Problem>;
    /// A page of finished messages. Query: number, account, peer, state, direction, from, until, limit, cursor, body, trace.
    ///
    /// # Errors
    /// If the query is invalid, or the archive cannot be read.
    fn history(
        &self,
        query: &HashMap<String, String>,
        numbers: NumberDisplay,
    ) -> Result<api::HistoryPageView, Problem>;
    /// All finished messages that match the query, as a file.
    ///
    /// # Errors
    /// As [`ApiBackend::history`].
    fn export(&self, query: &HashMap<String, String>, numbers: NumberDisplay) -> Result<Export, Problem>;
    /// Counts by hour or day, account and gateway. Query: by, utc_offset, from, until, account, peer.
    ///
    /// # Errors
    /// As [`ApiBackend::history`].
    fn statistics(&self, query: &HashMap<String, String>) -> Result<Vec<api::StatisticsView>, Problem>;
    /// The state of the archive's data pump.
    ///
    /// # Errors
    /// If there is no archive.
    fn archive(&self) -> Result<api::ArchivePumpView, Problem>;
    /// DLRs from peers that match no message yet.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn orphan_dlrs(&self) -> Result<api::OrphanDlrsView, Problem>;
    /// Sends the DLRs of a time range again.
    ///
    /// # Errors
    /// If the request is invalid, or a queue is full.
    fn resend_dlrs(&self, request: api::ResendDlrsRequest) -> Result<api::ResendDlrsResult, Problem>;
    /// Refused submissions. Query: account, code, since, limit.
    ///
    /// # Errors
    /// If the query is invalid, or there is no such account.
    fn refusals(
        &self,
        query: &HashMap<String, String>,
        numbers: NumberDisplay,
    ) -> Result<api::RefusalsView, Problem>;
    /// The opt-outs of subscribers.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn opt_outs(&self, numbers: NumberDisplay) -> Result<api::OptOutsView, Problem>;
    /// Adds or removes an opt-out.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn set_opt_out(&self, change: &api::OptOutChange) -> Result<(), Problem>;
    /// What was observed of a peer lately.
    ///
    /// # Errors
    /// If there is no such peer.
    fn peer_figures(&self, name: &str) -> Result<api::PeerFiguresView, Problem>;
    /// Records that messages led to a conversion; with `account`, other accounts' messages are unknown.
    ///
    /// # Errors
    /// If the archive cannot be read, or the daemon is shutting down.
    fn report_conversions(
        &self,
        ids: &[String],
        account: Option<Arc<str>>,
    ) -> Result<api::ConversionsResult, Problem>;
    /// Business systems: their calls and pushes.
    fn business(&self) -> Vec<api::BusinessView>;
    /// Peers whose protocol a plugin speaks: submit attempts and callbacks.
    fn plugin_peers(&self) -> Vec<api::PluginPeerView>;
    /// Core networks: connections, MT and MO messages, HLR requests.
    fn gsm(&self) -> Vec<api::CoreNetworkView>;
    /// The limits of the attention rules.
    fn attention_limits(&self) -> AttentionLimits;
    /// All metrics, in the text format of Prometheus.
    fn metrics(&self) -> String;
}

/// A file that is streamed in chunks.
#[derive(Debug)]
pub struct Export {
    /// Its media type.
    pub media_type: &'static str,
    /// The chunks. An error ends the file and the connection.
    pub chunks: tokio::sync::mpsc::Receiver<Result<Vec<u8>, String>>,
}

pub(crate) type SharedBackend = Arc<dyn ApiBackend>;

/// Default limit of a request body, in octets.
const REQUEST_LIMIT: usize = 16 << 20;

/// Operations that require no authentication.
pub(crate) fn public_routes() -> OpenApiRouter<SharedBackend> {
    OpenApiRouter::new()
        .merge(crate::health::routes())
        .merge(crate::ready::routes())
        .merge(crate::users::public_routes())
}

/// Operations that require a permission; see [`crate::permissions`].
pub(crate) fn protected_routes() -> OpenApiRouter<SharedBackend> {
    OpenApiRouter::new()
        .merge(crate::overview::routes())
        .merge(crate::attention::routes())
        .merge(crate::recent_metrics::routes())
        .merge(crate::trace::routes())
        .merge(crate::messages::routes())
        .merge(crate::subscribers::routes())
        .merge(crate::quarantine::routes())
        .merge(crate::pace_buckets::routes())
        .merge(crate::queue_actions::routes())
        .merge(crate::records::routes())
        .merge(crate::plugins::routes())
        .merge(crate::plugin_sources::routes())
        .merge(crate::tables::routes())
        .merge(crate::ledger::routes())
        .merge(crate::pools::routes())
        .merge(crate::configuration::routes())
        .merge(crate::operation::routes())
        .merge(crate::backup::routes())
        .merge(crate::appliance_image::routes())
        .merge(crate::cluster::routes())
        .merge(crate::testing::routes())
        .merge(crate::users::routes())
}

/// Makes the operations refuse query parameters that they do not describe.
fn with_known_parameters(operations: OpenApiRouter<SharedBackend>) -> OpenApiRouter<SharedBackend> {
    let known_parameters = KnownParameters::of(operations.get_openapi());
    operations.route_layer(middleware::from_fn_with_state(known_parameters, reject_unknown_parameters))
}

/// Builds the router of the whole API. All operations require authentication, except health, readiness, the OpenAPI document
/// and login.
pub fn router(backend: SharedBackend, authenticator: Arc<Authenticator>) -> Router {
    let protected_routes = with_known_parameters(protected_routes())
        .route_layer(middleware::from_fn_with_state(backend.clone(), share_changes))
        .route_layer(middleware::from_fn_with_state(authenticator.clone(), authz::authorize));
    Router::from(with_known_parameters(public_routes()).merge(protected_routes))
        .fallback(|| async {
            Problem::new(ProblemKind::NotFound, "no such path; GET /v1/openapi.json lists all of them")
        })
        .method_not_allowed_fallback(|| async {
            let what = "this path does not support this method; the header Allow lists the supported ones";
            Problem::new(ProblemKind::MethodNotAllowed, what)
        })
        .layer(DefaultBodyLimit::max(REQUEST_LIMIT))
        .layer(Extension(authenticator))
        .layer(Extension(MetricsSampler::start(&backend)))
        .layer(middleware::map_response(add_security_headers))
        .with_state(backend)
}

/// Gives what a request has changed to the other nodes of the cluster, before its caller is told.
async fn share_changes(State(backend): State<SharedBackend>, request: Request, next: Next) -> Response {
    let changes = !request.method().is_safe();
    let response = next.run(request).await;
    if !changes || !response.status().is_success() {
        return response;
    }
    match call(backend, ClusterLeader::publish_shared_state).await {
        Ok(()) => response,
        Err(problem) => problem.into_response(),
    }
}

/// Calls the backend on a blocking thread.
pub(crate) async fn call<T: Send + 'static>(
    backend: SharedBackend,
    request: impl FnOnce(&dyn ApiBackend) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let joined = tokio::task::spawn_blocking(move || request(&*backend)).await;
    joined.unwrap_or_else(|_| {
        Err(Problem::new(ProblemKind::Internal, "the request failed internally; see the log"))
    })
}

pub(crate) async fn call_json<T: Serialize + Send + 'static>(
    backend: SharedBackend,
    request: impl FnOnce(&dyn ApiBackend) -> Result<T, Problem> + Send + 'static,
) -> Result<Json<T>, Problem> {
    call(backend, request).await.map(Json)
}
