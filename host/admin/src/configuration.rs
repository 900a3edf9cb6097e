//! The API of the configuration: one document, replaced or patched as a whole, with a version history and rollback.

use crate::attention::PendingConfiguration;
use crate::problem::{Problem, ProblemKind};
use crate::request::{JsonBody, PathParams, QueryParams, RawBody, json, page_limit};
use crate::request_audit::AuditDetail;
use crate::service::{Provides, Service, call, call_json};
use access::Caller;
use api::{
    ConfigConfirmRequest, ConfigDifferenceView, ConfigRollbackRequest, ConfigVersionPageView,
    ConfigVersionSummaryView, ConfigVersionView, ConfigurationChangeResult, ConfigurationCheck,
    ConfigurationDiff, CurrentConfiguration,
};
use axum::Json;
use axum::extract::Extension;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The configuration backend. No answer contains secrets: they appear as `"(unchanged)"`. In a document of a request,
/// `"(unchanged)"` keeps the current secret.
pub trait Configuration: Send + Sync + 'static {
    /// The configuration in force.
    ///
    /// # Errors
    /// If the versions cannot be read.
    fn configuration(&self) -> Result<CurrentConfiguration, Problem>;
    /// Changes that wait for a confirmation or a restart.
    fn pending_configuration(&self) -> PendingConfiguration;
    /// Validates a change without applying it.
    ///
    /// # Errors
    /// If the version to restore does not exist.
    fn check_configuration(&self, change: ConfigurationEdit) -> Result<ConfigurationCheck, Problem>;
    /// Applies a change, completely or not at all.
    ///
    /// # Errors
    /// The document is invalid (with all its problems), another version is in force than expected, a version is
    /// unconfirmed, or the configuration is managed by file.
    fn change_configuration(
        &self,
        change: ConfigurationEdit,
        options: ChangeOptions,
    ) -> Result<ConfigurationChangeResult, Problem>;
    /// Versions older than `before`, newest first.
    ///
    /// # Errors
    /// If the versions cannot be read.
    fn configuration_versions(
        &self,
        before: Option<u64>,
        most: usize,
    ) -> Result<Vec<ConfigVersionSummaryView>, Problem>;
    /// One version with its document.
    ///
    /// # Errors
    /// If there is no such version, or it is no longer kept.
    fn configuration_version(&self, version: u64) -> Result<ConfigVersionView, Problem>;
    /// The differences between two versions.
    ///
    /// # Errors
    /// If a version does not exist or is no longer kept.
    fn configuration_differences(&self, from: u64, to: u64) -> Result<Vec<ConfigDifferenceView>, Problem>;
    /// Confirms the unconfirmed version.
    ///
    /// # Errors
    /// If no version, or another one, is unconfirmed.
    fn confirm_configuration(&self, version: u64, by: &str) -> Result<(), Problem>;
    /// Reverts the unconfirmed version at once.
    ///
    /// # Errors
    /// If no version is unconfirmed.
    fn revert_configuration(&self, by: &str) -> Result<ConfigurationChangeResult, Problem>;
    /// The JSON Schema (2020-12) of the document.
    fn configuration_schema(&self) -> Value;
    /// The document as a TOML file.
    ///
    /// # Errors
    /// If the document cannot be written as TOML.
    fn configuration_file(&self) -> Result<String, Problem>;
}

/// A change of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigurationEdit {
    /// Replace the document.
    Document(Value),
    /// Apply a merge patch (RFC 7396) to the document.
    Patch(Value),
    /// Restore the document of an earlier version.
    Version(u64),
}

/// Options of a change.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeOptions {
    /// The version that must be in force.
    pub expected: u64,
    /// The author of the change.
    pub by: Arc<str>,
    /// Reason for the change.
    pub why: String,
    /// Revert automatically unless the change is confirmed within this time.
    pub confirm_within: Option<Duration>,
}

pub(crate) fn routes<S: Provides<dyn Configuration>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(show, put, patch))
        .routes(routes!(validate))
        .routes(routes!(versions))
        .routes(routes!(version))
        .routes(routes!(diff))
        .routes(routes!(rollback))
        .routes(routes!(confirm))
        .routes(routes!(revert))
        .routes(routes!(schema))
        .routes(routes!(file))
}

