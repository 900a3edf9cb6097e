//! Other products' HTTP APIs: a plugin translates each request into submissions, and their results into the response. The plugin
//! writes the response after the messages are durable, so it cannot confirm a message too early.

use crate::accounts::{Account, log_in};
use crate::calls::{Shared, submission_key};
use crate::http_json::ask_leader;
use crate::problem::{Problem, ProblemKind};
use crate::request::{OneOrMany, SubmitItem};
use crate::submission;
use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{self, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hooks::{
    FrontEndOutcome, FrontEndReading, FrontEndRefusal, FrontEndRequest, FrontEndResult, FrontEndSubmission,
    FrontEndSubmit, Hooks, PluginResponse, RefusalReason,
};
use model::{Message, MessageChanges, PluginVersion, Refusal, RejectReason, Timestamp, Verdict};
use ports::{ConnectionPermit, LoginInterface, PassedOnMarker};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Maximum size of a request, in octets. Credentials may be in the body, so it is read before the caller is known.
const MAX_BODY: usize = 256 << 10;

/// The attribute of messages that names the front end.
const ATTRIBUTE: &str = "front-end";

/// Serves all paths that are not part of the business API.
pub(crate) async fn serve(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let found = {
        let options = shared.options.lock();
        let matching = options.front_ends.iter().filter(|one| one.matches(request.uri().path()));
        matching.max_by_key(|one| one.path.len()).map(|one| one.plugin.clone())
    };
    match (found, &shared.plugins) {
        (Some(plugin), Some(hooks)) => {
            let permit = request.extensions().get::<Arc<ConnectionPermit>>().cloned();
            let was_passed_on = request.extensions().get::<PassedOnMarker>().is_some();
            match read_request(plugin.into(), request).await {
                Ok((request, received)) => {
                    let caller = Caller { remote, permit };
                    let received = Some(received).filter(|_| !was_passed_on);
                    answer(&shared, hooks, &caller, &request, received).await
                }
                Err(problem) => problem.into_response(),
            }
        }
        _ => Problem::new(ProblemKind::NotFound, "unknown path; GET /v1/openapi.json lists all paths")
            .into_response(),
    }
}

/// The sender of a request.
struct Caller {
    remote: SocketAddr,
    permit: Option<Arc<ConnectionPermit>>,
}

/// Reads a request as a whole. Returns it for the plugin, and as it was received.
async fn read_request(
    plugin: Arc<str>,
    request: Request,
) -> Result<(FrontEndRequest, http::Request<Bytes>), Problem> {
    let (parts, body) = request.into_parts();
    if !matches!(parts.method, Method::GET | Method::POST) {
        return Err(Problem::new(ProblemKind::Method, "a front end is called with GET or POST"));
    }
    let mut encodings = parts.headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let detail = "Content-Encoding: encoded bodies are not supported";
        return Err(Problem::new(ProblemKind::Encoded, detail));
    }
    let body = to_bytes(body, MAX_BODY).await.map_err(|error| {
        let is_too_large = std::error::Error::source(&error)
            .is_some_and(|source| source.to_string().contains("length limit exceeded"));
        if is_too_large {
            Problem::new(ProblemKind::TooLarge, format!("at most {MAX_BODY} octets are allowed"))
        } else {
            Problem::new(ProblemKind::Malformed, "the body of the request breaks off")
        }
    })?;
    let request = FrontEndRequest {
        plugin,
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: headers(&parts.headers),
        body: body.to_vec(),
    };
    Ok((request, http::Request::from_parts(parts, body)))
}

fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let one = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    headers.iter().map(one).collect()
}

