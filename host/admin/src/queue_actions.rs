//! The API of queue actions, and of uncertain messages.

use crate::problem::Problem;
use crate::request::{JsonBody, PathParams, QueryParams, page_limit};
use crate::request_audit::{AuditDetail, AuditedResult, append_reason, with_audit_detail};
use crate::service::{Provides, Service, call_json};

use access::Caller;
use api::name_schemas::IdText;
use axum::http::StatusCode;
use axum::{Extension, Json};
use model::NumberDisplay;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The backend of queue actions and uncertain messages.
pub trait QueueActions: Send + Sync + 'static {
    /// All active queue actions and the most recent ended ones, newest first.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn queue_actions(&self) -> Result<Vec<api::QueueActionView>, Problem>;
    /// The messages that an action would apply to now. `numbers`: how numbers are shown.
    ///
    /// # Errors
    /// If the action is invalid, or the daemon is shutting down.
    fn preview_queue_action(
        &self,
        request: api::QueueActionRequest,
        numbers: NumberDisplay,
    ) -> Result<api::QueueActionPreview, Problem>;
    /// Creates a queue action.
    ///
    /// # Errors
    /// If the action is invalid, or the daemon is shutting down.
    fn create_queue_action(
        &self,
        request: api::QueueActionRequest,
        by: &str,
    ) -> Result<api::QueueActionView, Problem>;
    /// Ends or undoes a queue action.
    ///
    /// # Errors
    /// If there is no such action, or it can no longer be undone.
    fn undo_queue_action(&self, id: u32, by: &str) -> Result<api::QueueActionView, Problem>;
    /// Uncertain messages, oldest first. `numbers`: how numbers are shown.
    ///
    /// # Errors
    /// If there is no such peer, or the daemon is shutting down.
    fn list_uncertain(
        &self,
        peer: Option<&str>,
        after: Option<&str>,
        limit: usize,
        numbers: NumberDisplay,
    ) -> Result<api::UncertainPageView, Problem>;
    /// Settles uncertain messages.
    ///
    /// # Errors
    /// If the request selects no messages, or the daemon is shutting down.
    fn settle_uncertain(
        &self,
        request: api::SettleUncertainRequest,
        by: &str,
    ) -> Result<api::SettleUncertainResult, Problem>;
}

pub(crate) fn routes<S: Provides<dyn QueueActions>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(queue_actions, create_queue_action))
        .routes(routes!(preview_queue_action))
        .routes(routes!(undo_queue_action))
        .routes(routes!(list_uncertain))
        .routes(routes!(settle_uncertain))
}

/// Lists the active queue actions and the most recent ended ones, newest first.
#[utoipa::path(get, path = "/v1/queue-actions", responses((status = 200, description = "The queue actions.", body = Vec<api::QueueActionView>)))]
async fn queue_actions(
    backend: Service<dyn QueueActions>,
) -> Result<Json<Vec<api::QueueActionView>>, Problem> {
    call_json(backend, QueueActions::queue_actions).await
}

/// Shows which messages a queue action would apply to now, without creating it.
#[utoipa::path(
    post,
    path = "/v1/queue-actions/preview",
    request_body = api::QueueActionRequest,
    responses((status = 200, description = "The number of messages, and a sample.", body = api::QueueActionPreview)),
)]
async fn preview_queue_action(
    backend: Service<dyn QueueActions>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<api::QueueActionRequest>,
) -> Result<Json<api::QueueActionPreview>, Problem> {
    let numbers = caller.number_display();
    call_json(backend, move |backend| backend.preview_queue_action(request, numbers)).await
}

