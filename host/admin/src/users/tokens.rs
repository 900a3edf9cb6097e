//! The API of named tokens.

use super::with_access;
use crate::authenticator::Authenticator;
use crate::problem::Problem;
use crate::request::{JsonBody, PathParams};
use crate::request_audit::AuditDetail;
use access::Caller;
use api::{CreatedTokenView, TokenInfo, TokenRequest};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(list_tokens, create_token)).routes(routes!(delete_token))
}

/// Lists all tokens, sorted by name, including expired ones.
#[utoipa::path(get, path = "/v1/tokens", responses((status = 200, description = "All tokens.", body = Vec<TokenInfo>)))]
async fn list_tokens(Extension(authenticator): Extension<Arc<Authenticator>>) -> Json<Vec<TokenInfo>> {
    Json(authenticator.access().tokens())
}

/// Creates a token.
#[utoipa::path(
    post,
    path = "/v1/tokens",
    request_body = TokenRequest,
    responses(
        (status = 201, description = "The token with its secret.", body = CreatedTokenView),
        (status = 409, description = "The name is taken."),
        (status = 422, description = "A field is invalid; `problems` lists the errors."),
    ),
)]
async fn create_token(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<TokenRequest>,
) -> Result<Response, Problem> {
    let now = authenticator.now();
    let (token, info) =
        with_access(&authenticator, move |access| access.create_token(request, &caller.name, now)).await?;
    let detail =
        AuditDetail(format!("{}: role {:?}, bodies {}", info.name, info.role, info.bodies).to_lowercase());
    let mut response = (StatusCode::CREATED, Json(CreatedTokenView { token, info })).into_response();
    response.extensions_mut().insert(detail);
    Ok(response)
}

/// Deletes a token and ends all sessions opened with it.
#[utoipa::path(
    delete,
    path = "/v1/tokens/{name}",
    params(("name" = String, Path, description = "The token's name.")),
    responses((status = 204, description = "The token is deleted.")),
)]
async fn delete_token(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    PathParams(name): PathParams<String>,
) -> Result<StatusCode, Problem> {
    with_access(&authenticator, move |access| access.remove_token(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}