/// Answers a request. `received` is the request of a client that may belong to another partition of the cluster.
async fn answer(
    shared: &Shared,
    hooks: &Hooks,
    caller: &Caller,
    request: &FrontEndRequest,
    received: Option<http::Request<Bytes>>,
) -> Response {
    let (reading, call) = match hooks.read_request(request, Timestamp::now()) {
        Ok(read) => read,
        Err(why) => {
            tracing::debug!(plugin = &*request.plugin, why, "front end failed to read a request");
            let detail = "the front end of this path cannot read the request now; nothing was accepted";
            return Problem::new(ProblemKind::Unavailable, detail).into_response();
        }
    };
    let submit = match reading {
        FrontEndReading::Respond(response) => return http_response(response),
        FrontEndReading::Submit(submit) => submit,
    };
    let elsewhere = received.zip(shared.registry.pass_on()).and_then(|(received, pass_on)| {
        let partition = pass_on.elsewhere(LoginInterface::Business, submit.account.as_bytes())?;
        Some((received, pass_on, partition))
    });
    let submitted = match elsewhere {
        // The plugin at the leader reads the request again. Reading has no lasting effect.
        Some((received, pass_on, partition)) => {
            match ask_leader(&**pass_on, partition, caller.remote, received).await {
                Ok(response) => {
                    // Each plugin answers a wrong password in its own form, so only a success proves the password.
                    if let Some(permit) = caller.permit.as_ref().filter(|_| response.status().is_success()) {
                        permit.identify();
                    }
                    return response;
                }
                Err(silent) => Err(Problem::new(ProblemKind::Unavailable, silent.to_string())),
            }
        }
        None => shared.submit_translated(caller, submit, call.by()).await,
    };
    let outcome = match submitted {
        Ok(results) => FrontEndOutcome::Results(results),
        Err(problem) => FrontEndOutcome::Refused(refusal_of(&problem)),
    };
    match hooks.reply(&call, request, &outcome, Timestamp::now()) {
        Ok(response) => http_response(response),
        Err(why) => {
            tracing::debug!(plugin = &*request.plugin, why, "front end failed to write a response");
            own_response(&outcome)
        }
    }
}

impl Shared {
    /// Submits the messages that a front end has read, like a call of the business API. Returns one result per submission.
    async fn submit_translated(
        &self,
        caller: &Caller,
        submit: FrontEndSubmit,
        by: &PluginVersion,
    ) -> Result<Vec<FrontEndResult>, Problem> {
        let login = (submit.account.as_str(), submit.password.as_bytes());
        let remote = caller.remote.ip().to_canonical();
        let account = log_in(&self.accounts, &self.verifier, self.registry.accounts(), login, remote).await?;
        if let Some(permit) = &caller.permit {
            permit.identify();
        }
        let results = self.submit_as(&account, submit, by).await;
        let name = results.as_ref().err().map_or("ok", |problem| problem.kind.name());
        account.counts.request("front-end", name);
        results
    }

    async fn submit_as(
        &self,
        account: &Account,
        submit: FrontEndSubmit,
        by: &PluginVersion,
    ) -> Result<Vec<FrontEndResult>, Problem> {
        let FrontEndSubmit { submissions, idempotency_key, .. } = submit;
        let key = idempotency_key.map(|name| submission_key(&name, &submissions)).transpose();
        let read = key.and_then(|key| {
            let messages = submission::read_messages(submissions, item, &account.options, Timestamp::now())?;
            Ok((key, messages))
        });
        let (key, messages) = read.inspect_err(|problem| self.refused(account, problem))?;
        let segments: Vec<u16> = messages.iter().map(|message| message.text.segment_count()).collect();
        let named =
            |messages: &mut [Message]| messages.iter_mut().for_each(|message| name_front_end(message, by));
        let results = self.accept(account, messages, key, named).await?;
        let results = results.into_iter().zip(segments).map(|(result, segments)| match result {
            Ok(id) => FrontEndResult::Accepted { id: id.to_string(), segments },
            Err(refusal) => FrontEndResult::Refused(FrontEndRefusal {
                reason: reason_of(refusal),
                detail: refusal.to_string(),
                field: None,
            }),
        });
        Ok(results.collect())
    }
}

