//! The API of GSM subscribers: location, waiting messages, and an admin's actions to reach them.

use crate::problem::{Problem, ProblemKind};
use crate::request::{PathParams, SubscriberText};
use crate::service::{Provides, Service, call, call_json};

use access::Caller;
use axum::http::StatusCode;
use axum::{Extension, Json};
use model::NumberDisplay;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Path parameter of a subscriber.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "read by `At`; this is its description")]
struct SubscriberPath {
    /// `imsi-` and the IMSI, or `msisdn-` and the number without a plus.
    #[param(inline, value_type = SubscriberText)]
    subscriber: String,
}

/// The identity of a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriberName {
    /// The IMSI: 6 to 15 digits.
    Imsi(String),
    /// The number: 3 to 20 digits, without a plus sign.
    Msisdn(String),
}

impl SubscriberName {
    /// Parses `imsi-001010000000001` or `msisdn-4915112345678`, the format of 3GPP TS 29.571 §5.3.2.
    fn read(text: &str) -> Result<Self, Problem> {
        let is = |digits: &str, length: std::ops::RangeInclusive<usize>| {
            length.contains(&digits.len()) && digits.bytes().all(|octet| octet.is_ascii_digit())
        };
        match text.split_once('-') {
            Some(("imsi", digits)) if is(digits, 6..=15) => Ok(Self::Imsi(digits.to_owned())),
            Some(("msisdn", digits)) if is(digits, 3..=20) => Ok(Self::Msisdn(digits.to_owned())),
            _ => {
                let detail = format!(
                    "{text:?} names no subscriber; write imsi- and 6 to 15 digits, or msisdn- and the digits of an \
                     international number"
                );
                Err(Problem::new(ProblemKind::BadRequest, detail))
            }
        }
    }
}

/// The subscriber backend. All methods may wait for an HLR.
pub trait GsmSubscribers: Send + Sync + 'static {
    /// One subscriber. `numbers`: how numbers are shown.
    ///
    /// # Errors
    /// If no core network has the subscriber, or its HLR does not answer.
    fn subscriber(
        &self,
        name: &SubscriberName,
        numbers: NumberDisplay,
    ) -> Result<api::SubscriberView, Problem>;
    /// Retries all messages to the subscriber now. Returns their number.
    ///
    /// # Errors
    /// As [`GsmSubscribers::subscriber`].
    fn wake_subscriber(&self, name: &SubscriberName, by: &Arc<str>) -> Result<u64, Problem>;
    /// Sends a silent short message to the subscriber. Returns its id when it is durable.
    ///
    /// # Errors
    /// As [`GsmSubscribers::subscriber`], or if the message is refused.
    fn send_silent_sms(&self, name: &SubscriberName, by: &str) -> Result<String, Problem>;
}

pub(crate) fn routes<S: Provides<dyn GsmSubscribers>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(wake)).routes(routes!(silent_sms))
}

/// Shows a subscriber of a core network: location, last activity of the handset, reachability, waiting messages.
///
/// IMSI and number are masked unless the caller may read message texts.
#[utoipa::path(
    get,
    path = "/v1/subscribers/{subscriber}",
    params(SubscriberPath),
    responses(
        (status = 200, description = "The subscriber.", body = api::SubscriberView),
        (status = 404, description = "No core network has this subscriber."),
        (status = 503, description = "Only the HLR knows the subscriber, and it does not answer."),
    ),
)]
async fn show(
    backend: Service<dyn GsmSubscribers>,
    Extension(caller): Extension<Caller>,
    PathParams(name): PathParams<String>,
) -> Result<Json<api::SubscriberView>, Problem> {
    let name = SubscriberName::read(&name)?;
    let numbers = caller.number_display();
    call_json(backend, move |backend| backend.subscriber(&name, numbers)).await
}

/// Retries all messages to a subscriber now that wait for a retry.
#[utoipa::path(
    post,
    path = "/v1/subscribers/{subscriber}/wake",
    params(SubscriberPath),
    responses(
        (status = 200, description = "The number of messages retried.", body = api::SubscriberWakeResult),
        (status = 404, description = "No core network has this subscriber."),
        (status = 503, description = "Only the HLR knows the subscriber, and it does not answer."),
    ),
)]
async fn wake(
    backend: Service<dyn GsmSubscribers>,
    Extension(caller): Extension<Caller>,
    PathParams(name): PathParams<String>,
) -> Result<Json<api::SubscriberWakeResult>, Problem> {
    let name = SubscriberName::read(&name)?;
    call_json(backend, move |backend| {
        backend.wake_subscriber(&name, &caller.name).map(|messages| api::SubscriberWakeResult { messages })
    })
    .await
}

/// Sends a silent short message (type 0, 3GPP TS 23.040 §9.2.3.9) to a subscriber.
///
/// The handset acknowledges it without showing anything, so the message's trace shows whether the handset is reachable.
/// The message is valid for ten minutes. It precedes messages that have not been attempted, and waits for a message
/// that is in flight or awaits a retry.
#[utoipa::path(
    post,
    path = "/v1/subscribers/{subscriber}/silent-sms",
    params(SubscriberPath),
    responses(
        (status = 201, description = "The message is accepted and durable.", body = api::AcceptedMessage),
        (status = 404, description = "No core network has this subscriber."),
        (status = 409, description = "The message is refused temporarily: a queue is full, or the daemon is in drain mode. Or the subscriber has no number."),
        (status = 503, description = "Only the HLR knows the subscriber, and it does not answer."),
    ),
)]
async fn silent_sms(
    backend: Service<dyn GsmSubscribers>,
    Extension(caller): Extension<Caller>,
    PathParams(name): PathParams<String>,
) -> Result<(StatusCode, Json<api::AcceptedMessage>), Problem> {
    let name = SubscriberName::read(&name)?;
    let id = call(backend, move |backend| backend.send_silent_sms(&name, &caller.name)).await?;
    Ok((StatusCode::CREATED, Json(api::AcceptedMessage { id })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriber_names_are_parsed() {
        let read = |text| SubscriberName::read(text).map_err(|problem| problem.status);
        assert_eq!(read("imsi-001010000000001"), Ok(SubscriberName::Imsi("001010000000001".to_owned())));
        assert_eq!(read("msisdn-4915112345678"), Ok(SubscriberName::Msisdn("4915112345678".to_owned())));
        assert!(read("imsi-001010").is_ok() && read("imsi-00101").is_err());
        for wrong in
            ["001010000000001", "imsi-", "imsi-0010100000000012", "msisdn-+49151", "msisdn-12", "x-1"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