fn bad_request(what: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::BadRequest, what)
}

/// A JSON response with the version as its `ETag`.
fn with_etag<T: Serialize>(version: u64, answer: T) -> Response {
    let mut response = Json(answer).into_response();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// Reads the expected version from `If-Match`.
fn expected_version(headers: &HeaderMap) -> Result<u64, Problem> {
    let Some(tag) = headers.get(header::IF_MATCH) else {
        let what = "send the header `If-Match` with the ETag of GET /v1/configuration, so that no other change is lost";
        return Err(Problem::new(ProblemKind::PreconditionRequired, what));
    };
    let version =
        tag.to_str().ok().and_then(|tag| tag.trim().strip_prefix('"')?.strip_suffix('"')?.parse().ok());
    version.ok_or_else(|| {
        bad_request("If-Match: must be a version in quotes, such as the ETag of GET /v1/configuration")
    })
}

/// Maximum characters of a reason.
const MAX_REASON_CHARS: usize = 1_000;
/// Maximum time to confirm a change.
const MAX_CONFIRM_TIME: Duration = Duration::from_secs(30 * 86_400);

/// Options of a change.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[into_params(parameter_in = Query)]
struct ChangeQuery {
    /// Reason for the change, for the history.
    #[param(max_length = 1000)]
    why: Option<String>,
    /// Revert automatically unless the change is confirmed within this time, for example `10m`: 1 second to 30 days.
    #[param(pattern = "^([1-9][0-9]{0,5}s|[1-9][0-9]{0,3}m|[1-9][0-9]?h|([1-9]|[12][0-9]|30)d)$")]
    confirm_within: Option<String>,
}

impl ChangeQuery {
    fn options(self, headers: &HeaderMap, caller: &Caller) -> Result<ChangeOptions, Problem> {
        let why = self.why.unwrap_or_default();
        if why.chars().count() > MAX_REASON_CHARS {
            return Err(bad_request(format!("why: has more than {MAX_REASON_CHARS} characters")));
        }
        let confirm_within = self.confirm_within.map(|text| {
            let within = model::parse_duration(&text);
            within.filter(|within| (Duration::from_secs(1)..=MAX_CONFIRM_TIME).contains(within)).ok_or_else(
                || {
                    bad_request(format!(
                        "confirm-within: is {text:?}, and must be a duration such as 10m, from 1s to 30d"
                    ))
                },
            )
        });
        let confirm_within = confirm_within.transpose()?;
        Ok(ChangeOptions {
            expected: expected_version(headers)?,
            by: caller.name.clone(),
            why,
            confirm_within,
        })
    }
}

/// Shows the configuration in force, without its secrets.
#[utoipa::path(
    get,
    path = "/v1/configuration",
    responses((
        status = 200,
        description = "The configuration.",
        body = CurrentConfiguration,
        headers(("ETag" = String, description = "The version in quotes. A change sends it in `If-Match`.")),
    )),
)]
async fn show(backend: Service<dyn Configuration>) -> Result<Response, Problem> {
    let current = call(backend, Configuration::configuration).await?;
    Ok(with_etag(current.version, current))
}

async fn change(
    backend: Service<dyn Configuration>,
    change: ConfigurationEdit,
    options: ChangeOptions,
) -> Result<Response, Problem> {
    let applied = call(backend, move |backend| backend.change_configuration(change, options)).await?;
    Ok(change_response(applied))
}

/// Maximum pointers in the audit record of a change.
const MAX_AUDITED_POINTERS: usize = 20;

/// The response to a change, with its audit detail.
fn change_response(applied: ConfigurationChangeResult) -> Response {
    let mut places: Vec<&str> =
        applied.changes.iter().take(MAX_AUDITED_POINTERS).map(|change| change.pointer.as_str()).collect();
    if applied.changes.len() > MAX_AUDITED_POINTERS {
        places.push("...");
    }
    let detail = format!("version {}: {}", applied.version, places.join(", "));
    let mut response = with_etag(applied.version, applied);
    response.extensions_mut().insert(AuditDetail(detail));
    response
}