/// Adds the name of the front end to the routing decision: in the note, which the trace shows, and in an attribute for later
/// plugins.
fn name_front_end(message: &mut Message, by: &PluginVersion) {
    let name = format!("{} {}", by.plugin, by.version);
    let routed = &mut message.routed;
    let note = routed.note.take().map_or_else(String::new, |note| format!("{note}; "));
    routed.note = Some(format!("{note}front end {name}").into());
    if matches!(routed.verdict, Verdict::Forward(_)) {
        let changes = routed.changes.get_or_insert_with(Box::<MessageChanges>::default);
        changes.set_attribute(ATTRIBUTE.into(), name.into());
    }
}

/// The submission as an item of the business API.
fn item(submission: FrontEndSubmission) -> Result<SubmitItem, String> {
    let schedule = submission.schedule.map(|at| {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000)
            .ok()
            .and_then(|at| at.format(&Rfc3339).ok())
            .ok_or_else(|| format!("{at} ms is not a valid time of delivery"))
    });
    Ok(SubmitItem {
        from: submission.source,
        to: OneOrMany::One(submission.destination),
        text: submission.text,
        octets: submission.octets,
        coding: submission.coding,
        udh: submission.user_data_header,
        message_class: submission.message_class,
        dlr_push: submission.dlr_push,
        priority: submission.priority,
        validity: submission.validity,
        schedule: schedule.transpose()?,
        dlr: Some(submission.receipts.unwrap_or_else(|| "none".to_owned())),
        service_type: None,
        tlvs: submission.tlvs,
        reference: submission.reference,
        sgip: None,
    })
}

fn reason_of(refusal: Refusal) -> RefusalReason {
    match refusal {
        Refusal::Rejected(RejectReason::NoRoute) => RefusalReason::NoRoute,
        Refusal::Rejected(RejectReason::InvalidDestination) => RefusalReason::InvalidDestination,
        Refusal::Rejected(RejectReason::InvalidSource) => RefusalReason::InvalidSource,
        Refusal::Rejected(RejectReason::Prohibited | RejectReason::OptedOut) => RefusalReason::Prohibited,
        Refusal::Rejected(RejectReason::NotAuthorised | RejectReason::PriceTooHigh) => {
            RefusalReason::NotAuthorised
        }
        Refusal::Rejected(RejectReason::NoCredit) => RefusalReason::NoCredit,
        Refusal::Rejected(RejectReason::TryLater)
        | Refusal::Throttled
        | Refusal::QuotaExceeded
        | Refusal::KeysFull { .. } => RefusalReason::Throttled,
        Refusal::QueueFull | Refusal::ShuttingDown => RefusalReason::Unavailable,
        Refusal::KeyReused => RefusalReason::KeyReused,
        Refusal::BadSchedule | Refusal::Expired => RefusalReason::Invalid,
        Refusal::Rejected(RejectReason::Fault)
        | Refusal::UnknownMessage
        | Refusal::WrongState
        | Refusal::Internal => RefusalReason::Internal,
    }
}

fn refusal_of(problem: &Problem) -> FrontEndRefusal {
    let reason = match problem.kind {
        ProblemKind::Unauthorised => RefusalReason::Unauthenticated,
        ProblemKind::Throttled => RefusalReason::Throttled,
        ProblemKind::Unavailable => RefusalReason::Unavailable,
        ProblemKind::KeyReused => RefusalReason::KeyReused,
        ProblemKind::Rejected => RefusalReason::Prohibited,
        ProblemKind::Internal => RefusalReason::Internal,
        _ => RefusalReason::Invalid,
    };
    let field = problem.errors.first().map(|error| {
        let name = error.field.rsplit('.').next().unwrap_or_default();
        let name = name.split('[').next().unwrap_or_default();
        let name = match name {
            "to" => "destination",
            "from" => "source",
            "text" | "octets" => "content",
            "udh" => "user-data-header",
            "dlr" => "receipts",
            "message_class" => "message-class",
            "dlr_push" => "dlr-push",
            other => other,
        };
        name.to_owned()
    });
    FrontEndRefusal { reason, detail: problem.detail.clone(), field }
}

