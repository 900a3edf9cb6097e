//! The API of finished messages and their records: history, statistics, archive, DLRs, refusals, opt-outs, quality
//! figures of peers, conversions.

use crate::authz::Scope;
use crate::export::Export;
use crate::problem::{Problem, ProblemKind};
use crate::request::{Flag, JsonBody, PathParams, enum_schema};
use crate::request_audit::{AuditedResult, with_audit_detail};
use crate::service::{Provides, Service, call, call_json};

use access::Caller;
use api::name_schemas::{DirectionSchema, FinalStateSchema, TimeText};
use api::{
    ArchivePumpView, ConversionsRequest, ConversionsResult, HistoryPageView, OptOutChange, OptOutsView,
    OrphanDlrsView, PeerFiguresView, Permission, ResendDlrsRequest, ResendDlrsResult, Role, StatisticsView,
};
use axum::body::Body;
use axum::extract::Query;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use model::{AccountScope, NumberDisplay};
use std::collections::HashMap;
use std::sync::Arc;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{IntoParams, PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Finished messages and their records.
pub trait MessageRecords: Send + Sync + 'static {
    /// A page of the scope's finished messages. Query parameters: number, account, peer, state, direction, from, until,
    /// limit, cursor, body, trace.
    ///
    /// # Errors
    /// If the query is invalid, or the archive cannot be read.
    fn history(
        &self,
        query: &HashMap<String, String>,
        numbers: NumberDisplay,
        scope: &AccountScope,
    ) -> Result<api::HistoryPageView, Problem>;
    /// All finished messages of the scope that match the query, as a file.
    ///
    /// # Errors
    /// As [`MessageRecords::history`].
    fn export(
        &self,
        query: &HashMap<String, String>,
        numbers: NumberDisplay,
        scope: &AccountScope,
    ) -> Result<Export, Problem>;
    /// Counts of the scope's accounts by hour or day, account and gateway. Query parameters: by, utc_offset, from,
    /// until, account, peer.
    ///
    /// # Errors
    /// As [`MessageRecords::history`].
    fn statistics(
        &self,
        query: &HashMap<String, String>,
        scope: &AccountScope,
    ) -> Result<Vec<api::StatisticsView>, Problem>;
    /// The state of the archive's data pump.
    ///
    /// # Errors
    /// If there is no archive.
    fn archive(&self) -> Result<api::ArchivePumpView, Problem>;
    /// DLRs from peers that match no message yet.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn orphan_dlrs(&self) -> Result<api::OrphanDlrsView, Problem>;
    /// Sends the DLRs of a time range again.
    ///
    /// # Errors
    /// If the request is invalid, or a queue is full.
    fn resend_dlrs(&self, request: api::ResendDlrsRequest) -> Result<api::ResendDlrsResult, Problem>;
    /// Refused submissions. Query parameters: account, code, since, limit.
    ///
    /// # Errors
    /// If the query is invalid, or there is no such account.
    fn refusals(
        &self,
        query: &HashMap<String, String>,
        numbers: NumberDisplay,
    ) -> Result<api::RefusalsView, Problem>;
    /// The opt-outs of subscribers.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn opt_outs(&self, numbers: NumberDisplay) -> Result<api::OptOutsView, Problem>;
    /// Adds or removes an opt-out.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn set_opt_out(&self, change: &api::OptOutChange) -> Result<(), Problem>;
    /// Recent quality figures of a peer.
    ///
    /// # Errors
    /// If there is no such peer.
    fn peer_figures(&self, name: &str) -> Result<api::PeerFiguresView, Problem>;
    /// Records that messages led to a conversion. With `account`, messages of other accounts are reported as unknown;
    /// so are messages outside the scope.
    ///
    /// # Errors
    /// If the archive cannot be read, or the daemon is shutting down.
    fn report_conversions(
        &self,
        ids: &[String],
        account: Option<Arc<str>>,
        scope: &AccountScope,
    ) -> Result<api::ConversionsResult, Problem>;
}

