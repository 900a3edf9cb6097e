//! Events on numbers of a pool: single or in a batch.

use super::views::millis;
use super::{Pools, bad_request, name, unexpected_answer};
use crate::problem::{Problem, ProblemKind};
use crate::request::{JsonBody, PathParams};
use crate::service::Service;
use api::name_schemas::PoolNameSchema;
use api::{
    NO_STATE, PoolEventOutcome, PoolEventRequest, PoolEventResult, PoolEventResults, PoolEventsRequest,
    ProblemReason,
};
use axum::Json;
use model::{
    AcquireRequest, LeaseTicket, NumberState, PoolAnswer, PoolNumber, PoolOperation, PoolOutcome,
    PoolRefusal, PoolRequest,
};
use serde_json::Value;
use std::time::Duration;

/// Maximum events of a batch.
const MAX_EVENTS: usize = 10_000;
/// Maximum lease and maximum quarantine.
pub(super) const MAX_DURATION: Duration = Duration::from_secs(3650 * 86_400);

fn number(text: &str) -> Result<PoolNumber, String> {
    text.parse().map_err(|error: model::ParsePoolNumberError| error.to_string())
}

pub(super) fn weight(weight: Option<u8>) -> Result<Option<u8>, String> {
    match weight {
        None | Some(1..=16) => Ok(weight),
        Some(weight) => Err(format!("weight: is {weight}, and must be 1 to 16")),
    }
}

fn lease(lease_ms: Option<u64>) -> Result<Option<Duration>, String> {
    match lease_ms.map(Duration::from_millis) {
        Some(lease) if lease.is_zero() || lease > MAX_DURATION => {
            Err("lease-ms: must be at least 1 and at most 3650 days".to_owned())
        }
        lease => Ok(lease),
    }
}

fn operation_of(event: PoolEventRequest) -> Result<PoolOperation, String> {
    Ok(match event {
        PoolEventRequest::Add { number: text, weight: requested_weight } => {
            PoolOperation::Add { number: number(&text)?, weight: weight(requested_weight)? }
        }
        PoolEventRequest::Del { number: text } => PoolOperation::Del { number: number(&text)? },
        PoolEventRequest::Reg { number: text } => PoolOperation::Reg { number: number(&text)? },
        PoolEventRequest::Unreg { number: text } => PoolOperation::Unreg { number: number(&text)? },
        PoolEventRequest::Call { number: text, holder, reason, user, callee, lease_ms } => {
            PoolOperation::Call(AcquireRequest {
                number: text.as_deref().map(number).transpose()?,
                holder: holder.into(),
                reason: reason.into(),
                user: user.into(),
                callee: callee.into(),
                lease: lease(lease_ms)?,
            })
        }
        PoolEventRequest::Hangup { number: text, ticket } => {
            PoolOperation::Hangup { number: number(&text)?, ticket: ticket.map(LeaseTicket) }
        }
        PoolEventRequest::Renew { number: text, ticket, lease_ms } => PoolOperation::Renew {
            number: number(&text)?,
            ticket: ticket.map(LeaseTicket),
            lease: lease(lease_ms)?,
        },
    })
}

fn operation(event: Value) -> Result<PoolOperation, String> {
    if !event.is_object() {
        return Err("an event must be an object, such as {\"event\": \"call\"}".to_owned());
    }
    let event: PoolEventRequest = serde_json::from_value(event).map_err(|error| error.to_string())?;
    operation_of(event)
}

/// The number and ticket that an operation names.
fn operation_target(operation: &PoolOperation) -> (Option<PoolNumber>, Option<LeaseTicket>) {
    match operation {
        PoolOperation::Add { number, .. }
        | PoolOperation::Del { number }
        | PoolOperation::Reg { number }
        | PoolOperation::Unreg { number } => (Some(*number), None),
        PoolOperation::Call(call) => (call.number, None),
        PoolOperation::Hangup { number, ticket } | PoolOperation::Renew { number, ticket, .. } => {
            (Some(*number), *ticket)
        }
    }
}

/// The reason of a refusal, for programs.
pub(super) fn refusal_reason(refusal: &PoolRefusal) -> ProblemReason {
    let with_retry = |reason, remaining: Option<Duration>| ProblemReason {
        retry_after_ms: remaining.map(millis),
        ..ProblemReason::of(reason)
    };
    match refusal {
        PoolRefusal::NotInPool => ProblemReason::of("not-in-pool"),
        PoolRefusal::WrongState(state) => {
            ProblemReason { state: Some(*state), ..ProblemReason::of("wrong-state") }
        }
        PoolRefusal::OtherTicket => ProblemReason::of("other-ticket"),
        PoolRefusal::InQuarantine { remaining } => with_retry("resting", Some(*remaining)),
        PoolRefusal::Full => ProblemReason::of("full"),
        PoolRefusal::TooLong => ProblemReason::of("too-long"),
        PoolRefusal::Empty => ProblemReason::of("empty"),
        PoolRefusal::AllDown => ProblemReason::of("all-down"),
        PoolRefusal::AllBusy { remaining } => with_retry("all-busy", *remaining),
        PoolRefusal::AllInQuarantine { remaining } => with_retry("all-resting", *remaining),
    }
}

