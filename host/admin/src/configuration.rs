//! The API of the configuration: one document, changed as a whole or by a patch, with versions that can be gone back to.

use crate::api::{Shared, answer, call};
use crate::attention::ConfigurationWaits;
use crate::guard::Noted;
use crate::problem::{Kind, Misplaced, Problem};
use crate::request::{At, Document, Octets, Parameters, json, limit};
use access::Caller;
use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What stands behind it. Secrets are in no answer; in a document that comes, `"(unchanged)"` stands for the one that is.
pub trait Configuration: Send + Sync + 'static {
    /// What is in force.
    ///
    /// # Errors
    /// When the versions cannot be read.
    fn configuration(&self) -> Result<Current, Problem>;
    /// What of it waits to be confirmed, or for a restart.
    fn configuration_waits(&self) -> ConfigurationWaits;
    /// What would come of a change.
    ///
    /// # Errors
    /// When what it would be of is not known.
    fn check_configuration(&self, wanted: Wanted) -> Result<Checked, Problem>;
    /// Changes it: all of it or nothing.
    ///
    /// # Errors
    /// When the document is wrong, with all that is; when another version is in force than was expected, one waits to be
    /// confirmed, or the file is the truth.
    fn change_configuration(&self, wanted: Wanted, order: Order) -> Result<Applied, Problem>;
    /// Versions, newest first, older than `before`.
    ///
    /// # Errors
    /// When they cannot be read.
    fn configuration_versions(
        &self,
        before: Option<u64>,
        most: usize,
    ) -> Result<Vec<VersionSummary>, Problem>;
    /// One version with its document.
    ///
    /// # Errors
    /// When there is none of that number, or no longer.
    fn configuration_version(&self, version: u64) -> Result<OneVersion, Problem>;
    /// What is different between two versions.
    ///
    /// # Errors
    /// When there is no such version, or no longer.
    fn configuration_differences(&self, from: u64, to: u64) -> Result<Vec<Difference>, Problem>;
    /// The version that waits for it stays.
    ///
    /// # Errors
    /// When none waits, or another.
    fn confirm_configuration(&self, version: u64, by: &str) -> Result<(), Problem>;
    /// The version that waits to be confirmed goes at once.
    ///
    /// # Errors
    /// When none waits.
    fn revert_configuration(&self, by: &str) -> Result<Applied, Problem>;
    /// What a document may have in it: JSON Schema 2020-12.
    fn configuration_schema(&self) -> Value;
    /// The document as a TOML file.
    ///
    /// # Errors
    /// When it cannot be written as one.
    fn configuration_file(&self) -> Result<String, Problem>;
}

/// A change that somebody wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// This document.
    Document(Value),
    /// The document that is, with this merge patch (RFC 7396).
    Patch(Value),
    /// The document of an earlier version.
    Version(u64),
}

/// How a change is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// The version that must be in force; any for nobody.
    pub expected: u64,
    /// Who wants it.
    pub by: Arc<str>,
    /// Why.
    pub why: String,
    /// It is to revert by itself unless it is confirmed within this time.
    pub confirm_within: Option<Duration>,
}

/// Who says how the appliance is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ManagedBy {
    /// This API.
    Api,
    /// The file; this API only shows it.
    File,
}

/// A version that reverts unless it is confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Unconfirmed {
    /// The version.
    pub version: u64,
    /// When, in milliseconds since the epoch; a restart reverts it at once.
    pub reverts_at: u64,
}

/// What is in force.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Current {
    /// The version; also the `ETag`.
    pub version: u64,
    /// Since when, in milliseconds since the epoch.
    pub at: u64,
    /// Who brought it.
    pub by: String,
    /// Why.
    pub why: String,
    /// Who says what is in it.
    pub mode: ManagedBy,
    /// The version that reverts unless it is confirmed.
    #[schema(required)]
    pub pending: Option<Unconfirmed>,
    /// Pointers to what is in the document and waits for a restart.
    pub restart: Vec<String>,
    /// The document, of the same shape as the TOML file; `"(unchanged)"` in the place of secrets. GET
    /// /v1/configuration/schema says what may be in it.
    #[schema(value_type = Object)]
    pub document: Value,
}

/// What happened to something in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangedHow {
    /// It is new.
    Added,
    /// It is another.
    Changed,
    /// It is gone.
    Removed,
}

/// A value of any kind.
fn anything() -> Schema {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue).build().into()
}

/// One change of the document.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Changing {
    /// Where; things in lists of named ones go by their name: `/peer/upstream/rate`.
    pub pointer: String,
    /// What happened.
    pub what: ChangedHow,
    /// What that means for the traffic.
    pub effect: String,
    /// What was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = anything)]
    pub before: Option<Value>,
    /// What is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = anything)]
    pub after: Option<Value>,
}