pub(crate) fn routes<S: Provides<dyn MessageRecords>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(history))
        .routes(routes!(export))
        .routes(routes!(statistics))
        .routes(routes!(archive))
        .routes(routes!(orphan_dlrs))
        .routes(routes!(resend_dlrs))
        .routes(routes!(refusals))
        .routes(routes!(opt_outs, set_opt_out))
        .routes(routes!(peer_figures))
        .routes(routes!(report_conversions))
}

/// Maximum number of messages in one report of conversions.
const MAX_CONVERSIONS: usize = 1_000;

/// The raw query; the backend parses it.
type RawQuery = Query<HashMap<String, String>>;

/// Filter of finished messages.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only a schema: the backend parses the query")]
struct HistoryFilter {
    /// The sender's or recipient's number.
    number: Option<String>,
    /// The account.
    account: Option<String>,
    /// The gateway.
    peer: Option<String>,
    /// The final state.
    #[param(value_type = Option<FinalStateSchema>, inline)]
    state: Option<String>,
    /// The direction: from an account to the network (`mt`), or to an account (`mo`).
    #[param(value_type = Option<DirectionSchema>, inline)]
    direction: Option<String>,
    /// Accepted at or after this time, such as 2026-11-20T20:32:25Z, or milliseconds since the epoch.
    #[param(value_type = Option<TimeText>, inline)]
    from: Option<String>,
    /// Accepted before this time.
    #[param(value_type = Option<TimeText>, inline)]
    until: Option<String>,
    /// Include message texts.
    #[param(inline)]
    body: Option<Flag>,
    /// Include traces.
    #[param(inline)]
    trace: Option<Flag>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only a schema: the backend parses the query")]
struct HistoryPageQuery {
    /// Maximum number of messages; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
    /// The `next` of the previous page.
    cursor: Option<String>,
}

/// Lists finished messages, newest first.
#[utoipa::path(
    get,
    path = "/v1/history",
    params(HistoryFilter, HistoryPageQuery),
    responses((status = 200, description = "A page of messages.", body = HistoryPageView)),
)]
async fn history(
    backend: Service<dyn MessageRecords>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    Query(query): RawQuery,
) -> Result<Json<HistoryPageView>, Problem> {
    let numbers = caller.number_display();
    call_json(backend, move |backend| backend.history(&query, numbers, &scope)).await
}

/// The format of an export.
struct ExportFormatSchema;

impl ToSchema for ExportFormatSchema {}

impl PartialSchema for ExportFormatSchema {
    fn schema() -> RefOr<Schema> {
        enum_schema(["csv", "jsonl"])
    }
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only a schema: the backend parses the query")]
struct ExportQuery {
    /// The format; default CSV.
    #[param(value_type = Option<ExportFormatSchema>, inline)]
    format: Option<String>,
}

/// Exports all finished messages that match the filter, as a file.
#[utoipa::path(
    get,
    path = "/v1/history/export",
    params(HistoryFilter, ExportQuery),
    responses((
        status = 200,
        description = "The file.",
        content((String = "text/csv"), (String = "application/jsonl")),
    )),
)]
async fn export(
    backend: Service<dyn MessageRecords>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    Query(query): RawQuery,
) -> Result<Response, Problem> {
    let numbers = caller.number_display();
    let Export { media_type, chunks } =
        call(backend, move |backend| backend.export(&query, numbers, &scope)).await?;
    let pieces = futures_util::stream::unfold(chunks, |mut chunks| async move {
        let piece = chunks.recv().await?;
        Some((piece.map_err(std::io::Error::other), chunks))
    });
    Ok(([(header::CONTENT_TYPE, media_type)], Body::from_stream(pieces)).into_response())
}

/// The period of a statistics row.
struct StatisticsSpanSchema;

impl ToSchema for StatisticsSpanSchema {}