/// The result of an event.
fn event_result(
    (number, ticket): (Option<PoolNumber>, Option<LeaseTicket>),
    outcome: PoolOutcome,
) -> Result<PoolEventResult, PoolRefusal> {
    let (number, ticket, state) = match outcome {
        PoolOutcome::Done(state) => (number, ticket, state),
        PoolOutcome::Acquired { number, ticket } => (Some(number), Some(ticket), Some(NumberState::BusyUp)),
        PoolOutcome::Refused(refusal) => return Err(refusal),
    };
    Ok(PoolEventResult {
        state: Some(state.map_or(NO_STATE, NumberState::as_str).to_owned()),
        number: number.map(|number| number.to_string()),
        ticket: ticket.map(|ticket| ticket.0),
        ..PoolEventResult::default()
    })
}

/// The result of a refused event.
fn refused_result(number: Option<PoolNumber>, refusal: &PoolRefusal) -> PoolEventResult {
    let ProblemReason { reason, state, retry_after_ms } = refusal_reason(refusal);
    PoolEventResult {
        result: PoolEventOutcome::Refused,
        number: number.map(|number| number.to_string()),
        state: state.map(|state| state.to_string()),
        reason: Some(reason.into()),
        detail: Some(refusal.to_string()),
        retry_after_ms,
        ..PoolEventResult::default()
    }
}

type Answer = Result<Json<PoolEventResults>, Problem>;

/// Applies an event to a number, or an array of at most 10,000 events in order.
///
/// No other request is applied in between. A refusal in an array does not undo the rest: each event has its own result, and the
/// status is 200.
#[utoipa::path(
    post,
    path = "/v1/pools/{pool}/events",
    params(("pool" = inline(PoolNameSchema), Path, description = "The pool's name.")),
    request_body = PoolEventsRequest,
    responses(
        (status = 200, description = "The event was applied; for an array, the result of each event.", body = PoolEventResults),
        (status = 409, description = "The event was refused; `reason` says why."),
    ),
)]
pub(super) async fn post_events(
    backend: Service<dyn Pools>,
    PathParams(pool): PathParams<String>,
    JsonBody(request): JsonBody<Value>,
) -> Answer {
    let pool = name(&pool)?;
    match request {
        Value::Array(events) => batch(backend, pool, events).await,
        event => {
            let operation = operation(event).map_err(bad_request)?;
            let target = operation_target(&operation);
            let outcome = match backend.ask_pool(pool, PoolRequest::Operation(operation)).await? {
                PoolAnswer::Outcome(outcome) => outcome,
                PoolAnswer::TooMany => PoolOutcome::Refused(PoolRefusal::Full),
                _ => return Err(unexpected_answer()),
            };
            let result = event_result(target, outcome).map_err(|refusal| {
                Problem::new(ProblemKind::Conflict, refusal.to_string()).with_reason(refusal_reason(&refusal))
            });
            result.map(|result| Json(PoolEventResults::One(result)))
        }
    }
}

async fn batch(backend: Service<dyn Pools>, pool: model::PoolName, events: Vec<Value>) -> Answer {
    if events.len() > MAX_EVENTS {
        let what = format!("{} events are too many: send at most {MAX_EVENTS} at a time", events.len());
        return Err(bad_request(what));
    }
    let mut operations = Vec::with_capacity(events.len());
    for (index, event) in events.into_iter().enumerate() {
        let read = operation(event);
        operations
            .push(read.map_err(|what| bad_request(format!("event {index}: {what}; nothing was done")))?);
    }
    let targets: Vec<_> = operations.iter().map(operation_target).collect();
    let PoolAnswer::Outcomes(outcomes) = backend.ask_pool(pool, PoolRequest::Operations(operations)).await?
    else {
        return Err(unexpected_answer());
    };
    let results = targets.into_iter().zip(outcomes).map(|(target, outcome)| {
        event_result(target, outcome).unwrap_or_else(|refusal| refused_result(target.0, &refusal))
    });
    Ok(Json(PoolEventResults::Several(results.collect())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pool_events_are_parsed_or_refused_with_a_reason() {
        let call =
            json!({ "event": "call", "holder": "crm", "user": "u", "callee": "49", "lease-ms": 30_000 });
        let expected = PoolOperation::Call(AcquireRequest {
            number: None,
            holder: "crm".into(),
            reason: "".into(),
            user: "u".into(),
            callee: "49".into(),
            lease: Some(Duration::from_secs(30)),
        });
        assert_eq!(operation(call), Ok(expected));
        let number: PoolNumber = "+49".parse().unwrap();
        assert_eq!(
            operation(json!({ "event": "renew", "number": "+49", "ticket": 7 })),
            Ok(PoolOperation::Renew { number, ticket: Some(LeaseTicket(7)), lease: None })
        );
        assert_eq!(
            operation(json!({ "event": "add", "number": "+49" })),
            Ok(PoolOperation::Add { number, weight: None })
        );
        for (event, word) in [
            (json!({ "event": "add", "number": "x" }), "is not a pool number"),
            (json!({ "event": "add", "number": 49 }), "string"),
            (json!({ "event": "add" }), "number"),
            (json!({ "event": "add", "number": "1", "weight": 17 }), "1 to 16"),
            (json!({ "event": "add", "number": "1", "colour": "red" }), "colour"),
            (json!({ "event": "call", "lease-ms": 0 }), "lease-ms"),
            (json!({ "event": "call", "lease-ms": u64::MAX }), "lease-ms"),
            (json!({ "event": "lapse", "number": "1" }), "lapse"),
            (json!({ "number": "1" }), "event"),
            (json!("call"), "event"),
        ] {
            let error = operation(event.clone()).unwrap_err();
            assert!(error.contains(word), "{event}: {error}");
        }
    }
}