/// Replaces the document. If any part of it is invalid, nothing changes.
#[utoipa::path(
    put,
    path = "/v1/configuration",
    params(ChangeQuery, ("If-Match" = String, Header, description = "The ETag of the version to replace.", pattern = "^\"[0-9]{1,18}\"$")),
    request_body(content = Object, description = "The complete document."),
    responses(
        (status = 200, description = "The document is in force.", body = ConfigurationChangeResult),
        (status = 409, description = "The configuration is managed by file, or a version is unconfirmed."),
        (status = 412, description = "Another version is in force."),
        (status = 422, description = "The document is invalid; `problems` lists all errors."),
        (status = 428, description = "`If-Match` is missing."),
    ),
)]
async fn put(
    backend: Service<dyn Configuration>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    QueryParams(query): QueryParams<ChangeQuery>,
    JsonBody(document): JsonBody<Value>,
) -> Result<Response, Problem> {
    let options = query.options(&headers, &caller)?;
    change(backend, ConfigurationEdit::Document(document), options).await
}

/// Changes parts of the document with a merge patch (RFC 7396).
///
/// To patch a named list, send an object keyed by name: `{"peer": {"upstream": {"rate": 50}, "old": null}}`.
#[utoipa::path(
    patch,
    path = "/v1/configuration",
    params(ChangeQuery, ("If-Match" = String, Header, description = "The ETag of the version to change.", pattern = "^\"[0-9]{1,18}\"$")),
    request_body(content = Object, content_type = "application/merge-patch+json"),
    responses(
        (status = 200, description = "The document is in force.", body = ConfigurationChangeResult),
        (status = 409, description = "The configuration is managed by file, or a version is unconfirmed."),
        (status = 412, description = "Another version is in force."),
        (status = 422, description = "The patched document is invalid; `problems` lists all errors."),
        (status = 428, description = "`If-Match` is missing."),
    ),
)]
async fn patch(
    backend: Service<dyn Configuration>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    QueryParams(query): QueryParams<ChangeQuery>,
    JsonBody(patch): JsonBody<Value>,
) -> Result<Response, Problem> {
    let options = query.options(&headers, &caller)?;
    change(backend, ConfigurationEdit::Patch(patch), options).await
}

/// Validates a document, or a patch if the content type is `application/merge-patch+json`, without applying it.
///
/// The daemon opens the files that the document names, so this requires the permission `configure`.
#[utoipa::path(
    post,
    path = "/v1/configuration/validate",
    request_body(content((Object = "application/json"), (Object = "application/merge-patch+json"))),
    responses((status = 200, description = "All errors, and the changes that would be made.", body = ConfigurationCheck)),
)]
async fn validate(
    backend: Service<dyn Configuration>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<Json<ConfigurationCheck>, Problem> {
    let document = json(&body)?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_patch = kind.trim_start().starts_with("application/merge-patch+json");
    let change =
        if is_patch { ConfigurationEdit::Patch(document) } else { ConfigurationEdit::Document(document) };
    call_json(backend, move |backend| backend.check_configuration(change)).await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VersionsQuery {
    /// Maximum number of versions; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the previous page.
    before: Option<u64>,
}

/// Lists all versions of the configuration, newest first.
#[utoipa::path(
    get,
    path = "/v1/configuration/versions",
    params(VersionsQuery),
    responses((status = 200, description = "A page of versions.", body = ConfigVersionPageView)),
)]
async fn versions(
    backend: Service<dyn Configuration>,
    QueryParams(page): QueryParams<VersionsQuery>,
) -> Result<Json<ConfigVersionPageView>, Problem> {
    let most = page_limit(page.limit, 1_000)?;
    call_json(backend, move |backend| {
        let mut versions = backend.configuration_versions(page.before, most + 1)?;
        let more = versions.len() > most;
        versions.truncate(most);
        let next = versions.last().filter(|_| more).map(|last| last.version);
        Ok(ConfigVersionPageView { versions, next })
    })
    .await
}