impl PartialSchema for StatisticsSpanSchema {
    fn schema() -> RefOr<Schema> {
        enum_schema(["hour", "day"])
    }
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only a schema: the backend parses the query")]
struct StatisticsQuery {
    /// The period of each row; default one hour.
    #[param(value_type = Option<StatisticsSpanSchema>, inline)]
    by: Option<String>,
    /// Offset of the days' time zone from UTC, in hours.
    #[param(minimum = -12, maximum = 14)]
    utc_offset: Option<i8>,
    /// Start of the range, such as 2026-11-20T20:32:25Z, or milliseconds since the epoch. Default: one week for hours, two
    /// years for days.
    #[param(value_type = Option<TimeText>, inline)]
    from: Option<String>,
    /// End of the range, exclusive.
    #[param(value_type = Option<TimeText>, inline)]
    until: Option<String>,
    /// Only this account.
    account: Option<String>,
    /// Only this gateway.
    peer: Option<String>,
}

/// Lists counts and latencies by hour or day, account and gateway.
#[utoipa::path(
    get,
    path = "/v1/statistics",
    params(StatisticsQuery),
    responses((status = 200, description = "One row for each period, account and gateway.", body = Vec<StatisticsView>)),
)]
async fn statistics(
    backend: Service<dyn MessageRecords>,
    Scope(scope): Scope,
    Query(query): RawQuery,
) -> Result<Json<Vec<StatisticsView>>, Problem> {
    call_json(backend, move |backend| backend.statistics(&query, &scope)).await
}

/// Shows the archive's data pump: state, backlog, counts, failures.
#[utoipa::path(get, path = "/v1/archive", responses((status = 200, description = "The current state.", body = ArchivePumpView)))]
async fn archive(backend: Service<dyn MessageRecords>) -> Result<Json<ArchivePumpView>, Problem> {
    call_json(backend, MessageRecords::archive).await
}

/// Lists orphan DLRs: DLRs from peers that match no message yet.
#[utoipa::path(
    get,
    path = "/v1/dlrs/orphans",
    responses((status = 200, description = "The first DLRs, and their total number.", body = OrphanDlrsView)),
)]
async fn orphan_dlrs(backend: Service<dyn MessageRecords>) -> Result<Json<OrphanDlrsView>, Problem> {
    call_json(backend, MessageRecords::orphan_dlrs).await
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only a schema: the backend parses the query")]
struct RefusalsQuery {
    /// Only this account. For messages from a network: the peer or core network.
    account: Option<String>,
    /// Only this code.
    #[param(example = "no-route")]
    code: Option<String>,
    /// Refused at or after this time, such as 2026-11-20T20:32:25Z, or milliseconds since the epoch. The counts always start
    /// with the daemon.
    #[param(value_type = Option<TimeText>, inline)]
    since: Option<String>,
    /// Maximum number of refusals; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

/// Lists refused submissions: counts since the start of the daemon, and the most recent refusals of each account.
///
/// Requests that cannot be parsed as a submission are not included. Refusals are not stored on disk.
#[utoipa::path(
    get,
    path = "/v1/refusals",
    params(RefusalsQuery),
    responses(
        (status = 200, description = "Counts, and the most recent refusals, newest first.", body = api::RefusalsView),
        (status = 404, description = "There is no such account."),
    ),
)]
async fn refusals(
    backend: Service<dyn MessageRecords>,
    Extension(caller): Extension<Caller>,
    Query(query): RawQuery,
) -> Result<Json<api::RefusalsView>, Problem> {
    let numbers = caller.number_display();
    call_json(backend, move |backend| backend.refusals(&query, numbers)).await
}

/// Sends the DLRs of a time range again, newest message first, until all are sent or an account's queue is full.
#[utoipa::path(
    post,
    path = "/v1/dlrs/resend",
    request_body = ResendDlrsRequest,
    responses((status = 200, description = "The DLRs are queued.", body = ResendDlrsResult)),
)]
async fn resend_dlrs(
    backend: Service<dyn MessageRecords>,
    JsonBody(request): JsonBody<ResendDlrsRequest>,
) -> AuditedResult<ResendDlrsResult> {
    let scope = request.account.as_ref().map(|account| format!(" of account {account}")).unwrap_or_default();
    let span = format!("{scope}, from {} until {}", request.from, request.until);
    let result = call_json(backend, move |backend| backend.resend_dlrs(request)).await?;
    with_audit_detail(result, |result| format!("{} DLRs{span}", result.dlrs))
}

