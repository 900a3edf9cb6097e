//! The API of the cluster, on the leader and on followers.

use crate::authenticator::Authenticator;
use crate::authz::{self, Authorization};
use crate::problem::{Problem, ProblemKind};
use crate::request::PathParams;
use crate::request_audit::{AuditedResult, with_audit_detail};
use crate::security_headers::add_security_headers;
use crate::service::{Provides, Service, call, call_json};
use crate::tenants::NoTenants;
use api::{ClusterView, Health, NotReady, ProblemReason, Readiness};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use ports::PassOn;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Header with the URL of the leader, in answers of followers.
const LEADER: HeaderName = HeaderName::from_static("leader");

/// The node at which the state of all partitions (configuration, users, plugins, tables) is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedStateOwner {
    /// This node.
    ThisNode,
    /// The leader of partition 0, with its URL; `None` if there is none at present.
    Leader(Option<String>),
}

/// Path prefixes of requests that change the state of all partitions.
const SHARED_PATHS: [&str; 7] = [
    "/v1/configuration",
    "/v1/hooks",
    "/v1/plugins",
    "/v1/tables",
    "/v1/tokens",
    "/v1/users",
    "/v1/whoami/password",
];
/// Path suffixes, below these prefixes, of requests that change nothing.
const READ_ONLY_SUFFIXES: [&str; 3] = ["/cases", "/try", "/validate"];

/// Whether a changing request with this path changes the state of all partitions.
pub(crate) fn changes_shared_state(path: &str) -> bool {
    let is_below =
        |place: &&str| path.strip_prefix(*place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    SHARED_PATHS.iter().any(is_below) && !READ_ONLY_SUFFIXES.iter().any(|end| path.ends_with(end))
}

/// The answer of another partition than 0 to such a request.
pub(crate) fn changed_elsewhere(leader: Option<&str>) -> Response {
    let what = match leader {
        Some(leader) => format!(
            "configuration, users, plugins and tables are shared by all partitions; change them at the leader of partition 0: {leader}"
        ),
        None => "configuration, users, plugins and tables are changed at the leader of partition 0, and it has none at the moment; \
                 try again in a second"
            .to_owned(),
    };
    with_leader(Problem::new(ProblemKind::Unavailable, what).into_response(), leader)
}

/// The cluster, as seen by the leader.
pub trait ClusterLeader: Send + Sync + 'static {
    /// The state of the cluster; `None` without a cluster.
    fn cluster(&self) -> Option<ClusterView>;
    /// Hands the lead over: this node stops in order after the answer is sent, and another node leads.
    ///
    /// # Errors
    /// No other node is alive.
    fn hand_over(&self, by: &str) -> Result<(), Problem>;
    /// Removes a node that has left the cluster.
    ///
    /// # Errors
    /// There is no such node, it is alive, or etcd does not answer.
    fn remove_node(&self, name: &str, by: &str) -> Result<(), Problem>;
    /// The node at which the state of all partitions is changed.
    fn shared_state_owner(&self) -> SharedStateOwner;
    /// Access to the leaders of the other partitions; `None` without a cluster.
    fn pass_on(&self) -> Option<Arc<dyn PassOn>>;
    /// Publishes changes of configuration, users, plugins and tables to the cluster; durable on return.
    ///
    /// # Errors
    /// etcd does not answer: only this node has the change.
    fn publish_shared_state(&self) -> Result<(), Problem>;
}

pub(crate) fn routes<S: Provides<dyn ClusterLeader>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(cluster)).routes(routes!(hand_over)).routes(routes!(remove_node))
}

/// The problem that the appliance does not belong to a cluster.
#[must_use]
pub fn no_cluster() -> Problem {
    let what = "this appliance belongs to no cluster: its configuration has no section [cluster]";
    Problem::new(ProblemKind::NotFound, what).with_reason(ProblemReason::of("no-cluster"))
}

/// Shows the cluster: nodes, log, members of etcd.
///
/// Followers answer this operation, too.
#[utoipa::path(
    get,
    path = "/v1/cluster",
    responses(
        (status = 200, description = "The cluster, as this node sees it.", body = ClusterView),
        (status = 404, description = "The appliance belongs to no cluster."),
    )
)]
async fn cluster(backend: Service<dyn ClusterLeader>) -> Result<Json<ClusterView>, Problem> {
    call_json(backend, |backend| backend.cluster().ok_or_else(no_cluster)).await
}

