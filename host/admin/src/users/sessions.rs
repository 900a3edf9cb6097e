//! Login, logout, and the caller's own identity.

use super::with_access;
use crate::authenticator::{Authenticator, Identity};
use crate::authz::{Scope, client_address};
use crate::permissions;
use crate::problem::{Problem, ProblemKind};
use crate::request::json;
use crate::request_audit::{AuditDetail, append_audit_record};
use access::{Caller, NewSession, Principal, UserChange};
use api::{AuditOutcome, AuditRecord, LoginRequest, PasswordRequest, Permission, ProblemReason, WhoamiView};
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum octets of a login request.
const MAX_LOGIN_OCTETS: usize = 16 << 10;

pub(super) fn open_routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(log_in))
}

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(log_out)).routes(routes!(whoami)).routes(routes!(password))
}

fn whoami_view(caller: &Caller, csrf: Option<String>, until: Option<u64>) -> WhoamiView {
    let has = |permission| {
        caller.has(permission) && (caller.tenant.is_none() || permissions::is_for_tenants(permission))
    };
    WhoamiView {
        user: caller.name.to_string(),
        role: caller.role,
        permissions: Permission::ALL.into_iter().filter(|permission| has(*permission)).collect(),
        bodies: caller.bodies,
        account: caller.account.as_deref().map(str::to_owned),
        tenant: caller.tenant.as_deref().map(str::to_owned),
        csrf,
        until,
    }
}

/// Opens a session and sets the cookie `switchyard-session`.
///
/// Limits of failed attempts: ten in five minutes per name and address, and a hundred in one minute per address.
#[utoipa::path(
    post,
    path = "/v1/sessions",
    request_body = LoginRequest,
    responses(
        (status = 200, description = "The session is open.", body = WhoamiView),
        (status = 401, description = "User and password do not match, or the token is unknown."),
        (status = 429, description = "Too many attempts. `Retry-After` says after how many seconds to try again."),
    ),
)]
async fn log_in(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    request: Request,
) -> Result<Response, Problem> {
    let from = client_address(request.extensions());
    // A browser sends this content type to another site only after a CORS preflight.
    let kind =
        request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(
            ProblemKind::BadRequest,
            "the header Content-Type must be application/json",
        ));
    }
    let body = to_bytes(request.into_body(), MAX_LOGIN_OCTETS).await;
    let body =
        body.map_err(|_| Problem::new(ProblemKind::BadRequest, "the body is too long or incomplete"))?;
    let login: LoginRequest = json(&body)?;
    let (by, result) = match login {
        LoginRequest { user: Some(user), password: Some(password), token: None } => {
            let result = authenticator.log_in(&user, &password, from).await;
            // Unknown names are not logged: a user may have typed the password into the name field.
            let known = authenticator.access().user(&user).is_ok();
            (if known { user } else { "unknown".to_owned() }, result)
        }
        LoginRequest { user: None, password: None, token: Some(token) } => {
            let result = authenticator.log_in_by_token(token.trim(), from).await;
            ("unknown".to_owned(), result)
        }
        _ => return Err(Problem::new(ProblemKind::Unprocessable, "send either user and password, or token")),
    };
    let tenant = result.as_ref().ok().and_then(|(caller, _)| caller.tenant.as_deref().map(str::to_owned));
    // Attempts over the rate limit are not verified and not audited.
    let (outcome, status) = match &result {
        Ok(_) => (AuditOutcome::Done, 200),
        Err(problem) if problem.status == 401 => (AuditOutcome::Refused, 401),
        Err(_) => return Err(result.map_or_else(|problem| problem, |_| internal_problem())),
    };
    let record = AuditRecord {
        at: authenticator.now().wall,
        by: result.as_ref().map_or(by, |(caller, _)| caller.name.to_string()),
        tenant,
        what: "POST /v1/sessions".to_owned(),
        subject: String::new(),
        detail: None,
        from: from.map(|from| from.to_string()),
        outcome,
        status,
    };
    let written = append_audit_record(&authenticator, record).await;
    let (caller, session) = result?;
    if !written {
        authenticator.access().close_session(&session.secret);
        return Err(Problem::new(
            ProblemKind::Internal,
            "the audit log cannot be written; check whether the disk is full",
        ));
    }
    Ok(session_response(&authenticator, &caller, &session))
}

