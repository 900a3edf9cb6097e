//! Tokens that were made beside the house's own.

use super::ask;
use crate::api::Shared;
use crate::guard::Noted;
use crate::porter::Porter;
use crate::problem::Problem;
use crate::request::{At, Document};
use access::{Caller, MadeToken, NewToken, Role};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(all, make)).routes(routes!(remove))
}

/// A token to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WantedToken)]
struct Wish {
    /// As a user's.
    name: String,
    /// What it may be used for.
    role: Role,
    /// The account; for the role `account`, and for no other.
    account: Option<String>,
    /// Whether texts of messages may be read.
    #[serde(default)]
    bodies: bool,
    /// After how many days it ends by itself: 1 to 3650; never, where it is left out.
    #[schema(minimum = 1, maximum = 3650)]
    days: Option<u64>,
}

/// A token that was just made.
#[derive(Serialize, ToSchema)]
struct Told {
    /// The token. It is told here, and never again.
    token: String,
    /// What it is.
    #[serde(flatten)]
    made: MadeToken,
}

/// All tokens that were made, by name, those that have ended among them.
#[utoipa::path(get, path = "/v1/tokens", responses((status = 200, description = "They.", body = Vec<MadeToken>)))]
async fn all(Extension(porter): Extension<Arc<Porter>>) -> Json<Vec<MadeToken>> {
    Json(porter.access().tokens())
}

/// Makes a token.
#[utoipa::path(
    post,
    path = "/v1/tokens",
    request_body = Wish,
    responses(
        (status = 201, description = "The token, told this once.", body = Told),
        (status = 409, description = "The name is taken."),
        (status = 422, description = "Something about it is wrong: `problems` says what."),
    ),
)]
async fn make(
    Extension(porter): Extension<Arc<Porter>>,
    Extension(caller): Extension<Caller>,
    Document(wish): Document<Wish>,
) -> Result<Response, Problem> {
    let Wish { name, role, account, bodies, days } = wish;
    let new = NewToken { name, role, account, bodies, days };
    let now = porter.now();
    let (token, made) = ask(&porter, move |access| access.make_token(new, &caller.name, now)).await?;
    let noted = Noted(format!("{}: role {:?}, bodies {}", made.name, made.role, made.bodies).to_lowercase());
    let mut response = (StatusCode::CREATED, Json(Told { token, made })).into_response();
    response.extensions_mut().insert(noted);
    Ok(response)
}

/// Ends a token, and the sessions that were opened with it.
#[utoipa::path(
    delete,
    path = "/v1/tokens/{name}",
    params(("name" = String, Path, description = "Its name.")),
    responses((status = 204, description = "Nobody comes in with it any more.")),
)]
async fn remove(
    Extension(porter): Extension<Arc<Porter>>,
    At(name): At<String>,
) -> Result<StatusCode, Problem> {
    ask(&porter, move |access| access.remove_token(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}
