//! The API of named tokens.

use super::with_access;
use crate::authenticator::Authenticator;
use crate::backend::SharedBackend;
use crate::problem::Problem;
use crate::request::{JsonBody, PathParams};
use crate::request_audit::AuditDetail;
use access::{Caller, NewToken, Role, TokenInfo};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<SharedBackend> {
    OpenApiRouter::new().routes(routes!(list_tokens, create_token)).routes(routes!(delete_token))
}

/// A token to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TokenRequest {
    /// The name; same rules as for users.
    name: String,
    /// The role.
    role: Role,
    /// The account; required for the role `account`, not allowed for other roles.
    account: Option<String>,
    /// Whether the token may read message texts.
    #[serde(default)]
    bodies: bool,
    /// Lifetime in days, 1 to 3650. If omitted, the token does not expire.
    #[schema(minimum = 1, maximum = 3650)]
    days: Option<u64>,
}

/// A token that has just been created.
#[derive(Serialize, ToSchema)]
#[schema(as = CreatedToken)]
struct CreatedTokenView {
    /// The secret. No later answer contains it.
    token: String,
    /// The token.
    #[serde(flatten)]
    info: TokenInfo,
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
    let TokenRequest { name, role, account, bodies, days } = request;
    let new = NewToken { name, role, account, bodies, days };
    let now = authenticator.now();
    let (token, info) =
        with_access(&authenticator, move |access| access.create_token(new, &caller.name, now)).await?;
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