/// What a change has done.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Applied {
    /// The version in force; the one before where nothing is different.
    pub version: u64,
    /// What is different.
    pub changes: Vec<Changing>,
    /// Pointers to what is used at the next start only.
    pub restart: Vec<String>,
    /// When it reverts unless it is confirmed, in milliseconds since the epoch.
    #[schema(required)]
    pub reverts_at: Option<u64>,
}

/// What would come of a change.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Checked {
    /// Whether it could be made.
    pub valid: bool,
    /// Everything that is wrong, each with its place; things in lists go by their index there: `/peer/0/rate`.
    pub problems: Vec<Misplaced>,
    /// What would be different.
    pub changes: Vec<Changing>,
    /// Pointers to what would be used at the next start only.
    pub restart: Vec<String>,
}

/// A version without its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct VersionSummary {
    /// Its number.
    pub version: u64,
    /// When it came into force, in milliseconds since the epoch.
    pub at: u64,
    /// Who brought it.
    pub by: String,
    /// Why.
    pub why: String,
    /// In how many places it differs from the one before.
    pub changes: usize,
}

/// A version.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct OneVersion {
    /// All but its document.
    #[serde(flatten)]
    pub summary: VersionSummary,
    /// The document, without its secrets.
    #[schema(value_type = Object)]
    pub document: Value,
}

/// One difference between two versions.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ConfigurationDifference)]
pub struct Difference {
    /// Where; things in lists of named ones go by their name.
    pub pointer: String,
    /// What is there in the one; null for nothing.
    #[schema(required, schema_with = anything)]
    pub before: Option<Value>,
    /// What is there in the other; null for nothing.
    #[schema(required, schema_with = anything)]
    pub after: Option<Value>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
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

fn bad(what: impl Into<String>) -> Problem {
    Problem::new(Kind::BadRequest, what)
}

/// An answer with the version as its `ETag`.
fn tagged<T: Serialize>(version: u64, answer: T) -> Response {
    let mut response = Json(answer).into_response();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// The version that the caller has seen.
fn expected(headers: &HeaderMap) -> Result<u64, Problem> {
    let Some(tag) = headers.get(header::IF_MATCH) else {
        let what = "send the header `If-Match` with the ETag of GET /v1/configuration, so that nobody's change is lost";
        return Err(Problem::new(Kind::Unconditional, what));
    };
    let version =
        tag.to_str().ok().and_then(|tag| tag.trim().strip_prefix('"')?.strip_suffix('"')?.parse().ok());
    version
        .ok_or_else(|| bad("If-Match: must be a version in quotes, as the ETag of GET /v1/configuration is"))
}

/// The longest reason, in characters.
const LONGEST_WHY: usize = 1_000;
/// The longest time for confirming a change.
const LONGEST_WAIT: Duration = Duration::from_secs(30 * 86_400);

/// How a change is to be made.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[into_params(parameter_in = Query)]
struct How {
    /// Why, for the history.
    #[param(max_length = 1000)]
    why: Option<String>,
    /// It reverts by itself unless it is confirmed within this time, such as `10m`; at least a second, at most 30 days.
    #[param(pattern = "^([1-9][0-9]{0,5}s|[1-9][0-9]{0,3}m|[1-9][0-9]?h|([1-9]|[12][0-9]|30)d)$")]
    confirm_within: Option<String>,
}

impl How {
    fn order(self, headers: &HeaderMap, caller: &Caller) -> Result<Order, Problem> {
        let why = self.why.unwrap_or_default();
        if why.chars().count() > LONGEST_WHY {
            return Err(bad(format!("why: has more than {LONGEST_WHY} characters")));
        }
        let confirm_within = self.confirm_within.map(|text| {
            let within = model::parse_duration(&text);
            within.filter(|within| (Duration::from_secs(1)..=LONGEST_WAIT).contains(within)).ok_or_else(
                || bad(format!("confirm-within: is {text:?}, and must be a time such as 10m, of 1s to 30d")),
            )
        });
        let confirm_within = confirm_within.transpose()?;
        Ok(Order { expected: expected(headers)?, by: caller.name.clone(), why, confirm_within })
    }
}

/// The configuration that is in force, without its secrets.
#[utoipa::path(
    get,
    path = "/v1/configuration",
    responses((
        status = 200,
        description = "All of it.",
        body = Current,
        headers(("ETag" = String, description = "The version in quotes; a change names it in `If-Match`.")),
    )),
)]
async fn show(State(appliance): State<Shared>) -> Result<Response, Problem> {
    let current = call(appliance, Configuration::configuration).await?;
    Ok(tagged(current.version, current))
}

