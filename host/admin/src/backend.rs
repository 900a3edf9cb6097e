//! All services of the API, and its router.

use crate::appliance_image::ApplianceImage;
use crate::attention::AttentionLimitsSource;
use crate::authenticator::Authenticator;
use crate::authz::{self, Authorization};
use crate::backup::Backup;
use crate::cluster::{self, ClusterLeader, SharedStateOwner};
use crate::configuration::Configuration;
use crate::erasures::Erasures;
use crate::event_sinks::EventSinkStates;
use crate::known_parameters::{KnownParameters, reject_unknown_parameters};
use crate::ledger::Ledger;
use crate::messages::Messages;
use crate::operation::Operation;
use crate::overview::Overview;
use crate::pace_buckets::PaceBuckets;
use crate::passed_on;
use crate::plugin_sources::PluginSources;
use crate::plugins::Plugins;
use crate::pools::Pools;
use crate::problem::{Problem, ProblemKind};
use crate::quarantine::Quarantine;
use crate::queue_actions::QueueActions;
use crate::recent_metrics::MetricsSampler;
use crate::records::MessageRecords;
use crate::security_headers::add_security_headers;
use crate::service::{Provides, Service, call};
use crate::subscribers::GsmSubscribers;
use crate::tenants::Tenants;
use crate::testing::Testing;
use crate::trace::Traces;
use crate::traffic::RecentTraffic;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use std::path::PathBuf;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;

/// Defines the services, and makes each available to handlers.
macro_rules! services {
    ($($field:ident: $service:ident),* $(,)?) => {
        /// The services behind the HTTP API. Their methods may block; the API calls them on blocking threads.
        #[derive(Clone)]
        pub struct ApiServices {
            $(
                #[doc = concat!("See [`", stringify!($service), "`].")]
                pub $field: Arc<dyn $service>,
            )*
            /// Folder of the metrics history.
            pub metrics_folder: PathBuf,
        }

        $(impl Provides<dyn $service> for ApiServices {
            fn service(&self) -> Arc<dyn $service> {
                self.$field.clone()
            }
        })*
    };
}

services! {
    appliance_image: ApplianceImage,
    attention_limits: AttentionLimitsSource,
    backup: Backup,
    cluster: ClusterLeader,
    configuration: Configuration,
    erasures: Erasures,
    event_sinks: EventSinkStates,
    subscribers: GsmSubscribers,
    ledger: Ledger,
    records: MessageRecords,
    messages: Messages,
    operation: Operation,
    overview: Overview,
    pace_buckets: PaceBuckets,
    plugin_sources: PluginSources,
    plugins: Plugins,
    pools: Pools,
    quarantine: Quarantine,
    queue_actions: QueueActions,
    tenants: Tenants,
    traffic: RecentTraffic,
    testing: Testing,
    traces: Traces,
}

/// Default limit of a request body, in octets.
const REQUEST_LIMIT: usize = 16 << 20;

/// Operations that require no authentication.
pub(crate) fn public_routes() -> OpenApiRouter<ApiServices> {
    OpenApiRouter::new()
        .merge(crate::health::routes())
        .merge(crate::ready::routes())
        .merge(crate::users::public_routes())
}

/// Operations that require a permission; see [`crate::permissions`].
pub(crate) fn protected_routes() -> OpenApiRouter<ApiServices> {
    OpenApiRouter::new()
        .merge(crate::overview::routes())
        .merge(crate::attention::routes())
        .merge(crate::recent_metrics::routes())
        .merge(crate::metrics_history::routes())
        .merge(crate::traffic::routes())
        .merge(crate::traffic_map::routes())
        .merge(crate::hook_calls::routes())
        .merge(crate::trace::routes())
        .merge(crate::messages::routes())
        .merge(crate::erasures::routes())
        .merge(crate::subscribers::routes())
        .merge(crate::quarantine::routes())
        .merge(crate::pace_buckets::routes())
        .merge(crate::event_sinks::routes())
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
        .merge(crate::tenants::routes())
        .merge(crate::testing::routes())
        .merge(crate::users::routes())
}

/// Makes the operations refuse undocumented query parameters.
fn with_known_parameters(operations: OpenApiRouter<ApiServices>) -> OpenApiRouter<ApiServices> {
    let known_parameters = KnownParameters::of(operations.get_openapi());
    operations.route_layer(middleware::from_fn_with_state(known_parameters, reject_unknown_parameters))
}

/// Builds the router of the whole API. All operations require authentication, except health, readiness, the OpenAPI document
/// and login.
pub fn router(services: ApiServices, authenticator: Arc<Authenticator>) -> Router {
    let sampler = MetricsSampler::start(
        services.overview.clone(),
        services.plugins.clone(),
        &*services.cluster,
        &services.metrics_folder,
    );
    let authorization =
        Authorization { authenticator: authenticator.clone(), tenants: services.tenants.clone() };
    let protected_routes = with_known_parameters(protected_routes())
        .route_layer(middleware::from_fn_with_state(services.cluster.clone(), share_changes))
        .route_layer(middleware::from_fn_with_state(services.cluster.clone(), passed_on::pass_on))
        .route_layer(middleware::from_fn_with_state(authorization, authz::authorize));
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
        .layer(Extension(sampler))
        .layer(middleware::map_response(add_security_headers))
        .with_state(services)
}

/// Publishes the changes of a request to the other nodes of the cluster, before the caller gets the answer.
async fn share_changes(
    State(cluster): State<Arc<dyn ClusterLeader>>,
    request: Request,
    next: Next,
) -> Response {
    let changes = !request.method().is_safe();
    if changes && cluster::changes_shared_state(request.uri().path()) {
        let owner = call(Service(cluster.clone()), |cluster| Ok(cluster.shared_state_owner())).await;
        match owner {
            Ok(SharedStateOwner::ThisNode) => {}
            Ok(SharedStateOwner::Leader(leader)) => return cluster::changed_elsewhere(leader.as_deref()),
            Err(problem) => return problem.into_response(),
        }
    }
    let response = next.run(request).await;
    if !changes || !response.status().is_success() {
        return response;
    }
    match call(Service(cluster), <dyn ClusterLeader>::publish_shared_state).await {
        Ok(()) => response,
        Err(problem) => problem.into_response(),
    }
}
