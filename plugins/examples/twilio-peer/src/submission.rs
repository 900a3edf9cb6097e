//! Submits a message.

use crate::{AUTH_TOKEN, Twilio};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::time::Duration;
use switchyard_sdk::form::percent_encode;
use switchyard_sdk::peer::{Attempt, RefusalClass, Submitted, accepted, refused, throttled, unsure};
use switchyard_sdk::{Message, details, http, secrets};

pub(crate) fn submit(twilio: &Twilio, message: &Message, attempt: &Attempt) -> Submitted {
    let Some(text) = details::text() else {
        return refused(RefusalClass::Permanent, 0).because("Twilio takes no 8-bit data");
    };
    let Some(token) = secrets::get(AUTH_TOKEN) else {
        return refused(RefusalClass::Temporary, 0)
            .because("the configuration of the peer has no secret \"auth-token\"");
    };
    let digits = |number: &str| number.strip_prefix('+').unwrap_or(number).to_owned();
    let to = format!("+{}", digits(&message.destination.value));
    // Numbers in international form have a plus sign; short codes and names have none.
    let from = match message.source.ton {
        1 => format!("+{}", digits(&message.source.value)),
        _ => message.source.value.clone(),
    };
    let mut body =
        format!("To={}&From={}&Body={}", percent_encode(&to), percent_encode(&from), percent_encode(&text));
    if attempt.wants_receipts {
        let callback = format!("{}/v1/peers/{}/callback", twilio.public, attempt.peer);
        body.push_str(&format!("&StatusCallback={}", percent_encode(&callback)));
    }
    let sent = http::fetch(&http::Request {
        method: "POST".to_owned(),
        url: format!("{}/2010-04-01/Accounts/{}/Messages.json", twilio.api, twilio.account),
        headers: vec![
            (
                "authorization".to_owned(),
                format!("Basic {}", STANDARD.encode(format!("{}:{token}", twilio.account))),
            ),
            ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
        ],
        body: body.into_bytes(),
    });
    match sent {
        Ok(answer) => read_answer(&answer),
        // The host makes the outcome uncertain if Twilio may have the message.
        Err(failure) => refused(RefusalClass::Temporary, 0).because(format!("no answer: {failure:?}")),
    }
}

fn read_answer(answer: &http::Response) -> Submitted {
    let document: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    if (200..300).contains(&answer.status) {
        let sid = document["sid"].as_str().map(str::to_owned);
        return accepted(sid.filter(|sid| sid.len() <= 255));
    }
    let code = document["code"]
        .as_u64()
        .and_then(|code| u32::try_from(code).ok())
        .unwrap_or(u32::from(answer.status));
    let words: String = document["message"].as_str().unwrap_or_default().chars().take(120).collect();
    let submitted = match (answer.status, code) {
        (429, _) => {
            let header = answer.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
            throttled(code, header.and_then(|(_, value)| value.trim().parse().ok()).map(Duration::from_secs))
        }
        // Queue overflow: https://www.twilio.com/docs/api/errors
        (_, 30001) => refused(RefusalClass::QueueFull, code),
        // Not a mobile number, or not a number.
        (_, 21211 | 21614) => refused(RefusalClass::UnknownSubscriber, code),
        // The credentials are wrong: the message waits until they are right.
        (401 | 403, _) => refused(RefusalClass::Temporary, code),
        (400..=499, _) => refused(RefusalClass::Permanent, code),
        // Twilio may have accepted it.
        _ => unsure(),
    };
    submitted.because(format!("status {}, {words}", answer.status))
}