async fn change(appliance: Shared, wanted: Wanted, order: Order) -> Result<Response, Problem> {
    let applied = call(appliance, move |appliance| appliance.change_configuration(wanted, order)).await?;
    Ok(noted(applied))
}

/// Pointers that the audit log is told of one change.
const NOTED: usize = 20;

/// The answer to a change, and what the audit log says of it.
fn noted(applied: Applied) -> Response {
    let mut places: Vec<&str> =
        applied.changes.iter().take(NOTED).map(|change| change.pointer.as_str()).collect();
    if applied.changes.len() > NOTED {
        places.push("...");
    }
    let detail = format!("version {}: {}", applied.version, places.join(", "));
    let mut response = tagged(applied.version, applied);
    response.extensions_mut().insert(Noted(detail));
    response
}

/// Puts another document in force: all of it or, where anything in it is wrong, nothing.
#[utoipa::path(
    put,
    path = "/v1/configuration",
    params(How, ("If-Match" = String, Header, description = "The version that is replaced, as its ETag.", pattern = "^\"[0-9]{1,18}\"$")),
    request_body(content = Object, description = "The whole document."),
    responses(
        (status = 200, description = "It is in force.", body = Applied),
        (status = 409, description = "The file is the truth, or a version waits to be confirmed."),
        (status = 412, description = "Another version is in force by now."),
        (status = 422, description = "The document is wrong; `problems` says where, all at once."),
        (status = 428, description = "Without If-Match."),
    ),
)]
async fn put(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Parameters(how): Parameters<How>,
    Document(document): Document<Value>,
) -> Result<Response, Problem> {
    let order = how.order(&headers, &caller)?;
    change(appliance, Wanted::Document(document), order).await
}

/// Changes a part of the document by a merge patch (RFC 7396). A list of named things may be patched by an object keyed by
/// name: `{"peer": {"upstream": {"rate": 50}, "old": null}}`.
#[utoipa::path(
    patch,
    path = "/v1/configuration",
    params(How, ("If-Match" = String, Header, description = "The version that is changed, as its ETag.", pattern = "^\"[0-9]{1,18}\"$")),
    request_body(content = Object, content_type = "application/merge-patch+json"),
    responses(
        (status = 200, description = "It is in force.", body = Applied),
        (status = 409, description = "The file is the truth, or a version waits to be confirmed."),
        (status = 412, description = "Another version is in force by now."),
        (status = 422, description = "What comes of it is wrong; `problems` says where, all at once."),
        (status = 428, description = "Without If-Match."),
    ),
)]
async fn patch(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Parameters(how): Parameters<How>,
    Document(patch): Document<Value>,
) -> Result<Response, Problem> {
    let order = how.order(&headers, &caller)?;
    change(appliance, Wanted::Patch(patch), order).await
}

/// What would come of a document, or of a patch where the content type is `application/merge-patch+json`. Nothing is changed.
/// The files that the document names are opened, so this needs the right to configure.
#[utoipa::path(
    post,
    path = "/v1/configuration/validate",
    request_body(content((Object = "application/json"), (Object = "application/merge-patch+json"))),
    responses((status = 200, description = "Everything that is wrong, and what would be different.", body = Checked)),
)]
async fn validate(
    State(appliance): State<Shared>,
    headers: HeaderMap,
    Octets(body): Octets,
) -> Result<Json<Checked>, Problem> {
    let document = json(&body)?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_patch = kind.trim_start().starts_with("application/merge-patch+json");
    let wanted = if is_patch { Wanted::Patch(document) } else { Wanted::Document(document) };
    answer(appliance, move |appliance| appliance.check_configuration(wanted)).await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VersionsPage {
    /// How many; 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before.
    before: Option<u64>,
}

/// A page of the history.
#[derive(Serialize, ToSchema)]
struct VersionList {
    versions: Vec<VersionSummary>,
    /// Where the next page begins; null: there is none.
    #[schema(required)]
    next: Option<u64>,
}

/// The configurations that were in force, newest first.
#[utoipa::path(
    get,
    path = "/v1/configuration/versions",
    params(VersionsPage),
    responses((status = 200, description = "A page of them.", body = VersionList)),
)]
async fn versions(
    State(appliance): State<Shared>,
    Parameters(page): Parameters<VersionsPage>,
) -> Result<Json<VersionList>, Problem> {
    let most = limit(page.limit, 1_000)?;
    answer(appliance, move |appliance| {
        let mut versions = appliance.configuration_versions(page.before, most + 1)?;
        let more = versions.len() > most;
        versions.truncate(most);
        let next = versions.last().filter(|_| more).map(|last| last.version);
        Ok(VersionList { versions, next })
    })
    .await
}

