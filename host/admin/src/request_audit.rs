//! The audit records of requests: one durable record for each audited operation, written before the caller gets the
//! answer.

mod refusal_limiter;

pub(crate) use refusal_limiter::RefusalLimiter;

use crate::authenticator::Authenticator;
use crate::authz::asks_for_bodies;
use crate::problem::{Problem, ProblemKind};
use api::{AuditOutcome, AuditRecord};
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use model::NumberDisplay;
use refusal_limiter::AuditLine;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The `detail` of an audit record, as an extension of a response. It never contains a secret or a message text.
#[derive(Debug, Clone)]
pub(crate) struct AuditDetail(pub(crate) String);

/// A response with its [`AuditDetail`].
pub(crate) type AuditedResult<T> = Result<(axum::Extension<AuditDetail>, axum::Json<T>), Problem>;

/// Adds the detail that `describe` returns for the response.
pub(crate) fn with_audit_detail<T>(
    answer: axum::Json<T>,
    describe: impl FnOnce(&T) -> String,
) -> AuditedResult<T> {
    let detail = describe(&answer.0);
    Ok((axum::Extension(AuditDetail(detail)), answer))
}

/// Appends the caller's reason to a detail; an empty reason is ignored.
pub(crate) fn append_reason(detail: String, why: Option<&str>) -> String {
    match why {
        Some(why) if !why.is_empty() => format!("{detail}; why: {why}"),
        _ => detail,
    }
}

/// Method and route, with `?body=1` if the request asks for message texts.
pub(crate) fn operation_name(method: &Method, path: &str, uri: &Uri) -> String {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let bodies = if asks_for_bodies(uri) { "?body=1" } else { "" };
    format!("{method} {path}{bodies}")
}

/// The subject of a record for display. For an operation on a subscriber, it contains a number, for example
/// `msisdn-4917012345678`.
pub(crate) fn shown_subject(record: &AuditRecord, numbers: NumberDisplay) -> String {
    match record.subject.split_once('-') {
        Some((kind, number)) if record.what.contains("/{subscriber}") => {
            format!("{kind}-{}", numbers.text(number))
        }
        _ => record.subject.clone(),
    }
}

/// Completes the record with the response's status and detail, and appends it to the audit log. Returns the response to send:
/// a problem if the log cannot be written.
pub(crate) async fn record_outcome(
    authenticator: &Arc<Authenticator>,
    mut record: AuditRecord,
    response: Response,
) -> Response {
    let status = response.status();
    record.status = status.as_u16();
    record.outcome = match status.as_u16() {
        500.. => AuditOutcome::Failed,
        400.. => AuditOutcome::Refused,
        _ => AuditOutcome::Done,
    };
    record.detail = response.extensions().get::<AuditDetail>().map(|detail| detail.0.clone());
    if record.outcome == AuditOutcome::Refused
        && let AuditLine::Suppressed(left) = authenticator.refusal_limiter().count(&record.by, Instant::now())
    {
        if let Some(left) = left {
            tokio::spawn(write_refusal_summary(authenticator.clone(), record, left));
        }
        return response;
    }
    if append_audit_record(authenticator, record).await {
        return response;
    }
    let done = if status.is_success() {
        "the operation succeeded, but its audit record cannot be written"
    } else {
        "the audit log cannot be written"
    };
    Problem::new(ProblemKind::Internal, format!("{done}; check whether the disk is full or failing"))
        .into_response()
}

/// Waits for the end of the caller's minute, then appends one record for all refusals that have no record of their own.
async fn write_refusal_summary(authenticator: Arc<Authenticator>, record: AuditRecord, left: Duration) {
    tokio::time::sleep(left).await;
    let count = authenticator.refusal_limiter().take(&record.by);
    let detail = format!("{count} more refused requests in a minute, the first: {}", record.what);
    let (at, what) = (authenticator.now().wall, "refused requests".to_owned());
    append_audit_record(
        &authenticator,
        AuditRecord { at, what, subject: String::new(), detail: Some(detail), ..record },
    )
    .await;
}

/// Appends a record to the audit log. Returns whether it is durable.
pub(crate) async fn append_audit_record(authenticator: &Arc<Authenticator>, record: AuditRecord) -> bool {
    let access = authenticator.access().clone();
    let subject = shown_subject(&record, NumberDisplay::Masked);
    let context = (record.by.clone(), record.what.clone(), subject, record.status);
    let appended = tokio::task::spawn_blocking(move || access.append_audit(record)).await;
    let (by, what, subject, status) = context;
    match appended {
        Ok(Ok(serial)) => {
            tracing::info!(serial, by, what, subject, status, "audit");
            true
        }
        Ok(Err(error)) => {
            tracing::error!(%error, by, what, subject, status, "cannot write the audit log");
            false
        }
        Err(_) => false,
    }
}
