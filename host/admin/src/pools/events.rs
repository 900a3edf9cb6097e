//! What happens to numbers, one at a time or in a batch.

use super::shown::{NONE, millis};
use super::words::{NameText, NumberText};
use super::{bad, name, strange};
use crate::api::Shared;
use crate::problem::{Kind, Problem, Reason};
use crate::request::{At, Document};
use axum::Json;
use axum::extract::State;
use model::{
    NumberState, PoolAnswer, PoolCall, PoolNumber, PoolOperation, PoolOutcome, PoolRefusal, PoolRequest,
    PoolTicket,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use utoipa::ToSchema;

/// The most events of a batch.
const MOST: usize = 10_000;
/// The longest lease, and the longest rest.
pub(super) const LONGEST: Duration = Duration::from_secs(3650 * 86_400);

/// Something that happens to a number.
#[derive(Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "lowercase", deny_unknown_fields)]
#[schema(as = PoolEvent)]
pub(super) enum Event {
    /// It comes into the pool.
    Add {
        #[schema(value_type = NumberText, inline)]
        number: String,
        /// Without it a new number has 1, and one that is there already keeps its own.
        #[schema(minimum = 1, maximum = 16)]
        weight: Option<u8>,
    },
    /// It leaves the pool.
    Del {
        #[schema(value_type = NumberText, inline)]
        number: String,
    },
    /// It can be used.
    Reg {
        #[schema(value_type = NumberText, inline)]
        number: String,
    },
    /// It cannot be used any more.
    Unreg {
        #[schema(value_type = NumberText, inline)]
        number: String,
    },
    /// Somebody takes it, or any that is to be had.
    Call {
        /// This one, and no other.
        #[schema(value_type = Option<NumberText>, inline)]
        number: Option<String>,
        /// Who takes it; at most 255 octets.
        #[serde(default)]
        holder: String,
        /// What for; at most 255 octets.
        #[serde(default)]
        reason: String,
        /// The user that the strategy `sticky` looks at; the holder otherwise.
        #[serde(default)]
        user: String,
        /// Whom it is for: `sticky` and `nearest` look at it.
        #[serde(default)]
        callee: String,
        /// Milliseconds after which it is given back by itself.
        #[schema(minimum = 1, maximum = 315_360_000_000_u64)]
        #[serde(rename = "lease-ms")]
        lease_ms: Option<u64>,
    },
    /// It is given back.
    Hangup {
        #[schema(value_type = NumberText, inline)]
        number: String,
        /// Only if it is still held under this ticket; otherwise whoever holds it.
        ticket: Option<u64>,
    },
    /// Its lease has a new end.
    Renew {
        #[schema(value_type = NumberText, inline)]
        number: String,
        /// Only if it is still held under this ticket; otherwise whoever holds it.
        ticket: Option<u64>,
        /// Milliseconds after which it is given back by itself.
        #[schema(minimum = 1, maximum = 315_360_000_000_u64)]
        #[serde(rename = "lease-ms")]
        lease_ms: Option<u64>,
    },
}

/// One event, or several, one after the other.
#[derive(ToSchema)]
#[schema(as = PoolEvents)]
#[expect(dead_code, reason = "it only describes: which of the two it is decides how a refusal is told")]
#[serde(untagged)]
pub(super) enum Events {
    One(Event),
    Several(Vec<Event>),
}

/// What became of an event.
#[derive(ToSchema)]
#[schema(as = PoolResult, rename_all = "kebab-case")]
#[expect(dead_code, reason = "it only describes")]
pub(super) struct Became {
    /// `done` or `refused`.
    result: String,
    /// Which number.
    #[schema(nullable = false)]
    number: Option<String>,
    /// How it stands since: `none` where it is not in the pool.
    #[schema(nullable = false)]
    state: Option<String>,
    /// The name of the holding.
    #[schema(nullable = false)]
    ticket: Option<u64>,
    /// Why it was refused.
    #[schema(nullable = false)]
    reason: Option<String>,
    /// The same for people.
    #[schema(nullable = false)]
    detail: Option<String>,
    /// Milliseconds after which it may be otherwise.
    #[schema(nullable = false)]
    retry_after_ms: Option<u64>,
}

/// What became of one event, or of each.
#[derive(ToSchema)]
#[schema(as = PoolResults)]
#[expect(dead_code, reason = "it only describes")]
#[serde(untagged)]
pub(super) enum Results {
    One(Became),
    Several(Vec<Became>),
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
        Some(lease) if lease.is_zero() || lease > LONGEST => {
            Err("lease-ms: must be at least 1, and at most 3650 days".to_owned())
        }
        lease => Ok(lease),
    }
}

impl Event {
    fn operation(self) -> Result<PoolOperation, String> {
        Ok(match self {
            Self::Add { number: text, weight: given } => {
                PoolOperation::Add { number: number(&text)?, weight: weight(given)? }
            }
            Self::Del { number: text } => PoolOperation::Del { number: number(&text)? },
            Self::Reg { number: text } => PoolOperation::Reg { number: number(&text)? },
            Self::Unreg { number: text } => PoolOperation::Unreg { number: number(&text)? },
            Self::Call { number: text, holder, reason, user, callee, lease_ms } => {
                PoolOperation::Call(PoolCall {
                    number: text.as_deref().map(number).transpose()?,
                    holder: holder.into(),
                    reason: reason.into(),
                    user: user.into(),
                    callee: callee.into(),
                    lease: lease(lease_ms)?,
                })
            }
            Self::Hangup { number: text, ticket } => {
                PoolOperation::Hangup { number: number(&text)?, ticket: ticket.map(PoolTicket) }
            }
            Self::Renew { number: text, ticket, lease_ms } => PoolOperation::Renew {
                number: number(&text)?,
                ticket: ticket.map(PoolTicket),
                lease: lease(lease_ms)?,
            },
        })
    }
}