/// Creates a queue action.
///
/// It applies to waiting messages in any state, and survives a restart.
#[utoipa::path(
    post,
    path = "/v1/queue-actions",
    request_body = api::QueueActionRequest,
    responses((status = 201, description = "The queue action; it is durable.", body = api::QueueActionView)),
)]
async fn create_queue_action(
    backend: Service<dyn QueueActions>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<api::QueueActionRequest>,
) -> Result<(StatusCode, Extension<AuditDetail>, Json<api::QueueActionView>), Problem> {
    let Json((preview, queue_action)) = call_json(backend, move |backend| {
        let preview = backend.preview_queue_action(request.clone(), NumberDisplay::Masked)?;
        Ok((preview, backend.create_queue_action(request, &caller.name)?))
    })
    .await?;
    let at_least = if preview.complete { "" } else { "at least " };
    let detail = format!("{}; {at_least}{} messages", describe(&queue_action), preview.messages);
    Ok((
        StatusCode::CREATED,
        Extension(AuditDetail(append_reason(detail, Some(&queue_action.why)))),
        Json(queue_action),
    ))
}

/// Describes a queue action for the audit log.
fn describe(queue_action: &api::QueueActionView) -> String {
    let scope = &queue_action.scope;
    let parts = [
        ("peer", &scope.peer),
        ("account", &scope.account),
        ("destination", &scope.prefix),
        ("older than", &scope.older_than),
        ("to", &queue_action.to),
    ];
    let mut detail = format!("queue action {}: {}", queue_action.id, queue_action.action.name());
    for (name, value) in parts {
        if let Some(value) = value {
            detail.push_str(&format!(", {name} {value}"));
        }
    }
    detail
}

/// Ends or undoes a queue action. Held messages continue.
///
/// Messages that it has rerouted stay in their new queue.
#[utoipa::path(
    delete,
    path = "/v1/queue-actions/{id}",
    params(("id" = u32, Path, description = "The number of the queue action.")),
    responses((status = 200, description = "The queue action.", body = api::QueueActionView)),
)]
async fn undo_queue_action(
    backend: Service<dyn QueueActions>,
    Extension(caller): Extension<Caller>,
    PathParams(id): PathParams<u32>,
) -> AuditedResult<api::QueueActionView> {
    let queue_action = call_json(backend, move |backend| backend.undo_queue_action(id, &caller.name)).await?;
    with_audit_detail(queue_action, |queue_action| {
        format!("{}; undone after {} messages", describe(queue_action), queue_action.affected)
    })
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct UncertainQuery {
    /// Only messages to this peer.
    peer: Option<String>,
    /// Maximum number of messages; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only messages after this id.
    #[param(value_type = Option<IdText>, inline)]
    after: Option<String>,
}

/// Lists uncertain messages, oldest first: submitted to a peer that never answered.
#[utoipa::path(
    get,
    path = "/v1/uncertain",
    params(UncertainQuery),
    responses((status = 200, description = "A page of messages.", body = api::UncertainPageView)),
)]
async fn list_uncertain(
    backend: Service<dyn QueueActions>,
    Extension(caller): Extension<Caller>,
    QueryParams(page): QueryParams<UncertainQuery>,
) -> Result<Json<api::UncertainPageView>, Problem> {
    let most = page_limit(page.limit, 1000)?;
    let numbers = caller.number_display();
    call_json(backend, move |backend| {
        backend.list_uncertain(page.peer.as_deref(), page.after.as_deref(), most, numbers)
    })
    .await
}

/// Settles uncertain messages: all of a peer, or by id.
#[utoipa::path(
    post,
    path = "/v1/uncertain/settle",
    request_body = api::SettleUncertainRequest,
    responses((status = 200, description = "The number of settled messages.", body = api::SettleUncertainResult)),
)]
async fn settle_uncertain(
    backend: Service<dyn QueueActions>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<api::SettleUncertainRequest>,
) -> AuditedResult<api::SettleUncertainResult> {
    let remedy = match request.remedy {
        api::UncertainRemedy::SendAgain => "sent again",
        api::UncertainRemedy::GiveUp => "given up",
    };
    let scope = request.peer.as_ref().map(|peer| format!(" of peer {peer}")).unwrap_or_default();
    let settled = call_json(backend, move |backend| backend.settle_uncertain(request, &caller.name)).await?;
    with_audit_detail(settled, |settled| {
        format!("{} messages{scope} {remedy}, {} skipped", settled.settled, settled.skipped)
    })
}