/// One of them, without its secrets.
#[utoipa::path(
    get,
    path = "/v1/configuration/versions/{version}",
    params(("version" = u64, Path, description = "Its number.")),
    responses((status = 200, description = "As it was.", body = OneVersion)),
)]
async fn version(State(appliance): State<Shared>, At(version): At<u64>) -> Result<Json<OneVersion>, Problem> {
    answer(appliance, move |appliance| appliance.configuration_version(version)).await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Two {
    /// The one version.
    from: u64,
    /// The other.
    to: u64,
}

/// All differences.
#[derive(Serialize, ToSchema)]
struct Differences {
    from: u64,
    to: u64,
    changes: Vec<Difference>,
}

/// What is different between two versions.
#[utoipa::path(
    get,
    path = "/v1/configuration/diff",
    params(Two),
    responses((status = 200, description = "All of it.", body = Differences)),
)]
async fn diff(
    State(appliance): State<Shared>,
    Parameters(Two { from, to }): Parameters<Two>,
) -> Result<Json<Differences>, Problem> {
    answer(appliance, move |appliance| {
        Ok(Differences { from, to, changes: appliance.configuration_differences(from, to)? })
    })
    .await
}

/// Where to go back to.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Rollback {
    /// The version whose document is to be in force again, as a new version.
    to: u64,
    /// Why, for the history.
    #[schema(max_length = 1000)]
    why: Option<String>,
    /// As of a change.
    #[schema(pattern = "^([1-9][0-9]{0,5}s|[1-9][0-9]{0,3}m|[1-9][0-9]?h|([1-9]|[12][0-9]|30)d)$")]
    confirm_within: Option<String>,
}

/// Puts the document of an earlier version in force again.
#[utoipa::path(
    post,
    path = "/v1/configuration/rollback",
    params(("If-Match" = String, Header, description = "The version that is replaced, as its ETag.", pattern = "^\"[0-9]{1,18}\"$")),
    request_body = Rollback,
    responses(
        (status = 200, description = "It is in force.", body = Applied),
        (status = 404, description = "There is no such version, or no longer."),
        (status = 409, description = "The file is the truth, or a version waits to be confirmed."),
        (status = 412, description = "Another version is in force by now."),
        (status = 422, description = "The document cannot be used any more: a file that it names is gone, say."),
        (status = 428, description = "Without If-Match."),
    ),
)]
async fn rollback(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Document(Rollback { to, why, confirm_within }): Document<Rollback>,
) -> Result<Response, Problem> {
    let order = How { why, confirm_within }.order(&headers, &caller)?;
    change(appliance, Wanted::Version(to), order).await
}

/// What stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Confirmed {
    /// The version.
    version: u64,
}

/// Says that a version which waits for it is to stay.
#[utoipa::path(
    post,
    path = "/v1/configuration/confirm",
    request_body = Confirmed,
    responses(
        (status = 204, description = "It stays."),
        (status = 409, description = "None waits to be confirmed, or another."),
    ),
)]
async fn confirm(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    Document(Confirmed { version }): Document<Confirmed>,
) -> Result<StatusCode, Problem> {
    call(appliance, move |appliance| appliance.confirm_configuration(version, &caller.name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a version back at once that waits to be confirmed.
#[utoipa::path(
    post,
    path = "/v1/configuration/revert",
    responses(
        (status = 200, description = "The one before is in force, as a new version.", body = Applied),
        (status = 409, description = "None waits to be confirmed."),
    ),
)]
async fn revert(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let applied = call(appliance, move |appliance| appliance.revert_configuration(&caller.name)).await?;
    Ok(noted(applied))
}

/// What a document may have in it: JSON Schema, draft 2020-12.
#[utoipa::path(
    get,
    path = "/v1/configuration/schema",
    responses((status = 200, description = "The schema.", body = Object, content_type = "application/schema+json")),
)]
async fn schema(State(appliance): State<Shared>) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/schema+json")];
    (kind, appliance.configuration_schema().to_string()).into_response()
}

/// The document as a TOML file, without its secrets: `switchyard config apply` takes it.
#[utoipa::path(
    get,
    path = "/v1/configuration/file",
    responses((status = 200, description = "The file.", body = String, content_type = "application/toml")),
)]
async fn file(State(appliance): State<Shared>) -> Result<Response, Problem> {
    let text = call(appliance, Configuration::configuration_file).await?;
    Ok(([(header::CONTENT_TYPE, "application/toml; charset=utf-8")], text).into_response())
}
