//! The API of what has ended: history, statistics, the archive, reports, opt-outs.

use crate::api::{Appliance, Export, Shared, answer, call};
use crate::guard::{Detailed, detailed};
use crate::problem::Problem;
use crate::request::{Document, Flag, IdText, TimeText, words};
use crate::view;
use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::FinalState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{IntoParams, PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(history))
        .routes(routes!(export))
        .routes(routes!(statistics))
        .routes(routes!(archive))
        .routes(routes!(parked))
        .routes(routes!(report_again))
        .routes(routes!(refusals))
        .routes(routes!(opt_outs, set_opt_out))
}

/// The query as it came, for those behind who read it themselves.
type Asked = Query<HashMap<String, String>>;

/// How a message may have ended.
struct Ended;

impl ToSchema for Ended {}

impl PartialSchema for Ended {
    fn schema() -> RefOr<Schema> {
        words(FinalState::ALL.map(FinalState::name))
    }
}

/// Which way a message may go.
struct Direction;

impl ToSchema for Direction {}

impl PartialSchema for Direction {
    fn schema() -> RefOr<Schema> {
        words(["mt", "mo"])
    }
}

/// Which finished messages are meant.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it only describes; those behind read the query")]
struct Chosen {
    /// With this number as sender or addressee.
    number: Option<String>,
    /// Of this account.
    account: Option<String>,
    /// Of this gateway.
    peer: Option<String>,
    /// Ended like this.
    #[param(value_type = Option<Ended>, inline)]
    state: Option<String>,
    /// From an account to the network (`mt`), or the other way (`mo`).
    #[param(value_type = Option<Direction>, inline)]
    direction: Option<String>,
    /// Accepted at this time or later: such as 2026-11-20T20:32:25Z, or milliseconds since the epoch.
    #[param(value_type = Option<TimeText>, inline)]
    from: Option<String>,
    /// Accepted before this time.
    #[param(value_type = Option<TimeText>, inline)]
    until: Option<String>,
    /// Texts as well.
    #[param(inline)]
    body: Option<Flag>,
    /// Every step as well.
    #[param(inline)]
    trace: Option<Flag>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it only describes; those behind read the query")]
struct Page {
    /// How many; 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// Finished messages, newest first.
#[utoipa::path(
    get,
    path = "/v1/history",
    params(Chosen, Page),
    responses((status = 200, description = "A page of them.", body = view::HistoryPage)),
)]
async fn history(State(appliance): State<Shared>, Query(query): Asked) -> Result<Json<Value>, Problem> {
    answer(appliance, move |appliance| appliance.history(&query)).await
}

/// How a file may be written.
struct FileFormat;

impl ToSchema for FileFormat {}

impl PartialSchema for FileFormat {
    fn schema() -> RefOr<Schema> {
        words(["csv", "jsonl"])
    }
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it only describes; those behind read the query")]
struct Written {
    /// How they are written; CSV otherwise.
    #[param(value_type = Option<FileFormat>, inline)]
    format: Option<String>,
}

/// The same messages, all of them, as a file.
#[utoipa::path(
    get,
    path = "/v1/history/export",
    params(Chosen, Written),
    responses((
        status = 200,
        description = "The file, as it is read.",
        content((String = "text/csv"), (String = "application/jsonl")),
    )),
)]
async fn export(State(appliance): State<Shared>, Query(query): Asked) -> Result<Response, Problem> {
    let Export { media_type, chunks } = call(appliance, move |appliance| appliance.export(&query)).await?;
    let pieces = futures_util::stream::unfold(chunks, |mut chunks| async move {
        let piece = chunks.recv().await?;
        Some((piece.map_err(std::io::Error::other), chunks))
    });
    Ok(([(header::CONTENT_TYPE, media_type)], Body::from_stream(pieces)).into_response())
}

/// What may be counted together.
struct CountedSpan;

impl ToSchema for CountedSpan {}

impl PartialSchema for CountedSpan {
    fn schema() -> RefOr<Schema> {
        words(["hour", "day"])
    }
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it only describes; those behind read the query")]
struct Period {
    /// What is counted together; an hour otherwise.
    #[param(value_type = Option<CountedSpan>, inline)]
    by: Option<String>,
    /// Days begin so many hours before they do in Greenwich.
    #[param(minimum = -12, maximum = 14)]
    east: Option<i8>,
    /// From this time on: such as 2026-11-20T20:32:25Z, or milliseconds since the epoch. Where it is left out, a week by the hour
    /// and two years by the day.
    #[param(value_type = Option<TimeText>, inline)]
    from: Option<String>,
    /// Before this time.
    #[param(value_type = Option<TimeText>, inline)]
    until: Option<String>,
    /// Of this account only.
    account: Option<String>,
    /// Of this gateway only.
    peer: Option<String>,
}

/// Counts and latencies by hour or day, account and gateway.
#[utoipa::path(
    get,
    path = "/v1/statistics",
    params(Period),
    responses((status = 200, description = "A row for each.", body = Vec<view::Statistics>)),
)]
async fn statistics(State(appliance): State<Shared>, Query(query): Asked) -> Result<Json<Value>, Problem> {
    answer(appliance, move |appliance| appliance.statistics(&query)).await
}