fn operation(event: Value) -> Result<PoolOperation, String> {
    if !event.is_object() {
        return Err("an event is an object, such as {\"event\": \"call\"}".to_owned());
    }
    let event: Event = serde_json::from_value(event).map_err(|error| error.to_string())?;
    event.operation()
}

/// The number that an operation names, and the ticket.
fn named(operation: &PoolOperation) -> (Option<PoolNumber>, Option<PoolTicket>) {
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

/// A refusal in the words that programs go by.
pub(super) fn reason(refusal: &PoolRefusal) -> Reason {
    let in_time =
        |reason, left: Option<Duration>| Reason { retry_after_ms: left.map(millis), ..Reason::of(reason) };
    match refusal {
        PoolRefusal::NotInPool => Reason::of("not-in-pool"),
        PoolRefusal::WrongState(state) => Reason { state: Some(*state), ..Reason::of("wrong-state") },
        PoolRefusal::OtherTicket => Reason::of("other-ticket"),
        PoolRefusal::Resting { left } => in_time("resting", Some(*left)),
        PoolRefusal::Full => Reason::of("full"),
        PoolRefusal::TooLong => Reason::of("too-long"),
        PoolRefusal::Empty => Reason::of("empty"),
        PoolRefusal::AllDown => Reason::of("all-down"),
        PoolRefusal::AllBusy { left } => in_time("all-busy", *left),
        PoolRefusal::AllResting { left } => in_time("all-resting", *left),
    }
}

/// What became of one event.
fn told(
    (number, ticket): (Option<PoolNumber>, Option<PoolTicket>),
    outcome: PoolOutcome,
) -> Result<Value, PoolRefusal> {
    let (number, ticket, state) = match outcome {
        PoolOutcome::Done(state) => (number, ticket, state),
        PoolOutcome::Given { number, ticket } => (Some(number), Some(ticket), Some(NumberState::BusyUp)),
        PoolOutcome::Refused(refusal) => return Err(refusal),
    };
    let mut told = json!({ "result": "done", "state": state.map_or(NONE, NumberState::as_str) });
    if let Some(number) = number {
        told["number"] = number.to_string().into();
    }
    if let Some(ticket) = ticket {
        told["ticket"] = ticket.0.into();
    }
    Ok(told)
}

type Answer = Result<Json<Value>, Problem>;

/// Something happens to a number; or, as an array of at most 10,000, several things one after the other.
///
/// Nothing of others' happens in between. A refusal in an array does not undo the rest; each has its own result, and the
/// status is 200.
#[utoipa::path(
    post,
    path = "/v1/pools/{pool}/events",
    params(("pool" = inline(NameText), Path, description = "Its name.")),
    request_body = Events,
    responses(
        (status = 200, description = "It is done; or, of several, what became of each.", body = Results),
        (status = 409, description = "Nothing was done, and why."),
    ),
)]
pub(super) async fn take(
    State(appliance): State<Shared>,
    At(pool): At<String>,
    Document(request): Document<Value>,
) -> Answer {
    let pool = name(&pool)?;
    match request {
        Value::Array(events) => batch(appliance, pool, events).await,
        event => {
            let operation = operation(event).map_err(bad)?;
            let named = named(&operation);
            let outcome = match appliance.ask_pool(pool, PoolRequest::Do(operation)).await? {
                PoolAnswer::Outcome(outcome) => outcome,
                PoolAnswer::TooMany => PoolOutcome::Refused(PoolRefusal::Full),
                _ => return Err(strange()),
            };
            told(named, outcome).map(Json).map_err(|refusal| {
                Problem::new(Kind::Conflict, refusal.to_string()).because(reason(&refusal))
            })
        }
    }
}

async fn batch(appliance: Shared, pool: model::PoolName, events: Vec<Value>) -> Answer {
    if events.len() > MOST {
        let what = format!("{} events are too many: send at most {MOST} at a time", events.len());
        return Err(bad(what));
    }
    let mut operations = Vec::with_capacity(events.len());
    for (index, event) in events.into_iter().enumerate() {
        let read = operation(event);
        operations.push(read.map_err(|what| bad(format!("event {index}: {what}; nothing was done")))?);
    }
    let named: Vec<_> = operations.iter().map(named).collect();
    let PoolAnswer::Outcomes(outcomes) = appliance.ask_pool(pool, PoolRequest::DoAll(operations)).await?
    else {
        return Err(strange());
    };
    let results = named.into_iter().zip(outcomes).map(|(named, outcome)| {
        told(named, outcome).unwrap_or_else(|refusal| {
            let mut told = json!(reason(&refusal));
            told["result"] = "refused".into();
            told["detail"] = refusal.to_string().into();
            if let Some(number) = named.0 {
                told["number"] = number.to_string().into();
            }
            told
        })
    });
    Ok(Json(Value::Array(results.collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_a_whole_or_refused_with_a_reason() {
        let call =
            json!({ "event": "call", "holder": "crm", "user": "u", "callee": "49", "lease-ms": 30_000 });
        let expected = PoolOperation::Call(PoolCall {
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
            Ok(PoolOperation::Renew { number, ticket: Some(PoolTicket(7)), lease: None })
        );
        assert_eq!(
            operation(json!({ "event": "add", "number": "+49" })),
            Ok(PoolOperation::Add { number, weight: None })
        );
        for (event, word) in [
            (json!({ "event": "add", "number": "x" }), "cannot be a number"),
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
            let told = operation(event.clone()).unwrap_err();
            assert!(told.contains(word), "{event}: {told}");
        }
    }
}