/// Lists the opt-outs: subscribers, and the senders that they have opted out of.
#[utoipa::path(
    get,
    path = "/v1/opt-outs",
    responses((status = 200, description = "The first 1,000 opt-outs.", body = OptOutsView)),
)]
async fn opt_outs(
    backend: Service<dyn MessageRecords>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<OptOutsView>, Problem> {
    let numbers = caller.number_display();
    call_json(backend, move |backend| backend.opt_outs(numbers)).await
}

/// Adds or removes an opt-out.
#[utoipa::path(
    post,
    path = "/v1/opt-outs",
    request_body = OptOutChange,
    responses((status = 204, description = "The change is in force.")),
)]
async fn set_opt_out(
    backend: Service<dyn MessageRecords>,
    JsonBody(request): JsonBody<OptOutChange>,
) -> Result<StatusCode, Problem> {
    call(backend, move |backend| backend.set_opt_out(&request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Shows the quality figures of a peer for the last five minutes: outcomes of submit attempts, DLRs, conversions.
#[utoipa::path(
    get,
    path = "/v1/peers/{name}/quality",
    params(("name" = String, Path, description = "The name of the peer or account in the configuration.")),
    responses(
        (status = 200, description = "The figures.", body = PeerFiguresView),
        (status = 404, description = "There is no such peer."),
    ),
)]
async fn peer_figures(
    backend: Service<dyn MessageRecords>,
    PathParams(name): PathParams<String>,
) -> Result<Json<PeerFiguresView>, Problem> {
    call_json(backend, move |backend| backend.peer_figures(&name)).await
}

/// Records that messages led to a conversion, for example the use of a one-time password.
///
/// Each message counts once, for the peer that accepted it, at the time of the report. A restart clears all counts.
/// Callers with the role account can report messages of their account; other callers need the permission `operate`.
#[utoipa::path(
    post,
    path = "/v1/conversions",
    request_body = ConversionsRequest,
    responses(
        (status = 200, description = "The numbers of recorded and repeated conversions, and the unknown ids.", body = ConversionsResult),
        (status = 403, description = "The caller may not operate traffic."),
    ),
)]
async fn report_conversions(
    backend: Service<dyn MessageRecords>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    JsonBody(request): JsonBody<ConversionsRequest>,
) -> AuditedResult<ConversionsResult> {
    let account = match caller.role {
        // A caller without an account may see no message.
        Role::Account => Some(caller.account.clone().unwrap_or_default()),
        _ => None,
    };
    if account.is_none() && !caller.has(Permission::Operate) {
        let detail =
            format!("reporting conversions needs the permission operate; the role {} lacks it", caller.role);
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    let count = request.messages.len();
    if count == 0 || count > MAX_CONVERSIONS {
        let detail = format!("messages: has {count} ids, and must have 1 to {MAX_CONVERSIONS}");
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    }
    let is_id = |id: &&String| (1..=19).contains(&id.len()) && id.bytes().all(|octet| octet.is_ascii_digit());
    if let Some((index, _)) = request.messages.iter().enumerate().find(|(_, id)| !is_id(id)) {
        let detail =
            format!("messages/{index}: is not a message id: expected decimal digits, such as 1000000042");
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    }
    let result =
        call_json(backend, move |backend| backend.report_conversions(&request.messages, account, &scope))
            .await?;
    with_audit_detail(result, |result| {
        let ConversionsResult { recorded, repeated, unknown } = result;
        format!("{recorded} conversions, {repeated} reported before, {} unknown", unknown.len())
    })
}
