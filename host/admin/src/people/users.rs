//! Users.

use super::ask;
use crate::api::Shared;
use crate::guard::Noted;
use crate::porter::Porter;
use crate::problem::{Kind, Problem};
use crate::request::{At, Document};
use access::{Caller, NewUser, Role, User, UserChange};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Deserializer};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(all, add)).routes(routes!(one, change, remove))
}

/// A user to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WantedUser)]
struct Wish {
    /// 1 to 64 of the characters a-z, A-Z, 0-9, `.`, `_`, `-` and `@`.
    name: String,
    /// What he may do.
    role: Role,
    /// Ten characters at least; without one he cannot log in.
    password: Option<String>,
    /// The account; for the role `account`, and for no other.
    account: Option<String>,
    /// Whether texts of messages may be read.
    #[serde(default)]
    bodies: bool,
}

/// What is to be other; what is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UserChange)]
struct Change {
    /// What he may do.
    role: Option<Role>,
    /// A new password. Ends his sessions.
    password: Option<String>,
    /// The account, or null for none.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    account: Option<Option<String>>,
    /// Whether texts of messages may be read.
    bodies: Option<bool>,
}

/// Tells what is null from what is left out.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The version that a change was made for; nothing without the header.
fn expected(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let word = value.to_str().ok().map(str::trim);
    if word == Some("*") {
        return Ok(None);
    }
    // An empty list of tags (RFC 9110, section 13.1.1): none of them is his.
    if word == Some("") {
        return Err(Problem::new(Kind::Outdated, "If-Match: is empty, and so does not name what there is"));
    }
    let version = word.and_then(|word| word.strip_prefix('"')?.strip_suffix('"')?.parse().ok());
    let wrong = || {
        Problem::new(Kind::BadRequest, "If-Match: is not what the header ETag of a user says, such as \"3\"")
    };
    version.map(Some).ok_or_else(wrong)
}

fn shown(status: StatusCode, user: User, noted: String) -> Response {
    let tag = HeaderValue::from_str(&format!("\"{}\"", user.version));
    let mut response = (status, Json(user)).into_response();
    if let Ok(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.extensions_mut().insert(Noted(noted));
    response
}

/// All users, by name.
#[utoipa::path(get, path = "/v1/users", responses((status = 200, description = "They.", body = Vec<User>)))]
async fn all(Extension(porter): Extension<Arc<Porter>>) -> Json<Vec<User>> {
    Json(porter.access().users())
}

/// Makes a user.
#[utoipa::path(
    post,
    path = "/v1/users",
    request_body = Wish,
    responses(
        (status = 201, description = "As he is; ETag is his version.", body = User),
        (status = 409, description = "The name is taken."),
        (status = 422, description = "Something about him is wrong: `problems` says what."),
    ),
)]
async fn add(
    Extension(porter): Extension<Arc<Porter>>,
    Extension(caller): Extension<Caller>,
    Document(wish): Document<Wish>,
) -> Result<Response, Problem> {
    let password_hash = match &wish.password {
        Some(password) => Some(porter.hash("password", &wish.name, password).await?),
        None => None,
    };
    let Wish { name, role, account, bodies, .. } = wish;
    let now = porter.now();
    let new = NewUser { name, role, account, bodies, password_hash };
    let user = ask(&porter, move |access| access.add_user(new, &caller.name, now)).await?;
    let noted = format!("{}: {}", user.name, described(&user));
    Ok(shown(StatusCode::CREATED, user, noted))
}

/// A user in words, for the audit log.
fn described(user: &User) -> String {
    let mut words = format!("role {}", word(user.role));
    if let Some(account) = &user.account {
        words.push_str(&format!(" of {account}"));
    }
    words.push_str(if user.bodies { ", reads texts" } else { ", reads no texts" });
    words
}

fn word(role: Role) -> &'static str {
    match role {
        Role::Account => "account",
        Role::Viewer => "viewer",
        Role::Operator => "operator",
        Role::Admin => "admin",
    }
}

/// A user.
#[utoipa::path(
    get,
    path = "/v1/users/{name}",
    params(("name" = String, Path, description = "His name.")),
    responses((status = 200, description = "As he is; ETag is his version.", body = User)),
)]
async fn one(Extension(porter): Extension<Arc<Porter>>, At(name): At<String>) -> Result<Response, Problem> {
    let user = porter.access().user(&name)?;
    Ok(shown(StatusCode::OK, user, String::new()))
}

/// Changes a user. The last admin stays admin.
#[utoipa::path(
    patch,
    path = "/v1/users/{name}",
    params(
        ("name" = String, Path, description = "His name."),
        ("If-Match" = Option<String>, Header, pattern = "^\"[0-9]{1,18}\"$", description = "His ETag: the change is made if he still has it."),
    ),
    request_body = Change,
    responses(
        (status = 200, description = "As he is now.", body = User),
        (status = 409, description = "Nobody would be admin."),
        (status = 412, description = "Somebody else has changed him since."),
        (status = 422, description = "Something about the change is wrong: `problems` says what."),
    ),
)]
async fn change(
    Extension(porter): Extension<Arc<Porter>>,
    Extension(caller): Extension<Caller>,
    At(name): At<String>,
    headers: HeaderMap,
    Document(wish): Document<Change>,
) -> Result<Response, Problem> {
    let expected = expected(&headers)?;
    let before = porter.access().user(&name)?;
    let password_hash = match &wish.password {
        Some(password) => Some(porter.hash("password", &name, password).await?),
        None => None,
    };
    let mut noted = if password_hash.is_some() { "new password; ".to_owned() } else { String::new() };
    let change = UserChange { role: wish.role, account: wish.account, bodies: wish.bodies, password_hash };
    let now = porter.now();
    let changed =
        ask(&porter, move |access| access.change_user(&name, change, expected, (&caller.name, None), now));
    let user = changed.await?;
    noted.push_str(&format!("was {}; is {}", described(&before), described(&user)));
    Ok(shown(StatusCode::OK, user, noted))
}

/// Removes a user, and ends his sessions. The last admin stays.
#[utoipa::path(
    delete,
    path = "/v1/users/{name}",
    params(
        ("name" = String, Path, description = "His name."),
        ("If-Match" = Option<String>, Header, pattern = "^\"[0-9]{1,18}\"$", description = "His ETag: he is removed if he still has it."),
    ),
    responses(
        (status = 204, description = "There is no such user any more."),
        (status = 409, description = "Nobody would be admin."),
        (status = 412, description = "Somebody else has changed him since."),
    ),
)]
async fn remove(
    Extension(porter): Extension<Arc<Porter>>,
    At(name): At<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let expected = expected(&headers)?;
    ask(&porter, move |access| access.remove_user(&name, expected)).await?;
    Ok(StatusCode::NO_CONTENT)
}
