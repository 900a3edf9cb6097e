//! Conversion of a callback to receipts and messages.

use crate::Secrets;
use crate::condition;
use crate::document::{CallbackForm, MessageRules, Policy, ReceiptRules, ResponseRules, SenderCheck};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use serde_json::{Map, Value};
use sha2::Sha256;
use switchyard_sdk::form::Form;
use switchyard_sdk::peer::{Called, Incoming, Receipt, Request, respond};

/// Maximum numbers of receipts and of messages that the host accepts from one callback.
const MAX_RECEIPTS: usize = 1_000;
const MAX_MESSAGES: usize = 100;
/// The longest id that the host accepts, in octets.
const MAX_ID: usize = 255;

impl Policy {
    /// Reads a callback.
    #[must_use]
    pub fn callback(&self, peer: &str, request: &Request, secrets: Secrets<'_>) -> Called {
        let start = format!("/v1/peers/{peer}/callback");
        let path = request.path.strip_prefix(&start).unwrap_or_default();
        if let Some(rules) = self.document.messages.as_ref().filter(|rules| rules.path == path) {
            return refusal(&rules.check, request, secrets).unwrap_or_else(|| read_messages(rules, request));
        }
        match self.document.receipts.as_ref().filter(|rules| rules.path == path) {
            Some(rules) => {
                refusal(&rules.check, request, secrets).unwrap_or_else(|| read_receipts(rules, request))
            }
            None => respond(404),
        }
    }
}

/// The refusal of a callback that is not authenticated as the peer's.
fn refusal(check: &SenderCheck, request: &Request, secrets: Secrets<'_>) -> Option<Called> {
    let Some(secret) = secrets(&check.secret) else {
        let name = &check.secret;
        return Some(respond(403).because(format!("the configuration of the peer has no secret {name:?}")));
    };
    let header = |name: &str| {
        request
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value.as_str())
    };
    let is_right = if let Some(name) = &check.header {
        header(name).is_some_and(|value| is_same(value.as_bytes(), secret.as_bytes()))
    } else if let Some(name) = &check.query {
        let form = Form::read(request.query.as_bytes());
        form.octets(name).is_some_and(|value| is_same(value, secret.as_bytes()))
    } else if let Some(name) = &check.hmac_sha256 {
        header(name)
            .and_then(signature)
            .is_some_and(|signature| is_signed(&signature, &secret, &request.body))
    } else {
        false
    };
    (!is_right).then(|| respond(403).because("a callback without the right secret"))
}

/// Compares in constant time: it does not depend on the position of the first difference.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// The octets of a signature: hexadecimal digits or base64.
fn signature(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let text = text.strip_prefix("sha256=").unwrap_or(text);
    if text.len() == 64 && text.is_ascii() {
        let digit = |octet: u8| char::from(octet).to_digit(16);
        let pairs = text.as_bytes().chunks_exact(2).map(|pair| match pair {
            [high, low] => Some((digit(*high)? * 16 + digit(*low)?) as u8),
            _ => None,
        });
        return pairs.collect();
    }
    STANDARD.decode(text).ok()
}

fn is_signed(signature: &[u8], secret: &str, body: &[u8]) -> bool {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return false };
    mac.update(body);
    mac.verify_slice(signature).is_ok()
}

/// The document of a callback, and the items in it.
fn items(form: CallbackForm, list: Option<&String>, request: &Request) -> Option<Vec<Value>> {
    let document = match form {
        CallbackForm::Json => serde_json::from_slice(&request.body).ok()?,
        CallbackForm::Form => object(&Form::read(&request.body)),
        CallbackForm::Query => object(&Form::read(request.query.as_bytes())),
    };
    match list {
        None => Some(vec![document]),
        Some(pointer) => document.pointer(pointer)?.as_array().cloned(),
    }
}

/// A form as an object. Of fields with the same name, the first counts.
fn object(form: &Form) -> Value {
    let mut object = Map::new();
    for (name, value) in form.fields() {
        object.entry(name).or_insert(Value::String(value));
    }
    Value::Object(object)
}

fn answer(rules: &ResponseRules) -> Called {
    let mut called = respond(rules.status);
    called.response.body = rules.body.clone().into_bytes();
    called
}

fn read_receipts(rules: &ReceiptRules, request: &Request) -> Called {
    let Some(items) = items(rules.form, rules.list.as_ref(), request) else {
        return respond(400).because("a callback that is not in the form of [receipts]");
    };
    if items.len() > MAX_RECEIPTS {
        return respond(413).because(format!("a callback with more than {MAX_RECEIPTS} receipts"));
    }
    let mut called = answer(&rules.response);
    let mut unknown = None;
    for item in &items {
        let field = |pointer: &Option<String>| condition::text(item, pointer.as_ref()?);
        let id = condition::text(item, &rules.id).filter(|id| !id.is_empty() && id.len() <= MAX_ID);
        let (Some(id), Some(word)) = (id, condition::text(item, &rules.state)) else {
            return respond(400).because("a receipt without id or state");
        };
        let Some(state) = rules.states.get(&word) else {
            unknown = Some(word);
            continue;
        };
        called.receipts.push(Receipt {
            id,
            subscriber: field(&rules.subscriber),
            sender: field(&rules.sender),
            state: state.state(),
            error: field(&rules.error).and_then(|code| code.parse().ok()).unwrap_or(0),
            at: None,
        });
    }
    called.note = unknown.map(|word| {
        let word: String = word.chars().take(40).collect();
        format!("the state {word:?} is not in [receipts.states]")
    });
    called
}

fn read_messages(rules: &MessageRules, request: &Request) -> Called {
    let Some(items) = items(rules.form, rules.list.as_ref(), request) else {
        return respond(400).because("a callback that is not in the form of [messages]");
    };
    if items.len() > MAX_MESSAGES {
        return respond(413).because(format!("a callback with more than {MAX_MESSAGES} messages"));
    }
    let mut called = answer(&rules.response);
    for item in &items {
        let text = item.pointer(&rules.text).and_then(Value::as_str);
        let fields = (condition::text(item, &rules.source), condition::text(item, &rules.destination), text);
        let (Some(source), Some(destination), Some(text)) = fields else {
            return respond(400).because("a message without source, destination or text");
        };
        called.messages.push(Incoming { source, destination, text: text.to_owned() });
    }
    called
}
