//! To log in and out, and who one is.

use super::ask;
use crate::api::Shared;
use crate::guard::{Noted, address, write};
use crate::porter::{Porter, Presented};
use crate::problem::{Kind, Problem, Reason};
use crate::request::json;
use access::{Caller, Deed, Opened, Outcome, Right, Role, UserChange, Who};
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Octets of the largest request to log in.
const LARGEST: usize = 16 << 10;

pub(super) fn open() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(log_in))
}

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(log_out)).routes(routes!(whoami)).routes(routes!(password))
}

/// A user and his password, or a token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The user's name.
    user: Option<String>,
    /// His password.
    password: Option<String>,
    /// A token, instead of both.
    token: Option<String>,
}

/// Who somebody is, and what he may do.
#[derive(Serialize, ToSchema)]
struct Standing {
    /// The user's name; `token` for the token of the data directory, `token:NAME` for one that was made.
    user: String,
    /// What he is.
    role: Role,
    /// What he may do.
    rights: Vec<Right>,
    /// Whether texts of messages may be read.
    bodies: bool,
    /// The account that he belongs to, if the role is `account`.
    #[schema(required)]
    account: Option<String>,
    /// What a session's requests that change something send in the header `Switchyard-CSRF`; nothing without a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    csrf: Option<String>,
    /// When session or token end, milliseconds since the epoch. A session that is not used for half an hour ends by itself.
    #[schema(required)]
    until: Option<u64>,
}

impl Standing {
    fn of(caller: &Caller, csrf: Option<String>, until: Option<u64>) -> Self {
        Self {
            user: caller.name.to_string(),
            role: caller.role,
            rights: Right::ALL.into_iter().filter(|right| caller.may(*right)).collect(),
            bodies: caller.bodies,
            account: caller.account.as_deref().map(str::to_owned),
            csrf,
            until,
        }
    }
}

/// Opens a session: the answer sets the cookie `switchyard-session`.
///
/// Ten attempts for a name from an address may fail in five minutes, and a hundred from an address in one, whatever they are for.
#[utoipa::path(
    post,
    path = "/v1/sessions",
    request_body = Login,
    responses(
        (status = 200, description = "It is open.", body = Standing),
        (status = 401, description = "User and password do not go together, or the token is none."),
        (status = 429, description = "Too many attempts; the header Retry-After says in how many seconds it may go on."),
    ),
)]
async fn log_in(Extension(porter): Extension<Arc<Porter>>, request: Request) -> Result<Response, Problem> {
    let from = address(request.extensions());
    // A form of another site's page cannot say so without that page being asked for leave.
    let kind =
        request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(Kind::BadRequest, "the header Content-Type must be application/json"));
    }
    let body = to_bytes(request.into_body(), LARGEST).await;
    let body = body.map_err(|_| Problem::new(Kind::BadRequest, "the body is too long, or was broken off"))?;
    let login: Login = json(&body)?;
    let (by, opened) = match login {
        Login { user: Some(user), password: Some(password), token: None } => {
            let opened = porter.log_in(&user, &password, from).await;
            // Whoever types a password where the name belongs does not have it in the log.
            let known = porter.access().user(&user).is_ok();
            (if known { user } else { "unknown".to_owned() }, opened)
        }
        Login { user: None, password: None, token: Some(token) } => {
            let opened = porter.log_in_by_token(token.trim(), from).await;
            ("unknown".to_owned(), opened)
        }
        _ => return Err(Problem::new(Kind::Refused, "send user and password, or token")),
    };
    // What was not even looked at is in the log no more than it was before.
    let (outcome, status) = match &opened {
        Ok(_) => (Outcome::Done, 200),
        Err(problem) if problem.status == 401 => (Outcome::Refused, 401),
        Err(_) => return Err(opened.map_or_else(|problem| problem, |_| strange())),
    };
    let deed = Deed {
        at: porter.now().wall,
        by: opened.as_ref().map_or(by, |(caller, _)| caller.name.to_string()),
        what: "POST /v1/sessions".to_owned(),
        subject: String::new(),
        detail: None,
        from: from.map(|from| from.to_string()),
        outcome,
        status,
    };
    let written = write(&porter, deed).await;
    let (caller, session) = opened?;
    if !written {
        porter.access().close_session(&session.secret);
        return Err(Problem::new(
            Kind::Internal,
            "the audit log cannot be written; look whether the disk is full",
        ));
    }
    Ok(let_in(&porter, &caller, &session))
}

