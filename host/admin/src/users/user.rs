//! The API of users.

use super::{check_tenant_of, missing, with_access};
use crate::authenticator::Authenticator;
use crate::authz::Scope;
use crate::problem::{Problem, ProblemKind};
use crate::request::{JsonBody, PathParams};
use crate::request_audit::AuditDetail;
use crate::service::{Provides, Service};
use crate::tenants::Tenants;
use access::{Caller, NewUser, UserChange};
use api::{User, UserChangeRequest, UserRequest};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use model::AccountScope;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes<S: Provides<dyn Tenants>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(list_users, create_user)).routes(routes!(
        get_user,
        change_user,
        delete_user
    ))
}

/// Reads the expected version from `If-Match`; `None` without the header.
fn expected(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let tag = value.to_str().ok().map(str::trim);
    if tag == Some("*") {
        return Ok(None);
    }
    // An empty list of tags (RFC 9110, section 13.1.1) matches no version.
    if tag == Some("") {
        return Err(Problem::new(
            ProblemKind::PreconditionFailed,
            "If-Match: is empty and matches no version",
        ));
    }
    let version = tag.and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"')?.parse().ok());
    let wrong =
        || Problem::new(ProblemKind::BadRequest, "If-Match: must be the ETag of a user, such as \"3\"");
    version.map(Some).ok_or_else(wrong)
}

fn user_response(status: StatusCode, user: User, detail: String) -> Response {
    let tag = HeaderValue::from_str(&format!("\"{}\"", user.version));
    let mut response = (status, Json(user)).into_response();
    if let Ok(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.extensions_mut().insert(AuditDetail(detail));
    response
}

/// Lists all users, sorted by name.
#[utoipa::path(get, path = "/v1/users", responses((status = 200, description = "All users.", body = Vec<User>)))]
async fn list_users(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    Scope(scope): Scope,
) -> Json<Vec<User>> {
    let mut users = authenticator.access().users();
    users.retain(|user| scope.has_tenant(user.tenant.as_deref()));
    Json(users)
}

/// Creates a user.
#[utoipa::path(
    post,
    path = "/v1/users",
    request_body = UserRequest,
    responses(
        (status = 201, description = "The user; `ETag` is the version.", body = User),
        (status = 409, description = "The name is taken."),
        (status = 422, description = "A field is invalid; `problems` lists the errors."),
    ),
)]
async fn create_user(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    tenants: Service<dyn Tenants>,
    JsonBody(request): JsonBody<UserRequest>,
) -> Result<Response, Problem> {
    let tenant = request.tenant.clone().or_else(|| caller.tenant.as_deref().map(str::to_owned));
    let account = request.account.as_deref();
    check_tenant_of(&tenants.tree(), &scope, (&request.name, tenant.as_deref()), account)?;
    let password_hash = match &request.password {
        Some(password) => Some(authenticator.hash_password("password", &request.name, password).await?),
        None => None,
    };
    let UserRequest { name, role, account, bodies, .. } = request;
    let now = authenticator.now();
    let new = NewUser { name, role, account, tenant, bodies, password_hash };
    let user = with_access(&authenticator, move |access| access.add_user(new, &caller.name, now)).await?;
    let detail = format!("{}: {}", user.name, describe_user(&user));
    Ok(user_response(StatusCode::CREATED, user, detail))
}

/// Describes a user for the audit log.
fn describe_user(user: &User) -> String {
    let mut text = format!("role {}", user.role);
    if let Some(account) = &user.account {
        text.push_str(&format!(" of {account}"));
    }
    if let Some(tenant) = &user.tenant {
        text.push_str(&format!(", tenant {tenant}"));
    }
    text.push_str(if user.bodies { ", reads texts" } else { ", reads no texts" });
    text
}

/// The user of this name; an error if the scope does not contain the user.
fn user_in_scope(authenticator: &Authenticator, name: &str, scope: &AccountScope) -> Result<User, Problem> {
    let user = authenticator.access().user(name)?;
    if scope.has_tenant(user.tenant.as_deref()) { Ok(user) } else { Err(missing("user", name.to_owned())) }
}

/// Shows a user.
#[utoipa::path(
    get,
    path = "/v1/users/{name}",
    params(("name" = String, Path, description = "The user's name.")),
    responses((status = 200, description = "The user; `ETag` is the version.", body = User)),
)]
async fn get_user(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    Scope(scope): Scope,
    PathParams(name): PathParams<String>,
) -> Result<Response, Problem> {
    let user = user_in_scope(&authenticator, &name, &scope)?;
    Ok(user_response(StatusCode::OK, user, String::new()))
}

/// Changes a user.
///
/// The last admin keeps the role admin.
#[utoipa::path(
    patch,
    path = "/v1/users/{name}",
    params(
        ("name" = String, Path, description = "The user's name."),
        ("If-Match" = Option<String>, Header, pattern = "^\"[0-9]{1,18}\"$", description = "The ETag of the user; the change is refused if the user has another version."),
    ),
    request_body = UserChangeRequest,
    responses(
        (status = 200, description = "The changed user.", body = User),
        (status = 409, description = "The change would leave no admin."),
        (status = 412, description = "The user was changed meanwhile."),
        (status = 422, description = "A field is invalid; `problems` lists the errors."),
    ),
)]
async fn change_user(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    Extension(caller): Extension<Caller>,
    (Scope(scope), tenants): (Scope, Service<dyn Tenants>),
    PathParams(name): PathParams<String>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<UserChangeRequest>,
) -> Result<Response, Problem> {
    let expected = expected(&headers)?;
    let before = user_in_scope(&authenticator, &name, &scope)?;
    let account = request.account.as_ref().and_then(Option::as_deref);
    check_tenant_of(&tenants.tree(), &scope, (&name, before.tenant.as_deref()), account)?;
    let password_hash = match &request.password {
        Some(password) => Some(authenticator.hash_password("password", &name, password).await?),
        None => None,
    };
    let mut detail = if password_hash.is_some() { "new password; ".to_owned() } else { String::new() };
    let change =
        UserChange { role: request.role, account: request.account, bodies: request.bodies, password_hash };
    let now = authenticator.now();
    let changed = with_access(&authenticator, move |access| {
        access.change_user(&name, change, expected, (&caller.name, None), now)
    });
    let user = changed.await?;
    detail.push_str(&format!("was {}; is {}", describe_user(&before), describe_user(&user)));
    Ok(user_response(StatusCode::OK, user, detail))
}

/// Removes a user and ends all sessions of the user.
///
/// The last admin cannot be removed.
#[utoipa::path(
    delete,
    path = "/v1/users/{name}",
    params(
        ("name" = String, Path, description = "The user's name."),
        ("If-Match" = Option<String>, Header, pattern = "^\"[0-9]{1,18}\"$", description = "The ETag of the user; the removal is refused if the user has another version."),
    ),
    responses(
        (status = 204, description = "The user is removed."),
        (status = 409, description = "The removal would leave no admin."),
        (status = 412, description = "The user was changed meanwhile."),
    ),
)]
async fn delete_user(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    Scope(scope): Scope,
    PathParams(name): PathParams<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    user_in_scope(&authenticator, &name, &scope)?;
    let expected = expected(&headers)?;
    with_access(&authenticator, move |access| access.remove_user(&name, expected)).await?;
    Ok(StatusCode::NO_CONTENT)
}
