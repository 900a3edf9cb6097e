//! Reads status callbacks and incoming messages.

use crate::{AUTH_TOKEN, Twilio};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use switchyard_sdk::form::Form;
use switchyard_sdk::peer::{Called, Header, Incoming, Receipt, ReceiptState, Request, respond};
use switchyard_sdk::secrets;

pub(crate) fn read(twilio: &Twilio, request: &Request) -> Called {
    let form = Form::read(&request.body);
    if !is_signed(twilio, request, &form.fields()) {
        return respond(403).because("a callback without Twilio's signature");
    }
    let field = |name: &str| form.text(name);
    if let Some(status) = field("MessageStatus").filter(|status| status != "received") {
        let state = match status.as_str() {
            "delivered" | "read" => ReceiptState::Delivered,
            "undelivered" | "failed" => ReceiptState::Undeliverable,
            "canceled" => ReceiptState::Deleted,
            _ => ReceiptState::Enroute,
        };
        let Some(id) = field("MessageSid").filter(|id| !id.is_empty() && id.len() <= 255) else {
            return respond(400).because("a callback without MessageSid");
        };
        let error = field("ErrorCode").and_then(|code| code.parse().ok()).unwrap_or(0);
        let mut called = respond(204);
        called.receipts =
            vec![Receipt { id, subscriber: field("To"), sender: field("From"), state, error, at: None }];
        return called;
    }
    let (Some(source), Some(destination), Some(text)) = (field("From"), field("To"), field("Body")) else {
        return respond(400).because("a callback that is neither a status nor a message");
    };
    let mut called = respond(200);
    called.response.headers = vec![Header { name: "content-type".to_owned(), value: "text/xml".to_owned() }];
    called.response.body = b"<Response/>".to_vec();
    called.messages = vec![Incoming { source, destination, text }];
    called
}

/// Whether the header X-Twilio-Signature is the HMAC-SHA1 of the address and the sorted fields, under the auth token.
fn is_signed(twilio: &Twilio, request: &Request, fields: &[(String, String)]) -> bool {
    let Some(token) = secrets::get(AUTH_TOKEN) else { return false };
    let header = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("x-twilio-signature"));
    let Some(signature) = header.and_then(|header| STANDARD.decode(header.value.trim()).ok()) else {
        return false;
    };
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(token.as_bytes()) else { return false };
    mac.update(format!("{}{}", twilio.public, request.path).as_bytes());
    if !request.query.is_empty() {
        mac.update(format!("?{}", request.query).as_bytes());
    }
    let mut sorted: Vec<&(String, String)> = fields.iter().collect();
    sorted.sort();
    for (name, value) in sorted {
        mac.update(name.as_bytes());
        mac.update(value.as_bytes());
    }
    mac.verify_slice(&signature).is_ok()
}
