//! One message: what happened to it, what to do with it when nobody knows, and what would become of another.

use crate::api::{Shared, answer, call};
use crate::guard::is_shown;
use crate::messages::Hand;
use crate::problem::{Kind, Problem};
use crate::request::{At, Document, Flag, IdText, Parameters};
use crate::view;
use access::Caller;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(message)).routes(routes!(settle)).routes(routes!(explain))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// Whether the text is to be shown.
    #[param(inline)]
    body: Option<Flag>,
}

/// One message's trace: steps, why here, why late.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}",
    params(("id" = inline(IdText), Path, description = "Its id, as its submitter knows it."), Wanted),
    responses((status = 200, description = "What is known of it.", body = view::Trace)),
)]
async fn message(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    At(id): At<String>,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Json<view::Trace>, Problem> {
    let body = wanted.body.unwrap_or_default().0;
    answer(appliance, move |appliance| {
        let trace = appliance.message(&id, body)?;
        // An account learns no more of another's message than of one that is not there.
        if is_shown(&caller, &trace.origin) {
            return Ok(trace);
        }
        let detail = format!("message {} was never accepted here, or is no longer kept", trace.id);
        Err(Problem::new(Kind::NotFound, detail))
    })
    .await
}

/// What is to become of an uncertain message.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Settle {
    remedy: view::Remedy,
}

/// Settles an uncertain message.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/settle",
    params(("id" = inline(IdText), Path, description = "Its id.")),
    request_body = Settle,
    responses((status = 204, description = "It is settled.")),
)]
async fn settle(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    At(id): At<String>,
    Document(Settle { remedy }): Document<Settle>,
) -> Result<StatusCode, Problem> {
    let hand = match remedy {
        view::Remedy::SendAgain => Hand::SendAgain,
        view::Remedy::GiveUp => Hand::GiveUp,
    };
    call(appliance, move |appliance| appliance.by_hand(&id, hand, &caller.name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What would become of a message that is not sent.
#[utoipa::path(
    post,
    path = "/v1/explain",
    request_body = view::Hypothetical,
    responses((status = 200, description = "Each step of the decision.", body = view::Explanation)),
)]
async fn explain(
    State(appliance): State<Shared>,
    Document(message): Document<view::Hypothetical>,
) -> Result<Json<view::Explanation>, Problem> {
    answer(appliance, move |appliance| appliance.explain(message)).await
}