fn strange() -> Problem {
    Problem::new(Kind::Internal, "the request failed inside; the log says more")
}

fn let_in(porter: &Porter, caller: &Caller, session: &Opened) -> Response {
    let standing = Standing::of(caller, Some(session.csrf.clone()), Some(session.until.0));
    let mut response = Json(standing).into_response();
    set_cookie(&mut response, &porter.cookie(Some(session)));
    response
}

fn set_cookie(response: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

/// Ends the session that asks for it.
#[utoipa::path(
    delete,
    path = "/v1/sessions/current",
    responses(
        (status = 204, description = "It has ended."),
        (status = 409, description = "The request came with a token, and not in a session."),
    ),
)]
async fn log_out(
    Extension(porter): Extension<Arc<Porter>>,
    Extension(presented): Extension<Arc<Presented>>,
) -> Result<Response, Problem> {
    let Some((word, _)) = &presented.session else {
        let detail =
            "this request came with a token, and not in a session; DELETE /v1/tokens/{name} ends a token";
        return Err(Problem::new(Kind::Conflict, detail).because(Reason::of("no-session")));
    };
    porter.access().close_session(word);
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&mut response, &porter.cookie(None));
    Ok(response)
}

/// Who asks, and what he may do.
#[utoipa::path(get, path = "/v1/whoami", responses((status = 200, description = "You.", body = Standing)))]
async fn whoami(Extension(presented): Extension<Arc<Presented>>) -> Json<Standing> {
    let csrf = presented.session.as_ref().map(|(_, csrf)| csrf.clone());
    Json(Standing::of(&presented.caller, csrf, presented.until.map(|until| until.0)))
}

/// A new password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Password {
    /// The one that counts until now.
    old: String,
    /// The new one: ten characters at least.
    new: String,
}

/// Sets a new password for the user who asks, and ends his other sessions.
#[utoipa::path(
    post,
    path = "/v1/whoami/password",
    request_body = Password,
    responses(
        (status = 204, description = "It counts from now on."),
        (status = 409, description = "Who asks is no user with a password, but a token."),
        (status = 422, description = "The old one is not right, or the new one is not good enough."),
        (status = 429, description = "Too many attempts; the header Retry-After says in how many seconds it may go on."),
    ),
)]
async fn password(
    Extension(porter): Extension<Arc<Porter>>,
    Extension(presented): Extension<Arc<Presented>>,
    request: Request,
) -> Result<Response, Problem> {
    let from = address(request.extensions());
    let body = to_bytes(request.into_body(), LARGEST).await;
    let body = body.map_err(|_| Problem::new(Kind::BadRequest, "the body is too long, or was broken off"))?;
    let Password { old, new } = json(&body)?;
    let Who::User(name) = presented.who.clone() else {
        let detail = "this is a token, which has no password; log in as a user";
        return Err(Problem::new(Kind::Conflict, detail).because(Reason::of("no-password")));
    };
    if !porter.is_password(&name, &old, from).await? {
        let what = "is not your password".to_owned();
        return Err(access::AccessError::Invalid { field: "old", what }.into());
    }
    let hash = porter.hash("new", &name, &new).await?;
    let word = presented.session.as_ref().map(|(word, _)| word.clone());
    let now = porter.now();
    ask(&porter, move |access| {
        let change = UserChange { password_hash: Some(hash), ..UserChange::default() };
        access.change_user(&name, change, None, (&name, word.as_deref()), now)
    })
    .await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    response.extensions_mut().insert(Noted("password".to_owned()));
    Ok(response)
}