/// Headers of the connection, which a plugin must not set.
const CONNECTION_HEADERS: [HeaderName; 4] =
    [header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::UPGRADE];

fn http_response(response: PluginResponse) -> Response {
    let PluginResponse { status, headers, body } = response;
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value))
            && !CONNECTION_HEADERS.contains(&name)
        {
            answer.headers_mut().append(name, value);
        }
    }
    answer
}

/// The host's own response, if the plugin fails to write one. Accepted messages are confirmed, because an error would make
/// the customer submit them again.
fn own_response(outcome: &FrontEndOutcome) -> Response {
    let results = match outcome {
        FrontEndOutcome::Results(results) => results,
        FrontEndOutcome::Refused(refusal) => return own_refusal(refusal),
    };
    let mut accepted = Vec::new();
    let mut refused = Vec::new();
    for result in results {
        match result {
            FrontEndResult::Accepted { id, .. } => accepted.push(id),
            FrontEndResult::Refused(refusal) => refused.push(refusal),
        }
    }
    match refused.first() {
        Some(first) if accepted.is_empty() => own_refusal(first),
        _ => {
            let body = json!({ "accepted": accepted, "refused": refused.len() });
            (StatusCode::ACCEPTED, Json(body)).into_response()
        }
    }
}

fn own_refusal(refusal: &FrontEndRefusal) -> Response {
    let kind = match refusal.reason {
        RefusalReason::Unauthenticated => ProblemKind::Unauthorised,
        RefusalReason::Invalid => ProblemKind::Invalid,
        RefusalReason::Throttled => ProblemKind::Throttled,
        RefusalReason::Unavailable => ProblemKind::Unavailable,
        RefusalReason::KeyReused => ProblemKind::KeyReused,
        RefusalReason::Internal => ProblemKind::Internal,
        RefusalReason::NoRoute
        | RefusalReason::InvalidDestination
        | RefusalReason::InvalidSource
        | RefusalReason::Prohibited
        | RefusalReason::NotAuthorised
        | RefusalReason::NoCredit => ProblemKind::Rejected,
    };
    Problem::new(kind, refusal.detail.clone()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::FieldError;

    #[test]
    fn accepted_messages_are_confirmed_even_without_the_plugin() {
        let refusal =
            FrontEndRefusal { reason: RefusalReason::NoRoute, detail: "no route".to_owned(), field: None };
        let accepted = FrontEndResult::Accepted { id: "7".to_owned(), segments: 1 };
        let refused = FrontEndResult::Refused(refusal.clone());
        let status = |outcome| own_response(&outcome).status();
        let mixed = FrontEndOutcome::Results(vec![refused.clone(), accepted]);
        assert_eq!(status(mixed), StatusCode::ACCEPTED);
        assert_eq!(status(FrontEndOutcome::Results(vec![refused])), StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(status(FrontEndOutcome::Refused(refusal)), StatusCode::UNPROCESSABLE_ENTITY);
    }

    #[test]
    fn a_field_has_the_name_of_the_contract() {
        let field = |field: &str| {
            let error = FieldError { field: field.to_owned(), reason: "is wrong".to_owned() };
            refusal_of(&Problem::invalid(vec![error])).field.unwrap()
        };
        assert_eq!(field("messages[3].to"), "destination");
        assert_eq!(field("udh"), "user-data-header");
        assert_eq!(field("text"), "content");
    }

    #[test]
    fn a_plugin_sets_no_header_of_the_connection() {
        let headers = [("Content-Length", "5"), ("X-Id", "7"), ("bad name", "x"), ("X-Line", "a\nb")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let response = http_response(PluginResponse { status: 202, headers, body: b"ok".to_vec() });
        let names: Vec<&str> = response.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!((response.status(), names), (StatusCode::ACCEPTED, vec!["x-id"]));
    }
}