fn internal_problem() -> Problem {
    Problem::new(ProblemKind::Internal, "the request failed internally; see the log")
}

fn session_response(authenticator: &Authenticator, caller: &Caller, session: &NewSession) -> Response {
    let view = whoami_view(caller, Some(session.csrf.clone()), Some(session.until.0));
    let mut response = Json(view).into_response();
    set_cookie(&mut response, &authenticator.cookie(Some(session)));
    response
}

fn set_cookie(response: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

/// Ends the current session.
#[utoipa::path(
    delete,
    path = "/v1/sessions/current",
    responses(
        (status = 204, description = "The session has ended."),
        (status = 409, description = "The request is authenticated by a token, not by a session."),
    ),
)]
async fn log_out(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    Extension(identity): Extension<Arc<Identity>>,
    // The session is the caller's own, so the scope does not matter.
    _: Scope,
) -> Result<Response, Problem> {
    let Some((secret, _)) = &identity.session else {
        let detail = "this request is authenticated by a token, not by a session; DELETE /v1/tokens/{name} deletes a token";
        return Err(Problem::new(ProblemKind::Conflict, detail).with_reason(ProblemReason::of("no-session")));
    };
    authenticator.access().close_session(secret);
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&mut response, &authenticator.cookie(None));
    Ok(response)
}

/// Shows the caller's identity and permissions.
#[utoipa::path(get, path = "/v1/whoami", responses((status = 200, description = "The caller.", body = WhoamiView)))]
async fn whoami(
    Extension(identity): Extension<Arc<Identity>>,
    // The answer is only about the caller, so the scope does not matter.
    _: Scope,
) -> Json<WhoamiView> {
    let csrf = identity.session.as_ref().map(|(_, csrf)| csrf.clone());
    Json(whoami_view(&identity.caller, csrf, identity.until.map(|until| until.0)))
}

/// Changes the caller's password and ends all other sessions of the user.
#[utoipa::path(
    post,
    path = "/v1/whoami/password",
    request_body = PasswordRequest,
    responses(
        (status = 204, description = "The password is changed."),
        (status = 409, description = "The caller is a token and has no password."),
        (status = 422, description = "The current password is wrong, or the new one does not meet the rules."),
        (status = 429, description = "Too many attempts. `Retry-After` says after how many seconds to try again."),
    ),
)]
async fn password(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    Extension(identity): Extension<Arc<Identity>>,
    // The password is the caller's own, so the scope does not matter.
    _: Scope,
    request: Request,
) -> Result<Response, Problem> {
    let from = client_address(request.extensions());
    let body = to_bytes(request.into_body(), MAX_LOGIN_OCTETS).await;
    let body =
        body.map_err(|_| Problem::new(ProblemKind::BadRequest, "the body is too long or incomplete"))?;
    let PasswordRequest { old, new } = json(&body)?;
    let Principal::User(name) = identity.principal.clone() else {
        let detail = "a token has no password; log in as a user";
        return Err(Problem::new(ProblemKind::Conflict, detail).with_reason(ProblemReason::of("no-password")));
    };
    if !authenticator.verify_password(&name, &old, from).await? {
        let what = "is not your password".to_owned();
        return Err(access::AccessError::Invalid { field: "old", what }.into());
    }
    let hash = authenticator.hash_password("new", &name, &new).await?;
    let secret = identity.session.as_ref().map(|(secret, _)| secret.clone());
    let now = authenticator.now();
    with_access(&authenticator, move |access| {
        let change = UserChange { password_hash: Some(hash), ..UserChange::default() };
        access.change_user(&name, change, None, (&name, secret.as_deref()), now)
    })
    .await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    response.extensions_mut().insert(AuditDetail("password".to_owned()));
    Ok(response)
}
