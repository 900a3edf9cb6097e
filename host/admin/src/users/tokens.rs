//! The API of named tokens.

use super::{check_tenant_of, missing, with_access};
use crate::authenticator::Authenticator;
use crate::authz::Scope;
use crate::problem::Problem;
use crate::request::{JsonBody, PathParams};
use crate::request_audit::AuditDetail;
use crate::service::{Provides, Service};
use crate::tenants::Tenants;
use access::Caller;
use api::{CreatedTokenView, TokenInfo, TokenRequest};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes<S: Provides<dyn Tenants>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(list_tokens, create_token)).routes(routes!(delete_token))
}

/// Lists all tokens, sorted by name, including expired ones.
#[utoipa::path(get, path = "/v1/tokens", responses((status = 200, description = "All tokens.", body = Vec<TokenInfo>)))]
async fn list_tokens(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    Scope(scope): Scope,
) -> Json<Vec<TokenInfo>> {
    let mut tokens = authenticator.access().tokens();
    tokens.retain(|token| scope.has_tenant(token.tenant.as_deref()));
    Json(tokens)
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
    Scope(scope): Scope,
    tenants: Service<dyn Tenants>,
    JsonBody(mut request): JsonBody<TokenRequest>,
) -> Result<Response, Problem> {
    request.tenant = request.tenant.or_else(|| caller.tenant.as_deref().map(str::to_owned));
    check_tenant_of(
        &tenants.tree(),
        &scope,
        (&request.name, request.tenant.as_deref()),
        request.account.as_deref(),
    )?;
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
    Scope(scope): Scope,
    PathParams(name): PathParams<String>,
) -> Result<StatusCode, Problem> {
    let tokens = authenticator.access().tokens();
    let known = tokens.iter().find(|token| token.name == name);
    if !known.is_some_and(|token| scope.has_tenant(token.tenant.as_deref())) {
        return Err(missing("token", name));
    }
    with_access(&authenticator, move |access| access.remove_token(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}
