//! The API of one GSM subscriber: where it is, what waits for it, and what an admin does to reach it.

use crate::api::{Shared, answer, call};
use crate::problem::{Kind, Problem};
use crate::request::{At, SubscriberText};
use crate::testing::Accepted;
use crate::view;
use access::{Caller, Right};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The place of a subscriber.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "read by `At`; this is its description")]
struct SubscriberPath {
    /// `imsi-` and the IMSI, or `msisdn-` and the number without a plus.
    #[param(inline, value_type = SubscriberText)]
    subscriber: String,
}

/// By what a subscriber is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriberName {
    /// The IMSI: 6 to 15 digits.
    Imsi(String),
    /// The number: 3 to 20 digits, without a plus sign.
    Msisdn(String),
}

impl SubscriberName {
    /// Reads `imsi-001010000000001` or `msisdn-4915112345678`: the form of 3GPP TS 29.571 §5.3.2.
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
                Err(Problem::new(Kind::BadRequest, detail))
            }
        }
    }
}

/// What stands behind it. All calls may wait for an HLR.
pub trait Subscribers: Send + Sync + 'static {
    /// One subscriber; with whole numbers if `open`.
    ///
    /// # Errors
    /// When no core network has such a subscriber, or its HLR does not answer.
    fn subscriber(&self, name: &SubscriberName, open: bool) -> Result<view::Subscriber, Problem>;
    /// Tries all messages now that wait for their next attempt to this subscriber; how many.
    ///
    /// # Errors
    /// As [`Subscribers::subscriber`].
    fn wake_subscriber(&self, name: &SubscriberName, by: &Arc<str>) -> Result<u64, Problem>;
    /// Sends the subscriber a silent short message, and tells its id once it is durable.
    ///
    /// # Errors
    /// As [`Subscribers::subscriber`], and when the message is refused.
    fn send_silent_sms(&self, name: &SubscriberName, by: &str) -> Result<String, Problem>;
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(wake)).routes(routes!(silent_sms))
}

/// One subscriber of a core network: where it is, when its handset was last heard of, whether messages reach it, and what
/// waits for it. IMSI and number are masked for those who may not read texts.
#[utoipa::path(
    get,
    path = "/v1/subscribers/{subscriber}",
    params(SubscriberPath),
    responses(
        (status = 200, description = "What is known.", body = view::Subscriber),
        (status = 404, description = "No core network has this subscriber."),
        (status = 503, description = "The subscriber is not known without its HLR, which does not answer."),
    ),
)]
async fn show(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    At(name): At<String>,
) -> Result<Json<view::Subscriber>, Problem> {
    let name = SubscriberName::read(&name)?;
    let open = caller.may(Right::ReadBodies);
    answer(appliance, move |appliance| appliance.subscriber(&name, open)).await
}

/// Tries all messages to a subscriber now that wait for their next attempt after one that failed.
#[utoipa::path(
    post,
    path = "/v1/subscribers/{subscriber}/wake",
    params(SubscriberPath),
    responses(
        (status = 200, description = "How many are tried.", body = view::Woken),
        (status = 404, description = "No core network has this subscriber."),
        (status = 503, description = "The subscriber is not known without its HLR, which does not answer."),
    ),
)]
async fn wake(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    At(name): At<String>,
) -> Result<Json<view::Woken>, Problem> {
    let name = SubscriberName::read(&name)?;
    answer(appliance, move |appliance| {
        appliance.wake_subscriber(&name, &caller.name).map(|messages| view::Woken { messages })
    })
    .await
}

/// Sends a subscriber a silent short message (type 0, 3GPP TS 23.040 §9.2.3.9): the handset acknowledges it and shows
/// nothing, so its trace tells whether the handset is there. It is valid for ten minutes, goes before other messages that have
/// not been tried, and waits like them behind one that is on its way or has failed.
#[utoipa::path(
    post,
    path = "/v1/subscribers/{subscriber}/silent-sms",
    params(SubscriberPath),
    responses(
        (status = 201, description = "It is accepted, and on disk.", body = Accepted),
        (status = 404, description = "No core network has this subscriber."),
        (status = 409, description = "It is refused for now: a queue is full, or the appliance drains; or the subscriber has no number."),
        (status = 503, description = "The subscriber is not known without its HLR, which does not answer."),
    ),
)]
async fn silent_sms(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    At(name): At<String>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let name = SubscriberName::read(&name)?;
    let id = call(appliance, move |appliance| appliance.send_silent_sms(&name, &caller.name)).await?;
    Ok((StatusCode::CREATED, Json(Accepted { id })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_it_is() {
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
