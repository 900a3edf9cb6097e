//! Events on numbers of a pool: single or in a batch.

use super::schemas::{NameSchema, NumberSchema};
use super::views::{NO_STATE, millis};
use super::{bad_request, name, unexpected_answer};
use crate::backend::SharedBackend;
use crate::problem::{Problem, ProblemKind, ProblemReason};
use crate::request::{JsonBody, PathParams};
use axum::Json;
use axum::extract::State;
use model::{
    AcquireRequest, LeaseTicket, NumberState, PoolAnswer, PoolNumber, PoolOperation, PoolOutcome,
    PoolRefusal, PoolRequest,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use utoipa::ToSchema;

/// Maximum events of a batch.
const MAX_EVENTS: usize = 10_000;
/// Maximum lease and maximum quarantine.
pub(super) const MAX_DURATION: Duration = Duration::from_secs(3650 * 86_400);

/// An event on a number.
#[derive(Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "lowercase", deny_unknown_fields)]
#[schema(as = PoolEvent)]
pub(super) enum PoolEventRequest {
    /// Adds the number to the pool.
    Add {
        #[schema(value_type = NumberSchema, inline)]
        number: String,
        /// The weight. Default: 1 for a new number; the current weight for an existing one.
        #[schema(minimum = 1, maximum = 16)]
        weight: Option<u8>,
    },
    /// Removes the number from the pool.
    Del {
        #[schema(value_type = NumberSchema, inline)]
        number: String,
    },
    /// Makes the number available.
    Reg {
        #[schema(value_type = NumberSchema, inline)]
        number: String,
    },
    /// Makes the number unavailable.
    Unreg {
        #[schema(value_type = NumberSchema, inline)]
        number: String,
    },
    /// Acquires this number, or any available one.
    Call {
        /// The number to acquire; any if omitted.
        #[schema(value_type = Option<NumberSchema>, inline)]
        number: Option<String>,
        /// The holder; at most 255 octets.
        #[serde(default)]
        holder: String,
        /// The reason; at most 255 octets.
        #[serde(default)]
        reason: String,
        /// The user for the strategy `sticky`; default: the holder.
        #[serde(default)]
        user: String,
        /// The called party, for the strategies `sticky` and `nearest`.
        #[serde(default)]
        callee: String,
        /// Duration of the lease, in milliseconds. If omitted, the lease does not expire.
        #[schema(minimum = 1, maximum = 315_360_000_000_u64)]
        #[serde(rename = "lease-ms")]
        lease_ms: Option<u64>,
    },
    /// Releases the number.
    Hangup {
        #[schema(value_type = NumberSchema, inline)]
        number: String,
        /// Release only if the number is held under this ticket. If omitted, release it from any holder.
        ticket: Option<u64>,
    },
    /// Renews the lease.
    Renew {
        #[schema(value_type = NumberSchema, inline)]
        number: String,
        /// Renew only if the number is held under this ticket. If omitted, renew it for any holder.
        ticket: Option<u64>,
        /// Duration of the lease from now on, in milliseconds. If omitted, the lease does not expire.
        #[schema(minimum = 1, maximum = 315_360_000_000_u64)]
        #[serde(rename = "lease-ms")]
        lease_ms: Option<u64>,
    },
}

/// One event, or several events in order.
#[derive(ToSchema)]
#[schema(as = PoolEvents)]
#[expect(dead_code, reason = "only a schema: the answer to an event and to an array of events differ")]
#[serde(untagged)]
pub(super) enum PoolEventsRequest {
    One(PoolEventRequest),
    Several(Vec<PoolEventRequest>),
}

/// The result of an event.
#[derive(ToSchema)]
#[schema(as = PoolResult, rename_all = "kebab-case")]
#[expect(dead_code, reason = "only a schema")]
pub(super) struct PoolEventResult {
    /// `done` or `refused`.
    result: String,
    /// The number.
    #[schema(nullable = false)]
    number: Option<String>,
    /// The state of the number after the event; `none` if it is not in the pool.
    #[schema(nullable = false)]
    state: Option<String>,
    /// The ticket of the lease.
    #[schema(nullable = false)]
    ticket: Option<u64>,
    /// The reason of a refusal, for programs.
    #[schema(nullable = false)]
    reason: Option<String>,
    /// The reason of a refusal, for people.
    #[schema(nullable = false)]
    detail: Option<String>,
    /// Milliseconds after which a retry may succeed.
    #[schema(nullable = false)]
    retry_after_ms: Option<u64>,
}

/// The result of one event, or the results of all events.
#[derive(ToSchema)]
#[schema(as = PoolResults)]
#[expect(dead_code, reason = "only a schema")]
#[serde(untagged)]
pub(super) enum PoolEventResults {
    One(PoolEventResult),
    Several(Vec<PoolEventResult>),
}

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

impl PoolEventRequest {
    fn operation(self) -> Result<PoolOperation, String> {
        Ok(match self {
            Self::Add { number: text, weight: requested_weight } => {
                PoolOperation::Add { number: number(&text)?, weight: weight(requested_weight)? }
            }
            Self::Del { number: text } => PoolOperation::Del { number: number(&text)? },
            Self::Reg { number: text } => PoolOperation::Reg { number: number(&text)? },
            Self::Unreg { number: text } => PoolOperation::Unreg { number: number(&text)? },
            Self::Call { number: text, holder, reason, user, callee, lease_ms } => {
                PoolOperation::Call(AcquireRequest {
                    number: text.as_deref().map(number).transpose()?,
                    holder: holder.into(),
                    reason: reason.into(),
                    user: user.into(),
                    callee: callee.into(),
                    lease: lease(lease_ms)?,
                })
            }
            Self::Hangup { number: text, ticket } => {
                PoolOperation::Hangup { number: number(&text)?, ticket: ticket.map(LeaseTicket) }
            }
            Self::Renew { number: text, ticket, lease_ms } => PoolOperation::Renew {
                number: number(&text)?,
                ticket: ticket.map(LeaseTicket),
                lease: lease(lease_ms)?,
            },
        })
    }
}

fn operation(event: Value) -> Result<PoolOperation, String> {
    if !event.is_object() {
        return Err("an event must be an object, such as {\"event\": \"call\"}".to_owned());
    }
    let event: PoolEventRequest = serde_json::from_value(event).map_err(|error| error.to_string())?;
    event.operation()
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
    let with_retry = |reason, left: Option<Duration>| ProblemReason {
        retry_after_ms: left.map(millis),
        ..ProblemReason::of(reason)
    };
    match refusal {
        PoolRefusal::NotInPool => ProblemReason::of("not-in-pool"),
        PoolRefusal::WrongState(state) => {
            ProblemReason { state: Some(*state), ..ProblemReason::of("wrong-state") }
        }
        PoolRefusal::OtherTicket => ProblemReason::of("other-ticket"),
        PoolRefusal::Resting { left } => with_retry("resting", Some(*left)),
        PoolRefusal::Full => ProblemReason::of("full"),
        PoolRefusal::TooLong => ProblemReason::of("too-long"),
        PoolRefusal::Empty => ProblemReason::of("empty"),
        PoolRefusal::AllDown => ProblemReason::of("all-down"),
        PoolRefusal::AllBusy { left } => with_retry("all-busy", *left),
        PoolRefusal::AllResting { left } => with_retry("all-resting", *left),
    }
}

/// The JSON result of an event.
fn outcome_json(
    (number, ticket): (Option<PoolNumber>, Option<LeaseTicket>),
    outcome: PoolOutcome,
) -> Result<Value, PoolRefusal> {
    let (number, ticket, state) = match outcome {
        PoolOutcome::Done(state) => (number, ticket, state),
        PoolOutcome::Acquired { number, ticket } => (Some(number), Some(ticket), Some(NumberState::BusyUp)),
        PoolOutcome::Refused(refusal) => return Err(refusal),
    };
    let mut result = json!({ "result": "done", "state": state.map_or(NO_STATE, NumberState::as_str) });
    if let Some(number) = number {
        result["number"] = number.to_string().into();
    }
    if let Some(ticket) = ticket {
        result["ticket"] = ticket.0.into();
    }
    Ok(result)
}

type Answer = Result<Json<Value>, Problem>;

/// Applies an event to a number, or an array of at most 10,000 events in order.
///
/// No other request is applied in between. A refusal in an array does not undo the rest: each event has its own result, and the
/// status is 200.
#[utoipa::path(
    post,
    path = "/v1/pools/{pool}/events",
    params(("pool" = inline(NameSchema), Path, description = "The pool's name.")),
    request_body = PoolEventsRequest,
    responses(
        (status = 200, description = "The event was applied; for an array, the result of each event.", body = PoolEventResults),
        (status = 409, description = "The event was refused; `reason` says why."),
    ),
)]
pub(super) async fn post_events(
    State(backend): State<SharedBackend>,
    PathParams(pool): PathParams<String>,
    JsonBody(request): JsonBody<Value>,
) -> Answer {
    let pool = name(&pool)?;
    match request {
        Value::Array(events) => batch(backend, pool, events).await,
        event => {
            let operation = operation(event).map_err(bad_request)?;
            let target = operation_target(&operation);
            let outcome = match backend.ask_pool(pool, PoolRequest::Do(operation)).await? {
                PoolAnswer::Outcome(outcome) => outcome,
                PoolAnswer::TooMany => PoolOutcome::Refused(PoolRefusal::Full),
                _ => return Err(unexpected_answer()),
            };
            outcome_json(target, outcome).map(Json).map_err(|refusal| {
                Problem::new(ProblemKind::Conflict, refusal.to_string()).with_reason(refusal_reason(&refusal))
            })
        }
    }
}

async fn batch(backend: SharedBackend, pool: model::PoolName, events: Vec<Value>) -> Answer {
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
    let PoolAnswer::Outcomes(outcomes) = backend.ask_pool(pool, PoolRequest::DoAll(operations)).await? else {
        return Err(unexpected_answer());
    };
    let results = targets.into_iter().zip(outcomes).map(|(target, outcome)| {
        outcome_json(target, outcome).unwrap_or_else(|refusal| {
            let mut result = json!(refusal_reason(&refusal));
            result["result"] = "refused".into();
            result["detail"] = refusal.to_string().into();
            if let Some(number) = target.0 {
                result["number"] = number.to_string().into();
            }
            result
        })
    });
    Ok(Json(Value::Array(results.collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

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
