//! The API of the appliance's tables.

use crate::api::{Shared, answer, call};
use crate::guard::{Detailed, detailed};
use crate::problem::Problem;
use crate::request::{At, Octets, Parameters};
use crate::view;
use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

/// The largest table that is taken: some ten million rows.
const TABLE_LIMIT: usize = 1 << 30;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(tables))
        .routes(routes!(look_up, remove_table))
        .routes(routes!(put_table).layer(DefaultBodyLimit::max(TABLE_LIMIT)))
}

type Answer = Result<Json<Value>, Problem>;

/// The appliance's tables.
#[utoipa::path(
    get,
    path = "/v1/tables",
    responses((status = 200, description = "All of them.", body = Vec<view::Table>)),
)]
async fn tables(State(appliance): State<Shared>) -> Answer {
    answer(appliance, |appliance| Ok(appliance.tables())).await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Sought {
    /// The key.
    #[serde(default)]
    key: String,
}

/// What a table says of a key.
#[utoipa::path(
    get,
    path = "/v1/tables/{name}",
    params(("name" = String, Path, description = "Its name."), Sought),
    responses((status = 200, description = "What it says.", body = view::LookedUp)),
)]
async fn look_up(
    State(appliance): State<Shared>,
    At(name): At<String>,
    Parameters(Sought { key }): Parameters<Sought>,
) -> Answer {
    answer(appliance, move |appliance| appliance.look_up(&name, &key)).await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Searched {
    /// How it is searched.
    #[param(inline)]
    kind: view::TableKind,
}

/// Fills a table, or fills it anew.
#[utoipa::path(
    put,
    path = "/v1/tables/{name}",
    params(("name" = String, Path, description = "Its name."), Searched),
    request_body(content = String, content_type = "text/csv", description = "A key and its value on each line."),
    responses((status = 200, description = "It is filled.", body = view::FilledTable)),
)]
async fn put_table(
    State(appliance): State<Shared>,
    At(name): At<String>,
    Parameters(Searched { kind }): Parameters<Searched>,
    Octets(body): Octets,
) -> Detailed<Value> {
    let kind = match kind {
        view::TableKind::Exact => "exact",
        view::TableKind::Prefix => "prefix",
    };
    let filled = answer(appliance, move |appliance| appliance.put_table(&name, kind, &body)).await?;
    detailed(filled, |filled| format!("{kind}, {} rows", filled["rows"]))
}

/// Removes a table.
#[utoipa::path(
    delete,
    path = "/v1/tables/{name}",
    params(("name" = String, Path, description = "Its name.")),
    responses((status = 204, description = "It is gone.")),
)]
async fn remove_table(State(appliance): State<Shared>, At(name): At<String>) -> Result<StatusCode, Problem> {
    call(appliance, move |appliance| appliance.remove_table(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}