/// Hands the lead over to another node: this node stops in order, and the service manager restarts it as a follower.
#[utoipa::path(
    post,
    path = "/v1/cluster/hand-over",
    responses(
        (status = 200, description = "This node stops now.", body = ClusterView),
        (status = 404, description = "The appliance belongs to no cluster."),
        (status = 409, description = "No other node is alive."),
    )
)]
async fn hand_over(
    backend: Service<dyn ClusterLeader>,
    axum::Extension(caller): axum::Extension<access::Caller>,
) -> AuditedResult<ClusterView> {
    let cluster = call(backend, move |backend| {
        let cluster = backend.cluster().ok_or_else(no_cluster)?;
        backend.hand_over(&caller.name)?;
        Ok(cluster)
    });
    with_audit_detail(Json(cluster.await?), |cluster| format!("term {}", cluster.term))
}

/// Removes a node that has left the cluster, so that the leader no longer waits for it.
///
/// Do not remove a node that is only switched off: its disk has the records that it has applied.
#[utoipa::path(
    delete,
    path = "/v1/cluster/nodes/{name}",
    params(("name" = String, Path, description = "The name of the node.")),
    responses(
        (status = 204, description = "The node is removed."),
        (status = 404, description = "There is no such node, or no cluster."),
        (status = 409, description = "The node is alive."),
    )
)]
async fn remove_node(
    backend: Service<dyn ClusterLeader>,
    axum::Extension(caller): axum::Extension<access::Caller>,
    PathParams(name): PathParams<String>,
) -> Result<StatusCode, Problem> {
    call(backend, move |backend| backend.remove_node(&name, &caller.name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A follower.
pub trait ClusterFollower: Send + Sync + 'static {
    /// The state of the cluster.
    fn cluster(&self) -> ClusterView;
    /// URL of the leader's admin API; `None` if no node leads.
    fn leader_address(&self) -> Option<String>;
}

type SharedFollower = Arc<dyn ClusterFollower>;

/// The API of a follower: health, readiness, the cluster. It answers all other requests with 503 and the URL of the
/// leader.
pub fn follower_router(follower: SharedFollower, authenticator: Arc<Authenticator>) -> Router {
    let protected_routes = Router::new().route("/v1/cluster", get(followed_cluster)).route_layer(
        middleware::from_fn_with_state(
            Authorization { authenticator, tenants: Arc::new(NoTenants) },
            authz::authorize,
        ),
    );
    Router::new()
        .route("/v1/health", get(|| async { Json(Health { status: "ok".to_owned() }) }))
        .route("/v1/ready", get(follower_ready))
        .merge(protected_routes)
        .fallback(elsewhere)
        .layer(middleware::map_response(add_security_headers))
        .with_state(follower)
}

async fn followed_cluster(State(follower): State<SharedFollower>) -> Json<ClusterView> {
    Json(follower.cluster())
}

async fn follower_ready(State(follower): State<SharedFollower>) -> Response {
    let leader = follower.leader_address();
    let readiness = Readiness { leader: leader.clone(), ..Readiness::of(vec![NotReady::Following]) };
    with_leader((StatusCode::SERVICE_UNAVAILABLE, Json(readiness)).into_response(), leader.as_deref())
}

async fn elsewhere(State(follower): State<SharedFollower>) -> Response {
    let leader = follower.leader_address();
    let what = match &leader {
        Some(leader) => format!("this node follows; the cluster is led by {leader}"),
        None => {
            "this node follows, and no node leads the cluster at the moment; try again in a second".to_owned()
        }
    };
    with_leader(Problem::new(ProblemKind::Unavailable, what).into_response(), leader.as_deref())
}

fn with_leader(mut response: Response, leader: Option<&str>) -> Response {
    if let Some(leader) = leader.and_then(|leader| HeaderValue::from_str(leader).ok()) {
        response.headers_mut().insert(LEADER, leader);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_shared_state_are_recognised() {
        for shared in [
            "/v1/configuration",
            "/v1/users/ann",
            "/v1/hooks/router/activate",
            "/v1/plugins/pull",
            "/v1/tables/t",
        ] {
            assert!(changes_shared_state(shared), "{shared}");
        }
        for own in [
            "/v1/messages/1/cancel",
            "/v1/hooks/router/try",
            "/v1/configuration/validate",
            "/v1/usersx",
            "/v1/sessions",
        ] {
            assert!(!changes_shared_state(own), "{own}");
        }
    }
}
