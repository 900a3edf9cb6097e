//! The API of one message: trace, settling, and explanations of routing.

use crate::authz::{Scope, is_visible_to};
use crate::messages::{MessageAction, Messages};
use crate::problem::{Problem, ProblemKind};
use crate::request::{Flag, JsonBody, PathParams, QueryParams};
use crate::service::{Provides, Service, call, call_json};

use access::Caller;
use api::name_schemas::IdText;
use axum::http::StatusCode;
use axum::{Extension, Json};
use model::{AccountScope, NumberDisplay};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Traces of messages, and explanations of decisions.
pub trait Traces: Send + Sync + 'static {
    /// The trace of a message in the scope; with `body`, including its text. `numbers`: how numbers are shown.
    ///
    /// # Errors
    /// If there is no such message.
    fn message(
        &self,
        id: &str,
        body: bool,
        numbers: NumberDisplay,
        scope: &AccountScope,
    ) -> Result<api::TraceView, Problem>;
    /// Explains how a message would be routed.
    ///
    /// # Errors
    /// If its origin is unknown.
    fn explain(&self, message: api::ExplainRequest) -> Result<api::ExplanationView, Problem>;
}

pub(crate) fn routes<S: Provides<dyn Traces> + Provides<dyn Messages>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(get_message)).routes(routes!(settle_message)).routes(routes!(explain))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TraceQuery {
    /// Include the message text.
    #[param(inline)]
    body: Option<Flag>,
}

/// Shows the trace of a message: steps, routing decision, current delay.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}",
    params(("id" = inline(IdText), Path, description = "The message id, as the submitter knows it."), TraceQuery),
    responses((status = 200, description = "The trace.", body = api::TraceView)),
)]
async fn get_message(
    backend: Service<dyn Traces>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<TraceQuery>,
) -> Result<Json<api::TraceView>, Problem> {
    let (body, numbers) = (query.body.unwrap_or_default().0, caller.number_display());
    call_json(backend, move |backend| {
        let trace = backend.message(&id, body, numbers, &scope)?;
        // For a caller with the role account, another account's message is answered like an unknown one.
        if is_visible_to(&caller, &trace.origin) {
            return Ok(trace);
        }
        let detail = format!("message {} was never accepted, or was deleted after its retention", trace.id);
        Err(Problem::new(ProblemKind::NotFound, detail))
    })
    .await
}

/// Settles an uncertain message.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/settle",
    params(("id" = inline(IdText), Path, description = "The message id.")),
    request_body = api::SettleMessageRequest,
    responses((status = 204, description = "The message is settled.")),
)]
async fn settle_message(
    backend: Service<dyn Messages>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    PathParams(id): PathParams<String>,
    JsonBody(request): JsonBody<api::SettleMessageRequest>,
) -> Result<StatusCode, Problem> {
    let action = match request.remedy {
        api::UncertainRemedy::SendAgain => MessageAction::SendAgain,
        api::UncertainRemedy::GiveUp => MessageAction::GiveUp,
    };
    call(backend, move |backend| backend.apply_message_action(&id, action, &caller.name, &scope)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Explains how a message would be routed, without sending it.
#[utoipa::path(
    post,
    path = "/v1/explain",
    request_body = api::ExplainRequest,
    responses((status = 200, description = "The steps of the decision.", body = api::ExplanationView)),
)]
async fn explain(
    backend: Service<dyn Traces>,
    JsonBody(message): JsonBody<api::ExplainRequest>,
) -> Result<Json<api::ExplanationView>, Problem> {
    call_json(backend, move |backend| backend.explain(message)).await
}
