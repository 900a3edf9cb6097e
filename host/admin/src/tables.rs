//! The API of lookup tables for plugins.

use crate::body_reader::body_reader;
use crate::plugins::Plugins;
use crate::problem::Problem;
use crate::request::{PathParams, QueryParams};
use crate::request_audit::{AuditedResult, with_audit_detail};
use crate::service::{Provides, Service, call, call_json};

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum size of a table, in octets: about ten million rows.
const MAX_TABLE_OCTETS: usize = 1 << 30;

pub(crate) fn routes<S: Provides<dyn Plugins>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(list_tables))
        .routes(routes!(look_up, remove_table))
        .routes(routes!(put_table))
}

/// Lists the lookup tables.
#[utoipa::path(
    get,
    path = "/v1/tables",
    responses((status = 200, description = "All lookup tables.", body = Vec<api::TableView>)),
)]
async fn list_tables(backend: Service<dyn Plugins>) -> Result<Json<Vec<api::TableView>>, Problem> {
    call_json(backend, |backend| Ok(backend.tables())).await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LookUpQuery {
    /// The key to look up.
    #[serde(default)]
    key: String,
}

/// Looks a key up in a table.
#[utoipa::path(
    get,
    path = "/v1/tables/{name}",
    params(("name" = String, Path, description = "The table's name."), LookUpQuery),
    responses((status = 200, description = "The values found.", body = api::TableLookUpView)),
)]
async fn look_up(
    backend: Service<dyn Plugins>,
    PathParams(name): PathParams<String>,
    QueryParams(LookUpQuery { key }): QueryParams<LookUpQuery>,
) -> Result<Json<api::TableLookUpView>, Problem> {
    call_json(backend, move |backend| backend.look_up(&name, &key)).await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PutTableQuery {
    /// The match of keys: exact or longest prefix.
    #[param(inline)]
    kind: api::TableKind,
}

/// Creates or replaces a lookup table.
#[utoipa::path(
    put,
    path = "/v1/tables/{name}",
    params(("name" = String, Path, description = "The table's name."), PutTableQuery),
    request_body(content = String, content_type = "text/csv", description = "CSV: a key and its value on each line."),
    responses((status = 200, description = "The table is in use.", body = api::TableFillResult)),
)]
async fn put_table(
    backend: Service<dyn Plugins>,
    PathParams(name): PathParams<String>,
    QueryParams(PutTableQuery { kind }): QueryParams<PutTableQuery>,
    body: Body,
) -> AuditedResult<api::TableFillResult> {
    let (feeder, mut rows) = body_reader(body, MAX_TABLE_OCTETS);
    let filled = call_json(backend, move |backend| backend.put_table(&name, kind, &mut rows));
    let (fed, filled) = tokio::join!(feeder.feed(), filled);
    // An error in the transfer of the body explains an error of the reader.
    fed?;
    let filled = filled?;
    with_audit_detail(filled, |filled| format!("{}, {} rows", kind.name(), filled.rows))
}

/// Removes a lookup table.
#[utoipa::path(
    delete,
    path = "/v1/tables/{name}",
    params(("name" = String, Path, description = "The table's name.")),
    responses((status = 204, description = "The table is removed.")),
)]
async fn remove_table(
    backend: Service<dyn Plugins>,
    PathParams(name): PathParams<String>,
) -> Result<StatusCode, Problem> {
    call(backend, move |backend| backend.remove_table(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}
