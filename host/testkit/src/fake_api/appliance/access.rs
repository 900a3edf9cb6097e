//! Sessions, users, tokens and the audit log.

use super::{now, problem};
use admin::ProblemKind;
use api::{
    AuditEntry, AuditOutcome, AuditPage, AuditRecord, CreatedTokenView, LoginRequest, Permission, Role,
    TokenInfo, User, WhoamiView,
};
use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::Timestamp;

/// The CSRF token of every session of this fake.
pub const CSRF: &str = "test+csrf=1";

pub(super) fn role(headers: &HeaderMap) -> Option<String> {
    if headers.contains_key(header::AUTHORIZATION) {
        return Some("admin".to_owned());
    }
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == "switchyard-session").map(|(_, role)| role.to_owned())
}

/// The role of a name.
fn parse_role(name: &str) -> Role {
    serde_json::from_value(name.into()).unwrap_or(Role::Account)
}

pub(super) fn principal(role_name: &str) -> WhoamiView {
    let role = parse_role(role_name);
    let has = |permission: &Permission| role.has(*permission) || role == Role::Admin;
    WhoamiView {
        user: format!("{role_name}-person"),
        role,
        permissions: Permission::ALL.into_iter().filter(has).collect(),
        bodies: role == Role::Admin,
        account: (role == Role::Account).then(|| "acme".to_owned()),
        tenant: None,
        csrf: Some(CSRF.to_owned()),
        until: Some(now() + 3_600_000),
    }
}

/// Checks session, CSRF token and role, as the real API does.
pub(super) async fn check_session(request: Request, next: Next) -> Response {
    if request.uri().path() == "/v1/sessions" {
        return next.run(request).await;
    }
    let Some(role) = role(request.headers()) else {
        return problem(ProblemKind::Unauthorised, "send the header `Authorization: Bearer TOKEN`");
    };
    let is_session = !request.headers().contains_key(header::AUTHORIZATION);
    if is_session && request.method() != Method::GET {
        let csrf = request.headers().get("switchyard-csrf").and_then(|value| value.to_str().ok());
        if csrf != Some(CSRF) {
            return problem(
                ProblemKind::Forbidden,
                "the header Switchyard-CSRF is missing or another session's",
            );
        }
        let own = request.uri().path() == "/v1/sessions/current" || request.uri().path() == "/v1/explain";
        if role == "viewer" && !own {
            return problem(
                ProblemKind::Forbidden,
                "the permission `operate` is missing: this user is a viewer",
            );
        }
    }
    next.run(request).await
}

pub(super) async fn log_in(Json(request): Json<LoginRequest>) -> Response {
    let role = match (request.token.as_deref(), request.user.as_deref(), request.password.as_deref()) {
        (Some("test-token"), ..) => "admin",
        (None, Some(user @ ("admin" | "operator" | "viewer" | "account")), Some("password")) => user,
        _ => return problem(ProblemKind::Unauthorised, "not right"),
    };
    let answer = principal(role);
    let cookie = format!("switchyard-session={role}; HttpOnly; SameSite=Strict; Path=/");
    ([(header::SET_COOKIE, cookie)], Json(answer)).into_response()
}

pub(super) fn user(name: &str, role: Role, account: Option<&str>) -> User {
    User {
        name: name.to_owned(),
        role,
        account: account.map(str::to_owned),
        tenant: None,
        bodies: role == Role::Admin,
        password: true,
        version: 1,
        made: Timestamp(now() - 8_640_000_000),
        changed: Timestamp(now() - 86_400_000),
        by: "token".to_owned(),
    }
}

pub(super) fn users() -> [User; 3] {
    [
        user("admin-person", Role::Admin, None),
        user("vera", Role::Viewer, None),
        user("<i>acme-support", Role::Account, Some("acme")),
    ]
}

pub(super) fn token() -> TokenInfo {
    TokenInfo {
        name: "monitoring".to_owned(),
        role: Role::Viewer,
        account: None,
        tenant: None,
        bodies: false,
        made: Timestamp(now() - 86_400_000),
        by: "admin-person".to_owned(),
        until: Some(Timestamp(now() + 8_640_000_000)),
    }
}

pub(super) fn created_token() -> CreatedTokenView {
    CreatedTokenView { token: "swy_5up3rs3cr3t".to_owned(), info: token() }
}

pub(super) fn audit() -> AuditPage {
    let change = AuditRecord {
        at: Timestamp(now() - 3_000),
        by: "ada".to_owned(),
        tenant: None,
        what: "PATCH /v1/configuration".to_owned(),
        subject: String::new(),
        detail: None,
        from: Some("192.0.2.7".to_owned()),
        outcome: AuditOutcome::Done,
        status: 200,
    };
    let refused = AuditRecord {
        at: Timestamp(now() - 9_000),
        by: "vera".to_owned(),
        tenant: None,
        what: "GET /v1/messages/{id} body".to_owned(),
        subject: "81".to_owned(),
        detail: Some("text read".to_owned()),
        from: Some("192.0.2.9".to_owned()),
        outcome: AuditOutcome::Refused,
        status: 403,
    };
    let entries =
        [(41, change), (40, refused)].map(|(serial, record)| AuditEntry { serial, record }).to_vec();
    AuditPage { entries, next: None }
}

pub(super) async fn log_out() -> Response {
    let ended = "switchyard-session=; Max-Age=0; Path=/";
    ([(header::SET_COOKIE, ended)], StatusCode::NO_CONTENT).into_response()
}

pub(super) async fn whoami(headers: HeaderMap) -> Json<WhoamiView> {
    Json(principal(&role(&headers).unwrap_or_default()))
}