/// How the data pump fares: state, backlog, rows, failures.
#[utoipa::path(get, path = "/v1/archive", responses((status = 200, description = "As it is now.", body = view::Pump)))]
async fn archive(State(appliance): State<Shared>) -> Result<Json<Value>, Problem> {
    answer(appliance, Appliance::archive).await
}

/// Reports of peers that match no message yet.
#[utoipa::path(
    get,
    path = "/v1/reports/parked",
    responses((status = 200, description = "The first of them, and how many there are.", body = view::Parked)),
)]
async fn parked(State(appliance): State<Shared>) -> Result<Json<Value>, Problem> {
    answer(appliance, Appliance::parked).await
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it only describes; those behind read the query")]
struct ChosenRefusals {
    /// Of this account only; also a peer or a core network, for messages that came from it.
    account: Option<String>,
    /// With this code only.
    #[param(example = "no-route")]
    code: Option<String>,
    /// Refused at this time or later: such as 2026-11-20T20:32:25Z, or milliseconds since the epoch. The counts are since the
    /// start in any case.
    #[param(value_type = Option<TimeText>, inline)]
    since: Option<String>,
    /// How many refusals; 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

/// Refused submissions: counts since the start, and the last refusals of each account. What cannot be read as a submission
/// at all is not among them. Nothing of this is on disk.
#[utoipa::path(
    get,
    path = "/v1/refusals",
    params(ChosenRefusals),
    responses(
        (status = 200, description = "Counts, and the last refusals, newest first.", body = view::Refusals),
        (status = 404, description = "There is no such account."),
    ),
)]
async fn refusals(
    State(appliance): State<Shared>,
    Query(query): Asked,
) -> Result<Json<view::Refusals>, Problem> {
    answer(appliance, move |appliance| appliance.refusals(&query)).await
}

/// Whose reports are made once more.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Again {
    /// Of this account; of all where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    /// Of messages accepted at this time or later: such as 2026-11-20T20:32:25Z, or milliseconds since the epoch.
    #[schema(value_type = TimeText, inline)]
    from: String,
    /// Of messages accepted before this time.
    #[schema(value_type = TimeText, inline)]
    until: String,
    /// Of messages with ids below this one: `next` of the answer before, where there was one.
    #[schema(value_type = Option<IdText>, inline)]
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
}

/// How many reports were made.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes")]
struct Made {
    reports: u64,
    /// Where an account's queue was full before the end: what to give as `before` to go on.
    next: Option<String>,
}

/// Makes the reports of a time range once more, newest message first, until all are made or an account's queue is full.
#[utoipa::path(
    post,
    path = "/v1/reports/again",
    request_body = Again,
    responses((status = 200, description = "They are made.", body = Made)),
)]
async fn report_again(
    State(appliance): State<Shared>,
    Document(request): Document<Again>,
) -> Detailed<Value> {
    let of = request.account.as_ref().map(|account| format!(" of account {account}")).unwrap_or_default();
    let span = format!("{of}, from {} until {}", request.from, request.until);
    let made = answer(appliance, move |appliance| appliance.report_again(json!(request))).await?;
    detailed(made, |made| format!("{} reports{span}", made["reports"]))
}

/// Which subscribers have told which senders to stop.
#[utoipa::path(
    get,
    path = "/v1/opt-outs",
    responses((status = 200, description = "The first thousand.", body = view::OptOuts)),
)]
async fn opt_outs(State(appliance): State<Shared>) -> Result<Json<Value>, Problem> {
    answer(appliance, Appliance::opt_outs).await
}

/// Whether a sender may send to a subscriber.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Consent {
    /// The sender's number.
    sender: String,
    /// The subscriber's number.
    subscriber: String,
    /// True: nothing more is sent. False: it goes on.
    stop: bool,
}

/// Stops a sender for a subscriber, or lets it go on.
#[utoipa::path(
    post,
    path = "/v1/opt-outs",
    request_body = Consent,
    responses((status = 204, description = "So it is from now on.")),
)]
async fn set_opt_out(
    State(appliance): State<Shared>,
    Document(request): Document<Consent>,
) -> Result<StatusCode, Problem> {
    call(appliance, move |appliance| appliance.set_opt_out(json!(request))).await?;
    Ok(StatusCode::NO_CONTENT)
}