/// Shows one version, without its secrets.
#[utoipa::path(
    get,
    path = "/v1/configuration/versions/{version}",
    params(("version" = u64, Path, description = "The version number.")),
    responses((status = 200, description = "The version.", body = ConfigVersionView)),
)]
async fn version(
    backend: Service<dyn Configuration>,
    PathParams(version): PathParams<u64>,
) -> Result<Json<ConfigVersionView>, Problem> {
    call_json(backend, move |backend| backend.configuration_version(version)).await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DiffQuery {
    /// The first version.
    from: u64,
    /// The second version.
    to: u64,
}

/// Compares two versions.
#[utoipa::path(
    get,
    path = "/v1/configuration/diff",
    params(DiffQuery),
    responses((status = 200, description = "All differences.", body = ConfigurationDiff)),
)]
async fn diff(
    backend: Service<dyn Configuration>,
    QueryParams(DiffQuery { from, to }): QueryParams<DiffQuery>,
) -> Result<Json<ConfigurationDiff>, Problem> {
    call_json(backend, move |backend| {
        Ok(ConfigurationDiff { from, to, changes: backend.configuration_differences(from, to)? })
    })
    .await
}

/// Restores the document of an earlier version.
#[utoipa::path(
    post,
    path = "/v1/configuration/rollback",
    params(("If-Match" = String, Header, description = "The ETag of the version to replace.", pattern = "^\"[0-9]{1,18}\"$")),
    request_body = ConfigRollbackRequest,
    responses(
        (status = 200, description = "The document is in force.", body = ConfigurationChangeResult),
        (status = 404, description = "There is no such version, or it is no longer kept."),
        (status = 409, description = "The configuration is managed by file, or a version is unconfirmed."),
        (status = 412, description = "Another version is in force."),
        (status = 422, description = "The document is no longer valid, for example because a file that it names is missing."),
        (status = 428, description = "`If-Match` is missing."),
    ),
)]
async fn rollback(
    backend: Service<dyn Configuration>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(ConfigRollbackRequest { to, why, confirm_within }): JsonBody<ConfigRollbackRequest>,
) -> Result<Response, Problem> {
    let options = ChangeQuery { why, confirm_within }.options(&headers, &caller)?;
    change(backend, ConfigurationEdit::Version(to), options).await
}

/// Confirms the unconfirmed version, so that it does not revert.
#[utoipa::path(
    post,
    path = "/v1/configuration/confirm",
    request_body = ConfigConfirmRequest,
    responses(
        (status = 204, description = "The version is confirmed."),
        (status = 409, description = "No version, or another one, is unconfirmed."),
    ),
)]
async fn confirm(
    backend: Service<dyn Configuration>,
    Extension(caller): Extension<Caller>,
    JsonBody(ConfigConfirmRequest { version }): JsonBody<ConfigConfirmRequest>,
) -> Result<StatusCode, Problem> {
    call(backend, move |backend| backend.confirm_configuration(version, &caller.name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reverts the unconfirmed version at once.
#[utoipa::path(
    post,
    path = "/v1/configuration/revert",
    responses(
        (status = 200, description = "The previous document is in force, as a new version.", body = ConfigurationChangeResult),
        (status = 409, description = "No version is unconfirmed."),
    ),
)]
async fn revert(
    backend: Service<dyn Configuration>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let applied = call(backend, move |backend| backend.revert_configuration(&caller.name)).await?;
    Ok(change_response(applied))
}

/// Returns the JSON Schema (draft 2020-12) of the document.
#[utoipa::path(
    get,
    path = "/v1/configuration/schema",
    responses((status = 200, description = "The schema.", body = Object, content_type = "application/schema+json")),
)]
async fn schema(backend: Service<dyn Configuration>) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/schema+json")];
    (kind, backend.configuration_schema().to_string()).into_response()
}

/// Returns the document as a TOML file, without its secrets.
///
/// `switchyard config apply` accepts it.
#[utoipa::path(
    get,
    path = "/v1/configuration/file",
    responses((status = 200, description = "The file.", body = String, content_type = "application/toml")),
)]
async fn file(backend: Service<dyn Configuration>) -> Result<Response, Problem> {
    let text = call(backend, Configuration::configuration_file).await?;
    Ok(([(header::CONTENT_TYPE, "application/toml; charset=utf-8")], text).into_response())
}
